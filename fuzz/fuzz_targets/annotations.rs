//! Annotations: COCO's JSON with its masks, Pascal VOC's XML, YOLO's text, tables of boxes, transcripts. What a text is, its parsers say.
#![no_main]

use forebay_pipeline::steps::{BoxColumns, BoxTable, CocoMasks, CocoObjects, CocoParts, Segmentation, Transcripts, YoloTask, parse_voc, parse_yolo};
use libfuzzer_sys::fuzz_target;

/// Masks of larger images are left out: the time is for other things.
const PIXELS_MAX: usize = 1 << 16;

fn check(boxes: &[[f32; 5]]) {
    for [left, top, right, bottom, class] in boxes {
        assert!(left < right && top < bottom && right.is_finite() && bottom.is_finite() && class.is_finite());
    }
}

fuzz_target!(|text: &str| {
    if let Ok(objects) = CocoObjects::parse(text.as_bytes(), CocoParts { masks: true, keypoints: true }) {
        check(&objects.of(text, true).unwrap_or_default());
        check(&objects.of("a", true).unwrap_or_default());
        if objects.size("a").is_some_and(|[height, width]| height.saturating_mul(width) <= PIXELS_MAX) {
            if let Ok((mask, [height, width])) = objects.mask("a", true, CocoMasks::Instance) {
                assert_eq!(mask.len(), height * width);
            }
        }
    }
    if let Ok(segmentation) = serde_json::from_str::<Segmentation>(text) {
        let size = [7, 9];
        let _ = segmentation.draw(size, |run| assert!(run.start <= run.end && run.end <= 63));
    }
    let mut transcripts = Transcripts::default();
    if transcripts.add(text.as_bytes()).is_ok() {
        assert!(transcripts.of("a").is_none_or(|said| text.contains(said)));
    }
    if let Ok(objects) = parse_voc(text) {
        assert!(objects.iter().all(|object| object.corners.iter().all(|corner| corner.is_finite())));
    }
    for task in [YoloTask::Detect, YoloTask::Segment, YoloTask::Pose] {
        if let Ok(boxes) = parse_yolo(text, task) {
            assert!(boxes.iter().flatten().all(|value| !value.is_nan()));
        }
    }
    for table in [text.to_owned(), format!("image,label,xmin,ymin,xmax,ymax\n{text}")] {
        if let Ok(table) = BoxTable::parse(table.as_bytes(), &BoxColumns::default()) {
            check(table.of("a"));
        }
    }
});
