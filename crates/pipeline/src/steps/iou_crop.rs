//! Crops that look at boxes: how much of one of them a crop must hold is drawn, as SSD's recipe has it.

use forebay_codec::{DType, Tensor, TensorSpec, TensorView, memory};
use serde::{Deserialize, Serialize};

use super::crop::copy_crop;
use super::geometry::{BoxRow, Frame, Rectangle, followed, rider_type, rows};
use super::pad::zero;
use super::{picture, picture_of, picture_type, tensor};
use crate::error::StepError;
use crate::random::Random;
use crate::sample::SampleView;
use crate::sample_changes::SampleChanges;
use crate::schema::{BOX_COLUMNS_MAX, FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform};

/// Cuts out a random rectangle that overlaps some box by a least amount, which is drawn. Boxes whose middle is outside of it go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomIouCrop {
    /// The smallest share of the width, and of the height.
    pub min_scale: f64,
    /// The largest one.
    pub max_scale: f64,
    /// The smallest aspect ratio, width over height.
    pub min_aspect_ratio: f64,
    /// The largest one.
    pub max_aspect_ratio: f64,
    /// The least overlaps to draw from: the intersection of the crop with a box over their union. From 1 on the picture stays as it is.
    pub sampler_options: Vec<f64>,
    /// So many rectangles are drawn before another overlap is.
    pub trials: usize,
}

impl Default for RandomIouCrop {
    fn default() -> Self {
        Self {
            min_scale: 0.3,
            max_scale: 1.0,
            min_aspect_ratio: 0.5,
            max_aspect_ratio: 2.0,
            sampler_options: vec![0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0],
            trials: 40,
        }
    }
}

/// More options, or more trials, are a mistake.
const OPTIONS_MAX: usize = 1000;

/// So often an overlap is drawn before the picture stays as it is: torchvision goes on for ever. By the default options one in 2,000
/// pictures of which no crop is good enough gets here.
const ROUNDS_MAX: usize = 50;

impl RandomIouCrop {
    /// What is cut out of a picture of this size with these boxes, this time; `None`, if it stays as it is.
    fn rectangle(&self, width: usize, height: usize, boxes: &[BoxRow], random: &mut Random) -> Option<Rectangle> {
        for _ in 0..ROUNDS_MAX {
            let overlap_min = self.sampler_options[random.below(self.sampler_options.len())];
            // Without boxes no crop holds one: sooner or later the picture stays.
            if overlap_min >= 1.0 || boxes.is_empty() {
                return None;
            }
            for _ in 0..self.trials {
                if let Some(drawn) = self.drawn(width, height, random)
                    && boxes.iter().any(|row| has_middle(drawn, row) && overlap(drawn, row) >= overlap_min)
                {
                    return Some(drawn);
                }
            }
        }
        None
    }

    /// One trial's rectangle, if its aspect ratio is good.
    fn drawn(&self, width: usize, height: usize, random: &mut Random) -> Option<Rectangle> {
        let mut scaled = |side: usize| (side as f64 * random.between(self.min_scale, self.max_scale)) as usize;
        let (crop_width, crop_height) = (scaled(width), scaled(height));
        let ratio = crop_width as f64 / crop_height as f64;
        if crop_width == 0 || crop_height == 0 || !(self.min_aspect_ratio..=self.max_aspect_ratio).contains(&ratio) {
            return None;
        }
        let mut before = |longer: usize, side: usize| ((longer - side) as f64 * random.unit()) as usize;
        let (left, top) = (before(width, crop_width), before(height, crop_height));
        Some(Rectangle { left, top, width: crop_width, height: crop_height })
    }
}

/// Left, top, right and bottom.
fn edges(Rectangle { left, top, width, height }: Rectangle) -> [f32; 4] {
    [left, top, left + width, top + height].map(|edge| edge as f32)
}

/// Whether the middle of a box is in a rectangle.
fn has_middle(rectangle: Rectangle, row: &BoxRow) -> bool {
    let [left, top, right, bottom] = edges(rectangle);
    let (x, y) = (0.5 * (row[0] + row[2]), 0.5 * (row[1] + row[3]));
    left < x && x < right && top < y && y < bottom
}

/// The area that a rectangle and a box have in common, as a share of what they cover together.
fn overlap(rectangle: Rectangle, row: &BoxRow) -> f64 {
    let [left, top, right, bottom] = edges(rectangle);
    let area = |left: f32, top: f32, right: f32, bottom: f32| {
        f64::from((right - left).max(0.0)) * f64::from((bottom - top).max(0.0))
    };
    let common = area(left.max(row[0]), top.max(row[1]), right.min(row[2]), bottom.min(row[3]));
    common / (area(left, top, right, bottom) + area(row[0], row[1], row[2], row[3]) - common)
}

