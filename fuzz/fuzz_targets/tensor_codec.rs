//! Encoded tensors: any bytes, values with a right checksum and length around any head and payload, and what was encoded with one bit changed. The
//! first bytes say the encoding or form, the element type and the dimensions; the rest is the content.
#![no_main]

use forebay_codec::tensor_encoding::{EncodedTensor, TensorDecoder, TensorEncoding, encode_tensor};
use forebay_codec::{DType, Tensor, TensorMut, TensorSpec};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 12] = [
    "shuffle-zstd-1",
    "delta-zstd-fast-2",
    "delta-shuffle-lz4",
    "shuffle-lz4-hc-3",
    "pco-8",
    "pco-2",
    "bitpack",
    "sparse",
    "rle",
    "bfloat16-delta-lz4",
    "round-absolute-0.25-pco-4",
    "round-relative-0.01-zstd-1",
];

/// A tensor may be larger, but not here.
const BYTES_MAX: usize = 1 << 20;

fuzz_target!(|file: &[u8]| {
    decode(file);
    let [form, kind, first, second, content @ ..] = file else { return };

    // As a value: any form, two dimensions, a distance of one where there is a delta, any payload.
    let mut value = vec![*form, kind & 0xf | 2 << 4];
    varint(usize::from(*first) * 16, &mut value);
    varint(usize::from(*second), &mut value);
    if form & 8 != 0 {
        varint(1 + usize::from(*first), &mut value);
    }
    varint(content.len(), &mut value);
    value.extend_from_slice(content);
    seal(&mut value);
    decode(&value);

    // As a tensor.
    let encoding: TensorEncoding = NAMES[usize::from(*form) % NAMES.len()].parse().expect("a name");
    let dtype = DType::ALL[usize::from(*kind) % DType::ALL.len()];
    if !encoding.holds(dtype) {
        return;
    }
    let columns = 1 + usize::from(*first) % 5;
    let rows = content.len() / dtype.bytes() / columns;
    let spec = TensorSpec::new(dtype, &[rows, columns]);
    let tensor = Tensor::new(spec, content[..spec.bytes()].to_vec()).expect("as long as its spec");
    let mut encoded = encode_tensor(tensor.view(), &encoding).expect("it holds the type");
    assert!(encoded.len() <= tensor.data().len() + 24);
    let back = decode(&encoded).expect("what was encoded comes back");
    assert_eq!(back.spec(), tensor.spec());
    if encoding.is_lossless() {
        assert_eq!(back, tensor);
    }
    let at = usize::from(*second) % encoded.len();
    encoded[at] ^= 1 << (kind % 8);
    assert!(decode(&encoded).is_none(), "a changed bit is found");
});

fn decode(bytes: &[u8]) -> Option<Tensor> {
    let value = EncodedTensor::open(bytes).ok()?;
    let spec = value.spec();
    if spec.bytes() > BYTES_MAX {
        return None;
    }
    assert!(value.working_bytes() <= 3 * spec.bytes());
    let mut data = vec![0xa5; spec.bytes()];
    TensorDecoder::new().decode_into(&value, TensorMut { spec, data: &mut data }).ok()?;
    Tensor::new(spec, data)
}

fn varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn seal(value: &mut Vec<u8>) {
    let checksum = crc32c::crc32c(value);
    value.extend_from_slice(&checksum.to_le_bytes());
}
