//! `forebay export`: a data set as tars.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use forebay_engine::StorageChoice;
use forebay_engine::data::Dataset;
use forebay_engine::export::export_tar;
use forebay_plan::units;
use serde::Serialize;

use crate::arguments::{MemoryArguments, Threads};
use crate::error::Result;
use crate::output::{Output, Page};

const EXAMPLES: &str = "\
Examples:
  forebay export dataset/ tars/
  forebay export dataset/ tars/ --threads 8

Each shard becomes one tar. Encoded images are named after their format (jpg,
png), labels are cls, texts txt or json, and tensors npy. Further fields are
prefixed with their name (mask.png). A pipeline reads tars with
`format = \"tar\"` in its [source]. Each tar gets an index (.idx) next to it, in
the format of DALI's wds2idx.";

/// Export a data set as tar shards for WebDataset
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Data set built by `forebay build`
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// Folder for the tars; must not contain any yet
    #[arg(value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        vec![&self.dataset]
    }
}

/// What `export --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(serialize_with = "crate::output::as_text::path")]
    dataset: PathBuf,
    #[serde(serialize_with = "crate::output::as_text::paths")]
    files: Vec<PathBuf>,
    #[serde(serialize_with = "crate::output::as_text::paths")]
    indexes: Vec<PathBuf>,
    samples: u64,
    bytes: u64,
    seconds: f64,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let begun = Instant::now();
    let dataset = Arc::new(Dataset::open(&arguments.dataset)?);
    let storage = StorageChoice::Local.open(0)?;
    let threads = arguments.threads.count();
    let memory_bytes = arguments.memory.bytes();
    let exported = export_tar(&dataset, &storage, &arguments.output, threads, memory_bytes, &output.progress())?;
    let outcome = Outcome {
        dataset: arguments.dataset.clone(),
        bytes: exported.bytes,
        files: exported.files,
        indexes: exported.indexes,
        samples: exported.samples,
        seconds: begun.elapsed().as_secs_f64(),
    };
    output.present(&outcome, show)
}

fn show(outcome: &Outcome, page: &mut Page) {
    page.facts(&[
        ("samples", units::count(outcome.samples)),
        (
            "tars",
            format!("{}, {}", units::counted(outcome.files.len() as u64, "file"), units::bytes(outcome.bytes as f64)),
        ),
        ("took", units::seconds(outcome.seconds)),
    ]);
}
