//! Building and loading in a bucket, over the loopback.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_engine::build::Build;
use forebay_engine::data::{Dataset, Listing, ListingOptions};
use forebay_engine::load::{Column, LoadOptions, OnError, Shuffle};
use forebay_engine::source::{Files, Shards, Source};
use forebay_pipeline::Strategy;
use forebay_record::{Feature, Index, TarIndex, TarWriter, Writer, encode_example};
use forebay_storage::{CachedStorage, Folder, RemoteStorage, Storage};

use crate::object_server::{Faults, ObjectServer};
use crate::support::{SMALL, build, local, options, photos, pipeline, start};

/// The stores of `server`.
pub(crate) fn connected(server: &ObjectServer) -> Arc<dyn Storage> {
    let endpoint = server.endpoint();
    Arc::new(RemoteStorage::new().with_settings([
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIATESTTESTTEST"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI-K7MDENG"),
        ("AWS_READ_TIMEOUT", "1s"),
    ]))
}

/// Puts every file below `folder` into a bucket.
fn put_all(server: &ObjectServer, folder: &Path, prefix: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() { put_all(server, &path, &name) } else { server.put(&name, std::fs::read(&path).unwrap()) }
    }
}

/// Every sample of an epoch, by its key: its label and its pixels.
fn epoch_of(source: Arc<dyn Source>, epoch: u64) -> BTreeMap<Arc<str>, (i64, Vec<u8>)> {
    let options = LoadOptions {
        batch_size: 7,
        threads: 2,
        shuffle: Shuffle::Window { bytes: 1 << 20 },
        seed: 5,
        ..LoadOptions::default()
    };
    let mut seen = BTreeMap::new();
    for batch in start(source, options, epoch).unwrap() {
        let batch = batch.unwrap();
        let Some(Column::Ints(labels)) = batch.column("label") else { panic!("labels") };
        let Some(Column::Dense { data, .. }) = batch.column("image") else { panic!("pixels") };
        let each = data.len() / batch.len();
        for (row, key) in batch.keys.iter().enumerate() {
            let sample = (labels[row], data[row * each..][..each].to_vec());
            assert!(seen.insert(Arc::clone(key), sample).is_none(), "`{key}` came twice");
        }
    }
    seen
}

#[test]
fn a_bucket_gives_the_same_shards_and_samples_as_a_folder() {
    let (server, photos, here) = (ObjectServer::start(), photos(60), tempfile::tempdir().unwrap());
    put_all(&server, photos.path(), "bucket/photos");
    let (remote, pipeline) = (connected(&server), pipeline(SMALL));
    build(&pipeline, "resized", photos.path(), local()).run(here.path(), &options(5), &()).unwrap();
    let from = Folder::new(Arc::clone(&remote), "s3://bucket/photos");
    let listing = Arc::new(Listing::scan(pipeline.source(), from).unwrap());
    let strategy = Strategy::parse(&pipeline, "resized").unwrap();
    let to = Folder::new(Arc::clone(&remote), "s3://bucket/built/small");
    let remotely = Build { pipeline: pipeline.clone(), strategy, listing, storage: Arc::clone(&remote) };
    remotely.run(to.clone(), &options(5), &()).unwrap();
    let built = server.below("bucket/built/small/");
    assert_eq!(built.len(), 5 * 3 + 1, "{:?}", built.keys());
    for (name, bytes) in &built {
        // The manifest names the versions of the files that it was built from.
        let same = name == "dataset.json" || std::fs::read(here.path().join(name)).unwrap() == **bytes;
        assert!(same, "{name}");
    }
    assert_eq!(remotely.run(to, &options(5), &()).unwrap().shards_reused, 5, "it is finished already");
    assert_eq!(server.unfinished_uploads(), 0);

    let open = |storage: Arc<dyn Storage>, folder: &str| -> Arc<dyn Source> {
        Arc::new(Shards::open(Path::new(folder), storage, OnError::Fail).unwrap())
    };
    let here_samples = epoch_of(open(local(), here.path().to_str().unwrap()), 0);
    assert_eq!(here_samples.len(), 60);
    assert!(epoch_of(open(Arc::clone(&remote), "s3://bucket/built/small"), 0) == here_samples);

    // The files themselves, too.
    let files = |storage: Arc<dyn Storage>, folder: &Path| -> Arc<dyn Source> {
        Arc::new(Files::open(pipeline.clone(), folder, storage, &ListingOptions::default()).unwrap())
    };
    let expected = epoch_of(files(local(), photos.path()), 1);
    assert!(epoch_of(files(remote, Path::new("s3://bucket/photos")), 1) == expected);
}

