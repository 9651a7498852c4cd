//! The parts of the page that are text and tables: the recommendation, the bottleneck, all numbers, how it was measured.

use forebay_plan::{
    Analysis, Analyzed, Caching, CompressionChoice, Plan, Profile, RankedStrategy, Runs, bound_there, bound_word,
    rate_with_spread, step_cells, units,
};

use super::html::{code, escape, with_code};
use super::plots::Grid;
use super::{Finding, Group};

pub(super) fn section(heading: &str, body: &str) -> String {
    format!("<section>\n<h2>{heading}</h2>\n{body}\n</section>")
}

fn dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

impl Group<'_> {
    /// The choice in half a line: `1,789 samples/s, 16.7 times single files`.
    pub(super) fn headline(&self) -> String {
        let Some(best) = self.plan.ranking.first() else { return String::new() };
        let rate = units::samples_per_second(best.samples_per_second());
        match best.summary.speedup.filter(|_| !best.summary.split.keeps_files() && best.forecast.is_none()) {
            Some(speedup) => format!("{rate}, {} times single files", units::number(speedup)),
            None => rate,
        }
    }
}

impl Group<'_> {
    /// What to know before relying on the recommendation. That nothing was cached is no news where the next profile has it cached.
    fn notices(&self) -> String {
        let cached = self.profiles.iter().any(|profile| profile.method.caching != Caching::None);
        let notices = self.plan.notices.iter().filter(|_| !cached);
        let paragraph = |notice: &String| format!("<p class=\"warning\">{}</p>\n", with_code(notice));
        notices.map(paragraph).collect()
    }
}

/// What to do, in words and in a few figures; no more than a part of the page where it is about an experiment.
pub(super) fn recommendation(group: &Group, prefix: &str, experiment: bool) -> String {
    let plan = &group.plan;
    let tile =
        |value: String, what: &str| format!("<div class=\"tile\"><b>{}</b><span>{what}</span></div>", escape(&value));
    let mut tiles = Vec::new();
    if let Some(best) = plan.ranking.first() {
        let there = best.forecast.as_ref();
        if let Some(cost) = best.cost {
            tiles.push(tile(units::number(cost.total), "in total, in the currency of the prices"));
        }
        let what = match there {
            Some(_) => "samples per second expected there",
            None if best.summary.disturbed || best.summary.runs == 0 => "samples per second, by the cost model",
            None => "samples per second",
        };
        tiles.push(tile(units::number(best.samples_per_second()), what));
        let speedup = there.map_or(best.summary.speedup, |there| there.speedup);
        if let Some(speedup) = speedup.filter(|_| !best.summary.split.keeps_files()) {
            tiles.push(tile(format!("{} ×", units::number(speedup)), "as fast as single files"));
        }
        tiles.push(tile(units::bytes(best.storage_bytes_total() as f64), "of storage for all samples"));
        tiles.push(tile(units::seconds(best.prep_seconds_total()), "to prepare once"));
        tiles.push(tile(units::seconds(best.epoch_seconds_total()), "for one epoch of all samples"));
    }
    let (element, heading) = if experiment { ("section", "h2") } else { ("header", "h1") };
    let of = if group.profiles.len() > 1 { ", by the first profile" } else { "" };
    format!(
        "<{element} id=\"{prefix}top\">\n<p class=\"kicker\">Pipeline {} on storage {}, {}{of}</p>\n\
         <{heading}>Recommended strategy: {}</{heading}>\n<p class=\"lead\">{}</p>\n{}<div class=\"tiles\">{}</div>\n</{element}>",
        code(&plan.pipeline.name),
        code(&plan.storage),
        plan.caching.words(),
        code(&plan.chosen),
        with_code(&plan.reason),
        group.notices(),
        tiles.concat(),
    )
}

/// What an experiment found.
pub(super) fn finding(found: &Finding) -> String {
    let (first, others) = found.remarks.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
    let item = |remark: &String| format!("<li>{}</li>\n", with_code(remark));
    let items: String = others.iter().map(item).collect();
    let items = if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") };
    format!(
        "<header>\n<p class=\"kicker\">Experiment {}</p>\n<h1>{}</h1>\n{items}</header>",
        code(found.experiment),
        with_code(first.trim_end_matches('.'))
    )
}

fn what_binds(ranked: &RankedStrategy, caching: Caching) -> &'static str {
    // What the runs showed, as in the text; the sentence has what the model makes of it.
    ranked.forecast.as_ref().map_or_else(|| bound_word(ranked.summary.bound_by, caching), bound_there)
}

/// The bottleneck of each strategy, best first.
pub(super) fn binding(plan: &Plan) -> String {
    let item = |ranked: &RankedStrategy| {
        let bound = what_binds(ranked, plan.caching);
        let out = ranked.excluded.as_ref().map_or_else(String::new, |excluded| format!(". Ruled out: {excluded}"));
        format!(
            "<li><span class=\"badge {bound}\">{bound}</span><div>{}<p>{}</p></div></li>\n",
            code(&ranked.summary.name),
            with_code(&format!("{}{out}", ranked.sentence))
        )
    };
    let items: String = plan.ranking.iter().map(item).collect();
    section("Bottlenecks", &format!("<ul class=\"binding\">\n{items}</ul>"))
}

