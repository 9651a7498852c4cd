//! Steps of sound and text beside the tools that they are named after, whose results `golden/audio_and_text.py` wrote. What is not drawn is
//! compared number by number; draws by their distributions.

use std::path::Path;

use forebay_codec::Tensor;
use forebay_pipeline::{RngKey, Value};

use crate::audio_augment::{ints, wav};
use crate::packing::{column, packed};
use crate::support::{assert_drawn_as, floats, run, run_all, run_seeded, sample, step};

const GOLDEN: &str = include_str!("../golden/audio_and_text.txt");

const DRAWS: u64 = 3000;

/// What the golden file has of a call by this name.
fn golden(call: &str, name: &str) -> Vec<&'static str> {
    let lines = GOLDEN.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let found = lines.into_iter().find(|line| (line[0], line[1]) == (call, name));
    found.unwrap_or_else(|| panic!("no `{name}` of {call}"))[2..].to_vec()
}

fn golden_numbers(call: &str, name: &str) -> Vec<f64> {
    golden(call, name).into_iter().map(|number| number.parse().unwrap()).collect()
}

/// The sounds of the script.
fn tone(samples: usize) -> Vec<i16> {
    let value = |at: f64| 9000.0 * (0.05 * at).sin() + 4000.0 * (0.31 * at + 1.0).sin();
    (0..samples).map(|at| value(at as f64).round_ties_even() as i16).collect()
}

fn noise(samples: i64) -> Vec<i16> {
    (0..samples).map(|at| ((at * at * 7919 + at * 104_729) % 20_011 - 10_005) as i16).collect()
}

/// As single precision has them, in channels of these.
fn as_floats(channels: &[&[i16]]) -> Tensor {
    let instants = channels[0].len();
    let values: Vec<f32> =
        (0..instants).flat_map(|at| channels.iter().map(move |channel| f32::from(channel[at]) / 32768.0)).collect();
    let dims: &[usize] = if channels.len() == 1 { &[instants] } else { &[instants, channels.len()] };
    Tensor::from_elements(dims, &values).unwrap()
}

/// Sixteen bits hold no more than this of a sound in single precision.
const LEVEL: f64 = 1.0 / 32768.0;

fn assert_near(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let apart = found.iter().zip(expected).map(|(found, expected)| (f64::from(*found) - expected).abs());
    let furthest = apart.fold(0.0, f64::max);
    assert!(furthest < 0.05 * LEVEL, "{what}: off by {furthest}");
}

