//! The throughput of a mix of two formats, by their ratio, and its utilization.

use forebay_plan::{Mix, MixLimits, MixRates, mix, mix_formats, mix_limits, units};

use super::super::html::code;
use super::super::lines::{Across, LinePanel, Lines, Trace, Weight};
use super::super::scale::Quantity;
use super::super::svg::Key;
use super::super::triangles::{Triangle, Triangles};
use super::{Figure, Grid, Plot, Subject};

/// A line: its name, and its value at a ratio.
type Curve = (&'static str, fn(&MixRates) -> Option<f64>);

const RATES: [Curve; 3] = [
    ("loading", |rates| rates.load),
    ("decoding", |rates| rates.decode),
    ("reaches the trainer", |rates| Some(rates.samples_per_second)),
];

const UTILIZATION: [Curve; 3] = [
    ("disk", |rates| Some(rates.storage_utilization)),
    ("CPU", |rates| Some(rates.cpu_utilization)),
    ("trainer", |rates| rates.trainer_utilization),
];

/// A mix that is worth a plot.
pub(super) struct Mixed {
    found: Mix,
    /// The formats of its ratios: the smaller one, and the larger one, whose share goes from 0 to 1.
    small: String,
    large: String,
}

impl Mixed {
    /// The share of the larger format.
    fn share(&self, rates: &MixRates) -> f64 {
        rates.shares.iter().find(|share| share.format == self.large).map_or(0.0, |share| share.share)
    }

    /// How fast the formats are loaded and decoded, by their ratio.
    pub(super) fn rates(&self) -> Plot {
        let found = &self.found;
        let row = |rates: &MixRates| {
            let rate = |rate: Option<f64>| super::or_dash(rate, units::number);
            vec![
                units::percent(self.share(rates)),
                rate(rates.load),
                rate(rates.decode),
                units::number(rates.samples_per_second),
                units::percent(rates.cpu_utilization),
                units::percent(rates.storage_utilization),
                super::or_dash(rates.trainer_utilization, units::percent),
            ]
        };
        let best = found.sweep.iter().max_by(|one, other| one.samples_per_second.total_cmp(&other.samples_per_second));
        let shares =
            found.shares.iter().map(|share| format!("{} {}", units::percent(share.share), code(&share.format)));
        Plot {
            id: "mix",
            title: "A mix of two formats",
            note: format!(
                "By the cost model, without a shuffle buffer in memory: {} would give {}. The x axis is the share of samples that are stored as {} instead of {}. Where the lines of \
                 loading and decoding cross, disk and CPU are both fully used. <code>forebay mix</code> measures a mix, with a buffer if <code>--buffer</code> is given.",
                shares.collect::<Vec<_>>().join(", "),
                units::samples_per_second(found.predicted_samples_per_second),
                code(&self.large),
                code(&self.small),
            ),
            figure: Figure::Lines(Lines {
                panels: vec![
                    self.panel("Throughput", Quantity::Rate, 0, &RATES),
                    self.panel("Utilization", Quantity::Share, 3, &UTILIZATION),
                ],
                legend: [self.legend(0, &RATES), self.legend(3, &UTILIZATION)].concat(),
            }),
            grid: Grid::new(
                &["share", "loading", "decoding", "samples/s", "CPU", "disk", "trainer"],
                found.sweep.iter().map(row).collect(),
                best.map(|rates| units::percent(self.share(rates))),
            ),
        }
    }

    /// How busy CPU, disk and trainer are with each format alone, and with the mix.
    pub(super) fn utilization(&self) -> Option<Plot> {
        let found = &self.found;
        let whole = found.rates.as_ref()?;
        let (small, large) = (found.sweep.first()?, found.sweep.last()?);
        let name = "the mix".to_owned();
        let all = [(self.small.clone(), small), (self.large.clone(), large), (name.clone(), whole)];
        // The trainer's speed is not always known: then the mix is the maximum.
        let is_known = whole.trainer_utilization.is_some();
        let goodput =
            |rates: &MixRates| rates.trainer_utilization.unwrap_or(rates.samples_per_second / whole.samples_per_second);
        let third = if is_known { "trainer" } else { "throughput" };
        let panel = |(number, (title, rates)): (usize, &(String, &MixRates))| {
            let shares = [rates.cpu_utilization, rates.storage_utilization, goodput(rates)];
            let shares = shares.map(|share| (share, units::percent(share)));
            let [cpu, disk, goodput] = shares.clone().map(|(_, text)| text);
            let rate = units::samples_per_second(rates.samples_per_second);
            let tip = format!("{title}: {rate}; CPU {cpu}, disk {disk}, {third} {goodput}");
            Triangle { title: title.clone(), series: number, shares, tip, best: *title == name }
        };
        let row = |(title, rates): &(String, &MixRates)| {
            let shares = [rates.cpu_utilization, rates.storage_utilization, goodput(rates)].map(units::percent);
            [vec![title.clone(), units::number(rates.samples_per_second)], shares.to_vec()].concat()
        };
        let meaning = if is_known {
            "the throughput as a share of what the trainer can take"
        } else {
            "the throughput relative to that of the mix (the rate of the trainer is unknown)"
        };
        Some(Plot {
            id: "mix-utilization",
            title: "Utilization of a mix",
            note: format!(
                "Each format alone, and the mix. From the center to the corners, 0 to 100 %: the share of the cores’ time that is used, the share of the storage bandwidth \
                 that is used, and {meaning}. A format that reaches only one corner wastes the others."
            ),
            figure: Figure::Triangles(Triangles {
                corners: ["CPU", "disk", third],
                panels: all.iter().enumerate().map(panel).collect(),
            }),
            grid: Grid::new(
                &["", "samples/s", "CPU", "disk", third],
                all.iter().map(row).collect(),
                Some(name.clone()),
            ),
        })
    }

    fn panel(&self, title: &str, y: Quantity, first_series: usize, curves: &[Curve]) -> LinePanel {
        let point = |name: &str, rates: &MixRates, value: f64| {
            let share = self.share(rates);
            (share, value, format!("{name}: {} at {}", y.text(value), units::percent(share)))
        };
        let line = |(number, (name, value)): (usize, &Curve)| Trace {
            series: first_series + number,
            points: self.found.sweep.iter().filter_map(|rates| Some(point(name, rates, value(rates)?))).collect(),
            tip: (*name).to_owned(),
            weight: Weight::Even,
        };
        let lines = curves.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
        LinePanel { title: title.to_owned(), x: Across::Share, y, lines, ideal: false, marks: true }
    }

    fn legend(&self, first_series: usize, curves: &[Curve]) -> Vec<(Key, String)> {
        let key = |(number, (name, value)): (usize, &Curve)| {
            let is_there = self.found.sweep.iter().any(|rates| value(rates).is_some());
            is_there.then(|| (Key::Series(first_series + number), (*name).to_owned()))
        };
        curves.iter().enumerate().filter_map(key).collect()
    }
}

impl Subject<'_> {
    /// `None` where one format alone is best.
    pub(super) fn mix(&self) -> Option<Mixed> {
        let trainer = self.plan.trainer_samples_per_second;
        let limits = MixLimits { trainer_samples_per_second: trainer, ..mix_limits(self.profile, 0) };
        let found = mix(&mix_formats(self.profile, 0.0), &limits).ok()?;
        let name = |rates: &MixRates| rates.shares.first().map(|share| share.format.clone());
        let (small, large) = (name(found.sweep.first()?)?, name(found.sweep.last()?)?);
        (found.shares.len() > 1).then_some(Mixed { found, small, large })
    }
}
