//! With `--on-error skip` a damaged shard costs what cannot be read of it, and nothing else.

use std::path::Path;
use std::sync::Arc;

use forebay_engine::Error;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Listing, ListingOptions, Skipped};
use forebay_engine::load::{LoadOptions, OnError};
use forebay_engine::source::Files;
use forebay_pipeline::{Pipeline, Random, Strategy};
use forebay_record::{Feature, Index, TarWriter, Writer, encode_example};
use tempfile::TempDir;

use crate::integrity::{Loaded, collect, load};
use crate::support::{SMALL, built, local, options, photo, photos, pipeline, start};

const SHARDS: usize = 4;
const EACH: usize = 10;

/// Pictures of one size, out of shards of `format`. No step is random: draws follow from a sample's number, which is another behind what
/// was lost.
fn on_shards(format: &str) -> Pipeline {
    let from = if format == "tar" { "jpg" } else { "image/encoded" };
    pipeline(&format!(
        "name = \"shards\"\n[source]\nformat = \"{format}\"\nfiles = \"*.{format}\"\norder = \"sorted\"\n\
         [[source.fields]]\nfield = \"image\"\nfrom = \"{from}\"\n\
         [[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [16, 16]\n"
    ))
}

/// Four shards of ten pictures.
fn shards(format: &str, with_index: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for shard in 0..SHARDS {
        let path = folder.path().join(format!("{shard}.{format}"));
        let numbers = shard * EACH..(shard + 1) * EACH;
        if format == "tar" {
            let mut writer = TarWriter::new(Vec::new());
            for number in numbers {
                writer.write(&format!("{number:04}"), "jpg", &photo(number)).unwrap();
                writer.write(&format!("{number:04}"), "txt", b"words").unwrap();
            }
            std::fs::write(path, writer.finish().unwrap()).unwrap();
        } else {
            let (mut writer, mut index) = (Writer::new(Vec::new()), Index::new());
            for number in numbers {
                let picture = photo(number);
                let example = encode_example(&[("image/encoded", Feature::Bytes(&[&picture]))]).unwrap();
                index.push(writer.write(&example).unwrap()).unwrap();
            }
            std::fs::write(&path, writer.finish().unwrap()).unwrap();
            if with_index {
                std::fs::write(path.with_added_extension("idx"), index.to_text()).unwrap();
            }
        }
    }
    folder
}

fn load_source(pipeline: &Pipeline, folder: &Path, on_error: OnError) -> Result<Loaded, Error> {
    let listing = Arc::new(Listing::scan_with(
        pipeline.source(),
        folder,
        &ListingOptions { on_error, ..ListingOptions::default() },
    )?);
    let options = LoadOptions { batch_size: 7, threads: 2, on_error, ..LoadOptions::default() };
    collect(start(Arc::new(Files::new(pipeline.clone(), listing, local())?), options, 0)?)
}

