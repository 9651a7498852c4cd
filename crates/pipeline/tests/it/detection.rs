//! The steps of SSD's recipe: crops that look at boxes, zooming out, photometric distortion.

use std::sync::LazyLock;

use forebay_codec::Tensor;
use forebay_pipeline::steps::{Augmentation, PixelOp, RandomPhotometricDistort};
use forebay_pipeline::{Field, Pipeline, Random, RngKey, Sample, Value};

use crate::support::{assert_drawn_as, floats, picture, run_all, step};

const HEIGHT: usize = 100;
const WIDTH: usize = 160;
const DRAWS: u64 = 3000;

/// Those of `golden/detection.py`, each with its number.
const BOXES: [[f32; 5]; 3] =
    [[20.0, 30.0, 70.0, 90.0, 0.0], [100.0, 10.0, 150.0, 60.0, 1.0], [60.0, 40.0, 80.0, 60.0, 2.0]];

/// Image, mask, boxes and key points, as one draw of a step leaves them.
struct Moved {
    /// Row and column of where each pixel comes from, and 200 where there is one: 255, 255 and 255 elsewhere.
    image: Tensor,
    mask: Tensor,
    boxes: Vec<f32>,
    points: Vec<f32>,
}

/// A picture whose pixels say where they are, and a mask whose classes do.
static GIVEN: LazyLock<(Tensor, Tensor)> = LazyLock::new(|| {
    let image = picture(HEIGHT, WIDTH, 3, |row, column, channel| [row as u8, column as u8, 200][channel]);
    let classes: Vec<u8> = (0..HEIGHT * WIDTH).map(|pixel| (pixel % WIDTH) as u8).collect();
    (image, Tensor::from_elements(&[HEIGHT, WIDTH], &classes).unwrap())
});

