//! Elastic distortion: each pixel comes from a place somewhat beside its own, and neighbors from similar ones.

use forebay_codec::{DType, TensorMut, TensorSpec, TensorView, memory};
use serde::{Deserialize, Serialize};

use super::augment::mirrored;
use super::geometry::{BOX_SIDE_MIN, Frame, frame_before, rider_type, rows};
use super::pad::{check_fill, filled_pixel, zero};
use super::warp::{WarpInterpolation, channel_values, displaced};
use super::{Numbers, picture, picture_type, tensor};
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::{BOX_COLUMNS_MAX, FieldType};
use crate::scope::{Scope, Scratch};
use crate::step::{BadParameter, FOLLOWS_IF_NAMED, Needs, Transform};

/// Moves pixels by random distances that change slowly over the picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ElasticTransform {
    /// How far: along x and y, or one for both. Twice the distance in pixels, before it is smoothed.
    pub alpha: Numbers,
    /// The standard deviation of what smooths the distances, in pixels: along x and y, or one for both.
    pub sigma: Numbers,
    /// How pixels are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture, one value or one for each channel.
    pub fill: Numbers,
    /// The class that a mask has outside.
    pub mask_fill: u16,
}

impl Default for ElasticTransform {
    fn default() -> Self {
        let interpolation = WarpInterpolation::Bilinear;
        Self { alpha: 50.0.into(), sigma: 5.0.into(), interpolation, fill: zero(), mask_fill: 0 }
    }
}

/// Distances along x and y of each pixel, and what they are smoothed in.
#[derive(Default)]
pub(super) struct Displacement {
    pub(super) across: Vec<f32>,
    pub(super) down: Vec<f32>,
    between: Vec<f32>,
    line: Vec<f32>,
    weights: Vec<f32>,
}

impl Scratch for Displacement {
    fn capacity_bytes(&self) -> usize {
        let numbers = self.across.capacity() + self.down.capacity() + self.between.capacity() + self.line.capacity();
        numbers * size_of::<f32>()
    }

    fn trim(&mut self) {
        *self = Self::default();
    }
}

/// A larger standard deviation is a mistake.
const SIGMA_MAX: f64 = 1000.0;

/// One number for both directions, or one for each.
fn pair(numbers: &Numbers) -> [f64; 2] {
    let numbers = numbers.as_slice();
    [numbers[0], numbers[numbers.len() - 1]]
}

impl ElasticTransform {
    fn draw(
        &self,
        [height, width]: [usize; 2],
        random: &mut Random,
        drawn: &mut Displacement,
    ) -> Result<(), StepError> {
        let Displacement { across, down, between, line, weights } = drawn;
        let (alpha, sigma) = (pair(&self.alpha), pair(&self.sigma));
        memory::grow(between, width * height)?;
        for (numbers, (alpha, size_of)) in [&mut *across, &mut *down].into_iter().zip(alpha.into_iter().zip(sigma)) {
            memory::grow(numbers, width * height)?;
            let numbers = &mut numbers[..width * height];
            for number in numbers.iter_mut() {
                *number = random.between(-1.0, 1.0) as f32;
            }
            // As torchvision has it: of both directions' deviations, its own says how far the kernel reaches.
            let reach = (8.0 * size_of + 1.0) as usize / 2;
            if size_of > 0.0 {
                let between = &mut between[..width * height];
                gaussian(weights, reach, sigma[0]);
                smooth_rows(numbers, between, width, weights, line)?;
                gaussian(weights, reach, sigma[1]);
                smooth_columns(between, numbers, width, weights);
            }
            for number in numbers {
                *number *= (alpha / 2.0) as f32;
            }
        }
        Ok(())
    }
}

