//! `forebay analyze`: what the samples of a data set are like, and what is wrong with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use forebay_engine::StorageChoice;
use forebay_engine::analyze::{AnalyzeOptions, DISTANCE_DEFAULT, DISTANCE_MAX, analyze, kind_of, open_data};
use forebay_engine::source::{Files, Source};
use forebay_plan::{DataAnalysis, Distribution, DuplicateGroup, NextStep, units};
use forebay_storage::one_line;
use serde::Serialize;

use crate::arguments::{self, ErrorArguments, MemoryArguments, OUTPUT, OnErrorChoice, Settings, Threads};
use crate::error::Result;
use crate::file_list::{ListArguments, listing_options};
use crate::output::{Align, Output, Page, Table, visible, write_file};

const EXAMPLES: &str = "\
Examples:
  forebay analyze photos/
  forebay analyze photos/ --report analysis.html
  forebay analyze photos/ --list duplicates
  forebay analyze shards/train-0000.tar
  forebay analyze dataset/ --json

Reads and decodes every image once: sizes, formats, dimensions, JPEG qualities,
colors (mean and std, ready for `normalize`), duplicates, broken files, and the
balance of classes. Works on folders of images, tar and TFRecord shards, and
data sets built by Forebay; other files are read as a pipeline's source says.

Exact duplicates have the same bytes. Near duplicates look the same: a
perceptual hash of 64 bits (pHash) differs in up to --distance bits. The image
with the most pixels of each group is the one to keep.";

/// Analyze images: sizes, qualities, colors, duplicates, broken files, classes
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder, tar or TFRecord file, or data set built by `forebay build`
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Pipeline whose source says which files to read: a TOML file, or a preset
    pipeline: Option<String>,
    /// Largest number of bits in which the hashes of near duplicates differ
    #[arg(long, value_name = "BITS", default_value_t = DISTANCE_DEFAULT, value_parser = clap::value_parser!(u32).range(0..=i64::from(DISTANCE_MAX)))]
    distance: u32,
    /// Print only the paths of these samples, one per line, without the one to keep of each group
    #[arg(long, value_enum, value_name = "WHICH", help_heading = OUTPUT)]
    list: Option<Listed>,
    /// Write a self-contained HTML page with plots to FILE
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    report: Option<PathBuf>,
    #[command(flatten)]
    files: ListArguments,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
    /// What to do with a sample that cannot be read or decoded
    #[arg(long, value_name = "ACTION", default_value = "skip")]
    on_error: OnErrorChoice,
}

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Listed {
    /// Copies with the same bytes
    Duplicates,
    /// Images that look like another one
    NearDuplicates,
    /// Samples that cannot be read or decoded
    Broken,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let pipeline = self.pipeline.as_deref().and_then(arguments::named_file);
        [self.data.as_path()].into_iter().chain(pipeline).chain(self.files.file()).collect()
    }
}

/// What `analyze --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    data: String,
    /// What samples are: `unprocessed` for files, otherwise the strategy.
    strategy: String,
    #[serde(flatten)]
    analysis: DataAnalysis,
    /// What to do, the most important first.
    next: Vec<NextStep>,
    #[serde(serialize_with = "crate::output::as_text::optional_path")]
    report: Option<PathBuf>,
    seconds: f64,
}

