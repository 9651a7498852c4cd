//! Boxes out of a COCO file, which has those of all images.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use forebay_codec::{DType, TensorSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::text_files::load_coco;
use crate::error::StepError;
use crate::output::Output;
use crate::remade::Remade;
use crate::sample::SampleView;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform, StepFiles};
use crate::stored::fill;

/// The field that boxes are put into.
const BOXES: &str = "boxes";

/// Gives each sample the boxes that a COCO file has for its image, in a field `boxes`: `float32[?, 5]` of left, top, right, bottom
/// and the category's id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeCoco {
    /// The COCO file (JSON).
    pub annotations: String,
    /// Whether to take the boxes of crowds, too.
    #[serde(default)]
    pub crowd: bool,
    /// What is in the file, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<CocoBoxes>>,
}

/// A box: left, top, right, bottom, category.
type Row = [f32; 5];

/// The boxes of a COCO file, by the name of the image's file.
#[derive(Debug, Default)]
pub struct CocoBoxes(HashMap<String, Vec<CocoBox>>);

#[derive(Debug, Clone, Copy)]
struct CocoBox {
    row: Row,
    crowd: bool,
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
}

impl CocoBoxes {
    /// Reads a COCO file. Boxes without an area are left out.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: CocoFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut by_id: HashMap<i64, Vec<CocoBox>> = file.images.iter().map(|image| (image.id, Vec::new())).collect();
        if by_id.len() < file.images.len() {
            return Err("two images have the same id".to_owned());
        }
        for CocoAnnotation { image_id, category_id, bbox: [left, top, width, height], iscrowd } in file.annotations {
            let boxes = by_id.get_mut(&image_id);
            let boxes =
                boxes.ok_or_else(|| format!("an annotation is of image {image_id}, which is not in `images`"))?;
            let row = [left, top, left + width, top + height, category_id as f64].map(|value| value as f32);
            if row.iter().all(|value| value.is_finite()) && row[2] > row[0] && row[3] > row[1] {
                boxes.push(CocoBox { row, crowd: iscrowd == Json::Bool(true) || iscrowd.as_f64() == Some(1.0) });
            }
        }
        let count = file.images.len();
        let named = file.images.into_iter();
        let by_name: HashMap<_, _> =
            named.map(|image| (image.file_name, by_id.remove(&image.id).unwrap_or_default())).collect();
        if by_name.len() < count { Err("two images have the same `file_name`".to_owned()) } else { Ok(Self(by_name)) }
    }

    /// The boxes of the sample `key`, a path: of the image of that name, or else of one below fewer of its folders.
    pub fn of(&self, key: &str, crowd: bool) -> Option<Vec<[f32; 5]>> {
        let mut ends = std::iter::successors(Some(key), |path| path.split_once('/').map(|(_, rest)| rest));
        let boxes = ends.find_map(|path| self.0.get(path))?;
        Some(boxes.iter().filter(|found| crowd || !found.crowd).map(|found| found.row).collect())
    }
}

impl TakeCoco {
    fn loaded(&self) -> Result<&CocoBoxes, StepError> {
        if let Some(boxes) = self.loaded.get() {
            return Ok(boxes);
        }
        let boxes = load_coco(&self.annotations)?;
        Ok(self.loaded.get_or_init(|| boxes))
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
        let mut output = input.clone();
        output.put(BOXES, FieldType::Tensor { dtype: DType::F32, dims: vec![None, Some(5)] });
        Ok(output)
    }

    fn run(
        &self,
        _fields: &[String],
        sample: &SampleView<'_>,
        remade: &mut Remade<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let rows = self.loaded()?.of(sample.key, self.crowd).ok_or_else(|| StepError::Json {
            field: BOXES.to_owned(),
            problem: format!(
                "`{}` has no image of this name\nhint: a `file_name` there is the sample's path, or the end of it",
                self.annotations
            ),
        })?;
        remade.set(BOXES, &mut |output: &mut Output<'_>| {
            let mut tensor = output.tensor(TensorSpec::new(DType::F32, &[rows.len(), 5]))?;
            fill(rows.iter().flatten().map(|value| f64::from(*value)), &mut tensor);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(annotations: &str) -> Result<CocoBoxes, String> {
        let images = r#"[{"id": 7, "file_name": "a.jpg", "width": 9}, {"id": 8, "file_name": "train/b.jpg"}]"#;
        CocoBoxes::parse(format!(r#"{{"info": {{}}, "images": {images}, "annotations": [{annotations}]}}"#).as_bytes())
    }

    #[test]
    fn boxes_are_found_by_the_end_of_a_path() {
        let found = parse(
            r#"{"image_id": 7, "category_id": 3, "bbox": [10, 20.5, 30, 40], "segmentation": [[1, 2]], "iscrowd": 0},
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
        for (images, problem) in [
            (r#"[{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}]"#, "same id"),
            (r#"[{"id": 1, "file_name": "a"}, {"id": 2, "file_name": "a"}]"#, "same `file_name`"),
            ("3", "invalid type"),
        ] {
            let file = format!(r#"{{"images": {images}, "annotations": []}}"#);
            let error = CocoBoxes::parse(file.as_bytes()).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        assert!(CocoBoxes::parse(b"[").is_err());
        let huge = parse(r#"{"image_id": 7, "category_id": 3, "bbox": [1e300, 2, 3, 4]}"#).unwrap();
        assert_eq!(huge.of("a.jpg", true), Some(Vec::new()), "no box of this world");
    }
}
