//! Plots of one profile that not every report has: another machine, money, and one split stored in several formats.

use forebay_plan::{Analyzed, bound_there, describe_machine, units};

use super::super::bars::{Bar, Bars, Panel, Part};
use super::super::html::escape;
use super::super::scale::Quantity;
use super::super::svg::Key;
use super::single::name_of;
use super::{Figure, Plot, Subject, or_dash};

/// `6 months`, `2.5 months`.
fn months(months: f64) -> String {
    if months.fract() == 0.0 { units::counted(months as u64, "month") } else { format!("{months} months") }
}

impl Subject<'_> {
    /// Expectations for another machine next to measurements here.
    pub(super) fn forecast(&self) -> Option<Plot> {
        let machine = self.plan.other_machine.as_ref()?;
        let there = |one: &Analyzed| one.ranked.forecast.clone();
        let all: Vec<_> = self.strategies().iter().filter_map(there).collect();
        let rows = all.iter().map(|one| {
            let bar = |value: f64, series: usize, what: &str| {
                let tip = format!("{}: {} {what}", one.name, units::samples_per_second(value));
                Bar::simple(value, series, units::number(value), tip)
            };
            let here = bar(one.measured_samples_per_second, 0, "measured here");
            self.row(&one.name, vec![here, bar(one.expected_samples_per_second, 1, "expected there")])
        });
        let panel = Panel { title: String::new(), quantity: Quantity::Rate, rows: rows.collect() };
        let cells = all.iter().map(|one| {
            vec![
                one.name.clone(),
                units::number(one.measured_samples_per_second),
                or_dash(one.modeled_samples_per_second, units::number),
                units::number(one.expected_samples_per_second),
                or_dash(one.prediction.samples_per_second, units::number),
                units::percent(one.cache_hit_ratio),
                units::seconds(one.prep_seconds_total),
                units::seconds(one.epoch_seconds_total),
                bound_there(one).to_owned(),
            ]
        });
        let assumptions = machine.assumptions.join("; ");
        Some(Plot {
            id: "other-machine",
            title: "On another machine",
            note: format!("{}. Assumed: {}.", escape(&describe_machine(machine)), escape(&assumptions)),
            figure: Figure::Bars(Bars {
                panels: vec![panel],
                legend: vec![(Key::Block(0), "measured here".to_owned()), (Key::Block(1), "expected there".to_owned())],
            }),
            grid: self.grid(
                &[
                    "strategy",
                    "here",
                    "model here",
                    "there",
                    "model there",
                    "cached",
                    "prepare",
                    "one epoch",
                    "bound by",
                ],
                cells.collect(),
            ),
        })
    }

    pub(super) fn money(&self) -> Option<Plot> {
        let prices = self.plan.prices?;
        let has_requests = prices.request > 0.0;
        let headings = ["strategy", "total", "accelerators", "storage", "preparation", "requests"];
        let columns = headings.len() - usize::from(!has_requests);
        let costs: Vec<_> = self.strategies().iter().filter_map(|one| Some((name_of(one), one.ranked.cost?))).collect();
        let rows = costs.iter().map(|(label, cost)| {
            let part = |value: f64, series: usize, what: &str| Part {
                value,
                series,
                tip: format!("{label}: {} {what}", units::number(value)),
            };
            let mut parts = vec![
                part(cost.training, 0, "for accelerators"),
                part(cost.storage, 3, "for storage"),
                part(cost.prep, 4, "to prepare"),
            ];
            if has_requests {
                parts.push(part(cost.requests, 1, "for requests"));
            }
            self.row(label, vec![Bar { parts, text: units::number(cost.total), spread: None, mark: None }])
        });
        let panel = Panel {
            title: String::new(),
            quantity: Quantity::Plain("in the currency of the prices"),
            rows: rows.collect(),
        };
        let cells = costs.iter().map(|(label, cost)| {
            let amounts = [cost.total, cost.training, cost.storage, cost.prep, cost.requests].map(units::number);
            std::iter::once((*label).to_owned()).chain(amounts).take(columns).collect()
        });
        let requests = match prices.request {
            price if has_requests => {
                format!(", and requests to an object store at {} a thousand", units::number(price))
            }
            _ => String::new(),
        };
        let mut keys = vec![(0, "accelerators"), (3, "storage"), (4, "preparation")];
        keys.extend(has_requests.then_some((1, "requests")));
        Some(Plot {
            id: "money",
            title: "Money",
            note: format!(
                "{} of training at {} an hour of accelerators, {} of storage at {} a GB, and preparation at {} an hour of \
                 a core{requests}.",
                escape(&units::counted(prices.epochs, "epoch")),
                units::number(prices.accelerator_hour),
                escape(&months(prices.months)),
                units::number(prices.gb_month),
                units::number(prices.cpu_hour)
            ),
            figure: Figure::Bars(Bars {
                panels: vec![panel],
                legend: keys.into_iter().map(|(series, text)| (Key::Block(series), text.to_owned())).collect(),
            }),
            grid: self.grid(&headings[..columns], cells.collect()),
        })
    }

    /// One split stored in several formats: storage, throughput and offline time.
    pub(super) fn encodings(&self) -> Option<Plot> {
        let has_formats = |one: &&Analyzed| {
            let name = name_of(one);
            one.plain.is_some() || self.strategies().iter().any(|other| other.plain.as_deref() == Some(name))
        };
        let formats: Vec<&Analyzed> = self.strategies().iter().filter(has_formats).collect();
        if formats.is_empty() {
            return None;
        }
        let panel = |title: &str, quantity: Quantity, series: usize, value: fn(&Analyzed) -> f64| {
            let row = |one: &&Analyzed| {
                let (label, value) = (name_of(one), value(one));
                let tip = format!("{label}: {}", quantity.text(value));
                self.row(label, vec![Bar::simple(value, series, quantity.short(value), tip)])
            };
            Panel { title: title.to_owned(), quantity, rows: formats.iter().map(row).collect() }
        };
        let panels = vec![
            panel("Storage", Quantity::Bytes, 3, |one| one.ranked.summary.storage_bytes_total as f64),
            panel("Throughput", Quantity::Rate, 0, |one| one.ranked.summary.samples_per_second),
            panel("Offline time", Quantity::Seconds, 4, |one| one.ranked.summary.prep_seconds_total),
        ];
        let times = |factor: f64| format!("{} ×", units::number(factor));
        let row = |one: &&Analyzed| {
            vec![
                name_of(one).to_owned(),
                units::bytes(one.ranked.summary.storage_bytes_total as f64),
                or_dash(one.space_saving, units::percent),
                units::number(one.ranked.summary.samples_per_second),
                or_dash(one.throughput_factor, times),
                units::seconds(one.ranked.summary.prep_seconds_total),
                or_dash(one.prep_factor, times),
            ]
        };
        Some(Plot {
            id: "compression",
            title: "Compression",
            note: "The same split stored as it is, compressed and encoded: the storage saved, the effect on throughput, and the \
                   time to prepare all samples once. Factors are relative to the split as it is."
                .to_owned(),
            figure: Figure::Bars(Bars { panels, legend: Vec::new() }),
            grid: self.grid(
                &["strategy", "storage", "saved", "samples/s", "throughput", "offline", "offline time"],
                formats.iter().map(row).collect(),
            ),
        })
    }
}
