//! `forebay profile`: measure every legal split of a pipeline.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_engine::data::Listing;
use forebay_engine::load::Shuffle;
use forebay_engine::profile::{ProfileOptions, profile};
use forebay_pipeline::{Form, Pipeline, Strategy};
use forebay_plan::{
    Bound, Caching, Data, Machine, Method, Profile, Runs, SHORT_RUN_SECONDS, Skipped, StepCost, StorageRates, Summary,
    notices, summarise, units,
};
use serde::Serialize;

use super::show_skipped;
use crate::arguments::{
    self, CachingChoice, ErrorArguments, MemoryArguments, RUNS_DEFAULT, RunArguments, Settings, StorageArguments,
    Threads, run_count,
};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options, warnings};
use crate::output::{Align, Output, Page, Table, all_different, write_file, write_inside};

const EXAMPLES: &str = "\
Examples:
  forebay profile cv --data photos/
  forebay profile my.toml --data photos/ --samples 500 --runs 5 --csv runs.csv
  forebay profile cv --data photos/ --storage ceph-hdd --strategy resized
  forebay profile cv --data photos/ --caching system --runs 4
  forebay profile cv --data photos/ --encoding l3-fast --compression gzip
  forebay profile cv --data photos/ --fast
  forebay profile cv --data photos/ --set random-crop.size=192

Each strategy keeps the pipeline's state after one step: it is built from
--samples samples, files from everywhere, and loaded --runs times, for --seconds each: the samples
come as often as that takes. `samples/s` is T4, what reaches the trainer: the
median of the runs once their first batch is there. Runs that other programs
disturbed are repeated, up to --runs times. Storage and preparation are
extrapolated to all the data.
`predicted` is what the cost model makes of the measured costs alone. Needs room
for the largest strategy of so many samples (removed again) in --work.";

/// Measure every way to split a pipeline into `once` and `every epoch`
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A TOML file, or a ready pipeline by name (`forebay pipelines` lists them)
    pub(crate) pipeline: String,
    /// The folder with the data
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) list: ListArguments,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Samples in each run; more take longer and spread less
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Runs of each strategy
    #[arg(long, value_name = "N", default_value_t = RUNS_DEFAULT, value_parser = run_count())]
    pub(crate) runs: NonZeroU32,
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// Answer in a small part of the time: measure the costs of a few samples, let the cost model say what each strategy gives,
    /// and run only those that lead, twice for half a second, to check it
    #[arg(long, conflicts_with = "runs")]
    pub(crate) fast: bool,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// What is cached between runs
    #[arg(long, value_name = "WHAT", default_value = "none")]
    pub(crate) caching: CachingChoice,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Shards of each strategy [default: one for each thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) shards: Option<u64>,
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) batch: u64,
    /// The seed of random steps
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Only this strategy, as `resized` or `decoded+png`; may be given several times [default: all]
    #[arg(long = "strategy", value_name = "NAME")]
    pub(crate) strategies: Vec<String>,
    /// Also keep samples in this form wherever they can be: pictures as `l3-fast`, `png` or `jpeg-85`, records
    /// compressed as `gzip`, `zlib` or `gzip-1`, or both as `png+gzip`; may be given several times
    #[arg(long = "encoding", visible_alias = "compression", value_name = "NAME", conflicts_with = "strategies")]
    pub(crate) encodings: Vec<String>,
    #[command(flatten)]
    pub(crate) on_error: ErrorArguments,
    /// A folder to build strategies in [default: a temporary one beside the output, removed afterwards]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) work: Option<PathBuf>,
    /// Where the profile goes
    #[arg(short, long, value_name = "FILE", default_value = "profile.json")]
    pub(crate) output: PathBuf,
    /// Also write a line per run to FILE, and the system's metrics to `system.csv` beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        arguments::named_file(&self.pipeline).into_iter().chain([self.data.as_path()]).chain(self.list.file()).collect()
    }
}

