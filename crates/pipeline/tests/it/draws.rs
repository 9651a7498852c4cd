//! Draws: the parameters of random steps are spread as torchvision's, whose quantiles `golden/draws.py` wrote. What a step drew is read off
//! from what it does to key points, pixels and labels.

use forebay_codec::{DType, Tensor, TensorSpec};
use forebay_pipeline::{Action, BatchColumn, Field, Random, RngKey, Sample, Value};

use crate::support::{assert_drawn_as, floats, picture, run_all, run_seeded, step};

const HEIGHT: usize = 100;
const WIDTH: usize = 160;
const DRAWS: u64 = 3000;

/// Compares numbers of each name with all that the golden file has for this call.
fn assert_as_torchvision(call: &str, drawn: &[(&str, Vec<f64>)]) {
    assert_drawn_as(include_str!("../golden/draws.txt"), call, drawn);
}

/// Where a step takes places of a picture, in one draw.
fn places<const N: usize>(toml: &str, seed: u64, rows: [[f32; 2]; N]) -> [[f64; 2]; N] {
    let points = Tensor::from_elements(&[N, 2], rows.as_flattened()).unwrap();
    let fields = [("image", picture(HEIGHT, WIDTH, 1, |_, _, _| 0)), ("points", points)];
    let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
    let mut step = step(toml);
    step.fields = ["image", "points"].map(str::to_owned).to_vec();
    let out = run_all(&[step], &Sample { key: "a".into(), index: 5, fields }, RngKey { seed, epoch: 0 });
    let Some(Value::Tensor(points)) = out[0].field("points") else { panic!("{:?}", out[0]) };
    let numbers: Vec<[f64; 2]> =
        floats(points).as_chunks().0.iter().map(|point: &[f32; 2]| point.map(f64::from)).collect();
    numbers.try_into().unwrap()
}

