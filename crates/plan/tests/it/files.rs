//! `profile.json` and `plan.json`.

use std::error::Error as _;

use forebay_error::ErrorKind;
use forebay_plan::{Error, Limits, Objective, Plan, Profile, Runs, plan};

use crate::profiles::{presto_cv, weights};

#[test]
fn a_profile_and_a_plan_come_back_as_they_were() {
    let profile = presto_cv();
    assert_eq!(Profile::parse(&profile.to_json().unwrap()).unwrap(), profile);
    let limits = Limits { max_storage_bytes: Some(900_000_000_000), max_prep_seconds: None, lossless: true };
    let objective = Objective {
        weights: weights(1.0, 0.1, 1.0),
        limits,
        trainer_samples_per_second: Some(1500.3),
        ..Objective::default()
    };
    let plan = plan(&profile, &objective).unwrap();
    assert_eq!(Plan::parse(&plan.to_json().unwrap()).unwrap(), plan);
}

#[test]
fn profiles_of_earlier_versions_are_read() {
    let profile = presto_cv();
    let text = profile.to_json().unwrap();
    assert!(text.contains("\"cpu\": \"8 virtual cores"), "{text}");
    assert_eq!(Profile::parse(&text.replacen("\"cpu\": ", "\"processor\": ", 1)).unwrap(), profile);
}

#[test]
fn a_ranked_strategy_is_flat_in_json() {
    let plan = plan(&presto_cv(), &Objective::default()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&plan.to_json().unwrap()).unwrap();
    assert_eq!(json["chosen"], "resized");
    assert_eq!(json["split"]["position"], 3);
    let best = &json["ranking"][0];
    for key in [
        "name",
        "split",
        "score",
        "samples_per_second",
        "samples_per_second_std",
        "storage_bytes",
        "storage_bytes_total",
        "prep_seconds",
        "prep_seconds_total",
        "predicted_samples_per_second",
        "prediction_error",
        "bound_by",
        "sentence",
    ] {
        assert!(!best[key].is_null(), "`{key}` is missing in {best}");
    }
    assert_eq!(best["bound_by"], "storage");
    assert!(best["excluded"].is_null());
}

#[test]
fn another_version_is_refused() {
    let plan = plan(&presto_cv(), &Objective::default()).unwrap();
    let text = plan.to_json().unwrap().replacen("\"version\": 1", "\"version\": 99", 1);
    let error = Plan::parse(&text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(matches!(error, Error::Version { what: "plan", expected: 1, found: 99 }));
    // Nothing but the version needs to be readable for that.
    let error = Profile::parse(r#"{"version": 2, "strategies": "elsewhere"}"#).unwrap_err();
    assert!(matches!(error, Error::Version { what: "profile", expected: 1, found: 2 }));
}

#[test]
fn runs_are_a_number_or_a_word() {
    let mut profile = presto_cv();
    for (runs, json) in [(Runs::Each(3.try_into().unwrap()), "3"), (Runs::Fast, "\"fast\""), (Runs::None, "\"none\"")] {
        profile.method.runs = runs;
        let text = profile.to_json().unwrap();
        let line = format!("\n    \"runs\": {json},\n");
        assert!(text.contains(&line), "{text}");
        assert_eq!(Profile::parse(&text).unwrap(), profile);
        for wrong in ["0", "-1", "\"often\"", "null"] {
            let text = text.replace(&line, &format!("\n    \"runs\": {wrong},\n"));
            assert_eq!(Profile::parse(&text).unwrap_err().kind(), ErrorKind::Data, "{wrong}");
        }
    }
}

#[test]
fn what_is_no_plan_is_refused_with_the_place() {
    for text in ["", "{", "[]", "{}", r#"{"version": -1}"#, r#"{"version": "1"}"#, r#"{"version": 1}"#] {
        let error = Plan::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.source().is_some());
        assert!(error.to_string().contains("line"), "{error}");
    }
    let other = Plan::parse(&presto_cv().to_json().unwrap()).unwrap_err();
    assert!(other.kind() == ErrorKind::Usage && other.to_string().starts_with("this is a profile, not a plan"));
    // Nesting is bounded by the parser.
    assert_eq!(Plan::parse(&"[".repeat(100_000)).unwrap_err().kind(), ErrorKind::Data);
}
