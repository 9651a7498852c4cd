//! `forebay build`: rewrite the data once.

mod parts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use forebay_engine::build::{Build, BuildOptions, BuildReport, MixBuild, MixReport, Part, Resume, default_shards};
use forebay_engine::data::{Listing, MixEntry, Skipped};
use forebay_pipeline::{Pipeline, Split, Strategy};
use forebay_plan::units;
use serde::Serialize;

use super::plan::read_plan;
use super::show_skipped;
use crate::arguments::{self, ErrorArguments, INPUT, MemoryArguments, Settings, StorageArguments, Threads};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options, warnings};
use crate::output::{Output, Page, quoted};

const EXAMPLES: &str = "\
Examples:
  forebay build plan.json -o dataset/
  forebay build plan.json -o dataset/ --data /mnt/all-photos --shards 64
  forebay build plan.json -o dataset/ --on-error skip
  forebay build cv --data photos/ --strategy resized -o dataset/
  forebay build cv --data photos/ --strategy decoded+l3-fast -o dataset/
  forebay build mp3 --data clips/ --strategy spectrogram-encoded+pco-8 -o dataset/
  forebay build cv --data photos/ --mix decoded+png=0.3,decoded=0.7 -o dataset/
  forebay build plan.json --data s3://bucket/photos -o s3://bucket/dataset

On many machines: prepare once, run every part anywhere, finish once.
  forebay build plan.json -o s3://bucket/dataset --prepare
  forebay build plan.json -o s3://bucket/dataset --part 3/16
  forebay build plan.json -o s3://bucket/dataset --finish

Builds are resumable: after Ctrl-C or a crash, run the same command again.
Finished shards are reused, and the result is byte-identical.

A data set is a folder of TFRecord shards (which TensorFlow and others read),
an index and checksums for each shard, and a manifest, dataset.json. A data set
in several formats (--mix) has such a folder for each, and mix.json, which says
what share of the samples is in which. `forebay mix` finds good shares.";

/// Build the data set of a plan: run the offline steps once, in parallel
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Plan written by `forebay plan`, or a pipeline (a TOML file or a preset)
    #[arg(value_name = "PLAN|PIPELINE")]
    pub(crate) what: String,
    /// Folder for the data set
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// Folder with the source files [default: the one that was profiled]
    #[arg(long, value_name = "FOLDER", help_heading = INPUT)]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) list: ListArguments,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Strategy to build, e.g. `resized`, `decoded+png` or `resized+zstd-3` [default: the plan's choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<String>,
    /// Build in several formats at once, each with its share of the samples, e.g. `decoded+png=0.3,decoded=0.7`
    #[arg(long, value_name = "STRATEGY=SHARE,…", value_parser = mix_shares, conflicts_with = "strategy")]
    pub(crate) mix: Option<MixShares>,
    /// Seed that decides which sample of a mix is in which format [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Number of shards [default: with a plan one per 128 MB, but at least one per thread; with a pipeline four per thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) shards: Option<u64>,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    #[command(flatten)]
    pub(crate) on_error: ErrorArguments,
    /// Replace a data set in the folder, or an unfinished build of another one
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Only list the source files and write the list down in the output folder, for `--part` on any number of machines
    #[arg(long, help_heading = PARTS, conflicts_with_all = ["part", "finish", "mix"])]
    pub(crate) prepare: bool,
    /// Build only part I of N of a prepared build. A part can be run again, or twice at once: the result is the same
    #[arg(long, value_name = "I/N", help_heading = PARTS, value_parser = <Part as std::str::FromStr>::from_str)]
    #[arg(conflicts_with_all = ["finish", "mix", "overwrite", "shards"])]
    pub(crate) part: Option<Part>,
    /// Check that all parts of a prepared build were built, and write the manifest
    #[arg(long, help_heading = PARTS, conflicts_with_all = ["mix", "overwrite", "shards"])]
    pub(crate) finish: bool,
}

/// The heading of the options for many machines.
const PARTS: &str = "Building on many machines";

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        arguments::named_file(&self.what).into_iter().chain(self.data.as_deref()).chain(self.list.file()).collect()
    }
}

/// What `build --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// The data set's folder.
    #[serde(serialize_with = "crate::output::as_text::path")]
    dataset: PathBuf,
    strategy: String,
    /// `null` where there are several formats.
    split: Option<Split>,
    /// The formats of a mix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    formats: Vec<MixedFormat>,
    samples: u64,
    skipped: u64,
    bytes: u64,
    shards: usize,
    /// How many shards were there already.
    shards_reused: usize,
    seconds: f64,
    classes: usize,
    skipped_samples: Vec<Skipped>,
    /// What is probably not meant.
    warnings: Vec<String>,
}

