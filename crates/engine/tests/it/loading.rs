//! The loader: every sample once, in order, in place, whatever the threads do.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_engine::Error;
use forebay_engine::data::{Dataset, ListingOptions};
use forebay_engine::load::{Batch, Column, Epoch, Even, LoadOptions, Loader, Next, OnError, Shuffle, State};
use forebay_engine::source::{Files, Source};
use forebay_pipeline::{
    Action, FieldType, Needs, Output, Pipeline, Random, Scope, Step, StepError, Transform, ValueView,
};
use forebay_record::{Feature, Writer, encode_example};
use tempfile::TempDir;

use crate::support::{RAGGED, SMALL, TILES, built, decoded, files, local, photos, pipeline, shards, start};

fn epoch(dataset: &Arc<Dataset>, options: &LoadOptions, shuffle: Shuffle) -> Epoch {
    start(shards(dataset), LoadOptions { shuffle, ..options.clone() }, 2).unwrap()
}

fn threads(threads: usize) -> LoadOptions {
    LoadOptions { threads, batch_size: 7, seed: 5, ..LoadOptions::default() }
}

/// Key, label and pixels of each sample, in the order in which they came.
fn samples(batches: impl Iterator<Item = Result<Batch, Error>>) -> Vec<(String, i64, Vec<u8>)> {
    let mut all = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let Some(Column::Ints(labels)) = batch.column("label") else { panic!("labels") };
        assert_eq!(labels.len(), batch.len());
        for (index, key) in batch.keys.iter().enumerate() {
            let pixels = match batch.column("image") {
                Some(Column::Dense { spec, data }) => {
                    assert_eq!(data.len(), batch.len() * spec.bytes());
                    assert_eq!(data.as_ptr().align_offset(64), 0);
                    data[index * spec.bytes()..][..spec.bytes()].to_vec()
                }
                Some(Column::Ragged(tensors)) => tensors[index].data().to_vec(),
                _ => panic!("pixels"),
            };
            all.push((key.to_string(), labels[index], pixels));
        }
    }
    all
}

#[test]
fn every_sample_comes_once_whatever_the_threads() {
    let photos = photos(100);
    for (toml, split) in [(SMALL, "resized"), (SMALL, "pixel-centered"), (RAGGED, "concatenated"), (RAGGED, "resized")]
    {
        let pipeline = pipeline(toml);
        let (_output, dataset) = built(&pipeline, split, photos.path(), 3);
        for shuffle in [
            Shuffle::No,
            Shuffle::Window { bytes: 0 },
            Shuffle::Window { bytes: 5_000 },
            Shuffle::Window { bytes: 1 << 30 },
        ] {
            let expected = samples(epoch(&dataset, &threads(1), shuffle));
            assert_eq!(expected.len(), 100);
            let mut keys: Vec<&String> = expected.iter().map(|(key, ..)| key).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), 100, "each once");
            for count in 2..=8 {
                let found = samples(epoch(&dataset, &threads(count), shuffle));
                assert!(found == expected, "{split} with {shuffle:?} on {count} threads");
            }
        }
    }
}

#[test]
fn a_resumed_epoch_gives_the_rest_in_the_same_order() {
    let photos = photos(60);
    for (toml, split) in [(SMALL, "resized"), (RAGGED, "concatenated")] {
        let (_output, dataset) = built(&pipeline(toml), split, photos.path(), 3);
        let shuffle = Shuffle::Window { bytes: 9_000 };
        let load = |rank, world_size, start| {
            let options = LoadOptions { shuffle, rank, world_size, batch_size: 2, ..threads(3) };
            let loader = Loader::new(shards(&dataset), options).unwrap();
            let state = State { samples_seen: start, ..loader.beginning_of(2) };
            samples(loader.start(&state).unwrap())
        };
        let whole = load(0, 1, 0);
        for start in [0, 1, 7, 14, 33, 59, 60] {
            assert!(load(0, 1, start) == whole[start as usize..], "{split} from {start}");
        }
        let mut all = Vec::new();
        for rank in 0..7 {
            let share = load(rank, 7, 0);
            // Two batches of each of the seven.
            assert!(load(rank, 7, 28) == share[4..], "rank {rank}");
            all.extend(share);
        }
        all.sort_unstable();
        let mut expected = whole.clone();
        expected.sort_unstable();
        assert!(all == expected, "ranks share without overlap or loss");
    }
}

