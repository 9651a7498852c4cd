//! Messages: Examples, as a naive reader finds them; the tensors in them, and stored samples.
#![no_main]

use forebay_codec::DType;
use forebay_fuzz::naive::{self, List};
use forebay_pipeline::{FieldType, SampleView, Schema, StorageFormat, decode_sample, encode_sample};
use forebay_record::{Example, FeatureView, TensorProto};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|record: &[u8]| {
    let naive = naive::example(record);
    if let Ok(example) = Example::parse(record) {
        let naive = naive.expect("what is an Example is one to both");
        assert_eq!(example.len(), naive.len());
        for ((name, feature), (naive_name, list)) in example.features().zip(naive) {
            assert_eq!(name, naive_name);
            match feature {
                FeatureView::Bytes(ours) => {
                    ours.iter().for_each(|bytes| drop(TensorProto::parse(bytes)));
                    assert_eq!(List::Bytes(ours.iter().map(<[u8]>::to_vec).collect()), list);
                }
                FeatureView::Float(ours) => assert_eq!(List::Float(ours.iter().map(f32::to_bits).collect()), list),
                FeatureView::Int64(ours) => assert_eq!(List::Int64(ours.iter().collect()), list),
                FeatureView::Unset => assert_eq!(List::Unset, list),
            }
        }
    }
    let picture = FieldType::Tensor { dtype: DType::U8, dims: vec![None, None, Some(3)] };
    let fields = vec![("image".to_owned(), picture), ("label".to_owned(), FieldType::Int)];
    let schema = Schema { fields };
    if let Ok(sample) = decode_sample(bytes::Bytes::copy_from_slice(record), &schema, 0) {
        let mut again = Vec::new();
        let fields: Vec<_> = sample.fields.iter().map(|field| (&*field.name, field.value.view())).collect();
        let view = SampleView { key: &sample.key, index: 0, fields: &fields };
        encode_sample(&view, &StorageFormat::default(), &mut again).expect("it came from a record");
        let again = decode_sample(bytes::Bytes::from(again), &schema, 0).expect("what was sound stays so");
        assert_eq!(format!("{again:?}"), format!("{sample:?}"));
    }
});
