//! A study: training results with variants of the data, caches and regimens, as one page.

use std::collections::BTreeMap;

use forebay_plan::units;
use serde::Deserialize;

use super::bars::{Bar, Bars, Panel, Row};
use super::lines::{Across, LinePanel, Lines, Trace, Weight};
use super::plots::{Figure, Grid, Plot, or_dash};
use super::scale::Quantity;
use super::scatter::{Dot, Scatter, Side};
use super::svg::Key;
use super::{Finding, page, sections};

/// What was measured of each variant.
#[derive(Debug, Clone, Deserialize)]
pub struct Study {
    /// Each variant or regimen, with each cache; best quality first.
    pub rows: Vec<StudyRow>,
}

/// A variant of the data or a regimen, with one cache.
#[derive(Debug, Clone, Deserialize)]
pub struct StudyRow {
    /// What it is called.
    pub name: String,
    /// What is cached between epochs, if the study is about that.
    pub cache: Option<String>,
    /// Samples per second of the training.
    pub samples_per_second: f64,
    /// Their standard deviation over several runs.
    pub samples_per_second_std: Option<f64>,
    /// The share of the time in which the training waited for batches.
    pub stall_share: f64,
    /// How long an epoch took.
    pub epoch_seconds: f64,
    /// The size of the data; of a regimen, of an epoch on average.
    pub bytes: Option<u64>,
    /// The bottleneck.
    pub bound_by: Option<String>,
    /// What the training reached: `accuracy` and others.
    pub metrics: BTreeMap<String, f64>,
    /// The standard deviation of the accuracy over several runs.
    pub accuracy_std: Option<f64>,
    /// Every epoch of one run.
    pub history: Vec<StudyEpoch>,
}

/// Accuracy over training: the number of an epoch, the seconds until its end, the accuracy there.
type Point = (f64, f64, f64);

/// The points of a row, and the number of its color.
type Curve<'a> = (usize, &'a StudyRow, Vec<Point>);

/// One epoch.
#[derive(Debug, Clone, Deserialize)]
pub struct StudyEpoch {
    /// How long its batches took.
    pub seconds: f64,
    /// The accuracy after it, where it was reported.
    pub accuracy: Option<f64>,
}

impl StudyRow {
    fn accuracy(&self) -> Option<f64> {
        self.metrics.get("accuracy").copied().filter(|accuracy| accuracy.is_finite())
    }
}

impl Study {
    /// The page.
    pub fn page(&self, version: &str) -> String {
        let remarks = self.remarks();
        let mut body = vec![sections::finding(&Finding { experiment: "study", remarks: &remarks })];
        let plots = [self.trade_off(), Some(self.rates()), self.progress()];
        body.extend(plots.into_iter().flatten().map(|plot| plot.html("")));
        body.push(sections::section("All numbers", &self.numbers().html()));
        page("study", &body, version)
    }

    /// The name of a row, with its cache where there are several.
    fn label(&self, row: &StudyRow) -> String {
        let several = self.rows.iter().any(|other| other.cache != self.rows[0].cache);
        match &row.cache {
            Some(cache) if several => format!("{}, {cache}", row.name),
            _ => row.name.clone(),
        }
    }

    fn fastest(&self) -> Option<&StudyRow> {
        self.rows.iter().max_by(|one, other| one.samples_per_second.total_cmp(&other.samples_per_second))
    }

