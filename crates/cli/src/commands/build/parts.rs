//! `forebay build --prepare`, `--part` and `--finish`: a build on many machines.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use forebay_engine::build::{Build, BuildOptions, BuildReport, Prepared, default_shards};
use forebay_engine::data::{Dataset, Listing};
use forebay_pipeline::Strategy;
use forebay_plan::units;
use serde::Serialize;

use super::{Arguments, KEPT, Task, command_line, outcome, show, task};
use crate::error::{Error, Result};
use crate::file_list::{listing_options, warnings};
use crate::output::{Output, Page, quoted};

/// What `build --prepare --json` and `build --part --json` print.
#[derive(Debug, Serialize)]
struct Outcome {
    /// The data set's folder.
    #[serde(serialize_with = "crate::output::as_text::path")]
    dataset: PathBuf,
    strategy: String,
    /// The part, `3/16`; `null` for `--prepare`.
    part: Option<String>,
    /// The shards of the part, or of all.
    shards: usize,
    /// How many of them were there already.
    shards_reused: usize,
    /// The samples in those shards, or of all.
    samples: u64,
    skipped: u64,
    bytes: u64,
    seconds: f64,
    /// Whether the data set is finished, so that there was nothing to do.
    finished: bool,
    /// What is probably not meant.
    warnings: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    if arguments.seed.is_some() {
        return Err(Error::usage("`--seed` has no effect without `--mix`", "omit it"));
    }
    let begun = Instant::now();
    let task = task(arguments)?;
    let strategy = task.formats.first().map(|(strategy, _)| strategy.clone());
    let strategy = strategy.ok_or_else(|| Error::usage("there is no strategy to build", "pass `--strategy`"))?;
    if arguments.prepare {
        let done = prepare(arguments, task, strategy, output)?;
        return output.present(&Outcome { seconds: begun.elapsed().as_secs_f64(), ..done }, |done, page| {
            show_prepared(done, page);
        });
    }
    let source = task.pipeline.source();
    let reach = arguments.settings.reach();
    let Some(Prepared { listing, shards }) = Prepared::find(&arguments.output, source, &task.data, reach)? else {
        return present_finished(arguments, begun, output);
    };
    let options = options(arguments, shards);
    let storage = arguments.storage.storage.open(0)?;
    let build = Build { pipeline: task.pipeline, strategy, listing: Arc::new(listing), storage };
    let progress = output.progress();
    if let Some(part) = arguments.part {
        let report = build.run_part(&arguments.output, &options, part, &progress);
        drop(progress);
        let report = report.map_err(|error| Error::from(error).leaving(KEPT))?;
        let done = Outcome {
            dataset: arguments.output.clone(),
            strategy: build.strategy.to_string(),
            part: Some(part.to_string()),
            shards: report.shards,
            shards_reused: report.shards_reused,
            samples: report.samples,
            skipped: report.skipped,
            bytes: report.bytes,
            seconds: begun.elapsed().as_secs_f64(),
            finished: false,
            warnings: Vec::new(),
        };
        return output.present(&done, show_part);
    }
    let report = build.finish(&arguments.output, &options, &progress);
    drop(progress);
    present_whole(report?, arguments, begun, output)
}

/// What `build` prints, too.
fn present_whole(report: BuildReport, arguments: &Arguments, begun: Instant, output: &Output) -> Result<()> {
    let finished = outcome(report, arguments.output.clone());
    let finished = super::Outcome { seconds: begun.elapsed().as_secs_f64(), ..finished };
    output.present(&finished, |finished, page| {
        show(finished, page);
        let command = format!("forebay load {} --shuffle", quoted(finished.dataset.display()));
        page.next_step("Next, stream batches from it:", &command);
    })
}

fn options(arguments: &Arguments, shards: usize) -> BuildOptions {
    BuildOptions {
        memory_bytes: arguments.memory.bytes(),
        threads: arguments.threads.count(),
        shards,
        on_error: arguments.on_error.choice(),
        overwrite: arguments.overwrite,
        resume: None,
    }
}

