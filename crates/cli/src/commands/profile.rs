//! `forebay profile`: measure every legal split of a pipeline.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_engine::data::Listing;
use forebay_engine::load::Shuffle;
use forebay_engine::profile::{COMPRESSION_CANDIDATES, ProfileOptions, profile};
use forebay_pipeline::{Pipeline, StorageFormat, Strategy};
use forebay_plan::{
    Caching, CompressionCost, Data, Machine, Method, Profile, Runs, SHORT_RUN_SECONDS, Skipped, StepCost, StorageRates,
    Summary, first_batches, notices, step_cells, summarize, units,
};
use serde::Serialize;

use super::plan::{FIGURES, LESSER, figures};
use super::show_skipped;
use crate::arguments::{
    self, CachingChoice, ErrorArguments, INPUT, MEASUREMENT, MemoryArguments, OUTPUT, RUNS_DEFAULT, RunArguments,
    Settings, StorageArguments, Threads, run_count,
};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options, warnings};
use crate::output::{Align, Output, Page, Table, all_different, write_file, write_inside};

const EXAMPLES: &str = "\
Examples:
  forebay profile cv --data photos/
  forebay profile cv --data photos/ --fast
  forebay profile cv --data photos/ --storage ceph-hdd --strategy resized
  forebay profile cv --data photos/ --caching system --runs 4
  forebay profile cv --data photos/ --encoding l3-fast --encoding zstd-3
  forebay profile cv --data photos/ --compression-candidates lz4,zstd-19
  forebay profile cv --data photos/ --set random_crop.size=192
  forebay profile my.toml --data photos/ --samples 500 --runs 5 --csv runs.csv

Each strategy runs the steps up to one stage offline (once) and the others
online (every epoch). It is built from --samples samples, drawn from all of the
data, and loaded --runs times for --seconds each. Runs that other programs
disturb are repeated, up to --runs times.

If the cost of compression alone, measured in memory, predicts that a compressed
strategy is faster than the others, it is measured, too.

Columns of the table:
  samples/s  throughput after the first batch, the median of the runs, and their
             standard deviation (±); if it is predicted by the cost model,
             its bounds (in brackets)
  storage    size of the data set, extrapolated to all samples
  prepare    time to build it, extrapolated to all samples
  predicted  throughput according to the cost model
  error      how far the prediction is off
  bound by   the bottleneck: disk, CPU or trainer

Strategies are kept in --work-dir for a while, up to 4 GB together or the
largest.";

/// Measure the throughput, storage and preparation time of every strategy
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Pipeline: a TOML file or a preset (`forebay pipelines` lists the presets)
    pub(crate) pipeline: String,
    /// Folder with the source files
    #[arg(long, value_name = "FOLDER", help_heading = INPUT)]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) list: ListArguments,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Number of samples to measure; more samples take longer and vary less
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Number of runs per strategy
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = RUNS_DEFAULT, value_parser = run_count())]
    pub(crate) runs: NonZeroU32,
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// Predict all strategies with a cost model that is fitted to a few samples, and verify only the top candidates, with two
    /// runs of half a second each
    #[arg(long, help_heading = MEASUREMENT, conflicts_with = "runs")]
    pub(crate) fast: bool,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// What stays cached between runs
    #[arg(long, value_name = "MODE", help_heading = MEASUREMENT, default_value = "none")]
    pub(crate) caching: CachingChoice,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Number of shards per strategy [default: number of threads]
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) shards: Option<u64>,
    /// Number of samples per batch
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) batch_size: u64,
    /// Seed of random steps
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Measure only this strategy, e.g. `resized` or `decoded+png` (repeatable) [default: all]
    #[arg(long = "strategy", value_name = "NAME")]
    pub(crate) strategies: Vec<String>,
    /// Also measure this storage format wherever it applies (repeatable): an image encoding (`l3-fast`, `png`, `jpeg-85`), a
    /// tensor encoding (`shuffle-zstd-3`, `pco-8`, `bitpack`, `sparse`; with a bounded error: `bfloat16`, `round-absolute-0.001-pco-8`), a
    /// compression of records (`gzip`, `zlib-6-rle`, `zstd-3`, `lz4-hc-9`, `snappy`; of each record by itself: `zstd-3-record`), or
    /// several (`png+gzip`)
    #[arg(long = "encoding", value_name = "NAME", conflicts_with = "strategies")]
    pub(crate) encodings: Vec<String>,
    /// Compressions to consider for each strategy, comma-separated, or `none`: each is measured alone in memory, and only what should be
    /// faster by the cost model is run
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_values = COMPRESSION_CANDIDATES)]
    #[arg(conflicts_with = "strategies")]
    pub(crate) compression_candidates: Vec<String>,
    #[command(flatten)]
    pub(crate) on_error: ErrorArguments,
    /// Folder for temporary data sets [default: the folder of the output]
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT)]
    pub(crate) work_dir: Option<PathBuf>,
    /// Write the profile to FILE
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT, default_value = "profile.json")]
    pub(crate) output: PathBuf,
    /// Also write one line per run to FILE, and system metrics to `system.csv` next to it
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) csv: Option<PathBuf>,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        arguments::named_file(&self.pipeline).into_iter().chain([self.data.as_path()]).chain(self.list.file()).collect()
    }
}

