//! The command line: the commands, and the arguments that several of them share.

use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use forebay_engine::StorageChoice;
use forebay_engine::data::Reach;
use forebay_engine::load::OnError;
use forebay_pipeline::steps::with_absolute_files;
use forebay_pipeline::{Pipeline, Setting, ready, ready_names};
use forebay_plan::Caching;
use forebay_storage::one_line;

use crate::commands::{
    build, convert, demo, experiment, export, inspect, load, pipelines, plan, probe, profile, read_text, report,
};
use crate::error::{Error, Result};
use crate::file_list::ListArguments;

const ABOUT: &str = "Find out what a training input pipeline starves on, and feed it faster";

const LONG_ABOUT: &str = "\
Forebay finds out what a training input pipeline starves on, works out how far the data should be preprocessed once, \
rewrites the data set that way, and streams batches from it.";

const EXAMPLES: &str = "\
The path, on a folder of photos (photos/<class>/<name>.jpg):

  1. measure every way to split the pipeline into `once` and `every epoch`
       forebay profile cv --data photos/
       forebay profile cv --data photos/ --storage ceph-hdd --runs 5

  2. choose one, under weights and limits, and say what binds
       forebay plan profile.json
       forebay plan profile.json --max-storage 100GB --max-prep-time 2h

  3. rewrite the data once: parallel, resumable, checksummed
       forebay build plan.json -o dataset/
       forebay build cv --data photos/ --strategy resized -o dataset/

  4. stream batches, as a benchmark
       forebay load dataset/ --shuffle
       forebay load dataset/ --batch 256 --epochs 3 --storage ceph-hdd

`forebay demo` walks this path on pictures that it makes itself, in about a minute.

Data goes to standard output, everything else to standard error.
Exit codes: 0 success (samples skipped by --on-error skip included), 1 the work
failed, 2 the request was wrong (a path that is not there included), 130
interrupted (Ctrl-C).";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, max_term_width = 80)]
pub(crate) struct Cli {
    /// Print one JSON document on standard output instead of text (keys: docs/json.md)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order in which they are used.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Profile(profile::Arguments),
    Plan(plan::Request),
    Build(build::Arguments),
    Load(load::Arguments),
    Report(report::Arguments),
    Experiment(experiment::Arguments),
    Convert(convert::Arguments),
    Export(export::Arguments),
    Inspect(inspect::Arguments),
    Pipelines(pipelines::Arguments),
    Probe(probe::Arguments),
}

/// How often each strategy is run, unless told.
pub(crate) const RUNS_DEFAULT: NonZeroU32 = NonZeroU32::new(3).expect("not 0");

/// How long runs last.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArguments {
    /// Seconds that each run lasts at least once its first batch is there: the samples come again and again; 0: once
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = run_seconds)]
    pub(crate) seconds: f64,
}

impl Default for RunArguments {
    fn default() -> Self {
        Self { seconds: 1.0 }
    }
}

fn run_seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0 to 3600".to_owned()),
    }
}

/// The parser of `--runs`.
pub(crate) fn run_count() -> impl TypedValueParser<Value = NonZeroU32> {
    clap::value_parser!(u32).range(1..=10_000).try_map(NonZeroU32::try_from)
}

/// How many threads.
#[derive(Debug, Clone, Args)]
pub(crate) struct Threads {
    /// Threads that work at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
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
    /// Take at most so much memory for what is read, worked on and ready; more than it allows waits [default: half of what
    /// the machine, the control group and `ulimit` leave]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
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
    /// Where bytes come from. `local`: files through the page cache. `direct`: past it. `hdd`, `ssd`, `ceph-hdd`: local
    /// files slowed down to the figures of that storage. `custom:read=200MB/s,stream=100MB/s,seek=8ms,iops=120`: to your own
    #[arg(long, value_name = "STORAGE", default_value = "local", value_parser = StorageChoice::from_str)]
    #[arg(next_line_help = true)]
    pub(crate) storage: StorageChoice,
}

