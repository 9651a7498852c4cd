//! Every level gives the same bits.

use super::*;

#[test]
fn every_level_gives_the_same_bits() {
    let affine = Conversion::Affine { factors: [0.017, 0.0175, 0.0174], offsets: [-2.1, -2.0, -1.8] };
    for pixels in [0, 1, 2, 15, 16, 31, 32, 33, 100, 224] {
        let from: Vec<u8> = (0..pixels * 3).map(|index| (index * 37 + index / 7) as u8).collect();
        for conversion in [Conversion::Center, affine] {
            let run = |level| {
                let mut out = [vec![0_f32; pixels * 3], vec![0_f32; pixels * 3], vec![0_f32; pixels * 3]];
                interleaved(level, &from, &mut out[0], conversion);
                let [_, plain, mirrored] = &mut out;
                let split = |planes: &mut [f32]| {
                    let (red, rest) = planes.split_at_mut(pixels);
                    let (green, blue) = rest.split_at_mut(pixels);
                    // Three disjoint borrows of one buffer, for the kernel.
                    (red.to_vec(), green.to_vec(), blue.to_vec())
                };
                let (mut red, mut green, mut blue) = split(plain);
                to_planes(level, &from, [&mut red, &mut green, &mut blue], conversion);
                let plain = [red, green, blue];
                let (mut red, mut green, mut blue) = split(mirrored);
                to_planes_mirrored(level, &from, [&mut red, &mut green, &mut blue], conversion);
                (out[0].clone(), plain, [red, green, blue])
            };
            let (flat, plain, mirrored) = run(Supported::SCALAR);
            for level in Supported::all() {
                assert_eq!(run(level), (flat.clone(), plain.clone(), mirrored.clone()), "{level:?}");
            }
            for (channel, plane) in plain.iter().enumerate() {
                let strided: Vec<f32> = flat.iter().copied().skip(channel).step_by(3).collect();
                assert_eq!(*plane, strided);
                assert!(mirrored[channel].iter().rev().eq(&strided));
            }
        }
    }
}

/// Numbers that look drawn.
fn noise(count: usize, seed: u32) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    (0..count).map(|_| next()).collect()
}

fn bytes(count: usize, seed: u32) -> Vec<u8> {
    noise(count, seed).into_iter().map(|number| (number >> 8) as u8).collect()
}

/// Runs a kernel that writes bytes at every level, on every number of pixels up to 100 and some more.
fn same_at_every_level(what: &str, kernel: impl Fn(Supported, &[u8], &mut [u8])) {
    for pixels in (0..100).chain([511, 512, 513, 1100]) {
        let from = bytes(3 * pixels, pixels as u32);
        let run = |level| {
            let mut to = vec![0; from.len()];
            kernel(level, &from, &mut to);
            to
        };
        let defined = run(Supported::SCALAR);
        for level in Supported::all() {
            assert_eq!(run(level), defined, "{what} of {pixels} pixels by {level:?}");
        }
    }
}

#[test]
fn colors_are_the_same_at_every_level() {
    let tables: [[u8; 256]; 3] = std::array::from_fn(|seed| bytes(256, seed as u32).try_into().unwrap());
    same_at_every_level("look_up", |level, from, to| look_up(level, from, to, &tables[1]));
    same_at_every_level("look_up_channels", |level, from, to| look_up_channels(level, from, to, &tables));
    same_at_every_level("gray", gray);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        same_at_every_level("permute", |level, from, to| permute(level, from, to, order));
    }
    for factor in [0.0, 0.37, 0.5, 1.0, 1.63, 1.999_99, 2.0, 12.5, -0.5, 1e30, f32::NAN, f32::INFINITY] {
        same_at_every_level("scale", |level, from, to| scale(level, from, to, factor, -3.0));
        same_at_every_level("saturate", |level, from, to| saturate(level, from, to, factor));
        same_at_every_level("turn_hue", |level, from, to| turn_hue(level, from, to, factor));
        same_at_every_level("turn_hue", |level, from, to| turn_hue(level, from, to, -factor));
    }
    for pixels in 0..100 {
        let from = bytes(3 * pixels, 7);
        for level in Supported::all() {
            let mut sum = 5;
            gray_sum(level, &from, &mut sum);
            let levels = from.as_chunks::<3>().0.iter().map(|pixel| u64::from(pixels::gray_level(*pixel)));
            assert_eq!(sum, 5 + levels.sum::<u64>(), "{pixels} pixels by {level:?}");
        }
    }
}

