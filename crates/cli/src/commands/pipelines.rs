//! `forebay pipelines`: the presets.

use clap::Args;
use forebay_pipeline::{preset, preset_names};
use serde::Serialize;

use crate::error::Result;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  forebay pipelines
  forebay inspect cv > my.toml        copy a preset to edit";

/// List the preset pipelines
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {}

/// What `pipelines --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    pipelines: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    steps: Vec<String>,
    strategies: Vec<String>,
}

pub(super) fn run(_: &Arguments, output: &Output) -> Result<()> {
    let entry = |name: &'static str| -> Result<Entry> {
        let pipeline = preset(name)?;
        Ok(Entry {
            name,
            steps: pipeline.steps().iter().map(|step| step.name.clone()).collect(),
            strategies: pipeline.splits().into_iter().map(|split| split.name).collect(),
        })
    };
    let outcome = Outcome { pipelines: preset_names().map(entry).collect::<Result<_>>()? };
    output.present(&outcome, |outcome, page| {
        let steps = outcome.pipelines.iter().map(|entry| (entry.name, entry.steps.join(", ")));
        page.facts(&[("pipeline", "steps".to_owned())].into_iter().chain(steps).collect::<Vec<_>>());
        page.next_step("Copy a preset to edit:", "forebay inspect cv > my.toml");
    })
}
