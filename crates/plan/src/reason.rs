//! Why a strategy was chosen, in words.

use crate::compression::why;
use crate::objective::{Objective, RankedStrategy, Ranking};
use crate::prediction::samples_per_file;
use crate::profile::Profile;
use crate::units;

/// Why the first strategy of `ranking` was chosen: what it gives and what binds it, what it beats, what it costs.
pub(crate) fn reason(profile: &Profile, objective: &Objective, ranking: &Ranking) -> String {
    let best = ranking.best();
    let runs = match best.summary.runs {
        // What was measured of it is what others left of the machine.
        _ if best.summary.disturbed => "by the cost model".to_owned(),
        0 => "by the cost model".to_owned(),
        1 => "over 1 run".to_owned(),
        runs => format!("over {runs} runs"),
    };
    let measured = units::samples_per_second(best.summary.samples_per_second);
    let first = match &best.forecast {
        None => format!("`{}` reaches {measured} {runs} and is {}", best.summary.name, best.sentence),
        Some(there) => format!(
            "There, `{}` should reach {}, after {measured} here {runs}, and is {}",
            best.summary.name,
            units::samples_per_second(there.expected_samples_per_second),
            best.sentence
        ),
    };
    let excluded: Vec<_> = ranking.strategies().iter().filter(|ranked| ranked.excluded.is_some()).map(quoted).collect();
    let last = (!excluded.is_empty()).then(|| format!("The limits exclude {}", excluded.join(", ")));
    let comparison = comparison(objective, ranking);
    // Of another machine only what was measured here is known: the ranking says what is expected there.
    let compression = if objective.what_if.is_some() { None } else { why(profile, &best.summary.name) };
    let sentences = [
        Some(first),
        compression,
        comparison,
        Some(effort(profile, objective, best)),
        money(objective, best),
        last,
        disturbance(ranking),
    ];
    sentences.into_iter().flatten().map(|sentence| sentence + ".").collect::<Vec<_>>().join(" ")
}

/// A note that other programs disturbed the measurement, if they did, and what is uncertain because of it.
fn disturbance(ranking: &Ranking) -> Option<String> {
    let all = ranking.strategies();
    let disturbed = all.iter().filter(|ranked| ranked.summary.disturbed).count();
    if disturbed == 0 {
        return None;
    }
    let names: Vec<_> = unsure_about(ranking).map(quoted).collect();
    let rivals =
        if names.is_empty() { String::new() } else { format!(", and may be wrong about {}", names.join(", ")) };
    Some(format!(
        "Other programs disturbed every run of {disturbed} of {} strategies: those figures are predicted by the cost model{rivals}; measure \
         again on an idle machine before you rely on them",
        all.len()
    ))
}

/// What may be faster than the best for all that is known, since other programs disturbed one of the two.
pub(crate) fn unsure_about(ranking: &Ranking) -> impl Iterator<Item = &RankedStrategy> {
    let best = &ranking.best().summary;
    ranking.strategies().iter().skip(1).filter(|ranked| {
        let unsure = ranked.summary.disturbed || best.disturbed;
        ranked.excluded.is_none() && unsure && ranked.summary.max_samples_per_second >= best.min_samples_per_second
    })
}

/// How the best compares with the next and with reading files every epoch; `None` where there is nothing to compare with.
fn comparison(objective: &Objective, ranking: &Ranking) -> Option<String> {
    let best = ranking.best();
    let next = ranking.strategies().get(1).filter(|ranked| ranked.excluded.is_none());
    let files = ranking.strategies().iter().find(|ranked| ranked.summary.split.keeps_files());
    // Said already where it is the best itself.
    let files = files.filter(|files| files.summary.name != best.summary.name);
    let Some(next) = next else {
        return files.map(|files| format!("It gives {}", times(best, files, &quoted(files))));
    };
    let name = format!("the runner-up {}", quoted(next));
    let files = files.filter(|files| files.summary.name != next.summary.name);
    let times_files = files.map(|files| times(best, files, &quoted(files)));
    if objective.weights.only_throughput() && best.score != next.score {
        let noise = doubt(best, next).map_or_else(String::new, |doubt| format!(", {doubt}"));
        let times_files = times_files.map_or_else(String::new, |times| format!(", and {times}"));
        return Some(format!("It gives {}{noise}{times_files}", times(best, next, &name)));
    }
    let rate = units::samples_per_second(next.samples_per_second());
    let times_files = times_files.map_or_else(String::new, |times| format!("; it gives {times}"));
    let [score, next_score] = [best, next].map(|ranked| units::number(ranked.score.unwrap_or_default()));
    Some(if best.score == next.score {
        let why = tie_break(objective, best, next);
        format!("It scores the same as {name} ({rate}) but {why}{times_files}")
    } else {
        format!("It scores {score}, and {name} scores {next_score} at {rate}{times_files}")
    })
}

