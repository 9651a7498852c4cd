//! The mix: one data set in several formats, in shares that keep storage and CPU busy at the same time (Liquid).
//!
//! A format that is fast to read costs CPU time, and one that costs none is large. For samples stored in
//! shares `x` of formats with `b` bytes and `c` CPU seconds each, with `M` bytes of memory for `N` samples:
//!
//! ```text
//! load   = bandwidth / (b·x (1 - h)),  h = M / (N (b·x + e))
//! decode = cores / c·x
//! rate   = min(load, decode, trainer)
//! ```
//!
//! A small part of the buffer stays free ([`BUFFER_SPARE`]): `M` is the rest. Each sample in it has an overhead of `e` bytes ([`STORED_ENTRY_BYTES`]), which
//! matters if samples are as small as the tokens of a text.
//!
//! The best shares are a linear program (`mix/program.rs`), for any number of formats, and need
//! no more formats than there are binding limits. [`search`] is the paper's way, with two formats in eleven ratios, and [`sweep`] looks at
//! all eleven: both find what the program finds, to the next tenth that is within the limits. [`mix_by`] is all three.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::str::FromStr;

use forebay_pipeline::{Pipeline, Strategy};
use serde::{Deserialize, Serialize};

use crate::cache::STORED_ENTRY_BYTES;
use crate::compression::unrun;
use crate::error::{Error, Result};
use crate::prediction::{cpu_seconds, decode, quotient, shards_bytes_per_second, smallest};
use crate::profile::{Profile, StrategyProfile};
use crate::units;

/// A format, and what a sample in it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct MixFormat {
    /// The strategy's name.
    pub format: String,
    /// Bytes on storage.
    pub bytes: f64,
    /// Seconds of a core, readers and workers together; 0 where it costs nothing.
    pub cpu_seconds: f64,
    /// Whether it is a lossy one.
    pub lossy: bool,
}

/// The resources that feed the trainer, and the limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixLimits {
    /// How many samples the data set has.
    pub samples: u64,
    /// What storage gives.
    pub read_bytes_per_second: f64,
    /// How many cores work.
    pub cores: f64,
    /// The shuffle buffer: the part of the data set that stays in memory from epoch to epoch.
    pub buffer_bytes: u64,
    /// What the data set may take on storage.
    pub max_storage_bytes: Option<u64>,
    /// The maximum share of samples in lossy formats, 0 to 1.
    pub max_lossy_share: f64,
    /// What the trainer takes.
    pub trainer_samples_per_second: Option<f64>,
}

/// The share of a format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixShare {
    /// The strategy's name.
    pub format: String,
    /// The share of the samples that is stored in it, 0 to 1.
    pub share: f64,
}

/// What limits the throughput of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixBound {
    /// Storage gives no more bytes.
    Storage,
    /// The cores are busy.
    Cpu,
    /// The trainer takes no more.
    Trainer,
    /// A faster mix would take more storage than it may.
    Capacity,
    /// A faster mix would have more samples in lossy formats than allowed.
    LossyShare,
}

/// What a mix gives, by the cost model. Rates are samples per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixRates {
    /// The shares, of formats that have one.
    pub shares: Vec<MixShare>,
    /// What storage can deliver; `None` if everything stays in memory.
    pub load: Option<f64>,
    /// What the CPU can get through; `None` where it has nothing to do.
    pub decode: Option<f64>,
    /// What reaches the trainer: the smallest of these and of what it takes.
    pub samples_per_second: f64,
    /// The share of the cores' time that is used then.
    pub cpu_utilization: f64,
    /// The share of storage's bandwidth that is used then.
    pub storage_utilization: f64,
    /// The share of what the trainer could take that it gets; `None` where that is not known.
    pub trainer_utilization: Option<f64>,
    /// Whether the limits of storage and of lossy formats allow these shares.
    pub within_limits: bool,
}

/// The best mix, and what its ratio does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// The shares, the largest first.
    pub shares: Vec<MixShare>,
    /// What it gives by the cost model.
    pub predicted_samples_per_second: f64,
    /// What it gave when it was run; `None` where it was not.
    pub measured_samples_per_second: Option<f64>,
    /// What limits its throughput.
    pub bound_by: Vec<MixBound>,
    /// Eleven ratios of its two formats; where it has one alone, of that and of the one that goes best with it.
    pub sweep: Vec<MixRates>,
    /// The share of the data set that stays in memory from one epoch to the next, 0 to 1.
    #[serde(skip)]
    pub hit_ratio: f64,
    /// What the mix itself gives.
    #[serde(skip)]
    pub rates: Option<MixRates>,
}

