//! Sound: decoding compared with ffmpeg, spectrograms with TensorFlow, and damage of every kind.

use std::f64::consts::{PI, TAU};
use std::path::Path;
use std::time::{Duration, Instant};

use forebay_codec::audio::{
    AudioFormat, AudioInfo, AudioOptions, Mix, RATE_MAX, Resampler, Spectrogram, SpectrogramBuffers,
    SpectrogramOptions, decode,
};
use forebay_codec::{Error, Result};
use proptest::prelude::*;

use crate::allocation::peak_bytes;
use crate::data;

const STORED: AudioOptions = AudioOptions { mix: Mix::AsStored, allow_truncated: false, max_samples: 1 << 24 };

/// What ffmpeg decodes of the shared files; made by `pcm.py` beside it.
const FFMPEG: &str = include_str!("../golden/pcm.tsv");

fn decoded(bytes: &[u8], options: &AudioOptions) -> Result<(AudioInfo, Vec<i16>)> {
    let mut samples = vec![7; 3];
    decode(bytes, options, &mut samples).map(|info| (info, samples))
}

/// As `pcm.py` computes it.
fn polynomial_hash(samples: &[i16]) -> u64 {
    samples
        .iter()
        .fold(0, |hash: u64, &sample| hash.wrapping_mul(0x100_0000_01b3).wrapping_add(u64::from(sample as u16) + 1))
}

/// The files of one kind that ffmpeg decodes without complaint, with its description of each.
fn ffmpeg_lines(folder: &str) -> impl Iterator<Item = Vec<&'static str>> {
    FFMPEG.lines().filter(move |line| line.starts_with(folder)).map(|line| line.split('\t').collect())
}

#[test]
fn flac_is_what_ffmpeg_decodes_to_the_bit() {
    let Some(root) = data::folder("audio-flac") else { return };
    let root = root.parent().unwrap();
    let mut compared = 0;
    for line in ffmpeg_lines("audio-flac") {
        let bytes = std::fs::read(root.join(line[0])).unwrap();
        if line[0].contains("decreasing_number_of_channels") {
            // ffmpeg mixes what comes later down to what came first; here it is an error.
            let error = decoded(&bytes, &STORED).map(drop).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains("channels change"), "{error}");
            continue;
        }
        let (info, samples) = decoded(&bytes, &STORED).unwrap();
        assert_eq!(info.format, AudioFormat::Flac);
        let shape = [info.rate_hz.to_string(), info.channels.to_string(), (samples.len() / info.channels).to_string()];
        assert_eq!(shape, line[1..4], "{}", line[0]);
        assert_eq!(format!("{:016x}", polynomial_hash(&samples)), line[4], "{}", line[0]);
        let (mono, mixed) = decoded(&bytes, &AudioOptions::default()).unwrap();
        assert_eq!((mono.channels, mono.stored_channels), (1, info.channels));
        for (instant, &mixed) in samples.chunks(info.channels).zip(&mixed) {
            let sum: f64 = instant.iter().map(|&sample| f64::from(sample)).sum();
            assert_eq!(mixed, (sum / info.channels as f64).round_ties_even() as i16);
        }
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn mp3_is_what_ffmpeg_decodes_but_for_rounding() {
    let Some(root) = data::folder("audio-mp3") else { return };
    let root = root.parent().unwrap();
    let (mut compared, mut equal, mut probes_compared) = (0, 0, 0);
    for line in ffmpeg_lines("audio-mp3") {
        let path = root.join(line[0]);
        let bytes = std::fs::read(&path).unwrap();
        let result = decoded(&bytes, &STORED);
        let [_, rate, channels, count, probes] = line[..] else {
            let text =
                result.map_or_else(|error| error.to_string(), |(info, samples)| format!("{info:?}: {}", samples.len()));
            eprintln!("{}: ffmpeg complains; {text}", line[0]);
            continue;
        };
        if line[0].ends_with("l3-compl.bit") {
            // Its last frame is cut off; ffmpeg makes up for it without a word.
            assert!(result.map(drop).unwrap_err().is_truncated());
            continue;
        }
        if line[0].ends_with("l3-he_mode.bit") {
            // It goes from one channel to two and back; ffmpeg mixes all down to what comes first.
            let error = result.map(drop).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains("number of channels changes"), "{error}");
            continue;
        }
        let (info, samples) = result.unwrap_or_else(|error| panic!("{}: {error}", line[0]));
        assert_eq!((info.rate_hz.to_string(), info.channels.to_string()), (rate.to_owned(), channels.to_owned()));
        assert_eq!((samples.len() / info.channels).to_string(), count, "{}", line[0]);
        let probes: Vec<i16> = probes.split(',').map(|probe| probe.parse().unwrap()).collect();
        for (index, &probe) in probes.iter().enumerate() {
            let found = samples[index * samples.len() / probes.len()];
            assert!((i32::from(found) - i32::from(probe)).abs() <= 1, "{} {index}: {found} {probe}", line[0]);
            equal += usize::from(found == probe);
            probes_compared += 1;
        }
        compared += 1;
    }
    eprintln!("{compared} MP3 files; of {probes_compared} samples {equal} are equal, the others differ by 1");
    assert!(compared > 30, "{compared}");
}

