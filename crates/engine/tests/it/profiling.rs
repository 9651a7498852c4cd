//! Profiles: every split, every caching mode, on a slow storage.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use forebay_engine::data::Listing;
use forebay_engine::load::{LoadOptions, OnError, Shuffle};
use forebay_engine::probe::{Access, ProbeOptions, probe};
use forebay_engine::profile::{COMPRESSION_CANDIDATES, ProfileOptions, profile};
use forebay_engine::source::{Shards, Source};
use forebay_engine::{Progress, StorageChoice};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_plan::{Caching, Objective, Profile, Runs, StrategyProfile, Summary, plan, summarize};

use crate::memory::pictures;
use crate::support::{SMALL, TILES, built, local, photos, pipeline, start};

fn run(toml: &str, storage: &str, caching: Caching) -> Profile {
    let photos = photos(30);
    let pipeline = pipeline(toml);
    let work = tempfile::tempdir().unwrap();
    let options = options(&pipeline, work.path(), caching);
    let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
    let storage: StorageChoice = storage.parse().unwrap();
    let found = profile(&pipeline, listing, &storage, &options, &()).unwrap();
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0, "nothing is left behind");
    found
}

fn runs_of_each(count: u32) -> Runs {
    Runs::Each(count.try_into().unwrap())
}

fn options(pipeline: &Pipeline, work: &Path, caching: Caching) -> ProfileOptions {
    ProfileOptions {
        sample_count: 24,
        run_seconds: 0.0,
        runs: runs_of_each(2),
        threads: 2,
        shards: 3,
        batch_size: 8,
        caching,
        shuffle: Shuffle::No,
        seed: 1,
        on_error: OnError::Fail,
        work_folder: work.to_owned(),
        strategies: Strategy::all(pipeline, &["qoi".parse().unwrap(), "jpeg-80".parse().unwrap()]),
        compressions: Vec::new(),
        memory_bytes: 1 << 30,
    }
}

/// Pictures that are together larger than a shuffled window may be, were they read.
#[test]
fn what_is_in_memory_already_takes_nothing_of_the_budget() {
    let pictures = pictures(&[(640, 640); 5]);
    let pipeline = pipeline(SMALL);
    let work = tempfile::tempdir().unwrap();
    let strategies = vec![Strategy::parse(&pipeline, "decoded").unwrap()];
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 64_000_000 }] {
        let usual = options(&pipeline, work.path(), Caching::Application);
        let options = ProfileOptions { shuffle, strategies: strategies.clone(), memory_bytes: 8 << 20, ..usual };
        let listing = Listing::scan(pipeline.source(), pictures.path()).unwrap();
        let found = profile(&pipeline, listing, &StorageChoice::Local, &options, &()).unwrap();
        assert!(found.strategies[0].runs.iter().all(|run| run.samples == 5 && run.bytes_read == 0), "{found:?}");
    }
}

#[test]
fn every_split_is_measured() {
    let profile = run(SMALL, "custom:read=50MB/s,seek=1ms", Caching::None);
    let names: Vec<&str> = profile.strategies.iter().map(|strategy| strategy.name.as_str()).collect();
    let encoded = ["decoded+qoi", "decoded+jpeg-80", "resized", "resized+qoi", "resized+jpeg-80", "pixel-centered"];
    assert_eq!(names, [&["unprocessed", "concatenated", "decoded"][..], &encoded].concat());
    let lossy: Vec<&str> =
        profile.strategies.iter().filter(|strategy| strategy.lossy).map(|strategy| strategy.name.as_str()).collect();
    assert_eq!(lossy, ["decoded+jpeg-80", "resized+jpeg-80"]);
    assert_eq!((profile.data.samples, profile.method.sample_count), (30, 24));
    assert_eq!(profile.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>()[..2], ["read", "decode"]);
    for strategy in &profile.strategies {
        assert_eq!(strategy.runs.len(), 2);
        for run in &strategy.runs {
            assert_eq!((run.samples, run.skipped), (24, 0));
            assert_eq!(run.bytes_read, strategy.storage_bytes, "every byte is read once");
            assert!(run.seconds > 0.0);
        }
        assert_eq!(strategy.prep_seconds > 0.0, !strategy.split.keeps_files());
        assert!(!strategy.system.is_empty());
    }
    // A picture of single-precision values is four times one of bytes.
    let bytes = |name: &str| profile.strategies.iter().find(|found| found.name == name).unwrap().bytes_per_sample;
    let [resized, centered] = ["resized", "pixel-centered"].map(bytes);
    assert!((3.5..4.1).contains(&(centered / resized)), "{resized} {centered}");
    // Both rates are what the storage was told to give: more is a fault of the model, less may be the fault of a busy machine.
    let expected = 50e6;
    let share = profile.storage.sequential_bytes_per_second / expected;
    assert!((0.01..1.2).contains(&share), "{:?}", profile.storage);
    assert!(profile.storage.files_per_second < 2.2 * 1000.0, "two threads, 1 ms a seek: {:?}", profile.storage);
    profile.check().unwrap();
}

