//! `forebay experiment`: PRESTO's experiments, one command each.
//!
//! An experiment is a list of profiles that differ in one thing. The list is made first and written down, with what it should
//! take; each profile is written atomically, so an interrupted experiment resumes where it was.

mod estimate;
mod folder;
mod headline;
mod planned;
mod show;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Subcommand};
use forebay_engine::Progress;
use forebay_engine::profile::profile;
use forebay_plan::{Objective, Profile, Runs, Table, table, units};
use forebay_storage::parse_bytes;
use serde::Serialize;

use super::demo::{ElementType, sample_bytes};
use crate::arguments::{
    self, ErrorArguments, INPUT, MEASUREMENT, MemoryArguments, OUTPUT, RUNS_DEFAULT, RunArguments, Settings,
    StorageArguments, Threads, run_count,
};
use crate::error::{Error, Result};
use crate::output::{Output, write_inside};
use folder::Folder;
use forebay_report::{Finding as Reported, Report};
use planned::{MadeFolder, PlannedRun};
use show::Finding;

const EXAMPLES: &str = "\
Examples:
  forebay experiment caching cv --data photos/
  forebay experiment parallelism cv --data photos/ --threads 1,2,4,8
  forebay experiment compression cv --data photos/ --compression gzip-1
  forebay experiment add-step cv --data photos/ --step grayscale --at resize
  forebay experiment sample-size --sizes 10KB,100KB,1MB,10MB --storage hdd
  forebay experiment strategies cv --data photos/ --dry-run

The output folder gets a profile of each run, a report and a table. Run the same
command again to resume an interrupted experiment, or pass --restart.";

/// Run an experiment from the PRESTO study: profiles that differ in one setting
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

/// Which experiment.
#[derive(Debug, Clone, Subcommand)]
enum Kind {
    /// Compare all strategies of a pipeline
    #[command(
        after_help = "Examples:\n  forebay experiment strategies cv --data photos/\n  forebay experiment strategies cv --data photos/ --storage ceph-hdd --dry-run"
    )]
    Strategies(Usual),
    /// Compare caching modes: none, page cache, samples in memory
    #[command(
        after_help = "Examples:\n  forebay experiment caching cv --data photos/\n  forebay experiment caching cv --data photos/ --strategy resized --strategy decoded"
    )]
    Caching(Usual),
    /// Compare compressions of records: their ratio and speed alone, storage, offline time and throughput
    #[command(
        after_help = "Examples:\n  forebay experiment compression cv --data photos/ --storage hdd\n  forebay experiment compression cv --data photos/ --also nlp=pages/\n  forebay experiment compression cv --data photos/ --compression gzip-1 --compression zlib"
    )]
    Compression(Compression),
    /// Scale the number of threads and shards
    #[command(after_help = "Examples:\n  forebay experiment parallelism cv --data photos/ --threads 1,2,4,8")]
    Parallelism(Parallelism),
    /// Scale the number of samples
    #[command(after_help = "Examples:\n  forebay experiment sample-count cv --data photos/ --counts 100,1000,8000")]
    SampleCount(SampleCount),
    /// Scale the size of a sample, on generated data
    #[command(after_help = "Examples:\n  forebay experiment sample-size --sizes 10KB,100KB,1MB,10MB --storage hdd")]
    SampleSize(SampleSize),
    /// Measure the cost of shuffling, by strategy and window
    #[command(after_help = "Examples:\n  forebay experiment shuffle cv --data photos/ --windows 16MB,64MB,1GB")]
    Shuffle(Shuffling),
    /// Measure the cost of an additional step, before or after another
    #[command(
        after_help = "Examples:\n  forebay experiment add-step cv --data photos/ --step grayscale --at resize\n  forebay experiment add-step cv --data photos/ --at decode \\\n    --step '{ op = \"resize\", size = 64 }'"
    )]
    AddStep(AddStep),
}

/// What all experiments take.
#[derive(Debug, Clone, Args)]
struct Common {
    /// Number of samples to measure
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Number of runs per strategy
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = RUNS_DEFAULT, value_parser = run_count())]
    runs: NonZeroU32,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    storage: StorageArguments,
    /// Seed of shuffling and random steps
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    on_error: ErrorArguments,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Folder for the profiles, the report and the table [default: experiment-NAME]
    #[arg(short, long, value_name = "FOLDER", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Print the planned runs and the estimated time, without running them
    #[arg(long)]
    dry_run: bool,
    /// Start over if the folder contains this or another experiment
    #[arg(long)]
    restart: bool,
}

/// On which data.
#[derive(Debug, Clone, Args)]
struct On {
    /// Pipeline: a TOML file or a preset (`forebay pipelines` lists the presets)
    pipeline: String,
    /// Folder with the source files
    #[arg(long, value_name = "FOLDER", help_heading = INPUT)]
    data: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Measure only this strategy (repeatable) [default: all]
    #[arg(long = "strategy", value_name = "NAME")]
    strategies: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Args)]
struct Usual {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    threads: Threads,
}