/// How many parts the ratios of a sweep have.
pub const RATIO_PARTS: u32 = 10;

/// The share of a shuffle buffer that stays free, because samples come and go and are not all of one size.
pub const BUFFER_SPARE: f64 = 1.0 / 128.0;

/// Shares smaller than this are rounding.
const SHARE_MIN: f64 = 1e-9;

/// How much a limit may be exceeded by rounding: the solver's tolerance, and a little.
const ROUNDING: f64 = 1e-6;

/// How shares are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MixMode {
    /// A linear program over any number of formats.
    #[default]
    Linear,
    /// A binary search over eleven ratios of two formats.
    Search,
    /// All eleven ratios of two formats.
    Sweep,
}

impl FromStr for MixMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "linear" => Ok(Self::Linear),
            "search" => Ok(Self::Search),
            "sweep" => Ok(Self::Sweep),
            other => Err(Error::Argument {
                name: "mode",
                found: other.to_owned(),
                expected: "`linear`, `search` or `sweep`",
            }),
        }
    }
}

/// Formats that are worth a try where they apply: images, tensors, records. One of each with levels or qualities, as its representative.
const WORTH_A_TRY: [(&str, &str); 11] = [
    ("png", "png"),
    ("l3-fast", "l3-fast"),
    ("l3-dense", "l3-dense"),
    ("qoi", "qoi"),
    ("jpeg", "jpeg-85"),
    ("webp-lossless", "webp-lossless"),
    ("webp", "webp-80"),
    ("pco", "pco-8"),
    ("shuffle", "shuffle-zstd-3"),
    ("lz4", "lz4"),
    ("zstd", "zstd-3"),
];

/// The formats that may be part of a mix, by `profile`: strategies that are built, and those whose compression it knows the cost of but that
/// were not run, as a plan knows them. Lossy ones only where `max_lossy_share` lets them in.
pub fn mix_formats(profile: &Profile, max_lossy_share: f64) -> Vec<MixFormat> {
    let unrun = unrun(profile);
    let built = profile
        .strategies
        .iter()
        .chain(&unrun)
        .filter(|strategy| !strategy.split.keeps_files() && is_of_whole_samples(profile, strategy));
    let cores = profile.machine.cores as f64;
    let format = |strategy: &StrategyProfile| MixFormat {
        format: strategy.name.clone(),
        bytes: strategy.bytes_per_sample,
        cpu_seconds: decode(profile, strategy, 0.0)
            .map_or_else(|| cpu_seconds(profile, strategy, 0.0), |rate| cores / rate),
        lossy: strategy.lossy,
    };
    built.filter(|strategy| max_lossy_share > 0.0 || !strategy.lossy).map(format).collect()
}

/// What [`mix_formats`] cannot have, since `profile` knows nothing of it: encodings and compressions that some split could be kept in, one of
/// each kind, as `forebay profile --encoding` takes them.
pub fn mix_unknown(profile: &Profile, max_lossy_share: f64) -> Vec<&'static str> {
    let Ok(pipeline) = Pipeline::from_spec(&profile.pipeline) else { return Vec::new() };
    let known = mix_formats(profile, 1.0);
    // `decoded+l3-fast+zstd-3` has an L3 and a ZSTD.
    let is_known = |kind: &str| {
        let is_it = |part: &str| part.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        known.iter().flat_map(|format| format.format.split('+').skip(1)).any(is_it)
    };
    let applies = |name: &str| {
        let Ok(format) = name.parse() else { return false };
        let may = |strategy: &Strategy| max_lossy_share > 0.0 || !strategy.is_lossy();
        Strategy::all(&pipeline, &[format]).iter().any(|strategy| strategy.format == format && may(strategy))
    };
    WORTH_A_TRY.iter().filter(|(kind, name)| !is_known(kind) && applies(name)).map(|(_, name)| *name).collect()
}

/// Whether no step before the split of `strategy` makes several samples of one: a mix consists of complete ones.
fn is_of_whole_samples(profile: &Profile, strategy: &StrategyProfile) -> bool {
    // A pipeline that cannot be created here has functions that only Python knows: a build will report that.
    let Ok(pipeline) = Pipeline::from_spec(&profile.pipeline) else { return true };
    let offline = pipeline.steps().iter().take(strategy.split.offline_steps());
    !offline.into_iter().any(|step| step.action.changes_count())
}

