//! Encoded tensors: what holds for every encoding, element type and shape, and for bytes that are damaged.

use forebay_codec::tensor_encoding::{EncodedTensor, TensorDecoder, TensorEncoding, encode_tensor};
use forebay_codec::{DType, Error, Shape, Tensor, TensorMut, TensorSpec, TensorView};
use proptest::prelude::*;

const LOSSLESS: [&str; 14] = [
    "shuffle-zstd-3",
    "delta-zstd-1",
    "delta-shuffle-zstd-fast-3",
    "shuffle-zstd-19",
    "shuffle-lz4",
    "delta-lz4-fast-8",
    "delta-shuffle-lz4-hc-9",
    "pco-0",
    "pco-4",
    "pco-8",
    "pco-12",
    "bitpack",
    "sparse",
    "rle",
];

/// How what is left after a loss is kept.
const LOSSY_SCHEMES: [&str; 8] =
    ["", "-zstd-3", "-shuffle-zstd-3", "-delta-lz4", "-delta-shuffle-lz4-hc-4", "-pco-5", "-sparse", "-rle"];

fn encoding(name: &str) -> TensorEncoding {
    name.parse().unwrap()
}

fn decode(bytes: &[u8]) -> Result<Tensor, Error> {
    decode_with(&mut TensorDecoder::new(), bytes)
}

fn decode_with(decoder: &mut TensorDecoder, bytes: &[u8]) -> Result<Tensor, Error> {
    let value = EncodedTensor::open(bytes)?;
    // Leftovers of another tensor, one byte off: what is decoded must neither rely on zeros nor on alignment.
    let mut buffer = vec![0xa5; value.spec().bytes() + 1];
    decoder.decode_into(&value, TensorMut { spec: value.spec(), data: &mut buffer[1..] })?;
    Ok(Tensor::new(value.spec(), buffer[1..].to_vec()).unwrap())
}

/// Shapes of every rank, of few elements or none.
fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![]),
        (0_usize..3000).prop_map(|length| vec![length]),
        (0_usize..600, 1_usize..6).prop_map(|(rows, channels)| vec![rows, channels]),
        prop::collection::vec(0_usize..7, 3..=4),
        prop::collection::vec(1_usize..4, 5..=6),
    ]
}

/// Data of many kinds: noise, what floats have besides numbers, runs, ramps, small numbers, mostly zeros, slow curves.
fn data_of(dtype: DType, elements: usize, kind: u8, seed: u64) -> Vec<u8> {
    let width = dtype.bytes();
    let mut state = seed | 1;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let odd_f32 = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, -1e-40];
    let odd_f64 = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, -1e-310];
    let number = |number: f64| match dtype {
        DType::F32 => u64::from((number as f32).to_bits()),
        DType::F64 => number.to_bits(),
        _ => number as i64 as u64,
    };
    let bits = (0..elements).map(|index| {
        let drawn = draw();
        match kind % 8 {
            0 => drawn,
            1 => match dtype {
                DType::F32 if drawn % 5 < 4 => u64::from(odd_f32[(drawn / 8 % 8) as usize].to_bits()),
                // NaNs with payloads, of both signs, quiet or not.
                DType::F32 => 0x7f80_0001 | drawn & 0x80ff_ffff,
                DType::F64 if drawn % 5 < 4 => odd_f64[(drawn / 8 % 8) as usize].to_bits(),
                DType::F64 => 0x7ff0_0000_0000_0001 | drawn & 0x800f_ffff_ffff_ffff,
                _ => [0, u64::MAX, 1 << (8 * width - 1), u64::MAX >> 1][(drawn % 4) as usize],
            },
            2 => number((index / 37 % 11) as f64),
            3 => number(index as f64),
            4 => number((drawn % 7) as f64 - 3.0),
            5 if drawn.is_multiple_of(29) => number((drawn % 1000) as f64),
            5 => 0,
            6 => number((index as f64 / 40.0).sin() * 1000.0),
            _ => number(42.0),
        }
    });
    bits.flat_map(|bits| bits.to_le_bytes()[..width].to_vec()).collect()
}

fn dtypes() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn tensors() -> impl Strategy<Value = Tensor> {
    (dtypes(), shapes(), any::<u8>(), any::<u64>()).prop_map(|(dtype, dims, kind, seed)| {
        let spec = TensorSpec { dtype, shape: Shape::new(&dims) };
        Tensor::new(spec, data_of(dtype, spec.shape.elements(), kind, seed)).unwrap()
    })
}

/// Whether `found` is within the bound of `original`, exactly: small numbers are scaled up, where a product has all of its bits.
fn is_within(name: &str, original: f64, found: f64) -> bool {
    let bound = encoding(name).error_bound().unwrap();
    let scale = if original.abs() < 1e-200 { 2_f64.powi(200) } else { 1.0 };
    let moved = (original * scale - found * scale).abs();
    moved <= bound.relative * (original * scale).abs() || (original - found).abs() <= bound.absolute
}

