//! The command line: the commands, and the arguments that several of them share.

use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use forebay_engine::StorageChoice;
use forebay_engine::data::{MANIFEST_FILE, MIX_FILE, Reach, has_braces};
use forebay_engine::load::OnError;
use forebay_pipeline::steps::with_absolute_files;
use forebay_pipeline::{Pipeline, Setting, nearest, preset, preset_names};
use forebay_plan::Caching;
use forebay_storage::{EntryKind, is_url, one_line, parse_bytes};

use crate::commands::{
    advise, analyze, build, completions, convert, demo, diagnose, experiment, export, inspect, load, man, mix,
    pipelines, plan, probe, profile, read_text, recompress, report,
};
use crate::error::{Error, Result};
use crate::file_list::ListArguments;

const ABOUT: &str = "Find and fix bottlenecks in training input pipelines";

const LONG_ABOUT: &str = "\
Find and fix bottlenecks in training input pipelines.

Forebay profiles a pipeline, chooses which steps to run once (offline) and which to run every epoch (online), builds the data set accordingly, and streams batches from it.";

const EXAMPLES: &str = "\
Getting started, with a folder of images (photos/<class>/<name>.jpg):

  1. Profile: measure every strategy, that is which steps run only once
       forebay profile cv --data photos/

  2. Plan: choose the best strategy, within limits if there are any
       forebay plan profile.json
       forebay plan profile.json --max-storage 100GB --max-prep-time 2h

  3. Build: run the offline steps, and write the data set
       forebay build plan.json -o dataset/

  4. Load: run the online steps, and stream batches
       forebay load dataset/ --shuffle --batch-size 256

`cv` is a preset. `forebay pipelines` lists the presets, and
`forebay inspect cv > my.toml` copies one to edit.
`forebay demo` runs all of this on generated images, in under two minutes.

Results go to standard output; progress, warnings and errors to standard error.

Exit codes:
  0    success, even if --on-error skip skipped samples
  1    the command failed
  2    the command line or the pipeline is invalid, or a path does not exist
  130  interrupted with Ctrl-C";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, max_term_width = 80)]
pub(crate) struct Cli {
    /// Print the result as JSON (keys: docs/json.md)
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order in which they are used.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Analyze(analyze::Arguments),
    Profile(profile::Arguments),
    Plan(plan::Request),
    Mix(mix::Arguments),
    Build(build::Arguments),
    Load(load::Arguments),
    Diagnose(diagnose::Arguments),
    Advise(advise::Arguments),
    Report(report::Arguments),
    Experiment(experiment::Arguments),
    Convert(convert::Arguments),
    Recompress(recompress::Arguments),
    Export(export::Arguments),
    Inspect(inspect::Arguments),
    Pipelines(pipelines::Arguments),
    Probe(probe::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Headings of the help that commands share.
pub(crate) const INPUT: &str = "Input options";
pub(crate) const MEASUREMENT: &str = "Measurement options";
pub(crate) const OUTPUT: &str = "Output options";
pub(crate) const RESOURCES: &str = "Resource options";

/// The default number of runs per strategy.
pub(crate) const RUNS_DEFAULT: NonZeroU32 = NonZeroU32::new(5).expect("not 0");

/// How long runs last.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArguments {
    /// Minimum duration of a run in seconds, counted from its first batch. Samples are repeated as needed; 0 loads each one once
    #[arg(long, value_name = "SECONDS", help_heading = MEASUREMENT, default_value_t = 1.0, value_parser = run_seconds)]
    pub(crate) seconds: f64,
}

impl Default for RunArguments {
    fn default() -> Self {
        Self { seconds: 1.0 }
    }
}

pub(crate) fn run_seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 3600".to_owned()),
    }
}

/// The parser of `--runs`.
pub(crate) fn run_count() -> impl TypedValueParser<Value = NonZeroU32> {
    clap::value_parser!(u32).range(1..=10_000).try_map(NonZeroU32::try_from)
}