/// How many columns a tensor's rows have, if they are boxes.
fn box_columns(spec: &TensorSpec) -> Option<usize> {
    match *spec.shape.dims() {
        [_, columns] if spec.dtype == DType::F32 && (4..=BOX_COLUMNS_MAX).contains(&columns) => Some(columns),
        _ => None,
    }
}

/// The boxes whose middle is in the rectangle.
fn with_middle_in(view: TensorView<'_>, columns: usize, rectangle: Rectangle) -> Result<Tensor, StepError> {
    let row_bytes = columns * size_of::<f32>();
    let kept = rows(view, columns).zip(view.data.chunks_exact(row_bytes));
    let kept = kept.filter(|(row, _)| has_middle(rectangle, row)).map(|(_, bytes)| bytes);
    let mut data = Vec::new();
    memory::reserve(&mut data, view.data.len())?;
    kept.for_each(|bytes| data.extend_from_slice(bytes));
    let spec = TensorSpec::new(DType::F32, &[data.len() / row_bytes.max(1), columns]);
    Ok(Tensor::new(spec, data).expect("whole rows"))
}

impl SampleTransform for RandomIouCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        let valid = 0.0 < self.min_scale && self.min_scale <= self.max_scale;
        BadParameter::unless(valid, "min_scale", &self.min_scale, "above 0, and at most `max_scale`")?;
        BadParameter::unless(self.max_scale <= 1.0, "max_scale", &self.max_scale, "at most 1")?;
        let valid = 0.0 < self.min_aspect_ratio && self.min_aspect_ratio <= self.max_aspect_ratio;
        let expected = "above 0, and at most `max_aspect_ratio`";
        BadParameter::unless(valid, "min_aspect_ratio", &self.min_aspect_ratio, expected)?;
        let valid = (1..=OPTIONS_MAX).contains(&self.sampler_options.len())
            && self.sampler_options.iter().all(|overlap| *overlap >= 0.0);
        BadParameter::unless(valid, "sampler_options", &self.sampler_options, "numbers from 0 on, at least one")?;
        BadParameter::unless((1..=OPTIONS_MAX).contains(&self.trials), "trials", &self.trials, "from 1 to 1000")
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let mut output = input.clone();
        let mut has_boxes = false;
        for (index, name) in fields.iter().enumerate() {
            let kind = input.field(name).ok_or_else(|| Needs(format!("a field `{name}`")))?;
            has_boxes |= kind.as_boxes().is_some();
            let after = if index == 0 {
                let (dtype, [_, _, channels]) = picture_type(kind)?;
                picture_of(dtype, [None, None, channels])
            } else if let Some((dtype, _)) = kind.as_mask() {
                FieldType::Tensor { dtype, dims: vec![None, None] }
            } else {
                let expected = || Needs(format!("`{name}` to be a mask, boxes or key points of the image before it"));
                rider_type(kind, None).ok_or_else(expected)?
            };
            output.put(name, after);
        }
        let needs =
            || Needs("boxes that the crop is to hold, after the image: fields = [\"image\", \"boxes\"]".to_owned());
        if has_boxes { Ok(output) } else { Err(needs()) }
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        let given = |name: &String| {
            let found = sample.fields.iter().find(|(field, _)| field == name);
            found.map(|(_, value)| *value).ok_or_else(|| StepError::NoField { field: name.clone() })
        };
        let Some((first, others)) = fields.split_first() else { return Ok(()) };
        let (view, [height, width, channels]) = picture(given(first)?)?;
        let mut boxes = Vec::new();
        for name in others {
            let other = tensor(given(name)?, "a mask, boxes or key points")?;
            if let Some(columns) = box_columns(&other.spec) {
                boxes.extend(rows(other, columns));
            }
        }
        let Some(rectangle) = self.rectangle(width, height, &boxes, &mut scope.random) else { return Ok(()) };
        let frame = Frame::cut((width, height), rectangle.into());
        let spec = TensorSpec::new(view.spec.dtype, &[rectangle.height, rectangle.width, channels]);
        changes.set(first, &mut |output| {
            copy_crop(view, &frame, &zero(), &mut output.tensor(spec)?);
            Ok(())
        })?;
        for name in others {
            let other = tensor(given(name)?, "a mask, boxes or key points")?;
            changes.set(name, &mut |output| {
                output.working(2 * other.spec.bytes())?;
                let made = match box_columns(&other.spec) {
                    Some(columns) => followed(with_middle_in(other, columns, rectangle)?.view(), &frame, 0)?,
                    None => followed(other, &frame, 0)?,
                };
                output.tensor(*made.spec())?.data.copy_from_slice(made.data());
                Ok(())
            })?;
        }
        Ok(())
    }
}
