//! Colors and values: grayscale, centering, normalizing.

use forebay_codec::{DType, TensorMut, TensorSpec, TensorView};
use serde::{Deserialize, Serialize};

use super::{picture, picture_of, picture_type, tensor};
use crate::error::StepError;
use crate::kernels::{self, Conversion, Supported};
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Red, green and blue become one channel. Before centering it works on 8-bit pictures, after it on single precision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grayscale {}

/// The weights of red, green and blue, as TensorFlow's `rgb_to_grayscale` has them.
const GRAY_WEIGHTS: [f32; 3] = [0.2989, 0.5870, 0.1140];

/// Centers 8-bit values around zero: x / 127.5 − 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Center {}

/// Normalizes each channel: (x · scale − mean) / std.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Normalize {
    /// What 8-bit values are multiplied with first; single-precision input is taken as it is.
    pub scale: f32,
    /// The mean of each channel, after scaling.
    pub mean: Vec<f32>,
    /// The standard deviation of each channel, after scaling.
    pub std: Vec<f32>,
}

impl Default for Normalize {
    /// `ImageNet`'s means and deviations for values in 0..1, as torchvision's models expect.
    fn default() -> Self {
        Self { scale: 1.0 / 255.0, mean: vec![0.485, 0.456, 0.406], std: vec![0.229, 0.224, 0.225] }
    }
}

impl Transform for Grayscale {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match picture_type(input)? {
            (dtype @ (DType::U8 | DType::F32), [height, width, Some(3)]) => {
                Ok(picture_of(dtype, [height, width, Some(1)]))
            }
            _ => Err(Needs("an image of 3 channels in uint8 or float32".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let (view, [height, width, _]) = picture(input)?;
        let mut slot = output.tensor(TensorSpec::new(view.spec.dtype, &[height, width, 1]))?;
        let gray = |pixel: [f32; 3]| pixel.iter().zip(GRAY_WEIGHTS).map(|(value, weight)| value * weight).sum::<f32>();
        if let Some(bytes) = view.elements::<u8>() {
            // TensorFlow scales to 0..1, weighs, and scales back by 255.5 with truncation: so do we, to the last bit.
            for (out, pixel) in slot.data.iter_mut().zip(bytes.as_chunks::<3>().0) {
                *out = (gray(pixel.map(|value| f32::from(value) * (1.0 / 255.0))) * 255.5) as u8;
            }
            return Ok(());
        }
        let floats = floats_of(view, scope.scratch())?;
        for (out, pixel) in float_output(&mut slot)?.iter_mut().zip(floats.as_chunks::<3>().0) {
            *out = gray(*pixel);
        }
        Ok(())
    }
}

impl Transform for Center {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        bytes_to_floats(input)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, "a tensor")?;
        let mut slot = output.tensor(TensorSpec { dtype: DType::F32, ..view.spec })?;
        kernels::interleaved(Supported::detect(), view.data, float_output(&mut slot)?, Conversion::Center);
        Ok(())
    }
}

impl Normalize {
    /// The factor and offset of each channel, so that a byte becomes `byte · factor + offset`.
    pub(crate) fn affine(&self) -> (Vec<f32>, Vec<f32>) {
        let factors = self.std.iter().map(|deviation| self.scale / deviation);
        let offsets = self.mean.iter().zip(&self.std).map(|(mean, deviation)| -mean / deviation);
        (factors.collect(), offsets.collect())
    }

    /// The same for the kernels, which do three channels.
    pub(crate) fn conversion(&self) -> Option<Conversion> {
        let (factors, offsets) = self.affine();
        Some(Conversion::Affine { factors: factors.try_into().ok()?, offsets: offsets.try_into().ok()? })
    }
}

impl Transform for Normalize {
    fn check(&self) -> Result<(), BadParameter> {
        let usable = self.std.iter().all(|deviation| deviation.is_normal());
        BadParameter::unless(usable, "std", &self.std, "numbers other than 0")?;
        let finite = self.scale.is_finite() && self.mean.iter().all(|mean| mean.is_finite());
        BadParameter::unless(finite, "mean", &self.mean, "finite numbers")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let (dtype, dims) = picture_type(input)?;
        if !matches!(dtype, DType::U8 | DType::F32) {
            return Err(Needs("an image in uint8 or float32".to_owned()));
        }
        let count = self.mean.len();
        if self.std.len() != count || dims[2] != Some(count) {
            return Err(Needs(format!("an image of {count} channels (one mean and one std each)")));
        }
        Ok(picture_of(DType::F32, dims))
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let (view, [_, _, channels]) = picture(input)?;
        if channels != self.mean.len() {
            return Err(StepError::Unfit { found: view.spec, expected: "one mean for each channel" });
        }
        let mut slot = output.tensor(TensorSpec { dtype: DType::F32, ..view.spec })?;
        let out = float_output(&mut slot)?;
        if let Some(bytes) = view.elements::<u8>() {
            if let Some(conversion) = self.conversion() {
                kernels::interleaved(Supported::detect(), bytes, out, conversion);
                return Ok(());
            }
            let (factors, offsets) = self.affine();
            for (out, pixel) in out.chunks_exact_mut(channels).zip(bytes.chunks_exact(channels)) {
                for (channel, (out, &byte)) in out.iter_mut().zip(pixel).enumerate() {
                    *out = f32::from(byte) * factors[channel] + offsets[channel];
                }
            }
            return Ok(());
        }
        let floats = floats_of(view, scope.scratch())?;
        for (out, pixel) in out.chunks_exact_mut(channels).zip(floats.chunks_exact(channels)) {
            for (channel, (out, value)) in out.iter_mut().zip(pixel).enumerate() {
                *out = (value - self.mean[channel]) / self.std[channel];
            }
        }
        Ok(())
    }
}

fn bytes_to_floats(input: &FieldType) -> Result<FieldType, Needs> {
    match input {
        FieldType::Tensor { dtype: DType::U8, dims } => Ok(FieldType::Tensor { dtype: DType::F32, dims: dims.clone() }),
        _ => Err(Needs("a tensor in uint8".to_owned())),
    }
}

fn floats_of<'s>(view: TensorView<'s>, scratch: &'s mut Vec<f32>) -> Result<&'s [f32], StepError> {
    view.elements_or_copy(scratch).ok_or(StepError::Unfit { found: view.spec, expected: "uint8 or float32" })
}

pub(crate) fn float_output<'o>(output: &'o mut TensorMut<'_>) -> Result<&'o mut [f32], StepError> {
    let unfit = StepError::Unfit { found: output.spec, expected: "an aligned float32 output" };
    output.elements_mut().ok_or(unfit)
}
