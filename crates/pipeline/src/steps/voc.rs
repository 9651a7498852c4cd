//! Boxes out of Pascal VOC's XML files, one beside each image.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};
use serde::{Deserialize, Serialize};

use super::annotations::{BoxRow, class_index, needs_text, put_boxes, row, shown, text, with_boxes, wrong};
use crate::error::StepError;
use crate::sample::SampleView;
use crate::sample_changes::SampleChanges;
use crate::schema::Schema;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform};

/// Gives each sample the boxes of its Pascal VOC file, which is another field of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TakeVoc {
    /// The classes: the last column of a box is an index into this list.
    pub classes: Vec<String>,
    /// Whether to take boxes, too, that are marked as difficult.
    pub difficult: bool,
    /// Whether the first pixel is number 1, as in VOC's own files. Some programs write 0.
    pub one_based: bool,
}

/// Those of Pascal VOC.
const VOC_CLASSES: [&str; 20] = [
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
];

impl Default for TakeVoc {
    fn default() -> Self {
        Self { classes: VOC_CLASSES.map(str::to_owned).to_vec(), difficult: false, one_based: true }
    }
}

/// An object of a Pascal VOC file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VocObject {
    /// Its class.
    pub name: String,
    /// Left, top, right, bottom, as they are written.
    pub corners: [f64; 4],
    /// Whether it is hard to recognize.
    pub difficult: bool,
}

/// Deeper files are none of VOC's.
const DEPTH_MAX: usize = 32;

/// An object as far as it was read.
#[derive(Default)]
struct Partial {
    name: Option<String>,
    corners: [Option<f64>; 4],
    difficult: bool,
}

const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

