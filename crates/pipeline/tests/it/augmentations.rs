//! Augmentations: equal to torchvision's for fixed parameters, and drawn as it draws them.

use forebay_codec::{DType, Tensor, TensorSpec};
use forebay_pipeline::steps::{Augmentation, ColorJitter, GaussianBlur, PixelOp};
use forebay_pipeline::{Field, Random, RngKey, Runner, Sample, Value};

use crate::support::{Collect, difference_max, floats, picture, run, run_all, run_seeded, sample, step};

/// Smooth colors with an edge, and noise on top.
fn colorful(height: usize, width: usize, channels: usize) -> Tensor {
    picture(height, width, channels, |y, x, c| {
        let noise = (y * 7919 + x * 104_729 + c * 15_485_863) % 41;
        (30 + y * (9 - 2 * c) + x * (3 + 3 * c) + noise + if x * 2 > width + y { 40 } else { 0 }) as u8
    })
}

/// The picture of `golden/augmentations.py`.
fn golden_picture(channels: usize) -> Tensor {
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
        let toml = toml::to_string(&table["step"]).unwrap();
        let ours = run(&toml, golden_picture(if call.starts_with("gray: ") { 1 } else { 3 }));
        let theirs = Tensor::new(TensorSpec::new(DType::U8, &dims), expected.to_vec()).unwrap();
        let furthest = difference_max(ours.view(), theirs.view());
        assert!(furthest <= 1, "{call}: off by {furthest}");
        values += expected.len();
        differing += expected.iter().zip(ours.data().iter()).filter(|(theirs, ours)| theirs != ours).count();
    }
    assert!(golden.is_empty());
    eprintln!("{differing} of {values} values differ from torchvision's by one level");
    assert!(differing * 50 < values, "{differing} of {values} differ");
}

fn drawn(step: &impl Augmentation, seed: u64) -> Vec<PixelOp> {
    let mut ops = Vec::new();
    step.draw((32, 32), &mut Random::from_parts(&[seed]), &mut ops);
    ops
}

/// Whether numbers are spread evenly over a range: the largest distance of the two distributions (Kolmogorov and Smirnov).
fn assert_even(mut numbers: Vec<f64>, low: f64, high: f64) {
    numbers.sort_by(f64::total_cmp);
    let count = numbers.len() as f64;
    let distance = |(place, number): (usize, &f64)| ((number - low) / (high - low) - place as f64 / count).abs();
    let furthest = numbers.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(furthest < 1.63 / count.sqrt() + 1.0 / count, "{furthest} of {count} in {low} to {high}");
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
        assert_eq!(out.data().iter().filter(|&&value| value == 200).count(), (40 * 60 - erased.len()) * 3);
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
fn run_together(toml: &str, seed: u64) -> (Tensor, Tensor, Vec<f32>) {
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
    assert_eq!(mask.data()[..2], [(13 * 18 % 251) as u8, (13 * 18 + 1) as u8 % 251]);
    assert_eq!(boxes, [2.0, 5.0, 8.0, 11.0, 7.0, 10.0, 0.0, 18.0, 13.0, 8.0]);
    let (image, mask, boxes) = run_together("op = \"pad\"\npadding = [1, 2, 3, 4]\nfill = 9\nmask_fill = 255", 0);
    assert_eq!((image.spec().shape.dims(), mask.spec().shape.dims()), (&[20, 22, 3][..], &[20, 22][..]));
    assert_eq!((image.data()[0], mask.data()[0], mask.data()[2 * 22 + 1], mask.data()[2 * 22 + 2]), (9, 255, 0, 1));
    assert_eq!(boxes, [3.0, 5.0, 9.0, 11.0, 7.0, 11.0, 3.0, 19.0, 16.0, 8.0]);
    let (_, mask, _) = run_together("op = \"pad\"\npadding = 1\npadding_mode = \"edge\"", 0);
    assert_eq!(mask.data()[..3], [0, 0, 1]);
}
