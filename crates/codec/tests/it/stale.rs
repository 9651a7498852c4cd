//! A failed decode shows nothing of what the memory held before, and a good one none of it either: files of every format are
//! changed at random and decoded twice, with different leftovers in the output and in the decoder's scratch memory.

use std::io::Write;

use forebay_codec::audio::{AudioOptions, Mix};
use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, Depth, EncodedImage, Encoding, Limits, Orientation, Region, Scale, encode,
};
use forebay_codec::{Error, Tensor, TensorMut};

use crate::pictures::{crc32, encodings, has_orientation, picture, with_orientation};

/// As in [`crate::images`], repeatable.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// Flips, overwrites, clears, cuts, drops or repeats something.
fn mutate(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let length = (1 + random.below(40)).min(bytes.len() - at);
        match random.below(8) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.below(256) as u8,
            3 => bytes[at..at + length].fill(0),
            4 => bytes.truncate(at.max(1)),
            5 => drop(bytes.drain(at..at + length - 1)),
            6 => {
                let repeated = bytes[at..at + length].to_vec();
                bytes.splice(at..at, repeated);
            }
            _ => bytes[at] = 0xFF,
        }
    }
    bytes
}

fn options() -> Vec<DecodeOptions> {
    let plain =
        DecodeOptions { limits: Limits { max_pixels: 1 << 20, max_bytes: 1 << 24 }, ..DecodeOptions::default() };
    let region = Some(Region { x: 3, y: 2, width: 7, height: 8 });
    let mut all = vec![
        plain.clone(),
        DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..plain.clone() },
        DecodeOptions { channels: Channels::Gray, scale: Scale::Half, ..plain.clone() },
        DecodeOptions { region, ..plain.clone() },
        DecodeOptions { region, channels: Channels::Gray, apply_orientation: false, fast_dct: true, ..plain },
    ];
    let partial: Vec<_> =
        all.iter().map(|options| DecodeOptions { allow_truncated: true, ..options.clone() }).collect();
    all.extend(partial);
    all
}

/// Two decoders with other leftovers in their scratch memory.
struct Pair {
    decoders: [Decoder; 2],
    /// An image all of 1 and one all of 0, that is decoded through the scratch memory and fills it.
    leftovers: [Vec<u8>; 2],
    gray: DecodeOptions,
    refused: usize,
    accepted: usize,
    partial: usize,
}

impl Pair {
    fn new() -> Self {
        let constant = |value: u8| Tensor::from_elements(&[72, 72, 3], &vec![value; 72 * 72 * 3]).unwrap();
        let leftovers = [0xFF, 0].map(|value| encode(constant(value).view(), &Encoding::Qoi).unwrap());
        let gray = DecodeOptions { channels: Channels::Gray, ..DecodeOptions::default() };
        Self { decoders: [Decoder::new(), Decoder::new()], leftovers, gray, refused: 0, accepted: 0, partial: 0 }
    }

    fn check(&mut self, bytes: &[u8], options: &DecodeOptions, name: &str) {
        let Ok(opened) = EncodedImage::open(bytes) else { return };
        let Ok(plan) = opened.plan(options) else { return };
        let spec = plan.spec();
        let mut outputs = [vec![0xA5; spec.bytes()], vec![0x5A; spec.bytes()]];
        let mut results = Vec::new();
        for ((decoder, leftover), output) in self.decoders.iter_mut().zip(&self.leftovers).zip(&mut outputs) {
            decoder.decode(leftover, &self.gray).unwrap();
            let result = decoder.decode_into(&plan, TensorMut { spec, data: output });
            results.push(result.map_err(|error| error.to_string()));
        }
        assert_eq!(results[0], results[1], "{name}");
        match results[0] {
            Err(_) => {
                self.refused += 1;
                assert!(outputs.iter().flatten().all(|&byte| byte == 0), "{name}: bytes are left after an error");
            }
            Ok(found) => {
                self.accepted += 1;
                self.partial += usize::from(found.partial);
                assert!(outputs[0] == outputs[1], "{name}: the pixels depend on what the memory held before");
            }
        }
    }
}

fn check_mutants(seeds: &[(String, Vec<u8>)], rounds: usize) -> Pair {
    let mut random = Random(77);
    let mut pair = Pair::new();
    for (name, file) in seeds {
        for options in options() {
            pair.check(file, &options, name);
        }
        for round in 0..rounds {
            let mutant = mutate(file, &mut random);
            for options in options() {
                pair.check(&mutant, &options, &format!("{name}, mutant {round}, {options:?}"));
            }
        }
    }
    pair
}

