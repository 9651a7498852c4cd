//! What steps that read annotations share: boxes, classes, and the sizes of images.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use forebay_codec::image::EncodedImage;
use forebay_codec::{DType, TensorSpec};
use serde::{Deserialize, Serialize};

use super::picture;
use crate::error::StepError;
use crate::nearest::nearest;
use crate::output::Output;
use crate::sample::{SampleView, ValueView};
use crate::sample_changes::SampleChanges;
use crate::schema::{FieldType, Schema};
use crate::step::Needs;
use crate::stored::fill;

/// The field that boxes are put into.
pub(super) const BOXES: &str = "boxes";

/// A box: left, top, right, bottom in pixels, and the class.
pub type BoxRow = [f32; BOX_ROW_COLUMNS];

/// How many numbers a box has.
const BOX_ROW_COLUMNS: usize = 5;

/// What the four numbers of a box are, as torchvision names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxFormat {
    /// Left, top, right, bottom.
    #[default]
    Xyxy,
    /// Left, top, width, height.
    Xywh,
    /// The center, width and height.
    Cxcywh,
}

impl BoxFormat {
    /// Left, top, right, bottom.
    pub(super) fn corners(self, [a, b, c, d]: [f64; 4]) -> [f64; 4] {
        match self {
            Self::Xyxy => [a, b, c, d],
            Self::Xywh => [a, b, a + c, b + d],
            Self::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
        }
    }
}

/// The box with these corners, if it has an area and is of this world.
pub(super) fn row(corners: [f64; 4], class: f64) -> Option<BoxRow> {
    let [left, top, right, bottom] = corners;
    let row = [left, top, right, bottom, class].map(|value| value as f32);
    (row.iter().all(|value| value.is_finite()) && row[2] > row[0] && row[3] > row[1]).then_some(row)
}

/// The number of the class `name` among `classes`.
pub(super) fn class_index(classes: &[String], name: &str) -> Result<usize, String> {
    classes.iter().position(|class| class == name).ok_or_else(|| {
        let meant = nearest(name, classes.iter().map(String::as_str));
        let hint = meant.map_or_else(|| "add it there".to_owned(), |meant| format!("did you mean `{meant}`?"));
        format!("class `{}` is none of the {} in `classes`\nhint: {hint}", shown(name), classes.len())
    })
}

/// A text of somebody's file, short enough for a message.
pub(super) fn shown(text: &str) -> String {
    const LETTERS: usize = 40;
    let mut short: String = text.chars().take(LETTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The schema with a field `boxes` more.
pub(super) fn with_boxes(input: &Schema) -> Schema {
    with_box_columns(input, BOX_ROW_COLUMNS)
}

/// The same of boxes with so many columns.
pub(super) fn with_box_columns(input: &Schema, columns: usize) -> Schema {
    let mut output = input.clone();
    output.put(BOXES, FieldType::Tensor { dtype: DType::F32, dims: vec![None, Some(columns)] });
    output
}

/// Gives the sample these boxes.
pub(super) fn put_boxes<const COLUMNS: usize>(
    changes: &mut SampleChanges<'_>,
    rows: &[[f32; COLUMNS]],
) -> Result<(), StepError> {
    changes.set(BOXES, &mut |output: &mut Output<'_>| {
        let mut tensor = output.tensor(TensorSpec::new(DType::F32, &[rows.len(), COLUMNS]))?;
        fill(rows.iter().flatten().map(|value| f64::from(*value)), &mut tensor);
        Ok(())
    })
}

/// The value of a field of the sample.
pub(super) fn value<'a>(sample: &SampleView<'a>, field: &str) -> Result<ValueView<'a>, StepError> {
    let found = sample.fields.iter().find(|(name, _)| *name == field).map(|(_, value)| *value);
    found.ok_or_else(|| StepError::NoField { field: field.to_owned() })
}

/// The text in a field of the sample.
pub(super) fn text<'a>(sample: &SampleView<'a>, field: &str) -> Result<&'a str, StepError> {
    match value(sample, field)? {
        ValueView::Text(text) => Ok(text),
        ValueView::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|_| wrong(field, "is not UTF-8 text".to_owned())),
        _ => Err(StepError::NoField { field: field.to_owned() }),
    }
}

/// Width and height of the image in a field: of its pixels, or of its file, turned as `decode` turns it.
pub(super) fn image_size(sample: &SampleView<'_>, field: &str) -> Result<[f64; 2], StepError> {
    let (width, height) = match value(sample, field)? {
        ValueView::Bytes(bytes) => {
            let header = *EncodedImage::open(bytes)?.header();
            header.orientation.size(header.width, header.height)
        }
        view => {
            let (_, [height, width, _]) = picture(view)?;
            (width, height)
        }
    };
    Ok([width as f64, height as f64])
}

/// That a field is an image: a file, or pixels.
pub(super) fn needs_image(input: &Schema, field: &str) -> Result<(), Needs> {
    match input.field(field) {
        Some(kind) if *kind == FieldType::Bytes || kind.as_picture().is_some() => Ok(()),
        _ => Err(Needs(format!("an image in field `{field}`, whose size boxes are a part of"))),
    }
}

/// That a field is a file's text.
pub(super) fn needs_text(input: &Schema, field: &str) -> Result<(), Needs> {
    match input.field(field) {
        Some(FieldType::Bytes | FieldType::Text) => Ok(()),
        _ => Err(Needs(format!("the file of annotations in field `{field}`, as bytes or text"))),
    }
}

/// An annotation that is not what it should be.
pub(super) fn wrong(field: &str, problem: String) -> StepError {
    StepError::Annotation { field: field.to_owned(), problem }
}

/// What a file has of the image that the sample `key` is: of that name, or else of one below fewer of its folders.
pub(super) fn by_path<'a, K, T>(named: &'a HashMap<K, T>, key: &str) -> Option<&'a T>
where
    K: Borrow<str> + Eq + Hash,
{
    let mut ends = std::iter::successors(Some(key), |path| path.split_once('/').map(|(_, rest)| rest));
    ends.find_map(|path| named.get(path))
}

/// The same where a file may also be named without its folder and its extension.
pub(super) fn by_path_or_stem<'a, K, T>(named: &'a HashMap<K, T>, key: &str) -> Option<&'a T>
where
    K: Borrow<str> + Eq + Hash,
{
    by_path(named, key).or_else(|| {
        let name = key.rsplit('/').next().unwrap_or(key);
        named.get(name.rsplit_once('.').map_or(name, |(stem, _)| stem))
    })
}
