//! Objects in a store, over the loopback.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_error::ErrorKind;
use forebay_storage::{AnyStorage, CachedStorage, EntryKind, File, LocalStorage, RemoteStorage, Storage};

use crate::object_server::{Faults, ObjectServer, Versions};
use crate::support::pattern;

const SECRET: &str = "wJalrXUtnFEMI-K7MDENG";

/// The stores of `server`.
pub(crate) fn connected(server: &ObjectServer) -> RemoteStorage {
    let endpoint = server.endpoint();
    RemoteStorage::new().with_settings([
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIATESTTESTTEST"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_READ_TIMEOUT", "1s"),
    ])
}

#[test]
fn a_large_object_is_written_in_parts_and_read_in_ranges() {
    let server = ObjectServer::start();
    let storage = connected(&server);
    let path = Path::new("s3://bucket/folder/large");
    let content = pattern(20 << 20);
    let mut upload = storage.create(path).unwrap();
    for piece in content.chunks(777_777) {
        upload.write_all(piece).unwrap();
    }
    assert!(server.get("bucket/folder/large").is_none(), "not before it is committed");
    upload.commit().unwrap();
    assert!(**server.get("bucket/folder/large").unwrap() == content);
    assert!(server.take_requests().iter().filter(|request| request.starts_with("PUT")).count() == 3, "8 MiB each");
    let file = storage.open(path).unwrap();
    assert!(file.read(12_345_678, 3_000_000).unwrap() == content[12_345_678..][..3_000_000]);
    assert!(storage.read_file(path, 1 << 30).unwrap() == content);
    assert_eq!(storage.read_file(path, 1000).unwrap_err().kind(), ErrorKind::Limit);

    let mut given_up = storage.create(Path::new("s3://bucket/folder/other")).unwrap();
    given_up.write_all(&content).unwrap();
    drop(given_up);
    assert_eq!(server.unfinished_uploads(), 0, "nothing is left of what was given up");
    assert!(server.get("bucket/folder/other").is_none());
}

#[test]
fn a_small_object_takes_one_request() {
    let server = ObjectServer::start();
    server.put("bucket/photos/1.jpg", pattern(1000));
    assert_eq!(connected(&server).read_file(Path::new("s3://bucket/photos/1.jpg"), 1 << 20).unwrap(), pattern(1000));
    assert_eq!(server.take_requests(), ["GET /bucket/photos/1.jpg"]);
    // One that is empty, too: of nothing no range can be asked for.
    server.put("bucket/empty", Vec::new());
    assert_eq!(connected(&server).read_file(Path::new("s3://bucket/empty"), 0).unwrap(), "");
}

#[test]
fn listings_have_several_pages() {
    let server = ObjectServer::start();
    let storage = connected(&server);
    for number in 0..40 {
        server.put(&format!("bucket/photos/{}/{number:02} ü&.jpg", number % 3), vec![7; number]);
    }
    server.put("bucket/photosynthesis/x.jpg", vec![1]);
    // What some tools make to stand for a folder.
    server.put("bucket/photos/", Vec::new());
    let root = Path::new("s3://bucket/photos");
    let mut walked: Vec<_> = storage.walk(root, &|_| true).map(Result::unwrap).collect();
    walked.sort_by_key(|found| found.status.unwrap().bytes);
    assert_eq!(walked.len(), 40);
    for (number, found) in walked.iter().enumerate() {
        let status = storage.status(&root.join(&found.below)).unwrap();
        assert!(status.is_some() && status == found.status, "a listing and a look agree on {number}");
    }
    assert_eq!(storage.kind(root).unwrap(), Some(EntryKind::Folder));
    assert_eq!(storage.kind(&root.join("0")).unwrap(), Some(EntryKind::Folder));
    assert_eq!(storage.kind(&root.join("nothing")).unwrap(), None);
    assert_eq!(storage.kind(Path::new("s3://bucket")).unwrap(), Some(EntryKind::Folder));
}

