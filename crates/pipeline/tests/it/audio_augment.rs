//! Augmentations of audio and text, and conversions of element types.

use forebay_codec::{DType, Tensor};
use forebay_pipeline::{Action, FieldType, Pipeline, RngKey, Value};

use crate::support::{assert_even, floats, picture, run, run_all, run_seeded, sample, step};

pub(crate) fn ints(tensor: &Tensor) -> Vec<i16> {
    tensor.view().elements_or_copy::<i16>(&mut Vec::new()).unwrap().to_vec()
}

#[test]
fn a_time_crop_is_a_part_or_padded() {
    let sound = Tensor::from_elements(&[10], &(0..10_i16).collect::<Vec<_>>()).unwrap();
    let mut starts = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let out = ints(&run_seeded("op = \"random_time_crop\"\nlength = 4", sound.clone(), seed));
        assert!(out.windows(2).all(|pair| pair[1] == pair[0] + 1), "{out:?}");
        starts.insert(out[0]);
    }
    assert!(starts.into_iter().eq(0..=6));
    let out = ints(&run("op = \"random_time_crop\"\nlength = 12\npad_value = -1", sound));
    assert_eq!(out[8..], [8, 9, -1, -1]);
    let frames = Tensor::from_elements(&[3, 2], &[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let out = run("op = \"random_time_crop\"\nlength = 4", frames);
    assert_eq!((out.spec().shape.dims(), floats(&out)[4..].to_vec()), (&[4, 2][..], vec![5.0, 6.0, 0.0, 0.0]));
}

#[test]
fn gains_are_spread_over_their_decibels() {
    let sound = Tensor::from_elements(&[2], &[0.5_f32, -0.25]).unwrap();
    let step = "op = \"random_gain\"\np = 1\nmin_gain_db = -20\nmax_gain_db = 20";
    let decibels = (0..3000)
        .map(|seed| {
            let out = floats(&run_seeded(step, sound.clone(), seed));
            assert!((out[1] * -2.0 - out[0]).abs() < 1e-5);
            20.0 * f64::from(out[0] / 0.5).log10()
        })
        .collect();
    assert_even(decibels, -20.0, 20.0);
    let changed = |seed: &u64| run_seeded("op = \"random_gain\"\np = 0.3", sound.clone(), *seed) != sound;
    let share = (0..1000).filter(changed).count() as f64 / 1000.0;
    assert!((share - 0.3).abs() < 0.05, "{share}");
    let loud = Tensor::from_elements(&[2], &[30_000_i16, -30_000]).unwrap();
    let step = "op = \"random_gain\"\np = 1\nmin_gain_db = 12";
    assert_eq!(ints(&run(step, loud)), [i16::MAX, i16::MIN]);
}

#[test]
fn noise_has_the_ratio_that_is_asked_for() {
    let tone: Vec<f32> = (0..20_000).map(|index| (index as f32 * 0.1).sin()).collect();
    let sound = Tensor::from_elements(&[tone.len()], &tone).unwrap();
    let out = floats(&run("op = \"add_gaussian_snr\"\np = 1\nmin_snr_db = 10\nmax_snr_db = 10", sound));
    let power = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>();
    let noise = power(&mut out.iter().zip(&tone).map(|(out, tone)| out - tone));
    let ratio = 10.0 * (power(&mut tone.iter().copied()) / noise).log10();
    assert!((ratio - 10.0).abs() < 0.2, "{ratio}");
}

#[test]
fn masks_cover_frames_and_bands() {
    let values: Vec<f32> = (0..40 * 20).map(|index| 1.0 + index as f32).collect();
    let input = Tensor::from_elements(&[40, 20], &values).unwrap();
    let step = "op = \"spec_augment\"\nn_time_masks = 1\ntime_mask_param = 10\nn_freq_masks = 1\nfreq_mask_param = 5\nzero_masking = true";
    let mut longest = [0; 2];
    for seed in 0..200 {
        let out = floats(&run_seeded(step, input.clone(), seed));
        let masked = |frame: usize, band: usize| out[frame * 20 + band] == 0.0;
        let frames = (0..40).filter(|&frame| (0..20).all(|band| masked(frame, band))).count();
        let bands = (0..20).filter(|&band| (0..40).all(|frame| masked(frame, band))).count();
        let kept = out.iter().filter(|value| **value > 0.0).count();
        assert_eq!(kept, (40 - frames) * (20 - bands));
        longest = [longest[0].max(frames), longest[1].max(bands)];
    }
    assert_eq!(longest, [9, 4], "drawn below their limits");
    let mean = floats(&run_seeded(&step.replace("true", "false"), input, 1));
    let expected = values.iter().sum::<f32>() / 800.0;
    assert!(mean.iter().any(|value| (value - expected).abs() < 0.01));
}

/// Sound and spectrograms have two dimensions, as masks and boxes do, and are not taken for them.
#[test]
fn steps_within_steps_change_sound_and_spectrograms() {
    let values: Vec<f32> = (0..40 * 8).map(|index| 1.0 + index as f32).collect();
    let spectrogram = Tensor::from_elements(&[40, 8], &values).unwrap();
    let stereo = [Tensor::from_elements(&[3, 2], &[0.5_f32; 6]), Tensor::from_elements(&[3, 2], &[500_i16; 6])];
    let [floating, whole] = stereo.map(|made| made.unwrap());
    let gain = "{ op = \"random_gain\", p = 1, min_gain_db = 6, max_gain_db = 6 }";
    let cases = [
        (
            &spectrogram,
            "{ op = \"spec_augment\", n_time_masks = 2, time_mask_param = 20, n_freq_masks = 1, freq_mask_param = 4 }",
        ),
        (&spectrogram, "{ op = \"mfcc\", n_mfcc = 8 }"),
        (&spectrogram, "{ op = \"add_gaussian_snr\", p = 1, min_snr_db = 3, max_snr_db = 3 }"),
        (&floating, gain),
        (&whole, gain),
    ];
    for (input, inner) in cases {
        for around in ["random_apply\"\np = 1", "random_choice\""] {
            let toml = format!("op = \"{around}\nsteps = [{inner}]");
            // A mask that is drawn may have no width.
            let mut out = (0..8).map(|seed| run_seeded(&toml, input.clone(), seed));
            assert!(out.any(|out| out != *input && out.spec() == input.spec()), "{toml}");
        }
        assert!(run(&format!("op = \"random_apply\"\np = 0\nsteps = [{inner}]"), input.clone()) == *input);
    }
    // The check of types says what running does.
    let Action::Transform(choice) = step("op = \"random_choice\"\nsteps = [{ op = \"mfcc\", n_mfcc = 5 }]").action
    else {
        panic!("a step of one value")
    };
    let of = |bands| FieldType::Tensor { dtype: DType::F32, dims: vec![None, Some(bands)] };
    assert_eq!(choice.output_type(&of(13)).unwrap(), of(5));
}

#[test]
fn coefficients_are_an_orthonormal_transform() {
    let frame: Vec<f32> = (0..8).map(|band| (band * band % 5) as f32).collect();
    let input = Tensor::from_elements(&[1, 8], &frame).unwrap();
    let all = floats(&run("op = \"mfcc\"\nn_mfcc = 8", input.clone()));
    let power = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>();
    assert!((power(&all) - power(&frame)).abs() < 1e-3, "{all:?}");
    assert!((all[0] - frame.iter().sum::<f32>() / 8_f32.sqrt()).abs() < 1e-5);
    assert_eq!(floats(&run("op = \"mfcc\"\nn_mfcc = 3", input)), all[..3]);
}

#[test]
fn coefficients_are_those_of_librosa() {
    for line in include_str!("../golden/mfcc.txt").lines() {
        let mut columns = line.split('\t');
        let [bands, coefficients] = [(); 2].map(|()| columns.next().unwrap().parse::<usize>().unwrap());
        let value = |frame: usize, band: usize| {
            ((frame * 7919 + band * band * 104_729 + band * 13) % 1551) as f32 / 100.0 - 11.5
        };
        let values: Vec<f32> = (0..5 * bands).map(|place| value(place / bands, place % bands)).collect();
        let input = Tensor::from_elements(&[5, bands], &values).unwrap();
        let ours = floats(&run(&format!("op = \"mfcc\"\nn_mfcc = {coefficients}"), input));
        let theirs: Vec<f32> = columns.map(|number| number.parse().unwrap()).collect();
        let furthest = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(ours.len() == theirs.len() && furthest < 1e-3, "{bands} bands: off by {furthest}");
    }
}

#[test]
fn tokens_are_hidden_and_labeled() {
    let tokens: Vec<i32> = (0..20_000).map(|index| index % 100).collect();
    let input = sample(Value::Tensor(Tensor::from_elements(&[tokens.len()], &tokens).unwrap()));
    let step = step("op = \"mask_tokens\"\nmask_token_id = 1000\nvocab_size = 500\nspecial_token_ids = [0, 1]");
    let out = run_all(&[step], &input, RngKey::default()).remove(0);
    let of = |name: &str| match out.field(name) {
        Some(Value::Tensor(tensor)) => tensor.view().elements_or_copy::<i32>(&mut Vec::new()).unwrap().to_vec(),
        other => panic!("{other:?}"),
    };
    let (made, labels) = (of("image"), of("labels"));
    let (mut masked, mut random, mut kept) = (0_u32, 0_u32, 0_u32);
    for ((&token, &made), &label) in tokens.iter().zip(&made).zip(&labels) {
        if label == -100 {
            assert_eq!(made, token);
            continue;
        }
        assert!(label == token && token > 1);
        match made {
            1000 => masked += 1,
            made if made == token => kept += 1,
            _ => random += 1,
        }
    }
    let hidden = masked + random + kept;
    assert!((2700..3180).contains(&hidden), "15 % of 98 %: {hidden}");
    assert!((masked * 100 / hidden).abs_diff(80) <= 3 && (random * 100 / hidden).abs_diff(10) <= 3);
}

/// What the tokens were cannot be where they are now.
#[test]
fn labels_are_another_field_than_their_tokens() {
    let toml = "name = \"t\"\n[source]\nfield = \"text\"\nlabel = \"none\"\n[[step]]\nop = \"tokenize\"\n\
                [[step]]\nop = \"mask_tokens\"\nmask_token_id = 1\nvocab_size = 256\nlabels = ";
    assert!(Pipeline::from_toml("t", &format!("{toml}\"was\"")).is_ok());
    let error = Pipeline::from_toml("t", &format!("{toml}\"text\"")).unwrap_err().to_string();
    assert!(error.contains("`labels` to name another field than that of the tokens, `text`"), "{error}");
}

#[test]
fn element_types_are_converted() {
    let input = picture(1, 2, 2, |_, column, channel| [0, 1, 128, 255][column * 2 + channel]);
    let scaled = run("op = \"to_dtype\"\ndtype = \"float32\"\nscale = true", input.clone());
    let expected = [0.0, 1.0 / 255.0, 128.0 / 255.0, 1.0];
    assert!(floats(&scaled).iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6));
    assert_eq!(run("op = \"to_dtype\"\ndtype = \"uint8\"\nscale = true", scaled.clone()), input, "and back");
    assert_eq!(floats(&run("op = \"to_dtype\"\ndtype = \"float32\"", input.clone())), [0.0, 1.0, 128.0, 255.0]);
    // Halves, of 8-bit and of single precision alike, and back: 128/255 rounded to eleven and to eight digits of two.
    for (dtype, rounded) in [("float16", 257.0_f32 / 512.0), ("bfloat16", 129.0 / 256.0)] {
        let halve =
            |scale: bool, input| run(&format!("op = \"to_dtype\"\ndtype = \"{dtype}\"\nscale = {scale}"), input);
        let (direct, of_single) = (halve(true, input.clone()), halve(false, scaled.clone()));
        assert_eq!((direct.spec().dtype.name(), &direct), (dtype, &of_single));
        let back = floats(&run("op = \"to_dtype\"\ndtype = \"float32\"", direct));
        assert_eq!(back[2].to_bits(), rounded.to_bits(), "{dtype}");
    }
    let wide = run("op = \"to_dtype\"\ndtype = \"int64\"", input.clone());
    assert_eq!((wide.spec().dtype, wide.data()[24]), (DType::I64, 255));
    let deep = run("op = \"to_dtype\"\ndtype = \"uint16\"\nscale = true", input);
    assert_eq!(deep.view().elements_or_copy::<u16>(&mut Vec::new()).unwrap(), [0, 256, 32768, 65280]);
}

