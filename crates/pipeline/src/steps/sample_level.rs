//! Steps that work on the whole sample: fields taken away, taken out of a JSON document, or made by a function of the
//! program that Forebay is part of.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_codec::TensorSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::StepError;
use crate::output::Output;
use crate::sample::{SampleView, ValueView};
use crate::sample_changes::SampleChanges;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform};
use crate::stored::fill;

/// Takes its fields away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {}

impl SampleTransform for Drop {
    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        require_fields(fields, input)?;
        let kept = input.fields.iter().filter(|(name, _)| !fields.contains(name)).cloned();
        let kept = Schema { fields: kept.collect() };
        if kept.fields.is_empty() { Err(Needs("at least one field that is kept".to_owned())) } else { Ok(kept) }
    }

    fn run(
        &self,
        fields: &[String],
        _sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        for field in fields {
            changes.remove(field);
        }
        Ok(())
    }
}

/// Takes values out of a JSON document, each into a field of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeJson {
    /// What to take: the name of the new field, and where in the document its value is and what type it has.
    pub values: BTreeMap<String, JsonValue>,
}

/// One value of a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonValue {
    /// Where it is: a JSON pointer (RFC 6901), as in `/objects/boxes`.
    pub at: String,
    /// What it becomes: `int`, `text`, `json`, or a tensor such as `float32[?, 4]`.
    #[serde(rename = "type")]
    pub kind: FieldType,
}

impl SampleTransform for TakeJson {
    fn check(&self) -> Result<(), BadParameter> {
        let is_pointer = |value: &&JsonValue| value.at.is_empty() || value.at.starts_with('/');
        match self.values.values().find(|value| !is_pointer(value)) {
            Some(value) => {
                BadParameter::unless(false, "values.at", &value.at, "a JSON pointer such as `/objects/boxes`")
            }
            None => BadParameter::unless(!self.values.is_empty(), "values", &0, "at least one value to take"),
        }
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let document = document(fields)?;
        if input.field(document) != Some(&FieldType::Json) {
            return Err(Needs(format!("a JSON document in field `{document}`")));
        }
        let mut output = input.clone();
        for (name, value) in &self.values {
            if value.kind == FieldType::Bytes {
                return Err(Needs("a type that a JSON value can have: not bytes".to_owned()));
            }
            output.put(name, value.kind.clone());
        }
        Ok(output)
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let name = fields.first().map_or("", String::as_str);
        let wrong = |problem: String| StepError::Json { field: name.to_owned(), problem };
        let Some((_, ValueView::Text(text))) = sample.fields.iter().find(|(field, _)| *field == name) else {
            return Err(StepError::NoField { field: name.to_owned() });
        };
        let document: Json = serde_json::from_str(text).map_err(|error| wrong(format!("is not JSON: {error}")))?;
        for (field, JsonValue { at, kind }) in &self.values {
            let value = document.pointer(at).ok_or_else(|| wrong(format!("has nothing at `{at}`")))?;
            changes.set(field, &mut |output| {
                put_json(value, kind, output).map_err(|problem| wrong(format!("`{at}` {problem}")))
            })?;
        }
        Ok(())
    }
}

/// The one field that a JSON document is in.
fn document(fields: &[String]) -> Result<&str, Needs> {
    match fields {
        [document] => Ok(document),
        _ => Err(Needs("one field that holds the document".to_owned())),
    }
}

