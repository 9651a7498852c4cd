//! Plots of several profiles of a pipeline: caching, threads, sample counts, sample sizes and shuffling.

use forebay_plan::{Caching, CachingRow, Line, LineGroup, Point, ShuffleRow, units};

use super::super::bars::{Bar, Bars, Panel, Row};
use super::super::html::escape;
use super::super::lines::{Across, LinePanel, Lines, Trace, Weight};
use super::super::scale::Quantity;
use super::super::svg::Key;
use super::{Figure, Plot, Subject, or_dash};

impl Subject<'_> {
    pub(super) fn caching(&self) -> Option<Plot> {
        let group = self.comparison.caching.as_ref()?;
        let kinds = [Caching::None, Caching::System, Caching::Application];
        let rates = |row: &CachingRow| [row.none, row.system, row.application];
        let row = |row: &CachingRow| {
            let bar = |(series, rate): (usize, Option<f64>)| {
                let rate = rate?;
                let tip = format!("{}, {}: {}", row.strategy, kinds[series].words(), units::samples_per_second(rate));
                Some(Bar::simple(rate, series, units::number(rate), tip))
            };
            let bars = rates(row).into_iter().enumerate().filter_map(bar).collect();
            Row { label: row.strategy.clone(), best: self.is_chosen(&row.strategy), bars }
        };
        let cells = |row: &CachingRow| {
            let gain = row.none.zip(row.system).map(|(none, system)| system / none);
            let rates = rates(row).map(|rate| or_dash(rate, units::number));
            let more = [
                or_dash(gain, |gain| format!("{} ×", units::number(gain))),
                // Below zero it is noise.
                or_dash(row.deserialize_share.filter(|share| *share >= 0.0), units::percent),
            ];
            std::iter::once(row.strategy.clone()).chain(rates).chain(more).collect()
        };
        let present = |series: &usize| group.rows.iter().any(|row| rates(row)[*series].is_some());
        let legend = (0..3).filter(present).map(|series| (Key::Block(series), kinds[series].words().to_owned()));
        Some(Plot {
            id: "caching",
            title: "Caching",
            note: format!(
                "Samples per second of the epochs after the first, on {} and {}. More is better.",
                escape(&units::counted(group.sample_count, "sample")),
                escape(&units::counted(group.threads as u64, "thread"))
            ),
            figure: Figure::Bars(Bars {
                panels: vec![Panel {
                    title: String::new(),
                    quantity: Quantity::Rate,
                    rows: group.rows.iter().map(row).collect(),
                }],
                legend: legend.collect(),
            }),
            grid: self.grid(
                &["strategy", "nothing", "page cache", "samples in memory", "page cache gains", "deserialize"],
                group.rows.iter().map(cells).collect(),
            ),
        })
    }

    /// A panel with the lines of `group`.
    fn line_panel(
        &self,
        title: String,
        group: &LineGroup,
        x: Across,
        y: Quantity,
        tip: impl Fn(&Line, &Point) -> String,
    ) -> LinePanel {
        let line = |line: &Line| Trace {
            series: self.series(&line.strategy),
            points: line.points.iter().map(|point| (point.x, point.y, tip(line, point))).collect(),
            tip: line.strategy.clone(),
            weight: Weight::Even,
        };
        LinePanel { title, x, y, lines: group.lines.iter().map(line).collect(), ideal: false, marks: true }
    }

    fn line_legend(&self, groups: &[LineGroup]) -> Vec<(Key, String)> {
        let mut names: Vec<&str> =
            groups.iter().flat_map(|group| &group.lines).map(|line| line.strategy.as_str()).collect();
        names.sort_by_key(|name| self.series(name));
        names.dedup();
        names.into_iter().map(|name| (Key::Series(self.series(name)), name.to_owned())).collect()
    }

    pub(super) fn speed_up(&self) -> Option<Plot> {
        let groups = &self.comparison.threads;
        if groups.iter().all(|group| group.lines.is_empty()) {
            return None;
        }
        let panel = |group: &LineGroup| {
            let tip = |line: &Line, point: &Point| {
                let rate = units::samples_per_second(point.samples_per_second);
                let threads = units::counted(point.x as u64, "thread");
                format!("{}, {threads}: {} times as fast, {rate}", line.strategy, units::number(point.y))
            };
            let across = Across::Values(Quantity::Plain("threads"), "threads");
            let title = group.caching.words().to_owned();
            let panel = self.line_panel(title, group, across, Quantity::Plain("speed-up"), tip);
            LinePanel { ideal: true, ..panel }
        };
        let rows = groups.iter().flat_map(|group| {
            group.lines.iter().flat_map(move |line| {
                line.points.iter().map(move |point| {
                    vec![
                        line.strategy.clone(),
                        group.caching.words().to_owned(),
                        units::count(point.x as u64),
                        units::number(point.samples_per_second),
                        format!("{} ×", units::number(point.y)),
                    ]
                })
            })
        });
        let mut legend = self.line_legend(groups);
        legend.push((Key::Dashes("ideal"), "as many times as fast as threads".to_owned()));
        let fewest =
            groups.iter().flat_map(|group| &group.lines).filter_map(|line| line.points.first()).map(|point| point.x);
        let fewest = units::counted(fewest.fold(f64::INFINITY, f64::min) as u64, "thread");
        Some(Plot {
            id: "speed-up",
            title: "Speed-up over threads",
            note: format!("Throughput over that with {}.", escape(&fewest)),
            figure: Figure::Lines(Lines { panels: groups.iter().map(panel).collect(), legend }),
            grid: self.grid(&["strategy", "cached", "threads", "samples/s", "speed-up"], rows.collect()),
        })
    }

    pub(super) fn sample_counts(&self) -> Option<Plot> {
        let group = self.comparison.sample_counts.as_ref().filter(|group| !group.lines.is_empty())?;
        let tip = |line: &Line, point: &Point| {
            let samples = units::counted(point.x as u64, "sample");
            format!("{}, {samples}: {}", line.strategy, units::samples_per_second(point.y))
        };
        let across = Across::Values(Quantity::Plain("samples"), "samples measured");
        let rows = group.lines.iter().flat_map(|line| {
            line.points
                .iter()
                .map(|point| vec![line.strategy.clone(), units::count(point.x as u64), units::number(point.y)])
        });
        Some(Plot {
            id: "sample-count",
            title: "Throughput by the number of samples",
            note: "Whether this many samples are enough: once a line is flat, it shows the throughput of the entire data set; a short \
                   run is mostly startup."
                .to_owned(),
            figure: Figure::Lines(Lines {
                panels: vec![self.line_panel(String::new(), group, across, Quantity::Rate, tip)],
                legend: self.line_legend(std::slice::from_ref(group)),
            }),
            grid: self.grid(&["strategy", "samples", "samples/s"], rows.collect()),
        })
    }

    pub(super) fn sample_sizes(&self) -> Option<Plot> {
        let group = self.comparison.sample_sizes.as_ref().filter(|group| !group.lines.is_empty())?;
        let tip = |line: &Line, point: &Point| {
            let rate = units::samples_per_second(point.samples_per_second);
            format!("{}, {} each: {}, {rate}", line.strategy, units::bytes(point.x), units::bytes_per_second(point.y))
        };
        let across = Across::Values(Quantity::Bytes, "bytes of a sample");
        let rows = group.lines.iter().flat_map(|line| {
            line.points.iter().map(|point| {
                vec![
                    line.strategy.clone(),
                    units::bytes(point.x),
                    units::bytes_per_second(point.y),
                    units::number(point.samples_per_second),
                ]
            })
        });
        Some(Plot {
            id: "sample-size",
            title: "Bandwidth by the size of samples",
            note: "Bytes of stored samples that reach the trainer per second: small samples cost more per byte."
                .to_owned(),
            figure: Figure::Lines(Lines {
                panels: vec![self.line_panel(String::new(), group, across, Quantity::BytesPerSecond, tip)],
                legend: self.line_legend(std::slice::from_ref(group)),
            }),
            grid: self.grid(&["strategy", "a sample has", "gives", "samples/s"], rows.collect()),
        })
    }

    pub(super) fn shuffles(&self) -> Option<Plot> {
        let group = self.comparison.shuffles.as_ref()?;
        let name = |window: Option<u64>| {
            window.map_or_else(|| "in order".to_owned(), |bytes| format!("windows of {}", units::bytes(bytes as f64)))
        };
        let row = |row: &ShuffleRow| {
            let bar = |(series, rate): (usize, &Option<f64>)| {
                let rate = (*rate)?;
                let how = name(group.shuffle_window_bytes[series]);
                let tip = format!("{}, {how}: {}", row.strategy, units::samples_per_second(rate));
                Some(Bar::simple(rate, series, units::number(rate), tip))
            };
            let bars = row.rates.iter().enumerate().filter_map(bar).collect();
            Row { label: row.strategy.clone(), best: self.is_chosen(&row.strategy), bars }
        };
        let mut cells = Vec::new();
        for row in &group.rows {
            let in_order = row.rates.first().copied().flatten();
            for (rate, &window) in row.rates.iter().zip(&group.shuffle_window_bytes) {
                let extra = rate.zip(in_order).map(|(rate, in_order)| rate.recip() - in_order.recip());
                let sign = if extra.is_some_and(|extra| extra < 0.0) { "-" } else { "" };
                let extra = or_dash(extra, |extra| format!("{sign}{}", units::seconds(extra.abs())));
                cells.push(vec![row.strategy.clone(), name(window), or_dash(*rate, units::number), extra]);
            }
        }
        let legend =
            group.shuffle_window_bytes.iter().enumerate().map(|(series, &window)| (Key::Block(series), name(window)));
        Some(Plot {
            id: "shuffle",
            title: "Shuffling",
            note: "Samples per second in order, and shuffled in windows: blocks are read in random order, and samples are shuffled within a \
                   window of blocks."
                .to_owned(),
            figure: Figure::Bars(Bars {
                panels: vec![Panel {
                    title: String::new(),
                    quantity: Quantity::Rate,
                    rows: group.rows.iter().map(row).collect(),
                }],
                legend: legend.collect(),
            }),
            grid: self.grid(&["strategy", "shuffled", "samples/s", "more per sample"], cells),
        })
    }
}