/// As many samples as no number of ranks divides, each a few bytes, in many blocks.
const MANY: usize = 10_007;

fn many() -> (TempDir, Arc<Dataset>) {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(Vec::new());
    for number in 0..MANY {
        let text = number.to_string();
        writer.write(&encode_example(&[("image", Feature::Bytes(&[text.as_bytes()]))]).unwrap()).unwrap();
    }
    std::fs::write(folder.path().join("all.tfrecord"), writer.finish().unwrap()).unwrap();
    let toml = "name = \"many\"\n[source]\nformat = \"tfrecord\"\nfiles = \"*.tfrecord\"\n\
                [[source.fields]]\nfield = \"image\"\nfrom = \"image\"\n";
    built(&pipeline(toml), "concatenated", folder.path(), 60)
}

/// Takes up to `steps` steps from `state` on, of all ranks that `options` say there are, and looks at each: its samples are those that
/// come next in `whole`. Where to go on.
fn go_on(dataset: &Arc<Dataset>, options: &LoadOptions, whole: &[Arc<str>], state: &State, steps: usize) -> State {
    let rank = |rank| {
        let options = LoadOptions { rank, ..options.clone() };
        Loader::new(shards(dataset), options).unwrap().start(state).unwrap()
    };
    let mut ranks: Vec<Epoch> = (0..options.world_size).map(rank).collect();
    let step_samples = options.batch_size * options.world_size as usize;
    let mut reached = state.clone();
    for _ in 0..steps {
        let seen = reached.samples_seen as usize;
        let batches: Vec<Option<Batch>> = ranks.iter_mut().map(|rank| rank.next().transpose().unwrap()).collect();
        let mut keys: Vec<Arc<str>> = batches.iter().flatten().flat_map(|batch| batch.keys.clone()).collect();
        let mut expected = whole[seen..(seen + step_samples).min(MANY)].to_vec();
        keys.sort_unstable();
        expected.sort_unstable();
        assert!(keys == expected, "{} ranks after {seen}", options.world_size);
        let states: Vec<State> = ranks
            .iter()
            .zip(&batches)
            .filter_map(|(rank, batch)| batch.as_ref().map(|batch| rank.state_after(batch)))
            .collect();
        assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "the same for all ranks");
        match states.into_iter().next() {
            Some(state) => reached = state,
            None => break,
        }
        assert_eq!(reached.samples_seen as usize, seen + keys.len());
    }
    reached
}

#[test]
fn any_number_of_ranks_goes_on_where_another_stopped() {
    const WORLDS: [u64; 5] = [1, 2, 3, 5, 8];
    let (_output, dataset) = many();
    let mut random = Random::from_parts(&[12]);
    let mut up_to = |most: usize| random.below(most) + 1;
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 150_000 }] {
        let options = LoadOptions { shuffle, seed: 3, threads: 1, batch_size: 64, ..LoadOptions::default() };
        let beginning = Loader::new(shards(&dataset), options.clone()).unwrap().beginning_of(4);
        let whole: Vec<Arc<str>> = start(shards(&dataset), options.clone(), 4)
            .unwrap()
            .flat_map(|batch| batch.unwrap().keys.clone())
            .collect();
        assert_eq!(whole.len(), MANY);
        for first in WORLDS {
            for then in WORLDS.into_iter().filter(|then| *then != first) {
                let last = WORLDS[up_to(5) - 1];
                let mut state = beginning.clone();
                for (world_size, is_last) in [(first, false), (then, false), (last, true)] {
                    let options = LoadOptions { world_size, batch_size: 15 + up_to(50), ..options.clone() };
                    let left = (MANY - state.samples_seen as usize).div_ceil(options.batch_size * world_size as usize);
                    let steps = if is_last { usize::MAX } else { up_to(left / 2 + 1) };
                    state = go_on(&dataset, &options, &whole, &state, steps);
                }
                assert_eq!(state.samples_seen as usize, MANY, "{first}, {then} and {last} ranks");
            }
        }
    }
}