/// The metrics go beside the CSV file of the runs.
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
    /// The strategy with the highest T4.
    fastest: Option<String>,
    /// How many samples were left out, and the first of them.
    skipped: u64,
    skipped_samples: Vec<Skipped>,
    /// How long the shortest run took; `None` where nothing was run.
    shortest_run_seconds: Option<f64>,
    strategies: Vec<Summary>,
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
            "Next, choose by throughput, or under weights and limits:",
            &format!("forebay plan {}", outcome.profile.display()),
        );
    })
}

/// Measures, and writes the files.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<(Profile, Outcome)> {
    let pipeline = arguments::pipeline(&arguments.pipeline, &arguments.settings, &arguments.list)?;
    let strategies = strategies(arguments, &pipeline)?;
    if arguments.caching == CachingChoice::System && arguments.runs.get() < 2 && !arguments.fast {
        return Err(Error::usage(
            "with `--caching system` the first run fills the cache and does not count, so `--runs 1` leaves none",
            "pass `--runs 2` or more",
        ));
    }
    if arguments.csv.as_deref().and_then(Path::file_name).is_some_and(|name| name == SYSTEM_CSV) {
        return Err(Error::usage(
            format!("`--csv` names `{SYSTEM_CSV}`, which is where the metrics go"),
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

/// The strategies that were asked for: named ones, or all, in all forms that were asked for.
fn strategies(arguments: &Arguments, pipeline: &Pipeline) -> Result<Vec<Strategy>> {
    if !arguments.strategies.is_empty() {
        let named = arguments.strategies.iter().map(|name| Ok(Strategy::parse(pipeline, name)?));
        return named.collect();
    }
    let forms = arguments.encodings.iter().map(|name| name.parse::<Form>());
    Ok(Strategy::all(pipeline, &forms.collect::<Result<Vec<_>, _>>()?))
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
    // A folder of its own is made there, and removed again.
    let beside = || arguments.output.parent().map_or_else(PathBuf::new, Path::to_owned);
    let work_folder = arguments.work.clone().unwrap_or_else(beside);
    let options = ProfileOptions {
        memory_bytes: arguments.memory.bytes(),
        sample_count: samples,
        run_seconds: arguments.run.seconds,
        runs: if arguments.fast { Runs::Fast } else { Runs::Each(arguments.runs) },
        threads,
        // More would make the seeks at the start of each shard weigh more than they do in the whole data set.
        shards: arguments.shards.map_or(threads, |shards| shards as usize),
        batch_size: arguments.batch as usize,
        caching: arguments.caching.into(),
        shuffle: Shuffle::No,
        seed: arguments.seed,
        on_error: arguments.on_error.choice(),
        work_folder,
        strategies,
    };
    let progress = output.progress();
    Ok(profile(pipeline, listing, &arguments.storage.storage, &options, &progress)?)
}

/// What there is to say about a profile that is in the file `path`.
pub(super) fn summary(profile: &Profile, path: &Path, csv: Vec<PathBuf>) -> Result<Outcome> {
    let strategies = summarise(profile, None).map_err(Error::plan(path))?;
    let rate = |summary: &&Summary| summary.t4_samples_per_second;
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
        skipped: profile.skipped_samples(),
        skipped_samples: profile.skipped.clone(),
        shortest_run_seconds: runs().map(|run| run.seconds).reduce(f64::min),
        strategies,
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
            Runs::Each(runs) => counted(u64::from(runs.get()), "run"),
        },
        counted(method.threads as u64, "thread"),
        method.caching.words(),
    ));
    if !matches!(method.runs, Runs::Each(_)) {
        page.paragraph(
            "`samples/s` is what the cost model makes of the costs of these samples, less what it was off by where strategies were run; where an error stands beside it, the strategy was run.",
        );
    }
    page.gap();
    page.table(&strategies_table(outcome));
    page.heading("One sample, on one thread");
    page.table(&steps_table(&outcome.steps));
    page.gap();
    page.paragraph(&format!(
        "Storage gives {} in sequence and {} whole files/s of {}.",
        units::bytes_per_second(storage.sequential_bytes_per_second),
        units::number(storage.files_per_second),
        units::bytes(storage.file_bytes),
    ));
    // In a short run the wait for the first batch weighs more than it does in a whole epoch.
    let shortest = outcome.shortest_run_seconds.filter(|&seconds| seconds < SHORT_RUN_SECONDS);
    if let Some(shortest) = shortest.filter(|_| method.sample_count < data.samples) {
        page.paragraph(&format!(
            "The shortest run took {}, of which the start is a good part: raise --samples for figures nearer to a whole \
             epoch's.",
            units::seconds(shortest)
        ));
    }
    let disturbed = outcome.strategies.iter().filter(|summary| summary.disturbed).count();
    if disturbed > 0 {
        page.paragraph(&format!(
            "Other programs disturbed every run of {disturbed} of {} strategies: for those, `samples/s` is by the cost model. Measure again on a quiet machine.",
            outcome.strategies.len()
        ));
    }
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}

