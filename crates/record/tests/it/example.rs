//! `tf.train.Example`.

use std::collections::BTreeMap;

use bytes::Bytes;
use forebay_error::ErrorKind;
use forebay_record::{
    Error, Example, FEATURES_MAX, Feature, FeatureView, SharedExample, UsageFault, encode_example, encode_example_into,
    encoded_example_len,
};
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};

/// A length-delimited field; everything here is shorter than 128 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

fn entry(name: &[u8], feature: &[u8]) -> Vec<u8> {
    field(1, &[field(1, name), field(2, feature)].concat())
}

fn integers(example: &Example<'_>, name: &str) -> Vec<i64> {
    match example.get(name) {
        Some(FeatureView::Int64(list)) => list.iter().collect(),
        other => panic!("{other:?}"),
    }
}

fn floats(example: &Example<'_>, name: &str) -> Vec<f32> {
    match example.get(name) {
        Some(FeatureView::Float(list)) => list.iter().collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn packed_and_unpacked_lists_read_the_same() {
    let packed = field(3, &field(1, &[1, 0x96, 1]));
    let unpacked = field(3, &[8, 1, 8, 0x96, 1]);
    // A list in two pieces, packed and not: pieces of one kind are joined.
    let mixed = [field(3, &field(1, &[1])), field(3, &[8, 0x96, 1])].concat();
    let one = 1.5_f32.to_le_bytes();
    let two = (-2.0_f32).to_le_bytes();
    let packed_floats = field(2, &field(1, &[one, two].concat()));
    let unpacked_floats = field(2, &[&[0x0d], &one[..], &[0x0d], &two[..]].concat());
    let record = field(
        1,
        &[
            entry(b"z", &packed),
            entry(b"a", &unpacked),
            entry(b"m", &mixed),
            entry(b"f", &packed_floats),
            entry(b"g", &unpacked_floats),
        ]
        .concat(),
    );
    let example = Example::parse(&record).unwrap();
    assert_eq!(example.features().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "f", "g", "m", "z"]);
    for name in ["a", "m", "z"] {
        assert_eq!(integers(&example, name), [1, 150]);
    }
    for name in ["f", "g"] {
        assert_eq!(floats(&example, name), [1.5, -2.0]);
    }
    assert_eq!(example.float("f"), Some(1.5));
    assert_eq!((example.float("a"), example.int64("f"), example.bytes("a")), (None, None, None));
}

#[test]
fn the_last_of_two_counts() {
    let first = field(3, &field(1, &[1]));
    let second = field(3, &field(1, &[2]));
    // Two entries of a name; two `features`; a feature that changes its kind.
    let record = [
        field(1, &[entry(b"a", &first), entry(b"a", &second), entry(b"b", &first)].concat()),
        field(
            1,
            &[entry(b"b", &second), entry(b"c", &[field(1, &field(1, b"text")), first, second].concat())].concat(),
        ),
    ]
    .concat();
    let example = Example::parse(&record).unwrap();
    assert_eq!(example.len(), 3);
    assert_eq!(integers(&example, "a"), [2]);
    assert_eq!(integers(&example, "b"), [2]);
    assert_eq!(integers(&example, "c"), [1, 2]);
}

#[test]
fn unknown_fields_are_passed_over() {
    // Field 15 of each wire type, at each level.
    let unknown =
        [&[0x78, 0xff, 1][..], &[0x79, 1, 2, 3, 4, 5, 6, 7, 8], &[0x7a, 2, 9, 9], &[0x7d, 1, 2, 3, 4]].concat();
    let list = [&unknown[..], &field(1, b"value"), &unknown].concat();
    let feature = [&unknown[..], &field(1, &list), &unknown].concat();
    let map_entry = [&unknown[..], &field(2, &feature), &unknown, &field(1, b"key")].concat();
    // The entry is longer than 127 bytes: its length takes two.
    let mut features = unknown.clone();
    features.extend([0x0a, (map_entry.len() as u8 & 0x7f) | 0x80, (map_entry.len() >> 7) as u8]);
    features.extend(&map_entry);
    let mut record = unknown.clone();
    record.extend([0x0a, (features.len() as u8 & 0x7f) | 0x80, (features.len() >> 7) as u8]);
    record.extend(&features);
    record.extend(&unknown);
    let example = Example::parse(&record).unwrap();
    assert_eq!(example.bytes("key"), Some(&b"value"[..]));
    assert_eq!(example.len(), 1);
}

#[test]
fn what_is_left_out_is_empty() {
    let record = field(1, &[field(1, &[]), field(1, &field(1, b"name")), field(1, &field(1, b"unset"))].concat());
    let example = Example::parse(&record).unwrap();
    assert_eq!(example.len(), 3);
    assert!(matches!(example.get(""), Some(FeatureView::Unset)));
    assert!(matches!(example.get("unset"), Some(FeatureView::Unset)));
    assert!(example.get("absent").is_none());
}

#[test]
fn malformed_messages_are_refused() {
    let cases: [(&str, Vec<u8>); 9] = [
        ("a cut varint", vec![0x0a, 0x80]),
        ("a varint of eleven bytes", [&[0x08][..], &[0xff; 11]].concat()),
        ("a length beyond the end", vec![0x0a, 5, 0]),
        ("field number 0", vec![0x02, 0]),
        ("wire type 7", vec![0x0f]),
        ("floats of three bytes", field(1, &entry(b"f", &field(2, &field(1, &[0; 3]))))),
        ("a cut packed varint", field(1, &entry(b"i", &field(3, &field(1, &[0x80]))))),
        ("a name that is not UTF-8", field(1, &entry(&[0xff], &[]))),
        ("two values", field(1, &field(1, &[field(2, &[]), field(2, &[])].concat()))),
    ];
    for (what, record) in cases {
        let error = Example::parse(&record).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Data, "{what}");
    }
    assert_eq!(Example::parse(&[0x0b, 0x0c]).unwrap_err().kind(), ErrorKind::Unsupported);
    let length = FEATURES_MAX as u32 * 2 + 2;
    let mut many = vec![0x0a, length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8];
    many.extend([0x0a, 0].repeat(FEATURES_MAX + 1));
    assert_eq!(Example::parse(&many).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn duplicate_names_are_not_written() {
    let mut out = vec![1, 2, 3];
    let features = [("a", Feature::Int64(&[1])), ("b", Feature::Int64(&[])), ("a", Feature::Float(&[1.0]))];
    let error = encode_example_into(&features, &mut out).unwrap_err();
    assert!(matches!(error, Error::Usage { fault: UsageFault::DuplicateFeature { .. }, .. }));
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn an_example_without_features_is_two_bytes() {
    assert_eq!(encode_example(&[]).unwrap(), [0x0a, 0]);
    assert!(Example::parse(&[0x0a, 0]).unwrap().is_empty());
}

#[test]
fn shared_byte_strings_lie_in_the_record() {
    let record = Bytes::from(encode_example(&[("a", Feature::Bytes(&[b"one", b"", b"three"]))]).unwrap());
    let range = record.as_ptr_range();
    let shared = SharedExample::parse(record.clone()).unwrap();
    drop(record);
    let one = shared.bytes("a").unwrap();
    assert!(range.contains(&one.as_ptr()));
    let Some(FeatureView::Bytes(list)) = shared.get("a") else { panic!("written as bytes") };
    let all: Vec<Bytes> = list.iter().map(|value| shared.share(value)).collect();
    assert_eq!((shared.int64("a"), shared.float("a")), (None, None));
    assert!(shared.tensor("a").is_err());
    drop(shared);
    assert_eq!(all, [&b"one"[..], b"", b"three"]);
}

#[derive(Debug, Clone)]
enum Owned {
    Bytes(Vec<Vec<u8>>),
    Float(Vec<u32>),
    Int64(Vec<i64>),
}

fn owned() -> impl Strategy<Value = Owned> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        proptest::collection::vec(bytes, 0..5).prop_map(Owned::Bytes),
        proptest::collection::vec(any::<u32>(), 0..50).prop_map(Owned::Float),
        proptest::collection::vec(any::<i64>(), 0..50).prop_map(Owned::Int64),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_is_parsed(features in proptest::collection::btree_map(".{0,12}", owned(), 0..8)) {
        let slices: BTreeMap<&str, (Vec<&[u8]>, Vec<f32>)> = features
            .iter()
            .map(|(name, owned)| match owned {
                Owned::Bytes(values) => (name.as_str(), (values.iter().map(Vec::as_slice).collect(), vec![])),
                Owned::Float(bits) => (name.as_str(), (vec![], bits.iter().map(|&bits| f32::from_bits(bits)).collect())),
                Owned::Int64(_) => (name.as_str(), (vec![], vec![])),
            })
            .collect();
        let list: Vec<_> = features
            .iter()
            .map(|(name, owned)| {
                let (bytes, floats) = &slices[name.as_str()];
                (name.as_str(), match owned {
                    Owned::Bytes(_) => Feature::Bytes(bytes),
                    Owned::Float(_) => Feature::Float(floats),
                    Owned::Int64(values) => Feature::Int64(values),
                })
            })
            .collect();
        let record = encode_example(&list).unwrap();
        prop_assert_eq!(record.len() as u64, encoded_example_len(&list));
        let reversed: Vec<_> = list.iter().rev().copied().collect();
        prop_assert_eq!(&encode_example(&reversed).unwrap(), &record);

        let example = Example::parse(&record).unwrap();
        prop_assert_eq!(example.len(), features.len());
        for ((name, view), (expected_name, expected)) in example.features().zip(&features) {
            prop_assert_eq!(name, expected_name);
            match (view, expected) {
                (FeatureView::Bytes(list), Owned::Bytes(values)) => prop_assert_eq!(&list.iter().collect::<Vec<_>>(), values),
                (FeatureView::Float(list), Owned::Float(bits)) => {
                    prop_assert_eq!(&list.iter().map(f32::to_bits).collect::<Vec<_>>(), bits);
                }
                (FeatureView::Int64(list), Owned::Int64(values)) => prop_assert_eq!(&list.iter().collect::<Vec<_>>(), values),
                (view, _) => panic!("{view:?}"),
            }
        }
    }
}
