//! One data set in several formats, and the caches.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use forebay_engine::build::{BuildOptions, MixBuild, MixReport};
use forebay_engine::load::{Batch, CachePolicy, Column, LoadOptions, Loader, OnError, Shuffle};
use forebay_engine::source::{Mixed, Source, open_dataset};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_plan::{MixFormat, MixLimits, STORED_ENTRY_BYTES as ENTRY_BYTES, mix_of};
use forebay_record::TarWriter;
use tempfile::TempDir;

use crate::support::{
    FailsAfter, SMALL, TILES, built, files, list, local, options, photo, photos, pipeline, resealed, shards,
};

const MIX: [(&str, f64); 2] = [("decoded+png", 0.3), ("decoded", 0.7)];

fn mix(pipeline: &Pipeline, formats: &[(&str, f64)], photos: &Path, seed: u64) -> MixBuild {
    let parse = |(name, share): &(&str, f64)| (Strategy::parse(pipeline, name).unwrap(), *share);
    MixBuild {
        pipeline: pipeline.clone(),
        formats: formats.iter().map(parse).collect(),
        seed,
        listing: list(pipeline, photos),
        storage: local(),
    }
}

fn built_mix(formats: &[(&str, f64)], photos: &Path) -> (TempDir, MixReport) {
    let output = tempfile::tempdir().unwrap();
    let report = mix(&pipeline(SMALL), formats, photos, 5).run(output.path(), &options(24), &()).unwrap();
    (output, report)
}

/// Every file of a folder, by its path.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                all.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    all
}

/// Some samples: key, label and pixels.
type Samples = Vec<(String, i64, Vec<u8>)>;

/// The samples of a batch.
fn samples(batch: &Batch) -> Samples {
    let column = |name: &str| &batch.columns.iter().find(|(found, _)| &**found == name).unwrap().1;
    let Column::Dense { spec, data, .. } = column("image") else { panic!("of one size") };
    let Column::Ints(labels) = column("label") else { panic!("numbers") };
    let bytes = spec.bytes();
    let pixels = |at: usize| data[at * bytes..(at + 1) * bytes].to_vec();
    batch.keys.iter().zip(labels).enumerate().map(|(at, (key, label))| (key.to_string(), *label, pixels(at))).collect()
}

fn epoch(loader: &Loader, number: u64) -> (Vec<Samples>, u64) {
    let mut epoch = loader.start(&loader.beginning_of(number)).unwrap();
    let batches = epoch.by_ref().map(|batch| samples(&batch.unwrap())).collect();
    (batches, epoch.bytes_read())
}

fn shuffled(cache: CachePolicy, threads: usize) -> LoadOptions {
    let shuffle = Shuffle::Window { bytes: 20_000 };
    LoadOptions { batch_size: 10, threads, shuffle, seed: 3, cache, memory_bytes: 64 << 20, ..LoadOptions::default() }
}

#[test]
fn a_mix_is_spread_over_classes_and_by_its_seed() {
    let photos = photos(150);
    let (output, report) = built_mix(&MIX, photos.path());
    let manifest = &report.manifest;
    assert_eq!((manifest.samples, manifest.formats[0].samples, manifest.formats[1].samples), (150, 45, 105));
    let source = Mixed::open(output.path(), &local(), OnError::Fail).unwrap();
    let listing = list(&pipeline(SMALL), photos.path());
    let mut classes = [[0_i64; 2]; 3];
    for (entry, format) in listing.entries().iter().zip(manifest.assigned()) {
        let class = ["ant", "bee", "cat"].iter().position(|class| entry.key.starts_with(class)).unwrap();
        classes[class][format] += 1;
    }
    assert!(classes.iter().all(|counts| (14..=16).contains(&counts[0]) && counts[0] + counts[1] == 50), "{classes:?}");
    assert_eq!(source.samples(), 150);
    let other = tempfile::tempdir().unwrap();
    let other = mix(&pipeline(SMALL), &MIX, photos.path(), 6).run(other.path(), &options(6), &()).unwrap();
    assert_ne!(other.manifest.assignment, manifest.assignment);
}

