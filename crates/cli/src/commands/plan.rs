//! `forebay plan`: choose a strategy, and say what binds each.

mod show;
mod wants;

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_plan::{Limits, Objective, Plan, Profile, Weights, plan};
use serde::Serialize;

use super::read_text;
use crate::arguments::{duration_seconds, size_bytes};
use crate::error::{Error, Result};
use crate::output::{Output, Page, all_different, write_file};

pub(crate) use show::{bound_there, describe, show};
pub(crate) use wants::Wants;

const EXAMPLES: &str = "\
Examples:
  forebay plan profile.json
  forebay plan profile.json --weights 0,1,2 --max-storage 500GB
  forebay plan profile.json --max-prep-time 2h --trainer 1200 -o small.json
  forebay plan profile.json --what-if cores=32,read=910MB/s,memory=80GB
  forebay plan profile.json --objective money --epochs 90 --months 6 \\
    --price cpu-hour=0.04,gb-month=0.02,accelerator-hour=2.5

Preparation time, storage, throughput and money are each scaled to 0..1 (1 is
best) over the strategies within the limits; the score is their weighted mean.
Limits are for the whole data set, extrapolated from the samples that were
measured. --what-if predicts by the cost model and lists what it assumes.";

/// Choose the best strategy of a profile, under weights and limits
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
    /// The profile that `forebay profile` wrote
    pub(crate) profile: PathBuf,
    /// How much preparation time, storage, throughput and (with --price) money count; only their ratios matter
    #[arg(long, value_name = "P,S,T[,M]", default_value = "0,0,1", value_parser = weights)]
    #[arg(conflicts_with = "objective")]
    pub(crate) weights: Weights,
    /// Rule out strategies that need more storage, such as 10GB
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) max_storage: Option<u64>,
    /// Rule out strategies that take longer to prepare, such as 2h
    #[arg(long, value_name = "TIME", value_parser = duration_seconds)]
    pub(crate) max_prep_time: Option<f64>,
    /// Rule out strategies that keep a lossy encoding of what the pipeline computes
    #[arg(long)]
    pub(crate) lossless: bool,
    /// How many samples per second the trainer takes: more throughput than that counts for nothing
    #[arg(long, value_name = "SAMPLES/S")]
    pub(crate) trainer: Option<f64>,
    /// Where the plan goes
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
        _ => Err("write three numbers for preparation, storage and throughput, like `0,1,2`, or a fourth for money"
            .to_owned()),
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
    let objective = wants.objective(Objective {
        weights: arguments.weights,
        limits: Limits {
            storage_bytes_max: arguments.max_storage,
            prep_seconds_max: arguments.max_prep_time,
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
    let path = path.display();
    if plan.split.keeps_files() {
        page.next_step("Next: nothing needs to be built, load the files as they are:", &format!("forebay load {path}"));
    } else {
        page.next_step("Next, rewrite the data once:", &format!("forebay build {path} -o dataset/"));
    }
}
