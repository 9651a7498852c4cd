//! Masks, boxes and key points go where the pixels of their image go.

use std::sync::Arc;

use forebay_codec::Tensor;
use forebay_pipeline::steps::{Augment, PixelOp};
use forebay_pipeline::{Action, Field, Pipeline, RngKey, Sample, Value};

use crate::augmentations::{Fixed, colorful, golden_picture, run_together, warp};
use crate::support::{assert_even, floats, picture, run, run_all, run_seeded, sample, step};

/// A picture that has its mask's classes as colors, so that both can be compared after any chain of warps.
fn run_same(toml: &str, seed: u64) -> (Tensor, Tensor, Vec<f32>, Vec<f32>) {
    let class = |row: usize, column: usize| (1 + row * 16 + column) as u8;
    let image = picture(12, 15, 1, |row, column, _| class(row, column));
    let classes: Vec<u8> = (0..12 * 15).map(|pixel| class(pixel / 15, pixel % 15)).collect();
    let mask = Tensor::from_elements(&[12, 15], &classes).unwrap();
    let boxes = Tensor::from_elements(&[1, 4], &[4_f32, 3.0, 8.0, 9.0]).unwrap();
    let points = Tensor::from_elements(&[1, 2], &[6.5_f32, 5.5]).unwrap();
    let fields = [("image", image), ("mask", mask), ("boxes", boxes), ("points", points)];
    let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
    let mut step = step(toml);
    step.fields = ["image", "mask", "boxes", "points"].map(str::to_owned).to_vec();
    let sample = Sample { key: "a".into(), index: 5, fields };
    let mut out = run_all(&[step], &sample, RngKey { seed, epoch: 0 });
    let tensors = out.swap_remove(0).fields.into_iter().map(|field| match field.value {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    });
    let [image, mask, boxes, points] = tensors.collect::<Vec<_>>().try_into().unwrap();
    (image, mask, floats(&boxes), floats(&points))
}

/// Masks, boxes and key points go where the warps of a policy take the pixels, also from within other steps.
#[test]
fn masks_boxes_and_key_points_follow_policies() {
    // What happens to a picture beside its warps changes values, so the mask is compared where they came from.
    let policies = [
        "op = \"rand_augment\"\nnum_ops = 3\nmask_fill = 255",
        "op = \"trivial_augment_wide\"\nmask_fill = 255",
        "op = \"auto_augment\"\npolicy = \"svhn\"\nmask_fill = 255",
        "op = \"random_apply\"\np = 1\nsteps = [{ op = \"rand_augment\", mask_fill = 255 }]",
        "op = \"random_choice\"\nsteps = [{ op = \"rand_augment\", mask_fill = 255 }, \
         { op = \"random_affine\", degrees = 20, mask_fill = 255 }]",
    ];
    for toml in policies {
        let (mut moved, mut compared) = (0, 0);
        for seed in 0..200 {
            let (image, mask, boxes, points) = run_same(toml, seed);
            let (x, y) = (points[0], points[1]);
            // The class under the point is the one that it was on, unless the point lies at an edge between two pixels.
            if (0.0..15.0).contains(&x) && (0.0..12.0).contains(&y) {
                let class = mask.data()[y as usize * 15 + x as usize];
                let (row, column) = (usize::from(class.wrapping_sub(1)) / 16, usize::from(class.wrapping_sub(1)) % 16);
                assert!(row.abs_diff(5) <= 2 && column.abs_diff(6) <= 2, "{toml} {seed}: {class} at {x} {y}");
                let inside = boxes.len() == 4 && boxes[0] <= x && x <= boxes[2] && boxes[1] <= y && y <= boxes[3];
                assert!(inside, "{toml} {seed}: {x} {y} in {boxes:?}");
            }
            if mask.data()[..] == run_same("op = \"random_affine\"\ndegrees = 0", seed).1.data()[..] {
                continue;
            }
            moved += 1;
            // Where no color was changed, image and mask have the same classes wherever the image has any.
            let pairs = || image.data().iter().zip(mask.data().iter());
            if pairs().filter(|(pixel, _)| **pixel != 0).all(|(pixel, class)| pixel == class) {
                assert!(pairs().all(|(pixel, class)| *pixel != 0 || *class == 255), "{toml} {seed}");
                compared += 1;
            }
        }
        assert!(moved > 40 && compared > 20, "{toml}: {moved} moved, {compared} compared");
    }
}

