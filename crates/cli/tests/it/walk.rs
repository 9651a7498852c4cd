//! The path of a user, from profile to load, as text and as JSON.

use std::path::Path;

use crate::support::{all_photos, assert_keys, files, forebay, shape, workspace};

#[test]
fn the_whole_path_as_text() {
    let folder = workspace(20);
    let here = folder.path();
    let profile = forebay(
        here,
        "profile cv --data photos --seconds 0 --samples 12 --runs 2 --threads 2 --storage ssd --csv runs.csv --compression-candidates none",
    );
    let text = profile.text();
    assert!(
        text.starts_with("Pipeline `cv` on storage `ssd`: 12 of 20 samples, 2 runs, 2 threads, nothing\ncached\n"),
        "{text}"
    );
    for strategy in ["unprocessed", "concatenated", "decoded", "resized", "pixel-centered"] {
        assert!(text.contains(&format!(" {strategy} ")), "{text}");
    }
    assert_eq!(text.matches("\n* ").count(), 1, "one row is marked: {text}");
    assert!(text.contains("\n\nwarning: Measured with nothing cached, but the data fits in memory"), "{text}");
    assert!(text.ends_with("profile: profile.json\ncsv:     runs.csv\ncsv:     system.csv\n\nNext, choose the best strategy:\n  forebay plan profile.json\n"), "{text}");

    let plan = forebay(here, "plan profile.json --max-storage 1GB");
    let text = plan.text();
    assert!(text.starts_with("Recommended strategy: `") && text.contains("\nBottlenecks\n- "), "{text}");
    assert!(text.contains("\nMeasured on storage `ssd` with 2 threads, nothing cached.\n"), "{text}");
    assert!(
        text.contains("\nwarning: Measured with nothing cached, ") && text.contains("`--caching system`"),
        "{text}"
    );
    assert_eq!((plan.stderr.as_str(), text.matches("\n* ").count()), ("", 1));

    let build = forebay(here, "build plan.json -o dataset --strategy resized");
    assert_eq!(
        shape(build.text()),
        "Built `resized` in dataset: # samples in # shards, # MB, in # ms.\n\n\
         Next, stream batches from it:\n forebay load dataset --shuffle\n"
            .replace(" ms.", if build.stdout.contains(" ms.") { " ms." } else { " s." })
    );
    let again = forebay(here, "build plan.json -o dataset --strategy resized");
    assert!(again.text().starts_with("`resized` in dataset was finished already: 20 samples in "), "{again:?}");

    let load = forebay(here, "load dataset --batch-size 8 --shuffle --epochs 2 --drop-last");
    let text = load.text();
    assert!(text.contains("samples      32\n") && text.contains("batches      4\n"), "{text}");
    assert!(text.contains("batch        image float32[8, 224, 224, 3], label int64[8]\n"), "{text}");

    assert_eq!(forebay(here, "report profile.json").text(), "report: report.html\n");
    let names: Vec<String> =
        std::fs::read_dir(here).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with('.')), "no temporary folder stays: {names:?}");
    for text in [&profile.stdout, &plan.stdout, &build.stdout, &load.stdout] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "no colors without a terminal");
    }
}

#[test]
fn a_cache_says_what_it_keeps() {
    let folder = workspace(12);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized -o dataset").text();
    let all = forebay(here, "load dataset --epochs 2 --cache 1GB --json").json();
    assert_keys(&all["cache"], "policy limit_bytes stage samples bytes hits stages");
    let found = |load: &serde_json::Value| {
        (load["cache"]["stage"].clone(), load["cache"]["samples"].clone(), load["cache"]["hits"].clone())
    };
    assert_eq!(found(&all), ("pixel-centered".into(), 12.into(), 12.into()), "{all:#}");
    assert_eq!(all["epochs"][1]["bytes_read"], 0);
    let pixels = all["cache"]["stages"][0]["bytes"].as_u64().unwrap();
    let kept = forebay(here, &format!("load dataset --epochs 2 --cache {} --json", pixels * 2)).json();
    assert_eq!(found(&kept), ("resized".into(), 12.into(), 12.into()), "{kept:#}");
    assert_eq!(kept["epochs"][1]["bytes_read"], 0);
    let text = forebay(here, &format!("load dataset --epochs 2 --cache {}", pixels * 2));
    let words = text.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("cache decoded: 12 samples as `resized`, ")
            && words.contains("(`pixel-centered` would need about "),
        "{text:?}"
    );
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
    assert!(forebay(here, "load dataset --json").json()["cache"].is_null());
}

