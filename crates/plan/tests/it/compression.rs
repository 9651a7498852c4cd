//! Which compression is chosen, by made-up costs.

use forebay_plan::{
    Bound, CompressionCost, Objective, Profile, Runs, WhatIf, compression_choices, mix, mix_formats, mix_limits, plan,
    promising, rank,
};

use crate::profiles::{close, profile, strategy};

/// `zstd-3` makes a third of `resized`, at 1 GB/s; `lz4` half, at 3 GB/s; `zlib-6` a bit less than `zstd-3`, at 0.3 GB/s.
fn costs(ratios: [f64; 3]) -> Vec<CompressionCost> {
    let names = [("zstd-3", 200e6, 1e9), ("lz4", 500e6, 3e9), ("zlib-6", 30e6, 0.3e9)];
    let cost = |((name, compress, decompress), ratio): ((&str, f64, f64), f64)| CompressionCost {
        strategy: format!("resized+{name}"),
        plain: "resized".to_owned(),
        compression: name.to_owned(),
        records: 200,
        bytes: 200_000_000,
        ratio,
        compress_bytes_per_second: compress,
        decompress_bytes_per_second: decompress,
        reader_share: 1.0,
        lossy: false,
    };
    names.into_iter().zip(ratios).map(cost).collect()
}

/// Samples of 1 MB that take 1 ms of work each, on 8 threads, from a storage of so many bytes per second.
fn measured(bytes_per_second: f64, ratios: [f64; 3]) -> Profile {
    let mut resized = strategy("resized", 3, 100, (bytes_per_second / 1e6).min(8000.0), 100_000_000);
    resized.online_cpu_seconds = 0.001;
    let mut profile = profile(100, vec![strategy("unprocessed", 0, 100, 100.0, 11_466_100), resized]);
    profile.storage.sequential_bytes_per_second = bytes_per_second;
    profile.storage.stream_bytes_per_second = bytes_per_second;
    profile.compressions = costs(ratios);
    profile
}

const USUAL: [f64; 3] = [3.0, 2.0, 3.2];

fn names(profile: &Profile) -> Vec<String> {
    promising(profile).into_iter().map(|strategy| strategy.name).collect()
}

#[test]
fn slow_storage_wants_the_smallest_that_is_inflated_in_time() {
    // 100 MB/s: 10 ms a sample. `zlib-6` saves the most, and its 3.3 ms of inflating are hidden behind fifteen other readers.
    let slow = measured(100e6, USUAL);
    assert_eq!(names(&slow), ["resized+zlib-6"]);
    let choice = &compression_choices(&slow).unwrap()[0];
    assert_eq!((choice.strategy.as_str(), choice.compression.as_deref()), ("resized", Some("zlib-6")));
    assert!(close(choice.samples_per_second, 320.0) && close(choice.plain_samples_per_second, 100.0), "{choice:?}");
    assert_eq!(
        choice.sentence,
        "`zlib-6` reads 3.20× fewer bytes; inflating costs 3.33 ms of the 10.0 ms that the disk took"
    );
    // The faster the storage, the less inflating may take of the eight cores that have a millisecond of work a sample besides: 3.3 ms leave
    // 1,846 samples/s, 1 ms leaves 4,000, and a third of that 6,000.
    assert_eq!(names(&measured(1.5e9, USUAL)), ["resized+zstd-3"]);
    assert_eq!(names(&measured(3e9, USUAL)), ["resized+lz4"]);
}

#[test]
fn of_those_that_are_alike_the_one_that_is_prepared_soonest_is_taken() {
    assert_eq!(names(&measured(100e6, [3.2, 2.0, 3.21])), ["resized+zstd-3"]);
}

#[test]
fn fast_storage_wants_none() {
    let fast = measured(20e9, USUAL);
    assert!(names(&fast).is_empty());
    let choice = &compression_choices(&fast).unwrap()[0];
    assert_eq!((choice.compression.as_deref(), choice.samples_per_second), (None, 8000.0));
    assert_eq!(
        choice.sentence,
        "kept as it is: reading takes 50.0 µs a sample and work 125 µs, so that fewer bytes gain nothing"
    );
    assert!(plan(&fast, &Objective::default()).unwrap().reason.contains("It is kept as it is: reading takes 50.0 µs"));
}

#[test]
fn what_cannot_be_compressed_is_left_as_it_is() {
    let dense = measured(100e6, [1.01, 0.999, 1.02]);
    assert!(names(&dense).is_empty());
    let choice = &compression_choices(&dense).unwrap()[0];
    assert_eq!(choice.compression, None);
    assert_eq!(
        choice.sentence,
        "kept as it is: the best compression, `zlib-6`, reads 1.02× fewer bytes; inflating costs 3.33 ms of the 10.0 ms \
         that the disk took"
    );
}