#[test]
fn a_mix_gives_the_same_bytes_after_a_kill_and_on_any_threads() {
    let photos = photos(60);
    let (whole, report) = built_mix(&MIX, photos.path());
    assert_eq!(report.shards_reused, 0);
    let expected = content(whole.path());
    let build = mix(&pipeline(SMALL), &MIX, photos.path(), 5);
    let again = build.run(whole.path(), &options(24), &()).unwrap();
    assert_eq!((again.shards_reused, again.shards), (report.shards, report.shards));
    assert_eq!(content(whole.path()), expected);
    // As a kill leaves it: one format is whole, of the other some shards are, and their notes.
    let part = tempfile::tempdir().unwrap();
    let storage = Arc::new(FailsAfter { inner: local(), reads_left: AtomicU64::new(40) });
    let failing = MixBuild { storage, ..build.clone() };
    assert!(failing.run(part.path(), &options(24), &()).is_err());
    assert!(!part.path().join("mix.json").exists() && part.path().join("format-00").exists());
    let options = BuildOptions { threads: 3, ..options(24) };
    let resumed = build.run(part.path(), &options, &()).unwrap();
    assert!(resumed.shards_reused > 0, "{}", resumed.shards_reused);
    assert!(content(part.path()) == expected);
}

/// Samples of two tar files may have the same key: those that are skipped in one of them are in no format, and all others are.
#[test]
fn samples_with_equal_keys_are_skipped_by_their_numbers() {
    let pipeline = pipeline(
        "name = \"tars\"\n[source]\nformat = \"tar\"\nfiles = \"*.tar\"\norder = \"sorted\"\n[[source.fields]]\n\
         field = \"image\"\nfrom = \"jpg\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [16, 16]\n",
    );
    let tars = tempfile::tempdir().unwrap();
    let write = |damaged: &[usize]| {
        for shard in 0..2 {
            let mut writer = TarWriter::new(Vec::new());
            for number in 0..20 {
                let is_damaged = shard == 1 && damaged.contains(&number);
                let content = if is_damaged { b"no picture".to_vec() } else { photo(shard * 20 + number) };
                writer.write(&format!("{number:04}"), "jpg", &content).unwrap();
            }
            std::fs::write(tars.path().join(format!("{shard}.tar")), writer.finish().unwrap()).unwrap();
        }
    };
    let build = |folder: &Path| {
        let options = BuildOptions { on_error: OnError::Skip, ..options(4) };
        let formats = [("decoded+png", 0.4), ("resized", 0.6)];
        mix(&pipeline, &formats, tars.path(), 5).run(folder, &options, &()).unwrap().manifest
    };
    write(&[]);
    let whole = tempfile::tempdir().unwrap();
    let mut expected = build(whole.path()).assignment;
    write(&[3, 7, 12]);
    for number in [12, 7, 3] {
        expected.remove(20 + number);
    }
    let output = tempfile::tempdir().unwrap();
    let manifest = build(output.path());
    assert_eq!((&manifest.assignment, manifest.samples, manifest.skipped_samples.len()), (&expected, 37, 3));
    let source = open_dataset(output.path(), local(), OnError::Fail).unwrap();
    assert_eq!(source.samples(), 37);
    // As a kill leaves it when all formats are whole.
    std::fs::remove_file(output.path().join("mix.json")).unwrap();
    assert_eq!(build(output.path()), manifest);
}

#[test]
fn a_mix_leaves_alone_what_is_not_its_own() {
    let photos = photos(30);
    let (output, _) = built_mix(&MIX, photos.path());
    let pipeline = pipeline(SMALL);
    let refused = |formats: &[(&str, f64)], overwrite: bool, folder: &Path| {
        let options = BuildOptions { overwrite, ..options(4) };
        mix(&pipeline, formats, photos.path(), 5).run(folder, &options, &()).unwrap_err().to_string()
    };
    let other = [("decoded", 0.5), ("resized", 0.5)];
    assert!(refused(&other, false, output.path()).contains("another data set in several formats"));
    let three = [("decoded+png", 0.3), ("decoded", 0.4), ("resized", 0.3)];
    let options = BuildOptions { overwrite: true, ..options(4) };
    mix(&pipeline, &three, photos.path(), 5).run(output.path(), &options, &()).unwrap();
    // The third folder goes, and nothing is left of it.
    mix(&pipeline, &other, photos.path(), 5).run(output.path(), &options, &()).unwrap();
    assert!(!output.path().join("format-02").exists());
    std::fs::write(output.path().join("notes.txt"), "mine").unwrap();
    assert!(refused(&other, true, output.path()).contains("notes.txt"));
    let (single, _) = built(&pipeline, "decoded", photos.path(), 2);
    assert!(refused(&other, true, single.path()).contains("in one format"));
}

