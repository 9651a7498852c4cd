//! A build in parts, on a disk and in a bucket.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use forebay_engine::Result;
use forebay_engine::build::{Build, Part, PartReport, Prepared};
use forebay_engine::data::{Dataset, Listing, Reach};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_record::{Feature, Writer, encode_example};
use forebay_storage::{Folder, Storage};

use crate::object_server::{Faults, ObjectServer};
use crate::support::{FailsAfter, SMALL, build, local, options, photos, pipeline};

/// Runs a part as another machine would: with nothing but what lies in the folder.
pub(crate) fn run_part(
    pipeline: &Pipeline,
    strategy: &str,
    (photos, storage): (&Path, Arc<dyn Storage>),
    output: &Folder,
    part: &str,
) -> Result<PartReport> {
    let prepared = Prepared::find(output.clone(), pipeline.source(), photos, Reach::Root)?.unwrap();
    let build = Build {
        pipeline: pipeline.clone(),
        strategy: Strategy::parse(pipeline, strategy).unwrap(),
        listing: Arc::new(prepared.listing),
        storage,
    };
    build.run_part(output.clone(), &options(prepared.shards), part.parse::<Part>().unwrap(), &())
}

pub(crate) fn finish(pipeline: &Pipeline, strategy: &str, photos: &Path, output: &Folder) -> Result<()> {
    let prepared = Prepared::find(output.clone(), pipeline.source(), photos, Reach::Root)?.unwrap();
    let build = Build {
        pipeline: pipeline.clone(),
        strategy: Strategy::parse(pipeline, strategy).unwrap(),
        listing: Arc::new(prepared.listing),
        storage: local(),
    };
    build.finish(output.clone(), &options(prepared.shards), &()).map(|_| ())
}

pub(crate) fn content(output: &Folder) -> BTreeMap<String, Vec<u8>> {
    let storage = output.storage();
    let files = storage.walk(output.path(), &|_| true).map(|found| found.unwrap().below);
    files
        .map(|below| {
            let bytes = storage.read_file(&output.file(&below), 1 << 30).unwrap().to_vec();
            (below.to_str().unwrap().to_owned(), bytes)
        })
        .collect()
}

#[test]
fn parts_give_the_bytes_of_a_plain_build() {
    let photos = photos(40);
    let server = ObjectServer::start();
    for strategy in ["resized", "resized+zstd-3-dictionary-record"] {
        let pipeline = pipeline(SMALL);
        let whole = tempfile::tempdir().unwrap();
        build(&pipeline, strategy, photos.path(), local()).run(whole.path(), &options(7), &()).unwrap();
        let expected = content(&whole.path().into());
        let here = tempfile::tempdir().unwrap();
        let bucket = Folder::new(crate::remote::connected(&server), format!("s3://bucket/{strategy}"));
        for output in [here.path().into(), bucket] {
            let prepared = build(&pipeline, strategy, photos.path(), local());
            prepared.prepare(output.clone(), &options(7)).unwrap();
            prepared.prepare(output.clone(), &options(7)).unwrap();
            assert!(Dataset::open(output.clone()).is_err(), "not yet");
            let missing = finish(&pipeline, strategy, photos.path(), &output).unwrap_err().to_string();
            assert!(missing.contains("7 of 7 shards are not built: shard-00000.tfrecord, "), "{missing}");
            // All parts at once, and each twice.
            std::thread::scope(|scope| {
                for number in 0..6 {
                    let (pipeline, photos, output) = (&pipeline, photos.path(), &output);
                    let part = format!("{}/3", number % 3 + 1);
                    scope.spawn(move || run_part(pipeline, strategy, (photos, local()), output, &part).unwrap());
                }
            });
            let again = run_part(&pipeline, strategy, (photos.path(), local()), &output, "2/3").unwrap();
            assert_eq!((again.shards, again.shards_reused), (2, 2));
            finish(&pipeline, strategy, photos.path(), &output).unwrap();
            let found = content(&output);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{strategy}");
            assert!(found == expected, "{strategy} in {}", output.path().display());
            let none = Prepared::find(output.clone(), pipeline.source(), photos.path(), Reach::Root).unwrap();
            assert!(none.is_none(), "it is finished");
        }
    }
}

/// A folder of one file of records, 1 MB each, that no compression makes smaller.
fn large_records(count: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(Vec::new());
    for number in 0..count {
        let mut random = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = |_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random.to_le_bytes()
        };
        let content: Vec<u8> = (0..(1 << 20) / 8).flat_map(word).collect();
        let features = [("data", Feature::Bytes(&[&content])), ("number", Feature::Int64(&[number.cast_signed()]))];
        writer.write(&encode_example(&features).unwrap()).unwrap();
    }
    std::fs::write(folder.path().join("0.tfrecord"), writer.finish().unwrap()).unwrap();
    folder
}

