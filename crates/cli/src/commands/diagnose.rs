//! `forebay diagnose`: what a trainer waits for, and what would change it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use forebay_engine::StorageChoice;
use forebay_engine::data::{MANIFEST_FILE, MIX_FILE};
use forebay_engine::diagnose::DiagnoseOptions;
use forebay_engine::load::{LoadOptions, Shuffle, WINDOW_BYTES};
use forebay_engine::source::{Files, Source};
use forebay_plan::{Diagnosis, Outlook, Rate, units};
use forebay_storage::Storage;
use serde::Serialize;

use super::load::open_dataset;
use crate::arguments::{
    self, ErrorArguments, MEASUREMENT, MemoryArguments, Settings, StorageArguments, Threads, run_seconds,
};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options};
use crate::output::{Align, Output, Page, Table, quoted};

const EXAMPLES: &str = "\
Examples:
  forebay diagnose dataset/ --trainer 1500
  forebay diagnose photos/ imagenet --trainer 1500
  forebay diagnose photos/ imagenet --trainer 1500 --storage hdd
  forebay diagnose dataset/ --trainer-command 'python train.py synthetic'

The trainer is described by its rate: the samples per second that it consumes
when its batches are already in memory. --trainer-command runs a command that
measures this, and prints the rate as the last line of its standard output: a
number, or a number and `samples/s`.

Five rates are then measured: preparing samples that are in memory and reading
samples from storage, each alone; and training from memory and from storage,
with a trainer simulated by its rate. Waiting that remains with the data in
memory is for preparation (prep stall), and the rest is for storage (fetch
stall). Data is treated as larger than memory: every read goes to storage.";

/// Find out what training waits for: preparation or storage, and what would help
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Data set built by `forebay build`, or a folder with source files
    #[arg(value_name = "DATASET|FOLDER")]
    data: PathBuf,
    /// Pipeline for source files: a TOML file, or a preset
    pipeline: Option<String>,
    /// Samples per second that the trainer consumes when it never waits
    #[arg(long, value_name = "SAMPLES/S", required_unless_present = "trainer_command")]
    trainer: Option<f64>,
    /// Shell command that trains on batches in memory, and prints its samples per second as the last line
    #[arg(long, value_name = "COMMAND", conflicts_with = "trainer")]
    trainer_command: Option<String>,
    /// Duration of each of the measurements in seconds
    #[arg(long, value_name = "SECONDS", help_heading = MEASUREMENT, default_value_t = 2.0, value_parser = run_seconds)]
    seconds: f64,
    /// Number of samples per batch
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    batch_size: u64,
    /// Shuffle the samples
    #[arg(long)]
    shuffle: bool,
    #[command(flatten)]
    list: ListArguments,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    storage: StorageArguments,
    #[command(flatten)]
    on_error: ErrorArguments,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let pipeline = self.pipeline.as_deref().and_then(arguments::named_file);
        [self.data.as_path()].into_iter().chain(pipeline).chain(self.list.file()).collect()
    }
}

/// What `diagnose --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    source: String,
    strategy: String,
    storage: String,
    threads: usize,
    #[serde(flatten)]
    diagnosis: Diagnosis,
    /// What to run next.
    next: String,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let trainer = match (&arguments.trainer_command, arguments.trainer) {
        (Some(command), _) => rate_of(command)?,
        (None, rate) => rate.unwrap_or(f64::NAN),
    };
    if !(trainer > 0.0 && trainer <= 1e12) {
        let problem = format!("a trainer that takes `{trainer}` samples per second");
        return Err(Error::usage(problem, "pass a number above 0"));
    }
    let choice = &arguments.storage.storage;
    let storage = choice.open_looping()?;
    let cold = open(arguments, &storage)?;
    let warm = open(arguments, &StorageChoice::Local.open(0)?)?;
    let threads = arguments.threads.count();
    let options = DiagnoseOptions {
        load: LoadOptions {
            batch_size: arguments.batch_size as usize,
            threads,
            shuffle: if arguments.shuffle { Shuffle::Window { bytes: WINDOW_BYTES } } else { Shuffle::No },
            on_error: arguments.on_error.choice(),
            memory_bytes: arguments.memory.bytes(),
            ..LoadOptions::default()
        },
        trainer_samples_per_second: trainer,
        seconds: arguments.seconds,
    };
    let progress = output.progress();
    let measured = forebay_engine::diagnose::diagnose(&cold, &*storage, &warm, &options, &progress)?;
    let plan = |source| Error::Plan { about: String::new(), source };
    let diagnosis = forebay_plan::diagnose(&measured).map_err(plan)?;
    let outcome = Outcome {
        source: arguments.data.display().to_string(),
        strategy: cold.formats(),
        storage: choice.to_string(),
        threads,
        next: next_command(arguments, trainer),
        diagnosis,
    };
    output.present(&outcome, show)
}