/// How many threads.
#[derive(Debug, Clone, Args)]
pub(crate) struct Threads {
    /// Number of worker threads [default: number of cores]
    #[arg(long, value_name = "N", help_heading = RESOURCES, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

impl Threads {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: Some(threads as u64) }
    }

    /// So many as asked for, or as there are cores.
    pub(crate) fn count(&self) -> usize {
        self.threads.map_or_else(forebay_engine::cores, |threads| threads as usize)
    }
}

/// How much memory.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MemoryArguments {
    /// Memory budget for data that is read, processed or waiting in batches, e.g. 4GB [default: half of what the machine,
    /// the control group and `ulimit` allow]
    #[arg(long, value_name = "SIZE", help_heading = RESOURCES, value_parser = parse_bytes)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// As much as was asked for, or as suits the machine.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.unwrap_or_else(forebay_engine::memory::default_memory_bytes)
    }
}

/// Which storage.
#[derive(Debug, Clone, Args)]
pub(crate) struct StorageArguments {
    /// Storage to read from: `local` (through the page cache), `direct` (bypassing it), `mmap` (the page cache itself, without
    /// copying: for files that do not change), or local files throttled to the speed of `hdd`, `ssd`, `ceph-hdd` or your own `custom:read=200MB/s,stream=100MB/s,seek=8ms,iops=120`
    #[arg(long, value_name = "STORAGE", default_value = "local", value_parser = StorageChoice::from_str)]
    #[arg(help_heading = RESOURCES)]
    #[arg(next_line_help = true)]
    pub(crate) storage: StorageChoice,
}

/// What happens to a sample that cannot be read or processed.
#[derive(Debug, Clone, Args)]
pub(crate) struct ErrorArguments {
    /// What to do with a sample that cannot be read or processed
    #[arg(long, value_name = "ACTION", default_value = "fail")]
    on_error: OnErrorChoice,
}

/// The same as the command line spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnErrorChoice {
    /// Stop with an error that names the sample
    Fail,
    /// Skip the sample, and list it in the result
    Skip,
}

impl From<OnErrorChoice> for ErrorArguments {
    fn from(on_error: OnErrorChoice) -> Self {
        Self { on_error }
    }
}

impl ErrorArguments {
    pub(crate) fn fail() -> Self {
        Self { on_error: OnErrorChoice::Fail }
    }

    pub(crate) fn choice(&self) -> OnError {
        match self.on_error {
            OnErrorChoice::Fail => OnError::Fail,
            OnErrorChoice::Skip => OnError::Skip,
        }
    }
}

/// What is cached between epochs, as the command line spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CachingChoice {
    /// Nothing: drop the page cache before every run
    None,
    /// The page cache: drop it before the first run only, which is not counted
    System,
    /// Deserialized samples in memory
    Application,
}

impl From<CachingChoice> for Caching {
    fn from(choice: CachingChoice) -> Self {
        match choice {
            CachingChoice::None => Self::None,
            CachingChoice::System => Self::System,
            CachingChoice::Application => Self::Application,
        }
    }
}

/// Parameters of the pipeline that are changed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Settings {
    /// Override a parameter of a step or of the source, e.g. `random_crop.size=192` or `source.files=**/*.csv` (repeatable;
    /// parameters: docs/steps.md)
    #[arg(long = "set", value_name = "STEP.PARAMETER=VALUE", help_heading = INPUT)]
    settings: Vec<Setting>,
    /// Allow the pipeline to read files outside the data folder. Only for pipelines that you trust
    #[arg(long, help_heading = INPUT)]
    allow_outside: bool,
}

impl Settings {
    /// Which files the pipeline's source may name.
    pub(crate) fn reach(&self) -> Reach {
        if self.allow_outside { Reach::Anywhere } else { Reach::Root }
    }

    /// `pipeline` with parameters changed; `None` if none are.
    pub(crate) fn applied(&self, pipeline: &Pipeline) -> Result<Option<Pipeline>> {
        if self.settings.is_empty() {
            return Ok(None);
        }
        let changed = pipeline.clone().with_settings(&self.settings)?;
        Ok(Some(with_absolute_files(changed, Path::new(""))?))
    }