#[test]
fn no_picture_shows_what_the_memory_held_before() {
    let mut seeds = Vec::new();
    for encoding in encodings() {
        for (channels, deep) in [(3, false), (1, false), (4, false), (3, true)] {
            let original = picture(20, 13, channels, deep, 5);
            let Ok(file) = encode(original.view(), &encoding) else { continue };
            if has_orientation(&encoding) && channels == 3 {
                let turned = with_orientation(&file, 20, 13, Orientation::Rotate90);
                seeds.push((format!("{encoding:?}, turned"), turned));
            }
            seeds.push((format!("{encoding:?}, {channels} channels, deep {deep}"), file));
        }
    }
    seeds.extend(crate::variants::files().into_iter().map(|(name, file)| (name.to_owned(), file)));
    let pair = check_mutants(&seeds, 40);
    eprintln!(
        "{} files: {} decodes refused, {} accepted, {} of them in part",
        seeds.len(),
        pair.refused,
        pair.accepted,
        pair.partial
    );
    assert!(pair.refused > 5000 && pair.accepted > 5000 && pair.partial > 1000);
}

/// A PNG in the seven passes of Adam7, which the encoder does not write.
fn interlaced(picture: &Tensor) -> Vec<u8> {
    const PASSES: [[usize; 4]; 7] =
        [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];
    let (height, width, channels) = picture.spec().as_picture().unwrap();
    let mut rows = Vec::new();
    for [left, top, across, down] in PASSES {
        for y in (top..height).step_by(down) {
            // A pass without columns has no rows either. Each row begins with its filter: none.
            rows.extend((left < width).then_some(0));
            for x in (left..width).step_by(across) {
                rows.extend(&picture.data()[(y * width + x) * channels..][..channels]);
            }
        }
    }
    let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    pixels.write_all(&rows).unwrap();
    let mut header = [(width as u32).to_be_bytes(), (height as u32).to_be_bytes()].concat();
    header.extend([8, if channels == 1 { 0 } else { 2 }, 0, 0, 1]);
    let mut file = b"\x89PNG\r\n\x1A\n".to_vec();
    for (kind, payload) in [(b"IHDR", header), (b"IDAT", pixels.finish().unwrap()), (b"IEND", Vec::new())] {
        let chunk = [&kind[..], &payload].concat();
        file.extend((payload.len() as u32).to_be_bytes());
        file.extend(&chunk);
        file.extend(crc32(&chunk).to_be_bytes());
    }
    file
}

#[test]
fn no_interlaced_picture_shows_what_the_memory_held_before() {
    let mut seeds = Vec::new();
    for channels in [1, 3] {
        let original = picture(20, 13, channels, false, 6);
        let file = interlaced(&original);
        let stored = DecodeOptions { channels: Channels::AsStored, ..DecodeOptions::default() };
        assert_eq!(Decoder::new().decode(&file, &stored).unwrap(), original);
        seeds.push((format!("interlaced, {channels} channels"), file.clone()));
        seeds.push(("interlaced, turned".to_owned(), with_orientation(&file, 20, 13, Orientation::Rotate90)));
    }
    let pair = check_mutants(&seeds, 150);
    eprintln!("interlaced: {} decodes refused, {} accepted, {} in part", pair.refused, pair.accepted, pair.partial);
    assert!(pair.refused > 500 && pair.partial > 100);
}

#[test]
fn a_wrong_request_shows_nothing_either() {
    let file = encode(picture(8, 4, 3, false, 1).view(), &Encoding::Qoi).unwrap();
    let mut decoder = Decoder::new();
    let options = DecodeOptions { channels: Channels::Gray, ..DecodeOptions::default() };
    let opened = EncodedImage::open(&file).unwrap();
    let spec = opened.plan(&DecodeOptions::default()).unwrap().spec();
    let mut output = vec![0xA5; spec.bytes()];
    let error =
        decoder.decode_into(&opened.plan(&options).unwrap(), TensorMut { spec, data: &mut output }).unwrap_err();
    assert!(matches!(error, Error::Usage { .. }));
    assert!(output.iter().all(|&byte| byte == 0));
}

#[test]
fn no_audio_shows_what_the_memory_held_before() {
    let mut random = Random(78);
    let (mut refused, mut accepted) = (0, 0);
    for seed in crate::audio::seeds() {
        for _ in 0..150 {
            let mutant = mutate(&seed[..seed.len().min(20_000)], &mut random);
            for allow_truncated in [false, true] {
                let options = AudioOptions { mix: Mix::AsStored, allow_truncated, max_samples: 1 << 20 };
                let [first, second] = [7, -7].map(|leftover| {
                    let mut samples = vec![leftover; 100_000];
                    let result = forebay_codec::audio::decode(&mutant, &options, &mut samples);
                    assert!(result.is_ok() || samples.is_empty(), "samples are left after an error");
                    (result.map_err(|error| error.to_string()), samples)
                });
                assert_eq!(first, second);
                *(if first.0.is_ok() { &mut accepted } else { &mut refused }) += 1;
            }
        }
    }
    eprintln!("sound: {refused} decodes refused, {accepted} accepted");
    assert!(refused > 100 && accepted > 100);
}
