//! The report: a profile as one HTML page that needs nothing else, neither network nor script.

mod bars;
mod html;

use forebay_plan::{Caching, Plan, Profile, RankedStrategy, Summary, units};

use crate::commands::profile::{bound_by, counted, signed_percent};
use bars::{Bar, bars};
use html::{code, escape};

const STYLE: &str = include_str!("style.css");

/// The page of `profile`, with its strategies summarised and the plan by throughput alone.
pub(crate) fn page(profile: &Profile, summaries: &[Summary], plan: &Plan) -> String {
    let title = format!("{} on {}", escape(&profile.pipeline.name), escape(&profile.storage.name));
    let sections = [
        recommendation(profile, plan),
        throughput(summaries, plan),
        storage(profile, summaries, plan),
        binding(plan),
        steps(profile),
        numbers(profile, summaries, plan),
        method(profile),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Forebay: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}\n</main>\n\
         <footer>Made by forebay {} from {}.</footer>\n</body>\n</html>\n",
        sections.join("\n"),
        escape(&profile.forebay),
        code("profile.json"),
    )
}

fn section(heading: &str, note: &str, body: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{note}</p>\n") };
    format!("<section>\n<h2>{heading}</h2>\n{note}{body}\n</section>")
}

fn recommendation(profile: &Profile, plan: &Plan) -> String {
    let best = plan.ranking.first().map(|ranked| &ranked.summary);
    let tile =
        |value: String, what: &str| format!("<div class=\"tile\"><b>{}</b><span>{what}</span></div>", escape(&value));
    let mut tiles = Vec::new();
    if let Some(best) = best {
        tiles.push(tile(units::number(best.t4_samples_per_second), "samples per second"));
        if let Some(speedup) = best.speedup.filter(|_| best.split.position > 0) {
            tiles.push(tile(format!("{} ×", units::number(speedup)), "as fast as single files"));
        }
        tiles.push(tile(units::bytes(best.storage_bytes_total as f64), "of storage for all samples"));
        tiles.push(tile(units::seconds(best.prep_seconds_total), "to prepare once"));
    }
    format!(
        "<header>\n<p class=\"kicker\">Pipeline {} on storage {}</p>\n<h1>Keep {}</h1>\n<p class=\"lead\">{}</p>\n\
         <div class=\"tiles\">{}</div>\n</header>",
        code(&profile.pipeline.name),
        code(&profile.storage.name),
        code(&plan.chosen),
        html::with_code(&plan.reason),
        tiles.join(""),
    )
}

fn throughput(summaries: &[Summary], plan: &Plan) -> String {
    let rows = summaries.iter().map(|summary| Bar {
        label: summary.name.clone(),
        value: summary.t4_samples_per_second,
        text: units::number(summary.t4_samples_per_second),
        spread: Some((summary.t4_min, summary.t4_max)),
        mark: summary.predicted_samples_per_second,
        best: summary.name == plan.chosen,
    });
    let legend = "Samples per second that reach the trainer; more is better. The thin line spans the slowest and the fastest \
                  run, <span class=\"key\"></span> is what the cost model predicts.";
    section("Throughput", legend, &bars(&rows.collect::<Vec<_>>(), "speed"))
}

fn storage(profile: &Profile, summaries: &[Summary], plan: &Plan) -> String {
    let rows = summaries.iter().map(|summary| Bar {
        label: summary.name.clone(),
        value: summary.storage_bytes_total as f64,
        text: units::bytes(summary.storage_bytes_total as f64),
        spread: None,
        mark: None,
        best: summary.name == plan.chosen,
    });
    let note = format!("For all {}; less is better.", escape(&counted(profile.data.samples, "sample")));
    section("Storage", &note, &bars(&rows.collect::<Vec<_>>(), "size"))
}