    /// An error if any are given: what is loaded or built is settled already.
    pub(crate) fn none_with(&self, what: &str) -> Result<()> {
        if self.settings.is_empty() {
            return Ok(());
        }
        Err(Error::usage(
            format!("`--set` cannot be used with {what}: its pipeline is fixed"),
            "pass it to `forebay profile` or `forebay build`, together with the pipeline",
        ))
    }
}

/// The pipeline that `text` means, with parameters changed, on the files of a list if there is one.
pub(crate) fn pipeline(text: &str, settings: &Settings, list: &ListArguments) -> Result<Pipeline> {
    let settings: Vec<Setting> = settings.settings.iter().cloned().chain(list.setting()).collect();
    let pipeline = named_pipeline(text)?.with_settings(&settings)?;
    // Files that settings name are below the current folder.
    Ok(with_absolute_files(pipeline, Path::new(""))?)
}

/// What is at `path`; `None` if there is nothing. A failing disk or store is an error, not a missing path.
pub(crate) fn look_at(path: &Path) -> Result<Option<EntryKind>> {
    if is_url(path) {
        return look_at_url(path);
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Some(EntryKind::Folder)),
        Ok(found) if found.is_file() => Ok(Some(EntryKind::File)),
        Ok(_) => Ok(Some(EntryKind::Other)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

/// What a URL names. Of a web server, which has no folders, a data set counts as one, and so does a pattern of names.
fn look_at_url(path: &Path) -> Result<Option<EntryKind>> {
    if has_braces(path) {
        return Ok(Some(EntryKind::Folder));
    }
    let storage = StorageChoice::Local.open(0)?;
    let is_there = |name: &str| matches!(storage.status(&path.join(name)), Ok(Some(_)));
    match storage.kind(path).map_err(forebay_engine::Error::from)? {
        Some(EntryKind::Folder) => Ok(Some(EntryKind::Folder)),
        _ if is_there(MANIFEST_FILE) || is_there(MIX_FILE) => Ok(Some(EntryKind::Folder)),
        found => Ok(found),
    }
}

/// Refuses what was named to be read and is not there: a wrong request, whichever command it was made to.
pub(crate) fn must_exist(path: &Path, remedy: &str) -> Result<()> {
    match look_at(path)? {
        Some(_) => Ok(()),
        None => Err(Error::usage(format!("there is no file or folder `{}`", one_line(path)), remedy)),
    }
}

/// The file that `text` names, where it is called like a document of ours (a pipeline, or a plan) or looks like a path.
pub(crate) fn named_file(text: &str) -> Option<&Path> {
    let path = Path::new(text);
    let is = |name: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(name));
    (is("toml") || is("json") || text.contains('/')).then_some(path)
}

/// A TOML file, or a preset by name. What exists as a file, or looks like a path, is a file.
fn named_pipeline(text: &str) -> Result<Pipeline> {
    let path = Path::new(text);
    if named_file(text).is_some() || look_at(path)? == Some(EntryKind::File) {
        let content = read_text("read the pipeline", path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        return Ok(with_absolute_files(Pipeline::from_toml(text, &content)?, folder)?);
    }
    if preset_names().any(|name| name == text) {
        return Ok(preset(text)?);
    }
    let names: Vec<&str> = preset_names().collect();
    let guess =
        nearest(text, names.iter().copied()).map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    let list = names.join("`, `");
    Err(Error::usage(
        format!("there is no file or preset `{text}`"),
        format!("{guess}the presets are `{list}`; `forebay inspect cv > my.toml` copies one to edit"),
    ))
}

/// The data folder that a pipeline is to run on.
pub(crate) fn data_folder(data: Option<&PathBuf>, command: &str) -> Result<PathBuf> {
    data.cloned().ok_or_else(|| {
        Error::usage(
            "a pipeline needs `--data`",
            format!("name the folder with the data: `forebay {command} … --data FOLDER`"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