/// The numbers of a `.npy` file of `float32`.
fn read_npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[start..].as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn spectrogram_of(samples: &[i16], options: &SpectrogramOptions) -> Vec<f32> {
    let spectrogram = Spectrogram::new(options).unwrap();
    let mut output = vec![f32::NAN; spectrogram.frames(samples.len()) * spectrogram.bands()];
    spectrogram.run(samples, &mut output, &mut SpectrogramBuffers::default()).unwrap();
    output
}

/// Whether two spectrograms are equal but for the rounding of single precision, which is relative to the loudest band of a
/// frame: before the logarithm they differ by no more than a few of its last bits.
fn assert_close(found: &[f32], expected: &[f64], bands: usize, tolerance: f64, name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (frame, (found, expected)) in found.chunks(bands).zip(expected.chunks(bands)).enumerate() {
        let loudest = expected.iter().fold(f64::MIN, |loudest, value| loudest.max(*value)).exp();
        for (band, (found, expected)) in found.iter().zip(expected).enumerate() {
            let difference = (f64::from(*found).exp() - expected.exp()).abs();
            assert!(
                difference <= tolerance * loudest + 1e-12,
                "{name} {frame} {band}: {found} {expected}, loudest {loudest}"
            );
        }
    }
}

#[test]
fn spectrograms_are_tensorflows_but_for_rounding() {
    let Some(root) = data::folder("golden") else { return };
    for (name, source) in [
        ("1069-133699-0000_flac", "audio-flac/librispeech/1069-133699-0000.flac"),
        ("1998-15444-0001_flac", "audio-flac/librispeech/1998-15444-0001.flac"),
        ("1069-133699-0000_mp3", "audio-mp3/librispeech-derived/1069-133699-0000.mp3"),
    ] {
        let bytes = std::fs::read(root.parent().unwrap().join(source)).unwrap();
        let (info, samples) = decoded(&bytes, &AudioOptions::default()).unwrap();
        let options = SpectrogramOptions { rate_hz: info.rate_hz, ..SpectrogramOptions::default() };
        let expected = read_npy(&root.join(format!("logmel-{name}.npy")));
        let found = spectrogram_of(&samples, &options);
        assert_eq!(found.len(), expected.len(), "{name}");
        if !name.ends_with("mp3") {
            let exact: Vec<f64> = expected.iter().map(|&value| f64::from(value)).collect();
            // TensorFlow computes its filterbank in single precision: differences of numbers of about 2000 mel, over the
            // 27 mel from one corner to the next, are right to 5e-6 only.
            assert_close(&found, &exact, options.mel_bands, 2e-5, name);
        }
        let mut differences: Vec<f32> = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).collect();
        differences.sort_by(f32::total_cmp);
        let at = |share: f64| differences[(share * (differences.len() - 1) as f64) as usize];
        eprintln!("{name}: median {:e}, 99.9 % {:e}, largest {:e}", at(0.5), at(0.999), at(1.0));
        // An MP3 also differs by a sample's lowest bit here and there, which is much in silence.
        let (usual, largest) = if name.ends_with("mp3") { (1e-2, 0.1) } else { (1e-4, 1e-3) };
        assert!(at(0.999) <= usual && at(1.0) <= largest, "{name}");
    }
}

