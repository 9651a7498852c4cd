//! What holds of every ranking.

use forebay_plan::{Limits, Objective, Plan, Profile, Weights, WhatIf, analyze, forecasts, plan, rank};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::profiles::{profile, strategy, weights};

const SAMPLES: u64 = 1000;

prop_compose! {
    /// Throughput, storage, preparation, bytes and processor seconds of a strategy; equal values are likely.
    fn any_costs()(
        t4 in prop_oneof![1.0..10_000.0_f64, Just(500.0)],
        storage_bytes in prop_oneof![0..10_000_000_000_u64, Just(1_000_000)],
        prep_seconds in prop_oneof![0.0..100_000.0_f64, Just(0.0)],
        online_cpu_seconds in 0.0..0.1_f64,
    ) -> (f64, u64, f64, f64) {
        (t4, storage_bytes, prep_seconds, online_cpu_seconds)
    }
}

prop_compose! {
    fn any_profile()(costs in vec(any_costs(), 1..8)) -> Profile {
        let strategies = costs.into_iter().enumerate().map(|(number, (t4, storage_bytes, prep_seconds, online))| {
            let mut strategy = strategy(&format!("strategy-{number}"), number.min(4), SAMPLES, t4, storage_bytes);
            strategy.prep_seconds = prep_seconds;
            strategy.online_cpu_seconds = online;
            strategy
        });
        profile(SAMPLES, strategies.collect())
    }
}

prop_compose! {
    fn any_weights()(prep in 0.0..10.0_f64, storage in 0.0..10.0_f64, throughput in 0.001..10.0_f64) -> Weights {
        weights(prep, storage, throughput)
    }
}

/// Usual numbers, unusual ones, and any at all.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 1e-3..1e6_f64, 2 => Just(0.0), 2 => 1e-30..1e30_f64, 1 => any::<f64>()]
}

fn by(weights: Weights) -> Objective {
    Objective { weights, ..Objective::default() }
}

fn names(profile: &Profile, objective: &Objective) -> Vec<String> {
    let ranking = rank(profile, objective).unwrap();
    ranking.strategies().iter().map(|ranked| ranked.summary.name.clone()).collect()
}

