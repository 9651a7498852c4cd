//! What binds a strategy, in words.

use forebay_pipeline::Format;

use crate::forecast::reads_from_memory;
use crate::prediction::{
    Bound, Prediction, cpu_seconds, decode_threads, measured_hit_ratio, opening_share, predict, reading_cpu_seconds,
};
use crate::profile::{Caching, Profile, StrategyProfile};
use crate::summary::{Summary, seen};
use crate::units;
use crate::work::{WorkPart, work};

/// From this share of the CPU time on, the steps named are "most of it".
const MOST: f64 = 0.7;

/// From this relative error on, a sentence says that the model does not explain the measurement.
pub(crate) const ERROR_WORTH_SAYING: f64 = 0.25;

/// What binds `strategy`, without a final period: `disk-bound: 1.18 MB per sample at 438 MB/s allows 371 samples/s; ...`.
pub(crate) fn sentence(
    profile: &Profile,
    strategy: &StrategyProfile,
    summary: &Summary,
    trainer: Option<f64>,
) -> String {
    let prediction = predict(profile, strategy, trainer);
    let hit_ratio = measured_hit_ratio(profile);
    let bound = binding(profile, strategy, &prediction, hit_ratio);
    [
        Some(bound),
        contradiction(profile, strategy, summary, &prediction),
        doubt(strategy, summary),
        partly_cached(profile, summary),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join("; ")
}

/// What binds `strategy` by the cost model alone, where `hit_ratio` of its bytes comes from memory.
pub(crate) fn binding(
    profile: &Profile,
    strategy: &StrategyProfile,
    prediction: &Prediction,
    hit_ratio: f64,
) -> String {
    match prediction.bound_by {
        Bound::Storage => reading(profile, strategy, prediction, hit_ratio),
        Bound::Cpu => processing(profile, strategy, prediction, hit_ratio),
        Bound::Trainer => training(prediction),
        Bound::Unknown => {
            "bound by nothing that was measured: neither reading nor processing costs anything".to_owned()
        }
    }
}

/// That the runs showed something else to bind than the model says, where they did.
fn contradiction(
    profile: &Profile,
    strategy: &StrategyProfile,
    summary: &Summary,
    prediction: &Prediction,
) -> Option<String> {
    let stats = seen(profile, strategy).filter(|_| !summary.disturbed)?;
    let bound = stats.bound_by(profile.machine.cores);
    let differs = prediction.bound_by != bound && prediction.bound_by != Bound::Trainer;
    differs.then(|| format!("that is the model; the runs were {}", stats.sentence(profile.machine.cores)))
}

/// In runs that are shorter than this, the wait for the first batch counts for much.
pub const SHORT_RUN_SECONDS: f64 = 0.5;

/// That the model misses the measurement by much, where it does, and why.
fn doubt(strategy: &StrategyProfile, summary: &Summary) -> Option<String> {
    let error = summary.prediction_error.filter(|error| error.abs() >= ERROR_WORTH_SAYING)?;
    let measured = units::samples_per_second(summary.samples_per_second);
    let (share, side) = (units::percent(error.abs()), if error > 0.0 { "above" } else { "below" });
    let shortest = strategy.runs.iter().map(|run| run.seconds).reduce(f64::min).filter(|_| error > 0.0);
    let why = match shortest.filter(|&seconds| seconds < SHORT_RUN_SECONDS) {
        Some(seconds) => {
            format!(": runs of {} are too short: startup counts for much of them", units::seconds(seconds))
        }
        None => ", so something else matters too".to_owned(),
    };
    Some(format!("the model is {share} {side} the {measured} measured{why}"))
}

/// A note that a cached measurement does not apply to the entire data set, if memory is too small for it.
fn partly_cached(profile: &Profile, summary: &Summary) -> Option<String> {
    let memory = profile.machine.memory_bytes;
    let partly = profile.method.caching != Caching::None && summary.storage_bytes_total > memory;
    let [total, memory] = [summary.storage_bytes_total, memory].map(|bytes| units::bytes(bytes as f64));
    partly.then(|| {
        format!("the entire data set, {total}, does not fit in {memory} of memory, so only a part will be cached")
    })
}

fn reading(profile: &Profile, strategy: &StrategyProfile, prediction: &Prediction, hit_ratio: f64) -> String {
    let size = units::bytes(strategy.bytes_per_sample);
    let rate = prediction.load.unwrap_or_default();
    let load = units::number(rate);
    let processor = rest("the CPU could do", prediction.decode);
    let partly = hit_ratio > 0.0 && hit_ratio < 1.0;
    let held = if partly { format!(", {} of it from memory,", units::percent(hit_ratio)) } else { String::new() };
    if hit_ratio >= 1.0 || reads_from_memory(profile, strategy, hit_ratio) {
        let rate = match strategy.reading {
            Some(_) if !partly => rate * strategy.bytes_per_sample,
            _ => profile.machine.memory_bytes_per_second,
        };
        let rate = units::bytes_per_second(rate);
        return format!("memory-bound: {size} per sample{held} at {rate} allows {load} samples/s{processor}");
    }
    if strategy.split.keeps_files() && profile.pipeline.source.format == Format::Files {
        let held = if partly { format!(", {} of them in memory", units::percent(hit_ratio)) } else { String::new() };
        // Whichever takes the larger half of a file's time is what binds.
        let share = opening_share(&profile.storage, strategy.bytes_per_sample);
        return if share > 0.5 {
            format!("bound by opening files: {load} files/s of {size} each{held}{processor}")
        } else {
            format!("disk-bound: files of {size} are read at {load} files/s{held}{processor}")
        };
    }
    let rate = units::bytes_per_second(rate * strategy.bytes_per_sample * (1.0 - hit_ratio));
    format!("disk-bound: {size} per sample{held} at {rate} allows {load} samples/s{processor}")
}

/// From this share of the work on, what reading takes of the CPU is worth saying.
const READING_WORTH_SAYING: f64 = 0.1;

fn processing(profile: &Profile, strategy: &StrategyProfile, prediction: &Prediction, hit_ratio: f64) -> String {
    let work = cpu_seconds(profile, strategy, hit_ratio);
    let time = units::seconds(work);
    let threads = match decode_threads(profile) {
        1 => "1 thread".to_owned(),
        several => format!("{several} threads"),
    };
    let decode = units::number(prediction.decode.unwrap_or_default());
    let steps = heaviest(profile, strategy).map_or_else(String::new, |steps| format!(", {steps},"));
    let copying = reading_cpu_seconds(profile, strategy, hit_ratio);
    let copying = if copying >= READING_WORTH_SAYING * work {
        format!(" and {} of reading", units::seconds(copying))
    } else {
        String::new()
    };
    let load = rest("reading could give", prediction.load);
    format!("CPU-bound: {time} of work per sample{steps}{copying} on {threads} allow {decode} samples/s{load}")
}

fn training(prediction: &Prediction) -> String {
    let trainer = units::number(prediction.trainer.unwrap_or_default());
    let load = rest("reading could give", prediction.load);
    let processor = rest("the CPU could do", prediction.decode);
    format!("trainer-bound: it takes {trainer} samples/s{load}{processor}")
}

fn rest(what: &str, rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!("; {what} {}", units::samples_per_second(rate)))
}

