//! The results of an experiment: the throughput of every strategy in every run, and the findings in words.

use forebay_plan::{Profile, StepCost, analyze, summarize, units};
use serde::Serialize;

use super::headline::{headline, more_compressions};
use super::planned::PlannedRun;
use super::{Kind, Outcome};
use crate::error::{Error, Result};
use crate::output::{Align, Page, Table};

/// One strategy in one run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    pub(super) run: String,
    pub(super) pipeline: String,
    pub(super) strategy: String,
    pub(super) samples_per_second: f64,
    /// Whether other programs disturbed every run, so that the throughput is the cost model's.
    pub(super) disturbed: bool,
    pub(super) bytes_per_sample: f64,
    pub(super) storage_bytes_total: u64,
    pub(super) prep_seconds_total: f64,
    /// Whether the strategy has a storage format, and what that saves in storage.
    pub(super) space_saving: Option<f64>,
    /// Throughput over that of the split as it is.
    pub(super) throughput_factor: Option<f64>,
    /// What its compression does alone, on one thread and in memory.
    pub(super) compression_ratio: Option<f64>,
    pub(super) compress_bytes_per_second: Option<f64>,
    pub(super) decompress_bytes_per_second: Option<f64>,
}

/// Every strategy of every run, in order.
pub(super) fn findings(runs: &[PlannedRun], profiles: &[Profile]) -> Result<Vec<Finding>> {
    let mut all = Vec::new();
    for (run, profile) in runs.iter().zip(profiles) {
        let planning = |source| Error::Plan { about: format!("{}: ", run.name), source };
        let analysis = analyze(profile, &forebay_plan::Objective::default()).map_err(planning)?;
        for (summary, analyzed) in summarize(profile, None).map_err(planning)?.into_iter().zip(analysis.strategies) {
            all.push(Finding {
                run: run.name.clone(),
                pipeline: run.pipeline.name().to_owned(),
                throughput_factor: analyzed.throughput_factor,
                compression_ratio: analyzed.compression_ratio,
                compress_bytes_per_second: analyzed.compress_bytes_per_second,
                decompress_bytes_per_second: analyzed.decompress_bytes_per_second,
                samples_per_second: summary.samples_per_second,
                disturbed: summary.disturbed,
                bytes_per_sample: analyzed.bytes_per_sample,
                storage_bytes_total: summary.storage_bytes_total,
                prep_seconds_total: summary.prep_seconds_total,
                space_saving: analyzed.space_saving,
                strategy: summary.name,
            });
        }
    }
    Ok(all)
}

fn finding<'f>(findings: &'f [Finding], run: &str, strategy: &str) -> Option<&'f Finding> {
    findings.iter().find(|finding| finding.run == run && finding.strategy == strategy)
}

fn rate_of(findings: &[Finding], run: &str, strategy: &str) -> Option<f64> {
    finding(findings, run, strategy).map(|finding| finding.samples_per_second)
}

/// The names in order, each once.
fn distinct<'f>(names: impl Iterator<Item = &'f str>) -> Vec<&'f str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// The findings in words, the main one first.
pub(super) fn remarks(kind: &Kind, runs: &[PlannedRun], profiles: &[Profile], findings: &[Finding]) -> Vec<String> {
    let mut remarks: Vec<String> = headline(kind, runs, profiles, findings).into_iter().collect();
    match kind {
        Kind::Caching(_) => remarks.extend(between(findings, "none", "application", "Keeping samples in memory")),
        Kind::Parallelism(_) => {
            let runs = distinct(findings.iter().map(|finding| finding.run.as_str()));
            if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
                remarks.extend(between(findings, first, last, &format!("Going from `{first}` to `{last}`")));
            }
        }
        Kind::Compression(_) => {
            remarks.extend(more_compressions(runs, profiles, findings));
            remarks.extend(runs.iter().filter_map(|run| most_saved(findings, run, runs.len() > 1)));
        }
        Kind::SampleSize(_) => remarks.extend(smallest_and_largest(findings)),
        Kind::Shuffle(_) => {
            remarks.extend(shuffle_cost(findings));
            remarks.extend(profiles.first().and_then(|profile| where_to_shuffle(&profile.steps)));
        }
        Kind::AddStep(_) => remarks.extend(step_cost(findings)),
        Kind::Strategies(_) | Kind::SampleCount(_) => {}
    }
    // What was found may be nothing but that.
    let after_first = remarks.len().min(1);
    remarks.splice(after_first..after_first, disturbance(findings));
    remarks
}

/// That other programs disturbed what was measured, where they did.
fn disturbance(findings: &[Finding]) -> Option<String> {
    let disturbed = findings.iter().filter(|finding| finding.disturbed).count();
    (disturbed > 0).then(|| {
        format!(
            "Other programs disturbed every run of {disturbed} of these {} measurements, marked `≈`: those figures are predicted by the cost \
             model, and may be wrong. Measure again on an idle machine (`--restart`) before you rely on them.",
            findings.len()
        )
    })
}