fn put_json(value: &Json, kind: &FieldType, output: &mut Output<'_>) -> Result<(), String> {
    let unfit = || format!("is no {kind}");
    match kind {
        FieldType::Int => output.int(value.as_i64().ok_or_else(unfit)?),
        FieldType::Text => output.text(value.as_str().ok_or_else(unfit)?).map_err(|error| error.to_string())?,
        FieldType::Json => output.text(&value.to_string()).map_err(|error| error.to_string())?,
        FieldType::Bytes => return Err(unfit()),
        FieldType::Tensor { dtype, dims } => {
            let mut shape = Vec::new();
            let mut numbers = Vec::new();
            flatten(value, 0, &mut shape, &mut numbers)
                .ok_or_else(|| "is not an array of numbers of one shape".to_owned())?;
            // An empty list says nothing of the dimensions below it.
            if numbers.is_empty() {
                shape.extend(dims.iter().skip(shape.len()).map(|dim| dim.unwrap_or(0)));
            }
            let fits = shape.len() == dims.len()
                && dims.iter().zip(&shape).all(|(dim, found)| dim.is_none_or(|dim| dim == *found));
            if !fits {
                return Err(format!("has shape {shape:?}, but should be {kind}"));
            }
            let spec = TensorSpec { dtype: *dtype, shape: forebay_codec::Shape::try_new(&shape).ok_or_else(unfit)? };
            fill(numbers.into_iter(), &mut output.tensor(spec).map_err(|error| error.to_string())?);
        }
    }
    Ok(())
}

/// Collects the numbers of nested arrays, and their shape; `None` if they have none.
fn flatten(value: &Json, depth: usize, shape: &mut Vec<usize>, numbers: &mut Vec<f64>) -> Option<()> {
    match value {
        Json::Array(items) => {
            if shape.len() == depth {
                // A deeper array after a number would change what was counted.
                if !numbers.is_empty() {
                    return None;
                }
                shape.push(items.len());
            }
            (shape.get(depth) == Some(&items.len())).then_some(())?;
            items.iter().try_for_each(|item| flatten(item, depth + 1, shape, numbers))
        }
        Json::Bool(truth) if shape.len() == depth => {
            numbers.push(f64::from(u8::from(*truth)));
            Some(())
        }
        Json::Number(number) if shape.len() == depth => {
            numbers.push(number.as_f64()?);
            Some(())
        }
        _ => None,
    }
}

/// A function of the program that Forebay is part of (in Python, a Python function). It gets its fields, and gives fields of
/// the types in `output`. A pipeline file only has its name; the program gives the function
/// ([`Pipeline::with_functions`](crate::Pipeline::with_functions)).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// What it is called.
    pub function: String,
    /// The fields that it gives, and their types.
    pub output: BTreeMap<String, FieldType>,
    /// Whether it is random, and so must run every epoch.
    #[serde(default)]
    pub random: bool,
    /// The function, if this program has it.
    #[serde(skip)]
    pub call: Option<Arc<dyn Call>>,
}

/// What a [`Function`] step calls.
pub trait Call: std::fmt::Debug + Send + Sync {
    /// Gives the values of the function's output for the sample's `fields`. `seed` follows from seed, epoch and sample.
    fn call(
        &self,
        step: &Function,
        fields: &[String],
        sample: &SampleView<'_>,
        seed: u64,
        changes: &mut SampleChanges<'_>,
    ) -> Result<(), StepError>;
}

impl SampleTransform for Function {
    fn is_random(&self) -> bool {
        self.random
    }

    fn can_run(&self) -> bool {
        self.call.is_some()
    }

    fn resolved(&self, find: &dyn Fn(&str) -> Option<Arc<dyn Call>>) -> Option<Arc<dyn SampleTransform>> {
        let call = find(&self.function)?;
        Some(Arc::new(Self { call: Some(call), ..self.clone() }))
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        require_fields(fields, input)?;
        let mut output = input.clone();
        self.output.iter().for_each(|(name, kind)| output.put(name, kind.clone()));
        Ok(output)
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        let call = self.call.as_ref().ok_or_else(|| StepError::NoFunction { function: self.function.clone() })?;
        call.call(self, fields, sample, scope.random.bits(), changes)
    }
}

fn require_fields(fields: &[String], input: &Schema) -> Result<(), Needs> {
    match fields.iter().find(|field| input.field(field).is_none()) {
        Some(missing) => Err(Needs(format!("a field `{missing}`"))),
        None => Ok(()),
    }
}
