//! Policies: which changes are drawn together, and how strong they are. The spaces, magnitudes and defaults are torchvision's.

use serde::{Deserialize, Serialize};

use super::auto_augment::{AutoAugmentPolicy, SubPolicy};
use super::{Augmentation, PixelOp};
use crate::random::Random;
use crate::step::BadParameter;
use crate::steps::pad::check_fill;
use crate::steps::warp::{Warp, WarpInterpolation, channel_values};
use crate::steps::{Numbers, Projection};

/// What a policy can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    Autocontrast,
    Equalize,
    Invert,
}

/// How strong each kind is at most: `RandAugment`'s and `AutoAugment`'s, `TrivialAugment`'s wide one, and `AugMix`'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Usual,
    Wide,
    Mixed,
}

impl Kind {
    /// What `RandAugment` and `TrivialAugmentWide` draw from.
    const DRAWN: [Self; 14] = [
        Self::Identity,
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
        Self::Rotate,
        Self::Brightness,
        Self::Color,
        Self::Contrast,
        Self::Sharpness,
        Self::Posterize,
        Self::Solarize,
        Self::Autocontrast,
        Self::Equalize,
    ];

    /// What `AugMix` draws from: all of it, or the first nine.
    pub(super) const MIXED: [Self; 13] = [
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
        Self::Rotate,
        Self::Posterize,
        Self::Solarize,
        Self::Autocontrast,
        Self::Equalize,
        Self::Brightness,
        Self::Color,
        Self::Contrast,
        Self::Sharpness,
    ];

    /// Whether it can go either way.
    fn is_signed(self) -> bool {
        !matches!(
            self,
            Self::Identity | Self::Posterize | Self::Solarize | Self::Autocontrast | Self::Equalize | Self::Invert
        )
    }

    /// How strong it is, for a picture of this size.
    fn magnitude(self, space: Space, strength: Strength, (width, height): (usize, usize)) -> f64 {
        let share = strength.share();
        let most = |usual: f64, wide: f64, mixed: f64| match space {
            Space::Usual => usual,
            Space::Wide => wide,
            Space::Mixed => mixed,
        };
        let translated = |length: usize| most(150.0 / 331.0 * length as f64, 32.0, length as f64 / 3.0);
        match self {
            Self::ShearX | Self::ShearY => share * most(0.3, 0.99, 0.3),
            Self::TranslateX => strength.linspace(translated(width)),
            Self::TranslateY => strength.linspace(translated(height)),
            Self::Rotate => share * most(30.0, 135.0, 30.0),
            Self::Brightness | Self::Color | Self::Contrast | Self::Sharpness => share * most(0.9, 0.99, 0.9),
            Self::Posterize => (most(8.0, 8.0, 4.0) - share * most(4.0, 6.0, 4.0)).round_ties_even(),
            Self::Solarize => 1.0 - share,
            Self::Identity | Self::Autocontrast | Self::Equalize | Self::Invert => 0.0,
        }
    }
}

/// One of so many strengths, which are numbered from 0 on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strength {
    pub(super) bin: usize,
    pub(super) bins: usize,
}

impl Strength {
    /// Its share of the strongest, 0 to 1.
    fn share(self) -> f64 {
        self.bin as f64 / (self.bins - 1) as f64
    }

    /// The same of `most`, as `torch.linspace` rounds it: what is a hair less than a whole number of pixels is cut off to one less.
    fn linspace(self, most: f64) -> f64 {
        let (most, last) = (most as f32, self.bins - 1);
        let step = most / last as f32;
        // The upper half is counted from the end, by a product that is not rounded before it is taken away.
        let half = self.bins / 2;
        let reached =
            if self.bin < half { step * self.bin as f32 } else { (-step).mul_add((last - self.bin) as f32, most) };
        f64::from(reached)
    }
}

/// How warps of a policy are made.
#[derive(Clone, Copy)]
pub(super) struct Warped<'a> {
    pub(super) interpolation: WarpInterpolation,
    pub(super) fill: Option<&'a Numbers>,
}

/// Adds a change of this kind, of this strength, either way if it has two.
pub(super) fn add(
    kind: Kind,
    space: Space,
    strength: Strength,
    size: (usize, usize),
    warped: Warped<'_>,
    random: &mut Random,
    ops: &mut Vec<PixelOp>,
) {
    let mut magnitude = kind.magnitude(space, strength, size);
    if kind.is_signed() && random.unit() < 0.5 {
        magnitude = -magnitude;
    }
    let corner = [0.0; 2];
    let sheared = |shear: [f64; 2]| Projection::affine(corner, 0.0, [0.0; 2], 1.0, shear);
    let moved = |translate: [f64; 2]| Projection::affine(corner, 0.0, translate, 1.0, [0.0; 2]);
    let factor = (1.0 + magnitude) as f32;
    let projection = match kind {
        Kind::ShearX => sheared([magnitude.atan().to_degrees(), 0.0]),
        Kind::ShearY => sheared([0.0, magnitude.atan().to_degrees()]),
        Kind::TranslateX => moved([magnitude.trunc(), 0.0]),
        Kind::TranslateY => moved([0.0, magnitude.trunc()]),
        Kind::Rotate => {
            let middle = [size.0 as f64 / 2.0, size.1 as f64 / 2.0];
            Projection::affine(middle, -magnitude, [0.0; 2], 1.0, [0.0; 2])
        }
        Kind::Brightness => return ops.push(PixelOp::Brightness(factor)),
        Kind::Color => return ops.push(PixelOp::Saturation(factor)),
        Kind::Contrast => return ops.push(PixelOp::Contrast(factor)),
        Kind::Sharpness => return ops.push(PixelOp::Sharpness(factor)),
        Kind::Posterize => return ops.push(PixelOp::Posterize(magnitude as u8)),
        Kind::Solarize => return ops.push(PixelOp::Solarize((255.0 * magnitude) as f32)),
        Kind::Autocontrast => return ops.push(PixelOp::Autocontrast),
        Kind::Equalize => return ops.push(PixelOp::Equalize),
        Kind::Invert => return ops.push(PixelOp::Invert),
        Kind::Identity => return,
    };
    let Warped { interpolation, fill } = warped;
    ops.extend(
        projection.map(|projection| PixelOp::Warp(Warp { projection, interpolation, fill: fill.map(channel_values) })),
    );
}

