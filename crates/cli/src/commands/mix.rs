//! `forebay mix`: the formats, and their shares, that keep storage and CPU busy at the same time.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use forebay_engine::StorageChoice;
use forebay_engine::data::Listing;
use forebay_engine::mix::MixTrial;
use forebay_pipeline::{Pipeline, Strategy, preset};
use forebay_plan::{
    Mix, MixBound, MixFormat, MixLimits, MixMode, MixRates, MixShare, Profile, mix_by, mix_formats, mix_limits,
    mix_notices, mix_unknown, units,
};
use forebay_storage::parse_bytes;
use serde::Serialize;

use super::plan::read_profile;
use crate::arguments::{
    self, ErrorArguments, INPUT, MEASUREMENT, MemoryArguments, OUTPUT, RESOURCES, RunArguments, Settings,
};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options};
use crate::output::{Align, Output, Page, Table, quoted};

const EXAMPLES: &str = "\
Examples:
  forebay profile cv --data photos/ --encoding png --encoding l3-fast
  forebay mix profile.json --buffer 30GB
  forebay mix profile.json --format decoded+png --format decoded
  forebay mix profile.json --max-lossy-share 0.5 --max-storage 500GB
  forebay mix profile.json --mode search --predict

Small formats take CPU time to decode, and formats that take none are large.
With the right share of each, disk and CPU are busy at the same time. Candidates
are the strategies of the profile that need a build, and compressed ones whose
cost it has. Others are listed as not considered: profile them with
`--encoding`, e.g. `--encoding png`, or name them with `--strategy`.

Modes:
  linear  a linear program over all candidates (the default)
  search  two formats: binary search over eleven ratios
  sweep   two formats: all eleven ratios

The chosen mix is then built from --samples samples in --work-dir and loaded
from the storage that was profiled, or from --storage, unless --predict is
passed.";

/// Choose the formats of a data set, and the share of each
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Profile written by `forebay profile`
    profile: PathBuf,
    /// Consider only this strategy, e.g. `decoded+png` (repeatable) [default: all that the profile knows]
    #[arg(long = "format", value_name = "NAME")]
    formats: Vec<String>,
    /// Memory for the shuffle buffer of a `liquid` cache, e.g. 30GB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "0")]
    buffer: u64,
    /// Largest size of the data set, e.g. 500GB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_storage: Option<u64>,
    /// Largest share of samples in lossy formats, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    max_lossy_share: f64,
    /// Samples per second that the trainer can consume
    #[arg(long, value_name = "SAMPLES/S")]
    trainer: Option<f64>,
    /// How to choose
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Linear)]
    mode: Mode,
    /// Do not build and load the mix
    #[arg(long)]
    predict: bool,
    /// Number of samples to build the mix from
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Number of samples per batch
    #[arg(long, value_name = "N", help_heading = MEASUREMENT, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    batch_size: u64,
    #[command(flatten)]
    run: RunArguments,
    /// Storage to load the mix from, as `forebay profile` takes it [default: the one that was profiled]
    #[arg(long, value_name = "STORAGE", help_heading = RESOURCES, value_parser = StorageChoice::from_str)]
    storage: Option<StorageChoice>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Folder with the source files [default: the one that was profiled]
    #[arg(long, value_name = "FOLDER", help_heading = INPUT)]
    data: Option<PathBuf>,
    #[command(flatten)]
    list: ListArguments,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    on_error: ErrorArguments,
    /// Folder for temporary data sets [default: the current folder]
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT)]
    work_dir: Option<PathBuf>,
}

/// How shares are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// A linear program over all formats
    Linear,
    /// Binary search over eleven ratios of two formats
    Search,
    /// All eleven ratios of two formats
    Sweep,
}

impl From<Mode> for MixMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Linear => Self::Linear,
            Mode::Search => Self::Search,
            Mode::Sweep => Self::Sweep,
        }
    }
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        [self.profile.as_path()].into_iter().chain(self.data.as_deref()).chain(self.list.file()).collect()
    }
}

/// What was found, and what it leaves open.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(flatten)]
    mix: Mix,
    notices: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let profile = read_profile(&arguments.profile)?;
    let limits = MixLimits {
        max_storage_bytes: arguments.max_storage,
        max_lossy_share: arguments.max_lossy_share,
        trainer_samples_per_second: arguments.trainer,
        ..mix_limits(&profile, arguments.buffer)
    };
    let formats = candidates(arguments, &profile)?;
    let mut found = choose(arguments, &formats, &limits)?;
    let storage = if arguments.predict { None } else { Some(storage(arguments, &profile)?) };
    if let Some(storage) = &storage {
        found.measured_samples_per_second = Some(measure(arguments, &profile, &found, storage, output)?);
    }
    // Of formats that were named, nothing else was to be considered.
    let all = arguments.formats.is_empty();
    let unknown = if all { mix_unknown(&profile, arguments.max_lossy_share) } else { Vec::new() };
    let notices = mix_notices(&profile).map_err(|source| Error::Plan { about: String::new(), source })?;
    output.present(&Outcome { mix: found, notices }, |Outcome { mix: found, notices }, page| {
        show(found, storage.as_ref(), &unknown, arguments.trainer, page);
        page.warnings(notices);
        show_sweep(found, page);
        page.next_step("Next, build the data set:", &next_command(arguments, &profile, found));
    })
}

