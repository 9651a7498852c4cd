//! What is measured and planned, in a few words: for tables and pages alike.

use crate::forecast::Forecast;
use crate::prediction::Bound;
use crate::profile::{Caching, StepCost};
use crate::summary::Summary;
use crate::units;
use crate::what_if::OtherMachine;

/// What limits a strategy on the other machine, in a word.
pub fn bound_there(there: &Forecast) -> &'static str {
    match there.prediction.bound_by {
        Bound::Storage if there.memory_bound => "memory",
        Bound::Storage => "disk",
        Bound::Cpu => "CPU",
        Bound::Trainer => "trainer",
        Bound::Unknown => "nothing",
    }
}

/// The other machine in a line.
pub fn describe_machine(machine: &OtherMachine) -> String {
    let trainer = machine
        .trainer_samples_per_second
        .map_or_else(String::new, |rate| format!(", a trainer at {}", units::samples_per_second(rate)));
    format!(
        "{} cores, {} of memory, storage with {} sequential and {} files/s, {} samples{trainer}",
        machine.cores,
        units::bytes(machine.memory_bytes as f64),
        units::bytes_per_second(machine.read_bytes_per_second),
        units::number(machine.files_per_second),
        units::count(machine.samples),
    )
}

/// Of each step its name, what it takes and gives, and when it runs.
pub fn step_cells(steps: &[StepCost]) -> Vec<Vec<String>> {
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

/// `1,789 ± 25` of several runs; without a spread where one run shows none; `1,789 (1,650-1,900)` by the cost model, with what it expects at
/// lower and upper bound, and `≈ 1,789 (1,650-1,900)` if it replaces runs that others disturbed.
pub fn rate_with_spread(summary: &Summary) -> String {
    let rate = units::number(summary.samples_per_second);
    match (summary.disturbed, summary.runs) {
        (true, _) => format!("≈ {rate}{}", interval(summary)),
        (false, 0) => format!("{rate}{}", interval(summary)),
        (false, 1) => rate,
        (false, _) => format!("{rate} ± {}", units::number(summary.samples_per_second_std)),
    }
}

/// ` (1,650-1,900)`; nothing where both ends say the same.
fn interval(summary: &Summary) -> String {
    let [least, most] = [summary.min_samples_per_second, summary.max_samples_per_second].map(units::number);
    if least == most { String::new() } else { format!(" ({least}-{most})") }
}

/// When the first batches came, in a sentence without a period: `first batches after 21.0 ms (`resized`) to 1.20 s (`unprocessed`)`; `None`
/// where nothing was run.
pub fn first_batches(summaries: &[Summary]) -> Option<String> {
    let known = || summaries.iter().filter_map(|summary| Some((summary.first_batch_seconds?, &summary.name)));
    let (soonest, soonest_name) = known().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let (latest, latest_name) = known().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let [soonest, latest] = [soonest, latest].map(units::seconds);
    Some(if soonest_name == latest_name {
        format!("First batches came after {soonest} (`{soonest_name}`)")
    } else {
        format!("First batches came after {soonest} (`{soonest_name}`) to {latest} (`{latest_name}`)")
    })
}

/// What limits a strategy, in a word.
pub fn bound_word(bound: Bound, caching: Caching) -> &'static str {
    match (bound, caching) {
        (Bound::Storage, Caching::System) => "memory",
        (Bound::Storage, _) => "disk",
        (Bound::Cpu, _) => "CPU",
        (Bound::Trainer, _) => "trainer",
        (Bound::Unknown, _) => "nothing",
    }
}