#[test]
fn three_epochs_under_faults_lose_and_repeat_nothing() {
    let (server, photos, here) = (ObjectServer::start(), photos(120), tempfile::tempdir().unwrap());
    let (remote, pipeline) = (connected(&server), pipeline(SMALL));
    build(&pipeline, "concatenated", photos.path(), local()).run(here.path(), &options(12), &()).unwrap();
    put_all(&server, here.path(), "bucket/dataset");
    let expected = |epoch| {
        let dataset = Arc::new(Dataset::open(here.path()).unwrap());
        epoch_of(Arc::new(Shards::new(dataset, local())), epoch)
    };
    server.set_faults(Faults {
        unavailable: 50,
        reset: 50,
        truncated: 50,
        stalled: 50,
        stall: Duration::from_secs(3),
        ..Faults::default()
    });
    server.take_requests();
    for epoch in 0..3 {
        let folder = Folder::new(Arc::clone(&remote), "s3://bucket/dataset");
        let dataset = Arc::new(Dataset::open(folder).unwrap());
        let seen = epoch_of(Arc::new(Shards::new(dataset, Arc::clone(&remote))), epoch);
        assert!(seen == expected(epoch), "epoch {epoch}");
        assert_eq!(seen.len(), 120);
    }
}

/// Not even whether they are still there: what is open stays open.
#[test]
fn later_epochs_of_a_cached_data_set_ask_for_nothing() {
    let (server, photos, here) = (ObjectServer::start(), photos(60), tempfile::tempdir().unwrap());
    build(&pipeline(SMALL), "resized", photos.path(), local()).run(here.path(), &options(6), &()).unwrap();
    put_all(&server, here.path(), "bucket/dataset");
    let folder = tempfile::tempdir().unwrap();
    let cached: Arc<dyn Storage> = Arc::new(CachedStorage::new(connected(&server), folder.path(), 1 << 30).unwrap());
    let source: Arc<dyn Source> =
        Arc::new(Shards::open(Path::new("s3://bucket/dataset"), cached, OnError::Fail).unwrap());
    assert_eq!(epoch_of(Arc::clone(&source), 0).len(), 60);
    assert!(server.take_requests().len() > 6);
    for epoch in 1..4 {
        assert_eq!(epoch_of(Arc::clone(&source), epoch).len(), 60);
        assert_eq!(server.take_requests(), Vec::<String>::new(), "epoch {epoch}");
    }
}

#[test]
fn requests_are_under_way_together() {
    let (server, photos) = (ObjectServer::start(), photos(90));
    put_all(&server, photos.path(), "bucket/photos");
    let (remote, pipeline) = (connected(&server), pipeline(SMALL));
    let source = Files::open(pipeline, Path::new("s3://bucket/photos"), remote, &ListingOptions::default());
    let source: Arc<dyn Source> = Arc::new(source.unwrap());
    assert!(source.reads_at_once() > 8);
    server.set_latency(Duration::from_millis(100));
    assert_eq!(epoch_of(source, 0).len(), 90);
    assert!(server.in_flight_max() > 8, "{} on two threads", server.in_flight_max());
}

/// Puts tars of so many samples of `sample_bytes` each into a bucket; how many bytes they have.
fn put_tars(server: &ObjectServer, shards: u64, samples: u64, sample_bytes: usize) -> u64 {
    put_shards(server, shards, samples, sample_bytes, false)
}

