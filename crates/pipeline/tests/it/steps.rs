//! Each step does what it says.

use forebay_codec::{DType, Tensor};
use proptest::prelude::*;

use crate::support::{difference_max, floats, picture, run, run_seeded};

#[test]
fn center_crop_takes_the_middle() {
    let input = picture(5, 7, 1, |row, column, _| (row * 10 + column) as u8);
    let out = run("op = \"center_crop\"\nsize = 3", input);
    assert_eq!(&out.data()[..], [12, 13, 14, 22, 23, 24, 32, 33, 34]);
}

#[test]
fn random_crop_is_a_part_and_reaches_every_rectangle() {
    let input = picture(4, 5, 1, |row, column, _| (row * 5 + column) as u8);
    let mut corners = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let out = run_seeded("op = \"random_crop\"\nsize = 3", input.clone(), seed);
        let first = out.data()[0];
        let expected: Vec<u8> = (0..9).map(|index| first + index / 3 * 5 + index % 3).collect();
        assert_eq!(&out.data()[..], expected);
        corners.insert(first);
    }
    assert_eq!(corners.len(), 6, "2 rows and 3 columns of corners");
}

#[test]
fn crops_are_square_or_as_high_and_wide_as_asked() {
    let input = picture(4, 6, 1, |row, column, _| (row * 10 + column) as u8);
    let out = run("op = \"center_crop\"\nsize = [2, 4]", input.clone());
    assert_eq!(out.spec().shape.dims(), [2, 4, 1]);
    assert_eq!(&out.data()[..], [11, 12, 13, 14, 21, 22, 23, 24]);
    let out = run("op = \"center_crop\"\nsize = 2", input);
    assert_eq!(&out.data()[..], [12, 13, 22, 23]);
}

/// As torchvision's: zeros around the picture, then a crop of all of it.
#[test]
fn a_padded_crop_has_zeros_outside() {
    let input = picture(2, 2, 1, |row, column, _| (1 + row * 2 + column) as u8);
    let out = run("op = \"center_crop\"\nsize = 4\npadding = 1", input.clone());
    assert_eq!(&out.data()[..], [0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0]);
    let padded = picture(8, 8, 1, |row, column, _| {
        let inside = |index: usize| index.checked_sub(3).filter(|&index| index < 2);
        inside(row).zip(inside(column)).map_or(0, |(row, column)| (1 + row * 2 + column) as u8)
    });
    let mut seen = std::collections::HashSet::new();
    for seed in 0..200 {
        let out = run_seeded("op = \"random_crop\"\nsize = [3, 2]\npadding = 3", input.clone(), seed);
        let found = (0..=5)
            .flat_map(|top| (0..=6).map(move |left| (top, left)))
            .find(|&(top, left)| (0..6).all(|at| out.data()[at] == padded.data()[(top + at / 2) * 8 + left + at % 2]));
        assert!(found.is_some(), "a part of the padded image: {:?}", out.data());
        seen.insert(out.data().to_vec());
    }
    assert!(seen.len() > 10, "{}", seen.len());
}

#[test]
fn a_flip_mirrors_about_half_of_the_time() {
    let input = picture(1, 3, 3, |_, column, channel| (column * 3 + channel) as u8);
    let flipped = (0..400)
        .filter(|&seed| {
            let out = run_seeded("op = \"random_horizontal_flip\"", input.clone(), seed);
            assert!(out == input || out.data()[..] == [6, 7, 8, 3, 4, 5, 0, 1, 2]);
            out != input
        })
        .count();
    assert!((150..250).contains(&flipped), "{flipped}");
}

#[test]
fn centering_and_normalizing_follow_their_formulas() {
    let input = picture(1, 2, 3, |_, column, channel| [0, 127, 255, 10, 128, 254][column * 3 + channel]);
    let centered = floats(&run("op = \"center_pixels\"", input.clone()));
    let expected: Vec<f32> = input.data().iter().map(|&value| f32::from(value) / 127.5 - 1.0).collect();
    assert_eq!(centered, expected);
    assert_eq!((centered[0].to_bits(), centered[2].to_bits()), ((-1.0_f32).to_bits(), 1.0_f32.to_bits()));

    let normalized = floats(&run("op = \"normalize\"", input.clone()));
    for (index, value) in normalized.iter().enumerate() {
        let (mean, deviation) = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)][index % 3];
        let expected = (f64::from(input.data()[index]) / 255.0 - mean) / deviation;
        assert!((f64::from(*value) - expected).abs() < 1e-5, "{value} {expected}");
    }
}

#[test]
fn gray_before_and_after_centering_agree() {
    let input = picture(8, 8, 3, |row, column, channel| (row * 31 + column * 7 + channel * 50) as u8);
    let before = run("op = \"center_pixels\"", run("op = \"grayscale\"", input.clone()));
    let after = run("op = \"grayscale\"", run("op = \"center_pixels\"", input));
    assert_eq!(before.spec().shape, after.spec().shape);
    for (before, after) in floats(&before).iter().zip(floats(&after)) {
        assert!((before - after).abs() < 2.0 / 127.5, "{before} {after}");
    }
}

