//! Runs into summaries, and profiles that no measurement can have given.

use forebay_error::ErrorKind;
use forebay_plan::{
    Bound, Caching, FirstBatch, Objective, Others, Profile, Run, Runs, Stats, StrategyProfile, Summary,
    break_even_epochs, first_batches, mix_notices, notices, plan, rank, rate_with_spread, summarize,
};

use crate::profiles::{close, presto_cv, profile, strategy};

fn run(samples: u64, seconds: f64) -> Run {
    Run { samples, skipped: 0, seconds, bytes_read: 0, first_batch: None, passes: 1, stats: None, others: None }
}

#[test]
fn t4_is_the_median_so_that_one_stall_says_nothing() {
    let mut measured = strategy("unprocessed", 0, 100, 1.0, 1000);
    measured.runs = vec![run(100, 1.0), run(100, 40.0), run(90, 1.0)];
    let summary = &summarize(&profile(100, vec![measured.clone()]), None).unwrap()[0];
    assert_eq!(
        (summary.samples_per_second, summary.min_samples_per_second, summary.max_samples_per_second),
        (90.0, 2.5, 100.0)
    );
    measured.runs = vec![run(100, 1.0), run(100, 2.0)];
    let summary = &summarize(&profile(100, vec![measured]), None).unwrap()[0];
    assert_eq!((summary.samples_per_second, summary.runs), (75.0, 2));
    assert!(close(summary.samples_per_second_std, 50.0 / 2.0_f64.sqrt()));
}

#[test]
fn the_start_of_a_run_is_told_apart() {
    let mut measured = strategy("unprocessed", 0, 100, 1.0, 1000);
    let first_batch = Some(FirstBatch { samples: 64, seconds: 3.0 });
    measured.runs = vec![Run { first_batch, ..run(1064, 8.0) }];
    let summary = &summarize(&profile(100, vec![measured]), None).unwrap()[0];
    assert_eq!((summary.samples_per_second, summary.first_batch_seconds), (200.0, Some(3.0)));
}

#[test]
fn disturbed_runs_count_only_where_there_are_no_others() {
    let disturbed =
        |seconds| Run { others: Some(Others { cores: 0.9, disk_bytes_per_second: 0.0 }), ..run(100, seconds) };
    let mut measured = strategy("unprocessed", 0, 100, 1.0, 1000);
    measured.runs = vec![disturbed(2.0), run(100, 1.0), disturbed(4.0)];
    let summary = &summarize(&profile(100, vec![measured.clone()]), None).unwrap()[0];
    assert_eq!((summary.samples_per_second, summary.runs, summary.disturbed), (100.0, 1, false));
    let busy_disk = |bytes_read, disk_bytes_per_second| Run {
        bytes_read,
        others: Some(Others { cores: 0.0, disk_bytes_per_second }),
        ..run(100, 1.0)
    };
    assert!(busy_disk(200_000_000, 150e6).is_disturbed());
    assert!(!busy_disk(400_000_000, 150e6).is_disturbed(), "little beside its own");
    assert!(!busy_disk(0, 50e6).is_disturbed());
    measured.runs.remove(1);
    let measured = profile(100, vec![measured]);
    let said = mix_notices(&measured).unwrap();
    assert!(said[0].starts_with("Other programs disturbed every run of 1 of 1 strategies"), "{said:?}");
    assert_eq!(said[1..], notices(&measured).unwrap());
    let found = plan(&measured, &Objective::default()).unwrap();
    assert!(found.ranking[0].summary.disturbed);
    assert!(found.reason.contains("Other programs disturbed every run of 1 of 1 strategies"), "{}", found.reason);
}

#[test]
fn where_all_runs_were_disturbed_the_model_counts() {
    let disturb = |strategy: &mut StrategyProfile| {
        let others = Others { cores: 0.9, disk_bytes_per_second: 0.0 };
        strategy.runs.iter_mut().for_each(|run| run.others = Some(others));
    };
    // 1 MB and 5 ms a sample: 910 samples/s by the model, of which others left 500.
    let mut slow = strategy("concatenated", 1, 100, 500.0, 100_000_000);
    slow.online_cpu_seconds = 0.005;
    let mut faster = strategy("decoded", 2, 100, 600.0, 110_000_000);
    faster.online_cpu_seconds = 0.001;
    [&mut slow, &mut faster].into_iter().for_each(disturb);
    let profile = profile(100, vec![slow, faster]);
    let summaries = summarize(&profile, None).unwrap();
    assert!((summaries[0].samples_per_second - 910.0).abs() < 1e-6);
    assert_eq!((summaries[0].disturbed, summaries[0].prediction_error), (true, None));
    assert!(
        summaries[0].min_samples_per_second <= 500.0 && summaries[0].max_samples_per_second > 910.0,
        "{:?}",
        summaries[0]
    );
    let found = plan(&profile, &Objective::default()).unwrap();
    assert_eq!(found.chosen, "concatenated", "the measurement would have chosen the other");
    assert!(found.reason.contains("may be wrong about `decoded`"), "{}", found.reason);
    assert_eq!(found.unsure_about, ["decoded"]);
}

