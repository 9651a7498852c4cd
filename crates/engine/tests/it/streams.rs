//! Shards that are one compressed stream, read in order: the next one is begun while one is read.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use forebay_codec::Tensor;
use forebay_codec::image::encode;
use forebay_engine::load::{LoadOptions, Shuffle};
use forebay_engine::source::{Shards, Source};
use forebay_pipeline::Random;
use forebay_storage::{DroppedCache, Entry, File, Result, Status, Storage, Walk};
use tempfile::TempDir;

use crate::support::{built, local, pipeline, start};

/// A storage that gives the second half of `first` only once something of `second` was read.
#[derive(Debug, Clone)]
struct Gated {
    inner: Arc<dyn Storage>,
    first: PathBuf,
    second: PathBuf,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    /// How often somebody waited in vain.
    in_vain: AtomicU64,
}

struct GatedFile {
    inner: Box<dyn File>,
    path: PathBuf,
    storage: Gated,
}

/// Nobody waits for so long but for ever.
const PATIENCE: Duration = Duration::from_secs(20);

impl File for GatedFile {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let Gated { first, second, gate, .. } = &self.storage;
        if self.path == *second {
            *gate.is_open.lock().unwrap() = true;
            gate.opened.notify_all();
        } else if self.path == *first && offset >= self.inner.size() / 2 {
            let is_open = gate.is_open.lock().unwrap();
            let (_closed, waited) = gate.opened.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open).unwrap();
            gate.in_vain.fetch_add(waited.timed_out().into(), Ordering::SeqCst);
        }
        self.inner.read(offset, length)
    }
}

impl Storage for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(Box::new(GatedFile { inner: self.inner.open(path)?, path: path.to_owned(), storage: self.clone() }))
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        self.inner.status(path)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        self.inner.entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        self.inner.walk(root, wanted)
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        self.inner.drop_cache(paths)
    }
}

/// Images of noise, about 1.2 MB each.
fn noise(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("all")).unwrap();
    let mut random = Random::from_parts(&[5]);
    for number in 0..count {
        let pixels: Vec<u8> = (0..640 * 640 * 3).map(|_| random.below(256) as u8).collect();
        let image = Tensor::from_elements(&[640, 640, 3], &pixels).unwrap();
        let file = encode(image.view(), &"qoi".parse().unwrap()).unwrap();
        std::fs::write(folder.path().join(format!("all/{number:04}.qoi")), file).unwrap();
    }
    folder
}

#[test]
fn the_next_shard_is_begun_while_one_is_read() {
    let images = noise(16);
    let pipeline = pipeline(
        "name = \"noise\"\n[source]\nfiles = \"all/*.qoi\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = 8\n",
    );
    let (_output, dataset) = built(&pipeline, "decoded+zstd-1-stream", images.path(), 2);
    let keys = |storage: Arc<dyn Storage>, memory_bytes: u64| {
        let source: Arc<dyn Source> = Arc::new(Shards::new(Arc::clone(&dataset), storage));
        let usual = LoadOptions { batch_size: 2, threads: 2, shuffle: Shuffle::No, ..LoadOptions::default() };
        let mut epoch = start(source, LoadOptions { memory_bytes, ..usual }, 0).unwrap();
        let keys: Vec<String> = epoch
            .by_ref()
            .flat_map(|batch| batch.unwrap().keys.iter().map(ToString::to_string).collect::<Vec<_>>())
            .collect();
        assert!(epoch.memory_bytes_peak() <= memory_bytes, "{} of {memory_bytes}", epoch.memory_bytes_peak());
        keys
    };
    let gate = Arc::new(Gate::default());
    let [first, second] = [0, 1].map(|shard| dataset.shard_path(shard));
    let gated = Gated { inner: local(), first, second, gate: Arc::clone(&gate) };
    let found = keys(Arc::new(gated), 1 << 30);
    assert_eq!(gate.in_vain.load(Ordering::SeqCst), 0, "the second shard was not begun before the first was through");
    assert_eq!(found.len(), 16);
    // The order is that in which the samples lie, however much memory there is to read ahead.
    let listed: Vec<String> = (0..16).map(|number| sample_key(&dataset, number)).collect();
    assert_eq!(found, listed);
    assert_eq!(keys(local(), 40 << 20), listed);
}

fn sample_key(dataset: &Arc<forebay_engine::data::Dataset>, number: u64) -> String {
    let source = Shards::new(Arc::clone(dataset), local());
    let content = source.read(number..number + 1).contents.pop().unwrap();
    let content = content.unwrap_or_else(|_| panic!("sample {number} can be read"));
    source.unpack(number, content).unwrap_or_else(|_| panic!("sample {number} can be unpacked")).key.to_string()
}