/// The definition, in double precision.
fn slow_spectrogram(samples: &[i16], options: &SpectrogramOptions) -> Vec<f64> {
    let (frame, step, bins) = (options.frame_samples(), options.step_samples(), options.fft_length / 2 + 1);
    let mel_of = |hertz: f64| 1127.0 * (1.0 + hertz / 700.0).ln();
    let (low, high) = (mel_of(options.lowest_hz), mel_of(options.highest_hz));
    let corner = |index: usize| low + (high - low) * index as f64 / (options.mel_bands + 1) as f64;
    let mut output = Vec::new();
    for start in (0..=samples.len() - frame).step_by(step) {
        let windowed: Vec<f64> = (0..frame)
            .map(|n| f64::from(samples[start + n]) / 32768.0 * (0.5 - 0.5 * (TAU * n as f64 / frame as f64).cos()))
            .collect();
        let magnitude = |bin: usize| {
            let angle = |n: usize| -TAU * (bin * n % options.fft_length) as f64 / options.fft_length as f64;
            let re: f64 = windowed.iter().enumerate().map(|(n, x)| x * angle(n).cos()).sum();
            let im: f64 = windowed.iter().enumerate().map(|(n, x)| x * angle(n).sin()).sum();
            re.hypot(im)
        };
        let magnitudes: Vec<f64> = (0..bins).map(magnitude).collect();
        for band in 0..options.mel_bands {
            let (left, center, right) = (corner(band), corner(band + 1), corner(band + 2));
            let weigh = |bin: usize| {
                let mel = mel_of(bin as f64 * f64::from(options.rate_hz) / 2.0 / (bins - 1) as f64);
                ((mel - left) / (center - left)).min((right - mel) / (right - center)).max(0.0)
            };
            let sum: f64 = (1..bins).map(|bin| magnitudes[bin] * weigh(bin)).sum();
            output.push((sum + f64::from(options.log_offset)).ln());
        }
    }
    output
}

#[test]
fn spectrograms_follow_their_definition_for_any_options() {
    let base = SpectrogramOptions::default();
    // Odd frames, a transform no longer than the frame, bands up to half the rate and down to 0, more bands than bins.
    let cases = [
        base.clone(),
        SpectrogramOptions { rate_hz: 48_000, ..base.clone() },
        SpectrogramOptions { rate_hz: 22_050, ..base.clone() },
        SpectrogramOptions { rate_hz: 8000, fft_length: 160, lowest_hz: 0.0, highest_hz: 4000.0, ..base.clone() },
        SpectrogramOptions {
            rate_hz: 11_025,
            mel_bands: 3,
            window_milliseconds: 31,
            hop_milliseconds: 7,
            ..base.clone()
        },
        SpectrogramOptions { rate_hz: 8000, fft_length: 162, mel_bands: 120, ..base },
    ];
    for options in cases {
        let samples: Vec<i16> = (0..options.frame_samples() * 3 + 5)
            .map(|n| (9000.0 * (PI * 0.011 * n as f64).sin() + 5000.0 * (0.9 * n as f64).sin()) as i16)
            .collect();
        let expected = slow_spectrogram(&samples, &options);
        let found = spectrogram_of(&samples, &options);
        assert_close(&found, &expected, options.mel_bands, 2e-6, &format!("{options:?}"));
    }
}

#[test]
fn silence_and_short_recordings_have_their_spectrograms() {
    let options = SpectrogramOptions::default();
    assert!(spectrogram_of(&[1; 319], &options).is_empty());
    let silence = spectrogram_of(&[0; 480], &options);
    assert_eq!(silence.len(), 160);
    assert!(silence.iter().all(|value| (value - 1e-8_f32.ln()).abs() < 1e-6));
    // A loud frame does not reach into a silent one.
    let mut samples = vec![0; 320 * 8];
    samples[1280..].fill(20_000);
    let half = spectrogram_of(&samples, &options);
    assert!(half[..80 * 7].iter().all(|value| (value - 1e-8_f32.ln()).abs() < 1e-6));
}

