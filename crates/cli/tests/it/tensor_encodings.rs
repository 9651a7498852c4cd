//! Encodings of tensors wherever a strategy or an encoding is named: `build`, `load`, `inspect`, `profile`, `plan`.

use crate::support::forebay;

#[test]
fn tensors_are_kept_encoded_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    forebay(here, "demo --domain flac --samples 4 --data-only --folder sound").text();
    for (strategy, bound) in [
        ("spectrogram-encoded+pco-8", ""),
        ("decoded+delta-shuffle-zstd-3", ""),
        ("spectrogram-encoded+round-absolute-0.01-pco-8", " (error at most 0.01)"),
        ("spectrogram-encoded+round-relative-0.01-shuffle-lz4+zstd-1", " (error at most 0.01 of the number)"),
        ("spectrogram-encoded+bfloat16", " (error at most 0.00390625 of the number, or 4.591774807899561e-41)"),
    ] {
        let set = strategy.replace('+', "-");
        let build = forebay(here, &format!("build flac --data sound --strategy {strategy} -o {set} --json")).json();
        assert_eq!(build["strategy"], strategy);
        let load = forebay(here, &format!("load {set} --json")).json();
        assert_eq!((&load["samples"], &load["skipped"]), (&4.into(), &0.into()), "{load:#}");
        let encoding = strategy.split('+').nth(1).unwrap();
        let text = forebay(here, &format!("inspect {set} --verify --record 0"));
        // Lines are wrapped.
        let words = text.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("encoded audio: {encoding}{bound} every epoch")), "{text:?}");
        assert!(text.text().contains("encoded tensor "), "{text:?}");
        let json = forebay(here, &format!("inspect {set} --json")).json();
        assert_eq!(
            (&json["encodings"][0]["field"], &json["encodings"][0]["encoding"]),
            (&"audio".into(), &encoding.into())
        );
        assert_eq!(json["encodings"][0]["max_absolute_error"].is_null(), bound.is_empty(), "{json:#}");
    }
}

#[test]
fn encodings_are_profiled_where_they_apply_and_lossy_ones_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    forebay(here, "demo --domain flac --samples 4 --data-only --folder sound").text();
    let encodings = "--encoding pco-8 --encoding bfloat16 --encoding bitpack+lz4";
    let profile = forebay(here, &format!("profile flac --data sound --runs 1 --seconds 0 {encodings} --json"));
    let profile = profile.json();
    let names: Vec<&str> =
        profile["strategies"].as_array().unwrap().iter().filter_map(|strategy| strategy["name"].as_str()).collect();
    // Decoded sound is of integers, its spectrogram of floating point numbers.
    for name in ["decoded+pco-8", "spectrogram-encoded+pco-8", "spectrogram-encoded+bfloat16", "decoded+bitpack+lz4"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(!names.contains(&"decoded+bfloat16") && !names.contains(&"spectrogram-encoded+bitpack+lz4"), "{names:?}");
    // Where it may pay, a profile adds a compression of its own choice behind the encoding.
    for strategy in profile["strategies"].as_array().unwrap() {
        let rounds = strategy["name"].as_str().unwrap().starts_with("spectrogram-encoded+bfloat16");
        assert_eq!(strategy["lossy"], rounds, "{strategy:#}");
    }
    let plan = forebay(here, "plan profile.json --lossless --json").json();
    assert!(!plan["strategy"].to_string().contains("bfloat16"), "{plan:#}");
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    forebay(here, "demo --domain flac --samples 1 --data-only --folder sound").text();
    for (strategy, message) in [
        ("decoded+bfloat16", "of which `bfloat16` can hold nothing"),
        ("spectrogram-encoded+bitpack", "of which `bitpack` can hold nothing"),
        ("decoded+pco-13", "expected `a number from 0 to 12`"),
        ("decoded+shuffle", "shuffle-zstd-3"),
        ("spectrogram-encoded+round-absolute-0", "a decimal number above 0"),
        ("decoded+gif", "for tensors: shuffle-zstd-3"),
    ] {
        let refused = forebay(here, &format!("build flac --data sound --strategy {strategy} -o set"));
        assert!(refused.code == Some(2) && refused.stderr.contains(message), "{strategy}: {refused:?}");
    }
}