fn check_loss<T: Copy>(name: &str, original: &[T], found: &[T], number: impl Fn(T) -> f64, bits: impl Fn(T) -> u64) {
    assert_eq!(original.len(), found.len());
    for (&original, &found) in original.iter().zip(found) {
        let (before, after) = (number(original), number(found));
        if before.is_nan() {
            assert!(after.is_nan(), "{name}: {before} became {after}");
            assert!(name.starts_with("bfloat16") || bits(original) == bits(found), "{name}: a NaN changed");
        } else if before.is_infinite() || before == 0.0 {
            assert_eq!(bits(original), bits(found), "{name}: {before} became {after}");
        } else {
            assert!(after.is_finite() && is_within(name, before, after), "{name}: {before:e} became {after:e}");
        }
    }
}

fn elements<T: forebay_codec::Element>(tensor: &Tensor) -> Vec<T> {
    tensor.view().elements_or_copy::<T>(&mut Vec::new()).unwrap().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn lossless_encodings_give_back_every_bit(tensor in tensors()) {
        let mut decoder = TensorDecoder::new();
        for name in LOSSLESS {
            let encoding = encoding(name);
            prop_assert!(encoding.is_lossless() && encoding.error_bound().is_none());
            let encoded = encode_tensor(tensor.view(), &encoding);
            if !encoding.holds(tensor.spec().dtype) {
                let refused = matches!(encoded, Err(Error::Usage { .. }));
                prop_assert!(refused);
                continue;
            }
            let encoded = encoded.unwrap();
            prop_assert!(encoded.len() <= tensor.data().len() + 24, "{}: {} of {}", name, encoded.len(), tensor.data().len());
            prop_assert_eq!(&decode_with(&mut decoder, &encoded).unwrap(), &tensor, "{}", name);
            // Where the tensor lies makes no difference.
            let shifted: Vec<u8> = std::iter::once(0).chain(tensor.data().iter().copied()).collect();
            let view = TensorView { spec: *tensor.spec(), data: &shifted[1..] };
            prop_assert_eq!(encode_tensor(view, &encoding).unwrap(), encoded);
        }
    }

    #[test]
    fn lossy_encodings_keep_their_bound(
        wide: bool, dims in shapes(), kind: u8, seed: u64, absolute in 1e-12..1e6_f64, digits in 1_i32..14, scheme in 0..8_usize,
    ) {
        let dtype = if wide { DType::F64 } else { DType::F32 };
        let spec = TensorSpec { dtype, shape: Shape::new(&dims) };
        let tensor = Tensor::new(spec, data_of(dtype, spec.shape.elements(), kind, seed)).unwrap();
        // From 0.9 down to 0.00000000000001.
        let relative = 0.9 / 10_f64.powi(digits - 1);
        let scheme = LOSSY_SCHEMES[scheme];
        let names =
            [format!("bfloat16{scheme}"), format!("round-absolute-{absolute}{scheme}"), format!("round-relative-{relative}{scheme}")];
        for name in &names {
            let encoding = encoding(name);
            prop_assert!(!encoding.is_lossless());
            if !encoding.holds(dtype) {
                continue;
            }
            let encoded = encode_tensor(tensor.view(), &encoding).unwrap();
            let found = decode(&encoded).unwrap();
            prop_assert_eq!(found.spec(), tensor.spec());
            match dtype {
                DType::F32 => {
                    let bits = |number: f32| u64::from(number.to_bits());
                    check_loss(name, &elements::<f32>(&tensor), &elements::<f32>(&found), f64::from, bits);
                }
                _ => check_loss(name, &elements::<f64>(&tensor), &elements::<f64>(&found), |number| number, f64::to_bits),
            }
            // What was rounded is not rounded again.
            let again = decode(&encode_tensor(found.view(), &encoding).unwrap()).unwrap();
            prop_assert_eq!(again, found);
        }
    }

    #[test]
    fn payloads_that_somebody_made_up_do_no_harm(tensor in tensors(), name in prop::sample::select(LOSSLESS.to_vec()), changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20)) {
        let encoding = encoding(name);
        prop_assume!(encoding.holds(tensor.spec().dtype));
        let mut bytes = encode_tensor(tensor.view(), &encoding).unwrap();
        let length = bytes.len() - 4;
        for (place, value) in changes {
            bytes[usize::from(place) % length] = value;
        }
        // Whoever means harm can compute checksums.
        let checksum = checksum(&bytes[..length]);
        bytes[length..].copy_from_slice(&checksum);
        if let Ok(value) = EncodedTensor::open(&bytes)
            && value.spec().bytes() < 1 << 22
            && let Ok(tensor) = decode(&bytes)
        {
            prop_assert_eq!(tensor.spec(), &value.spec());
        }
    }
}

/// CRC-32C, bit by bit: another way to the same result.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    (!crc).to_le_bytes()
}