#[test]
fn the_whole_path_as_json() {
    let folder = workspace(20);
    let here = folder.path();
    let profile = forebay(
        here,
        "profile cv --data photos --seconds 0 --samples 12 --runs 2 --json --compression-candidates none",
    )
    .json();
    assert_keys(
        &profile,
        "profile csv pipeline machine data method storage steps fastest skipped shortest_run_seconds strategies \
         notices",
    );
    assert_eq!(profile["strategies"].as_array().unwrap().len(), 5);
    for strategy in profile["strategies"].as_array().unwrap() {
        assert_keys(
            strategy,
            "name split samples_per_second samples_per_second_std storage_bytes prep_seconds predicted_samples_per_second bound_by",
        );
        assert!(strategy["samples_per_second"].as_f64().unwrap() > 0.0);
    }
    let plan = forebay(here, "plan profile.json --json").json();
    assert_eq!((&plan["notices"], profile["notices"].as_array().unwrap().len()), (&profile["notices"], 1));
    assert_keys(&plan, "file chosen reason ranking split prediction pipeline data storage weights limits");
    assert_eq!(plan["ranking"][0]["name"], plan["chosen"]);

    let build = forebay(here, "build cv --data photos --strategy decoded --shards 3 -o dataset --json").json();
    assert_keys(
        &build,
        "dataset strategy split samples skipped bytes shards shards_reused seconds classes skipped_samples",
    );
    assert_eq!((&build["samples"], &build["shards"], &build["shards_reused"]), (&20.into(), &3.into(), &0.into()));
    let again = forebay(here, "build cv --data photos --strategy decoded --shards 3 -o dataset --json").json();
    assert_eq!(again["shards_reused"], 3);

    let load = forebay(here, "load dataset --epochs 3 --json").json();
    assert_keys(
        &load,
        "source strategy storage threads samples skipped batches seconds samples_per_second bytes_read bytes_per_second batch \
         epochs notices skipped_samples",
    );
    assert_eq!(
        (&load["samples"], &load["skipped"], load["epochs"].as_array().unwrap().len()),
        (&60.into(), &0.into(), 3)
    );
    assert_eq!(load["bytes_read"].as_u64(), build["bytes"].as_u64().map(|bytes| bytes * 3));

    assert_keys(&forebay(here, "report profile.json --json").json(), "report bytes");
    assert_keys(&forebay(here, "pipelines --json").json(), "pipelines");
    let inspected = forebay(here, "inspect dataset --verify --record 4 --json").json();
    assert_keys(
        &inspected,
        "kind path pipeline strategy split samples bytes shards classes skipped verified problems record",
    );
    assert_eq!((&inspected["kind"], &inspected["problems"]), (&"dataset".into(), &serde_json::json!([])));
    for (path, kind) in [
        ("profile.json", "profile"),
        ("plan.json", "plan"),
        ("dataset/dataset.json", "dataset"),
        ("dataset/shard-00000.tfrecord", "records"),
        ("photos", "images"),
        ("cv", "pipeline"),
    ] {
        assert_eq!(forebay(here, &format!("inspect {path} --json")).json()["kind"], kind, "{path}");
    }
    let probe = forebay(here, "probe --seconds 0.05 --threads 2 --json").json();
    assert_keys(&probe, "storage measurements memory_bytes_per_second notices");
    assert_keys(&probe["measurements"][0], "access threads bytes_per_second iops latency");
    assert_eq!(probe["measurements"].as_array().unwrap().len(), 6);
}