/// The pictures alone: without an index, what is called after its number is called otherwise behind what was lost.
fn pictures(loaded: &Loaded) -> Vec<&[u8]> {
    let mut pictures: Vec<&[u8]> = loaded.samples.values().map(Vec::as_slice).collect();
    pictures.sort_unstable();
    pictures
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_truncated_tar_costs_what_was_cut() {
    let folder = shards("tar", false);
    let pipeline = on_shards("tar");
    assert_eq!(load_source(&pipeline, folder.path(), OnError::Fail).unwrap().samples.len(), 40);
    edit(&folder.path().join("1.tar"), |bytes| bytes.truncate(bytes.len() / 2));
    let error = load_source(&pipeline, folder.path(), OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("of `1.tar` at byte") && error.contains("the tar is damaged"), "{error}");
    let left = load_source(&pipeline, folder.path(), OnError::Skip).unwrap();
    assert!((33..36).contains(&left.samples.len()), "{}", left.samples.len());
    assert_eq!((left.skipped, left.list.len(), left.list[0].samples), (1, 1, None), "nobody knows how many");
    assert_eq!(left.list[0].key, "1.tar");

    // The same for a build, whose manifest says so.
    let run = |on_error| {
        let output = tempfile::tempdir().unwrap();
        let build = Build {
            strategy: Strategy::parse(&pipeline, "resized").unwrap(),
            listing: Arc::new(
                Listing::scan_with(
                    pipeline.source(),
                    folder.path(),
                    &ListingOptions { on_error: OnError::Skip, ..ListingOptions::default() },
                )
                .unwrap(),
            ),
            pipeline: pipeline.clone(),
            storage: local(),
        };
        build.run(output.path(), &BuildOptions { on_error, ..options(2) }, &())
    };
    let manifest = run(OnError::Skip).unwrap().manifest;
    assert_eq!((manifest.samples as usize, manifest.skipped_samples), (left.samples.len(), left.list));
    assert!(run(OnError::Fail).unwrap_err().to_string().contains("pass the same `on_error` to both"));
}

#[test]
fn a_bad_length_costs_its_record() {
    for with_index in [true, false] {
        let folder = shards("tfrecord", with_index);
        let pipeline = on_shards("tfrecord");
        let whole = load_source(&pipeline, folder.path(), OnError::Fail).unwrap();
        assert_eq!(whole.samples.len(), 40);
        let path = folder.path().join("2.tfrecord");
        let index = Index::scan_headers(std::fs::File::open(&path).unwrap(), "2").unwrap();
        edit(&path, |bytes| bytes[index.get(4).unwrap().offset as usize] ^= 0x40);
        let error = load_source(&pipeline, folder.path(), OnError::Fail).err().unwrap().to_string();
        assert!(error.contains("record 4 of `2.tfrecord` at byte") && error.contains("length checksum"), "{error}");
        let left = load_source(&pipeline, folder.path(), OnError::Skip).unwrap();
        assert_eq!((left.samples.len(), left.skipped, left.list.len()), (39, 1, 1));
        assert_eq!(left.list[0].samples, with_index.then_some(1));
        let all = pictures(&whole);
        assert!(pictures(&left).iter().all(|picture| all.binary_search(picture).is_ok()));

        // Cut: the index says how many that costs.
        edit(&path, |bytes| bytes.truncate(index.get(7).unwrap().offset as usize + 30));
        let left = load_source(&pipeline, folder.path(), OnError::Skip).unwrap();
        assert_eq!(left.samples.len(), 36, "{:?}", left.list);
        assert_eq!(left.skipped, if with_index { 4 } else { 2 }, "{:?}", left.list);
    }
}

#[test]
fn a_broken_index_of_others_costs_nothing() {
    let folder = shards("tfrecord", true);
    let pipeline = on_shards("tfrecord");
    std::fs::write(folder.path().join("0.tfrecord.idx"), "0 what\n").unwrap();
    assert!(load_source(&pipeline, folder.path(), OnError::Fail).is_err());
    let left = load_source(&pipeline, folder.path(), OnError::Skip).unwrap();
    assert_eq!((left.samples.len(), left.skipped, left.list[0].samples), (40, 0, Some(0)));
    assert!(left.list[0].reason.contains("0.tfrecord.idx"), "{:?}", left.list);
    // One that was cut between two lines looks whole.
    let text = std::fs::read_to_string(folder.path().join("1.tfrecord.idx")).unwrap();
    let cut: String = text.split_inclusive('\n').take(6).collect();
    std::fs::write(folder.path().join("0.tfrecord.idx"), cut).unwrap();
    std::fs::copy(folder.path().join("1.tfrecord"), folder.path().join("0.tfrecord")).unwrap();
    let error = load_source(&pipeline, folder.path(), OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("leaves out bytes"), "{error}");
    let left = load_source(&pipeline, folder.path(), OnError::Skip).unwrap();
    assert_eq!((left.samples.len(), left.skipped, left.list[0].samples), (40, 0, Some(0)));
}

#[test]
fn damage_to_a_data_set_of_ours_costs_what_cannot_be_read() {
    let photos = photos(40);
    let pipeline = pipeline(SMALL);
    for split in ["resized", "resized+gzip"] {
        let (output, dataset) = built(&pipeline, split, photos.path(), SHARDS);
        let folder = output.path();
        let whole = load(folder, OnError::Fail).unwrap().samples;
        let check = |what: &str, lost: usize| {
            let error = load(folder, OnError::Fail).err().unwrap().to_string();
            assert!(error.contains("shard-00002.tfrecord"), "{what}: {error}");
            let left = load(folder, OnError::Skip).unwrap();
            assert_eq!(
                (left.samples.len(), left.skipped as usize),
                (40 - lost, lost),
                "{split} {what}: {:?}",
                left.list
            );
            assert!(left.samples.iter().all(|(key, picture)| whole[key] == *picture), "{what}");
            assert_eq!(Skipped::count(&left.list) as usize, lost, "{what}");
            assert!(left.list.iter().all(|skipped| skipped.key.starts_with("shard-00002.tfrecord")), "{what}");
            left.list
        };
        let file = |suffix: &str| folder.join(format!("shard-00002.tfrecord{suffix}"));
        let keep = |suffix: &str| (file(suffix), std::fs::read(file(suffix)).unwrap());
        let restore = |(path, bytes): (std::path::PathBuf, Vec<u8>)| std::fs::write(path, bytes).unwrap();

        // A table that is broken or gone costs nothing: the shard itself is whole.
        for suffix in [".idx", ".crc"] {
            let kept = keep(suffix);
            std::fs::write(file(suffix), "rubbish").unwrap();
            assert_eq!(check("a broken table", 0)[0].samples, Some(0));
            std::fs::remove_file(file(suffix)).unwrap();
            check("a missing table", 0);
            restore(kept);
        }
        let kept = keep("");
        std::fs::remove_file(file("")).unwrap();
        let list = check("a missing shard", 10);
        assert_eq!((list.len(), list[0].samples), (1, Some(10)), "one loss");
        restore(kept);
        let (kept, index) = (keep(""), keep(".idx"));
        let third = dataset.index(2).unwrap().get(3).unwrap();
        if split == "resized" {
            edit(&file(""), |bytes| bytes.truncate(third.offset as usize + 30));
            check("a cut shard", 7);
        } else {
            // All of it is one block.
            edit(&file(""), |bytes| bytes.truncate(100));
            check("a cut compressed shard", 10);
            let blocks = keep(".blocks");
            std::fs::remove_file(file(".blocks")).unwrap();
            check("no blocks", 10);
            restore(blocks);
        }
        std::fs::remove_file(file(".idx")).unwrap();
        let list = check("a cut shard without its index", 10);
        assert_eq!(list.len(), 1, "{list:?}");
        restore(kept);
        restore(index);
        assert_eq!(load(folder, OnError::Fail).unwrap().samples, whole);
    }
}

#[test]
fn skipping_everything_is_a_failure() {
    let photos = photos(6);
    let pipeline = pipeline(SMALL);
    let (output, _) = built(&pipeline, "resized", photos.path(), 2);
    for shard in 0..2 {
        std::fs::remove_file(output.path().join(format!("shard-0000{shard}.tfrecord"))).unwrap();
    }
    let error = load(output.path(), OnError::Skip).err().unwrap();
    assert!(matches!(error, Error::AllSkipped { samples: 6, .. }), "{error}");
    assert!(
        error.to_string().contains("not one of 6 samples could be read") && error.to_string().contains("shard-0000")
    );
    for number in 0..6 {
        let path = photos.path().join(["ant", "bee", "cat"][number % 3]).join(format!("{number:04}.jpg"));
        std::fs::write(path, "no image").unwrap();
    }
    let error = load_source(&pipeline, photos.path(), OnError::Skip).err().unwrap();
    assert!(matches!(error, Error::AllSkipped { samples: 6, .. }), "{error}");
    assert!(error.to_string().contains("step `decode`"), "{error}");
    let build = crate::support::build(&pipeline, "decoded", photos.path(), local());
    let skip = BuildOptions { on_error: OnError::Skip, ..options(2) };
    let error = build.run(&output.path().join("new"), &skip, &()).unwrap_err();
    assert!(matches!(error, Error::AllSkipped { samples: 6, .. }), "{error}");
    let tars = shards("tar", false);
    for shard in 0..SHARDS {
        std::fs::write(tars.path().join(format!("{shard}.tar")), "no tar, and long enough to be none ".repeat(50))
            .unwrap();
    }
    let error = load_source(&on_shards("tar"), tars.path(), OnError::Skip).err().unwrap();
    assert!(matches!(error, Error::AllSkipped { samples: 4, .. }), "{error}");
}

/// Damage at random offsets of random files: what comes is always among what there was, the same to the byte, and where it is
/// known how many there were, what is lost is all that does not come.
#[test]
fn random_damage_never_changes_a_sample() {
    let mut random = Random::from_parts(&[11]);
    let mut below = move |limit: usize| random.below(limit.max(1));
    let mut damage = |folder: &Path| {
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.file_name().is_some_and(|name| name != "dataset.json"));
        files.sort();
        let path = files[below(files.len())].clone();
        let whole = std::fs::read(&path).unwrap();
        let at = below(whole.len());
        let mut bytes = whole.clone();
        match below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << below(8),
            2 => bytes[at..].iter_mut().take(600).for_each(|byte| *byte = 0),
            _ => drop(bytes.splice(at..at, [7; 100])),
        }
        std::fs::write(&path, bytes).unwrap();
        (path, whole)
    };
    let photos = photos(40);
    let small = pipeline(SMALL);
    let (plain, _) = built(&small, "resized", photos.path(), SHARDS);
    let by = |format: &str| built(&small, &format!("resized+{format}"), photos.path(), SHARDS).0;
    let compressed = ["zlib", "zstd-3", "lz4", "snappy", "zlib-1-stream"].map(by);
    let by_record = ["gzip-6-record", "zstd-3-record", "lz4-record", "snappy-record"].map(by);
    for output in std::iter::once(&plain).chain(&compressed).chain(&by_record) {
        let whole = load(output.path(), OnError::Fail).unwrap().samples;
        for round in 0..30 {
            let (path, content) = damage(output.path());
            let left = load(output.path(), OnError::Skip).unwrap();
            assert_eq!(left.samples.len() as u64 + left.skipped, 40, "{round} {}: {:?}", path.display(), left.list);
            assert!(left.samples.iter().all(|(key, picture)| whole[key] == *picture), "{round} {}", path.display());
            std::fs::write(path, content).unwrap();
        }
    }
    for (format, with_index) in [("tar", false), ("tfrecord", true), ("tfrecord", false)] {
        let (folder, pipeline) = (shards(format, with_index), on_shards(format));
        let whole = load_source(&pipeline, folder.path(), OnError::Fail).unwrap();
        let all = pictures(&whole);
        for round in 0..60 {
            let (path, content) = damage(folder.path());
            let left = load_source(&pipeline, folder.path(), OnError::Skip).unwrap();
            let what = format!("{format} {round} {}: {:?}", path.display(), left.list);
            assert!(left.samples.len() == 40 || !left.list.is_empty(), "{what}: loss in silence");
            if left.list.iter().all(|skipped| skipped.samples.is_some()) && format == "tfrecord" {
                assert_eq!(left.samples.len() as u64 + left.skipped, 40, "{what}");
            }
            // A tar has no checksum of what its members hold: there a changed picture is the decoder's to find.
            if format == "tfrecord" {
                assert!(pictures(&left).iter().all(|picture| all.binary_search(picture).is_ok()), "{what}");
            }
            std::fs::write(path, content).unwrap();
        }
    }
}
