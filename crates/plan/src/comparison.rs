//! Several profiles of a pipeline side by side: the same strategies under other caching, with more threads, more samples,
//! larger ones, or shuffled.
//!
//! Profiles are compared only where they differ in one thing. Of several groups that could be drawn, the one that varies the most is
//! taken, then the one with the most threads, then with the most samples.

use serde::Serialize;

use crate::error::Result;
use crate::profile::{Caching, Profile};
use crate::summary::summarize;

/// What profiles of one pipeline show together.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Comparison {
    /// Throughput by what is cached; `None` where no two profiles differ in that alone.
    pub caching: Option<CachingGroup>,
    /// Speed-up over the fewest threads by threads: a group for each kind of caching.
    pub threads: Vec<LineGroup>,
    /// Throughput by the number of samples measured.
    pub sample_counts: Option<LineGroup>,
    /// Bytes per second by the bytes of a sample.
    pub sample_sizes: Option<LineGroup>,
    /// Throughput by how samples are shuffled.
    pub shuffles: Option<ShuffleGroup>,
}

/// Profiles that differ in shuffling alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShuffleGroup {
    /// The bytes of the windows, ascending; `None`, which comes first, where samples came in order.
    pub shuffle_window_bytes: Vec<Option<u64>>,
    /// One row for each strategy.
    pub rows: Vec<ShuffleRow>,
}

/// One strategy by how it is shuffled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShuffleRow {
    /// The strategy.
    pub strategy: String,
    /// Samples per second with each window; `None` where that was not measured.
    pub rates: Vec<Option<f64>>,
}

/// Profiles that differ in caching alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CachingGroup {
    /// How many threads all of them had.
    pub threads: usize,
    /// How many samples all of them took.
    pub sample_count: u64,
    /// One row for each strategy.
    pub rows: Vec<CachingRow>,
}

/// One strategy by what is cached. Samples per second; `None` where that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CachingRow {
    /// The strategy.
    pub strategy: String,
    /// Nothing cached.
    pub none: Option<f64>,
    /// The page cache.
    pub system: Option<f64>,
    /// Samples in memory.
    pub application: Option<f64>,
    /// The share of the time under system caching that application caching saves, which is what deserializing samples and
    /// copying them takes: (system - application) / system.
    pub deserialize_share: Option<f64>,
}

/// Lines that are drawn together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineGroup {
    /// What was cached.
    pub caching: Caching,
    /// How many threads; `None` where it is what varies.
    pub threads: Option<usize>,
    /// How many samples; `None` where it is what varies.
    pub sample_count: Option<u64>,
    /// A line for each strategy.
    pub lines: Vec<Line>,
}

/// One strategy over what varies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The strategy.
    pub strategy: String,
    /// Its points, by ascending `x`.
    pub points: Vec<Point>,
}

/// One point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// What varies: threads, samples or bytes.
    pub x: f64,
    /// What it gives: a speed-up, samples per second or bytes per second.
    pub y: f64,
    /// Samples per second.
    pub samples_per_second: f64,
}

/// One strategy of one profile.
struct Measured<'p> {
    profile: &'p Profile,
    strategy: String,
    rate: f64,
    bytes_per_sample: f64,
}

/// Compares profiles, which should be of one pipeline: those of different storages or data sets are kept separate.
pub fn compare(profiles: &[&Profile]) -> Result<Comparison> {
    let mut all = Vec::new();
    for &profile in profiles {
        for (summary, strategy) in summarize(profile, None)?.into_iter().zip(&profile.strategies) {
            let bytes_per_sample = strategy.bytes_per_sample;
            all.push(Measured { profile, strategy: summary.name, rate: summary.samples_per_second, bytes_per_sample });
        }
    }
    let cachings = [Caching::None, Caching::System, Caching::Application];
    Ok(Comparison {
        caching: caching(&all),
        threads: cachings.into_iter().filter_map(|caching| threads(&all, caching)).collect(),
        sample_counts: sample_counts(&all),
        sample_sizes: sample_sizes(&all),
        shuffles: shuffles(&all),
    })
}

/// The group of `all` in which `varied` takes the most values, at least two, while `fixed` is the same.
fn widest<'m, 'p, F: PartialEq, V: PartialEq>(
    all: &'m [Measured<'p>],
    fixed: impl Fn(&Profile) -> F,
    varied: impl Fn(&Profile) -> V,
) -> Option<Vec<&'m Measured<'p>>> {
    let group = |first: &Measured| -> Vec<&'m Measured<'p>> {
        let key = fixed(first.profile);
        all.iter().filter(|one| fixed(one.profile) == key).collect()
    };
    let width = |group: &[&Measured]| {
        let mut values: Vec<V> = Vec::new();
        for one in group {
            let value = varied(one.profile);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.len()
    };
    let size = |group: &[&Measured]| {
        let method = |one: &&Measured| (one.profile.method.threads, one.profile.method.sample_count);
        (width(group), group.iter().map(method).max())
    };
    let groups = all.iter().map(group).filter(|group| width(group) > 1);
    groups.reduce(|best, next| if size(&next) > size(&best) { next } else { best })
}

/// The strategies of a group, in the order in which they first come.
fn strategies<'m>(group: &[&'m Measured]) -> Vec<&'m str> {
    let mut names: Vec<&str> = Vec::new();
    for one in group {
        if !names.contains(&one.strategy.as_str()) {
            names.push(&one.strategy);
        }
    }
    names
}

/// On which storage and data.
fn data_and_storage(profile: &Profile) -> (String, String, u64) {
    (profile.storage.name.clone(), profile.data.root.clone(), profile.data.samples)
}