#[test]
fn options_that_do_not_fit_are_refused_with_a_reason() {
    let base = SpectrogramOptions::default();
    for (options, problem) in [
        (SpectrogramOptions { hop_milliseconds: 0, ..base.clone() }, "step"),
        (SpectrogramOptions { fft_length: 1023, ..base.clone() }, "Fourier"),
        (SpectrogramOptions { rate_hz: 96_000, ..base.clone() }, "frame"),
        (SpectrogramOptions { mel_bands: 0, ..base.clone() }, "bands"),
        (SpectrogramOptions { rate_hz: 7000, ..base.clone() }, "sample rate"),
        (SpectrogramOptions { log_offset: 0.0, ..base }, "silence"),
    ] {
        let error = Spectrogram::new(&options).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains(problem), "{error}");
    }
}

/// A FLAC of verbatim frames, as RFC 9639 has it: enough of an encoder to have files without the shared data.
pub(crate) mod flac {
    pub(crate) fn crc(bytes: &[u8], width: u32, polynomial: u32) -> u32 {
        let top = 1 << (width - 1);
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ (u32::from(byte) << (width - 8)), |crc, _| {
                let shifted = crc << 1;
                (if crc & top != 0 { shifted ^ polynomial } else { shifted }) & ((top << 1) - 1)
            })
        })
    }

    /// The head of a file: the stream information.
    fn head(rate_hz: u32, channels: usize, bits: u64, block: usize, total: u64) -> Vec<u8> {
        let packed = u64::from(rate_hz) << 44 | (channels as u64 - 1) << 41 | (bits - 1) << 36 | total;
        let mut bytes = b"fLaC\x80\0\0\x22".to_vec();
        for _ in 0..2 {
            bytes.extend((block as u16).to_be_bytes());
        }
        bytes.extend([0; 6]);
        bytes.extend(packed.to_be_bytes());
        bytes.extend([0; 16]);
        bytes
    }

    /// One frame whose checksums are right, whatever is in it.
    pub(super) fn frame_of(assignment: u8, bits: u64, block: usize, body: &[u8]) -> Vec<u8> {
        let channels = if assignment > 7 { 2 } else { usize::from(assignment) + 1 };
        let mut bytes = head(44_100, channels, bits, block, 0);
        let start = bytes.len();
        bytes.extend([0xff, 0xf8, 0x70, assignment << 4, 0]);
        bytes.extend((block as u16 - 1).to_be_bytes());
        bytes.push(crc(&bytes[start..], 8, 0x07) as u8);
        bytes.extend(body);
        bytes.extend((crc(&bytes[start..], 16, 0x8005) as u16).to_be_bytes());
        bytes
    }

    pub(super) fn encode(samples: &[i16], channels: usize, rate_hz: u32, block: usize, known_length: bool) -> Vec<u8> {
        let total = if known_length { samples.len() / channels } else { 0 };
        let mut bytes = head(rate_hz, channels, 16, block, total as u64);
        for (number, samples) in samples.chunks(block * channels).enumerate() {
            assert!(number < 128, "frame numbers of one byte");
            let start = bytes.len();
            bytes.extend([0xff, 0xf8, 0x70, ((channels - 1) << 4) as u8 | 8, number as u8]);
            bytes.extend(((samples.len() / channels - 1) as u16).to_be_bytes());
            bytes.push(crc(&bytes[start..], 8, 0x07) as u8);
            for channel in 0..channels {
                bytes.push(0x02);
                samples[channel..].iter().step_by(channels).for_each(|sample| bytes.extend(sample.to_be_bytes()));
            }
            bytes.extend((crc(&bytes[start..], 16, 0x8005) as u16).to_be_bytes());
        }
        bytes
    }
}

