//! What a mix of two formats would give, over its ratio.

use forebay_plan::{MixLimits, MixRates, mix, mix_formats, mix_limits, units};

use super::super::html::code;
use super::super::lines::{Across, LinePanel, Lines, Trace, Weight};
use super::super::scale::Quantity;
use super::super::svg::Key;
use super::{Figure, Grid, Plot, Subject};

/// A line: what it is called, and its value at a ratio.
type Curve = (&'static str, fn(&MixRates) -> Option<f64>);

const RATES: [Curve; 3] = [
    ("loading", |rates| rates.load),
    ("decoding", |rates| rates.decode),
    ("reaches the trainer", |rates| Some(rates.samples_per_second)),
];

const UTILIZATION: [Curve; 3] = [
    ("disk", |rates| Some(rates.storage_utilization)),
    ("processor", |rates| Some(rates.cpu_utilization)),
    ("trainer", |rates| rates.trainer_utilization),
];

impl Subject<'_> {
    /// `None` where one format alone is best.
    pub(super) fn mix(&self) -> Option<Plot> {
        let trainer = self.plan.trainer_samples_per_second;
        let limits = MixLimits { trainer_samples_per_second: trainer, ..mix_limits(self.profile, 0) };
        let found = mix(&mix_formats(self.profile, 0.0), &limits).ok()?;
        let (first, last) = (found.sweep.first()?, found.sweep.last()?);
        if found.shares.len() < 2 {
            return None;
        }
        let (small, large) = (&first.shares.first()?.format, &last.shares.first()?.format);
        let share = |rates: &MixRates| {
            rates.shares.iter().find(|share| share.format == *large).map_or(0.0, |share| share.share)
        };
        let panel = |title: &str, y: Quantity, first_series: usize, curves: &[Curve]| {
            let line = |(number, (name, value)): (usize, &Curve)| Trace {
                series: first_series + number,
                points: found
                    .sweep
                    .iter()
                    .filter_map(|rates| {
                        let value = value(rates)?;
                        Some((
                            share(rates),
                            value,
                            format!("{name}: {} at {}", y.text(value), units::percent(share(rates))),
                        ))
                    })
                    .collect(),
                tip: (*name).to_owned(),
                weight: Weight::Even,
            };
            let lines = curves.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
            LinePanel { title: title.to_owned(), x: Across::Share, y, lines, ideal: false, marks: true }
        };
        let named = |first_series: usize, curves: &[Curve]| {
            let key = |(number, (name, value)): (usize, &Curve)| {
                let is_there = found.sweep.iter().any(|rates| value(rates).is_some());
                is_there.then(|| (Key::Series(first_series + number), (*name).to_owned()))
            };
            curves.iter().enumerate().filter_map(key).collect::<Vec<_>>()
        };
        let row = |rates: &MixRates| {
            let rate = |rate: Option<f64>| super::or_dash(rate, units::number);
            vec![
                units::percent(share(rates)),
                rate(rates.load),
                rate(rates.decode),
                units::number(rates.samples_per_second),
                units::percent(rates.cpu_utilization),
                units::percent(rates.storage_utilization),
            ]
        };
        let best = found.sweep.iter().max_by(|one, other| one.samples_per_second.total_cmp(&other.samples_per_second));
        let shares =
            found.shares.iter().map(|share| format!("{} {}", units::percent(share.share), code(&share.format)));
        Some(Plot {
            id: "mix",
            title: "A mix of two formats",
            note: format!(
                "By the cost model, with nothing cached: {} would give {}. Across, the share of samples that are kept as {} instead of {}. Where the lines of \
                 loading and decoding cross, disk and processor are busy together; <code>forebay mix</code> tries it out.",
                shares.collect::<Vec<_>>().join(", "),
                units::samples_per_second(found.predicted_samples_per_second),
                code(large),
                code(small),
            ),
            figure: Figure::Lines(Lines {
                panels: vec![
                    panel("Throughput", Quantity::Rate, 0, &RATES),
                    panel("Utilization", Quantity::Share, 3, &UTILIZATION),
                ],
                legend: [named(0, &RATES), named(3, &UTILIZATION)].concat(),
            }),
            grid: Grid::new(
                &["share", "loading", "decoding", "samples/s", "processor", "disk"],
                found.sweep.iter().map(row).collect(),
                best.map(|rates| units::percent(share(rates))),
            ),
        })
    }
}
