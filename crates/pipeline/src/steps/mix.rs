//! Labels as vectors, and batches whose samples are mixed with each other.

use forebay_codec::{DType, TensorSpec};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use super::erase::layout;
use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, BatchColumn, BatchTransform, Needs, Transform};
use crate::steps::float_output;

/// A class becomes a vector with a 1 at its place, smoothed if that is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneHot {
    /// How many classes there are.
    pub num_classes: usize,
    /// How much of the 1 is shared by all classes.
    #[serde(default)]
    pub label_smoothing: f64,
}

/// More classes than this are a mistake.
const CLASSES_MAX: usize = 1 << 24;

impl Transform for OneHot {
    fn check(&self) -> Result<(), BadParameter> {
        let valid = (1..=CLASSES_MAX).contains(&self.num_classes);
        BadParameter::unless(valid, "num_classes", &self.num_classes, "at least 1, and at most 2^24")?;
        let valid = (0.0..=1.0).contains(&self.label_smoothing);
        BadParameter::unless(valid, "label_smoothing", &self.label_smoothing, "between 0 and 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Int => Ok(FieldType::Tensor { dtype: DType::F32, dims: vec![Some(self.num_classes)] }),
            _ => Err(Needs("a label (`int`): name its field, as in `fields = [\"label\"]`".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let ValueView::Int(label) = input else { return Err(StepError::NoField { field: "label".to_owned() }) };
        let classes = self.num_classes;
        let class = usize::try_from(label).ok().filter(|&class| class < classes);
        let class = class.ok_or(StepError::NoSuchClass { label, classes })?;
        let mut slot = output.tensor(TensorSpec::new(DType::F32, &[classes]))?;
        self.fill(class, float_output(&mut slot)?);
        Ok(())
    }
}

impl OneHot {
    fn fill(&self, class: usize, values: &mut [f32]) {
        let share = self.label_smoothing / self.num_classes as f64;
        values.fill(share as f32);
        values[class] = (1.0 - self.label_smoothing + share) as f32;
    }
}

/// Mixes each sample of a batch with its neighbor: pictures and labels, by one weight (Zhang and others, 2017).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixUp {
    /// The parameter of the beta distribution of the weight.
    pub alpha: f64,
    /// How probable it is that a batch is mixed.
    pub p: f64,
}

/// Puts a rectangle of its neighbor into each picture of a batch, and mixes labels by its area (Yun and others, 2019).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CutMix {
    /// The parameter of the beta distribution of the share that stays.
    pub alpha: f64,
    /// How probable it is that a batch is mixed.
    pub p: f64,
}

/// One of the two for each batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixUpOrCutMix {
    /// `alpha` of `mixup`.
    pub mixup_alpha: f64,
    /// `alpha` of `cutmix`.
    pub cutmix_alpha: f64,
    /// How probable it is that a batch is mixed.
    pub p: f64,
    /// How probable `cutmix` is then.
    pub cutmix_p: f64,
}

impl Default for MixUp {
    fn default() -> Self {
        Self { alpha: 1.0, p: 1.0 }
    }
}

impl Default for CutMix {
    fn default() -> Self {
        Self { alpha: 1.0, p: 1.0 }
    }
}

impl Default for MixUpOrCutMix {
    fn default() -> Self {
        Self { mixup_alpha: 0.2, cutmix_alpha: 1.0, p: 1.0, cutmix_p: 0.5 }
    }
}

fn check_alpha(parameter: &'static str, alpha: f64) -> Result<(), BadParameter> {
    BadParameter::unless(alpha > 0.0 && alpha.is_finite(), parameter, &alpha, "a number above 0")
}

fn check_p(parameter: &'static str, p: f64) -> Result<(), BadParameter> {
    BadParameter::unless((0.0..=1.0).contains(&p), parameter, &p, "between 0 and 1")
}

/// The types whose values are mixed.
const fn is_mixed(dtype: DType) -> bool {
    dtype.is_float() && !matches!(dtype, DType::F64)
}

