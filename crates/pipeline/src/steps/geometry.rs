//! Geometry: steps that move pixels about, and take the masks and boxes of a picture along.
//!
//! Such a step says which rectangle of a picture becomes the new one, and at which size. What follows from that for a
//! picture, a mask (the nearest class), boxes (moved, clipped, dropped when nothing is left) and key points is the same for all of them
//! and stands here. Fields of one step share one draw, and the first of them, a picture or a mask, sets the frame.

use std::any::Any;
use std::fmt;

use forebay_codec::{DType, Tensor, TensorMut, TensorSpec, TensorView, memory};

use super::pad::{fill_pixels, filled_pixel};
use super::projection::Projection;
use super::warp::warp_mask;
use super::{picture, picture_of, tensor};
use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::{BOX_COLUMNS_MAX, FieldType};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// A rectangle of a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Rectangle {
    /// All of a picture.
    pub(crate) fn whole(width: usize, height: usize) -> Self {
        Self { left: 0, top: 0, width, height }
    }
}

/// What a geometric step keeps of one picture, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kept {
    pub(crate) rectangle: Rectangle,
    /// Whether left and right are swapped then.
    pub(crate) mirrored: bool,
    /// Whether top and bottom do.
    pub(crate) upside_down: bool,
    /// Where the pixels of the new picture come from, where they do not lie in a rectangle that is kept.
    pub(crate) projection: Option<Projection>,
}

impl From<Rectangle> for Kept {
    fn from(rectangle: Rectangle) -> Self {
        Self { rectangle, mirrored: false, upside_down: false, projection: None }
    }
}

/// What a geometric step does to one picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    /// The size before: width, height.
    pub(super) from: (usize, usize),
    /// The margin around it, in pixels: on the left and on the right, above and below.
    pub(crate) padding: [usize; 2],
    /// What of it is kept, in pixels of the padded picture.
    pub(crate) kept: Kept,
    /// The size that it becomes: width, height.
    pub(super) to: (usize, usize),
}

/// A step that moves pixels about. Each is a [`Transform`] by what follows from it here.
pub(crate) trait Reframe: Any + fmt::Debug + Send + Sync {
    /// See [`Transform::is_random`].
    fn is_random(&self) -> bool;

    /// See [`Transform::check`].
    fn check(&self) -> Result<(), BadParameter>;

    /// What it needs of a picture's element type, where it cannot take it.
    fn refuses(&self, dtype: DType) -> Option<Needs> {
        let _ = dtype;
        None
    }

    /// The margin around a picture of this width and height before it is cut, in pixels: on the left and on the right, above and below. The
    /// sizes and rectangles below are those of the padded picture.
    fn padding(&self, _size: [usize; 2]) -> [usize; 2] {
        [0; 2]
    }

    /// The class that a mask has in the margin.
    fn mask_fill(&self) -> u16 {
        0
    }

    /// Width and height after it, as far as they follow from what is known before.
    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs>;

    /// Width and height after it, this time; asked once what is kept is known.
    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        Ok((width, height))
    }

    /// What is kept of a picture of this size, this time.
    fn kept(&self, width: usize, height: usize, _random: &mut Random) -> Result<Kept, StepError> {
        Ok(Rectangle::whole(width, height).into())
    }

    /// Both, and all else that it does to a picture of this width and height, this time. For a step whose size and place follow from one draw.
    fn drawn(&self, from: (usize, usize), random: &mut Random) -> Result<Frame, StepError> {
        let padding @ [across, down] = self.padding([from.0, from.1]);
        let (width, height) = (from.0 + 2 * across, from.1 + 2 * down);
        let kept = self.kept(width, height, random)?;
        let to = self.size(width, height, random)?;
        Ok(Frame { from, padding, kept, to })
    }

    /// Does it to a picture.
    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError>;

    /// Does it to a mask: each class of the new one is the nearest of the old one.
    fn mask(&self, view: TensorView<'_>, frame: &Frame, output: &mut TensorMut<'_>) {
        nearest(view, frame, self.mask_fill(), output);
    }
}

