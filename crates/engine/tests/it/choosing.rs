//! What a profile measures so that the planner can choose a compression for each split.

use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::encode;
use forebay_engine::StorageChoice;
use forebay_engine::data::Listing;
use forebay_engine::load::{OnError, Shuffle};
use forebay_engine::profile::{ProfileOptions, profile};
use forebay_pipeline::{Random, Strategy};
use forebay_plan::{Caching, Objective, Runs, plan, unsettled};

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

/// Thirty flat images and then ten of noise, so large that few of them are looked at: those come from everywhere.
#[test]
fn the_ratio_is_that_of_samples_from_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("all")).unwrap();
    let mut random = Random::from_parts(&[3]);
    for number in 0..40 {
        let mut level = || if number < 30 { number as u8 } else { random.below(256) as u8 };
        let pixels: Vec<u8> = (0..640 * 640 * 3).map(|_| level()).collect();
        let image = Tensor::from_elements(&[640, 640, 3], &pixels).unwrap();
        let file = encode(image.view(), &"qoi".parse().unwrap()).unwrap();
        std::fs::write(folder.path().join(format!("all/{number:04}.qoi")), file).unwrap();
    }
    let pipeline = pipeline(
        "name = \"ordered\"\n[source]\nfiles = \"all/*.qoi\"\norder = \"sorted\"\n[[step]]\nop = \"decode\"\n\
         [[step]]\nop = \"resize\"\nsize = 24\n",
    );
    let work = tempfile::tempdir().unwrap();
    let all = Strategy::all(&pipeline, &["lz4".parse().unwrap()]);
    let decoded = all.into_iter().filter(|one| one.split.name == "decoded").collect();
    let options = options(work.path(), decoded, Runs::Each(1.try_into().unwrap()));
    let listing = Listing::scan(pipeline.source(), folder.path()).unwrap();
    let found = profile(&pipeline, listing, &StorageChoice::Local, &options, &()).unwrap();
    let built = found.strategies[0].storage_bytes as f64 / found.strategies[1].storage_bytes as f64;
    let cost = &found.compressions[0];
    assert!((3.0..5.0).contains(&built), "{built}");
    assert!((cost.ratio / built - 1.0).abs() < 0.3, "{} alone, {built} built", cost.ratio);
    assert!(cost.records >= 8 && cost.records < 40, "{cost:?}");
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
    assert_eq!(forms.len(), 2, "{:?}", found.compressions);
    assert!(forms.iter().all(|form| !form.runs.is_empty()), "{forms:?}");
    assert!(unsettled(&found).is_empty());
    let plan = plan(&found, &Objective::default()).unwrap();
    let choice = plan.compressions.iter().find(|choice| choice.strategy == "pixel-centered").unwrap();
    let chosen = forms.iter().find(|form| choice.compression.as_ref().is_some_and(|name| form.name.ends_with(name)));
    let rate = chosen.unwrap().runs.last().unwrap().samples_per_second();
    assert!((choice.samples_per_second / rate - 1.0).abs() < 0.5, "as it was run: {choice:?} {rate}");
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0, "nothing is left behind");
}
