//! The pipeline: a source and its steps, checked when it is made.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::schema::{FieldType, Schema};
use crate::step::{Action, Step};
use crate::steps::StepSpec;
use crate::stored::KEY_FEATURE;

/// A source and its steps. Making one checks that each step can take what the one before gives.
#[derive(Debug, Clone)]
pub struct Pipeline {
    name: String,
    source: Source,
    steps: Vec<Step>,
    /// `schemas[n]` is what a sample is before step `n`; the last is what the trainer gets.
    schemas: Vec<Schema>,
}

/// A pipeline as a TOML file (or a profile, plan or manifest) spells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PipelineSpec {
    /// What it is called.
    pub name: String,
    /// Where samples come from.
    #[serde(default)]
    pub source: Source,
    /// What is done to them.
    #[serde(default, rename = "step")]
    pub steps: Vec<StepSpec>,
}

/// Files in a folder, one sample each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Source {
    /// Which files below the data folder; upper and lower case are the same.
    pub files: String,
    /// The field that gets a file's bytes.
    pub field: String,
    /// Where the label comes from.
    pub label: Label,
    /// The table of labels, for `label = "table"`: lines of path (or file stem), tab, label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// In which order samples are numbered.
    pub order: Order,
    /// The seed of a shuffled order.
    pub seed: u64,
}

/// Where the label of a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// There is none.
    None,
    /// The name of the folder the file is in.
    Folder,
    /// A table.
    Table,
}

/// In which order the files of a source are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By name.
    Sorted,
    /// At random, by the seed.
    Shuffled,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            files: "**/*.{jpg,jpeg,png,webp,bmp,ppm,pgm,qoi,l3}".to_owned(),
            field: crate::steps::DEFAULT_FIELD.to_owned(),
            label: Label::Folder,
            table: None,
            order: Order::Shuffled,
            // PRESTO lists its files in an order shuffled with this seed (inventory §1.5, step 0).
            seed: 42,
        }
    }
}

/// The field that gets the label.
pub const LABEL_FIELD: &str = "label";

impl Source {
    /// What a sample is when its file has been read.
    pub fn schema(&self) -> Schema {
        let mut fields = vec![(self.field.clone(), FieldType::Bytes)];
        if self.label != Label::None {
            fields.push((LABEL_FIELD.to_owned(), FieldType::Int));
        }
        Schema { fields }
    }
}

/// A place where a pipeline can be split into *once* and *every epoch*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// 0: nothing is done once, files are read every epoch. 1: files are read once and concatenated. n + 1: so many steps
    /// are done once.
    pub position: usize,
    /// What a data set is called that is kept there: `unprocessed`, `concatenated`, or the state after a step.
    pub name: String,
}

impl Split {
    /// How many steps run offline.
    pub fn offline_steps(&self) -> usize {
        self.position.saturating_sub(1)
    }
}

impl Pipeline {
    /// A pipeline, if every step can take what the one before gives.
    pub fn new(name: &str, source: Source, steps: Vec<Step>) -> Result<Self> {
        check_names(name, &source, &steps)?;
        let mut schema = source.schema();
        let mut schemas = vec![schema.clone()];
        for (number, step) in steps.iter().enumerate() {
            if let Some(twin) = steps[..number].iter().find(|other| other.name == step.name) {
                return Err(Error::Format {
                    name: name.to_owned(),
                    message: format!("two steps are called `{}`: give one a `name` of its own", twin.name),
                });
            }
            step.action.check().map_err(|bad| Error::Parameter {
                step: step.name.clone(),
                parameter: bad.parameter,
                found: bad.found,
                expected: bad.expected,
            })?;
            let before = number.checked_sub(1).map_or("read", |before| &steps[before].name);
            for field in &step.fields {
                let kind = output_type(&schema, step, field).map_err(|(expected, found)| Error::Mismatch {
                    before: before.into(),
                    step: step.name.as_str().into(),
                    field: field.as_str().into(),
                    expected: expected.into(),
                    found: found.into(),
                })?;
                schema.set(field, kind);
            }
            schemas.push(schema.clone());
        }
        let pipeline = Self { name: name.to_owned(), source, steps, schemas };
        pipeline.check_states()?;
        Ok(pipeline)
    }