/// What a value is to a geometric step.
enum Role<'a> {
    Picture(TensorView<'a>, [usize; 3]),
    Mask(TensorView<'a>, [usize; 2]),
    Boxes(TensorView<'a>, usize),
    Keypoints(TensorView<'a>, usize),
}

fn role(input: ValueView<'_>) -> Result<Role<'_>, StepError> {
    let view = tensor(input, "an image, a mask, boxes or key points")?;
    match *view.spec.shape.dims() {
        [height, width] if view.spec.dtype != DType::F32 && height * width > 0 => Ok(Role::Mask(view, [height, width])),
        [_, columns] if (4..=BOX_COLUMNS_MAX).contains(&columns) => Ok(Role::Boxes(view, columns)),
        [_, columns @ (2 | 3)] => Ok(Role::Keypoints(view, columns)),
        _ => picture(input).map(|(view, dims)| Role::Picture(view, dims)),
    }
}

/// The frame of the step that runs: drawn for the first field, and the same for all others.
fn frame(step: &dyn Reframe, width: usize, height: usize, scope: &mut Scope) -> Result<Frame, StepError> {
    if let Some(frame) = scope.frame {
        if frame.from != (width, height) {
            return Err(StepError::OtherSize { width, height, first_width: frame.from.0, first_height: frame.from.1 });
        }
        return Ok(frame);
    }
    let frame = step.drawn((width, height), &mut scope.random)?;
    scope.frame = Some(frame);
    Ok(frame)
}

/// Width and height after `step`, as far as they follow from those before it.
fn padded_size_type(
    step: &dyn Reframe,
    width: Option<usize>,
    height: Option<usize>,
) -> Result<[Option<usize>; 2], Needs> {
    // Each side's margin hangs on its own length.
    let [across, down] = step.padding([width.unwrap_or(1), height.unwrap_or(1)]);
    step.size_type(width.map(|width| width + 2 * across), height.map(|height| height + 2 * down))
}

impl<T: Reframe> Transform for T {
    fn is_random(&self) -> bool {
        Reframe::is_random(self)
    }

    fn check(&self) -> Result<(), BadParameter> {
        Reframe::check(self)
    }

    fn is_geometric(&self) -> bool {
        true
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        if input.as_boxes().is_some() || input.as_keypoints().is_some() {
            return Ok(input.clone());
        }
        if let Some((dtype, [height, width])) = input.as_mask() {
            let [width, height] = padded_size_type(self, width, height)?;
            return Ok(FieldType::Tensor { dtype, dims: vec![height, width] });
        }
        let (dtype, [height, width, channels]) =
            input.as_picture().ok_or_else(|| Needs("an image [height, width, channels]".to_owned()))?;
        self.refuses(dtype).map_or(Ok(()), Err)?;
        let [width, height] = padded_size_type(self, width, height)?;
        Ok(picture_of(dtype, [height, width, channels]))
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        match role(input)? {
            Role::Picture(view, [height, width, channels]) => {
                let frame = frame(self, width, height, scope)?;
                let (new_width, new_height) = frame.to;
                // What lies between the two passes of a resize: as wide as the output and as high as the input, or the other
                // way round; once here and once in the library.
                let pixels = new_width.saturating_mul(height).max(width.saturating_mul(new_height));
                output.working(pixels.saturating_mul(2 * channels * view.spec.dtype.bytes()))?;
                let slot = output.tensor(TensorSpec::new(view.spec.dtype, &[new_height, new_width, channels]))?;
                self.picture(view, &frame, slot, scope)
            }
            Role::Mask(view, [height, width]) => {
                let frame = frame(self, width, height, scope)?;
                let (width, height) = frame.to;
                self.mask(view, &frame, &mut output.tensor(TensorSpec::new(view.spec.dtype, &[height, width]))?);
                Ok(())
            }
            Role::Boxes(view, columns) => {
                let frame = frame_before(scope)?;
                let slot = output.tensor(moved_boxes_spec(view, columns, &frame))?;
                move_boxes(view, columns, &frame, slot.data);
                Ok(())
            }
            Role::Keypoints(view, columns) => {
                let frame = frame_before(scope)?;
                move_points(view, columns, &frame, output.tensor(view.spec)?.data);
                Ok(())
            }
        }
    }
}

fn moved_boxes_spec(view: TensorView<'_>, columns: usize, frame: &Frame) -> TensorSpec {
    let count = rows(view, columns).filter_map(|row| moved(&row, frame)).count();
    TensorSpec::new(DType::F32, &[count, columns])
}

fn move_boxes(view: TensorView<'_>, columns: usize, frame: &Frame, output: &mut [u8]) {
    let kept = rows(view, columns).filter_map(|row| moved(&row, frame));
    for (to, row) in output.chunks_exact_mut(columns * size_of::<f32>()).zip(kept) {
        let (numbers, _) = to.as_chunks_mut::<4>();
        numbers.iter_mut().zip(row).for_each(|(to, number)| *to = number.to_le_bytes());
    }
}

fn move_points(view: TensorView<'_>, columns: usize, frame: &Frame, output: &mut [u8]) {
    for (to, row) in output.chunks_exact_mut(columns * size_of::<f32>()).zip(rows(view, columns)) {
        let (numbers, _) = to.as_chunks_mut::<4>();
        let moved = moved_point(row, columns, frame);
        numbers.iter_mut().zip(moved).for_each(|(to, number)| *to = number.to_le_bytes());
    }
}

/// The type of what rides along with a picture, after a step that leaves the picture `width` by `height`; `None` if `input` is no mask, no
/// boxes and no key points.
pub(super) fn rider_type(input: &FieldType, size: Option<[usize; 2]>) -> Option<FieldType> {
    if input.as_boxes().is_some() || input.as_keypoints().is_some() {
        return Some(input.clone());
    }
    let (dtype, dims) = input.as_mask()?;
    let dims = size.map_or(dims, |[height, width]| [Some(height), Some(width)]);
    Some(FieldType::Tensor { dtype, dims: dims.to_vec() })
}

/// What a mask, boxes or key points become with their picture, for steps that are no [`Reframe`]. `mask_fill` is the class of what
/// comes from outside by a projection.
pub(super) fn followed(view: TensorView<'_>, frame: &Frame, mask_fill: u16) -> Result<Tensor, StepError> {
    let role = role(ValueView::Tensor(view))?;
    let spec = match role {
        Role::Mask(_, [height, width]) if (width, height) != frame.from => {
            return Err(StepError::OtherSize { width, height, first_width: frame.from.0, first_height: frame.from.1 });
        }
        Role::Mask(..) => TensorSpec::new(view.spec.dtype, &[frame.to.1, frame.to.0]),
        Role::Boxes(_, columns) => moved_boxes_spec(view, columns, frame),
        Role::Keypoints(..) => view.spec,
        Role::Picture(..) => {
            return Err(StepError::Unfit { found: view.spec, expected: "a mask, boxes or key points" });
        }
    };
    let mut data = memory::zeroed(spec.bytes())?;
    let mut output = TensorMut { spec, data: &mut data };
    match (role, &frame.kept.projection) {
        (Role::Boxes(view, columns), _) => move_boxes(view, columns, frame, output.data),
        (Role::Keypoints(view, columns), _) => move_points(view, columns, frame, output.data),
        (_, Some(projection)) => warp_mask(projection, view, &mut output, mask_fill),
        (_, None) => nearest(view, frame, mask_fill, &mut output),
    }
    Ok(Tensor::new(spec, data).expect("allocated to the spec"))
}

/// What the step did to the picture, which comes before its boxes and key points.
pub(super) fn frame_before(scope: &Scope) -> Result<Frame, StepError> {
    scope.frame.ok_or_else(|| StepError::NoField { field: "image before the boxes or key points".to_owned() })
}

/// Where a key point is in the new picture. One whose third number says that it is not labeled stays; one that left the picture is no
/// longer labeled, if it can say so.
fn moved_point(row: BoxRow, columns: usize, frame: &Frame) -> [f32; 3] {
    let [x, y, visibility, ..] = row;
    if columns == 3 && visibility == 0.0 {
        return [x, y, visibility];
    }
    let (x, y) = match frame.kept.projection {
        Some(projection) => {
            let (x, y) = projection.forward(f64::from(x), f64::from(y));
            (x as f32, y as f32)
        }
        None => frame.map_point(x, y),
    };
    let (width, height) = (frame.to.0 as f32, frame.to.1 as f32);
    let inside = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
    if columns == 3 && !inside { [0.0; 3] } else { [x, y, visibility] }
}

/// One row of boxes: four edges, and what rides along.
pub(super) type BoxRow = [f32; BOX_COLUMNS_MAX];

/// The rows of boxes, which may lie unaligned in a record.
pub(super) fn rows(view: TensorView<'_>, columns: usize) -> impl Iterator<Item = BoxRow> + '_ {
    view.data.chunks_exact(columns * size_of::<f32>()).map(|bytes| {
        let mut row = [0.0; BOX_COLUMNS_MAX];
        let (numbers, _) = bytes.as_chunks::<4>();
        row.iter_mut().zip(numbers).for_each(|(to, number)| *to = f32::from_le_bytes(*number));
        row
    })
}

/// A box with less than this of a pixel left is gone.
pub(super) const BOX_SIDE_MIN: f32 = 1.0;

/// Where a box is in the new picture; `None` if nothing of it is left there.
fn moved(row: &BoxRow, frame: &Frame) -> Option<BoxRow> {
    let (width, height) = (frame.to.0 as f32, frame.to.1 as f32);
    let [left, top, right, bottom, ..] = *row;
    if !(left <= right && top <= bottom) {
        return None;
    }
    let [left, top, right, bottom] = if let Some(projection) = frame.kept.projection {
        projection.forward_box([left, top, right, bottom])
    } else {
        let ((left, top), (right, bottom)) = (frame.map_point(left, top), frame.map_point(right, bottom));
        let (left, right) = if frame.kept.mirrored { (right, left) } else { (left, right) };
        let (top, bottom) = if frame.kept.upside_down { (bottom, top) } else { (top, bottom) };
        [left, top, right, bottom]
    };
    let (left, right) = (left.clamp(0.0, width), right.clamp(0.0, width));
    let (top, bottom) = (top.clamp(0.0, height), bottom.clamp(0.0, height));
    // Written so that a box with a NaN is dropped, too.
    if !(right - left >= BOX_SIDE_MIN && bottom - top >= BOX_SIDE_MIN) {
        return None;
    }
    let mut row = *row;
    row[..4].copy_from_slice(&[left, top, right, bottom]);
    Some(row)
}

impl Frame {
    /// What is kept of a picture of width and height `from`, at its own size.
    pub(super) fn cut(from: (usize, usize), kept: Kept) -> Self {
        Self { from, padding: [0; 2], kept, to: (kept.rectangle.width, kept.rectangle.height) }
    }

    /// All of a picture of this width and height, as it is.
    pub(super) fn whole(size: (usize, usize)) -> Self {
        Self::cut(size, Rectangle::whole(size.0, size.1).into())
    }

    /// The same, with the pixels from elsewhere.
    pub(super) fn projected(size: (usize, usize), projection: Projection) -> Self {
        Self::whole(size).to(size, projection)
    }

    /// The same, with the pixels from elsewhere in a picture of this width and height.
    pub(super) fn to(mut self, to: (usize, usize), projection: Projection) -> Self {
        self.to = to;
        self.kept.projection = Some(projection);
        self
    }

    /// Where a point is in the new picture, also outside of it, if a rectangle is kept.
    fn map_point(&self, x: f32, y: f32) -> (f32, f32) {
        let Self { padding, kept: Kept { rectangle, mirrored, upside_down, .. }, to: (width, height), .. } = *self;
        let along = |x: f32, padding: usize, start: usize, length: usize, new: usize| {
            (x + padding as f32 - start as f32) * (new as f32 / length as f32)
        };
        let x = along(x, padding[0], rectangle.left, rectangle.width, width);
        let y = along(y, padding[1], rectangle.top, rectangle.height, height);
        (if mirrored { width as f32 - x } else { x }, if upside_down { height as f32 - y } else { y })
    }
}

/// Each class of the new mask is the one under its center, as Pillow's and torchvision's `nearest-exact` resize; `fill` outside.
fn nearest(view: TensorView<'_>, frame: &Frame, fill: u16, output: &mut TensorMut<'_>) {
    let Frame { from: (from_width, from_height), padding, kept, to: (width, height) } = *frame;
    let Kept { rectangle, mirrored, upside_down, .. } = kept;
    let bytes = view.spec.dtype.bytes();
    let below = |index: usize, length: usize, new: usize| ((index * 2 + 1) * length / (new * 2)).min(length - 1);
    let within =
        |index: usize, padding: usize, length: usize| index.checked_sub(padding).filter(|&index| index < length);
    let (fill, _) = filled_pixel(&f64::from(fill).into(), view.spec.dtype, 1);
    let fill = &fill[..bytes];
    let columns: Vec<Option<usize>> = (0..width)
        .map(|x| if mirrored { width - 1 - x } else { x })
        .map(|x| within(rectangle.left + below(x, rectangle.width, width), padding[0], from_width).map(|x| x * bytes))
        .collect();
    for (y, to) in output.data.chunks_exact_mut((width * bytes).max(1)).enumerate() {
        let y = if upside_down { height - 1 - y } else { y };
        let Some(row) = within(rectangle.top + below(y, rectangle.height, height), padding[1], from_height) else {
            fill_pixels(to, fill);
            continue;
        };
        let from = &view.data[row * from_width * bytes..];
        for (to, column) in to.chunks_exact_mut(bytes).zip(&columns) {
            match *column {
                Some(column) => to.copy_from_slice(&from[column..column + bytes]),
                None => to.copy_from_slice(fill),
            }
        }
    }
}