pub(crate) fn noise(count: usize) -> Vec<i16> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as i16
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Silent frames of MPEG-1 layer III, 44.1 kHz mono at 128 kbit/s.
fn silent_mp3(frames: usize) -> Vec<u8> {
    let mut frame = vec![0; 417];
    frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0xc4]);
    frame.repeat(frames)
}

#[test]
fn a_flac_of_any_layout_comes_back() {
    for (channels, block, known) in [(1, 256, true), (2, 300, false), (8, 64, true)] {
        let samples = noise(channels * 1000);
        let bytes = flac::encode(&samples, channels, 16_000, block, known);
        let (info, found) = decoded(&bytes, &STORED).unwrap();
        assert_eq!(found, samples);
        assert_eq!((info.rate_hz, info.channels, info.partial), (16_000, channels, false));
        // A tag in front and one behind do no harm.
        let mut tagged = b"ID3\x04\0\0\0\0\0\x05hello".to_vec();
        tagged.extend(&bytes);
        tagged.extend(b"TAG");
        tagged.extend([0; 125]);
        assert_eq!(decoded(&tagged, &STORED).unwrap().1, samples);
    }
}

#[test]
fn damage_is_named_and_what_precedes_it_can_be_had() {
    let samples = noise(1000);
    let whole = flac::encode(&samples, 1, 16_000, 100, true);
    let partial = AudioOptions { allow_truncated: true, ..STORED };
    let mut damaged = whole.clone();
    let offset = whole.len() - 450;
    damaged[offset] ^= 0x10;
    let error = decoded(&damaged, &STORED).map(drop).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    for bytes in [&damaged[..], &whole[..offset]] {
        let (info, found) = decoded(bytes, &partial).unwrap();
        assert!(
            info.partial && !found.is_empty() && found.len() < 1000 && samples.starts_with(&found),
            "{}",
            found.len()
        );
    }
    assert!(decoded(&whole[..offset], &STORED).map(drop).unwrap_err().is_truncated());
    // Where the header does not say how long it is, a missing frame shows by what is left over of it.
    let unknown = flac::encode(&samples, 1, 16_000, 100, false);
    assert!(decoded(&unknown[..offset], &STORED).map(drop).unwrap_err().is_truncated());

    let mp3 = silent_mp3(12);
    assert_eq!(decoded(&mp3, &STORED).unwrap().1.len(), 12 * 1152);
    assert!(decoded(&mp3[..mp3.len() - 9], &STORED).map(drop).unwrap_err().is_truncated());
    let mut gap = mp3.clone();
    gap.splice(417 * 6..417 * 6, [0; 10]);
    let error = decoded(&gap, &STORED).map(drop).unwrap_err();
    assert!(error.to_string().contains("`10` bytes between two frames"), "{error}");
    assert_eq!(decoded(&gap, &partial).unwrap().1.len(), 6 * 1152);
    // What follows the last frame and is none is padding.
    let mut padded = mp3;
    padded.extend([0; 1000]);
    assert_eq!(decoded(&padded, &STORED).unwrap().1.len(), 12 * 1152);
}

#[test]
fn differences_of_32_bit_are_refused() {
    // A constant left channel and a constant difference of 33 bit.
    let body = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0];
    let error = decoded(&flac::frame_of(8, 32, 16, &body), &STORED).map(drop).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
fn limits_hold_against_the_header_and_while_decoding() {
    let tight = AudioOptions { max_samples: 999, ..STORED };
    for known in [true, false] {
        let bytes = flac::encode(&noise(1000), 1, 16_000, 100, known);
        let (result, peak) = peak_bytes(|| decoded(&bytes, &tight));
        assert!(matches!(result, Err(Error::Limit { .. })));
        assert!(peak < 1 << 20, "{peak}");
    }
    let result = decoded(&silent_mp3(5), &AudioOptions { max_samples: 5 * 1152 - 1, ..STORED });
    assert!(matches!(result, Err(Error::Limit { .. })));
}

/// The sound of `golden/resample.py`.
fn made_up_audio() -> Vec<i16> {
    let noise = |n: i64| ((n * n * 7919 + n * 104_729) % 40_009 - 20_004) as i16;
    let step = |n: i64| if n % 20 < 10 { i16::MAX } else { i16::MIN };
    (0..150).map(|n| if n < 110 { noise(n) } else { step(n) }).collect()
}

