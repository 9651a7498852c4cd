//! Shards of others that are compressed as one stream: read in order, shuffled in a window, and used up to their damage.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use forebay_engine::Error;
use forebay_engine::build::Build;
use forebay_engine::data::{Dataset, Listing, ListingOptions};
use forebay_engine::load::{LoadOptions, OnError, Shuffle};
use forebay_engine::source::{Files, Source};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_record::{Feature, ShardCompressor, TarWriter, Writer, encode_example};
use tempfile::TempDir;

use crate::integrity::{Loaded, collect};
use crate::support::{local, options, photo, pipeline, shards as of_dataset, start};

const SHARDS: usize = 3;
const EACH: usize = 80;

fn on_shards(format: &str, order: &str) -> Pipeline {
    let from = if format == "tar" { "jpg" } else { "image/encoded" };
    pipeline(&format!(
        "name = \"shards\"\n[source]\nformat = \"{format}\"\nfiles = \"*\"\norder = \"{order}\"\n\
         [[source.fields]]\nfield = \"image\"\nfrom = \"{from}\"\n\
         [[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [16, 16]\n"
    ))
}

/// A shard, whose samples carry noise along so that it has several blocks.
fn shard(format: &str, number: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut noise = |bytes: usize| -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..bytes).map(|_| next()).collect()
    };
    let numbers = number * EACH..(number + 1) * EACH;
    if format == "tar" {
        let mut writer = TarWriter::new(Vec::new());
        for number in numbers {
            writer.write(&format!("{number:04}"), "jpg", &photo(number % 40)).unwrap();
            writer.write(&format!("{number:04}"), "bin", &noise(20_000)).unwrap();
        }
        return writer.finish().unwrap();
    }
    let mut writer = Writer::new(Vec::new());
    for number in numbers {
        let (picture, noise) = (photo(number % 40), noise(20_000));
        let features = [("image/encoded", Feature::Bytes(&[&picture])), ("noise", Feature::Bytes(&[&noise]))];
        writer.write(&encode_example(&features).unwrap()).unwrap();
    }
    writer.finish().unwrap()
}

fn compressed(content: &[u8], name: &str) -> Vec<u8> {
    let mut compressor = ShardCompressor::new(Vec::new(), name.parse().unwrap()).unwrap();
    compressor.write_all(content).unwrap();
    compressor.finish().unwrap().0
}

/// The shards of `format`, compressed as `name` says.
fn shards(format: &str, name: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..SHARDS {
        let content = shard(format, number);
        let content = name.map_or_else(|| content.clone(), |name| compressed(&content, name));
        std::fs::write(folder.path().join(format!("{number}.{format}")), content).unwrap();
    }
    folder
}

fn files(pipeline: &Pipeline, folder: &Path, on_error: OnError) -> Result<Files, Error> {
    let options = ListingOptions { on_error, ..ListingOptions::default() };
    Files::new(pipeline.clone(), Arc::new(Listing::scan_with(pipeline.source(), folder, &options)?), local())
}

fn load(
    pipeline: &Pipeline,
    folder: &Path,
    shuffle: Shuffle,
    threads: usize,
    on_error: OnError,
) -> Result<Loaded, Error> {
    let options = LoadOptions { batch_size: 7, threads, shuffle, on_error, ..LoadOptions::default() };
    collect(start(Arc::new(files(pipeline, folder, on_error)?), options, 0)?)
}

