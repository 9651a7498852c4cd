//! Times what `bench/domains/audio_signal.py` times in Python: decoding sound, spectrograms, NILM features. Prints one line
//! per task: its name and the nanoseconds on the processor that the fastest of many rounds took.
//!
//!     audio_signal_speed <file of sound> <raw float64 file of voltage, then current> <rounds>
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for measuring, not part of the library")]

use std::hint::black_box;

use forebay_codec::audio::{AudioOptions, Spectrogram, SpectrogramBuffers, SpectrogramOptions, decode};
use forebay_codec::signal::{NilmFeatures, NilmPower, Recording};

/// How long this thread has run, in nanoseconds; what others do on the machine does not count.
fn now() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn time(name: &str, rounds: usize, mut task: impl FnMut()) {
    let fastest = (0..rounds).map(|_| {
        let started = now();
        task();
        now() - started
    });
    println!("{name} {}", fastest.min().unwrap());
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let audio = std::fs::read(&arguments[1]).unwrap();
    let signal = std::fs::read(&arguments[2]).unwrap();
    let rounds = arguments[3].parse().unwrap();

    let options = AudioOptions::default();
    let mut samples = Vec::new();
    let info = decode(&audio, &options, &mut samples).unwrap();
    time("decode", rounds, || {
        decode(black_box(&audio), &options, &mut samples).unwrap();
    });
    let spectrogram = Spectrogram::new(&SpectrogramOptions { rate_hz: info.rate_hz, ..Default::default() }).unwrap();
    let mut buffers = SpectrogramBuffers::default();
    let mut output = vec![0.0; spectrogram.frames(samples.len()) * spectrogram.bands()];
    time("log_mel_spectrogram", rounds, || spectrogram.run(black_box(&samples), &mut output, &mut buffers).unwrap());

    let numbers: Vec<f64> = signal.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)).collect();
    let (voltage, current) = numbers.split_at(numbers.len() / 2);
    for (name, power) in [("nilm-reactive", NilmPower::Reactive), ("nilm-active", NilmPower::Active)] {
        let features = NilmFeatures { power, ..NilmFeatures::default() };
        let mut output = vec![0.0; NilmFeatures::ROWS * features.periods(voltage.len())];
        time(name, rounds, || features.run(black_box(voltage), black_box(current), &mut output).unwrap());
    }
    let mut recording = Recording { channels: vec![voltage.to_vec(), current.to_vec()], factors: vec![0.5, 0.25] };
    time("calibrate", rounds, || {
        recording.remove_offset(128).unwrap();
        recording.calibrate(None).unwrap();
        // Else the numbers fade away, and with them the speed of the machine.
        recording.calibrate(Some(&[2.0, 4.0])).unwrap();
    });
}
