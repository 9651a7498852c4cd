//! Rotations, affine maps and perspectives, at random. Masks take the nearest class; boxes become the hulls of what they become.

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::geometry::{Frame, Reframe};
use super::pad::{check_fill, zero};
use super::projection::Projection;
use super::warp::{Warp, WarpInterpolation, channel_values, warp_mask};
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

/// Turns by a random angle, about the middle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRotation {
    /// Up to so many degrees either way, or from the first to the second; counterclockwise.
    pub degrees: Numbers,
    /// How pixels are made.
    #[serde(default)]
    pub interpolation: WarpInterpolation,
    /// Whether the new picture is as large as it takes to hold all of the turned one, about the middle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expand: bool,
    /// What is turned about instead of the middle: x and y in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center: Option<[f64; 2]>,
    /// What is outside of the picture, one value or one for each channel.
    #[serde(default = "zero")]
    pub fill: Numbers,
    /// The class that a mask has outside.
    #[serde(default)]
    pub mask_fill: u16,
}

/// Turns, moves, scales and shears by random amounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomAffine {
    /// Up to so many degrees either way, or from the first to the second; clockwise.
    pub degrees: Numbers,
    /// Moves by up to this share of the width, and of the height, either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translate: Option<[f64; 2]>,
    /// The smallest and largest factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<[f64; 2]>,
    /// Degrees: up to so many along x; from the first to the second along x; or the same along y by two more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shear: Option<Numbers>,
    /// How pixels are made.
    #[serde(default)]
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture, one value or one for each channel.
    #[serde(default = "zero")]
    pub fill: Numbers,
    /// The class that a mask has outside.
    #[serde(default)]
    pub mask_fill: u16,
    /// What is turned about instead of the middle: x and y in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center: Option<[f64; 2]>,
}

/// With probability `p`, moves the corners inwards by random amounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomPerspective {
    /// How far a corner may move: this share of half the width, and of half the height.
    pub distortion_scale: f64,
    /// How probable it is.
    pub p: f64,
    /// How pixels are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture, one value or one for each channel.
    pub fill: Numbers,
    /// The class that a mask has outside.
    pub mask_fill: u16,
}

impl Default for RandomPerspective {
    fn default() -> Self {
        Self { distortion_scale: 0.5, p: 0.5, interpolation: WarpInterpolation::Bilinear, fill: zero(), mask_fill: 0 }
    }
}

fn check_degrees(parameter: &'static str, degrees: &Numbers) -> Result<(), BadParameter> {
    let valid = degrees.is_range() && (degrees.as_slice().len() == 2 || degrees.range()[0] >= 0.0);
    BadParameter::unless(valid, parameter, degrees, "a number from 0 on, or two, the smaller first")
}

fn between(random: &mut Random, [low, high]: [f64; 2]) -> f64 {
    random.between(low, high)
}

/// A step that draws where pixels come from.
trait Distort: std::fmt::Debug + Send + Sync + 'static {
    fn check(&self) -> Result<(), BadParameter>;

    /// `None`: everything stays.
    fn draw(&self, width: usize, height: usize, random: &mut Random) -> Option<Projection>;

    /// Whether the new picture is as large as it takes to hold all of the old one.
    fn expands(&self) -> bool {
        false
    }

    fn interpolation(&self) -> WarpInterpolation;

    /// Of the picture, and of a mask.
    fn fill(&self) -> (&Numbers, u16);
}

impl Distort for RandomRotation {
    fn check(&self) -> Result<(), BadParameter> {
        check_degrees("degrees", &self.degrees)?;
        check_fill(&self.fill)
    }

    fn draw(&self, width: usize, height: usize, random: &mut Random) -> Option<Projection> {
        let center = self.center.unwrap_or([width as f64 / 2.0, height as f64 / 2.0]);
        // Counterclockwise, as torchvision has it.
        let angle = -between(random, self.degrees.around(0.0));
        Projection::affine(center, angle, [0.0; 2], 1.0, [0.0; 2])
    }

    fn expands(&self) -> bool {
        self.expand
    }

    fn interpolation(&self) -> WarpInterpolation {
        self.interpolation
    }

    fn fill(&self) -> (&Numbers, u16) {
        (&self.fill, self.mask_fill)
    }
}

