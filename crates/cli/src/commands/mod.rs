//! The commands, one file each.

pub(crate) mod advise;
pub(crate) mod analyze;
pub(crate) mod build;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod experiment;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod mix;
pub(crate) mod pipelines;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod recompress;
pub(crate) mod report;

use std::io::Read;
use std::path::Path;

use forebay_plan::units;
use forebay_storage::{is_url, one_line};

use crate::arguments::{self, Command};
use crate::error::{Error, Result};
use crate::output::{Output, Page};

/// Does what was asked for.
pub(crate) fn run(command: &Command, output: &Output) -> Result<()> {
    for path in inputs(command) {
        if is_url(path) && matches!(command, Command::Convert(_) | Command::Recompress(_)) {
            let problem = format!("`{}` is in a store, and images are converted on this machine", one_line(path));
            return Err(Error::usage(
                problem,
                "download the folder first, or build a data set, which reads and writes URLs",
            ));
        }
        arguments::must_exist(path, "check the path")?;
    }
    match command {
        Command::Demo(arguments) => demo::run(arguments, output),
        Command::Analyze(arguments) => analyze::run(arguments, output),
        Command::Profile(arguments) => profile::run(arguments, output),
        Command::Plan(arguments) => plan::run(arguments, output),
        Command::Mix(arguments) => mix::run(arguments, output),
        Command::Build(arguments) => build::run(arguments, output),
        Command::Load(arguments) => load::run(arguments, output),
        Command::Experiment(arguments) => experiment::run(arguments, output),
        Command::Advise(arguments) => advise::run(arguments, output),
        Command::Diagnose(arguments) => diagnose::run(arguments, output),
        Command::Report(arguments) => report::run(arguments, output),
        Command::Convert(arguments) => convert::run(arguments, output),
        Command::Recompress(arguments) => recompress::run(arguments, output),
        Command::Export(arguments) => export::run(arguments, output),
        Command::Inspect(arguments) => inspect::run(arguments, output),
        Command::Pipelines(arguments) => pipelines::run(arguments, output),
        Command::Probe(arguments) => probe::run(arguments, output),
        Command::Completions(arguments) => completions::run(arguments, output),
        Command::Man(arguments) => man::run(arguments, output),
    }
}

/// The inputs of a command. (`inspect` has its own lookup: its argument can also be a preset.)
fn inputs(command: &Command) -> Vec<&Path> {
    match command {
        Command::Analyze(arguments) => arguments.inputs(),
        Command::Profile(arguments) => arguments.inputs(),
        Command::Plan(arguments) => arguments.inputs(),
        Command::Mix(arguments) => arguments.inputs(),
        Command::Build(arguments) => arguments.inputs(),
        Command::Load(arguments) => arguments.inputs(),
        Command::Experiment(arguments) => arguments.inputs(),
        Command::Advise(arguments) => arguments.inputs(),
        Command::Diagnose(arguments) => arguments.inputs(),
        Command::Report(arguments) => arguments.inputs(),
        Command::Convert(arguments) => arguments.inputs(),
        Command::Recompress(arguments) => arguments.inputs(),
        Command::Export(arguments) => arguments.inputs(),
        Command::Probe(arguments) => arguments.inputs(),
        Command::Demo(_) | Command::Inspect(_) | Command::Pipelines(_) | Command::Completions(_) | Command::Man(_) => {
            Vec::new()
        }
    }
}

