//! `forebay report`: one self-contained HTML page of one profile or several, its plots as files, its numbers as a table.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_plan::{Objective, Profile, table};
use serde::Serialize;

use super::plan::{Wants, read_profile};
use crate::error::{Error, Result};
use crate::output::{Output, all_different, write_file, write_inside};
use forebay_report::Report;

const EXAMPLES: &str = "\
Examples:
  forebay report profile.json
  forebay report profile.json -o photos.html --svg-folder plots/
  forebay report one-thread.json two-threads.json four-threads.json
  forebay report profile.json --csv all.csv --parquet all.parquet
  forebay report profile.json --what-if cores=32,read=910MB/s

The page needs only a browser, no network. Several profiles of one pipeline
are compared where they differ in one setting: caching, threads, number of
samples or sample size. The recommendation is for the first profile.";

/// Render one or more profiles as a self-contained HTML page
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Profiles written by `forebay profile`
    #[arg(required = true, value_name = "PROFILE")]
    profiles: Vec<PathBuf>,
    /// Write the page to FILE
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Also write each plot as an SVG file to FOLDER
    #[arg(long, value_name = "FOLDER")]
    svg_folder: Option<PathBuf>,
    /// Also write all numbers as CSV, one line per strategy and profile
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Also write all numbers as Parquet
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    #[command(flatten)]
    wants: Wants,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        self.profiles.iter().map(PathBuf::as_path).collect()
    }
}

/// What `report --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(serialize_with = "crate::output::as_text::path")]
    report: PathBuf,
    bytes: usize,
    #[serde(serialize_with = "crate::output::as_text::paths")]
    plots: Vec<PathBuf>,
    #[serde(serialize_with = "crate::output::as_text::paths")]
    tables: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let outputs = [("--csv", &arguments.csv), ("--parquet", &arguments.parquet)];
    let outputs = outputs.iter().filter_map(|(name, path)| Some((*name, path.as_deref()?)));
    for path in &arguments.profiles {
        let files: Vec<(&str, &Path)> = [("a profile", path.as_path()), ("--output", &arguments.output)]
            .into_iter()
            .chain(outputs.clone())
            .collect();
        all_different(&files)?;
    }
    let profiles = arguments.profiles.iter().map(|path| read_profile(path)).collect::<Result<Vec<_>>>()?;
    for (path, profile) in arguments.profiles.iter().zip(&profiles) {
        profile.check().map_err(Error::plan(path))?;
    }
    let objective = arguments.wants.objective(&Objective::default())?;
    let planning = |source| Error::Plan { about: String::new(), source };
    let report = Report::new(&profiles, &objective).map_err(planning)?;
    let page = report.page();
    write_file(&arguments.output, page.as_bytes())?;
    let mut outcome =
        Outcome { report: arguments.output.clone(), bytes: page.len(), plots: Vec::new(), tables: Vec::new() };
    if let Some(folder) = &arguments.svg_folder {
        for (name, text) in report.plots() {
            let path = folder.join(name);
            write_inside(&path, text.as_bytes())?;
            outcome.plots.push(path);
        }
    }
    if arguments.csv.is_some() || arguments.parquet.is_some() {
        let table = table(&profiles.iter().collect::<Vec<_>>(), &objective).map_err(planning)?;
        if let Some(path) = &arguments.csv {
            write_file(path, table.to_csv().as_bytes())?;
            outcome.tables.push(path.clone());
        }
        if let Some(path) = &arguments.parquet {
            write_file(path, &table.to_parquet())?;
            outcome.tables.push(path.clone());
        }
    }
    output.present(&outcome, |outcome, page| {
        page.line(&format!("report: {}", outcome.report.display()));
        for path in &outcome.plots {
            page.line(&format!("plot:   {}", path.display()));
        }
        for path in &outcome.tables {
            page.line(&format!("table:  {}", path.display()));
        }
    })
}

/// Writes the page of `profile`, which is in the file `path`; how many bytes it has.
pub(super) fn write(profile: &Profile, path: &Path, report: &Path) -> Result<usize> {
    let profiles = std::slice::from_ref(profile);
    let page = Report::new(profiles, &Objective::default()).map_err(Error::plan(path))?.page();
    write_file(report, page.as_bytes())?;
    Ok(page.len())
}
