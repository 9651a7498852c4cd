//! Augmentations: equal to torchvision's for fixed parameters, and drawn as it draws them.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_codec::Tensor;
use forebay_pipeline::steps::{
    Augment, Augmentation, AutoAugment, AutoAugmentPolicy, ColorJitter, GaussianBlur, PixelOp, Projection, RandAugment,
    TrivialAugmentWide, Warp, WarpInterpolation,
};
use forebay_pipeline::{Action, Field, Random, RngKey, Runner, Sample, Value};

use crate::support::{Collect, assert_even, floats, picture, run, run_all, run_seeded, sample, step};

/// Smooth colors with an edge, and noise on top.
pub(crate) fn colorful(height: usize, width: usize, channels: usize) -> Tensor {
    picture(height, width, channels, |y, x, c| {
        let noise = (y * 7919 + x * 104_729 + c * 15_485_863) % 41;
        (30 + y * (9 - 2 * c) + x * (3 + 3 * c) + noise + if x * 2 > width + y { 40 } else { 0 }) as u8
    })
}

/// The picture of `golden/augmentations.py`.
pub(crate) fn golden_picture(channels: usize) -> Tensor {
    colorful(17, 20, channels)
}

#[test]
fn fixed_parameters_give_what_torchvision_gives() {
    let mut golden = &include_bytes!("../golden/augmentations.bin")[..];
    let (mut values, mut differing) = (0, 0);
    for line in include_str!("../golden/augmentations.txt").lines() {
        let (parameters, call) = line.split_once('\t').unwrap();
        let (header, rest) = golden.split_at(6);
        let dims: Vec<usize> = header.as_chunks().0.iter().map(|dim| usize::from(u16::from_le_bytes(*dim))).collect();
        let (expected, rest) = rest.split_at(dims.iter().product());
        golden = rest;
        let toml = format!("step = {{ {parameters} }}");
        let table: toml::Table = toml::from_str(&toml).unwrap();
        let input = golden_picture(if call.starts_with("gray: ") { 1 } else { 3 });
        let ours = match fixed(&table["step"]) {
            Some(op) => run_op(op, input).data().to_vec(),
            None => run_one_below_another(&toml::to_string(&table["step"]).unwrap(), input, &dims),
        };
        assert_eq!(ours.len(), expected.len(), "{call}");
        let furthest = ours.iter().zip(expected).map(|(ours, theirs)| ours.abs_diff(*theirs)).max().unwrap_or(0);
        // What only copies pixels is exact. That holds for the nearest ones, too, as long as no place lies just between two of them (as by a
        // quarter turn of a picture whose sides differ by an odd number): there torch's rounding of single precision decides.
        let copying = ["NEAREST", "_crop(image, [", "crop(F.pad", "F.pad(", "_flip(", "permute"];
        let copies = copying.iter().any(|name| call.contains(name));
        assert!(furthest <= u8::from(!copies), "{call}: off by {furthest}");
        values += expected.len();
        differing += expected.iter().zip(&ours).filter(|(theirs, ours)| theirs != ours).count();
    }
    assert!(golden.is_empty());
    eprintln!("{differing} of {values} values differ from torchvision's by one level");
    assert!(differing * 50 < values, "{differing} of {values} differ");
}

