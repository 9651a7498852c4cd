//! timm's `RandAugment`, which has other changes and strengths than torchvision's, and noise on each strength.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::policies::check_optional_fill;
use super::{Augmentation, PixelOp};
use crate::random::Random;
use crate::step::BadParameter;
use crate::steps::warp::{Warp, WarpInterpolation, channel_values};
use crate::steps::{Numbers, Projection};

/// What timm's `rand_augment_transform` makes of a configuration such as `rand-m9-mstd0.5-inc1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandAugmentTransform {
    /// How many changes, how strong, how probable.
    pub config_str: RandConfig,
    /// How the pixels of warps are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture then: timm's `img_mean`.
    pub fill: Numbers,
    /// The class that a mask has there.
    pub mask_fill: u16,
}

impl Default for RandAugmentTransform {
    fn default() -> Self {
        Self {
            config_str: RandConfig::default(),
            interpolation: WarpInterpolation::Bilinear,
            // ImageNet's mean, as timm's `create_transform` rounds it.
            fill: [124.0, 116.0, 104.0].into(),
            mask_fill: 0,
        }
    }
}

/// The parts of a configuration: `rand-m9-n2-p0.5-mstd0.5-mmax10-inc1`, of which each but `rand` may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RandConfig {
    /// `m`: how strong changes are.
    pub magnitude: u32,
    /// `n`: how many are drawn.
    pub num_layers: usize,
    /// `p`: how probable each of them is.
    pub prob: f64,
    /// `mstd`: the standard deviation of each strength around `magnitude`; above 100, strengths are even between 0 and `magnitude`.
    pub magnitude_std: f64,
    /// `mmax`: the largest strength.
    pub magnitude_max: u32,
    /// `inc`: whether all changes become stronger with their strength.
    pub increasing: bool,
}

impl Default for RandConfig {
    fn default() -> Self {
        Self { magnitude: 10, num_layers: 2, prob: 0.5, magnitude_std: 0.0, magnitude_max: 10, increasing: false }
    }
}

/// More changes than this are a mistake.
const LAYERS_MAX: usize = 64;

/// Stronger ones, too.
const MAGNITUDE_MAX: u32 = 1000;

/// From this `mstd` on strengths are even.
const EVEN_FROM: f64 = 100.0;

impl FromStr for RandConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut config = Self::default();
        let parts = text.strip_prefix("rand").filter(|parts| parts.is_empty() || parts.starts_with('-'));
        let parts = parts.ok_or("`config_str` begins with `rand`, as `rand-m9-mstd0.5-inc1`")?;
        for part in parts.split('-').skip(1) {
            let end = part.find(|letter: char| letter.is_ascii_digit()).unwrap_or(part.len());
            let (key, value) = part.split_at(end);
            let bad = || format!("`{part}` in `config_str`: `{value}` is not a number that `{key}` can have");
            let whole = |most: u32| value.parse::<u32>().ok().filter(|number| *number <= most).ok_or_else(bad);
            let number = || value.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(bad);
            match key {
                "m" => config.magnitude = whole(MAGNITUDE_MAX)?,
                "n" => config.num_layers = whole(LAYERS_MAX as u32)? as usize,
                "p" => config.prob = number().ok().filter(|p| *p <= 1.0).ok_or_else(bad)?,
                "mstd" => config.magnitude_std = number()?,
                "mmax" => config.magnitude_max = whole(MAGNITUDE_MAX)?,
                "inc" => config.increasing = whole(1)? == 1,
                _ => return Err(format!("`{part}` in `config_str`: expected `m`, `n`, `p`, `mstd`, `mmax` or `inc`")),
            }
        }
        Ok(config)
    }
}

impl TryFrom<String> for RandConfig {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for RandConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { magnitude, num_layers, prob, magnitude_std, magnitude_max, increasing } = *self;
        let increasing = u8::from(increasing);
        write!(f, "rand-m{magnitude}-n{num_layers}-p{prob}-mstd{magnitude_std}-mmax{magnitude_max}-inc{increasing}")
    }
}

impl From<RandConfig> for String {
    fn from(config: RandConfig) -> Self {
        config.to_string()
    }
}

/// What is drawn from, all of it alike.
#[derive(Clone, Copy)]
enum Kind {
    AutoContrast,
    Equalize,
    Invert,
    Rotate,
    Posterize,
    Solarize,
    SolarizeAdd,
    Color,
    Contrast,
    Brightness,
    Sharpness,
    ShearX,
    ShearY,
    TranslateXRel,
    TranslateYRel,
}

const KINDS: [Kind; 15] = [
    Kind::AutoContrast,
    Kind::Equalize,
    Kind::Invert,
    Kind::Rotate,
    Kind::Posterize,
    Kind::Solarize,
    Kind::SolarizeAdd,
    Kind::Color,
    Kind::Contrast,
    Kind::Brightness,
    Kind::Sharpness,
    Kind::ShearX,
    Kind::ShearY,
    Kind::TranslateXRel,
    Kind::TranslateYRel,
];

