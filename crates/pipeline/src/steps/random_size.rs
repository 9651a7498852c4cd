//! Resizing to a size that is drawn, as recipes of detection and segmentation have it: the aspect ratio stays.

use std::fmt;

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::geometry::{Frame, Kept, Rectangle, Reframe};
use super::resize::{Interpolation, refuses, resize_rectangle, with_shorter_side};
use super::size::Size;
use crate::error::StepError;
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

/// The size at which a picture just fits into another one, times a random factor: large scale jitter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleJitter {
    /// Width and height of what it just fits into.
    pub target_size: [usize; 2],
    /// The smallest and largest factor.
    #[serde(default = "default_range")]
    pub scale_range: [f64; 2],
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
}

fn default_range() -> [f64; 2] {
    [0.1, 2.0]
}

/// A shorter side drawn from a list, but no longer side above a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomShortestSize {
    /// The lengths to draw from, or one.
    pub min_size: Numbers,
    /// The most that the longer side may become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<usize>,
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
}

/// A shorter side drawn between two lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomResize {
    /// The least.
    pub min_size: usize,
    /// What it stays below.
    pub max_size: usize,
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
}

/// What draws a size.
pub trait DrawSize: fmt::Debug + Send + Sync + 'static {
    /// Whether its parameters make sense.
    fn check(&self) -> Result<(), BadParameter>;

    /// Width and height that a picture of these becomes this time, rounded down.
    fn draw(&self, width: usize, height: usize, random: &mut Random) -> [f64; 2];

    /// The filter.
    fn interpolation(&self) -> Interpolation;
}

/// The step of what draws a size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Drawn<T>(pub T);

/// A larger factor is a mistake.
const FACTOR_MAX: f64 = 100.0;

impl DrawSize for ScaleJitter {
    fn check(&self) -> Result<(), BadParameter> {
        Size::Exact(self.target_size).check()?;
        let [low, high] = self.scale_range;
        let valid = 0.0 < low && low <= high && high <= FACTOR_MAX;
        BadParameter::unless(valid, "scale_range", &self.scale_range, "two factors above 0, the smaller first")
    }

    fn draw(&self, width: usize, height: usize, random: &mut Random) -> [f64; 2] {
        let [to_width, to_height] = self.target_size.map(|side| side as f64);
        let (width, height) = (width as f64, height as f64);
        let scale = random.between(self.scale_range[0], self.scale_range[1]);
        let factor = (to_height / height).min(to_width / width) * scale;
        [width * factor, height * factor]
    }

    fn interpolation(&self) -> Interpolation {
        self.interpolation
    }
}

/// A longer list of lengths is a mistake.
const LENGTHS_MAX: usize = 1000;

impl DrawSize for RandomShortestSize {
    fn check(&self) -> Result<(), BadParameter> {
        let lengths = self.min_size.as_slice();
        let valid = (1..=LENGTHS_MAX).contains(&lengths.len())
            && lengths.iter().all(|length| (1.0..=65536.0).contains(length) && length.fract() == 0.0);
        BadParameter::unless(
            valid,
            "min_size",
            &self.min_size,
            "a number of pixels from 1 to 65536, or a list of them",
        )?;
        let valid = self.max_size.is_none_or(|length| (1..=65536).contains(&length));
        BadParameter::unless(valid, "max_size", &self.max_size, "from 1 to 65536 pixels")
    }

    fn draw(&self, width: usize, height: usize, random: &mut Random) -> [f64; 2] {
        let lengths = self.min_size.as_slice();
        let shorter = lengths[random.below(lengths.len())];
        let mut factor = shorter / width.min(height) as f64;
        if let Some(longest) = self.max_size {
            factor = factor.min(longest as f64 / width.max(height) as f64);
        }
        [width as f64 * factor, height as f64 * factor]
    }

    fn interpolation(&self) -> Interpolation {
        self.interpolation
    }
}

impl DrawSize for RandomResize {
    fn check(&self) -> Result<(), BadParameter> {
        Size::Exact([self.min_size, self.max_size]).check()?;
        let valid = self.min_size < self.max_size;
        BadParameter::unless(
            valid,
            "max_size",
            &self.max_size,
            "above `min_size`, which is the least; it is not reached",
        )
    }

    fn draw(&self, width: usize, height: usize, random: &mut Random) -> [f64; 2] {
        let shorter = self.min_size + random.below(self.max_size - self.min_size);
        // Whole numbers: a product of rounded factors could fall just below the shorter side.
        let (width, height) = with_shorter_side(shorter, width, height);
        [width as f64, height as f64]
    }

    fn interpolation(&self) -> Interpolation {
        self.interpolation
    }
}

impl<T: DrawSize> Reframe for Drawn<T> {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        self.0.check()?;
        let fits = self.0.interpolation() != Interpolation::Area;
        BadParameter::unless(fits, "interpolation", &self.0.interpolation(), "`bilinear`, `bicubic` or `lanczos`")
    }

    fn refuses(&self, dtype: DType) -> Option<Needs> {
        refuses(dtype)
    }

    fn size_type(&self, _width: Option<usize>, _height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok([None, None])
    }

    fn size(&self, width: usize, height: usize, random: &mut Random) -> Result<(usize, usize), StepError> {
        let [width, height] = self.0.draw(width, height, random).map(|side| (side as usize).max(1));
        Ok((width, height))
    }

    fn kept(&self, width: usize, height: usize, _random: &mut Random) -> Result<Kept, StepError> {
        Ok(Rectangle::whole(width, height).into())
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        resize_rectangle(view, frame.kept.rectangle, self.0.interpolation(), true, &mut output, scope.scratch())
    }
}
