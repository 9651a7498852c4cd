//! Samples in records and back.

use bytes::Bytes;
use forebay_codec::{DType, Tensor};
use forebay_pipeline::{
    Field, FieldType, Sample, SampleView, Schema, StorageFormat, Value, ValueView, decode_sample, encode_sample,
};
use proptest::prelude::*;

fn record(sample: &Sample) -> Bytes {
    let fields: Vec<(&str, ValueView<'_>)> =
        sample.fields.iter().map(|field| (&*field.name, field.value.view())).collect();
    let mut out = Vec::new();
    encode_sample(
        &SampleView { key: &sample.key, index: sample.index, fields: &fields },
        &StorageFormat::default(),
        &mut out,
    )
    .unwrap();
    out.into()
}

fn schema(fields: &[(&str, FieldType)]) -> Schema {
    Schema { fields: fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect() }
}

fn tensor_type(dtype: DType, dims: &[Option<usize>]) -> FieldType {
    FieldType::Tensor { dtype, dims: dims.to_vec() }
}

fn whole_sample(pixels: Tensor, label: i64, text: &str, raw: Vec<u8>) -> Sample {
    let field = |name: &str, value| Field { name: name.into(), value };
    Sample {
        key: "cats/1.jpg".into(),
        index: 3,
        fields: vec![
            field("image", Value::Tensor(pixels)),
            field("label", Value::Int(label)),
            field("caption", Value::Text(text.into())),
            field("raw", Value::Bytes(raw.into())),
        ],
    }
}

proptest! {
    #[test]
    fn what_is_stored_comes_back(
        height in 0_usize..5, width in 0_usize..5, label in any::<i64>(), text in ".*", raw in any::<Vec<u8>>(),
    ) {
        let elements: Vec<f32> = (0..height * width * 3).map(|index| index as f32 - 4.5).collect();
        let pixels = Tensor::from_elements(&[height, width, 3], &elements).unwrap();
        let sample = whole_sample(pixels.clone(), label, &text, raw.clone());
        let schema = schema(&[
            ("image", tensor_type(DType::F32, &[None, None, Some(3)])),
            ("label", FieldType::Int), ("caption", FieldType::Text), ("raw", FieldType::Bytes),
        ]);
        let back = decode_sample(record(&sample), &schema, 3).unwrap();
        prop_assert_eq!(&*back.key, "cats/1.jpg");
        prop_assert!(matches!(back.field("image"), Some(Value::Tensor(tensor)) if *tensor == pixels));
        prop_assert!(matches!(back.field("label"), Some(Value::Int(number)) if *number == label));
        prop_assert!(matches!(back.field("caption"), Some(Value::Text(found)) if **found == *text));
        prop_assert!(matches!(back.field("raw"), Some(Value::Bytes(found)) if found[..] == raw[..]));
    }

    #[test]
    fn damage_is_an_error_never_a_panic(offset in 0_usize..400, bit in 0_u8..8, cut in 0_usize..400) {
        let pixels = Tensor::from_elements(&[2, 2, 3], &[7_u8; 12]).unwrap();
        let record = record(&whole_sample(pixels, 5, "a cat", vec![1, 2, 3]));
        let schema = schema(&[("image", tensor_type(DType::U8, &[None, None, Some(3)])), ("label", FieldType::Int)]);
        let mut damaged = record.to_vec();
        let offset = offset % damaged.len();
        damaged[offset] ^= 1 << bit;
        // A flip in the pixels or the key is not seen here: the record's checksum is what catches it.
        if let Ok(sample) = decode_sample(damaged.clone().into(), &schema, 0) {
            prop_assert!(matches!(sample.field("image"), Some(Value::Tensor(_))));
        }
        damaged.truncate(cut % damaged.len());
        let _ = decode_sample(damaged.into(), &schema, 0);
    }
}

#[test]
fn what_does_not_fit_the_schema_is_named() {
    let pixels = Tensor::from_elements(&[2, 2, 3], &[7_u8; 12]).unwrap();
    let record = record(&whole_sample(pixels, 5, "a cat", vec![]));
    let error =
        |fields: &[(&str, FieldType)]| decode_sample(record.clone(), &schema(fields), 0).unwrap_err().to_string();
    let wrong = error(&[("image", tensor_type(DType::F32, &[None, None, Some(3)]))]);
    assert!(wrong.contains("field `image` is a tensor [2, 2, 3]") && wrong.contains("float32[?, ?, 3]"), "{wrong}");
    let wrong = error(&[("image", tensor_type(DType::U8, &[None, None, Some(1)]))]);
    assert!(wrong.contains("uint8[?, ?, 1]"), "{wrong}");
    let missing = error(&[("mask", FieldType::Bytes)]);
    assert!(missing.contains("field `mask` is missing"), "{missing}");
}
