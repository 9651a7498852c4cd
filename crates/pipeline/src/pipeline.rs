//! The pipeline: a source and its steps, checked when it is made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::nearest::one_of;
use crate::schema::{FieldType, Schema};
use crate::source::Source;
use crate::step::{Action, Step};
use crate::steps::{Call, Decode, DecodeAudio, LogMelSpectrogram, StepSpec};

/// What a batch calls the keys of its samples.
const KEY_FIELD: &str = "key";

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
#[serde(deny_unknown_fields)]
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

/// A point where a pipeline can be split into *once* and *every epoch*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// 0: nothing is done once, files are read every epoch. 1: files are read once and concatenated. n + 1: so many steps
    /// are done once.
    pub position: usize,
    /// What a data set is called that is kept there: `unprocessed`, `concatenated`, or the stage after a step.
    pub name: String,
}

impl Split {
    /// Nothing is done once.
    pub fn files() -> Self {
        Self { position: 0, name: "unprocessed".to_owned() }
    }

    /// Whether nothing is done once: the files are kept as they are and read every epoch, and there is nothing to build.
    pub fn keeps_files(&self) -> bool {
        self.position == 0
    }

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
            if let Some(earlier) = steps[..number].iter().find(|step| is_of_batches(step))
                && !is_of_batches(step)
            {
                return Err(Error::Format {
                    name: name.to_owned(),
                    message: format!(
                        "`{}` comes after `{}`, which works on whole batches: put it before",
                        step.name, earlier.name
                    ),
                });
            }
            if let Some(random) = steps[..number].iter().find(|step| step.action.is_random())
                && matches!(step.action, Action::ShardTransform(_))
            {
                return Err(Error::Format {
                    name: name.to_owned(),
                    message: format!(
                        "`{}` comes after `{}`, which is random: it is done once, for the samples of a whole shard, so put it before",
                        step.name, random.name
                    ),
                });
            }
            let before = number.checked_sub(1).map_or("read", |before| &steps[before].name);
            schema = schema_after(schema, step).map_err(|(field, expected, found)| Error::Mismatch {
                before: before.into(),
                step: step.name.as_str().into(),
                field: field.into(),
                expected: expected.into(),
                found: found.into(),
            })?;
            schemas.push(schema.clone());
        }
        if schemas.iter().any(|schema| schema.field(KEY_FIELD).is_some()) {
            let message =
                format!("a field cannot be called `{KEY_FIELD}`: that is where a batch has its samples' keys");
            return Err(Error::Format { name: name.to_owned(), message });
        }
        let pipeline = Self { name: name.to_owned(), source: source.with_effective_seed(), steps, schemas };
        pipeline.check_states()?;
        Ok(pipeline)
    }

    /// A split is found by the name of its stage, so no two may share one.
    fn check_states(&self) -> Result<()> {
        let splits = self.splits();
        for (number, split) in splits.iter().enumerate() {
            if splits[..number].iter().any(|other| other.name == split.name) {
                return Err(Error::Format {
                    name: self.name.clone(),
                    message: format!("two splits are called `{}`: give one step a `stage` of its own", split.name),
                });
            }
        }
        Ok(())
    }

    /// A pipeline from the text of a TOML file called `name`.
    pub fn from_toml(name: &str, text: &str) -> Result<Self> {
        let spec: PipelineSpec = toml::from_str(text)
            .map_err(|error| Error::Format { name: name.to_owned(), message: error.to_string() })?;
        spec.source.check_seed(name)?;
        Self::from_spec(&spec)
    }

    /// A pipeline from its spec.
    pub fn from_spec(spec: &PipelineSpec) -> Result<Self> {
        let steps =
            spec.steps.iter().map(|step| step.to_step(&spec.name, &spec.source.field)).collect::<Result<_>>()?;
        let pipeline = Self::new(&spec.name, spec.source.clone(), steps)?;
        check_sample_rates(&pipeline)?;
        check_smaller_pictures(&pipeline)?;
        Ok(pipeline)
    }

    /// Its spec; `None` if a step was made in code and has none.
    pub fn to_spec(&self) -> Option<PipelineSpec> {
        let steps = self.steps.iter().map(|step| step.spec.clone()).collect::<Option<_>>()?;
        Some(PipelineSpec { name: self.name.clone(), source: self.source.clone(), steps })
    }

    /// The same with functions of this program for the `function` steps that name one which `find` has.
    #[must_use]
    pub fn with_functions(mut self, find: &dyn Fn(&str) -> Option<Arc<dyn Call>>) -> Self {
        for step in &mut self.steps {
            if let Action::SampleTransform(transform) = &step.action
                && let Some(resolved) = transform.resolved(find)
            {
                step.action = Action::SampleTransform(resolved);
            }
        }
        self
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

    /// Every legal split, from nothing done once to everything up to the first random step done once. What is done to whole shards is always
    /// done once: splits before it are none.
    pub fn splits(&self) -> Vec<Split> {
        let fixed = self.steps.iter().take_while(|step| !step.action.is_random());
        let after_steps =
            fixed.enumerate().map(|(number, step)| Split { position: number + 2, name: step.stage.clone() });
        let mut splits = vec![Split::files(), Split { position: 1, name: "concatenated".to_owned() }];
        splits.extend(after_steps);
        let of_shards = self.steps.iter().rposition(|step| matches!(step.action, Action::ShardTransform(_)));
        if let Some(number) = of_shards {
            splits.retain(|split| split.offline_steps() > number);
        }
        splits
    }

    /// The split of this name.
    pub fn split(&self, name: &str) -> Result<Split> {
        let splits = self.splits();
        splits.iter().find(|split| split.name == name).cloned().ok_or_else(|| Error::Unknown {
            what: "strategy",
            found: name.to_owned(),
            pipeline: self.name.clone(),
            hint: one_of(name, splits.iter().map(|split| split.name.as_str())),
        })
    }
}