    /// A split is found by the name of its state, so no two may share one.
    fn check_states(&self) -> Result<()> {
        let splits = self.splits();
        for (number, split) in splits.iter().enumerate() {
            if splits[..number].iter().any(|other| other.name == split.name) {
                return Err(Error::Format {
                    name: self.name.clone(),
                    message: format!("two splits are called `{}`: give one step a `state` of its own", split.name),
                });
            }
        }
        Ok(())
    }

    /// A pipeline from the text of a TOML file called `name`.
    pub fn from_toml(name: &str, text: &str) -> Result<Self> {
        let spec: PipelineSpec = toml::from_str(text)
            .map_err(|error| Error::Format { name: name.to_owned(), message: error.to_string() })?;
        Self::from_spec(&spec)
    }

    /// A pipeline from its spec.
    pub fn from_spec(spec: &PipelineSpec) -> Result<Self> {
        let steps = spec.steps.iter().map(|step| step.to_step(&spec.name)).collect::<Result<_>>()?;
        Self::new(&spec.name, spec.source.clone(), steps)
    }

    /// Its spec; `None` if a step was made in code and has none.
    pub fn to_spec(&self) -> Option<PipelineSpec> {
        let steps = self.steps.iter().map(|step| step.spec.clone()).collect::<Option<_>>()?;
        Some(PipelineSpec { name: self.name.clone(), source: self.source.clone(), steps })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where samples come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What is done to them.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What a sample is after so many steps.
    pub fn schema_after(&self, steps: usize) -> &Schema {
        &self.schemas[steps.min(self.steps.len())]
    }

    /// What the trainer gets.
    pub fn output(&self) -> &Schema {
        self.schema_after(self.steps.len())
    }

    /// Every legal split, from nothing done once to everything up to the first random step done once.
    pub fn splits(&self) -> Vec<Split> {
        let fixed = self.steps.iter().take_while(|step| !step.action.is_random());
        let after_steps =
            fixed.enumerate().map(|(number, step)| Split { position: number + 2, name: step.state.clone() });
        let mut splits = vec![
            Split { position: 0, name: "unprocessed".to_owned() },
            Split { position: 1, name: "concatenated".to_owned() },
        ];
        splits.extend(after_steps);
        splits
    }

    /// The split of this name.
    pub fn split(&self, name: &str) -> Result<Split> {
        let splits = self.splits();
        splits.iter().find(|split| split.name == name).cloned().ok_or_else(|| Error::Unknown {
            what: "strategy",
            found: name.to_owned(),
            pipeline: self.name.clone(),
            choices: splits.iter().map(|split| split.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

/// Names end up in tables, JSON and messages, so they are plain words; fields must not collide.
fn check_names(name: &str, source: &Source, steps: &[Step]) -> Result<()> {
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let states = steps.iter().flat_map(|step| [("step", &step.name), ("state", &step.state)]);
    let fields = steps.iter().flat_map(|step| &step.fields).map(|field| ("field", field));
    let source_field = std::iter::once(("field", &source.field));
    if let Some((what, found)) = states.chain(fields).chain(source_field).find(|(_, text)| !plain(text)) {
        let message = format!("the {what} `{found}` is not a plain name: use letters, digits, `-` and `_`");
        return Err(Error::Format { name: name.to_owned(), message });
    }
    if [LABEL_FIELD, KEY_FEATURE].contains(&source.field.as_str()) {
        let message = format!("the source's field cannot be called `{}`: that name is taken", source.field);
        return Err(Error::Format { name: name.to_owned(), message });
    }
    Ok(())
}

/// What `step` makes of `field`, or what it needs and what is there.
fn output_type(schema: &Schema, step: &Step, field: &str) -> std::result::Result<FieldType, (String, String)> {
    let Some(kind) = schema.field(field) else {
        return Err(("that field".to_owned(), format!("only {schema}")));
    };
    let output = match &step.action {
        Action::Transform(transform) => transform.output_type(kind),
        Action::Expand(expand) => expand.output_type(kind),
    };
    output.map_err(|needs| (needs.0, kind.to_string()))
}
