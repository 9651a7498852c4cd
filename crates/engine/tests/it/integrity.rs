//! Nothing that was changed since it was built gets through: not a bit of a manifest or a table, not a whole record in another
//! record's place, and not a shard that a resumed build finds there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use forebay_codec::Tensor;
use forebay_engine::data::{Dataset, Skipped};
use forebay_engine::load::{Column, Epoch, LoadOptions, OnError, Shuffle};
use forebay_engine::source::Files;
use forebay_engine::{Error, Progress};
use forebay_record::{Index, Writer};
use tempfile::TempDir;

use crate::support::{FailsAfter, SMALL, build, built, local, options, photos, pipeline, resealed, shards, start};

/// What came of a data set, by key, and what was skipped.
pub(crate) struct Loaded {
    pub(crate) samples: BTreeMap<String, Vec<u8>>,
    pub(crate) skipped: u64,
    pub(crate) list: Vec<Skipped>,
}

/// Loads one epoch of what is in `folder`; the pictures are those that are stored, so that content can be compared.
pub(crate) fn load(folder: &Path, on_error: OnError) -> Result<Loaded, Error> {
    let dataset = Arc::new(Dataset::open_on_error(folder, on_error)?);
    let shuffle = Shuffle::Window { bytes: 1 << 20 };
    let options = LoadOptions { batch_size: 7, threads: 2, shuffle, seed: 3, on_error, ..LoadOptions::default() };
    collect(start(shards(&dataset), options, 0)?)
}

/// Takes every batch of an epoch.
pub(crate) fn collect(mut loader: Epoch) -> Result<Loaded, Error> {
    let mut samples = BTreeMap::new();
    for batch in loader.by_ref() {
        let batch = batch?;
        let Some(Column::Dense { data, .. }) = batch.column("image") else { panic!("pixels") };
        let each = data.len() / batch.len().max(1);
        for (key, picture) in batch.keys.iter().zip(data.chunks(each.max(1))) {
            assert!(samples.insert(key.to_string(), picture.to_vec()).is_none(), "{key} came twice");
        }
    }
    Ok(Loaded { samples, skipped: loader.skipped(), list: loader.skipped_samples() })
}

/// Whether `inspect --verify` would find something, or could not even open it.
fn is_found_by_verifying(folder: &Path) -> bool {
    let Ok(dataset) = Dataset::open_on_error(folder, OnError::Skip) else { return true };
    (0..dataset.manifest().shards.len()).any(|shard| !dataset.verify_shard(shard).unwrap().is_empty())
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

fn write(folder: &Path, name: &str, content: &[u8]) {
    std::fs::write(folder.join(name), content).unwrap();
}

#[test]
fn no_flipped_bit_of_a_manifest_or_a_table_passes() {
    let photos = photos(24);
    let (output, dataset) = built(&pipeline(SMALL), "decoded+gzip", photos.path(), 1);
    let folder = output.path();
    assert!(!is_found_by_verifying(folder));
    drop(dataset);
    // As it was found: another size of a crop.
    let text = String::from_utf8(read(folder, "dataset.json")).unwrap();
    assert!(text.contains("\"size\": 16"));
    write(folder, "dataset.json", text.replace("\"size\": 16", "\"size\": 17").as_bytes());
    let error = load(folder, OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("dataset.json` has checksum") && error.contains("damaged or edited"), "{error}");
    assert!(load(folder, OnError::Skip).is_err(), "without a manifest nothing is known");
    write(folder, "dataset.json", text.as_bytes());
    let mut flips = 0;
    for name in ["dataset.json", "shard-00000.tfrecord.idx", "shard-00000.tfrecord.blocks", "shard-00000.tfrecord.crc"]
    {
        let whole = read(folder, name);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            write(folder, name, &flipped);
            let opened = Dataset::open(folder).and_then(|dataset| dataset.index(0).map(drop));
            assert!(opened.is_err(), "bit {bit} of {name}");
            // Reading all of the shard takes longer, and has the same tables to go by.
            assert!(bit % 97 != 0 || is_found_by_verifying(folder), "bit {bit} of {name}");
            flips += 1;
        }
        write(folder, name, &whole);
    }
    assert!(flips > 1600, "{flips}");
    eprintln!("{flips} bits flipped, none passed");
    assert!(!is_found_by_verifying(folder));
}