/// A pipeline with an image, a mask and boxes, and one more step.
fn with_riders(step: &str) -> Result<Pipeline, String> {
    let toml = format!(
        "name = \"x\"\n[source]\nfields = [{{ field = \"mask\", from = \"{{stem}}.png\" }}, \
         {{ field = \"boxes\", from = \"{{stem}}.npy\" }}]\n[[step]]\nop = \"decode\"\n\
         [[step]]\nop = \"decode_mask\"\nfields = [\"mask\"]\n[[step]]\nop = \"decode_npy\"\nfields = [\"boxes\"]\nstage = \"read\"\ntype = \"float32[?, 4]\"\n\
         [[step]]\n{step}\n"
    );
    Pipeline::from_toml("x", &toml).map_err(|error| error.to_string())
}

/// What moves pixels must not leave masks, boxes and key points where they were without a word.
#[test]
fn what_cannot_follow_is_refused() {
    for op in [
        "op = \"rand_augment\"",
        "op = \"trivial_augment_wide\"",
        "op = \"auto_augment\"",
        "op = \"five_crop\"\nsize = 8",
        "op = \"ten_crop\"\nsize = 8",
        "op = \"tiles\"\nsize = 8",
        "op = \"random_apply\"\nsteps = [{ op = \"rand_augment\" }]",
    ] {
        let refused = with_riders(op).unwrap_err();
        assert!(refused.contains("mask") && refused.contains("add it to the step's `fields`"), "{refused}");
        let refused = with_riders(&format!("{op}\nfields = [\"image\", \"mask\"]")).unwrap_err();
        assert!(refused.contains("boxes"), "{refused}");
        let refused = with_riders(&format!("{op}\nfields = [\"mask\", \"image\", \"boxes\"]")).unwrap_err();
        assert!(refused.contains("the image that the mask is on first in `fields`"), "{refused}");
        with_riders(&format!("{op}\nfields = [\"image\", \"mask\", \"boxes\"]")).unwrap();
    }
    let refused = with_riders("op = \"aug_mix\"").unwrap_err();
    assert!(refused.contains("aug_mix") && refused.contains("cannot follow a mixture"), "{refused}");
    with_riders("op = \"color_jitter\"").unwrap();
}

#[test]
fn masks_boxes_and_key_points_are_cut_into_crops_and_tiles() {
    let rows = |toml: &str, place: usize| -> (Vec<u8>, Vec<u8>, Vec<f32>, Vec<f32>) {
        let classes: Vec<u8> = (0..6 * 8).map(|pixel| (pixel / 8 * 10 + pixel % 8) as u8).collect();
        let image = Tensor::from_elements(&[6, 8, 1], &classes).unwrap();
        let mask = Tensor::from_elements(&[6, 8], &classes).unwrap();
        let boxes = Tensor::from_elements(&[1, 5], &[1_f32, 1.0, 7.0, 3.0, 9.0]).unwrap();
        let points = Tensor::from_elements(&[1, 3], &[1.5_f32, 1.5, 2.0]).unwrap();
        let fields = [("image", image), ("mask", mask), ("boxes", boxes), ("points", points)];
        let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
        let mut step = step(toml);
        step.fields = ["image", "mask", "boxes", "points"].map(str::to_owned).to_vec();
        let out = run_all(&[step], &Sample { key: "a".into(), index: 5, fields }, RngKey::default());
        let tensor = |name: &str| match out[place].field(name) {
            Some(Value::Tensor(tensor)) => tensor.clone(),
            other => panic!("{other:?}"),
        };
        let bytes = |name: &str| tensor(name).data().to_vec();
        (bytes("image"), bytes("mask"), floats(&tensor("boxes")), floats(&tensor("points")))
    };
    let ten = "op = \"ten_crop\"\nsize = [3, 4]";
    for place in 0..10 {
        let (image, mask, ..) = rows(ten, place);
        assert_eq!(image, mask, "{place}");
    }
    let (_, _, boxes, points) = rows(ten, 0);
    assert_eq!((boxes, points), (vec![1.0, 1.0, 4.0, 3.0, 9.0], vec![1.5, 1.5, 2.0]));
    // The upper right corner, mirrored: the box goes from its right edge to column 3, and the point is gone.
    let (_, _, boxes, points) = rows(ten, 5);
    assert_eq!((boxes, points), (vec![1.0, 1.0, 4.0, 3.0, 9.0], vec![0.0; 3]));
    let (_, _, boxes, _) = rows(&format!("{ten}\nvertical_flip = true"), 7);
    assert_eq!(boxes, [1.0, 0.0, 4.0, 2.0, 9.0]);
    let (image, mask, boxes, points) = rows("op = \"tiles\"\nsize = 2", 1);
    assert_eq!((image, mask), (vec![2, 3, 12, 13], vec![2, 3, 12, 13]));
    assert_eq!((boxes, points), (vec![0.0, 1.0, 2.0, 2.0, 9.0], vec![0.0; 3]));
}