fn binding(plan: &Plan) -> String {
    let item = |ranked: &RankedStrategy| {
        let bound = bound_by(ranked.summary.bound_by, plan.caching);
        format!(
            "<li><span class=\"badge {bound}\">{bound}</span><div>{}<p>{}</p></div></li>",
            code(&ranked.summary.name),
            html::with_code(&ranked.sentence)
        )
    };
    let items: Vec<String> = plan.ranking.iter().map(item).collect();
    section("What binds each", "", &format!("<ul class=\"binding\">{}</ul>", items.join("\n")))
}

fn steps(profile: &Profile) -> String {
    let rows = profile.steps.iter().map(|step| Bar {
        label: if step.random { format!("{} (random)", step.name) } else { step.name.clone() },
        value: step.cpu_seconds,
        text: format!("{}, gives {}", units::seconds(step.cpu_seconds), units::bytes(step.bytes_out)),
        spread: None,
        mark: None,
        best: false,
    });
    let note = "Processor time for one sample on one thread, and the bytes that each step gives. Random steps run every \
                epoch whatever is kept.";
    section("Steps", note, &bars(&rows.collect::<Vec<_>>(), "time"))
}

fn numbers(profile: &Profile, summaries: &[Summary], plan: &Plan) -> String {
    let headings = [
        "strategy",
        "samples/s",
        "spread",
        "predicted",
        "error",
        "speed-up",
        "storage",
        "prepare",
        "pays off in",
        "bound by",
    ];
    let headings = headings.map(|heading| format!("<th>{heading}</th>")).concat();
    let dash = || "–".to_owned();
    let row = |summary: &Summary| {
        let cells = [
            units::number(summary.t4_samples_per_second),
            if summary.runs < 2 { dash() } else { format!("± {}", units::number(summary.t4_spread)) },
            summary.predicted_samples_per_second.map_or_else(dash, units::number),
            summary.prediction_error.map_or_else(dash, signed_percent),
            summary.speedup.map_or_else(dash, |speedup| format!("{} ×", units::number(speedup))),
            units::bytes(summary.storage_bytes_total as f64),
            units::seconds(summary.prep_seconds_total),
            summary
                .break_even_epochs
                .filter(|_| summary.split.position > 0)
                .map_or_else(dash, |epochs| counted(epochs, "epoch")),
            bound_by(summary.bound_by, profile.method.caching).to_owned(),
        ];
        let cells = cells.map(|cell| format!("<td>{}</td>", escape(&cell))).concat();
        let class = if summary.name == plan.chosen { " class=\"best\"" } else { "" };
        format!("<tr{class}><th>{}</th>{cells}</tr>", escape(&summary.name))
    };
    let rows: Vec<String> = summaries.iter().map(row).collect();
    let table = format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table></div>",
        rows.join("\n")
    );
    section("All numbers", "", &table)
}

fn method(profile: &Profile) -> String {
    let (machine, data, method, storage) = (&profile.machine, &profile.data, &profile.method, &profile.storage);
    let caching = match method.caching {
        Caching::None => "nothing: caches were dropped before each run",
        Caching::System => "the page cache, filled by a run that does not count",
        Caching::Application => "deserialised samples in memory",
    };
    let facts = [
        (
            "machine",
            format!(
                "{}, {}, {} of memory that one thread copies at {}",
                machine.processor,
                counted(machine.cores as u64, "core"),
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
        ("data", format!("{}: {}, {}", data.root, counted(data.samples, "sample"), units::bytes(data.bytes as f64))),
        (
            "runs",
            format!(
                "{} of {} for each strategy, on {} and {}",
                units::count(u64::from(method.runs_total)),
                counted(method.sample_count, "sample"),
                counted(method.threads as u64, "thread"),
                counted(method.shards as u64, "shard")
            ),
        ),
        ("cached", caching.to_owned()),
    ];
    let items = facts.map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(&value))).concat();
    section("How it was measured", "", &format!("<dl>{items}</dl>"))
}