/// Reading takes most of a second, and working a few milliseconds: a busy machine does not make up for that.
#[test]
fn caches_are_faster_than_a_slow_storage() {
    const BYTES_PER_SECOND: f64 = 16e6;
    let large = pipeline(&SMALL.replace("size = 24", "size = 192"));
    let (photos, work) = (photos(24), tempfile::tempdir().unwrap());
    let storage: StorageChoice = "custom:read=16MB/s,seek=5ms".parse().unwrap();
    let strategies = vec![Strategy::parse(&large, "pixel-centered").unwrap()];
    let strategy = |caching| {
        let options = ProfileOptions { strategies: strategies.clone(), ..options(&large, work.path(), caching) };
        let listing = Listing::scan(large.source(), photos.path()).unwrap();
        profile(&large, listing, &storage, &options, &()).unwrap().strategies.remove(0)
    };
    let [none, system, application] = [Caching::None, Caching::System, Caching::Application].map(strategy);
    // The second run is the first one that what was read before can help.
    let read = |strategy: &StrategyProfile| (strategy.runs[0].bytes_read, strategy.runs[1].bytes_read);
    assert_eq!(read(&none), (none.storage_bytes, none.storage_bytes), "{none:?}");
    assert_eq!(read(&application), (0, 0), "{application:?}");
    let rate = |strategy: &StrategyProfile| strategy.runs[1].samples_per_second();
    assert!(none.runs[1].seconds > 0.95 * none.storage_bytes as f64 / BYTES_PER_SECOND, "{none:?}");
    for cached in [system, application] {
        assert!(rate(&cached) > 2.0 * rate(&none), "{cached:?} {none:?}");
    }
}

/// A few samples are short shards, which are read to their end again and again; the whole data set is read in large blocks, one after
/// the other. What is said of it must not pay for seeks that it does not have.
#[test]
fn few_samples_are_read_as_all_will_be() {
    let (photos, pipeline, work) = (photos(900), pipeline(SMALL), tempfile::tempdir().unwrap());
    let storage: StorageChoice = "custom:read=8MB/s,seek=30ms".parse().unwrap();
    let usual = options(&pipeline, work.path(), Caching::None);
    let strategies = vec![Strategy::parse(&pipeline, "pixel-centered").unwrap()];
    let options = ProfileOptions { run_seconds: 0.4, shards: 2, strategies, ..usual };
    let (_folder, dataset) = built(&pipeline, "pixel-centered", photos.path(), 2);
    let ratio = || {
        let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
        let profiled = profile(&pipeline, listing, &storage, &options, &()).unwrap();
        let said = summarize(&profiled, None).unwrap()[0].samples_per_second;
        let source: Arc<dyn Source> = Arc::new(Shards::new(Arc::clone(&dataset), storage.open(0).unwrap()));
        let options = LoadOptions { batch_size: 8, threads: 2, ..LoadOptions::default() };
        let begun = Instant::now();
        let samples: usize = start(source, options, 0).unwrap().map(|batch| batch.unwrap().len()).sum();
        said / (samples as f64 / begun.elapsed().as_secs_f64())
    };
    // A seek for each short shard would be 30 ms for 10 ms of reading. What else runs may disturb one half, hardly three times.
    let mut ratios = std::iter::repeat_with(ratio).take(3).inspect(|ratio| eprintln!("{ratio:.2} of what was loaded"));
    assert!(ratios.any(|ratio| (0.6..2.0).contains(&ratio)));
}