    fn most_accurate(&self) -> Option<(&StudyRow, f64)> {
        let rows = self.rows.iter().filter_map(|row| Some((row, row.accuracy()?)));
        // The first of equal ones: quality falls along the rows.
        rows.rev().max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn remarks(&self) -> Vec<String> {
        let (Some(first), Some(fastest)) = (self.rows.first(), self.fastest()) else {
            return vec!["No runs".to_owned()];
        };
        let mut remarks = vec![format!(
            "`{}` is the fastest: {}, {} times `{}`",
            self.label(fastest),
            units::samples_per_second(fastest.samples_per_second),
            units::number(fastest.samples_per_second / first.samples_per_second),
            self.label(first),
        )];
        if let Some((best, accuracy)) = self.most_accurate() {
            let most = units::percent(accuracy);
            let rate = units::samples_per_second(best.samples_per_second);
            remarks.push(format!("`{}` is the most accurate: {most} at {rate}.", self.label(best)));
            if let Some(reached) = fastest.accuracy().filter(|_| !std::ptr::eq(best, fastest)) {
                remarks.push(format!("The fastest reaches {}.", units::percent(reached)));
            }
        }
        let spread = "Accuracies of one run each differ by chance: compare several repeats before you rely on a small difference.";
        if self.rows.iter().any(|row| row.accuracy().is_some() && row.accuracy_std.is_none()) {
            remarks.push(spread.to_owned());
        }
        remarks
    }

    /// Accuracy over throughput; nothing where no accuracy is known.
    fn trade_off(&self) -> Option<Plot> {
        let known: Vec<(usize, &StudyRow, f64)> =
            self.rows.iter().enumerate().filter_map(|(at, row)| Some((at, row, row.accuracy()?))).collect();
        if known.is_empty() {
            return None;
        }
        let beaten = |row: &StudyRow, accuracy: f64| {
            known.iter().any(|(_, other, theirs)| {
                other.samples_per_second >= row.samples_per_second
                    && *theirs >= accuracy
                    && (other.samples_per_second > row.samples_per_second || *theirs > accuracy)
            })
        };
        let dot = |(series, row, accuracy): &(usize, &StudyRow, f64)| Dot {
            label: self.label(row),
            across: row.samples_per_second,
            upwards: *accuracy,
            series: *series,
            // The front of a plot in which less is better across; here more is, in both.
            front: false,
            best: !beaten(row, *accuracy),
            tip: format!(
                "{}: {} at {}",
                self.label(row),
                units::percent(*accuracy),
                units::samples_per_second(row.samples_per_second)
            ),
        };
        let row = |(_, row, accuracy): &(usize, &StudyRow, f64)| {
            let spread = or_dash(row.accuracy_std, units::percent);
            vec![self.label(row), units::number(row.samples_per_second), units::percent(*accuracy), spread]
        };
        Some(Plot {
            id: "trade-off",
            title: "Throughput and accuracy",
            note: "Right is faster, up is more accurate. Those with a ring are beaten by none in both.".to_owned(),
            figure: Figure::Scatter(Scatter {
                across: Side { quantity: Quantity::Rate, name: "" },
                upwards: Side { quantity: Quantity::Share, name: "accuracy" },
                keys: Vec::new(),
                level: None,
                points: known.iter().map(dot).collect(),
            }),
            grid: Grid::new(&["variant", "samples/s", "accuracy", "±"], known.iter().map(row).collect(), None),
        })
    }

    /// Throughput, and the share of time that the training waited.
    fn rates(&self) -> Plot {
        let panel =
            |title: &str, quantity: Quantity, value: fn(&StudyRow) -> f64, spread: fn(&StudyRow) -> Option<f64>| {
                let row = |(series, row): (usize, &StudyRow)| {
                    let (value, label) = (value(row), self.label(row));
                    let tip = format!("{label}: {}", quantity.text(value));
                    let mut bar = Bar::simple(value, series, quantity.short(value), tip);
                    bar.spread = spread(row).map(|spread| ((value - spread).max(0.0), value + spread));
                    Row { label, best: false, bars: vec![bar] }
                };
                Panel { title: title.to_owned(), quantity, rows: self.rows.iter().enumerate().map(row).collect() }
            };
        let rate = panel("Throughput", Quantity::Rate, |row| row.samples_per_second, |row| row.samples_per_second_std);
        let stalls = panel("Waiting for batches", Quantity::Share, |row| row.stall_share, |_| None);
        let row = |row: &StudyRow| {
            vec![
                self.label(row),
                units::number(row.samples_per_second),
                units::percent(row.stall_share),
                row.bound_by.clone().unwrap_or_else(|| "–".to_owned()),
            ]
        };
        Plot {
            id: "throughput",
            title: "Throughput and stalls",
            note: "Samples per second of the training, and the share of its time in which it waited for a batch. The first epoch is left out \
                   where there are several."
                .to_owned(),
            figure: Figure::Bars(Bars { panels: vec![rate, stalls], legend: Vec::new() }),
            grid: Grid::new(
                &["variant", "samples/s", "stalled", "bound by"],
                self.rows.iter().map(row).collect(),
                None,
            ),
        }
    }

    /// Accuracy over epochs and over time; nothing where it was not reported by epoch.
    fn progress(&self) -> Option<Plot> {
        let curve = |row: &StudyRow| {
            let mut seconds = 0.0;
            let point = |(epoch, measured): (usize, &StudyEpoch)| {
                seconds += measured.seconds;
                Some(((epoch + 1) as f64, seconds, measured.accuracy.filter(|accuracy| accuracy.is_finite())?))
            };
            row.history.iter().enumerate().filter_map(point).collect::<Vec<Point>>()
        };
        let curves: Vec<Curve> = self.rows.iter().enumerate().map(|(at, row)| (at, row, curve(row))).collect();
        if curves.iter().all(|(.., points)| points.len() < 2) {
            return None;
        }
        let panel = |title: &str, x: Across, by_time: bool| {
            let trace = |(series, row, points): &Curve| Trace {
                series: *series,
                points: points
                    .iter()
                    .map(|(epoch, seconds, accuracy)| {
                        let tip = format!(
                            "{}: {} after epoch {epoch}, {}",
                            self.label(row),
                            units::percent(*accuracy),
                            units::seconds(*seconds)
                        );
                        (if by_time { *seconds } else { *epoch }, *accuracy, tip)
                    })
                    .collect(),
                tip: self.label(row),
                weight: Weight::Even,
            };
            let lines = curves.iter().map(trace).collect();
            LinePanel { title: title.to_owned(), x, y: Quantity::Share, lines, ideal: false, marks: true }
        };
        let row = |(_, row, points): &Curve| {
            let accuracies = points.iter().map(|(.., accuracy)| units::percent(*accuracy));
            vec![self.label(row), accuracies.collect::<Vec<_>>().join(", ")]
        };
        Some(Plot {
            id: "progress",
            title: "Accuracy over epochs and time",
            note: "One run of each. By epochs, quality makes the difference; by time, so does throughput.".to_owned(),
            figure: Figure::Lines(Lines {
                panels: vec![
                    panel("By epochs", Across::Number("epochs"), false),
                    panel("By time", Across::Seconds, true),
                ],
                legend: curves.iter().map(|(series, row, _)| (Key::Series(*series), self.label(row))).collect(),
            }),
            grid: Grid::new(&["variant", "accuracy after each epoch"], curves.iter().map(row).collect(), None),
        })
    }

    fn numbers(&self) -> Grid {
        let others: Vec<&String> = self.rows.first().map_or_else(Vec::new, |row| row.metrics.keys().collect());
        let mut head = vec!["variant", "samples/s", "stalled", "epoch", "data", "bound by"];
        head.extend(others.iter().map(|name| name.as_str()));
        let row = |row: &StudyRow| {
            let mut cells = vec![
                self.label(row),
                units::number(row.samples_per_second),
                units::percent(row.stall_share),
                units::seconds(row.epoch_seconds),
                or_dash(row.bytes, |bytes| units::bytes(bytes as f64)),
                row.bound_by.clone().unwrap_or_else(|| "–".to_owned()),
            ];
            cells.extend(
                others.iter().map(|name| or_dash(row.metrics.get(*name).copied(), |value| format!("{value:.4}"))),
            );
            cells
        };
        Grid::new(&head, self.rows.iter().map(row).collect(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study() -> Study {
        let row = |name: &str, cache: &str, rate: f64, accuracy: f64| {
            serde_json::json!({
                "name": name, "cache": cache, "samples_per_second": rate, "samples_per_second_std": 3.0, "stall_share": 0.25,
                "epoch_seconds": 2.0, "bytes": 1_000_000, "bound_by": "cpu", "metrics": {"accuracy": accuracy, "loss": 0.5},
                "accuracy_std": null, "repeats": 1,
                "history": [{"seconds": 2.0, "accuracy": accuracy / 2.0}, {"seconds": 1.0, "accuracy": accuracy}],
            })
        };
        let rows = [
            row("original", "page", 100.0, 0.8),
            row("<q10>", "page", 300.0, 0.7),
            row("original", "minio:1MB", 150.0, 0.8),
        ];
        serde_json::from_value(serde_json::json!({ "rows": rows })).expect("rows of a study")
    }

    #[test]
    fn a_study_is_a_page_of_its_finding_and_plots() {
        let page = study().page("1.2.3");
        for id in ["trade-off", "throughput", "progress"] {
            assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        assert!(page.contains("is the fastest: 300 samples/s, 3.00 times <code>original, page</code>"));
        assert!(page.contains("<code>original, page</code> is the most accurate: 80 %"), "of two alike, the first");
        assert!(page.contains("&lt;q10&gt;, page") && !page.contains("<q10>"), "names are escaped");
        assert!(page.contains("by chance"), "one run each");
        assert_eq!(page.matches("<svg").count(), 6, "each plot for desks and phones");
    }

    #[test]
    fn without_accuracies_there_is_throughput_and_without_runs_a_word() {
        let mut study = study();
        for row in &mut study.rows {
            row.metrics.clear();
            row.history.clear();
        }
        let page = study.page("1.2.3");
        assert!(page.contains("id=\"throughput\"") && !page.contains("id=\"trade-off\"") && !page.contains("accurate"));
        study.rows.clear();
        assert!(study.page("1.2.3").contains("No runs"));
    }
}
