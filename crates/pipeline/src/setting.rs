//! A parameter of a pipeline given from outside: `random_crop.size=192`, `source.files=**/*.csv`.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::nearest::one_of;
use crate::pipeline::{Pipeline, PipelineSpec};
use crate::source::GIVEN_FILES;

/// One parameter of a step or of the source, and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The step's name, or `source`.
    part: String,
    parameter: String,
    value: toml::Value,
}

const SOURCE: &str = "source";

impl FromStr for Setting {
    type Err = Error;

    /// `part.parameter=value`, the value as a pipeline file spells it; what is no such value is taken for text, so that text needs
    /// no quotes.
    fn from_str(text: &str) -> Result<Self> {
        let unfit = || {
            Error::Format {
            name: text.to_owned(),
            message:
                "it is not a setting; write `STEP.PARAMETER=VALUE`, as `random_crop.size=192`, or `source.files=**/*.csv`"
                    .to_owned(),
        }
        };
        let (name, value) = text.split_once('=').ok_or_else(unfit)?;
        let (part, parameter) = name.trim().split_once('.').ok_or_else(unfit)?;
        if part.is_empty() || parameter.is_empty() {
            return Err(unfit());
        }
        let spelt = format!("value = {value}").parse::<toml::Table>().ok().filter(|table| table.len() == 1);
        let value = spelt
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.trim().to_owned()));
        Ok(Self { part: part.to_owned(), parameter: parameter.to_owned(), value })
    }
}

impl Setting {
    /// Has the source take its files from a list that is given.
    pub fn given_files() -> Self {
        let value = toml::Value::String(GIVEN_FILES.to_owned());
        Self { part: SOURCE.to_owned(), parameter: "files".to_owned(), value }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.part, self.parameter, self.value)
    }
}

impl Pipeline {
    /// The same with these parameters set, and checked anew.
    pub fn with_settings(self, settings: &[Setting]) -> Result<Self> {
        if settings.is_empty() {
            return Ok(self);
        }
        let format = |message: String| Error::Format { name: self.name().to_owned(), message };
        let mut spec = self.to_spec().ok_or_else(|| format("has a step that was made in code".to_owned()))?;
        for (index, setting) in settings.iter().enumerate() {
            let same = |other: &&Setting| other.part == setting.part && other.parameter == setting.parameter;
            if let Some(other) = settings[..index].iter().find(same) {
                return Err(format(format!(
                    "is given both `{other}` and `{setting}`, of which one would have no effect"
                )));
            }
            spec.set(setting, &self)?;
        }
        if let Some(seed) = settings.iter().find(|setting| setting.part == SOURCE && setting.parameter == "seed") {
            spec.source.check_seed(&seed.to_string())?;
        }
        Self::from_spec(&spec)
    }
}

impl PipelineSpec {
    fn set(&mut self, setting: &Setting, pipeline: &Pipeline) -> Result<()> {
        if setting.part == SOURCE {
            let format = |error: String| Error::Format { name: setting.to_string(), message: error };
            let mut table = toml::Table::try_from(&self.source).map_err(|error| format(error.to_string()))?;
            table.insert(setting.parameter.clone(), setting.value.clone());
            self.source = table.try_into().map_err(|error: toml::de::Error| format(error.message().to_owned()))?;
            return Ok(());
        }
        let index = pipeline.steps().iter().position(|step| step.name == setting.part).ok_or_else(|| {
            let names = pipeline.steps().iter().map(|step| step.name.as_str()).chain([SOURCE]);
            Error::Unknown {
                what: "step",
                found: setting.part.clone(),
                pipeline: pipeline.name().to_owned(),
                hint: one_of(&setting.part, names),
            }
        })?;
        self.steps[index].set(&setting.parameter, setting.value.clone());
        Ok(())
    }
}
