//! Chooses the cache of a data set, by the predicted throughput of each.
//!
//! ```text
//! none      load                    decode
//! stored    load / (1 - h)          decode                      h = budget / bytes as they are stored
//! decoded   load / (1 - h)          decode / (1 - h saved)      h = budget / bytes after the steps before the cache
//! ```
//!
//! The bytes are those that samples take in memory, including an overhead for each ([`STORED_ENTRY_BYTES`], [`DECODED_ENTRY_BYTES`]), which exceeds the size of a few tokens.
//!
//! `saved` is the share of the work on a sample that is done before it is cached. Samples in their stored form are the smallest, so that most of them fit, which helps if
//! storage is the bottleneck; processed ones are larger, and help if the CPU is. The CPU time of reading that a hit saves is neglected.

use crate::error::{Error, Result};
use crate::prediction::{Bound, cpu_seconds, decode, disk_load, reading_cpu_seconds, smallest};
use crate::profile::{Profile, StrategyProfile};
use crate::units;
use crate::work::{WorkPart, work};

/// The approximate overhead of a cached sample in its stored form: its entry in the table, which grows by doubling, and what the allocator adds to each of
/// two blocks.
pub const STORED_ENTRY_BYTES: u64 = 192;

/// The approximate overhead of a sample that is cached after some steps: its key, its fields, its entry in the table, and what the allocator adds to
/// each of these.
pub const DECODED_ENTRY_BYTES: u64 = 384;

/// A data set that will be loaded many times.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSubject {
    /// The names of the strategies that its samples are stored in, and the share of each.
    pub formats: Vec<(String, f64)>,
    /// How many samples it has.
    pub samples: u64,
    /// How many bytes these have as they are stored.
    pub stored_bytes: u64,
    /// The memory budget for them.
    pub budget_bytes: u64,
    /// What a cache of samples as they are stored is called: `liquid` or `minio`.
    pub stored_name: &'static str,
    /// Whether samples can be cached after some of their steps: not if they have several formats, or if a step makes several of one.
    pub can_keep_decoded: bool,
}

impl CacheSubject {
    /// What all samples take in memory as they are stored.
    fn stored_footprint(&self) -> u64 {
        self.stored_bytes.saturating_add(self.samples.saturating_mul(STORED_ENTRY_BYTES))
    }
}

/// What to cache in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheChoice {
    /// Nothing: no cache of this size would gain anything.
    None,
    /// Samples as they are stored.
    Stored,
    /// Samples after some of their steps.
    Decoded,
}

/// What a cache gives.
#[derive(Debug, Clone, PartialEq)]
struct CacheRates {
    hit_ratio: f64,
    load: Option<f64>,
    decode: Option<f64>,
    /// The step after which samples are cached; `None` if they are cached in their stored form.
    after: Option<String>,
}

/// More than this must be gained for a cache that costs more.
const GAIN: f64 = 1.02;

/// The best cache for `subject` by what `profile` measured, and why, in a sentence with the figures.
pub fn choose_cache(profile: &Profile, subject: &CacheSubject) -> Result<(CacheChoice, String)> {
    let mut strategies = Vec::new();
    for (name, share) in &subject.formats {
        let found = profile.strategies.iter().find(|strategy| strategy.name == *name);
        let strategy = found.ok_or_else(|| Error::Argument {
            name: "profile",
            found: format!("one of `{}`, without `{name}`", profile.pipeline.name),
            expected: "one that measured the data set's own strategy (`forebay profile --strategy …`)",
        })?;
        strategies.push((strategy, *share));
    }
    let none = uncached(profile, &strategies);
    let stored = none.with_stored(subject);
    let decoded = match strategies[..] {
        [(strategy, _)] if subject.can_keep_decoded => Some(none.with_decoded(profile, strategy, subject)),
        _ => None,
    };
    // A cache that saves no work is the other one under another name.
    let decoded = decoded.filter(|decoded| decoded.after.is_some());
    let choice = if decoded.as_ref().is_some_and(|decoded| decoded.rate() > GAIN * stored.rate()) {
        CacheChoice::Decoded
    } else if stored.rate() > GAIN * none.rate() {
        CacheChoice::Stored
    } else {
        CacheChoice::None
    };
    Ok((choice, sentence(profile, subject, choice, [&none, &stored], decoded.as_ref())))
}

/// The stage at which samples are kept, of stages in which all of them take so many bytes: the furthest that fits, else the smallest, the further one of
/// two.
pub fn cached_stage(bytes: &[u64], budget_bytes: u64) -> usize {
    let smallest = || bytes.iter().enumerate().rev().min_by_key(|(_, bytes)| **bytes).map(|(stage, _)| stage);
    bytes.iter().rposition(|&bytes| bytes <= budget_bytes).or_else(smallest).unwrap_or(0)
}

/// The rates of formats in these shares without a cache: seconds add up, so rates are harmonic means.
fn uncached(profile: &Profile, strategies: &[(&StrategyProfile, f64)]) -> CacheRates {
    let mean = |rate: &dyn Fn(&StrategyProfile) -> Option<f64>| {
        let seconds: f64 =
            strategies.iter().map(|(strategy, share)| share * rate(strategy).map_or(0.0, |rate| 1.0 / rate)).sum();
        (seconds > 0.0).then(|| 1.0 / seconds)
    };
    CacheRates {
        hit_ratio: 0.0,
        load: mean(&|strategy| disk_load(profile, strategy, 0.0)),
        decode: mean(&|strategy| decode(profile, strategy, 0.0)),
        after: None,
    }
}

impl CacheRates {
    /// Samples per second; beyond all bounds where nothing was measured that bounds them.
    fn rate(&self) -> f64 {
        smallest(None, self.load, self.decode).map_or(f64::INFINITY, |(rate, _)| rate)
    }