#[test]
fn every_cut_and_every_flipped_bit_is_an_error() {
    let names = LOSSLESS.iter().map(ToString::to_string).chain(LOSSY_SCHEMES.map(|scheme| format!("bfloat16{scheme}")));
    for name in names {
        let encoding = encoding(&name);
        for dtype in DType::ALL.into_iter().filter(|&dtype| encoding.holds(dtype)) {
            let spec = TensorSpec::new(dtype, &[25, 4]);
            let tensor = Tensor::new(spec, data_of(dtype, 100, 5, 77)).unwrap();
            let whole = encode_tensor(tensor.view(), &encoding).unwrap();
            assert!(decode(&whole).is_ok());
            for length in 0..whole.len() {
                let error = decode(&whole[..length]).unwrap_err();
                assert!(error.to_string().starts_with("tensor data is "), "{name}: {error}");
            }
            for bit in 0..whole.len() * 8 {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let error = decode(&flipped).unwrap_err();
                assert!(matches!(error, Error::Format { .. }), "{name}: {error}");
            }
            let longer: Vec<u8> = whole.iter().copied().chain([0]).collect();
            assert!(decode(&longer).unwrap_err().to_string().contains("bytes after it"));
        }
    }
}

#[test]
fn a_head_that_cannot_be_is_refused() {
    let sealed = |head: &[u8]| {
        let mut bytes = head.to_vec();
        bytes.extend_from_slice(&checksum(head));
        bytes
    };
    for (head, problem) in [
        // A scheme of later versions, an unknown type, seven dimensions.
        (&[0x40, 0x05, 0x00][..], "the scheme 0x40 is not known"),
        (&[0x00, 0x09, 0x00], "the element type 9 is not known"),
        (&[0x00, 0x70, 1, 1, 1, 1, 1, 1, 1, 0], "7 dimensions"),
        // bfloat16 of float64, a delta of nothing, a shuffle of bytes, a pco that is shuffled, floats that are packed.
        (&[0x20, 0x16, 1, 0], "float32 only"),
        (&[0x09, 0x13, 1, 0, 0], "a distance"),
        (&[0x11, 0x10, 1, 0], "not shuffled"),
        (&[0x13, 0x13, 1, 0], "only what is compressed"),
        (&[0x04, 0x15, 1, 0], "only integers"),
        // 2^63 elements twice, and a petabyte out of nothing.
        (&[0x07, 0x25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x02, 0x00], "cannot be"),
        (&[0x01, 0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x01, 0x55], "cannot become"),
        (&[0x02, 0x15, 0x80, 0x80, 0x80, 0x08, 0x01, 0x55], "cannot become"),
        (&[0x00, 0x15, 0x02, 0x04, 1, 2, 3, 4], "cannot become"),
        (&[0x01, 0x15, 0x00, 0x01, 0x55], "cannot become"),
    ] {
        let error = EncodedTensor::open(&sealed(head)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}, not {problem}");
    }
    // An empty tensor of no dimensions' worth of elements is two bytes, its dimensions, a length of 0 and the checksum.
    let empty = Tensor::new(TensorSpec::new(DType::F32, &[0, 7]), Vec::new()).unwrap();
    let bytes = encode_tensor(empty.view(), &encoding("pco-8")).unwrap();
    assert_eq!(bytes, sealed(&[0x00, 0x25, 0x00, 0x07, 0x00]));
}

#[test]
fn encodings_that_know_elements_beat_those_that_do_not() {
    let ramp: Vec<i64> = (0..10_000).map(|number| 1_000_000_007 * number).collect();
    let tensor = Tensor::from_elements(&[10_000], &ramp).unwrap();
    let size = |tensor: &Tensor, name: &str| encode_tensor(tensor.view(), &encoding(name)).unwrap().len();
    assert!(size(&tensor, "delta-zstd-3") < 200 && size(&tensor, "pco-8") < 200);
    let tokens: Vec<i64> = (0..10_000).map(|number| number * 7919 % 50_257).collect();
    let tensor = Tensor::from_elements(&[10_000], &tokens).unwrap();
    assert!(size(&tensor, "bitpack") < 80_000 / 4 + 200);
    // Two channels side by side, each of them slow.
    let curves: Vec<i16> =
        (0..20_000).map(|index| if index % 2 == 0 { index / 100 } else { 9000 - index / 100 }).collect();
    let tensor = Tensor::from_elements(&[10_000, 2], &curves).unwrap();
    assert!(size(&tensor, "delta-zstd-3") < 1000);
    let waves: Vec<f32> = (0..10_000).map(|index| (index as f32 / 50.0).sin()).collect();
    let tensor = Tensor::from_elements(&[10_000], &waves).unwrap();
    assert!(size(&tensor, "round-absolute-0.001") < 40_000 / 3, "{}", size(&tensor, "round-absolute-0.001"));
    assert!(size(&tensor, "bfloat16") < 20_000 + 16);
    let noise = Tensor::new(TensorSpec::new(DType::F64, &[2000]), data_of(DType::F64, 2000, 0, 3)).unwrap();
    assert!(LOSSLESS.iter().filter(|name| **name != "bitpack").all(|name| size(&noise, name) <= 16_000 + 16));
}
