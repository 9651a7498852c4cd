//! Files written by TensorFlow and PRESTO.

use std::fmt::Write as _;

use bytes::Bytes;
use forebay_record::{
    Compression, Error, Example, Feature, FeatureView, Index, Options, Origin, Reader, TensorFlowType, TensorProto,
    Writer, encode_example, parse_frame, records_in_block,
};
use sha2::{Digest, Sha256};

use crate::support::{golden, read_all};

const COMPRESSED: [&str; 7] = [
    "tensorflow-gzip.tfrecord",
    "tensorflow-zlib.tfrecord",
    "tensorflow-zlib-default.tfrecord",
    "tensorflow-zlib-filtered.tfrecord",
    "tensorflow-zlib-fixed.tfrecord",
    "tensorflow-zlib-huffman-only.tfrecord",
    "tensorflow-zlib-rle.tfrecord",
];

/// Lengths and SHA-256 of the 26 records.
fn expected() -> Option<Vec<(u64, String)>> {
    let json: serde_json::Value = serde_json::from_slice(&golden("tensorflow-records.json")?).unwrap();
    let records = json.as_array().unwrap().iter();
    Some(records.map(|row| (row["bytes"].as_u64().unwrap(), row["sha256"].as_str().unwrap().to_owned())).collect())
}

fn summary(record: &[u8]) -> (u64, String) {
    let mut hex = String::new();
    for byte in Sha256::digest(record) {
        write!(hex, "{byte:02x}").unwrap();
    }
    (record.len() as u64, hex)
}

