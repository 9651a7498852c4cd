//! The cost model by hand, with its edge cases.

use forebay_plan::{
    Alone, Bound, Caching, Prediction, Profile, StrategyProfile, WhatIf, forecasts, mix_limits, predict,
};

use crate::profiles::{close, profile, strategy};

/// 8 threads on 8 cores, 910 MB/s, 107 files of 114,661 bytes per second; one strategy of 1 MB and 5 ms per sample.
fn one(position: usize) -> Profile {
    let mut strategy = strategy("one", position, 100, 500.0, 100_000_000);
    strategy.deserialize_cpu_seconds = 0.001;
    strategy.online_cpu_seconds = 0.004;
    profile(100, vec![strategy])
}

fn prediction(profile: &Profile) -> Prediction {
    predict(profile, &profile.strategies[0], None)
}

fn changed(change: impl FnOnce(&mut Profile)) -> Prediction {
    let mut profile = one(1);
    change(&mut profile);
    prediction(&profile)
}

fn with_strategy(change: impl FnOnce(&mut StrategyProfile)) -> Prediction {
    changed(|profile| change(&mut profile.strategies[0]))
}

#[test]
fn t4_is_the_smallest_of_load_decode_and_trainer() {
    let found = prediction(&one(1));
    assert!(close(found.load.unwrap(), 910.0));
    assert!(close(found.decode.unwrap(), 1600.0));
    assert_eq!((found.samples_per_second, found.bound_by), (found.load, Bound::Storage));
    let profile = one(1);
    let trained = predict(&profile, &profile.strategies[0], Some(300.0));
    assert_eq!((trained.samples_per_second, trained.bound_by), (Some(300.0), Bound::Trainer));
    let slow = with_strategy(|strategy| strategy.online_cpu_seconds = 0.039);
    assert_eq!((slow.samples_per_second, slow.bound_by), (Some(200.0), Bound::Cpu));
}

#[test]
fn no_more_threads_work_than_there_are_cores() {
    assert!(close(changed(|profile| profile.machine.cores = 2).decode.unwrap(), 400.0));
    assert!(close(changed(|profile| profile.method.threads = 1).decode.unwrap(), 200.0));
    assert!(close(changed(|profile| profile.machine.cores = 0).decode.unwrap(), 200.0));
}

#[test]
fn files_of_another_size_keep_their_fixed_time() {
    let mut profile = one(0);
    profile.storage.sequential_bytes_per_second = 100e6;
    profile.storage.files_per_second = 100.0;
    profile.storage.file_bytes = 500_000.0;
    // 10 ms a file, 5 ms of it for 0.5 MB: a file of 1 MB takes 15 ms, one of 0.5 MB the 10 ms measured.
    assert!(close(prediction(&profile).load.unwrap(), 1.0 / 0.015));
    let samples = profile.method.sample_count;
    // One sample of each file, as many bytes on storage as these come to.
    let resize = |profile: &mut Profile, bytes: u64| {
        profile.strategies[0].bytes_per_sample = bytes as f64;
        profile.strategies[0].storage_bytes = bytes * samples;
    };
    resize(&mut profile, 500_000);
    assert!(close(prediction(&profile).load.unwrap(), 100.0));
    // Measured faster than the sequential rate allows: all of it goes by size.
    profile.storage.files_per_second = 400.0;
    resize(&mut profile, 1_000_000);
    assert!(close(prediction(&profile).load.unwrap(), 200.0));
    // Without sizes there is nothing to scale by.
    resize(&mut profile, 0);
    assert!(close(prediction(&profile).load.unwrap(), 400.0));
}

#[test]
fn a_file_that_becomes_several_samples_is_opened_once() {
    let mut profile = one(0);
    profile.storage.sequential_bytes_per_second = 100e6;
    profile.storage.files_per_second = 100.0;
    profile.storage.file_bytes = 500_000.0;
    profile.strategies[0].storage_bytes = 500_000 * profile.method.sample_count;
    profile.strategies[0].bytes_per_sample = 125_000.0;
    assert!(close(prediction(&profile).load.unwrap(), 400.0));
}

#[test]
fn caching_takes_storage_out() {
    let system = changed(|profile| profile.method.caching = Caching::System);
    assert_eq!((system.load, system.bound_by), (Some(5000.0), Bound::Cpu));
    let application = changed(|profile| profile.method.caching = Caching::Application);
    assert_eq!((application.load, application.decode), (None, Some(2000.0)));
}

#[test]
fn what_costs_nothing_or_was_not_measured_bounds_nothing() {
    for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(with_strategy(|strategy| strategy.bytes_per_sample = nothing).load, None);
        assert_eq!(changed(|profile| profile.storage.sequential_bytes_per_second = nothing).load, None);
        assert_eq!(with_strategy(|strategy| strategy.online_cpu_seconds = nothing - 0.001).decode, None);
    }
    let free = changed(|profile| {
        profile.method.caching = Caching::Application;
        profile.strategies[0].online_cpu_seconds = 0.0;
    });
    assert_eq!((free.samples_per_second, free.bound_by), (None, Bound::Unknown));
}