/// What to do where the disk is full that a command writes to.
pub(crate) fn when_full(command: &Command) -> &'static str {
    match command {
        Command::Demo(_) => "free some space, pass fewer --samples, or a --folder on another disk",
        Command::Analyze(_) => "free some space, or pass a --report on another disk",
        Command::Advise(_) => {
            "free some space, or pass a --work-dir folder on another disk: it temporarily holds the strategies, of a few hundred samples"
        }
        Command::Profile(_) => {
            "free some space, pass fewer --samples, or a --work-dir folder on another disk: it temporarily holds the \
             strategies, for that many samples"
        }
        Command::Mix(_) => {
            "free some space, pass fewer --samples, or a --work-dir folder on another disk: it temporarily holds the mix, with that many \
             samples"
        }
        Command::Build(_) => {
            "free some space and run the same command again: finished shards are kept; or pass an --output on another disk, \
             or choose a smaller strategy (`forebay plan --max-storage`)"
        }
        Command::Experiment(_) => {
            "free some space and run the same command again: finished runs are kept; or pass fewer --samples, a smaller \
             --total, or an --output on another disk"
        }
        Command::Convert(_) => {
            "free some space and run the same command again: finished images are kept; or choose an output on another disk, \
             or a smaller encoding (`--mode dense`)"
        }
        Command::Recompress(_) => {
            "free some space and run the same command again: finished files are kept; or pass fewer qualities, or an output on another disk"
        }
        Command::Export(_) => {
            "free as much space as the data set takes, or choose a folder on another disk: a failed export keeps nothing"
        }
        Command::Probe(_) => {
            "free some space, or choose a folder on another disk: it temporarily holds 128 MiB, and 100 MB per thread"
        }
        Command::Report(_) => "free some space, or pass --output, --svg-folder, --csv and --parquet on another disk",
        Command::Load(_) => "free some space, or pass a --state on another disk",
        Command::Plan(_) => "free some space, or pass an --output on another disk",
        Command::Diagnose(_)
        | Command::Inspect(_)
        | Command::Pipelines(_)
        | Command::Completions(_)
        | Command::Man(_) => "free some space",
    }
}

/// So many of the skipped samples are listed on a page; JSON has more.
const SKIPPED_SHOWN_MAX: usize = 10;

/// Lists samples that were left out, and damage that cost none.
fn show_skipped(page: &mut Page, skipped: u64, list: &[forebay_engine::data::Skipped]) {
    let noun = if skipped == 1 { "sample was" } else { "samples were" };
    show_left_out(page, skipped, list, &format!("{noun} skipped"));
}

/// The same under another heading, which begins with their number.
fn show_left_out(page: &mut Page, skipped: u64, list: &[forebay_engine::data::Skipped], heading: &str) {
    if list.is_empty() {
        return;
    }
    page.heading(&format!("{} {heading}", forebay_plan::units::count(skipped)));
    for sample in list.iter().take(SKIPPED_SHOWN_MAX) {
        // The first line says what is wrong; the others are hints.
        let reason = sample.reason.lines().next().unwrap_or_default();
        match sample.samples {
            Some(1) => page.hanging("- ", reason),
            Some(0) => page.hanging("- no samples: ", reason),
            Some(samples) => page.hanging(&format!("- {}: ", units::counted(samples, "sample")), reason),
            None => page.hanging("- unknown number of samples: ", reason),
        }
    }
    let shown = forebay_engine::data::Skipped::count(&list[..list.len().min(SKIPPED_SHOWN_MAX)]);
    let more = skipped.saturating_sub(shown);
    if more > 0 {
        page.line(&format!("- and {} more", forebay_plan::units::count(more)));
    }
}

/// The largest document (pipeline, profile, plan) that is read.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// The text of a file that the user named, which may be a pipe; or an error that says what was being read.
pub(crate) fn read_text(doing: &'static str, path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(Error::io(doing, path))?;
    file.take(DOCUMENT_BYTES_MAX + 1).read_to_string(&mut text).map_err(Error::io(doing, path))?;
    if text.len() as u64 > DOCUMENT_BYTES_MAX {
        let problem = format!("is too large for a pipeline, profile or plan: more than {DOCUMENT_BYTES_MAX} bytes");
        return Err(Error::Format { path: path.to_owned(), problem });
    }
    Ok(text)
}

/// Whether there is a regular file at `path`: it could be a pipe, which would block.
fn is_regular(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file())
}
