//! The source: where samples come from, and what they are when they have been read.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use forebay_codec::{DType, Tensor, TensorSpec, npy};
use forebay_record::Cell;
use forebay_record::{FeatureView, SharedExample, TensorProto};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::sample::Value;
use crate::schema::{FieldType, Schema};
use crate::sidecar::SidecarPath;
use crate::stored::{KEY_FEATURE, tensor_from, tensor_of};

/// Where samples come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// What the files are.
    #[serde(skip_serializing_if = "Format::is_files")]
    pub format: Format,
    /// Which files below the data folder; upper and lower case are the same. By the format unless given. [`GIVEN_FILES`]: those of a list
    /// that whoever runs the pipeline gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The field that gets a file's bytes, and that steps work on unless they say otherwise.
    pub field: String,
    /// Where the label of a file comes from.
    pub label: Label,
    /// The table of labels, for `label = "table"`, and of what `where` asks for: lines of path (or name, or stem) and label, with a tab or a comma
    /// between them, or a Parquet file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The columns of the table that have the path and the label, by their names in its first line. Unless given it has two, or with `where` the
    /// path in the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_columns: Option<[String; 2]>,
    /// The function of the program that gives labels, for `label = "function"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What a label is. Unless given, the index of a class; numbers of a table, a list or a function stay what they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_type: Option<LabelType>,
    /// The classes, where they are fixed: a label is an index into this list. Unless given, those that files have, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Which samples there are: those whose row meets this condition, in the table, or of a Parquet or Arrow file in its own columns; see
    /// [`Predicate`].
    #[serde(skip_serializing_if = "Option::is_none", rename = "where")]
    pub condition: Option<String>,
    /// In which order samples are numbered. Files are shuffled and the samples of shards are as they lie, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The seed of a shuffled order; PRESTO's unless given. A pipeline's source has one where it is shuffled, and none where not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// More fields of a sample of files; all fields of a sample of shards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<SourceField>,
}

/// What the files of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// One sample each.
    #[default]
    Files,
    /// Tar shards, as `WebDataset` writes them.
    Tar,
    /// TFRecord shards of `tf.train.Example`s.
    Tfrecord,
    /// Parquet files, a row of which is a sample.
    Parquet,
    /// Arrow's IPC files and streams, as `datasets` of Hugging Face writes them: the same.
    Arrow,
}

/// A field of a sample, and what it is read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceField {
    /// What the field is called.
    pub field: String,
    /// For files: the path of another file below the data folder, with `{folder}`, `{stem}` and `{name}` of the sample's
    /// file in it (`masks/{stem}.png`), or these with a text replaced (`{stem:_image=_mask}.png`): see [`SidecarPath`]. For tar: the member, or several of which a sample has one (`jpg;png`). For TFRecord:
    /// the feature. For Parquet and Arrow: the column, or several of which a file has one; `image` is the column `image.bytes`, too.
    pub from: String,
    /// What it holds: `bytes`, `text`, `json`, `int`, or a tensor (an `npy` member, a feature that is a list of numbers).
    #[serde(default = "bytes", rename = "type")]
    pub kind: FieldType,
    /// Whether a sample may lack it, and then has nothing there: a file without annotations, say.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

fn bytes() -> FieldType {
    FieldType::Bytes
}

/// Where the label of a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// There is none.
    None,
    /// The name of the folder the file is in.
    Folder,
    /// The name of the first folder of its path below the data folder.
    TopFolder,
    /// A table.
    Table,
    /// The list that names the files, where they are given.
    List,
    /// A function of the program.
    Function,
}

/// What a label is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelType {
    /// The index of a class among the classes.
    Class,
    /// A whole number, as it is.
    Int,
    /// A number, as it is: a `float32`.
    Float,
}

/// In which order the samples of a source are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By name, or as they lie in their shards.
    Sorted,
    /// At random, by the seed.
    Shuffled,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            format: Format::Files,
            files: None,
            field: crate::steps::DEFAULT_FIELD.to_owned(),
            label: Label::Folder,
            table: None,
            table_columns: None,
            function: None,
            label_type: None,
            classes: None,
            condition: None,
            order: None,
            seed: None,
            fields: Vec::new(),
        }
    }
}

/// The field that gets the label.
pub const LABEL_FIELD: &str = "label";

/// PRESTO lists its files in an order shuffled with this seed.
const ORDER_SEED: u64 = 42;

/// What a source has for its `files` where they are given as a list.
pub const GIVEN_FILES: &str = "-";

/// What people call columns of pictures and of labels, besides the field's own name.
const IMAGE_COLUMNS: &str = "image;img;image_bytes;jpg;png";
const LABEL_COLUMNS: &str = "label;labels;cls;fine_label;category";