/// The objects of a Pascal VOC file. What is wrong with it, and in which line, otherwise.
pub fn parse_voc(file: &str) -> Result<Vec<VocObject>, String> {
    let mut reader = Reader::from_str(file.trim_start_matches('\u{feff}'));
    let mut objects = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut content = String::new();
    let mut object = Partial::default();
    loop {
        let event = reader.read_event();
        let line = |at: u64| 1 + file.bytes().take(at as usize).filter(|byte| *byte == b'\n').count();
        let at = |problem: String| {
            format!("line {}: {problem}", line(reader.error_position().max(reader.buffer_position())))
        };
        match event.map_err(|error| at(error.to_string()))? {
            Event::Start(start) => {
                if path.len() == DEPTH_MAX {
                    return Err(at(format!("elements lie more than {DEPTH_MAX} deep")));
                }
                path.push(String::from_utf8_lossy(start.name().as_ref()).into_owned());
                content.clear();
                if path == ["annotation", "object"] {
                    object = Partial::default();
                }
            }
            Event::Text(part) => content.push_str(&part.decode().map_err(|error| at(error.to_string()))?),
            Event::CData(part) => content.push_str(&part.decode().map_err(|error| at(error.to_string()))?),
            Event::GeneralRef(part) => {
                content.push_str(&resolved(&part).map_err(at)?);
            }
            Event::End(_) => {
                let path_now: Vec<&str> = path.iter().map(String::as_str).collect();
                object.take(&path_now, content.trim()).map_err(at)?;
                if path_now == ["annotation", "object"] {
                    objects.push(std::mem::take(&mut object).finished().map_err(at)?);
                }
                path.pop();
                content.clear();
            }
            Event::Eof if !path.is_empty() => return Err(at(format!("`{}` does not end", path[path.len() - 1]))),
            Event::Eof => return Ok(objects),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// What a reference stands for: `&amp;`, `&#65;`. Others would have to be declared, and are not.
fn resolved(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Some(letter) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(letter.to_string());
    }
    let name = reference.decode().map_err(|error| error.to_string())?;
    let known = resolve_predefined_entity(&name).map(str::to_owned);
    known.ok_or_else(|| format!("unknown entity `&{};`", shown(&name)))
}

impl Partial {
    /// The element at `path` ended, with this text in it. Parts of an object (a head, a hand) have boxes of their own, which are none of these.
    fn take(&mut self, path: &[&str], text: &str) -> Result<(), String> {
        let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
        match path {
            ["annotation", "object", "name"] => self.name = Some(text.to_owned()),
            ["annotation", "object", "difficult"] => self.difficult = !matches!(text, "0" | "" | "false" | "False"),
            ["annotation", "object", "bndbox", corner] => {
                if let Some(side) = CORNERS.iter().position(|name| name == corner) {
                    let number = number().ok_or_else(|| format!("`{corner}` is not a number: `{}`", shown(text)))?;
                    self.corners[side] = Some(number);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finished(self) -> Result<VocObject, String> {
        let name = self.name.ok_or("an object has no `name`")?;
        let mut corners = [0.0; 4];
        for ((to, found), corner) in corners.iter_mut().zip(self.corners).zip(CORNERS) {
            *to = found.ok_or_else(|| format!("an object has no `{corner}`"))?;
        }
        Ok(VocObject { name, corners, difficult: self.difficult })
    }
}

impl TakeVoc {
    fn rows(&self, file: &str) -> Result<Vec<BoxRow>, String> {
        let mut rows = Vec::new();
        for object in parse_voc(file)? {
            if object.difficult && !self.difficult {
                continue;
            }
            let class = class_index(&self.classes, &object.name)?;
            let [left, top, right, bottom] = object.corners;
            // The last pixel belongs to a box, and ends where the next one would begin.
            let first = if self.one_based { 1.0 } else { 0.0 };
            let corners = [left - first, top - first, right - first + 1.0, bottom - first + 1.0];
            rows.extend(row(corners, class as f64));
        }
        Ok(rows)
    }
}

impl SampleTransform for TakeVoc {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(!self.classes.is_empty(), "classes", &self.classes, "the names of the classes")
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let [file] = fields else { return Err(Needs("one field, of the XML file".to_owned())) };
        needs_text(input, file)?;
        Ok(with_boxes(input))
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let field = fields.first().map_or("", String::as_str);
        let rows = self.rows(text(sample, field)?).map_err(|problem| wrong(field, problem))?;
        put_boxes(changes, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "<?xml version=\"1.0\"?>\n<annotation>\n<filename>1.jpg</filename>\n<!-- two -->\n<object>\n<name>dog</name>\n\
        <part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>\n<truncated/>\n<bndbox><xmin>11</xmin><ymin>21</ymin>\
        <xmax> 40.5 </xmax><ymax>60</ymax></bndbox>\n</object>\n<object><name>cat &amp; c&#111;</name><difficult>1</difficult>\
        <bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></object></annotation>\n";

    #[test]
    fn objects_have_names_corners_and_marks() {
        let found = parse_voc(FILE).unwrap();
        let dog = VocObject { name: "dog".to_owned(), corners: [11.0, 21.0, 40.5, 60.0], difficult: false };
        let cat = VocObject { name: "cat & co".to_owned(), corners: [1.0, 1.0, 2.0, 2.0], difficult: true };
        assert_eq!(found, [dog, cat]);
        assert_eq!(parse_voc("<annotation></annotation>").unwrap(), []);
        let step = TakeVoc::default();
        assert_eq!(step.rows(FILE).unwrap(), [[10.0, 20.0, 40.5, 60.0, 11.0]]);
        let all = TakeVoc { classes: vec!["cat & co".to_owned(), "dog".to_owned()], difficult: true, one_based: false };
        assert_eq!(all.rows(FILE).unwrap(), [[11.0, 21.0, 41.5, 61.0, 1.0], [1.0, 1.0, 3.0, 3.0, 0.0]]);
    }

    #[test]
    fn what_is_no_voc_file_is_refused_with_its_line() {
        for (file, problem) in [
            ("<annotation>\n<object></object></annotation>", "line 2: an object has no `name`"),
            ("<annotation>\n<object>\n", "`object` does not end"),
            ("<annotation><object><name>a</name><bndbox>\n<xmin>x</xmin>", "line 2: `xmin` is not a number: `x`"),
            ("<annotation><object><name>a</name></object></annotation>", "an object has no `xmin`"),
            ("<a></b>", "line 1: "),
            ("<a>&bomb;</a>", "unknown entity `&bomb;`"),
            (&"<a>".repeat(40), "more than 32 deep"),
        ] {
            let error = parse_voc(file).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let error = TakeVoc::default().rows(&FILE.replace("dog", "dgo")).unwrap_err();
        assert!(error.contains("class `dgo`") && error.contains("did you mean `dog`?"), "{error}");
    }
}
