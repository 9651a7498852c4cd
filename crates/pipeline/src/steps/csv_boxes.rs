//! Boxes out of a table that has those of all images, a row each: CSV, TSV or Parquet, and that of Open Images.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use forebay_record::Cell;
use forebay_record::parquet::{self, Metadata, read_column};
use serde::{Deserialize, Serialize};

use super::annotations::{
    BOXES, BoxFormat, BoxRow, by_path_or_stem, class_index, image_size, needs_image, put_boxes, row, shown, with_boxes,
};
use super::text_files::load_box_table;
use crate::error::StepError;
use crate::nearest::nearest;
use crate::sample::SampleView;
use crate::sample_changes::SampleChanges;
use crate::schema::Schema;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform};
use crate::table::Rows;

/// Gives each sample the boxes that a table has for its image. One that the table does not name has none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeCsv {
    /// The table: CSV or TSV, with the names of its columns in the first line, or Parquet.
    pub annotations: String,
    /// The column that names the image: its path, the end of it, or its file's name without the extension.
    #[serde(default = "image_column")]
    pub image_column: String,
    /// The columns of the box.
    #[serde(default = "box_columns")]
    pub box_columns: [String; 4],
    /// The column of the class.
    #[serde(default = "label_column")]
    pub label_column: String,
    /// What the numbers of a box are.
    #[serde(default)]
    pub box_format: BoxFormat,
    /// Whether they are parts of the image's width and height; pixels otherwise.
    #[serde(default)]
    pub normalized: bool,
    /// The classes: the last column of a box is an index into this list. Unless given, whole numbers stay what they are, and other
    /// classes are those in the table, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// What is in the table, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<BoxTable>>,
}

fn image_column() -> String {
    "image".to_owned()
}

fn box_columns() -> [String; 4] {
    ["xmin", "ymin", "xmax", "ymax"].map(str::to_owned)
}

fn label_column() -> String {
    "label".to_owned()
}

/// Gives each sample the boxes that a table of Open Images has for its image.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeOpenImages {
    /// The table, as `oidv6-train-annotations-bbox.csv`.
    pub annotations: String,
    /// The classes, as `/m/01g317`: the last column of a box is an index into this list. Unless given, those in the table, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Whether to take boxes, too, that are around a group.
    #[serde(default)]
    pub group_of: bool,
    /// What is in the table, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<BoxTable>>,
}

/// What a table's columns are called, and what becomes of its classes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoxColumns {
    image: String,
    corners: [String; 4],
    label: String,
    /// A column whose rows with a 1 are left out.
    without: Option<String>,
    box_format: BoxFormat,
    classes: Option<Vec<String>>,
}

impl Default for BoxColumns {
    /// Those of [`TakeCsv`].
    fn default() -> Self {
        let (image, corners, label) = (image_column(), box_columns(), label_column());
        Self { image, corners, label, without: None, box_format: BoxFormat::Xyxy, classes: None }
    }
}

/// The boxes of a table, by the image's name.
#[derive(Debug, Default)]
pub struct BoxTable {
    images: HashMap<String, Vec<BoxRow>>,
}

/// A row of the table before its class has a number.
struct Named<'a> {
    image: Cow<'a, str>,
    /// None in a row that only says that there is such an image, without objects.
    corners: Option<[f64; 4]>,
    label: Cow<'a, str>,
    line: usize,
}

