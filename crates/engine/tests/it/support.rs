//! Pictures, pipelines and storages for tests.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, Subsampling, encode};
use forebay_engine::StorageChoice;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Dataset, Listing};
use forebay_engine::load::{CachePolicy, Epoch, LoadOptions, Loader, OnError};
use forebay_engine::source::{Files, Shards, Source};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_storage::{DroppedCache, Entry, File, Status, Storage, Walk};
use tempfile::TempDir;

/// A small pipeline with a random step.
pub(crate) const SMALL: &str = r#"
name = "small"
[[step]]
op = "decode"
[[step]]
op = "resize"
size = 24
[[step]]
op = "center_pixels"
[[step]]
op = "random_crop"
size = 16
"#;

/// The same without the crop: pictures of different shapes.
pub(crate) const RAGGED: &str = r#"
name = "ragged"
[[step]]
op = "decode"
[[step]]
op = "resize"
size = 24
"#;

/// One picture becomes many.
pub(crate) const TILES: &str = r#"
name = "tiles"
[[step]]
op = "decode"
[[step]]
op = "tiles"
size = 16
"#;

pub(crate) fn pipeline(toml: &str) -> Pipeline {
    Pipeline::from_toml("test", toml).unwrap()
}

/// A folder of `count` small JPEG pictures in three classes, of different shapes.
pub(crate) fn photos(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..count {
        let class = folder.path().join(["ant", "bee", "cat"][number % 3]);
        std::fs::create_dir_all(&class).unwrap();
        std::fs::write(class.join(format!("{number:04}.jpg")), photo(number)).unwrap();
    }
    folder
}

/// One picture; no two are alike.
pub(crate) fn photo(number: usize) -> Vec<u8> {
    let (height, width) = (28 + number % 5, 30 + number % 7);
    let pixel = |index: usize| ((index / 3 / width) * 5 + (index / 3 % width) * 3 + index % 3 * 60 + number * 17) as u8;
    let pixels: Vec<u8> = (0..height * width * 3).map(pixel).collect();
    let picture = Tensor::from_elements(&[height, width, 3], &pixels).unwrap();
    encode(picture.view(), &Encoding::Jpeg { quality: 90, subsampling: Subsampling::Both, progressive: false }).unwrap()
}

/// A cache of samples that steps were done to; none where there is no space for it.
pub(crate) fn decoded(bytes: u64) -> CachePolicy {
    if bytes == 0 { CachePolicy::None } else { CachePolicy::Decoded { bytes } }
}

pub(crate) fn local() -> Arc<dyn Storage> {
    StorageChoice::Local.open(0).unwrap()
}

pub(crate) fn list(pipeline: &Pipeline, folder: &Path) -> Arc<Listing> {
    Arc::new(Listing::scan(pipeline.source(), folder).unwrap())
}

pub(crate) fn options(shards: usize) -> BuildOptions {
    BuildOptions { threads: 2, shards, on_error: OnError::Fail, overwrite: false, resume: None, memory_bytes: 1 << 30 }
}

pub(crate) fn build(pipeline: &Pipeline, split: &str, photos: &Path, storage: Arc<dyn Storage>) -> Build {
    Build {
        strategy: Strategy::parse(pipeline, split).unwrap(),
        listing: list(pipeline, photos),
        pipeline: pipeline.clone(),
        storage,
    }
}

/// Builds a data set and opens it.
pub(crate) fn built(pipeline: &Pipeline, split: &str, photos: &Path, shards: usize) -> (TempDir, Arc<Dataset>) {
    let output = tempfile::tempdir().unwrap();
    build(pipeline, split, photos, local()).run(output.path(), &options(shards), &()).unwrap();
    let dataset = Arc::new(Dataset::open(output.path()).unwrap());
    (output, dataset)
}

/// The files of a folder, through a whole pipeline.
pub(crate) fn files(pipeline: &Pipeline, folder: &Path) -> Arc<dyn Source> {
    Arc::new(Files::new(pipeline.clone(), list(pipeline, folder), local()).unwrap())
}

/// The records of a data set.
pub(crate) fn shards(dataset: &Arc<Dataset>) -> Arc<dyn Source> {
    Arc::new(Shards::new(Arc::clone(dataset), local()))
}

/// Starts an epoch.
pub(crate) fn start(source: Arc<dyn Source>, options: LoadOptions, epoch: u64) -> forebay_engine::Result<Epoch> {
    let loader = Loader::new(source, options)?;
    loader.start(&loader.beginning_of(epoch))
}

/// A manifest's text with the checksum that it should have.
pub(crate) fn resealed(text: &str) -> String {
    let (start, rest) = text.split_once("\"checksum\": \"").unwrap();
    let zeroed = format!("{start}\"checksum\": \"0000000000000000{}", &rest[16..]);
    let sum = xxhash_rust::xxh3::xxh3_64(zeroed.as_bytes());
    zeroed.replacen("0000000000000000", &format!("{sum:016x}"), 1)
}

/// A storage that fails after so many reads, as if the process had been killed.
#[derive(Debug)]
pub(crate) struct FailsAfter {
    pub(crate) inner: Arc<dyn Storage>,
    pub(crate) reads_left: AtomicU64,
}

impl Storage for FailsAfter {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn open(&self, path: &Path) -> forebay_storage::Result<Box<dyn File>> {
        self.inner.open(path)
    }

    fn read_file(&self, path: &Path, limit_bytes: u64) -> forebay_storage::Result<Bytes> {
        let spent =
            self.reads_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err();
        let path = if spent { path.join("killed") } else { path.to_owned() };
        self.inner.read_file(&path, limit_bytes)
    }

    fn status(&self, path: &Path) -> forebay_storage::Result<Option<Status>> {
        self.inner.status(path)
    }

    fn entries(&self, folder: &Path) -> forebay_storage::Result<Vec<Entry>> {
        self.inner.entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        self.inner.walk(root, wanted)
    }

    fn drop_cache(&self, paths: &[&Path]) -> forebay_storage::Result<DroppedCache> {
        self.inner.drop_cache(paths)
    }
}
