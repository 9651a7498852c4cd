//! Recordings of voltage and current as CREAM has them: 6.4 kHz, mains of 50 Hz, and an appliance whose parts are switched on and off. A
//! minute each, where CREAM's files are an hour.

use std::f64::consts::{SQRT_2, TAU};

use forebay_codec::signal::write_hdf5;
use forebay_pipeline::Random;

const RATE_HZ: f64 = 6400.0;
const MAINS_HZ: f64 = 50.0;
/// Six windows of the preset `nilm`.
const SECONDS: f64 = 60.0;

/// Volts and amperes of one count of the converter.
const VOLTS: f64 = 0.0125;
const AMPERES: f64 = 0.002;

/// A part of the appliance.
struct Part {
    /// Effective amperes.
    current: f64,
    /// How far the current lags behind the voltage, in radians.
    lag: f64,
    /// The share of the third harmonic, which electronics have.
    third: f64,
    /// How long it is on at a time, at most, in seconds.
    seconds: f64,
}

/// Electronics, a grinder, a pump and a heater.
const PARTS: [Part; 4] = [
    Part { current: 0.04, lag: 0.3, third: 0.6, seconds: 60.0 },
    Part { current: 0.9, lag: 0.75, third: 0.12, seconds: 8.0 },
    Part { current: 0.25, lag: 1.1, third: 0.25, seconds: 14.0 },
    Part { current: 5.6, lag: 0.02, third: 0.01, seconds: 20.0 },
];

/// Recording number `number` as an HDF5 file.
pub(super) fn recording(seed: u64, number: u64) -> forebay_codec::Result<Vec<u8>> {
    let random = &mut Random::from_parts(&[seed, number]);
    let count = (RATE_HZ * SECONDS) as usize;
    let switched: Vec<Vec<(usize, usize)>> = PARTS.iter().map(|part| switching(part, count, random)).collect();
    let (mut voltage, mut current) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut sag = 0.0;
    let mut on = [0.0; PARTS.len()];
    for index in 0..count {
        let turn = TAU * MAINS_HZ * index as f64 / RATE_HZ;
        // The network is never quite steady, and the converter's zero drifts.
        sag += (random.between(-1.0, 1.0) - sag) * 0.001;
        let offset = 40.0 + 12.0 * (index as f64 / count as f64 * TAU).sin();
        let volts = (230.0 + 40.0 * sag) * SQRT_2 * (turn.sin() + 0.012 * (5.0 * turn).sin());
        let mut amperes = 0.0;
        for ((part, times), on) in PARTS.iter().zip(&switched).zip(&mut on) {
            let target = if times.iter().any(|&(from, to)| (from..to).contains(&index)) { 1.0 } else { 0.0 };
            *on += (target - *on) * 0.01;
            let wave = (turn - part.lag).sin() + part.third * (3.0 * (turn - part.lag)).sin();
            amperes += part.current * SQRT_2 * *on * wave;
        }
        voltage.push((volts / VOLTS + offset + random.between(-3.0, 3.0)).round() as i16);
        current.push((amperes / AMPERES + offset / SQRT_2 + random.between(-2.0, 2.0)).round() as i16);
    }
    write_hdf5(&[("voltage", &voltage, VOLTS), ("current1", &current, AMPERES)])
}

/// When a part is on: from one sample to another, again and again.
fn switching(part: &Part, count: usize, random: &mut Random) -> Vec<(usize, usize)> {
    let longest = part.seconds * RATE_HZ;
    let mut times = Vec::new();
    let mut start = random.below(longest as usize);
    while start < count {
        let end = start + random.between(0.2 * longest, longest) as usize;
        times.push((start, end));
        start = end + random.between(0.3 * longest, 1.5 * longest) as usize;
    }
    times
}

#[cfg(test)]
mod tests {
    use forebay_codec::signal::{Channel, SignalOptions, read};

    use super::*;

    #[test]
    fn a_recording_reads_as_mains() {
        let file = recording(1, 0).unwrap();
        assert!((400_000..1_536_000).contains(&file.len()), "{}", file.len());
        let channels = vec![Channel::Name("voltage".to_owned()), Channel::Name("current1".to_owned())];
        let mut found = read(&file, &SignalOptions { channels, ..SignalOptions::default() }).unwrap();
        found.remove_offset(128).unwrap();
        found.calibrate(None).unwrap();
        assert_eq!(found.samples(), 384_000);
        let effective =
            |values: &[f64]| (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
        let (volts, amperes) = (effective(&found.channels[0]), effective(&found.channels[1]));
        assert!((220.0..240.0).contains(&volts) && (0.01..8.0).contains(&amperes), "{volts} V, {amperes} A");
    }
}
