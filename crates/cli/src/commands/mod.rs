//! The commands, one file each.

pub(crate) mod build;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod experiment;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod pipelines;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod report;

use crate::arguments::Command;
use crate::error::Result;
use crate::output::{Output, Page};

/// Does what was asked for.
pub(crate) fn run(command: &Command, output: &Output) -> Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(arguments, output),
        Command::Profile(arguments) => profile::run(arguments, output),
        Command::Plan(arguments) => plan::run(arguments, output),
        Command::Build(arguments) => build::run(arguments, output),
        Command::Load(arguments) => load::run(arguments, output),
        Command::Experiment(arguments) => experiment::run(arguments, output),
        Command::Report(arguments) => report::run(arguments, output),
        Command::Convert(arguments) => convert::run(arguments, output),
        Command::Export(arguments) => export::run(arguments, output),
        Command::Inspect(arguments) => inspect::run(arguments, output),
        Command::Pipelines(arguments) => pipelines::run(arguments, output),
        Command::Probe(arguments) => probe::run(arguments, output),
    }
}

/// So many of the skipped samples are listed on a page; JSON has more.
const SKIPPED_SHOWN_MAX: usize = 10;

/// Lists samples that were left out, and damage that cost none.
fn show_skipped(page: &mut Page, skipped: u64, list: &[forebay_engine::data::Skipped]) {
    if list.is_empty() {
        return;
    }
    let noun = if skipped == 1 { "sample was" } else { "samples were" };
    page.heading(&format!("{} {noun} skipped", forebay_plan::units::count(skipped)));
    for sample in list.iter().take(SKIPPED_SHOWN_MAX) {
        // The first line says what is wrong; the others are hints.
        let reason = sample.reason.lines().next().unwrap_or_default();
        match sample.samples {
            Some(1) => page.hanging("- ", reason),
            Some(0) => page.hanging("- nothing: ", reason),
            Some(samples) => page.hanging(&format!("- {}: ", profile::counted(samples, "sample")), reason),
            None => page.hanging("- an unknown number: ", reason),
        }
    }
    let shown = forebay_engine::data::Skipped::count(&list[..list.len().min(SKIPPED_SHOWN_MAX)]);
    let more = skipped.saturating_sub(shown);
    if more > 0 {
        page.line(&format!("- and {} more", forebay_plan::units::count(more)));
    }
}

/// A file's text, or an error that says what was being read.
fn read_text(doing: &'static str, path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(crate::error::Error::io(doing, path))
}
