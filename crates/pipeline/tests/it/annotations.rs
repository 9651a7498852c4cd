//! Annotations of other tools: boxes and masks out of their files.

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, PngEffort, encode};
use forebay_pipeline::steps::{
    BoxColumns, BoxTable, CocoMasks, CocoObjects, CocoParts, Segmentation, parse_voc, parse_yolo,
};
use forebay_pipeline::{Field, RngKey, Sample, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::support::{bytes_value, picture, run_all, step};

const GOLDEN: &str = include_str!("../golden/coco_masks.json");

fn numbers(json: &Json) -> Vec<usize> {
    json.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

/// Polygons, run lengths and COCO's text of them give the pixels that pycocotools gives.
#[test]
fn coco_masks() {
    let cases: Vec<Json> = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(cases.len(), 120);
    for (number, case) in cases.iter().enumerate() {
        let size = numbers(&case["size"]);
        let [height, width] = size[..] else { panic!("{case}") };
        let segmentation: Segmentation = serde_json::from_value(case["segmentation"].clone()).unwrap();
        let mut ours = vec![false; height * width];
        segmentation.draw([height, width], |run| ours[run].fill(true)).unwrap();
        let mut theirs = Vec::new();
        for (place, length) in numbers(&case["runs"]).into_iter().enumerate() {
            theirs.extend(std::iter::repeat_n(place % 2 == 1, length));
        }
        assert_eq!(ours, theirs, "case {number}: {case}");
    }
}

fn sample_of(fields: Vec<(&str, Value)>) -> Sample {
    let field = |(name, value): (&str, Value)| Field { name: name.into(), value };
    Sample { key: "train/a.png".into(), index: 0, fields: fields.into_iter().map(field).collect() }
}

fn boxes(toml: &str, sample: &Sample) -> Vec<f32> {
    let out = run_all(&[step(toml)], sample, RngKey::default());
    let Some(Value::Tensor(tensor)) = out[0].field("boxes") else { panic!("no boxes") };
    tensor.view().elements_or_copy::<f32>(&mut Vec::new()).unwrap().to_vec()
}

/// A PNG of 20 × 10, as a file and as pixels.
fn image() -> [Value; 2] {
    let pixels = picture(10, 20, 3, |y, x, c| (y * 3 + x + c) as u8);
    let file = encode(pixels.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    [bytes_value(file), Value::Tensor(pixels)]
}

#[test]
fn boxes_of_files_beside_an_image() {
    let voc = "<annotation><object><name>b</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>";
    let sample = sample_of(vec![("annotation", bytes_value(voc.into()))]);
    assert_eq!(
        boxes("op = \"take_voc\"\nfields = [\"annotation\"]\nclasses = [\"a\", \"b\"]", &sample),
        [0.0, 1.0, 3.0, 4.0, 1.0]
    );
    for image in image() {
        let text = Value::Text("3 0.5 0.5 0.5 1\n".into());
        let sample = sample_of(vec![("annotation", text), ("image", image)]);
        let yolo = "op = \"take_yolo\"\nfields = [\"annotation\", \"image\"]";
        assert_eq!(boxes(yolo, &sample), [5.0, 0.0, 15.0, 10.0, 3.0]);
    }
}

#[test]
fn boxes_of_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("boxes.tsv");
    std::fs::write(&path, "name\tx\ty\tw\th\tclass\na.png\t0.25\t0.5\t0.5\t0.5\tcat\n").unwrap();
    let toml = format!(
        "op = \"take_csv\"\nannotations = {path:?}\nimage_column = \"name\"\nbox_columns = [\"x\", \"y\", \"w\", \"h\"]\n\
         label_column = \"class\"\nbox_format = \"xywh\"\nnormalized = true"
    );
    for image in image() {
        assert_eq!(boxes(&toml, &sample_of(vec![("image", image)])), [5.0, 5.0, 15.0, 10.0, 0.0]);
    }
    let mut other = sample_of(vec![("image", image()[1].clone())]);
    other.key = "train/b.png".into();
    assert!(boxes(&toml, &other).is_empty());
    let missing = step("op = \"take_csv\"\nannotations = \"nowhere.csv\"");
    let error = forebay_pipeline::steps::prepare_files(&[missing]).unwrap_err().to_string();
    assert!(error.contains("nowhere.csv") && error.contains("hint: "), "{error}");
}

#[test]
fn masks_and_key_points_go_with_their_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("instances.json");
    let file = json!({
        "images": [{"id": 1, "file_name": "a.png", "height": 10, "width": 20}],
        "annotations": [{"image_id": 1, "category_id": 5, "bbox": [0, 0, 10, 10], "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10]],
                         "keypoints": [2, 3, 2, 15, 4, 1]}],
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let steps = [
        step(&format!("op = \"take_coco\"\nannotations = {path:?}\nmasks = \"semantic\"\nkeypoints = true")),
        step("op = \"random_horizontal_flip\"\np = 1\nfields = [\"image\", \"mask\", \"boxes\", \"keypoints\"]"),
    ];
    let out = run_all(&steps, &sample_of(vec![("image", image()[1].clone())]), RngKey::default());
    let field = |name: &str| match out[0].field(name) {
        Some(Value::Tensor(tensor)) => tensor.clone(),
        other => panic!("{other:?}"),
    };
    let expected: Vec<u8> = (0..200).map(|place| if place % 20 >= 10 { 5 } else { 0 }).collect();
    assert_eq!(field("mask"), Tensor::from_elements(&[10, 20], &expected).unwrap());
    let values = |tensor: Tensor| tensor.view().elements_or_copy::<f32>(&mut Vec::new()).unwrap().to_vec();
    assert_eq!(values(field("boxes")), [10.0, 0.0, 20.0, 10.0, 5.0]);
    let keypoints = values(field("keypoints"));
    assert_eq!((keypoints.len(), keypoints[1], keypoints[2], keypoints[5]), (6, 3.0, 2.0, 1.0));
    assert!(keypoints[0] > keypoints[3], "{keypoints:?}");
}

proptest! {
    /// Whatever a file has, its parser ends with boxes of this world or with an error.
    #[test]
    fn hostile_files_end_in_boxes_or_errors(
        words in prop::collection::vec(prop::sample::select(vec![
            "<annotation>", "</annotation>", "<object>", "</object>", "<name>", "</name>", "<bndbox>", "</bndbox>", "<xmin>", "</xmin>",
            "1", "-5", "1e308", "nan", "0.5", " ", "\n", "\t", ",", "\"", "&amp;", "&#x110000;", "<![CDATA[", "]]>", "<!--", "image", "label",
            "xmin", "ymin", "xmax", "ymax", "é", "\u{feff}",
        ]), 0..40),
    ) {
        let text = words.concat();
        let _ = parse_voc(&text);
        if let Ok(boxes) = parse_yolo(&text) {
            prop_assert!(boxes.len() <= text.lines().count());
        }
        if let Ok(table) = BoxTable::parse(text.as_bytes(), &BoxColumns::default()) {
            let _ = table.of(&text);
        }
        let _ = BoxTable::parse(format!("image,label,xmin,ymin,xmax,ymax\n{text}").as_bytes(), &BoxColumns::default());
    }

    /// A polygon anywhere, and run lengths of any numbers, paint within their image or are refused.
    #[test]
    fn hostile_masks_stay_within_their_image(
        corners in prop::collection::vec(-2e6..2e6f64, 0..16),
        near in prop::collection::vec(-20.0..60.0f64, 0..16),
        counts in prop::collection::vec(0u32..200, 0..12),
        letters in "[0-p]{0,12}",
        size in (1usize..30, 1usize..30),
    ) {
        let size = [size.0, size.1];
        for segmentation in [json!([corners]), json!([near]), json!({"counts": counts, "size": size}), json!({"counts": letters, "size": size})] {
            let file = json!({
                "images": [{"id": 1, "file_name": "a", "height": size[0], "width": size[1]}],
                "annotations": [{"image_id": 1, "category_id": 5, "bbox": [0, 0, 1, 1], "segmentation": segmentation}],
            });
            let parts = CocoParts { masks: true, keypoints: true };
            let Ok(found) = CocoObjects::parse(file.to_string().as_bytes(), parts) else { continue };
            if let Ok((mask, found)) = found.mask("a", true, CocoMasks::Semantic) {
                prop_assert_eq!(found, size);
                prop_assert!(mask.iter().all(|value| matches!(value, 0 | 5)));
            }
        }
    }
}