const IMAGE_MEMBERS: &str = "jpg;jpeg;png;webp;bmp;ppm;pgm;qoi;l3";

impl Format {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_files(&self) -> bool {
        *self == Self::Files
    }

    /// Whether its files have columns, and rows that are samples.
    pub fn has_columns(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

impl Source {
    /// Which files below the data folder.
    pub fn pattern(&self) -> &str {
        self.files.as_deref().unwrap_or(match self.format {
            Format::Files => "**/*.{jpg,jpeg,png,webp,bmp,ppm,pgm,qoi,l3}",
            Format::Tar => "**/*.{tar,tar.gz,tgz,tar.zst}",
            Format::Tfrecord => "**/*{.tfrecord,.tfrecords,.tfrec,.record}{,-*,.gz,.zst}",
            Format::Parquet => "**/*.{parquet,pq}",
            Format::Arrow => "**/*.{arrow,arrows,feather,ipc}",
        })
    }

    /// Whether its files are those of a list that whoever runs the pipeline gives.
    pub fn files_are_given(&self) -> bool {
        self.files.as_deref() == Some(GIVEN_FILES)
    }

    /// In which order samples are numbered.
    pub fn order(&self) -> Order {
        self.order.unwrap_or(match self.format {
            Format::Files => Order::Shuffled,
            Format::Tar | Format::Tfrecord | Format::Parquet | Format::Arrow => Order::Sorted,
        })
    }

    /// The seed of a shuffled order.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(ORDER_SEED)
    }

    /// The same as it is written down: with a seed where it has an effect, and only there.
    #[must_use]
    pub(crate) fn with_effective_seed(mut self) -> Self {
        self.seed = (self.order() == Order::Shuffled).then_some(self.seed());
        self
    }

    /// The fields that are read besides the file itself; of shards, all. What people who write pictures into shards usually
    /// call them, unless given.
    pub fn read_fields(&self) -> Cow<'_, [SourceField]> {
        if self.format == Format::Files || !self.fields.is_empty() {
            return Cow::Borrowed(&self.fields);
        }
        let columns = if self.field == crate::steps::DEFAULT_FIELD { IMAGE_COLUMNS } else { self.field.as_str() };
        let (image, label) = match self.format {
            Format::Tar => (IMAGE_MEMBERS, "cls"),
            Format::Parquet | Format::Arrow => (columns, LABEL_COLUMNS),
            _ => ("image/encoded", "image/class/label"),
        };
        let field = |name: &str, from: &str, kind| SourceField {
            field: name.to_owned(),
            from: from.to_owned(),
            kind,
            optional: false,
        };
        let mut fields = vec![field(&self.field, image, FieldType::Bytes)];
        if self.label != Label::None {
            fields.push(field(LABEL_FIELD, label, FieldType::Int));
        }
        Cow::Owned(fields)
    }

    /// What a sample is when it has been read.
    pub fn schema(&self) -> Schema {
        let mut fields = Vec::new();
        if self.format == Format::Files {
            fields.push((self.field.clone(), FieldType::Bytes));
            if self.label != Label::None {
                let kind = match self.label_type {
                    Some(LabelType::Float) => FieldType::Tensor { dtype: DType::F32, dims: Vec::new() },
                    _ => FieldType::Int,
                };
                fields.push((LABEL_FIELD.to_owned(), kind));
            }
        }
        fields.extend(self.read_fields().iter().map(|field| (field.field.clone(), field.kind.clone())));
        Schema { fields }
    }

    /// That fields have names of their own and types that their format can have.
    pub(crate) fn check(&self, pipeline: &str) -> Result<()> {
        let wrong = |message: String| Err(Error::Format { name: pipeline.to_owned(), message });
        let schema = self.schema();
        for (index, (name, _)) in schema.fields.iter().enumerate() {
            if name == KEY_FEATURE || schema.fields[..index].iter().any(|(other, _)| other == name) {
                return wrong(format!("the source's field cannot be called `{name}`: that name is taken"));
            }
        }
        for (name, kind) in &schema.fields {
            if name == LABEL_FIELD
                && *kind != FieldType::Int
                && self.label != Label::None
                && self.format != Format::Files
            {
                return wrong(format!("the source's field `{name}` is {kind}: call it otherwise, or make it an `int`"));
            }
        }
        let has_nothing = |kind: &FieldType| matches!(kind, FieldType::Bytes | FieldType::Text);
        if let Some(field) = self.fields.iter().find(|field| field.optional && !has_nothing(&field.kind)) {
            let problem =
                format!("the source's field `{}` is `optional`, but {} cannot be empty", field.field, field.kind);
            return wrong(problem + ": make it `text` or `bytes`");
        }
        if self.format == Format::Files {
            if let Some(field) = self.fields.iter().find(|field| matches!(field.kind, FieldType::Tensor { .. })) {
                return wrong(format!("the source's field `{}` cannot be read as {}", field.field, field.kind));
            }
            for SourceField { field, from, .. } in &self.fields {
                match SidecarPath::parse(from) {
                    Err(problem) => {
                        return wrong(format!("the source's field `{field}` is from `{from}`, which has {problem}"));
                    }
                    Ok(path) if path.is_fixed() => {
                        return wrong(format!(
                            "the source's field `{field}` would be `{from}` for every sample: write {{stem}}, {{name}} or {{folder}} into it"
                        ));
                    }
                    Ok(_) => {}
                }
            }
        } else if schema.field(&self.field).is_none() {
            return wrong(format!("the source's `field` is `{}`, but only {schema} are read", self.field));
        }
        self.check_label().or_else(wrong)
    }