#[test]
fn no_more_is_read_ahead_than_two_windows() {
    let (_output, dataset) = many();
    assert!(dataset.manifest().bytes > 400_000);
    let shuffle = Shuffle::Window { bytes: 20_000 };
    let options = LoadOptions { shuffle, batch_size: 8, threads: 2, ..LoadOptions::default() };
    let mut epoch = start(shards(&dataset), options, 0).unwrap();
    for _ in 0..3 {
        assert_eq!(epoch.next().unwrap().unwrap().len(), 8);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(epoch.memory_bytes_peak() < 100_000, "{} bytes", epoch.memory_bytes_peak());
    assert_eq!(epoch.map(|batch| batch.unwrap().len()).sum::<usize>(), MANY - 24);
}

/// How many samples each rank has, and how many different ones all have.
fn shares(dataset: &Arc<Dataset>, options: &LoadOptions) -> (Vec<usize>, usize) {
    let keys = |rank| {
        let epoch = start(shards(dataset), LoadOptions { rank, ..options.clone() }, 0).unwrap();
        epoch.flat_map(|batch| batch.unwrap().keys.clone()).collect::<Vec<_>>()
    };
    let ranks: Vec<Vec<Arc<str>>> = (0..options.world_size).map(keys).collect();
    let different: std::collections::BTreeSet<&Arc<str>> = ranks.iter().flatten().collect();
    (ranks.iter().map(Vec::len).collect(), different.len())
}

#[test]
fn the_last_samples_are_shared_as_asked() {
    let photos = photos(29);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 3);
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 9_000 }] {
        let options = LoadOptions { shuffle, world_size: 4, batch_size: 3, ..threads(2) };
        let even = |even| shares(&dataset, &LoadOptions { even, ..options.clone() });
        let (sizes, different) = even(Even::None);
        assert_eq!((sizes.iter().sum::<usize>(), different), (29, 29));
        assert_eq!(even(Even::Drop), (vec![7; 4], 28));
        assert_eq!(even(Even::Pad), (vec![8; 4], 29));
        assert_eq!(shares(&dataset, &LoadOptions { drop_last: true, ..options.clone() }), (vec![6; 4], 24));
        let both = LoadOptions { drop_last: true, even: Even::Pad, ..options.clone() };
        let error = Loader::new(shards(&dataset), both).err().unwrap().to_string();
        assert!(error.contains("`even` has no effect with `drop_last`"), "{error}");
        // More ranks than samples: some have none, unless samples come again.
        let crowd = LoadOptions { world_size: 40, ..options.clone() };
        assert_eq!(shares(&dataset, &crowd).1, 29);
        assert_eq!(shares(&dataset, &LoadOptions { even: Even::Drop, ..crowd.clone() }), (vec![0; 40], 0));
        assert_eq!(shares(&dataset, &LoadOptions { even: Even::Pad, ..crowd }), (vec![1; 40], 29));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let photos = photos(3);
    let source = files(&pipeline(SMALL), photos.path());
    for (options, named) in [
        (LoadOptions { rank: 2, world_size: 2, ..threads(1) }, "rank 2 is not below the world size 2"),
        (LoadOptions { world_size: 0, ..threads(1) }, "rank 0 is not below the world size 0"),
        (LoadOptions { batch_size: 0, ..threads(1) }, "0 samples in a batch"),
        (LoadOptions { streams: 0, ..threads(1) }, "in 0 streams"),
        (LoadOptions { world_size: u64::MAX, ..threads(1) }, "on 18446744073709551615 ranks"),
    ] {
        let error = Loader::new(Arc::clone(&source), options).err().unwrap().to_string();
        assert!(error.contains(named) && error.contains("hint: "), "{error}");
    }
}

/// A file loader goes by name, whatever order a build writes in; and random steps do the same to a sample here and there.
#[test]
fn a_folder_comes_by_name_and_its_samples_are_those_of_a_build() {
    let photos = photos(40);
    let pipeline = pipeline(SMALL);
    let source = Files::open(pipeline.clone(), photos.path(), local(), &ListingOptions::default()).unwrap();
    let source = Arc::new(source);
    let mut by_name = samples(start(source.clone(), threads(2), 2).unwrap());
    assert!(by_name.is_sorted_by_key(|(key, ..)| key.clone()) && by_name.len() == 40);
    let (_output, dataset) = built(&pipeline, "resized", photos.path(), 3);
    let mut built = samples(epoch(&dataset, &threads(2), Shuffle::No));
    assert!(built != by_name);
    built.sort_unstable();
    by_name.sort_unstable();
    assert!(built == by_name);
    // What a cache keeps is kept by the number here.
    let loader = Loader::new(source, LoadOptions { cache: decoded(1 << 30), ..threads(2) }).unwrap();
    for _ in 0..2 {
        let mut cached = samples(loader.start(&loader.beginning_of(2)).unwrap());
        assert!(cached.is_sorted_by_key(|(key, ..)| key.clone()));
        cached.sort_unstable();
        assert!(cached == by_name);
    }
    assert_eq!(loader.cache().unwrap().hits(), 40);
}