/// Whatever becomes of requests and answers: shards of one put and of several parts, notes, what is removed in the end, and one manifest.
#[test]
fn a_build_into_a_store_that_fails_gives_the_bytes_of_one_that_does_not() {
    let (photos, records) = (photos(40), large_records(30));
    let stall = Duration::from_secs(10);
    let faults =
        Faults { unavailable: 60, reset: 60, lost: 80, truncated: 60, stalled: 30, late: 20, conflict: 40, stall };
    for (toml, strategy, data, shards) in
        [(SMALL, "resized", photos.path(), 12), (crate::remote::RECORDS, "concatenated", records.path(), 2)]
    {
        let (pipeline, whole) = (pipeline(toml), tempfile::tempdir().unwrap());
        build(&pipeline, strategy, data, local()).run(whole.path(), &options(shards), &()).unwrap();
        let expected = content(&whole.path().into());
        let server = ObjectServer::start();
        let remote = crate::remote::connected(&server);
        server.set_faults(faults);
        let plain = Folder::new(Arc::clone(&remote), "s3://bucket/plain");
        build(&pipeline, strategy, data, local()).run(plain.clone(), &options(shards), &()).unwrap();
        let parts = Folder::new(remote, "s3://bucket/parts");
        build(&pipeline, strategy, data, local()).prepare(parts.clone(), &options(shards)).unwrap();
        // Each of two twice, at the same time.
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (pipeline, output) = (&pipeline, &parts);
                let part = format!("{}/2", number % 2 + 1);
                scope.spawn(move || run_part(pipeline, strategy, (data, local()), output, &part).unwrap());
            }
        });
        finish(&pipeline, strategy, data, &parts).unwrap();
        server.set_faults(Faults::default());
        for output in [plain, parts] {
            let found = content(&output);
            let (place, manifests) =
                (output.path().display(), found.keys().filter(|name| name.ends_with("dataset.json")));
            assert_eq!(manifests.count(), 1, "{place}");
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{place}");
            assert!(found == expected, "{place}: other bytes");
        }
        let asked = server.take_requests();
        let wrote = |method: &str| asked.iter().filter(|request| request.starts_with(method)).count();
        let is_large = strategy == "concatenated";
        assert!(!is_large || wrote("POST") > 2 * 2 * 2, "shards of several parts");
        // Without a fault, each object is written once, and a note once more by whoever is the second.
        println!("{strategy}: {} PUT, {} POST, {} DELETE", wrote("PUT"), wrote("POST"), wrote("DELETE"));
    }
}

#[test]
fn a_part_goes_on_after_a_failure_and_what_is_listed_stays() {
    let photos = photos(30);
    let pipeline = pipeline(SMALL);
    let (whole, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output: Folder = here.path().into();
    build(&pipeline, "resized", photos.path(), local()).run(whole.path(), &options(6), &()).unwrap();
    build(&pipeline, "resized", photos.path(), local()).prepare(output.clone(), &options(6)).unwrap();
    // A file more does not matter any more.
    std::fs::copy(photos.path().join("ant/0000.jpg"), photos.path().join("ant/9999.jpg")).unwrap();
    let mut built = 0;
    for reads in [0, 7, 13] {
        let failing = Arc::new(FailsAfter { inner: local(), reads_left: AtomicU64::new(reads) });
        let failed = run_part(&pipeline, "resized", (photos.path(), failing), &output, "1/1");
        built = built.max(failed.map_or(0, |report| report.shards));
    }
    let report = run_part(&pipeline, "resized", (photos.path(), local()), &output, "1/1").unwrap();
    assert!(report.shards_reused > 0 && report.samples == 30, "{report:?}");
    finish(&pipeline, "resized", photos.path(), &output).unwrap();
    assert!(content(&output) == content(&whole.path().into()));
}

#[test]
fn what_was_not_prepared_is_an_error() {
    let photos = photos(12);
    let pipeline = pipeline(SMALL);
    let here = tempfile::tempdir().unwrap();
    let output: Folder = here.path().into();
    let unprepared = Prepared::find(output.clone(), pipeline.source(), photos.path(), Reach::Root).unwrap_err();
    assert!(unprepared.to_string().contains("--prepare"), "{unprepared}");
    build(&pipeline, "resized", photos.path(), local()).prepare(output.clone(), &options(3)).unwrap();
    let other = run_part(&pipeline, "decoded", (photos.path(), local()), &output, "1/3").unwrap_err().to_string();
    assert!(other.contains("strategy `resized`, not `decoded`"), "{other}");
    for part in ["1/3", "2/3", "3/3"] {
        run_part(&pipeline, "resized", (photos.path(), local()), &output, part).unwrap();
    }
    finish(&pipeline, "resized", photos.path(), &output).unwrap();
    let scan = Listing::scan(pipeline.source(), photos.path()).unwrap();
    assert_eq!(Dataset::open(here.path()).unwrap().manifest().samples, scan.len() as u64);
}