    /// That what says something of labels has an effect, and makes sense.
    fn check_label(&self) -> std::result::Result<(), String> {
        let from = [
            ("a table", self.label == Label::Table || self.table.is_some()),
            ("labels of a list", self.label == Label::List),
            ("labels of a function", self.label == Label::Function || self.function.is_some()),
            ("labels by their top folder", self.label == Label::TopFolder),
            ("a `label_type`", self.label_type.is_some()),
            ("`classes`", self.classes.is_some()),
        ];
        if let Some((what, _)) = from.iter().find(|(_, is)| self.format != Format::Files && *is) {
            return Err(format!("only files can have {what}: read the label as a field"));
        }
        let idle = |what: &str, other: &str| Err(format!("the source's `{what}` has no effect without `{other}`"));
        self.check_condition()?;
        if self.table.is_some() && self.label != Label::Table && self.condition.is_none() {
            return idle("table", "label = \"table\"` or `where");
        }
        if self.table_columns.is_some() && self.table.is_none() {
            return idle("table_columns", "table");
        }
        if self.function.is_some() != (self.label == Label::Function) {
            return Err("the source needs both `label = \"function\"` and `function`, or none of them".to_owned());
        }
        if self.label == Label::List && !self.files_are_given() {
            return idle("label = \"list\"", "files = \"-\"");
        }
        if self.label == Label::None && self.label_type.is_some() {
            return idle("label_type", "label");
        }
        let Some(classes) = &self.classes else { return Ok(()) };
        if self.label == Label::None {
            return idle("classes", "label");
        }
        if matches!(self.label_type, Some(LabelType::Int | LabelType::Float)) {
            return idle("classes", "label_type = \"class\"");
        }
        let mut known = HashSet::new();
        if let Some(twice) = classes.iter().find(|class| !known.insert(class.as_str())) {
            return Err(format!("the source's `classes` have `{twice}` twice, so that it has no one label"));
        }
        if classes.is_empty() {
            return Err("the source's `classes` are none: leave them out where labels are numbers".to_owned());
        }
        Ok(())
    }

    /// That a condition can be read, and has columns.
    fn check_condition(&self) -> std::result::Result<(), String> {
        let Some(condition) = &self.condition else { return Ok(()) };
        if let Err(problem) = Predicate::parse(condition) {
            return Err(format!("the source's `where` is `{condition}`, but {problem}"));
        }
        match self.format {
            Format::Files if self.table.is_none() => {
                Err("the source's `where` is about the columns of a table: name it with `table`".to_owned())
            }
            Format::Files if self.label == Label::Table && self.table_columns.is_none() => {
                Err("the source's `where` takes columns by their names: give `table_columns`, too".to_owned())
            }
            Format::Tar | Format::Tfrecord => {
                Err("only files with a `table`, and Parquet and Arrow files, can have `where`: pass it to the loader instead"
                    .to_owned())
            }
            Format::Files | Format::Parquet | Format::Arrow => Ok(()),
        }
    }

    /// That a seed was not given in vain; for what people write, since older specs have one in any case.
    pub(crate) fn check_seed(&self, name: &str) -> Result<()> {
        if self.order() == Order::Shuffled || self.seed.is_none() {
            return Ok(());
        }
        let message =
            "the source's `seed` has no effect with a sorted order: leave it out, or write `order = \"shuffled\"`";
        Err(Error::Format { name: name.to_owned(), message: message.to_owned() })
    }
}