impl BoxTable {
    /// Reads a table. What is wrong with it, and in which line, otherwise.
    pub fn parse(bytes: &[u8], columns: &BoxColumns) -> Result<Self, String> {
        if bytes.starts_with(parquet::MAGIC) {
            return Self::of_parquet(bytes, columns);
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            format!("line {line} is not UTF-8 text")
        })?;
        let mut rows = Rows::new(text.trim_start_matches('\u{feff}'));
        let Some(first) = rows.next_row() else { return Err("it is empty".to_owned()) };
        let (_, names) = first.map_err(|(line, problem)| format!("line {line} {problem}"))?;
        let indexes = column_indexes(&names, columns, "line 1")?;
        let mut found = Vec::new();
        while let Some(next) = rows.next_row() {
            let (line, fields) = next.map_err(|(line, problem)| format!("line {line} {problem}"))?;
            if fields.len() != names.len() {
                return Err(format!("line {line} has {} columns, but the first has {}", fields.len(), names.len()));
            }
            found.extend(indexes.row(fields, line, columns)?);
        }
        Self::numbered(found, columns)
    }

    /// Reads a Parquet file.
    fn of_parquet(bytes: &[u8], columns: &BoxColumns) -> Result<Self, String> {
        let metadata = Metadata::read(&bytes, "the table").map_err(|error| error.to_string())?;
        let names: Vec<Cow<'_, str>> = metadata.columns.iter().map(|column| column.name.as_str().into()).collect();
        let ColumnIndexes { image, corners: [a, b, c, d], label, without } = column_indexes(&names, columns, "it")?;
        let read = |index: usize| {
            let column = &metadata.columns[index];
            read_column(&bytes, &metadata, column, "the table").map_err(|error| error.to_string())
        };
        let wanted: Vec<usize> = [image, a, b, c, d, label].into_iter().chain(without).collect();
        let cells = wanted.iter().map(|&index| read(index)).collect::<Result<Vec<_>, _>>()?;
        let here = ColumnIndexes { image: 0, corners: [1, 2, 3, 4], label: 5, without: without.map(|_| 6) };
        let mut found = Vec::new();
        for row in 0..metadata.rows as usize {
            // An image without objects, as an empty row of a CSV.
            let is_empty = cells[1..5].iter().all(|corner| matches!(corner.get(row), Some(Cell::Null)));
            let text = |(column, index): (&Vec<Cell>, &usize)| {
                let text = column.get(row).and_then(|cell| match cell {
                    Cell::Null if is_empty && *index != image => Some(Cow::default()),
                    cell => cell_text(cell),
                });
                text.ok_or_else(|| format!("row {row} has nothing, or no text or number, in `{}`", names[*index]))
            };
            let fields = cells.iter().zip(&wanted).map(text).collect::<Result<Vec<_>, _>>()?;
            found.extend(here.row(fields, row, columns).map_err(|problem| problem.replacen("line", "row", 1))?);
        }
        Self::numbered(found, columns)
    }

    /// The same with a number for each class.
    fn numbered(named: Vec<Named<'_>>, columns: &BoxColumns) -> Result<Self, String> {
        let labels = || named.iter().filter(|row| row.corners.is_some()).map(|row| &*row.label);
        let numbers = columns.classes.is_none() && labels().all(|label| label.parse::<u32>().is_ok());
        let found: BTreeSet<&str> =
            if numbers || columns.classes.is_some() { BTreeSet::new() } else { labels().collect() };
        let classes: HashMap<String, usize> =
            found.into_iter().map(str::to_owned).zip(0..).collect::<HashMap<String, usize>>();
        let mut table = Self::default();
        for Named { image, corners, label, line } in named {
            let boxes = table.images.entry(image.into_owned()).or_default();
            let Some(corners) = corners else { continue };
            let class = match &columns.classes {
                Some(classes) => class_index(classes, &label).map_err(|problem| format!("line {line}: {problem}"))?,
                None if numbers => label.parse::<u32>().unwrap_or_default() as usize,
                None => classes.get(&*label).copied().unwrap_or_default(),
            };
            boxes.extend(row(corners, class as f64));
        }
        Ok(table)
    }

    /// The boxes of the sample `key`, a path: of the image of that name or the end of it, or of that name without the extension.
    pub fn of(&self, key: &str) -> &[BoxRow] {
        by_path_or_stem(&self.images, key).map_or(&[], Vec::as_slice)
    }
}

/// Which column is what.
struct ColumnIndexes {
    image: usize,
    corners: [usize; 4],
    label: usize,
    without: Option<usize>,
}

/// The text of a cell, as a CSV would have it.
fn cell_text(cell: &Cell) -> Option<Cow<'static, str>> {
    Some(match cell {
        Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.to_owned().into(),
        Cell::Int(number) => number.to_string().into(),
        Cell::Float(number) => number.to_string().into(),
        Cell::Bool(is) => if *is { "1" } else { "0" }.into(),
        Cell::Null | Cell::Ints(_) | Cell::Floats(_) => return None,
    })
}