#[test]
fn what_the_threads_show_outweighs_the_model() {
    let mut profile = presto_cv();
    let modeled = summarize(&profile, None).unwrap();
    let number = modeled.iter().position(|summary| summary.bound_by == Bound::Storage).unwrap();
    let cores = profile.machine.cores as f64;
    let stats = Stats {
        seconds: 10.0,
        threads: 2,
        work_seconds: 19.6,
        read_wait_seconds: 14.0,
        consumer_wait_seconds: 9.0,
        user_seconds: 9.5 * cores,
        ..Stats::default()
    };
    profile.strategies[number].runs.iter_mut().for_each(|run| run.stats = Some(stats));
    let summary = &summarize(&profile, None).unwrap()[number];
    assert_eq!((summary.bound_by, summary.modeled_bound_by), (Bound::Cpu, Bound::Storage));
    let ranking = rank(&profile, &Objective::default()).unwrap();
    let found = ranking.strategies().iter().find(|ranked| ranked.summary.name == modeled[number].name).unwrap();
    let words = "the runs were CPU-bound: workers busy 98 %, readers waiting for space 70 %; ";
    assert!(found.sentence.contains(words), "{}", found.sentence);
    // A trainer that takes no more binds all the same.
    assert_eq!(summarize(&profile, Some(1.0)).unwrap()[number].bound_by, Bound::Trainer);
}

#[test]
fn one_run_has_no_spread() {
    let mut measured = strategy("unprocessed", 0, 100, 1.0, 1000);
    measured.runs.truncate(1);
    let summary = &summarize(&profile(100, vec![measured]), None).unwrap()[0];
    assert_eq!((summary.runs, summary.samples_per_second_std), (1, 0.0));
}

#[test]
fn rates_are_shown_with_what_they_leave_open() {
    let mut summary =
        summarize(&profile(100, vec![strategy("unprocessed", 0, 100, 1.0, 1000)]), None).unwrap().remove(0);
    summary.samples_per_second = 3905.0;
    (summary.min_samples_per_second, summary.max_samples_per_second) = (3600.2, 4200.0);
    summary.samples_per_second_std = 25.0;
    let shown = |runs, disturbed| rate_with_spread(&Summary { runs, disturbed, ..summary.clone() });
    assert_eq!([shown(3, false), shown(1, false)], ["3,905 ± 25.0", "3,905"]);
    assert_eq!([shown(0, false), shown(3, true)], ["3,905 (3,600-4,200)", "≈ 3,905 (3,600-4,200)"]);
    summary.max_samples_per_second = 3600.0;
    assert_eq!(rate_with_spread(&Summary { runs: 0, ..summary }), "3,905", "nothing is left open");
}

#[test]
fn first_batches_are_said_from_the_soonest_to_the_latest() {
    let mut summaries = summarize(&presto_cv(), None).unwrap();
    assert_eq!(first_batches(&summaries), None, "nobody looked");
    summaries[1].first_batch_seconds = Some(1.2);
    assert_eq!(first_batches(&summaries).unwrap(), "First batches came after 1.20 s (`concatenated`)");
    summaries[3].first_batch_seconds = Some(0.021);
    let said = "First batches came after 21.0 ms (`resized`) to 1.20 s (`concatenated`)";
    assert_eq!(first_batches(&summaries).unwrap(), said);
}

#[test]
fn the_run_that_fills_the_page_cache_does_not_count() {
    let mut measured = strategy("unprocessed", 0, 100, 1.0, 1000);
    measured.runs = vec![run(100, 50.0), run(100, 1.0), run(100, 1.0)];
    let mut profile = profile(100, vec![measured]);
    profile.method.caching = Caching::System;
    let summary = &summarize(&profile, None).unwrap()[0];
    assert_eq!((summary.samples_per_second, summary.runs), (100.0, 2));
    profile.strategies[0].runs.truncate(1);
    let error = summarize(&profile, None).unwrap_err();
    assert!(error.to_string().contains("--runs 2"), "{error}");
}

#[test]
fn storage_and_preparation_are_extrapolated_by_samples() {
    let mut profile = presto_cv();
    profile.data.samples *= 10;
    let summary = &summarize(&profile, None).unwrap()[3];
    assert_eq!(summary.storage_bytes, 347_297_000_000);
    assert_eq!(summary.storage_bytes_total, 3_472_970_000_000);
    assert_eq!((summary.prep_seconds, summary.prep_seconds_total), (13_000.0, 130_000.0));
    assert!(close(summary.epoch_seconds_total, 12_811_670.0 / 1789.0));
}