#[test]
fn boxes_are_hulls_of_what_they_become() {
    // A quarter turn counterclockwise about the middle of 18 × 14: (x, y) becomes (y + 2, 16 - x).
    let (_, _, boxes) = run_together("op = \"random_rotation\"\ndegrees = [90, 90]", 0);
    let expected = [5.0, 8.0, 11.0, 14.0, 7.0, 3.0, 0.0, 16.0, 6.0, 8.0];
    assert!(boxes.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-4), "{boxes:?}");
    let (_, mask, _) = run_together("op = \"random_rotation\"\ndegrees = [90, 90]\nmask_fill = 255", 0);
    assert_eq!((mask.data()[0], mask.data()[2], mask.data()[13 * 18 + 2]), (255, 15, 2));
}

#[test]
fn five_and_ten_crops_are_corners_and_middle() {
    let input = picture(6, 8, 1, |row, column, _| (row * 10 + column) as u8);
    let crops = |toml: &str| -> Vec<(String, Vec<u8>)> {
        let out = run_all(&[step(toml)], &sample(Value::Tensor(input.clone())), RngKey::default());
        let part = |sample: Sample| match &sample.fields[0].value {
            Value::Tensor(tensor) => (sample.key.to_string(), tensor.data().to_vec()),
            other => panic!("{other:?}"),
        };
        out.into_iter().map(part).collect()
    };
    let five = crops("op = \"five_crop\"\nsize = 2");
    let firsts: Vec<u8> = five.iter().map(|(_, pixels)| pixels[0]).collect();
    assert_eq!((firsts, five[4].0.as_str()), (vec![0, 6, 40, 46, 23], "a#4"));
    let ten = crops("op = \"ten_crop\"\nsize = 2");
    assert_eq!((ten.len(), ten[..5] == five[..], ten[5].1.clone()), (10, true, vec![7, 6, 17, 16]));
    assert_eq!(ten[6].1, [1, 0, 11, 10], "the mirrored picture's right side is the left one");
    let ten = crops("op = \"ten_crop\"\nsize = 2\nvertical_flip = true");
    assert_eq!(ten[9].1, [33, 34, 23, 24]);
}