/// `first` is what has the names of the columns.
fn column_indexes(names: &[Cow<'_, str>], columns: &BoxColumns, first: &str) -> Result<ColumnIndexes, String> {
    let index = |wanted: &String| {
        names.iter().position(|name| name == wanted).ok_or_else(|| {
            let meant = nearest(wanted, names.iter().map(|name| &**name));
            let meant = meant.map_or_else(String::new, |meant| format!(": did you mean `{}`?", shown(meant)));
            format!("{first} has no column `{wanted}`{meant}")
        })
    };
    let [a, b, c, d] = &columns.corners;
    Ok(ColumnIndexes {
        image: index(&columns.image)?,
        corners: [index(a)?, index(b)?, index(c)?, index(d)?],
        label: index(&columns.label)?,
        without: columns.without.as_ref().map(index).transpose()?,
    })
}

impl ColumnIndexes {
    /// A row of the table; none where it is left out.
    fn row<'a>(
        &self,
        mut fields: Vec<Cow<'a, str>>,
        line: usize,
        columns: &BoxColumns,
    ) -> Result<Option<Named<'a>>, String> {
        if self.without.is_some_and(|index| fields[index].trim() == "1") {
            return Ok(None);
        }
        let is_empty = |index: usize| fields[index].trim().is_empty();
        if self.corners.into_iter().all(is_empty) {
            let image = std::mem::take(&mut fields[self.image]);
            return Ok(Some(Named { image, corners: None, label: Cow::default(), line }));
        }
        let mut corners = [0.0; 4];
        for ((corner, index), name) in corners.iter_mut().zip(self.corners).zip(&columns.corners) {
            let number = fields[index].trim().parse::<f64>().ok().filter(|number| number.is_finite());
            let no_number = || format!("line {line}: `{name}` is not a number: `{}`", shown(&fields[index]));
            *corner = number.ok_or_else(no_number)?;
        }
        let image = std::mem::take(&mut fields[self.image]);
        let label = std::mem::take(&mut fields[self.label]);
        Ok(Some(Named { image, corners: Some(columns.box_format.corners(corners)), label, line }))
    }
}

/// Makes corners that are parts of the image's width and height pixels.
fn in_pixels(rows: &[BoxRow], [width, height]: [f64; 2]) -> Vec<BoxRow> {
    let by = [width, height, width, height, 1.0];
    let scaled = |row: &BoxRow| std::array::from_fn(|at| (f64::from(row[at]) * by[at]) as f32);
    rows.iter().map(scaled).collect()
}

impl TakeCsv {
    pub(super) fn columns(&self) -> BoxColumns {
        BoxColumns {
            image: self.image_column.clone(),
            corners: self.box_columns.clone(),
            label: self.label_column.clone(),
            without: None,
            box_format: self.box_format,
            classes: self.classes.clone(),
        }
    }
}

impl TakeOpenImages {
    pub(super) fn columns(&self) -> BoxColumns {
        BoxColumns {
            image: "ImageID".to_owned(),
            corners: ["XMin", "YMin", "XMax", "YMax"].map(str::to_owned),
            label: "LabelName".to_owned(),
            without: (!self.group_of).then(|| "IsGroupOf".to_owned()),
            box_format: BoxFormat::Xyxy,
            classes: self.classes.clone(),
        }
    }
}

/// The table, read when first wanted.
fn loaded<'a>(
    kept: &'a OnceLock<Arc<BoxTable>>,
    annotations: &str,
    columns: &BoxColumns,
) -> Result<&'a BoxTable, StepError> {
    if let Some(table) = kept.get() {
        return Ok(table);
    }
    let table = load_box_table(annotations, columns)?;
    Ok(kept.get_or_init(|| table))
}

fn check_files(annotations: &str, classes: Option<&Vec<String>>) -> Result<(), BadParameter> {
    BadParameter::unless(!annotations.is_empty(), "annotations", &annotations, "the path of a table")?;
    BadParameter::unless(
        classes.is_none_or(|classes| !classes.is_empty()),
        "classes",
        &classes,
        "some names, or left out",
    )
}

impl SampleTransform for TakeCsv {
    fn check(&self) -> Result<(), BadParameter> {
        check_files(&self.annotations, self.classes.as_ref())
    }

    fn files(&self) -> Option<&dyn crate::step::StepFiles> {
        Some(self)
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let [image] = fields else { return Err(Needs("one field, of the image".to_owned())) };
        if self.normalized {
            needs_image(input, image)?;
        }
        Ok(with_boxes(input))
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let rows = loaded(&self.loaded, &self.annotations, &self.columns())?.of(sample.key);
        if !self.normalized {
            return put_boxes(changes, rows);
        }
        let image = fields.first().map_or(BOXES, String::as_str);
        put_boxes(changes, &in_pixels(rows, image_size(sample, image)?))
    }
}

impl SampleTransform for TakeOpenImages {
    fn check(&self) -> Result<(), BadParameter> {
        check_files(&self.annotations, self.classes.as_ref())
    }