#[test]
fn speedup_and_break_even_are_against_reading_files() {
    let summaries = summarize(&presto_cv(), None).unwrap();
    let found: Vec<_> = summaries.iter().map(|summary| summary.break_even_epochs).collect();
    // Epochs: 11,973.5 s unprocessed; 1331.8, 1717.4, 716.1, 2224.2 s the others.
    assert_eq!(found, [Some(0), Some(1), Some(2), Some(2), Some(2)]);
    assert!(close(summaries[3].speedup.unwrap(), 1789.0 / 107.0));
    // A strategy that is slower than another never pays off against it.
    assert_eq!(break_even_epochs(&summaries[4], &summaries[3]), None);
    let without = Profile { strategies: presto_cv().strategies[1..].to_vec(), ..presto_cv() };
    let summary = &summarize(&without, None).unwrap()[0];
    assert_eq!((summary.speedup, summary.break_even_epochs), (None, None));
}

#[test]
fn a_slow_trainer_lengthens_the_epoch_and_the_way_to_break_even() {
    let summaries = summarize(&presto_cv(), Some(150.0)).unwrap();
    assert!(close(summaries[3].epoch_seconds_total, 1_281_167.0 / 150.0));
    // 11,973.5 s against 8541.1 s an epoch, for 13,000 s once.
    assert_eq!(summaries[3].break_even_epochs, Some(4));
    // The prediction is of what was measured, and there was no trainer.
    assert!(summaries[3].predicted_samples_per_second.unwrap() > 1000.0);
}

#[test]
fn the_error_is_relative_to_the_measurement() {
    let summaries = summarize(&presto_cv(), None).unwrap();
    let resized = &summaries[3];
    let expected = resized.predicted_samples_per_second.unwrap() / 1789.0 - 1.0;
    assert!(close(resized.prediction_error.unwrap(), expected));
    let mut nothing = presto_cv();
    nothing.strategies[0].runs = vec![run(0, 1.0)];
    let summaries = summarize(&nothing, None).unwrap();
    assert_eq!((summaries[0].samples_per_second, summaries[0].prediction_error), (0.0, None));
    assert!(summaries.iter().all(|summary| summary.speedup.is_none()));
}

#[test]
fn where_the_model_was_off_it_is_believed_less() {
    let whole = summarize(&presto_cv(), None).unwrap();
    let mut few = presto_cv();
    few.method.runs = Runs::Fast;
    // Two that the disk bounds: one was run, and reached half of what the model says.
    let [decoded, centered] = [2, 4];
    assert_eq!(whole[decoded].bound_by, whole[centered].bound_by);
    let predicted = |number: usize| whole[number].predicted_samples_per_second.unwrap();
    for strategy in &mut few.strategies {
        strategy.runs.clear();
    }
    // The start of a run is no fault of the model.
    let with_start = |rate: f64| {
        let first_batch = Some(FirstBatch { samples: 64, seconds: 9.0 });
        Run { first_batch, ..run(1064, 9.0 + 1000.0 / rate) }
    };
    few.strategies[decoded].runs = vec![with_start(predicted(decoded) / 2.0)];
    let found = summarize(&few, None).unwrap();
    // What it took longer for a sample, others will, too: less of those that take long anyway.
    let expected = (predicted(centered).recip() + predicted(decoded).recip()).recip();
    assert!(close(found[centered].samples_per_second, expected));
    // What is bound by something else is taken at the model's word, and nothing becomes faster than that.
    let other = whole.iter().position(|summary| summary.bound_by != whole[decoded].bound_by).unwrap();
    assert!(close(found[other].samples_per_second, predicted(other)));
    few.strategies[decoded].runs = vec![with_start(predicted(decoded) * 2.0)];
    assert!(close(summarize(&few, None).unwrap()[centered].samples_per_second, predicted(centered)));
    // What others did to a run says nothing about the model.
    let others = Some(Others { cores: 0.9, disk_bytes_per_second: 0.0 });
    few.strategies[decoded].runs = vec![Run { others, ..with_start(predicted(decoded) / 2.0) }];
    assert!(few.strategies[decoded].runs[0].is_disturbed());
    assert!(close(summarize(&few, None).unwrap()[centered].samples_per_second, predicted(centered)));
}

#[test]
fn profiles_that_no_measurement_gives_are_refused() {
    let changes: [fn(&mut Profile); 12] = [
        |profile| profile.version = 2,
        |profile| profile.strategies.clear(),
        |profile| profile.method.sample_count = 0,
        |profile| profile.strategies[1].runs.clear(),
        |profile| profile.strategies[1].runs[0].seconds = 0.0,
        |profile| profile.strategies[1].runs[0].seconds = f64::NAN,
        |profile| profile.strategies[1].prep_seconds = -1.0,
        |profile| profile.strategies[1].online_cpu_seconds = f64::INFINITY,
        |profile| profile.strategies[1].name = "unprocessed".to_owned(),
        |profile| profile.strategies[1].split.position = 9,
        |profile| profile.storage.files_per_second = f64::NAN,
        |profile| drop(profile.steps.pop()),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut profile = presto_cv();
        change(&mut profile);
        let class = summarize(&profile, None).unwrap_err().kind();
        assert!(matches!(class, ErrorKind::Data | ErrorKind::Unsupported), "change {number}: {class:?}");
    }
}
