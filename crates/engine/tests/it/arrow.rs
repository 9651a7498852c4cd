//! Arrow's files and streams as a source: those that pyarrow wrote, as `datasets` of Hugging Face saves pictures, and as Feather.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
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

const STREAM: &[u8] = include_bytes!("../../../record/tests/golden/arrow/images.arrow");
const FEATHER: &[u8] = include_bytes!("../../../record/tests/golden/arrow/images-lz4.arrow");
const ROWS: usize = 30;

fn on_arrow(more: &str) -> Pipeline {
    let steps = "[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [8, 8]\n";
    pipeline(&format!("name = \"rows\"\n[source]\nformat = \"arrow\"\n{more}\n{steps}"))
}

/// A folder with a stream and a file.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.arrow"), STREAM).unwrap();
    std::fs::write(folder.path().join("b.feather"), FEATHER).unwrap();
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
    let row = |file: &str, row: usize| (format!("{file}:{row}"), row as u8, row as i64 % 3);
    (0..ROWS).map(|number| row("a.arrow", number)).chain((0..ROWS).map(|number| row("b.feather", number))).collect()
}

#[test]
fn rows_are_samples_in_any_order_and_in_builds() {
    let (folder, pipeline) = (folder(), on_arrow(""));
    let source = || open(&pipeline, folder.path(), local(), OnError::Fail).unwrap();
    assert_eq!(source().classes(), ["ant", "bee", "cat"]);
    assert_eq!(samples(source(), LoadOptions::default()).unwrap(), expected());
    for (bytes, threads) in [(1 << 10, 1), (1 << 30, 3)] {
        let options = LoadOptions { shuffle: Shuffle::Window { bytes }, threads, seed: 3, ..LoadOptions::default() };
        let mut shuffled = samples(source(), options).unwrap();
        assert_ne!(shuffled, expected());
        shuffled.sort();
        let mut sorted = expected();
        sorted.sort();
        assert_eq!(shuffled, sorted);
    }
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
    server.put("bucket/rows/a.arrow", STREAM.to_vec());
    server.put("bucket/rows/b.feather", FEATHER.to_vec());
    let source = open(&on_arrow(""), Path::new("s3://bucket/rows"), connected(&server), OnError::Fail).unwrap();
    assert_eq!(samples(source, LoadOptions::default()).unwrap(), expected());
}

#[test]
fn conditions_choose_rows() {
    let folder = folder();
    let chosen: Vec<_> =
        expected().into_iter().filter(|(_, row, label)| row % 5 > 0 && *label != 1 && *row >= 10).collect();
    let condition = "split == 'train' and label in (0, 2) and width >= 110";
    let plain = open(&on_arrow(""), folder.path(), local(), OnError::Fail).unwrap();
    let found = matching(&*plain, condition, None).unwrap();
    let sampling = Sampling { subset: Some(found.into()), ..Sampling::default() };
    assert_eq!(samples(Arc::clone(&plain), LoadOptions { sampling, ..LoadOptions::default() }).unwrap(), chosen);
    let filtered = on_arrow(&format!("where = \"{condition}\""));
    let filtered = open(&filtered, folder.path(), local(), OnError::Fail).unwrap();
    assert_eq!(samples(filtered, LoadOptions::default()).unwrap(), chosen);
    let by_class = matching(&*plain, "class == 'bee' and key < 'b'", None).unwrap();
    assert_eq!(by_class, (0..30).filter(|row| row % 3 == 1).collect::<Vec<_>>());
    let error = matching(&*plain, "splits == 'train'", None).unwrap_err().to_string();
    assert!(error.contains("did you mean `split`?"), "{error}");
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = folder();
    for (source, says) in [
        ("fields = [{field = \"image\", from = \"images\"}]", "did you mean `image`?"),
        ("fields = [{field = \"image\", from = \"label\"}]", "the column `label` of"),
        ("label = \"none\"\norder = \"shuffled\"", "row groups"),
    ] {
        let error = Listing::scan(on_arrow(source).source(), folder.path()).err().unwrap().to_string();
        assert!(error.contains(says), "{source}: {error}");
    }
}

