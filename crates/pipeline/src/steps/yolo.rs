//! Boxes out of YOLO's text files, one beside each image.

use serde::{Deserialize, Serialize};

use super::annotations::{
    BoxFormat, BoxRow, image_size, needs_image, needs_text, put_boxes, row, shown, text, with_boxes, wrong,
};
use crate::error::StepError;
use crate::sample::SampleView;
use crate::sample_changes::SampleChanges;
use crate::schema::Schema;
use crate::scope::Scope;
use crate::step::{Needs, SampleTransform};

/// Gives each sample the boxes of its YOLO file, which is another field of it: lines of a class, the center, width and height as parts of the image's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeYolo {
    /// What the lines are.
    #[serde(default)]
    pub task: YoloTask,
}

/// What the lines of a YOLO file are, by the task that they are for, as Ultralytics calls it. The lines do not tell: a box with key points has as many numbers as a
/// polygon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum YoloTask {
    /// A class and a box. A sixth number is a confidence, and is left out.
    #[default]
    Detect,
    /// A class and the points of a polygon, three or more, whose box is around it; or as for detection.
    Segment,
    /// A class, a box and key points, which are left out.
    Pose,
}

impl YoloTask {
    /// The corners of the box that these numbers, those after the class, say; none where they say none.
    fn corners(self, numbers: &[f64]) -> Option<[f64; 4]> {
        match (self, numbers) {
            (Self::Detect | Self::Segment, &([x, y, width, height] | [x, y, width, height, _]))
            | (Self::Pose, &[x, y, width, height, ..]) => Some(BoxFormat::Cxcywh.corners([x, y, width, height])),
            (Self::Segment, [_, _, _, _, _, _, ..]) if numbers.len().is_multiple_of(2) => {
                let ends = |first: usize| {
                    let along = numbers.iter().skip(first).step_by(2).copied();
                    along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
                };
                let ((left, right), (top, bottom)) = (ends(0), ends(1));
                Some([left, top, right, bottom])
            }
            _ => None,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Detect => {
                "expected a class and the 4 of a box\nhint: of polygons, pass `task = \"segment\"`; of boxes with key points, `task = \"pose\"`"
            }
            Self::Segment => "expected a class and the 4 of a box, or points of a polygon",
            Self::Pose => "expected a class, the 4 of a box, and those of key points",
        }
    }
}

/// The boxes of a YOLO file: corners as parts of the image's width and height, and the class.
pub fn parse_yolo(file: &str, task: YoloTask) -> Result<Vec<[f64; 5]>, String> {
    let mut boxes = Vec::new();
    for (number, line) in file.trim_start_matches('\u{feff}').lines().enumerate() {
        let wrong = |problem: String| Err(format!("line {}: {problem}", number + 1));
        let mut numbers = Vec::new();
        for word in line.split_ascii_whitespace() {
            match word.parse::<f64>() {
                Ok(value) if value.is_finite() => numbers.push(value),
                _ => return wrong(format!("`{}` is not a number", shown(word))),
            }
        }
        let Some((&class, rest)) = numbers.split_first() else { continue };
        if class < 0.0 || class.fract() != 0.0 {
            return wrong(format!("the class is `{class}`, but is the index of a name"));
        }
        let Some([left, top, right, bottom]) = task.corners(rest) else {
            return wrong(format!("has {} numbers; {}", numbers.len(), task.expected()));
        };
        boxes.push([left, top, right, bottom, class]);
    }
    Ok(boxes)
}

impl TakeYolo {
    fn rows(self, file: &str, [width, height]: [f64; 2]) -> Result<Vec<BoxRow>, String> {
        let scaled = |[left, top, right, bottom, class]: [f64; 5]| {
            row([left * width, top * height, right * width, bottom * height], class)
        };
        Ok(parse_yolo(file, self.task)?.into_iter().filter_map(scaled).collect())
    }
}

impl SampleTransform for TakeYolo {
    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let [file, image] = fields else { return Err(Needs("two fields, of the text file and the image".to_owned())) };
        needs_text(input, file)?;
        needs_image(input, image)?;
        Ok(with_boxes(input))
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let [file, image] = fields else { return Err(StepError::NoField { field: fields.join(", ") }) };
        let size = image_size(sample, image)?;
        let rows = self.rows(text(sample, file)?, size).map_err(|problem| wrong(file, problem))?;
        put_boxes(changes, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_parts_of_the_image() {
        let file = "0 0.5 0.5 0.5 1\r\n\n7 0.1 0.2 0.3 0.2 0.2 0.6 \n2 0.25 0.5 0.5 0.5 0.99\n";
        let [detect, segment, pose] =
            [YoloTask::Detect, YoloTask::Segment, YoloTask::Pose].map(|task| TakeYolo { task });
        let found = segment.rows(file, [200.0, 100.0]).unwrap();
        let expected: [BoxRow; 3] =
            [[50.0, 0.0, 150.0, 100.0, 0.0], [20.0, 20.0, 60.0, 60.0, 7.0], [0.0, 25.0, 100.0, 75.0, 2.0]];
        assert_eq!(found.len(), 3);
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert!(detect.rows("", [1.0, 1.0]).unwrap().is_empty());
        assert!(detect.rows("1 0.5 0.5 0 0.5", [9.0, 9.0]).unwrap().is_empty(), "no area");
        // A box of half the image and two key points, which would be a polygon around all of it.
        let points = "0 0.5 0.5 0.5 0.5 0 0 2 1 1 1\n";
        assert_eq!(pose.rows(points, [8.0, 8.0]).unwrap(), [[2.0, 2.0, 6.0, 6.0, 0.0]]);
        let error = detect.rows(points, [8.0, 8.0]).unwrap_err();
        assert!(error.contains("line 1: has 11 numbers") && error.contains("task = \"pose\""), "{error}");
        assert!(detect.rows(file, [200.0, 100.0]).unwrap_err().starts_with("line 3: has 7 numbers"));
    }

    #[test]
    fn what_is_no_yolo_file_is_refused_with_its_line() {
        for (file, problem) in [
            ("\n1 0.5 x 1 1", "line 2: `x` is not a number"),
            ("1 0.5 0.5 1", "line 1: has 4 numbers"),
            ("1 1 2 3 4 5 6 7", "line 1: has 8 numbers"),
            ("dog 0.5 0.5 1 1", "`dog` is not a number"),
            ("1.5 0.5 0.5 1 1", "the class is `1.5`"),
            ("1 inf 0.5 1 1", "`inf` is not a number"),
        ] {
            let error = parse_yolo(file, YoloTask::Segment).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