/// The throughput of a strategy, with a sign where it is the cost model's because others disturbed every run.
fn rate_words(finding: &Finding) -> String {
    let rate = units::number(finding.samples_per_second);
    if finding.disturbed { format!("≈ {rate}") } else { rate }
}

/// The strategies for which `to` gives the most and the least against `from`.
fn between(findings: &[Finding], from: &str, to: &str, doing: &str) -> Option<String> {
    let strategies = distinct(findings.iter().map(|finding| finding.strategy.as_str()));
    let mut factors: Vec<(&str, f64)> = strategies
        .into_iter()
        .filter_map(|strategy| Some((strategy, rate_of(findings, to, strategy)? / rate_of(findings, from, strategy)?)))
        .collect();
    factors.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let ((most, factor), (least, smallest)) = (*factors.first()?, *factors.last()?);
    let [factor, smallest] = [factor, smallest].map(units::number);
    let rest = if factors.len() > 1 { format!(", and `{least}` {smallest} times") } else { String::new() };
    Some(format!("{doing} gives `{most}` {factor} times the throughput{rest}."))
}

/// What the fastest strategy gives with the step, against the fastest without.
fn step_cost(findings: &[Finding]) -> Vec<String> {
    let fastest = |run: &str| {
        let rates = findings.iter().filter(|finding| finding.run == run);
        rates.max_by(|one, other| one.samples_per_second.total_cmp(&other.samples_per_second))
    };
    let runs = distinct(findings.iter().map(|finding| finding.run.as_str()));
    let Some((without, with)) = runs.split_first().and_then(|(first, rest)| Some((fastest(first)?, rest))) else {
        return Vec::new();
    };
    let remark = |run: &&str| {
        let found = fastest(run)?;
        let factor = units::number(found.samples_per_second / without.samples_per_second);
        Some(format!(
            "In run `{run}` the fastest (`{}`) gives {factor} times the fastest without the step.",
            found.strategy
        ))
    };
    with.iter().filter_map(remark).collect()
}

fn most_saved(findings: &[Finding], run: &PlannedRun, several: bool) -> Option<String> {
    let saved = |finding: &&Finding| finding.space_saving.unwrap_or(f64::MIN);
    let best = findings.iter().filter(|finding| finding.run == run.name && finding.space_saving.is_some());
    let best = best.max_by(|one, other| saved(one).total_cmp(&saved(other)))?;
    let plain = best.strategy.split('+').next().unwrap_or_default();
    let factor = best.samples_per_second / rate_of(findings, &best.run, plain)?;
    let place = if several { format!("In `{}`, ", best.pipeline) } else { String::new() };
    Some(format!(
        "{place}`{}` saves the most storage, {}, at {} times the throughput of `{plain}`.",
        best.strategy,
        units::percent(best.space_saving?),
        units::number(factor)
    ))
}

fn smallest_and_largest(findings: &[Finding]) -> Option<String> {
    let by_size = |one: &&Finding, other: &&Finding| one.bytes_per_sample.total_cmp(&other.bytes_per_sample);
    let files = || findings.iter().filter(|finding| finding.strategy == "concatenated");
    let (small, large) = (files().min_by(by_size)?, files().max_by(by_size)?);
    let rate = |finding: &Finding| units::bytes_per_second(finding.samples_per_second * finding.bytes_per_sample);
    Some(format!(
        "Of `concatenated`, samples of {} come at {}, samples of {} at {}.",
        units::bytes(small.bytes_per_sample),
        rate(small),
        units::bytes(large.bytes_per_sample),
        rate(large)
    ))
}

/// What a sample costs more when it is shuffled, by strategy: the mean over the windows.
fn shuffle_cost(findings: &[Finding]) -> Vec<String> {
    let mut remarks = Vec::new();
    for strategy in distinct(findings.iter().map(|finding| finding.strategy.as_str())) {
        let Some(in_order) = rate_of(findings, "in-order", strategy) else { continue };
        let shuffled = findings.iter().filter(|finding| finding.strategy == strategy && finding.run != "in-order");
        let extra: Vec<f64> = shuffled.map(|finding| finding.samples_per_second.recip() - in_order.recip()).collect();
        let mean = extra.iter().sum::<f64>() / extra.len().max(1) as f64;
        remarks.push(if mean > 0.0 {
            format!("Shuffling costs `{strategy}` {} a sample, in the mean of the windows.", units::seconds(mean))
        } else {
            format!("Shuffling costs `{strategy}` nothing that these runs show.")
        });
    }
    remarks
}

