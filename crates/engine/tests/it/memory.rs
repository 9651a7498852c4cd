//! The memory budget: what is held at once stays below it, everything arrives, and what never fits is an error.

use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, PngEffort, encode};
use forebay_engine::build::BuildOptions;
use forebay_engine::convert::{Conversion, ConvertOptions};
use forebay_engine::data::Dataset;
use forebay_engine::export::export_tar;
use forebay_engine::load::{Column, Epoch, LoadOptions, OnError, Shuffle};
use forebay_pipeline::Pipeline;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::{RAGGED, SMALL, TILES, build, built, decoded, files, local, options, photos, pipeline};

/// Decoded pictures as they are.
const DECODED: &str = "name = \"decoded\"\n[[step]]\nop = \"decode\"\n";
/// Pictures of one size.
const RESIZED: &str = "name = \"resized\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [32, 32]\n";

fn png(height: usize, width: usize, level: u8) -> Vec<u8> {
    let picture = Tensor::from_elements(&[height, width, 3], &vec![level; height * width * 3]).unwrap();
    encode(picture.view(), &Encoding::Png { effort: PngEffort::Fastest }).unwrap()
}

/// Pictures of one color each, which are small as files.
pub(crate) fn pictures(sizes: &[(usize, usize)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("all")).unwrap();
    for (number, &(height, width)) in sizes.iter().enumerate() {
        std::fs::write(folder.path().join(format!("all/{number:04}.png")), png(height, width, number as u8)).unwrap();
    }
    folder
}

fn start(
    pipeline: &Pipeline,
    folder: &Path,
    shuffle: Shuffle,
    mut options: LoadOptions,
) -> forebay_engine::Result<Epoch> {
    options.shuffle = shuffle;
    crate::support::start(files(pipeline, folder), options, 0)
}

/// The key and the first level of each sample, in the order in which they came; or the error. Looks at the budget.
fn load(mut loader: Epoch, memory_bytes: u64) -> Result<Vec<(String, u8)>, String> {
    let mut all = Vec::new();
    for batch in loader.by_ref() {
        let batch = batch.map_err(|error| error.to_string())?;
        for (index, key) in batch.keys.iter().enumerate() {
            let level = match batch.column("image") {
                Some(Column::Dense { spec, data }) => data[index * spec.bytes()],
                Some(Column::Ragged(tensors)) => {
                    let data = tensors[index].data();
                    assert!(data.iter().all(|level| *level == data[0]), "{key}");
                    data[0]
                }
                _ => panic!("pixels"),
            };
            all.push((key.to_string(), level));
        }
    }
    assert!(loader.memory_bytes_peak() <= memory_bytes, "{} of {memory_bytes}", loader.memory_bytes_peak());
    // A worker may still be on its way to the end with the last block in its hands.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while loader.memory_bytes() > 0 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(loader.memory_bytes(), 0, "nothing is held at the end");
    Ok(all)
}

#[test]
fn large_pictures_in_small_files_stay_within_the_budget() {
    // 7 MB each once they are decoded; as files they have 30 KB or so.
    let folder = pictures(&[(1500, 1500); 16]);
    let memory_bytes = 40_000_000;
    for threads in [1, 3, 16] {
        let options = LoadOptions { threads, batch_size: 4, memory_bytes, ..LoadOptions::default() };
        let loader = start(&pipeline(RESIZED), folder.path(), Shuffle::No, options).unwrap();
        let mut found = load(loader, memory_bytes).unwrap();
        found.sort();
        let expected: Vec<_> = (0..16).map(|number| (format!("all/{number:04}.png"), number as u8)).collect();
        assert_eq!(found, expected, "{threads} threads");
    }
}

#[test]
fn a_sample_that_never_fits_is_an_error_that_names_it_and_can_be_skipped() {
    let mut sizes = [(100, 100); 12];
    sizes[5] = (2000, 2000);
    let folder = pictures(&sizes);
    for (toml, cache_bytes) in [(DECODED, 0), (RESIZED, 0), (RESIZED, 1 << 30)] {
        let memory_bytes = 32 << 20;
        let options = LoadOptions {
            threads: 3,
            batch_size: 2,
            memory_bytes,
            cache: decoded(cache_bytes),
            ..LoadOptions::default()
        };
        let loader = start(&pipeline(toml), folder.path(), Shuffle::No, options.clone()).unwrap();
        let error = load(loader, memory_bytes).unwrap_err();
        assert!(error.starts_with("sample `all/0005.png`: step `"), "{error}");
        assert!(error.contains("of memory at once") && error.contains("--memory"), "{error}");
        let options = LoadOptions { on_error: OnError::Skip, ..options };
        let loader = start(&pipeline(toml), folder.path(), Shuffle::No, options).unwrap();
        let found = load(loader, memory_bytes).unwrap();
        assert_eq!(found.len(), 11, "{found:?}");
    }
}