    fn bound(&self) -> Bound {
        smallest(None, self.load, self.decode).map_or(Bound::Unknown, |(_, bound)| bound)
    }

    /// The same with a cache that hits so often, and saves so much of the work then.
    fn with(&self, hit_ratio: f64, saved: f64, after: Option<String>) -> Self {
        let faster = |rate: Option<f64>, gone: f64| rate.filter(|_| gone < 1.0).map(|rate| rate / (1.0 - gone));
        Self { hit_ratio, load: faster(self.load, hit_ratio), decode: faster(self.decode, hit_ratio * saved), after }
    }

    fn with_stored(&self, subject: &CacheSubject) -> Self {
        self.with(hit_ratio(subject.budget_bytes, subject.stored_footprint()), 0.0, None)
    }

    fn with_decoded(&self, profile: &Profile, strategy: &StrategyProfile, subject: &CacheSubject) -> Self {
        let stages = stages(profile, strategy, subject);
        let bytes: Vec<u64> = stages.iter().map(|stage| stage.bytes).collect();
        let entries = subject.samples.saturating_mul(DECODED_ENTRY_BYTES);
        let stage = &stages[cached_stage(&bytes, subject.budget_bytes.saturating_sub(entries))];
        let all = cpu_seconds(profile, strategy, 0.0) + reading_cpu_seconds(profile, strategy, 0.0);
        let saved = if all > 0.0 { (stage.saved_cpu_seconds / all).min(1.0) } else { 0.0 };
        self.with(hit_ratio(subject.budget_bytes, stage.bytes.saturating_add(entries)), saved, stage.after.clone())
    }
}

fn hit_ratio(budget_bytes: u64, bytes: u64) -> f64 {
    if budget_bytes >= bytes { 1.0 } else { budget_bytes as f64 / bytes as f64 }
}

/// A stage at which samples can be cached.
struct Stage {
    /// The last step that is done before; `None` for samples as they are stored.
    after: Option<String>,
    /// What all samples take then.
    bytes: u64,
    /// What a sample that comes from memory saves.
    saved_cpu_seconds: f64,
}

/// As they are stored, deserialized, and after each of the online steps that always give the same.
fn stages(profile: &Profile, strategy: &StrategyProfile, subject: &CacheSubject) -> Vec<Stage> {
    let all_bytes = |each: f64| (each * subject.samples as f64) as u64;
    let mut stages = vec![Stage { after: None, bytes: subject.stored_bytes, saved_cpu_seconds: 0.0 }];
    let parts = work(profile, strategy);
    let seconds = |part: WorkPart| parts.iter().find(|work| work.part == part).map_or(0.0, |work| work.cpu_seconds);
    let mut saved = seconds(WorkPart::Deserialize);
    let last_offline = strategy.split.offline_steps();
    // What is stored encoded or compressed can be cached decoded.
    if strategy.name.contains('+')
        && let Some(step) = profile.steps.get(last_offline)
    {
        let after = Some(step.name.clone());
        stages.push(Stage { after, bytes: all_bytes(step.bytes_out), saved_cpu_seconds: saved });
    }
    let online = profile.steps.iter().enumerate().skip(last_offline + 1);
    for (number, step) in online.take_while(|(_, step)| !step.random) {
        saved += seconds(WorkPart::Step(number));
        let after = Some(step.name.clone());
        stages.push(Stage { after, bytes: all_bytes(step.bytes_out), saved_cpu_seconds: saved });
    }
    stages
}

fn sentence(
    profile: &Profile,
    subject: &CacheSubject,
    choice: CacheChoice,
    [none, stored]: [&CacheRates; 2],
    decoded: Option<&CacheRates>,
) -> String {
    let rate = |rate: f64| {
        if rate.is_finite() { units::samples_per_second(rate) } else { "more than was measured".to_owned() }
    };
    let side = |rates: &CacheRates| match rates.bound() {
        Bound::Storage => "the disk gives",
        _ => "the CPU does",
    };
    let storage = &profile.storage.name;
    let sizes =
        format!("{} of {}", units::bytes(subject.budget_bytes as f64), units::bytes(subject.stored_footprint() as f64));
    let before = format!("{} {} without a cache", side(none), rate(none.rate()));
    let kept = |rates: &CacheRates| {
        let after =
            rates.after.as_ref().map_or_else(|| "as they are stored".to_owned(), |step| format!("after `{step}`"));
        let share = if rates.hit_ratio >= 1.0 { "all".to_owned() } else { units::percent(rates.hit_ratio) };
        format!("{share} of the samples {after}")
    };
    let other =
        |name: &str, rates: &CacheRates| format!("`{name}`, {}, would give {}", kept(rates), rate(rates.rate()));
    match (choice, decoded) {
        (CacheChoice::Decoded, Some(decoded)) => format!(
            "with {} in memory ({sizes}), {} {}; {before}, and {} (profiled on `{storage}`)",
            kept(decoded),
            side(decoded),
            rate(decoded.rate()),
            other(subject.stored_name, stored)
        ),
        (CacheChoice::Stored | CacheChoice::Decoded, decoded) => format!(
            "with {} in memory ({sizes}), {} {}; {before}{} (profiled on `{storage}`)",
            kept(stored),
            side(stored),
            rate(stored.rate()),
            decoded.map_or_else(String::new, |decoded| format!(", and {}", other("decoded", decoded)))
        ),
        (CacheChoice::None, decoded) => format!(
            "{before}, and {}{} (profiled on `{storage}`)",
            other(subject.stored_name, stored),
            decoded.map_or_else(String::new, |decoded| format!("; {}", other("decoded", decoded)))
        ),
    }
}
