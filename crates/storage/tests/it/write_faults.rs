//! Writing to a store that answers late, half, or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forebay_storage::Storage;

use crate::object_server::{Faults, ObjectServer};
use crate::remote::connected;
use crate::support::pattern;

/// Every way in which writing goes wrong, alone and together.
fn all_faults() -> [(&'static str, Faults); 8] {
    let stall = Duration::from_secs(10);
    let none = Faults { stall, ..Faults::default() };
    let mixed =
        Faults { unavailable: 50, reset: 50, lost: 50, truncated: 50, stalled: 30, late: 30, conflict: 50, stall };
    [
        ("503", Faults { unavailable: 150, ..none }),
        ("reset", Faults { reset: 200, ..none }),
        ("lost", Faults { lost: 200, ..none }),
        ("truncated", Faults { truncated: 150, ..none }),
        ("stalled", Faults { stalled: 60, ..none }),
        ("late", Faults { late: 60, ..none }),
        ("conflict", Faults { conflict: 150, ..none }),
        ("all", mixed),
    ]
}

/// Does `work` with all of them, at the same time.
fn under_each_fault(work: impl Fn(&str, Faults) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for (name, faults) in all_faults() {
            scope.spawn(move || work(name, faults));
        }
    });
}

/// Does `work` with each of so many objects, on so many threads.
fn with_each(objects: usize, threads: usize, work: impl Fn(PathBuf, usize) + Sync) {
    let next = AtomicUsize::new(0);
    let (next, work) = (&next, &work);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= objects {
                        return;
                    }
                    work(PathBuf::from(format!("s3://bucket/notes/{number:02}")), number);
                }
            });
        }
    });
}

/// The writer of an object is told that it succeeded even if the response was lost; a writer of a different one is told that it did not.
#[test]
fn what_is_written_once_is_there_whatever_becomes_of_answers() {
    const OBJECTS: usize = 40;
    under_each_fault(|name, faults| {
        let server = ObjectServer::start();
        let storage = connected(&server);
        let content = |number: usize| pattern(1000 + number);
        server.set_faults(faults);
        with_each(OBJECTS, 8, |path, number| {
            assert!(storage.write_new(&path, &content(number)).unwrap(), "{name}: {}", path.display());
            assert!(storage.write_new(&path, &content(number)).unwrap(), "{name}: the same once more");
            assert!(!storage.write_new(&path, b"another").unwrap(), "{name}: {}", path.display());
        });
        let asked = server.take_requests();
        let puts = asked.iter().filter(|request| request.starts_with("PUT")).count();
        assert!(puts > 3 * OBJECTS, "{name}: some of {puts} were sent again");
        let walked = storage.walk(Path::new("s3://bucket/notes"), &|_| true).map(Result::unwrap).count();
        assert_eq!((walked, server.below("bucket/notes/").len()), (OBJECTS, OBJECTS), "{name}");
        with_each(OBJECTS, 8, |path, number| {
            storage.write_file(&path, &content(number + 1)).unwrap();
            if number % 2 == 1 {
                storage.remove(&path).unwrap();
            }
        });
        let left = server.below("bucket/notes/");
        assert_eq!(left.len(), OBJECTS / 2, "{name}");
        for (number, found) in (0..OBJECTS).step_by(2).zip(left.values()) {
            assert!(**found == content(number + 1), "{name}: {number}");
        }
    });
}

#[test]
fn a_large_object_is_written_whatever_becomes_of_answers() {
    under_each_fault(|name, faults| {
        let server = ObjectServer::start();
        // Large parts take their time on a machine with other things to do.
        let storage = connected(&server).with_settings([("AWS_READ_TIMEOUT", "4s")]);
        server.set_faults(faults);
        with_each(6, 1, |path, number| {
            // In three parts.
            let content = pattern((17 << 20) + number);
            let mut upload = storage.create(&path).unwrap();
            upload.write_all(&content).unwrap();
            upload.commit().unwrap_or_else(|error| panic!("{name}: {error}"));
            let key = format!("bucket/notes/{number:02}");
            assert!(**server.get(&key).unwrap() == content, "{name}: {number}");
        });
    });
}

/// An upload that the store knows nothing of is done only where the object has its bytes.
#[test]
fn an_upload_that_was_forgotten_is_an_error() {
    let server = ObjectServer::start();
    let storage = connected(&server);
    let path = Path::new("s3://bucket/file");
    let content = pattern(17 << 20);
    let mut other = content.clone();
    other[9 << 20] ^= 1;
    server.forget_uploads();
    for there in [Some(other), Some(pattern(5)), None, Some(content.clone())] {
        let is_same = there.as_ref() == Some(&content);
        storage.remove(path).unwrap();
        let mut upload = storage.create(path).unwrap();
        upload.write_all(&content).unwrap();
        if let Some(there) = there {
            server.put("bucket/file", there);
        }
        match upload.commit() {
            Ok(()) => assert!(is_same),
            Err(error) => {
                let said = error.to_string();
                assert!(!is_same, "{said}");
                assert!(said.contains("cannot write `s3://bucket/file`: the store forgot what was sent"), "{said}");
            }
        }
    }
}
