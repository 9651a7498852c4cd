//! What an experiment found, in a sentence: which of the things that it tried is best, and what that gives.

use forebay_plan::{Caching, Profile, units};

use super::Kind;
use super::planned::PlannedRun;
use super::show::Finding;

/// Runs that differ by less show nothing but their noise.
const NOISE: f64 = 0.05;

/// One thing that was tried, and its fastest strategy.
struct Tried<'a> {
    run: &'a PlannedRun,
    profile: &'a Profile,
    all: Vec<&'a Finding>,
    best: &'a Finding,
}

impl Tried<'_> {
    fn rate(&self) -> f64 {
        self.best.samples_per_second
    }

    fn rate_of(&self, strategy: &str) -> Option<f64> {
        self.all.iter().find(|finding| finding.strategy == strategy).map(|finding| finding.samples_per_second)
    }

    /// ``resized` gives 1,144 samples/s``.
    fn words(&self) -> String {
        format!("`{}` gives {}", self.best.strategy, units::samples_per_second(self.rate()))
    }
}

/// What was found; `None` where nothing was.
pub(super) fn headline(kind: &Kind, runs: &[PlannedRun], profiles: &[Profile], findings: &[Finding]) -> Option<String> {
    let tried = tried(runs, profiles, findings);
    let best = tried.iter().max_by(|one, other| one.rate().total_cmp(&other.rate()))?;
    let first = tried.first()?;
    match kind {
        Kind::Strategies(_) => Some(strategies(first)),
        Kind::Caching(_) => Some(caching(first, best)),
        Kind::Compression(_) => compressions(&tried).into_iter().next(),
        Kind::Parallelism(_) => parallelism(&tried, best),
        Kind::SampleCount(_) => sample_count(&tried),
        Kind::SampleSize(_) => sample_size(&tried),
        Kind::Shuffle(_) => shuffle(&tried),
        Kind::AddStep(add) => added(&tried, &add.at),
    }
}

fn tried<'a>(runs: &'a [PlannedRun], profiles: &'a [Profile], findings: &'a [Finding]) -> Vec<Tried<'a>> {
    let tried = |(run, profile)| {
        let all = of_run(findings, run);
        let best = fastest(all.iter().copied())?;
        Some(Tried { run, profile, all, best })
    };
    runs.iter().zip(profiles).filter_map(tried).collect()
}

fn of_run<'f>(findings: &'f [Finding], run: &PlannedRun) -> Vec<&'f Finding> {
    findings.iter().filter(|finding| finding.run == run.name).collect()
}

fn fastest<'f>(findings: impl Iterator<Item = &'f Finding>) -> Option<&'f Finding> {
    findings.max_by(|one, other| one.samples_per_second.total_cmp(&other.samples_per_second))
}

fn times(one: f64, other: f64) -> String {
    format!("{} times", units::number(one / other))
}

fn strategies(tried: &Tried) -> String {
    let rate = units::samples_per_second(tried.rate());
    let files = tried.rate_of("unprocessed").filter(|_| tried.best.strategy != "unprocessed");
    let files = files.map_or_else(String::new, |files| format!(", {} reading the files", times(tried.rate(), files)));
    format!("`{}` is fastest: {rate}{files}.", tried.best.strategy)
}

fn caching(none: &Tried, best: &Tried) -> String {
    let gains = best.rate() > none.rate() * (1.0 + NOISE);
    let what = match best.profile.method.caching {
        Caching::System if gains => "The page cache is best",
        Caching::Application if gains => "Samples in memory are best",
        _ => return format!("Caching gains nothing: with nothing cached {}.", none.words()),
    };
    let factor = times(best.rate(), none.rate());
    format!("{what}: {}, {factor} the fastest with nothing cached (`{}`).", best.words(), none.best.strategy)
}

/// What compression gains of each pipeline, where it gains the most first.
fn compressions(tried: &[Tried]) -> Vec<String> {
    let gain = |one: &Tried| one.best.throughput_factor.unwrap_or(1.0);
    let mut ordered: Vec<&Tried> = tried.iter().collect();
    ordered.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
    let place = |one: &Tried| if tried.len() > 1 { format!("In `{}`: ", one.best.pipeline) } else { String::new() };
    ordered.iter().map(|one| place(one) + &compression(one)).collect()
}

/// What compression gains of the pipelines that the headline is not about.
pub(super) fn more_compressions(runs: &[PlannedRun], profiles: &[Profile], findings: &[Finding]) -> Vec<String> {
    compressions(&tried(runs, profiles, findings)).into_iter().skip(1).collect()
}

fn compression(tried: &Tried) -> String {
    let best = tried.best;
    let as_it_is = |words: String| format!("Compression gains no speed: as it is {words}.");
    let Some((plain, format)) = best.strategy.split_once('+') else { return as_it_is(tried.words()) };
    let rate = tried.rate_of(plain);
    if let Some(rate) = rate.filter(|rate| tried.rate() <= rate * (1.0 + NOISE)) {
        return as_it_is(format!("`{plain}` gives {}", units::samples_per_second(rate)));
    }
    let saved = best.space_saving.filter(|saved| *saved > 0.0);
    let saved = saved.map_or_else(String::new, |saved| format!(" in {} less storage", units::percent(saved)));
    let factor = rate.map_or_else(String::new, |rate| format!(", {} `{plain}` as it is", times(tried.rate(), rate)));
    format!("`{format}` is best: {}{factor}{saved}.", tried.words())
}

