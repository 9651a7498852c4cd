//! `forebay plan`: choose a strategy, and say what binds each.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_plan::{Limits, Objective, Plan, Profile, Weights, plan, units};
use serde::Serialize;

use super::profile::{bound_by, rate_with_spread, signed_percent};
use super::read_text;
use crate::arguments::{duration_seconds, size_bytes};
use crate::error::{Error, Result};
use crate::output::{Align, Output, Page, Table, write_file};

const EXAMPLES: &str = "\
Examples:
  forebay plan profile.json
  forebay plan profile.json --weights 0,1,2 --max-storage 500GB
  forebay plan profile.json --max-prep-time 2h --trainer 1200 -o small.json

Preparation time, storage and throughput are each scaled to 0..1 (1 is best)
over the strategies within the limits; the score is their weighted mean. Limits
are for the whole data set, extrapolated from the samples that were measured.";

/// Choose the best strategy of a profile, under weights and limits
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The profile that `forebay profile` wrote
    pub(crate) profile: PathBuf,
    /// How much preparation time, storage and throughput count; only their ratios matter
    #[arg(long, value_name = "P,S,T", default_value = "0,0,1", value_parser = weights)]
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
    file: PathBuf,
    #[serde(flatten)]
    plan: Plan,
}

fn weights(text: &str) -> Result<Weights, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok(&[prep, storage, throughput]) => Ok(Weights { prep, storage, throughput }),
        _ => Err("write three numbers for preparation, storage and throughput, like `0,1,2`".to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let outcome = execute(arguments)?;
    output.present(&outcome, |outcome, page| {
        show(&outcome.plan, page);
        page.gap();
        page.line(&format!("plan: {}", outcome.file.display()));
        show_next_step(&outcome.plan, &outcome.file, page);
    })
}

/// Chooses, and writes the plan.
pub(super) fn execute(arguments: &Arguments) -> Result<Outcome> {
    let profile = read_profile(&arguments.profile)?;
    let objective = Objective {
        weights: arguments.weights,
        limits: Limits {
            storage_bytes_max: arguments.max_storage,
            prep_seconds_max: arguments.max_prep_time,
            lossless: arguments.lossless,
        },
        trainer_samples_per_second: arguments.trainer,
    };
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
pub(super) fn read_profile(path: &Path) -> Result<Profile> {
    Profile::parse(&read_text("read the profile", path)?).map_err(Error::plan(path))
}

/// The plan in the file `path`.
pub(super) fn read_plan(path: &Path) -> Result<Plan> {
    Plan::parse(&read_text("read the plan", path)?).map_err(Error::plan(path))
}

/// The choice, the ranking, and what binds each strategy.
pub(super) fn show(plan: &Plan, page: &mut Page) {
    page.heading(&format!("Keep `{}`", plan.chosen));
    page.paragraph(&plan.reason);
    page.gap();
    let mut table = Table::new(&[
        ("strategy", Align::Left),
        ("score", Align::Right),
        ("samples/s", Align::Right),
        ("storage", Align::Right),
        ("prepare", Align::Right),
        ("predicted", Align::Right),
        ("error", Align::Right),
        ("bound by", Align::Left),
    ]);
    for ranked in &plan.ranking {
        let summary = &ranked.summary;
        table.row(
            [
                summary.name.clone(),
                ranked.score.map_or_else(|| "out".to_owned(), |score| format!("{score:.2}")),
                rate_with_spread(summary),
                units::bytes(summary.storage_bytes_total as f64),
                units::seconds(summary.prep_seconds_total),
                summary.predicted_samples_per_second.map_or_else(|| "-".to_owned(), units::number),
                summary.prediction_error.map_or_else(|| "-".to_owned(), signed_percent),
                bound_by(summary.bound_by, plan.caching).to_owned(),
            ],
            summary.name == plan.chosen,
        );
    }
    page.table(&table);
    page.heading("What binds each");
    for ranked in &plan.ranking {
        let out = ranked.excluded.as_ref().map_or_else(String::new, |excluded| format!("; ruled out: {excluded}"));
        page.hanging("- ", &format!("{}: {}{out}", ranked.summary.name, ranked.sentence));
    }
}

fn show_next_step(plan: &Plan, path: &Path, page: &mut Page) {
    let path = path.display();
    if plan.split.position == 0 {
        page.next_step("Next: nothing needs to be built, load the files as they are:", &format!("forebay load {path}"));
    } else {
        page.next_step("Next, rewrite the data once:", &format!("forebay build {path} -o dataset/"));
    }
}
