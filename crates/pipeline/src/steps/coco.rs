//! What a COCO file, which has the annotations of all images, says of each: boxes, masks and key points.
//!
//! Crops drop boxes of which nothing is left. So that the pixels of an instance mask and the key points of an object can still be told to be those
//! of a box, each row then has the object's number in a column of its own, which rides along wherever the box goes, as the ids of COCO's
//! panoptic segments do. (Renumbering masks would have to be done by every step that drops rows, Python functions included.)

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use forebay_codec::{DType, TensorSpec};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use super::annotations::{BoxRow, by_path, put_boxes, row, with_box_columns, with_boxes};
use super::coco_mask::{COORDINATE_MAX, Segmentation, paint, runs_from_text};
use super::text_files::load_coco;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::SampleView;
use crate::sample_changes::SampleChanges;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform, StepFiles};
use crate::stored::fill;

/// The fields that masks and key points are put into.
const MASK: &str = "mask";
const KEYPOINTS: &str = "keypoints";

/// The most pixels of an image whose mask is drawn.
const PIXELS_MAX: usize = 1 << 28;

/// The most key points of an object, all of which have as many: people have 17, with faces and hands 133.
const KEYPOINTS_MAX: usize = 1024;

/// How many columns a box has with the number of its object.
const NUMBERED_COLUMNS: usize = 6;

/// Gives each sample what a COCO file has for its image: a field `boxes`, `float32[?, 5]` of left, top, right, bottom
/// and the category's id; a mask and key points where they are asked for. Where objects are told apart by them, a sixth column has the
/// object's number.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeCoco {
    /// The COCO file (JSON).
    pub annotations: String,
    /// Whether to take the boxes and masks of crowds, too.
    #[serde(default)]
    pub crowd: bool,
    /// Which masks to draw into a field `mask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<CocoMasks>,
    /// Whether to put the key points of all objects into a field `keypoints`, `float32[?, 3]` of x, y and how visible they are: as many for
    /// each object.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keypoints: bool,
    /// What is in the file, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<CocoObjects>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What the pixels of a mask are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CocoMasks {
    /// The category's id, up to 255: `uint8[height, width]`. 0 is no object.
    Semantic,
    /// The object's number, from 1 on, which its box has in the last column: `uint16[height, width]`. 0 is no object.
    Instance,
}

/// The objects of a COCO file.
#[derive(Debug, Default)]
pub struct CocoObjects {
    /// By the name of the image's file.
    images: HashMap<String, CocoImageObjects>,
    /// How many key points an object has; 0 where none has any, or they were not kept.
    keypoints: usize,
}

/// The objects of an image.
#[derive(Debug, Default)]
struct CocoImageObjects {
    /// Height and width, as the file says.
    size: [usize; 2],
    objects: Vec<CocoObject>,
}

#[derive(Debug)]
struct CocoObject {
    row: BoxRow,
    crowd: bool,
    segmentation: Segmentation,
    keypoints: Vec<f32>,
}

/// What of a COCO file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CocoParts {
    /// Polygons and run lengths.
    pub masks: bool,
    /// Key points.
    pub keypoints: bool,
}

/// What is read of a COCO file; the rest of it is skipped.
#[derive(Deserialize)]
struct CocoFile {
    images: Vec<CocoImage>,
    annotations: Vec<CocoAnnotation>,
}

#[derive(Deserialize)]
struct CocoImage {
    id: i64,
    file_name: String,
    #[serde(default)]
    height: Option<f64>,
    #[serde(default)]
    width: Option<f64>,
}

#[derive(Deserialize)]
struct CocoAnnotation {
    image_id: i64,
    category_id: i64,
    /// Left, top, width, height.
    bbox: [f64; 4],
    /// 0 or 1; some tools write a truth value.
    #[serde(default)]
    iscrowd: Json,
    #[serde(default)]
    segmentation: Segmentation,
    #[serde(default)]
    keypoints: Vec<f32>,
}

/// A list of polygons, or run lengths: as numbers, or as COCO's text.
impl<'de> Deserialize<'de> for Segmentation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SegmentationVisitor)
    }
}

