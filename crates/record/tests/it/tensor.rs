//! `TensorProto`, and the published record sizes.

use forebay_error::ErrorKind;
use forebay_record::{
    Error, Feature, FormatFault, RANK_MAX, TensorFlowType, TensorProto, TensorShape, Writer, encode_example,
    encoded_example_len, tensor_frame_bytes,
};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};

fn shape(dims: &[u64]) -> TensorShape {
    TensorShape::new(dims).unwrap()
}

/// Sizes that PRESTO's notebooks published, per record and for the data set in MB of 10^6 bytes.
const PUBLISHED: [(TensorFlowType, &[u64], u64, u64, f64); 7] = [
    (TensorFlowType::DT_FLOAT, &[2500, 1], 10_053, 1_500_000, 15_079.50),
    (TensorFlowType::DT_FLOAT, &[2500, 2048], 20_480_066, 732, 14_991.41),
    (TensorFlowType::DT_UINT8, &[1728, 2592, 3], 13_436_998, 4_890, 65_706.92),
    (TensorFlowType::DT_UINT8, &[256, 384, 3], 294_976, 4_890, 1_442.43),
    (TensorFlowType::DT_FLOAT, &[256, 384, 3], 1_179_712, 4_890, 5_768.79),
    (TensorFlowType::DT_DOUBLE, &[2, 64_000], 1_024_060, 256_320, 262_487.06),
    (TensorFlowType::DT_DOUBLE, &[1, 3, 500], 12_057, 256_320, 3_090.45),
];

#[test]
fn the_published_record_sizes_are_reproduced() {
    for (dtype, dims, record_bytes, count, megabytes) in PUBLISHED {
        let shape = shape(dims);
        assert_eq!(tensor_frame_bytes("data", dtype, &shape).unwrap(), record_bytes, "{dims:?}");
        let total = (record_bytes * count) as f64 / 1e6;
        assert!((total - megabytes).abs() <= 0.005, "{dims:?}: {total} MB");

        // The large ones are computed only; the others are written, too.
        if record_bytes < 2_000_000 {
            let content = vec![0; (shape.elements().unwrap() * dtype.element_bytes().unwrap()) as usize];
            let features = [("data", Feature::Tensor(TensorProto::new(dtype, shape, &content).unwrap()))];
            let mut writer = Writer::new(std::io::sink());
            assert_eq!(writer.write(&encode_example(&features).unwrap()).unwrap().length, record_bytes);
            assert_eq!(encoded_example_len(&features) + 16, record_bytes);
        }
    }
}

#[test]
fn scalars_and_empty_tensors_are_written_as_tensorflow_does() {
    // TensorFlow sets type, shape and content (Tensor::AsProtoTensorContent), and Google's protobuf library serializes a
    // message of those to these bytes: the shape is always there, a zero dimension is an empty message, no content no field.
    let scalar = TensorProto::new(TensorFlowType::DT_UINT8, shape(&[]), &[7]).unwrap();
    assert_eq!(scalar.encode(), [0x08, 4, 0x12, 0, 0x22, 1, 7]);
    let empty = TensorProto::new(TensorFlowType::DT_UINT8, shape(&[0, 3]), &[]).unwrap();
    assert_eq!(empty.encode(), [0x08, 4, 0x12, 6, 0x12, 0, 0x12, 2, 0x08, 3]);
    for tensor in [scalar, empty] {
        let bytes = tensor.encode();
        assert_eq!(bytes.len() as u64, tensor.encoded_len());
        assert_eq!(TensorProto::parse(&bytes).unwrap(), tensor);
    }
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    use TensorFlowType as T;
    let class = |result: Result<TensorProto<'_>, Error>| result.unwrap_err().kind();
    assert_eq!(class(TensorProto::new(T::DT_FLOAT, shape(&[2]), &[0; 7])), ErrorKind::Usage);
    assert_eq!(class(TensorProto::new(T::DT_STRING, shape(&[1]), b"text")), ErrorKind::Unsupported);
    assert_eq!(class(TensorProto::new(T::DT_FLOAT, shape(&[1 << 40, 1 << 40]), &[])), ErrorKind::Limit);
    assert_eq!(TensorShape::new(&[1; RANK_MAX + 1]).unwrap_err().kind(), ErrorKind::Limit);

    // uint8 [2] with one byte; dimension -1; unknown rank; an int_val; a string; type 0.
    assert!(matches!(
        TensorProto::parse(&[8, 4, 0x12, 4, 0x12, 2, 8, 2, 0x22, 1, 0]),
        Err(Error::Format { fault: FormatFault::TensorContent { expected: 2, found: 1 }, .. })
    ));
    let minus_one = [&[8, 4, 0x12, 13, 0x12, 11, 8][..], &[0xff; 9], &[1]].concat();
    assert_eq!(class(TensorProto::parse(&minus_one)), ErrorKind::Data);
    assert_eq!(class(TensorProto::parse(&[8, 4, 0x12, 2, 0x18, 1])), ErrorKind::Unsupported);
    assert_eq!(class(TensorProto::parse(&[8, 3, 0x12, 4, 0x12, 2, 8, 1, 0x3a, 1, 5])), ErrorKind::Unsupported);
    assert_eq!(class(TensorProto::parse(&[8, 7, 0x12, 0, 0x42, 1, 65])), ErrorKind::Unsupported);
    assert_eq!(class(TensorProto::parse(&[])), ErrorKind::Unsupported);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_is_parsed(dims in proptest::collection::vec(0_u64..7, 0..5), fill in any::<u8>(), kind in 0_usize..13) {
        let dtype = TensorFlowType([1, 2, 3, 4, 5, 6, 9, 10, 14, 17, 19, 22, 23][kind]);
        let shape = shape(&dims);
        let content = vec![fill; (shape.elements().unwrap() * dtype.element_bytes().unwrap()) as usize];
        let tensor = TensorProto::new(dtype, shape, &content).unwrap();
        let bytes = tensor.encode();
        prop_assert_eq!(bytes.len() as u64, tensor.encoded_len());
        prop_assert_eq!(TensorProto::parse(&bytes).unwrap(), tensor);
    }
}