/// The limits of the machine and data of `profile`, with a shuffle buffer of `buffer_bytes`. The samples are those that were listed.
pub fn mix_limits(profile: &Profile, buffer_bytes: u64) -> MixLimits {
    MixLimits {
        samples: profile.data.samples,
        read_bytes_per_second: shards_bytes_per_second(profile),
        cores: profile.machine.cores as f64,
        buffer_bytes,
        max_storage_bytes: None,
        max_lossy_share: 0.0,
        trainer_samples_per_second: None,
    }
}

/// The best mix of `formats` under `limits`: the solution of the linear program.
pub fn mix(formats: &[MixFormat], limits: &MixLimits) -> Result<Mix> {
    check(formats, limits)?;
    check_capacity(formats, limits)?;
    let shares = program::best_shares(formats, limits)?;
    mix_of(formats, &without_empty(shares, formats, limits), limits)
}

/// That the storage is enough for some format. The solver would only say that there is no solution.
fn check_capacity(formats: &[MixFormat], limits: &MixLimits) -> Result<()> {
    match (limits.max_storage_bytes, capacity_per_sample(limits)) {
        (Some(bytes), Some(most)) if formats.iter().all(|format| format.bytes > most) => Err(Error::Argument {
            name: "max_storage",
            found: units::bytes(bytes as f64),
            expected: "enough for all samples in the smallest format",
        }),
        _ => Ok(()),
    }
}

/// A share of less than one sample is dropped, since no sample would be stored in that format: the largest share gets it, unless that violates a limit.
fn without_empty(shares: Vec<f64>, formats: &[MixFormat], limits: &MixLimits) -> Vec<f64> {
    let least = 1.0 / limits.samples.max(1) as f64;
    let mut possible = shares.clone();
    let lost: f64 = possible.iter_mut().filter(|share| **share < least).map(std::mem::take).sum();
    if let Some(largest) = possible.iter_mut().max_by(|one, other| one.total_cmp(other)) {
        *largest += lost;
    }
    if is_within_limits(formats, &possible, limits) { possible } else { shares }
}

/// The best mix of `formats` under `limits`, found in this way. All but the linear program need two formats.
pub fn mix_by(mode: MixMode, formats: &[MixFormat], limits: &MixLimits) -> Result<Mix> {
    if mode == MixMode::Linear {
        return mix(formats, limits);
    }
    let [one, other] = formats else {
        return Err(Error::Argument {
            name: "formats",
            found: formats.len().to_string(),
            expected: "two, to search or sweep their ratios",
        });
    };
    check(formats, limits)?;
    let (small, large) = if loads_faster(one, other) { (one, other) } else { (other, one) };
    let ratios = sweep(small, large, limits);
    let parts = parts_within_limits(&ratios).ok_or_else(|| Error::Argument {
        name: "mix",
        found: format!("none of {} ratios of `{}` and `{}`", ratios.len(), small.format, large.format),
        expected: "limits that some ratio satisfies",
    })?;
    let rate = |part: &u32| ratios[*part as usize].samples_per_second;
    let part = if mode == MixMode::Search {
        let rates = |part: u32| {
            let MixRates { load, decode, .. } = ratios[part as usize];
            Ok::<_, Infallible>((load.unwrap_or(f64::INFINITY), decode.unwrap_or(f64::INFINITY)))
        };
        let Ok(part) = search(parts, rates);
        part
    } else {
        let first = *parts.start();
        parts.max_by(|one, other| rate(one).total_cmp(&rate(other))).unwrap_or(first)
    };
    mix_of(&[small.clone(), large.clone()], &shares_at(part), limits)
}

/// The first and the last of `ratios` that are within the limits, and so are all in between, since what a mix takes is linear in its shares.
fn parts_within_limits(ratios: &[MixRates]) -> Option<RangeInclusive<u32>> {
    let mut within = (0..).zip(ratios).filter(|(_, rates)| rates.within_limits).map(|(part, _)| part);
    let first = within.next()?;
    Some(first..=within.last().unwrap_or(first))
}

/// The mix of `formats` in these shares, however they were found.
pub fn mix_of(formats: &[MixFormat], shares: &[f64], limits: &MixLimits) -> Result<Mix> {
    check(formats, limits)?;
    let rates = rates(formats, shares, limits);
    let mut named = rates.shares.clone();
    named.sort_by(|one, other| other.share.total_cmp(&one.share));
    Ok(Mix {
        bound_by: bounds(formats, shares, limits, &rates),
        sweep: partner(formats, shares, limits)
            .map_or_else(Vec::new, |(one, other)| sweep(&formats[one], &formats[other], limits)),
        shares: named,
        predicted_samples_per_second: rates.samples_per_second,
        measured_samples_per_second: None,
        hit_ratio: hit_ratio(formats, shares, limits),
        rates: Some(rates),
    })
}

