//! A plan as text.

use forebay_plan::{Caching, Plan, Summary, bound_there, bound_word, describe_machine, rate_with_spread, units};

use crate::output::{Align, Page, Table};

/// The choice, the ranking, and the bottleneck of each strategy.
pub(crate) fn show(plan: &Plan, page: &mut Page) {
    page.heading(&format!("Recommended strategy: `{}`", plan.chosen));
    page.paragraph(&plan.reason);
    page.paragraph(&measured(plan));
    page.warnings(&plan.notices);
    page.gap();
    page.table(&if plan.other_machine.is_some() { forecasts(plan) } else { measurements(plan) });
    if plan.prices.is_some() {
        page.heading("Costs");
        page.table(&costs(plan));
    }
    page.heading("Bottlenecks");
    for ranked in &plan.ranking {
        let out = ranked.excluded.as_ref().map_or_else(String::new, |excluded| format!("; excluded: {excluded}"));
        page.hanging("- ", &format!("{}: {}{out}", ranked.summary.name, ranked.sentence));
    }
    if !plan.compressions.is_empty() {
        page.heading("Compression");
        for choice in &plan.compressions {
            page.hanging("- ", &format!("{}: {}", choice.strategy, choice.sentence));
        }
    }
    if let Some(machine) = &plan.other_machine {
        page.heading("The other machine");
        page.paragraph(&format!("{}.", describe_machine(machine)));
        for assumption in &machine.assumptions {
            page.hanging("- ", &format!("Assumed: {assumption}."));
        }
    }
}

/// Under what it was measured.
fn measured(plan: &Plan) -> String {
    let threads = units::counted(plan.threads as u64, "thread");
    format!("Measured on storage `{}` with {threads}, {}.", plan.storage, plan.caching.words())
}

fn dash() -> String {
    "-".to_owned()
}

fn score(score: Option<f64>) -> String {
    score.map_or_else(|| "out".to_owned(), |score| format!("{score:.2}"))
}

/// The columns that tables of measured strategies have in common.
pub(crate) const FIGURES: [(&str, Align); 6] = [
    ("samples/s", Align::Right),
    ("storage", Align::Right),
    ("prepare", Align::Right),
    ("predicted", Align::Right),
    ("error", Align::Right),
    ("bound by", Align::Left),
];

/// Of [`FIGURES`], what matters less than the interval of a prediction, which `samples/s` is then.
pub(crate) const LESSER: [&str; 2] = ["predicted", "error"];

/// The cells of [`FIGURES`].
pub(crate) fn figures(summary: &Summary, caching: Caching) -> [String; 6] {
    [
        rate_with_spread(summary),
        units::bytes(summary.storage_bytes_total as f64),
        units::seconds(summary.prep_seconds_total),
        summary.predicted_samples_per_second.map_or_else(dash, units::number),
        summary.prediction_error.map_or_else(dash, units::signed_percent),
        bound_word(summary.bound_by, caching).to_owned(),
    ]
}

fn measurements(plan: &Plan) -> Table {
    let first = [("strategy", Align::Left), ("score", Align::Right)];
    let mut table = Table::new(&[&first[..], &FIGURES].concat());
    table.leave_out_before_intervals(&LESSER);
    for ranked in &plan.ranking {
        let summary = &ranked.summary;
        let first = [summary.name.clone(), score(ranked.score)];
        table.row([&first[..], &figures(summary, plan.caching)].concat(), summary.name == plan.chosen);
    }
    table
}

/// The measurements here next to the forecasts there.
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
    // Who pays for no requests need not hear of them.
    let columns = if plan.prices.is_some_and(|prices| prices.request > 0.0) { 6 } else { 5 };
    let headings = [
        ("strategy", Align::Left),
        ("total", Align::Right),
        ("prepare", Align::Right),
        ("keep", Align::Right),
        ("train", Align::Right),
        ("requests", Align::Right),
    ];
    let mut table = Table::new(&headings[..columns]);
    for ranked in &plan.ranking {
        let Some(cost) = ranked.cost else { continue };
        let amounts = [cost.total, cost.prep, cost.storage, cost.training, cost.requests].map(units::number);
        let cells = std::iter::once(ranked.summary.name.clone()).chain(amounts).take(columns);
        table.row(cells.collect::<Vec<_>>(), ranked.summary.name == plan.chosen);
    }
    table
}