#[test]
fn faults_change_no_byte() {
    let server = ObjectServer::start();
    let storage = connected(&server);
    let content = pattern(3_000_000);
    server.put("bucket/file", content.clone());
    let stall = Duration::from_secs(3);
    server.set_faults(Faults { unavailable: 50, reset: 50, truncated: 50, stalled: 50, stall, ..Faults::default() });
    let file = storage.open(Path::new("s3://bucket/file")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                for round in 0..25_usize {
                    let offset = (thread * 331_111 + round * 77_777) % 2_900_000;
                    let read = file.read(offset as u64, 100_000).unwrap();
                    assert!(read == content[offset..][..100_000], "{thread} {round}");
                }
            });
        }
    });
    assert!(server.take_requests().len() > 200, "some were tried again");
}

/// A file of 3 MB on `server`, read by a client that waits for five minutes, and what it holds.
fn patient_file(server: &ObjectServer) -> (Box<dyn File>, Vec<u8>) {
    let endpoint = server.endpoint();
    let patient =
        [("AWS_ENDPOINT_URL", endpoint.as_str()), ("AWS_SKIP_SIGNATURE", "true"), ("AWS_READ_TIMEOUT", "300s")];
    let content = pattern(3_000_000);
    server.put("bucket/file", content.clone());
    let file = RemoteStorage::new().with_settings(patient).open(Path::new("s3://bucket/file")).unwrap();
    (file, content)
}

/// What is asked for while answers go wrong as `faults` say, which end after ten minutes: how many requests were made
/// for 200 ranges, and how many of these twice.
fn asked_while(faults: Faults) -> (usize, usize) {
    let server = ObjectServer::start();
    let (file, content) = patient_file(&server);
    let read = |round: usize| {
        let offset = round * 9_973;
        assert!(file.read(offset as u64, 100_000).unwrap() == content[offset..][..100_000], "{round}");
    };
    // It takes some to know what is usual.
    (0..32).for_each(read);
    server.set_faults(Faults { stall: Duration::from_mins(10), ..faults });
    server.take_requests();
    (32..232).for_each(read);
    let ranges = server.take_requests();
    (ranges.len(), ranges.len() - ranges.iter().collect::<std::collections::BTreeSet<_>>().len())
}

/// A few answers that do not come are asked for again, long before they are given up; the others are asked for once.
#[test]
fn what_is_slow_is_asked_for_twice() {
    let (requests, again) = asked_while(Faults { late: 30, ..Faults::default() });
    assert!(
        (2..=15).contains(&again) && requests == 200 + again,
        "{again} of 200, of which 3 in a hundred do not come"
    );
}

/// Of a body that stalls, the rest is asked for.
#[test]
fn the_rest_of_a_stalled_body_is_asked_for() {
    let (requests, again) = asked_while(Faults { stalled: 30, ..Faults::default() });
    assert!((202..=215).contains(&requests), "{requests} for 200 ranges, of which 3 in a hundred stall");
    assert_eq!(again, 0, "nothing that came is read twice");
}

/// An object whose size is not known in advance is only slow compared with others of its size; one whose response does not begin is slow
/// compared with all others.
#[test]
fn whole_objects_are_slow_beside_others_of_their_size() {
    let server = ObjectServer::start();
    let endpoint = server.endpoint();
    let storage = RemoteStorage::new().with_settings([
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_SKIP_SIGNATURE", "true"),
        ("AWS_READ_TIMEOUT", "300s"),
    ]);
    let (small, large) = (pattern(1000), pattern(2_000_000));
    server.put("bucket/small", small.clone());
    server.put("bucket/large", large.clone());
    server.set_bytes_per_second(1_000_000);
    let read = |name: &str| storage.read_file(Path::new(&format!("s3://bucket/{name}")), 1 << 40).unwrap();
    (0..32).for_each(|_| assert!(read("small") == small));
    server.take_requests();
    assert!(read("large") == large);
    assert_eq!(server.take_requests().len(), 1, "two seconds are usual for 2 MB");
    server.set_faults(Faults { late: 30, stall: Duration::from_mins(10), ..Faults::default() });
    (0..200).for_each(|_| assert!(read("small") == small));
    let requests = server.take_requests().len();
    assert!((202..=215).contains(&requests), "{requests} for 200 objects, of which 3 in a hundred do not come");
}

