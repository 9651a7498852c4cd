//! Random erasing: a rectangle of a picture is overwritten.

use forebay_codec::{DType, TensorSpec};
use serde::{Deserialize, Serialize};

use super::geometry::Rectangle;
use super::pad::{fill_pixels, filled_pixel};
use super::{Numbers, tensor};
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// With probability `p`, overwrites a random rectangle. Channels may come last or first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomErasing {
    /// How probable it is.
    pub p: f64,
    /// The smallest and largest share of the picture's area.
    pub scale: [f64; 2],
    /// The smallest and largest aspect ratio, height over width.
    pub ratio: [f64; 2],
    /// What the rectangle becomes.
    pub value: ErasedValue,
}

/// What an erased rectangle becomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ErasedValue {
    /// One value for all channels, or one for each.
    Numbers(Numbers),
    /// `random`: normally distributed values of mean 0 and variance 1.
    Named(ErasedName),
}

/// The name of what an erased rectangle becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErasedName {
    /// Normally distributed values of mean 0 and variance 1.
    Random,
}

impl Default for RandomErasing {
    fn default() -> Self {
        Self { p: 0.5, scale: [0.02, 0.33], ratio: [0.3, 3.3], value: ErasedValue::Numbers(0.0.into()) }
    }
}

/// How often a rectangle that does not fit is drawn again before nothing is erased.
const ERASE_ATTEMPTS: usize = 10;

/// Height, width and channels, and whether the channels come first.
pub(super) fn layout(spec: &TensorSpec) -> Option<([usize; 3], bool)> {
    match *spec.shape.dims() {
        [height, width, channels @ 1..=4] => Some(([height, width, channels], false)),
        [channels @ 1..=4, height, width] => Some(([height, width, channels], true)),
        _ => None,
    }
}

impl RandomErasing {
    /// What is erased of a picture of this size this time.
    fn draw(&self, width: usize, height: usize, random: &mut Random) -> Option<Rectangle> {
        if random.unit() >= self.p {
            return None;
        }
        let pixels = (width * height) as f64;
        for _ in 0..ERASE_ATTEMPTS {
            let area = pixels * random.between(self.scale[0], self.scale[1]);
            let ratio = random.between(self.ratio[0].ln(), self.ratio[1].ln()).exp();
            let erased_height = (area * ratio).sqrt().round() as usize;
            let erased_width = (area / ratio).sqrt().round() as usize;
            if erased_height < height && erased_width < width {
                return Some(Rectangle {
                    top: random.below(height - erased_height + 1),
                    left: random.below(width - erased_width + 1),
                    width: erased_width,
                    height: erased_height,
                });
            }
        }
        None
    }

    /// Overwrites `to`, which is a part of a row, with pixels of these bytes, or with random values.
    fn erase(&self, to: &mut [u8], pixel: &[u8], random: &mut Random) {
        if let ErasedValue::Named(ErasedName::Random) = self.value {
            let (values, _) = to.as_chunks_mut::<4>();
            for to in values {
                *to = (random.normal() as f32).to_le_bytes();
            }
        } else {
            fill_pixels(to, pixel);
        }
    }
}

impl Transform for RandomErasing {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless((0.0..=1.0).contains(&self.p), "p", &self.p, "between 0 and 1")?;
        let in_order = |[low, high]: [f64; 2]| low <= high && high.is_finite();
        let shares = in_order(self.scale) && self.scale[0] >= 0.0 && self.scale[1] <= 1.0;
        BadParameter::unless(shares, "scale", &self.scale, "two shares from 0 to 1, the smaller first")?;
        let ratios = in_order(self.ratio) && self.ratio[0] > 0.0;
        BadParameter::unless(ratios, "ratio", &self.ratio, "two ratios above 0, the smaller first")?;
        let ErasedValue::Numbers(values) = &self.value else { return Ok(()) };
        let valid = values.as_slice().len() <= 4 && values.as_slice().iter().all(|value| value.is_finite());
        BadParameter::unless(valid, "value", values, "a number, one for each channel, or `random`")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let FieldType::Tensor { dtype, dims } = input else {
            return Err(Needs("an image, channels last or first".to_owned()));
        };
        let channels = |dim: Option<usize>| dim.is_some_and(|count| (1..=4).contains(&count));
        if !matches!(**dims, [first, _, last] if channels(first) || channels(last)) {
            return Err(Needs("an image, channels last or first".to_owned()));
        }
        if self.value == ErasedValue::Named(ErasedName::Random) && *dtype != DType::F32 {
            return Err(Needs("an image in float32 for a `random` value: normalize first".to_owned()));
        }
        Ok(input.clone())
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        const EXPECTED: &str = "an image, channels last or first";
        let view = tensor(input, EXPECTED)?;
        let ([height, width, channels], channels_first) =
            layout(&view.spec).ok_or(StepError::Unfit { found: view.spec, expected: EXPECTED })?;
        let slot = output.tensor(view.spec)?;
        kernels::copy(Supported::detect(), view.data, slot.data);
        let Some(Rectangle { left, top, width: erased_width, height: erased_height }) =
            self.draw(width, height, &mut scope.random)
        else {
            return Ok(());
        };
        let value = match &self.value {
            ErasedValue::Numbers(value) => value,
            ErasedValue::Named(_) => &Numbers::from(0.0),
        };
        let (pixel, pixel_bytes) = filled_pixel(value, view.spec.dtype, channels);
        let pixel = &pixel[..pixel_bytes];
        let element = view.spec.dtype.bytes();
        let (planes, step) = if channels_first { (channels, element) } else { (1, pixel_bytes) };
        for plane in 0..planes {
            let value = if channels_first { &pixel[plane * element..][..element] } else { pixel };
            for y in top..top + erased_height {
                let begin = ((plane * height + y) * width + left) * step;
                self.erase(&mut slot.data[begin..][..erased_width * step], value, &mut scope.random);
            }
        }
        Ok(())
    }
}