/// Boxes and key points of a picture of this size: each point goes against where the pixel there comes from, which is nearly its inverse.
fn move_rows(view: TensorView<'_>, size: (usize, usize), drawn: &Displacement) -> (TensorSpec, Vec<f32>) {
    let (width, height) = size;
    let moved = |x: f32, y: f32| {
        let (column, row) = ((x as usize).min(width - 1), (y as usize).min(height - 1));
        let pixel = row * width + column;
        (x - drawn.across[pixel], y - drawn.down[pixel])
    };
    let &[_, columns] = view.spec.shape.dims() else { return (view.spec, Vec::new()) };
    let (right, bottom) = (width as f32, height as f32);
    let mut made = Vec::new();
    for mut row in rows(view, columns) {
        if columns >= 4 {
            // Written so that a box with a NaN is dropped, too.
            if !(row[0] <= row[2] && row[1] <= row[3]) {
                continue;
            }
            let corners = [(row[0], row[1]), (row[2], row[1]), (row[2], row[3]), (row[0], row[3])];
            let corners = corners.map(|(x, y)| moved(x, y));
            let least = |of: fn(&(f32, f32)) -> f32| corners.iter().map(of).fold(f32::INFINITY, f32::min);
            let most = |of: fn(&(f32, f32)) -> f32| corners.iter().map(of).fold(f32::NEG_INFINITY, f32::max);
            row[0] = least(|corner| corner.0).clamp(0.0, right);
            row[1] = least(|corner| corner.1).clamp(0.0, bottom);
            row[2] = most(|corner| corner.0).clamp(0.0, right);
            row[3] = most(|corner| corner.1).clamp(0.0, bottom);
            if row[2] - row[0] >= BOX_SIDE_MIN && row[3] - row[1] >= BOX_SIDE_MIN {
                made.extend_from_slice(&row[..columns]);
            }
        } else if columns == 2 || row[2] != 0.0 {
            (row[0], row[1]) = moved(row[0], row[1]);
            let inside = (0.0..=right).contains(&row[0]) && (0.0..=bottom).contains(&row[1]);
            made.extend_from_slice(if columns == 3 && !inside { &[0.0; 3] } else { &row[..columns] });
        } else {
            made.extend_from_slice(&row[..columns]);
        }
    }
    (TensorSpec::new(DType::F32, &[made.len() / columns.max(1), columns]), made)
}

/// The weights of the middle and of each distance from it up to `reach`.
fn gaussian(weights: &mut Vec<f32>, reach: usize, sigma: f64) {
    let weight = |distance: usize| (-0.5 * (distance as f64 / sigma.max(1e-6)).powi(2)).exp();
    let sum = weight(0) + 2.0 * (1..=reach).map(weight).sum::<f64>();
    weights.clear();
    weights.extend((0..=reach).map(|distance| (weight(distance) / sum) as f32));
}

/// Weighted sums along rows, which are mirrored beyond their ends.
fn smooth_rows(
    from: &[f32],
    to: &mut [f32],
    width: usize,
    weights: &[f32],
    line: &mut Vec<f32>,
) -> Result<(), StepError> {
    let (reach, level) = (weights.len() - 1, Supported::detect());
    memory::grow(line, width + 2 * reach)?;
    let line = &mut line[..width + 2 * reach];
    for (from, to) in from.chunks_exact(width).zip(to.chunks_exact_mut(width)) {
        for (place, number) in line.iter_mut().enumerate() {
            *number = from[mirrored(place as isize - reach as isize, width)];
        }
        to.iter_mut().zip(&line[reach..]).for_each(|(to, middle)| *to = middle * weights[0]);
        for (distance, weight) in weights.iter().enumerate().skip(1) {
            kernels::add_pairs(level, &line[reach - distance..], &line[reach + distance..], *weight, to);
        }
    }
    Ok(())
}

/// The same along columns.
fn smooth_columns(from: &[f32], to: &mut [f32], width: usize, weights: &[f32]) {
    let (height, level) = (from.len() / width.max(1), Supported::detect());
    let row = |y: isize| &from[mirrored(y, height) * width..][..width];
    for (y, to) in to.chunks_exact_mut(width.max(1)).enumerate() {
        let y = y as isize;
        to.iter_mut().zip(row(y)).for_each(|(to, middle)| *to = middle * weights[0]);
        for (distance, weight) in weights.iter().enumerate().skip(1) {
            kernels::add_pairs(level, row(y - distance as isize), row(y + distance as isize), *weight, to);
        }
    }
}

impl Transform for ElasticTransform {
    fn is_random(&self) -> bool {
        true
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn riders_left(&self) -> Option<&'static str> {
        Some(FOLLOWS_IF_NAMED)
    }

