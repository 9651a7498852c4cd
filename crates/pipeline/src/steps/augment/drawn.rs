//! The steps, and how they draw: names, parameters and defaults are those of torchvision.

use serde::{Deserialize, Serialize};

use super::{Augmentation, PixelOp};
use crate::random::Random;
use crate::step::BadParameter;
use crate::steps::Numbers;

/// Changes brightness, contrast, saturation and hue by random amounts, in random order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColorJitter {
    /// The factor is up to so much below or above 1, or between these two.
    pub brightness: Numbers,
    /// As `brightness`.
    pub contrast: Numbers,
    /// As `brightness`.
    pub saturation: Numbers,
    /// The hue is turned by up to so much of a full turn, or between these two.
    pub hue: Numbers,
}

impl Default for ColorJitter {
    fn default() -> Self {
        Self { brightness: 0.0.into(), contrast: 0.0.into(), saturation: 0.0.into(), hue: 0.0.into() }
    }
}

impl ColorJitter {
    fn factors(amount: &Numbers) -> [f64; 2] {
        let [low, high] = amount.around(1.0);
        [low.max(0.0), high]
    }

    fn check_factors(parameter: &'static str, amount: &Numbers) -> Result<(), BadParameter> {
        let valid = amount.is_range() && amount.range()[0] >= 0.0;
        BadParameter::unless(valid, parameter, amount, "a number from 0 on, or two, the smaller first")
    }
}

impl Augmentation for ColorJitter {
    fn check(&self) -> Result<(), BadParameter> {
        Self::check_factors("brightness", &self.brightness)?;
        Self::check_factors("contrast", &self.contrast)?;
        Self::check_factors("saturation", &self.saturation)?;
        let valid = matches!(self.hue.as_slice(), [width] if (0.0..=0.5).contains(width))
            || self.hue.is_range() && self.hue.range().iter().all(|turn| (-0.5..=0.5).contains(turn));
        BadParameter::unless(valid, "hue", &self.hue, "from 0 to 0.5, or two numbers from -0.5 to 0.5")
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let mut order = [0, 1, 2, 3];
        random.shuffle(&mut order);
        let amounts = [
            (Self::factors(&self.brightness), 1.0),
            (Self::factors(&self.contrast), 1.0),
            (Self::factors(&self.saturation), 1.0),
            (self.hue.around(0.0), 0.0),
        ];
        let drawn = amounts.map(|([low, high], _)| random.between(low, high));
        for place in order {
            let ([low, high], nothing) = amounts[place];
            if low < high || (low - nothing).abs() > 0.0 {
                let amount = drawn[place] as f32;
                ops.push(match place {
                    0 => PixelOp::Brightness(amount),
                    1 => PixelOp::Contrast(amount),
                    2 => PixelOp::Saturation(amount),
                    _ => PixelOp::Hue(amount),
                });
            }
        }
    }
}

/// Changes brightness, contrast, saturation and hue, each with probability `p`, and the order of the channels, as SSD's recipe has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomPhotometricDistort {
    /// The smallest and largest factor.
    pub brightness: [f64; 2],
    /// As `brightness`. It comes before saturation and hue, or after them.
    pub contrast: [f64; 2],
    /// As `brightness`.
    pub saturation: [f64; 2],
    /// The hue is turned by so much of a full turn, between these two.
    pub hue: [f64; 2],
    /// How probable each change is.
    pub p: f64,
}

impl Default for RandomPhotometricDistort {
    fn default() -> Self {
        let around = [0.5, 1.5];
        Self { brightness: [0.875, 1.125], contrast: around, saturation: around, hue: [-0.05, 0.05], p: 0.5 }
    }
}

impl Augmentation for RandomPhotometricDistort {
    fn check(&self) -> Result<(), BadParameter> {
        let factors = [("brightness", self.brightness), ("contrast", self.contrast), ("saturation", self.saturation)];
        for (parameter, [low, high]) in factors {
            let valid = 0.0 <= low && low <= high && high.is_finite();
            BadParameter::unless(valid, parameter, &[low, high], "two numbers from 0 on, the smaller first")?;
        }
        let [low, high] = self.hue;
        let valid = -0.5 <= low && low <= high && high <= 0.5;
        BadParameter::unless(valid, "hue", &self.hue, "two numbers from -0.5 to 0.5, the smaller first")?;
        check_p(self.p)
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let mut drawn = |[low, high]: [f64; 2]| {
            let (is_done, amount) = (random.unit() < self.p, random.between(low, high));
            is_done.then_some(amount as f32)
        };
        let [brightness, contrast, saturation, hue] =
            [drawn(self.brightness), drawn(self.contrast), drawn(self.saturation), drawn(self.hue)];
        let contrast_first = random.unit() < 0.5;
        ops.extend(brightness.map(PixelOp::Brightness));
        ops.extend(contrast.filter(|_| contrast_first).map(PixelOp::Contrast));
        ops.extend(saturation.map(PixelOp::Saturation));
        ops.extend(hue.map(PixelOp::Hue));
        ops.extend(contrast.filter(|_| !contrast_first).map(PixelOp::Contrast));
        if random.unit() < self.p {
            let mut order = [0, 1, 2];
            random.shuffle(&mut order);
            ops.push(PixelOp::Permute(order));
        }
    }
}