fn strategies_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        ("strategy", Align::Left),
        ("samples/s", Align::Right),
        ("storage", Align::Right),
        ("prepare", Align::Right),
        ("predicted", Align::Right),
        ("error", Align::Right),
        ("bound by", Align::Left),
    ]);
    for summary in &outcome.strategies {
        table.row(
            [
                summary.name.clone(),
                rate_with_spread(summary),
                units::bytes(summary.storage_bytes_total as f64),
                units::seconds(summary.prep_seconds_total),
                summary.predicted_samples_per_second.map_or_else(|| "-".to_owned(), units::number),
                summary.prediction_error.map_or_else(|| "-".to_owned(), signed_percent),
                bound_by(summary.bound_by, outcome.method.caching).to_owned(),
            ],
            outcome.fastest.as_ref() == Some(&summary.name),
        );
    }
    table
}

fn steps_table(steps: &[StepCost]) -> Table {
    let mut table = Table::new(&[
        ("step", Align::Left),
        ("processor time", Align::Right),
        ("gives", Align::Right),
        ("runs", Align::Left),
    ]);
    for cells in step_cells(steps) {
        table.row(cells, false);
    }
    table
}

/// Of each step its name, what it takes and gives, and when it runs.
pub(crate) fn step_cells(steps: &[StepCost]) -> Vec<Vec<String>> {
    let mut after_random = false;
    let row = |step: &StepCost| {
        after_random |= step.random;
        let runs = match (step.random, after_random) {
            (true, _) => "every epoch (random)",
            (false, true) => "every epoch",
            (false, false) => "once or every epoch",
        };
        vec![step.name.clone(), units::seconds(step.cpu_seconds), units::bytes(step.bytes_out), runs.to_owned()]
    };
    steps.iter().map(row).collect()
}

/// `1,789 ± 25`; without a spread where one run shows none.
pub(crate) fn rate_with_spread(summary: &Summary) -> String {
    let rate = units::number(summary.t4_samples_per_second);
    if summary.runs < 2 { rate } else { format!("{rate} ± {}", units::number(summary.t4_spread)) }
}

/// What limits a strategy, in a word.
pub(crate) fn bound_by(bound: Bound, caching: Caching) -> &'static str {
    match (bound, caching) {
        (Bound::Storage, Caching::System) => "memory",
        (Bound::Storage, _) => "disk",
        (Bound::Cpu, _) => "processor",
        (Bound::Trainer, _) => "trainer",
        (Bound::Unknown, _) => "nothing",
    }
}

pub(crate) fn signed_percent(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{}", units::percent(share))
}

/// `1 run`, `3 runs`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", units::count(count), if count == 1 { "" } else { "s" })
}

/// One line per run of each strategy, and one line per second of the system's metrics.
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
            let unfit = || Error::Format { path: path.to_owned(), problem: "has metrics that are no table".to_owned() };
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
