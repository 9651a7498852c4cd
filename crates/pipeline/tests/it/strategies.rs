//! Strategies: a split, and how what is kept there is stored.

use forebay_codec::Tensor;
use forebay_pipeline::{
    FieldType, RngKey, Runner, Sample, SampleView, Strategy, Value, ValueView, decode_sample, encode_sample, preset,
};

use crate::support::{Collect, bytes_value, picture, run_all, sample};

fn png() -> Vec<u8> {
    let photo = picture(260, 300, 3, |row, column, channel| (row / 2 + column / 3 + channel * 10) as u8);
    let encoding = "png-fast".parse().unwrap();
    forebay_codec::image::encode(photo.view(), &encoding).unwrap()
}

fn tensor(sample: &Sample) -> &Tensor {
    match sample.field("image").unwrap() {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    }
}

/// Keeps the sample as the strategy says, reads it back and does the rest.
fn keep_and_finish(name: &str, draw: RngKey) -> (Tensor, usize) {
    let pipeline = preset("cv").unwrap();
    let strategy = Strategy::parse(&pipeline, name).unwrap();
    assert_eq!(strategy.to_string(), name);
    let input = sample(bytes_value(png()));
    let mut kept = run_all(strategy.offline(&pipeline), &input, RngKey::default()).pop().unwrap();
    kept.fields.push(forebay_pipeline::Field { name: "label".into(), value: Value::Int(3) });
    let fields: Vec<(&str, ValueView<'_>)> =
        kept.fields.iter().map(|field| (&*field.name, field.value.view())).collect();
    let mut record = Vec::new();
    let encoding = strategy.format.encoding;
    encode_sample(&SampleView { key: &kept.key, index: 5, fields: &fields }, encoding, &mut record).unwrap();
    let bytes = record.len();
    let back = decode_sample(record.into(), &strategy.stored_schema(&pipeline), 5).unwrap();
    let (steps, first) = strategy.online(&pipeline);
    let mut out = Collect::default();
    Runner::new(&steps, first).run(&back, draw, &mut (), &mut out).unwrap();
    assert!(matches!(out.0[0].field("label"), Some(Value::Int(3))));
    (tensor(&out.0[0]).clone(), bytes)
}

#[test]
fn lossless_encodings_change_bytes_not_pixels() {
    let draw = RngKey { seed: 2, epoch: 3 };
    let (expected, _) = keep_and_finish("concatenated", draw);
    for split in ["decoded", "resized"] {
        let (raw, raw_bytes) = keep_and_finish(split, draw);
        assert_eq!(raw, expected);
        for encoding in ["png", "png-fast", "qoi", "webp-lossless", "l3-fast", "l3-dense", "l3-classic"] {
            let (found, bytes) = keep_and_finish(&format!("{split}+{encoding}"), draw);
            assert_eq!(found, expected, "{split}+{encoding}");
            // Classic spends twelve bits on every row of a patch, whatever is in it.
            let most = if encoding == "l3-classic" { raw_bytes * 3 / 4 } else { raw_bytes / 2 };
            assert!(bytes < most, "{split}+{encoding}: {bytes} of {raw_bytes}");
        }
    }
    let (close, _) = keep_and_finish("resized+jpeg-95", draw);
    let differences = crate::support::floats(&close).into_iter().zip(crate::support::floats(&expected));
    let largest = differences.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(largest > 0.0 && largest < 0.15, "{largest}");
}

#[test]
fn a_strategy_is_checked_and_written_down() {
    let pipeline = preset("cv").unwrap();
    let strategy = Strategy::parse(&pipeline, "resized+png").unwrap();
    assert!(!strategy.is_lossy() && Strategy::parse(&pipeline, "resized+jpeg-50").unwrap().is_lossy());
    assert_eq!(strategy.stored_schema(&pipeline).field("image"), Some(&FieldType::Bytes));
    let json = serde_json::to_string(&strategy).unwrap();
    assert_eq!(json, r#"{"split":{"position":3,"name":"resized"},"encoding":"png"}"#);
    assert_eq!(serde_json::from_str::<Strategy>(&json).unwrap(), strategy);
    let error = |name: &str| Strategy::parse(&pipeline, name).unwrap_err().to_string();
    assert!(error("pixel-centered+png").contains("float32[?, ?, 3]"), "{}", error("pixel-centered+png"));
    assert!(error("concatenated+png").contains("`png` cannot hold"));
    assert!(error("resized+gif").contains("no such encoding"));
    assert!(
        error("resized+png+qoi").contains("is not a storage format")
            && error("resized+gzip+png").contains("is not a storage format")
    );
    assert!(error("unprocessed+gzip").contains("hint: `concatenated+gzip`"), "{}", error("unprocessed+gzip"));
    assert!(error("resized+zlib-12").contains("the level is from 1 to 9, not `12`"), "{}", error("resized+zlib-12"));
    assert!(error("shrunk+png").contains("no strategy `shrunk`"));
}

#[test]
fn packing_joins_an_encoding_or_stands_alone() {
    let pipeline = preset("cv").unwrap();
    for name in [
        "resized+gzip",
        "decoded+png+zlib-1",
        "concatenated+gzip-9",
        "pixel-centered+zlib",
        "resized+zstd-3",
        "decoded+zlib-6-rle",
        "decoded+lz4-hc-9",
        "resized+snappy",
        "resized+zstd-3-record",
    ] {
        let strategy = Strategy::parse(&pipeline, name).unwrap();
        assert_eq!(strategy.to_string(), name);
        assert!(!strategy.is_lossy());
        let json = serde_json::to_string(&strategy).unwrap();
        assert_eq!(serde_json::from_str::<Strategy>(&json).unwrap(), strategy, "{json}");
    }
    let names: Vec<String> =
        Strategy::all(&pipeline, &["gzip".parse().unwrap()]).iter().map(ToString::to_string).collect();
    assert!(names.contains(&"concatenated+gzip".to_owned()) && names.contains(&"resized".to_owned()));
    assert!(!names.contains(&"unprocessed+gzip".to_owned()), "files are left as they are");
}
