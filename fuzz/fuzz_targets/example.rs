//! Messages: Examples, the tensors in them, and stored samples.
#![no_main]

use forebay_codec::DType;
use forebay_pipeline::{FieldType, Schema, decode_sample};
use forebay_record::{Example, FeatureView, TensorProto};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|record: &[u8]| {
    if let Ok(example) = Example::parse(record) {
        for (_, feature) in example.features() {
            if let FeatureView::Bytes(list) = feature {
                for bytes in list.iter() {
                    let _ = TensorProto::parse(bytes);
                }
            }
        }
    }
    let picture = FieldType::Tensor { dtype: DType::U8, dims: vec![None, None, Some(3)] };
    let fields = vec![("image".to_owned(), picture), ("label".to_owned(), FieldType::Int)];
    let _ = decode_sample(bytes::Bytes::copy_from_slice(record), &Schema { fields }, 0);
});
