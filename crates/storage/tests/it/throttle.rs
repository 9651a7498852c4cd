//! Figures of a throttle: presets, texts, and what is refused.

use forebay_error::ErrorKind;
use forebay_storage::Throttle;
use proptest::prelude::*;

#[test]
fn every_preset_parses_checks_and_survives_json() {
    for name in Throttle::PRESETS {
        let throttle = Throttle::preset(name).unwrap();
        assert_eq!(throttle.name, name);
        throttle.check().unwrap();
        assert_eq!(Throttle::parse(name).unwrap(), throttle);
        let json = serde_json::to_string(&throttle).unwrap();
        assert_eq!(serde_json::from_str::<Throttle>(&json).unwrap(), throttle);
    }
    assert_eq!(Throttle::preset("tape"), None);
}

#[test]
fn the_custom_text_of_the_manual() {
    let text = "custom:read=200MB/s,stream=100MB/s,seek=8ms,iops=120";
    let expected = Throttle {
        name: text.to_owned(),
        stream_bytes_per_second: 1e8,
        total_bytes_per_second: 2e8,
        seek_seconds: 0.008,
        seeks_per_second: Some(120.0),
    };
    assert_eq!(Throttle::parse(text).unwrap(), expected);
    let least = Throttle::parse("custom:read=1GiB/s").unwrap();
    assert_eq!(least.stream_bytes_per_second.to_bits(), 1_073_741_824_f64.to_bits());
    assert_eq!((least.seek_seconds.to_bits(), least.seeks_per_second), (0_f64.to_bits(), None));
}

#[test]
fn what_is_refused_says_why_and_what_would_do() {
    for (text, reason) in [
        ("tape", "there is no such preset"),
        ("", "there is no such preset"),
        ("custom:", "`` is not of the form `key=value`"),
        ("custom:seek=8ms", "`read`, the rate of all streams together, is missing"),
        ("custom:read=200", "`200` is not a rate"),
        ("custom:read=fastMB/s", "`fastMB` is not a number"),
        ("custom:read=NaNMB/s", "`NaNMB` is not a number"),
        ("custom:read=1MB/s,read=2MB/s", "`read` is given twice"),
        ("custom:read=1MB/s,write=2MB/s", "there is no setting `write`"),
        ("custom:read=1MB/s,seek=8", "`8` has no unit; write a time like `8ms`"),
        ("custom:read=1MB/s,iops=8k", "`8k` is not a number"),
    ] {
        let error = Throttle::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let message = error.to_string();
        assert!(message.starts_with(&format!("cannot understand storage `{text}`: {reason}")), "{message}");
        assert!(message.contains("\nhint: one of `hdd`, `ssd`, `ceph-hdd`, or `custom:read="), "{message}");
    }
    for (text, name) in [
        ("custom:read=0MB/s", "stream_bytes_per_second"),
        ("custom:read=1000000000000000000MB/s,stream=1MB/s", "total_bytes_per_second"),
        ("custom:read=1MB/s,seek=2000s", "seek_seconds"),
        ("custom:read=1MB/s,iops=0", "seeks_per_second"),
    ] {
        let error = Throttle::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().starts_with(&format!("`{name}` is `")), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(custom:)?[a-z=,0-9.MB/se-]{0,40}") {
        if let Ok(throttle) = Throttle::parse(&text) {
            prop_assert!(throttle.check().is_ok());
            prop_assert_eq!(Throttle::parse(&throttle.name).unwrap(), throttle);
        }
    }
}