fn parallelism(tried: &[Tried], best: &Tried) -> Option<String> {
    let threads = |one: &Tried| one.profile.method.threads;
    let enough = tried.iter().filter(|one| one.rate() >= best.rate() * (1.0 - NOISE)).min_by_key(|one| threads(one))?;
    let fewest = tried.iter().min_by_key(|one| threads(one))?;
    let count = |one: &Tried| units::counted(threads(one) as u64, "thread");
    let more = tried.iter().any(|one| threads(one) > threads(enough));
    let verb = if threads(enough) == 1 { "is" } else { "are" };
    let judged = if more { "enough" } else { "best" };
    let gain = if threads(enough) > threads(fewest) {
        format!(", {} the fastest with {}", times(enough.rate(), fewest.rate()), count(fewest))
    } else {
        ", and more give no more".to_owned()
    };
    Some(format!("{} {verb} {judged}: {}{gain}.", count(enough), enough.words()))
}

fn sample_count(tried: &[Tried]) -> Option<String> {
    let count = |one: &Tried| one.profile.method.sample_count;
    let mut by_count: Vec<&Tried> = tried.iter().collect();
    by_count.sort_by_key(|one| count(one));
    let (largest, others) = by_count.split_last()?;
    let strategy = &largest.best.strategy;
    let differs = |one: &Tried| one.rate_of(strategy).map_or(f64::INFINITY, |rate| (rate / largest.rate() - 1.0).abs());
    let Some(last) = others.last() else { return Some(format!("{}.", largest.words())) };
    // The first from which on all are alike.
    let from = by_count.len() - by_count.iter().rev().take_while(|one| differs(one) <= NOISE).count();
    Some(match others.get(from) {
        Some(enough) => format!(
            "{} are enough: from there on `{strategy}` gives {}, within {}.",
            units::counted(count(enough), "sample"),
            units::samples_per_second(largest.rate()),
            units::percent(NOISE)
        ),
        None => format!(
            "{} may be too few: `{strategy}` gives {}, and with {} {} of that.",
            units::counted(count(largest), "sample"),
            units::samples_per_second(largest.rate()),
            units::count(count(last)),
            last.rate_of(strategy).map_or_else(|| "none".to_owned(), |rate| units::percent(rate / largest.rate()))
        ),
    })
}

fn sample_size(tried: &[Tried]) -> Option<String> {
    let stored = |one: &Tried| one.all.iter().copied().find(|finding| finding.strategy == "concatenated").cloned();
    let all: Vec<Finding> = tried.iter().filter_map(stored).collect();
    let bandwidth = |one: &Finding| one.samples_per_second * one.bytes_per_sample;
    let best = all.iter().max_by(|one, other| bandwidth(one).total_cmp(&bandwidth(other)))?;
    let worst = all.iter().min_by(|one, other| bandwidth(one).total_cmp(&bandwidth(other)))?;
    let [large, small] = [best, worst].map(|finding| units::bytes(finding.bytes_per_sample));
    let rate = units::bytes_per_second(bandwidth(best));
    let factor = times(bandwidth(best), bandwidth(worst));
    Some(if all.len() > 1 {
        format!("Samples of {large} come fastest: {rate}, {factor} those of {small}.")
    } else {
        format!("Samples of {large} come at {rate}.")
    })
}

fn shuffle(tried: &[Tried]) -> Option<String> {
    let (in_order, shuffled) = tried.split_first()?;
    let strategy = &in_order.best.strategy;
    let window = |one: &Tried| Some((one.profile.method.shuffle_window_bytes?, one.rate_of(strategy)?));
    let windows = shuffled.iter().filter_map(window);
    let (bytes, rate) = windows.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let lost = 1.0 - rate / in_order.rate();
    let cost = if lost > NOISE { units::percent(lost) } else { "next to nothing".to_owned() };
    let [rate, before] = [rate, in_order.rate()].map(units::number);
    Some(format!(
        "Shuffling costs `{strategy}` {cost} in windows of {}: {rate} samples/s, and {before} in order.",
        units::bytes(bytes as f64)
    ))
}

fn added(tried: &[Tried], at: &str) -> Option<String> {
    let (without, with) = tried.split_first()?;
    let best = with.iter().max_by(|one, other| one.rate().total_cmp(&other.rate()))?;
    let side = if best.run.name.starts_with("before-") { "before" } else { "after" };
    let factor = times(best.rate(), without.rate());
    let alike = with.iter().all(|one| one.rate() >= best.rate() * (1.0 - NOISE));
    if alike && with.len() > 1 {
        return Some(format!(
            "The step may as well be before `{at}` as after it: {}, {factor} the fastest without it.",
            best.words()
        ));
    }
    Some(format!("The step is best {side} `{at}`: {}, {factor} the fastest without it.", best.words()))
}
