//! Plots of one profile.

use forebay_plan::{Analysed, StrategyProfile, units};

use super::super::bars::{Bar, Bars, Panel, Part, Row};
use super::super::html::escape;
use super::super::scale::Quantity;
use super::super::scatter::{Dot, Scatter};
use super::super::svg::Key;
use super::{Figure, Plot, Subject, or_dash};
use crate::commands::profile::{counted, signed_percent};

pub(super) fn name_of(one: &Analysed) -> &str {
    &one.ranked.summary.name
}

impl Subject<'_> {
    pub(super) fn strategies(&self) -> &[Analysed] {
        &self.analysis.strategies
    }

    pub(super) fn row(&self, label: &str, bars: Vec<Bar>) -> Row {
        Row { label: label.to_owned(), best: self.is_chosen(label), bars }
    }

    /// A panel with a bar for each strategy.
    fn panel(&self, title: &str, quantity: Quantity, series: usize, value: impl Fn(&Analysed) -> f64) -> Panel {
        let row = |one: &Analysed| {
            let (label, value) = (name_of(one), value(one));
            let tip = format!("{label}: {}", quantity.text(value));
            self.row(label, vec![Bar::simple(value, series, quantity.short(value), tip)])
        };
        Panel { title: title.to_owned(), quantity, rows: self.strategies().iter().map(row).collect() }
    }

    pub(super) fn storage_throughput(&self) -> Plot {
        let dot = |one: &Analysed| {
            let summary = &one.ranked.summary;
            let (bytes, rate) = (summary.storage_bytes_total as f64, summary.t4_samples_per_second);
            let front = if one.pareto { ", on the front" } else { "" };
            Dot {
                label: summary.name.clone(),
                storage_bytes: bytes,
                samples_per_second: rate,
                series: self.series(&summary.name),
                front: one.pareto_storage_throughput,
                best: self.is_chosen(&summary.name),
                tip: format!(
                    "{}: {}, {}, {} to prepare{front}",
                    summary.name,
                    units::samples_per_second(rate),
                    units::bytes(bytes),
                    units::seconds(summary.prep_seconds_total)
                ),
            }
        };
        let row = |one: &Analysed| {
            let summary = &one.ranked.summary;
            let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
            vec![
                summary.name.clone(),
                units::bytes(summary.storage_bytes_total as f64),
                units::number(summary.t4_samples_per_second),
                units::seconds(summary.prep_seconds_total),
                yes(one.pareto_storage_throughput),
                yes(one.pareto),
            ]
        };
        Plot {
            id: "storage-throughput",
            title: "Storage and throughput",
            note: "Up is faster, left is smaller. What is not on the front is beaten in both by another; the ring is the one to \
                   keep."
                .to_owned(),
            figure: Figure::Scatter(Scatter { points: self.strategies().iter().map(dot).collect() }),
            grid: self.grid(
                &["strategy", "storage", "samples/s", "prepare", "on the front", "with preparation time"],
                self.strategies().iter().map(row).collect(),
            ),
        }
    }

    pub(super) fn throughput(&self) -> Plot {
        let bar = |one: &Analysed| {
            let summary = &one.ranked.summary;
            let rate = summary.t4_samples_per_second;
            let how = match summary.runs {
                0 => "by the cost model".to_owned(),
                runs => format!("measured over {}", counted(runs as u64, "run")),
            };
            let tip = format!("{}: {} {how}", summary.name, units::samples_per_second(rate));
            let mut bar = Bar::simple(rate, 0, units::number(rate), tip);
            bar.spread = (summary.runs > 1).then_some((summary.t4_min, summary.t4_max));
            bar.mark = summary.predicted_samples_per_second.map(|predicted| {
                let error = or_dash(summary.prediction_error, signed_percent);
                (
                    predicted,
                    format!("{}: {} predicted, error {error}", summary.name, units::samples_per_second(predicted)),
                )
            });
            self.row(&summary.name, vec![bar])
        };
        let rows = self.strategies().iter().map(bar).collect();
        let row = |one: &Analysed| {
            let summary = &one.ranked.summary;
            let spread = (summary.runs > 1).then_some((summary.t4_min, summary.t4_max));
            vec![
                summary.name.clone(),
                units::number(summary.t4_samples_per_second),
                or_dash(spread, |(least, most)| format!("{} to {}", units::number(least), units::number(most))),
                or_dash(summary.predicted_samples_per_second, units::number),
                or_dash(summary.prediction_error, signed_percent),
                or_dash(one.max_samples_per_second, units::number),
                or_dash(one.deserialise_share, units::percent),
            ]
        };
        Plot {
            id: "throughput",
            title: "Measured and predicted",
            note: "Samples per second that reach the trainer: measured, and what the cost model makes of the measured costs of the \
                   steps and the storage. More is better."
                .to_owned(),
            figure: Figure::Bars(Bars {
                panels: vec![Panel { title: String::new(), quantity: Quantity::Rate, rows }],
                legend: vec![
                    (Key::Block(0), "measured".to_owned()),
                    (Key::Spread, "slowest to fastest run".to_owned()),
                    (Key::Cross, "predicted".to_owned()),
                ],
            }),
            grid: self.grid(
                &["strategy", "samples/s", "runs", "predicted", "error", "bandwidth allows", "taking records apart"],
                self.strategies().iter().map(row).collect(),
            ),
        }
    }

    pub(super) fn effort(&self) -> Plot {
        let panels = vec![
            self.panel("Storage", Quantity::Bytes, 3, |one| one.ranked.summary.storage_bytes_total as f64),
            self.panel("Preparation, once", Quantity::Seconds, 4, |one| one.ranked.summary.prep_seconds_total),
            self.panel("One epoch", Quantity::Seconds, 0, |one| one.ranked.summary.epoch_seconds_total),
        ];
        let row = |one: &Analysed| {
            let summary = &one.ranked.summary;
            vec![
                summary.name.clone(),
                units::bytes(summary.storage_bytes_total as f64),
                units::seconds(summary.prep_seconds_total),
                units::seconds(summary.epoch_seconds_total),
                or_dash(summary.break_even_epochs.filter(|_| !summary.split.keeps_files()), |epochs| {
                    counted(epochs, "epoch")
                }),
            ]
        };
        let (samples, measured) = (self.profile.data.samples, self.profile.method.sample_count);
        let scaled = if samples == measured {
            String::new()
        } else {
            format!(", in proportion from the {} that were measured", units::count(measured))
        };
        Plot {
            id: "storage-preparation",
            title: "Storage, preparation and epoch",
            note: format!("For all {}{scaled}. Less is better.", escape(&counted(samples, "sample"))),
            figure: Figure::Bars(Bars { panels, legend: Vec::new() }),
            grid: self.grid(
                &["strategy", "storage", "prepare once", "one epoch", "pays off in"],
                self.strategies().iter().map(row).collect(),
            ),
        }
    }

    pub(super) fn steps(&self) -> Plot {
        let profile = self.profile;
        let parts = |strategy: &StrategyProfile| {
            let first = profile.steps.len() - profile.online_steps(strategy).len();
            let apart = ("taking records apart".to_owned(), strategy.deserialise_cpu_seconds, 6);
            let steps = profile.online_steps(strategy).iter().enumerate();
            let steps = steps.map(|(at, step)| (step.name.clone(), step.cpu_seconds, step_series(first + at)));
            std::iter::once(apart).chain(steps).filter(|(_, seconds, _)| *seconds > 0.0).collect::<Vec<_>>()
        };
        let row = |strategy: &StrategyProfile| {
            let part = |(what, value, series): (String, f64, usize)| Part {
                value,
                series,
                tip: format!("{}: {what} {}", strategy.name, units::seconds(value)),
            };
            let parts: Vec<Part> = parts(strategy).into_iter().map(part).collect();
            let sum: f64 = parts.iter().map(|part| part.value).sum();
            self.row(&strategy.name, vec![Bar { parts, text: units::seconds(sum), spread: None, mark: None }])
        };
        let rows = profile.strategies.iter().map(row).collect();
        let legend = profile.steps.iter().enumerate().map(|(at, step)| {
            let random = if step.random { " (random)" } else { "" };
            (Key::Block(step_series(at)), format!("{}{random}", step.name))
        });
        let apart = (Key::Block(6), "taking records apart".to_owned());
        let cells = profile.steps.iter().map(|step| {
            let when = if step.random { "every epoch" } else { "once or every epoch" };
            vec![step.name.clone(), units::seconds(step.cpu_seconds), units::bytes(step.bytes_out), when.to_owned()]
        });
        Plot {
            id: "steps",
            title: "Work per sample, every epoch",
            note: "Processor time of one sample on one thread, by step: what each strategy leaves to every epoch. The table has what \
                   each step gives."
                .to_owned(),
            figure: Figure::Bars(Bars {
                panels: vec![Panel { title: String::new(), quantity: Quantity::Seconds, rows }],
                legend: std::iter::once(apart).chain(legend).collect(),
            }),
            grid: self.grid(&["step", "processor time", "gives", "runs"], cells.collect()),
        }
    }
}

/// The colours of steps leave out the grey of taking records apart.
fn step_series(step: usize) -> usize {
    [0, 1, 2, 3, 4, 5, 7][step % 7]
}