/// A manifest that agrees with itself, and has a checksum that is right, but is not of these data sets.
#[test]
fn a_manifest_that_does_not_describe_its_data_sets_is_refused() {
    let photos = photos(20);
    let (output, report) = built_mix(&MIX, photos.path());
    let path = output.path().join("mix.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let open = |text: &str| {
        std::fs::write(&path, resealed(text)).unwrap();
        Mixed::open(output.path(), &local(), OnError::Fail).map(|_| ()).map_err(|error| error.to_string())
    };
    open(&text).unwrap();
    let assignment = &report.manifest.assignment;
    let [first, second] = [0, 1].map(|format| report.manifest.formats[format].samples);
    let moved = text
        .replace(assignment, &assignment.replacen('0', "1", 1))
        .replace(&format!("\"samples\": {first},"), &format!("\"samples\": {},", first - 1))
        .replace(&format!("\"samples\": {second},"), &format!("\"samples\": {},", second + 1));
    for wrong in [moved, text.replace("\"strategy\": \"decoded\"", "\"strategy\": \"resized\"")] {
        assert!(open(&wrong).unwrap_err().contains("does not describe the data set in `format-0"), "{wrong}");
    }
}

#[test]
fn what_cannot_be_mixed_is_refused() {
    let photos = photos(9);
    let fails = |toml: &str, formats: &[(&str, f64)]| {
        let output = tempfile::tempdir().unwrap();
        mix(&pipeline(toml), formats, photos.path(), 0).run(output.path(), &options(2), &()).unwrap_err().to_string()
    };
    assert!(fails(SMALL, &[]).contains("a mix of 0 formats"));
    assert!(fails(SMALL, &[("decoded", 0.0)]).contains("not above 0"));
    assert!(fails(SMALL, &[("decoded", 0.5), ("decoded", 0.5)]).contains("twice"));
    assert!(fails(SMALL, &[("decoded", 0.999), ("resized", 0.001)]).contains("so small that none"));
    assert!(fails(SMALL, &[("unprocessed", 0.5), ("decoded", 0.5)]).contains("nothing to build"));
    assert!(fails(TILES, &[("tiled", 0.5), ("decoded", 0.5)]).contains("changes the number of samples"));
}

/// Whatever its format and wherever it comes from, a sample is the one that a data set in one format gives.
#[test]
fn every_cache_gives_every_sample_once() {
    let photos = photos(120);
    let (_folder, dataset) = built(&pipeline(SMALL), "decoded", photos.path(), 24);
    let plain = Loader::new(shards(&dataset), shuffled(CachePolicy::None, 2)).unwrap();
    let (mixed, _) = built_mix(&[("decoded+png", 0.4), ("resized", 0.35), ("concatenated", 0.25)], photos.path());
    let mixed = open_dataset(mixed.path(), local(), OnError::Fail).unwrap();
    assert_eq!(mixed.formats(), "decoded+png, resized, concatenated");
    let files = files(&pipeline(SMALL), photos.path());
    let sorted = |batches: &[Samples]| {
        let mut all: Vec<_> = batches.iter().flatten().cloned().collect();
        all.sort();
        all
    };
    let expected: Vec<_> = (0..3).map(|number| sorted(&epoch(&plain, number).0)).collect();
    for source in [shards(&dataset), mixed, files] {
        let caches = ["none", "page", "minio:60KB", "liquid:60KB", "liquid:1GB", "minio:1GB", "auto:60KB", "auto:1GB"];
        for cache in caches {
            let cache: CachePolicy = cache.parse().unwrap();
            let mut orders = HashSet::new();
            for threads in [1, 4] {
                let loader = Loader::new(Arc::clone(&source), shuffled(cache, threads)).unwrap();
                let epochs: Vec<_> = (0..3).map(|number| epoch(&loader, number).0).collect();
                for (number, batches) in epochs.iter().enumerate() {
                    assert!(sorted(batches) == expected[number], "{cache} epoch {number} of {}", source.formats());
                }
                if let Some(cached) = loader.cached() {
                    assert!(cached.bytes <= cached.limit_bytes && cached.samples > 0 && cached.hits > 0, "{cached:?}");
                }
                orders.insert(format!("{epochs:?}"));
            }
            assert_eq!(orders.len(), 1, "threads do not matter");
        }
    }
}

