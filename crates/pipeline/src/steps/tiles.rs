//! Tiles: one picture becomes many.

use forebay_codec::{Tensor, TensorMut, TensorSpec};
use serde::{Deserialize, Serialize};

use super::geometry::{Frame, Rectangle, rider_type};
use super::many_crops::take_along;
use super::{first_field, picture, picture_of, picture_type};
use crate::error::StepError;
use crate::sample::{Field, Sample, Value};
use crate::schema::FieldType;
use crate::step::{BadParameter, FlatMap, Needs, Parts};

/// Cuts a picture into square tiles, row by row. What is left at the right and bottom edge is dropped; a picture smaller
/// than one tile gives none. Masks, boxes and key points are cut with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiles {
    /// Width and height of a tile in pixels.
    pub size: usize,
}

/// The most samples that one sample may become; part `n` of sample `i` gets the number `i · PARTS_MAX + n`.
pub(super) const PARTS_MAX: u64 = 1 << 20;

impl FlatMap for Tiles {
    fn check(&self) -> Result<(), BadParameter> {
        super::Size::from(self.size).check()
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        if let Some(rider) = rider_type(input, Some([self.size; 2])) {
            return Ok(rider);
        }
        let (dtype, [_, _, channels]) = picture_type(input)?;
        Ok(picture_of(dtype, [Some(self.size), Some(self.size), channels]))
    }

    fn flat_map(&self, sample: &Sample, names: &[String], parts: &mut Parts<'_>) -> Result<(), StepError> {
        let (field, value) = first_field(sample, names)?;
        let (view, [height, width, channels]) = picture(value.view())?;
        let spec = TensorSpec::new(view.spec.dtype, &[self.size, self.size, channels]);
        let pixel_bytes = channels * spec.dtype.bytes();
        let (columns, rows) = (width / self.size, height / self.size);
        (parts.reserve)((rows * columns).saturating_mul(spec.bytes()))?;
        for number in 0..rows * columns {
            let (top, left) = (number / columns * self.size, number % columns * self.size);
            let mut data = parts.buffer(spec.bytes())?;
            let tile = TensorMut { spec, data: &mut data };
            for (to, from) in tile
                .data
                .chunks_exact_mut(self.size * pixel_bytes)
                .zip(view.data.chunks_exact(width * pixel_bytes).skip(top))
            {
                to.copy_from_slice(&from[left * pixel_bytes..][..self.size * pixel_bytes]);
            }
            let mut fields = sample.fields.clone();
            if let Some(Field { value, .. }) = fields.iter_mut().find(|other| &*other.name == field) {
                *value = Value::Tensor(Tensor::new(spec, data).expect("allocated to the spec"));
            }
            let rectangle = Rectangle { left, top, width: self.size, height: self.size };
            take_along(&mut fields, &names[1..], &Frame::cut((width, height), rectangle.into()), parts)?;
            (parts.emit)(Sample {
                key: format!("{}#{number}", sample.key).into(),
                index: sample.index.wrapping_mul(PARTS_MAX).wrapping_add(number as u64),
                fields,
            });
        }
        Ok(())
    }
}