#[test]
fn compressed_shards_of_others_are_read_like_plain_ones() {
    for format in ["tar", "tfrecord"] {
        let pipeline = on_shards(format, "sorted");
        let plain = shards(format, None);
        let expected = load(&pipeline, plain.path(), Shuffle::No, 1, OnError::Fail).unwrap().samples;
        assert_eq!(expected.len(), SHARDS * EACH);
        for name in ["gzip-1", "zlib-1-stream", "zstd-3-stream", "zstd-3-long-checksum", "lz4-stream", "snappy"] {
            if format == "tar" && name.starts_with("zlib") {
                continue;
            }
            let folder = shards(format, Some(name));
            for (shuffle, threads) in
                [(Shuffle::No, 3), (Shuffle::Window { bytes: 1 << 20 }, 2), (Shuffle::Window { bytes: 9 << 20 }, 1)]
            {
                let found = load(&pipeline, folder.path(), shuffle, threads, OnError::Fail).unwrap();
                assert!(found.samples == expected, "{format} {name} {shuffle:?}");
            }
        }
        // A build reads them in order, too, and gives the same samples.
        let folder = shards(format, Some("gzip-1"));
        let output = tempfile::tempdir().unwrap();
        let build = Build {
            strategy: Strategy::parse(&pipeline, "resized").unwrap(),
            listing: Arc::new(Listing::scan(pipeline.source(), folder.path()).unwrap()),
            pipeline: pipeline.clone(),
            storage: local(),
        };
        build.run(output.path(), &options(4), &()).unwrap();
        let dataset = Arc::new(Dataset::open(output.path()).unwrap());
        let kept = collect(start(of_dataset(&dataset), LoadOptions::default(), 0).unwrap()).unwrap();
        assert!(kept.samples == expected, "{format}");
    }
}

#[test]
fn blocks_may_be_asked_for_in_any_order() {
    let pipeline = on_shards("tfrecord", "sorted");
    let (plain, folder) = (shards("tfrecord", None), shards("tfrecord", Some("zstd-1-stream")));
    let plain = files(&pipeline, plain.path(), OnError::Fail).unwrap();
    let inflated = files(&pipeline, folder.path(), OnError::Fail).unwrap();
    let blocks = inflated.blocks().unwrap();
    assert!(blocks.len() > 2 * SHARDS && blocks.iter().all(|block| block.sequence.is_some()));
    assert!(plain.blocks().unwrap().iter().all(|block| block.sequence.is_none()));
    let forward = blocks.iter();
    let pairs = blocks.chunks(2).flat_map(|pair| pair.iter().rev());
    for block in forward.chain(pairs).chain(blocks.iter().rev()) {
        let read = |source: &Files| {
            let contents = source.read(block.samples.clone()).contents;
            let samples = block.samples.clone().zip(contents);
            samples.map(|(number, content)| source.unpack(number, content.unwrap()).unwrap()).collect::<Vec<_>>()
        };
        let (expected, found) = (read(&plain), read(&inflated));
        assert!(expected.iter().map(|sample| &sample.key).eq(found.iter().map(|sample| &sample.key)));
        assert_eq!(format!("{expected:?}"), format!("{found:?}"));
    }
}

#[test]
fn a_damaged_stream_is_used_up_to_its_damage() {
    for (format, name) in [
        ("tar", "gzip-1"),
        ("tar", "zstd-1-checksum-stream"),
        ("tfrecord", "zlib-1"),
        ("tfrecord", "gzip-1-stream"),
        ("tfrecord", "lz4-stream"),
    ] {
        let pipeline = on_shards(format, "sorted");
        let folder = shards(format, Some(name));
        let whole = load(&pipeline, folder.path(), Shuffle::No, 2, OnError::Fail).unwrap().samples;
        let path = folder.path().join(format!("1.{format}"));
        let content = std::fs::read(&path).unwrap();
        let middle = content.len() / 2;
        let mut flipped = content.clone();
        flipped[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x5a);
        for (what, damaged) in [("cut", &content[..middle]), ("flipped", &flipped[..])] {
            std::fs::write(&path, damaged).unwrap();
            let failed = load(&pipeline, folder.path(), Shuffle::No, 2, OnError::Fail);
            let left = load(&pipeline, folder.path(), Shuffle::No, 2, OnError::Skip).unwrap();
            assert!(failed.is_err() && !left.list.is_empty(), "{format} {name} {what}: loss in silence");
            assert!(left.samples.len() >= 2 * EACH + EACH / 3, "{format} {name} {what}: {}", left.samples.len());
            // Noise that was changed may only show in the checksum at the end.
            assert!(what == "flipped" || left.samples.len() < whole.len());
            assert!(left.samples.iter().all(|(key, picture)| whole[key] == *picture), "{format} {name} {what}");
        }
    }
}