/// The first field is a picture of a fixed size, the second a vector of labels; nothing changes its type.
fn mixed_schema(fields: &[String], input: &Schema) -> Result<Schema, Needs> {
    let [image, label] = fields else {
        return Err(Needs("two fields, the image and its label: `fields = [\"image\", \"label\"]`".to_owned()));
    };
    let spec = input.field(image).and_then(FieldType::fixed_spec);
    let fits = |spec: TensorSpec| (spec.dtype == DType::U8 || is_mixed(spec.dtype)) && layout(&spec).is_some();
    if !spec.is_some_and(fits) {
        return Err(Needs(format!(
            "an image of a fixed size in uint8, float32, float16 or bfloat16 in field `{image}`"
        )));
    }
    match input.field(label) {
        Some(FieldType::Tensor { dtype, dims }) if is_mixed(*dtype) && matches!(**dims, [Some(_)]) => Ok(input.clone()),
        _ => Err(Needs(format!("a vector of classes in field `{label}`: use `one_hot` first"))),
    }
}

/// Mixes each sample with the one before it, the first with the last: `share` of its own is kept.
fn mix(column: &mut BatchColumn<'_>, share: f32) {
    let bytes = column.spec.bytes();
    let Some(last) = column.data.len().checked_sub(bytes).filter(|_| bytes > 0) else { return };
    let first_neighbor = column.data[last..].to_vec();
    for at in (0..column.data.len()).step_by(bytes).rev() {
        let (before, own) = column.data.split_at_mut(at);
        let own = &mut own[..bytes];
        let neighbor = if at == 0 { &first_neighbor[..] } else { &before[at - bytes..] };
        match column.spec.dtype {
            DType::U8 => {
                for (own, &other) in own.iter_mut().zip(neighbor) {
                    *own = (f32::from(*own) * share + f32::from(other) * (1.0 - share) + 0.5) as u8;
                }
            }
            DType::F16 => mix_halves::<f16>(own, neighbor, share),
            DType::BF16 => mix_halves::<bf16>(own, neighbor, share),
            _ => {
                // Little-endian floats, wherever they lie.
                for (own, other) in own.as_chunks_mut::<4>().0.iter_mut().zip(neighbor.as_chunks::<4>().0) {
                    let mixed = f32::from_le_bytes(*own) * share + f32::from_le_bytes(*other) * (1.0 - share);
                    *own = mixed.to_le_bytes();
                }
            }
        }
    }
}

/// So many halves are converted at once, by the processor's instruction where it has one.
const HALVES: usize = 512;

/// The same of halves, which are mixed in single precision and rounded once, wherever they lie.
fn mix_halves<T: bytemuck::Pod>(own: &mut [u8], neighbor: &[u8], share: f32)
where
    [T]: HalfFloatSliceExt,
{
    let mut halves = [T::zeroed(); HALVES];
    let (mut ours, mut theirs) = ([0.0_f32; HALVES], [0.0_f32; HALVES]);
    let bytes = HALVES * size_of::<T>();
    for (own, neighbor) in own.chunks_mut(bytes).zip(neighbor.chunks(bytes)) {
        let count = own.len() / size_of::<T>();
        let (halves, ours, theirs) = (&mut halves[..count], &mut ours[..count], &mut theirs[..count]);
        for (from, to) in [(neighbor, &mut *theirs), (&*own, &mut *ours)] {
            bytemuck::cast_slice_mut::<T, u8>(halves).copy_from_slice(from);
            halves.convert_to_f32_slice(to);
        }
        for (own, other) in ours.iter_mut().zip(theirs) {
            *own = *own * share + *other * (1.0 - share);
        }
        halves.convert_from_f32_slice(ours);
        own.copy_from_slice(bytemuck::cast_slice(halves));
    }
}

