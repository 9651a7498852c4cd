//! What a profile measures so that the planner can choose a compression for each split.

use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::encode;
use forebay_engine::StorageChoice;
use forebay_engine::data::Listing;
use forebay_engine::load::{OnError, Shuffle};
use forebay_engine::profile::{ProfileOptions, profile};
use forebay_pipeline::{Random, Strategy};
use forebay_plan::{Caching, Objective, Profile, Run, Runs, plan};

use crate::support::{SMALL, photos, pipeline};

fn options(work: &Path, strategies: Vec<Strategy>, runs: Runs) -> ProfileOptions {
    ProfileOptions {
        sample_count: 120,
        run_seconds: 0.0,
        runs,
        threads: 2,
        shards: 3,
        batch_size: 8,
        caching: Caching::None,
        shuffle: Shuffle::No,
        seed: 1,
        on_error: OnError::Fail,
        work_folder: work.to_owned(),
        strategies,
        compressions: Vec::new(),
        memory_bytes: 1 << 30,
    }
}

const DECODED: &str = "name = \"ordered\"\n[source]\nfiles = \"all/*.qoi\"\norder = \"sorted\"\n[[step]]\nop = \"decode\"\n\
                       [[step]]\nop = \"resize\"\nsize = 24\n";

/// A folder of such images: of so many, each with its height, its width and its pixels.
fn images(count: usize, (height, width): (usize, usize), pixels: impl Fn(usize) -> Vec<u8>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("all")).unwrap();
    for number in 0..count {
        let image = Tensor::from_elements(&[height, width, 3], &pixels(number)).unwrap();
        let file = encode(image.view(), &"qoi".parse().unwrap()).unwrap();
        std::fs::write(folder.path().join(format!("all/{number:04}.qoi")), file).unwrap();
    }
    folder
}