proptest! {
    #[test]
    fn scores_are_in_order_and_within_0_and_1(profile in any_profile(), weights in any_weights()) {
        let ranking = rank(&profile, &by(weights)).unwrap();
        let scores: Vec<f64> = ranking.strategies().iter().map(|ranked| ranked.score.unwrap()).collect();
        prop_assert_eq!(scores.len(), profile.strategies.len());
        prop_assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
        prop_assert!(scores.is_sorted_by(|one, other| one >= other));
    }

    #[test]
    fn the_order_does_not_depend_on_the_order_of_the_profile(mut profile in any_profile(), weights in any_weights()) {
        let before = names(&profile, &by(weights));
        profile.strategies.reverse();
        prop_assert_eq!(names(&profile, &by(weights)), before);
    }

    /// Powers of two scale without rounding, so even ties stay ties.
    #[test]
    fn the_order_does_not_depend_on_units(
        mut profile in any_profile(), weights in any_weights(), time in -8..8_i32, rate in -8..8_i32, scale in -8..8_i32,
    ) {
        let before = names(&profile, &by(weights));
        for strategy in &mut profile.strategies {
            strategy.prep_seconds *= 2.0_f64.powi(time);
            strategy.storage_bytes *= 8;
            for run in &mut strategy.runs {
                run.seconds *= 2.0_f64.powi(rate);
            }
        }
        let scale = 2.0_f64.powi(scale);
        let scaled = Weights {
            prep: weights.prep * scale,
            storage: weights.storage * scale,
            throughput: weights.throughput * scale,
            money: 0.0,
        };
        prop_assert_eq!(names(&profile, &by(scaled)), before);
    }

    #[test]
    fn throughput_alone_chooses_the_fastest(profile in any_profile()) {
        let ranking = rank(&profile, &Objective::default()).unwrap();
        let best = ranking.best().summary.samples_per_second;
        prop_assert!(ranking.strategies().iter().all(|ranked| ranked.summary.samples_per_second <= best));
    }

    #[test]
    fn a_dominated_strategy_changes_no_winner(mut profile in any_profile(), slower in 0.01..0.99_f64) {
        let before = plan(&profile, &Objective::default()).unwrap().chosen;
        let best = profile.strategies.iter().find(|strategy| strategy.name == before).unwrap();
        let mut dominated = best.clone();
        dominated.name = "dominated".to_owned();
        dominated.prep_seconds += 1.0;
        dominated.storage_bytes += 1;
        for run in &mut dominated.runs {
            run.seconds /= slower;
        }
        profile.strategies.push(dominated);
        prop_assert_eq!(plan(&profile, &Objective::default()).unwrap().chosen, before);
    }

    /// A tighter limit rules out at least what a looser one does, and what is chosen meets it.
    #[test]
    fn limits_are_monotonic(
        profile in any_profile(), storage in vec(0..10_000_000_000_u64, 2), prep in vec(0.0..100_000.0_f64, 2),
    ) {
        let limits = |storage: u64, prep: f64| Objective {
            limits: Limits { max_storage_bytes: Some(storage), max_prep_seconds: Some(prep), lossless: false },
            ..Objective::default()
        };
        let allowed = |objective: &Objective| match rank(&profile, objective) {
            Ok(ranking) => {
                let best = &ranking.best().summary;
                assert!(Some(best.storage_bytes_total) <= objective.limits.max_storage_bytes);
                assert!(Some(best.prep_seconds_total) <= objective.limits.max_prep_seconds);
                let left = ranking.strategies().iter().filter(|ranked| ranked.excluded.is_none());
                left.map(|ranked| ranked.summary.name.clone()).collect()
            }
            Err(_) => Vec::new(),
        };
        let tight = allowed(&limits(storage[0].min(storage[1]), prep[0].min(prep[1])));
        let loose = allowed(&limits(storage[0].max(storage[1]), prep[0].max(prep[1])));
        prop_assert!(tight.iter().all(|name| loose.contains(name)));
    }

    #[test]
    fn plans_come_back_from_json(profile in any_profile(), weights in any_weights(), trainer in proptest::option::of(1.0..9e3)) {
        let plan = plan(&profile, &Objective { trainer_samples_per_second: trainer, ..by(weights) }).unwrap();
        prop_assert_eq!(Plan::parse(&plan.to_json().unwrap()).unwrap(), plan);
    }

    /// Whatever numbers a profile file holds, there is a plan or an error, never a panic.
    #[test]
    fn no_profile_makes_planning_panic(
        mut profile in any_profile(),
        values in vec(wild(), 8),
        counts in vec(any::<u64>(), 6),
    ) {
        profile.machine.memory_bytes_per_second = values[0];
        profile.storage.sequential_bytes_per_second = values[1].abs();
        profile.storage.files_per_second = values[2].abs();
        profile.storage.file_bytes = values[3].abs();
        profile.method.sample_count = counts[0];
        profile.data.samples = counts[1];
        profile.data.bytes = counts[2];
        for strategy in &mut profile.strategies {
            strategy.storage_bytes = counts[3];
            strategy.bytes_per_sample = values[4].abs();
            strategy.prep_seconds = values[5].abs();
            strategy.online_cpu_seconds = values[6].abs();
            strategy.runs[0].seconds = values[7].abs();
            strategy.runs[0].samples = counts[4];
            strategy.split.position = (counts[5] % 7) as usize;
        }
        if let Ok(plan) = plan(&profile, &Objective::default()) {
            prop_assert_eq!(Plan::parse(&plan.to_json().unwrap()).unwrap(), plan);
        }
    }

    /// Whoever wants something of everything is best served from the front.
    #[test]
    fn the_winner_is_on_the_front(profile in any_profile(), weights in any_weights()) {
        let objective = by(Weights { prep: weights.prep + 0.01, storage: weights.storage + 0.01, ..weights });
        let analysis = analyze(&profile, &objective).unwrap();
        let winner = analysis.strategies.iter().find(|one| one.rank == 1).unwrap();
        prop_assert!(winner.pareto);
    }

    #[test]
    fn the_same_machine_gives_what_was_measured(profile in any_profile()) {
        for forecast in forecasts(&profile, &WhatIf::default(), None).unwrap() {
            let (expected, measured) = (forecast.expected_samples_per_second, forecast.measured_samples_per_second);
            prop_assert!((expected / measured - 1.0).abs() < 1e-9, "{} {}", expected, measured);
        }
    }
}
