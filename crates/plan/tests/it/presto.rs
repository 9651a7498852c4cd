//! The planner on PRESTO's published CV figures, with results worked out by hand.

use forebay_error::ErrorKind;
use forebay_plan::{Bound, Caching, Error, Limits, Objective, Weights, plan, rank};

use crate::profiles::{presto_cv, weights};

fn by(weights: Weights) -> Objective {
    Objective { weights, ..Objective::default() }
}

fn within(limits: Limits) -> Objective {
    Objective { limits, ..Objective::default() }
}

fn names(objective: &Objective) -> Vec<String> {
    let ranking = rank(&presto_cv(), objective).unwrap();
    ranking.strategies().iter().map(|ranked| ranked.summary.name.clone()).collect()
}

#[test]
fn throughput_alone_chooses_resized() {
    let order = ["resized", "concatenated", "decoded", "pixel-centered", "unprocessed"];
    assert_eq!(names(&Objective::default()), order);
    assert_eq!(names(&by(weights(0.0, 0.0, 3.0))), order);
}

#[test]
fn storage_alone_and_preparation_alone_choose_unprocessed() {
    assert_eq!(
        names(&by(weights(0.0, 1.0, 0.0))),
        ["unprocessed", "concatenated", "resized", "decoded", "pixel-centered"]
    );
    assert_eq!(
        names(&by(weights(1.0, 0.0, 0.0))),
        ["unprocessed", "concatenated", "resized", "decoded", "pixel-centered"]
    );
}

/// Storage is normalized over 1,388,941 - 146,900 = 1,242,041 MB and inverted, throughput over 1789 - 107 = 1682.
#[test]
fn scores_are_those_worked_out_by_hand() {
    let ranking = rank(&presto_cv(), &by(weights(0.0, 1.0, 1.0))).unwrap();
    let expected = [
        ("resized", f64::midpoint(1_041_644.0 / 1_242_041.0, 1.0)),
        ("concatenated", f64::midpoint(1_241_989.0 / 1_242_041.0, 855.0 / 1682.0)),
        ("unprocessed", 0.5),
        ("decoded", f64::midpoint(546_459.0 / 1_242_041.0, 639.0 / 1682.0)),
        ("pixel-centered", f64::midpoint(0.0, 469.0 / 1682.0)),
    ];
    for (ranked, (name, score)) in ranking.strategies().iter().zip(expected) {
        assert_eq!(ranked.summary.name, name);
        let found = ranked.score.unwrap();
        assert!((found - score).abs() < 1e-9, "{name}: {found} is not {score}");
    }
}

#[test]
fn limits_rule_out_and_say_by_how_much() {
    let limits = Limits { max_storage_bytes: Some(200_000_000_000), ..Limits::default() };
    let plan = plan(&presto_cv(), &within(limits)).unwrap();
    assert_eq!(plan.chosen, "concatenated");
    let excluded: Vec<_> = plan.ranking.iter().filter(|ranked| ranked.excluded.is_some()).collect();
    assert_eq!(excluded.len(), 3);
    assert_eq!(excluded[0].summary.name, "resized");
    assert_eq!(excluded[0].score, None);
    assert_eq!(excluded[0].excluded.as_deref(), Some("needs 347 GB of storage, 147 GB over the limit of 200 GB"));
    assert!(plan.reason.ends_with("The limits exclude `resized`, `decoded`, `pixel-centered`."), "{}", plan.reason);
}

#[test]
fn a_limit_that_is_met_exactly_is_met() {
    let limits = Limits { max_storage_bytes: Some(347_297_000_000), max_prep_seconds: Some(13_000.0), lossless: true };
    assert_eq!(plan(&presto_cv(), &within(limits)).unwrap().chosen, "resized");
    let less = Limits { max_storage_bytes: Some(347_296_999_999), ..limits };
    assert_eq!(plan(&presto_cv(), &within(less)).unwrap().chosen, "concatenated");
}

#[test]
fn lossless_rules_out_what_is_kept_lossy() {
    let mut profile = presto_cv();
    profile.strategies[3].lossy = true;
    let limits = Limits { lossless: true, ..Limits::default() };
    let plan = plan(&profile, &within(limits)).unwrap();
    assert_eq!(plan.chosen, "concatenated");
    let last = plan.ranking.last().unwrap();
    assert_eq!(last.excluded.as_deref(), Some("is lossy, and only lossless strategies are allowed"));
}