/// Numbers of each draw, by the names of them.
fn gathered<const N: usize>(names: [&'static str; N], draw: impl Fn(u64) -> [f64; N]) -> Vec<(&'static str, Vec<f64>)> {
    let draws: Vec<[f64; N]> = (0..DRAWS).map(draw).collect();
    names.into_iter().enumerate().map(|(place, name)| (name, draws.iter().map(|draw| draw[place]).collect())).collect()
}

const CENTER: [f32; 2] = [80.0, 50.0];
const RIGHT: [f32; 2] = [130.0, 50.0];
const BELOW: [f32; 2] = [80.0, 100.0];

#[test]
fn rotations_draw_their_angle() {
    let drawn = gathered(["angle"], |seed| {
        let [[x, y]] = places("op = \"random_rotation\"\ndegrees = 30", seed, [RIGHT]);
        [(50.0 - y).atan2(x - 80.0).to_degrees()]
    });
    assert_as_torchvision("RandomRotation(30)", &drawn);
}

#[test]
fn affine_maps_draw_angle_scale_translation_and_shear() {
    let call = "RandomAffine((-10, 40), translate=(0.3, 0.2), scale=(0.5, 2), shear=(-8, 12, -5, 6))";
    let toml = "op = \"random_affine\"\ndegrees = [-10, 40]\ntranslate = [0.3, 0.2]\nscale = [0.5, 2]";
    let drawn = gathered(["angle", "scale", "translate_x", "translate_y"], |seed| {
        let [[x, y], [right_x, right_y]] = places(toml, seed, [CENTER, RIGHT]);
        let (along, down) = ((right_x - x) / 50.0, (right_y - y) / 50.0);
        [down.atan2(along).to_degrees(), down.hypot(along), (x - 80.0).round(), (y - 50.0).round()]
    });
    assert_as_torchvision(call, &drawn);
    // By themselves: together with an angle, two pairs of shears give the same map.
    let toml = "op = \"random_affine\"\ndegrees = 0\nshear = [-8, 12, -5, 6]";
    let drawn = gathered(["shear_x", "shear_y"], |seed| {
        let [right, below] = places(toml, seed, [RIGHT, BELOW]);
        let angle = |moved: f64| (-moved / 50.0).atan().to_degrees();
        [angle(below[0] - 80.0), angle(right[1] - 50.0)]
    });
    assert_as_torchvision(call, &drawn);
}

#[test]
fn perspectives_draw_their_corners() {
    let (right, bottom) = (WIDTH as f32 - 1.0, HEIGHT as f32 - 1.0);
    let corners = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
    let names = [
        "top_left_x",
        "top_left_y",
        "top_right_x",
        "top_right_y",
        "bottom_right_x",
        "bottom_right_y",
        "bottom_left_x",
        "bottom_left_y",
    ];
    let drawn = gathered(names, |seed| {
        let moved = places("op = \"random_perspective\"\ndistortion_scale = 0.4\np = 1", seed, corners);
        let offsets = moved.into_iter().zip(corners).flat_map(|(moved, corner)| {
            moved.into_iter().zip(corner).map(|(moved, corner)| (moved - f64::from(corner)).abs().round())
        });
        offsets.collect::<Vec<_>>().try_into().unwrap()
    });
    assert_as_torchvision("RandomPerspective(0.4, p=1)", &drawn);
    let still = (0..1000).filter(|&seed| places("op = \"random_perspective\"\np = 0.3", seed, corners)[1][0] > 158.9);
    // Of those that are moved, one in 41 has this corner where it was along x.
    let share = still.count() as f64 / 1000.0;
    assert!((share - 0.7 - 0.3 / 41.0).abs() < 0.05, "{share}");
}

#[test]
fn resized_crops_draw_their_rectangle() {
    let toml = "op = \"random_resized_crop\"\nsize = 8";
    for (call, more) in [
        ("RandomResizedCrop(8)", ""),
        ("RandomResizedCrop(8, scale=(0.1, 0.5), ratio=(0.5, 3))", "\nscale = [0.1, 0.5]\nratio = [0.5, 3]"),
    ] {
        let drawn = gathered(["left", "top", "width", "height"], |seed| {
            let ends = places(&format!("{toml}{more}"), seed, [[0.0, 0.0], [WIDTH as f32, HEIGHT as f32]]);
            let width = 8.0 * WIDTH as f64 / (ends[1][0] - ends[0][0]);
            let height = 8.0 * HEIGHT as f64 / (ends[1][1] - ends[0][1]);
            [-ends[0][0] * width / 8.0, -ends[0][1] * height / 8.0, width, height].map(f64::round)
        });
        assert_as_torchvision(call, &drawn);
    }
}

/// Left, top, right and bottom of the pixels that are `true`; `None` if none is.
fn rectangle(pixels: impl Iterator<Item = bool>) -> Option<[f64; 4]> {
    let found: Vec<(usize, usize)> =
        pixels.enumerate().filter(|(_, found)| *found).map(|(pixel, _)| (pixel % WIDTH, pixel / WIDTH)).collect();
    let (left, right) = (found.iter().map(|place| place.0).min()?, found.iter().map(|place| place.0).max()?);
    let (top, bottom) = (found.iter().map(|place| place.1).min()?, found.iter().map(|place| place.1).max()?);
    assert_eq!(found.len(), (right + 1 - left) * (bottom + 1 - top), "a rectangle");
    Some([left, top, right + 1, bottom + 1].map(|edge| edge as f64))
}

#[test]
fn erasing_draws_its_rectangle() {
    let input = picture(HEIGHT, WIDTH, 1, |_, _, _| 200);
    let drawn = gathered(["left", "top", "width", "height"], |seed| {
        let out = run_seeded("op = \"random_erasing\"\np = 1", input.clone(), seed);
        let [left, top, right, bottom] = rectangle(out.data().iter().map(|value| *value == 0)).unwrap();
        [left, top, right - left, bottom - top]
    });
    assert_as_torchvision("RandomErasing(p=1)", &drawn);
}

/// Mixes a batch of a black and a white picture: the black one, and how much of its own label it keeps.
fn mixed(toml: &str, seed: u64) -> (Vec<u8>, f64) {
    let Action::BatchTransform(mix) = step(toml).action else { panic!("{toml}") };
    let mut pixels = [vec![0; HEIGHT * WIDTH], vec![255; HEIGHT * WIDTH]].concat();
    let mut labels: Vec<u8> = [1_f32, 0.0, 0.0, 1.0].iter().flat_map(|share| share.to_le_bytes()).collect();
    let mut columns = [
        BatchColumn { spec: TensorSpec::new(DType::U8, &[HEIGHT, WIDTH, 1]), data: &mut pixels },
        BatchColumn { spec: TensorSpec::new(DType::F32, &[2]), data: &mut labels },
    ];
    mix.run(&mut columns, &mut Random::from_parts(&[seed, 77]));
    pixels.truncate(HEIGHT * WIDTH);
    (pixels, f64::from(f32::from_le_bytes([labels[0], labels[1], labels[2], labels[3]])))
}

#[test]
fn batches_draw_rectangles_and_shares() {
    for alpha in ["1.0", "0.4"] {
        let toml = format!("op = \"cutmix\"\nalpha = {alpha}");
        let draws: Vec<(Vec<u8>, f64)> = (0..DRAWS).map(|seed| mixed(&toml, seed)).collect();
        let pasted = draws.iter().filter_map(|(pixels, kept)| {
            let found = rectangle(pixels.iter().map(|value| *value == 255))?;
            let area = (found[2] - found[0]) * (found[3] - found[1]) / (WIDTH * HEIGHT) as f64;
            assert!((kept - (1.0 - area)).abs() < 1e-6, "labels are mixed by the area: {kept} {found:?}");
            Some(found)
        });
        let pasted: Vec<[f64; 4]> = pasted.collect();
        let edges = ["left", "top", "right", "bottom"].into_iter().enumerate();
        let mut numbers: Vec<(&str, Vec<f64>)> =
            edges.map(|(place, name)| (name, pasted.iter().map(|edges| edges[place]).collect())).collect();
        numbers.push(("kept", draws.iter().map(|(_, kept)| *kept).collect()));
        assert_as_torchvision(&format!("CutMix(alpha={alpha})"), &numbers);
    }
    let drawn = gathered(["kept"], |seed| [mixed("op = \"mixup\"\nalpha = 0.2", seed).1]);
    assert_as_torchvision("MixUp(alpha=0.2)", &drawn);
}

#[test]
fn crops_draw_their_place() {
    for (call, toml, padding) in [
        ("RandomCrop((40, 50))", "size = [40, 50]", 0.0),
        ("RandomCrop((100, 130), padding=12)", "size = [100, 130]\npadding = 12", 12.0),
    ] {
        let drawn = gathered(["left", "top"], |seed| {
            let [[x, y]] = places(&format!("op = \"random_crop\"\n{toml}"), seed, [[0.0, 0.0]]);
            [padding - x, padding - y]
        });
        assert_as_torchvision(call, &drawn);
    }
}

#[test]
fn masks_of_spectrograms_are_drawn_as_torchaudio_draws_them() {
    let (frames, bands) = (100, 40);
    let ones = Tensor::from_elements(&[frames, bands], &vec![1_f32; frames * bands]).unwrap();
    for (call, bands_max, p) in [
        ("SpecAugment(1, 30, 1, 10, zero_masking=True)", 10, 1.0),
        ("SpecAugment(1, 30, 1, 30, p=0.2, zero_masking=True)", 30, 0.2),
    ] {
        let toml = format!(
            "op = \"spec_augment\"\nn_time_masks = 1\ntime_mask_param = 30\nn_freq_masks = 1\n\
             freq_mask_param = {bands_max}\nzero_masking = true\np = {p:?}"
        );
        let mut drawn = ["frames", "frame", "bands", "band"].map(|name| (name, Vec::new()));
        for seed in 0..DRAWS {
            let out = floats(&run_seeded(&toml, ones.clone(), seed));
            let masked = |place: usize| out[place] == 0.0;
            let of_frames: Vec<usize> =
                (0..frames).filter(|frame| (0..bands).all(|band| masked(frame * bands + band))).collect();
            let of_bands: Vec<usize> =
                (0..bands).filter(|band| (0..frames).all(|frame| masked(frame * bands + band))).collect();
            for (place, found) in [of_frames, of_bands].into_iter().enumerate() {
                drawn[2 * place].1.push(found.len() as f64);
                drawn[2 * place + 1].1.extend(found.first().map(|first| *first as f64));
            }
        }
        assert_as_torchvision(call, &drawn);
    }
}

/// Ratios of signal to noise are spread evenly over their decibels, as audiomentations draws them.
#[test]
fn noise_draws_its_ratio() {
    let tone: Vec<f32> = (0..8000).map(|index| (index as f32 * 0.1).sin()).collect();
    let power = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>();
    let signal = power(&mut tone.iter().copied());
    let sound = Tensor::from_elements(&[tone.len()], &tone).unwrap();
    let toml = "op = \"add_gaussian_snr\"\np = 1\nmin_snr_db = 5\nmax_snr_db = 40";
    let ratio = |seed: u64| {
        let out = floats(&run_seeded(toml, sound.clone(), seed));
        10.0 * (signal / power(&mut out.iter().zip(&tone).map(|(out, tone)| out - tone))).log10()
    };
    crate::support::assert_even((0..1000).map(ratio).collect(), 5.0, 40.0);
}

#[test]
fn sizes_are_drawn_as_torchvision_draws_them() {
    for (call, toml) in [
        ("ScaleJitter((300, 200))", "op = \"scale_jitter\"\ntarget_size = [300, 200]"),
        (
            "ScaleJitter((64, 256), scale_range=(0.5, 1.5))",
            "op = \"scale_jitter\"\ntarget_size = [64, 256]\nscale_range = [0.5, 1.5]",
        ),
        (
            "RandomShortestSize([60, 75, 90, 130], max_size=180)",
            "op = \"random_shortest_size\"\nmin_size = [60, 75, 90, 130]\nmax_size = 180",
        ),
        ("RandomResize(60, 140)", "op = \"random_resize\"\nmin_size = 60\nmax_size = 140"),
    ] {
        let drawn = gathered(["width", "height"], |seed| {
            let [[width, height]] = places(toml, seed, [[WIDTH as f32, HEIGHT as f32]]);
            [width.round(), height.round()]
        });
        assert_as_torchvision(call, &drawn);
    }
}