/// What a step makes of them.
fn moved(toml: &str, boxes: &[[f32; 5]], seed: u64) -> Moved {
    let (image, mask) = GIVEN.clone();
    let boxes = Tensor::from_elements(&[boxes.len(), 5], boxes.as_flattened()).unwrap();
    let points = Tensor::from_elements(&[1, 2], &[0_f32, 0.0]).unwrap();
    let fields = [("image", image), ("mask", mask), ("boxes", boxes), ("points", points)];
    let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
    let mut step = step(toml);
    step.fields = ["image", "mask", "boxes", "points"].map(str::to_owned).to_vec();
    let out = run_all(&[step], &Sample { key: "a".into(), index: 5, fields }, RngKey { seed, epoch: 0 }).remove(0);
    let [image, mask, boxes, points] = ["image", "mask", "boxes", "points"].map(|name| match out.field(name) {
        Some(Value::Tensor(tensor)) => tensor.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(image.spec().shape.dims()[..2], *mask.spec().shape.dims(), "{toml}");
    Moved { image, mask, boxes: floats(&boxes), points: floats(&points) }
}

impl Moved {
    /// Height and width.
    fn size(&self) -> [usize; 2] {
        [self.image.spec().shape.dims()[0], self.image.spec().shape.dims()[1]]
    }

    /// The pixel there, and the class.
    fn at(&self, row: usize, column: usize) -> ([u8; 3], u8) {
        let pixel = row * self.size()[1] + column;
        (self.image.data().as_chunks().0[pixel], self.mask.data()[pixel])
    }
}

/// Compares numbers of each name with all that the golden file has for this call.
fn assert_as_torchvision(call: &str, drawn: &[(&str, Vec<f64>)]) {
    assert_drawn_as(include_str!("../golden/detection.txt"), call, drawn);
}

#[test]
fn crops_by_boxes_are_drawn_as_torchvision_draws_them() {
    let second = "min_scale = 0.2\nmax_scale = 0.8\nmin_aspect_ratio = 0.4\nmax_aspect_ratio = 2.5\n\
                  sampler_options = [0.3, 0.6, 1.5]\ntrials = 10";
    for (call, more) in [("RandomIoUCrop()", ""), ("RandomIoUCrop(0.2, 0.8, 0.4, 2.5, [0.3, 0.6, 1.5], 10)", second)] {
        let mut drawn = ["cropped", "boxes", "left", "top", "width", "height"].map(|name| (name, Vec::new()));
        for seed in 0..DRAWS {
            let moved = moved(&format!("op = \"random_iou_crop\"\n{more}"), &BOXES, seed);
            let [height, width] = moved.size();
            let ([top, left, _], _) = moved.at(0, 0);
            let kept = moved.boxes.len() / 5;
            if [height, width] == [HEIGHT, WIDTH] {
                drawn[0].1.push(0.0);
                continue;
            }
            let found = [1, kept, usize::from(left), usize::from(top), width, height];
            drawn.iter_mut().zip(found).for_each(|((_, numbers), found)| numbers.push(found as f64));
        }
        assert_as_torchvision(call, &drawn);
    }
}

#[test]
fn a_crop_by_boxes_takes_along_what_is_in_it() {
    let mut cut = 0;
    for seed in 0..500 {
        let moved = moved("op = \"random_iou_crop\"", &BOXES, seed);
        let [height, width] = moved.size();
        let ([top, left, _], _) = moved.at(0, 0);
        let (left, top) = (f32::from(left), f32::from(top));
        for (row, column) in [(0, 0), (height - 1, 0), (height / 2, width - 1), (height - 1, width - 1)] {
            let expected = [(top as usize + row) as u8, (left as usize + column) as u8, 200];
            assert_eq!(moved.at(row, column), (expected, expected[1]), "{seed}");
        }
        assert_eq!(moved.points, [-left, -top]);
        if [height, width] == [HEIGHT, WIDTH] {
            assert_eq!(moved.boxes, BOXES.as_flattened());
            continue;
        }
        cut += 1;
        let (right, bottom) = (left + width as f32, top + height as f32);
        let mut expected = Vec::new();
        for [x0, y0, x1, y1, number] in BOXES {
            let (x, y) = (f32::midpoint(x0, x1), f32::midpoint(y0, y1));
            let has_middle = left < x && x < right && top < y && y < bottom;
            let row = [x0.max(left) - left, y0.max(top) - top, x1.min(right) - left, y1.min(bottom) - top, number];
            // A box with less than a pixel left goes, as by every crop.
            if has_middle && row[2] - row[0] >= 1.0 && row[3] - row[1] >= 1.0 {
                expected.extend(row);
            }
        }
        assert_eq!(moved.boxes, expected, "{seed}: {left} {top} {width} {height}");
        assert!(!moved.boxes.is_empty(), "{seed}");
    }
    assert!((300..480).contains(&cut), "{cut}");
}

/// Where no crop is good enough, or there is nothing to look at, the picture stays.
#[test]
fn a_picture_without_boxes_is_not_cut() {
    for seed in 0..20 {
        let without = moved("op = \"random_iou_crop\"", &[], seed);
        assert_eq!((without.size(), without.boxes.len()), ([HEIGHT, WIDTH], 0));
        let never = moved("op = \"random_iou_crop\"\nsampler_options = [0.99]", &BOXES, seed);
        assert_eq!((never.size(), never.boxes.len()), ([HEIGHT, WIDTH], 15));
    }
}

#[test]
fn pictures_are_zoomed_out_of_as_torchvision_draws_it() {
    for (call, more) in
        [("RandomZoomOut(p=1)", ""), ("RandomZoomOut(side_range=(1.5, 2.5), p=1)", "side_range = [1.5, 2.5]")]
    {
        let mut drawn = ["left", "top", "width", "height"].map(|name| (name, Vec::new()));
        for seed in 0..DRAWS {
            let toml = format!("op = \"random_zoom_out\"\np = 1\nfill = [255, 254, 253]\nmask_fill = 250\n{more}");
            let moved = moved(&toml, &BOXES, seed);
            let ([height, width], [left, top]) = (moved.size(), [moved.points[0], moved.points[1]]);
            let shifted = BOXES.map(|[x0, y0, x1, y1, number]| [x0 + left, y0 + top, x1 + left, y1 + top, number]);
            assert_eq!(moved.boxes, shifted.as_flattened());
            let (left, top) = (left as usize, top as usize);
            for (row, column) in [(0, 0), (height / 2, width / 2), (height - 1, width - 1), (top, left)] {
                let inside = (top..top + HEIGHT).contains(&row) && (left..left + WIDTH).contains(&column);
                let here = || ([(row - top) as u8, (column - left) as u8, 200], (column - left) as u8);
                let expected = if inside { here() } else { ([255, 254, 253], 250) };
                assert_eq!(moved.at(row, column), expected, "{row} {column}");
            }
            let found = [left, top, width, height];
            drawn.iter_mut().zip(found).for_each(|((_, numbers), found)| numbers.push(found as f64));
        }
        assert_as_torchvision(call, &drawn);
    }
    let still = (0..400).filter(|&seed| moved("op = \"random_zoom_out\"\np = 0.3", &BOXES, seed).size() == [100, 160]);
    let share = still.count() as f64 / 400.0;
    assert!((share - 0.7).abs() < 0.1, "{share}");
}

#[test]
fn photometric_distortion_is_drawn_as_torchvision_draws_it() {
    let other = RandomPhotometricDistort {
        brightness: [0.5, 0.9],
        contrast: [1.0, 2.0],
        saturation: [0.0, 0.5],
        hue: [-0.3, 0.1],
        p: 0.7,
    };
    for (call, step) in [
        ("RandomPhotometricDistort()", RandomPhotometricDistort::default()),
        ("RandomPhotometricDistort((0.5, 0.9), (1.0, 2.0), (0.0, 0.5), (-0.3, 0.1), 0.7)", other),
    ] {
        let names = ["brightness", "contrast", "saturation", "hue"];
        let has = ["has_brightness", "has_contrast", "has_saturation", "has_hue"];
        let (mut amounts, mut done) = (names.map(|name| (name, Vec::new())), has.map(|name| (name, Vec::new())));
        let (mut permuted, mut orders, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..DRAWS {
            let mut ops = Vec::new();
            step.draw((32, 32), &mut Random::from_parts(&[seed]), &mut ops);
            let place = |number: usize| {
                ops.iter().position(|op| {
                    let found = match op {
                        PixelOp::Brightness(_) => 0,
                        PixelOp::Contrast(_) => 1,
                        PixelOp::Saturation(_) => 2,
                        PixelOp::Hue(_) => 3,
                        _ => 4,
                    };
                    found == number
                })
            };
            for (number, (_, is_done)) in done.iter_mut().enumerate() {
                is_done.push(f64::from(u8::from(place(number).is_some())));
            }
            for op in &ops {
                match *op {
                    PixelOp::Brightness(amount) => amounts[0].1.push(f64::from(amount)),
                    PixelOp::Contrast(amount) => amounts[1].1.push(f64::from(amount)),
                    PixelOp::Saturation(amount) => amounts[2].1.push(f64::from(amount)),
                    PixelOp::Hue(amount) => amounts[3].1.push(f64::from(amount)),
                    PixelOp::Permute([first, second, _]) => orders.push(f64::from(3 * first + second)),
                    other => panic!("{other:?}"),
                }
            }
            permuted.push(f64::from(u8::from(place(4).is_some())));
            if let (Some(contrast), Some(hue)) = (place(1), place(3)) {
                first.push(f64::from(u8::from(contrast < hue)));
            }
            // Brightness comes first, the order of the channels last.
            assert!(place(0).is_none_or(|place| place == 0) && place(4).is_none_or(|place| place + 1 == ops.len()));
        }
        assert_as_torchvision(call, &amounts);
        assert_as_torchvision(call, &done);
        let more = [("permuted", permuted), ("permutation", orders), ("contrast_first", first)];
        assert_as_torchvision(call, &more);
    }
}

#[test]
fn what_the_recipe_needs_is_said() {
    let pipeline = |step: &str| {
        let toml = format!(
            "name = \"x\"\n[source]\nfields = [{{ field = \"boxes\", from = \"{{stem}}.npy\" }}]\n[[step]]\nop = \"decode\"\n\
             [[step]]\nop = \"decode_npy\"\nfields = [\"boxes\"]\nstage = \"read\"\ntype = \"float32[?, 4]\"\n[[step]]\n{step}\n"
        );
        Pipeline::from_toml("x", &toml).map_err(|error| error.to_string())
    };
    let refused = pipeline("op = \"random_iou_crop\"").unwrap_err();
    assert!(refused.contains("add it to the step's `fields`"), "{refused}");
    let refused = pipeline("op = \"random_iou_crop\"\nfields = [\"boxes\", \"image\"]").unwrap_err();
    assert!(refused.contains("an image [height, width, channels]"), "{refused}");
    let cropped = pipeline("op = \"random_iou_crop\"\nfields = [\"image\", \"boxes\"]").unwrap();
    assert!(cropped.output().to_string().contains("uint8[?, ?, 3]"), "{}", cropped.output());
    for (step, parameter) in [
        ("op = \"random_iou_crop\"\nmin_scale = 0", "min_scale"),
        ("op = \"random_iou_crop\"\nmax_scale = 1.5", "max_scale"),
        ("op = \"random_iou_crop\"\nsampler_options = []", "sampler_options"),
        ("op = \"random_iou_crop\"\ntrials = 0", "trials"),
        ("op = \"random_zoom_out\"\nside_range = [0.5, 2]", "side_range"),
        ("op = \"random_photometric_distort\"\nhue = [-0.6, 0]", "hue"),
        ("op = \"random_photometric_distort\"\ncontrast = [2, 1]", "contrast"),
    ] {
        let refused = pipeline(&format!("{step}\nfields = [\"image\", \"boxes\"]")).unwrap_err();
        assert!(refused.contains(&format!("`{parameter}`")), "{refused}");
    }
}