/// Damaged samples are skipped in every epoch, whatever is kept of the others, and by whichever thread.
#[test]
fn damaged_samples_are_skipped_with_every_cache() {
    let photos = photos(120);
    let damaged: HashSet<String> = list(&pipeline(SMALL), photos.path())
        .entries()
        .iter()
        .step_by(17)
        .map(|entry| {
            std::fs::write(photos.path().join(&*entry.key), b"no picture").unwrap();
            entry.key.to_string()
        })
        .collect();
    // Their bytes are kept as they are: that they are damaged shows when they are decoded.
    let (mixed, _) = built_mix(&[("concatenated", 0.6), ("concatenated+zstd-1-record", 0.4)], photos.path());
    let mixed = open_dataset(mixed.path(), local(), OnError::Skip).unwrap();
    let (_folder, dataset) = built(&pipeline(SMALL), "concatenated", photos.path(), 24);
    for source in [shards(&dataset), mixed] {
        for cache in ["none", "minio:60KB", "liquid:60KB", "liquid:1GB"] {
            let mut orders = HashSet::new();
            for threads in [1, 4] {
                let options = LoadOptions { on_error: OnError::Skip, ..shuffled(cache.parse().unwrap(), threads) };
                let loader = Loader::new(Arc::clone(&source), options).unwrap();
                let mut orders_here = Vec::new();
                for number in 0..3 {
                    let mut epoch = loader.start(&loader.beginning_of(number)).unwrap();
                    let keys: Vec<String> = epoch
                        .by_ref()
                        .flat_map(|batch| batch.unwrap().keys.clone())
                        .map(|key| key.to_string())
                        .collect();
                    let found: HashSet<&String> = keys.iter().collect();
                    assert_eq!(
                        (keys.len(), found.len()),
                        (120 - damaged.len(), keys.len()),
                        "{cache} in epoch {number}"
                    );
                    let skipped: HashSet<String> = epoch.skipped_samples().iter().map(|one| one.key.clone()).collect();
                    assert_eq!(skipped, damaged, "{cache} in epoch {number}");
                    orders_here.push(keys);
                }
                orders.insert(orders_here);
            }
            assert_eq!(orders.len(), 1, "threads do not matter");
        }
    }
}

/// After the first epoch the buffer holds its share, and every epoch reads the rest.
#[test]
fn what_is_kept_is_not_read() {
    let photos = photos(200);
    let (_folder, dataset) = built(&pipeline(SMALL), "decoded+png", photos.path(), 40);
    let bytes: u64 = shards(&dataset).blocks().unwrap().iter().map(|block| block.bytes).sum();
    for name in ["liquid", "minio"] {
        for share in [0.0, 0.3, 0.6, 1.0] {
            let limit = ((bytes + 200 * ENTRY_BYTES) as f64 * share) as u64;
            let cache: CachePolicy = format!("{name}:{limit}").parse().unwrap();
            let loader = Loader::new(shards(&dataset), shuffled(cache, 2)).unwrap();
            for number in 0..4 {
                let (_, read) = epoch(&loader, number);
                let cached = loader.cached().unwrap();
                assert!(cached.bytes <= limit, "{} of {limit}", cached.bytes);
                let expected = if number == 0 { 1.0 } else { 1.0 - share };
                let found = read as f64 / bytes as f64;
                // A block of forty for the cut.
                let slack = 1.0 / 40.0;
                assert!((found - expected).abs() <= slack + 0.01, "{name} {share}: {found} in epoch {number}");
            }
        }
    }
}

/// What the plan says of a buffer is what the loader does, of samples so small that what each takes in addition is most of it, too.
#[test]
fn the_hit_ratio_of_small_samples_is_as_planned() {
    let photos = photos(240);
    let tiny = "name = \"tiny\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [4, 4]\n";
    let (_folder, dataset) = built(&pipeline(tiny), "resized", photos.path(), 60);
    let bytes: u64 = shards(&dataset).blocks().unwrap().iter().map(|block| block.bytes).sum();
    assert!(bytes < 240 * 300, "{bytes}");
    let buffer_bytes = bytes.midpoint(240 * ENTRY_BYTES);
    let format =
        MixFormat { format: "resized".to_owned(), bytes: bytes as f64 / 240.0, cpu_seconds: 1e-4, lossy: false };
    let limits = MixLimits {
        samples: 240,
        read_bytes_per_second: 1e6,
        cores: 1.0,
        buffer_bytes,
        max_storage_bytes: None,
        max_lossy_share: 0.0,
        trainer_samples_per_second: None,
    };
    let planned = mix_of(&[format], &[1.0], &limits).unwrap().hit_ratio;
    let options = LoadOptions {
        shuffle: Shuffle::Window { bytes: 2000 },
        ..shuffled(CachePolicy::Liquid { bytes: buffer_bytes }, 2)
    };
    let loader = Loader::new(shards(&dataset), options).unwrap();
    for number in 0..3 {
        let read = epoch(&loader, number).1 as f64 / bytes as f64;
        let expected = if number == 0 { 1.0 } else { 1.0 - planned };
        assert!((read - expected).abs() < 0.04, "{read} in epoch {number}, where {planned} stay in memory");
    }
}

