//! What goes wrong says what, where, and what to do.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use forebay_error::ErrorKind;
use forebay_storage::{Error, LocalStorage, Storage, Throttle, ThrottledStorage, sequential};

fn storages() -> Vec<Arc<dyn Storage>> {
    let throttle = Throttle::parse("custom:read=10GB/s").unwrap();
    let throttled = ThrottledStorage::new(Arc::new(LocalStorage::buffered()), throttle).unwrap();
    vec![Arc::new(LocalStorage::buffered()), Arc::new(LocalStorage::direct()), Arc::new(throttled)]
}

fn open_error(storage: &dyn Storage, path: &Path) -> Error {
    storage.open(path).err().expect("opening must fail")
}

#[test]
fn a_file_that_vanished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone.jpg");
    for storage in storages() {
        let error = open_error(&*storage, &path);
        assert_eq!(
            (error.kind(), error.context().path, error.context().offset),
            (ErrorKind::NotFound, Some(&*path), None)
        );
        let message = error.to_string();
        assert!(message.starts_with(&format!("cannot open `{}`: No such file", path.display())), "{message}");
        assert!(message.contains("\nhint: "), "{message}");
        assert!(error.source().unwrap().to_string().contains("No such file"));
        let error = storage.drop_cache(&[&path]).unwrap_err();
        assert!(matches!(error, Error::Open { .. }), "{error}");
    }
}

#[test]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let check = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let message = error.to_string();
        assert!(message.contains("Permission denied") && message.contains("hint: give this user"), "{message}");
    };
    check(Error::Open { path: "secret".into(), source: rustix::io::Errno::ACCESS.into() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, "x").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user (root?) may read everything");
        return;
    }
    for storage in storages() {
        check(open_error(&*storage, &path));
    }
}

#[test]
fn what_is_not_a_regular_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    for storage in storages() {
        for (path, found) in [(folder.path(), "a folder"), (&pipe, "a pipe"), (Path::new("/dev/null"), "a device")] {
            let error = open_error(&*storage, path);
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
            let expected = format!("cannot read `{}`: it is {found}, not a regular file", path.display());
            assert_eq!(error.to_string(), expected, "{}", storage.name());
        }
    }
}

#[test]
fn a_file_that_shrank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard");
    for storage in storages() {
        std::fs::write(&path, vec![1; 100_000]).unwrap();
        let file = storage.open(&path).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(50_001).unwrap();
        assert_eq!(file.read(49_000, 1001).unwrap().len(), 1001, "what is left can be read");
        for (offset, length, there) in [(49_000, 2000, 1001), (50_001, 10, 0), (60_000, 10, 0)] {
            let error = file.read(offset, length).unwrap_err();
            assert_eq!(
                (error.kind(), error.context().path, error.context().offset),
                (ErrorKind::Io, Some(&*path), Some(offset))
            );
            let message = error.to_string();
            let expected = format!(
                "cannot read `{}` at offset `{offset}`: expected `{length}` bytes, found `{there}`\nhint: ",
                path.display()
            );
            assert!(message.starts_with(&expected), "{}: {message}", storage.name());
        }
        let blocks: Vec<_> = sequential(&*file, 30_000).collect();
        assert_eq!(blocks.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false], "ends after the error");
    }
}

#[test]
fn a_range_beyond_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [0; 10]).unwrap();
    for storage in storages() {
        let file = storage.open(&path).unwrap();
        for (offset, length) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 1), (5, usize::MAX)] {
            let error = file.read(offset, length).unwrap_err();
            assert_eq!((error.kind(), error.context().offset), (ErrorKind::Usage, Some(offset)));
            let message = error.to_string();
            assert!(
                message.contains(&format!("`{length}` bytes of `{}` at offset `{offset}`", path.display())),
                "{message}"
            );
        }
        assert!(file.read(10, 0).unwrap().is_empty());
    }
}

#[test]
fn a_block_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [0; 10]).unwrap();
    let file = LocalStorage::buffered().open(&path).unwrap();
    let results: Vec<_> = sequential(&*file, 0).collect();
    assert_eq!(results.len(), 1);
    let error = results.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "`block_bytes` is `0`, but must be at least 1");
}
