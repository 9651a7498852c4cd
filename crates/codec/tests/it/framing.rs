//! How FLAC streams are cut into frames: block sizes of every kind, numbers of frames or of samples, streams that say little
//! of themselves, and streams that change midway.

use forebay_codec::audio::{AudioInfo, AudioOptions, Mix, decode};
use forebay_codec::{Error, Result};

use crate::audio::flac::crc;
use crate::audio::noise;
use crate::data;

const STORED: AudioOptions = AudioOptions { mix: Mix::AsStored, allow_truncated: false, max_samples: 1 << 24 };

fn decoded(bytes: &[u8]) -> Result<(AudioInfo, Vec<i16>)> {
    let mut samples = Vec::new();
    decode(bytes, &STORED, &mut samples).map(|info| (info, samples))
}

/// What the number in a frame's header counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Numbers {
    Frames,
    Samples,
    /// Samples, though the header says frames: as Flake wrote streams of varying block size before FLAC 1.2.
    SamplesUnsaid,
}

/// The stream information; block sizes from `least` to `most`.
fn head(channels: usize, (least, most): (usize, usize), total: usize) -> Vec<u8> {
    let packed = 44_100_u64 << 44 | (channels as u64 - 1) << 41 | 15 << 36 | total as u64;
    let mut bytes = b"fLaC\x80\0\0\x22".to_vec();
    bytes.extend((least as u16).to_be_bytes());
    bytes.extend((most as u16).to_be_bytes());
    bytes.extend([0; 6]);
    bytes.extend(packed.to_be_bytes());
    bytes.extend([0; 16]);
    bytes
}

/// A number in the manner of UTF-8.
fn coded(number: u64) -> Vec<u8> {
    if number < 0x80 {
        return vec![number as u8];
    }
    let more = (1..=6).find(|&more| number < 1 << (6 * more + 6 - more)).unwrap();
    let mut bytes = vec![!(0x7f_u8 >> more) | (number >> (6 * more)) as u8];
    bytes.extend((0..more).rev().map(|index| 0x80 | (number >> (6 * index)) as u8 & 0x3f));
    bytes
}

/// A frame of 16-bit samples as they are; sizes that fit 8 bits are written in 8.
fn frame(samples: &[i16], channels: usize, numbers: Numbers, number: u64, rate: u8) -> Vec<u8> {
    let block = samples.len() / channels;
    let size = if block <= 256 { 0x60 } else { 0x70 };
    let mut bytes =
        vec![0xff, 0xf8 | u8::from(numbers == Numbers::Samples), size | rate, ((channels - 1) << 4) as u8 | 8];
    bytes.extend(coded(number));
    if block <= 256 {
        bytes.push((block - 1) as u8);
    } else {
        bytes.extend((block as u16 - 1).to_be_bytes());
    }
    bytes.push(crc(&bytes, 8, 0x07) as u8);
    for channel in 0..channels {
        bytes.push(0x02);
        samples[channel..].iter().step_by(channels).for_each(|sample| bytes.extend(sample.to_be_bytes()));
    }
    bytes.extend((crc(&bytes, 16, 0x8005) as u16).to_be_bytes());
    bytes
}

/// The frames of a stream of these block sizes, over and over until the samples are used up.
fn frames(samples: &[i16], channels: usize, blocks: &[usize], numbers: Numbers, first: u64) -> Vec<Vec<u8>> {
    let (mut all, mut done) = (Vec::new(), 0);
    for (count, block) in blocks.iter().cycle().enumerate() {
        let rest = &samples[done * channels..];
        if rest.is_empty() {
            break;
        }
        let block = (*block).min(rest.len() / channels);
        let number = first + if numbers == Numbers::Frames { count } else { done } as u64;
        all.push(frame(&rest[..block * channels], channels, numbers, number, 9));
        done += block;
    }
    all
}

#[test]
fn blocks_of_every_size_and_numbers_of_every_kind_are_decoded() {
    let fixed: [&[usize]; 7] = [&[16], &[254], &[256], &[257], &[725], &[1937], &[4608]];
    let varying: [&[usize]; 3] = [&[17, 31, 255, 256, 257, 725], &[1, 16, 3, 1000], &[4096, 15, 1937]];
    for channels in [1, 2] {
        let samples = noise(channels * 9001);
        let cases = fixed.into_iter().flat_map(|blocks| [(blocks, Numbers::Frames), (blocks, Numbers::Samples)]).chain(
            varying.into_iter().flat_map(|blocks| [(blocks, Numbers::Samples), (blocks, Numbers::SamplesUnsaid)]),
        );
        for (blocks, numbers) in cases {
            let sizes = (*blocks.iter().min().unwrap(), *blocks.iter().max().unwrap());
            for total in [9001, 0] {
                let mut bytes = head(channels, sizes, total);
                bytes.extend(frames(&samples, channels, blocks, numbers, 0).concat());
                let (info, found) = decoded(&bytes).unwrap_or_else(|error| panic!("{blocks:?}, {numbers:?}: {error}"));
                assert_eq!((info.rate_hz, info.channels, info.partial), (44_100, channels, false));
                assert!(found == samples, "{blocks:?}, {numbers:?}");
            }
        }
    }
}

