//! Strategies: a split, and how what is kept there is stored.

use forebay_codec::Tensor;
use forebay_pipeline::{
    FieldType, Pipeline, RngKey, Runner, Sample, SampleView, Strategy, Value, ValueView, decode_sample, encode_sample,
    preset,
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
    encode_sample(&SampleView { key: &kept.key, index: 5, fields: &fields }, &strategy.format, &mut record).unwrap();
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
fn tensors_that_are_encoded_come_back_before_the_next_step() {
    let draw = RngKey { seed: 2, epoch: 3 };
    let (expected, _) = keep_and_finish("concatenated", draw);
    for name in ["decoded+delta-zstd-3", "resized+pco-8", "resized+bitpack", "pixel-centered+shuffle-zstd-3+lz4"] {
        let (found, _) = keep_and_finish(name, draw);
        assert_eq!(found, expected, "{name}");
    }
    let (_, raw_bytes) = keep_and_finish("pixel-centered", draw);
    for encoding in ["shuffle-zstd-3", "delta-shuffle-lz4", "pco-8", "bfloat16", "round-absolute-0.01-pco-8"] {
        let name = format!("pixel-centered+{encoding}");
        let (found, bytes) = keep_and_finish(&name, draw);
        assert!(bytes < raw_bytes * 3 / 4, "{name}: {bytes} of {raw_bytes}");
        let differences = crate::support::floats(&found).into_iter().zip(crate::support::floats(&expected));
        let largest = differences.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let is_lossy = Strategy::parse(&preset("cv").unwrap(), &name).unwrap().is_lossy();
        assert!(largest <= 0.01 && (largest > 0.0) == is_lossy, "{name}: {largest}");
    }
    let strategy = Strategy::parse(&preset("cv").unwrap(), "pixel-centered+bfloat16").unwrap();
    let json = serde_json::to_string(&strategy).unwrap();
    assert_eq!(json, r#"{"split":{"position":4,"name":"pixel-centered"},"tensor_encoding":"bfloat16"}"#);
    assert_eq!(serde_json::from_str::<Strategy>(&json).unwrap(), strategy);
}

#[test]
fn steps_keep_their_numbers_however_many_fields_are_unpacked() {
    let field = |name: &str, kind: &str| {
        format!("[[source.fields]]\nfield = \"{name}\"\nfrom = \"{name}\"\ntype = \"{kind}\"\n")
    };
    let fields =
        [("image", "uint8[?, ?, 3]"), ("boxes", "float32[?, 4]"), ("scores", "float32[?]"), ("weight", "float32[]")];
    let fields: String = fields.iter().map(|(name, kind)| field(name, kind)).collect();
    let text = format!(
        "name = \"shards\"\n[source]\nformat = \"tar\"\nfield = \"image\"\n{fields}\n\
         [[step]]\nop = \"center_crop\"\nsize = 4\n[[step]]\nop = \"random_horizontal_flip\"\n"
    );
    let pipeline = Pipeline::from_toml("shards", &text).unwrap();
    let first_split = |name: &str| Strategy::parse(&pipeline, name).unwrap();
    for name in ["concatenated+png+pco-8", "concatenated+rle", "concatenated", "cropped+l3-fast+shuffle-lz4"] {
        let strategy = first_split(name);
        let (steps, first) = strategy.online(&pipeline);
        let unpacking = strategy.unpacking(&pipeline).len();
        // What a random step draws follows from its number.
        assert_eq!(first.wrapping_add(unpacking), strategy.split.offline_steps(), "{name}");
        assert_eq!(steps.len(), unpacking + pipeline.steps().len() - strategy.split.offline_steps(), "{name}");
        Runner::new(&steps, first);
    }
    // Single numbers stay raw, and pictures are the image encoding's.
    let encodings = first_split("concatenated+png+pco-8").field_encodings(&pipeline);
    let encodings: Vec<String> = encodings.iter().map(ToString::to_string).collect();
    assert_eq!(encodings, ["image: png", "boxes: pco-8", "scores: pco-8"]);
    assert_eq!(first_split("concatenated+png+pco-8").unpacking_tensors(&pipeline).len(), 2);
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

#[test]
fn a_device_takes_over_what_it_can_do() {
    let pipeline = |steps: &str| {
        let text = format!("name = \"some\"\n[source]\nfiles = \"*.png\"\n[[step]]\nop = \"decode\"\n{steps}");
        Pipeline::from_toml("some", &text).unwrap()
    };
    let shared = |steps: &str, strategy: &str| {
        let pipeline = pipeline(steps);
        Strategy::parse(&pipeline, strategy).unwrap().on_device(&pipeline)
    };
    let op = |op: &str| format!("[[step]]\nop = \"{op}\"\n");
    let crop = "[[step]]\nop = \"center_crop\"\nsize = [5, 4]\n";
    let steps = format!("{}{crop}{}", op("normalize"), op("to_chw"));
    let on_device = shared(&steps, "decoded+l3-dense-rows-16").unwrap();
    assert!(on_device.steps.is_empty());
    assert_eq!(on_device.output.field("image"), Some(&FieldType::Bytes));
    let [decoding] = &on_device.decodings[..] else { panic!("{on_device:?}") };
    let expected = ("image", 3, Some([5, 4]), "float32", true);
    let found =
        (&*decoding.field, decoding.channels, decoding.center_crop, decoding.dtype.name(), decoding.channels_first);
    assert_eq!(found, expected);
    let (factors, _) = decoding.affine.as_ref().unwrap();
    assert!((factors[0] - 1.0 / 255.0 / 0.229).abs() < 1e-6);
    // Of files, the decoder of the pipeline itself.
    assert_eq!(shared(&op("to_chw"), "concatenated").unwrap().decodings.len(), 1);
    for (steps, strategy, what) in [
        (op("random_horizontal_flip"), "decoded+l3-fast", "step `random_horizontal_flip`"),
        (
            format!("{crop}{crop}").replacen("size", "name = \"first\"\nstage = \"first\"\nsize", 1),
            "decoded+l3-fast",
            "step `center_crop`",
        ),
        (op("to_chw"), "decoded+png", "decoding the images of strategy `decoded+png`"),
        (op("to_chw"), "decoded+l3-classic", "decoding the images of strategy `decoded+l3-classic`"),
        (op("to_chw"), "decoded", "decoding the images of strategy `decoded`"),
    ] {
        let error = shared(&steps, strategy).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{what} cannot be done on a GPU\nhint: ")), "{error}");
    }
}

#[test]
fn what_a_device_leaves_draws_as_before() {
    let fields = "[[source.fields]]\nfield = \"sound\"\nfrom = \"wav\"\ntype = \"float32[?]\"\n";
    let text = format!(
        "name = \"shards\"\n[source]\nformat = \"tar\"\nfield = \"image\"\n[[source.fields]]\nfield = \"image\"\nfrom = \"png\"\n{fields}\n\
         [[step]]\nop = \"decode\"\n[[step]]\nop = \"to_chw\"\n[[step]]\nop = \"random_gain\"\nfields = [\"sound\"]\n"
    );
    let pipeline = Pipeline::from_toml("shards", &text).unwrap();
    let strategy = Strategy::parse(&pipeline, "decoded+l3-fast").unwrap();
    let on_device = strategy.on_device(&pipeline).unwrap();
    let [random] = &on_device.steps[..] else { panic!("{on_device:?}") };
    assert_eq!((random.name.as_str(), on_device.first_step), ("random_gain", 2));
}