/// What a sample in a cache takes beside its own bytes.
const ENTRY_BYTES: u64 = 384;

#[test]
fn the_cache_keeps_the_furthest_state_in_which_all_samples_fit() {
    let photos = photos(60);
    let pipeline = pipeline(SMALL);
    let (_plain, resized) = built(&pipeline, "resized", photos.path(), 3);
    let (_packed, encoded) = built(&pipeline, "resized+png", photos.path(), 3);
    let states: [(Arc<dyn Source>, &[&str]); 3] = [
        (shards(&resized), &["resized", "pixel-centered"]),
        (shards(&encoded), &["resized+png", "resized", "pixel-centered"]),
        (files(&pipeline, photos.path()), &["unprocessed", "decoded", "resized", "pixel-centered"]),
    ];
    for (source, names) in states {
        let expected: Vec<_> =
            (0..4).map(|epoch| samples(start(Arc::clone(&source), threads(2), epoch).unwrap())).collect();
        let loaded = |cache_bytes: u64| {
            let loader =
                Loader::new(Arc::clone(&source), LoadOptions { cache: decoded(cache_bytes), ..threads(2) }).unwrap();
            let epochs = (0..4).map(|number| {
                let mut epoch = loader.start(&loader.beginning_of(number)).unwrap();
                assert!(samples(&mut epoch) == expected[number as usize], "{cache_bytes}, epoch {number}");
                epoch.bytes_read()
            });
            let read: Vec<u64> = epochs.collect();
            let cached = loader.cached().unwrap();
            assert!(cached.bytes <= cache_bytes && cached.limit_bytes == cache_bytes, "{cached:?}");
            (read, cached)
        };
        let (read, all) = loaded(1 << 30);
        assert_eq!((all.stage.as_deref(), all.samples, all.hits), (names.last().copied(), 60, 180));
        assert!(read[0] > 0 && read[1..] == [0, 0, 0], "{read:?}");
        assert_eq!(all.stages.iter().map(|state| &*state.stage).collect::<Vec<_>>(), names);
        // Floats do not fit, and pixels do: these are kept, and all samples are there.
        let pixels = all.stages[names.len() - 2].bytes;
        assert!(all.stages[names.len() - 1].bytes > pixels * 3, "{all:?}");
        let (read, some) = loaded(pixels * 2 + 60 * ENTRY_BYTES);
        assert_eq!((some.stage.as_deref(), some.samples), (Some("resized"), 60), "{some:?}");
        assert_eq!(read[3], 0, "{some:?}");
        // Nothing fits: the smallest is kept, as much of it as can be.
        let smallest = all.stages.iter().min_by_key(|state| state.bytes).unwrap();
        let (read, few) = loaded(smallest.bytes / 2 + 30 * ENTRY_BYTES);
        assert_eq!(few.stage.as_ref(), Some(&smallest.stage), "{few:?}");
        assert!((20..40).contains(&few.samples) && few.hits > 0 && read[3] > 0, "{few:?}");
    }
}

#[test]
fn files_and_every_split_give_the_same_samples() {
    let photos = photos(40);
    let pipeline = pipeline(SMALL);
    let expected = samples(start(files(&pipeline, photos.path()), threads(2), 2).unwrap());
    assert_eq!(expected.len(), 40);
    let kept =
        ["concatenated", "decoded", "resized", "pixel-centered", "decoded+png", "resized+qoi", "resized+webp-lossless"];
    for split in kept {
        let (_output, dataset) = built(&pipeline, split, photos.path(), 4);
        let found = samples(epoch(&dataset, &threads(2), Shuffle::No));
        assert!(found == expected, "{split}");
    }
}