/// What `shares` of `formats` give under `limits`, and whether those of capacity and loss allow them.
pub fn rates(formats: &[MixFormat], shares: &[f64], limits: &MixLimits) -> MixRates {
    let read_bytes = mean_bytes(formats, shares) * (1.0 - hit_ratio(formats, shares, limits));
    let cpu_seconds = mean(formats, shares, |format| format.cpu_seconds);
    let load = quotient(limits.read_bytes_per_second, read_bytes);
    let decode = quotient(limits.cores, cpu_seconds);
    let trainer = limits.trainer_samples_per_second;
    let rate = smallest(trainer, load, decode).map_or(0.0, |(rate, _)| rate);
    MixRates {
        shares: formats
            .iter()
            .zip(shares)
            .filter(|(_, share)| **share > SHARE_MIN)
            .map(|(format, &share)| MixShare { format: format.format.clone(), share })
            .collect(),
        load,
        decode,
        samples_per_second: rate,
        cpu_utilization: rate * cpu_seconds / limits.cores,
        storage_utilization: rate * read_bytes / limits.read_bytes_per_second,
        trainer_utilization: trainer.map(|trainer| rate / trainer),
        within_limits: is_within_limits(formats, shares, limits),
    }
}

/// The eleven ratios of two formats, from all of `one` to all of `other`.
pub fn sweep(one: &MixFormat, other: &MixFormat, limits: &MixLimits) -> Vec<MixRates> {
    let formats = [one.clone(), other.clone()];
    (0..=RATIO_PARTS).map(|part| rates(&formats, &shares_at(part), limits)).collect()
}

/// The shares of two formats at ratio number `part` of eleven.
pub fn shares_at(part: u32) -> [f64; 2] {
    let second = f64::from(part) / f64::from(RATIO_PARTS);
    [1.0 - second, second]
}

/// The paper's search over eleven ratios (its section 4.1), or those of them that the limits allow: `measure` gives the load and the decode rate of
/// ratio number `part`, where part 0 is the format that loads fastest and part 10 the one that decodes fastest. The part with the best rate.
///
/// Where loading is slower, there is too much of what decodes fastest: the upper half is left. (The paper has its ratios the other way round, and its
/// sentence leaves the wrong half if it is read as it stands.) Of the last two the faster one is taken, since the best lies between them.
pub fn search<E>(
    parts: RangeInclusive<u32>,
    mut measure: impl FnMut(u32) -> std::result::Result<(f64, f64), E>,
) -> std::result::Result<u32, E> {
    let (mut low, mut high) = parts.into_inner();
    while high - low > 1 {
        let middle = low.midpoint(high);
        let (load, decode) = measure(middle)?;
        if load < decode {
            high = middle;
        } else {
            low = middle;
        }
    }
    let mut rate = |part| measure(part).map(|(load, decode)| load.min(decode));
    Ok(if rate(high)? > rate(low)? { high } else { low })
}

/// Which of two formats loads faster, and so is part 0 of [`search`].
pub fn loads_faster(one: &MixFormat, other: &MixFormat) -> bool {
    one.bytes <= other.bytes
}

/// The share of the data set that stays in memory. The loader's own (`engine/src/load/liquid.rs`) is smaller by a sample of each format.
fn hit_ratio(formats: &[MixFormat], shares: &[f64], limits: &MixLimits) -> f64 {
    (limits.kept_bytes_per_sample() / (mean_bytes(formats, shares) + STORED_ENTRY_BYTES as f64)).min(1.0)
}

fn mean(formats: &[MixFormat], shares: &[f64], cost: fn(&MixFormat) -> f64) -> f64 {
    formats.iter().zip(shares).map(|(format, share)| cost(format) * share).sum()
}

fn mean_bytes(formats: &[MixFormat], shares: &[f64]) -> f64 {
    mean(formats, shares, |format| format.bytes)
}

fn lossy_share(formats: &[MixFormat], shares: &[f64]) -> f64 {
    mean(formats, shares, |format| f64::from(u8::from(format.lossy)))
}