/// What `analyze --list` prints as JSON.
#[derive(Debug, Serialize)]
struct Names {
    samples: Vec<String>,
    /// The same, a line each.
    #[serde(skip)]
    text: String,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let begun = Instant::now();
    let source = open(arguments)?;
    let options = AnalyzeOptions {
        threads: arguments.threads.count(),
        on_error: ErrorArguments::from(arguments.on_error).choice(),
        memory_bytes: arguments.memory.bytes(),
        max_distance: arguments.distance,
    };
    let progress = output.progress();
    let analysis = analyze(&*source, &options, &progress)?;
    drop(progress);
    let data = arguments.data.display().to_string();
    let next = analysis.next_steps(&data, kind_of(&*source));
    if let Some(path) = &arguments.report {
        let page = forebay_report::data_page(&analysis, &data, &next, env!("CARGO_PKG_VERSION"));
        write_file(path, page.as_bytes())?;
    }
    if let Some(which) = arguments.list {
        let samples = names(&analysis, which, source.folder());
        let text = samples.iter().flat_map(|name| [visible(name), "\n".into()]).collect();
        return output.present_text(&Names { samples, text }, |names| &names.text);
    }
    let outcome = Outcome {
        next,
        data,
        strategy: source.formats(),
        analysis,
        report: arguments.report.clone(),
        seconds: begun.elapsed().as_secs_f64(),
    };
    output.present(&outcome, show)
}

/// What a pipeline reads, or everything in the folder.
fn open(arguments: &Arguments) -> Result<Arc<dyn Source>> {
    let storage = StorageChoice::Local.open(0)?;
    let on_error = ErrorArguments::from(arguments.on_error);
    let Some(pipeline) = &arguments.pipeline else {
        arguments.files.none_with("data that no pipeline reads")?;
        arguments.settings.none_with("data that no pipeline reads")?;
        return Ok(open_data(&arguments.data, &storage, on_error.choice())?);
    };
    let pipeline = arguments::pipeline(pipeline, &arguments.settings, &arguments.files)?;
    let files = arguments.files.read(&pipeline)?;
    let options = listing_options(&arguments.settings, &on_error, files.as_ref());
    Ok(Arc::new(Files::open(pipeline, &arguments.data, storage, &options)?))
}

/// The samples of one kind, as paths where they are files.
fn names(analysis: &DataAnalysis, which: Listed, folder: Option<&Path>) -> Vec<String> {
    let groups = analysis.duplicates.groups.iter();
    let of_groups = |part: fn(&DuplicateGroup) -> &[String]| groups.clone().flat_map(part).cloned().collect();
    let keys: Vec<String> = match which {
        Listed::Duplicates => of_groups(|group| &group.exact),
        Listed::NearDuplicates => of_groups(|group| &group.near),
        Listed::Broken => analysis.broken_samples.iter().map(|broken| broken.key.clone()).collect(),
    };
    let path = |key: String| folder.map_or(key.clone(), |folder| one_line(&folder.join(&key)));
    keys.into_iter().map(path).collect()
}

/// So many rows of a table are shown; the page and JSON have all.
const ROWS_MAX: usize = 12;

fn show(outcome: &Outcome, page: &mut Page) {
    let analysis = &outcome.analysis;
    let samples = units::counted(analysis.samples, "sample");
    page.paragraph(&format!("Analyzed {samples} of {} in {}:", outcome.data, units::seconds(outcome.seconds)));
    page.gap();
    page.facts(&facts(analysis));
    page.gap();
    page.table(&distributions(analysis));
    if analysis.classes.len() > 1 {
        page.gap();
        page.table(&classes(analysis));
        if analysis.classes.len() > ROWS_MAX {
            page.line(&format!("and {} more between them", units::count((analysis.classes.len() - ROWS_MAX) as u64)));
        }
    }
    super::show_left_out(page, analysis.broken, &analysis.broken_samples, "broken");
    super::show_left_out(page, analysis.unexamined, &analysis.unexamined_samples, "not examined");
    if let Some(report) = &outcome.report {
        page.gap();
        page.line(&format!("report: {}", report.display()));
    }
    for step in &outcome.next {
        page.next_step(&step.sentence, &step.command);
    }
}

