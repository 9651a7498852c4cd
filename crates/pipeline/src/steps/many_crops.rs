//! Five and ten crops: one picture becomes its corners and its middle. Masks, boxes and key points are cut with it.

use forebay_codec::{Tensor, TensorSpec, TensorView};
use serde::{Deserialize, Serialize};

use super::crop::CenterCrop;
use super::geometry::{Frame, Kept, Rectangle, followed, rider_type};
use super::size::Size;
use super::tiles::PARTS_MAX;
use super::{first_field, picture, picture_of, picture_type};
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::sample::{Field, Sample, Value};
use crate::schema::FieldType;
use crate::step::{BadParameter, FlatMap, Needs, Parts};

/// The four corners of a picture and its middle, one sample each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FiveCrop {
    /// Of each.
    pub size: Size,
}

/// The same, and each of them mirrored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenCrop {
    /// Of each.
    pub size: Size,
    /// Whether top and bottom change places in the mirrored ones, instead of left and right.
    #[serde(default)]
    pub vertical_flip: bool,
}

/// How a crop is mirrored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mirrored {
    No,
    Across,
    Down,
}

/// The picture type after either.
fn cropped(input: &FieldType, size: Size) -> Result<FieldType, Needs> {
    if let Some(rider) = rider_type(input, Some(size.height_and_width())) {
        return Ok(rider);
    }
    let (dtype, [height, width, channels]) = picture_type(input)?;
    let [crop_height, crop_width] = size.height_and_width();
    let short = |length: Option<usize>, crop: usize| length.is_some_and(|length| length < crop);
    if short(height, crop_height) || short(width, crop_width) {
        return Err(Needs(format!("an image of at least {crop_width}x{crop_height}")));
    }
    Ok(picture_of(dtype, [Some(crop_height), Some(crop_width), channels]))
}

/// Corners and middle, in torchvision's order.
fn rectangles(size: Size, width: usize, height: usize) -> Result<[Rectangle; 5], StepError> {
    let middle = CenterCrop { size, padding: 0 }.rectangle(width, height)?;
    let (right, bottom) = (width - middle.width, height - middle.height);
    let at = |left: usize, top: usize| Rectangle { left, top, ..middle };
    Ok([at(0, 0), at(right, 0), at(0, bottom), at(right, bottom), middle])
}

impl Mirrored {
    /// A rectangle of the mirrored picture, in pixels of the picture as it is: torchvision's `ten_crop` mirrors first and cuts then.
    fn back(self, rectangle: Rectangle, width: usize, height: usize) -> Rectangle {
        let Rectangle { left, top, width: crop_width, height: crop_height } = rectangle;
        match self {
            Self::No => rectangle,
            Self::Across => Rectangle { left: width - left - crop_width, ..rectangle },
            Self::Down => Rectangle { top: height - top - crop_height, ..rectangle },
        }
    }
}

fn cut(
    view: TensorView<'_>,
    rectangle: Rectangle,
    mirrored: Mirrored,
    parts: &mut Parts<'_>,
) -> Result<Tensor, StepError> {
    let (view, [_, width, channels]) = picture(crate::sample::ValueView::Tensor(view))?;
    let Rectangle { left, top, width: crop_width, height: crop_height } = rectangle;
    let spec = TensorSpec::new(view.spec.dtype, &[crop_height, crop_width, channels]);
    let pixel_bytes = channels * spec.dtype.bytes();
    let (mut data, level) = (parts.buffer(spec.bytes())?, Supported::detect());
    for (y, to) in data.chunks_exact_mut(crop_width * pixel_bytes).enumerate() {
        let y = if mirrored == Mirrored::Down { crop_height - 1 - y } else { y };
        let from = &view.data[((top + y) * width + left) * pixel_bytes..][..crop_width * pixel_bytes];
        if mirrored == Mirrored::Across { mirror(level, from, to, pixel_bytes) } else { to.copy_from_slice(from) }
    }
    Ok(Tensor::new(spec, data).expect("allocated to the spec"))
}

/// A row with its last pixel first.
fn mirror(level: Supported, from: &[u8], to: &mut [u8], pixel_bytes: usize) {
    match pixel_bytes {
        1 => to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from),
        3 => kernels::mirror_rgb(level, from, to, from.len().max(1)),
        _ => {
            let pixels = from.chunks_exact(pixel_bytes).rev();
            to.chunks_exact_mut(pixel_bytes).zip(pixels).for_each(|(to, from)| to.copy_from_slice(from));
        }
    }
}

/// The fields of these names become what follows from `frame` for them.
pub(super) fn take_along(
    fields: &mut [Field],
    names: &[String],
    frame: &Frame,
    parts: &mut Parts<'_>,
) -> Result<(), StepError> {
    for name in names {
        let no_field = || StepError::NoField { field: name.clone() };
        let field = fields.iter_mut().find(|field| *field.name == **name).ok_or_else(no_field)?;
        let Value::Tensor(tensor) = &field.value else { return Err(no_field()) };
        let tensor = followed(tensor.view(), frame, 0)?;
        (parts.reserve)(tensor.spec().bytes())?;
        field.value = Value::Tensor(tensor);
    }
    Ok(())
}

fn crops(
    size: Size,
    mirrored: &[Mirrored],
    sample: &Sample,
    names: &[String],
    parts: &mut Parts<'_>,
) -> Result<(), StepError> {
    let (field, value) = first_field(sample, names)?;
    let (view, [height, width, channels]) = picture(value.view())?;
    let rectangles = rectangles(size, width, height)?;
    let [crop_height, crop_width] = size.height_and_width();
    let bytes = crop_height * crop_width * channels * view.spec.dtype.bytes();
    (parts.reserve)(bytes.saturating_mul(rectangles.len() * mirrored.len()))?;
    let all = mirrored
        .iter()
        .flat_map(|mirrored| rectangles.map(|rectangle| (mirrored.back(rectangle, width, height), *mirrored)));
    for (number, (rectangle, mirrored)) in all.enumerate() {
        let tensor = cut(view, rectangle, mirrored, parts)?;
        // The image itself is not copied only to be replaced.
        let mut tensor = Some(tensor);
        let with_crop = |other: &Field| match tensor.take_if(|_| &*other.name == field) {
            Some(tensor) => Field { name: other.name.clone(), value: Value::Tensor(tensor) },
            None => other.clone(),
        };
        let mut fields: Vec<Field> = sample.fields.iter().map(with_crop).collect();
        let (across, down) = (mirrored == Mirrored::Across, mirrored == Mirrored::Down);
        let kept = Kept { mirrored: across, upside_down: down, ..rectangle.into() };
        take_along(&mut fields, &names[1..], &Frame::cut((width, height), kept), parts)?;
        (parts.emit)(Sample {
            key: format!("{}#{number}", sample.key).into(),
            index: sample.index.wrapping_mul(PARTS_MAX).wrapping_add(number as u64),
            fields,
        });
    }
    Ok(())
}

impl FlatMap for FiveCrop {
    fn check(&self) -> Result<(), BadParameter> {
        self.size.check()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        cropped(input, self.size)
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn flat_map(&self, sample: &Sample, fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError> {
        crops(self.size, &[Mirrored::No], sample, fields, parts)
    }
}

impl FlatMap for TenCrop {
    fn check(&self) -> Result<(), BadParameter> {
        self.size.check()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        cropped(input, self.size)
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn flat_map(&self, sample: &Sample, fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError> {
        let mirrored = if self.vertical_flip { Mirrored::Down } else { Mirrored::Across };
        crops(self.size, &[Mirrored::No, mirrored], sample, fields, parts)
    }
}