#[derive(Debug, Clone, Args)]
struct Compression {
    #[command(flatten)]
    usual: Usual,
    /// Compression to compare (repeatable), e.g. `gzip-1`, `zlib-6-rle`, `zstd-3`, `lz4-hc-9`, `snappy-record`, or another storage format, e.g. `png`
    #[arg(long = "compression", value_name = "NAME")]
    #[arg(default_values = ["gzip", "zlib-6-rle", "zstd-1", "zstd-3", "zstd-9", "lz4", "snappy"])]
    compressions: Vec<String>,
    /// Another pipeline and the folder with its files, e.g. `nlp=pages/` (repeatable)
    #[arg(long, value_name = "PIPELINE=FOLDER", help_heading = INPUT, value_parser = also)]
    also: Vec<Also>,
}

/// One more pipeline, and its data.
#[derive(Debug, Clone)]
struct Also {
    pipeline: String,
    data: PathBuf,
}

fn also(text: &str) -> Result<Also, String> {
    match text.split_once('=') {
        Some((pipeline, data)) if !pipeline.is_empty() && !data.is_empty() => {
            Ok(Also { pipeline: pipeline.to_owned(), data: data.into() })
        }
        _ => Err("expected a pipeline and a folder, e.g. `nlp=pages/`".to_owned()),
    }
}

#[derive(Debug, Clone, Args)]
struct Parallelism {
    #[command(flatten)]
    on: On,
    /// Numbers of threads, comma-separated [default: 1,2,4,… up to the number of cores]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Vec<u64>,
}

#[derive(Debug, Clone, Args)]
struct SampleCount {
    #[command(flatten)]
    usual: Usual,
    /// Numbers of samples, comma-separated [default: an eighth, a quarter, a half and all of --samples]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    counts: Vec<u64>,
}

#[derive(Debug, Clone, Args)]
struct SampleSize {
    /// Sample sizes from 10KB to 20.5MB, comma-separated
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', value_parser = sample_bytes)]
    #[arg(default_values = ["10KB", "80KB", "640KB", "5MB", "20MB"])]
    sizes: Vec<u64>,
    /// Amount of data to generate for each size
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = parse_bytes)]
    total: u64,
    /// Element type of the data
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: ElementType,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Args)]
struct Shuffling {
    #[command(flatten)]
    usual: Usual,
    /// Sizes of the shuffle window, comma-separated; a run without shuffling is always included
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', value_parser = parse_bytes)]
    #[arg(default_values = ["4MB", "16MB", "64MB", "256MB"])]
    windows: Vec<u64>,
}

#[derive(Debug, Clone, Args)]
struct AddStep {
    #[command(flatten)]
    usual: Usual,
    /// Step to add: an operation, e.g. `grayscale`, or with parameters as in a pipeline file:
    /// `{ op = "resize", size = 64 }`
    #[arg(long, value_name = "STEP")]
    step: String,
    /// Step of the pipeline to add it before and after
    #[arg(long, value_name = "STEP")]
    at: String,
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Strategies(_) => "strategies",
            Self::Caching(_) => "caching",
            Self::Compression(_) => "compression",
            Self::Parallelism(_) => "parallelism",
            Self::SampleCount(_) => "sample-count",
            Self::SampleSize(_) => "sample-size",
            Self::Shuffle(_) => "shuffle",
            Self::AddStep(_) => "add-step",
        }
    }

    /// On which data, unless that is made for it.
    fn on(&self) -> Result<&On, &SampleSize> {
        match self {
            Self::Strategies(usual) | Self::Caching(usual) => Ok(&usual.on),
            Self::Compression(compression) => Ok(&compression.usual.on),
            Self::Parallelism(parallelism) => Ok(&parallelism.on),
            Self::SampleCount(counts) => Ok(&counts.usual.on),
            Self::SampleSize(sizes) => Err(sizes),
            Self::Shuffle(shuffling) => Ok(&shuffling.usual.on),
            Self::AddStep(add) => Ok(&add.usual.on),
        }
    }

    fn common(&self) -> &Common {
        self.on().map_or_else(|sizes| &sizes.common, |on| &on.common)
    }
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let Ok(on) = self.kind.on() else { return Vec::new() };
        let also: &[Also] = if let Kind::Compression(compression) = &self.kind { &compression.also } else { &[] };
        let mut inputs: Vec<&Path> = Vec::new();
        let others = also.iter().map(|also| (&also.pipeline, also.data.as_path()));
        for (pipeline, data) in std::iter::once((&on.pipeline, on.data.as_path())).chain(others) {
            inputs.extend(arguments::named_file(pipeline));
            inputs.push(data);
        }
        inputs
    }
}