/// What happens to a sample that cannot be read or processed.
#[derive(Debug, Clone, Args)]
pub(crate) struct ErrorArguments {
    /// What happens to a sample that cannot be read or processed
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    on_error: OnErrorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnErrorChoice {
    /// Stop with an error that names it
    Fail,
    /// Leave it out, count it and list it
    Skip,
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
    /// Nothing: the page cache is dropped before each run
    None,
    /// The page cache: dropped before the first run only, which does not count
    System,
    /// Deserialised samples in memory
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
    /// Change a parameter of the pipeline: of a step, as `random-crop.size=192`, or where data comes from, as
    /// `source.files=**/*.csv` (all of them: docs/steps.md); may be given several times
    #[arg(long = "set", value_name = "STEP.PARAMETER=VALUE")]
    settings: Vec<Setting>,
    /// Let the pipeline's source name files outside the data folder; only for one that you trust
    #[arg(long)]
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
            format!("`--set` makes no sense with {what}: its pipeline is settled"),
            "give it to `forebay profile` or `forebay build` with the pipeline's name",
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

/// What is at `path`; `None` for nothing. A disk that fails is not taken for one that has nothing there.
pub(crate) fn look_at(path: &Path) -> Result<Option<std::fs::Metadata>> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("look at", path)(error)),
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

/// A TOML file, or a ready pipeline by name. What exists as a file, or looks like a path, is a file.
fn named_pipeline(text: &str) -> Result<Pipeline> {
    let path = Path::new(text);
    if named_file(text).is_some() || look_at(path)?.is_some_and(|found| found.is_file()) {
        let content = read_text("read the pipeline", path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        return Ok(with_absolute_files(Pipeline::from_toml(text, &content)?, folder)?);
    }
    if ready_names().any(|name| name == text) {
        return Ok(ready(text)?);
    }
    let names: Vec<&str> = ready_names().collect();
    let guess = closest(text, &names).map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    let list = names.join("`, `");
    Err(Error::usage(
        format!("there is no file and no ready pipeline `{text}`"),
        format!("{guess}the ready ones are `{list}`; `forebay inspect cv` prints one to start your own from"),
    ))
}

/// The data folder that a pipeline is to run on.
pub(crate) fn data_folder(data: Option<&PathBuf>, command: &str) -> Result<PathBuf> {
    data.cloned().ok_or_else(|| {
        Error::usage("a pipeline needs a folder of data", format!("name it: `forebay {command} … --data FOLDER`"))
    })
}

/// The candidate that `text` most likely meant, if any is near.
fn closest<'a>(text: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let distances = candidates.iter().map(|candidate| (edit_distance(text, candidate), *candidate));
    let near = |(distance, candidate): &(usize, &str)| *distance <= 1.max(candidate.len() / 3);
    distances.filter(near).min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// How many letters must be changed, added or removed to make one text of the other (Levenshtein).
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (place, &found) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(found != letter);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

/// Bytes from `10GB`, `512 MiB` or `4096`.
pub(crate) fn size_bytes(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, f64)] = &[
        ("", 1.0),
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
    ];
    let (number, rest) = number_and_unit(text.trim()).ok_or("write a size like `500MB` or `1.5GB`")?;
    match UNITS.iter().find(|(unit, _)| *unit == rest) {
        Some((_, factor)) if number * factor < u64::MAX as f64 => Ok((number * factor).round() as u64),
        Some(_) => Err("that is more than any storage holds".to_owned()),
        None => Err(format!("there is no unit `{rest}`; write a size like `500MB` or `1.5GB`")),
    }
}

/// Seconds from `2h`, `90 s`, `1h30min` or `45`.
pub(crate) fn duration_seconds(text: &str) -> Result<f64, String> {
    const UNITS: &[(&str, f64)] = &[("", 1.0), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    const FORM: &str = "write a time like `90s`, `30min` or `1h30min`";
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(FORM.to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(rest.len());
        let letters = rest[digits..].find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let (number, unit) = number_and_unit(rest[..digits + letters].trim()).ok_or(FORM)?;
        let (_, factor) =
            UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| format!("there is no unit `{unit}`; {FORM}"))?;
        seconds += number * factor;
        rest = &rest[digits + letters..];
    }
    Ok(seconds)
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(size_bytes("10GB"), Ok(10_000_000_000));
        assert_eq!(size_bytes("1.5 MiB"), Ok(1_572_864));
        assert_eq!(size_bytes("4096"), Ok(4096));
        assert!(size_bytes("10 GO").unwrap_err().contains("`GO`"));
        assert!(size_bytes("many").is_err() && size_bytes("-1GB").is_err() && size_bytes("9e9TB").is_err());
        assert_eq!(duration_seconds("2h"), Ok(7200.0));
        assert_eq!(duration_seconds("1h 30min"), Ok(5400.0));
        assert_eq!(duration_seconds("45"), Ok(45.0));
        assert!(
            duration_seconds("soon").is_err() && duration_seconds("").is_err() && duration_seconds("3 weeks").is_err()
        );
    }

    #[test]
    fn near_misses_are_guessed() {
        assert_eq!(closest("imagnet", &["cv", "imagenet"]), Some("imagenet"));
        assert_eq!(closest("cvv", &["cv", "imagenet"]), Some("cv"));
        assert_eq!(closest("audio", &["cv", "imagenet"]), None);
    }
}