#[test]
fn the_demo_walks_the_path_and_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let first = forebay(here, "demo --samples 8 --seconds 0 --storage ssd --json").json();
    assert_keys(&first, "data profile plan load report");
    assert_keys(&first["data"], "domain folder pipeline samples bytes seconds");
    assert_eq!((&first["data"]["domain"], &first["data"]["samples"]), (&"cv".into(), &8.into()));
    let photos = files(&here.join("demo/photos"));
    let second = forebay(here, "demo --samples 8 --seconds 0 --storage ssd");
    assert!(
        second.text().contains("\nResults\ndata         demo/photos\nprofile      demo/profile.json\n"),
        "{second:?}"
    );
    assert_eq!(files(&here.join("demo/photos")), photos, "the same seed gives the same images");
    for name in ["profile.json", "profile.csv", "system.csv", "plan.json", "report.html"] {
        assert!(here.join("demo").join(name).is_file(), "{name}");
    }
    std::fs::create_dir(here.join("mine")).unwrap();
    std::fs::write(here.join("mine/thesis.txt"), "precious").unwrap();
    let refused = forebay(here, "demo --folder mine");
    assert!(refused.error(2).contains("`mine` was not made by `forebay demo`"), "{refused:?}");
}

#[test]
fn loading_reads_files_through_the_whole_pipeline_too() {
    let folder = workspace(10);
    let here = folder.path();
    let load = forebay(here, "load cv --data photos --batch-size 4 --samples 6 --cold --json").json();
    assert_eq!((&load["samples"], &load["batches"], &load["strategy"]), (&8.into(), &2.into(), &"unprocessed".into()));
    forebay(here, "profile cv --data photos --seconds 0 --samples 5 --runs 1 --strategy unprocessed").text();
    assert!(forebay(here, "plan profile.json").text().contains("forebay load plan.json"));
    assert_eq!(forebay(here, "load plan.json --json").json()["samples"], 10);
    let built = forebay(here, "build plan.json -o dataset");
    assert!(built.error(2).contains("nothing to build"), "{built:?}");
}

#[test]
fn a_ready_pipeline_is_printed_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = forebay(folder.path(), "inspect cv");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pipelines/cv.toml");
    assert_eq!(text.text(), std::fs::read_to_string(file).unwrap());
    std::fs::write(folder.path().join("my.toml"), &text.stdout).unwrap();
    assert_eq!(
        forebay(folder.path(), "inspect my.toml").text(),
        "pipeline      cv\n\
         files         **/*.{jpg,jpeg,png,webp,bmp,l3}\n\
         a file gives  image: bytes, label: int\n\
         \n\
         step           gives                                    stage\n\
         decode         image: uint8[?, ?, 3], label: int        decoded\n\
         resize         image: uint8[?, ?, 3], label: int        resized\n\
         center_pixels  image: float32[?, ?, 3], label: int      pixel-centered\n\
         random_crop    image: float32[224, 224, 3], label: int  (random)\n\
         \n\
         Strategies: unprocessed, concatenated, decoded, resized, pixel-centered\n"
    );
}

#[test]
fn a_folder_of_pictures_is_counted() {
    let folder = workspace(10);
    assert_eq!(
        shape(forebay(folder.path(), "inspect photos --verify").text()),
        "folder photos\nimages #\nsize # kB, # kB each\nverified every pixel could be decoded\n\n\
         format files bytes\njpeg # # kB\n\n\
         class (folder) files\ncity #\ncoast #\nforest #\nhills #\nmeadow #\n"
    );
    let first = files(&all_photos()).into_keys().next().unwrap();
    let picture = forebay(&all_photos(), &format!("inspect {} --verify", first.display()));
    assert!(picture.text().contains("format       jpeg\n"), "{picture:?}");
}