#[test]
fn resampled_audio_is_torchaudios() {
    let mut pairs = 0;
    for line in include_str!("../golden/resample.txt").lines().filter(|line| !line.starts_with('#')) {
        let numbers: Vec<i64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let (from, to, expected) = (numbers[0] as u32, numbers[1] as u32, &numbers[2..]);
        let resampler = Resampler::new(from, to).unwrap();
        let mut found = made_up_audio();
        assert_eq!(resampler.output_samples(found.len()), expected.len() as u64, "{from} to {to} Hz");
        resampler.run(&mut found, 1, usize::MAX, &mut Vec::new()).unwrap();
        let furthest = found.iter().zip(expected).map(|(&found, &expected)| (i64::from(found) - expected).abs()).max();
        // A half may round either way.
        assert!(furthest <= Some(1), "{from} to {to} Hz: off by {furthest:?}");
        let off = found.iter().zip(expected).filter(|&(&found, &expected)| i64::from(found) != expected).count();
        assert!(off * 50 <= expected.len(), "{from} to {to} Hz: {off} of {} differ", expected.len());

        // Two channels are two sounds.
        let mono = made_up_audio();
        let mut both: Vec<i16> = mono.iter().flat_map(|&sample| [sample, sample / 2]).collect();
        resampler.run(&mut both, 2, usize::MAX, &mut Vec::new()).unwrap();
        let left: Vec<i16> = both.iter().step_by(2).copied().collect();
        assert_eq!(left, found);
        pairs += 1;
    }
    assert_eq!(pairs, 7);
}

#[test]
fn resampling_is_bounded() {
    let mut samples = vec![1; 1000];
    let resampler = Resampler::new(1, 16_000).unwrap();
    let error = resampler.run(&mut samples, 1, 1 << 20, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::Limit { found: 16_000_000, .. }), "{error}");
    assert!(Resampler::new(0, 16_000).is_err());
    assert!(Resampler::new(16_000, RATE_MAX + 1).is_err());
    // The most weights that there can be: two primes.
    let (_, peak) = peak_bytes(|| Resampler::new(1_048_573, 1_048_571).unwrap());
    assert!(peak < 128 << 20, "{peak}");
    let mut nothing = Vec::new();
    resampler.run(&mut nothing, 2, 0, &mut Vec::new()).unwrap();
    assert!(nothing.is_empty());
}