fn candidates(arguments: &Arguments, profile: &Profile) -> Result<Vec<MixFormat>> {
    let all = mix_formats(profile, arguments.max_lossy_share);
    if arguments.formats.is_empty() {
        return Ok(all);
    }
    let named = |name: &String| {
        all.iter().find(|format| format.format == *name).cloned().ok_or_else(|| {
            let names = all.iter().map(|format| format.format.as_str()).collect::<Vec<_>>().join("`, `");
            let problem = format!("the profile has no format `{name}` that can be part of a mix");
            Error::usage(problem, format!("there are `{names}`; lossy ones need `--max-lossy-share`"))
        })
    };
    arguments.formats.iter().map(named).collect()
}

fn choose(arguments: &Arguments, formats: &[MixFormat], limits: &MixLimits) -> Result<Mix> {
    if arguments.mode != Mode::Linear && formats.len() != 2 {
        let problem = format!("`--mode search` and `--mode sweep` take two formats, but there are {}", formats.len());
        return Err(Error::usage(problem, "name two with `--format`, twice"));
    }
    mix_by(arguments.mode.into(), formats, limits).map_err(|source| Error::Plan { about: String::new(), source })
}

/// What the mix is loaded from: the prediction is for the storage that was profiled.
fn storage(arguments: &Arguments, profile: &Profile) -> Result<StorageChoice> {
    if let Some(storage) = &arguments.storage {
        return Ok(storage.clone());
    }
    let name = &profile.storage.name;
    // `local-direct` and `local-mmap` are `direct` and `mmap` to users.
    name.strip_prefix("local-").unwrap_or(name).parse().map_err(|_| {
        let problem = format!("the profile is of storage `{name}`, which no `--storage` is called");
        Error::usage(problem, "pass the storage to load the mix from with `--storage`, or `--predict`")
    })
}

/// Builds the mix and loads it.
fn measure(
    arguments: &Arguments,
    profile: &Profile,
    found: &Mix,
    storage: &StorageChoice,
    output: &Output,
) -> Result<f64> {
    arguments.settings.none_with("a profile")?;
    let pipeline = arguments.list.applied(Pipeline::from_spec(&profile.pipeline)?)?;
    let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from(&profile.data.root));
    arguments::must_exist(&data, "pass the folder where the data is now with `--data`, or `--predict`")?;
    let files = arguments.list.read(&pipeline)?;
    let options = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    let listing = Listing::scan_with(pipeline.source(), &data, &options)?.sample(arguments.samples);
    let parse = |share: &MixShare| Ok((Strategy::parse(&pipeline, &share.format)?, share.share));
    let trial = MixTrial {
        formats: found.shares.iter().map(parse).collect::<Result<_>>()?,
        pipeline: pipeline.clone(),
        listing: Arc::new(listing),
        storage: storage.clone(),
        samples: profile.data.samples,
        buffer_bytes: arguments.buffer,
        threads: profile.method.threads,
        batch_size: arguments.batch_size as usize,
        seconds: arguments.run.seconds,
        seed: profile.method.seed,
        on_error: arguments.on_error.choice(),
        memory_bytes: arguments.memory.bytes(),
        work_folder: arguments.work_dir.clone().unwrap_or_else(|| PathBuf::from(".")),
    };
    let progress = output.progress();
    Ok(trial.run(&progress)?)
}