#[test]
fn where_none_is_left_each_miss_is_listed() {
    let limits = Limits { max_storage_bytes: Some(100_000_000_000), ..Limits::default() };
    let error = plan(&presto_cv(), &within(limits)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(
        error.to_string(),
        "no strategy meets the limits\n  \
         `unprocessed`: needs 147 GB of storage, 46.9 GB over the limit of 100 GB\n  \
         `concatenated`: needs 147 GB of storage, 47.0 GB over the limit of 100 GB\n  \
         `decoded`: needs 842 GB of storage, 742 GB over the limit of 100 GB\n  \
         `resized`: needs 347 GB of storage, 247 GB over the limit of 100 GB\n  \
         `pixel-centered`: needs 1.39 TB of storage, 1.29 TB over the limit of 100 GB\n\
         hint: `unprocessed` comes nearest: allow `146900000000` bytes of storage"
    );
    let Error::NoneLeft { excluded, .. } = error else { panic!("the wrong error") };
    assert_eq!(excluded.len(), 5);
}

#[test]
fn weights_and_rates_that_make_no_sense_are_refused() {
    let wrong = [
        weights(0.0, 0.0, 0.0),
        weights(-1.0, 0.0, 1.0),
        weights(0.0, f64::NAN, 1.0),
        weights(0.0, 0.0, f64::INFINITY),
    ];
    let wrong_weights = wrong.map(by);
    let wrong_limits =
        [-1.0, f64::NAN].map(|limit| within(Limits { max_prep_seconds: Some(limit), ..Limits::default() }));
    let wrong_rates =
        [0.0, -1.0, f64::NAN].map(|rate| Objective { trainer_samples_per_second: Some(rate), ..Objective::default() });
    for objective in wrong_weights.iter().chain(&wrong_limits).chain(&wrong_rates) {
        let error = plan(&presto_cv(), objective).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{objective:?}: {error}");
    }
}

#[test]
fn each_strategy_says_what_binds_it() {
    let plan = plan(&presto_cv(), &Objective::default()).unwrap();
    let sentence = |name: &str| {
        let ranked = plan.ranking.iter().find(|ranked| ranked.summary.name == name).unwrap();
        ranked.sentence.as_str()
    };
    assert_eq!(
        sentence("unprocessed"),
        "bound by opening files: 107 files/s of 115 kB each; the CPU could do 958 samples/s"
    );
    assert_eq!(
        sentence("concatenated"),
        "CPU-bound: 8.40 ms of work per sample, most of it decode, on 8 threads allow 952 samples/s; reading could \
         give 7,934 samples/s"
    );
    assert_eq!(
        sentence("decoded"),
        "disk-bound: 658 kB per sample at 910 MB/s allows 1,384 samples/s; the CPU could do 3,333 samples/s; the \
         model is 86 % above the 746 samples/s measured, so something else matters too"
    );
}

#[test]
fn the_reason_names_the_choice_the_bound_the_gain_and_the_cost() {
    let plan = plan(&presto_cv(), &Objective::default()).unwrap();
    assert_eq!(plan.prediction.bound_by, Bound::Storage);
    // An epoch takes 1,281,167 / 107 s unprocessed and / 1789 s resized, 11,257 s less; preparing takes 13,000 s.
    assert_eq!(
        plan.reason,
        "`resized` reaches 1,789 samples/s over 2 runs and is disk-bound: 271 kB per sample at 910 MB/s allows 3,357 \
         samples/s; the CPU could do 20,000 samples/s; the model is 88 % above the 1,789 samples/s measured, so \
         something else matters too. It gives 1.86 times the runner-up `concatenated` (962 samples/s), and 16.7 times \
         `unprocessed` (107 samples/s). For all 1,281,167 samples, it stores 347 GB (2.36 times the source) and takes \
         3 h 37 min to prepare once, which pays off after 2 epochs."
    );
}

#[test]
fn other_weights_are_explained_by_scores() {
    let plan = plan(&presto_cv(), &by(weights(0.0, 1.0, 1.0))).unwrap();
    let text = "It scores 0.919, and the runner-up `concatenated` scores 0.754 at 962 samples/s; it gives 16.7 times \
                `unprocessed` (107 samples/s).";
    assert!(plan.reason.contains(text), "{}", plan.reason);
}

#[test]
fn a_difference_within_the_spread_and_a_single_strategy_are_said_as_such() {
    let mut profile = presto_cv();
    profile.strategies.truncate(2);
    for (run, factor) in profile.strategies[1].runs.iter_mut().zip([9.2, 30.0]) {
        run.seconds *= factor;
    }
    // Runs of 104.6 and 32.1 samples/s: reading files, at 107, is better than what lies between them.
    let files = plan(&profile, &Objective::default()).unwrap();
    assert!(
        files.reason.contains("(68.3 samples/s), no more than the spread of the runs. It needs"),
        "{}",
        files.reason
    );
    profile.strategies.truncate(1);
    let alone = plan(&profile, &Objective::default()).unwrap();
    assert_eq!(
        alone.reason,
        "`unprocessed` reaches 107 samples/s over 2 runs and is bound by opening files: 107 files/s of 115 kB each; the \
         CPU could do 958 samples/s. It needs no preparation: the 147 GB of source files are read directly."
    );
}

#[test]
fn a_cached_measurement_that_memory_cannot_hold_is_said_to_be_one() {
    let mut profile = presto_cv();
    profile.method.caching = Caching::System;
    let plan = plan(&profile, &Objective::default()).unwrap();
    let text = "the entire data set, 347 GB, does not fit in 80.0 GB of memory, so only a part will be cached";
    assert!(plan.ranking[0].sentence.contains(text), "{}", plan.ranking[0].sentence);
}

#[test]
fn a_slow_trainer_makes_the_smallest_fast_enough_strategy_the_best() {
    let objective = Objective { trainer_samples_per_second: Some(500.0), ..Objective::default() };
    let plan = plan(&presto_cv(), &objective).unwrap();
    assert_eq!(plan.chosen, "concatenated");
    assert_eq!(plan.prediction.bound_by, Bound::Trainer);
    assert_eq!(
        plan.ranking[0].sentence,
        "trainer-bound: it takes 500 samples/s; reading could give 7,934 samples/s; the CPU could do 952 samples/s"
    );
    assert!(
        plan.reason.contains(
            "It scores the same as the runner-up `resized` (1,789 samples/s) but needs less storage (147 GB against 347 \
             GB); it gives 8.99 times `unprocessed` (107 samples/s)."
        ),
        "{}",
        plan.reason
    );
}
