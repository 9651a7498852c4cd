//! The system over time: CPU, disk and memory while each strategy ran.

use forebay_plan::{StrategyProfile, SystemSample, units};

use super::super::html::code;
use super::super::lines::{Across, LinePanel, Lines, Trace, Weight};
use super::super::scale::Quantity;
use super::super::svg::Key;
use super::{Figure, Plot, Subject};

/// A metric: its name, its unit, and where to find it.
type Metric = (&'static str, Quantity, fn(&SystemSample) -> f64);

const METRICS: [Metric; 4] = [
    ("CPU busy", Quantity::Share, |sample| sample.cpu_user + sample.cpu_system),
    ("CPU waiting for storage", Quantity::Share, |sample| sample.cpu_wait),
    ("Disk reads", Quantity::BytesPerSecond, |sample| sample.disk_read_bytes_per_second),
    ("Memory in the page cache", Quantity::Bytes, |sample| sample.memory_cached_bytes as f64),
];

/// The samples of the run that has the most of them.
fn longest_run(strategy: &StrategyProfile) -> Vec<&SystemSample> {
    let of_run = |run: u32| strategy.system.iter().filter(|sample| sample.run == run).collect::<Vec<_>>();
    let mut runs: Vec<u32> = strategy.system.iter().map(|sample| sample.run).collect();
    runs.sort_unstable();
    runs.dedup();
    runs.into_iter()
        .map(of_run)
        .reduce(|best, next| if next.len() > best.len() { next } else { best })
        .unwrap_or_default()
}

impl Subject<'_> {
    /// `None` where no run was long enough to be looked at.
    pub(super) fn system(&self) -> Option<Plot> {
        let runs = self.profile.strategies.iter().map(|strategy| (strategy.name.as_str(), longest_run(strategy)));
        let runs: Vec<(&str, Vec<&SystemSample>)> = runs.filter(|(_, samples)| !samples.is_empty()).collect();
        if runs.is_empty() {
            return None;
        }
        let mean = |samples: &[&SystemSample], value: fn(&SystemSample) -> f64| {
            samples.iter().map(|sample| value(sample)).sum::<f64>() / samples.len() as f64
        };
        let panel = |&(title, quantity, value): &Metric| {
            let line = |(strategy, samples): &(&str, Vec<&SystemSample>)| Trace {
                series: self.series(strategy),
                points: samples.iter().map(|sample| (sample.seconds, value(sample), String::new())).collect(),
                tip: format!("{strategy}: {} on average", quantity.text(mean(samples, value))),
                weight: if self.is_chosen(strategy) { Weight::Strong } else { Weight::Faint },
            };
            LinePanel {
                title: title.to_owned(),
                x: Across::Seconds,
                y: quantity,
                lines: runs.iter().map(line).collect(),
                ideal: false,
                marks: false,
            }
        };
        let legend = runs.iter().map(|(strategy, _)| (Key::Series(self.series(strategy)), (*strategy).to_owned()));
        let row = |(strategy, samples): &(&str, Vec<&SystemSample>)| {
            let cells = METRICS.iter().map(|(_, quantity, value)| quantity.text(mean(samples, *value)));
            let length = samples.last().map_or(0.0, |sample| sample.seconds);
            let first = [(*strategy).to_owned(), units::seconds(length)];
            first.into_iter().chain(cells).collect()
        };
        let observed = runs.iter().any(|(strategy, _)| self.is_chosen(strategy));
        let name = code(&self.plan.chosen);
        let chosen = if observed {
            format!("The thick line is {name}.")
        } else {
            format!("No run of {name} was long enough to be looked at: raise <code>--seconds</code>.")
        };
        let mut head = vec!["strategy", "observed for"];
        head.extend(METRICS.iter().map(|(title, ..)| *title));
        Some(Plot {
            id: "system",
            title: "The system over time",
            note: format!(
                "The whole machine, ten times a second, during the longest observed run of each strategy, by time since its \
                 start. {chosen} With a throttled storage, the disk shows fewer reads, since the throttle waits instead. The table has means."
            ),
            figure: Figure::Lines(Lines { panels: METRICS.iter().map(panel).collect(), legend: legend.collect() }),
            grid: self.grid(&head, runs.iter().map(row).collect()),
        })
    }
}
