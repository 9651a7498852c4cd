//! `forebay plan`: choose a strategy, and name the bottleneck of each.

mod show;
mod wants;

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_plan::{Limits, Objective, Plan, Profile, Weights, plan};
use serde::Serialize;

use super::read_text;
use crate::error::{Error, Result};
use crate::output::{Output, Page, all_different, quoted, write_file};
use forebay_storage::{parse_bytes, parse_seconds};

pub(crate) use show::{FIGURES, LESSER, figures, show};
pub(crate) use wants::Wants;

const EXAMPLES: &str = "\
Examples:
  forebay plan profile.json
  forebay plan profile.json --weights 0,1,2 --max-storage 500GB
  forebay plan profile.json --max-prep-time 2h --trainer 1200 -o small.json
  forebay plan profile.json --what-if cores=32,read=910MB/s,memory=80GB
  forebay plan profile.json --objective money --epochs 90 --months 6 \\
    --price cpu_hour=0.04,gb_month=0.02,accelerator_hour=2.5

The score is the weighted mean of preparation time, storage, throughput and
money, each scaled to 0..1 (1 is best) over the strategies within the limits.
Limits apply to the entire data set, extrapolated from the measured samples.
--what-if predicts with the cost model, and lists its assumptions.";

/// Choose the best strategy of a profile, by weights and within limits
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Request {
    #[command(flatten)]
    arguments: Arguments,
    #[command(flatten)]
    wants: Wants,
}

impl Request {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        vec![&self.arguments.profile]
    }
}

/// The profile, weights and limits.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// Profile written by `forebay profile`
    pub(crate) profile: PathBuf,
    /// Weights of preparation time, storage, throughput and (with --price) money, comma-separated; only their ratios matter
    #[arg(long, value_name = "P,S,T[,M]", default_value = "0,0,1", value_parser = weights)]
    #[arg(conflicts_with = "objective")]
    pub(crate) weights: Weights,
    /// Exclude strategies that need more storage, e.g. 10GB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_storage: Option<u64>,
    /// Exclude strategies that take longer to prepare, e.g. 2h
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) max_prep_time: Option<f64>,
    /// Exclude strategies that store samples in a lossy encoding
    #[arg(long)]
    pub(crate) lossless: bool,
    /// Samples per second that the trainer can consume; faster strategies score no better
    #[arg(long, value_name = "SAMPLES/S")]
    pub(crate) trainer: Option<f64>,
    /// Write the plan to FILE
    #[arg(short, long, value_name = "FILE", default_value = "plan.json")]
    pub(crate) output: PathBuf,
}

/// What `plan --json` prints: the plan itself, and where it is.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Where the plan is.
    #[serde(serialize_with = "crate::output::as_text::path")]
    file: PathBuf,
    #[serde(flatten)]
    plan: Plan,
}

fn weights(text: &str) -> Result<Weights, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok(&[prep, storage, throughput]) => Ok(Weights { prep, storage, throughput, money: 0.0 }),
        Ok(&[prep, storage, throughput, money]) => Ok(Weights { prep, storage, throughput, money }),
        _ => Err("expected weights of preparation, storage, throughput and optionally money, e.g. `0,1,2`".to_owned()),
    }
}

pub(super) fn run(request: &Request, output: &Output) -> Result<()> {
    let outcome = choose(&request.arguments, &request.wants)?;
    output.present(&outcome, |outcome, page| {
        show(&outcome.plan, page);
        page.gap();
        page.line(&format!("plan: {}", outcome.file.display()));
        show_next_step(&outcome.plan, &outcome.file, page);
    })
}

/// Chooses by weights and limits alone, and writes the plan.
pub(super) fn execute(arguments: &Arguments) -> Result<Outcome> {
    choose(arguments, &Wants::default())
}

fn choose(arguments: &Arguments, wants: &Wants) -> Result<Outcome> {
    let profile = read_profile(&arguments.profile)?;
    all_different(&[("the profile", &arguments.profile), ("--output", &arguments.output)])?;
    let objective = wants.objective(&Objective {
        weights: arguments.weights,
        limits: Limits {
            max_storage_bytes: arguments.max_storage,
            max_prep_seconds: arguments.max_prep_time,
            lossless: arguments.lossless,
        },
        trainer_samples_per_second: arguments.trainer,
        ..Objective::default()
    })?;
    let plan = plan(&profile, &objective).map_err(|source| Error::Plan { about: String::new(), source })?;
    write_file(&arguments.output, plan.to_json().map_err(Error::plan(&arguments.output))?.as_bytes())?;
    Ok(Outcome { file: arguments.output.clone(), plan })
}

impl Outcome {
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// The profile in the file `path`.
pub(crate) fn read_profile(path: &Path) -> Result<Profile> {
    Profile::parse(&read_text("read the profile", path)?).map_err(Error::plan(path))
}

/// The plan in the file `path`.
pub(super) fn read_plan(path: &Path) -> Result<Plan> {
    Plan::parse(&read_text("read the plan", path)?).map_err(Error::plan(path))
}

fn show_next_step(plan: &Plan, path: &Path, page: &mut Page) {
    let path = quoted(path.display());
    if plan.split.keeps_files() {
        page.next_step("Next, load the source files (nothing has to be built):", &format!("forebay load {path}"));
    } else {
        page.next_step("Next, build the data set:", &format!("forebay build {path} -o dataset/"));
    }
}
