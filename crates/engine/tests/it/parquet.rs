//! Parquet files as a source: those that pyarrow wrote, as Hugging Face keeps pictures.

use std::path::Path;
use std::sync::Arc;

use forebay_engine::Error;
use forebay_engine::build::Build;
use forebay_engine::data::{Dataset, Listing, ListingOptions, matching};
use forebay_engine::load::{Column, LoadOptions, OnError, Sampling, Shuffle};
use forebay_engine::source::{Files, Source};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_storage::Storage;
use tempfile::TempDir;

use crate::object_server::ObjectServer;
use crate::remote::connected;
use crate::support::{local, options, pipeline, shards, start};

const IMAGES: &[u8] = include_bytes!("../../../record/tests/golden/parquet/images.parquet");
const ROWS: usize = 30;

fn on_parquet(more: &str) -> Pipeline {
    let steps = "[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [8, 8]\n";
    pipeline(&format!("name = \"rows\"\n[source]\nformat = \"parquet\"\n{more}\n{steps}"))
}

/// A folder with two such files.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "b.parquet"] {
        std::fs::write(folder.path().join(name), IMAGES).unwrap();
    }
    folder
}

fn open(
    pipeline: &Pipeline,
    folder: &Path,
    storage: Arc<dyn Storage>,
    on_error: OnError,
) -> Result<Arc<dyn Source>, Error> {
    let options = ListingOptions { on_error, ..ListingOptions::default() };
    Ok(Arc::new(Files::open(pipeline.clone(), folder, storage, &options)?))
}

/// The key, the first pixel and the label of each sample.
fn samples(source: Arc<dyn Source>, options: LoadOptions) -> Result<Vec<(String, u8, i64)>, Error> {
    let mut found = Vec::new();
    for batch in start(source, options, 0)? {
        let batch = batch?;
        let Some(Column::Ints(labels)) = batch.column("label") else { panic!("labels") };
        let Some(Column::Dense { data, .. }) = batch.column("image") else { panic!("pixels") };
        let each = data.len() / batch.len();
        for (row, key) in batch.keys.iter().enumerate() {
            found.push((key.to_string(), data[row * each], labels[row]));
        }
    }
    Ok(found)
}

fn expected() -> Vec<(String, u8, i64)> {
    let row = |file: &str, row: usize| (format!("{file}.parquet:{row}"), row as u8, row as i64 % 3);
    (0..ROWS).map(|number| row("a", number)).chain((0..ROWS).map(|number| row("b", number))).collect()
}

#[test]
fn rows_are_samples_in_any_order_and_in_builds() {
    let (folder, pipeline) = (folder(), on_parquet(""));
    let source = || open(&pipeline, folder.path(), local(), OnError::Fail).unwrap();
    assert_eq!(source().classes(), ["ant", "bee", "cat"]);
    assert_eq!(samples(source(), LoadOptions::default()).unwrap(), expected());
    let blocks = source().blocks().unwrap();
    assert_eq!(
        blocks.iter().map(|block| block.samples.end - block.samples.start).collect::<Vec<_>>(),
        [8, 8, 8, 6, 8, 8, 8, 6]
    );
    for (bytes, threads) in [(1 << 10, 1), (1 << 30, 3)] {
        let options = LoadOptions { shuffle: Shuffle::Window { bytes }, threads, seed: 3, ..LoadOptions::default() };
        let mut shuffled = samples(source(), options).unwrap();
        assert_ne!(shuffled, expected());
        shuffled.sort();
        let mut sorted = expected();
        sorted.sort();
        assert_eq!(shuffled, sorted);
    }
    // Parts of row groups, and single rows, as a build reads them.
    let subset = Sampling { subset: Some((0..60).step_by(7).collect()), ..Sampling::default() };
    let some = samples(source(), LoadOptions { sampling: subset, ..LoadOptions::default() }).unwrap();
    assert_eq!(some, expected().into_iter().step_by(7).collect::<Vec<_>>());
    let output = tempfile::tempdir().unwrap();
    let build = Build {
        strategy: Strategy::parse(&pipeline, "resized").unwrap(),
        listing: Arc::new(Listing::scan(pipeline.source(), folder.path()).unwrap()),
        pipeline,
        storage: local(),
    };
    build.run(output.path(), &options(3), &()).unwrap();
    let dataset = Arc::new(Dataset::open(output.path()).unwrap());
    assert_eq!(samples(shards(&dataset), LoadOptions::default()).unwrap(), expected());
}