/// One format of a mix.
#[derive(Debug, Serialize)]
struct MixedFormat {
    strategy: String,
    share: f64,
    samples: u64,
    bytes: u64,
}

/// The formats of a mix, and their shares.
pub(crate) type MixShares = Vec<(String, f64)>;

fn mix_shares(text: &str) -> Result<MixShares, String> {
    let share = |part: &str| {
        let (strategy, share) = part.split_once('=')?;
        Some((strategy.trim().to_owned(), share.trim().parse().ok()?))
    };
    let shares: Option<MixShares> = text.split(',').map(share).collect();
    shares.ok_or_else(|| "expected strategies and their shares, e.g. `decoded+png=0.3,decoded=0.7`".to_owned())
}

/// What to build, from where, in how many shards.
struct Task {
    pipeline: Pipeline,
    /// The formats and their shares: one, unless a mix is asked for.
    formats: Vec<(Strategy, f64)>,
    data: PathBuf,
    /// How many bytes a sample takes, where a plan says so.
    bytes_per_sample: Option<f64>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    if arguments.prepare || arguments.part.is_some() || arguments.finish {
        return parts::run(arguments, output);
    }
    let outcome = execute(arguments, command_line(), output)?;
    output.present(&outcome, |outcome, page| {
        show(outcome, page);
        let command = format!("forebay load {} --shuffle", quoted(outcome.dataset.display()));
        page.next_step("Next, stream batches from it:", &command);
    })
}

/// What is left of a build that was interrupted.
const KEPT: &str = ": finished shards are kept\nhint: run the same command again to resume";

/// How this program was called, without what would begin anew. `None` where that is no text.
fn command_line() -> Option<Resume> {
    let folder = std::env::current_dir().ok()?.into_os_string().into_string().ok()?;
    let arguments = std::env::args_os().skip(1).map(|argument| argument.into_string().ok());
    let arguments: Option<Vec<String>> = arguments.collect();
    let arguments = arguments?.into_iter().filter(|argument| argument != "--overwrite" && argument != "--json");
    Some(Resume { folder, arguments: arguments.collect() })
}

/// Builds.
pub(super) fn execute(arguments: &Arguments, resume: Option<Resume>, output: &Output) -> Result<Outcome> {
    if arguments.seed.is_some() && arguments.mix.is_none() {
        return Err(Error::usage("`--seed` has no effect without `--mix`", "omit it"));
    }
    let task = task(arguments)?;
    let files = arguments.list.read(&task.pipeline)?;
    let options = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    let listing = Arc::new(Listing::scan_with(task.pipeline.source(), &task.data, &options)?);
    let warnings = warnings(&listing, output);
    let samples = listing.len() as u64;
    let threads = arguments.threads.count();
    let shards = arguments.shards.map(|shards| shards as usize);
    let options = BuildOptions {
        memory_bytes: arguments.memory.bytes(),
        threads,
        shards: shards.unwrap_or_else(|| default_shards(samples, threads, task.bytes_per_sample)),
        on_error: arguments.on_error.choice(),
        overwrite: arguments.overwrite,
        resume,
    };
    let Task { pipeline, formats, .. } = task;
    let storage = arguments.storage.storage.open(0)?;
    let begun = Instant::now();
    let progress = output.progress();
    let dataset = arguments.output.clone();
    let built = if arguments.mix.is_some() {
        let build = MixBuild { pipeline, formats, seed: arguments.seed.unwrap_or(0), listing, storage };
        build.run(&arguments.output, &options, &progress).map(|report| mix_outcome(report, dataset))
    } else {
        let strategy = formats.into_iter().next().map(|(strategy, _)| strategy);
        let strategy = strategy.ok_or_else(|| Error::usage("there is no strategy to build", "pass `--strategy`"))?;
        let build = Build { pipeline, strategy, listing, storage };
        build.run(&arguments.output, &options, &progress).map(|report| outcome(report, dataset))
    };
    drop(progress);
    let built = built.map_err(|error| Error::from(error).leaving(KEPT))?;
    Ok(Outcome { warnings, seconds: begun.elapsed().as_secs_f64(), ..built })
}

/// The formats that are asked for: a mix, or the strategy `default`.
fn formats(arguments: &Arguments, pipeline: &Pipeline, default: Option<&String>) -> Result<Vec<(Strategy, f64)>> {
    match (&arguments.mix, default) {
        (Some(mix), _) => mix.iter().map(|(name, share)| Ok((Strategy::parse(pipeline, name)?, *share))).collect(),
        (None, Some(name)) => Ok(vec![(Strategy::parse(pipeline, name)?, 1.0)]),
        (None, None) => {
            let names = pipeline
                .splits()
                .iter()
                .filter(|split| !split.keeps_files())
                .map(|split| split.name.clone())
                .collect::<Vec<_>>()
                .join("`, `");
            Err(Error::usage("a pipeline needs `--strategy`", format!("pass one of `{names}`, or build a plan")))
        }
    }
}

