//! MP3 files (MPEG-1 Layer III, ISO 11172-3) of speech-like audio: 48 kHz, one channel, 64 kbit/s, as in Common Voice.
//!
//! A real encoder transforms audio to spectra, and then codes these. Here there is no audio to begin with, so the spectra are made up
//! (the resonances of vowels over the harmonics of a voice, hisses, pauses) and only coded: quantized, as finely as the bits of a frame
//! allow, and put into Huffman codes. A decoder has the same work with them as with any file of this rate.

use forebay_pipeline::Random;

use super::bits::Bits;
use super::mp3_codes::{CODEBOOKS, Codebook};

/// Lines of a spectrum; each frame has two, of 12 ms each.
const LINES: usize = 576;
const FRAME_BYTES: usize = 192;
const FRAMES_PER_SECOND: f64 = 48_000.0 / 1152.0;
const LINE_HZ: f64 = 24_000.0 / LINES as f64;

/// Header and side information; what is left of a frame is shared by its two spectra.
const HEADER: [u8; 4] = [0xff, 0xfb, 0x54, 0xc4];
const SIDE_BYTES: usize = 17;
const SPECTRUM_BITS: usize = (FRAME_BYTES - HEADER.len() - SIDE_BYTES) * 8 / 2;

/// Where the three regions of large values begin, each with a codebook of its own: after 8 and after 16 of the bands at 48 kHz.
const REGIONS: [usize; 4] = [0, 36, 156, LINES];

/// A file of that many seconds.
pub(super) fn clip(random: &mut Random, seconds: f64) -> Vec<u8> {
    let mut voice = Voice::new(random);
    let frames = (seconds * FRAMES_PER_SECOND).ceil() as usize;
    let mut file = Vec::with_capacity(frames * FRAME_BYTES);
    for _ in 0..frames {
        let spectra = [(); 2].map(|()| Quantized::of(&voice.spectrum(random)));
        file.extend(frame(&spectra));
    }
    file
}

/// An independent frame: none of its data is in the frame before.
fn frame(spectra: &[Quantized; 2]) -> Vec<u8> {
    let mut main = Bits::default();
    let lengths = spectra.each_ref().map(|spectrum| {
        let before = main.len();
        spectrum.put(&mut main);
        main.len() - before
    });
    let mut bits = Bits::default();
    for byte in HEADER {
        bits.put(byte.into(), 8);
    }
    // Where the data begins (here), private bits, and which scale factors are shared (none).
    bits.zeros(9 + 5 + 4);
    for (spectrum, length) in spectra.iter().zip(lengths) {
        bits.put(length as u64, 12);
        bits.put(spectrum.pairs as u64, 9);
        bits.put(spectrum.gain as u64, 8);
        // No scale factors, and one long window.
        bits.zeros(4 + 1);
        for codebook in spectrum.codebooks {
            bits.put(codebook.map_or(0, |codebook| codebook.number), 5);
        }
        // The bands of the first two regions, less one each.
        bits.put(7, 4);
        bits.put(7, 3);
        // No emphasis, fine scale; the flat codebook for small values.
        bits.zeros(2);
        bits.put(1, 1);
    }
    let mut frame = bits.into_bytes();
    frame.extend(main.into_bytes());
    frame.resize(FRAME_BYTES, 0);
    frame
}

/// A quantized spectrum.
struct Quantized {
    values: [i32; LINES],
    /// A line is its value to the power of 4/3, times 2 to the power of (gain − 210) / 4.
    gain: i32,
    /// Large values come in pairs, then those of −1 to 1 in fours, then zeros.
    pairs: usize,
    fours: usize,
    codebooks: [Option<&'static Codebook>; 3],
}

impl Quantized {
    /// As fine as the bits allow.
    fn of(spectrum: &[f64; LINES]) -> Self {
        // The finest at which the largest value is in a codebook.
        let largest = spectrum.iter().fold(1e-9, |largest: f64, line| largest.max(line.abs()));
        let mut gain = 210 + (4.0 * (largest / 16_f64.powf(4.0 / 3.0)).log2()).floor() as i32;
        gain = gain.max(0);
        loop {
            let step = 2_f64.powf(f64::from(gain - 210) / 4.0);
            let values = spectrum.map(|line| {
                let size = ((line.abs() / step).powf(0.75) + 0.4054).min(1e6) as i32;
                if line < 0.0 { -size } else { size }
            });
            if let Some(quantized) = Self::fitting(&values, gain) {
                return quantized;
            }
            gain += 1;
        }
    }