#[test]
fn epochs_differ_and_seeds_repeat() {
    let photos = photos(60);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    let load = |seed, epoch_number| {
        let options = LoadOptions { seed, shuffle: Shuffle::Window { bytes: 1 << 20 }, ..threads(2) };
        samples(start(shards(&dataset), options, epoch_number).unwrap())
    };
    let first = load(1, 0);
    assert!(first == load(1, 0));
    assert!(first != load(1, 1) && first != load(2, 0));
}

#[test]
fn batches_are_full_but_the_last() {
    let photos = photos(24);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    let sizes = |options: LoadOptions| {
        let loader = epoch(&dataset, &options, Shuffle::No);
        loader.map(|batch| batch.unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(threads(2)), [7, 7, 7, 3]);
    assert_eq!(sizes(LoadOptions { drop_last: true, ..threads(2) }), [7, 7, 7]);
    assert_eq!(sizes(LoadOptions { batch_size: 100, ..threads(3) }), [24]);
    assert_eq!(sizes(LoadOptions { batch_size: 1, prefetch: 0, ..threads(8) }), [1; 24]);
    assert_eq!(sizes(LoadOptions { batch_size: 100, drop_last: true, ..threads(1) }), [0; 0]);
}

#[test]
fn a_step_may_make_many_samples_of_one() {
    let photos = photos(20);
    let pipeline = pipeline(TILES);
    let (_offline, tiled) = built(&pipeline, "tiled", photos.path(), 2);
    let (_online, decoded) = built(&pipeline, "decoded", photos.path(), 2);
    let offline = samples(epoch(&tiled, &threads(3), Shuffle::No));
    let online = samples(epoch(&decoded, &threads(3), Shuffle::No));
    assert!(offline.len() > 30, "{}", offline.len());
    assert!(offline == online);
    assert_eq!(offline.len() as u64, tiled.manifest().samples);

    // How many come out says what is a full batch, not how many went in.
    let sizes = |options: &LoadOptions| {
        epoch(&decoded, options, Shuffle::No).map(|batch| batch.unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&LoadOptions { drop_last: true, ..threads(3) }), vec![7; online.len() / 7]);
    let all = LoadOptions { batch_size: 30, drop_last: true, ..threads(3) };
    assert_eq!(sizes(&all), vec![30; online.len() / 30]);

    // Resumed by batches, since nobody knows which sample a batch begins with.
    let loader = Loader::new(shards(&decoded), threads(3)).unwrap();
    assert_eq!(loader.batches_from(0), None);
    let mut interrupted = loader.start(&loader.beginning_of(2)).unwrap();
    for seen in 1..=3 {
        let batch = interrupted.next().unwrap().unwrap();
        let state = interrupted.state_after(&batch);
        assert_eq!((state.samples_seen, state.batches.map(|batches| batches.seen)), (0, Some(seen)));
        assert!(samples(loader.start(&state).unwrap()) == online[7 * seen as usize..]);
    }
}

#[test]
fn an_absurd_batch_is_refused_before_it_is_allocated() {
    let photos = photos(3);
    let pipeline = pipeline(&SMALL.replace("size = 16", "size = 60000"));
    let error = start(files(&pipeline, photos.path()), threads(1), 0).err().unwrap().to_string();
    assert!(error.contains("takes 302400001792 bytes or more"), "{error}");
}

#[test]
fn buffers_come_back() {
    let photos = photos(70);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 1);
    let mut addresses = BTreeMap::new();
    for batch in epoch(&dataset, &threads(1), Shuffle::No) {
        let batch = batch.unwrap();
        let Some(Column::Dense { data, .. }) = batch.column("image") else { panic!("pixels") };
        *addresses.entry(data.as_ptr() as usize).or_insert(0) += 1;
    }
    assert!(addresses.len() <= 5, "10 batches used {} buffers", addresses.len());
}