#[test]
fn values_become_wider_alike_at_every_level() {
    let table: [[u8; 2]; 256] = std::array::from_fn(|value| [value as u8, (value * 7 + 3) as u8]);
    for count in (0..200).chain([1000, 1023]) {
        let from = bytes(count, count as u32);
        for level in Supported::all() {
            let (mut pairs, mut numbers) = (vec![0; 2 * count], vec![0.0; count]);
            look_up_pairs(level, &from, &mut pairs, &table);
            let expected = from.iter().flat_map(|&value| table[usize::from(value)]);
            assert!(pairs.into_iter().eq(expected), "{count} values by {level:?}");
            floats(level, &from, &mut numbers, 1.0 / 255.0);
            let same = |(number, &value): (&f32, &u8)| number.to_bits() == (f32::from(value) * (1.0 / 255.0)).to_bits();
            assert!(numbers.iter().zip(&from).all(same), "{count} values by {level:?}");
        }
    }
}

#[test]
fn pairs_are_added_alike_at_every_level() {
    let numbers: Vec<f32> = noise(400, 5).into_iter().map(|number| number as f32 / 1e6 - 8.0).collect();
    for count in (0..100).chain([333]) {
        let run = |level| {
            let mut to = numbers[30..30 + count].to_vec();
            add_pairs(level, &numbers[1..], &numbers[7..], 0.37, &mut to);
            to.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let defined = run(Supported::SCALAR);
        assert!(Supported::all().all(|level| run(level) == defined), "{count}");
    }
}

/// In 16 bit as in single precision, but for levels that the fraction is just between.
#[test]
fn saturation_is_that_of_torchvision_within_one_level() {
    let from = bytes(3 << 12, 3);
    for step in 0..200 {
        let factor = step as f32 * 0.01;
        let mut made = vec![0; from.len()];
        saturate(Supported::SCALAR, &from, &mut made, factor);
        let mut differing = 0;
        for (pixel, made) in from.as_chunks::<3>().0.iter().zip(made.as_chunks::<3>().0) {
            let gray = f32::from(pixels::gray_level(*pixel)) * (1.0 - factor);
            for (value, made) in pixel.iter().zip(made) {
                let theirs = pixels::truncated(f32::from(*value) * factor + gray);
                assert!(made.abs_diff(theirs) <= 1, "{pixel:?} by {factor}: {made}, not {theirs}");
                differing += usize::from(*made != theirs);
            }
        }
        // By a factor such as 0.2, one in five is a whole number, which single precision may be just below.
        assert!(differing * 5 < from.len(), "{factor}: {differing} of {}", from.len());
    }
}

#[test]
fn lines_are_the_same_at_every_level() {
    let values: Vec<u8> = (0..=255).collect();
    // Factors whose products are whole numbers, and all others.
    let factors = (0..400).map(|step| step as f32 / 256.0).chain((0..400).map(|step| step as f32 * 0.017));
    for factor in factors.chain([15.99, 16.0, 17.0, 300.0, -0.5]) {
        for offset in [0.0, 0.5, -0.25, 12.75, 127.3, -100.01, 255.0, -1000.0, 1e9, f32::NEG_INFINITY] {
            let mut made = [0; 256];
            for level in Supported::all() {
                scale(level, &values, &mut made, factor, offset);
                let defined = |value: &u8| scaled(*value, factor, offset);
                assert!(made.iter().eq(values.iter().map(defined).collect::<Vec<_>>().iter()), "{factor} {offset}");
            }
        }
    }
}

#[test]
fn rows_are_moved_alike_at_every_level() {
    same_at_every_level("copy", copy);
    same_at_every_level("mirror_rgb", |level, from, to| mirror_rgb(level, from, to, from.len().max(1)));
    same_at_every_level("bits", |level, from, to| bits(level, from, to, 0xF0, 0xFF));
    for pixels in [1, 2, 11, 33, 224] {
        let rows = bytes(3 * pixels * 5, 9);
        for level in Supported::all() {
            let mut flipped = vec![0; rows.len()];
            flip_rows(level, &rows, &mut flipped, 3 * pixels);
            assert!(flipped.chunks(3 * pixels).rev().flatten().eq(&rows), "{pixels} pixels by {level:?}");
            for margin in [0, 1, 31, 32, 33, 100] {
                let mut padded = vec![0; rows.len() + 5 * margin];
                pad_rows(level, &rows, 3 * pixels, &mut padded, margin, 7);
                let expected = rows.chunks(3 * pixels).flat_map(|row| row.iter().chain(vec![&7; margin]));
                assert!(padded.iter().eq(expected), "{pixels} pixels, {margin} by {level:?}");
            }
        }
    }
}

/// What torchvision computes, in single precision, is what gray levels are within one.
#[test]
fn gray_levels_are_those_of_torchvision() {
    let mut differing = 0;
    for color in (0..1_u32 << 24).step_by(37) {
        let [r, g, b, _] = color.to_le_bytes();
        let theirs = (f32::from(r) * 0.2989 + f32::from(g) * 0.587 + f32::from(b) * 0.114) as u8;
        let ours = pixels::gray_level([r, g, b]);
        assert!(ours.abs_diff(theirs) <= 1, "{r} {g} {b}");
        differing += u32::from(ours != theirs);
    }
    assert!(differing < (1 << 24) / 37 / 500, "{differing}");
}

#[test]
fn sums_are_the_same_at_every_level_and_near_what_they_are_of() {
    for (length, count) in [(1, 1), (1, 3), (31, 2), (64, 4), (65, 3), (128, 1), (129, 12), (150, 2), (700, 5)] {
        let bytes = bytes(length + 40, length as u32);
        let sums: Vec<u16> =
            noise(length + 40, length as u32).into_iter().map(|number| (number % 32_641) as u16).collect();
        let sides: Vec<[usize; 2]> = (0..count).map(|place| [20 - place, 20 + place]).collect();
        let weights: Vec<u16> =
            (0..count).map(|place| (32_767 / count + 7 * (count - place) - 7 * count) as u16).collect();
        let [mut of_bytes, mut of_sums] = [vec![0; length], vec![0; length]];
        weigh(Supported::SCALAR, &bytes, &sides, &weights, &mut of_bytes);
        blur::weigh_body(&sums, &sides, &weights, &mut of_sums);
        for level in Supported::all() {
            let (mut to, mut levels) = (vec![0; length], vec![0; length]);
            weigh(level, &bytes, &sides, &weights, &mut to);
            assert_eq!(to, of_bytes, "{length} values, {count} weights by {level:?}");
            weigh_levels(level, &sums, &sides, &weights, &mut to, &mut levels);
            let rounded = of_sums.iter().map(|sum| ((sum + 64) >> 7).min(255) as u8);
            assert!(levels.into_iter().eq(rounded), "{length} values, {count} weights by {level:?}");
        }
        let exact = |value: &dyn Fn(usize) -> f64| {
            let pairs = sides.iter().zip(&weights).enumerate().map(|(place, ([before, after], weight))| {
                let both = if place == 0 { value(*before) } else { value(*before) + value(*after) };
                both * f64::from(*weight) / 65_536.0
            });
            pairs.sum::<f64>()
        };
        let lost_max = count as f64 / 2.0 + 1.0;
        for index in 0..length {
            let wanted = exact(&|place| f64::from(bytes[index + place]) * 128.0);
            assert!((f64::from(of_bytes[index]) - wanted).abs() <= lost_max, "{} for {wanted}", of_bytes[index]);
            let wanted = exact(&|place| f64::from(sums[index + place]));
            assert!((f64::from(of_sums[index]) - wanted).abs() <= lost_max, "{} for {wanted}", of_sums[index]);
        }
    }
}

/// Coordinates of rows that turn, shrink, leave the picture, tilt, or are none.
fn rows_of_coordinates() -> Vec<RowCoordinates> {
    let row = |start, along| RowCoordinates { start, along, middle: 20.0 };
    vec![
        row([20.0, 7.0, 1.0], [1.0, 0.0, 0.0]),
        row([19.5, 6.5, 1.0], [0.9, 0.31, 0.0]),
        row([3.25, 30.0, 1.0], [-2.5, -1.7, 0.0]),
        row([20.5, 8.5, 1.0], [1.1, 0.2, 0.004]),
        row([20.5, 8.5, 0.0], [1.1, 0.2, 0.1]),
        row([1e30, f32::NAN, 1.0], [1.0, f32::INFINITY, 0.0]),
    ]
}

#[test]
fn warps_are_the_same_at_every_level_and_near_what_they_are() {
    for [height, width] in [[1, 1], [2, 2], [3, 50], [17, 41], [40, 40], [9, 100]] {
        let from = bytes(3 * width * height, width as u32);
        for coordinates in rows_of_coordinates() {
            for x in [0, BLOCK, 2 * BLOCK] {
                let run = |level| {
                    let (mut offsets, mut block, mut made) = ([0; BLOCK], Surrounding::default(), [0; BLOCK_RGB_BYTES]);
                    nearest_offsets(level, &coordinates, x, [height, width], &mut offsets);
                    surrounding(level, &coordinates, x, [height, width], &mut block);
                    if block.within_count > 0 {
                        between_rgb(level, &from, width, &block, &mut made);
                    }
                    // What is written behind the block is nothing.
                    made[3 * BLOCK..].fill(0);
                    (
                        offsets,
                        block.offsets,
                        block.upper,
                        block.lower,
                        [block.within, block.touching],
                        block.touching_count,
                        made,
                    )
                };
                let defined = run(Supported::SCALAR);
                for level in Supported::all() {
                    assert_eq!(run(level), defined, "{height} × {width}, {coordinates:?} by {level:?}");
                }
                let (offsets, _, upper, lower, [within, touching], touching_count, made) = defined;
                assert_eq!(touching.iter().sum::<u32>(), touching_count);
                for index in 0..BLOCK {
                    let (u, v) = coordinates.at(x + index);
                    let (column, row) = (u.round_ties_even(), v.round_ties_even());
                    let inside = (0.0..width as f32).contains(&column) && (0.0..height as f32).contains(&row);
                    let nearest = if inside { row as u32 * width as u32 + column as u32 } else { OUTSIDE };
                    assert_eq!(offsets[index], nearest, "{u} {v}");
                    if within[index] == 0 {
                        continue;
                    }
                    let sum =
                        (upper[index] & 0xFFFF) + (upper[index] >> 16) + (lower[index] & 0xFFFF) + (lower[index] >> 16);
                    assert_eq!(sum, 1 << 14);
                    let (left, top) = (u.floor() as usize, v.floor() as usize);
                    for channel in 0..3 {
                        let at = |row: usize, column: usize| f32::from(from[3 * (row * width + column) + channel]);
                        let (across, down) = (u.fract(), v.fract());
                        let above = at(top, left) * (1.0 - across) + at(top, left + 1) * across;
                        let below = at(top + 1, left) * (1.0 - across) + at(top + 1, left + 1) * across;
                        let exact = above * (1.0 - down) + below * down;
                        assert!((f32::from(made[3 * index + channel]) - exact).abs() < 0.7, "{u} {v}: {exact}");
                    }
                }
            }
        }
    }
}

/// Rows of pictures that turn and move by all kinds of amounts, so that ranges of pixels begin and end everywhere.
#[test]
fn nearest_pixels_are_the_same_at_every_level() {
    for [height, width] in [[1, 1], [1, 9], [3, 50], [40, 40], [9, 100]] {
        let from = bytes(3 * width * height, width as u32);
        let numbers = noise(4 * 500, width as u32).into_iter().map(|number| number as f32 / (1 << 24) as f32);
        let drawn: Vec<f32> = numbers.collect();
        let drawn = drawn.as_chunks::<4>().0.iter().map(|[u, v, along_u, along_v]| {
            let start = [(u * 1.4 - 0.2) * width as f32, (v * 1.4 - 0.2) * height as f32, 1.0];
            RowCoordinates { start, along: [along_u * 4.0 - 2.0, along_v - 0.5, 0.0], middle: (width / 2) as f32 }
        });
        let still = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1e-7, 0.0], [-1e-7, 1.0, 0.0]].map(|along| {
            let start = [-0.5, height as f32 - 0.5, 1.0];
            RowCoordinates { start, along, middle: (width / 2) as f32 }
        });
        for coordinates in drawn.chain(still).chain(rows_of_coordinates()) {
            let run = |level| {
                let mut to = vec![0; 3 * width];
                nearest_rgb(level, &coordinates, &from, [height, width], [1, 2, 3], &mut to);
                to
            };
            let defined = run(Supported::SCALAR);
            for level in Supported::all() {
                assert_eq!(run(level), defined, "{height} × {width}, {coordinates:?} by {level:?}");
            }
        }
    }
}