#[test]
fn a_shard_over_another_is_found_at_its_first_record() {
    // As it was found: pictures of one size, 20 in each shard.
    let photos = tempfile::tempdir().unwrap();
    std::fs::create_dir(photos.path().join("ant")).unwrap();
    for number in 0..40 {
        let name = photos.path().join(format!("ant/{number:04}.jpg"));
        std::fs::write(name, crate::support::photo(number * 35)).unwrap();
    }
    let (output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    let folder = output.path();
    let whole = load(folder, OnError::Fail).unwrap().samples;
    assert_eq!(dataset.manifest().shards[0].bytes, dataset.manifest().shards[1].bytes);
    std::fs::copy(dataset.shard_path(0), dataset.shard_path(1)).unwrap();
    let error = load(folder, OnError::Fail).err().unwrap().to_string();
    assert!(
        error.contains("of `shard-00001.tfrecord`") && error.contains("not the record that was written here"),
        "{error}"
    );
    let left = load(folder, OnError::Skip).unwrap();
    assert_eq!((left.samples.len(), left.skipped, left.list.len()), (20, 20, 20));
    assert!(left.list.iter().all(|skipped| skipped.key.starts_with("shard-00001.tfrecord:")), "{:?}", left.list);
    assert!(left.samples.iter().all(|(key, picture)| whole[key] == *picture));
    assert!(is_found_by_verifying(folder));

    // With the tables that belong to it.
    for table in ["idx", "crc"] {
        let name = |shard| format!("shard-0000{shard}.tfrecord.{table}");
        write(folder, &name(1), &read(folder, &name(0)));
    }
    let error = load(folder, OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("shard-00001.tfrecord.") && error.contains("damaged or replaced"), "{error}");
    let left = load(folder, OnError::Skip).unwrap();
    assert_eq!((left.samples.len(), left.skipped, left.list.len()), (20, 20, 1));
    assert_eq!((left.list[0].key.as_str(), left.list[0].samples), ("shard-00001.tfrecord", Some(20)));
}

#[test]
fn a_shard_of_another_data_set_is_found() {
    let (mine, theirs) = (photos(20), photos(20));
    // The same names and sizes, another picture.
    std::fs::write(theirs.path().join("ant/0000.jpg"), crate::support::photo(35)).unwrap();
    let (output, dataset) = built(&pipeline(SMALL), "resized", mine.path(), 1);
    let (other, _) = built(&pipeline(SMALL), "resized", theirs.path(), 1);
    assert_eq!(read(other.path(), "shard-00000.tfrecord").len() as u64, dataset.manifest().bytes);
    write(output.path(), "shard-00000.tfrecord", &read(other.path(), "shard-00000.tfrecord"));
    let left = load(output.path(), OnError::Skip).unwrap();
    assert_eq!((left.samples.len(), left.skipped), (19, 1), "those that are the same are the same");
    let error = load(output.path(), OnError::Fail).err().unwrap().to_string();
    assert!(
        error.contains("of `shard-00000.tfrecord`") && error.contains("not the record that was written here"),
        "{error}"
    );
    assert!(is_found_by_verifying(output.path()));
}

#[test]
fn swapped_records_are_found_though_the_index_matches() {
    let photos = photos(20);
    let (output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 1);
    let folder = output.path();
    let shard = read(folder, "shard-00000.tfrecord");
    let mut locations: Vec<_> = dataset.index(0).unwrap().iter().collect();
    locations.swap(3, 11);
    let (mut writer, mut index) = (Writer::new(Vec::new()), Index::new());
    for location in locations {
        let payload = &shard[location.offset as usize + 12..location.end() as usize - 4];
        index.push(writer.write(payload).unwrap()).unwrap();
    }
    write(folder, "shard-00000.tfrecord", &writer.finish().unwrap());
    assert!(is_found_by_verifying(folder));
    // Whoever swaps records may write an index for them, and may even put its checksum into the manifest.
    write(folder, "shard-00000.tfrecord.idx", index.to_text().as_bytes());
    let manifest = String::from_utf8(read(folder, "dataset.json")).unwrap();
    let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(index.to_text().as_bytes()));
    let manifest = resealed(&manifest.replace(&dataset.manifest().shards[0].index_xxh3, &sum));
    write(folder, "dataset.json", manifest.as_bytes());
    let error = load(folder, OnError::Fail).err().unwrap().to_string();
    assert!(error.contains("not the record that was written here"), "{error}");
    let left = load(folder, OnError::Skip).unwrap();
    let mut keys: Vec<&str> = left.list.iter().map(|skipped| skipped.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!((left.skipped, keys), (2, vec!["shard-00000.tfrecord:11", "shard-00000.tfrecord:3"]));
}

/// A build that was stopped half-way.
fn interrupted(photos: &Path, split: &str) -> TempDir {
    let output = tempfile::tempdir().unwrap();
    // A dictionary is trained first, for which all samples are read.
    let reads = 35 + if split.contains("dictionary") { 48 } else { 0 };
    let failing = Arc::new(FailsAfter { inner: local(), reads_left: AtomicU64::new(reads) });
    build(&pipeline(SMALL), split, photos, failing).run(output.path(), &options(8), &()).unwrap_err();
    output
}

/// Keeps what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Progress for Notes {
    fn note(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

#[test]
fn a_resumed_build_keeps_only_what_was_written() {
    let photos = photos(48);
    for split in ["resized", "decoded+gzip", "decoded+zstd-3-record", "decoded+zstd-3-dictionary-record"] {
        let pipeline = pipeline(SMALL);
        let (whole, _) = built(&pipeline, split, photos.path(), 8);
        let mut damaged: Vec<&str> = vec!["", ".idx", ".crc"];
        damaged.extend((split == "decoded+gzip").then_some(".blocks"));
        damaged.extend(split.ends_with("-record").then_some(".sizes"));
        for suffix in damaged {
            let output = interrupted(photos.path(), split);
            let notes = notes_in(&output.path().join(".forebay-build"));
            let is_noted = |shard: &usize| notes.iter().any(|note| note.starts_with(&format!("shard-{shard:05}-")));
            let kept: Vec<usize> = (0..8).filter(is_noted).collect();
            let name = format!("shard-{:05}.tfrecord{suffix}", kept[0]);
            let mut bytes = read(output.path(), &name);
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            write(output.path(), &name, &bytes);
            let notes = Notes::default();
            let run = build(&pipeline, split, photos.path(), local()).run(output.path(), &options(8), &notes).unwrap();
            assert_eq!(run.shards_reused, kept.len() - 1, "{name}");
            let notes = notes.0.into_inner().unwrap();
            assert!(notes.iter().any(|note| note.contains(&format!("shard {} is not", kept[0]))), "{notes:?}");
            for entry in std::fs::read_dir(whole.path()).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(read(whole.path(), &name) == read(output.path(), &name), "{name} after damage to {suffix}");
            }
        }
    }
}

/// The notes of shards in a journal.
fn notes_in(journal: &Path) -> Vec<String> {
    let names = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("shard-")).collect()
}