/// The fewest parts of the online work that make most of its CPU time: `most of it decode and resize`.
fn heaviest(profile: &Profile, strategy: &StrategyProfile) -> Option<String> {
    // A strategy that stores encoded images has the encoding after its split: `decoded+png`.
    let encoding = strategy.name.split_once('+').map(|(_, encoding)| format!("decoding {encoding}"));
    let name = |part: WorkPart| match (part, &encoding) {
        (WorkPart::Deserialize, Some(encoding)) => encoding.clone(),
        _ => part.name(profile).to_owned(),
    };
    let parts = work(profile, strategy).into_iter().enumerate();
    let mut parts: Vec<(usize, String, f64)> =
        parts.map(|(index, work)| (index, name(work.part), work.cpu_seconds)).collect();
    let sum: f64 = parts.iter().map(|(_, _, seconds)| seconds).sum();
    parts.sort_by(|(_, _, one), (_, _, other)| other.total_cmp(one));
    let mut heavy_seconds = 0.0;
    let mut heavy_count = 0;
    while heavy_count < parts.len() && heavy_seconds < MOST * sum {
        heavy_seconds += parts[heavy_count].2;
        heavy_count += 1;
    }
    let share = if heavy_count == parts.len() { "all" } else { "most" };
    parts.truncate(heavy_count);
    // Named in the order in which they run.
    parts.sort_by_key(|(index, _, _)| *index);
    let names: Vec<&str> = parts.iter().map(|(_, name, _)| name.as_str()).collect();
    let (last, before) = names.split_last()?;
    let words = if before.is_empty() { (*last).to_owned() } else { format!("{} and {last}", before.join(", ")) };
    Some(format!("{share} of it {words}"))
}