/// The metrics are written next to the CSV file of the runs.
const SYSTEM_CSV: &str = "system.csv";

/// What `profile --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Where the profile is.
    #[serde(serialize_with = "crate::output::as_text::path")]
    profile: PathBuf,
    /// Where the CSV files are, if any were asked for.
    #[serde(serialize_with = "crate::output::as_text::paths")]
    csv: Vec<PathBuf>,
    pipeline: String,
    machine: Machine,
    data: Data,
    method: Method,
    storage: StorageRates,
    steps: Vec<StepCost>,
    /// The strategy with the highest throughput.
    fastest: Option<String>,
    /// How many samples were left out, and the first of them.
    skipped: u64,
    skipped_samples: Vec<Skipped>,
    /// How long the shortest run took; `None` where nothing was run.
    shortest_run_seconds: Option<f64>,
    strategies: Vec<Summary>,
    /// What compressions cost alone.
    compressions: Vec<CompressionCost>,
    /// What to know before relying on it.
    notices: Vec<String>,
    /// What is probably not meant of the data; a profile that is only read has none.
    warnings: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let (_, outcome) = execute(arguments, output)?;
    output.present(&outcome, |outcome, page| {
        show(outcome, page);
        page.next_step(
            "Next, choose the best strategy:",
            &format!("forebay plan {}", crate::output::quoted(outcome.profile.display())),
        );
    })
}

/// Measures, and writes the files.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<(Profile, Outcome)> {
    let pipeline = arguments::pipeline(&arguments.pipeline, &arguments.settings, &arguments.list)?;
    let strategies = strategies(arguments, &pipeline)?;
    candidates(arguments)?;
    if arguments.caching == CachingChoice::System && arguments.runs.get() < 2 && !arguments.fast {
        return Err(Error::usage(
            "with `--caching system` the first run fills the cache and is not counted, so `--runs 1` leaves none",
            "pass `--runs 2` or more",
        ));
    }
    if arguments.csv.as_deref().and_then(Path::file_name).is_some_and(|name| name == SYSTEM_CSV) {
        return Err(Error::usage(
            format!("`--csv` names `{SYSTEM_CSV}`, which is the file of the system metrics"),
            "choose another name, such as `runs.csv`",
        ));
    }
    if let Some(csv) = &arguments.csv {
        all_different(&[("--output", &arguments.output), ("--csv", csv)])?;
    }
    let files = arguments.list.read(&pipeline)?;
    let options = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    let listing = Listing::scan_with(pipeline.source(), &arguments.data, &options)?;
    let warnings = warnings(&listing, output);
    let profile = measure(arguments, &pipeline, strategies, listing, output)?;
    write_file(&arguments.output, profile.to_json().map_err(Error::plan(&arguments.output))?.as_bytes())?;
    let csv = arguments.csv.as_deref().map_or(Ok(Vec::new()), |path| write_csv(&profile, path))?;
    let outcome = Outcome { warnings, ..summary(&profile, &arguments.output, csv)? };
    Ok((profile, outcome))
}

/// The strategies that were asked for: named ones, or all, in all formats that were asked for.
fn strategies(arguments: &Arguments, pipeline: &Pipeline) -> Result<Vec<Strategy>> {
    if !arguments.strategies.is_empty() {
        let named = arguments.strategies.iter().map(|name| Ok(Strategy::parse(pipeline, name)?));
        return named.collect();
    }
    let formats = arguments.encodings.iter().map(|name| name.parse::<StorageFormat>());
    Ok(Strategy::all(pipeline, &formats.collect::<Result<Vec<_>, _>>()?))
}