#[test]
fn a_file_that_is_too_large_to_read_is_an_error_that_names_it() {
    let folder = pictures(&[(20, 20); 6]);
    std::fs::write(folder.path().join("all/0003.png"), vec![0; 300_000]).unwrap();
    let options = LoadOptions { threads: 2, batch_size: 2, memory_bytes: 1 << 20, ..LoadOptions::default() };
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 10_000 }] {
        let loader = start(&pipeline(RESIZED), folder.path(), shuffle, options.clone()).unwrap();
        let error = load(loader, 1 << 20).unwrap_err();
        assert!(error.contains("`all/0003.png`") && error.contains("--memory"), "{error}");
        let options = LoadOptions { on_error: OnError::Skip, ..options.clone() };
        let loader = start(&pipeline(RESIZED), folder.path(), shuffle, options).unwrap();
        assert_eq!(load(loader, 1 << 20).unwrap().len(), 5);
    }
}

#[test]
fn a_batch_that_never_fits_is_an_error_that_says_so() {
    let folder = pictures(&[(300, 300); 40]);
    let options = LoadOptions { threads: 4, batch_size: 40, memory_bytes: 16 << 20, ..LoadOptions::default() };
    // Sizes that nobody knows before, and that no sample is to blame for: skipping does not help.
    for on_error in [OnError::Fail, OnError::Skip] {
        let options = LoadOptions { on_error, ..options.clone() };
        let loader = start(&pipeline(DECODED), folder.path(), Shuffle::No, options).unwrap();
        let error = load(loader, 16 << 20).unwrap_err();
        assert!(error.starts_with("a batch of 40 samples"), "{error}");
        assert!(error.contains("hint: make batches or samples smaller"), "{error}");
    }
    // One size for all is refused before anything is read.
    let large = RESIZED.replace("32", "512");
    let error = start(&pipeline(&large), folder.path(), Shuffle::No, options.clone()).err().unwrap().to_string();
    assert!(error.starts_with("a batch of 40 samples"), "{error}");
    let options = LoadOptions { batch_size: 8, ..options };
    assert_eq!(
        load(start(&pipeline(DECODED), folder.path(), Shuffle::No, options).unwrap(), 16 << 20).unwrap().len(),
        40
    );
}

#[test]
fn a_window_that_does_not_fit_is_refused_and_one_that_does_is_shuffled_as_ever() {
    let folder = pictures(&[(10, 10); 200]);
    let order = |memory_bytes| {
        let options = LoadOptions { memory_bytes, threads: 4, batch_size: 10, seed: 3, ..LoadOptions::default() };
        load(start(&pipeline(RESIZED), folder.path(), Shuffle::Window { bytes: 4000 }, options).unwrap(), memory_bytes)
    };
    assert_eq!(order(4 << 20), order(1 << 30), "the order does not depend on memory");
    let big = pictures(&[(10, 10); 2]);
    std::fs::write(big.path().join("all/big.png"), vec![0; 700_000]).unwrap();
    std::fs::write(big.path().join("all/big2.png"), vec![0; 200_000]).unwrap();
    let options = LoadOptions { memory_bytes: 1 << 20, batch_size: 1, ..LoadOptions::default() };
    let error = start(&pipeline(RESIZED), big.path(), Shuffle::Window { bytes: 1 << 30 }, options);
    assert!(error.err().unwrap().to_string().contains("smaller window"));
}