/// A `DatasetDict` has its splits in folders: whoever does not say which would train on all of them.
#[test]
fn several_splits_are_not_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    for split in ["train", "test"] {
        std::fs::create_dir(folder.path().join(split)).unwrap();
        std::fs::write(folder.path().join(split).join("data-00000-of-00001.arrow"), STREAM).unwrap();
    }
    let scan = |pipeline: &Pipeline, folder: &Path| Listing::scan(pipeline.source(), folder);
    assert_eq!(scan(&on_arrow(""), folder.path()).unwrap().len(), 2 * ROWS);
    std::fs::write(folder.path().join("dataset_dict.json"), r#"{"splits": ["train", "test"]}"#).unwrap();
    let error = scan(&on_arrow(""), folder.path()).unwrap_err().to_string();
    assert!(error.contains("several splits: `train`, `test`") && error.contains("train/*.arrow"), "{error}");
    assert_eq!(scan(&on_arrow("files = \"train/*.arrow\""), folder.path()).unwrap().len(), ROWS);
    assert_eq!(scan(&on_arrow(""), &folder.path().join("test")).unwrap().len(), ROWS);
    std::fs::write(folder.path().join("dataset_dict.json"), r#"{"splits": ["train"]}"#).unwrap();
    assert_eq!(scan(&on_arrow(""), folder.path()).unwrap().len(), 2 * ROWS);
}

/// What of a file is damaged is an error that names it, or costs the rows that it is in.
#[test]
fn damage_costs_what_is_damaged() {
    let folder = folder();
    let skip = LoadOptions { on_error: OnError::Skip, ..LoadOptions::default() };
    let mut damaged = FEATHER.to_vec();
    // Within a buffer of the first batch.
    let frame = damaged.windows(4).position(|bytes| bytes == [0x04, 0x22, 0x4D, 0x18]).unwrap();
    damaged[frame + 12] ^= 0xFF;
    std::fs::write(folder.path().join("b.feather"), &damaged).unwrap();
    let pipeline = on_arrow("");
    let source = open(&pipeline, folder.path(), local(), OnError::Skip).unwrap();
    let left = samples(source, skip.clone()).unwrap();
    assert!(left.len() < 2 * ROWS && left.starts_with(&expected()[..ROWS]), "{left:?}");
    std::fs::write(folder.path().join("b.feather"), &FEATHER[..FEATHER.len() - 9]).unwrap();
    let error = open(&pipeline, folder.path(), local(), OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("b.feather") && error.contains("ARROW1"), "{error}");
    let source = open(&pipeline, folder.path(), local(), OnError::Skip).unwrap();
    assert_eq!(source.lost().len(), 1);
    assert_eq!(samples(source, skip).unwrap(), expected()[..ROWS]);
}

/// Batches that are too large to be read at once: bytes of different lengths, as text and bytes of each layout.
const LARGE: &str = r"
import sys
import pyarrow as pa
values = [bytes([n]) * (60_000 + n * 7919 % 90_000) if n % 10 != 9 else None for n in range(150)]
for name, kind, compression in [('small', pa.binary(), None), ('large', pa.large_binary(), None), ('lz4', pa.binary(), 'lz4'),
                                ('zstd', pa.large_binary(), 'zstd'), ('view', pa.binary_view(), None), ('view-zstd', pa.binary_view(), 'zstd')]:
    table = pa.table({'blob': pa.array(values, kind), 'number': pa.array(range(150), pa.int32())})
    new = pa.ipc.new_stream if name == 'small' else pa.ipc.new_file
    with new(f'{sys.argv[1]}/{name}.arrow', table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
";

#[test]
fn large_batches_are_read_in_parts() {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python").into_os_string();
    let python = std::env::var_os("FOREBAY_PYTHON").unwrap_or_else(installed);
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(&python).args(["-c", LARGE]).arg(folder.path()).output();
    if !ran.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: `{}` cannot import pyarrow; set FOREBAY_PYTHON to one that can", python.display());
        return;
    }
    let fields = "fields = [{field = \"blob\", from = \"blob\", optional = true}, \
                  {field = \"number\", from = \"number\", type = \"int\"}]";
    for name in ["small", "large", "lz4", "zstd", "view", "view-zstd"] {
        let pipeline = pipeline(&format!(
            "name = \"rows\"\n[source]\nformat = \"arrow\"\nfield = \"blob\"\nfiles = \"{name}.arrow\"\n{fields}\n"
        ));
        let source = open(&pipeline, folder.path(), local(), OnError::Fail).unwrap();
        let shuffled = |bytes, threads| LoadOptions {
            shuffle: Shuffle::Window { bytes },
            threads,
            seed: 5,
            ..LoadOptions::default()
        };
        for options in [LoadOptions::default(), shuffled(3 << 20, 2), shuffled(1 << 30, 1)] {
            let mut seen = Vec::new();
            for batch in start(Arc::clone(&source), options, 0).unwrap() {
                let batch = batch.unwrap();
                let Some(Column::Ints(numbers)) = batch.column("number") else { panic!("numbers") };
                let Some(Column::Bytes(blobs)) = batch.column("blob") else { panic!("blobs") };
                for (number, blob) in numbers.iter().zip(blobs) {
                    let length = if number % 10 == 9 { 0 } else { 60_000 + *number as usize * 7919 % 90_000 };
                    assert!(**blob == vec![*number as u8; length], "{name}: row {number}");
                    seen.push(*number);
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..150).collect::<Vec<i64>>(), "{name}");
        }
    }
}

/// Of a bucket, rows are asked for and not batches: what is read of one that is not compressed is about what is wanted.
#[test]
fn some_rows_of_a_large_batch_are_some_bytes() {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python").into_os_string();
    let python = std::env::var_os("FOREBAY_PYTHON").unwrap_or_else(installed);
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(&python).args(["-c", LARGE]).arg(folder.path()).output();
    if !ran.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: `{}` cannot import pyarrow; set FOREBAY_PYTHON to one that can", python.display());
        return;
    }
    let server = ObjectServer::start();
    server.put("bucket/rows/small.arrow", std::fs::read(folder.path().join("small.arrow")).unwrap());
    let pipeline = pipeline(
        "name = \"rows\"\n[source]\nformat = \"arrow\"\nfield = \"blob\"\nlabel = \"none\"\n\
         fields = [{field = \"blob\", from = \"blob\", optional = true}]\n",
    );
    let source = open(&pipeline, Path::new("s3://bucket/rows"), connected(&server), OnError::Fail).unwrap();
    server.take_requests();
    let sampling = Sampling { subset: Some([20, 100].into()), ..Sampling::default() };
    let options = LoadOptions { sampling, ..LoadOptions::default() };
    let mut lengths = Vec::new();
    for batch in start(source, options, 0).unwrap() {
        let batch = batch.unwrap();
        let Some(Column::Bytes(blobs)) = batch.column("blob") else { panic!("blobs") };
        lengths.extend(blobs.iter().map(Bytes::len));
    }
    assert_eq!(lengths, [20, 100].map(|number: usize| 60_000 + number * 7919 % 90_000));
    let bytes = |request: &String| {
        let (start, end) = request.rsplit_once("bytes=")?.1.split_once('-')?;
        Some(end.parse::<u64>().ok()? + 1 - start.parse::<u64>().ok()?)
    };
    let read: u64 = server.take_requests().iter().filter_map(bytes).sum();
    assert!(read < 1 << 20, "{read} bytes were read for two rows of 150");
}