/// A buffer of samples is smallest where samples are smallest.
fn where_to_shuffle(steps: &[StepCost]) -> Option<String> {
    let small = steps.iter().min_by(|one, other| one.bytes_out.total_cmp(&other.bytes_out))?;
    let last = steps.last()?;
    Some(format!(
        "Samples are smallest after `{}` ({}; at the end {}): a trainer that shuffles in a buffer of its own does so there. \
         Forebay shuffles what it reads, at the split.",
        small.name,
        units::bytes(small.bytes_out),
        units::bytes(last.bytes_out)
    ))
}

pub(super) fn show(outcome: &Outcome, page: &mut Page) {
    page.heading(&format!("Experiment {}: {}", outcome.experiment, units::counted(outcome.runs.len() as u64, "run")));
    let Some(seconds) = outcome.seconds else {
        page.table(&plan_table(outcome));
        page.gap();
        page.paragraph(&format!(
            "It should take {}. It can be stopped at any time: finished runs are kept.",
            units::seconds(outcome.estimated_seconds)
        ));
        return page.next_step("Next:", "the same command without --dry-run");
    };
    if let Some(found) = outcome.remarks.first() {
        page.paragraph(found);
        page.gap();
    }
    if outcome.experiment == "compression" {
        page.table(&formats_table(outcome));
    } else {
        page.paragraph("Samples per second that reach the trainer, by strategy and run:");
        page.table(&rates_table(outcome));
    }
    page.gap();
    for remark in outcome.remarks.iter().skip(1) {
        page.hanging("- ", remark);
    }
    page.gap();
    let kept = outcome.runs.iter().filter(|run| run.reused).count();
    let were = if kept == 1 { "was" } else { "were" };
    let kept =
        if kept > 0 { format!(", {} {were} there already", units::counted(kept as u64, "run")) } else { String::new() };
    let mut facts = vec![(
        "took",
        format!("{} (estimated {}){kept}", units::seconds(seconds), units::seconds(outcome.estimated_seconds)),
    )];
    facts.push(("profiles", format!("{}/*.json", outcome.folder.display())));
    facts.extend(outcome.table.as_ref().map(|path| ("table", path.display().to_string())));
    facts.extend(outcome.report.as_ref().map(|path| ("report", format!("{} (open it in a browser)", path.display()))));
    page.facts(&facts);
}

fn plan_table(outcome: &Outcome) -> Table {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("strategies", Align::Right),
        ("should take", Align::Right),
        ("", Align::Left),
    ]);
    for run in &outcome.runs {
        let state = if run.reused { "done" } else { "" };
        let time = units::seconds(run.estimated_seconds);
        table.row([run.name.clone(), run.strategies.to_string(), time, state.to_owned()], false);
    }
    table
}

/// A row for each strategy and a column for each run, or the other way around where there are more runs.
fn rates_table(outcome: &Outcome) -> Table {
    let runs: Vec<&str> = outcome.runs.iter().map(|run| run.name.as_str()).collect();
    let strategies = distinct(outcome.findings.iter().map(|finding| finding.strategy.as_str()));
    let turned = runs.len() > strategies.len().max(4);
    let (what, rows, columns) = if turned { ("run", &runs, &strategies) } else { ("strategy", &strategies, &runs) };
    let head = std::iter::once((what, Align::Left)).chain(columns.iter().map(|&name| (name, Align::Right)));
    let mut table = Table::new(&head.collect::<Vec<_>>());
    for &row in rows {
        let cell = |&column: &&str| {
            let (run, strategy) = if turned { (row, column) } else { (column, row) };
            finding(&outcome.findings, run, strategy).map_or_else(|| "-".to_owned(), rate_words)
        };
        table.row(std::iter::once(row.to_owned()).chain(columns.iter().map(cell)).collect::<Vec<_>>(), false);
    }
    table
}

/// What each storage format does alone, and what it saves, gains and costs.
fn formats_table(outcome: &Outcome) -> Table {
    let several = outcome.runs.len() > 1;
    let head = [
        ("strategy", Align::Left),
        ("ratio", Align::Right),
        ("compress", Align::Right),
        ("decompress", Align::Right),
        ("samples/s", Align::Right),
        ("gain", Align::Right),
        ("storage", Align::Right),
        ("saved", Align::Right),
        ("prepare", Align::Right),
    ];
    let first = [("pipeline", Align::Left)];
    let mut table = Table::new(&[&first[..usize::from(several)], &head].concat());
    let dash = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), text);
    for finding in &outcome.findings {
        let cells = [
            finding.strategy.clone(),
            dash(finding.compression_ratio, units::number),
            dash(finding.compress_bytes_per_second, units::bytes_per_second),
            dash(finding.decompress_bytes_per_second, units::bytes_per_second),
            rate_words(finding),
            dash(finding.throughput_factor, |factor| format!("{}×", units::number(factor))),
            units::bytes(finding.storage_bytes_total as f64),
            dash(finding.space_saving, units::percent),
            units::seconds(finding.prep_seconds_total),
        ];
        let first = [finding.pipeline.clone()];
        table.row([&first[..usize::from(several)], &cells].concat(), false);
    }
    table
}