/// The same, with the index of DALI beside each or without.
fn put_shards(server: &ObjectServer, shards: u64, samples: u64, sample_bytes: usize, indexed: bool) -> u64 {
    let mut bytes = 0;
    for shard in 0..shards {
        let (mut tar, mut index) = (TarWriter::new(Vec::new()), TarIndex::new());
        for number in shard * samples..(shard + 1) * samples {
            let (key, content, label) =
                (format!("{number:06}"), vec![number as u8; sample_bytes], number.to_string().into_bytes());
            for (member, content) in [("bin", content), ("cls", label)] {
                index.add(&key, member, tar.write(&key, member, &content).unwrap(), content.len() as u64);
            }
        }
        if indexed {
            server.put(&format!("bucket/tars/{shard:03}.idx"), index.into_text().unwrap().into_bytes());
        }
        let tar = tar.finish().unwrap();
        bytes += tar.len() as u64;
        server.put(&format!("bucket/tars/{shard:03}.tar"), tar);
    }
    bytes
}

/// How many bytes of objects were asked for, and by how many requests.
fn asked_for(server: &ObjectServer) -> (u64, usize) {
    let ranges: Vec<(u64, u64)> = server
        .take_requests()
        .iter()
        .filter_map(|request| request.strip_prefix("GET ")?.split_once(" bytes=")?.1.split_once('-'))
        .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()))
        .collect();
    (ranges.iter().map(|(from, to)| to - from + 1).sum(), ranges.len())
}

const TARS: &str = r#"
name = "tars"
[source]
format = "tar"
files = "*.tar"
[[source.fields]]
field = "image"
from = "bin"
[[source.fields]]
field = "label"
from = "cls"
type = "int"
"#;

pub(crate) const RECORDS: &str = r#"
name = "records"
[source]
format = "tfrecord"
files = "*.tfrecord"
[[source.fields]]
field = "image"
from = "data"
[[source.fields]]
field = "label"
from = "number"
type = "int"
"#;

/// Every sample of an epoch of shards: their numbers.
fn labels_of(source: Arc<dyn Source>, shuffle: Shuffle) -> Vec<i64> {
    let mut seen = order_of(source, shuffle);
    seen.sort_unstable();
    seen
}

/// The same, in their order.
fn order_of(source: Arc<dyn Source>, shuffle: Shuffle) -> Vec<i64> {
    let options = LoadOptions { batch_size: 5, threads: 2, shuffle, seed: 5, ..LoadOptions::default() };
    let mut seen = Vec::new();
    for batch in start(source, options, 0).unwrap() {
        let batch = batch.unwrap();
        let Some(Column::Ints(labels)) = batch.column("label") else { panic!("labels") };
        seen.extend_from_slice(labels);
    }
    seen
}

#[test]
fn tars_are_read_once_for_the_listing_and_the_first_epoch() {
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 1 << 20 }] {
        let server = ObjectServer::start();
        let bytes = put_tars(&server, 6, 40, 40_000);
        let (remote, pipeline) = (connected(&server), pipeline(TARS));
        server.take_requests();
        let source = Files::open(pipeline, Path::new("s3://bucket/tars"), remote, &ListingOptions::default());
        let source: Arc<dyn Source> = Arc::new(source.unwrap());
        let (listed, requests) = asked_for(&server);
        assert!(listed <= bytes, "{listed} of {bytes} bytes for the listing");
        assert!(requests <= 6 * 4, "{requests} requests for 6 shards");
        assert_eq!(labels_of(Arc::clone(&source), shuffle), (0..240).collect::<Vec<_>>());
        let (loaded, _) = asked_for(&server);
        assert!(loaded < bytes / 10, "{loaded} bytes once more for the first epoch, of {bytes}");
        assert_eq!(labels_of(source, shuffle), (0..240).collect::<Vec<_>>());
        let (again, _) = asked_for(&server);
        assert!((bytes * 9 / 10..=bytes).contains(&again), "{again} bytes for the second, of {bytes}");
    }
}