#[test]
fn key_points_follow() {
    let points = |toml: &str, columns: usize, rows: &[f32]| -> Vec<f32> {
        let tensor = Tensor::from_elements(&[rows.len() / columns, columns], rows).unwrap();
        let fields = [("image", colorful(14, 18, 3)), ("points", tensor)];
        let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
        let mut step = step(toml);
        step.fields = ["image", "points"].map(str::to_owned).to_vec();
        let out = run_all(&[step], &Sample { key: "a".into(), index: 5, fields }, RngKey::default());
        match out[0].field("points") {
            Some(Value::Tensor(tensor)) => floats(tensor),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(points("op = \"random_horizontal_flip\"\np = 1", 2, &[1.0, 2.0, 18.0, 0.0]), [17.0, 2.0, 0.0, 0.0]);
    let rows = [3.0, 4.0, 2.0, 16.0, 4.0, 1.0, 0.0, 0.0, 0.0];
    // The middle begins at (4, 2): both are outside of it.
    assert_eq!(points("op = \"center_crop\"\nsize = 10", 3, &rows), [0.0; 9]);
    assert_eq!(points("op = \"center_crop\"\nsize = [10, 18]", 3, &rows)[..6], [3.0, 2.0, 2.0, 16.0, 2.0, 1.0]);
    assert_eq!(points("op = \"pad\"\npadding = [1, 2]", 3, &rows), [4.0, 6.0, 2.0, 17.0, 6.0, 1.0, 0.0, 0.0, 0.0]);
}

/// A line of `keypoints.txt` or `boxes.txt` as a step.
fn moving_step(line: &str) -> forebay_pipeline::Step {
    let table: toml::Table = toml::from_str(&format!("step = {{ {line} }}")).unwrap();
    let line = &table["step"];
    if line.get("op").is_some() {
        return step(&toml::to_string(line).unwrap());
    }
    if let Some(degrees) = line.get("rotation") {
        return step(&format!("op = \"random_rotation\"\ndegrees = [{degrees}, {degrees}]"));
    }
    let mut line = line.clone();
    line.as_table_mut().unwrap().insert("interpolation".to_owned(), "nearest".into());
    let mut step = step("op = \"random_invert\"");
    step.action = Action::Transform(Arc::new(Augment::new(Fixed(PixelOp::Warp(warp(&line).unwrap())))));
    step
}

/// Boxes become what torchvision makes of them, but for those that it leaves with less than a pixel.
#[test]
fn boxes_go_where_torchvision_takes_them() {
    let given = [3.0, 4.0, 9.0, 8.5, 10.0, 2.0, 18.0, 15.0, 0.0, 0.0, 4.0, 3.0, 12.25, 7.5, 15.5, 12.0_f32];
    let mut cases = 0;
    for line in include_str!("../golden/boxes.txt").lines() {
        let mut columns = line.split('\t');
        let mut moving = moving_step(columns.next().unwrap());
        let call = columns.next().unwrap();
        moving.fields = ["image", "boxes"].map(str::to_owned).to_vec();
        let boxes = Tensor::from_elements(&[4, 4], &given).unwrap();
        let fields = [("image", golden_picture(3)), ("boxes", boxes)];
        let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
        let out = run_all(&[moving], &Sample { key: "a".into(), index: 5, fields }, RngKey::default());
        let Some(Value::Tensor(boxes)) = out[0].field("boxes") else { panic!("{call}") };
        let theirs: Vec<f32> = columns.map(|number| number.parse().unwrap()).collect();
        let whole = |edges: &&[f32]| edges[2] - edges[0] >= 1.0 && edges[3] - edges[1] >= 1.0;
        let expected: Vec<f32> = theirs.chunks(4).filter(whole).flatten().copied().collect();
        let ours = floats(boxes);
        let furthest = ours.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(ours.len() == expected.len() && furthest < 1e-3, "{call}: {ours:?}, not {expected:?}");
        cases += 1;
    }
    assert_eq!(cases, 15);
}

/// Key points go where torchvision takes them, by rotations, affine maps and perspectives.
#[test]
fn key_points_go_where_torchvision_takes_them() {
    let given = [3.0, 4.0, 10.0, 8.5, 12.25, 7.5, 15.5, 12.0, 8.0, 3.5_f32];
    let mut cases = 0;
    for line in include_str!("../golden/keypoints.txt").lines() {
        let mut columns = line.split('\t');
        let mut moving = moving_step(columns.next().unwrap());
        let call = columns.next().unwrap();
        moving.fields = ["image", "points"].map(str::to_owned).to_vec();
        let points = Tensor::from_elements(&[5, 2], &given).unwrap();
        let fields = [("image", golden_picture(3)), ("points", points)];
        let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
        let out = run_all(&[moving], &Sample { key: "a".into(), index: 5, fields }, RngKey::default());
        let Some(Value::Tensor(points)) = out[0].field("points") else { panic!("{call}") };
        let expected: Vec<f32> = columns.map(|number| number.parse().unwrap()).collect();
        let ours = floats(points);
        let furthest = ours.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(ours.len() == expected.len() && furthest < 1e-3, "{call}: {ours:?}, not {expected:?}");
        cases += 1;
    }
    assert_eq!(cases, 7);
}

#[test]
fn boxes_and_key_points_need_their_image_first() {
    for (columns, what) in [(4, "boxes"), (3, "key points")] {
        let toml = format!(
            "name = \"x\"\n[source]\nfields = [{{ field = \"found\", from = \"{{stem}}.npy\" }}]\n\
             [[step]]\nop = \"decode\"\n[[step]]\nop = \"decode_npy\"\nfields = [\"found\"]\nstage = \"read\"\ntype = \"float32[?, {columns}]\"\n\
             [[step]]\nop = \"random_rotation\"\ndegrees = 5\nfields = [\"found\", \"image\"]\n"
        );
        let refused = Pipeline::from_toml("x", &toml).unwrap_err().to_string();
        assert!(refused.contains(&format!("needs the image that the {what} are on first in `fields`")), "{refused}");
        let fields = toml.replace("[\"found\", \"image\"]", "[\"image\", \"found\"]");
        Pipeline::from_toml("x", &fields).unwrap();
    }
}

#[test]
fn what_cannot_be_within_a_step_is_refused() {
    let refused = |steps: &str| {
        let toml = format!("name = \"x\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"random_apply\"\nsteps = {steps}");
        Pipeline::from_toml("x", &toml).unwrap_err().to_string()
    };
    assert!(refused("[{ op = \"tiles\", size = 4 }]").contains("`tiles` cannot be in `steps`"));
    assert!(refused("[{ op = \"random_invert\", fields = [\"a\"] }]").contains("has `fields`"));
    assert!(refused("[{ op = \"random_crop\", size = 4 }]").contains("give what they get"));
    assert!(refused("[{ op = \"random_invert\", q = 4 }]").contains("unknown field `q`"));
    assert!(refused("[]").contains("at least one step"));
}

/// What steps make of a picture of this height and width, with a mask of 3s, boxes and one key point.
fn resized(toml: &str, [height, width]: [usize; 2], seed: u64) -> ([usize; 2], Tensor, Vec<f32>, Vec<f32>) {
    let mask = Tensor::from_elements(&[height, width], &vec![3_u8; height * width]).unwrap();
    let boxes = Tensor::from_elements(&[1, 5], &[0_f32, 0.0, width as f32, height as f32, 1.0]).unwrap();
    let points = Tensor::from_elements(&[1, 2], &[width as f32 / 2.0, height as f32 / 2.0]).unwrap();
    let fields = [("image", colorful(height, width, 3)), ("mask", mask), ("boxes", boxes), ("points", points)];
    let fields = fields.map(|(name, tensor)| Field { name: name.into(), value: Value::Tensor(tensor) }).to_vec();
    let mut step = step(toml);
    step.fields = ["image", "mask", "boxes", "points"].map(str::to_owned).to_vec();
    let out = run_all(&[step], &Sample { key: "a".into(), index: 5, fields }, RngKey { seed, epoch: 0 }).remove(0);
    let [image, mask, boxes, points] = ["image", "mask", "boxes", "points"].map(|name| match out.field(name) {
        Some(Value::Tensor(tensor)) => tensor.clone(),
        other => panic!("{other:?}"),
    });
    let &[height, width, 3] = image.spec().shape.dims() else { panic!("{:?}", image.spec()) };
    assert_eq!(mask.spec().shape.dims(), [height, width], "{toml}: the mask follows");
    ([height, width], mask, floats(&boxes), floats(&points))
}

/// Sizes are drawn as `v2.ScaleJitter`, `v2.RandomShortestSize` and `v2.RandomResize` draw them; masks, boxes and key points follow.
#[test]
fn sizes_are_drawn_and_all_that_is_in_a_picture_follows() {
    let sizes = |toml: &str, size: [usize; 2]| -> Vec<[usize; 2]> {
        let draws = (0..400).map(|seed| {
            let ([height, width], _, boxes, points) = resized(toml, size, seed);
            let near = |found: &[f32], expected: &[f32]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3);
            let (right, bottom) = (width as f32, height as f32);
            assert!(near(&boxes, &[0.0, 0.0, right, bottom, 1.0]) && boxes.len() == 5, "{toml}: {boxes:?}");
            assert!(near(&points, &[right / 2.0, bottom / 2.0]), "{toml}: {points:?}");
            [height, width]
        });
        draws.collect()
    };
    // 24 x 36 fits into 48 x 60 one and two thirds as large.
    let drawn = sizes("op = \"scale_jitter\"\ntarget_size = [60, 48]\nscale_range = [0.5, 2.0]", [24, 36]);
    let scales: Vec<f64> = drawn.iter().map(|[_, width]| (*width as f64 + 0.5) / 60.0).collect();
    assert_even(scales, 0.5, 2.0);
    assert!(drawn.iter().all(|[height, width]| (*height as f64 - *width as f64 / 1.5).abs() <= 1.0));

    let drawn = sizes("op = \"random_shortest_size\"\nmin_size = [12, 20, 31]\nmax_size = 40", [24, 36]);
    // 31 would make the longer side 46: as long as it may become, it leaves 26 (26.67, rounded down).
    for expected in [[12, 18], [20, 30], [26, 40]] {
        let count = drawn.iter().filter(|size| **size == expected).count();
        assert!((90..180).contains(&count), "{expected:?}: {count} of 400: {drawn:?}");
    }
    assert_eq!(sizes("op = \"random_shortest_size\"\nmin_size = 12", [24, 37])[0], [12, 18]);

    let drawn = sizes("op = \"random_resize\"\nmin_size = 10\nmax_size = 20", [24, 36]);
    let lengths: std::collections::BTreeSet<usize> = drawn.iter().map(|[height, _]| *height).collect();
    assert!(lengths.into_iter().eq(10..20), "the most is not reached, as in torchvision");
    assert!(drawn.iter().all(|[height, width]| *width == height * 3 / 2));
}

/// `pad_if_needed` gives each side as much margin as is lacking, and the picture lies anywhere in the crop.
#[test]
fn crops_of_small_pictures_are_padded_if_needed() {
    let toml = "op = \"random_crop\"\nsize = [10, 12]\npad_if_needed = true\nfill = [1, 2, 3]\nmask_fill = 255";
    let mut places = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let ([height, width], mask, boxes, _) = resized(toml, [8, 9], seed);
        assert_eq!([height, width], [10, 12]);
        let [left, top, right, bottom] = [boxes[0], boxes[1], boxes[2], boxes[3]].map(|edge| edge as usize);
        assert_eq!([right - left, bottom - top], [9, 8], "all of it is in the crop");
        for (pixel, class) in mask.data().iter().enumerate() {
            let inside = (left..right).contains(&(pixel % 12)) && (top..bottom).contains(&(pixel / 12));
            assert_eq!(*class, if inside { 3 } else { 255 });
        }
        places.insert((left, top));
    }
    assert_eq!(places.len(), 4 * 3, "{places:?}");
    let image = run_seeded(toml, colorful(8, 9, 3), 3);
    assert!(image.data().as_chunks::<3>().0.iter().filter(|pixel| **pixel == [1, 2, 3]).count() >= 120 - 72);
    // A picture that is large enough in one direction is cut in that one.
    let (size, mask, ..) = resized(toml, [30, 5], 1);
    let inside = mask.data().iter().map(|class| usize::from(*class == 3)).sum::<usize>();
    assert_eq!((size, inside), ([10, 12], 50));
}

#[test]
fn values_are_looked_up() {
    let toml = "op = \"lookup_table\"\nkeys = [7, 26, 8]\nvalues = [0, 13, 1]\ndefault_value = 255";
    let mask = Tensor::from_elements(&[2, 3], &[7_u8, 26, 0, 8, 7, 200]).unwrap();
    assert_eq!(run(toml, mask).data()[..], [0, 13, 255, 1, 0, 255]);
    let deep = Tensor::from_elements(&[1, 3], &[7_u16, 30_000, 26]).unwrap();
    let looked_up = run(&toml.replace("26,", "30000,").replace("13", "999"), deep);
    assert_eq!(looked_up.view().elements_or_copy::<u16>(&mut Vec::new()).unwrap(), [0, 999, 255]);
    let refused = |toml: &str| {
        let toml = format!("name = \"x\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"lookup_table\"\n{toml}");
        Pipeline::from_toml("x", &toml).unwrap_err().to_string()
    };
    assert!(refused("keys = [1, 2]\nvalues = [1]").contains("as many as `keys`"));
    assert!(refused("keys = [1, 1]\nvalues = [1, 2]").contains("each of them once"));
    assert!(refused("keys = [1]\nvalues = [300]").contains("uint16, which 300 fits in"));
}