#[test]
fn a_bucket_gives_the_same_rows() {
    let server = ObjectServer::start();
    for name in ["a", "b"] {
        server.put(&format!("bucket/rows/{name}.parquet"), IMAGES.to_vec());
    }
    let source = open(&on_parquet(""), Path::new("s3://bucket/rows"), connected(&server), OnError::Fail).unwrap();
    assert_eq!(samples(source, LoadOptions::default()).unwrap(), expected());
}

#[test]
fn conditions_choose_rows() {
    let folder = folder();
    let chosen: Vec<_> =
        expected().into_iter().filter(|(_, row, label)| row % 5 > 0 && *label != 1 && *row >= 10).collect();
    let condition = "split == 'train' and label in (0, 2) and width >= 110";
    let plain = open(&on_parquet(""), folder.path(), local(), OnError::Fail).unwrap();
    let found = matching(&*plain, condition, None).unwrap();
    assert_eq!(found.len(), chosen.len());
    let sampling = Sampling { subset: Some(found.into()), ..Sampling::default() };
    assert_eq!(samples(Arc::clone(&plain), LoadOptions { sampling, ..LoadOptions::default() }).unwrap(), chosen);
    let filtered = on_parquet(&format!("where = \"{condition}\""));
    let filtered = open(&filtered, folder.path(), local(), OnError::Fail).unwrap();
    assert_ne!(filtered.identity(), plain.identity());
    assert_eq!(samples(filtered, LoadOptions::default()).unwrap(), chosen);
    let by_class = matching(&*plain, "class == 'bee' and key < 'b'", None).unwrap();
    assert_eq!(by_class, (0..30).filter(|row| row % 3 == 1).collect::<Vec<_>>());
    for (wrong, says) in [
        ("splits == 'train'", "did you mean `split`?"),
        ("split == 'nothing'", "none of 60 samples meets `where`"),
        ("split == train", "in quotes"),
        ("width == 'x'", "without quotes"),
        ("image.bytes == 'x'", "bytes that are not text"),
    ] {
        let error = matching(&*plain, wrong, None).unwrap_err().to_string();
        assert!(error.contains(says), "{wrong}: {error}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = folder();
    for (source, says) in [
        ("fields = [{field = \"image\", from = \"images\"}]", "did you mean `image`?"),
        ("fields = [{field = \"image\", from = \"label\"}]", "the column `label` of"),
        ("fields = [{field = \"image\", from = \"image\"}, {field = \"label\", from = \"width\", type = \"int\"}]", ""),
        ("label = \"none\"\norder = \"shuffled\"", "row groups"),
    ] {
        let error = Listing::scan(on_parquet(source).source(), folder.path()).err().map(|error| error.to_string());
        assert_eq!(error.is_none(), says.is_empty(), "{source}: {error:?}");
        assert!(error.is_none_or(|error| error.contains(says)), "{source}");
    }
}

/// A damaged row group costs its own rows, where that is wanted, and a damaged footer its file.
#[test]
fn damage_costs_what_is_damaged() {
    let folder = folder();
    let mut damaged = IMAGES.to_vec();
    // Within the first page.
    damaged[60..120].fill(0x55);
    std::fs::write(folder.path().join("a.parquet"), &damaged).unwrap();
    let pipeline = on_parquet("");
    let source = open(&pipeline, folder.path(), local(), OnError::Fail).unwrap();
    let error = samples(source, LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a.parquet"), "{error}");
    let skip = LoadOptions { on_error: OnError::Skip, ..LoadOptions::default() };
    let source = open(&pipeline, folder.path(), local(), OnError::Skip).unwrap();
    let left = samples(source, skip.clone()).unwrap();
    assert_eq!(left, expected().into_iter().skip(8).collect::<Vec<_>>());
    std::fs::write(folder.path().join("a.parquet"), &IMAGES[..IMAGES.len() - 9]).unwrap();
    assert!(open(&pipeline, folder.path(), local(), OnError::Fail).is_err());
    let source = open(&pipeline, folder.path(), local(), OnError::Skip).unwrap();
    assert_eq!(source.lost().len(), 1);
    assert_eq!(samples(source, skip).unwrap(), expected().into_iter().skip(ROWS).collect::<Vec<_>>());
}