/// Audio that comes out of one step at a rate goes into the next at that rate: its type does not say so.
fn check_sample_rates(pipeline: &Pipeline) -> Result<()> {
    for (decode, spectrogram) in pipeline.steps.iter().zip(pipeline.steps.iter().skip(1)) {
        let given = decode.action.transform_as::<DecodeAudio>().and_then(|step| step.sample_rate);
        let taken = spectrogram.action.transform_as::<LogMelSpectrogram>().map(|step| step.sample_rate);
        if let (Some(given), Some(taken)) = (given, taken)
            && given != taken
            && decode.fields == spectrogram.fields
        {
            return Err(Error::Mismatch {
                before: decode.name.as_str().into(),
                step: spectrogram.name.as_str().into(),
                field: decode.fields[0].as_str().into(),
                expected: format!("its own `sample_rate` to be {given}: it is {taken}").into(),
                found: format!("audio of {given} hertz").into(),
            });
        }
    }
    Ok(())
}

/// A picture that is decoded smaller has left its masks and boxes behind: no step may move it together with others.
fn check_smaller_pictures(pipeline: &Pipeline) -> Result<()> {
    for (number, step) in pipeline.steps.iter().enumerate() {
        let decode = step.action.transform_as::<Decode>();
        let Some(side) = decode.and_then(|decode| decode.min_shorter_side) else { continue };
        let with_others =
            |later: &Step| later.fields.len() > 1 && later.fields.iter().any(|field| step.fields.contains(field));
        if pipeline.steps[number + 1..].iter().any(with_others) {
            return Err(Error::Parameter {
                step: step.name.clone(),
                parameter: "min_shorter_side",
                found: side.to_string(),
                expected: "left out where masks or boxes go with the image: they would not become smaller with it",
            });
        }
    }
    Ok(())
}