/// How far is read ahead from a store does not depend on how many threads work.
#[test]
fn as_much_is_read_ahead_on_forty_threads_as_on_two() {
    let server = ObjectServer::start();
    let bytes = put_tars(&server, 20, 160, 20_000);
    let source =
        Files::open(pipeline(TARS), Path::new("s3://bucket/tars"), connected(&server), &ListingOptions::default());
    let source: Arc<dyn Source> = Arc::new(source.unwrap());
    // The first epoch has what the listing read.
    assert_eq!(labels_of(Arc::clone(&source), Shuffle::No).len(), 3200);
    for threads in [2, 40] {
        assert_eq!(source.reads_at_once(), 32, "the larger of the two has more threads than that");
        let options = LoadOptions { batch_size: 4, threads, prefetch: 1, ..LoadOptions::default() };
        let epoch = start(Arc::clone(&source), LoadOptions { shuffle: Shuffle::No, ..options }, 1).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        // Nobody takes a batch. Of a folder, no more than 32 MiB would be read, and what workers have in their hands.
        while epoch.bytes_read() < bytes * 9 / 10 {
            assert!(Instant::now() < deadline, "{} of {bytes} bytes on {threads} threads", epoch.bytes_read());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn of_tars_with_large_members_only_headers_are_listed() {
    let server = ObjectServer::start();
    let bytes = put_tars(&server, 2, 6, 3 << 20);
    server.take_requests();
    let folder = Folder::new(connected(&server), "s3://bucket/tars");
    assert_eq!(Listing::scan(pipeline(TARS).source(), folder).unwrap().len(), 12);
    let (listed, _) = asked_for(&server);
    assert!(listed < bytes / 10, "{listed} of {bytes} bytes");
}

/// By an index, the first batch takes no more than what is in it: of the tars, their first samples and their ends.
#[test]
fn tars_with_an_index_begin_at_once() {
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 1 << 20 }] {
        let server = ObjectServer::start();
        let bytes = put_shards(&server, 6, 40, 40_000, true);
        let open = |server: &ObjectServer| {
            let folder = Path::new("s3://bucket/tars");
            let source = Files::open(pipeline(TARS), folder, connected(server), &ListingOptions::default());
            let source: Arc<dyn Source> = Arc::new(source.unwrap());
            source
        };
        server.take_requests();
        let source = open(&server);
        let (listed, requests) = asked_for(&server);
        assert!(listed < bytes / 15 && requests == 6 * 2, "{listed} of {bytes} bytes by {requests} requests");
        let order = order_of(Arc::clone(&source), shuffle);
        let (loaded, _) = asked_for(&server);
        assert!(listed + loaded <= bytes, "nothing is read twice: {listed} and {loaded} of {bytes} bytes");
        // Without them it is the same epoch.
        let plain = ObjectServer::start();
        put_tars(&plain, 6, 40, 40_000);
        assert_eq!(order_of(open(&plain), shuffle), order);
    }
}

/// One tar alone has two requests under way, so that it comes at more than the rate of one connection.
#[test]
fn a_single_tar_is_read_ahead() {
    let server = ObjectServer::start();
    let bytes = put_tars(&server, 1, 800, 40_000);
    server.set_latency(Duration::from_millis(20));
    let folder = Folder::new(connected(&server), "s3://bucket/tars");
    server.take_requests();
    assert_eq!(Listing::scan(pipeline(TARS).source(), folder).unwrap().len(), 800);
    let (listed, requests) = asked_for(&server);
    assert!(server.in_flight_max() >= 2, "{}", server.in_flight_max());
    assert!(listed <= bytes && requests <= 10, "{listed} of {bytes} bytes by {requests} requests");
}

/// Where there is no space to keep all that was listed, only what is missing is read again.
#[test]
fn what_does_not_fit_is_read_again_and_nothing_else() {
    let server = ObjectServer::start();
    let bytes = put_tars(&server, 6, 100, 40_000);
    let folder = Path::new("s3://bucket/tars");
    let source = Files::open(pipeline(TARS), folder, connected(&server), &ListingOptions::default()).unwrap();
    let source: Arc<dyn Source> = Arc::new(source);
    server.take_requests();
    let memory_bytes = 48 << 20;
    let options = LoadOptions { batch_size: 5, threads: 2, memory_bytes, ..LoadOptions::default() };
    let mut seen = 0;
    let mut epoch = start(source, LoadOptions { shuffle: Shuffle::No, ..options }, 0).unwrap();
    for batch in epoch.by_ref() {
        seen += batch.unwrap().len();
    }
    assert_eq!(seen, 600);
    let (again, _) = asked_for(&server);
    // A quarter of the budget is kept; a piece is 4 MiB, so that one may be dropped of which there was a part to spare.
    let missing = bytes - memory_bytes / 4;
    assert!((missing..missing + (5 << 20)).contains(&again), "{again} of {missing} missing bytes");
    assert!(epoch.memory_bytes_peak() <= memory_bytes, "{}", epoch.memory_bytes_peak());
}

#[test]
fn records_in_a_bucket_are_read_as_in_a_folder() {
    for indexed in [false, true] {
        let (server, here) = (ObjectServer::start(), tempfile::tempdir().unwrap());
        for shard in 0..5_i64 {
            let (mut writer, mut index) = (Writer::new(Vec::new()), Index::new());
            for number in shard * 30..shard * 30 + 30 {
                let content = vec![number as u8; 20_000];
                let features = [("data", Feature::Bytes(&[&content[..]])), ("number", Feature::Int64(&[number]))];
                index.push(writer.write(&encode_example(&features).unwrap()).unwrap()).unwrap();
            }
            std::fs::write(here.path().join(format!("{shard}.tfrecord")), writer.finish().unwrap()).unwrap();
            if indexed {
                std::fs::write(here.path().join(format!("{shard}.tfrecord.idx")), index.to_text()).unwrap();
            }
        }
        put_all(&server, here.path(), "bucket/records");
        let bytes: u64 = server.below("bucket/records/").values().map(|content| content.len() as u64).sum();
        let pipeline = pipeline(RECORDS);
        let open = |storage: Arc<dyn Storage>, folder: &Path| -> Arc<dyn Source> {
            Arc::new(Files::open(pipeline.clone(), folder, storage, &ListingOptions::default()).unwrap())
        };
        for shuffle in [Shuffle::No, Shuffle::Window { bytes: 1 << 20 }] {
            server.take_requests();
            let remote = open(connected(&server), Path::new("s3://bucket/records"));
            let found = order_of(Arc::clone(&remote), shuffle);
            let (first, _) = asked_for(&server);
            assert!(first <= bytes + 5 * 12, "{first} of {bytes} bytes for the listing and the first epoch");
            assert_eq!(found, order_of(open(local(), here.path()), shuffle));
            let mut numbers = found;
            numbers.sort_unstable();
            assert_eq!(numbers, (0..150).collect::<Vec<_>>());
            server.set_faults(Faults { unavailable: 50, reset: 50, truncated: 50, ..Faults::default() });
            assert_eq!(labels_of(remote, shuffle), numbers);
            server.set_faults(Faults::default());
        }
    }
}

/// A build takes them, too.
#[test]
fn records_in_a_bucket_are_built_from() {
    let (server, here) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let mut writer = Writer::new(Vec::new());
    for number in 0..40_i64 {
        let content = vec![number as u8; 5000];
        let features = [("data", Feature::Bytes(&[&content[..]])), ("number", Feature::Int64(&[number]))];
        writer.write(&encode_example(&features).unwrap()).unwrap();
    }
    std::fs::write(here.path().join("0.tfrecord"), writer.finish().unwrap()).unwrap();
    put_all(&server, here.path(), "bucket/records");
    let (pipeline, remote) = (pipeline(RECORDS), connected(&server));
    let built = |storage: &Arc<dyn Storage>, from: &Path| {
        let output = tempfile::tempdir().unwrap();
        let listing = Listing::scan(pipeline.source(), Folder::new(Arc::clone(storage), from)).unwrap();
        let strategy = Strategy::parse(&pipeline, "concatenated").unwrap();
        let build =
            Build { pipeline: pipeline.clone(), strategy, listing: Arc::new(listing), storage: Arc::clone(storage) };
        build.run(output.path(), &options(2), &()).unwrap();
        ["shard-00000.tfrecord", "shard-00001.tfrecord"].map(|name| std::fs::read(output.path().join(name)).unwrap())
    };
    assert!(built(&remote, Path::new("s3://bucket/records")) == built(&local(), here.path()));
}

#[test]
fn shards_are_looked_through_together() {
    let server = ObjectServer::start();
    put_tars(&server, 12, 3, 1000);
    server.set_latency(Duration::from_millis(50));
    let folder = Folder::new(connected(&server), "s3://bucket/tars");
    assert_eq!(Listing::scan(pipeline(TARS).source(), folder).unwrap().len(), 36);
    assert!(server.in_flight_max() > 4, "{}", server.in_flight_max());
}