impl RandConfig {
    /// A strength, where 1 is timm's 10.
    fn draw_level(&self, random: &mut Random) -> f64 {
        let magnitude = f64::from(self.magnitude);
        let magnitude = match self.magnitude_std {
            std if std > EVEN_FROM => random.between(0.0, magnitude),
            std if std > 0.0 => magnitude + std * random.normal(),
            _ => magnitude,
        };
        // 0 is no limit to timm, but its own.
        let most = if self.magnitude_max == 0 { 10 } else { self.magnitude_max };
        magnitude.clamp(0.0, f64::from(most)) / 10.0
    }

    /// The factor of a change of color, contrast, brightness or sharpness.
    fn factor(&self, level: f64, random: &mut Random) -> f32 {
        let factor = if self.increasing { (1.0 + either_way(0.9 * level, random)).max(0.1) } else { 1.8 * level + 0.1 };
        factor as f32
    }
}

/// The number or its negative, one as probable as the other.
fn either_way(number: f64, random: &mut Random) -> f64 {
    if random.unit() < 0.5 { -number } else { number }
}

impl RandAugmentTransform {
    /// Where pixels come from, with a matrix of two rows as Pillow takes it.
    fn warp(&self, [first, second]: [[f64; 3]; 2]) -> Option<PixelOp> {
        self.projected(Projection::new([first, second, [0.0, 0.0, 1.0]]))
    }

    fn projected(&self, projection: Option<Projection>) -> Option<PixelOp> {
        let fill = Some(channel_values(&self.fill));
        projection.map(|projection| PixelOp::Warp(Warp { projection, interpolation: self.interpolation, fill }))
    }

    fn change(&self, kind: Kind, size: (usize, usize), random: &mut Random) -> Option<PixelOp> {
        let config = &self.config_str;
        let level = config.draw_level(random);
        let (width, height) = (size.0 as f64, size.1 as f64);
        Some(match kind {
            Kind::AutoContrast => PixelOp::Autocontrast,
            Kind::Equalize => PixelOp::Equalize,
            Kind::Invert => PixelOp::Invert,
            Kind::Posterize => {
                let bits = ((4.0 * level) as u8).min(8);
                PixelOp::Posterize(if config.increasing { 4_u8.saturating_sub(bits) } else { bits })
            }
            Kind::Solarize => {
                let threshold = (256.0 * level).trunc().min(256.0) as f32;
                PixelOp::Solarize(if config.increasing { 256.0 - threshold } else { threshold })
            }
            Kind::SolarizeAdd => PixelOp::SolarizeAdd((110.0 * level).min(128.0) as u8),
            Kind::Color => PixelOp::Saturation(config.factor(level, random)),
            Kind::Contrast => PixelOp::Contrast(config.factor(level, random)),
            Kind::Brightness => PixelOp::Brightness(config.factor(level, random)),
            Kind::Sharpness => PixelOp::Sharpness(config.factor(level, random)),
            Kind::Rotate => {
                let angle = either_way(30.0 * level, random);
                return self.projected(Projection::affine([width / 2.0, height / 2.0], angle, [0.0; 2], 1.0, [0.0; 2]));
            }
            Kind::ShearX => return self.warp([[1.0, either_way(0.3 * level, random), 0.0], [0.0, 1.0, 0.0]]),
            Kind::ShearY => return self.warp([[1.0, 0.0, 0.0], [either_way(0.3 * level, random), 1.0, 0.0]]),
            Kind::TranslateXRel => {
                return self.warp([[1.0, 0.0, either_way(0.45 * level * width, random)], [0.0, 1.0, 0.0]]);
            }
            Kind::TranslateYRel => {
                return self.warp([[1.0, 0.0, 0.0], [0.0, 1.0, either_way(0.45 * level * height, random)]]);
            }
        })
    }
}

impl Augmentation for RandAugmentTransform {
    fn check(&self) -> Result<(), BadParameter> {
        check_optional_fill(Some(&self.fill))
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn mask_fill(&self) -> u16 {
        self.mask_fill
    }

    fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        for _ in 0..self.config_str.num_layers {
            let kind = KINDS[random.below(KINDS.len())];
            if random.unit() < self.config_str.prob {
                ops.extend(self.change(kind, size, random));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_read_and_written() {
        let config: RandConfig = "rand-m9-mstd0.5-inc1".parse().unwrap();
        let expected = RandConfig { magnitude: 9, magnitude_std: 0.5, increasing: true, ..RandConfig::default() };
        assert_eq!(config, expected);
        assert_eq!(config.to_string().parse(), Ok(config));
        assert_eq!("rand".parse(), Ok(RandConfig::default()));
        for text in [
            "augmix-m9",
            "random-m9",
            "rand-q3",
            "rand-m",
            "rand-p1.5",
            "rand-mstd1-tweights",
            "rand-inc2",
            "rand-n100",
        ] {
            assert!(text.parse::<RandConfig>().is_err(), "{text}");
        }
    }
}