impl Distort for RandomAffine {
    fn check(&self) -> Result<(), BadParameter> {
        check_degrees("degrees", &self.degrees)?;
        let shares = self.translate.is_none_or(|shares| shares.iter().all(|share| (0.0..=1.0).contains(share)));
        BadParameter::unless(shares, "translate", &self.translate, "two shares from 0 to 1")?;
        let factors = self.scale.is_none_or(|[low, high]| 0.0 < low && low <= high && high.is_finite());
        BadParameter::unless(factors, "scale", &self.scale, "two factors above 0, the smaller first")?;
        if let Some(shear) = &self.shear {
            let within = |degrees: &f64| (-89.0..=89.0).contains(degrees);
            let valid = shear.as_slice().iter().all(within)
                && match *shear.as_slice() {
                    [width] => width >= 0.0,
                    [low, high] => low <= high,
                    [low_x, high_x, low_y, high_y] => low_x <= high_x && low_y <= high_y,
                    _ => false,
                };
            let expected = "one, two or four numbers of degrees up to 89, the smaller before the larger";
            BadParameter::unless(valid, "shear", shear, expected)?;
        }
        check_fill(&self.fill)
    }

    fn draw(&self, width: usize, height: usize, random: &mut Random) -> Option<Projection> {
        let angle = between(random, self.degrees.around(0.0));
        let [share_x, share_y] = self.translate.unwrap_or([0.0; 2]);
        let mut moved = |furthest: f64| random.between(-furthest, furthest).round_ties_even();
        let translate = [moved(share_x * width as f64), moved(share_y * height as f64)];
        let scale = between(random, self.scale.unwrap_or([1.0; 2]));
        let shear = self.shear.as_ref().map_or([0.0; 2], |shear| match *shear.as_slice() {
            [low_x, high_x, low_y, high_y] => [between(random, [low_x, high_x]), between(random, [low_y, high_y])],
            _ => [between(random, shear.around(0.0)), 0.0],
        });
        let center = self.center.unwrap_or([width as f64 / 2.0, height as f64 / 2.0]);
        Projection::affine(center, angle, translate, scale, shear)
    }

    fn interpolation(&self) -> WarpInterpolation {
        self.interpolation
    }

    fn fill(&self) -> (&Numbers, u16) {
        (&self.fill, self.mask_fill)
    }
}

impl Distort for RandomPerspective {
    fn check(&self) -> Result<(), BadParameter> {
        let share = (0.0..=1.0).contains(&self.distortion_scale);
        BadParameter::unless(share, "distortion_scale", &self.distortion_scale, "between 0 and 1")?;
        BadParameter::unless((0.0..=1.0).contains(&self.p), "p", &self.p, "between 0 and 1")?;
        check_fill(&self.fill)
    }

    fn draw(&self, width: usize, height: usize, random: &mut Random) -> Option<Projection> {
        if random.unit() >= self.p {
            return None;
        }
        let furthest = |length: usize| (self.distortion_scale * (length / 2) as f64) as usize + 1;
        let mut inward = || [random.below(furthest(width)) as f64, random.below(furthest(height)) as f64];
        let (right, bottom) = (width as f64 - 1.0, height as f64 - 1.0);
        let old = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
        let [a, b, c, d] = [inward(), inward(), inward(), inward()];
        let new = [a, [right - b[0], b[1]], [right - c[0], bottom - c[1]], [d[0], bottom - d[1]]];
        Projection::perspective(old, new)
    }

    fn interpolation(&self) -> WarpInterpolation {
        self.interpolation
    }

    fn fill(&self) -> (&Numbers, u16) {
        (&self.fill, self.mask_fill)
    }
}

impl<T: Distort> Reframe for T {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        Distort::check(self)
    }

    fn refuses(&self, dtype: DType) -> Option<Needs> {
        let can = self.interpolation() == WarpInterpolation::Nearest || matches!(dtype, DType::U8 | DType::F32);
        (!can).then(|| Needs("an image in uint8 or float32 for `bilinear`".to_owned()))
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok(if self.expands() { [None, None] } else { [width, height] })
    }

    fn drawn(&self, from: (usize, usize), random: &mut Random) -> Result<Frame, StepError> {
        let whole = Frame::whole(from);
        let Some(projection) = self.draw(from.0, from.1, random) else { return Ok(whole) };
        if !self.expands() {
            return Ok(whole.to(from, projection));
        }
        let to = projection.expanded(from);
        // Both have the same middle.
        let beside = |longer: usize, side: usize| (longer as f64 - side as f64) / 2.0;
        Ok(whole.to(to, projection.around(beside(to.0, from.0), beside(to.1, from.1))))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let Some(projection) = frame.kept.projection else {
            kernels::copy(Supported::detect(), view.data, output.data);
            return Ok(());
        };
        let (fill, _) = self.fill();
        let warp = Warp { projection, interpolation: self.interpolation(), fill: Some(channel_values(fill)) };
        warp.picture(view, &mut output, fill)
    }

    fn mask(&self, view: TensorView<'_>, frame: &Frame, output: &mut TensorMut<'_>) {
        match &frame.kept.projection {
            Some(projection) => warp_mask(projection, view, output, self.fill().1),
            None => kernels::copy(Supported::detect(), view.data, output.data),
        }
    }
}