fn facts(analysis: &DataAnalysis) -> Vec<(&'static str, String)> {
    let formats: Vec<String> =
        analysis.formats.iter().map(|count| format!("{} {}", units::count(count.samples), count.format)).collect();
    let mut facts = vec![
        ("samples", format!("{}: {}", units::bytes(analysis.bytes as f64), formats.join(", "))),
        ("broken", units::count(analysis.broken)),
    ];
    if analysis.unexamined > 0 {
        facts.push(("not examined", units::count(analysis.unexamined)));
    }
    if let Some(quality) = &analysis.quality {
        let exact = format!("{} of {} known exactly", units::count(quality.exact), units::count(quality.images));
        let progressive = format!("{} progressive", units::count(quality.progressive));
        facts.push(("JPEG", format!("median quality {:.0} ({exact}), {progressive}", quality.distribution.median)));
    }
    if let Some(color) = &analysis.color {
        let list = |values: [f64; 3]| values.map(|value| format!("{value:.3}")).join(", ");
        facts.push(("mean", format!("[{}]", list(color.mean))));
        facts.push(("std", format!("[{}]", list(color.std))));
        let gray = format!("{} ({})", units::count(color.gray), units::percent(color.gray_share));
        facts.push(("gray", format!("{gray}, {} stored so", units::count(color.stored_gray))));
    }
    if analysis.turned > 0 {
        facts.push(("rotated", format!("{} by EXIF", units::count(analysis.turned))));
    }
    let found = &analysis.duplicates;
    let count = |count: &forebay_plan::DuplicateCount| {
        let groups = units::counted(count.groups, "group");
        let size = units::bytes(count.bytes as f64);
        if count.samples == 0 { "0".to_owned() } else { format!("{} ({groups}, {size})", units::count(count.samples)) }
    };
    facts.push(("duplicates", count(&found.exact)));
    if analysis.images > 0 {
        facts.push(("near ones", count(&found.near)));
    }
    if found.conflicting_labels > 0 {
        let groups = units::counted(found.conflicting_labels, "group");
        facts.push(("labels", format!("{groups} of duplicates with different labels")));
    }
    if let Some(ratio) = analysis.imbalance() {
        let count = analysis.classes.len();
        facts.push(("classes", format!("{count}, the largest {} times the smallest", units::number(ratio))));
    }
    facts
}

/// A distribution, its name, and how to format its values.
type DistributionRow<'a> = (&'static str, Option<&'a Distribution>, fn(f64) -> String);

fn distributions(analysis: &DataAnalysis) -> Table {
    let columns = ["", "least", "5 %", "median", "mean", "95 %", "most"];
    let align = |(at, column): (usize, &'static str)| (column, if at == 0 { Align::Left } else { Align::Right });
    let mut table = Table::new(&columns.into_iter().enumerate().map(align).collect::<Vec<_>>());
    let quality = analysis.quality.as_ref().map(|quality| &quality.distribution);
    let whole = |value: f64| units::count(value.round() as u64);
    let rows: [DistributionRow<'_>; 5] = [
        ("size", analysis.size.as_ref(), units::bytes),
        ("width", analysis.width.as_ref(), whole),
        ("height", analysis.height.as_ref(), whole),
        ("width / height", analysis.aspect_ratio.as_ref(), |value| format!("{value:.2}")),
        ("JPEG quality", quality, whole),
    ];
    for (name, distribution, text) in rows {
        let Some(Distribution { min, p5, median, mean, p95, max, .. }) = distribution else { continue };
        let cells = [min, p5, median, mean, p95, max].map(|value| text(*value));
        table.row(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>(), false);
    }
    table
}

/// The largest classes and the smallest.
fn classes(analysis: &DataAnalysis) -> Table {
    let mut all: Vec<_> = analysis.classes.iter().collect();
    all.sort_by_key(|class| std::cmp::Reverse(class.samples));
    let labeled: u64 = all.iter().map(|class| class.samples).sum();
    let mut table = Table::new(&[("class", Align::Left), ("samples", Align::Right), ("share", Align::Right)]);
    let half = ROWS_MAX / 2;
    let shown = all.iter().enumerate().filter(|(at, _)| all.len() <= ROWS_MAX || *at < half || *at >= all.len() - half);
    for (_, class) in shown {
        let share = units::percent(class.samples as f64 / labeled.max(1) as f64);
        table.row([class.name.clone(), units::count(class.samples), share], false);
    }
    table
}