/// The best compression for each split, and why; nothing if none was measured.
pub(super) fn compressions(plan: &Plan) -> Option<String> {
    let item = |choice: &CompressionChoice| {
        format!("<li><div>{}<p>{}</p></div></li>\n", code(&choice.strategy), with_code(&choice.sentence))
    };
    let items: String = plan.compressions.iter().map(item).collect();
    (!items.is_empty()).then(|| section("Compression of each split", &format!("<ul class=\"binding\">\n{items}</ul>")))
}

/// Everything about each strategy.
pub(super) fn numbers(analysis: &Analysis, plan: &Plan) -> String {
    let row = |one: &Analyzed| {
        let (ranked, summary) = (&one.ranked, &one.ranked.summary);
        vec![
            summary.name.clone(),
            one.rank.to_string(),
            dash(ranked.score, |score| format!("{score:.2}")),
            rate_with_spread(summary),
            dash(summary.predicted_samples_per_second, units::number),
            dash(summary.prediction_error, units::signed_percent),
            dash(summary.speedup, |speedup| format!("{} ×", units::number(speedup))),
            units::bytes(summary.storage_bytes_total as f64),
            units::seconds(summary.prep_seconds_total),
            dash(summary.break_even_epochs.filter(|_| !summary.split.keeps_files()), |epochs| {
                units::counted(epochs, "epoch")
            }),
            if one.pareto { "yes" } else { "no" }.to_owned(),
            what_binds(ranked, plan.caching).to_owned(),
        ]
    };
    let head = [
        "strategy",
        "rank",
        "score",
        "samples/s",
        "predicted",
        "error",
        "speed-up",
        "storage",
        "prepare",
        "pays off in",
        "on the front",
        "bound by",
    ];
    let grid = Grid::new(&head, analysis.strategies.iter().map(row).collect(), Some(plan.chosen.clone()));
    let note = "<p class=\"note\">The score is the mean of the criteria, each from 0 for the worst to 1 for the best, by weight. The \
                front contains the strategies that no other one beats in storage, throughput and preparation time together.</p>";
    section("All numbers", &format!("{note}\n{}", grid.html()))
}

/// What each step takes and gives when it is done on its own.
pub(super) fn steps(profile: &Profile) -> String {
    let grid = Grid::new(&["step", "CPU time", "output", "runs"], step_cells(&profile.steps), None);
    let note = "<p class=\"note\">One sample, on one thread, each step on its own.</p>";
    section("Each step", &format!("{note}\n{}", grid.html()))
}

/// The machine, the storage, the data and the runs; a row for each profile where there are several.
pub(super) fn method(profiles: &[&Profile]) -> String {
    let Some(first) = profiles.first() else { return String::new() };
    let items: String =
        facts(first).map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(&value))).concat();
    let mut body = format!("<dl>\n{items}</dl>");
    if profiles.len() > 1 {
        let row = |(number, profile): (usize, &&Profile)| {
            vec![
                (number + 1).to_string(),
                profile.storage.name.clone(),
                profile.method.caching.words().to_owned(),
                profile.method.threads.to_string(),
                units::count(profile.method.sample_count),
                match profile.method.runs {
                    Runs::None => "none".to_owned(),
                    Runs::Fast => "few".to_owned(),
                    Runs::Each(runs) => runs.to_string(),
                },
                profile.strategies.len().to_string(),
            ]
        };
        let head = ["profile", "storage", "cached", "threads", "samples", "runs", "strategies"];
        let grid = Grid::new(&head, profiles.iter().enumerate().map(row).collect(), None);
        let note = format!(
            "\n<p class=\"note\">These {} profiles are compared; the recommendation is based on the first.</p>\n{}",
            profiles.len(),
            grid.html()
        );
        body.push_str(&note);
    }
    section("How it was measured", &body)
}

fn facts(profile: &Profile) -> [(&'static str, String); 5] {
    let (machine, data, method, storage) = (&profile.machine, &profile.data, &profile.method, &profile.storage);
    let caching = match method.caching {
        Caching::None => "nothing: caches were dropped before each run",
        Caching::System => "the page cache, filled by a run that does not count",
        Caching::Application => "deserialized samples in memory",
    };
    [
        (
            "machine",
            format!(
                "{}, {}, {} of memory that one thread copies at {}",
                machine.cpu,
                units::counted(machine.cores as u64, "core"),
                units::bytes(machine.memory_bytes as f64),
                units::bytes_per_second(machine.memory_bytes_per_second)
            ),
        ),
        (
            "storage",
            format!(
                "{}: {} in sequence, {} whole files/s of {}",
                storage.name,
                units::bytes_per_second(storage.sequential_bytes_per_second),
                units::number(storage.files_per_second),
                units::bytes(storage.file_bytes)
            ),
        ),
        (
            "data",
            format!("{}: {}, {}", data.root, units::counted(data.samples, "sample"), units::bytes(data.bytes as f64)),
        ),
        (
            "runs",
            format!(
                "{} on {} and {}",
                match (method.runs, units::counted(method.sample_count, "sample")) {
                    (Runs::None, samples) => format!("none: costs of {samples} for each strategy,"),
                    (Runs::Fast, samples) => {
                        format!("few: costs of {samples} for each strategy, and runs of those that lead by them,")
                    }
                    (Runs::Each(runs), samples) => {
                        format!("{} of {samples} for each strategy,", units::count(u64::from(runs.get())))
                    }
                },
                units::counted(method.threads as u64, "thread"),
                units::counted(method.shards as u64, "shard")
            ),
        ),
        ("cached", caching.to_owned()),
    ]
}