    fn files(&self) -> Option<&dyn crate::step::StepFiles> {
        Some(self)
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let [image] = fields else { return Err(Needs("one field, of the image".to_owned())) };
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
        let rows = loaded(&self.loaded, &self.annotations, &self.columns())?.of(sample.key);
        let image = fields.first().map_or(BOXES, String::as_str);
        put_boxes(changes, &in_pixels(rows, image_size(sample, image)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str, change: impl FnOnce(&mut BoxColumns)) -> Result<BoxTable, String> {
        let mut columns = BoxColumns::default();
        change(&mut columns);
        BoxTable::parse(text.as_bytes(), &columns)
    }

    const TABLE: &str = "\u{feff}image,label,xmin,ymin,xmax,ymax,note\na.jpg,dog,1,2,3,4,\"x, y\"\ntrain/b.jpg,cat,0,0,5.5,6,\na.jpg,cat,1,1,1,9,\nc,cat,1,1,2,2,\n";

    #[test]
    fn rows_are_found_by_path_or_stem() {
        let found = table(TABLE, |_| {}).unwrap();
        assert_eq!(
            found.of("images/a.jpg"),
            [[1.0, 2.0, 3.0, 4.0, 1.0]],
            "classes by name, and no box without an area"
        );
        assert_eq!(found.of("images/train/b.jpg"), [[0.0, 0.0, 5.5, 6.0, 0.0]]);
        assert_eq!(found.of("images/c.png"), [[1.0, 1.0, 2.0, 2.0, 0.0]]);
        assert!(found.of("b.jpg").is_empty() && found.of("").is_empty());
        let named = |columns: &mut BoxColumns| {
            columns.classes = Some(vec!["dog".to_owned(), "cat".to_owned()]);
            columns.box_format = BoxFormat::Xywh;
        };
        assert_eq!(table(TABLE, named).unwrap().of("a.jpg"), [[1.0, 2.0, 4.0, 6.0, 0.0], [1.0, 1.0, 2.0, 10.0, 1.0]]);
        let tabs = table(&TABLE.replace("dog", "7").replace("cat", "3").replace(',', "\t"), |_| {}).unwrap();
        assert_eq!(tabs.of("a.jpg"), [[1.0, 2.0, 3.0, 4.0, 7.0]], "a tab in quotes separates nothing");
        let numbers = table("image\tlabel\txmin\tymin\txmax\tymax\na\t7\t1\t2\t3\t4\n", |_| {}).unwrap();
        assert_eq!(numbers.of("a.png"), [[1.0, 2.0, 3.0, 4.0, 7.0]]);
    }

    /// As tables of detections without objects have them, and pandas writes what is missing.
    #[test]
    fn a_row_without_corners_is_an_image_without_objects() {
        let text = "image,label,xmin,ymin,xmax,ymax\na.jpg,,,,,\nb.jpg,7,1,2,3,4\nc.jpg,cat, ,,,\n";
        let found = table(text, |_| {}).unwrap();
        assert!(found.of("a.jpg").is_empty() && found.of("c.jpg").is_empty());
        assert_eq!(found.of("b.jpg"), [[1.0, 2.0, 3.0, 4.0, 7.0]], "what has no box has no class, either");
        let error = table("image,label,xmin,ymin,xmax,ymax\na.jpg,dog,1,2,,4\n", |_| {}).unwrap_err();
        assert!(error.contains("line 2: `xmax` is not a number: ``"), "{error}");
    }

    #[test]
    fn groups_of_open_images_are_left_out() {
        let text = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf\n\
                    00a,xclick,/m/01,1,0.5,1,0.25,0.75,0,0,0\n00a,xclick,/m/02,1,0,1,0,1,0,0,1\n";
        let step: TakeOpenImages = toml::from_str("annotations = \"t.csv\"").unwrap();
        let found = BoxTable::parse(text.as_bytes(), &step.columns()).unwrap();
        assert_eq!(in_pixels(found.of("train/00a.jpg"), [200.0, 100.0]), [[100.0, 25.0, 200.0, 75.0, 0.0]]);
        let all: TakeOpenImages = toml::from_str("annotations = \"t.csv\"\ngroup_of = true").unwrap();
        assert_eq!(BoxTable::parse(text.as_bytes(), &all.columns()).unwrap().of("00a.jpg").len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let unknown = |columns: &mut BoxColumns| columns.classes = Some(vec!["dot".to_owned()]);
        for (text, problem) in [
            ("", "it is empty"),
            ("image,labels,xmin,ymin,xmax,ymax\n", "line 1 has no column `label`: did you mean `labels`?"),
            ("image,label,xmin,ymin,xmax,ymax\na,dog,1,2,3\n", "line 2 has 5 columns, but the first has 6"),
            ("image,label,xmin,ymin,xmax,ymax\n\na,dog,1,2,x,4\n", "line 3: `xmax` is not a number: `x`"),
            ("image,label,xmin,ymin,xmax,ymax\na,\"dog,1,2,3,4\n", "line 2 begins a quote"),
        ] {
            let error = table(text, |_| {}).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        assert!(
            table("image,label,xmin,ymin,xmax,ymax\na,dog,1,2,3,4\n", unknown)
                .unwrap_err()
                .contains("line 2: class `dog`")
        );
        assert!(BoxTable::parse(b"image\n\xff", &BoxColumns::default()).unwrap_err().contains("line 2 is not UTF-8"));
    }
}
