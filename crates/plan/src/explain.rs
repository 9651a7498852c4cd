//! Numbers in words: what binds a strategy, and why one was chosen.

use crate::objective::{Objective, RankedStrategy, Ranking};
use crate::prediction::{Bound, Prediction, cpu_seconds, decode_threads, opening_share, predict};
use crate::profile::{Caching, Profile, StrategyProfile};
use crate::summary::Summary;
use crate::units;

/// From this share of the processor time on, the steps named are "most of it".
const MOST: f64 = 0.7;

/// From this relative error on, a sentence says that the model does not explain the measurement.
const ERROR_WORTH_SAYING: f64 = 0.25;

/// What binds `strategy`, without a final period: `disk-bound: 1.18 MB per sample at 438 MB/s allows 371 samples/s; ...`.
pub(crate) fn sentence(
    profile: &Profile,
    strategy: &StrategyProfile,
    summary: &Summary,
    trainer: Option<f64>,
) -> String {
    let prediction = predict(profile, strategy, trainer);
    let bound = match prediction.bound_by {
        Bound::Storage => reading(profile, strategy, &prediction),
        Bound::Cpu => processing(profile, strategy, &prediction),
        Bound::Trainer => training(&prediction),
        Bound::Unknown => {
            "bound by nothing that was measured: neither reading nor processing costs anything".to_owned()
        }
    };
    [Some(bound), doubt(summary), partly_cached(profile, summary)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// That the model misses the measurement by much, where it does.
fn doubt(summary: &Summary) -> Option<String> {
    let error = summary.prediction_error.filter(|error| error.abs() >= ERROR_WORTH_SAYING)?;
    let measured = units::samples_per_second(summary.t4_samples_per_second);
    let (share, side) = (units::percent(error.abs()), if error > 0.0 { "above" } else { "below" });
    Some(format!("the model is {share} {side} the {measured} measured, so something else matters too"))
}

/// That a cached measurement does not hold for the whole data set, where memory is too small for it.
fn partly_cached(profile: &Profile, summary: &Summary) -> Option<String> {
    let memory = profile.machine.memory_bytes;
    let partly = profile.method.caching != Caching::None && summary.storage_bytes_total > memory;
    let [total, memory] = [summary.storage_bytes_total, memory].map(|bytes| units::bytes(bytes as f64));
    partly.then(|| format!("the whole {total} do not fit {memory} of memory, so only a part will be cached"))
}

fn reading(profile: &Profile, strategy: &StrategyProfile, prediction: &Prediction) -> String {
    let storage = &profile.storage;
    let size = units::bytes(strategy.bytes_per_sample);
    let load = units::number(prediction.load.unwrap_or_default());
    let processor = rest("the processor could do", prediction.decode);
    let (bound, rate) = match profile.method.caching {
        Caching::System => ("memory-bound", profile.machine.memory_bytes_per_second),
        Caching::None | Caching::Application => ("disk-bound", storage.sequential_bytes_per_second),
    };
    if bound == "disk-bound" && strategy.split.position == 0 {
        // Whichever takes the larger half of a file's time is what binds.
        let share = opening_share(storage, strategy.bytes_per_sample);
        return if share > 0.5 {
            format!("bound by opening files: {load} files/s of {size} each{processor}")
        } else {
            format!("disk-bound: whole files of {size} come at {load} files/s{processor}")
        };
    }
    let rate = units::bytes_per_second(rate);
    format!("{bound}: {size} per sample at {rate} allows {load} samples/s{processor}")
}

fn processing(profile: &Profile, strategy: &StrategyProfile, prediction: &Prediction) -> String {
    let time = units::seconds(cpu_seconds(profile, strategy));
    let threads = match decode_threads(profile) {
        1 => "1 thread".to_owned(),
        several => format!("{several} threads"),
    };
    let decode = units::number(prediction.decode.unwrap_or_default());
    let steps = heaviest(profile, strategy).map_or_else(String::new, |steps| format!(", {steps},"));
    let load = rest("reading could give", prediction.load);
    format!("processor-bound: {time} of work per sample{steps} on {threads} allow {decode} samples/s{load}")
}

fn training(prediction: &Prediction) -> String {
    let trainer = units::number(prediction.trainer.unwrap_or_default());
    let load = rest("reading could give", prediction.load);
    let processor = rest("the processor could do", prediction.decode);
    format!("trainer-bound: it takes {trainer} samples/s{load}{processor}")
}

fn rest(what: &str, rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!("; {what} {}", units::samples_per_second(rate)))
}

/// The fewest parts of the online work that make most of its processor time: `most of it decode and resize`.
fn heaviest(profile: &Profile, strategy: &StrategyProfile) -> Option<String> {
    let mut parts: Vec<(usize, String, f64)> = vec![];
    if profile.method.caching != Caching::Application && strategy.split.position > 0 {
        // A strategy that keeps pictures encoded names the encoding after its split: `decoded+png`.
        let encoding = strategy.name.split_once('+').map(|(_, encoding)| format!("decoding {encoding}"));
        let what = encoding.unwrap_or_else(|| "taking records apart".to_owned());
        parts.push((0, what, strategy.deserialise_cpu_seconds));
    }
    let steps = profile.online_steps(strategy);
    parts.extend(steps.iter().enumerate().map(|(place, step)| (place + 1, step.name.clone(), step.cpu_seconds)));
    parts.retain(|(_, _, seconds)| *seconds > 0.0);
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
    parts.sort_by_key(|(place, _, _)| *place);
    let names: Vec<&str> = parts.iter().map(|(_, name, _)| name.as_str()).collect();
    let (last, before) = names.split_last()?;
    let words = if before.is_empty() { (*last).to_owned() } else { format!("{} and {last}", before.join(", ")) };
    Some(format!("{share} of it {words}"))
}

/// Why the first strategy of `ranking` was chosen: what it gives and what binds it, what it beats, what it costs.
pub(crate) fn reason(profile: &Profile, objective: &Objective, ranking: &Ranking) -> String {
    let best = ranking.best();
    let runs = best.summary.runs;
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let rate = units::samples_per_second(best.summary.t4_samples_per_second);
    let first = format!("`{}` reaches {rate} over {runs} and is {}", best.summary.name, best.sentence);
    let excluded: Vec<_> = ranking.strategies().iter().filter(|ranked| ranked.excluded.is_some()).map(quoted).collect();
    let last = (!excluded.is_empty()).then(|| format!("The limits rule out {}", excluded.join(", ")));
    let sentences = [Some(first), comparison(objective, ranking), Some(cost(profile, &best.summary)), last];
    sentences.into_iter().flatten().map(|sentence| sentence + ".").collect::<Vec<_>>().join(" ")
}

/// How the best compares with the next and with reading files every epoch; `None` where there is nothing to compare with.
fn comparison(objective: &Objective, ranking: &Ranking) -> Option<String> {
    let best = ranking.best();
    let next = ranking.strategies().get(1).filter(|ranked| ranked.excluded.is_none());
    let files = ranking.strategies().iter().find(|ranked| ranked.summary.split.position == 0);
    // Said already where it is the best itself.
    let files = files.filter(|files| files.summary.name != best.summary.name);
    let Some(next) = next else {
        return files.map(|files| format!("It gives {}", times(best, files, &quoted(files))));
    };
    let name = format!("the runner-up {}", quoted(next));
    let files = files.filter(|files| files.summary.name != next.summary.name);
    let times_files = files.map(|files| times(best, files, &quoted(files)));
    if objective.weights.only_throughput() && best.score != next.score {
        let difference = best.summary.t4_samples_per_second - next.summary.t4_samples_per_second;
        let spread = best.summary.t4_spread + next.summary.t4_spread;
        let noise = if difference <= spread { ", no more than the spread of the runs" } else { "" };
        let times_files = times_files.map_or_else(String::new, |times| format!(", and {times}"));
        return Some(format!("It gives {}{noise}{times_files}", times(best, next, &name)));
    }
    let rate = units::samples_per_second(next.summary.t4_samples_per_second);
    let times_files = times_files.map_or_else(String::new, |times| format!("; it gives {times}"));
    let [score, next_score] = [best, next].map(|ranked| units::number(ranked.score.unwrap_or_default()));
    Some(if best.score == next.score {
        let why = tie_break(objective, &best.summary, &next.summary);
        format!("It scores the same as {name} ({rate}) but {why}{times_files}")
    } else {
        format!("It scores {score}, and {name} scores {next_score} at {rate}{times_files}")
    })
}

/// Why `best` comes before `next` although they score the same.
fn tie_break(objective: &Objective, best: &Summary, next: &Summary) -> String {
    let trainer = objective.trainer_samples_per_second;
    if best.useful_samples_per_second(trainer) > next.useful_samples_per_second(trainer) {
        "is faster".to_owned()
    } else if best.storage_bytes_total < next.storage_bytes_total {
        let [one, other] = [best, next].map(|summary| units::bytes(summary.storage_bytes_total as f64));
        format!("needs less storage ({one} against {other})")
    } else {
        "comes first by name".to_owned()
    }
}

fn quoted(ranked: &RankedStrategy) -> String {
    format!("`{}`", ranked.summary.name)
}

/// `1.86 times the runner-up (962 samples/s)`.
fn times(best: &RankedStrategy, other: &RankedStrategy, name: &str) -> String {
    let [one, two] = [best, other].map(|ranked| ranked.summary.t4_samples_per_second);
    let factor = if two > 0.0 { units::number(one / two) } else { "any number of".to_owned() };
    format!("{factor} times {name} ({})", units::samples_per_second(two))
}

fn cost(profile: &Profile, best: &Summary) -> String {
    if best.split.position == 0 {
        let size = units::bytes(profile.data.bytes as f64);
        return format!("It needs no preparation: the {size} of source files are read as they are");
    }
    let size = units::bytes(best.storage_bytes_total as f64);
    let ratio = best.storage_bytes_total as f64 / profile.data.bytes as f64;
    let ratio = if ratio.is_finite() { format!(" ({} times the source)", units::number(ratio)) } else { String::new() };
    let samples = units::count(profile.data.samples);
    let extrapolated = if profile.data.samples == profile.method.sample_count {
        String::new()
    } else {
        format!(", extrapolated from {}", units::count(profile.method.sample_count))
    };
    let prep = units::seconds(best.prep_seconds_total);
    let pays_off = match (best.speedup, best.break_even_epochs) {
        (None, _) => String::new(),
        (_, None) => ", which never pays off against reading files".to_owned(),
        (_, Some(0 | 1)) => ", which pays off within the first epoch".to_owned(),
        (_, Some(epochs)) => format!(", which pays off after {} epochs", units::count(epochs)),
    };
    format!(
        "For all {samples} samples{extrapolated}, it keeps {size}{ratio} and takes {prep} to prepare once{pays_off}"
    )
}