/// The additional formats to choose from; none if strategies are named.
fn candidates(arguments: &Arguments) -> Result<Vec<StorageFormat>> {
    let names = &arguments.compression_candidates;
    if !arguments.strategies.is_empty() || matches!(names.as_slice(), [one] if one == "none") {
        return Ok(Vec::new());
    }
    if names.iter().any(|name| name == "none") {
        return Err(Error::usage("`--compression-candidates` names `none` and others", "pass `none` alone"));
    }
    Ok(names.iter().map(|name| name.parse()).collect::<Result<_, forebay_pipeline::Error>>()?)
}

fn measure(
    arguments: &Arguments,
    pipeline: &Pipeline,
    strategies: Vec<Strategy>,
    listing: Listing,
    output: &Output,
) -> Result<Profile> {
    let threads = arguments.threads.count();
    let samples = arguments.samples.min(listing.len() as u64);
    // A temporary folder is created there.
    let beside = || arguments.output.parent().map_or_else(PathBuf::new, Path::to_owned);
    let work_folder = arguments.work_dir.clone().unwrap_or_else(beside);
    let options = ProfileOptions {
        memory_bytes: arguments.memory.bytes(),
        sample_count: samples,
        run_seconds: arguments.run.seconds,
        runs: if arguments.fast { Runs::Fast } else { Runs::Each(arguments.runs) },
        threads,
        // With more shards, the seeks at their starts would weigh more than in the full data set.
        shards: arguments.shards.map_or(threads, |shards| shards as usize),
        batch_size: arguments.batch_size as usize,
        caching: arguments.caching.into(),
        shuffle: Shuffle::No,
        seed: arguments.seed,
        on_error: arguments.on_error.choice(),
        work_folder,
        strategies,
        compressions: candidates(arguments)?,
    };
    let progress = output.progress();
    Ok(profile(pipeline, listing, &arguments.storage.storage, &options, &progress)?)
}

/// What there is to say about a profile that is in the file `path`.
pub(super) fn summary(profile: &Profile, path: &Path, csv: Vec<PathBuf>) -> Result<Outcome> {
    let strategies = summarize(profile, None).map_err(Error::plan(path))?;
    let rate = |summary: &&Summary| summary.samples_per_second;
    let fastest = strategies.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)));
    let runs = || profile.strategies.iter().flat_map(|strategy| &strategy.runs);
    Ok(Outcome {
        profile: path.to_owned(),
        csv,
        pipeline: profile.pipeline.name.clone(),
        machine: profile.machine.clone(),
        data: profile.data.clone(),
        method: profile.method.clone(),
        storage: profile.storage.clone(),
        steps: profile.steps.clone(),
        fastest: fastest.map(|summary| summary.name.clone()),
        skipped: profile.skipped(),
        skipped_samples: profile.skipped_samples.clone(),
        shortest_run_seconds: runs().map(|run| run.seconds).reduce(f64::min),
        strategies,
        compressions: profile.compressions.clone(),
        notices: notices(profile).map_err(Error::plan(path))?,
        warnings: Vec::new(),
    })
}

/// The tables, and what to know before relying on them.
pub(super) fn show(outcome: &Outcome, page: &mut Page) {
    tables(outcome, page);
    page.warnings(&outcome.notices);
    written(outcome, page);
}

/// Which files it wrote.
pub(super) fn written(outcome: &Outcome, page: &mut Page) {
    page.gap();
    page.line(&format!("profile: {}", outcome.profile.display()));
    for path in &outcome.csv {
        page.line(&format!("csv:     {}", path.display()));
    }
}

