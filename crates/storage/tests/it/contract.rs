//! What every storage that can be written to promises: one set of tests for all of them.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_error::ErrorKind;
use forebay_storage::{
    EntryKind, LocalStorage, MemoryStorage, Storage, Stream, Throttle, ThrottledStorage, Version, sequential,
};

/// Runs a test on each storage, in a folder of its own.
fn on_each(test: impl Fn(&dyn Storage, &Path)) {
    let server = crate::object_server::ObjectServer::start();
    test(&crate::remote::connected(&server), Path::new("s3://bucket/folder"));
    let throttle = Throttle::parse("custom:read=1GB/s").unwrap();
    let storages: [Arc<dyn Storage>; 4] = [
        Arc::new(LocalStorage::buffered()),
        Arc::new(LocalStorage::direct()),
        Arc::new(ThrottledStorage::new(Arc::new(LocalStorage::buffered()), throttle).unwrap()),
        Arc::new(MemoryStorage::new()),
    ];
    for storage in storages {
        let folder = tempfile::tempdir().unwrap();
        test(&*storage, folder.path());
    }
}

fn names(storage: &dyn Storage, folder: &Path) -> BTreeSet<(PathBuf, EntryKind)> {
    let entries = storage.entries(folder).unwrap().into_iter();
    entries.map(|entry| (entry.path.strip_prefix(folder).unwrap().to_owned(), entry.kind)).collect()
}

#[test]
fn a_file_is_there_once_it_is_committed() {
    on_each(|storage, folder| {
        let path = folder.join("shard");
        assert!(storage.status(&path).unwrap().is_none() && !storage.is_taken(&path).unwrap());
        assert_eq!(storage.open(&path).err().unwrap().kind(), ErrorKind::NotFound, "{}", storage.name());
        let mut upload = storage.create(&path).unwrap();
        upload.write_all(b"first").unwrap();
        assert!(storage.status(&path).unwrap().is_none(), "{}: not yet", storage.name());
        upload.commit().unwrap();
        assert_eq!(storage.read_file(&path, 100).unwrap(), "first");
        let first = storage.status(&path).unwrap().unwrap();
        assert_eq!(first.bytes, 5);
        let mut upload = storage.create(&path).unwrap();
        upload.write_all(b"second").unwrap();
        assert_eq!(storage.read_text(&path, 100).unwrap(), "first", "{}: until the end", storage.name());
        drop(upload);
        assert_eq!(storage.read_text(&path, 100).unwrap(), "first", "{}: given up", storage.name());
        assert_eq!(names(storage, folder).len(), 1, "{}: nothing is left of it", storage.name());
        std::thread::sleep(std::time::Duration::from_millis(20));
        storage.write_file(&path, b"third").unwrap();
        let third = storage.status(&path).unwrap().unwrap();
        assert!(third.bytes == 5 && third.version != first.version, "{}: another version", storage.name());
        storage.remove(&path).unwrap();
        storage.remove(&path).unwrap();
        assert!(storage.status(&path).unwrap().is_none());
    });
}

#[test]
fn folders_are_listed_and_walked() {
    on_each(|storage, folder| {
        for name in ["a/1.jpg", "a/b/2.jpg", "a/b/3.txt", "4.jpg"] {
            storage.make_folder(folder.join(name).parent().unwrap()).unwrap();
            storage.write_file(&folder.join(name), name.as_bytes()).unwrap();
        }
        let found = names(storage, folder);
        let expected = [("4.jpg".into(), EntryKind::File), ("a".into(), EntryKind::Folder)];
        assert_eq!(found, BTreeSet::from(expected), "{}", storage.name());
        assert!(storage.entries(&folder.join("nowhere")).unwrap().is_empty());
        let wanted = |below: &Path| below.extension().is_some_and(|extension| extension == "jpg");
        let walked: BTreeSet<(PathBuf, u64)> = storage
            .walk(folder, &wanted)
            .map(Result::unwrap)
            .inspect(|found| assert!(found.status.is_some_and(|status| status.version != Version(0))))
            .map(|found| (found.below, found.status.unwrap().bytes))
            .collect();
        let expected = [("4.jpg".into(), 5), ("a/1.jpg".into(), 7), ("a/b/2.jpg".into(), 9)];
        assert_eq!(walked, BTreeSet::from(expected), "{}", storage.name());
    });
}

#[test]
fn a_name_is_locked_once() {
    on_each(|storage, folder| {
        let path = folder.join("lock");
        let lock = storage.lock(&path).unwrap().unwrap();
        assert!(storage.lock(&path).unwrap().is_none(), "{}", storage.name());
        drop(lock);
        assert!(storage.lock(&path).unwrap().is_some(), "{}", storage.name());
    });
}

#[test]
fn bytes_come_from_any_offset_and_no_further() {
    let content = crate::support::pattern(100_000);
    on_each(|storage, folder| {
        let path = folder.join("file");
        storage.write_file(&path, &content).unwrap();
        let file = storage.open(&path).unwrap();
        assert_eq!(file.size(), content.len() as u64);
        for (offset, length) in [(0, 0), (0, 100_000), (99_999, 1), (4_097, 70_001), (100_000, 0)] {
            assert_eq!(file.read(offset, length).unwrap(), content[offset as usize..][..length], "{}", storage.name());
        }
        assert!(file.read(99_999, 2).is_err() && file.read(u64::MAX, 1).is_err());
        let blocks: Vec<u8> = sequential(&*file, 7_777).flat_map(Result::unwrap).collect();
        assert!(blocks == content);
        let mut stream = Vec::new();
        std::io::copy(&mut Stream::new(&*file), &mut stream).unwrap();
        assert!(stream == content);
    });
}
