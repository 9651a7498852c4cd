//! Builds and loads on a storage that is no file system, in which every operation in turn goes wrong.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::Listing;
use forebay_engine::load::{LoadOptions, OnError};
use forebay_engine::source::{Shards, Source};
use forebay_engine::{Error, Result};
use forebay_pipeline::Strategy;
use forebay_storage::{
    DroppedCache, Entry, Error as StorageError, File, Folder, Lock, MemoryStorage, Result as StorageResult, Status,
    Storage, Upload, Walk,
};

use crate::integrity::collect;
use crate::support::{SMALL, options, photo, pipeline, start};

/// What happens to one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It fails, and so does everything after it: the process is gone.
    Killed,
    /// It fails, and did nothing.
    Failed,
    /// It was done, but the answer is an error: a connection that broke too late.
    AnswerLost,
    /// A read gives too little.
    Short,
    /// It was said to be done, but what was written is not there.
    Lost,
}

const FAULTS: [Fault; 5] = [Fault::Killed, Fault::Failed, Fault::AnswerLost, Fault::Short, Fault::Lost];

/// A storage in memory in which operation number `at` goes wrong.
#[derive(Debug, Clone)]
struct Faulty {
    inner: MemoryStorage,
    fault: Fault,
    at: u64,
    /// How many operations were begun.
    begun: Arc<AtomicU64>,
}

impl Faulty {
    fn new(inner: MemoryStorage, fault: Fault, at: u64) -> Self {
        Self { inner, fault, at, begun: Arc::new(AtomicU64::new(0)) }
    }

    /// Whether the fault was met.
    fn was_met(&self) -> bool {
        self.begun.load(Ordering::SeqCst) > self.at
    }

    /// Does `operation`, unless it is its turn to go wrong.
    fn run<T>(&self, path: &Path, operation: impl FnOnce() -> StorageResult<T>) -> StorageResult<T> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst);
        let source = || io::Error::other(format!("{:?} at operation {number}", self.fault));
        let failed = || StorageError::Read { path: path.to_owned(), offset: 0, source: source() };
        match self.fault {
            Fault::Killed if number >= self.at => Err(failed()),
            _ if number != self.at => operation(),
            Fault::AnswerLost => operation().and_then(|_| Err(failed())),
            Fault::Short => Err(StorageError::ShortRead { path: path.to_owned(), offset: 0, expected: 1, found: 0 }),
            Fault::Failed | Fault::Killed => Err(failed()),
            // Nothing but a write can be lost.
            Fault::Lost => operation(),
        }
    }
}