pub(super) fn tables(outcome: &Outcome, page: &mut Page) {
    let Outcome { method, data, storage, .. } = outcome;
    let all =
        if method.sample_count < data.samples { format!(" of {}", units::count(data.samples)) } else { String::new() };
    page.paragraph(&format!(
        "Pipeline `{}` on storage `{}`: {}{all} samples, {}, {}, {}",
        outcome.pipeline,
        storage.name,
        units::count(method.sample_count),
        match method.runs {
            Runs::None => "no runs".to_owned(),
            Runs::Fast => "few runs".to_owned(),
            Runs::Each(runs) => units::counted(u64::from(runs.get()), "run"),
        },
        units::counted(method.threads as u64, "thread"),
        method.caching.words(),
    ));
    if !matches!(method.runs, Runs::Each(_)) {
        page.paragraph(
            "`samples/s` is predicted by the cost model and corrected by the runs of the top candidates. Strategies that were run have an `error`.",
        );
    }
    page.gap();
    page.table(&strategies_table(outcome));
    if let Some(sentence) = first_batches(&outcome.strategies) {
        page.gap();
        page.paragraph(&format!("{sentence}, which `samples/s` leaves out."));
    }
    page.heading("Steps: cost of one sample on one thread");
    page.table(&steps_table(&outcome.steps));
    page.gap();
    page.paragraph(&format!(
        "Storage: {} sequential, {} files/s of {} each.",
        units::bytes_per_second(storage.sequential_bytes_per_second),
        units::number(storage.files_per_second),
        units::bytes(storage.file_bytes),
    ));
    // In a short run, the wait for the first batch weighs more than in a full epoch.
    let shortest = outcome.shortest_run_seconds.filter(|&seconds| seconds < SHORT_RUN_SECONDS);
    if let Some(shortest) = shortest.filter(|_| method.sample_count < data.samples) {
        page.paragraph(&format!(
            "The shortest run took only {}, so startup weighs more than in a full epoch. Raise --samples or --seconds for \
             better figures.",
            units::seconds(shortest)
        ));
    }
    let disturbed = outcome.strategies.iter().filter(|summary| summary.disturbed).count();
    if disturbed > 0 {
        page.paragraph(&format!(
            "Other programs disturbed every run of {disturbed} of {} strategies. For those, `samples/s` is predicted by the cost model. Measure again on an idle machine.",
            outcome.strategies.len()
        ));
    }
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}

fn strategies_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(&[&[("strategy", Align::Left)][..], &FIGURES].concat());
    table.leave_out_before_intervals(&LESSER);
    for summary in &outcome.strategies {
        let cells = figures(summary, outcome.method.caching);
        let is_fastest = outcome.fastest.as_ref() == Some(&summary.name);
        table.row([&[summary.name.clone()][..], &cells].concat(), is_fastest);
    }
    table
}

fn steps_table(steps: &[StepCost]) -> Table {
    let mut table = Table::new(&[
        ("step", Align::Left),
        ("CPU time", Align::Right),
        ("output", Align::Right),
        ("runs", Align::Left),
    ]);
    for cells in step_cells(steps) {
        table.row(cells, false);
    }
    table
}

/// One line per run of each strategy, and ten lines per second of the system's metrics.
fn write_csv(profile: &Profile, path: &Path) -> Result<Vec<PathBuf>> {
    let mut runs =
        "strategy,split_position,storage,caching,threads,shards,run,samples,skipped,seconds,samples_per_second,\
                    bytes_read,storage_bytes,prep_seconds\n"
            .to_owned();
    let caching = match profile.method.caching {
        Caching::None => "none",
        Caching::System => "system",
        Caching::Application => "application",
    };
    for strategy in &profile.strategies {
        for (number, run) in strategy.runs.iter().enumerate() {
            // Writing into a `String` cannot fail.
            let _ = writeln!(
                runs,
                "{},{},{},{caching},{},{},{},{},{},{},{},{},{},{}",
                quoted(&strategy.name),
                strategy.split.position,
                quoted(&profile.storage.name),
                profile.method.threads,
                profile.method.shards,
                number + 1,
                run.samples,
                run.skipped,
                run.seconds,
                run.samples_per_second(),
                run.bytes_read,
                strategy.storage_bytes,
                strategy.prep_seconds,
            );
        }
    }
    let system_path = path.with_file_name(SYSTEM_CSV);
    write_file(path, runs.as_bytes())?;
    write_inside(&system_path, system_csv(profile, path)?.as_bytes())?;
    Ok(vec![path.to_owned(), system_path])
}

/// The metrics, with a column per field of a sample: the names are those of `profile.json`.
fn system_csv(profile: &Profile, path: &Path) -> Result<String> {
    let mut text = String::new();
    for strategy in &profile.strategies {
        for sample in &strategy.system {
            let unfit =
                || Error::Format { path: path.to_owned(), problem: "has metrics that are not a table".to_owned() };
            let value = serde_json::to_value(sample).map_err(|error| Error::Output(error.into()))?;
            let fields = value.as_object().ok_or_else(unfit)?;
            if text.is_empty() {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                let _ = writeln!(text, "strategy,{}", names.join(","));
            }
            let values: Vec<String> = fields.values().map(ToString::to_string).collect();
            let _ = writeln!(text, "{},{}", quoted(&strategy.name), values.join(","));
        }
    }
    Ok(text)
}

/// A CSV field (RFC 4180): in quotes where it needs them, as `custom:` storages do.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
