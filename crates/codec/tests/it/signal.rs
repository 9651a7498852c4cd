//! Electrical signals: files of every kind, and the arithmetic compared with NumPy.

use std::collections::HashMap;
use std::f64::consts::TAU;

use forebay_codec::signal::{
    Channel, NilmFeatures, NilmPower, RawElement, Recording, SignalFormat, SignalOptions, cumulative_sum, read,
    root_mean_square,
};
use forebay_codec::{Error, Result};
use proptest::prelude::*;

use crate::allocation::peak_bytes;
use crate::data;

const PERIOD: usize = 128;

/// What NumPy makes of [`generated`] recordings, and one of them as h5py writes it; both made by `nilm.py`.
const NUMPY: &str = include_str!("../golden/nilm.txt");
const CREAM: &[u8] = include_bytes!("../golden/cream.hdf5");

/// The recording that `nilm.py` generates.
fn generated(samples: usize) -> [Vec<f64>; 2] {
    let voltage = |n: usize| {
        let turn = TAU * n as f64 / PERIOD as f64;
        (9000.0 * turn.sin() + (40.0 + n as f64 * 0.01)).round_ties_even()
    };
    let current = |n: usize| {
        let turn = TAU * n as f64 / PERIOD as f64;
        let level = if n < samples / 2 { 700.0 } else { 2900.0 };
        let offset = (40.0 + n as f64 * 0.01) / 2.0_f64.sqrt();
        (level * (turn - 0.7).sin() + 150.0 * (3.0 * turn).sin() + offset).round_ties_even()
    };
    [(0..samples).map(voltage).collect(), (0..samples).map(current).collect()]
}

/// One recording of the golden file: its factors and its rows by name.
struct Golden {
    samples: usize,
    factors: Vec<f64>,
    rows: HashMap<&'static str, Vec<f64>>,
}

fn golden() -> Vec<Golden> {
    let mut all: Vec<Golden> = Vec::new();
    for line in NUMPY.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let numbers: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        if name == "recording" {
            all.push(Golden { samples: numbers[0] as usize, factors: numbers[1..].to_vec(), rows: HashMap::new() });
        } else {
            all.last_mut().unwrap().rows.insert(name, numbers);
        }
    }
    all
}

/// Whether two rows are equal but for rounding, relative to the row's largest value.
fn assert_close(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= largest * 1e-12, "{name}: {found} {expected}");
    }
}

fn features(recording: &Recording, power: NilmPower) -> Vec<f64> {
    let features = NilmFeatures { power, ..NilmFeatures::default() };
    let mut output = vec![f64::NAN; NilmFeatures::ROWS * features.periods(recording.samples())];
    features.run(&recording.channels[0], &recording.channels[1], &mut output).unwrap();
    output
}

fn check_against_numpy(recording: &Recording, golden: &Golden) {
    let every = |channel: &[f64]| channel.iter().step_by(97).copied().collect::<Vec<_>>();
    assert_close("voltage", &every(&recording.channels[0]), &golden.rows["voltage"]);
    assert_close("current", &every(&recording.channels[1]), &golden.rows["current"]);
    let powers = [
        (NilmPower::Reactive, "reactive"),
        (NilmPower::Active, "active"),
        (NilmPower::Apparent, "apparent"),
        (NilmPower::Factor, "factor"),
    ];
    for (power, name) in powers {
        let found = features(recording, power);
        let rows: Vec<&[f64]> = found.chunks(found.len() / NilmFeatures::ROWS).collect();
        assert_close(name, rows[0], &golden.rows[name]);
        assert_close("current-rms", rows[1], &golden.rows["current-rms"]);
        assert_close("cusum", rows[2], &golden.rows["cusum"]);
    }
    let mut effective = vec![0.0; recording.samples() / PERIOD];
    root_mean_square(&recording.channels[0], PERIOD, &mut effective);
    assert_close("voltage-rms", &effective, &golden.rows["voltage-rms"]);
}

#[test]
fn arithmetic_is_numpys_but_for_rounding() {
    for golden in golden() {
        let channels = generated(golden.samples).to_vec();
        let mut recording = Recording { channels, factors: golden.factors.clone() };
        recording.remove_offset(PERIOD).unwrap();
        recording.calibrate(None).unwrap();
        check_against_numpy(&recording, &golden);
    }
}