fn task(arguments: &Arguments) -> Result<Task> {
    let path = Path::new(&arguments.what);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        arguments.settings.none_with("a plan")?;
        let plan = read_plan(path)?;
        let pipeline = arguments.list.applied(Pipeline::from_spec(&plan.pipeline)?)?;
        let name = arguments.strategy.as_ref().unwrap_or(&plan.chosen);
        let formats = formats(arguments, &pipeline, Some(name))?;
        let data = arguments.data.clone().unwrap_or_else(|| plan.data.root.into());
        arguments::must_exist(&data, "pass the folder where the data is now with `--data`")?;
        let total = |(strategy, share): &(Strategy, f64)| {
            let name = strategy.to_string();
            let found = plan.ranking.iter().map(|ranked| &ranked.summary).find(|summary| summary.name == name)?;
            Some(found.storage_bytes_total as f64 * share)
        };
        let shares: f64 = formats.iter().map(|(_, share)| share).sum();
        let total: Option<f64> = formats.iter().map(total).sum();
        let bytes_per_sample = total.map(|total| total / shares / plan.data.samples.max(1) as f64);
        return Ok(Task { pipeline, formats, data, bytes_per_sample });
    }
    let pipeline = arguments::pipeline(&arguments.what, &arguments.settings, &arguments.list)?;
    let data = arguments::data_folder(arguments.data.as_ref(), "build")?;
    let formats = formats(arguments, &pipeline, arguments.strategy.as_ref())?;
    Ok(Task { pipeline, formats, data, bytes_per_sample: None })
}

fn mix_outcome(report: MixReport, dataset: PathBuf) -> Outcome {
    let MixReport { manifest, shards, shards_reused } = report;
    let format = |entry: &MixEntry| MixedFormat {
        strategy: entry.strategy.clone(),
        share: entry.share,
        samples: entry.samples,
        bytes: entry.bytes,
    };
    let formats: Vec<MixedFormat> = manifest.formats.iter().map(format).collect();
    Outcome {
        dataset,
        strategy: formats.iter().map(|format| format.strategy.clone()).collect::<Vec<_>>().join(", "),
        split: None,
        formats,
        samples: manifest.samples,
        skipped: Skipped::count(&manifest.skipped_samples),
        bytes: manifest.bytes,
        shards,
        shards_reused,
        seconds: 0.0,
        classes: manifest.classes.len(),
        skipped_samples: manifest.skipped_samples,
        warnings: Vec::new(),
    }
}

fn outcome(report: BuildReport, dataset: PathBuf) -> Outcome {
    let manifest = report.manifest;
    Outcome {
        dataset,
        strategy: manifest.strategy.to_string(),
        split: Some(manifest.strategy.split),
        formats: Vec::new(),
        samples: manifest.samples,
        skipped: Skipped::count(&manifest.skipped_samples),
        bytes: manifest.bytes,
        shards: manifest.shards.len(),
        shards_reused: report.shards_reused,
        seconds: 0.0,
        classes: manifest.classes.len(),
        skipped_samples: manifest.skipped_samples,
        warnings: Vec::new(),
    }
}

/// What was built.
pub(super) fn show(outcome: &Outcome, page: &mut Page) {
    let shards = units::counted(outcome.shards as u64, "shard");
    if outcome.shards_reused == outcome.shards {
        page.paragraph(&format!(
            "`{}` in {} was finished already: {} in {shards}, {}.",
            outcome.strategy,
            outcome.dataset.display(),
            units::counted(outcome.samples, "sample"),
            units::bytes(outcome.bytes as f64),
        ));
    } else {
        page.paragraph(&format!(
            "Built `{}` in {}: {} in {shards}, {}, in {}.",
            outcome.strategy,
            outcome.dataset.display(),
            units::counted(outcome.samples, "sample"),
            units::bytes(outcome.bytes as f64),
            units::seconds(outcome.seconds),
        ));
        for MixedFormat { strategy, share, samples, bytes } in &outcome.formats {
            let samples = units::counted(*samples, "sample");
            let share = units::percent(*share);
            page.line(&format!("- `{strategy}`: {share}, {samples}, {}", units::bytes(*bytes as f64)));
        }
        if outcome.shards_reused > 0 {
            let kept = units::counted(outcome.shards_reused as u64, "shard");
            page.paragraph(&format!("{kept} of an interrupted build were kept."));
        }
    }
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}