/// Names end up in tables, JSON and messages, so they are plain words; fields must not collide.
fn check_names(name: &str, source: &Source, steps: &[Step]) -> Result<()> {
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let stages = steps.iter().flat_map(|step| [("step", &step.name), ("stage", &step.stage)]);
    let fields = steps.iter().flat_map(|step| &step.fields).map(|field| ("field", field));
    let source_fields = source.fields.iter().map(|field| &field.field).chain(std::iter::once(&source.field));
    let source_fields = source_fields.map(|field| ("field", field));
    if let Some((what, found)) = stages.chain(fields).chain(source_fields).find(|(_, text)| !plain(text)) {
        let message = format!("the {what} `{found}` is not a plain name: use letters, digits, `-` and `_`");
        return Err(Error::Format { name: name.to_owned(), message });
    }
    source.check(name)
}

/// What a step needs and does not find: the field, what is needed, and what is there.
type Misfit = (String, String, String);

/// What a sample is after `step`.
fn schema_after(mut schema: Schema, step: &Step) -> std::result::Result<Schema, Misfit> {
    if let Some(wanted) = step.action.riders_left()
        && let Some((field, kind)) = rider_left(&schema, &step.fields)
    {
        return Err((field.clone(), wanted.to_owned(), kind.to_string()));
    }
    if let Action::SampleTransform(transform) = &step.action {
        let needs = |needs: crate::step::Needs| (step.fields.join(", "), needs.0, schema.to_string());
        return transform.output_schema(&step.fields, &schema).map_err(needs);
    }
    if let Action::BatchTransform(mix) = &step.action {
        let needs = |needs: crate::step::Needs| (step.fields.join(", "), needs.0, schema.to_string());
        return mix.output_schema(&step.fields, &schema).map_err(needs);
    }
    if let Action::ShardTransform(pack) = &step.action {
        let needs = |needs: crate::step::Needs| (step.fields.join(", "), needs.0, schema.to_string());
        return pack.output_schema(&step.fields, &schema).map_err(needs);
    }
    for (index, field) in step.fields.iter().enumerate() {
        let misfit = |expected: &str, found: String| (field.clone(), expected.to_owned(), found);
        let kind = schema.field(field).ok_or_else(|| misfit("that field", format!("only {schema}")))?;
        if let Some(rider) = rider_first(kind, step).filter(|_| index == 0) {
            return Err(misfit(&format!("the image that the {rider} on first in `fields`"), kind.to_string()));
        }
        let output = match &step.action {
            Action::Transform(transform) => transform.output_type(kind),
            Action::FlatMap(flat_map) => flat_map.output_type(kind),
            Action::SampleTransform(_) | Action::BatchTransform(_) | Action::ShardTransform(_) => {
                unreachable!("done above")
            }
        };
        let output = output.map_err(|needs| misfit(&needs.0, kind.to_string()))?;
        schema.set(field, output);
    }
    Ok(schema)
}

/// What cannot come first in the fields of a step, since only the image that it is on says what becomes of it.
fn rider_first(kind: &FieldType, step: &Step) -> Option<&'static str> {
    let boxes = kind.as_boxes().map(|_| "boxes are");
    let rider = boxes.or_else(|| kind.as_keypoints().map(|_| "key points are"));
    // Most steps that move pixels take a mask without an image, too.
    let mask = kind.as_mask().filter(|_| step.action.riders_left().is_some()).map(|_| "mask is");
    rider.or(mask).filter(|_| step.action.is_geometric())
}

/// A mask, boxes or key points that a step does not work on.
fn rider_left<'a>(schema: &'a Schema, fields: &[String]) -> Option<&'a (String, FieldType)> {
    let rides =
        |kind: &FieldType| kind.as_mask().is_some() || kind.as_boxes().is_some() || kind.as_keypoints().is_some();
    schema.fields.iter().find(|(name, kind)| rides(kind) && !fields.contains(name))
}

fn is_of_batches(step: &Step) -> bool {
    matches!(step.action, Action::BatchTransform(_))
}
