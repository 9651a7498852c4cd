//! Layout: from channels last to channels first.

use forebay_codec::TensorSpec;
use serde::{Deserialize, Serialize};

use super::{picture, picture_type};
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Transform};

/// Puts the channels first: `[height, width, channels]` becomes `[channels, height, width]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToChw {}

impl Transform for ToChw {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let (dtype, [height, width, channels]) = picture_type(input)?;
        Ok(FieldType::Tensor { dtype, dims: vec![channels, height, width] })
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let (view, [height, width, channels]) = picture(input)?;
        let slot = output.tensor(TensorSpec::new(view.spec.dtype, &[channels, height, width]))?;
        match view.spec.dtype.bytes() {
            1 => separate::<1>(view.data, slot.data, height * width, channels),
            2 => separate::<2>(view.data, slot.data, height * width, channels),
            4 => separate::<4>(view.data, slot.data, height * width, channels),
            _ => separate::<8>(view.data, slot.data, height * width, channels),
        }
        Ok(())
    }
}

/// Separates interleaved elements of `N` bytes into planes. Works on bytes, so alignment does not matter.
fn separate<const N: usize>(from: &[u8], to: &mut [u8], pixels: usize, channels: usize) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    if channels == 3 {
        let (red, rest) = to.split_at_mut(pixels);
        let (green, blue) = rest.split_at_mut(pixels);
        let (from, _) = from.as_chunks::<3>();
        for (((pixel, red), green), blue) in from.iter().zip(red).zip(green).zip(blue) {
            [*red, *green, *blue] = *pixel;
        }
        return;
    }
    for (channel, plane) in to.chunks_exact_mut(pixels).enumerate() {
        for (element, pixel) in plane.iter_mut().zip(from.chunks_exact(channels)) {
            *element = pixel[channel];
        }
    }
}