    fn check(&self) -> Result<(), BadParameter> {
        let one_or_two = |numbers: &Numbers, most: f64| {
            let numbers = numbers.as_slice();
            numbers.len() <= 2 && numbers.iter().all(|number| (0.0..=most).contains(number))
        };
        let expected = "one or two numbers from 0 on";
        BadParameter::unless(one_or_two(&self.alpha, 1e6), "alpha", &self.alpha, expected)?;
        let expected = "one or two numbers from 0 to 1000";
        BadParameter::unless(one_or_two(&self.sigma, SIGMA_MAX), "sigma", &self.sigma, expected)?;
        check_fill(&self.fill)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        if let Some(rider) = rider_type(input, None) {
            return Ok(rider);
        }
        let (dtype, _) = picture_type(input)?;
        let can = self.interpolation == WarpInterpolation::Nearest || matches!(dtype, DType::U8 | DType::F32);
        let needs = || Needs("an image in uint8 or float32 for `bilinear`".to_owned());
        if can { Ok(input.clone()) } else { Err(needs()) }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, "an image, a mask, boxes or key points")?;
        let is_f32 = view.spec.dtype == DType::F32;
        let size = match *view.spec.shape.dims() {
            [_, columns] if is_f32 && (2..=BOX_COLUMNS_MAX).contains(&columns) => None,
            [height, width] if height * width > 0 => Some((width, height)),
            _ => picture(input).map(|(_, [height, width, _])| Some((width, height)))?,
        };
        let Some(size) = size else {
            let (width, height) = frame_before(scope)?.from;
            let mut drawn = std::mem::take(scope.scratch::<Displacement>());
            output.working(4 * size_of::<f32>() * width * height + view.spec.bytes())?;
            self.draw([height, width], &mut scope.random, &mut drawn)?;
            let (spec, numbers) = move_rows(view, (width, height), &drawn);
            let slot = output.tensor(spec)?;
            let to = slot.data.as_chunks_mut::<4>().0.iter_mut();
            to.zip(numbers).for_each(|(to, number)| *to = number.to_le_bytes());
            *scope.scratch() = drawn;
            return Ok(());
        };
        if let Some(frame) = scope.frame.filter(|frame| frame.from != size) {
            let ((width, height), (first_width, first_height)) = (size, frame.from);
            return Err(StepError::OtherSize { width, height, first_width, first_height });
        }
        scope.frame = Some(Frame::whole(size));
        let (width, height) = size;
        output.working(4 * size_of::<f32>() * width * height)?;
        let mut drawn = std::mem::take(scope.scratch::<Displacement>());
        self.draw([height, width], &mut scope.random, &mut drawn)?;
        self.put(view, size, &drawn, &mut output.tensor(view.spec)?)?;
        *scope.scratch() = drawn;
        Ok(())
    }
}

impl ElasticTransform {
    /// A picture or a mask.
    fn put(
        &self,
        view: TensorView<'_>,
        (width, height): (usize, usize),
        drawn: &Displacement,
        output: &mut TensorMut<'_>,
    ) -> Result<(), StepError> {
        let channels = view.spec.shape.dims().get(2).copied();
        let nearest = f64::from(self.mask_fill).into();
        let (interpolation, fill) = match channels {
            Some(_) => (self.interpolation, &self.fill),
            None => (WarpInterpolation::Nearest, &nearest),
        };
        let (pixel, bytes) = filled_pixel(fill, view.spec.dtype, channels.unwrap_or(1));
        let places = (&drawn.across[..], &drawn.down[..]);
        displaced(view, output, [height, width], places, interpolation, (&pixel[..bytes], channel_values(fill)))
    }
}

#[cfg(test)]
mod tests {
    use forebay_codec::Tensor;

    use super::*;

    const GOLDEN: &str = include_str!("../../tests/golden/elastic.txt");