/// Why `next` may be as fast as `best` here, or faster.
fn doubt(best: &RankedStrategy, next: &RankedStrategy) -> Option<&'static str> {
    let (best_here, next_here) = (&best.summary, &next.summary);
    if best.forecast.is_some() {
        None
    } else if best_here.runs == 0 && next_here.max_samples_per_second >= best_here.min_samples_per_second {
        Some("but the cost model cannot distinguish the two: run both to be sure")
    } else {
        let difference = best.samples_per_second() - next.samples_per_second();
        let spread = best_here.samples_per_second_std + next_here.samples_per_second_std;
        (difference <= spread).then_some("no more than the spread of the runs")
    }
}

/// Why `best` comes before `next` although they score the same.
fn tie_break(objective: &Objective, best: &RankedStrategy, next: &RankedStrategy) -> String {
    let trainer = objective.trainer();
    if best.useful_samples_per_second(trainer) > next.useful_samples_per_second(trainer) {
        "is faster".to_owned()
    } else if best.storage_bytes_total() < next.storage_bytes_total() {
        let [one, other] = [best, next].map(|ranked| units::bytes(ranked.storage_bytes_total() as f64));
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
    let [one, two] = [best, other].map(RankedStrategy::samples_per_second);
    let factor = if two > 0.0 { units::number(one / two) } else { "any number of".to_owned() };
    format!("{factor} times {name} ({})", units::samples_per_second(two))
}

/// Its price: storage and preparation of the entire data set.
fn effort(profile: &Profile, objective: &Objective, best: &RankedStrategy) -> String {
    let samples = objective.what_if.and_then(|what_if| what_if.samples).unwrap_or(profile.data.samples);
    let source_bytes = profile.data.bytes as f64 * (samples as f64 / profile.data.samples.max(1) as f64);
    if best.summary.split.keeps_files() {
        let size = units::bytes(source_bytes);
        return format!("It needs no preparation: the {size} of source files are read directly");
    }
    let size = units::bytes(best.storage_bytes_total() as f64);
    let ratio = best.storage_bytes_total() as f64 / source_bytes;
    let ratio = if ratio.is_finite() { format!(" ({} times the source)", units::number(ratio)) } else { String::new() };
    let extrapolated = if samples == profile.method.sample_count {
        String::new()
    } else {
        format!(", extrapolated from {}", units::count(profile.method.sample_count))
    };
    let samples = units::count(samples);
    let prep = units::seconds(best.prep_seconds_total());
    let there = best.forecast.as_ref().map(|there| (there.speedup, there.break_even_epochs));
    let pays_off = match there.unwrap_or((best.summary.speedup, best.summary.break_even_epochs)) {
        (None, _) => String::new(),
        (_, None) => ", which never pays off against reading files".to_owned(),
        (_, Some(0 | 1)) => ", which pays off within the first epoch".to_owned(),
        (_, Some(epochs)) => format!(", which pays off after {} epochs", units::count(epochs)),
    };
    // A file may become many samples; what is counted here are files then.
    let strategy = profile.strategies.iter().find(|strategy| strategy.name == best.summary.name);
    let many = strategy.is_some_and(|strategy| samples_per_file(profile, strategy) > 1.001);
    let what = if many { "files" } else { "samples" };
    format!(
        "For all {samples} {what}{extrapolated}, it stores {size}{ratio} and takes {prep} to prepare once{pays_off}"
    )
}

/// What it costs, where there are prices.
fn money(objective: &Objective, best: &RankedStrategy) -> Option<String> {
    let (prices, cost) = (objective.prices?, best.cost?);
    let [preparation, storage, training, total] =
        [cost.prep, cost.storage, cost.training, cost.total].map(units::number);
    let (epochs, months) = (units::count(prices.epochs), prices.months);
    let requests = match prices.request {
        price if price > 0.0 => format!(", {} of requests", units::number(cost.requests)),
        _ => String::new(),
    };
    Some(format!(
        "At these prices it costs {total}: {preparation} to prepare, {storage} to store for {months} months, {training} of \
         accelerator time for {epochs} epochs{requests}"
    ))
}