fn noise(seed: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random::from_parts(&[seed as u64]);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

/// Thirty flat images and then ten of noise.
fn flat_and_noise() -> tempfile::TempDir {
    const BYTES: usize = 640 * 640 * 3;
    images(40, (640, 640), |number| if number < 30 { vec![number as u8; BYTES] } else { noise(number, BYTES) })
}

/// What is measured of keeping `decoded` as it is and in `format`, alone and built.
fn decoded_and(format: &str, folder: &Path) -> Profile {
    let pipeline = pipeline(DECODED);
    let work = tempfile::tempdir().unwrap();
    let all = Strategy::all(&pipeline, &[format.parse().unwrap()]);
    let decoded = all.into_iter().filter(|one| one.split.name == "decoded").collect();
    let options = options(work.path(), decoded, Runs::Each(1.try_into().unwrap()));
    let listing = Listing::scan(pipeline.source(), folder).unwrap();
    profile(&pipeline, listing, &StorageChoice::Local, &options, &()).unwrap()
}

/// The images are so large that few of them are looked at: those come from everywhere.
#[test]
fn the_ratio_is_that_of_samples_from_everywhere() {
    let found = decoded_and("lz4", flat_and_noise().path());
    let built = found.strategies[0].storage_bytes as f64 / found.strategies[1].storage_bytes as f64;
    let cost = &found.compressions[0];
    assert!((3.0..5.0).contains(&built), "{built}");
    assert!((cost.ratio / built - 1.0).abs() < 0.3, "{} alone, {built} built", cost.ratio);
    assert!(cost.records >= 8 && cost.records < 40, "{cost:?}");
}

/// The lower half of each image is its upper one: what finds that must see more than 2 MiB of it.
#[test]
fn the_ratio_of_a_large_record_is_that_of_all_of_it() {
    let twice = |number: usize| noise(number, 500 * 1200 * 3).repeat(2);
    let found = decoded_and("zstd-9", images(4, (1000, 1200), twice).path());
    let built = found.strategies[0].storage_bytes as f64 / found.strategies[1].storage_bytes as f64;
    let alone = found.compressions[0].ratio;
    assert!((1.9..2.1).contains(&built) && (alone / built - 1.0).abs() < 0.02, "{alone} alone, {built} built");
}

/// Of formats that were built the profile has the size that they had then, not that of the records that were compressed before.
#[test]
fn formats_that_were_run_have_the_size_that_they_were_built_with() {
    let (images, work, pipeline) = (flat_and_noise(), tempfile::tempdir().unwrap(), pipeline(DECODED));
    let usual = options(work.path(), vec![Strategy::parse(&pipeline, "decoded").unwrap()], Runs::Fast);
    let options =
        ProfileOptions { compressions: ["lz4", "zstd-1"].map(|name| name.parse().unwrap()).to_vec(), ..usual };
    let listing = Listing::scan(pipeline.source(), images.path()).unwrap();
    let storage: StorageChoice = "custom:read=30MB/s".parse().unwrap();
    let found = profile(&pipeline, listing, &storage, &options, &()).unwrap();
    let forms: Vec<_> = found.strategies.iter().filter(|one| one.name.contains('+')).collect();
    assert_eq!(forms.len(), 2, "one of each family: {:?}", found.compressions);
    for form in forms {
        assert!(form.runs.len() >= 2, "{form:?}");
        let (run, cost) = (&form.runs[0], found.compression_cost(&form.name).unwrap());
        let read = run.bytes_read as f64 / run.samples as f64;
        assert!((form.bytes_per_sample / read - 1.0).abs() < 0.01, "{} and {read} read", form.bytes_per_sample);
        assert_eq!(cost.records, run.samples / run.passes);
        assert!((1_228_800..1_232_000).contains(&(cost.bytes / cost.records)), "{cost:?}");
    }
}

/// Of a split that is far from leading, the formats that the model cannot tell apart are run beside each other, and the plan goes by that.
#[test]
fn rivals_are_run_though_their_split_does_not_lead() {
    let (photos, work, pipeline) = (photos(120), tempfile::tempdir().unwrap(), pipeline(SMALL));
    let split = |name: &str| Strategy::parse(&pipeline, name).unwrap();
    let usual = options(work.path(), vec![split("concatenated"), split("pixel-centered")], Runs::Fast);
    let compressions = ["zstd-1", "zstd-3", "gzip"].map(|name| name.parse().unwrap()).to_vec();
    let options = ProfileOptions { compressions, ..usual };
    let listing = Listing::scan(pipeline.source(), photos.path()).unwrap();
    let storage: StorageChoice = "custom:read=2MB/s".parse().unwrap();
    let found = profile(&pipeline, listing, &storage, &options, &()).unwrap();
    let forms: Vec<_> =
        found.strategies.iter().filter(|strategy| strategy.name.starts_with("pixel-centered+")).collect();
    assert!(forms.iter().any(|form| form.name.ends_with("gzip")), "one of each family: {:?}", found.compressions);
    assert!(forms.len() > 1 && forms.iter().all(|form| form.runs.len() >= 2), "{forms:?}");
    let samples = forms[0].runs[0].samples_each_pass();
    assert!(samples >= 12.0, "{samples}");
    let same = |run: &Run| (run.samples_each_pass() - samples).abs() < 0.5;
    assert!(forms.iter().all(|form| form.runs.iter().all(same)), "on the same samples: {forms:?}");
    let plan = plan(&found, &Objective::default()).unwrap();
    let choice = plan.compressions.iter().find(|choice| choice.strategy == "pixel-centered").unwrap();
    let chosen = forms.iter().find(|form| choice.compression.as_ref().is_some_and(|name| form.name.ends_with(name)));
    let mut rates: Vec<f64> = chosen.unwrap().runs.iter().map(Run::samples_per_second).collect();
    rates.sort_by(f64::total_cmp);
    let rate = rates[rates.len() / 2];
    assert!((choice.samples_per_second / rate - 1.0).abs() < 0.5, "as it was run: {choice:?} {rate}");
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0, "nothing is left behind");
}