    /// `None` where a value is too large for the codebooks, or all of them for the frame.
    fn fitting(values: &[i32; LINES], gain: i32) -> Option<Self> {
        let end = |least: i32| values.iter().rposition(|value| value.abs() >= least).map_or(0, |index| index + 1);
        let pairs = end(2).div_ceil(2);
        let fours = end(1).saturating_sub(pairs * 2).div_ceil(4).min((LINES - pairs * 2) / 4);
        let mut codebooks = [None; 3];
        for (codebook, region) in codebooks.iter_mut().zip(REGIONS.windows(2)) {
            let (from, to) = (region[0].min(pairs * 2), region[1].min(pairs * 2));
            let largest = values[from..to].iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
            *codebook = match largest {
                0 => None,
                _ => Some(CODEBOOKS.iter().find(|codebook| largest < codebook.side)?),
            };
        }
        let quantized = Self { values: *values, gain, pairs, fours, codebooks };
        let mut bits = Bits::default();
        quantized.put(&mut bits);
        // What does not fit into fours at the very end would be lost.
        let whole = end(1) <= pairs * 2 + fours * 4;
        (whole && bits.len() <= SPECTRUM_BITS).then_some(quantized)
    }

    fn put(&self, bits: &mut Bits) {
        let (large, small) = self.values.split_at(self.pairs * 2);
        for (index, pair) in large.as_chunks::<2>().0.iter().enumerate() {
            let region = REGIONS[1..3].iter().filter(|&&start| index * 2 >= start).count();
            if let Some(codebook) = self.codebooks[region] {
                codebook.put(*pair, bits);
            }
        }
        for four in small.as_chunks::<4>().0.iter().take(self.fours) {
            let set = four.iter().fold(0, |set, &value| set << 1 | u64::from(value != 0));
            bits.put(15 - set, 4);
            for &value in four {
                put_sign(value, bits);
            }
        }
    }
}

impl Codebook {
    fn put(&self, [x, y]: [i32; 2], bits: &mut Bits) {
        let index = x.unsigned_abs() * self.side + y.unsigned_abs();
        let (code, length) = self.codes[index as usize];
        bits.put(code.into(), length.into());
        put_sign(x, bits);
        put_sign(y, bits);
    }
}

fn put_sign(value: i32, bits: &mut Bits) {
    if value != 0 {
        bits.put(u64::from(value < 0), 1);
    }
}

/// Who speaks, and what is being said.
struct Voice {
    pitch: f64,
    loudness: f64,
    left: u32,
    sound: Sound,
}

#[derive(Debug, Clone, Copy)]
enum Sound {
    Vowel([f64; 3]),
    Hiss(f64),
    Pause,
}

impl Voice {
    fn new(random: &mut Random) -> Self {
        Self { pitch: random.between(95.0, 215.0), loudness: random.between(0.06, 0.24), left: 0, sound: Sound::Pause }
    }

    /// The next 12 ms.
    fn spectrum(&mut self, random: &mut Random) -> [f64; LINES] {
        if self.left == 0 {
            self.left = 4 + random.below(16) as u32;
            self.sound = match random.below(10) {
                0..6 => Sound::Vowel([
                    random.between(270.0, 730.0),
                    random.between(850.0, 2300.0),
                    random.between(2300.0, 3000.0),
                ]),
                6..8 => Sound::Hiss(random.between(3500.0, 7500.0)),
                _ => Sound::Pause,
            };
        }
        self.left -= 1;
        let peak = |frequency: f64, at: f64, width: f64| 1.0 / (1.0 + ((frequency - at) / width).powi(2));
        std::array::from_fn(|line| {
            let frequency = (line as f64 + 0.5) * LINE_HZ;
            let shape = match self.sound {
                Sound::Vowel(resonances) => {
                    let harmonic = (frequency / self.pitch).round() * self.pitch;
                    let mouth = peak(frequency, resonances[0], 90.0)
                        + 0.5 * peak(frequency, resonances[1], 120.0)
                        + 0.2 * peak(frequency, resonances[2], 180.0);
                    (mouth + 0.01) * (0.05 + peak(frequency, harmonic, 12.0)) * (-frequency / 4000.0).exp()
                }
                Sound::Hiss(at) => 0.08 * peak(frequency, at, 1500.0),
                Sound::Pause => 0.0,
            };
            // A room is never silent, and a microphone hears little above 15 kHz.
            let room = 2e-4 * (-frequency / 5000.0).exp();
            (shape + room) * self.loudness * random.between(-1.7, 1.7)
        })
    }
}

#[cfg(test)]
mod tests {
    use forebay_codec::audio::{AudioOptions, decode};

    use super::*;

    #[test]
    fn a_clip_decodes_to_its_length_and_is_heard() {
        for number in 0..6 {
            let file = clip(&mut Random::from_parts(&[1, number]), 3.0);
            let mut samples = Vec::new();
            let info = decode(&file, &AudioOptions::default(), &mut samples).unwrap();
            assert_eq!((info.rate_hz, info.stored_channels), (48_000, 1));
            assert_eq!(samples.len(), 125 * 1152);
            let loud = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / samples.len() as f64;
            assert!((100.0..6000.0).contains(&loud.sqrt()), "{}", loud.sqrt());
        }
    }
}