/// One body in twenty stalls for minutes, in addition to all other faults, and none of them is waited for.
#[test]
fn stalls_beside_other_faults_hold_nobody_up() {
    let server = ObjectServer::start();
    let (file, content) = patient_file(&server);
    let stall = Duration::from_mins(10);
    server.set_faults(Faults { unavailable: 50, reset: 50, truncated: 50, stalled: 50, stall, ..Faults::default() });
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                for round in 0..40_usize {
                    let offset = (thread * 331_111 + round * 77_777) % 2_900_000;
                    assert!(file.read(offset as u64, 100_000).unwrap() == content[offset..][..100_000]);
                }
            });
        }
    });
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?} for 640 ranges", begun.elapsed());
}

/// However a store fails, the reader gets an error in the end.
#[test]
fn a_dead_store_is_an_error_that_names_the_object() {
    let server = ObjectServer::start();
    let storage = connected(&server);
    server.put("bucket/file", pattern(1000));
    let file = storage.open(Path::new("s3://bucket/file")).unwrap();
    server.put("bucket/file", pattern(1001));
    let said = file.read(10, 10).err().unwrap().to_string();
    assert!(said.contains("`s3://bucket/file` at offset `10`") && said.contains("was replaced"), "{said}");
    let said = storage.open(Path::new("s3://bucket/none")).err().unwrap();
    assert_eq!(said.kind(), ErrorKind::NotFound);
    assert!(said.to_string().contains("cannot open `s3://bucket/none`: there is no such object\nhint: "), "{said}");
    let nobody = RemoteStorage::new()
        .with_settings([("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_SKIP_SIGNATURE", "true")]);
    // Not tried here to the end, which takes a minute: only that the store is not there when the connection is refused.
    drop(nobody);
}

/// Also where no tag tells versions apart that may be asked for.
#[test]
fn two_versions_are_never_mixed() {
    for versions in [Versions::Strong, Versions::Weak, Versions::Times, Versions::TimesOnly] {
        let server = ObjectServer::start();
        let storage = connected(&server);
        server.set_versions(versions);
        let path = Path::new("s3://bucket/file");
        let (one, other): (Vec<u8>, Vec<u8>) = (pattern(1000), pattern(1000).iter().map(|byte| byte ^ 1).collect());
        server.put("bucket/file", one.clone());
        let file = storage.open(path).unwrap();
        assert_eq!(file.version().is_some(), versions == Versions::Strong);
        assert!(file.read(100, 50).unwrap() == one[100..150], "{versions:?}");
        server.put("bucket/file", other.clone());
        let said = file.read(100, 50).map(|_| ()).expect_err(&format!("{versions:?}")).to_string();
        assert!(said.contains("was replaced while it was read"), "{versions:?}: {said}");
        assert!(storage.open(path).unwrap().read(0, 1000).unwrap() == other, "{versions:?}");
        assert!(storage.read_file(path, 1000).unwrap() == other, "{versions:?}");
    }
}

