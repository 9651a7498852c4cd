//! The report page, its plots as files, the tables, and plans for other machines.

use std::path::Path;

use crate::support::{assert_keys, forebay, workspace};

/// Elements of HTML that have no end.
const VOID: [&str; 2] = ["meta", "br"];

/// Checks that every element that begins also ends, in order, and that attributes are quoted. Returns the elements' names.
#[track_caller]
fn well_formed(text: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') || tag.starts_with('?') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "`</{name}>` ends what is open");
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes come in pairs: <{tag}>");
        let name = tag.split([' ', '\n', '/']).next().unwrap();
        names.push(name.to_owned());
        // Scripts and styles hold other languages.
        if name == "script" || name == "style" {
            rest = rest.split_once(&format!("</{name}>")).expect("it ends").1;
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    names
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn profile(here: &Path, threads: usize, caching: &str, more: &str) -> String {
    let name = format!("{threads}-{caching}.json");
    let arguments = format!("--samples 8 --runs 2 --threads {threads} --caching {caching} -o {name} {more}");
    forebay(here, &format!("profile cv --data photos --seconds 0 {arguments}")).text();
    name
}

#[test]
fn the_page_needs_nothing_else_and_says_what_to_do() {
    let folder = workspace(10);
    let here = folder.path();
    let name = profile(here, 2, "none", "--encoding png");
    forebay(here, &format!("report {name} -o pages/report.html")).text();
    let page = read(here, "pages/report.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("<h1>Recommended strategy: <code>"));
    for outside in ["http", "src=", "url(", "@import", "<link", "<img", "//cdn"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("on storage <code>local</code>, nothing cached</p>"), "what was cached is said");
    assert!(page.contains("<p class=\"warning\">Measured with nothing cached, but the data fits in memory"));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("data-theme=dark"));
    assert!(page.contains("name=\"viewport\""));
    let names = well_formed(&page);
    let count = |name: &str| names.iter().filter(|found| *found == name).count();
    let plots = ["storage-throughput", "throughput", "storage-prep", "compression", "steps"];
    for id in plots {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(!page.contains("id=\"caching\"") && !page.contains("id=\"speed-up\""), "one profile has no such plots");
    assert_eq!(count("svg"), 2 * count("figure"), "each plot for the desk and for the phone");
    assert!(count("table") > count("figure"), "each plot has its table");
    let reachable = page.matches("tabindex=\"0\" role=\"img\" aria-label=").count();
    assert_eq!(reachable, count("title") - 1, "every mark that tells its value can be reached");
}

#[test]
fn what_others_disturbed_is_not_shown_as_measured() {
    let folder = workspace(10);
    let here = folder.path();
    let name = profile(here, 2, "none", "--strategy decoded");
    let mut found: serde_json::Value = serde_json::from_str(&read(here, &name)).unwrap();
    let runs = |found: &mut serde_json::Value, cores: f64| {
        for run in found["strategies"][0]["runs"].as_array_mut().unwrap() {
            run["others"] = serde_json::json!({"cores": cores, "disk_bytes_per_second": 0.0});
        }
    };
    let page = |found: &serde_json::Value| {
        std::fs::write(here.join("disturbed.json"), found.to_string()).unwrap();
        forebay(here, "report disturbed.json").text();
        read(here, "report.html")
    };
    runs(&mut found, 0.0);
    let quiet = page(&found);
    assert!(!quiet.contains("by the model: not run, or always disturbed") && !quiet.contains(">≈ "));
    runs(&mut found, 1.5);
    let busy = page(&found);
    assert!(busy.contains("by the model: not run, or always disturbed") && busy.contains(">≈ "));
    assert!(busy.contains("samples per second, by the cost model</span>"));
    let mixed = forebay(here, "mix disturbed.json --predict --format decoded --json").json();
    assert!(mixed["notices"].to_string().contains("disturbed every run of 1 of 1 strategies"), "{mixed}");
}

#[test]
fn several_profiles_are_compared() {
    let folder = workspace(10);
    let here = folder.path();
    let strategies = "--strategy unprocessed --strategy resized";
    let names = [(2, "none"), (2, "system"), (2, "application"), (1, "none")]
        .map(|(threads, caching)| profile(here, threads, caching, strategies));
    let outcome = forebay(
        here,
        &format!("report {} --svg-folder plots --csv all.csv --parquet all.parquet --json", names.join(" ")),
    )
    .json();
    assert_keys(&outcome, "report bytes plots tables");
    assert_eq!(outcome["tables"], serde_json::json!(["all.csv", "all.parquet"]));
    let page = read(here, "report.html");
    well_formed(&page);
    assert!(page.contains("id=\"caching\"") && page.contains("id=\"speed-up\""));
    assert!(page.contains("These 4 profiles are compared"));
    assert!(!page.contains("class=\"warning\""), "caching was measured too");
    let plots: Vec<&str> = outcome["plots"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(plots.contains(&"plots/caching.svg") && plots.contains(&"plots/speed-up.svg"), "{plots:?}");
    for path in plots {
        let plot = read(here, path);
        assert_eq!(well_formed(&plot)[0], "svg", "{path}");
        assert_eq!(plot.matches("http").count(), 1, "{path}: the name of the format alone");
        assert!(!plot.contains("NaN") && !plot.contains("inf\""), "{path}");
    }
    let csv = read(here, "all.csv");
    assert_eq!(csv.lines().count(), 1 + 4 * 2);
    assert!(csv.starts_with("profile,pipeline,storage,caching,threads,shards,sample_count,samples_total,strategy,"));
    assert!(std::fs::read(here.join("all.parquet")).unwrap().ends_with(b"PAR1"));
}

#[test]
fn pipelines_have_their_own_parts_of_the_page() {
    let folder = workspace(10);
    let here = folder.path();
    let name = profile(here, 1, "none", "--strategy unprocessed");
    let other = read(here, &name).replacen("\"name\": \"cv\"", "\"name\": \"my <own>\"", 1);
    std::fs::write(here.join("other.json"), other).unwrap();
    forebay(here, &format!("report {name} other.json --svg-folder plots")).text();
    let page = read(here, "report.html");
    well_formed(&page);
    assert!(page.contains("<h1>2 pipelines</h1>") && page.contains("my &lt;own&gt;"));
    assert!(page.contains("id=\"pipeline-1-steps\"") && page.contains("id=\"pipeline-2-steps\""));
    assert!(here.join("plots/2-steps.svg").is_file());
}

#[test]
fn another_machine_and_money_are_planned_for() {
    let folder = workspace(10);
    let here = folder.path();
    let name = profile(here, 2, "none", "");
    let plan =
        forebay(here, &format!("plan {name} --what-if cores=32,read=910MB/s,memory=80GB,trainer=1200/s --json")).json();
    assert_eq!((&plan["other_machine"]["cores"], &plan["trainer_samples_per_second"]), (&32.into(), &1200.0.into()));
    let forecast = &plan["ranking"][0]["forecast"];
    assert_keys(
        forecast,
        "name split measured_samples_per_second modeled_samples_per_second prediction cache_hit_ratio memory_bound \
         load_correction decode_correction expected_samples_per_second storage_bytes_total prep_seconds_total \
         epoch_seconds_total speedup break_even_epochs sentence",
    );
    assert!(forecast["expected_samples_per_second"].as_f64().unwrap() <= 1200.0);
    let prices = "--price cpu_hour=0.04,gb_month=0.02,accelerator_hour=2.5 --epochs 90 --months 6";
    let costly = forebay(here, &format!("plan {name} --objective money {prices} --what-if cores=4"));
    let text = costly.text();
    for heading in ["\nCosts\n", "\nThe other machine\n", "- Assumed: ", "prices"] {
        assert!(text.contains(heading), "{heading}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let plan = forebay(here, &format!("plan {name} --weights 0,0,1,2 {prices} --json")).json();
    assert_eq!(plan["weights"]["money"], 2.0);
    assert_keys(&plan["ranking"][0]["cost"], "prep storage training requests total");
    forebay(here, &format!("report {name} --what-if cores=32 {prices}")).text();
    let page = read(here, "report.html");
    well_formed(&page);
    assert!(page.contains("id=\"other-machine\"") && page.contains("id=\"money\""));
}

#[test]
fn requests_that_lack_something_say_so() {
    let folder = workspace(4);
    let here = folder.path();
    for (arguments, message) in [
        ("plan p.json --what-if cores=many", "error: invalid value 'cores=many' for '--what-if"),
        ("plan p.json --what-if gpus=2", "error: invalid value 'gpus=2' for '--what-if"),
        ("plan p.json --epochs 3", "error: the following required arguments were not provided:\n  --price"),
        (
            "plan p.json --objective money --weights 1,1,1",
            "error: the argument '--objective <CRITERION>' cannot be used with",
        ),
        ("report", "error: the following required arguments were not provided:\n  <PROFILE>"),
    ] {
        let refused = forebay(here, arguments);
        assert!(refused.error(2).starts_with(message), "{arguments}: {refused:#?}");
    }
    let name = profile(here, 1, "none", "--strategy unprocessed");
    for (arguments, message) in [
        ("--objective money", "error: `--objective money` requires `--price`\nhint: "),
        ("--price gb_month=1", "error: the price of `gb_month` needs `--months`\nhint: pass `--months N`"),
    ] {
        let refused = forebay(here, &format!("plan {name} {arguments}"));
        assert!(refused.error(2).starts_with(message), "{arguments}: {refused:#?}");
    }
}

/// The cells of the table of plot `id`, by row.
fn table<'p>(page: &'p str, id: &str) -> Vec<Vec<&'p str>> {
    let section = page.split_once(&format!("<section id=\"{id}\">")).expect("the plot is there").1;
    let body = section.split_once("<tbody>").unwrap().1.split_once("</tbody>").unwrap().0;
    let cell = |text: &'p str| text.rsplit_once('>').unwrap().1;
    let row = |row: &'p str| row.split("</t").map(str::trim).filter(|text| text.contains('<')).map(cell).collect();
    body.lines().filter(|line| line.starts_with("<tr")).map(row).collect()
}

#[test]
fn the_page_shows_what_the_text_says() {
    let folder = workspace(10);
    let here = folder.path();
    // Long enough that the system is looked at in every run, which has more than one batch however slow the machine is.
    let longer = "profile cv --data photos --samples 10 --batch-size 4 --runs 1 --seconds 0.3 -o profile.json";
    forebay(here, longer).text();
    forebay(here, "report profile.json").text();
    let page = read(here, "report.html");
    let profile: serde_json::Value = serde_json::from_str(&read(here, "profile.json")).unwrap();
    let strategies = profile["strategies"].as_array().unwrap();

    let plan = forebay(here, "plan profile.json --json").json();
    for ranked in plan["ranking"].as_array().unwrap() {
        let bound = match ranked["bound_by"].as_str().unwrap() {
            "storage" => "disk",
            "cpu" => "CPU",
            other => panic!("no trainer, and all was run: {other}"),
        };
        let item =
            format!("<span class=\"badge {bound}\">{bound}</span><div><code>{}<", ranked["name"].as_str().unwrap());
        assert!(page.contains(&item), "{item}");
    }

    let work = table(&page, "steps");
    assert_eq!(work.len(), strategies.len());
    for (row, strategy) in work.iter().zip(strategies) {
        let seconds = |key: &str| strategy[key].as_f64().unwrap();
        let total = seconds("deserialize_cpu_seconds") + seconds("online_cpu_seconds");
        assert_eq!(row[..2], [strategy["name"].as_str().unwrap(), &forebay_plan::units::seconds(total)]);
    }
    let threads = page.split_once("<section id=\"threads\">").unwrap().1.split_once("<figure>").unwrap().0;
    let used = format!(" of {} cores used.", profile["machine"]["cores"]);
    assert!(threads.contains(&used), "the chosen one is described: {threads}");
    assert_eq!(table(&page, "threads").len(), strategies.len());

    let system = page.split_once("<section id=\"system\">").expect("the system was looked at").1;
    let chosen = page.split_once("<h1>Recommended strategy: <code>").unwrap().1.split_once('<').unwrap().0;
    assert!(system.contains(&format!("The thick line is <code>{chosen}</code>.")));
    assert_eq!(system.matches("class=\"trace strong ").count(), 2 * 4, "in each panel, for the desk and for the phone");
    assert!(table(&page, "system").iter().any(|row| row[0] == chosen));

    let effort = page.split_once("<section id=\"storage-prep\">").unwrap().1;
    assert!(effort.contains("offline: preparation, once</text>") && effort.contains("offline, once</title>"));
}

/// The rate by the cost model has its interval, in the text and on the page, which says how few runs there were.
#[test]
fn a_fast_profile_shows_what_it_leaves_open() {
    let folder = workspace(10);
    let here = folder.path();
    let fast = "profile cv --data photos --fast --compression-candidates none";
    let shown = forebay(here, fast);
    let text = shown.text();
    let rows: Vec<&str> =
        text.lines().skip_while(|line| !line.trim_start().starts_with("strategy ")).skip(1).take(5).collect();
    assert!(rows.iter().any(|row| row.contains('(') && row.contains('-')), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let sentence = text.split_once("\nFirst batches came after ").expect("one was run").1;
    assert!(sentence.lines().next().unwrap().contains(" ms (`"), "{text}");
    forebay(here, "report profile.json").text();
    let page = read(here, "report.html");
    assert!(page.contains("<dd>few: costs of ") && page.contains("and runs of those that lead by them, on "));
    let interval = rows.iter().find_map(|row| Some(row.split_once('(')?.1.split_once(')')?.0)).unwrap();
    assert!(page.contains(&format!(" ({interval})</td>")), "{interval}");
}

#[test]
fn a_report_by_money_begins_with_money() {
    let folder = workspace(4);
    let here = folder.path();
    let name = profile(here, 1, "none", "--encoding gzip-1");
    let prices = "--price gb_month=0.02,accelerator_hour=2.5 --epochs 90 --months 6";
    let offset = |page: &str, id: &str| page.find(&format!("<section id=\"{id}\">")).unwrap();
    for (objective, first) in [("--objective money", true), ("", false)] {
        forebay(here, &format!("report {name} {objective} {prices}")).text();
        let page = read(here, "report.html");
        for other in ["compression", "storage-throughput"] {
            assert_eq!(offset(&page, "money") < offset(&page, other), first, "{objective} {other}");
        }
        assert!(page.contains("<span>in total, in the currency of the prices</span>"));
    }
}

/// A profile in which PNG keeps the CPU busy and raw pixels the disk: `(name, bytes of a sample, CPU seconds)`.
const OPPOSED: [(&str, f64, f64); 2] = [("decoded+png", 5e5, 0.02), ("decoded", 1e6, 0.000_2)];

/// The plots of a mix show what `forebay mix` says: its rates over the ratio, and what it keeps busy.
#[test]
fn the_plots_of_a_mix_agree_with_its_text() {
    let folder = workspace(8);
    let here = folder.path();
    let name = profile(here, 2, "none", "--strategy decoded --strategy decoded+png");
    let mut measured: serde_json::Value = serde_json::from_str(&read(here, &name)).unwrap();
    measured["storage"]["sequential_bytes_per_second"] = 1e8.into();
    for strategy in measured["strategies"].as_array_mut().unwrap() {
        let (_, bytes, seconds) = OPPOSED.into_iter().find(|(name, ..)| strategy["name"] == *name).unwrap();
        strategy["bytes_per_sample"] = bytes.into();
        strategy["deserialize_cpu_seconds"] = seconds.into();
        strategy["online_cpu_seconds"] = 0.0.into();
        let kept = strategy.as_object_mut().unwrap();
        kept.remove("reading");
        kept.remove("working");
    }
    std::fs::write(here.join("mix.json"), measured.to_string()).unwrap();
    let text = forebay(here, "mix mix.json --predict");
    let found = forebay(here, "mix mix.json --predict --json").json();
    forebay(here, "report mix.json --svg-folder plots").text();
    let page = read(here, "report.html");
    well_formed(&page);
    let rates = table(&page, "mix");
    let percent = |value: &serde_json::Value| forebay_plan::units::percent(value.as_f64().unwrap());
    assert_eq!(rates.len(), 11);
    for (row, ratio) in rates.iter().zip(found["sweep"].as_array().unwrap()) {
        let rate = forebay_plan::units::number(ratio["samples_per_second"].as_f64().unwrap());
        let shown = [&rate, &percent(&ratio["cpu_utilization"]), &percent(&ratio["storage_utilization"])];
        assert_eq!([&row[3], &row[4], &row[5]], shown);
    }
    let triangles = table(&page, "mix-utilization");
    assert_eq!(triangles.iter().map(|row| row[0]).collect::<Vec<_>>(), ["decoded+png", "decoded", "the mix"]);
    let mix = &triangles[2];
    let said = format!("CPU {}, disk {}", mix[2], mix[3]);
    assert!(text.text().contains(&said), "{said}: {text:?}");
    assert!(page.contains(&format!("; {said}, throughput {}", mix[4])), "the triangle says it too");
    for plot in ["mix", "mix-utilization"] {
        assert_eq!(well_formed(&read(here, &format!("plots/{plot}.svg")))[0], "svg");
    }
}