#[test]
fn streams_without_stream_information_are_decoded() {
    let samples = noise(2 * 3000);
    let all = frames(&samples, 2, &[725], Numbers::Frames, 0);
    // A vendor's comment only.
    let mut other = b"fLaC\x84\0\0\x08\0\0\0\0\0\0\0\0".to_vec();
    other.extend(all.concat());
    // No metadata, and not even the beginning.
    let middle = frames(&samples, 2, &[725], Numbers::Frames, 300).concat();
    let by_samples = frames(&samples, 2, &[17, 300], Numbers::Samples, 123_456_789).concat();
    let unsaid = frames(&samples, 2, &[17, 300], Numbers::SamplesUnsaid, 70_000).concat();
    for bytes in [other, all.concat(), middle, by_samples, unsaid] {
        let (info, found) = decoded(&bytes).unwrap();
        assert_eq!((info.rate_hz, info.channels, info.partial), (44_100, 2, false));
        assert!(found == samples);
    }
    // A frame may leave rate or depth to the stream information; then nothing says it.
    let silent = frame(&samples[..32], 2, Numbers::Frames, 0, 0);
    let error = decoded(&silent).map(drop).unwrap_err();
    assert!(error.to_string().contains("says the sample rate"), "{error}");
    assert!(decoded(b"fLaC\x84\0\0\0").is_err());
}

#[test]
fn lost_damaged_and_cut_frames_are_told_apart() {
    for (blocks, numbers) in [
        (&[300][..], Numbers::Frames),
        (&[300], Numbers::Samples),
        (&[17, 300], Numbers::Samples),
        (&[17, 300], Numbers::SamplesUnsaid),
    ] {
        let samples = noise(3000);
        let sizes = (*blocks.iter().min().unwrap(), *blocks.iter().max().unwrap());
        let all = frames(&samples, 1, blocks, numbers, 0);
        for with_head in [true, false] {
            let start = if with_head { head(1, sizes, 0) } else { Vec::new() };
            let stream = |frames: &[Vec<u8>]| [start.clone(), frames.concat()].concat();
            let mut lost = all.clone();
            lost.remove(3);
            let error = decoded(&stream(&lost)).map(drop).unwrap_err();
            assert!(error.to_string().contains("a frame is missing"), "{error}");
            let mut damaged = all.clone();
            damaged[3][20] ^= 4;
            let error = decoded(&stream(&damaged)).map(drop).unwrap_err();
            assert!(error.to_string().contains("a frame is damaged") && !error.is_truncated(), "{error}");
            let whole = stream(&all);
            for cut in [1, 5, 30] {
                let error = decoded(&whole[..whole.len() - cut]).map(drop).unwrap_err();
                assert!(error.is_truncated(), "{error}");
            }
        }
        // A stream with its information begins at 0; one that has lost a whole frame at its end has too few samples.
        let error = decoded(&[head(1, sizes, 0), all[1..].concat()].concat()).map(drop).unwrap_err();
        assert!(error.to_string().contains("a frame is missing"), "{error}");
        let error = decoded(&[head(1, sizes, 3000), all[..all.len() - 1].concat()].concat()).map(drop).unwrap_err();
        assert!(error.is_truncated() && error.to_string().contains("says `3000`"), "{error}");
    }
}

#[test]
fn what_changes_midway_is_unsupported_not_damaged() {
    let samples = noise(600);
    let first = frame(&samples, 2, Numbers::Frames, 0, 9);
    for (second, what) in [
        (frame(&samples, 1, Numbers::Frames, 1, 9), "channels change from `2` to `1`"),
        (frame(&samples, 2, Numbers::Frames, 1, 10), "samples a second change from `44100` to `48000`"),
    ] {
        for total in [0, 900] {
            let bytes = [head(2, (300, 300), total), first.clone(), second.clone()].concat();
            let error = decoded(&bytes).map(drop).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains(what), "{error}");
        }
    }
    // Stream information that not even the first frame agrees with is wrong.
    let error = decoded(&[head(1, (300, 300), 0), first].concat()).map(drop).unwrap_err();
    assert!(matches!(error, Error::Format { .. }), "{error}");
}

#[test]
fn the_faulty_files_that_other_decoders_read_are_read() {
    let Some(folder) = data::folder("malformed/flac-faulty") else { return };
    for path in data::files(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let result = decoded(&std::fs::read(&path).unwrap());
        let found = result.as_ref().map(|(info, samples)| (info.rate_hz, info.channels, samples.len()));
        eprintln!("{name}: {found:?}");
        let expected = ["02_", "06_", "09_"].iter().any(|start| name.starts_with(start));
        assert_eq!(result.is_ok(), expected, "{name}");
    }
}