#[test]
fn hdf5_that_h5py_wrote_is_read() {
    let golden = &golden()[0];
    let mut recording = read(CREAM, &SignalOptions::default()).unwrap();
    assert_eq!(recording.channels, generated(golden.samples));
    assert_eq!(recording.factors, golden.factors);
    recording.remove_offset(PERIOD).unwrap();
    recording.calibrate(None).unwrap();
    check_against_numpy(&recording, golden);

    let plain = ["plain/float32", "plain/big", "plain/column"];
    let recording = read(CREAM, &named(&plain)).unwrap();
    let [voltage, current] = generated(golden.samples);
    assert_eq!(recording.channels, [&voltage[..300], &voltage[..300], &current[..300]]);
    assert_eq!(recording.factors, [1.0; 3]);
}

fn named(names: &[&str]) -> SignalOptions {
    let channels = names.iter().map(|name| Channel::Name((*name).to_owned())).collect();
    SignalOptions { channels, ..SignalOptions::default() }
}

fn numbered(numbers: &[usize]) -> SignalOptions {
    SignalOptions {
        channels: numbers.iter().map(|&number| Channel::Number(number)).collect(),
        ..SignalOptions::default()
    }
}

fn problem(result: Result<Recording>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_is_wrong_with_hdf5_is_named() {
    assert!(problem(read(CREAM, &named(&["power"]))).contains(
        "there is no such data set: expected `one of the file (at its root: current1, voltage)`, found `power`"
    ));
    assert!(problem(read(CREAM, &named(&["plain/table"]))).contains("shape `[4, 5]`"));
    assert!(matches!(read(CREAM, &named(&["plain/table"])), Err(Error::Unsupported { .. })));
    assert!(problem(read(CREAM, &named(&["plain/text"]))).contains("data set `plain/text`, whose elements are"));
    assert!(matches!(read(CREAM, &named(&["plain/text"])), Err(Error::Unsupported { .. })));
    assert!(problem(read(CREAM, &named(&["voltage", "plain/big"]))).contains("`300` samples"));
    assert!(matches!(read(CREAM, &numbered(&[0])), Err(Error::Usage { .. })));
    let tight = SignalOptions { max_samples: 5000, ..SignalOptions::default() };
    assert!(matches!(read(CREAM, &tight), Err(Error::Limit { .. })));
    assert!(matches!(read(&CREAM[..CREAM.len() / 2], &SignalOptions::default()), Err(Error::Format { .. })));
    let forced = SignalOptions { format: SignalFormat::Hdf5, ..SignalOptions::default() };
    assert!(problem(read(b"1,2\n3,4\n", &forced)).contains("does not start like HDF5"));
}

#[test]
fn csv_is_read_with_a_header_and_without() {
    let expected = vec![vec![1.5, -3.0], vec![2.0, 4e3]];
    assert_eq!(read(b"1.5,2\n-3,4e3\n", &numbered(&[0, 1])).unwrap().channels, expected);
    assert_eq!(
        read(b"# made by hand\r\n\r\ntime;v;i\r\n0;1.5;2\r\n1;-3;4e3", &named(&["v", "i"])).unwrap().channels,
        expected
    );
    assert_eq!(read(b"time\tv\ti\n0\t1.5\t2\n1\t-3\t4e3\n", &numbered(&[1, 2])).unwrap().channels, expected);
    assert_eq!(read(b"\"v\", \"i\"\n\"1.5\", 2\n-3 ,4000\n", &named(&["v", "i"])).unwrap().channels, expected);
    // As spreadsheets save it, with a byte order mark.
    assert_eq!(read(b"\xef\xbb\xbf1.5,2\n-3,4e3\n", &numbered(&[0, 1])).unwrap().channels, expected);
    assert_eq!(read(b"\xef\xbb\xbfv,i\n1.5,2\n-3,4e3\n", &named(&["v", "i"])).unwrap().channels, expected);
    // A column may be wanted twice, and a name may look like a number.
    assert_eq!(read(b"7 8\n1.5 2\n", &named(&["8", "8"])).unwrap().channels, [[2.0], [2.0]]);
}

#[test]
fn what_is_wrong_with_csv_is_named_with_its_line() {
    assert!(problem(read(b"v,i\n1,2\n1\n", &named(&["v", "i"]))).contains("line `3` has `1` columns"));
    assert!(
        problem(read(b"v,i\n1,2\n1,x\n", &named(&["v", "i"]))).contains("`x` in line `3`, column `1` is not a number")
    );
    assert!(
        problem(read(b"v,i\n1,2\n", &named(&["v", "u"])))
            .contains("no such column: expected `one of the first line, v, i`, found `u`")
    );
    assert!(problem(read(b"v,i\n", &named(&["v", "i"]))).contains("no numbers"));
    assert!(problem(read(b"\n\n", &named(&["v"]))).contains("no lines"));
    // A line with numbers is no header, whatever else it has.
    assert!(problem(read(b"NA,0\n1,2\n", &numbered(&[0, 1]))).contains("`NA` in line `1`"));
    assert!(problem(read(b",2\n1,2\n", &numbered(&[0, 1]))).contains("`` in line `1`"));
    assert!(problem(read(b"v\n\xff\xfe\n", &named(&["v"]))).contains("not UTF-8"));
    let tight = SignalOptions { max_samples: 3, ..numbered(&[0, 1]) };
    assert!(matches!(read(b"1,2\n3,4\n", &tight), Err(Error::Limit { .. })));
}

#[test]
fn raw_numbers_are_read() {
    let values = [[1.5_f64, -2.0], [0.25, 8.0]];
    let mut bytes = Vec::new();
    values.iter().flatten().for_each(|value| bytes.extend(value.to_le_bytes()));
    let options = SignalOptions { format: SignalFormat::Raw, ..numbered(&[1, 0]) };
    assert_eq!(read(&bytes, &options).unwrap().channels, [[-2.0, 8.0], [1.5, 0.25]]);
    let short = SignalOptions { raw_element: RawElement::I16, raw_channels: 1, ..numbered(&[0]) };
    let short = SignalOptions { format: SignalFormat::Raw, ..short };
    assert_eq!(read(&[1, 0, 255, 255], &short).unwrap().channels, [[1.0, -1.0]]);
    let single = SignalOptions { raw_element: RawElement::F32, ..short.clone() };
    assert_eq!(read(&1.25_f32.to_le_bytes(), &single).unwrap().channels, [[1.25]]);
    assert!(read(&[1, 0, 255], &short).unwrap_err().is_truncated());
    assert!(matches!(
        read(&bytes, &SignalOptions { channels: vec![Channel::Number(2)], ..options }),
        Err(Error::Usage { .. })
    ));
}

#[test]
fn a_resistive_load_has_no_reactive_power() {
    let [voltage, _] = generated(4 * PERIOD);
    let current: Vec<f64> = voltage.iter().map(|volts| volts * 0.01).collect();
    let recording = Recording { channels: vec![voltage, current], factors: vec![1.0; 2] };
    let apparent = features(&recording, NilmPower::Apparent)[0];
    // The square of it is a difference of two large numbers, so the root of their rounding is left.
    assert!(features(&recording, NilmPower::Reactive)[..4].iter().all(|&reactive| reactive <= apparent * 1e-7));
    let nothing = Recording { channels: vec![vec![0.0; PERIOD]; 2], factors: vec![1.0; 2] };
    assert_eq!(features(&nothing, NilmPower::Factor), [0.0; 3]);
}

#[test]
fn motor_currents_of_the_shared_data_are_read() {
    let Some(folder) = data::folder("electrical/itsc-motor-current") else { return };
    for path in data::files(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        let recording = read(&bytes, &numbered(&[0, 1, 2])).unwrap();
        assert!(recording.samples() >= 1000, "{}", path.display());
        // Three phases of one motor add up to almost nothing.
        let largest = recording.channels[0].iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let mean =
            (0..recording.samples()).map(|n| recording.channels.iter().map(|phase| phase[n]).sum::<f64>()).sum::<f64>();
        assert!((mean / recording.samples() as f64).abs() < largest, "{}", path.display());
    }
    let Some(folder) = data::folder("electrical/gjw-house") else { return };
    for path in data::files(&folder) {
        assert!(read(&std::fs::read(&path).unwrap(), &numbered(&[1])).unwrap().samples() > 1000, "{}", path.display());
    }
}

/// HDF5 of one data set of `float64`.
fn hdf5_of(numbers: &[f64]) -> Vec<u8> {
    let mut file = hdf5_pure::FileBuilder::new();
    file.create_dataset("voltage").with_f64_data(numbers);
    file.finish().unwrap()
}

#[test]
fn numbers_that_are_not_finite_are_errors_that_name_their_position() {
    let raw = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let singles =
        |numbers: &[f64]| numbers.iter().flat_map(|&number| (number as f32).to_le_bytes()).collect::<Vec<u8>>();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for index in [0, 1, 1023, 1024, 2999] {
            let mut numbers: Vec<f64> = (0..3000).map(f64::from).collect();
            let doubles = SignalOptions { format: SignalFormat::Raw, raw_channels: 1, ..numbered(&[0]) };
            let halves = SignalOptions { raw_element: RawElement::F32, ..doubles.clone() };
            assert!(read(&raw(&numbers), &doubles).is_ok() && read(&singles(&numbers), &halves).is_ok());
            assert!(read(&hdf5_of(&numbers), &named(&["voltage"])).is_ok());
            numbers[index] = bad;
            let results = [
                read(&raw(&numbers), &doubles),
                read(&singles(&numbers), &halves),
                read(&hdf5_of(&numbers), &named(&["voltage"])),
            ];
            for result in results {
                let error = result.unwrap_err();
                assert!(matches!(error, Error::Unsupported { .. }), "{error}");
                let expected = format!("`{bad}` in channel");
                assert!(error.to_string().contains(&expected), "{error}");
                assert!(error.to_string().contains(&format!("at sample `{index}`")), "{error}");
            }
        }
    }
    for (cell, line) in [("nan", 2), ("-inf", 3), ("1e999", 2), ("infinity", 3)] {
        let rows = if line == 2 { [cell, "1"] } else { ["1", cell] };
        let text = format!("v,i\n5,{}\n6,{}\n", rows[0], rows[1]);
        let error = read(text.as_bytes(), &named(&["v", "i"])).unwrap_err().to_string();
        assert!(error.contains(&format!("`{cell}` in line `{line}`, column `1`")), "{error}");
        // A column that nobody reads may hold what it likes.
        assert!(read(text.as_bytes(), &named(&["v"])).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn mutated_hdf5_never_panics_nor_takes_more_than_the_limit(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        reach in prop::sample::select(vec![512, 2048, 8192, CREAM.len()]),
    ) {
        let mut bytes = CREAM.to_vec();
        for (index, value) in &flips {
            bytes[index.index(reach)] = *value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let options = SignalOptions { max_samples: 1 << 20, format: SignalFormat::Hdf5, ..SignalOptions::default() };
        let (_, peak) = peak_bytes(|| read(&bytes, &options));
        prop_assert!(peak < 1 << 27, "{} bytes", peak);
    }

    #[test]
    fn random_text_never_panics(text in "[0-9a-z,;\\. \"#\t\r\n-]{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for options in [numbered(&[0, 1]), numbered(&[3]), named(&["a", "b"])] {
            let _ = read(text.as_bytes(), &options);
            let _ = read(&bytes, &options);
            let _ = read(&bytes, &SignalOptions { format: SignalFormat::Raw, ..options });
        }
    }

    #[test]
    fn csv_of_any_numbers_comes_back(rows in prop::collection::vec((any::<f64>(), any::<f64>()), 1..50)) {
        let lines: Vec<String> = rows.iter().map(|(first, second)| format!("{first:e},{second}\n")).collect();
        let rows_are_numbers = rows.iter().all(|(first, second)| !first.is_nan() && !second.is_nan());
        prop_assume!(rows_are_numbers);
        let recording = read(lines.concat().as_bytes(), &numbered(&[0, 1])).unwrap();
        let expected: Vec<Vec<f64>> = vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
        prop_assert_eq!(recording.channels, expected);
    }

    #[test]
    fn a_steady_offset_goes_away(offset in -1000.0..1000.0_f64, periods in 3..9_usize, rest in 1..PERIOD) {
        let samples = periods * PERIOD + rest;
        let wave = |n: usize| 100.0 * (TAU * n as f64 / PERIOD as f64).sin();
        let voltage = (0..samples).map(|n| wave(n) + offset).collect();
        let current = (0..samples).map(|n| wave(n) + offset / 2.0_f64.sqrt()).collect();
        let mut recording = Recording { channels: vec![voltage, current], factors: vec![1.0; 2] };
        recording.remove_offset(PERIOD).unwrap();
        // The last period is padded with zeros, so its mean is not the offset.
        for channel in &recording.channels {
            for (n, value) in channel[..(periods - 1) * PERIOD].iter().enumerate() {
                prop_assert!((value - wave(n)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_cumulative_sum_ends_at_zero(values in prop::collection::vec(-1e6..1e6_f64, 1..200)) {
        let mut sums = vec![0.0; values.len()];
        cumulative_sum(&values, &mut sums);
        prop_assert!(sums[values.len() - 1].abs() < 1e-6);
    }
}