/// What is compared under the same shuffling: everything but shuffling itself.
fn shuffled(profile: &Profile) -> Option<u64> {
    profile.method.shuffle_window_bytes
}

fn caching(all: &[Measured]) -> Option<CachingGroup> {
    let fixed = |profile: &Profile| {
        (data_and_storage(profile), profile.method.threads, profile.method.sample_count, shuffled(profile))
    };
    let group = widest(all, fixed, |profile| profile.method.caching)?;
    let method = &group.first()?.profile.method;
    let row = |strategy: &str| {
        let rate = |caching| {
            let found = group.iter().find(|one| one.strategy == strategy && one.profile.method.caching == caching);
            found.map(|one| one.rate)
        };
        let [none, system, application] = [Caching::None, Caching::System, Caching::Application].map(rate);
        // Shares of time: a rate is one over a time.
        let share = system.zip(application).map(|(system, application)| 1.0 - system / application);
        CachingRow {
            strategy: strategy.to_owned(),
            none,
            system,
            application,
            deserialize_share: share.filter(|share| share.is_finite()),
        }
    };
    let rows = strategies(&group).into_iter().map(row).collect();
    Some(CachingGroup { threads: method.threads, sample_count: method.sample_count, rows })
}

/// The points of each strategy of `group`; `y` is made of a point and the first of its line.
fn lines(group: &[&Measured], x: impl Fn(&Measured) -> f64, y: impl Fn(&Measured, &Measured) -> f64) -> Vec<Line> {
    let line = |strategy: &str| {
        let mut ordered: Vec<&Measured> = group.iter().copied().filter(|one| one.strategy == strategy).collect();
        ordered.sort_by(|one, other| x(one).total_cmp(&x(other)));
        // Of two profiles under the same settings, the first is drawn.
        ordered.dedup_by(|one, other| x(one).total_cmp(&x(other)).is_eq());
        let first = ordered.first().copied();
        let point = |one: &&Measured| {
            let y = first.map_or(0.0, |first| y(one, first));
            Point { x: x(one), y, samples_per_second: one.rate }
        };
        let points: Vec<Point> = ordered.iter().map(point).filter(|point| point.y.is_finite()).collect();
        Line { strategy: strategy.to_owned(), points }
    };
    strategies(group).into_iter().map(line).filter(|line| line.points.len() > 1).collect()
}

fn threads(all: &[Measured], caching: Caching) -> Option<LineGroup> {
    let fixed = |profile: &Profile| {
        (data_and_storage(profile), profile.method.caching, profile.method.sample_count, shuffled(profile))
    };
    let cached: Vec<Measured> = all.iter().filter(|one| one.profile.method.caching == caching).map(again).collect();
    let group = widest(&cached, fixed, |profile| profile.method.threads)?;
    let lines = lines(&group, |one| one.profile.method.threads as f64, |one, first| one.rate / first.rate);
    let sample_count = group.first().map(|one| one.profile.method.sample_count);
    Some(LineGroup { caching, threads: None, sample_count, lines })
}

fn again<'p>(one: &Measured<'p>) -> Measured<'p> {
    Measured {
        profile: one.profile,
        strategy: one.strategy.clone(),
        rate: one.rate,
        bytes_per_sample: one.bytes_per_sample,
    }
}

fn sample_counts(all: &[Measured]) -> Option<LineGroup> {
    let fixed = |profile: &Profile| {
        (data_and_storage(profile), profile.method.caching, profile.method.threads, shuffled(profile))
    };
    let group = widest(all, fixed, |profile| profile.method.sample_count)?;
    let method = &group.first()?.profile.method;
    let lines = lines(&group, |one| one.profile.method.sample_count as f64, |one, _| one.rate);
    Some(LineGroup { caching: method.caching, threads: Some(method.threads), sample_count: None, lines })
}

fn sample_sizes(all: &[Measured]) -> Option<LineGroup> {
    // Other sizes mean another data set, so the folder may differ.
    let fixed = |profile: &Profile| {
        let method = &profile.method;
        (profile.pipeline.name.clone(), profile.storage.name.clone(), method.caching, method.threads, shuffled(profile))
    };
    let mean_bytes = |profile: &Profile| profile.data.bytes / profile.data.samples.max(1);
    let group = widest(all, fixed, mean_bytes)?;
    let method = &group.first()?.profile.method;
    let lines = lines(&group, |one| one.bytes_per_sample, |one, _| one.rate * one.bytes_per_sample);
    Some(LineGroup { caching: method.caching, threads: Some(method.threads), sample_count: None, lines })
}

fn shuffles(all: &[Measured]) -> Option<ShuffleGroup> {
    let fixed = |profile: &Profile| {
        let method = &profile.method;
        (data_and_storage(profile), method.caching, method.threads, method.sample_count)
    };
    let group = widest(all, fixed, shuffled)?;
    let mut shuffle_window_bytes: Vec<Option<u64>> = group.iter().map(|one| shuffled(one.profile)).collect();
    shuffle_window_bytes.sort_unstable();
    shuffle_window_bytes.dedup();
    let row = |strategy: &str| {
        let rate = |window: &Option<u64>| {
            let found = group.iter().find(|one| one.strategy == strategy && shuffled(one.profile) == *window);
            found.map(|one| one.rate)
        };
        ShuffleRow { strategy: strategy.to_owned(), rates: shuffle_window_bytes.iter().map(rate).collect() }
    };
    let rows = strategies(&group).into_iter().map(row).collect();
    Some(ShuffleGroup { shuffle_window_bytes, rows })
}