#[test]
fn of_equal_bounds_the_trainer_is_named_first_then_storage() {
    let mut profile = one(1);
    profile.strategies[0].bytes_per_sample = 910e6 / 1600.0;
    assert_eq!(prediction(&profile).bound_by, Bound::Storage);
    assert_eq!(predict(&profile, &profile.strategies[0], Some(1600.0)).bound_by, Bound::Trainer);
}

/// One half of loading, by 8 threads.
fn alone(samples_per_second: f64, cpu_seconds: f64) -> Alone {
    Alone {
        samples_per_second,
        min_samples_per_second: 0.9 * samples_per_second,
        max_samples_per_second: 1.2 * samples_per_second,
        cpu_seconds,
        threads: 8,
        disturbed: false,
    }
}

#[test]
fn what_readers_reach_alone_is_what_storage_gives() {
    let mut profile = one(1);
    profile.strategies[0].reading = Some(alone(700.0, 0.0));
    let found = prediction(&profile);
    assert_eq!((found.load, found.bound_by), (Some(700.0), Bound::Storage));
    // Of another storage it says nothing.
    let what_if = WhatIf { read_bytes_per_second: Some(500e6), ..WhatIf::default() };
    let there = &forecasts(&profile, &what_if, None).unwrap()[0].prediction;
    assert!(close(there.load.unwrap(), 500.0));
    let what_if = WhatIf { cores: Some(16), ..WhatIf::default() };
    assert_eq!(forecasts(&profile, &what_if, None).unwrap()[0].prediction.load, Some(700.0));
    // What took no time to read, or was too little to tell, is left to the rates.
    profile.strategies[0].reading = Some(alone(0.0, 0.0));
    assert!(close(prediction(&profile).load.unwrap(), 910.0));
}

#[test]
fn reading_takes_processor_time_from_the_work() {
    let with = |cpu_seconds| with_strategy(|strategy| strategy.reading = Some(alone(5000.0, cpu_seconds)));
    assert!(close(with(0.0).decode.unwrap(), 1600.0));
    // 5 ms of work and 3 of reading on 8 cores.
    assert!(close(with(0.003).decode.unwrap(), 1000.0));
    // One worker has a core to itself while others read.
    let one_thread = changed(|profile| {
        profile.method.threads = 1;
        profile.strategies[0].reading = Some(alone(5000.0, 0.003));
    });
    assert!(close(one_thread.decode.unwrap(), 200.0));
    // Without a measurement of the strategy's own, by the byte; readers have no more time than there is.
    let by_bytes = changed(|profile| profile.storage.cpu_seconds_per_byte = 10e-9);
    assert!(close(by_bytes.decode.unwrap(), 8.0 / 0.015));
    assert!(close(by_bytes.load.unwrap(), 800.0));
    let cached = changed(|profile| {
        profile.method.caching = Caching::Application;
        profile.storage.cpu_seconds_per_byte = 10e-9;
    });
    assert!(close(cached.decode.unwrap(), 2000.0));
}

#[test]
fn workers_that_get_in_each_others_way_are_believed_unless_others_did_it() {
    // 8 workers of 5 ms could give 1,600 a second.
    let slowed = with_strategy(|strategy| strategy.working = Some(alone(1200.0, 0.005)));
    assert!(close(slowed.decode.unwrap(), 1200.0));
    let disturbed = Alone { disturbed: true, ..alone(1200.0, 0.005) };
    assert!(close(with_strategy(|strategy| strategy.working = Some(disturbed)).decode.unwrap(), 1600.0));
    let mut profile = one(1);
    profile.strategies[0].working = Some(alone(1200.0, 0.005));
    let what_if = WhatIf { cores: Some(2), ..WhatIf::default() };
    assert!(close(forecasts(&profile, &what_if, None).unwrap()[0].prediction.decode.unwrap(), 300.0));
}

#[test]
fn an_interval_is_as_wide_as_the_measurements_parts_lie_apart() {
    let found = with_strategy(|strategy| {
        strategy.reading = Some(alone(5000.0, 0.0));
        strategy.working = Some(alone(1600.0, 0.005));
    });
    let [low, middle, high] = [found.min_samples_per_second, found.samples_per_second, found.max_samples_per_second];
    assert!(close(middle.unwrap(), 1600.0));
    assert!(close(low.unwrap(), 1600.0 * 0.9 * 0.95));
    assert!(close(high.unwrap(), 1600.0 * 1.2 * 1.05));
}

#[test]
fn a_mix_reads_as_fast_as_its_shards_were_read() {
    let mut profile = one(1);
    let sequential = profile.storage.sequential_bytes_per_second;
    assert!(close(mix_limits(&profile, 0).read_bytes_per_second, sequential));
    profile.strategies[0].reading = Some(alone(1200.0, 0.001));
    let bytes = profile.strategies[0].bytes_per_sample;
    assert!(close(mix_limits(&profile, 0).read_bytes_per_second, 1200.0 * bytes));
    // What came out of the page cache says nothing of the storage.
    profile.method.caching = Caching::System;
    assert!(close(mix_limits(&profile, 0).read_bytes_per_second, sequential));
}
