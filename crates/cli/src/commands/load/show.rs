//! What `forebay load` prints.

use forebay_engine::cores;
use forebay_engine::load::Cached;
use forebay_plan::{Stats, units};

use super::{FieldShape, Outcome, Streamed};
use crate::commands::show_skipped;
use crate::output::{Align, Page, Table};

/// The figures, per epoch where there are several.
pub(in crate::commands) fn show(outcome: &Outcome, page: &mut Page) {
    page.paragraph(&format!(
        "{} `{}` from {} on storage `{}` with {}:",
        if outcome.interrupted { "Interrupted while loading" } else { "Loaded" },
        outcome.strategy,
        outcome.source,
        outcome.storage,
        units::counted(outcome.threads as u64, "thread"),
    ));
    let batch: Vec<String> = outcome.batch.iter().map(FieldShape::describe).collect();
    let mut facts = vec![
        ("samples", units::count(outcome.samples)),
        ("time", units::seconds(outcome.seconds)),
        ("throughput", throughput(outcome.samples_per_second, &outcome.stats.steady, outcome.epochs.len())),
        (
            "read",
            format!(
                "{}, {}",
                units::bytes(outcome.bytes_read as f64),
                units::bytes_per_second(outcome.bytes_per_second)
            ),
        ),
        (
            "memory",
            format!(
                "peak {} of {}",
                units::bytes(outcome.memory_bytes_peak as f64),
                units::bytes(outcome.memory_bytes as f64)
            ),
        ),
        ("batches", units::count(outcome.batches)),
        ("batch", batch.join(", ")),
    ];
    if let Some(cached) = &outcome.cache {
        facts.insert(5, ("cache", describe_cached(cached)));
    }
    if let Some(seconds) = first_batch_seconds(&outcome.epochs) {
        let of = if outcome.epochs.len() > 1 { " (median of the epochs)" } else { "" };
        facts.insert(2, ("first batch", format!("after {}{of}", units::seconds(seconds))));
    }
    page.facts(&facts);
    if outcome.samples > 0 {
        page.gap();
        page.paragraph(&format!("This was {}.", outcome.stats.sentence(cores())));
    }
    for notice in &outcome.notices {
        page.hanging("note: ", notice);
    }
    // A rank may have no sample, too, or the last batch may be left out.
    if outcome.samples == 0 && outcome.skipped == 0 && outcome.bytes_read > 0 && !outcome.interrupted {
        let why = "the steps made no samples of what was read: a window may be longer than every recording";
        page.hanging("note: ", why);
    }
    if outcome.epochs.len() > 1 {
        page.gap();
        page.table(&epochs_table(&outcome.epochs));
    }
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}

/// Where epochs are faster than this once they have begun, their start is a part of the figure that is worth a word: it is what a profile leaves out.
const STARTS_MATTER: f64 = 1.1;

/// After the first batches there must be as much time as this, in all epochs together, for a rate.
const STEADY_SECONDS_MIN: f64 = 0.5;

/// Samples per second of so many epochs, their starts included; and without them, if that makes a difference.
fn throughput(samples_per_second: f64, steady: &Stats, epochs: usize) -> String {
    let all = units::samples_per_second(samples_per_second);
    let rate = steady.samples as f64 / steady.seconds;
    if steady.seconds < STEADY_SECONDS_MIN || rate < STARTS_MATTER * samples_per_second {
        return all;
    }
    let of = if epochs > 1 { " of each epoch" } else { "" };
    format!("{all}; {} after the first batch{of}", units::samples_per_second(rate))
}

/// When the first batch of an epoch was there: the epoch in the middle; `None` where none came.
fn first_batch_seconds(epochs: &[Streamed]) -> Option<f64> {
    let mut seconds: Vec<f64> = epochs.iter().filter_map(|epoch| epoch.first_batch_seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied()
}

/// What is cached in memory, and why not at a later stage.
fn describe_cached(cached: &Cached) -> String {
    let Cached { policy, reason, limit_bytes, stage, samples, bytes, hits, stages } = cached;
    let limit = units::bytes(*limit_bytes as f64);
    let reason = reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
    let Some(stage) = stage else {
        return if *limit_bytes == 0 {
            format!("{policy}{reason}")
        } else {
            format!("{policy}: empty, budget {limit}{reason}")
        };
    };
    let further = stages.last().filter(|last| last.stage != *stage);
    let further =
        further.map(|last| format!(" (`{}` would need about {})", last.stage, units::bytes(last.bytes as f64)));
    format!(
        "{policy}: {} as `{stage}`, {} of {limit}{}; {}{}",
        units::counted(*samples as u64, "sample"),
        units::bytes(*bytes as f64),
        further.unwrap_or_default(),
        units::counted(*hits, "hit"),
        reason,
    )
}

/// The epochs; of many the first and the last ones.
fn epochs_table(epochs: &[Streamed]) -> Table {
    const SHOWN_FIRST: usize = 5;
    const SHOWN_LAST: usize = 3;
    let columns = ["epoch", "samples", "skipped", "time", "first batch", "samples/s", "read", "per second"];
    let mut table = Table::new(&columns.map(|column| (column, Align::Right)));
    let shortened = epochs.len() > SHOWN_FIRST + SHOWN_LAST + 1;
    for (index, epoch) in epochs.iter().enumerate() {
        if shortened && (SHOWN_FIRST..epochs.len() - SHOWN_LAST).contains(&index) {
            if index == SHOWN_FIRST {
                table.row(columns.map(|_| "…".to_owned()), false);
            }
            continue;
        }
        table.row(
            [
                (epoch.epoch + 1).to_string(),
                units::count(epoch.samples),
                units::count(epoch.skipped),
                units::seconds(epoch.seconds),
                epoch.first_batch_seconds.map_or_else(|| "-".to_owned(), units::seconds),
                units::number(epoch.samples_per_second),
                units::bytes(epoch.bytes_read as f64),
                units::bytes_per_second(epoch.bytes_per_second),
            ],
            false,
        );
    }
    table
}

impl FieldShape {
    /// `image float32[64, 224, 224, 3]`.
    fn describe(&self) -> String {
        let dims = self.shape.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string()));
        format!("{} {}[{}]", self.field, self.dtype, dims.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_told_apart_where_they_matter() {
        let steady = |seconds, samples| Stats { seconds, samples, ..Stats::default() };
        assert_eq!(throughput(1_000.0, &steady(2.0, 2_050), 3), "1,000 samples/s");
        assert_eq!(
            throughput(1_000.0, &steady(2.0, 6_000), 3),
            "1,000 samples/s; 3,000 samples/s after the first batch of each epoch"
        );
        assert_eq!(
            throughput(1_000.0, &steady(2.0, 6_000), 1),
            "1,000 samples/s; 3,000 samples/s after the first batch"
        );
        assert_eq!(throughput(1_000.0, &steady(0.01, 60), 1), "1,000 samples/s", "too short for a rate");
        assert_eq!(throughput(0.0, &steady(0.0, 0), 0), units::samples_per_second(0.0));
    }
}