/// A FLAC-free noise: six silent frames would be no noise, so the demo's files serve.
#[test]
fn background_noise_has_the_ratio_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for (number, period) in [7_usize, 11].into_iter().enumerate() {
        let samples: Vec<i16> = (0..400).map(|at| if at % period < period / 2 { 9000 } else { -9000 }).collect();
        std::fs::write(folder.path().join(format!("{number}.wav")), wav(&samples, 8000)).unwrap();
    }
    let tone: Vec<i16> = (0..4000).map(|at| ((at as f32 * 0.1).sin() * 4000.0) as i16).collect();
    let path = folder.path().to_str().unwrap();
    let toml = format!("op = \"add_background_noise\"\nsounds_path = {path:?}\np = 1\nmin_snr_db = 6\nmax_snr_db = 6");
    let mut heard = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let out = ints(&run_seeded(&toml, Tensor::from_elements(&[tone.len()], &tone).unwrap(), seed));
        let noise: Vec<f64> = out.iter().zip(&tone).map(|(out, tone)| f64::from(*out) - f64::from(*tone)).collect();
        let power = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
        let ratio = power(&mut tone.iter().map(|value| f64::from(*value))) / power(&mut noise.iter().copied());
        assert!((10.0 * ratio.log10() - 6.0).abs() < 0.1, "{ratio}");
        heard.insert(noise.windows(2).filter(|pair| (pair[0] > 0.0) != (pair[1] > 0.0)).count() / 100);
        assert_eq!(out, ints(&run_seeded(&toml, Tensor::from_elements(&[tone.len()], &tone).unwrap(), seed)));
    }
    assert!(heard.len() >= 2, "both recordings are heard: {heard:?}");
    // And ratios between two are spread evenly.
    let range = toml.replace("min_snr_db = 6\nmax_snr_db = 6", "min_snr_db = -3\nmax_snr_db = 12");
    let tone: Vec<f32> = tone.iter().map(|value| f32::from(*value)).collect();
    let power = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>();
    let ratio = |seed: u64| {
        let out = floats(&run_seeded(&range, Tensor::from_elements(&[tone.len()], &tone).unwrap(), seed));
        let noise = power(&mut out.iter().zip(&tone).map(|(out, tone)| out - tone));
        10.0 * (power(&mut tone.iter().copied()) / noise).log10()
    };
    assert_even((0..500).map(ratio).collect(), -3.0, 12.0);
    let stereo = Tensor::from_elements(&[4, 2], &[0.5_f32, -0.5, 0.25, -0.25, 0.5, -0.5, 0.25, -0.25]).unwrap();
    let out = floats(&run(&toml, stereo));
    assert!(
        (out[0] + out[1]).abs() > 1e-3 && ((out[0] - 0.5) - (out[1] + 0.5)).abs() < 1e-6,
        "both channels have the same noise"
    );
    let empty = tempfile::tempdir().unwrap();
    let toml = format!("op = \"add_background_noise\"\nsounds_path = {:?}", empty.path().to_str().unwrap());
    let error = forebay_pipeline::steps::prepare_files(&[step(&toml)]).unwrap_err().to_string();
    assert!(error.contains("it has no recordings"), "{error}");
}