fn show(found: &Mix, storage: Option<&StorageChoice>, unknown: &[&str], trainer: Option<f64>, page: &mut Page) {
    let share = |share: &MixShare| format!("{} `{}`", units::percent(share.share), share.format);
    let shares: Vec<String> = found.shares.iter().map(share).collect();
    let mut facts =
        vec![("mix", shares.join(", ")), ("predicted", units::samples_per_second(found.predicted_samples_per_second))];
    if let (Some(measured), Some(storage)) = (found.measured_samples_per_second, storage) {
        // The loader was measured alone: of what it gives, a trainer gets what it takes.
        let reached = trainer.map_or(measured, |trainer| measured.min(trainer));
        let error = units::signed_percent(found.predicted_samples_per_second / reached - 1.0);
        let measured = units::samples_per_second(measured);
        facts.push(("measured", format!("{measured} on `{storage}` (prediction {error})")));
    }
    let bounds: Vec<&str> = found.bound_by.iter().map(|bound| bound_words(*bound)).collect();
    facts.push(("bound by", bounds.join(", ")));
    if found.hit_ratio > 0.0 {
        facts.push(("in memory", units::percent(found.hit_ratio)));
    }
    if let Some(rates) = &found.rates {
        let trainer = rates.trainer_utilization.map(|share| format!(", trainer {}", units::percent(share)));
        let (cpu, disk) = (units::percent(rates.cpu_utilization), units::percent(rates.storage_utilization));
        facts.push(("utilization", format!("CPU {cpu}, disk {disk}{}", trainer.unwrap_or_default())));
    }
    if !unknown.is_empty() {
        let names = unknown.join("`, `");
        facts.push(("not considered", format!("`{names}` (profile with `--encoding {}`, say)", unknown[0])));
    }
    page.facts(&facts);
}

/// The ratios of two formats, with the best one within the limits marked.
fn show_sweep(found: &Mix, page: &mut Page) {
    let Some(large) = found.sweep.last().and_then(|rates| rates.shares.first()) else { return };
    page.gap();
    let has_trainer = found.sweep.iter().any(|rates| rates.trainer_utilization.is_some());
    let mut columns = vec!["samples/s", "load", "decode", "CPU", "disk"];
    columns.extend(has_trainer.then_some("trainer"));
    let all_allowed = found.sweep.iter().all(|rates| rates.within_limits);
    columns.extend((!all_allowed).then_some("within limits"));
    let first = (large.format.as_str(), Align::Right);
    let head = std::iter::once(first).chain(columns.into_iter().map(|column| (column, Align::Right)));
    let mut table = Table::new(&head.collect::<Vec<_>>());
    let allowed = found.sweep.iter().filter(|rates| rates.within_limits);
    let best = allowed.map(|rates| rates.samples_per_second).fold(0.0, f64::max);
    // Of several that are as good, one.
    let is_best = |rates: &MixRates| rates.within_limits && rates.samples_per_second >= best;
    let marked = found.sweep.iter().position(is_best);
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), units::number);
    for (number, rates) in found.sweep.iter().enumerate() {
        let share = rates.shares.iter().find(|share| share.format == large.format).map_or(0.0, |share| share.share);
        let mut cells = vec![
            units::percent(share),
            units::number(rates.samples_per_second),
            rate(rates.load),
            rate(rates.decode),
            units::percent(rates.cpu_utilization),
            units::percent(rates.storage_utilization),
        ];
        cells.extend(rates.trainer_utilization.filter(|_| has_trainer).map(units::percent));
        cells.extend((!all_allowed).then(|| if rates.within_limits { "yes" } else { "no" }.to_owned()));
        table.row(cells, marked == Some(number));
    }
    page.table(&table);
}

fn bound_words(bound: MixBound) -> &'static str {
    match bound {
        MixBound::Storage => "disk",
        MixBound::Cpu => "CPU",
        MixBound::Trainer => "trainer",
        MixBound::Capacity => "capacity",
        MixBound::LossyShare => "lossy share",
    }
}

/// How to build the mix: of a preset by its name. Any other pipeline is in the profile only, and a plan takes it to the build.
fn next_command(arguments: &Arguments, profile: &Profile, found: &Mix) -> String {
    let share = |share: &MixShare| format!("{}={:.3}", share.format, share.share);
    // Less is written as none, which no build takes.
    let shares = found.shares.iter().filter(|share| share.share >= 0.000_5);
    let mix = quoted(shares.map(share).collect::<Vec<_>>().join(","));
    let name = &profile.pipeline.name;
    let preset = preset(name).ok().and_then(|preset| preset.to_spec());
    let is_preset = preset.is_some_and(|preset| preset == profile.pipeline);
    let given = arguments.data.as_ref().map(|data| data.display().to_string());
    let (first, what, data) = if is_preset {
        (String::new(), name.as_str(), Some(given.unwrap_or_else(|| profile.data.root.clone())))
    } else {
        let profile = quoted(arguments.profile.display());
        (format!("forebay plan {profile} -o plan.json && "), "plan.json", given)
    };
    let data = data.map_or_else(String::new, |data| format!(" --data {}", quoted(data)));
    let files = arguments.list.file().map(|list| format!(" --files-from {}", quoted(list.display())));
    format!("{first}forebay build {what}{data}{} --mix {mix} -o dataset/", files.unwrap_or_default())
}