#[test]
fn other_formats_are_named() {
    for (bytes, name) in [
        (&b"OggS\0\x02............"[..], "ogg"),
        (b"FORM\0\0\0\0AIFFCOMM", "aiff"),
        (b"\0\0\0\x18ftypM4A ........", "mp4"),
    ] {
        let error = decoded(bytes, &STORED).map(drop).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().starts_with(name), "{error}");
    }
    for (bytes, problem) in
        [(&b""[..], "empty"), (b"ID3\x04\0\0\0\0\0\0", "tag"), (b"not sound at all, but text", "no known audio format")]
    {
        let error = decoded(bytes, &STORED).map(drop).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn malformed_audio_is_refused_within_bounds() {
    let Some(root) = data::folder("malformed") else { return };
    // Decoded, or a part of the reason why not.
    let expected = [
        ("02_-_wrong_maximum_framesize", None),
        ("03_-_wrong_bit_depth", Some("bits a sample, the first frame")),
        ("05_-_wrong_total_number_of_samples", Some("samples")),
        ("06_-_missing_streaminfo_metadata_block", None),
        ("08_-_blocksize_65536", Some("a frame of `65536` samples is not supported")),
        ("09_-_blocksize_1", None),
        ("11_-_incorrect_metadata_block_length", Some("metadata block of type `127`")),
        // One whole frame, which is all that is left of the file.
        ("l3-compl-cut", None),
        (".fuzz", Some("no known audio format")),
    ];
    let folders = ["flac-faulty", "flac-fuzz-seeds", "mp3"];
    for path in folders.iter().flat_map(|folder| data::files(&root.join(folder))) {
        let bytes = std::fs::read(&path).unwrap();
        let started = Instant::now();
        let (result, peak) = peak_bytes(|| decoded(&bytes, &STORED));
        assert!(started.elapsed() < Duration::from_secs(20), "{}", path.display());
        assert!(peak < 1 << 27, "{} took {peak} bytes", path.display());
        let name = path.file_name().unwrap().to_str().unwrap();
        let (_, reason) = expected.iter().find(|(part, _)| name.contains(part)).unwrap();
        match (result, reason) {
            (Ok(_), None) => {}
            (Err(error), Some(reason)) => {
                eprintln!("{name}: {error}");
                assert!(error.to_string().contains(reason), "{name}: {error}");
            }
            (result, reason) => {
                panic!("{name}: {:?} instead of {reason:?}", result.map(|(info, samples)| (info, samples.len())))
            }
        }
    }
}

/// Bytes to start from: generated files, and a real one of each kind where they are present.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![flac::encode(&noise(2000), 2, 44_100, 128, true), silent_mp3(6)];
    for (folder, name) in [("audio-flac", "sonic-pi/drum_bass_soft.flac"), ("audio-mp3", "audio-cmn/cmn_026.mp3")] {
        if let Some(folder) = data::folder(folder) {
            seeds.push(std::fs::read(folder.join(name)).unwrap());
        }
    }
    seeds
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_never_panic_nor_take_more_than_the_limit(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
        head in any::<bool>(),
    ) {
        let options = AudioOptions { max_samples: 1 << 20, allow_truncated: true, ..AudioOptions::default() };
        for seed in seeds() {
            let mut bytes = seed;
            for (index, value) in &flips {
                // Half of the cases aim at the headers.
                let reach = if head { bytes.len().min(64) } else { bytes.len() };
                let offset = index.index(reach);
                bytes[offset] = *value;
            }
            if cuts {
                bytes.truncate(cut.index(bytes.len()));
            }
            let (result, peak) = peak_bytes(|| decoded(&bytes, &options));
            prop_assert!(peak < 1 << 26, "{} bytes", peak);
            if let Ok((_, samples)) = result {
                prop_assert!(samples.len() <= 1 << 20);
            }
        }
    }

    #[test]
    fn hostile_frames_with_right_checksums_never_panic(
        assignment in 0..11_u8,
        bits in prop::sample::select(vec![4, 8, 16, 24, 32]),
        block in 16..300_usize,
        subframe in prop::sample::select(vec![0, 1, 8, 9, 10, 11, 12, 32, 36, 40, 63_u8]),
        mut body in prop::collection::vec(prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff, 0x55_u8]), 20..1500),
    ) {
        body[0] = subframe << 1;
        let _ = decoded(&flac::frame_of(assignment, bits, block, &body), &STORED);
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0..3) {
        let head: &[u8] = match kind {
            0 => b"fLaC\0\0\0\x22",
            1 => &[0xff, 0xfb, 0x90, 0xc4],
            _ => b"ID3\x03",
        };
        let length = head.len().min(bytes.len());
        bytes[..length].copy_from_slice(&head[..length]);
        let _ = decoded(&bytes, &STORED);
    }
}

/// What is no frame before the first or after the last was sound once, unless it is little.
#[test]
fn an_mp3_without_its_beginning_or_end_is_damaged() {
    let mp3 = silent_mp3(60);
    let options = AudioOptions::default();
    for range in [0..mp3.len() / 2, mp3.len() / 2..mp3.len(), 0..6000] {
        let mut bad = mp3.clone();
        bad[range.clone()].fill(0);
        let result = decoded(&bad, &options);
        assert!(matches!(result, Err(Error::Format { .. })), "{range:?}: {result:?}");
    }
    for (before, after) in [(1000, 0), (0, 2048)] {
        let padded = [vec![0; before], mp3.clone(), vec![0; after]].concat();
        assert_eq!(decoded(&padded, &options).unwrap().1.len(), decoded(&mp3, &options).unwrap().1.len());
    }
}