impl SourceField {
    /// The value of the field out of the content of a file or tar member.
    pub fn value(&self, content: Bytes) -> std::result::Result<Value, String> {
        let text = || std::str::from_utf8(&content).map_err(|_| "is not UTF-8 text".to_owned());
        Ok(match &self.kind {
            FieldType::Bytes => Value::Bytes(content),
            FieldType::Text => Value::Text(text()?.into()),
            FieldType::Json => Value::Text(checked_json(text()?)?.into()),
            FieldType::Int => {
                let text = text()?.trim();
                Value::Int(text.parse().map_err(|_| format!("is not an integer: `{}`", shortened(text)))?)
            }
            kind @ FieldType::Tensor { .. } => {
                let tensor = npy::decode(content).map_err(|error| error.to_string())?;
                if !kind.holds(tensor.spec()) {
                    return Err(format!("is {}, but should be {kind}", tensor.spec()));
                }
                Value::Tensor(tensor)
            }
        })
    }

    /// The value of the field out of an example.
    pub fn feature(&self, example: &SharedExample) -> std::result::Result<Value, String> {
        let missing = || format!("is missing or is no {}", self.kind);
        let FieldType::Tensor { dtype, .. } = &self.kind else {
            if self.kind == FieldType::Int {
                return example.int64(&self.from).map(Value::Int).ok_or_else(missing);
            }
            let content = example.bytes(&self.from).or_else(|| self.optional.then(Bytes::new));
            return self.value(content.ok_or_else(missing)?);
        };
        let feature = example.features().find(|(name, _)| *name == self.from).map(|(_, feature)| feature);
        let tensor = match feature {
            // Not by way of `f64`, which holds no whole numbers above 2⁵³.
            Some(FeatureView::Int64(list)) if *dtype == DType::I64 => {
                let numbers: Vec<i64> = list.iter().collect();
                Tensor::from_elements(&[numbers.len()], &numbers).ok_or_else(missing)?
            }
            Some(FeatureView::Int64(list)) => tensor_of(*dtype, list.iter().map(|number| number as f64)),
            Some(FeatureView::Float(list)) => tensor_of(*dtype, list.iter().map(f64::from)),
            _ => {
                let message = example.bytes(&self.from).ok_or_else(missing)?;
                let proto = TensorProto::parse(&message).map_err(|error| error.to_string())?;
                return tensor_from(&proto, &message, &self.kind).map(Value::Tensor);
            }
        };
        if self.kind.holds(tensor.spec()) {
            Ok(Value::Tensor(tensor))
        } else {
            Err(format!("is {}, but should be {}", tensor.spec(), self.kind))
        }
    }
}

impl SourceField {
    /// The value of the field out of the row of a Parquet or Arrow file.
    pub fn cell(&self, cell: Cell) -> std::result::Result<Value, String> {
        let FieldType::Tensor { dtype, dims } = &self.kind else {
            return match cell {
                Cell::Int(number) if self.kind == FieldType::Int => Ok(Value::Int(number)),
                Cell::Bool(is) if self.kind == FieldType::Int => Ok(Value::Int(i64::from(is))),
                Cell::Bytes(content) => self.value(content),
                Cell::Null if self.optional => self.value(Bytes::new()),
                Cell::Null => Err("is null: leave the row out, or make the field `optional`".to_owned()),
                _ => Err(format!("is no {}", self.kind)),
            };
        };
        let tensor = match cell {
            Cell::Bytes(content) => return self.value(content),
            // Not by way of `f64`, which holds no whole numbers above 2⁵³.
            Cell::Ints(list) if *dtype == DType::I64 => Tensor::from_elements(&[list.len()], &list),
            Cell::Int(number) if *dtype == DType::I64 => Tensor::from_elements(&[], &[number]),
            Cell::Ints(list) => Some(tensor_of(*dtype, list.iter().map(|number| *number as f64))),
            Cell::Floats(list) => Some(tensor_of(*dtype, list.iter().copied())),
            Cell::Int(number) => scalar_of(*dtype, number as f64),
            Cell::Bool(is) => scalar_of(*dtype, f64::from(u8::from(is))),
            Cell::Float(number) => scalar_of(*dtype, number),
            Cell::Null => return Err("is null: leave the row out".to_owned()),
        };
        match tensor {
            Some(tensor) if self.kind.holds(tensor.spec()) => Ok(Value::Tensor(tensor)),
            Some(tensor) => Err(format!("is {}, but should be {}", tensor.spec(), self.kind)),
            None => Err(format!("does not fit {} dimensions", dims.len())),
        }
    }
}

/// A tensor of one number and no dimension.
fn scalar_of(dtype: DType, number: f64) -> Option<Tensor> {
    let one = tensor_of(dtype, std::iter::once(number));
    Tensor::new(TensorSpec::new(dtype, &[]), one.data().to_vec())
}

/// Without the mark that some editors begin a file with, which parsers refuse.
fn checked_json(text: &str) -> std::result::Result<&str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}
