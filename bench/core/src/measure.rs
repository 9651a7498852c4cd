//! Measuring two ways of the same work in turn.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use crate::Outcome;

/// How often each of the two is measured. The first pair warms up and does not count.
const ROUNDS: usize = 7;

/// One line of the table.
pub(crate) struct Row {
    pub(crate) work: Cow<'static, str>,
    pub(crate) beside: &'static str,
    pub(crate) unit: &'static str,
    /// Units per second.
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    /// The least ratio that is good enough, where there is one.
    pub(crate) bar: Option<f64>,
}

impl Row {
    pub(crate) fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }

    pub(crate) fn is_missed(&self) -> bool {
        self.bar.is_some_and(|bar| self.ratio() < bar)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = self.ratio();
        let (bar, verdict) = match self.bar {
            None => (String::new(), ""),
            Some(bar) => (format!("≥ {bar:.2}"), if self.is_missed() { "missed" } else { "met" }),
        };
        let Self { work, beside, unit, ours, theirs, .. } = self;
        writeln!(f, "| {work} | {ours:.0} {unit} | {beside} | {theirs:.0} {unit} | {ratio:.3} | {bar} | {verdict} |")
    }
}

/// Runs both in turn and returns the median seconds of each.
pub(crate) fn in_turn(
    mut ours: impl FnMut() -> Outcome<()>,
    mut theirs: impl FnMut() -> Outcome<()>,
) -> Outcome<(f64, f64)> {
    let (mut our_seconds, mut their_seconds) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let first = seconds(&mut ours)?;
        let second = seconds(&mut theirs)?;
        if round > 0 {
            our_seconds.push(first);
            their_seconds.push(second);
        }
    }
    Ok((median(our_seconds), median(their_seconds)))
}

fn seconds(work: &mut impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The middle of the values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