/// A WAV file of one channel.
pub(crate) fn wav(samples: &[i16], rate: u32) -> Vec<u8> {
    let bytes = samples.len() as u32 * 2;
    let mut file =
        [&b"RIFF"[..], &(36 + bytes).to_le_bytes(), b"WAVEfmt ", &[16, 0, 0, 0, 1, 0, 1, 0][..], &rate.to_le_bytes()]
            .concat();
    file.extend([&(rate * 2).to_le_bytes()[..], &[2, 0, 16, 0], b"data", &bytes.to_le_bytes()].concat());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

#[test]
fn speed_changes_length_and_pitch() {
    let tone: Vec<i16> = (0..9000).map(|at| ((at as f32 * 0.05).sin() * 8000.0) as i16).collect();
    let sound = || Tensor::from_elements(&[tone.len()], &tone).unwrap();
    let crossings = |samples: &[i16]| samples.windows(2).filter(|pair| (pair[0] >= 0) != (pair[1] >= 0)).count();
    let fast = ints(&run("op = \"speed_perturbation\"\nfactors = [1.5]", sound()));
    assert_eq!((fast.len(), crossings(&fast).abs_diff(crossings(&tone)) <= 1), (6000, true));
    let slow = ints(&run("op = \"speed_perturbation\"\nfactors = [0.9]", sound()));
    assert_eq!((slow.len(), crossings(&slow).abs_diff(crossings(&tone)) <= 1), (10_000, true));
    // Floats are the same, without being rounded; channels stay apart.
    let both: Vec<f32> = tone.iter().flat_map(|&value| [f32::from(value) / 32768.0, 0.25]).collect();
    let stereo = Tensor::from_elements(&[tone.len(), 2], &both).unwrap();
    let out = run("op = \"speed_perturbation\"\nfactors = [1.5]", stereo);
    assert_eq!(out.spec().shape.dims(), [6000, 2]);
    let floating = floats(&out);
    assert!(
        fast.iter()
            .zip(floating.iter().step_by(2))
            .all(|(whole, float)| (f32::from(*whole) - float * 32768.0).abs() <= 0.6)
    );
    assert!(floating[100..11_900].iter().skip(1).step_by(2).all(|value| (value - 0.25).abs() < 1e-3));
    let lengths: std::collections::BTreeSet<usize> =
        (0..60).map(|seed| ints(&run_seeded("op = \"speed_perturbation\"", sound(), seed)).len()).collect();
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [8182, 9000, 10_000]);
}