/// Where a stream has a rate of its own, a reader that inflates does not read meanwhile.
#[test]
fn inflating_takes_of_a_streams_time() {
    let rate = |stream: f64| {
        let mut profile = measured(800e6, [3.0, 1.0, 1.0]);
        profile.method.threads = 2;
        profile.storage.stream_bytes_per_second = stream;
        profile.compressions.truncate(1);
        let found = promising(&profile);
        found[0].reading.unwrap().samples_per_second
    };
    // A third of a MB at 400 MB/s and 1 ms of inflating, by two readers for each of two workers; from one disk another reads meanwhile, until it
    // gives no more.
    assert!(close(rate(400e6), 4.0 / (1.0 / 1200.0 + 0.001)));
    assert!(close(rate(800e6), 2400.0));
    assert!(close(rate(0.0), rate(400e6)), "what was not measured is shared out");
}

#[test]
fn workers_inflate_records() {
    let mut profile = measured(100e6, USUAL);
    profile.compressions.truncate(1);
    profile.compressions[0].reader_share = 0.0;
    let found = &promising(&profile)[0];
    assert!(close(found.deserialize_cpu_seconds, 0.001) && close(found.reading.unwrap().cpu_seconds, 0.0));
    assert!(close(found.bytes_per_sample, 1e6 / 3.0) && close(found.prep_seconds, 0.5 / 8.0));
}

/// However the runs of others correct the model, it gains no more than it reads fewer bytes.
#[test]
fn no_more_is_expected_than_bytes_are_saved() {
    let mut profile = measured(100e6, USUAL);
    // Half of what the model says, for a reason that it does not know.
    profile.strategies[1].runs.iter_mut().for_each(|run| run.seconds *= 2.0);
    profile.strategies[1].online_cpu_seconds = 0.02;
    let choice = &compression_choices(&profile).unwrap()[0];
    assert!(close(choice.plain_samples_per_second, 50.0), "{choice:?}");
    assert!(choice.samples_per_second <= 50.0 * 3.2 + 1e-9, "{choice:?}");
}

/// What is promising but was not run is ranked by the cost model in a fast profile, and says why.
#[test]
fn a_plan_says_why() {
    let mut profile = measured(100e6, USUAL);
    profile.method.runs = Runs::Fast;
    profile.strategies.extend(promising(&profile));
    let plan = plan(&profile, &Objective::default()).unwrap();
    assert_eq!(plan.chosen, "resized+zlib-6");
    let why = "`zlib-6` reads 3.20× fewer bytes; inflating costs 3.33 ms of the 10.0 ms that the disk took";
    assert!(plan.reason.contains(why), "{}", plan.reason);
    assert_eq!(plan.compressions[0].sentence, why);
    assert_eq!(plan.compressions.len(), 1);
    let text = plan.to_json().unwrap();
    assert_eq!(forebay_plan::Plan::parse(&text).unwrap(), plan);
}

/// The costs of a profile are enough to choose for another storage, though nothing compressed was run.
#[test]
fn another_machine_may_want_another() {
    let fast = measured(20e9, USUAL);
    let slow = WhatIf { read_bytes_per_second: Some(100e6), ..WhatIf::default() };
    let objective = Objective { what_if: Some(slow), ..Objective::default() };
    let ranking = rank(&fast, &objective).unwrap();
    let best = ranking.best();
    assert_eq!((best.summary.name.as_str(), best.prediction.bound_by), ("resized+zlib-6", Bound::Storage));
    assert!(close(best.samples_per_second(), 320.0), "{best:?}");
    assert_eq!(plan(&fast, &objective).unwrap().chosen, "resized+zlib-6");
    assert_eq!(rank(&fast, &Objective::default()).unwrap().best().summary.name, "resized");
}

#[test]
fn costs_that_no_measurement_gives_are_refused() {
    let mut wrong = measured(100e6, USUAL);
    wrong.compressions[1].ratio = 0.0;
    assert!(wrong.check().unwrap_err().to_string().contains("compressions.resized+lz4.ratio"));
    wrong.compressions[1].ratio = 1.0;
    wrong.compressions[1].reader_share = 2.0;
    assert!(wrong.check().is_err());
}

/// A mix may have any compression whose cost is known, not only the most promising one.
#[test]
fn compressions_that_were_not_run_are_candidates_of_a_mix() {
    let mut profile = measured(3e9, USUAL);
    let formats = mix_formats(&profile, 0.0);
    let names: Vec<&str> = formats.iter().map(|format| format.format.as_str()).collect();
    assert_eq!(names, ["resized", "resized+zstd-3", "resized+lz4", "resized+zlib-6"]);
    assert!(close(formats[1].bytes, 1e6 / 3.0) && close(formats[2].bytes, 5e5), "{formats:?}");
    // A millisecond of work, and a third of one to inflate.
    assert!(formats[2].cpu_seconds >= 0.001 + 1.0 / 3000.0, "{formats:?}");
    let found = mix(&formats, &mix_limits(&profile, 0)).unwrap();
    let alone = mix(&formats[..1], &mix_limits(&profile, 0)).unwrap();
    assert!(found.shares.iter().any(|share| share.format != "resized"), "{found:?}");
    assert!(found.predicted_samples_per_second > 1.5 * alone.predicted_samples_per_second, "{found:?}");
    // One that was run is there once, and a lossy one where it may be.
    profile.strategies.push(strategy("resized+lz4", 3, 100, 6000.0, 50_000_000));
    profile.compressions[2].lossy = true;
    assert_eq!((mix_formats(&profile, 0.0).len(), mix_formats(&profile, 0.1).len()), (3, 4));
}