pub(super) fn check_optional_fill(fill: Option<&Numbers>) -> Result<(), BadParameter> {
    fill.map_or(Ok(()), check_fill)
}

/// `RandAugment` (Cubuk and others, 2019): a few changes, all of one strength.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandAugment {
    /// How many changes.
    pub num_ops: usize,
    /// How strong they are: a number below `num_magnitude_bins`.
    pub magnitude: usize,
    /// How many strengths there are.
    pub num_magnitude_bins: usize,
    /// How the pixels of warps are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Numbers>,
    /// The class that a mask has there.
    pub mask_fill: u16,
}

impl Default for RandAugment {
    fn default() -> Self {
        let interpolation = WarpInterpolation::Nearest;
        Self { num_ops: 2, magnitude: 9, num_magnitude_bins: 31, interpolation, fill: None, mask_fill: 0 }
    }
}

/// More changes than this are a mistake.
const OPS_MAX: usize = 64;

fn check_bins(bins: usize) -> Result<(), BadParameter> {
    BadParameter::unless((2..=1000).contains(&bins), "num_magnitude_bins", &bins, "from 2 to 1000")
}

impl Augmentation for RandAugment {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.num_ops <= OPS_MAX, "num_ops", &self.num_ops, "up to 64")?;
        check_bins(self.num_magnitude_bins)?;
        let valid = self.magnitude < self.num_magnitude_bins;
        BadParameter::unless(valid, "magnitude", &self.magnitude, "less than `num_magnitude_bins`")?;
        check_optional_fill(self.fill.as_ref())
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn mask_fill(&self) -> u16 {
        self.mask_fill
    }

    fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let strength = Strength { bin: self.magnitude, bins: self.num_magnitude_bins };
        let warped = Warped { interpolation: self.interpolation, fill: self.fill.as_ref() };
        for _ in 0..self.num_ops {
            let kind = Kind::DRAWN[random.below(Kind::DRAWN.len())];
            add(kind, Space::Usual, strength, size, warped, random, ops);
        }
    }
}

/// `TrivialAugmentWide` (Müller and Hutter, 2021): one change, of any strength.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrivialAugmentWide {
    /// How many strengths there are.
    pub num_magnitude_bins: usize,
    /// How the pixels of warps are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Numbers>,
    /// The class that a mask has there.
    pub mask_fill: u16,
}

impl Default for TrivialAugmentWide {
    fn default() -> Self {
        Self { num_magnitude_bins: 31, interpolation: WarpInterpolation::Nearest, fill: None, mask_fill: 0 }
    }
}

impl Augmentation for TrivialAugmentWide {
    fn check(&self) -> Result<(), BadParameter> {
        check_bins(self.num_magnitude_bins)?;
        check_optional_fill(self.fill.as_ref())
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn mask_fill(&self) -> u16 {
        self.mask_fill
    }

    fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let kind = Kind::DRAWN[random.below(Kind::DRAWN.len())];
        let strength = Strength { bin: random.below(self.num_magnitude_bins), bins: self.num_magnitude_bins };
        let warped = Warped { interpolation: self.interpolation, fill: self.fill.as_ref() };
        add(kind, Space::Wide, strength, size, warped, random, ops);
    }
}

/// `AutoAugment` (Cubuk and others, 2018): one of 25 pairs of changes that were learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoAugment {
    /// What they were learned on.
    pub policy: AutoAugmentPolicy,
    /// How the pixels of warps are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Numbers>,
    /// The class that a mask has there.
    pub mask_fill: u16,
}

impl Default for AutoAugment {
    fn default() -> Self {
        let interpolation = WarpInterpolation::Nearest;
        Self { policy: AutoAugmentPolicy::Imagenet, interpolation, fill: None, mask_fill: 0 }
    }
}

impl Augmentation for AutoAugment {
    fn check(&self) -> Result<(), BadParameter> {
        check_optional_fill(self.fill.as_ref())
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn mask_fill(&self) -> u16 {
        self.mask_fill
    }

    fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let policies: &[SubPolicy] = self.policy.sub_policies();
        let warped = Warped { interpolation: self.interpolation, fill: self.fill.as_ref() };
        for (kind, p, bin) in policies[random.below(policies.len())] {
            if random.unit() < p {
                add(kind, Space::Usual, Strength { bin: usize::from(bin), bins: 10 }, size, warped, random, ops);
            }
        }
    }
}