fn check_p(p: f64) -> Result<(), BadParameter> {
    BadParameter::unless((0.0..=1.0).contains(&p), "p", &p, "between 0 and 1")
}

fn half() -> f64 {
    0.5
}

/// With probability `p`, gray in all channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomGrayscale {
    /// How probable it is.
    pub p: f64,
}

impl Default for RandomGrayscale {
    fn default() -> Self {
        Self { p: 0.1 }
    }
}

impl Augmentation for RandomGrayscale {
    fn check(&self) -> Result<(), BadParameter> {
        check_p(self.p)
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        if random.unit() < self.p {
            ops.push(PixelOp::Grayscale);
        }
    }
}

/// A step that does one thing with a probability, and takes nothing else.
macro_rules! with_probability {
    ($(#[$doc:meta])* $name:ident => $op:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// How probable it is.
            #[serde(default = "half")]
            pub p: f64,
        }

        impl Augmentation for $name {
            fn check(&self) -> Result<(), BadParameter> {
                check_p(self.p)
            }

            fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
                if random.unit() < self.p {
                    ops.push($op);
                }
            }
        }
    };
}

with_probability! {
    /// With probability `p`, 255 − value.
    RandomInvert => PixelOp::Invert
}

with_probability! {
    /// With probability `p`, each channel's values spread evenly.
    RandomEqualize => PixelOp::Equalize
}

with_probability! {
    /// With probability `p`, each channel's values stretched from 0 to 255.
    RandomAutocontrast => PixelOp::Autocontrast
}

/// With probability `p`, values from a threshold on are inverted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSolarize {
    /// Values of at least so much are inverted.
    pub threshold: f64,
    /// How probable it is.
    #[serde(default = "half")]
    pub p: f64,
}

impl Augmentation for RandomSolarize {
    fn check(&self) -> Result<(), BadParameter> {
        let valid = (0.0..=256.0).contains(&self.threshold);
        BadParameter::unless(valid, "threshold", &self.threshold, "a value of an 8-bit image: from 0 to 256")?;
        check_p(self.p)
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        if random.unit() < self.p {
            ops.push(PixelOp::Solarize(self.threshold as f32));
        }
    }
}

/// With probability `p`, fewer bits of each value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomPosterize {
    /// How many are kept.
    pub bits: u8,
    /// How probable it is.
    #[serde(default = "half")]
    pub p: f64,
}

impl Augmentation for RandomPosterize {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.bits <= 8, "bits", &self.bits, "from 0 to 8")?;
        check_p(self.p)
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        if random.unit() < self.p {
            ops.push(PixelOp::Posterize(self.bits));
        }
    }
}

/// With probability `p`, sharper or less sharp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomAdjustSharpness {
    /// 0: blurred. 1: as it is. 2: twice as sharp.
    pub sharpness_factor: f64,
    /// How probable it is.
    #[serde(default = "half")]
    pub p: f64,
}

impl Augmentation for RandomAdjustSharpness {
    fn check(&self) -> Result<(), BadParameter> {
        let valid = self.sharpness_factor >= 0.0 && self.sharpness_factor.is_finite();
        BadParameter::unless(valid, "sharpness_factor", &self.sharpness_factor, "a number from 0 on")?;
        check_p(self.p)
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        if random.unit() < self.p {
            ops.push(PixelOp::Sharpness(self.sharpness_factor as f32));
        }
    }
}

/// Blurs by a Gaussian kernel, whose standard deviation is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GaussianBlur {
    /// In pixels, odd: one number, or along x and y.
    pub kernel_size: Numbers,
    /// The standard deviation in pixels, or the smallest and largest.
    #[serde(default = "default_sigma")]
    pub sigma: Numbers,
}

fn default_sigma() -> Numbers {
    [0.1, 2.0].into()
}

/// A larger kernel is a mistake.
const KERNEL_SIZE_MAX: f64 = 255.0;

impl Augmentation for GaussianBlur {
    fn is_random(&self) -> bool {
        let [low, high] = self.sigma.range();
        low < high
    }

    fn check(&self) -> Result<(), BadParameter> {
        let sizes = self.kernel_size.as_slice();
        let odd = |size: &f64| (1.0..=KERNEL_SIZE_MAX).contains(size) && size.fract() == 0.0 && *size as usize % 2 == 1;
        let valid = sizes.len() <= 2 && sizes.iter().all(odd);
        BadParameter::unless(valid, "kernel_size", &self.kernel_size, "one or two odd numbers up to 255")?;
        let valid = self.sigma.is_range() && self.sigma.range()[0] > 0.0;
        BadParameter::unless(valid, "sigma", &self.sigma, "a number above 0, or two, the smaller first")
    }

    fn draw(&self, _size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let [low, high] = self.sigma.range();
        let sigma = random.between(low, high) as f32;
        let kernel_size = self.kernel_size.range().map(|size| size as usize);
        ops.push(PixelOp::GaussianBlur { kernel_size, sigma: [sigma; 2] });
    }
}