impl Storage for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn open(&self, path: &Path) -> StorageResult<Box<dyn File>> {
        let file = self.run(path, || self.inner.open(path))?;
        Ok(Box::new(FaultyFile { file, path: path.to_owned(), storage: self.clone() }))
    }

    fn status(&self, path: &Path) -> StorageResult<Option<Status>> {
        self.run(path, || self.inner.status(path))
    }

    fn is_taken(&self, path: &Path) -> StorageResult<bool> {
        self.run(path, || self.inner.is_taken(path))
    }

    fn entries(&self, folder: &Path) -> StorageResult<Vec<Entry>> {
        self.run(folder, || self.inner.entries(folder))
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        match self.run(root, || Ok(self.inner.walk(root, wanted))) {
            Ok(walk) => walk,
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn create(&self, path: &Path) -> StorageResult<Box<dyn Upload>> {
        let upload = self.run(path, || self.inner.create(path))?;
        Ok(Box::new(FaultyUpload { upload, path: path.to_owned(), storage: self.clone() }))
    }

    fn remove(&self, path: &Path) -> StorageResult<()> {
        self.run(path, || self.inner.remove(path))
    }

    fn lock(&self, path: &Path) -> StorageResult<Option<Lock>> {
        self.run(path, || self.inner.lock(path))
    }

    fn drop_cache(&self, paths: &[&Path]) -> StorageResult<DroppedCache> {
        self.inner.drop_cache(paths)
    }
}

struct FaultyFile {
    file: Box<dyn File>,
    path: std::path::PathBuf,
    storage: Faulty,
}

impl File for FaultyFile {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> StorageResult<Bytes> {
        self.storage.run(&self.path, || self.file.read(offset, length))
    }
}

struct FaultyUpload {
    upload: Box<dyn Upload>,
    path: std::path::PathBuf,
    storage: Faulty,
}

impl Write for FaultyUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { upload, path, storage } = self;
        let mut written = Ok(0);
        let done = storage.run(path, || {
            written = upload.write(bytes);
            Ok(())
        });
        done.map_err(|error| io::Error::other(error.to_string())).and(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

impl Upload for FaultyUpload {
    fn commit(self: Box<Self>) -> StorageResult<()> {
        let Self { upload, path, storage } = *self;
        if storage.fault == Fault::Lost && storage.begun.load(Ordering::SeqCst) == storage.at {
            return storage.run(&path, || Ok(()));
        }
        storage.run(&path, || upload.commit())
    }
}

/// Twelve pictures in memory.
fn pictures() -> MemoryStorage {
    let storage = MemoryStorage::new();
    for number in 0..12 {
        let class = ["ant", "bee", "cat"][number % 3];
        storage.write_file(Path::new(&format!("photos/{class}/{number:02}.jpg")), &photo(number)).unwrap();
    }
    storage
}

/// Lists the pictures and builds them as three shards, on one thread, so that operations come in the same order every time.
fn build_on(storage: &Arc<dyn Storage>, strategy: &str) -> Result<()> {
    let pipeline = pipeline(SMALL);
    let listing = Listing::scan(pipeline.source(), Folder::new(Arc::clone(storage), "photos"))?;
    let build = Build {
        strategy: Strategy::parse(&pipeline, strategy)?,
        listing: Arc::new(listing),
        storage: Arc::clone(storage),
        pipeline,
    };
    let options = BuildOptions { threads: 1, ..options(3) };
    build.run(Folder::new(Arc::clone(storage), "data"), &options, &()).map(drop)
}

fn load_from(storage: &Arc<dyn Storage>) -> Result<crate::integrity::Loaded> {
    let source: Arc<dyn Source> = Arc::new(Shards::open(Path::new("data"), Arc::clone(storage), OnError::Fail)?);
    let options = LoadOptions { batch_size: 5, threads: 1, ..LoadOptions::default() };
    collect(start(source, options, 0)?)
}

/// Tries operation after operation until one is not reached any more; how many there were.
fn at_every_operation(
    fault: Fault,
    start: &MemoryStorage,
    mut attempt: impl FnMut(&MemoryStorage, Result<()>),
    work: impl Fn(&Arc<dyn Storage>) -> Result<()>,
) -> u64 {
    for at in 0.. {
        let held = start.snapshot();
        let faulty = Faulty::new(held.clone(), fault, at);
        let storage: Arc<dyn Storage> = Arc::new(faulty.clone());
        let done = work(&storage);
        if !faulty.was_met() {
            done.unwrap();
            return at;
        }
        attempt(&held, done);
    }
    unreachable!("work ends")
}

#[test]
fn a_build_survives_every_fault_of_its_storage() {
    let pictures = pictures();
    for strategy in ["resized", "resized+zlib"] {
        let whole = pictures.snapshot();
        build_on(&(Arc::new(whole.clone()) as Arc<dyn Storage>), strategy).unwrap();
        let expected = whole.files();
        for fault in FAULTS {
            let judge = |held: &MemoryStorage, done: Result<()>| {
                // Whatever happened, a data set that is there is whole; and the next build makes the same one.
                if held.files().contains_key(Path::new("data/dataset.json")) {
                    let left = held.files();
                    let of_dataset = expected.iter().filter(|(path, _)| path.starts_with("data"));
                    of_dataset.for_each(|(path, content)| assert_eq!(left.get(path), Some(content), "{path:?}"));
                }
                if let Err(error) = done {
                    let of_storage = matches!(
                        error,
                        Error::Storage(_) | Error::Io { .. } | Error::Usage { .. } | Error::Format { .. }
                    );
                    assert!(of_storage, "{fault:?}: {error}");
                }
                let restarted = held.snapshot();
                build_on(&(Arc::new(restarted.clone()) as Arc<dyn Storage>), strategy).unwrap();
                assert!(restarted.files() == expected, "{fault:?}: {:?}", restarted.files().keys());
            };
            let operations = at_every_operation(fault, &pictures, judge, |storage| build_on(storage, strategy));
            assert!(operations > 50, "{fault:?} was tried at {operations} operations");
        }
    }
}

#[test]
fn a_load_gives_an_error_or_what_was_built() {
    let storage = pictures();
    build_on(&(Arc::new(storage.clone()) as Arc<dyn Storage>), "resized").unwrap();
    let expected = load_from(&(Arc::new(storage.clone()) as Arc<dyn Storage>)).unwrap().samples;
    assert_eq!(expected.len(), 12);
    for fault in FAULTS {
        let operations = at_every_operation(
            fault,
            &storage,
            |held, _| assert!(load_from(&(Arc::new(held.clone()) as Arc<dyn Storage>)).unwrap().samples == expected),
            |storage| {
                let loaded = load_from(storage)?;
                assert!(loaded.samples == expected, "{fault:?}: {:?}", loaded.samples.keys());
                Ok(())
            },
        );
        assert!(operations > 10, "{fault:?} was tried at {operations} operations");
    }
}