/// Whether the limits of storage and of lossy formats allow these shares, but for rounding.
fn is_within_limits(formats: &[MixFormat], shares: &[f64], limits: &MixLimits) -> bool {
    let fits = capacity_per_sample(limits).is_none_or(|most| mean_bytes(formats, shares) <= most * (1.0 + ROUNDING));
    fits && lossy_share(formats, shares) <= limits.max_lossy_share + ROUNDING
}

impl MixLimits {
    /// What the buffer holds, over all samples of the data set.
    fn kept_bytes_per_sample(&self) -> f64 {
        self.buffer_bytes as f64 * (1.0 - BUFFER_SPARE) / self.samples as f64
    }
}

fn capacity_per_sample(limits: &MixLimits) -> Option<f64> {
    limits.max_storage_bytes.map(|bytes| bytes as f64 / limits.samples as f64)
}

/// What binds: within a thousandth of its limit.
fn bounds(formats: &[MixFormat], shares: &[f64], limits: &MixLimits, rates: &MixRates) -> Vec<MixBound> {
    let is_at = |value: f64, limit: f64| value >= limit * (1.0 - 1e-3);
    let rate = rates.samples_per_second;
    let mut bounds = Vec::new();
    let mut note = |binds: bool, bound| {
        if binds {
            bounds.push(bound);
        }
    };
    note(rates.load.is_some_and(|load| is_at(rate, load)), MixBound::Storage);
    note(rates.decode.is_some_and(|decode| is_at(rate, decode)), MixBound::Cpu);
    note(limits.trainer_samples_per_second.is_some_and(|trainer| is_at(rate, trainer)), MixBound::Trainer);
    let stored = mean_bytes(formats, shares);
    note(capacity_per_sample(limits).is_some_and(|most| is_at(stored, most)), MixBound::Capacity);
    let lossy = lossy_share(formats, shares);
    let limited = limits.max_lossy_share > 0.0 && limits.max_lossy_share < 1.0;
    note(limited && is_at(lossy, limits.max_lossy_share), MixBound::LossyShare);
    bounds
}

/// The two formats to show the ratios of: those with the largest shares, or the one that there is and the one with which it reaches most.
fn partner(formats: &[MixFormat], shares: &[f64], limits: &MixLimits) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..formats.len()).collect();
    order.sort_by(|&one, &other| shares[other].total_cmp(&shares[one]));
    let (&first, rest) = order.split_first()?;
    let best = |other: usize| {
        let rates = sweep(&formats[first], &formats[other], limits);
        // Between the ends: at them there is one format alone.
        rates[1..RATIO_PARTS as usize].iter().map(|rates| rates.samples_per_second).fold(0.0, f64::max)
    };
    let second = match rest.first() {
        Some(&second) if shares[second] > SHARE_MIN => second,
        _ => rest.iter().copied().max_by(|&one, &other| best(one).total_cmp(&best(other)))?,
    };
    Some(if loads_faster(&formats[first], &formats[second]) { (first, second) } else { (second, first) })
}

fn check(formats: &[MixFormat], limits: &MixLimits) -> Result<()> {
    let argument = |name, found: String, expected| Err(Error::Argument { name, found, expected });
    // Beyond these no measurement is meant, and a solver loses its digits.
    let is_amount = |value: f64| (0.0..=1e18).contains(&value);
    let is_rate = |value: f64| (1e-9..=1e18).contains(&value);
    if formats.is_empty() {
        return argument("formats", "none".to_owned(), "at least one strategy that is built and was measured");
    }
    if let Some(format) = formats.iter().find(|format| !is_rate(format.bytes) || !is_amount(format.cpu_seconds)) {
        let found = format!("{}: {} bytes, {} s", format.format, format.bytes, format.cpu_seconds);
        return argument("formats", found, "measured, with some bytes");
    }
    if limits.samples == 0 {
        return argument("samples", "0".to_owned(), "at least 1");
    }
    for (name, rate) in [("read", limits.read_bytes_per_second), ("cores", limits.cores)] {
        if !is_rate(rate) {
            return argument(name, rate.to_string(), "above 0");
        }
    }
    if let Some(rate) = limits.trainer_samples_per_second.filter(|rate| !is_rate(*rate)) {
        return argument("trainer", rate.to_string(), "above 0");
    }
    if !(0.0..=1.0).contains(&limits.max_lossy_share) {
        return argument("max_lossy_share", limits.max_lossy_share.to_string(), "between 0 and 1");
    }
    if limits.max_storage_bytes == Some(0) {
        return argument("max_storage", "0".to_owned(), "above 0");
    }
    Ok(())
}

mod program;

#[cfg(test)]
mod tests;