/// Half of each answer comes, and somebody replaces the object before the rest is asked for.
#[test]
fn an_object_that_is_replaced_in_the_middle_is_an_error() {
    for versions in [Versions::Strong, Versions::Weak, Versions::Times, Versions::TimesOnly] {
        let server = ObjectServer::start();
        let storage = connected(&server);
        server.set_versions(versions);
        server.put("bucket/file", pattern(100_000));
        server.set_faults(Faults { truncated: 500, ..Faults::default() });
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..50 {
                    server.put("bucket/file", vec![round; 100_000]);
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
            let mut read = 0;
            while !writer.is_finished() {
                if let Ok(bytes) = storage.read_file(Path::new("s3://bucket/file"), 1 << 20) {
                    let is_one = bytes == pattern(100_000) || bytes.iter().all(|byte| *byte == bytes[0]);
                    assert!(is_one, "{versions:?}: a mixture");
                    read += 1;
                }
            }
            println!("{versions:?}: {read} whole ones");
        });
    }
}

#[test]
fn an_object_is_replaced_by_nobody_who_only_adds() {
    let server = ObjectServer::start();
    let storage = connected(&server);
    let local = tempfile::tempdir().unwrap();
    let any = AnyStorage::new(LocalStorage::buffered());
    let cases: [(&dyn Storage, std::path::PathBuf); 2] =
        [(&storage, "s3://bucket/note".into()), (&any, local.path().join("note"))];
    for (storage, path) in cases {
        let wins = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let (wins, path) = (&wins, &path);
                scope.spawn(move || {
                    let won = storage.write_new(path, format!("writer {writer}").as_bytes()).unwrap();
                    wins.fetch_add(usize::from(won), std::sync::atomic::Ordering::Relaxed);
                });
            }
        });
        assert_eq!(wins.into_inner(), 1, "{}", path.display());
        let content = storage.read_file(&path, 100).unwrap();
        assert!(storage.write_new(&path, &content).unwrap(), "the same once more");
        assert!(!storage.write_new(&path, b"longer than what is there").unwrap());
        assert_eq!(storage.entries(path.parent().unwrap()).unwrap().len(), 1, "nothing else is left");
    }
}

#[test]
fn a_web_server_is_only_read() {
    let server = ObjectServer::start();
    server.put("data/a b.tar", pattern(5000));
    let storage: Arc<dyn Storage> = Arc::new(RemoteStorage::new());
    let path = std::path::PathBuf::from(format!("{}/data/a%20b.tar", server.endpoint()));
    assert_eq!(storage.status(&path).unwrap().unwrap().bytes, 5000);
    assert_eq!(storage.open(&path).unwrap().read(100, 50).unwrap(), pattern(5000)[100..150]);
    assert_eq!(
        storage.create(&path).err().unwrap().kind(),
        ErrorKind::from(&std::io::ErrorKind::ReadOnlyFilesystem.into())
    );
    let said = storage.entries(path.parent().unwrap()).unwrap_err().to_string();
    assert!(said.contains("hint: "), "{said}");
}

/// The blocks of a cache.
fn blocks(folder: &Path) -> Vec<std::path::PathBuf> {
    let below =
        |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    below(folder).iter().flat_map(|group| below(group)).collect()
}