#[test]
fn a_damaged_record_is_named_or_skipped() {
    let photos = photos(30);
    let (output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    let shard = dataset.shard_path(1);
    let location = dataset.index(1).unwrap().get(4).unwrap();
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[location.offset as usize + 100] ^= 4;
    std::fs::write(&shard, bytes).unwrap();
    let dataset = Arc::new(Dataset::open(output.path()).unwrap());

    let mut failing = epoch(&dataset, &threads(2), Shuffle::No);
    let error = failing.find_map(Result::err).unwrap().to_string();
    assert!(error.contains("record 4 of `shard-00001.tfrecord`"), "{error}");
    assert!(error.contains(&format!("byte {}", location.offset)), "{error}");
    assert!(failing.next().is_none(), "an error ends the epoch");

    let mut skipping = epoch(&dataset, &LoadOptions { on_error: OnError::Skip, ..threads(2) }, Shuffle::No);
    let found = samples(skipping.by_ref());
    assert_eq!((found.len(), skipping.skipped(), skipping.samples()), (29, 1, 29));
    assert_eq!(skipping.skipped_samples()[0].key, "shard-00001.tfrecord:4");
}

#[test]
fn a_picture_that_is_none_is_named_or_skipped() {
    let photos = photos(12);
    std::fs::write(photos.path().join("ant/empty.jpg"), "").unwrap();
    std::fs::write(photos.path().join("ant/text.jpg"), "<html>not found</html>").unwrap();
    let pipeline = pipeline(SMALL);
    let source = files(&pipeline, photos.path());
    let load = |on_error| start(Arc::clone(&source), LoadOptions { on_error, ..threads(2) }, 2).unwrap();
    let error = load(OnError::Fail).find_map(Result::err).unwrap().to_string();
    assert!(error.contains("sample `ant/empty.jpg`") || error.contains("sample `ant/text.jpg`"), "{error}");
    let mut skipping = load(OnError::Skip);
    assert_eq!(samples(skipping.by_ref()).len(), 12);
    assert_eq!(skipping.skipped(), 2);
    let mut keys: Vec<String> = skipping.skipped_samples().into_iter().map(|skipped| skipped.key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["ant/empty.jpg", "ant/text.jpg"]);

    std::fs::remove_file(photos.path().join("ant/0003.jpg")).unwrap();
    let mut vanished = load(OnError::Skip);
    assert_eq!(samples(vanished.by_ref()).len(), 11);
    assert!(
        vanished.skipped_samples().iter().any(|skipped| skipped.key == "ant/0003.jpg"),
        "{:?}",
        vanished.skipped_samples()
    );
}

#[test]
fn a_consumer_may_look_up_while_it_waits() {
    let photos = photos(20);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 1);
    let mut loader = epoch(&dataset, &threads(2), Shuffle::No);
    let (mut batches, mut looks) = (0, 0_u64);
    loop {
        match loader.next_timeout(std::time::Duration::from_micros(50)) {
            Next::Batch(batch) => batches += batch.unwrap().len(),
            Next::NotYet => looks += 1,
            Next::End => break,
        }
        assert!(looks < 1_000_000, "it never ends");
    }
    assert_eq!(batches, 20);
}

#[test]
fn a_consumer_may_leave_at_any_time() {
    let photos = photos(60);
    let (_output, dataset) = built(&pipeline(SMALL), "concatenated", photos.path(), 2);
    for taken in 0..8 {
        let mut loader = epoch(&dataset, &threads(4), Shuffle::Window { bytes: 3_000 });
        assert_eq!(loader.by_ref().take(taken).count(), taken);
        drop(loader);
    }
}

/// A step that panics on its fifth sample.
#[derive(Debug)]
struct Panics(std::sync::atomic::AtomicU32);

impl Transform for Panics {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        Ok(input.clone())
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let ValueView::Tensor(view) = input else { unreachable!("the step before decodes") };
        output.tensor(view.spec)?;
        let count = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert!(count != 4, "the fifth sample");
        Ok(())
    }
}

#[test]
fn a_panic_is_an_error_and_nobody_waits() {
    let photos = photos(20);
    let base = pipeline(SMALL);
    let panics = Step {
        name: "panics".to_owned(),
        stage: "panicked".to_owned(),
        fields: vec!["image".to_owned()],
        action: Action::Transform(Arc::new(Panics(0.into()))),
        spec: None,
    };
    let mut steps = base.steps().to_vec();
    steps.push(panics);
    let pipeline = Pipeline::new("panicking", base.source().clone(), steps).unwrap();
    let mut loader = start(files(&pipeline, photos.path()), threads(3), 0).unwrap();
    let error = loader.find_map(Result::err).unwrap();
    assert!(matches!(&error, Error::Panicked { message } if message.contains("the fifth sample")), "{error}");
}
