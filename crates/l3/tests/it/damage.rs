//! Damaged files: an error, never a panic, a wrong size or silently wrong pixels.

use forebay_l3::{
    DecodeOptions, Decoder, Depth, EncodeOptions, Error, ErrorClass, Level, Mode, Pixels, decode, encode,
};
use proptest::prelude::{ProptestConfig, any, proptest};

use crate::images::{KINDS, Kind, Numbers, make, shape};

/// Small files of every mode, depth and channel count.
fn files() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for mode in Mode::ALL {
        for (channels, depth) in [(1, Depth::Eight), (3, Depth::Eight), (4, Depth::Sixteen)] {
            let shape = shape(23, 9, channels, depth);
            let data = make(Kind::Photo, shape, 2);
            let mut options = EncodeOptions::new(mode);
            if mode == Mode::Classic {
                options.patch = 5;
            } else {
                options.strip_rows = Some(4);
            }
            files.push(encode(&Pixels::new(shape, &data).unwrap(), &options).unwrap());
        }
    }
    files
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    for mut file in files() {
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            let error = decoder.decode(&file).expect_err("a flipped bit must not go unnoticed");
            assert_ne!(error.class(), ErrorClass::Usage, "bit {bit}: {error}");
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn every_truncation_and_extension_is_noticed() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    for file in files() {
        for length in 0..file.len() {
            let error = decoder.decode(&file[..length]).expect_err("a missing byte must not go unnoticed");
            assert_eq!(error.class(), ErrorClass::Format, "{length}: {error}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(decoder.decode(&longer).unwrap_err().class(), ErrorClass::Format);
    }
}

/// Without checksums damage may give wrong pixels, but the decoder still keeps its footing, and every level gives the same.
#[test]
fn damage_without_checksums_is_the_same_on_every_level() {
    let mut numbers = Numbers::new(4);
    let levels = Level::ALL.into_iter().filter(|level| level.is_available());
    let options = |level| DecodeOptions { verify: false, level, max_pixels: 1 << 20, ..DecodeOptions::default() };
    let mut decoders: Vec<Decoder> = levels.map(|level| Decoder::new(options(level))).collect();
    let mut agree = |damaged: &[u8]| {
        // Which damage of several is found first differs, and with it the message.
        let mut results = decoders
            .iter_mut()
            .map(|decoder| decoder.decode(damaged).map_err(|error| error.class()).map(|image| image.data));
        let first = results.next().expect("there is a scalar level");
        results.all(|other| other == first)
    };
    for file in files() {
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(agree(&damaged), "bit {bit}");
        }
        for round in 0..200 {
            let mut damaged = file.clone();
            for _ in 0..=numbers.next() % 20 {
                let at = 32 + numbers.next() as usize % (damaged.len() - 32);
                damaged[at] = numbers.next() as u8;
            }
            assert!(agree(&damaged), "round {round}");
        }
    }
}

#[test]
fn what_is_unknown_is_refused_by_name() {
    let shape = shape(4, 4, 3, Depth::Eight);
    let file = encode(&Pixels::new(shape, &[7; 48]).unwrap(), &EncodeOptions::new(Mode::Fast)).unwrap();
    for (offset, value, words) in [
        (4, 3, "unsupported L3 version: `3`; hint: a newer version of this library may read it"),
        (5, 3, "unsupported L3 mode: `3`"),
        (6, 1, "unsupported L3 flags: `1`"),
        (8, 12, "unsupported bits per sample: `12`"),
        (9, 5, "unsupported color transform: `5`"),
        (10, 0, "unsupported predictor: `0`"),
        (7, 5, "damaged L3 file: channels (1 to 4)"),
        (0, 0, "damaged L3 file: magic number at byte 0"),
    ] {
        let mut changed = file.clone();
        changed[offset] = value;
        let message = decode(&changed).unwrap_err().to_string();
        assert!(message.starts_with(words), "{message}");
    }
}

#[test]
fn a_header_cannot_demand_memory() {
    let shape = shape(4, 4, 3, Depth::Eight);
    let mut file = encode(&Pixels::new(shape, &[7; 48]).unwrap(), &EncodeOptions::new(Mode::Dense)).unwrap();
    file[12..16].copy_from_slice(&(1u32 << 20).to_le_bytes());
    file[16..20].copy_from_slice(&(1u32 << 20).to_le_bytes());
    let error = decode(&file).unwrap_err();
    assert!(matches!(error, Error::Limit { what: "number of pixels", .. }), "{error}");
    file[12..16].copy_from_slice(&(2u32 << 20).to_le_bytes());
    assert!(matches!(decode(&file).unwrap_err(), Error::Limit { what: "image width", .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_bytes_after_a_header_do_not_panic(
        kind in proptest::sample::select(KINDS.to_vec()),
        mode in proptest::sample::select(Mode::ALL.to_vec()),
        tail in proptest::collection::vec(any::<u8>(), 0..400),
        keep in 32usize..200,
    ) {
        let shape = shape(70, 12, 3, Depth::Eight);
        let mut file = encode(&Pixels::new(shape, &make(kind, shape, 1)).unwrap(), &EncodeOptions::new(mode)).unwrap();
        let end = file.len() - 64;
        let keep = keep.min(end);
        for (byte, new) in file[keep..end].iter_mut().zip(tail) {
            *byte = new;
        }
        let _ = Decoder::new(DecodeOptions { verify: false, ..DecodeOptions::default() }).decode(&file);
    }
}