fn rms(values: &[f32]) -> f64 {
    (values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

#[test]
fn gains_are_those_of_audiomentations() {
    let toml =
        |low: f64, high: f64| format!("op = \"random_gain\"\np = 1\nmin_gain_db = {low:?}\nmax_gain_db = {high:?}");
    for decibels in [-12.0, 5.5] {
        let made = floats(&run(&toml(decibels, decibels), as_floats(&[&tone(40)])));
        let call = format!("Gain({decibels:?})");
        assert_near(&made, &golden_numbers(&call, "samples"), &call);
    }
    let one = Tensor::from_elements(&[1], &[1_f32]).unwrap();
    let drawn = (0..DRAWS).map(|seed| floats(&run_seeded("op = \"random_gain\"\np = 1", one.clone(), seed))[0]);
    let decibels = drawn.map(|factor| 20.0 * f64::from(factor).log10()).collect();
    assert_drawn_as(GOLDEN, "Gain()", &[("decibels", decibels)]);
}

#[test]
fn white_noise_is_that_of_audiomentations() {
    let loud = tone(2000);
    let soft: Vec<i16> = loud.iter().map(|value| value.div_euclid(8)).collect();
    let fixed = "op = \"add_gaussian_snr\"\np = 1\nmin_snr_db = 15\nmax_snr_db = 15";
    let added = |toml: &str, sound: &Tensor, seed: u64| -> Vec<f32> {
        let made = floats(&run_seeded(toml, sound.clone(), seed));
        made.into_iter().zip(floats(sound)).map(|(made, sound)| made - sound).collect()
    };
    for (name, sound) in [("mono", as_floats(&[&loud])), ("stereo", as_floats(&[&loud, &soft]))] {
        let call = format!("AddGaussianSNR(15), {name}");
        let noise: Vec<f32> = (0..20).flat_map(|seed| added(fixed, &sound, seed)).collect();
        let (found, expected) = (rms(&noise), golden_numbers(&call, "deviation")[0]);
        // Of 40,000 draws or more, the deviation is known to 0.4 %.
        assert!((found / expected - 1.0).abs() < 0.016, "{call}: {found}, not {expected}");
        // Some of them: the furthest of all would be further out than the script's.
        let some = noise.into_iter().step_by(11).map(f64::from).collect();
        assert_drawn_as(GOLDEN, &call, &[("noise", some)]);
    }
    let sound = as_floats(&[&loud]);
    let level = rms(&floats(&sound));
    let drawn = (0..1500).map(|seed| rms(&added("op = \"add_gaussian_snr\"\np = 1", &sound, seed)));
    let decibels = drawn.map(|noise| 20.0 * (level / noise).log10()).collect();
    assert_drawn_as(GOLDEN, "AddGaussianSNR()", &[("decibels", decibels)]);
}

fn background(sounds: &Path, ratios: &str) -> String {
    format!("op = \"add_background_noise\"\nsounds_path = {:?}\np = 1\n{ratios}", sounds.to_str().unwrap())
}

#[test]
fn background_noise_is_that_of_audiomentations() {
    let folder = tempfile::tempdir().unwrap();
    let sound = as_floats(&[&tone(100)]);
    for samples in [100, 70, 30] {
        let path = folder.path().join(format!("{samples}.wav"));
        std::fs::write(&path, wav(&noise(samples), 8000)).unwrap();
        let call = format!("AddBackgroundNoise(6), {samples} samples");
        for seed in 0..3 {
            let toml = background(&path, "min_snr_db = 6\nmax_snr_db = 6");
            let made = floats(&run_seeded(&toml, sound.clone(), seed));
            assert_near(&made, &golden_numbers(&call, "samples"), &call);
        }
    }
}

#[test]
fn background_noise_is_drawn_as_audiomentations_draws_it() {
    const RAMPS_APART: i16 = 2000;
    // Ramps, each from another number on: how steep 100 samples of one are says which it is, and where they begin.
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let samples: Vec<i16> = (0..1000).map(|at| number * RAMPS_APART + 1 + at).collect();
        std::fs::write(folder.path().join(format!("{number}.wav")), wav(&samples, 8000)).unwrap();
    }
    // Where the sound is silent, the noise is heard alone.
    let mut sound = [0_f32; 100];
    sound[50] = 5.0;
    let sound = Tensor::from_elements(&[100], &sound).unwrap();
    let toml = background(folder.path(), "");
    let names = ["decibels", "file", "offset"];
    let mut drawn = names.map(|name| (name, Vec::new()));
    for seed in 0..DRAWS {
        let made = floats(&run_seeded(&toml, sound.clone(), seed));
        let (first, last) = (f64::from(made[0]), f64::from(made[99]));
        let begin = (99.0 * first / (last - first)).round() - 1.0;
        let (file, offset) = ((begin / f64::from(RAMPS_APART)).floor(), begin.rem_euclid(f64::from(RAMPS_APART)));
        let step = (last - first) / 99.0;
        let noise: Vec<f32> = (0..100).map(|at| ((begin + 1.0 + f64::from(at)) * step) as f32).collect();
        let decibels = 20.0 * (0.5 / rms(&noise)).log10();
        drawn.iter_mut().zip([decibels, file, offset]).for_each(|((_, numbers), number)| numbers.push(number));
    }
    assert_drawn_as(GOLDEN, "AddBackgroundNoise()", &drawn);
}

#[test]
fn speeds_are_those_of_torchaudio() {
    let sound = Tensor::from_elements(&[300], &tone(300)).unwrap();
    for factor in [0.9, 1.1, 1.5] {
        let made = ints(&run(&format!("op = \"speed_perturbation\"\nfactors = [{factor:?}]"), sound.clone()));
        let call = format!("SpeedPerturbation({factor:?})");
        let expected = golden_numbers(&call, "samples");
        assert_eq!(made.len(), expected.len(), "{call}");
        // A half may round either way.
        let furthest = made.iter().zip(expected).map(|(made, expected)| (f64::from(*made) - expected).abs());
        assert!(furthest.fold(0.0, f64::max) <= 1.0, "{call}");
    }
    let samples = |seed| run_seeded("op = \"speed_perturbation\"", sound.clone(), seed).spec().shape.dims()[0] as f64;
    assert_drawn_as(GOLDEN, "SpeedPerturbation()", &[("samples", (0..DRAWS).map(samples).collect())]);
}

/// What is masked of a spectrogram becomes the mean that it had before the first mask.
#[test]
fn masks_of_spectrograms_are_filled_as_torchaudio_fills_them() {
    let value = |frame: usize, band: usize| ((frame * 7919 + band * band * 104_729 + band * 13) % 1551) as f32 / 100.0;
    let values: Vec<f32> = (0..30 * 12).map(|place| value(place / 12, place % 12) - 11.5).collect();
    let input = Tensor::from_elements(&[30, 12], &values).unwrap();
    let filled = golden_numbers("SpecAugment(2, 12, 2, 6)", "filled")[0];
    let toml = "op = \"spec_augment\"\nn_time_masks = 2\ntime_mask_param = 12\nn_freq_masks = 2\nfreq_mask_param = 6";
    let mut masked = 0;
    for seed in 0..50 {
        let made = floats(&run_seeded(toml, input.clone(), seed));
        for (made, value) in made.iter().zip(&values).filter(|(made, value)| made.to_bits() != value.to_bits()) {
            assert!((f64::from(*made) - filled).abs() < 1e-4, "{value} became {made}, not {filled}");
            masked += 1;
        }
    }
    assert!(masked > 50 * 30, "{masked}");
}

#[test]
fn tokens_are_masked_as_transformers_masks_them() {
    let tokens: Vec<i32> = (0..200_000).map(|at| if at % 100 == 0 { 0 } else { 2 + at * 7 % 98 }).collect();
    let input = sample(Value::Tensor(Tensor::from_elements(&[tokens.len()], &tokens).unwrap()));
    for given in ["(0.15, 0.8, 0.1)", "(0.4, 0.5, 0.3)", "(0.2, 1.0, 0.0)", "(0.2, 0.0, 1.0)", "(0.2, 0.0, 0.0)"] {
        let numbers: Vec<&str> = given.trim_matches(['(', ')']).split(", ").collect();
        let step = step(&format!(
            "op = \"mask_tokens\"\nmask_token_id = 1\nvocab_size = 500\nspecial_token_ids = [0]\n\
             mlm_probability = {}\nmask_replace_prob = {}\nrandom_replace_prob = {}",
            numbers[0], numbers[1], numbers[2]
        ));
        let out = run_all(&[step], &input, RngKey::default());
        let (made, labels) = (&column(&out, "image")[0], &column(&out, "labels")[0]);
        let mut counts = [0.0; 5];
        let mut others = Vec::new();
        for ((&token, &made), &label) in tokens.iter().zip(made).zip(labels) {
            if label == -100 {
                assert_eq!(made, token);
                continue;
            }
            assert_eq!(label, token);
            counts[0] += f64::from(u8::from(token == 0));
            counts[1] += 1.0;
            // The script looks in this order, too: a token that is drawn may be the mask, or what it was.
            let which = if made == 1 {
                2
            } else if made == token {
                4
            } else {
                3
            };
            counts[which] += 1.0;
            if which == 3 {
                others.push(f64::from(made));
            }
        }
        let call = format!("DataCollatorForLanguageModeling{given}");
        let expected = golden_numbers(&call, "special, hidden, masked, other, kept");
        for (found, expected) in counts.into_iter().zip(expected) {
            // Both are draws: within four deviations of their difference.
            assert!((found - expected).abs() <= 4.0 * (found + expected).sqrt(), "{call}: {found}, not {expected}");
        }
        if !others.is_empty() {
            assert_drawn_as(GOLDEN, &call, &[("token", others)]);
        }
    }
}

/// The same documents, or parts of them, are in the same windows.
#[test]
fn windows_are_those_of_trl() {
    let lengths: Vec<usize> = (0..200_usize).map(|number| (number * number * 37 + number * 11) % 61).collect();
    for length in [48, 64] {
        for strategy in ["bfd", "bfd_split", "wrapped"] {
            let lines = format!("max_length = {length}\npacking_strategy = \"{strategy}\"\noutputs = [\"cu_seqlens\"]");
            let windows = packed(&lines, &lengths);
            let (tokens, ends) = (column(&windows, "text"), column(&windows, "cu_seqlens"));
            let pieces = tokens.iter().zip(&ends).map(|(tokens, ends)| {
                let begins = if strategy == "wrapped" { vec![0, ends[ends.len() - 1]] } else { ends.clone() };
                let pieces =
                    begins.windows(2).map(|pair| format!("{}+{}", tokens[pair[0] as usize], pair[1] - pair[0]));
                pieces.collect::<Vec<_>>().join(" ")
            });
            let call = format!("pack_dataset({length}, {strategy})");
            assert_eq!(pieces.collect::<Vec<_>>(), golden(&call, "windows"), "{call}");
        }
    }
}
