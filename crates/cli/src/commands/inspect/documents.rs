//! Pipelines, profiles, plans and manifests.

use std::path::Path;

use forebay_engine::data::{Manifest, MixManifest};
use forebay_pipeline::Pipeline;
use forebay_plan::{Plan, Profile};
use serde::Serialize;

use super::{Outcome, dataset, mix, unknown};
use crate::commands::profile::summary;
use crate::error::{Error, Result};
use crate::output::{Align, Page, Table};

/// A pipeline.
#[derive(Debug, Serialize)]
pub(super) struct PipelineFound {
    name: String,
    /// Whether it is a preset.
    preset: bool,
    files: String,
    /// What a sample is when its file has been read.
    source: String,
    steps: Vec<StepFound>,
    /// The strategies, by name.
    strategies: Vec<String>,
    /// Its TOML text.
    text: String,
}

#[derive(Debug, Serialize)]
struct StepFound {
    name: String,
    random: bool,
    /// What a sample is after it.
    output: String,
    /// The strategy that stores this stage, if there is one.
    strategy: Option<String>,
}

pub(super) fn pipeline(name: &str, text: &str, preset: bool) -> Result<PipelineFound> {
    let pipeline = Pipeline::from_toml(name, text)?;
    let splits = pipeline.splits();
    let steps = pipeline.steps().iter().enumerate().map(|(number, step)| StepFound {
        name: step.name.clone(),
        random: step.action.is_random(),
        output: pipeline.schema_after(number + 1).to_string(),
        strategy: splits.iter().find(|split| split.position == number + 2).map(|split| split.name.clone()),
    });
    Ok(PipelineFound {
        name: pipeline.name().to_owned(),
        preset,
        files: pipeline.source().pattern().to_owned(),
        source: pipeline.schema_after(0).to_string(),
        steps: steps.collect(),
        strategies: splits.iter().map(|split| split.name.clone()).collect(),
        text: text.to_owned(),
    })
}

impl PipelineFound {
    pub(super) fn show(&self, page: &mut Page) {
        page.facts(&[
            ("pipeline", self.name.clone()),
            ("files", self.files.clone()),
            ("a file gives", self.source.clone()),
        ]);
        page.gap();
        let mut table = Table::new(&[("step", Align::Left), ("gives", Align::Left), ("stage", Align::Left)]);
        for step in &self.steps {
            let strategy = match (&step.strategy, step.random) {
                (Some(name), _) => name.as_str(),
                (None, true) => "(random)",
                (None, false) => "(after a random step)",
            };
            table.row([step.name.clone(), step.output.clone(), strategy.to_owned()], false);
        }
        page.table(&table);
        page.gap();
        page.paragraph(&format!("Strategies: {}", self.strategies.join(", ")));
    }
}

/// A JSON file of Forebay's, by its keys.
pub(super) fn json(path: &Path, text: &str, verify: bool, record: Option<u64>) -> Result<Outcome> {
    let document: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| Error::Format { path: path.to_owned(), problem: format!("is not JSON: {error}") })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if document.get("format").is_some_and(|format| format == MixManifest::FORMAT) {
        return Ok(Outcome::Mix(mix::inspect(folder, verify)?));
    }
    if document.get("format").is_some_and(|format| format == Manifest::FORMAT) {
        return Ok(Outcome::Dataset(Box::new(dataset::inspect(folder, verify, record)?)));
    }
    if document.get("chosen").is_some() {
        return Ok(Outcome::Plan(Box::new(Plan::parse(text).map_err(Error::plan(path))?)));
    }
    if document.get("strategies").is_some() {
        let profile = Profile::parse(text).map_err(Error::plan(path))?;
        return Ok(Outcome::Profile(Box::new(summary(&profile, path, Vec::new())?)));
    }
    Err(unknown(path))
}
