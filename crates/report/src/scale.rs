//! Axes: ticks and their labels.

use forebay_plan::units;

/// What an axis or a bar shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Samples per second.
    Rate,
    Bytes,
    BytesPerSecond,
    Seconds,
    /// From 0 to 1, as percent.
    Share,
    /// A plain number, with what it counts.
    Plain(&'static str),
}

impl Quantity {
    /// A value in words.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::Rate => units::samples_per_second(value),
            Self::Bytes => units::bytes(value),
            Self::BytesPerSecond => units::bytes_per_second(value),
            Self::Seconds => units::seconds(value),
            Self::Share => units::percent(value),
            Self::Plain(_) => units::number(value),
        }
    }

    /// A value next to its bar, where the axis has the unit of rates.
    pub(super) fn short(self, value: f64) -> String {
        if self == Self::Rate { units::number(value) } else { self.text(value) }
    }

    /// The unit that fits an axis up to `most`: how much one of it is, and its name.
    fn unit(self, most: f64) -> (f64, String) {
        const SECONDS: [(f64, &str); 7] = [
            (1e-9, "nanoseconds"),
            (1e-6, "microseconds"),
            (1e-3, "milliseconds"),
            (1.0, "seconds"),
            (60.0, "minutes"),
            (3600.0, "hours"),
            (86_400.0, "days"),
        ];
        let bytes: Vec<(f64, &str)> =
            units::BYTE_UNITS.iter().enumerate().map(|(power, &name)| (1e3_f64.powi(power as i32), name)).collect();
        let pick = |all: &[(f64, &str)]| {
            let fits = all.iter().rev().find(|(size, _)| most >= *size * 0.999).or_else(|| all.first());
            fits.map_or((1.0, String::new()), |&(size, name)| (size, name.to_owned()))
        };
        match self {
            Self::Rate => (1.0, "samples per second".to_owned()),
            Self::Bytes => pick(&bytes),
            Self::BytesPerSecond => {
                let (size, name) = pick(&bytes);
                (size, format!("{name}/s"))
            }
            Self::Seconds => pick(&SECONDS),
            Self::Share => (0.01, "percent".to_owned()),
            Self::Plain(name) => (1.0, name.to_owned()),
        }
    }
}

/// An axis: its end, its ticks with their labels, and its unit.
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) unit: String,
}

impl Axis {
    /// From zero to a round number at or above `most`, with about `count` ticks.
    pub(super) fn from_zero(quantity: Quantity, most: f64, count: usize) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let (size, unit) = quantity.unit(most);
        let step = round_step(most / size / count.max(1) as f64);
        let steps = (most / size / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|number| (number as f64 * step * size, label(number as f64 * step)));
        Self { low: 0.0, high: steps * step * size, log: false, ticks: ticks.collect(), unit }
    }

    /// Powers of ten (or 1, 2, 5 of them) around `least` to `most`, for values that differ by orders of magnitude.
    pub(super) fn logarithmic(quantity: Quantity, least: f64, most: f64) -> Self {
        let wide = most / least > 300.0;
        let mut ticks = Vec::new();
        let mut power = 10.0_f64.powf(least.log10().floor());
        let factors: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        while power <= most * 10.0 && ticks.len() < 40 {
            ticks.extend(factors.iter().map(|factor| factor * power));
            power *= 10.0;
        }
        // One tick below the least, one above the most.
        let low = ticks.iter().copied().filter(|tick| *tick <= least).fold(ticks[0], f64::max);
        let high = ticks.iter().copied().find(|tick| *tick >= most).unwrap_or(most);
        let ticks = ticks.into_iter().filter(|tick| (low..=high).contains(tick));
        let ticks = ticks.map(|tick| (tick, quantity.short(tick).replace(".00", "").replace(".0", "")));
        let (_, unit) = quantity.unit(most);
        let named = matches!(quantity, Quantity::Rate | Quantity::Plain(_));
        let unit = if named { format!("{unit}, logarithmic") } else { "logarithmic".to_owned() };
        Self { low, high, log: true, ticks: ticks.collect(), unit }
    }

    /// Ticks at the values themselves, at equal ratios: for threads and counts that double.
    pub(super) fn at_values(values: &[f64], quantity: Quantity, name: &str) -> Self {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(1.0));
        let high = if high > low { high } else { low * 2.0 };
        let text = |value: f64| match quantity {
            Quantity::Plain(_) => units::count(value as u64),
            quantity => quantity.short(value),
        };
        let ticks = values.iter().map(|&value| (value, text(value)));
        Self { low, high, log: true, ticks: ticks.collect(), unit: name.to_owned() }
    }

    /// The same axis, ending at `most` where that is before its end.
    pub(super) fn cut(mut self, most: f64) -> Self {
        if most > 0.0 && most < self.high {
            self.high = most;
            self.ticks.retain(|(tick, _)| *tick <= most);
        }
        self
    }

    /// Where `value` is, from 0 at the start of the axis to 1 at its end.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// The number of 1, 2, 2.5, 5 times a power of ten at or above `value`.
fn round_step(value: f64) -> f64 {
    let power = 10.0_f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    factors.iter().map(|factor| factor * power).find(|step| *step >= value * 0.999_999).unwrap_or(power * 10.0)
}

fn label(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if value >= 1000.0 { units::count(value.round() as u64) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_begin_at_zero_and_end_on_a_tick() {
        for (quantity, most) in [(Quantity::Rate, 1789.0), (Quantity::Bytes, 1.388e12), (Quantity::Seconds, 0.0084)] {
            let axis = Axis::from_zero(quantity, most, 5);
            assert!(axis.low == 0.0 && axis.high >= most && axis.high < 2.0 * most, "{}", axis.high);
            let last = axis.ticks.last().unwrap();
            assert!((last.0 - axis.high).abs() < 1e-9 * axis.high);
            assert_eq!(axis.ticks[0].1, "0");
        }
        assert_eq!(Axis::from_zero(Quantity::Bytes, 1.388e12, 5).unit, "TB");
        assert!(Axis::from_zero(Quantity::Rate, f64::NAN, 5).high.is_finite());
    }

    #[test]
    fn logarithmic_axes_enclose_their_values() {
        for (least, most) in [(3.0, 900.0), (107.0, 1789.0), (1e-3, 1e9), (5.0, 5.0)] {
            let axis = Axis::logarithmic(Quantity::Rate, least, most);
            assert!(axis.low <= least && axis.high >= most, "{} {}", axis.low, axis.high);
            assert!(!axis.ticks.is_empty());
        }
    }
}