/// What the places within streams hold is part of the budget, however small that is.
#[test]
fn streams_stay_within_the_memory_budget() {
    let pipeline = on_shards("tfrecord", "sorted");
    let plain = shards("tfrecord", None);
    let expected = load(&pipeline, plain.path(), Shuffle::No, 1, OnError::Fail).unwrap().samples;
    for name in ["gzip-1-stream", "zstd-3-stream", "lz4-stream"] {
        let folder = shards("tfrecord", Some(name));
        for memory_bytes in [24 << 20, 256 << 20] {
            for shuffle in [Shuffle::No, Shuffle::Window { bytes: 1 << 20 }] {
                let source = Arc::new(files(&pipeline, folder.path(), OnError::Fail).unwrap());
                let options =
                    LoadOptions { batch_size: 7, threads: 3, shuffle, memory_bytes, ..LoadOptions::default() };
                let mut epoch = start(Arc::clone(&source) as Arc<dyn Source>, options, 0).unwrap();
                let samples: usize = epoch.by_ref().map(|batch| batch.unwrap().len()).sum();
                assert_eq!(samples, expected.len());
                let (held, peak) = (source.streams_bytes().0, epoch.memory_bytes_peak());
                assert!(held > 0 && peak >= held, "{name}: {held} of {peak}");
                // Each reader's place takes what its format takes, here windows of 2 MiB; more than that stays within the share.
                assert!(held <= (memory_bytes / 8).max(3 * (3 << 20)), "{name} {shuffle:?}: {held} of {memory_bytes}");
                assert!(peak <= memory_bytes, "{name} {shuffle:?}: {peak} of {memory_bytes}");
            }
        }
    }
}

/// Runs a program in a folder; whether it was there. That it fails is an error.
fn runs(folder: &Path, program: &[&str]) -> bool {
    match Command::new(program[0]).args(&program[1..]).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(error) => {
            eprintln!("skipped: {}: {error}", program[0]);
            false
        }
    }
}

/// What the usual programs make of shards is read, in either format.
#[test]
fn what_programs_compressed_is_read() {
    for format in ["tar", "tfrecord"] {
        let pipeline = on_shards(format, "sorted");
        let plain = shards(format, None);
        let expected = load(&pipeline, plain.path(), Shuffle::No, 1, OnError::Fail).unwrap().samples;
        for program in [
            &["gzip", "-9"][..],
            &["zstd", "-q", "--rm", "-19", "--long"],
            &["zstd", "-q", "--rm", "-3", "-T2", "--no-check"],
            &["lz4", "-q", "--rm", "-m"],
            // Blocks that refer to those before, and a checksum of each.
            &["lz4", "-q", "--rm", "-m", "-BD", "-BX", "-B4"],
        ] {
            let folder = shards(format, None);
            let names: Vec<String> = (0..SHARDS).map(|number| format!("{number}.{format}")).collect();
            let command: Vec<&str> = program.iter().copied().chain(names.iter().map(String::as_str)).collect();
            if runs(folder.path(), &command) {
                assert!(!folder.path().join(&names[0]).exists(), "{program:?} replaces what it compresses");
                // Samples of TFRecord are called by their shards.
                for entry in std::fs::read_dir(folder.path()).unwrap() {
                    let path = entry.unwrap().path();
                    std::fs::rename(&path, path.with_extension("")).unwrap();
                }
                let found = load(&pipeline, folder.path(), Shuffle::Window { bytes: 1 << 20 }, 2, OnError::Fail);
                assert!(found.unwrap().samples == expected, "{format} {program:?}");
            }
        }
    }
}