/// What `experiment --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    experiment: &'static str,
    #[serde(serialize_with = "crate::output::as_text::path")]
    folder: PathBuf,
    runs: Vec<RunOutcome>,
    /// The estimated total time, without the profiles that exist already.
    estimated_seconds: f64,
    /// How long it took; `None` for a plan that was not run.
    seconds: Option<f64>,
    #[serde(serialize_with = "crate::output::as_text::optional_path")]
    report: Option<PathBuf>,
    #[serde(serialize_with = "crate::output::as_text::optional_path")]
    table: Option<PathBuf>,
    /// Throughput of every strategy in every run.
    findings: Vec<Finding>,
    /// The findings in words, with the answer to the experiment's question first.
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RunOutcome {
    name: String,
    #[serde(serialize_with = "crate::output::as_text::path")]
    profile: PathBuf,
    strategies: usize,
    estimated_seconds: f64,
    /// Whether it was there already.
    reused: bool,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let kept = ": finished runs are kept\nhint: run the same command again to resume";
    let outcome = execute(&arguments.kind, output).map_err(|error| error.leaving(kept))?;
    output.present(&outcome, show::show)
}

fn execute(kind: &Kind, output: &Output) -> Result<Outcome> {
    let common = kind.common();
    let path = common.output.clone().unwrap_or_else(|| format!("experiment-{}", kind.name()).into());
    let runs = kind.runs(&path)?;
    if let Some(twin) =
        runs.iter().enumerate().find(|(number, run)| runs[..*number].iter().any(|other| other.name == run.name))
    {
        return Err(Error::usage(format!("run `{}` is given twice", twin.1.name), "give each value once"));
    }
    let folder = Folder::open(path, kind.name(), &runs, common)?;
    let progress = output.progress();
    progress.note("estimating how long it takes");
    let estimates = estimate::seconds(&runs, common, folder.path(), &progress)?;
    let mut outcome = Outcome {
        experiment: kind.name(),
        folder: folder.path().to_owned(),
        runs: Vec::new(),
        estimated_seconds: 0.0,
        seconds: None,
        report: None,
        table: None,
        findings: Vec::new(),
        remarks: Vec::new(),
    };
    for (number, (run, &estimated_seconds)) in runs.iter().zip(&estimates).enumerate() {
        let profile = folder.profile_path(number, run);
        // One that cannot be read is measured again.
        let reused = super::is_regular(&profile) && super::plan::read_profile(&profile).is_ok();
        outcome.estimated_seconds += if reused { 0.0 } else { estimated_seconds };
        let strategies = run.strategies.len();
        outcome.runs.push(RunOutcome { name: run.name.clone(), profile, strategies, estimated_seconds, reused });
    }
    if common.dry_run {
        // The estimate needed a working folder; it stays if it contains something else.
        let _ = std::fs::remove_dir(folder.path());
        return Ok(outcome);
    }
    folder.begin(kind.name(), &runs, common)?;
    let begun = Instant::now();
    let profiles = measure(&runs, &outcome, common, &folder, &progress)?;
    drop(progress);
    outcome.seconds = Some(begun.elapsed().as_secs_f64());
    outcome.findings = show::findings(&runs, &profiles)?;
    outcome.remarks = show::remarks(kind, &runs, &profiles, &outcome.findings);
    outcome.report = Some(write_report(&profiles, &outcome, &folder)?);
    outcome.table = Some(write_table(&profiles, &folder)?);
    Ok(outcome)
}

/// Runs what is missing; all profiles, in the order of the plan.
fn measure(
    runs: &[PlannedRun],
    outcome: &Outcome,
    common: &Common,
    folder: &Folder,
    progress: &dyn Progress,
) -> Result<Vec<Profile>> {
    let mut left = outcome.estimated_seconds;
    let mut profiles = Vec::new();
    for (number, (run, planned)) in runs.iter().zip(&outcome.runs).enumerate() {
        if planned.reused {
            profiles.push(super::plan::read_profile(&planned.profile)?);
            continue;
        }
        let time = units::seconds(left);
        progress.note(&format!("run {} of {}: {}, about {time} left", number + 1, runs.len(), run.name));
        let made = run.make_data(progress)?;
        let data = made.as_ref().map_or(&run.data, MadeFolder::data);
        let listing = run.list(data, common)?;
        let options = run.options(common, Runs::Each(run.runs), folder.path());
        let measured = profile(&run.pipeline, listing, &common.storage.storage, &options, progress)?;
        drop(made);
        let text = measured.to_json().map_err(Error::plan(&planned.profile))?;
        write_inside(&planned.profile, text.as_bytes())?;
        profiles.push(measured);
        left -= planned.estimated_seconds;
    }
    Ok(profiles)
}

fn write_report(profiles: &[Profile], outcome: &Outcome, folder: &Folder) -> Result<PathBuf> {
    let path = folder.path().join("report.html");
    let report = Report::new(profiles, &Objective::default()).map_err(Error::plan(folder.path()))?;
    let report = report.of_experiment(Reported { experiment: outcome.experiment, remarks: &outcome.remarks });
    write_inside(&path, report.page().as_bytes())?;
    Ok(path)
}

fn write_table(profiles: &[Profile], folder: &Folder) -> Result<PathBuf> {
    let path = folder.path().join("runs.csv");
    let all: Vec<&Profile> = profiles.iter().collect();
    let table: Table = table(&all, &Objective::default()).map_err(Error::plan(folder.path()))?;
    write_inside(&path, table.to_csv().as_bytes())?;
    Ok(path)
}
