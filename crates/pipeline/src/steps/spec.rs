//! A step as a pipeline file spells it, and the table from `op` to step.

use std::str::FromStr;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{AggregateSignal, DecodeAudio, DecodeNpy, DecodeSignal, LogMel, Rms, SignalWindows};
use super::{
    Centre, CentreCrop, Decode, DecodeMask, Drop, Function, Greyscale, HorizontalFlip, Normalise, RandomCrop,
    RandomResizedCrop, Resize, TakeJson, Tiles, ToChw,
};
use super::{Embed, ExtractText, Tokenise};
use crate::error::{Error, Result};
use crate::step::{Action, Step};

/// One `[[step]]` of a pipeline file: `op`, optionally `name`, `state` and `fields`, and the operation's parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepSpec(toml::Table);

/// The field that a source's files go to unless it says otherwise.
pub const DEFAULT_FIELD: &str = "image";

/// A ready operation: what a pipeline file calls it, what a data set is called after it, and how it is made.
struct Ready {
    op: &'static str,
    state: &'static str,
    make: fn(toml::Table) -> std::result::Result<Action, toml::de::Error>,
}

fn transform<T: DeserializeOwned + crate::step::Transform + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::Transform(Arc::new(step)))
}

fn remake<T: DeserializeOwned + crate::step::Remake + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::Remake(Arc::new(step)))
}

fn expand<T: DeserializeOwned + crate::step::Expand + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::Expand(Arc::new(step)))
}

const READY: &[Ready] = &[
    Ready { op: "decode", state: "decoded", make: transform::<Decode> },
    Ready { op: "resize", state: "resized", make: transform::<Resize> },
    Ready { op: "centre-crop", state: "cropped", make: transform::<CentreCrop> },
    Ready { op: "random-crop", state: "cropped", make: transform::<RandomCrop> },
    Ready { op: "random-resized-crop", state: "cropped", make: transform::<RandomResizedCrop> },
    Ready { op: "horizontal-flip", state: "flipped", make: transform::<HorizontalFlip> },
    Ready { op: "greyscale", state: "greyscaled", make: transform::<Greyscale> },
    Ready { op: "centre-pixels", state: "pixel-centered", make: transform::<Centre> },
    Ready { op: "normalise", state: "normalised", make: transform::<Normalise> },
    Ready { op: "to-chw", state: "channels-first", make: transform::<ToChw> },
    Ready { op: "decode-mask", state: "mask-decoded", make: transform::<DecodeMask> },
    Ready { op: "take-json", state: "taken", make: remake::<TakeJson> },
    Ready { op: "drop", state: "dropped", make: remake::<Drop> },
    Ready { op: "function", state: "called", make: remake::<Function> },
    Ready { op: "decode-audio", state: "decoded", make: transform::<DecodeAudio> },
    Ready { op: "log-mel", state: "spectrogram-encoded", make: transform::<LogMel> },
    Ready { op: "decode-signal", state: "decoded", make: transform::<DecodeSignal> },
    Ready { op: "signal-windows", state: "decoded", make: expand::<SignalWindows> },
    Ready { op: "aggregate-signal", state: "aggregated", make: transform::<AggregateSignal> },
    Ready { op: "decode-npy", state: "decoded", make: transform::<DecodeNpy> },
    Ready { op: "rms", state: "aggregated", make: transform::<Rms> },
    Ready { op: "extract-text", state: "decoded", make: transform::<ExtractText> },
    Ready { op: "tokenise", state: "bpe-encoded", make: transform::<Tokenise> },
    Ready { op: "embed", state: "embedded", make: transform::<Embed> },
    Ready { op: "tiles", state: "tiled", make: expand::<Tiles> },
];

impl StepSpec {
    /// A step of operation `op` with these parameters.
    ///
    /// # Panics
    /// If the parameters do not serialise to a table; those of every ready step do.
    pub fn new(op: &str, parameters: &impl Serialize) -> Self {
        let mut table = toml::Table::new();
        table.insert("op".to_owned(), op.into());
        let parameters = toml::Table::try_from(parameters).expect("a step's parameters are a table");
        table.extend(parameters);
        Self(table)
    }

    /// Gives a parameter another value. Whether the step has it, [`Self::to_step`] finds out.
    pub(crate) fn set(&mut self, parameter: &str, value: toml::Value) {
        self.0.insert(parameter.to_owned(), value);
    }

    /// The step, or an error that names it and what is wrong with it. It works on `default_field` unless it says otherwise.
    pub fn to_step(&self, pipeline: &str, default_field: &str) -> Result<Step> {
        let format = |message: String| Error::Format { name: pipeline.to_owned(), message };
        let mut table = self.0.clone();
        let op = take_text(&mut table, "op").ok_or_else(|| format("a [[step]] has no `op`".to_owned()))?;
        let ready = READY.iter().find(|ready| ready.op == op).ok_or_else(|| Error::Unknown {
            what: "operation",
            found: op.clone(),
            pipeline: pipeline.to_owned(),
            choices: READY.iter().map(|ready| ready.op).collect::<Vec<_>>().join(", "),
        })?;
        let name = take_text(&mut table, "name").unwrap_or_else(|| op.clone());
        let state = take_text(&mut table, "state").unwrap_or_else(|| ready.state.to_owned());
        let fields = match table.remove("fields") {
            None => vec![default_field.to_owned()],
            Some(fields) => fields
                .try_into()
                .map_err(|error| format(format!("step `{name}`: `fields` is not a list of names: {error}")))?,
        };
        let action = (ready.make)(table).map_err(|error| format(format!("step `{name}`: {}", error.message())))?;
        Ok(Step { name, state, fields, action, spec: Some(self.clone()) })
    }
}

/// An operation by its name, as `greyscale`, or a whole step as a pipeline file may spell it in one line:
/// `{ op = "resize", shorter-side = 64 }`.
impl FromStr for StepSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Line {
            step: StepSpec,
        }
        let text = text.trim();
        let table = if text.starts_with('{') { text.to_owned() } else { format!("{{ op = {text:?} }}") };
        toml::from_str(&format!("step = {table}"))
            .map(|line: Line| line.step)
            .map_err(|error| Error::Format { name: text.to_owned(), message: error.message().to_owned() })
    }
}

fn take_text(table: &mut toml::Table, key: &str) -> Option<String> {
    match table.remove(key)? {
        toml::Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}
