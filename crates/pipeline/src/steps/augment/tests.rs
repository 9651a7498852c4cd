//! What policies draw, beside what `golden/policies.py` and `golden/draws.py` wrote of torchvision's: changes, their strengths, how often they come.

use super::{
    AugMix, Augmentation, AutoAugment, AutoAugmentPolicy, PixelOp, RandAugment, RandAugmentTransform,
    TrivialAugmentWide,
};
use crate::random::Random;

const SIZE: (usize, usize) = (160, 100);
const DRAWS: u64 = 20_000;

/// The name of a change and its strength; of a warp, where it takes three places.
type Change = (String, Vec<f64>);

fn change(op: PixelOp) -> Change {
    let (name, numbers) = match op {
        PixelOp::Brightness(factor) => ("Brightness", vec![f64::from(factor)]),
        PixelOp::Saturation(factor) => ("Color", vec![f64::from(factor)]),
        PixelOp::Contrast(factor) => ("Contrast", vec![f64::from(factor)]),
        PixelOp::Sharpness(factor) => ("Sharpness", vec![f64::from(factor)]),
        PixelOp::Posterize(bits) => ("Posterize", vec![f64::from(bits)]),
        PixelOp::Solarize(threshold) => ("Solarize", vec![f64::from(threshold)]),
        PixelOp::SolarizeAdd(more) => ("SolarizeAdd", vec![f64::from(more)]),
        PixelOp::Autocontrast => ("AutoContrast", vec![]),
        PixelOp::Equalize => ("Equalize", vec![]),
        PixelOp::Invert => ("Invert", vec![]),
        PixelOp::Warp(warp) => {
            let places = [(80.0, 50.0), (130.0, 50.0), (80.0, 100.0)].map(|(x, y)| warp.projection.forward(x, y));
            ("Warp", places.into_iter().flat_map(|(x, y)| [x, y]).collect())
        }
        other => panic!("{other:?}"),
    };
    (name.to_owned(), numbers)
}

