//! Plots of compressions: their cost by itself, and their gain.

use forebay_plan::{Analyzed, CompressionCost, units};

use super::super::bars::{Bar, Bars, Panel};
use super::super::scale::Quantity;
use super::super::scatter::{Dot, Scatter, Side};
use super::single::name_of;
use super::{Figure, Grid, Plot, Subject};

/// What one compression gains.
pub(in super::super) struct Gain {
    pub(in super::super) label: String,
    /// What it has in common with others of its color.
    pub(in super::super) key: String,
    /// Bytes as they are over bytes compressed.
    pub(in super::super) ratio: f64,
    /// Throughput over that of the split as it is.
    pub(in super::super) factor: f64,
    pub(in super::super) best: bool,
}

/// The ratio of each on the x axis, its effect on throughput on the y axis; `None` if there is nothing to show.
pub(in super::super) fn gains(gains: &[Gain], note: String) -> Option<Plot> {
    if gains.is_empty() {
        return None;
    }
    let times = |factor: f64| format!("{} ×", units::number(factor));
    let mut keys: Vec<String> = Vec::new();
    for gain in gains {
        if !keys.contains(&gain.key) {
            keys.push(gain.key.clone());
        }
    }
    let dot = |gain: &Gain| Dot {
        label: gain.label.clone(),
        across: gain.ratio,
        upwards: gain.factor,
        series: keys.iter().position(|key| *key == gain.key).unwrap_or(keys.len()),
        front: false,
        best: gain.best,
        tip: format!("{}: ratio {}, throughput {}", gain.label, units::number(gain.ratio), times(gain.factor)),
    };
    let row = |gain: &Gain| vec![gain.label.clone(), units::number(gain.ratio), times(gain.factor)];
    Some(Plot {
        id: "compression-gain",
        title: "Compression ratio and throughput gain",
        note,
        figure: Figure::Scatter(Scatter {
            across: Side { quantity: Quantity::Plain("times smaller"), name: "compression ratio" },
            upwards: Side { quantity: Quantity::Plain("times as fast"), name: "throughput gain" },
            level: Some((1.0, "as fast as it is")),
            points: gains.iter().map(dot).collect(),
            keys,
        }),
        grid: Grid::new(
            &["strategy", "ratio", "throughput"],
            gains.iter().map(row).collect(),
            gains.iter().find(|gain| gain.best).map(|gain| gain.label.clone()),
        ),
    })
}

impl Subject<'_> {
    /// What each compression that was measured at a split gains, with how it is called.
    pub(in super::super) fn gains(&self) -> Vec<Gain> {
        let gain = |one: &Analyzed| {
            one.plain.as_ref()?;
            let cost = self.profile.compression_cost(name_of(one))?;
            Some(Gain {
                label: name_of(one).to_owned(),
                key: cost.compression.clone(),
                ratio: cost.ratio,
                factor: one.throughput_factor?,
                best: self.is_chosen(name_of(one)),
            })
        };
        self.strategies().iter().filter_map(gain).collect()
    }

    pub(super) fn compression_gains(&self) -> Option<Plot> {
        gains(
            &self.gains(),
            "Right is smaller, up is faster; each compression has a color. Above the line the split is loaded faster compressed than as it is; the ratio is of records \
             alone."
                .to_owned(),
        )
    }

    /// Ratio, and how fast one thread compresses and decompresses, each alone.
    pub(super) fn compression_speeds(&self) -> Option<Plot> {
        let costs = &self.profile.compressions;
        if costs.is_empty() {
            return None;
        }
        let panel = |title: &str, quantity: Quantity, series: usize, value: fn(&CompressionCost) -> f64| {
            let row = |cost: &CompressionCost| {
                let (label, value) = (cost.strategy.as_str(), value(cost));
                let tip = format!("{label}: {}", quantity.text(value));
                self.row(label, vec![Bar::simple(value, series, quantity.short(value), tip)])
            };
            Panel { title: title.to_owned(), quantity, rows: costs.iter().map(row).collect() }
        };
        let row = |cost: &CompressionCost| {
            vec![
                cost.strategy.clone(),
                units::number(cost.ratio),
                units::bytes_per_second(cost.compress_bytes_per_second),
                units::bytes_per_second(cost.decompress_bytes_per_second),
                units::count(cost.records),
                units::bytes(cost.bytes as f64),
            ]
        };
        Some(Plot {
            id: "compression-speed",
            title: "Compressions alone",
            note: "Records of each split in memory, on one thread, without loading: how many times smaller they become, and how many of \
                   their bytes are compressed and decompressed in a second. More is better."
                .to_owned(),
            figure: Figure::Bars(Bars {
                panels: vec![
                    panel("Ratio", Quantity::Plain("times smaller"), 3, |cost| cost.ratio),
                    panel("Compression", Quantity::BytesPerSecond, 4, |cost| cost.compress_bytes_per_second),
                    panel("Decompression", Quantity::BytesPerSecond, 0, |cost| cost.decompress_bytes_per_second),
                ],
                legend: Vec::new(),
            }),
            grid: self.grid(
                &["strategy", "ratio", "compression", "decompression", "records", "of"],
                costs.iter().map(row).collect(),
            ),
        })
    }
}