/// `tar` reads what is written here, and what it writes is read.
#[test]
fn tar_and_we_read_each_other() {
    let pipeline = on_shards("tar", "sorted");
    let plain = shards("tar", None);
    let expected = load(&pipeline, plain.path(), Shuffle::No, 1, OnError::Fail).unwrap().samples;
    for (option, name) in
        [("--gzip", "gzip-6-stream"), ("--gzip", "gzip"), ("--zstd", "zstd-3"), ("--zstd", "zstd-3-stream")]
    {
        let (ours, theirs) = (shards("tar", Some(name)), tempfile::tempdir().unwrap());
        for number in 0..SHARDS {
            let (from, to) = (ours.path().join(format!("{number}.tar")), theirs.path().join(format!("{number}.tar")));
            let members = tempfile::tempdir().unwrap();
            if !runs(members.path(), &["tar", option, "-xf", from.to_str().unwrap()]) {
                return;
            }
            assert_eq!(std::fs::read_dir(members.path()).unwrap().count(), 2 * EACH, "{name}");
            runs(members.path(), &["tar", option, "--sort=name", "-cf", to.to_str().unwrap(), "."]);
        }
        let found = load(&pipeline, theirs.path(), Shuffle::No, 2, OnError::Fail).unwrap().samples;
        // It calls them `./0000`.
        let found = found.into_iter().map(|(key, picture)| (key.trim_start_matches("./").to_owned(), picture));
        assert!(found.eq(expected.clone()), "{option}");
    }
}

/// Reads compressed shards, and writes them again.
const WEBDATASET: &str = "
import io, sys
import webdataset as wds
for number in range(3):
    name = f'{number}.tar'
    source = f'pipe:zstd -dcq {name}' if sys.argv[1] == 'zstd' else name + '.gz'
    with wds.TarWriter(f'theirs/{name}.gz', compress=True) as writer:
        for sample in wds.WebDataset(source, shardshuffle=False):
            writer.write({key: sample[key] for key in ('__key__', 'jpg', 'bin')})
";

#[test]
fn webdataset_and_we_read_each_other() {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python").into_os_string();
    let python = std::env::var_os("FOREBAY_PYTHON").unwrap_or_else(installed);
    let imports = Command::new(&python).args(["-c", "import webdataset"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: `{}` cannot import webdataset; set FOREBAY_PYTHON to one that can", python.display());
        return;
    }
    let pipeline = on_shards("tar", "sorted");
    let plain = shards("tar", None);
    let expected = load(&pipeline, plain.path(), Shuffle::No, 1, OnError::Fail).unwrap().samples;
    for (name, kind) in [("gzip", "gzip"), ("gzip-6-stream", "gzip"), ("zstd-3", "zstd"), ("zstd-3-stream", "zstd")] {
        let folder = shards("tar", Some(name));
        if kind == "gzip" {
            for number in 0..SHARDS {
                let path = folder.path().join(format!("{number}.tar"));
                std::fs::rename(&path, path.with_extension("tar.gz")).unwrap();
            }
        } else if !runs(folder.path(), &["zstd", "--version"]) {
            continue;
        }
        let theirs = folder.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        assert!(runs(folder.path(), &[python.to_str().unwrap(), "-c", WEBDATASET, kind]));
        let found = load(&pipeline, &theirs, Shuffle::No, 2, OnError::Fail).unwrap().samples;
        assert!(found == expected, "{name}");
    }
}

#[test]
fn a_bomb_stops_at_its_limit() {
    // The others cannot make so little of so much: DEFLATE a thousandth.
    for (compression, bytes_max) in [("zstd-1-stream", 1 << 20), ("gzip-9-stream", 2 << 20)] {
        let folder = tempfile::tempdir().unwrap();
        let mut compressor = ShardCompressor::new(Vec::new(), compression.parse().unwrap()).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..1100 {
            compressor.write_all(&zeros).unwrap();
        }
        let bomb = compressor.finish().unwrap().0;
        assert!(bomb.len() < bytes_max);
        std::fs::write(folder.path().join("0.tar"), &bomb).unwrap();
        for format in ["tar", "tfrecord"] {
            let error = files(&on_shards(format, "sorted"), folder.path(), OnError::Fail).err().unwrap().to_string();
            assert!(
                error.contains("it inflates to more than ") || error.contains("bytes searched"),
                "{compression}: {error}"
            );
        }
    }
}

#[test]
fn a_shuffled_listing_of_compressed_shards_is_refused() {
    let folder = shards("tar", Some("gzip-1"));
    let error = files(&on_shards("tar", "shuffled"), folder.path(), OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("can only be read in order") && error.contains("hint: leave out"), "{error}");
}