/// Copies a rectangle of each picture's neighbor into it: rows and columns from the first to before the last.
fn paste(column: &mut BatchColumn<'_>, [top, bottom]: [usize; 2], [left, right]: [usize; 2]) {
    let Some(([height, width, channels], channels_first)) = layout(&column.spec) else { return };
    let bytes = column.spec.bytes();
    let Some(last) = column.data.len().checked_sub(bytes).filter(|_| bytes > 0) else { return };
    let element = column.spec.dtype.bytes();
    let (planes, step) = if channels_first { (channels, element) } else { (1, channels * element) };
    let first_neighbor = column.data[last..].to_vec();
    for at in (0..column.data.len()).step_by(bytes).rev() {
        let (before, own) = column.data.split_at_mut(at);
        let neighbor = if at == 0 { &first_neighbor[..] } else { &before[at - bytes..] };
        for row in (0..planes).flat_map(|plane| (top..bottom).map(move |y| plane * height + y)) {
            let pixels = (row * width + left) * step..(row * width + right) * step;
            own[pixels.clone()].copy_from_slice(&neighbor[pixels]);
        }
    }
}

/// The rectangle that is pasted where `share` of a picture stays, and how much really stays when its edges are cut off.
fn cut(share: f64, height: usize, width: usize, random: &mut Random) -> ([usize; 2], [usize; 2], f64) {
    let half = 0.5 * (1.0 - share).sqrt();
    let mut along = |length: usize| {
        let middle = random.below(length);
        let half = (half * length as f64) as usize;
        [middle.saturating_sub(half), (middle + half).min(length)]
    };
    let (columns, rows) = (along(width), along(height));
    let pasted = (columns[1] - columns[0]) * (rows[1] - rows[0]);
    (rows, columns, 1.0 - pasted as f64 / (width * height) as f64)
}

fn mix_up(columns: &mut [BatchColumn<'_>], alpha: f64, random: &mut Random) {
    let share = random.beta(alpha, alpha) as f32;
    for column in columns {
        mix(column, share);
    }
}

fn cut_mix(columns: &mut [BatchColumn<'_>], alpha: f64, random: &mut Random) {
    let share = random.beta(alpha, alpha);
    let [images, labels] = columns else { return };
    let Some(([height, width, _], _)) = layout(&images.spec) else { return };
    let (rows, columns, kept) = cut(share, height, width, random);
    paste(images, rows, columns);
    mix(labels, kept as f32);
}

impl BatchTransform for MixUp {
    fn check(&self) -> Result<(), BadParameter> {
        check_alpha("alpha", self.alpha)?;
        check_p("p", self.p)
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        mixed_schema(fields, input)
    }

    fn run(&self, columns: &mut [BatchColumn<'_>], random: &mut Random) {
        if random.unit() < self.p {
            mix_up(columns, self.alpha, random);
        }
    }
}

impl BatchTransform for CutMix {
    fn check(&self) -> Result<(), BadParameter> {
        check_alpha("alpha", self.alpha)?;
        check_p("p", self.p)
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        mixed_schema(fields, input)
    }

    fn run(&self, columns: &mut [BatchColumn<'_>], random: &mut Random) {
        if random.unit() < self.p {
            cut_mix(columns, self.alpha, random);
        }
    }
}

impl BatchTransform for MixUpOrCutMix {
    fn check(&self) -> Result<(), BadParameter> {
        check_alpha("mixup_alpha", self.mixup_alpha)?;
        check_alpha("cutmix_alpha", self.cutmix_alpha)?;
        check_p("p", self.p)?;
        check_p("cutmix_p", self.cutmix_p)
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        mixed_schema(fields, input)
    }

    fn run(&self, columns: &mut [BatchColumn<'_>], random: &mut Random) {
        if random.unit() >= self.p {
            return;
        }
        if random.unit() < self.cutmix_p {
            cut_mix(columns, self.cutmix_alpha, random);
        } else {
            mix_up(columns, self.mixup_alpha, random);
        }
    }
}

#[cfg(test)]
mod tests;