#[test]
fn tensorflow_files_hold_the_records_that_tensorflow_wrote() {
    let Some(expected) = expected() else { return };
    assert_eq!(expected.len(), 26);
    for name in std::iter::once("tensorflow-plain.tfrecord").chain(COMPRESSED) {
        let shard = golden(name).unwrap();
        let records = read_all(&shard, Options::default()).unwrap();
        assert_eq!(records.iter().map(|record| summary(record)).collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn a_stated_compression_reads_as_the_detected_one() {
    for (name, compression) in [
        ("tensorflow-plain.tfrecord", Compression::None),
        ("tensorflow-gzip.tfrecord", Compression::Gzip),
        ("tensorflow-zlib.tfrecord", Compression::Zlib),
    ] {
        let Some(shard) = golden(name) else { return };
        let stated = read_all(&shard, Options { compression, ..Options::default() }).unwrap();
        assert_eq!(stated, read_all(&shard, Options::default()).unwrap());
    }
}

#[test]
fn a_plain_file_is_written_again_byte_for_byte_and_read_in_place() {
    let Some(plain) = golden("tensorflow-plain.tfrecord") else { return };
    let index = Index::scan(&plain[..], "plain", Options::default()).unwrap();
    assert_eq!(index.len(), 26);
    index.check_within(plain.len() as u64, "plain").unwrap();
    assert_eq!(index.gaps(plain.len() as u64).count(), 0);

    let mut writer = Writer::new(Vec::new());
    let block = Bytes::from(plain.clone());
    let base = Origin { shard: "plain", record: 0, offset: 0 };
    let mut position = 0;
    for (record, location) in records_in_block(&block, index.iter(), base, true).zip(index.iter()) {
        let record = record.unwrap();
        let (parsed, next) = parse_frame(&block, position, base).unwrap().unwrap();
        assert_eq!(parsed, record);
        assert_eq!(next as u64, location.end());
        position = next;
        // In place: the record lies inside the block.
        assert!(record.is_empty() || block.as_ptr_range().contains(&record.as_ptr()));
        assert_eq!(writer.write(&record).unwrap(), location);
    }
    assert!(parse_frame(&block, position, base).unwrap().is_none());
    assert_eq!(writer.finish().unwrap(), plain);
}

/// Writes again what was read.
fn encode_again(example: &Example<'_>) -> Vec<u8> {
    enum Values<'a> {
        Bytes(Vec<&'a [u8]>),
        Float(Vec<f32>),
        Int64(Vec<i64>),
    }
    let lists: Vec<_> = example
        .features()
        .map(|(name, view)| {
            let values = match view {
                FeatureView::Bytes(list) => Values::Bytes(list.iter().collect()),
                FeatureView::Float(list) => Values::Float(list.iter().collect()),
                FeatureView::Int64(list) => Values::Int64(list.iter().collect()),
                FeatureView::Unset => panic!("`{name}` has no list"),
            };
            (name, values)
        })
        .collect();
    // In reverse, so that the writer has to sort.
    let features: Vec<_> = lists
        .iter()
        .rev()
        .map(|(name, values)| {
            let feature = match values {
                Values::Bytes(values) => Feature::Bytes(values),
                Values::Float(values) => Feature::Float(values),
                Values::Int64(values) => Feature::Int64(values),
            };
            (*name, feature)
        })
        .collect();
    encode_example(&features).unwrap()
}

#[test]
fn tensorflow_examples_are_parsed_and_encoded_byte_for_byte() {
    let Some(plain) = golden("tensorflow-plain.tfrecord") else { return };
    let records = read_all(&plain, Options::default()).unwrap();
    for (number, record) in records[..24].iter().enumerate() {
        let example = Example::parse(record).unwrap();
        let names: Vec<_> = example.features().map(|(name, _)| name).collect();
        assert_eq!(names, ["data", "empty", "label", "name", "score"]);
        assert_eq!(&encode_again(&example)[..], &record[..]);
        assert_eq!(example.int64("label"), Some(number as i64));
        let Some(FeatureView::Int64(empty)) = example.get("empty") else { panic!("`empty` is a list of integers") };
        assert_eq!(empty.iter().count(), 0);
        assert_eq!(example.bytes("name").unwrap(), format!("sample {number} é").as_bytes());
        let tensor = example.tensor("data").unwrap().unwrap();
        assert_eq!(tensor.dtype(), TensorFlowType::DT_FLOAT);
        assert_eq!(tensor.encode(), example.bytes("data").unwrap());
    }
    assert!(records[24].is_empty());
    assert_eq!(records[25], vec![0; 70_000]);
    // An empty record is an Example without features; 70,000 zeros are none at all.
    assert!(Example::parse(&records[24]).unwrap().is_empty());
    assert!(matches!(Example::parse(&records[25]), Err(Error::Format { .. })));
}

#[test]
fn the_presto_record_is_reproduced_from_its_own_tensor() {
    let Some(presto) = golden("presto-u8-256x384x3.tfrecord") else { return };
    assert_eq!(presto.len(), 294_976);
    let records = read_all(&presto, Options::default()).unwrap();
    let example = Example::parse(&records[0]).unwrap();
    let tensor = example.tensor("data").unwrap().unwrap();
    assert_eq!((tensor.dtype(), tensor.shape().dims()), (TensorFlowType::DT_UINT8, &[256, 384, 3][..]));

    let again = TensorProto::new(TensorFlowType::DT_UINT8, tensor.shape(), tensor.content()).unwrap();
    let record = encode_example(&[("data", Feature::Tensor(again))]).unwrap();
    let mut writer = Writer::new(Vec::new());
    writer.write(&record).unwrap();
    assert_eq!(writer.finish().unwrap(), presto);

    // The same in two pieces, as a writer that does not want to join them would.
    let prefix = record.len() - tensor.content().len();
    let mut writer = Writer::new(Vec::new());
    writer.write_parts(&[&record[..prefix], tensor.content()]).unwrap();
    assert_eq!(writer.finish().unwrap(), presto);
}

#[test]
fn every_truncation_of_a_compressed_file_is_reported_after_whole_records() {
    let Some(plain) = golden("tensorflow-plain.tfrecord") else { return };
    let whole = read_all(&plain, Options::default()).unwrap();
    for name in ["tensorflow-gzip.tfrecord", "tensorflow-zlib.tfrecord"] {
        let shard = golden(name).unwrap();
        for length in (2..shard.len()).step_by(7).chain(shard.len() - 12..shard.len()) {
            let mut reader = Reader::new(&shard[..length], name, Options::default()).unwrap();
            let mut records = Vec::new();
            let error = loop {
                match reader.next_record() {
                    Ok(Some(record)) => records.push(record.data),
                    Ok(None) => panic!("{name} cut to {length} bytes ended without an error"),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Format { .. }), "{error}");
            assert_eq!(records, whole[..records.len()]);
        }
    }
}
