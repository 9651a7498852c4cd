//! Explains why a split is stored in a format, or as it is.

use forebay_pipeline::StorageFormat;

use super::modeled::{modeled, seconds_of};
use crate::prediction::{Bound, predict, quotient};
use crate::profile::{Caching, CompressionCost, Profile, StrategyProfile};
use crate::summary::summarize_one;
use crate::units;

/// Why `strategy` has its format, if compressions of its split were measured, without a final period.
pub(crate) fn why(profile: &Profile, strategy: &str) -> Option<String> {
    match profile.compression_cost(strategy) {
        Some(cost) => Some(format!("`{}` {}", cost.compression, gain(profile, cost)?)),
        None => kept(profile, strategy).map(|kept| format!("It is {kept}")),
    }
}

/// `reads 3.1× fewer bytes; inflating costs 0.4 ms of the 2.1 ms that the disk took`.
pub(super) fn gain(profile: &Profile, cost: &CompressionCost) -> Option<String> {
    let plain = profile.strategy(&cost.plain)?;
    let disk_seconds = quotient(1.0, predict(profile, plain, None).load?)?;
    let bytes = match profile.strategy(&cost.strategy) {
        Some(measured) => measured.bytes_per_sample,
        None => plain.bytes_per_sample / cost.ratio,
    };
    let times = units::number(plain.bytes_per_sample / bytes);
    let inflating_seconds = seconds_of(plain.bytes_per_sample, cost.decompress_bytes_per_second);
    let what = if cost.compression.parse::<StorageFormat>().is_ok_and(|format| !format.has_plain_fields()) {
        "decoding"
    } else {
        "inflating"
    };
    let medium = if profile.method.caching == Caching::None { "the disk" } else { "memory" };
    let [inflating, disk] = [inflating_seconds, disk_seconds].map(units::seconds);
    let but = if inflating_seconds < disk_seconds { " of" } else { ", more than" };
    Some(format!("reads {times}× fewer bytes; {what} costs {inflating}{but} the {disk} that {medium} took"))
}

/// Why nothing that was measured would make the split faster.
pub(super) fn kept(profile: &Profile, name: &str) -> Option<String> {
    let plain = profile.strategy(name)?;
    let costs = profile.compressions.iter().filter(|cost| cost.plain == name);
    // What was run comes first, as what decided.
    let rate = |cost: &CompressionCost| match profile.strategy(&cost.strategy) {
        Some(strategy) if !strategy.runs.is_empty() => {
            (true, summarize_one(profile, strategy, None).samples_per_second)
        }
        Some(strategy) => (false, predict(profile, strategy, None).samples_per_second.unwrap_or(0.0)),
        None => (false, predict(profile, &modeled(profile, plain, cost), None).samples_per_second.unwrap_or(0.0)),
    };
    let best = costs.max_by(|one, other| {
        let ((one_was_run, one), (other_was_run, other)) = (rate(one), rate(other));
        one_was_run.cmp(&other_was_run).then(one.total_cmp(&other))
    })?;
    let prediction = predict(profile, plain, None);
    let seconds = |rate: Option<f64>| rate.and_then(|rate| quotient(1.0, rate)).map(units::seconds);
    if prediction.bound_by == Bound::Cpu
        && let (Some(disk), Some(work)) = (seconds(prediction.load), seconds(prediction.decode))
    {
        let nothing = "so that fewer bytes gain nothing";
        return Some(format!("kept as it is: reading takes {disk} a sample and work {work}, {nothing}"));
    }
    let best_was = format!("kept as it is: the best compression, `{}`, {}", best.compression, gain(profile, best)?);
    // By the model it may well be faster: a run decided then.
    let measured = |strategy: &StrategyProfile| {
        let summary = summarize_one(profile, strategy, None);
        (summary.runs > 0).then(|| units::samples_per_second(summary.samples_per_second))
    };
    let both = profile.strategy(&best.strategy).and_then(measured).zip(measured(plain));
    let ran = both
        .map_or_else(String::new, |(it, plain)| format!("; it was run, and gave {it}, and the split as it is {plain}"));
    Some(best_was + &ran)
}
