//! Plots of one profile.

use forebay_plan::{Analyzed, Summary, units};

use super::super::bars::{Bar, Bars, Panel, Part, Row};
use super::super::html::escape;
use super::super::scale::Quantity;
use super::super::scatter::{Dot, Scatter, Side};
use super::super::svg::Key;
use super::{Figure, Plot, Subject, or_dash};

pub(super) fn name_of(one: &Analyzed) -> &str {
    &one.ranked.summary.name
}

impl Subject<'_> {
    pub(super) fn strategies(&self) -> &[Analyzed] {
        &self.analysis.strategies
    }

    pub(super) fn row(&self, label: &str, bars: Vec<Bar>) -> Row {
        Row { label: label.to_owned(), best: self.is_chosen(label), bars }
    }

    /// A panel with a bar for each strategy.
    fn panel(&self, title: &str, quantity: Quantity, series: usize, value: impl Fn(&Analyzed) -> f64) -> Panel {
        let row = |one: &Analyzed| {
            let (label, value) = (name_of(one), value(one));
            let tip = format!("{label}: {}", quantity.text(value));
            self.row(label, vec![Bar::simple(value, series, quantity.short(value), tip)])
        };
        Panel { title: title.to_owned(), quantity, rows: self.strategies().iter().map(row).collect() }
    }

    pub(super) fn storage_throughput(&self) -> Plot {
        let dot = |one: &Analyzed| {
            let summary = &one.ranked.summary;
            let (bytes, rate) = (summary.storage_bytes_total as f64, summary.samples_per_second);
            let front = if one.pareto { ", on the front" } else { "" };
            Dot {
                label: summary.name.clone(),
                across: bytes,
                upwards: rate,
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
        let row = |one: &Analyzed| {
            let summary = &one.ranked.summary;
            let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
            vec![
                summary.name.clone(),
                units::bytes(summary.storage_bytes_total as f64),
                units::number(summary.samples_per_second),
                units::seconds(summary.prep_seconds_total),
                yes(one.pareto_storage_throughput),
                yes(one.pareto),
            ]
        };
        Plot {
            id: "storage-throughput",
            title: "Storage and throughput",
            note: "Up is faster, left is smaller. A strategy that is not on the front is beaten by another one in both; the ring marks \
                   the recommended one."
                .to_owned(),
            figure: Figure::Scatter(Scatter {
                across: Side { quantity: Quantity::Bytes, name: "storage for all samples" },
                upwards: Side { quantity: Quantity::Rate, name: "" },
                level: None,
                keys: Vec::new(),
                points: self.strategies().iter().map(dot).collect(),
            }),
            grid: self.grid(
                &["strategy", "storage", "samples/s", "prepare", "on the front", "with preparation time"],
                self.strategies().iter().map(row).collect(),
            ),
        }
    }

    pub(super) fn throughput(&self) -> Plot {
        let bar = |one: &Analyzed| {
            let summary = &one.ranked.summary;
            let rate = summary.samples_per_second;
            let how = match summary.runs {
                _ if summary.disturbed => "by the cost model: other programs disturbed every run".to_owned(),
                0 => "by the cost model".to_owned(),
                runs => format!("measured over {}", units::counted(runs as u64, "run")),
            };
            let tip = format!("{}: {} {how}", summary.name, units::samples_per_second(rate));
            let series = if by_model(summary) { MODELED } else { 0 };
            let mut bar = Bar::simple(rate, series, about(summary), tip);
            bar.spread = spread(summary);
            bar.mark = summary.predicted_samples_per_second.map(|predicted| {
                let error = or_dash(summary.prediction_error, units::signed_percent);
                (
                    predicted,
                    format!("{}: {} predicted, error {error}", summary.name, units::samples_per_second(predicted)),
                )
            });
            self.row(&summary.name, vec![bar])
        };
        let rows = self.strategies().iter().map(bar).collect();
        let row = |one: &Analyzed| {
            let summary = &one.ranked.summary;
            vec![
                summary.name.clone(),
                about(summary),
                or_dash(spread(summary), |(least, most)| {
                    format!("{} to {}", units::number(least), units::number(most))
                }),
                or_dash(summary.predicted_samples_per_second, units::number),
                or_dash(summary.prediction_error, units::signed_percent),
                or_dash(summary.first_batch_seconds, units::seconds),
                or_dash(one.storage_samples_per_second, units::number),
                or_dash(one.deserialize_share, units::percent),
            ]
        };
        let mut legend = vec![
            (Key::Block(0), "measured".to_owned()),
            (Key::Spread, "slowest to fastest: of the runs, or by the model".to_owned()),
            (Key::Cross, "predicted".to_owned()),
        ];
        if self.strategies().iter().any(|one| by_model(&one.ranked.summary)) {
            legend.insert(1, (Key::Block(MODELED), "by the model: not run, or always disturbed".to_owned()));
        }
        Plot {
            id: "throughput",
            title: "Measured and predicted",
            note: "Samples per second that reach the trainer: measured, and what the cost model makes of the measured costs of the \
                   steps and the storage. More is better."
                .to_owned(),
            figure: Figure::Bars(Bars {
                panels: vec![Panel { title: String::new(), quantity: Quantity::Rate, rows }],
                legend,
            }),
            grid: self.grid(
                &[
                    "strategy",
                    "samples/s",
                    "runs",
                    "predicted",
                    "error",
                    "first batch",
                    "bandwidth allows",
                    "deserialize",
                ],
                self.strategies().iter().map(row).collect(),
            ),
        }
    }

    /// Storage, and next to it the time spent once and in every epoch, end to end as PRESTO draws them.
    pub(super) fn effort(&self) -> Plot {
        let times = |one: &Analyzed| {
            let summary = &one.ranked.summary;
            let part = |value: f64, series: usize, what: &str| Part {
                value,
                series,
                tip: format!("{}: {} {what}", summary.name, units::seconds(value)),
            };
            let (offline, online) = (summary.prep_seconds_total, summary.epoch_seconds_total);
            let parts = vec![part(offline, 4, "offline, once"), part(online, 0, "online, each epoch")];
            let text = format!("{} + {}", units::seconds(offline), units::seconds(online));
            self.row(&summary.name, vec![Bar { parts, text, spread: None, mark: None }])
        };
        let times = self.strategies().iter().map(times).collect();
        let panels = vec![
            self.panel("Storage", Quantity::Bytes, 3, |one| one.ranked.summary.storage_bytes_total as f64),
            Panel { title: "Time, offline and online".to_owned(), quantity: Quantity::Seconds, rows: times },
        ];
        let row = |one: &Analyzed| {
            let summary = &one.ranked.summary;
            vec![
                summary.name.clone(),
                units::bytes(summary.storage_bytes_total as f64),
                units::seconds(summary.prep_seconds_total),
                units::seconds(summary.epoch_seconds_total),
                or_dash(summary.break_even_epochs.filter(|_| !summary.split.keeps_files()), |epochs| {
                    units::counted(epochs, "epoch")
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
            id: "storage-prep",
            title: "Storage, preparation and epoch",
            note: format!("For all {}{scaled}. Less is better.", escape(&units::counted(samples, "sample"))),
            figure: Figure::Bars(Bars {
                panels,
                legend: vec![
                    (Key::Block(4), "offline: preparation, once".to_owned()),
                    (Key::Block(0), "online: each epoch".to_owned()),
                ],
            }),
            grid: self.grid(
                &["strategy", "storage", "prepare once", "one epoch", "pays off in"],
                self.strategies().iter().map(row).collect(),
            ),
        }
    }
}

/// The slowest and the fastest of several runs; without runs, the range of the cost model. One run shows no spread.
fn spread(summary: &Summary) -> Option<(f64, f64)> {
    let (least, most) = (summary.min_samples_per_second, summary.max_samples_per_second);
    (summary.runs != 1 && least < most).then_some((least, most))
}

/// The color of what no run says.
const MODELED: usize = 6;

/// Whether a throughput is the cost model's: nothing was run, or others disturbed every run.
fn by_model(summary: &Summary) -> bool {
    summary.disturbed || summary.runs == 0
}

/// A throughput, with a sign where it stands for runs that others disturbed: as in the table of the program.
fn about(summary: &Summary) -> String {
    let rate = units::number(summary.samples_per_second);
    if summary.disturbed { format!("≈ {rate}") } else { rate }
}
