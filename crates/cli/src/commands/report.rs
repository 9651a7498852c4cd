//! `forebay report`: one self-contained HTML page of a profile.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_plan::{Objective, Profile, plan, summarise};
use serde::Serialize;

use super::plan::read_profile;
use crate::error::{Error, Result};
use crate::output::{Output, write_file};
use crate::report;

const EXAMPLES: &str = "\
Examples:
  forebay report profile.json
  forebay report profile.json -o photos.html

The page needs no network and no program but a browser.";

/// Make a self-contained HTML page of a profile
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The profile that `forebay profile` wrote
    profile: PathBuf,
    /// Where the page goes
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// What `report --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    report: PathBuf,
    bytes: usize,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let profile = read_profile(&arguments.profile)?;
    let bytes = write(&profile, &arguments.profile, &arguments.output)?;
    let outcome = Outcome { report: arguments.output.clone(), bytes };
    output.present(&outcome, |outcome, page| page.line(&format!("report: {}", outcome.report.display())))
}

/// Writes the page of `profile`, which is in the file `path`; how many bytes it has.
pub(super) fn write(profile: &Profile, path: &Path, report: &Path) -> Result<usize> {
    let summaries = summarise(profile, None).map_err(Error::plan(path))?;
    let plan = plan(profile, &Objective::default()).map_err(Error::plan(path))?;
    let page = report::page(profile, &summaries, &plan);
    write_file(report, page.as_bytes())?;
    Ok(page.len())
}