#[test]
fn csv_files_have_a_line_per_run() {
    let folder = workspace(10);
    let here = folder.path();
    let storage = "custom:read=500MB/s,seek=1ms";
    forebay(
        here,
        &format!("profile cv --data photos --seconds 0 --samples 8 --runs 2 --storage {storage} --csv out/runs.csv --compression-candidates none"),
    )
    .text();
    let runs = std::fs::read_to_string(here.join("out/runs.csv")).unwrap();
    let lines: Vec<&str> = runs.lines().collect();
    assert_eq!(lines.len(), 1 + 5 * 2);
    assert!(lines[1].starts_with("unprocessed,0,\"custom:read=500MB/s,seek=1ms\",none,"), "{}", lines[1]);
    let system = std::fs::read_to_string(here.join("out/system.csv")).unwrap();
    let mut columns = system.lines().map(|line| line.split(',').count());
    let first = columns.next().unwrap();
    assert!(first > 10 && columns.all(|count| count == first), "{system}");
}

#[test]
fn steps_of_every_epoch_can_be_changed_when_a_data_set_is_loaded() {
    let folder = workspace(6);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized -o set").text();
    let load = forebay(here, "load set --set random_crop.size=96 --batch-size 6 --json").json();
    assert_eq!(load["batch"][0]["shape"], serde_json::json!([6, 96, 96, 3]));
    let refused = forebay(here, "load set --set resize.size=128");
    assert!(refused.error(2).contains("keeps `resized`: what was done once"), "{refused:?}");
}

#[test]
fn a_plan_is_no_profile() {
    let folder = workspace(6);
    let here = folder.path();
    forebay(here, "profile cv --data photos --seconds 0 --runs 1 --strategy resized").text();
    forebay(here, "plan profile.json").text();
    assert!(forebay(here, "plan plan.json").error(2).contains("this is a plan, not a profile"));
    assert!(forebay(here, "build profile.json -o set").error(2).contains("this is a profile, not a plan"));
}

#[test]
fn a_run_lasts_as_long_as_asked_for_and_says_what_bound_it() {
    let folder = workspace(10);
    let here = folder.path();
    let asked = "profile cv --data photos --samples 10 --runs 1 --seconds 0.4 --strategy resized --json";
    let summary = &forebay(here, asked).json()["strategies"][0];
    assert!(summary["first_batch_seconds"].as_f64().unwrap() > 0.0, "{summary}");
    let text = std::fs::read_to_string(here.join("profile.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
    let run = &profile["strategies"][0]["runs"][0];
    assert!(run["seconds"].as_f64().unwrap() > 0.3 && run["passes"].as_u64().unwrap() > 1, "{run}");
    assert_eq!(run["samples"].as_u64(), run["passes"].as_u64().map(|passes| 10 * passes));
    assert!(run["stats"]["work_seconds"].as_f64().unwrap() > 0.0, "{run}");
    let load = forebay(here, "load cv --data photos --batch-size 1 --epochs 40");
    assert!(load.text().contains("\nThis was ") && load.text().contains("cores used."), "{load:?}");
    assert!(
        load.text().contains("first batch  after ") && load.text().contains(" (median of the epochs)\n"),
        "{load:?}"
    );
    assert!(load.text().lines().all(|line| line.chars().count() <= 80), "{load:?}");
}

#[test]
fn a_load_of_one_batch_tells_no_bottleneck() {
    let folder = workspace(10);
    let here = folder.path();
    let short = "\nThis was too short to determine the bottleneck: it ended ";
    assert!(forebay(here, "load cv --data photos").text().contains(short));
    let load = forebay(here, "load cv --data photos --json").json();
    assert_eq!(load["bound_by"], "unknown");
    let (all, steady) = (&load["stats"], &load["stats"]["steady"]);
    assert_eq!((all["samples"].as_u64(), steady["samples"].as_u64()), (Some(10), Some(0)));
    assert!(all["work_seconds"].as_f64() > steady["work_seconds"].as_f64(), "{load}");
}