    /// What of the golden file begins with this call.
    fn lines(call: &str) -> Vec<Vec<&'static str>> {
        let lines = GOLDEN.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        lines.filter(|line| line[0] == call).map(|line| line[1..].to_vec()).collect()
    }

    /// Distances of 20 × 17 pixels, as `golden/elastic.py` has them.
    fn distances() -> Displacement {
        let places = (0..17).flat_map(|y| (0..20).map(move |x| (f64::from(x), f64::from(y))));
        let (across, down) = places
            .map(|(x, y)| {
                let across = 3.0 * (0.4 * x + 0.3 * y).sin() + 0.13;
                let down = 2.0 * (0.5 * x - 0.2 * y).cos() - 0.21;
                (across as f32, down as f32)
            })
            .unzip();
        Displacement { across, down, ..Displacement::default() }
    }

    #[test]
    fn fixed_distances_give_what_torchvision_gives() {
        let pixel = |index: usize| (index / 60, index / 3 % 20, index % 3);
        let values: Vec<u8> = (0..17 * 20 * 3)
            .map(|index| {
                let (y, x, channel) = pixel(index);
                ((y * 13 + x * 7 + channel * 50 + y * x) % 256) as u8
            })
            .collect();
        let image = Tensor::from_elements(&[17, 20, 3], &values).unwrap();
        let fill: Numbers = toml::Value::from(vec![9.0, 99.0, 199.0]).try_into().unwrap();
        for (call, interpolation, fill, off_max) in [
            ("F.elastic(image, displacement, BILINEAR, fill=0)", WarpInterpolation::Bilinear, zero(), 1),
            (
                "F.elastic(image, displacement, BILINEAR, fill=[9, 99, 199])",
                WarpInterpolation::Bilinear,
                fill.clone(),
                1,
            ),
            ("F.elastic(image, displacement, NEAREST, fill=[9, 99, 199])", WarpInterpolation::Nearest, fill, 0),
        ] {
            let step = ElasticTransform { interpolation, fill, ..ElasticTransform::default() };
            let mut made = vec![0; values.len()];
            let mut output = TensorMut { spec: *image.spec(), data: &mut made };
            step.put(image.view(), (20, 17), &distances(), &mut output).unwrap();
            let theirs: Vec<u8> = lines(call)[0].iter().map(|number| number.parse().unwrap()).collect();
            let furthest = made.iter().zip(&theirs).map(|(ours, theirs)| ours.abs_diff(*theirs)).max();
            assert!(made.len() == theirs.len() && furthest.unwrap() <= off_max, "{call}: off by {furthest:?}");
        }
    }

    /// Quantiles of how far a pixel is moved are those of torchvision's draws.
    #[test]
    fn distances_are_drawn_as_torchvision_draws_them() {
        let other =
            ElasticTransform { alpha: [30.0, 80.0].into(), sigma: [3.0, 2.0].into(), ..ElasticTransform::default() };
        for (call, step) in
            [("ElasticTransform()", ElasticTransform::default()), ("ElasticTransform((30.0, 80.0), (3.0, 2.0))", other)]
        {
            let mut drawn = Displacement::default();
            let moved: Vec<[f64; 2]> = (0..600)
                .map(|seed| {
                    step.draw([48, 60], &mut Random::from_parts(&[seed]), &mut drawn).unwrap();
                    [drawn.across[20 * 60 + 30], drawn.down[20 * 60 + 30]].map(f64::from)
                })
                .collect();
            for (direction, line) in lines(call).into_iter().enumerate() {
                let quantiles: Vec<f64> = line[1..].iter().map(|number| number.parse().unwrap()).collect();
                for (place, quantile) in quantiles.iter().enumerate() {
                    let below = moved.iter().filter(|moved| moved[direction] <= *quantile).count() as f64 / 600.0;
                    // Of 600 draws and 3,000, so far apart once in a thousand times (Kolmogorov and Smirnov).
                    assert!((below - place as f64 / 20.0).abs() < 0.09, "{call} {}: {below} up to {quantile}", line[0]);
                }
            }
        }
    }

    #[test]
    fn boxes_and_key_points_go_against_the_distances() {
        let drawn = distances();
        let points = Tensor::from_elements(&[3, 3], &[5.0_f32, 6.0, 2.0, 0.2, 16.9, 1.0, 3.0, 3.0, 0.0]).unwrap();
        let (spec, made) = move_rows(points.view(), (20, 17), &drawn);
        let pixel = 6 * 20 + 5;
        assert_eq!(spec.shape.dims(), [3, 3]);
        assert_eq!(made[..3], [5.0 - drawn.across[pixel], 6.0 - drawn.down[pixel], 2.0]);
        assert_eq!(made[6..], [3.0, 3.0, 0.0], "what is not labeled stays");
        let boxes = Tensor::from_elements(&[2, 5], &[4.0_f32, 4.0, 12.0, 13.0, 7.0, 1.0, 1.0, 1.2, 1.2, 8.0]).unwrap();
        let (spec, made) = move_rows(boxes.view(), (20, 17), &drawn);
        assert_eq!((spec.shape.dims(), made[4]), (&[1, 5][..], 7.0), "less than a pixel goes");
        let at = |x: usize, y: usize| (x as f32 - drawn.across[y * 20 + x], y as f32 - drawn.down[y * 20 + x]);
        let corners = [at(4, 4), at(12, 4), at(12, 13), at(4, 13)];
        let left = corners.iter().map(|corner| corner.0).fold(f32::INFINITY, f32::min);
        let bottom = corners.iter().map(|corner| corner.1).fold(f32::NEG_INFINITY, f32::max);
        assert_eq!((made[0], made[3]), (left.max(0.0), bottom.min(17.0)));
    }
}
