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
pub struct TakeYolo {}

/// The boxes of a YOLO file: corners as parts of the image's width and height, and the class. A line of a class and three points or more is a
/// polygon, whose box is around it; a sixth number is a confidence, and is left out.
pub fn parse_yolo(file: &str) -> Result<Vec<[f64; 5]>, String> {
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
        let corners = match *rest {
            [x, y, width, height] | [x, y, width, height, _] => BoxFormat::Cxcywh.corners([x, y, width, height]),
            [_, _, _, _, _, _, ..] if rest.len() % 2 == 0 => {
                let ends = |first: usize| {
                    let along = rest.iter().skip(first).step_by(2).copied();
                    along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
                };
                let ((left, right), (top, bottom)) = (ends(0), ends(1));
                [left, top, right, bottom]
            }
            _ => {
                return wrong(format!("has {} numbers: a class and 4 of a box, or points of a polygon", numbers.len()));
            }
        };
        let [left, top, right, bottom] = corners;
        boxes.push([left, top, right, bottom, class]);
    }
    Ok(boxes)
}

impl TakeYolo {
    fn rows(file: &str, [width, height]: [f64; 2]) -> Result<Vec<BoxRow>, String> {
        let scaled = |[left, top, right, bottom, class]: [f64; 5]| {
            row([left * width, top * height, right * width, bottom * height], class)
        };
        Ok(parse_yolo(file)?.into_iter().filter_map(scaled).collect())
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
        let rows = Self::rows(text(sample, file)?, size).map_err(|problem| wrong(file, problem))?;
        put_boxes(changes, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_parts_of_the_image() {
        let file = "0 0.5 0.5 0.5 1\r\n\n7 0.1 0.2 0.3 0.2 0.2 0.6 \n2 0.25 0.5 0.5 0.5 0.99\n";
        let found = TakeYolo::rows(file, [200.0, 100.0]).unwrap();
        let expected: [BoxRow; 3] =
            [[50.0, 0.0, 150.0, 100.0, 0.0], [20.0, 20.0, 60.0, 60.0, 7.0], [0.0, 25.0, 100.0, 75.0, 2.0]];
        assert_eq!(found.len(), 3);
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert!(TakeYolo::rows("", [1.0, 1.0]).unwrap().is_empty());
        assert!(TakeYolo::rows("1 0.5 0.5 0 0.5", [9.0, 9.0]).unwrap().is_empty(), "no area");
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
            let error = parse_yolo(file).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