#[test]
fn a_damaged_note_of_a_journal_is_not_believed() {
    let photos = photos(48);
    let pipeline = pipeline(SMALL);
    let output = interrupted(photos.path(), "resized");
    let journal = output.path().join(".forebay-build");
    let note = notes_in(&journal).into_iter().next().unwrap();
    let text = String::from_utf8(read(&journal, &note)).unwrap();
    // A shard of which it claims fewer samples than it has.
    assert!(text.contains("\"samples\": 6"));
    write(&journal, &note, text.replace("\"samples\": 6", "\"samples\": 5").as_bytes());
    let run =
        |notes: &Notes| build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(8), notes);
    let identity = read(&journal, "build.json");
    let mut flipped = identity.clone();
    flipped[40] ^= 2;
    write(&journal, "build.json", &flipped);
    let error = run(&Notes::default()).unwrap_err().to_string();
    assert!(error.contains("an unfinished build that is damaged") && error.contains("--overwrite"), "{error}");
    write(&journal, "build.json", &identity);
    let notes = Notes::default();
    assert_eq!(run(&notes).unwrap().manifest.samples, 48);
    let notes = notes.0.into_inner().unwrap();
    assert!(notes.iter().any(|message| message.contains(&note) && message.contains("built again")), "{notes:?}");
}