fn prepare(arguments: &Arguments, task: Task, strategy: Strategy, output: &Output) -> Result<Outcome> {
    let files = arguments.list.read(&task.pipeline)?;
    let listing = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    let listing = Arc::new(Listing::scan_with(task.pipeline.source(), &task.data, &listing)?);
    let warnings = warnings(&listing, output);
    let (samples, threads) = (listing.len() as u64, arguments.threads.count());
    let shards = arguments.shards.map(|shards| shards as usize);
    let shards = shards.unwrap_or_else(|| default_shards(samples, threads, task.bytes_per_sample));
    let resume = command_line().map(|mut resume| {
        // On one machine, a plain build continues a prepared build without its parts.
        resume.arguments.retain(|argument| argument != "--prepare");
        resume
    });
    let options = BuildOptions { resume, ..options(arguments, shards) };
    let storage = arguments.storage.storage.open(0)?;
    let build = Build { pipeline: task.pipeline, strategy, listing, storage };
    let finished = build.prepare(&arguments.output, &options)?;
    Ok(Outcome {
        dataset: arguments.output.clone(),
        strategy: build.strategy.to_string(),
        part: None,
        shards,
        shards_reused: finished.as_ref().map_or(0, |manifest| manifest.shards.len()),
        samples,
        skipped: 0,
        bytes: finished.as_ref().map_or(0, |manifest| manifest.bytes),
        seconds: 0.0,
        finished: finished.is_some(),
        warnings,
    })
}

/// A part of a data set that is finished: nothing to do, and no harm.
fn present_finished(arguments: &Arguments, begun: Instant, output: &Output) -> Result<()> {
    let dataset = Dataset::open(&arguments.output)?;
    let manifest = dataset.manifest();
    if arguments.finish {
        let report = BuildReport { manifest: manifest.clone(), shards_reused: manifest.shards.len() };
        return present_whole(report, arguments, begun, output);
    }
    let done = Outcome {
        dataset: arguments.output.clone(),
        strategy: manifest.strategy.to_string(),
        part: arguments.part.map(|part| part.to_string()),
        shards: manifest.shards.len(),
        shards_reused: manifest.shards.len(),
        samples: manifest.samples,
        skipped: 0,
        bytes: manifest.bytes,
        seconds: begun.elapsed().as_secs_f64(),
        finished: true,
        warnings: Vec::new(),
    };
    output.present(&done, show_finished)
}

fn show_finished(done: &Outcome, page: &mut Page) {
    page.paragraph(&format!(
        "`{}` in {} was finished already: {} in {}, {}.",
        done.strategy,
        done.dataset.display(),
        units::counted(done.samples, "sample"),
        units::counted(done.shards as u64, "shard"),
        units::bytes(done.bytes as f64),
    ));
}

fn show_prepared(done: &Outcome, page: &mut Page) {
    if done.finished {
        return show_finished(done, page);
    }
    page.paragraph(&format!(
        "Prepared `{}` in {}: {} for {}.",
        done.strategy,
        done.dataset.display(),
        units::counted(done.samples, "sample"),
        units::counted(done.shards as u64, "shard"),
    ));
    page.paragraph("Next, run the same command with `--part 1/N` to `--part N/N` instead of `--prepare`, on any machines; then with `--finish`.");
}

fn show_part(done: &Outcome, page: &mut Page) {
    let kept =
        if done.shards_reused > 0 { format!(" ({} were there already)", done.shards_reused) } else { String::new() };
    page.paragraph(&format!(
        "Built part {} of `{}` in {}: {}{kept}, {}, {}, in {}.",
        done.part.as_deref().unwrap_or_default(),
        done.strategy,
        done.dataset.display(),
        units::counted(done.shards as u64, "shard"),
        units::counted(done.samples, "sample"),
        units::bytes(done.bytes as f64),
        units::seconds(done.seconds),
    ));
    if done.skipped > 0 {
        page.line(&format!("{} were skipped; the manifest will list them.", units::counted(done.skipped, "sample")));
    }
}