/// Whether two draws are the same but for how their numbers were rounded.
fn same(one: &[Change], other: &[Change]) -> bool {
    let near = |(one, other): (&f64, &f64)| (one - other).abs() < 2e-3;
    let same = |(one, other): (&Change, &Change)| one.0 == other.0 && one.1.iter().zip(&other.1).all(near);
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// The draws that the golden file has of a policy, and how often each came.
fn golden(file: &str, policy: &str) -> Vec<(Vec<Change>, f64)> {
    let lines = file.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let draw = |line: Vec<&str>| {
        let changes = line[2..].iter().map(|change| {
            let mut words = change.split(' ');
            (words.next().unwrap().to_owned(), words.map(|number| number.parse().unwrap()).collect())
        });
        (changes.collect(), line[1].parse().unwrap())
    };
    lines.filter(|line| line[0] == policy).map(draw).collect()
}

/// Every draw is one of the golden file's, and as frequent as there (Pearson's sum of squares; both counts are drawn).
fn assert_drawn_as(file: &str, policy: &str, draw: impl Fn(&mut Random, &mut Vec<PixelOp>)) {
    let golden = golden(file, policy);
    assert!(!golden.is_empty(), "{policy} is not in the golden file");
    let mut counts = vec![0_u32; golden.len()];
    let mut ops = Vec::new();
    for seed in 0..DRAWS {
        ops.clear();
        draw(&mut Random::from_parts(&[seed, 9]), &mut ops);
        let drawn: Vec<Change> = ops.iter().map(|op| change(*op)).collect();
        let place = golden.iter().position(|(expected, _)| same(&drawn, expected));
        counts[place.unwrap_or_else(|| panic!("{policy}: {drawn:?} is not in the golden file"))] += 1;
    }
    let total: f64 = golden.iter().map(|(_, count)| count).sum();
    let share = DRAWS as f64 / total;
    let squares: f64 = golden
        .iter()
        .zip(&counts)
        .map(|((_, count), found)| (f64::from(*found) - count * share).powi(2) / (count * share * (1.0 + share)))
        .sum();
    let freedom = golden.len() as f64 - 1.0;
    assert!(squares < freedom + 4.0 * (2.0 * freedom).sqrt() + 6.0, "{policy}: {squares} for {freedom}: {counts:?}");
}

#[test]
fn policies_draw_what_torchvisions_draw() {
    let file = include_str!("../../../tests/golden/policies.txt");
    let drawn = |policy: &str, step: &dyn Augmentation| {
        assert_drawn_as(file, policy, |random, ops| step.draw(SIZE, random, ops));
    };
    drawn("RandAugment(1, 9)", &RandAugment { num_ops: 1, ..RandAugment::default() });
    let few = RandAugment { num_ops: 1, magnitude: 5, num_magnitude_bins: 11, ..RandAugment::default() };
    drawn("RandAugment(1, 5, 11)", &few);
    drawn("TrivialAugmentWide()", &TrivialAugmentWide::default());
    for (name, policy) in [
        ("AutoAugment(imagenet)", AutoAugmentPolicy::Imagenet),
        ("AutoAugment(cifar10)", AutoAugmentPolicy::Cifar10),
        ("AutoAugment(svhn)", AutoAugmentPolicy::Svhn),
    ] {
        drawn(name, &AutoAugment { policy, ..AutoAugment::default() });
    }
}

#[test]
fn chains_of_aug_mix_draw_what_torchvisions_draw() {
    let file = include_str!("../../../tests/golden/policies.txt");
    let one = AugMix { chain_depth: 1, ..AugMix::default() };
    let strong = AugMix { severity: 10, all_ops: false, ..one.clone() };
    for (policy, step) in
        [("AugMix(chain_depth=1)", one), ("AugMix(severity=10, chain_depth=1, all_ops=False)", strong)]
    {
        assert_drawn_as(file, policy, |random, ops| step.draw_chain(SIZE, random, ops));
    }
    let lengths = (0..DRAWS).map(|seed| {
        let mut ops = Vec::new();
        AugMix { all_ops: false, ..AugMix::default() }.draw_chain(SIZE, &mut Random::from_parts(&[seed]), &mut ops);
        ops.len()
    });
    let mut counts = [0_u32; 4];
    lengths.for_each(|length| counts[length] += 1);
    assert!(counts[0] == 0 && counts[1..].iter().all(|count| count.abs_diff(6667) < 250), "{counts:?}");
}

#[test]
fn weights_of_aug_mix_are_spread_as_torchvisions() {
    for (call, step) in [
        ("AugMix()", AugMix::default()),
        ("AugMix(alpha=0.4, mixture_width=2)", AugMix { alpha: 0.4, mixture_width: 2, ..AugMix::default() }),
    ] {
        let draws = (0..DRAWS).map(|seed| step.draw_weights(&mut Random::from_parts(&[seed, 3])));
        let draws: Vec<(f64, Vec<f64>)> = draws.collect();
        for (own, weights) in &draws {
            assert!(weights.len() == step.mixture_width && (own + weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
        for (name, numbers) in [
            ("kept", draws.iter().map(|(own, _)| *own).collect::<Vec<f64>>()),
            ("first", draws.iter().map(|(_, weights)| weights[0]).collect()),
        ] {
            assert_spread_as(include_str!("../../../tests/golden/draws.txt"), call, name, &numbers);
        }
    }
}

/// Numbers are spread as the quantiles that the golden file has of them.
fn assert_spread_as(file: &str, call: &str, name: &str, numbers: &[f64]) {
    let mut lines = file.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let line = lines.find(|line| line[..2] == [call, name]).expect("a line of the golden file");
    for (place, quantile) in line[2..].iter().enumerate() {
        let quantile: f64 = quantile.parse().unwrap();
        let share = |within: &dyn Fn(f64) -> bool| {
            numbers.iter().filter(|number| within(**number)).count() as f64 / numbers.len() as f64
        };
        let (below, up_to) = (share(&|number| number < quantile - 1e-3), share(&|number| number <= quantile + 1e-3));
        let expected = place as f64 / 20.0;
        let fits = below <= expected + 0.03 && up_to >= expected - 0.03;
        assert!(fits, "{call}: {name} is below {quantile} {below}, up to it {up_to}, not {expected}");
    }
}

/// timm's policy: the same changes, strengths and frequencies without noise, and strengths spread as its noise spreads them.
#[test]
fn timms_policy_draws_what_timm_draws() {
    let file = include_str!("../../../tests/golden/timm.txt");
    let of = |config: &str| RandAugmentTransform { config_str: config.parse().unwrap(), ..Default::default() };
    for config in ["rand-m7-n1-p0.9-inc1", "rand-m4-n1-p0.8", "rand-m15-n1-p1-mmax20-inc1"] {
        assert_drawn_as(file, config, |random, ops| of(config).draw(SIZE, random, ops));
    }
    for config in ["rand-m9-mstd0.5-inc1", "rand-m6-mstd3-inc1", "rand-m9-mstd101-inc1"] {
        let (mut layers, mut magnitudes, mut bits) = ([0_u32; 3], Vec::new(), Vec::new());
        for seed in 0..DRAWS {
            let mut ops = Vec::new();
            of(config).draw(SIZE, &mut Random::from_parts(&[seed, 4]), &mut ops);
            layers[ops.len()] += 1;
            for op in ops {
                match op {
                    PixelOp::Contrast(factor) => magnitudes.push((f64::from(factor) - 1.0).abs() / 0.09),
                    PixelOp::Posterize(kept) => bits.push(f64::from(kept)),
                    _ => (),
                }
            }
        }
        assert!(layers[1].abs_diff(DRAWS as u32 / 2) < 300 && layers[0].abs_diff(layers[2]) < 300, "{layers:?}");
        assert_spread_as(file, config, "magnitude", &magnitudes);
        assert_spread_as(file, config, "bits", &bits);
    }
}