/// All that a step makes of a picture, one below another; together they have these dimensions.
fn run_one_below_another(toml: &str, input: Tensor, dims: &[usize]) -> Vec<u8> {
    let out = run_all(&[step(toml)], &sample(Value::Tensor(input)), RngKey::default());
    let parts: Vec<&Tensor> = out
        .iter()
        .map(|sample| match &sample.fields[0].value {
            Value::Tensor(tensor) => tensor,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(parts.iter().all(|part| part.spec().shape.dims() == [dims[0] / parts.len(), dims[1], dims[2]]), "{toml}");
    parts.iter().flat_map(|part| part.data().to_vec()).collect()
}

/// The change of a line that is no step: a warp, or another order of the channels.
fn fixed(line: &toml::Value) -> Option<PixelOp> {
    match line.get("permute") {
        Some(order) => order.clone().try_into().ok().map(PixelOp::Permute),
        None => warp(line).map(PixelOp::Warp),
    }
}

/// The warp of a line that is no step: an affine map or a perspective, by its numbers.
pub(crate) fn warp(line: &toml::Value) -> Option<Warp> {
    #[derive(serde::Deserialize)]
    struct Line {
        affine: Option<[f64; 6]>,
        perspective: Option<[[f64; 2]; 4]>,
        interpolation: Option<WarpInterpolation>,
    }
    if line.get("op").is_some() {
        return None;
    }
    let Line { affine, perspective, interpolation } = line.clone().try_into().unwrap();
    let projection = match (affine, perspective) {
        (Some([angle, x, y, scale, shear_x, shear_y]), _) => {
            Projection::affine([10.0, 8.5], angle, [x, y], scale, [shear_x, shear_y])
        }
        (_, Some(new)) => Projection::perspective([[0.0, 0.0], [19.0, 0.0], [19.0, 16.0], [0.0, 16.0]], new),
        _ => return None,
    };
    Some(Warp { projection: projection.unwrap(), interpolation: interpolation.unwrap(), fill: None })
}

/// One change, always the same.
#[derive(Debug)]
pub(crate) struct Fixed(pub(crate) PixelOp);

impl Augmentation for Fixed {
    fn is_geometric(&self) -> bool {
        matches!(self.0, PixelOp::Warp(_))
    }

    fn draw(&self, _size: (usize, usize), _random: &mut Random, ops: &mut Vec<PixelOp>) {
        ops.push(self.0);
    }
}

/// Does one change.
fn run_op(op: PixelOp, input: Tensor) -> Tensor {
    let mut step = step("op = \"random_invert\"");
    step.action = Action::Transform(Arc::new(Augment::new(Fixed(op))));
    match run_all(&[step], &sample(Value::Tensor(input)), RngKey::default()).remove(0).fields.remove(0).value {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    }
}

fn drawn(step: &impl Augmentation, seed: u64) -> Vec<PixelOp> {
    let mut ops = Vec::new();
    step.draw((32, 32), &mut Random::from_parts(&[seed]), &mut ops);
    ops
}

#[test]
fn color_jitter_draws_factors_and_their_order() {
    let step =
        ColorJitter { brightness: 0.4.into(), contrast: [0.5, 0.8].into(), hue: 0.1.into(), ..Default::default() };
    let (mut brightness, mut contrast, mut hue) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = [0; 3];
    for seed in 0..4000 {
        let ops = drawn(&step, seed);
        assert_eq!(ops.len(), 3, "saturation is left alone: {ops:?}");
        for (place, op) in ops.into_iter().enumerate() {
            let (numbers, kind, number) = match op {
                PixelOp::Brightness(factor) => (&mut brightness, 0, factor),
                PixelOp::Contrast(factor) => (&mut contrast, 1, factor),
                PixelOp::Hue(turn) => (&mut hue, 2, turn),
                other => panic!("{other:?}"),
            };
            numbers.push(f64::from(number));
            first[kind] += u32::from(place == 0);
        }
    }
    assert_even(brightness, 0.6, 1.4);
    assert_even(contrast, 0.5, 0.8);
    assert_even(hue, -0.1, 0.1);
    assert!(first.iter().all(|count| (1200..1470).contains(count)), "{first:?}");
}

#[test]
fn a_blur_draws_its_deviation() {
    let step = GaussianBlur { kernel_size: 5.0.into(), sigma: [0.1, 2.0].into() };
    let sigma = |seed| match drawn(&step, seed)[..] {
        [PixelOp::GaussianBlur { kernel_size: [5, 5], sigma: [x, y] }] if x.to_bits() == y.to_bits() => f64::from(x),
        ref other => panic!("{other:?}"),
    };
    assert_even((0..4000).map(sigma).collect(), 0.1, 2.0);
    assert!(step.is_random() && !GaussianBlur { sigma: 1.0.into(), ..step }.is_random());
}

#[test]
fn steps_happen_as_often_as_they_say() {
    let input = golden_picture(3);
    for (step, expected) in [
        ("op = \"random_grayscale\"", 0.1),
        ("op = \"random_invert\"", 0.5),
        ("op = \"random_solarize\"\nthreshold = 90\np = 0.3", 0.3),
        ("op = \"random_posterize\"\nbits = 2\np = 0.2", 0.2),
        ("op = \"random_equalize\"", 0.5),
        ("op = \"random_autocontrast\"\np = 0.9", 0.9),
        ("op = \"random_adjust_sharpness\"\nsharpness_factor = 3", 0.5),
        ("op = \"random_vertical_flip\"\np = 0.25", 0.25),
        ("op = \"random_erasing\"\np = 0.6", 0.6),
    ] {
        let changed = (0..1000).filter(|&seed| run_seeded(step, input.clone(), seed) != input).count();
        let share = changed as f64 / 1000.0;
        assert!((share - expected).abs() < 0.05, "{step}: {share}");
    }
}

#[test]
fn colors_done_as_one_give_the_same_bits() {
    let steps = [
        "op = \"color_jitter\"\nbrightness = 0.5\ncontrast = 0.5\nsaturation = 0.5\nhue = 0.2",
        "op = \"random_invert\"",
        "op = \"random_autocontrast\"",
        "op = \"random_adjust_sharpness\"\nsharpness_factor = 2.0",
        "op = \"random_solarize\"\nthreshold = 100",
        "op = \"random_equalize\"",
        "op = \"gaussian_blur\"\nkernel_size = 5",
        "op = \"random_posterize\"\nbits = 4",
        "op = \"random_grayscale\"\np = 0.5",
    ]
    .map(step);
    for channels in [1, 3] {
        let (mut fused, mut plain) = (Runner::new(&steps, 3), Runner::step_by_step(&steps, 3));
        for epoch in 0..60 {
            let input = sample(Value::Tensor(golden_picture(channels)));
            let (mut together, mut apart) = (Collect::default(), Collect::default());
            fused.run(&input, RngKey { seed: 1, epoch }, &mut (), &mut together).unwrap();
            plain.run(&input, RngKey { seed: 1, epoch }, &mut (), &mut apart).unwrap();
            assert_eq!(format!("{:?}", together.0[0].fields), format!("{:?}", apart.0[0].fields), "{epoch}");
        }
    }
}

#[test]
fn erasing_overwrites_one_rectangle() {
    let input = picture(40, 60, 3, |_, _, _| 200);
    let mut shares = Vec::new();
    for seed in 0..300 {
        let out = run_seeded("op = \"random_erasing\"\np = 1\nvalue = [1, 2, 3]", input.clone(), seed);
        let erased: Vec<usize> = (0..40 * 60).filter(|pixel| out.data()[pixel * 3..][..3] == [1, 2, 3]).collect();
        let (rows, columns) = (erased.iter().map(|pixel| pixel / 60), erased.iter().map(|pixel| pixel % 60));
        let height = rows.clone().max().unwrap() - rows.min().unwrap() + 1;
        let width = columns.clone().max().unwrap() - columns.min().unwrap() + 1;
        assert_eq!(height * width, erased.len(), "a rectangle");
        assert!((0.2..5.0).contains(&(height as f64 / width as f64)), "{height} {width}");
        let kept = out.data().chunks(3).filter(|pixel| **pixel == [200; 3]).count();
        assert_eq!(kept, 40 * 60 - erased.len());
        shares.push(erased.len() as f64 / 2400.0);
    }
    assert!(shares.iter().all(|share| (0.015..0.35).contains(share)));
    let mean = shares.iter().sum::<f64>() / 300.0;
    assert!((0.15..0.20).contains(&mean), "{mean}");
}

#[test]
fn erasing_knows_channels_first_and_random_values() {
    let input = Tensor::from_elements(&[3, 32, 32], &vec![9_f32; 3 * 32 * 32]).unwrap();
    let out = floats(&run("op = \"random_erasing\"\np = 1\nscale = [0.3, 0.3]\nvalue = \"random\"", input.clone()));
    let planes: Vec<Vec<bool>> =
        out.chunks(1024).map(|plane| plane.iter().map(|value| value.to_bits() == 9_f32.to_bits()).collect()).collect();
    assert!(planes[0] == planes[1] && planes[1] == planes[2], "the same rectangle of each channel");
    let values: Vec<f32> = out.into_iter().filter(|value| value.to_bits() != 9_f32.to_bits()).collect();
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    assert!((850..1000).contains(&values.len()) && mean.abs() < 0.15, "{} {mean}", values.len());
    let out = floats(&run("op = \"random_erasing\"\np = 1\nvalue = [1, 2, 3]", input));
    assert!(out.chunks(1024).zip([1_f32, 2.0, 3.0]).all(|(plane, value)| plane.contains(&value)));
}

/// Runs steps on an image, its mask and its boxes.
pub(crate) fn run_together(toml: &str, seed: u64) -> (Tensor, Tensor, Vec<f32>) {
    let image = colorful(14, 18, 3);
    let classes: Vec<u8> = (0..14 * 18).map(|pixel| (pixel % 251) as u8).collect();
    let mask = Tensor::from_elements(&[14, 18], &classes).unwrap();
    let boxes = Tensor::from_elements(&[2, 5], &[2_f32, 3.0, 8.0, 9.0, 7.0, 10.0, 1.0, 18.0, 14.0, 8.0]).unwrap();
    let mut step = step(toml);
    step.fields = ["image", "mask", "boxes"].map(str::to_owned).to_vec();
    let fields = [("image", image), ("mask", mask), ("boxes", boxes)];
    let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
    let input = Sample { key: "a".into(), index: 5, fields };
    let mut out = run_all(&[step], &input, RngKey { seed, epoch: 0 });
    let tensors = out.pop().unwrap().fields.into_iter().map(|field| match field.value {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    });
    let [image, mask, boxes] = tensors.collect::<Vec<_>>().try_into().unwrap();
    (image, mask, floats(&boxes))
}

#[test]
fn masks_and_boxes_follow() {
    let (_, mask, boxes) = run_together("op = \"random_vertical_flip\"\np = 1", 0);
    assert_eq!(mask.data()[..2], [13 * 18, 13 * 18 + 1]);
    assert_eq!(boxes, [2.0, 5.0, 8.0, 11.0, 7.0, 10.0, 0.0, 18.0, 13.0, 8.0]);
    let (image, mask, boxes) = run_together("op = \"pad\"\npadding = [1, 2, 3, 4]\nfill = 9\nmask_fill = 255", 0);
    assert_eq!((image.spec().shape.dims(), mask.spec().shape.dims()), (&[20, 22, 3][..], &[20, 22][..]));
    assert_eq!((image.data()[0], mask.data()[0], mask.data()[2 * 22 + 1], mask.data()[2 * 22 + 2]), (9, 255, 0, 1));
    assert_eq!(boxes, [3.0, 5.0, 9.0, 11.0, 7.0, 11.0, 3.0, 19.0, 16.0, 8.0]);
    let (_, mask, _) = run_together("op = \"pad\"\npadding = 1\npadding_mode = \"edge\"", 0);
    assert_eq!(mask.data()[..3], [0, 0, 1]);
}

fn kinds_of(step: &impl Augmentation, draws: u64) -> BTreeMap<String, Vec<PixelOp>> {
    let mut kinds: BTreeMap<String, Vec<PixelOp>> = BTreeMap::new();
    for op in (0..draws).flat_map(|seed| drawn(step, seed)) {
        let name = format!("{op:?}");
        let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap().to_owned();
        kinds.entry(name).or_default().push(op);
    }
    kinds
}

/// Of 14 kinds of change, five are warps and one is nothing; each is as probable as the others.
#[test]
fn rand_augment_draws_every_kind_alike() {
    let step = RandAugment { magnitude: 15, ..RandAugment::default() };
    let kinds = kinds_of(&step, 7000);
    for (kind, share) in [("Warp", 5), ("Brightness", 1), ("Solarize", 1), ("Equalize", 1), ("Posterize", 1)] {
        let (found, expected) = (kinds[kind].len(), share * 1000);
        assert!(found.abs_diff(expected) < 150 * share, "{kind}: {found}");
    }
    assert!(kinds["Posterize"].iter().all(|op| *op == PixelOp::Posterize(6)), "{:?}", kinds["Posterize"][0]);
    assert!(kinds["Solarize"].iter().all(|op| *op == PixelOp::Solarize(127.5)), "{:?}", kinds["Solarize"][0]);
    let brighter = kinds["Brightness"].iter().filter(|op| **op == PixelOp::Brightness(1.45)).count();
    let darker = kinds["Brightness"].iter().filter(|op| **op == PixelOp::Brightness(0.55)).count();
    assert_eq!(brighter + darker, kinds["Brightness"].len(), "half of 0.9 either way");
    assert!(brighter.abs_diff(darker) < 150, "{brighter} {darker}");
}

#[test]
fn trivial_augment_draws_one_change_of_any_strength() {
    let step = TrivialAugmentWide::default();
    assert!((0..500).all(|seed| drawn(&step, seed).len() <= 1));
    let kinds = kinds_of(&step, 14_000);
    let mut strengths = [0; 31];
    for op in &kinds["Solarize"] {
        let PixelOp::Solarize(threshold) = op else { panic!("{op:?}") };
        strengths[(threshold * 30.0 / 255.0).round() as usize] += 1;
    }
    assert_alike(&strengths);
    let mut strengths = [0; 61];
    for op in &kinds["Brightness"] {
        let PixelOp::Brightness(factor) = op else { panic!("{op:?}") };
        strengths[((factor - 1.0) / 0.99 * 30.0 + 30.0).round() as usize] += 1;
    }
    // Nothing is as probable from either side.
    strengths[30] /= 2;
    assert_alike(&strengths);
    for (kind, share) in [("Warp", 5), ("Brightness", 1), ("Saturation", 1), ("Autocontrast", 1), ("Solarize", 1)] {
        assert!(kinds[kind].len().abs_diff(share * 1000) < 130 * share, "{kind}: {}", kinds[kind].len());
    }
    assert!(kinds["Posterize"].contains(&PixelOp::Posterize(2)));
    assert!(kinds["Posterize"].iter().all(|op| matches!(op, PixelOp::Posterize(2..=8))));
}

/// Whether all are as frequent as each other: Pearson's sum of squares, and what it has in one of a thousand cases.
fn assert_alike(counts: &[u32]) {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    let squares: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    assert!(squares < freedom + 3.1 * (2.0 * freedom).sqrt() + 6.0, "{squares}: {counts:?}");
}

/// What a change of torchvision's table is called here, with as much of its strength as its name tells.
fn drawn_kind(name: &str, strength: &str) -> String {
    match name {
        "ShearX" | "ShearY" | "TranslateX" | "TranslateY" | "Rotate" => "Warp".to_owned(),
        "Color" => "Saturation".to_owned(),
        "AutoContrast" => "Autocontrast".to_owned(),
        "Posterize" => {
            let strength: f64 = strength.parse().unwrap();
            format!("Posterize({})", 8 - (strength / (9.0 / 4.0)).round_ties_even() as u8)
        }
        other => other.to_owned(),
    }
}

/// Pairs, changes and their numbers are as frequent as torchvision's table makes them.
#[test]
fn auto_augment_draws_what_torchvisions_table_says() {
    const DRAWS: u64 = 25_000;
    for (name, policy) in [
        ("imagenet", AutoAugmentPolicy::Imagenet),
        ("cifar10", AutoAugmentPolicy::Cifar10),
        ("svhn", AutoAugmentPolicy::Svhn),
    ] {
        let table = include_str!("../golden/auto_augment.txt").lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let pairs: Vec<Vec<&str>> = table.filter(|pair| pair[0] == name).collect();
        assert_eq!(pairs.len(), 25);
        let mut expected: BTreeMap<String, f64> = BTreeMap::new();
        for pair in &pairs {
            let chances = [pair[2], pair[5]].map(|p| p.parse::<f64>().unwrap());
            let each = DRAWS as f64 / 25.0;
            let (both, none) = (chances[0] * chances[1], (1.0 - chances[0]) * (1.0 - chances[1]));
            for (key, share) in [
                (drawn_kind(pair[1], pair[3]), chances[0]),
                (drawn_kind(pair[4], pair[6]), chances[1]),
                ("2 changes".to_owned(), both),
                ("1 changes".to_owned(), 1.0 - both - none),
                ("0 changes".to_owned(), none),
            ] {
                *expected.entry(key).or_default() += share * each;
            }
        }
        let step = AutoAugment { policy, ..AutoAugment::default() };
        let mut found: BTreeMap<String, u32> = BTreeMap::new();
        for ops in (0..DRAWS).map(|seed| drawn(&step, seed)) {
            *found.entry(format!("{} changes", ops.len())).or_default() += 1;
            for op in ops {
                let all = format!("{op:?}");
                let kind = all.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
                *found.entry(if kind == "Posterize" { all } else { kind.to_owned() }).or_default() += 1;
            }
        }
        assert!(found.keys().all(|kind| expected.contains_key(kind)), "{name}: {found:?}, not {expected:?}");
        for (kind, expected) in expected.into_iter().filter(|(_, expected)| *expected > 0.0) {
            let found = f64::from(found.get(&kind).copied().unwrap_or(0));
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{name}: {kind} {found}, not {expected}");
        }
    }
}

#[test]
fn aug_mix_stays_near_its_picture_and_keeps_plain_ones() {
    let plain = picture(16, 16, 3, |_, _, _| 100);
    let partial = "op = \"aug_mix\"\nall_ops = false\nseverity = 1";
    assert_eq!(run_seeded(partial, plain.clone(), 3).spec(), plain.spec());
    let input = golden_picture(3);
    let distance = |alpha: f64| -> f64 {
        let toml = format!("op = \"aug_mix\"\nalpha = {alpha:?}");
        let differences = (0..60).flat_map(|seed| {
            let out = run_seeded(&toml, input.clone(), seed);
            out.data().iter().zip(input.data().iter()).map(|(a, b)| f64::from(a.abs_diff(*b))).collect::<Vec<_>>()
        });
        differences.sum::<f64>() / (60 * input.data().len()) as f64
    };
    let mixed = distance(1.0);
    assert!((2.0..60.0).contains(&mixed), "{mixed}");
}

#[test]
fn some_steps_are_done_as_often_as_they_say() {
    let input = golden_picture(3);
    let inverted = run("op = \"random_invert\"\np = 1", input.clone());
    let flipped = run("op = \"random_vertical_flip\"\np = 1", input.clone());
    let both = run("op = \"random_vertical_flip\"\np = 1", inverted.clone());
    let of = |toml: &str, wanted: &Tensor| {
        (0..1000).filter(|&seed| run_seeded(toml, input.clone(), seed) == *wanted).count() as f64 / 1000.0
    };
    let steps = "steps = [{ op = \"random_invert\", p = 1 }, { op = \"random_vertical_flip\", p = 1 }]";
    let apply = format!("op = \"random_apply\"\np = 0.3\n{steps}");
    assert!((of(&apply, &both) - 0.3).abs() < 0.05 && (of(&apply, &input) - 0.7).abs() < 0.05);
    let choice = format!("op = \"random_choice\"\np = [3, 1]\n{steps}");
    assert!((of(&choice, &inverted) - 0.75).abs() < 0.05 && (of(&choice, &flipped) - 0.25).abs() < 0.05);
    let colors = "op = \"random_apply\"\np = 0.3\nsteps = [{ op = \"random_invert\", p = 1 }]";
    assert!((of(colors, &inverted) - 0.3).abs() < 0.05);
}

/// Each step within a step draws once for all fields, and changes of color leave masks and boxes alone.
#[test]
fn masks_and_boxes_follow_steps_within_steps() {
    let toml = "op = \"random_apply\"\np = 1\nsteps = [{ op = \"random_invert\", p = 1 }, \
                { op = \"random_affine\", degrees = 0, translate = [0.4, 0.4] }, { op = \"random_vertical_flip\" }]";
    for seed in 0..40 {
        let (image, mask, boxes) = run_together(toml, seed);
        let original = colorful(14, 18, 3);
        for (pixel, class) in mask.data().iter().enumerate().filter(|(_, class)| **class > 0) {
            let from = usize::from(*class);
            let inverted = original.data()[from * 3..][..3].iter().map(|value| 255 - value);
            assert!(image.data()[pixel * 3..][..3].iter().copied().eq(inverted), "{seed} {pixel}");
        }
        let inside = |row: &[f32]| row[0] >= 0.0 && row[1] >= 0.0 && row[2] <= 18.0 && row[3] <= 14.0;
        assert!(boxes.chunks(5).all(inside), "{boxes:?}");
    }
}