/// What to run once it is known what training waits for.
fn next_command(arguments: &Arguments, trainer: f64) -> String {
    let (data, pipeline) = (quoted(arguments.data.display()), arguments.pipeline.as_ref().map(quoted));
    match pipeline {
        Some(pipeline) => format!("forebay advise {data} {pipeline} --trainer {trainer}"),
        None => format!("forebay load {data} --shuffle --cache auto:{}", cache_size()),
    }
}

/// Half of the memory that is available for data, rounded to units.
fn cache_size() -> String {
    let bytes = forebay_engine::memory::default_memory_bytes() / 2;
    if bytes >= 2_000_000_000 { format!("{}GB", bytes / 1_000_000_000) } else { format!("{}MB", bytes / 1_000_000) }
}

/// A data set, or files through a pipeline.
fn open(arguments: &Arguments, storage: &Arc<dyn Storage>) -> Result<Arc<dyn Source>> {
    let Some(pipeline) = &arguments.pipeline else {
        let is_there = |file| Ok::<_, Error>(arguments::look_at(&arguments.data.join(file))?.is_some());
        if !is_there(MANIFEST_FILE)? && !is_there(MIX_FILE)? {
            let data = arguments.data.display();
            return Err(Error::usage(
                format!("`{data}` is not a data set: it has no `{MANIFEST_FILE}`"),
                format!("for source files, name a pipeline too: `forebay diagnose {data} imagenet …`"),
            ));
        }
        arguments.list.none_with("a data set")?;
        return open_dataset(&arguments.data, storage, &arguments.settings, &arguments.on_error, None);
    };
    let pipeline = arguments::pipeline(pipeline, &arguments.settings, &arguments.list)?;
    let files = arguments.list.read(&pipeline)?;
    let options = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    Ok(Arc::new(Files::open(pipeline, &arguments.data, Arc::clone(storage), &options)?))
}

/// The last line that `command` prints, as samples per second.
fn rate_of(command: &str) -> Result<f64> {
    let wrong = |problem: String| {
        let remedy = "the command must print its samples per second as the last line of its standard output";
        Error::usage(format!("the trainer command {problem}"), remedy)
    };
    let run = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let run = run.map_err(Error::io("run the trainer command with", Path::new("sh")))?;
    if !run.status.success() {
        return Err(wrong(format!("failed with {}", run.status)));
    }
    let text = String::from_utf8_lossy(&run.stdout);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let number = line.strip_suffix("samples/s").unwrap_or(line).trim().replace(',', "");
    number.parse().map_err(|_| wrong(format!("printed `{line}` last, which is not a rate")))
}

fn show(outcome: &Outcome, page: &mut Page) {
    let Outcome { source, strategy, storage, threads, diagnosis, next } = outcome;
    let threads = units::counted(*threads as u64, "thread");
    page.paragraph(&format!("Diagnosed `{strategy}` from {source} on storage `{storage}` with {threads}:"));
    page.gap();
    for sentence in &diagnosis.sentences {
        page.paragraph(&as_sentence(sentence));
    }
    page.gap();
    let measured = &diagnosis.measured;
    let rates = [
        ("trainer alone", Some(measured.trainer)),
        ("preparation alone", measured.prep),
        ("storage alone", measured.fetch),
        ("training from memory", measured.warm),
        ("training from storage", Some(measured.cold)),
    ];
    let mut table = Table::new(&[("measured", Align::Left), ("samples/s", Align::Right), ("parts", Align::Right)]);
    for (name, rate) in rates {
        if let Some(rate) = rate {
            table.row([name.to_owned(), units::number(rate.samples_per_second), range(&rate)], false);
        }
    }
    page.table(&table);
    page.gap();
    page.table(&what_ifs(&diagnosis.what_ifs));
    page.next_step("Next:", next);
}

fn what_ifs(outlooks: &[Outlook]) -> Table {
    let columns = [
        ("what if", Align::Left),
        ("samples/s", Align::Right),
        ("between", Align::Right),
        ("waits", Align::Right),
        ("preparation", Align::Right),
        ("storage", Align::Right),
    ];
    let mut table = Table::new(&columns);
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    for outlook in outlooks {
        table.row(
            [
                outlook.change.clone(),
                units::number(outlook.rate.samples_per_second),
                range(&outlook.rate),
                share(Some(outlook.stalls.wait_share)),
                share(outlook.stalls.prep_stall_share),
                share(outlook.stalls.fetch_stall_share),
            ],
            false,
        );
    }
    table
}

fn range(rate: &Rate) -> String {
    format!("{} to {}", units::number(rate.min_samples_per_second), units::number(rate.max_samples_per_second))
}

/// With a capital letter and a period.
fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
