//! What errors say, word for word. The checksums in them were computed by another implementation.

use forebay_record::{Example, Feature, Index, Options, TensorFlowType, TensorProto, TensorShape, encode_example};

use crate::support::{SMALL, read_all, shard};

#[test]
fn errors_name_shard_record_offset_expected_and_found() {
    let (whole, index) = shard(&SMALL);
    let flip = |position: usize| {
        let mut shard = whole.clone();
        shard[position] ^= 1;
        read_all(&shard, Options::default()).unwrap_err().to_string()
    };
    let cut = |length: usize| read_all(&whole[..length], Options::default()).unwrap_err().to_string();
    let limited = Options { max_record_bytes: 20, ..Options::default() };
    let gzip_options = Options { compression: forebay_record::Compression::Gzip, ..Options::default() };
    let cases = [
        (
            flip(48),
            "record 2 of `small.tfrecord` at byte 48: length checksum mismatch: expected `0x3e04b2ea`, found `0x04524542`",
        ),
        (
            flip(60),
            "record 2 of `small.tfrecord` at byte 48: payload checksum mismatch: expected `0x7510fd8c`, found `0xb0594d6e`",
        ),
        (cut(40), "record 1 of `small.tfrecord` at byte 32: truncated in the header: expected `12` bytes, found `8`"),
        (cut(62), "record 2 of `small.tfrecord` at byte 48: truncated in the payload: expected `5` bytes, found `2`"),
        (cut(68), "record 2 of `small.tfrecord` at byte 48: truncated in the footer: expected `4` bytes, found `3`"),
        (
            read_all(&whole, limited).unwrap_err().to_string(),
            "record 3 of `small.tfrecord` at byte 69: record length over the limit: expected at most `20`, found `40`\n\
             hint: raise `max_record_bytes` if the record is meant to be this long",
        ),
        (
            read_all(b"not gzip at all", gzip_options).unwrap_err().to_string(),
            "record 0 of `small.tfrecord` at byte 0: the GZIP stream is damaged: incorrect header check",
        ),
        (
            read_all(&[0x28, 0xb5, 0x2f, 0xfd], Options::default()).unwrap_err().to_string(),
            "record 0 of `small.tfrecord` at byte 0: the ZSTD stream is damaged: it ends within a frame",
        ),
        (
            Index::parse(b"0 32\n31 16\n", "a.idx").unwrap_err().to_string(),
            "`a.idx`: line 2: expected an offset of at least `32`, where the record above ends, found `31`",
        ),
        (
            index.check_within(100, "small.tfrecord").unwrap_err().to_string(),
            "record 3 of `small.tfrecord` at byte 69: the index ends at byte `125`, the shard at `100`\n\
             hint: the shard is truncated, or the index belongs to another shard",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn messages_are_placed_by_whoever_knows_the_record() {
    let error = Example::parse(&[0x0a, 5, 0]).unwrap_err();
    assert_eq!(error.to_string(), "record: malformed tf.train.Example at its byte `2`: a field ends after its message");
    assert_eq!(
        error.in_record("a.tfrecord", 7, Some(99)).to_string(),
        "record 7 of `a.tfrecord` at byte 99: malformed tf.train.Example at its byte `2`: a field ends after its message"
    );
    let error = TensorProto::parse(&[8, 3, 0x12, 4, 0x12, 2, 8, 1, 0x3a, 1, 5]).unwrap_err();
    assert_eq!(
        error.in_record("a.tfrecord", 7, None).to_string(),
        "record 7 of `a.tfrecord`: a tensor without tensor_content is not supported: found `values in field 7`\n\
         hint: write it with tf.io.serialize_tensor, which fills tensor_content"
    );
    let shape = TensorShape::new(&[2, 2]).unwrap();
    assert_eq!(
        TensorProto::new(TensorFlowType::DT_FLOAT, shape, &[0; 4]).unwrap_err().to_string(),
        "record: tensor content length mismatch: expected `16` bytes by type and shape, found `4`"
    );
    assert_eq!(
        encode_example(&[("a", Feature::Int64(&[])), ("a", Feature::Int64(&[]))]).unwrap_err().to_string(),
        "record: two features are named `a`"
    );
}