/// Keeps what is said.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Progress for Noted {
    fn note(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

type Change<'a> = &'a dyn Fn(ProfileOptions) -> ProfileOptions;

/// From how many seconds to how many a profile says that it takes, before it builds or runs anything, and how many it took.
fn announced(storage: &str, change: impl Fn(ProfileOptions) -> ProfileOptions) -> ([f64; 2], f64) {
    let (photos, pipeline, work) = (photos(120), pipeline(SMALL), tempfile::tempdir().unwrap());
    let usual = options(&pipeline, work.path(), Caching::None);
    let strategies = Strategy::all(&pipeline, &[]);
    let options = change(ProfileOptions { sample_count: 100, run_seconds: 0.3, strategies, ..usual });
    let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
    let noted = Noted::default();
    let found = profile(&pipeline, listing, &storage.parse().unwrap(), &options, &noted).unwrap();
    let noted = noted.0.into_inner().unwrap();
    let said = noted[0].split_once(" takes ").unwrap_or_else(|| panic!("{noted:?}")).1;
    let words: Vec<&str> = said.split([' ', ',']).collect();
    assert!(matches!(words[..], [_, "s", "to", _, "s", ..]), "{said}");
    ([words[0], words[3]].map(|number| number.parse().unwrap()), found.method.seconds)
}

#[test]
fn how_long_it_takes_is_said_before() {
    let candidates = || COMPRESSION_CANDIDATES.map(|name| name.parse().unwrap()).to_vec();
    let ways: [(&str, &str, Change<'_>); 2] = [
        ("local", "few runs", &|options| ProfileOptions { runs: Runs::Fast, ..options }),
        ("custom:read=20MB/s,seek=2ms", "whole, compressions", &|options| ProfileOptions {
            compressions: candidates(),
            ..options
        }),
    ];
    for (storage, what, change) in ways {
        // What else the machine does may make one of them longer.
        let is_near = || {
            let ([least, most], took) = announced(storage, change);
            eprintln!("{what} on {storage}: said {least:.1} s to {most:.1} s, took {took:.1} s");
            (0.7 * least..1.3 * most).contains(&took) && most <= 2.5 * least
        };
        assert!((0..3).any(|_| is_near()), "{what} on {storage}");
    }
}

#[test]
fn costs_count_per_sample_that_reaches_the_trainer() {
    let profile = run(TILES, "local", Caching::None);
    let tiles = profile.strategies[0].runs[0].samples;
    assert!(tiles > 24);
    for strategy in &profile.strategies {
        assert_eq!(strategy.runs[0].samples, tiles);
        let expected = strategy.storage_bytes as f64 / tiles as f64;
        assert!((strategy.bytes_per_sample - expected).abs() < 1e-6);
    }
    profile.check().unwrap();
}

#[test]
fn a_probe_measures_each_access_on_one_thread_and_on_all() {
    let folder = tempfile::tempdir().unwrap();
    let options = ProbeOptions {
        large_bytes: 2 << 20,
        small_files: 5,
        small_bytes: 20_000,
        seconds: 0.2,
        ..ProbeOptions::new(folder.path(), 2)
    };
    let found = probe(&*local(), &options, &()).unwrap();
    let kinds: Vec<(Access, usize)> = found.measurements.iter().map(|row| (row.access, row.threads)).collect();
    let all = [Access::LargeFile, Access::SmallFiles, Access::RandomBlocks];
    assert_eq!(kinds, all.into_iter().flat_map(|access| [(access, 1), (access, 2)]).collect::<Vec<_>>());
    assert!(found.measurements.iter().all(|row| row.rates.bytes_per_second > 0.0));
    assert!(found.memory_bytes_per_second > 100e6);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its files are gone");
}

#[test]
fn a_work_folder_keeps_what_was_in_it() {
    let photos = photos(8);
    let pipeline = pipeline(SMALL);
    let work = tempfile::tempdir().unwrap();
    std::fs::create_dir(work.path().join("resized")).unwrap();
    std::fs::write(work.path().join("resized/thesis.txt"), "mine").unwrap();
    let options = ProfileOptions {
        sample_count: 8,
        run_seconds: 0.0,
        runs: runs_of_each(1),
        threads: 1,
        shards: 1,
        batch_size: 8,
        caching: Caching::None,
        shuffle: Shuffle::No,
        seed: 1,
        on_error: OnError::Fail,
        work_folder: work.path().to_owned(),
        strategies: vec![Strategy::parse(&pipeline, "resized").unwrap()],
        compressions: Vec::new(),
        memory_bytes: 1 << 30,
    };
    let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
    profile(&pipeline, listing, &StorageChoice::Local, &options, &()).unwrap();
    assert_eq!(std::fs::read_to_string(work.path().join("resized/thesis.txt")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 1);
}

#[test]
fn without_runs_the_cost_model_answers() {
    for toml in [SMALL, TILES] {
        let photos = photos(60);
        let pipeline = pipeline(toml);
        let work = tempfile::tempdir().unwrap();
        let storage: StorageChoice = "custom:read=20MB/s,seek=2ms".parse().unwrap();
        let measure = |runs| {
            let options = ProfileOptions {
                sample_count: 60,
                run_seconds: 0.0,
                runs,
                threads: 2,
                shards: 2,
                batch_size: 8,
                caching: Caching::None,
                shuffle: Shuffle::No,
                seed: 1,
                on_error: OnError::Fail,
                work_folder: work.path().to_owned(),
                strategies: Strategy::all(&pipeline, &["gzip".parse().unwrap()]),
                compressions: Vec::new(),
                memory_bytes: 1 << 30,
            };
            let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
            profile(&pipeline, listing, &storage, &options, &()).unwrap()
        };
        let (fast, whole) = (measure(Runs::Fast), measure(runs_of_each(2)));
        assert!(fast.method.seconds > 0.0 && whole.method.seconds > 0.0);
        let [fast_summary, whole_summary] = [&fast, &whole].map(|profile| summarize(profile, None).unwrap());
        for (fast, whole) in fast_summary.iter().zip(&whole_summary) {
            assert_eq!(fast.name, whole.name);
            if fast.runs == 0 {
                assert!(Some(fast.samples_per_second) <= fast.predicted_samples_per_second, "{fast:?}");
            }
            let sizes = fast.storage_bytes_total as f64 / whole.storage_bytes_total as f64;
            assert!((0.8..1.25).contains(&sizes), "{}: storage {sizes}", fast.name);
            let epochs = fast.epoch_seconds_total * fast.samples_per_second
                / (whole.epoch_seconds_total * whole.samples_per_second);
            assert!((0.8..1.25).contains(&epochs), "{}: samples of an epoch {epochs}", fast.name);
        }
        let rate = |summary: &&Summary| summary.samples_per_second;
        let leader = fast_summary.iter().max_by(|one, other| rate(one).total_cmp(&rate(other))).unwrap();
        assert_eq!(leader.runs, 2, "what leads was run: {leader:?}");
        // Opening files is what this storage is bad at, whichever way it is found out.
        for summary in [&fast_summary, &whole_summary] {
            let slowest =
                summary.iter().min_by(|one, other| one.samples_per_second.total_cmp(&other.samples_per_second));
            assert_eq!(slowest.unwrap().name, "unprocessed");
        }
        assert!(fast.strategies.iter().any(|strategy| strategy.name == "concatenated+gzip"));
    }
}

/// On a storage so slow that bytes decide, what becomes smaller is compressed, and photos are left as they are; a fast one and a slow
/// profile agree on it, and what is run of it is built.
#[test]
fn what_a_slow_storage_gives_is_compressed_where_that_pays() {
    let (photos, pipeline, work) = (photos(120), pipeline(SMALL), tempfile::tempdir().unwrap());
    let storage: StorageChoice = "custom:read=2MB/s".parse().unwrap();
    let usual = options(&pipeline, work.path(), Caching::None);
    let compressions: Vec<_> = COMPRESSION_CANDIDATES.map(|name| name.parse().unwrap()).to_vec();
    for runs in [Runs::Fast, runs_of_each(1)] {
        let options = ProfileOptions {
            sample_count: 120,
            runs,
            strategies: Strategy::all(&pipeline, &[]),
            compressions: compressions.clone(),
            ..usual.clone()
        };
        let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
        let found = profile(&pipeline, listing, &storage, &options, &()).unwrap();
        found.check().unwrap();
        // Four splits are kept in records, and each has a cost of each.
        assert_eq!(found.compressions.len(), 4 * COMPRESSION_CANDIDATES.len());
        for cost in &found.compressions {
            assert!(cost.compress_bytes_per_second > 1e5 && cost.decompress_bytes_per_second > 1e6, "{cost:?}");
            assert!(cost.records > 0 && cost.bytes > 0 && cost.reader_share > 0.99, "{cost:?}");
        }
        let floats = found.compressions.iter().filter(|cost| cost.plain == "pixel-centered");
        assert!(floats.map(|cost| cost.ratio).fold(0.0, f64::max) > 1.5, "{:?}", found.compressions);
        let plan = plan(&found, &Objective::default()).unwrap();
        let choice = |name: &str| plan.compressions.iter().find(|choice| choice.strategy == name).unwrap();
        assert_eq!(plan.compressions.len(), 4);
        let floats = choice("pixel-centered");
        assert!(
            floats.compression.is_some() && floats.sentence.contains("× fewer bytes; inflating costs "),
            "{floats:?}"
        );
        assert!(floats.samples_per_second > 1.3 * floats.plain_samples_per_second, "{floats:?}");
        let compressed: Vec<_> = found.strategies.iter().filter(|strategy| strategy.name.contains('+')).collect();
        if runs == Runs::Fast {
            assert!(compressed.iter().any(|strategy| strategy.split.name == "pixel-centered"));
        } else {
            // No more than a quarter of what was asked for is measured besides.
            assert_eq!(compressed.len(), 1, "{compressed:?}");
            assert_eq!(compressed[0].runs.len(), 1);
        }
        let index = |name: &str| found.strategies.iter().position(|strategy| strategy.name == name).unwrap();
        for strategy in compressed {
            // One form, or those that the model cannot tell apart, of which there are four at the most.
            let behind = index(&strategy.name) - index(&strategy.split.name);
            assert!((1..=4).contains(&behind), "{} is {behind} behind its split", strategy.name);
        }
    }
}

/// A format that was asked for is measured alone, too: whatever it is.
#[test]
fn formats_that_were_asked_for_have_costs() {
    let (photos, pipeline, work) = (photos(30), pipeline(SMALL), tempfile::tempdir().unwrap());
    let formats = ["qoi", "zstd-3-record", "png+lz4", "zlib-6-rle-stream"].map(|name| name.parse().unwrap());
    let usual = options(&pipeline, work.path(), Caching::None);
    let strategies: Vec<_> =
        Strategy::all(&pipeline, &formats).into_iter().filter(|one| one.split.name == "decoded").collect();
    let options = ProfileOptions { runs: runs_of_each(1), strategies, ..usual };
    let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
    let found = profile(&pipeline, listing, &StorageChoice::Local, &options, &()).unwrap();
    let costs: Vec<(&str, &str)> =
        found.compressions.iter().map(|cost| (cost.strategy.as_str(), cost.compression.as_str())).collect();
    let expected =
        ["qoi", "zstd-3-record", "png+lz4", "zlib-6-rle-stream"].map(|name| (format!("decoded+{name}"), name));
    assert_eq!(costs, expected.each_ref().map(|(strategy, name)| (strategy.as_str(), *name)));
    let share = |at: usize| found.compressions[at].reader_share;
    assert!(share(0) <= 0.0 && share(1) <= 0.0 && share(3) >= 1.0, "{:?}", found.compressions);
    assert!(share(2) > 0.0 && share(2) < 1.0, "readers inflate, workers decode");
    for (cost, strategy) in found.compressions.iter().zip(&found.strategies[1..]) {
        let built = found.strategies[0].storage_bytes as f64 / strategy.storage_bytes as f64;
        assert!((cost.ratio / built - 1.0).abs() < 0.2, "{}: {} alone, {built} built", cost.strategy, cost.ratio);
    }
}