#[test]
fn to_chw_separates_the_channels() {
    for channels in 1..=4 {
        let input = picture(2, 3, channels, |row, column, channel| (channel * 100 + row * 10 + column) as u8);
        let out = run("op = \"to_chw\"", input.clone());
        assert_eq!(out.spec().shape.dims(), [channels, 2, 3]);
        let expected: Vec<u8> =
            (0..channels * 6).map(|index| (index / 6 * 100 + index % 6 / 3 * 10 + index % 3) as u8).collect();
        assert_eq!(&out.data()[..], expected);
        let wide =
            run("op = \"to_chw\"", Tensor::from_elements(&[2, 3, channels], &vec![1.5_f32; 6 * channels]).unwrap());
        assert_eq!(wide.spec().dtype, DType::F32);
    }
}

#[test]
fn the_shorter_side_decides() {
    for (height, width, expected) in [(500, 375, [341, 256]), (375, 500, [256, 341]), (256, 256, [256, 256])] {
        let out = run("op = \"resize\"\nsize = 256", picture(height, width, 3, |_, _, _| 9));
        assert_eq!(out.spec().shape.dims()[..2], expected);
        assert!(out.data().iter().all(|&value| value == 9), "a plain image stays plain");
    }
}

#[test]
fn area_is_the_mean_of_what_is_covered() {
    let input = picture(4, 6, 1, |row, column, _| (row * 40 + column * 3) as u8);
    let out = run("op = \"resize\"\nsize = [2, 3]\ninterpolation = \"area\"", input.clone());
    for (index, &value) in out.data().iter().enumerate() {
        let (row, column) = (index / 3 * 2, index % 3 * 2);
        let at = |row: usize, column: usize| f32::from(input.data()[row * 6 + column]);
        let mean = (at(row, column) + at(row, column + 1) + at(row + 1, column) + at(row + 1, column + 1)) / 4.0;
        assert_eq!(value, mean.round_ties_even() as u8);
    }
    // Thirds of pixels count as thirds: 0, 90, 180 over 2 is 30 and 150.
    let thirds = run(
        "op = \"resize\"\nsize = [1, 2]\ninterpolation = \"area\"",
        picture(1, 3, 1, |_, column, _| column as u8 * 90),
    );
    assert_eq!(&thirds.data()[..], [30, 150]);
}

#[test]
fn every_filter_works_on_every_type() {
    let bytes = picture(9, 7, 3, |row, column, channel| (row * 20 + column * 5 + channel * 9) as u8);
    let words: Vec<u16> = bytes.data().iter().map(|&value| u16::from(value) * 257).collect();
    let floats_in: Vec<f32> = bytes.data().iter().map(|&value| f32::from(value)).collect();
    for filter in ["bilinear", "bicubic", "area", "lanczos"] {
        for backend in ["pillow", "opencv"] {
            let toml = format!("op = \"resize\"\nsize = [4, 5]\ninterpolation = \"{filter}\"\nbackend = \"{backend}\"");
            let small = run(&toml, bytes.clone());
            let wide = run(&toml, Tensor::from_elements(&[9, 7, 3], &words).unwrap());
            let real = floats(&run(&toml, Tensor::from_elements(&[9, 7, 3], &floats_in).unwrap()));
            let wide: Vec<u16> = wide.view().elements_or_copy::<u16>(&mut Vec::new()).unwrap().to_vec();
            for ((&small, wide), real) in small.data().iter().zip(wide).zip(real) {
                assert!((f32::from(small) - real).abs() <= 1.5, "{filter} {backend}: {small} {real}");
                assert!((f32::from(wide) / 257.0 - real).abs() <= 1.5, "{filter} {backend}: {wide} {real}");
            }
        }
    }
}

proptest! {
    #[test]
    fn random_resized_crops_come_from_the_picture(width in 1_usize..90, height in 1_usize..90, seed in any::<u64>()) {
        // A picture of one color per quarter: every output value lies between the smallest and the largest.
        let input = picture(height, width, 3, |row, column, _| if (row * 2 < height) == (column * 2 < width) { 40 } else { 200 });
        let out = run_seeded("op = \"random_resized_crop\"\nsize = 12", input, seed);
        prop_assert_eq!(out.spec().shape.dims(), [12, 12, 3]);
        prop_assert!(out.data().iter().all(|value| (40..=200).contains(value)));
    }

    #[test]
    fn tensorflow_and_plain_bilinear_agree(width in 2_usize..60, height in 2_usize..60, side in 2_usize..40) {
        let input = picture(height, width, 3, |row, column, channel| (row * 4 + column * 3 + channel * 11) as u8);
        let size = format!("op = \"resize\"\nsize = [{side}, {side}]\n");
        let ours = run(&format!("{size}backend = \"opencv\""), input.clone());
        let theirs = run(&format!("{size}backend = \"tensorflow\""), input);
        prop_assert!(difference_max(ours.view(), theirs.view()) <= 2, "rounded and truncated");
    }
}