struct SegmentationVisitor;

impl<'de> Visitor<'de> for SegmentationVisitor {
    type Value = Segmentation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of polygons, or run lengths as `{\"counts\": …, \"size\": [height, width]}`")
    }

    fn visit_unit<E>(self) -> Result<Segmentation, E> {
        Ok(Segmentation::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Segmentation, A::Error> {
        let mut polygons = Vec::new();
        while let Some(polygon) = list.next_element::<Vec<f64>>()? {
            if polygon.len() % 2 != 0 || polygon.iter().any(|at| at.abs() > COORDINATE_MAX) {
                let problem = "a polygon is x and y in turns, each within 2^20 pixels";
                return Err(serde::de::Error::custom(problem));
            }
            polygons.push(polygon);
        }
        Ok(if polygons.is_empty() { Segmentation::None } else { Segmentation::Polygons(polygons) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Segmentation, A::Error> {
        let (mut counts, mut size) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "counts" => counts = Some(map.next_value::<Counts>()?.0),
                "size" => size = Some(map.next_value::<[usize; 2]>()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = |what| serde::de::Error::missing_field(what);
        let (counts, size) = (counts.ok_or_else(|| missing("counts"))?, size.ok_or_else(|| missing("size"))?);
        Ok(Segmentation::Runs { size, counts })
    }
}

/// Run lengths.
struct Counts(Vec<u32>);

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountsVisitor;
        impl<'de> Visitor<'de> for CountsVisitor {
            type Value = Counts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("run lengths, as numbers or as COCO's text")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Counts, E> {
                runs_from_text(text).map(Counts).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Counts, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = list.next_element()? {
                    counts.push(count);
                }
                Ok(Counts(counts))
            }
        }
        deserializer.deserialize_any(CountsVisitor)
    }
}

impl CocoObjects {
    /// Reads a COCO file, and keeps these parts of it. Objects whose box has no area are left out.
    pub fn parse(bytes: &[u8], parts: CocoParts) -> Result<Self, String> {
        let file: CocoFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut by_id: HashMap<i64, Vec<CocoObject>> = file.images.iter().map(|image| (image.id, Vec::new())).collect();
        if by_id.len() < file.images.len() {
            return Err("two images have the same id".to_owned());
        }
        for annotation in file.annotations {
            let image_id = annotation.image_id;
            let objects = by_id.get_mut(&image_id);
            let objects =
                objects.ok_or_else(|| format!("an annotation is of image {image_id}, which is not in `images`"))?;
            if annotation.keypoints.len() % 3 != 0 || annotation.keypoints.len() > KEYPOINTS_MAX * 3 {
                return Err(format!(
                    "an annotation of image {image_id} has key points that are not x, y and visibility of at most {KEYPOINTS_MAX}"
                ));
            }
            let [left, top, width, height] = annotation.bbox;
            let corners = [left, top, left + width, top + height];
            let Some(row) = row(corners, annotation.category_id as f64) else { continue };
            objects.push(CocoObject {
                row,
                crowd: annotation.iscrowd == Json::Bool(true) || annotation.iscrowd.as_f64() == Some(1.0),
                segmentation: if parts.masks { annotation.segmentation } else { Segmentation::None },
                keypoints: if parts.keypoints { annotation.keypoints } else { Vec::new() },
            });
        }
        let points = by_id.values().flatten().map(|object| object.keypoints.len() / 3).max().unwrap_or(0);
        let count = file.images.len();
        let named = file.images.into_iter().map(|image| {
            let pixels = |side: Option<f64>| side.filter(|side| *side >= 0.0).unwrap_or(0.0) as usize;
            let size = [pixels(image.height), pixels(image.width)];
            let objects = by_id.remove(&image.id).unwrap_or_default();
            (image.file_name, CocoImageObjects { size, objects })
        });
        let images: HashMap<_, _> = named.collect();
        if images.len() < count {
            return Err("two images have the same `file_name`".to_owned());
        }
        Ok(Self { images, keypoints: points })
    }

    /// The boxes of the sample `key`, a path: of the image of that name, or else of one below fewer of its folders.
    pub fn of(&self, key: &str, crowd: bool) -> Option<Vec<BoxRow>> {
        Some(self.image(key)?.taken(crowd).map(|object| object.row).collect())
    }

    /// The mask of the sample `key`: the value of each pixel, and height and width.
    pub fn mask(&self, key: &str, crowd: bool, masks: CocoMasks) -> Result<(Vec<u16>, [usize; 2]), String> {
        let image = self.image(key).ok_or("no image of this name")?;
        let [height, width] = image.size;
        let pixels = height.checked_mul(width).filter(|pixels| (1..=PIXELS_MAX).contains(pixels));
        pixels.ok_or_else(|| {
            format!("its `height` and `width` are {height} and {width}, of which no mask can be made")
        })?;
        let mut mask = super::coco_mask::blank(image.size).map_err(|error| error.to_string())?;
        for (number, object) in image.taken(crowd).enumerate() {
            let value = match masks {
                CocoMasks::Semantic => object.row[4] as u16,
                CocoMasks::Instance => u16::try_from(number + 1).map_err(|_| "it has more than 65535 objects")?,
            };
            if masks == CocoMasks::Semantic && !(1.0..=255.0).contains(&object.row[4]) {
                let problem = format!("category {} does not fit into a mask of 1 to 255", object.row[4]);
                return Err(problem + "\nhint: give categories other ids, or take `masks = \"instance\"`");
            }
            object.segmentation.draw(image.size, |run| paint(&mut mask, image.size, run, value))?;
        }
        Ok((mask, image.size))
    }

    /// Height and width of the image of the sample `key`, as the file says.
    pub fn size(&self, key: &str) -> Option<[usize; 2]> {
        self.image(key).map(|image| image.size)
    }

    fn image(&self, key: &str) -> Option<&CocoImageObjects> {
        by_path(&self.images, key)
    }
}

impl CocoImageObjects {
    /// The objects, with or without crowds.
    fn taken(&self, crowd: bool) -> impl Iterator<Item = &CocoObject> {
        self.objects.iter().filter(move |object| crowd || !object.crowd)
    }
}

impl TakeCoco {
    pub(super) fn parts(&self) -> CocoParts {
        CocoParts { masks: self.masks.is_some(), keypoints: self.keypoints }
    }

    fn loaded(&self) -> Result<&CocoObjects, StepError> {
        if let Some(objects) = self.loaded.get() {
            return Ok(objects);
        }
        let objects = load_coco(&self.annotations, self.parts())?;
        Ok(self.loaded.get_or_init(|| objects))
    }

    fn put_mask(&self, masks: CocoMasks, key: &str, changes: &mut SampleChanges<'_>) -> Result<(), StepError> {
        let wrong = |problem| StepError::Annotation { field: MASK.to_owned(), problem };
        let objects = self.loaded()?;
        changes.set(MASK, &mut |output: &mut Output<'_>| {
            let [height, width] = objects.image(key).map_or([0, 0], |image| image.size);
            output.working(height.saturating_mul(width).min(PIXELS_MAX) * size_of::<u16>())?;
            let (mask, [height, width]) = objects.mask(key, self.crowd, masks).map_err(wrong)?;
            let dtype = masks.dtype();
            let mut tensor = output.tensor(TensorSpec::new(dtype, &[height, width]))?;
            fill(mask.into_iter().map(f64::from), &mut tensor);
            Ok(())
        })
    }

    fn put_keypoints(&self, key: &str, changes: &mut SampleChanges<'_>) -> Result<(), StepError> {
        let loaded = self.loaded()?;
        let objects = || loaded.image(key).into_iter().flat_map(|image| image.taken(self.crowd));
        let length = loaded.keypoints * 3;
        changes.set(KEYPOINTS, &mut |output: &mut Output<'_>| {
            let spec = TensorSpec::new(DType::F32, &[objects().count() * loaded.keypoints, 3]);
            let mut tensor = output.tensor(spec)?;
            // An object without key points has them at 0, 0, not labeled, as COCO writes a point that is not labeled.
            let of =
                |object: &CocoObject, number: usize| f64::from(object.keypoints.get(number).copied().unwrap_or(0.0));
            fill(objects().flat_map(|object| (0..length).map(move |number| of(object, number))), &mut tensor);
            Ok(())
        })
    }

    /// Whether objects are told apart by something beside their boxes.
    fn numbers_objects(&self) -> bool {
        self.masks == Some(CocoMasks::Instance) || self.keypoints
    }
}

impl CocoMasks {
    fn dtype(self) -> DType {
        match self {
            Self::Semantic => DType::U8,
            Self::Instance => DType::U16,
        }
    }
}

impl SampleTransform for TakeCoco {
    fn check(&self) -> Result<(), BadParameter> {
        let named = !self.annotations.is_empty();
        BadParameter::unless(named, "annotations", &self.annotations, "the path of a COCO file")
    }

    fn files(&self) -> Option<&dyn StepFiles> {
        Some(self)
    }

    fn output_schema(&self, _fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let numbered = self.numbers_objects();
        let mut output = if numbered { with_box_columns(input, NUMBERED_COLUMNS) } else { with_boxes(input) };
        if let Some(masks) = self.masks {
            output.put(MASK, FieldType::Tensor { dtype: masks.dtype(), dims: vec![None, None] });
        }
        if self.keypoints {
            output.put(KEYPOINTS, FieldType::Tensor { dtype: DType::F32, dims: vec![None, Some(3)] });
        }
        Ok(output)
    }

    fn run(
        &self,
        _fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let rows = self.loaded()?.of(sample.key, self.crowd).ok_or_else(|| StepError::Annotation {
            field: super::annotations::BOXES.to_owned(),
            problem: format!(
                "`{}` has no image of this name\nhint: a `file_name` there is the sample's path, or the end of it",
                self.annotations
            ),
        })?;
        if self.numbers_objects() {
            let numbered = rows.iter().zip(1_u32..).map(|(&[left, top, right, bottom, category], number)| {
                [left, top, right, bottom, category, number as f32]
            });
            put_boxes::<NUMBERED_COLUMNS>(changes, &numbered.collect::<Vec<_>>())?;
        } else {
            put_boxes(changes, &rows)?;
        }
        if let Some(masks) = self.masks {
            self.put_mask(masks, sample.key, changes)?;
        }
        if self.keypoints {
            self.put_keypoints(sample.key, changes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(annotations: &str) -> Result<CocoObjects, String> {
        let images = r#"[{"id": 7, "file_name": "a.jpg", "width": 9}, {"id": 8, "file_name": "train/b.jpg"}]"#;
        let file = format!(r#"{{"info": {{}}, "images": {images}, "annotations": [{annotations}]}}"#);
        CocoObjects::parse(file.as_bytes(), CocoParts { masks: true, keypoints: true })
    }

    #[test]
    fn boxes_are_found_by_the_end_of_a_path() {
        let found = parse(
            r#"{"image_id": 7, "category_id": 3, "bbox": [10, 20.5, 30, 40], "segmentation": [[1, 2, 3, 4, 5, 6]], "iscrowd": 0},
               {"image_id": 7, "category_id": 4, "bbox": [1, 1, 2, 2], "iscrowd": 1},
               {"image_id": 7, "category_id": 4, "bbox": [1, 1, 0, 2]}"#,
        )
        .unwrap();
        let one = [10.0, 20.5, 40.0, 60.5, 3.0];
        assert_eq!(found.of("images/train/a.jpg", false), Some(vec![one]));
        assert_eq!(found.of("a.jpg", true), Some(vec![one, [1.0, 1.0, 3.0, 3.0, 4.0]]));
        assert_eq!(found.of("images/train/b.jpg", false), Some(Vec::new()));
        assert_eq!(found.of("b.jpg", false), None, "the name in the file has a folder");
        assert_eq!(found.of("", false), None);
    }

    #[test]
    fn what_is_no_coco_file_is_refused() {
        let unknown = parse(r#"{"image_id": 9, "category_id": 3, "bbox": [1, 2, 3, 4]}"#).unwrap_err();
        assert!(unknown.contains("image 9"), "{unknown}");
        assert!(parse(r#"{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3]}"#).is_err());
        for (points, problem) in [("[1, 2]", "not x, y"), (&*format!("[0{}]", ", 0".repeat(3074)), "at most 1024")] {
            let refused =
                format!(r#"{{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "keypoints": {points}}}"#);
            assert!(parse(&refused).unwrap_err().contains(problem), "{points}");
        }
        for (images, problem) in [
            (r#"[{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}]"#, "same id"),
            (r#"[{"id": 1, "file_name": "a"}, {"id": 2, "file_name": "a"}]"#, "same `file_name`"),
            ("3", "invalid type"),
        ] {
            let file = format!(r#"{{"images": {images}, "annotations": []}}"#);
            let error = CocoObjects::parse(file.as_bytes(), CocoParts::default()).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        assert!(CocoObjects::parse(b"[", CocoParts::default()).is_err());
        let huge = parse(r#"{"image_id": 7, "category_id": 3, "bbox": [1e300, 2, 3, 4]}"#).unwrap();
        assert_eq!(huge.of("a.jpg", true), Some(Vec::new()), "no box of this world");
    }

    #[test]
    fn masks_are_drawn_over_each_other() {
        let images = r#"[{"id": 1, "file_name": "a.jpg", "height": 3, "width": 4}]"#;
        let annotations = r#"[{"image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 3], "segmentation": [[0, 0, 4, 0, 4, 3, 0, 3]], "keypoints": [1, 2, 2]},
            {"image_id": 1, "category_id": 9, "bbox": [0, 0, 1, 1], "segmentation": {"counts": [4, 2, 6], "size": [3, 4]}},
            {"image_id": 1, "category_id": 8, "bbox": [0, 0, 1, 1], "iscrowd": 1, "segmentation": {"counts": "0<", "size": [3, 4]}}]"#;
        let file = format!(r#"{{"images": {images}, "annotations": {annotations}}}"#);
        let found = CocoObjects::parse(file.as_bytes(), CocoParts { masks: true, keypoints: true }).unwrap();
        let semantic = found.mask("a.jpg", false, CocoMasks::Semantic).unwrap();
        assert_eq!(semantic, (vec![3, 3, 3, 3, 3, 9, 3, 3, 3, 9, 3, 3], [3, 4]));
        let instance = found.mask("x/a.jpg", true, CocoMasks::Instance).unwrap();
        assert_eq!(instance.0, [3; 12], "the crowd is everywhere");
        assert!(found.mask("b.jpg", true, CocoMasks::Instance).is_err());
    }

    #[test]
    fn masks_that_are_none_are_refused() {
        for segmentation in [
            "[[1, 2, 3]]",
            "[[1e9, 2]]",
            "[[1, null]]",
            r#"{"counts": [1]}"#,
            r#"{"counts": "\u007f", "size": [3, 4]}"#,
            r#"{"counts": "P", "size": [3, 4]}"#,
            r#"{"counts": [-1], "size": [3, 4]}"#,
            "7",
        ] {
            let annotation =
                format!(r#"{{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "segmentation": {segmentation}}}"#);
            assert!(parse(&annotation).is_err(), "{segmentation}");
        }
        let beyond = r#"{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "segmentation": {"counts": [9, 9], "size": [3, 4]}}"#;
        let images = r#"[{"id": 7, "file_name": "a.jpg", "height": 3, "width": 4}, {"id": 8, "file_name": "b.jpg", "height": 1e9, "width": 1e9}]"#;
        let file = format!(r#"{{"images": {images}, "annotations": [{beyond}]}}"#);
        let found = CocoObjects::parse(file.as_bytes(), CocoParts { masks: true, keypoints: false }).unwrap();
        assert!(found.mask("a.jpg", true, CocoMasks::Semantic).unwrap_err().contains("beyond the 12 pixels"));
        assert!(found.mask("b.jpg", true, CocoMasks::Semantic).unwrap_err().contains("no mask can be made"));
    }
}