#[test]
fn what_was_read_is_kept_from_run_to_run() {
    let (server, folder) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let content = pattern(5_500_000);
    server.put("bucket/data/shard", content.clone());
    let path = Path::new("s3://bucket/data/shard");
    let gets = || server.take_requests().iter().filter(|request| request.starts_with("GET")).count();
    let cached = |bytes_max| CachedStorage::new(Arc::new(connected(&server)), folder.path(), bytes_max).unwrap();
    let read_all = |storage: &CachedStorage| {
        let file = storage.open(path).unwrap();
        for (offset, length) in [(0, 5_500_000), (5_499_999, 1), (1_048_575, 2), (700_000, 3_000_000), (0, 0)] {
            assert!(file.read(offset, length).unwrap() == content[offset as usize..][..length]);
        }
        assert!(file.read(5_499_999, 2).is_err());
    };
    read_all(&cached(1 << 30));
    assert_eq!(gets(), 1, "all of it at once");
    read_all(&cached(1 << 30));
    assert_eq!(gets(), 0, "nothing in another run");
    assert_eq!(blocks(folder.path()).len(), 6);

    // Damage is found, and fetched again.
    for (number, block) in blocks(folder.path()).iter().enumerate() {
        let mut bytes = std::fs::read(block).unwrap();
        match number {
            0 => bytes[1000] ^= 1,
            1 => bytes.truncate(70_000),
            2 => bytes.push(0),
            3 => bytes.clear(),
            _ => continue,
        }
        std::fs::write(block, bytes).unwrap();
    }
    read_all(&cached(1 << 30));
    assert!((1..=4).contains(&gets()));
    read_all(&cached(1 << 30));
    assert_eq!(gets(), 0);

    // Another version is another object; the blocks of the old one are evicted.
    let replaced: Vec<u8> = content.iter().map(|byte| byte ^ 1).collect();
    server.put("bucket/data/shard", replaced.clone());
    let storage = cached(7 << 20);
    assert!(storage.open(path).unwrap().read(0, 5_500_000).unwrap() == replaced);
    assert!(storage.open(path).unwrap().read(0, 5_500_000).unwrap() == replaced);
    assert_eq!(gets(), 1);
}

#[test]
fn data_larger_than_the_cache_evicts_nothing_of_itself() {
    let (server, folder) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let content = pattern(2 << 20);
    for number in 0..8 {
        server.put(&format!("bucket/data/shard-{number}"), content.clone());
    }
    server.put("bucket/other/shard", content.clone());
    let cached = || CachedStorage::new(Arc::new(connected(&server)), folder.path(), 9 << 20).unwrap();
    let epoch = |storage: &CachedStorage| {
        server.take_requests();
        for number in 0..8 {
            let file = storage.open(Path::new(&format!("s3://bucket/data/shard-{number}"))).unwrap();
            assert!(file.read(0, 2 << 20).unwrap() == content);
        }
        server.take_requests().iter().filter(|request| request.starts_with("GET")).count()
    };
    // What is of no use any more goes first.
    cached().open(Path::new("s3://bucket/other/shard")).unwrap().read(0, 2 << 20).unwrap();
    let storage = cached();
    assert_eq!(epoch(&storage), 8);
    for round in 0..3 {
        assert_eq!(epoch(&storage), 4, "half of it is there in round {round}: 16 MiB do not fit into 9");
    }
    assert_eq!(epoch(&cached()), 4, "and in the next run");
    let bytes: u64 = blocks(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes <= 9 << 20, "{bytes}");
}