/// Pictures with a text beside each.
const WITH_TEXTS: &str = r#"
name = "texts"
[[source.fields]]
field = "text"
from = "{folder}/{stem}.txt"
type = "text"
[[step]]
op = "decode"
"#;

#[test]
fn files_beside_samples_and_tables_are_part_of_what_is_built() {
    let photos = photos(6);
    let text = |number: usize| photos.path().join(["ant", "bee", "cat"][number % 3]).join(format!("{number:04}.txt"));
    for number in 0..6 {
        std::fs::write(text(number), "old").unwrap();
    }
    let pipeline = pipeline(WITH_TEXTS);
    let output = tempfile::tempdir().unwrap();
    let run = || build(&pipeline, "decoded", photos.path(), local()).run(output.path(), &options(2), &());
    assert_eq!(run().unwrap().shards_reused, 0);
    assert_eq!(run().unwrap().shards_reused, 2, "nothing changed");
    std::fs::write(text(3), "newer").unwrap();
    let error = run().unwrap_err().to_string();
    assert!(error.contains("another data set"), "{error}");

    let table = photos.path().join("table.npy");
    let write_table = |rows: usize| {
        let numbers = Tensor::from_elements(&[rows, 4], &vec![0.5_f32; rows * 4]).unwrap();
        std::fs::write(&table, forebay_codec::npy::encode(numbers.view())).unwrap();
    };
    write_table(300);
    let embedding = format!(
        "name = \"t\"\n[source]\nfiles = \"**/*.txt\"\nfield = \"text\"\nlabel = \"none\"\n[[step]]\nop = \"extract_text\"\n\
         [[step]]\nop = \"tokenize\"\ntokenizer = \"bytes\"\n[[step]]\nop = \"embed\"\ntable = {table:?}\nembedding_dim = 4\n"
    );
    let embedding = crate::support::pipeline(&embedding);
    let output = tempfile::tempdir().unwrap();
    let run = |split| build(&embedding, split, photos.path(), local()).run(output.path(), &options(1), &());
    assert_eq!(run("embedded").unwrap().shards_reused, 0);
    assert_eq!(run("embedded").unwrap().shards_reused, 1, "nothing changed");
    write_table(400);
    let error = run("embedded").unwrap_err().to_string();
    assert!(error.contains("another data set"), "{error}");
}

#[test]
fn files_beside_samples_count_for_the_memory_budget() {
    let photos = photos(4);
    for number in 0..4 {
        let class = photos.path().join(["ant", "bee", "cat"][number % 3]);
        let file = std::fs::File::create(class.join(format!("{number:04}.txt"))).unwrap();
        // A hole: it takes nothing on the disk.
        file.set_len(if number == 2 { 1 << 30 } else { 10 }).unwrap();
    }
    let pipeline = pipeline(WITH_TEXTS);
    let listing = crate::support::list(&pipeline, photos.path());
    assert!(listing.bytes() > 1 << 30);
    let source = Arc::new(Files::new(pipeline.clone(), listing, local()).unwrap());
    let options = LoadOptions { memory_bytes: 64 << 20, threads: 1, ..LoadOptions::default() };
    let error = start(source, options, 0).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("sample `cat/0002.jpg` is read with 107374") && error.contains("--memory"), "{error}");
}

#[test]
fn a_manifest_that_promises_more_than_its_shards_can_hold_is_refused() {
    let photos = photos(12);
    let (output, _) = built(&pipeline(SMALL), "resized", photos.path(), 1);
    let path = output.path().join("dataset.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, resealed(&text.replace("\"samples\": 12", "\"samples\": 68719476736"))).unwrap();
    for on_error in [OnError::Fail, OnError::Skip] {
        let error = load(output.path(), on_error).err().unwrap().to_string();
        assert!(error.contains("68719476736 samples in") && error.contains("cannot be"), "{error}");
    }
}