/// Each rank has its streams, and its part of the buffer.
#[test]
fn ranks_share_the_buffer() {
    let photos = photos(240);
    let (_folder, dataset) = built(&pipeline(SMALL), "decoded+png", photos.path(), 60);
    let bytes: u64 = shards(&dataset).blocks().unwrap().iter().map(|block| block.bytes).sum();
    let cache = CachePolicy::Liquid { bytes: bytes / 2 + 120 * ENTRY_BYTES };
    let rank = |rank| LoadOptions { rank, world_size: 2, streams: 2, ..shuffled(cache, 2) };
    let ranks = [0, 1].map(|number| Loader::new(shards(&dataset), rank(number)).unwrap());
    for number in 0..3 {
        let epochs: Vec<_> = ranks.iter().map(|loader| epoch(loader, number)).collect();
        let keys: HashSet<String> =
            epochs.iter().flat_map(|(batches, _)| batches.concat()).map(|sample| sample.0).collect();
        assert_eq!(keys.len(), 240);
        let read = epochs.iter().map(|(_, read)| read).sum::<u64>() as f64 / bytes as f64;
        let expected = if number == 0 { 0.98..=1.02 } else { 0.48..=0.55 };
        assert!(expected.contains(&read), "{read} in epoch {number}");
        let fits = |loader: &Loader| loader.cached().is_some_and(|cached| cached.bytes <= cached.limit_bytes);
        assert!(ranks.iter().all(fits));
    }
}

/// A buffer that is lost, as after a resume, changes nothing but what is read.
#[test]
fn liquid_goes_on_from_any_position_with_any_ranks() {
    let photos = photos(120);
    let (output, _) = built_mix(&MIX, photos.path());
    let source = open_dataset(output.path(), local(), OnError::Fail).unwrap();
    let cache: CachePolicy = "liquid:100KB".parse().unwrap();
    let loader = Loader::new(Arc::clone(&source), shuffled(cache, 2)).unwrap();
    let whole: Vec<String> = (0..3)
        .map(|number| epoch(&loader, number).0)
        .next_back()
        .unwrap()
        .concat()
        .into_iter()
        .map(|sample| sample.0)
        .collect();
    let mut first = loader.start(&loader.beginning_of(2)).unwrap();
    let batches: Vec<Batch> = first.by_ref().take(4).map(Result::unwrap).collect();
    let state = first.state_after(&batches[3]);
    assert_eq!(state.samples_seen, 40);
    let mut rest: Vec<String> = Vec::new();
    for rank in 0..3 {
        let options = LoadOptions { rank, world_size: 3, ..shuffled(cache, 2) };
        let loader = Loader::new(Arc::clone(&source), options).unwrap();
        for batch in loader.start(&state).unwrap() {
            rest.extend(batch.unwrap().keys.iter().map(ToString::to_string));
        }
    }
    rest.sort();
    let mut expected = whole[40..].to_vec();
    expected.sort();
    assert_eq!(rest, expected);
    let other = Loader::new(source, shuffled("liquid:50KB".parse().unwrap(), 2)).unwrap();
    assert!(state.check(&other).unwrap_err().to_string().contains("100000"));
}

#[test]
fn caches_that_make_no_sense_are_refused() {
    let photos = photos(30);
    let (output, _) = built_mix(&MIX, photos.path());
    let source = open_dataset(output.path(), local(), OnError::Fail).unwrap();
    let fails = |cache: &str, shuffle| {
        let options = LoadOptions { shuffle, ..shuffled(cache.parse().unwrap(), 1) };
        Loader::new(Arc::clone(&source), options).err().unwrap().to_string()
    };
    assert!(fails("liquid:1MB", Shuffle::No).contains("requires shuffling"));
    assert!(fails("decoded:1MB", Shuffle::Window { bytes: 1000 }).contains("several formats"));
    // As they lie: one format after the other.
    let loader = Loader::new(source, LoadOptions { shuffle: Shuffle::No, ..shuffled(CachePolicy::None, 2) }).unwrap();
    assert_eq!(epoch(&loader, 0).0.concat().len(), 30);
}