#[test]
fn a_build_and_a_conversion_keep_within_the_budget_too() {
    let mut sizes = [(200, 200); 6];
    sizes[2] = (1500, 1500);
    let folder = pictures(&sizes);
    let pipeline = pipeline(RESIZED);
    let output = tempfile::tempdir().unwrap();
    // The large one takes more than a thread's part, and passes alone.
    let run = |options: &BuildOptions| {
        build(&pipeline, "resized", folder.path(), local()).run(&output.path().join("d"), options, &())
    };
    let small = BuildOptions { threads: 6, memory_bytes: 8_000_000, ..options(6) };
    let error = run(&small).unwrap_err().to_string();
    assert!(error.starts_with("sample `all/0002.png`: step `") && error.contains("--memory"), "{error}");
    let enough = BuildOptions { memory_bytes: 24_000_000, overwrite: true, ..small };
    run(&enough).unwrap();
    assert_eq!(Dataset::open(&output.path().join("d")).unwrap().manifest().samples, 6);
    let conversion =
        Conversion::of_folder(folder.path(), &output.path().join("c"), forebay_codec::image::Format::L3).unwrap();
    let convert = ConvertOptions {
        encoding: "l3-fast".parse().unwrap(),
        depth: forebay_codec::image::Depth::AsStored,
        verify: true,
        overwrite: false,
        threads: 4,
        on_error: OnError::Skip,
        memory_bytes: 24_000_000,
    };
    let done = conversion.run(&convert, &()).unwrap();
    assert_eq!((done.converted, done.skipped_samples.len()), (5, 1));
    assert!(done.skipped_samples[0].reason.contains("to convert, over half"), "{:?}", done.skipped_samples);
    let done = conversion.run(&ConvertOptions { memory_bytes: 60_000_000, ..convert }, &()).unwrap();
    assert_eq!((done.converted, done.reused), (1, 5));
}

#[test]
fn an_export_keeps_to_its_budget() {
    let folder = pictures(&[(40, 40), (1000, 1000), (50, 50)]);
    let (_folder, dataset) = built(&pipeline(DECODED), "decoded", folder.path(), 1);
    let output = tempfile::tempdir().unwrap();
    let export = |memory_bytes| export_tar(&dataset, &local(), output.path(), 2, memory_bytes, &());
    // The large picture takes 3 MB, and three times that are counted.
    let error = export(10_000_000).unwrap_err().to_string();
    assert!(error.contains("are read together") && error.contains("--memory"), "{error}");
    assert!(std::fs::read_dir(output.path()).unwrap().next().is_none(), "nothing is left of it");
    assert_eq!(export(20_000_000).unwrap().samples, 3);
}

#[test]
fn tiny_budgets_only_slow_down() {
    let photos = photos(60);
    for toml in [SMALL, RAGGED, TILES] {
        let run = |memory_bytes, threads| {
            let options = LoadOptions { threads, batch_size: 3, memory_bytes, ..LoadOptions::default() };
            let loader = start(&pipeline(toml), photos.path(), Shuffle::Window { bytes: 3000 }, options).unwrap();
            let keys = loader.map(|batch| batch.unwrap().keys.iter().map(ToString::to_string).collect::<Vec<_>>());
            keys.collect::<Vec<_>>()
        };
        let expected = run(1 << 30, 1);
        for threads in [1, 2, 5, 13] {
            assert_eq!(run(1 << 20, threads), expected, "{threads} threads");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every sample once and in order, or an error; never more than the budget; nothing left at the end.
    #[test]
    fn whatever_the_sizes_all_arrive_or_an_error_says_why(
        sizes in prop::collection::vec((1_usize..400, 1_usize..400), 1..40),
        batch_size in 1_usize..9,
        threads in 1_usize..9,
        prefetch in 0_usize..4,
        megabytes in 1_u64..12,
        skip in any::<bool>(),
        ragged in any::<bool>(),
        window in prop::option::of(1_u64..20_000),
    ) {
        let folder = pictures(&sizes);
        let memory_bytes = megabytes << 20;
        let on_error = if skip { OnError::Skip } else { OnError::Fail };
        let options = LoadOptions {
            threads, batch_size, prefetch, memory_bytes, on_error, seed: 1, ..LoadOptions::default()
        };
        let shuffle = window.map_or(Shuffle::No, |bytes| Shuffle::Window { bytes });
        let pipeline = pipeline(if ragged { DECODED } else { RESIZED });
        let wanted = LoadOptions { memory_bytes: 1 << 32, threads: 1, ..options.clone() };
        let wanted = load(start(&pipeline, folder.path(), shuffle, wanted).unwrap(), 1 << 32).unwrap();
        prop_assert_eq!(wanted.len(), sizes.len());
        let found = start(&pipeline, folder.path(), shuffle, options).map_err(|error| error.to_string());
        match found.and_then(|loader| load(loader, memory_bytes)) {
            Ok(found) if skip => prop_assert!(found.iter().all(|sample| wanted.contains(sample))),
            Ok(found) => prop_assert_eq!(found, wanted),
            Err(error) => prop_assert!(error.contains("--memory"), "{}", error),
        }
    }
}