/// Two loaders of one process, training and validation say, that are in use at the same time.
#[test]
fn data_sets_that_share_a_cache_evict_nothing_of_each_other() {
    let (server, folder) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let content = pattern(2 << 20);
    for number in 0..6 {
        server.put(&format!("bucket/one/shard-{number}"), content.clone());
        server.put(&format!("bucket/other/shard-{number}"), content.clone());
    }
    let cached = || CachedStorage::new(Arc::new(connected(&server)), folder.path(), 9 << 20).unwrap();
    let epoch = |storage: &CachedStorage, data: &str| {
        server.take_requests();
        for number in 0..6 {
            let file = storage.open(Path::new(&format!("s3://bucket/{data}/shard-{number}"))).unwrap();
            assert!(file.read(0, 2 << 20).unwrap() == content);
        }
        server.take_requests().iter().filter(|request| request.starts_with("GET")).count()
    };
    let taken = || blocks(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum::<u64>();
    let (one, other) = (cached(), cached());
    assert_eq!((epoch(&one, "one"), epoch(&other, "other")), (6, 6));
    for round in 0..3 {
        assert_eq!((epoch(&one, "one"), epoch(&other, "other")), (2, 6), "round {round}: what got in first stays");
        assert!(taken() <= 9 << 20, "both together: {}", taken());
    }
    // Objects that nobody has open any more are evicted.
    drop(one);
    assert_eq!(epoch(&other, "other"), 6);
    assert_eq!(epoch(&other, "other"), 2);
}

/// The size of all blocks, each of which is complete; checks that there is nothing else.
fn bytes_of_whole_blocks(folder: &Path) -> u64 {
    let whole = |path: &std::path::PathBuf| {
        let content = std::fs::read(path).unwrap();
        let (bytes, checksum) = content.split_last_chunk::<8>().unwrap();
        assert_eq!(xxhash_rust::xxh3::xxh3_64(bytes).to_le_bytes(), *checksum, "{}", path.display());
        content.len() as u64
    };
    blocks(folder).iter().map(whole).sum()
}

const SHARED_DATA: usize = 12;
const SHARED_BYTES: u64 = 8 << 20;

/// Reads all of 12 objects several times, in an order of its own, and compares every byte.
fn read_shared(endpoint: &str, folder: &Path, process: usize) {
    let settings =
        [("AWS_ENDPOINT_URL", endpoint), ("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let storage = Arc::new(RemoteStorage::new().with_settings(settings));
    let storage = CachedStorage::new(storage, folder, SHARED_BYTES).unwrap();
    let content = pattern(2 << 20);
    for round in 0..4 {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (storage, content) = (&storage, &content);
                scope.spawn(move || {
                    for number in (0..SHARED_DATA).filter(|number| number % 4 == thread) {
                        let number = (number * 5 + process * 3 + round) % SHARED_DATA;
                        let file = storage.open(Path::new(&format!("s3://bucket/data/shard-{number}"))).unwrap();
                        let from = number * 1000;
                        assert!(file.read(from as u64, (2 << 20) - from).unwrap() == content[from..], "shard {number}");
                    }
                });
            }
        });
    }
}

/// Processes on one folder at the same time, with data that does not fit, one of which is killed.
#[test]
fn processes_share_a_cache() {
    let variable = |name: &str| std::env::var(format!("FOREBAY_TEST_{name}")).ok();
    if let (Some(endpoint), Some(folder), Some(process)) =
        (variable("ENDPOINT"), variable("FOLDER"), variable("NUMBER"))
    {
        return read_shared(&endpoint, Path::new(&folder), process.parse().unwrap());
    }
    let (server, folder) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    for number in 0..SHARED_DATA {
        server.put(&format!("bucket/data/shard-{number}"), pattern(2 << 20));
    }
    let start = |process: usize| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "remote::processes_share_a_cache"]).stdout(std::process::Stdio::null());
        command.env("FOREBAY_TEST_ENDPOINT", server.endpoint()).env("FOREBAY_TEST_FOLDER", folder.path());
        command.env("FOREBAY_TEST_NUMBER", process.to_string()).spawn().unwrap()
    };
    let mut processes: Vec<_> = (0..4).map(start).collect();
    while blocks_or_none(folder.path()) < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut killed = processes.swap_remove(0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    // What the killed one left half-written goes when space is wanted.
    for path in blocks(folder.path()).iter().filter(|path| path.extension().is_none_or(|end| end != "block")) {
        std::fs::remove_file(path).unwrap();
    }
    let taken = bytes_of_whole_blocks(folder.path());
    // Each may have looked just before another one wrote what each of its threads had.
    let most = SHARED_BYTES + 3 * 4 * (1 << 20);
    assert!((SHARED_BYTES / 2..=most).contains(&taken), "{taken} bytes of {SHARED_BYTES} asked for");
    server.take_requests();
    read_shared(&server.endpoint(), folder.path(), 0);
    let gets = server.take_requests().iter().filter(|request| request.starts_with("GET")).count();
    assert!(gets < 4 * SHARED_DATA, "{gets} requests: what is kept is read");
}

fn blocks_or_none(folder: &Path) -> usize {
    let groups = std::fs::read_dir(folder).into_iter().flatten().flatten();
    groups.map(|group| std::fs::read_dir(group.path()).into_iter().flatten().count()).sum()
}
