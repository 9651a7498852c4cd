//! Annotations of other tools: boxes and masks out of their files.

use bytes::Bytes;
use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, PngEffort, encode};
use forebay_pipeline::steps::{
    BoxColumns, BoxTable, CocoMasks, CocoObjects, CocoParts, Segmentation, YoloTask, parse_voc, parse_yolo,
};
use forebay_pipeline::{Field, FieldType, RngKey, Sample, SourceField, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::support::{bytes_value, floats, picture, run_all, step};

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
        assert_eq!(boxes(&format!("{yolo}\ntask = \"pose\""), &sample), [5.0, 0.0, 15.0, 10.0, 3.0]);
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

/// LibriSpeech's layout: the chapter's file has a line for each recording.
#[test]
fn transcripts_of_librispeech_become_tokens() {
    let folder = tempfile::tempdir().unwrap();
    for (speaker, chapter) in [(84, 121_123), (174, 50561)] {
        let place = folder.path().join(format!("{speaker}/{chapter}"));
        std::fs::create_dir_all(&place).unwrap();
        let lines = format!("{speaker}-{chapter}-0000 GO DO YOU HEAR\n{speaker}-{chapter}-0001 SPEAKER {speaker}\n");
        std::fs::write(place.join(format!("{speaker}-{chapter}.trans.txt")), lines).unwrap();
    }
    let take = step(&format!("op = \"take_transcript\"\ntranscripts = {:?}", folder.path()));
    let prepared = forebay_pipeline::steps::prepare_files(std::slice::from_ref(&take)).unwrap();
    let steps = [take, step("op = \"tokenize\"\nfields = [\"transcript\"]")];
    let mut sample = sample_of(vec![("audio", Value::Int(0))]);
    sample.key = "174/50561/174-50561-0001.flac".into();
    let out = run_all(&steps, &sample, RngKey::default());
    let Some(Value::Tensor(tokens)) = out[0].field("transcript") else { panic!("{out:?}") };
    let tokens = tokens.view().elements_or_copy::<i32>(&mut Vec::new()).unwrap().to_vec();
    assert!(tokens.into_iter().eq("SPEAKER 174".bytes().map(i32::from)));
    drop(prepared);
    let missing = step(&format!("op = \"take_transcript\"\ntranscripts = {:?}", folder.path().join("84/none")));
    let error = forebay_pipeline::steps::prepare_files(&[missing]).unwrap_err().to_string();
    assert!(error.contains("84/none") && error.contains("hint: "), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let empty = step(&format!("op = \"take_transcript\"\ntranscripts = {:?}", empty.path()));
    let error = forebay_pipeline::steps::prepare_files(&[empty]).unwrap_err().to_string();
    assert!(error.contains("it has no transcripts"), "{error}");
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
    assert_eq!(values(field("boxes")), [10.0, 0.0, 20.0, 10.0, 5.0, 1.0]);
    let keypoints = values(field("keypoints"));
    assert_eq!((keypoints.len(), keypoints[1], keypoints[2], keypoints[5]), (6, 3.0, 2.0, 1.0));
    assert!(keypoints[0] > keypoints[3], "{keypoints:?}");
}

/// What a COCO file with these objects (left, top, width, height) gives for a picture of 40 × 30 after the step `moving`: rows of boxes, the
/// instance mask, and the key points. The key points of an object are two opposite corners of its box; objects of an even number have none.
fn instances(objects: &[[u32; 4]], moving: &str, seed: u64) -> (Vec<[f32; 6]>, Tensor, Vec<[f32; 3]>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("instances.json");
    let annotations = objects.iter().zip(0..).map(|(&[left, top, width, height], place)| {
        let (right, bottom) = (left + width, top + height);
        let keypoints = if place % 2 == 0 { json!([left, top, 2, right, bottom, 1]) } else { json!([]) };
        json!({
            "image_id": 1, "category_id": 50 + place, "bbox": [left, top, width, height], "keypoints": keypoints,
            "segmentation": [[left, top, right, top, right, bottom, left, bottom]],
        })
    });
    let file = json!({
        "images": [{"id": 1, "file_name": "a.png", "height": 30, "width": 40}],
        "annotations": annotations.collect::<Vec<_>>(),
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let take =
        format!("op = \"take_coco\"\nannotations = \"{}\"\nmasks = \"instance\"\nkeypoints = true", path.display());
    let fields = "fields = [\"image\", \"mask\", \"boxes\", \"keypoints\"]";
    let steps = [step(&take), step(&format!("{moving}\n{fields}"))];
    let image = Value::Tensor(picture(30, 40, 3, |y, x, c| (y * 3 + x + c) as u8));
    let out = run_all(&steps, &sample_of(vec![("image", image)]), RngKey { seed, epoch: 0 });
    let field = |name: &str| match out[0].field(name) {
        Some(Value::Tensor(tensor)) => tensor.clone(),
        other => panic!("{other:?}"),
    };
    let boxes = floats(&field("boxes")).as_chunks().0.to_vec();
    (boxes, field("mask"), floats(&field("keypoints")).as_chunks().0.to_vec())
}

/// A crop drops the first of two boxes: the second still says which pixels and which key points are its own.
#[test]
fn rows_of_boxes_say_which_pixels_and_key_points_are_theirs() {
    let objects = [[0, 0, 4, 4], [20, 10, 6, 8], [20, 20, 2, 2]];
    let (boxes, mask, points) = instances(&objects, "op = \"center_crop\"\nsize = 20", 0);
    // The crop begins at 10, 5.
    assert_eq!(boxes, [[10.0, 5.0, 16.0, 13.0, 51.0, 2.0], [10.0, 15.0, 12.0, 17.0, 52.0, 3.0]]);
    let mask = mask.view().elements_or_copy::<u16>(&mut Vec::new()).unwrap().to_vec();
    for (place, value) in mask.into_iter().enumerate() {
        let (x, y) = (place % 20, place / 20);
        let second = u16::from((10..16).contains(&x) && (5..13).contains(&y)) * 2;
        let third = u16::from((10..12).contains(&x) && (15..17).contains(&y)) * 3;
        assert_eq!(value, second + third, "{x} {y}");
    }
    // Two of each object: the first left the picture, the second has none.
    let third = [[10.0, 15.0, 2.0], [12.0, 17.0, 1.0]];
    assert_eq!(points[..4], [[0.0; 3]; 4]);
    assert_eq!(points[4..], third);
}

const MOVING: [&str; 8] = [
    "op = \"random_crop\"\nsize = 12",
    "op = \"random_crop\"\nsize = 36\npad_if_needed = true",
    "op = \"random_resized_crop\"\nsize = [18, 24]\nscale = [0.1, 0.6]",
    "op = \"scale_jitter\"\ntarget_size = [30, 30]\nscale_range = [0.2, 1.5]",
    "op = \"random_horizontal_flip\"",
    "op = \"random_affine\"\ndegrees = 0\ntranslate = [0.6, 0.6]",
    "op = \"random_apply\"\np = 0.9\nsteps = [{ op = \"random_affine\", degrees = 0, translate = [0.8, 0.8] }]",
    "op = \"random_rotation\"\ndegrees = 45",
];

proptest! {
    /// Whichever boxes a step drops: the pixels of an object, and its key points, lie in the box that has its number.
    #[test]
    fn instances_stay_with_their_boxes(
        objects in prop::collection::vec((0u32..34, 0u32..24, 1u32..20, 1u32..20), 0..6),
        moving in prop::sample::select(MOVING.to_vec()),
        seed in any::<u64>(),
    ) {
        let objects: Vec<[u32; 4]> = objects.into_iter()
            .map(|(left, top, width, height)| [left, top, width.min(40 - left), height.min(30 - top)])
            .collect();
        let (boxes, mask, points) = instances(&objects, moving, seed);
        prop_assert_eq!(points.len(), if objects.is_empty() { 0 } else { objects.len() * 2 });
        prop_assert!(boxes.windows(2).all(|pair| pair[0][5] < pair[1][5]), "each object at most once: {:?}", boxes);
        let near = |row: &[f32; 6], x: f32, y: f32| {
            (row[0] - 1.0..=row[2] + 1.0).contains(&x) && (row[1] - 1.0..=row[3] + 1.0).contains(&y)
        };
        let &[_, width] = mask.spec().shape.dims() else { panic!("{:?}", mask.spec()) };
        let numbers = mask.view().elements_or_copy::<u16>(&mut Vec::new()).unwrap().to_vec();
        for row in &boxes {
            let number = row[5] as usize;
            prop_assert_eq!(row[4] as usize, number + 49, "the number is the object's: {:?}", row);
            for (place, _) in numbers.iter().enumerate().filter(|(_, found)| usize::from(**found) == number) {
                let (x, y) = ((place % width) as f32 + 0.5, (place / width) as f32 + 0.5);
                prop_assert!(near(row, x, y), "{} {} is not in {:?}", x, y, row);
            }
            let first = (number - 1) * 2;
            for &[x, y, visibility] in &points[first..first + 2] {
                prop_assert!(visibility == 0.0 || near(row, x, y), "{} {} is not in {:?}", x, y, row);
            }
        }
        prop_assert!(numbers.iter().all(|number| usize::from(*number) <= objects.len()));
    }

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
        for task in [YoloTask::Detect, YoloTask::Segment, YoloTask::Pose] {
            if let Ok(boxes) = parse_yolo(&text, task) {
                prop_assert!(boxes.len() <= text.lines().count());
            }
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

#[test]
fn a_document_may_begin_with_a_mark() {
    let field =
        SourceField { field: "meta".into(), from: "{stem}.json".into(), kind: FieldType::Json, optional: false };
    let value = |text: &'static str| field.value(Bytes::from_static(text.as_bytes()));
    assert!(matches!(value("\u{feff}{\"a\": 1}").unwrap(), Value::Text(text) if *text == *"{\"a\": 1}"));
    assert!(value("\u{feff}").unwrap_err().contains("is not JSON"));
}
