//! A plan as text.

use forebay_plan::{Bound, Forecast, OtherMachine, Plan, units};

use crate::commands::profile::{bound_by, counted, rate_with_spread, signed_percent};
use crate::output::{Align, Page, Table};

/// The choice, the ranking, and what binds each strategy.
pub(crate) fn show(plan: &Plan, page: &mut Page) {
    page.heading(&format!("Keep `{}`", plan.chosen));
    page.paragraph(&plan.reason);
    page.paragraph(&measured(plan));
    page.warnings(&plan.notices);
    page.gap();
    page.table(&if plan.other_machine.is_some() { forecasts(plan) } else { measurements(plan) });
    if plan.prices.is_some() {
        page.heading("What each costs");
        page.table(&costs(plan));
    }
    page.heading("What binds each");
    for ranked in &plan.ranking {
        let out = ranked.excluded.as_ref().map_or_else(String::new, |excluded| format!("; ruled out: {excluded}"));
        page.hanging("- ", &format!("{}: {}{out}", ranked.summary.name, ranked.sentence));
    }
    if let Some(machine) = &plan.other_machine {
        page.heading("The other machine");
        page.paragraph(&format!("{}.", describe(machine)));
        for assumption in &machine.assumptions {
            page.hanging("- ", &format!("Assumed: {assumption}."));
        }
    }
}

/// Under what it was measured.
fn measured(plan: &Plan) -> String {
    let threads = counted(plan.threads as u64, "thread");
    format!("Measured on storage `{}` with {threads}, {}.", plan.storage, plan.caching.words())
}

fn dash() -> String {
    "-".to_owned()
}

fn score(score: Option<f64>) -> String {
    score.map_or_else(|| "out".to_owned(), |score| format!("{score:.2}"))
}

fn measurements(plan: &Plan) -> Table {
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
                score(ranked.score),
                rate_with_spread(summary),
                units::bytes(summary.storage_bytes_total as f64),
                units::seconds(summary.prep_seconds_total),
                summary.predicted_samples_per_second.map_or_else(dash, units::number),
                summary.prediction_error.map_or_else(dash, signed_percent),
                bound_by(summary.bound_by, plan.caching).to_owned(),
            ],
            summary.name == plan.chosen,
        );
    }
    table
}

/// What was measured here beside what is expected there.
fn forecasts(plan: &Plan) -> Table {
    let mut table = Table::new(&[
        ("strategy", Align::Left),
        ("score", Align::Right),
        ("here", Align::Right),
        ("there", Align::Right),
        ("model", Align::Right),
        ("cached", Align::Right),
        ("storage", Align::Right),
        ("prepare", Align::Right),
        ("bound by", Align::Left),
    ]);
    for ranked in &plan.ranking {
        let Some(there) = &ranked.forecast else { continue };
        table.row(
            [
                ranked.summary.name.clone(),
                score(ranked.score),
                units::number(there.measured_samples_per_second),
                units::number(there.expected_samples_per_second),
                there.prediction.samples_per_second.map_or_else(dash, units::number),
                units::percent(there.cache_hit_ratio),
                units::bytes(there.storage_bytes_total as f64),
                units::seconds(there.prep_seconds_total),
                bound_there(there).to_owned(),
            ],
            ranked.summary.name == plan.chosen,
        );
    }
    table
}

fn costs(plan: &Plan) -> Table {
    let mut table = Table::new(&[
        ("strategy", Align::Left),
        ("total", Align::Right),
        ("prepare", Align::Right),
        ("keep", Align::Right),
        ("train", Align::Right),
    ]);
    for ranked in &plan.ranking {
        let Some(cost) = ranked.cost else { continue };
        let [total, prepare, keep, train] =
            [cost.total, cost.preparation, cost.storage, cost.training].map(units::number);
        let name = ranked.summary.name.clone();
        table.row([name, total, prepare, keep, train], ranked.summary.name == plan.chosen);
    }
    table
}

/// What limits a strategy on the other machine, in a word.
pub(crate) fn bound_there(there: &Forecast) -> &'static str {
    match there.prediction.bound_by {
        Bound::Storage if there.memory_bound => "memory",
        Bound::Storage => "disk",
        Bound::Cpu => "processor",
        Bound::Trainer => "trainer",
        Bound::Unknown => "nothing",
    }
}

/// The other machine in a line.
pub(crate) fn describe(machine: &OtherMachine) -> String {
    let trainer = machine
        .trainer_samples_per_second
        .map_or_else(String::new, |rate| format!(", a trainer that takes {}", units::samples_per_second(rate)));
    format!(
        "{} cores, {} of memory, storage that gives {} in sequence and {} files/s, {} samples{trainer}",
        machine.cores,
        units::bytes(machine.memory_bytes as f64),
        units::bytes_per_second(machine.read_bytes_per_second),
        units::number(machine.files_per_second),
        units::count(machine.samples),
    )
}
