//! Sound that is like speech: pulses of a voice through the resonances of a mouth, hisses and pauses. Nobody understands it, but it has
//! the spectrum, the loudness and the pauses by which FLAC makes speech half as large.

use std::f64::consts::{PI, TAU};

use forebay_pipeline::Random;

/// The first three resonances of some vowels, in hertz.
const VOWELS: [[f64; 3]; 6] = [
    [730.0, 1090.0, 2440.0],
    [530.0, 1840.0, 2480.0],
    [270.0, 2290.0, 3010.0],
    [570.0, 840.0, 2410.0],
    [300.0, 870.0, 2240.0],
    [490.0, 1350.0, 1690.0],
];

/// How wide each resonance is, in hertz.
const WIDTHS: [f64; 3] = [80.0, 110.0, 160.0];

/// A hiss has one broad resonance.
const HISS: (f64, f64) = (5200.0, 1800.0);

/// What is being said.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sound {
    Vowel([f64; 3]),
    Hiss,
    Pause,
}

/// A resonance: what comes in rings on at one frequency.
#[derive(Debug, Clone, Copy, Default)]
struct Resonance {
    factors: [f64; 2],
    past: [f64; 2],
}

impl Resonance {
    fn tune(&mut self, frequency: f64, width: f64, rate: f64) {
        let decay = (-PI * width / rate).exp();
        self.factors = [2.0 * decay * (TAU * frequency / rate).cos(), -decay * decay];
    }

    fn ring(&mut self, input: f64) -> f64 {
        let [first, second] = self.factors;
        let output = (1.0 - first - second) * input + first * self.past[0] + second * self.past[1];
        self.past = [output, self.past[0]];
        output
    }
}

/// So many samples of speech.
pub(super) fn speech(random: &mut Random, rate_hz: u32, count: usize) -> Vec<i16> {
    let rate = f64::from(rate_hz);
    let voice = random.between(95.0, 215.0);
    let mut wave = Vec::with_capacity(count);
    let mut mouth = [Resonance::default(); 3];
    let mut hiss = Resonance::default();
    hiss.tune(HISS.0, HISS.1, rate);
    let mut shape = VOWELS[0];
    let (mut phase, mut breath, mut loudness) = (0.0, 0.0, 0.0);
    while wave.len() < count {
        let (sound, seconds, level) = next_sound(random);
        let pitch = voice * random.between(0.85, 1.2);
        for index in 0..(seconds * rate) as usize {
            if let Sound::Vowel(target) = sound
                && index % 32 == 0
            {
                // A mouth does not jump from one vowel to the next.
                for ((resonance, now), (to, width)) in mouth.iter_mut().zip(&mut shape).zip(target.iter().zip(WIDTHS)) {
                    *now += (to - *now) * 0.06;
                    resonance.tune(*now, width, rate);
                }
            }
            loudness += (level - loudness) * 0.004;
            phase += pitch / rate;
            let pulse = if phase >= 1.0 { 1.0 } else { 0.0 };
            phase -= pulse;
            let noise = random.between(-1.0, 1.0);
            // The cords close fast and open slowly.
            breath = breath * 0.9 + if matches!(sound, Sound::Vowel(_)) { pulse + noise * 0.01 } else { 0.0 };
            let voiced = mouth.iter_mut().fold(breath, |wave, resonance| resonance.ring(wave));
            let hissed = hiss.ring(if sound == Sound::Hiss { noise } else { 0.0 });
            wave.push((voiced + hissed * 0.05) * loudness);
        }
    }
    wave.truncate(count);
    recorded(&wave, random)
}

/// What comes next, how long it is, and how loud.
fn next_sound(random: &mut Random) -> (Sound, f64, f64) {
    match random.below(10) {
        0..6 => {
            let vowel = VOWELS[random.below(VOWELS.len())];
            (Sound::Vowel(vowel), random.between(0.08, 0.22), random.between(0.4, 1.0))
        }
        6..8 => (Sound::Hiss, random.between(0.05, 0.14), random.between(0.3, 0.8)),
        _ => (Sound::Pause, random.between(0.04, 0.4), 0.0),
    }
}

/// As recorded by a microphone: with the speaker's loudness, and the noise of a room.
fn recorded(wave: &[f64], random: &mut Random) -> Vec<i16> {
    let peak = wave.iter().fold(1e-9, |peak: f64, value| peak.max(value.abs()));
    let (gain, room) = (random.between(6000.0, 16_000.0) / peak, random.between(3.0, 12.0));
    wave.iter().map(|value| (value * gain + random.between(-room, room)) as i16).collect()
}
