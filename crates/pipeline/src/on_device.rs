//! What a device (a GPU) does of a strategy's online part: it decodes images that are kept as L3, cuts their middle out and converts them.
//!
//! All other steps stay with the loader, and the fields that the device makes are bytes there.

use forebay_codec::DType;
use forebay_codec::image::{Encoding, L3Mode};

use crate::error::{Error, Result};
use crate::pipeline::Pipeline;
use crate::schema::{FieldType, Schema};
use crate::step::Step;
use crate::steps::{CenterCrop, Color, Decode, Normalize, ToChw, ToDtype};
use crate::strategy::Strategy;

/// How a device makes a field of the bytes that are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceDecoding {
    /// The field.
    pub field: String,
    /// The channels of its images: 1 or 3.
    pub channels: usize,
    /// Whether 16-bit samples stay 16 bit.
    pub keep_depth: bool,
    /// Height and width of what is cut out of the middle.
    pub center_crop: Option<[usize; 2]>,
    /// Factor and offset of each channel, where samples become floating point.
    pub affine: Option<(Vec<f32>, Vec<f32>)>,
    /// The element type that comes out.
    pub dtype: DType,
    /// Whether the channels come first.
    pub channels_first: bool,
}

/// The online part of a strategy, shared out.
#[derive(Debug, Clone)]
pub struct OnDevice {
    /// The steps that stay, and the number of the first in the pipeline.
    pub steps: Vec<Step>,
    /// See `steps`.
    pub first_step: usize,
    /// What comes out of them: the fields of `decodings` are bytes.
    pub output: Schema,
    /// What is left to the device.
    pub decodings: Vec<DeviceDecoding>,
}

impl Strategy {
    /// Shares the online part out between the loader and a device.
    pub fn on_device(&self, pipeline: &Pipeline) -> Result<OnDevice> {
        let kept_so = |encoding: Encoding| matches!(encoding, Encoding::L3 { mode, .. } if mode != L3Mode::Classic);
        if self.format.encoding.is_some_and(|encoding| !kept_so(encoding)) {
            return Err(Error::NotOnDevice { what: format!("decoding the images of strategy `{self}`") });
        }
        let (online, first) = self.online(pipeline);
        let mut decodings: Vec<DeviceDecoding> = Vec::new();
        let mut stay = Vec::new();
        for (index, step) in online.into_iter().enumerate() {
            let of_device = decodings.iter_mut().find(|decoding| step.fields.contains(&decoding.field));
            let taken = if let Some(decoding) = of_device {
                step.fields.len() == 1 && decoding.absorb(&step)
            } else if let Some(decoding) = decoding_of(&step) {
                decodings.push(decoding);
                true
            } else {
                stay.push((index, step));
                continue;
            };
            if !taken {
                return Err(Error::NotOnDevice { what: format!("step `{}`", step.name) });
            }
        }
        if decodings.is_empty() {
            return Err(Error::NotOnDevice { what: format!("decoding the images of strategy `{self}`") });
        }
        let first_step = first.wrapping_add(skipped_before(&stay)?);
        let mut output = pipeline.output().clone();
        for decoding in &decodings {
            output.set(&decoding.field, FieldType::Bytes);
        }
        Ok(OnDevice { steps: stay.into_iter().map(|(_, step)| step).collect(), first_step, output, decodings })
    }
}

/// How many steps were taken out before those that draw random numbers, which must keep their own: they draw by them.
fn skipped_before(stay: &[(usize, Step)]) -> Result<usize> {
    let random = stay.iter().enumerate().filter(|(_, (_, step))| step.action.is_random());
    let mut skipped = random.map(|(drawing, (index, step))| (index - drawing, step));
    let Some((first, _)) = skipped.next() else { return Ok(0) };
    match skipped.find(|(other, _)| *other != first) {
        None => Ok(first),
        Some((_, step)) => {
            Err(Error::NotOnDevice { what: format!("a step between other random ones and `{}`", step.name) })
        }
    }
}

/// What a step that decodes images is to a device.
fn decoding_of(step: &Step) -> Option<DeviceDecoding> {
    let decode: &Decode = step.action.transform_as()?;
    let [field] = &step.fields[..] else { return None };
    (decode.min_shorter_side.is_none()).then(|| DeviceDecoding {
        field: field.clone(),
        channels: if decode.color == Color::Gray { 1 } else { 3 },
        keep_depth: decode.keep_depth,
        center_crop: None,
        affine: None,
        dtype: if decode.keep_depth { DType::U16 } else { DType::U8 },
        channels_first: false,
    })
}

impl DeviceDecoding {
    /// Takes a step over, if it can be done with the decoding.
    fn absorb(&mut self, step: &Step) -> bool {
        if let Some(crop) = step.action.transform_as::<CenterCrop>() {
            let first = self.center_crop.is_none() && !self.channels_first && crop.padding == 0;
            self.center_crop = self.center_crop.or(Some(crop.size.height_and_width()));
            return first;
        }
        if let Some(normalize) = step.action.transform_as::<Normalize>() {
            return self.convert(normalize.affine());
        }
        if let Some(&ToDtype { dtype, scale }) = step.action.transform_as() {
            return match (self.dtype, dtype) {
                (DType::U8, DType::F32) => {
                    let factor = if scale { 1.0 / 255.0 } else { 1.0 };
                    self.convert((vec![factor; self.channels], vec![0.0; self.channels]))
                }
                (DType::F32, DType::F16 | DType::BF16) => {
                    self.dtype = dtype;
                    true
                }
                (from, to) => from == to,
            };
        }
        let separates = step.action.transform_as::<ToChw>().is_some() && !self.channels_first;
        self.channels_first |= separates;
        separates
    }

    fn convert(&mut self, affine: (Vec<f32>, Vec<f32>)) -> bool {
        let from_bytes = self.dtype == DType::U8;
        self.affine = Some(affine);
        self.dtype = DType::F32;
        from_bytes
    }
}
