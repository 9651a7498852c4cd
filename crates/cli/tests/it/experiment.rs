//! Experiments: planned, run, stopped, gone on with.

use std::path::Path;

use serde_json::Value;

use crate::support::{assert_keys, files, forebay, workspace};

const FEW: &str = "--seconds 0 --data photos --samples 8 --runs 1";

fn strategies_of(outcome: &Value, run: &str) -> Vec<String> {
    let findings = outcome["findings"].as_array().unwrap().iter().filter(|finding| finding["run"] == run);
    findings.map(|finding| finding["strategy"].as_str().unwrap().to_owned()).collect()
}

fn names(outcome: &Value) -> Vec<&str> {
    outcome["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect()
}

#[test]
fn a_plan_says_what_and_how_long_and_leaves_nothing() {
    let folder = workspace(12);
    let here = folder.path();
    let planned = forebay(here, &format!("experiment caching cv {FEW} --dry-run"));
    let text = planned.text();
    assert!(text.starts_with("Experiment caching: 3 runs\n"), "{text}");
    assert!(text.contains("It should take ") && text.contains("application"), "{text}");
    assert!(!here.join("experiment-caching").exists());
    let json = forebay(here, &format!("experiment caching cv {FEW} --dry-run --json")).json();
    assert!(json["estimated_seconds"].as_f64().unwrap() > 0.0 && json["seconds"].is_null());
}

#[test]
fn an_experiment_goes_on_where_it_was_stopped() {
    let folder = workspace(12);
    let here = folder.path();
    let command = format!("experiment caching cv {FEW} --strategy resized --strategy decoded --json");
    let first = forebay(here, &command).json();
    assert_keys(&first, "experiment folder runs estimated_seconds seconds report table findings remarks");
    assert_eq!(names(&first), ["none", "system", "application"]);
    assert_eq!(strategies_of(&first, "system"), ["resized", "decoded"]);
    let exists = |path: &str| here.join("experiment-caching").join(path).exists();
    assert!(exists("report.html") && exists("runs.csv") && exists("02-system.json") && exists("experiment.json"));
    let page = std::fs::read_to_string(here.join("experiment-caching/report.html")).unwrap();
    assert!(page.contains("id=\"caching\""), "the plot of what was varied is there");
    let found = page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0;
    let answers = ["The page cache is best: ", "Samples in memory are best: ", "Caching gains nothing: "];
    assert!(answers.iter().any(|answer| found.starts_with(answer)), "{found}");
    assert_eq!(page.matches("<h1>").count(), 1);
    let (varied, kept) = (page.find("id=\"caching\"").unwrap(), page.find("<h2>Recommended strategy: <code>").unwrap());
    assert!(varied < kept, "what was varied comes before what to keep of the first run");

    std::fs::remove_file(here.join("experiment-caching/02-system.json")).unwrap();
    let again = forebay(here, &command).json();
    let kept: Vec<bool> = again["runs"].as_array().unwrap().iter().map(|run| run["reused"] == true).collect();
    assert_eq!(kept, [true, false, true]);
    let rate = |outcome: &Value| outcome["findings"][0]["samples_per_second"].as_f64();
    assert_eq!(rate(&first), rate(&again), "what was measured stays");

    // What others disturbed is said, and marked.
    let first_profile = here.join("experiment-caching/01-none.json");
    let mut disturbed: Value = serde_json::from_str(&std::fs::read_to_string(&first_profile).unwrap()).unwrap();
    for run in disturbed["strategies"][0]["runs"].as_array_mut().unwrap() {
        run["others"] = serde_json::json!({"cores": 1.5, "disk_bytes_per_second": 0.0});
    }
    std::fs::write(&first_profile, disturbed.to_string()).unwrap();
    let busy = forebay(here, command.strip_suffix(" --json").unwrap());
    assert!(
        busy.text().contains("- Other programs disturbed every run of ") && busy.stdout.contains("  ≈ "),
        "{busy:?}"
    );

    let other = command.replace("--samples 8", "--samples 9");
    let refused = forebay(here, &other);
    assert!(refused.error(2).contains("with other settings") && refused.error(2).contains("--restart"), "{refused:?}");
    let restarted = forebay(here, &format!("{other} --restart")).json();
    assert!(restarted["runs"].as_array().unwrap().iter().all(|run| run["reused"] == false));
}

#[test]
fn every_kind_runs() {
    let folder = workspace(12);
    let here = folder.path();
    let run = |arguments: &str| forebay(here, &format!("experiment {arguments} --json")).json();
    let report = |kind: &str| std::fs::read_to_string(here.join(format!("experiment-{kind}/report.html"))).unwrap();

    // What was found comes first, on the page too, and is about what was varied.
    let said = |found: &Value, answers: &[&str]| {
        let first = found["remarks"][0].as_str().unwrap();
        assert!(answers.iter().any(|answer| first.contains(answer)), "{first}");
        let page = report(found["experiment"].as_str().unwrap());
        let heading = page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0;
        let plain = heading.replace("<code>", "`").replace("</code>", "`");
        assert_eq!(format!("{plain}."), first);
    };

    let found = run(&format!("strategies cv {FEW}"));
    assert_eq!(strategies_of(&found, "strategies").len(), 5);
    said(&found, &[" is fastest: "]);

    let found = run(&format!("compression cv {FEW} --strategy resized --compression gzip-1"));
    assert_eq!(strategies_of(&found, "compression"), ["resized", "resized+gzip-1"]);
    assert!(found["findings"][1]["space_saving"].as_f64().unwrap() > 0.0, "{found}");
    assert!(report("compression").contains("id=\"compression\""));
    said(
        &found,
        &["Compression gains no speed: as it is `resized` gives ", "`gzip-1` is best: `resized+gzip-1` gives "],
    );

    let found = run(&format!("parallelism cv {FEW} --strategy resized --threads 1,2"));
    assert_eq!(names(&found), ["threads-1", "threads-2"]);
    assert!(report("parallelism").contains("id=\"speed-up\""));
    said(&found, &["1 thread is enough: `resized` gives ", "2 threads are best: `resized` gives "]);

    let found = run(&format!("sample-count cv {FEW} --strategy resized --counts 2,4,8"));
    assert_eq!(names(&found), ["samples-2", "samples-4", "samples-8"]);
    assert!(report("sample-count").contains("id=\"sample-count\""));
    // Of files that are too few for as many parts, each part is measured once.
    let three = FEW.replace("--samples 8", "--samples 3");
    let few = forebay(here, &format!("experiment sample-count cv {three} --strategy resized --dry-run -o few --json"));
    assert_eq!(names(&few.json()), ["samples-1", "samples-3"]);
    said(&found, &["samples are enough: from there on `resized` gives ", "8 samples may be too few: `resized` gives "]);

    let found = run(&format!("shuffle cv {FEW} --strategy resized --windows 1MB,8MB"));
    assert_eq!(names(&found), ["in-order", "window-1MB", "window-8MB"]);
    assert!(found["remarks"].to_string().contains("Shuffling costs `resized`"), "{found}");
    assert!(report("shuffle").contains("id=\"shuffle\""));
    said(&found, &[" in windows of 1.00 MB: ", " in windows of 8.00 MB: "]);

    let found = run(&format!("add-step cv {FEW} --step grayscale --at center_pixels"));
    assert_eq!(names(&found), ["without", "before-center_pixels", "after-center_pixels"]);
    assert!(strategies_of(&found, "before-center_pixels").contains(&"grayscaled".to_owned()));
    said(
        &found,
        &[
            "The step is best before `center_pixels`: ",
            "The step is best after `center_pixels`: ",
            "The step may as well be before ",
        ],
    );
}

#[test]
fn wrong_requests_say_what_is_right() {
    let folder = workspace(2);
    let error = |arguments: &str| forebay(folder.path(), &format!("experiment {arguments}")).error(2).to_owned();
    let text = error(&format!("add-step cv {FEW} --step grayscale --at blur"));
    assert!(text.contains("no step `blur`") && text.contains("decode, resize"), "{text}");
    assert!(error(&format!("add-step cv {FEW} --step blur --at resize")).contains("no operation `blur`"));
    assert!(error(&format!("compression cv {FEW} --compression lzw")).contains("lzw"));
    assert!(!Path::new(&folder.path().join("experiment-add-step")).exists());
    assert!(error(&format!("parallelism cv {FEW} --threads 1,2,1")).contains("run `threads-1` is given twice"));
    assert!(error(&format!("sample-count cv {FEW} --counts 1,9")).contains("9 samples are asked for, but there are 2"));
    assert!(error("sample-size --total 0").contains("`--total 0`"));
}

#[test]
fn a_folder_is_one_experiments_on_the_data_as_it_is() {
    let folder = workspace(3);
    let here = folder.path();
    let experiment = format!("experiment strategies cv {FEW} --strategy resized -o kept");
    std::fs::create_dir(here.join("kept")).unwrap();
    std::fs::write(here.join("kept/report.html"), "mine").unwrap();
    assert!(forebay(here, &experiment).error(2).contains("`kept` holds other files"));
    assert_eq!(std::fs::read_to_string(here.join("kept/report.html")).unwrap(), "mine");
    std::fs::remove_file(here.join("kept/report.html")).unwrap();

    // One at a time.
    let lock = std::fs::File::create(here.join("kept/.lock")).unwrap();
    lock.lock().unwrap();
    assert!(forebay(here, &experiment).error(2).contains("another experiment is running in `kept`"));
    drop(lock);
    forebay(here, &experiment).text();
    let longer = forebay(here, &experiment.replace("--seconds 0", "--seconds 0.1"));
    assert!(longer.error(2).contains("with other settings"), "runs of another length are others: {longer:?}");

    // A profile that was damaged is measured again; a damaged experiment can be begun again.
    std::fs::write(here.join("kept/01-strategies.json"), "junk").unwrap();
    let again = forebay(here, &format!("{experiment} --json")).json();
    assert_eq!(again["runs"][0]["reused"], false);
    std::fs::write(here.join("kept/experiment.json"), "").unwrap();
    assert!(forebay(here, &experiment).error(1).contains("--restart"));
    std::fs::write(here.join("kept/12-notes.json"), "my own").unwrap();
    forebay(here, &format!("{experiment} --restart")).text();
    assert!(here.join("kept/12-notes.json").exists(), "only profiles are cleared away");

    // Another photo is other data.
    let photo = here.join("photos").join(files(&here.join("photos")).keys().next().unwrap());
    std::fs::copy(&photo, photo.with_file_name("another.jpg")).unwrap();
    assert!(forebay(here, &experiment).error(2).contains("on other data"));
}

#[test]
fn fast_profiles_run_what_leads() {
    let folder = workspace(20);
    let here = folder.path();
    let fast = forebay(here, "profile cv --data photos --seconds 0 --samples 20 --fast");
    let text = fast.text();
    assert!(text.contains("few runs") && text.contains("Strategies that were run have an `error`"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // All that were run: which of them count depends on what other tests do meanwhile.
    let profile = std::fs::read_to_string(here.join("profile.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&profile).unwrap();
    let runs = |strategy: &serde_json::Value| strategy["runs"].as_array().unwrap().len();
    let counts: Vec<usize> = profile["strategies"].as_array().unwrap().iter().map(runs).collect();
    // Twice; those whose rivals are close, up to four times.
    assert!(counts.iter().any(|&runs| runs > 0), "what leads was run: {counts:?}");
    assert!(counts.iter().all(|&runs| runs == 0 || (2..=4).contains(&runs)), "what leads was run: {counts:?}");
    assert_eq!(forebay(here, "report profile.json").text(), "report: report.html\n");
    let json = forebay(here, "profile cv --data photos --seconds 0 --fast --json").json();
    let strategies = json["strategies"].as_array().unwrap();
    let fastest = strategies.iter().find(|strategy| strategy["name"] == json["fastest"]).unwrap();
    assert_eq!(json["method"]["runs"], "fast");
    assert!((1..=2).contains(&fastest["runs"].as_u64().unwrap()), "{json}");
    assert!(forebay(here, "profile cv --data photos --seconds 0 --fast --runs 3").code == Some(2));
}

#[test]
fn sizes_are_tried_on_data_that_is_made_and_removed() {
    let folder = workspace(1);
    let here = folder.path();
    let found =
        forebay(here, "experiment sample-size --sizes 10KB,100KB --seconds 0 --total 1MB --runs 1 --dtype u8 --json")
            .json();
    assert_eq!(names(&found), ["size-10kB", "size-100kB"]);
    assert!(found["remarks"].to_string().contains("Of `concatenated`, samples of "), "{found}");
    let first = found["remarks"][0].as_str().unwrap();
    assert!(first.starts_with("Samples of ") && first.contains(" come fastest: "), "{first}");
    let files: Vec<String> = std::fs::read_dir(here.join("experiment-sample-size"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.iter().all(|name| !name.starts_with('.')), "the data is gone: {files:?}");
}
