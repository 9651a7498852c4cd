//! Which compression is chosen, by made-up costs.

use forebay_plan::{
    Bound, Caching, CompressionCost, FirstBatch, Objective, Profile, Runs, WhatIf, compressed, compression_choices,
    mix, mix_formats, mix_limits, plan, promising, rank, summarize, unsettled,
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

/// A fast profile, of which these were run: so many samples a second, after a first batch.
fn with_runs(profile: &Profile, rates: &[(&str, f64)]) -> Profile {
    let mut fast = profile.clone();
    fast.method.runs = Runs::Fast;
    fast.strategies.extend(promising(&fast));
    for strategy in &mut fast.strategies {
        strategy.runs.clear();
        let rate = rates.iter().find(|(name, _)| *name == strategy.name);
        strategy.runs.extend(rate.map(|(_, rate)| {
            let mut run = crate::profiles::strategy("any", 0, 1000, *rate, 1).runs.remove(0);
            run.first_batch = Some(FirstBatch { samples: 0, seconds: 0.0 });
            run
        }));
    }
    fast
}

/// What readers inflate and workers work on at the same time is slower than the model says, and what the disk gives is not: so where one binds the one
/// form and the other the other, a run decides.
#[test]
fn where_the_cpu_binds_one_form_and_the_disk_another_both_are_run() {
    // `zstd-3` should give 4,000 samples/s, as many as the cores inflate; `lz4` 3,000, as many as the disk gives.
    let open = measured(1.5e9, USUAL);
    assert_eq!(names(&open), ["resized+zstd-3", "resized+lz4"]);
    let fast = with_runs(&open, &[]);
    assert_eq!(unsettled(&fast), [["resized+zstd-3", "resized+lz4"]]);
    // One that was run already is run again: at another time, and on other samples, it may have been faster or slower.
    let one = with_runs(&open, &[("resized+zstd-3", 2700.0)]);
    assert_eq!(unsettled(&one), [["resized+zstd-3", "resized+lz4"]]);
    let run = with_runs(&open, &[("resized+zstd-3", 2700.0), ("resized+lz4", 2950.0)]);
    assert!(unsettled(&run).is_empty());
    let choice = &compression_choices(&run).unwrap()[0];
    assert_eq!((choice.compression.as_deref(), choice.samples_per_second), (Some("lz4"), 2950.0));
    let why = "`lz4` reads 2.00× fewer bytes; inflating costs 333 µs of the 667 µs that the disk took";
    assert_eq!(choice.sentence, why);
    // As the model has it, where nobody looked.
    assert_eq!(compression_choices(&fast).unwrap()[0].compression.as_deref(), Some("zstd-3"));
}

#[test]
fn splits_are_run_first_where_forms_differ_by_most() {
    let mut profile = measured(1.5e9, USUAL);
    // Another split whose forms the disk binds, and which is faster.
    let mut small = strategy("small", 4, 100, 15_000.0, 10_000_000);
    small.online_cpu_seconds = 0.000_01;
    profile.strategies.push(small);
    let of_small = |cost: &CompressionCost| CompressionCost {
        strategy: cost.strategy.replace("resized", "small"),
        plain: "small".to_owned(),
        ratio: cost.ratio.min(2.1),
        decompress_bytes_per_second: 20e9,
        ..cost.clone()
    };
    let costs: Vec<CompressionCost> = profile.compressions.iter().map(of_small).collect();
    profile.compressions.extend(costs);
    let fast = with_runs(&profile, &[]);
    let resized = vec!["resized+zstd-3", "resized+lz4"];
    assert_eq!(unsettled(&fast), [resized, vec!["small+zstd-3", "small+zlib-6", "small+lz4"]]);
    assert_eq!(
        names(&profile),
        ["small+zstd-3", "resized+zstd-3", "small+zlib-6", "small+lz4", "resized+lz4"],
        "the best ones first"
    );
}

/// Where little is to be gained, the split as it is is run beside what should be better; where much is, it need not be.
#[test]
fn what_gains_little_is_compared_with_the_split_as_it_is() {
    let little = measured(100e6, [1.1, 1.0, 1.0]);
    let fast = with_runs(&little, &[]);
    assert_eq!(unsettled(&fast), [["resized+zstd-3", "resized"]]);
    let run = with_runs(&little, &[("resized+zstd-3", 90.0), ("resized", 100.0)]);
    let choice = &compression_choices(&run).unwrap()[0];
    assert_eq!(choice.compression, None);
    assert_eq!(
        choice.sentence,
        "kept as it is: the best compression, `zstd-3`, reads 1.10× fewer bytes; inflating costs 1.00 ms of the 10.0 ms that \
         the disk took; it was run, and gave 90.0 samples/s, and the split as it is 100 samples/s"
    );
    assert!(unsettled(&with_runs(&measured(100e6, [3.0, 1.0, 1.0]), &[])).is_empty(), "nothing to compare with");
}

/// Of a storage that gives 100 samples a second as they are: each format by its ratio, and how fast it compresses.
fn on_slow_storage(formats: &[(&str, f64, f64)]) -> Profile {
    let mut profile = measured(100e6, USUAL);
    let like = profile.compressions[1].clone();
    let cost = |&(name, ratio, compress): &(&str, f64, f64)| CompressionCost {
        strategy: format!("resized+{name}"),
        compression: name.to_owned(),
        ratio,
        compress_bytes_per_second: compress,
        ..like.clone()
    };
    profile.compressions = formats.iter().map(cost).collect();
    profile
}

/// The model is off by the same for formats of one family, and by something else for those of another.
#[test]
fn the_best_of_each_family_is_compared() {
    let all = [
        ("zstd-1", 2.7, 500e6),
        ("zstd-3", 3.0, 200e6),
        ("zstd-9", 3.1, 50e6),
        ("gzip", 3.2, 30e6),
        ("zlib-6", 3.15, 20e6),
        ("lz4", 2.5, 600e6),
        ("snappy", 2.45, 700e6),
    ];
    let profile = with_runs(&on_slow_storage(&all), &[]);
    // The second of a family where there is room for it.
    assert_eq!(unsettled(&profile), [["resized+gzip", "resized+zstd-9", "resized+lz4", "resized+zlib-6"]]);
    // One that is far behind the first of its family is not better, and one that is far behind the best is not either.
    let far =
        on_slow_storage(&[("zstd-9", 3.1, 50e6), ("zstd-1", 2.7, 500e6), ("lz4", 1.5, 600e6), ("gzip", 3.0, 30e6)]);
    assert_eq!(unsettled(&with_runs(&far, &[])), [["resized+zstd-9", "resized+gzip"]]);
    // The split as it is comes before the second of a family.
    let little = [("zstd-3", 1.18, 200e6), ("zstd-9", 1.19, 50e6), ("gzip", 1.17, 30e6), ("lz4", 1.1, 600e6)];
    let names = ["resized+zstd-3", "resized+gzip", "resized+lz4", "resized"];
    assert_eq!(unsettled(&with_runs(&on_slow_storage(&little), &[])), [names]);
    // What does not become smaller is no candidate, however wide its interval is.
    let dense = on_slow_storage(&[("zstd-3", 1.18, 200e6), ("lz4", 1.0, 600e6)]);
    assert_eq!(unsettled(&with_runs(&dense, &[])), [["resized+zstd-3", "resized"]]);
}

/// What was run is known, and what was not is only promised.
#[test]
fn what_was_not_run_must_promise_much_more() {
    let choice = |ratio: f64, rates: &[(&str, f64)]| {
        let run = with_runs(&measured(100e6, [3.0, 2.0, ratio]), rates);
        compression_choices(&run).unwrap().remove(0)
    };
    let run = [("resized+zstd-3", 300.0)];
    assert_eq!(choice(3.2, &run).compression.as_deref(), Some("zstd-3"));
    assert_eq!(choice(3.4, &run).compression.as_deref(), Some("zlib-6"));
    // The same holds against the split as it is.
    let run = [("resized", 295.0)];
    assert_eq!(choice(3.2, &run).compression, None);
}

/// What one algorithm takes of the shared cache says little about another that reaches less far back.
#[test]
fn each_family_is_corrected_by_its_own_runs() {
    let profile = measured(100e9, USUAL);
    let rate = |rates: &[(&str, f64)], name: &str| {
        let mut fast = profile.clone();
        fast.strategies.extend(profile.compressions.iter().map(|cost| compressed(&profile, cost).unwrap()));
        let fast = with_runs(&fast, rates);
        summarize(&fast, None).unwrap().into_iter().find(|one| one.name == name).unwrap().samples_per_second
    };
    let free = |name| rate(&[], name);
    // Of a millisecond's work and one or a third of inflating, on eight cores.
    assert!(close(free("resized+zstd-3"), 4000.0) && close(free("resized+lz4"), 6000.0), "{}", free("resized+lz4"));
    let slowed = |rate: f64, seconds: f64| 1.0 / (1.0 / rate + seconds);
    let run = [("resized+lz4", 6000.0), ("resized+zlib-6", slowed(free("resized+zlib-6"), 40e-6))];
    // Nothing of its own was run: the middle of the others.
    assert!(close(rate(&run, "resized+zstd-3"), slowed(4000.0, 20e-6)), "{}", rate(&run, "resized+zstd-3"));
    let run = [run[0], run[1], ("resized+zstd-3", slowed(4000.0, 100e-6))];
    let mut other = profile.clone();
    other.compressions.push(CompressionCost {
        strategy: "resized+zstd-9".to_owned(),
        compression: "zstd-9".to_owned(),
        ..profile.compressions[0].clone()
    });
    other
        .strategies
        .extend(other.compressions.iter().map(|cost| compressed(&other, cost).unwrap()).collect::<Vec<_>>());
    let fast = with_runs(&other, &run);
    let found = summarize(&fast, None).unwrap().into_iter().find(|one| one.name == "resized+zstd-9").unwrap();
    assert!(close(found.samples_per_second, slowed(4000.0, 100e-6)), "{found:?}");
}

/// Memory gives all threads together what it gives, however many there are.
#[test]
fn the_bandwidth_of_memory_is_shared() {
    let mut profile = measured(100e6, USUAL);
    profile.method.caching = Caching::System;
    let reading = |profile: &Profile| compressed(profile, &profile.compressions[1]).unwrap().reading.unwrap();
    // Half a MB at 5 GB/s.
    assert!(close(reading(&profile).samples_per_second, 10_000.0), "{:?}", reading(&profile));
    // Where readers got more than one thread copies, they get that of less, too.
    let mut faster = reading(&profile);
    faster.samples_per_second = 8000.0;
    profile.strategies[1].reading = Some(faster);
    assert!(close(reading(&profile).samples_per_second, 16_000.0), "{:?}", reading(&profile));
}

/// What inflating takes beside workers shows where it was run, by the byte.
#[test]
fn the_more_is_inflated_the_more_the_model_neglects() {
    let mut profile = measured(20e9, USUAL);
    // Tenths of the samples, of which a tenth of the work is left: of both forms the cores bind. One was run, and took 10 µs longer than the model says.
    let mut small = strategy("small", 4, 100, 15_000.0, 10_000_000);
    small.online_cpu_seconds = 0.000_1;
    profile.strategies.push(small);
    profile.compressions.truncate(1);
    let mut cost = profile.compressions[0].clone();
    (cost.strategy, cost.plain) = ("small+zstd-3".to_owned(), "small".to_owned());
    profile.compressions.push(cost);
    profile.storage.sequential_bytes_per_second = 4e9;
    profile.storage.stream_bytes_per_second = 4e9;
    profile.strategies[1].online_cpu_seconds = 0.001;
    let rate = |profile: &Profile, name: &str| {
        let all = summarize(profile, None).unwrap();
        all.into_iter().find(|summary| summary.name == name).unwrap().samples_per_second
    };
    let mut fast = with_runs(&profile, &[]);
    for name in ["resized+zstd-3", "small+zstd-3"] {
        if fast.strategies.iter().all(|strategy| strategy.name != name) {
            let like = fast.strategies.iter().find(|strategy| name.starts_with(&strategy.name)).unwrap().clone();
            let bytes_per_sample = like.bytes_per_sample / 3.0;
            fast.strategies.push(forebay_plan::StrategyProfile {
                name: name.to_owned(),
                bytes_per_sample,
                deserialize_cpu_seconds: like.bytes_per_sample / 1e9,
                ..like
            });
        }
    }
    // 200 µs of eight cores for each small sample, 2 ms for a large one.
    let (small, large) = (8.0 / 0.000_2, 8.0 / 0.002);
    assert!(close(rate(&fast, "small+zstd-3"), small) && close(rate(&fast, "resized+zstd-3"), large), "{fast:?}");
    let run_with = |seconds: f64| {
        let mut run = fast.clone();
        let of_small = run.strategies.iter_mut().find(|strategy| strategy.name == "small+zstd-3").unwrap();
        of_small.runs = with_runs(&profile, &[("small", 1.0 / (1.0 / small + seconds))]).strategies[2].runs.clone();
        run
    };
    let run = run_with(10e-6);
    assert!(close(rate(&run, "resized+zstd-3"), 1.0 / (1.0 / large + 100e-6)), "{}", rate(&run, "resized+zstd-3"));
    assert!(close(rate(&run, "resized"), 4e9 / 1e6), "what is not inflated is not slower for that");
    // Never more than as long again as it takes alone, a millisecond on eight cores.
    let run = run_with(100e-6);
    assert!(close(rate(&run, "resized+zstd-3"), 1.0 / (1.0 / large + 0.001 / 8.0)), "{}", rate(&run, "resized+zstd-3"));
    // What each sample takes however much is inflated shows where nothing is.
    let mut run = run_with(10e-6);
    run.strategies[2].runs = with_runs(&profile, &[("small", 1.0 / (1e5 / 4e9 + 10e-6))]).strategies[2].runs.clone();
    assert!(close(rate(&run, "resized+zstd-3"), 1.0 / (1.0 / large + 10e-6)), "{}", rate(&run, "resized+zstd-3"));
}

#[test]
fn slow_storage_wants_the_smallest_that_is_inflated_in_time() {
    // 100 MB/s: 10 ms a sample. `zlib-6` saves the most, and its 3.3 ms of inflating are hidden behind fifteen other readers.
    let slow = measured(100e6, USUAL);
    let all = ["resized+zlib-6", "resized+zstd-3", "resized+lz4"];
    assert_eq!(names(&slow), all, "the model is not so sure of the order");
    let choice = &compression_choices(&slow).unwrap()[0];
    assert_eq!((choice.strategy.as_str(), choice.compression.as_deref()), ("resized", Some("zlib-6")));
    assert!(close(choice.samples_per_second, 320.0) && close(choice.plain_samples_per_second, 100.0), "{choice:?}");
    assert_eq!(
        choice.sentence,
        "`zlib-6` reads 3.20× fewer bytes; inflating costs 3.33 ms of the 10.0 ms that the disk took"
    );
    // The faster the storage, the less inflating may take of the eight cores that have a millisecond of work a sample besides: 3.3 ms leave
    // 1,846 samples/s, 1 ms leaves 4,000, and a third of that 6,000.
    assert_eq!(names(&measured(1.5e9, USUAL))[0], "resized+zstd-3");
    assert_eq!(names(&measured(3e9, USUAL))[0], "resized+lz4");
}

#[test]
fn of_those_that_are_alike_the_one_that_is_prepared_soonest_is_taken() {
    let alike = measured(100e6, [3.2, 2.0, 3.21]);
    assert_eq!(names(&alike)[0], "resized+zstd-3");
    // Also where both were run.
    let run = with_runs(&alike, &[("resized+zstd-3", 300.0), ("resized+zlib-6", 303.0)]);
    assert_eq!(compression_choices(&run).unwrap()[0].compression.as_deref(), Some("zstd-3"));
    let run = with_runs(&alike, &[("resized+zstd-3", 300.0), ("resized+zlib-6", 320.0)]);
    assert_eq!(compression_choices(&run).unwrap()[0].compression.as_deref(), Some("zlib-6"));
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
    // Nothing was run, and three times fewer bytes are close to 3.2 times fewer.
    assert!(plan.reason.contains("the cost model cannot distinguish the two"), "{}", plan.reason);
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
