//! One data set in several formats: choosing, building, looking at it, loading it.

use crate::support::{FOREBAY, assert_keys, command, files, forebay, ran, workspace};

#[test]
fn a_mix_is_chosen_built_and_loaded() {
    let folder = workspace(40);
    let here = folder.path();
    let profile = "profile cv --data photos --seconds 0 --samples 20 --runs 1 --threads 2 --storage ssd --strategy decoded \
                   --strategy decoded+png --strategy decoded+jpeg-85";
    forebay(here, profile).text();
    let measuring = "mix profile.json --buffer 1MB --samples 30 --batch-size 4 --seconds 0";
    let mix = forebay(here, &format!("{measuring} --json")).json();
    assert_keys(&mix, "shares predicted_samples_per_second measured_samples_per_second bound_by sweep notices");
    // Of data that fits in memory, and was read as if it did not.
    assert!(mix["notices"].to_string().contains("the data fits in memory"), "{mix}");
    assert_keys(&mix["shares"][0], "format share");
    let rates = "shares load decode samples_per_second cpu_utilization storage_utilization trainer_utilization \
                 within_limits";
    assert_keys(&mix["sweep"][3], rates);
    assert_eq!(mix["sweep"].as_array().unwrap().len(), 11);
    let shares: f64 = mix["shares"].as_array().unwrap().iter().map(|share| share["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{mix:#}");
    assert!(mix["measured_samples_per_second"].as_f64().unwrap() > 0.0);
    assert!(!mix.to_string().contains("jpeg"), "lossy formats must be allowed: {mix:#}");
    // It is measured where it was profiled, unless another storage is named.
    for (option, storage) in [("", "ssd"), (" --storage local", "local")] {
        let text = forebay(here, &format!("{measuring}{option}"));
        let words = text.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!(" samples/s on `{storage}` (prediction ")), "{option}: {text:?}");
    }
    // The other ways find the same, to the next tenth.
    let best = mix["predicted_samples_per_second"].as_f64().unwrap();
    for mode in ["search", "sweep"] {
        let command = format!(
            "mix profile.json --buffer 1MB --predict --mode {mode} --format decoded --format decoded+png --json"
        );
        let found = forebay(here, &command).json();
        let predicted = found["predicted_samples_per_second"].as_f64().unwrap();
        assert!(predicted <= best * 1.000_001 && predicted >= best * 0.8, "{mode}: {predicted} of {best}");
        assert!(found["measured_samples_per_second"].is_null());
    }
    let text = forebay(here, "mix profile.json --predict --max-lossy-share 1 --trainer 5");
    assert!(text.text().lines().any(|line| line.split_whitespace().eq(["bound", "by", "trainer"])), "{text:?}");
    let mut profile: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(here.join("profile.json")).unwrap()).unwrap();
    let next = format!(
        "Next, build the data set:\n  forebay build cv --data {} --mix decoded",
        profile["data"]["root"].as_str().unwrap()
    );
    assert!(text.stdout.contains(&next), "{text:?}");
    // What the profile knows nothing of is said, of what applies; what was named is all that was to be considered.
    let words = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("not considered `l3-fast`, `l3-dense`, `qoi`, "), "{words}");
    assert!(words.contains("(profile with `--encoding l3-fast`, say)"), "{words}");
    let named = forebay(here, "mix profile.json --predict --format decoded --format decoded+png");
    assert!(!named.text().contains("not considered"), "{named:?}");
    profile["storage"]["name"] = "elsewhere".into();
    std::fs::write(here.join("elsewhere.json"), profile.to_string()).unwrap();
    let error = forebay(here, "mix elsewhere.json");
    assert!(error.error(2).contains("the profile is of storage `elsewhere`"), "{error:?}");
    forebay(here, "mix elsewhere.json --predict").text();

    let command = "build cv --data photos --mix decoded+png=0.25,decoded=0.75 --seed 3 -o dataset --shards 10";
    let built = forebay(here, &format!("{command} --json")).json();
    assert_keys(&built["formats"][0], "strategy share samples bytes");
    assert_eq!((built["formats"][0]["samples"].as_u64(), built["samples"].as_u64()), (Some(10), Some(40)), "{built:#}");
    let before = files(here.join("dataset").as_path());
    assert!(forebay(here, command).text().contains("was finished already"));
    assert!(files(here.join("dataset").as_path()) == before);
    let found = forebay(here, "inspect dataset --verify --json").json();
    assert_eq!((found["kind"].as_str(), found["seed"].as_u64()), (Some("mix"), Some(3)), "{found:#}");
    assert_keys(&found["formats"][1], "strategy share folder samples bytes shards");
    assert!(forebay(here, "inspect dataset/mix.json --json").json()["formats"] == found["formats"]);
    assert!(forebay(here, "export dataset tars").error(2).contains("dataset/format-00`"));
    assert_eq!(forebay(here, "load dataset/format-01 --json").json()["samples"], 30);
    let text = forebay(here, "inspect dataset");
    assert!(text.text().contains("decoded+png") && text.stdout.contains("format-01"), "{text:?}");

    for cache in ["none", "page", "minio:3MB", "liquid:3MB", "auto:3MB"] {
        let load =
            format!("load dataset --shuffle --shuffle-window 1MB --batch-size 8 --epochs 3 --cache {cache} --json");
        let load = forebay(here, &load).json();
        assert_eq!((load["samples"].as_u64(), load["strategy"].as_str()), (Some(120), Some("decoded+png, decoded")));
        if cache.contains("liquid") || cache.contains("auto") {
            assert_eq!(load["cache"]["policy"], "liquid");
            assert_eq!(load["cache"]["reason"].is_string(), cache.contains("auto"));
            let read = |epoch: usize| load["epochs"][epoch]["bytes_read"].as_u64().unwrap();
            assert!(read(1) < read(0) && read(2) < read(0), "{load:#}");
        }
    }
}

/// The command that `text` ends with.
fn next_command(text: &str) -> &str {
    let (_, rest) = text.split_once("Next, build the data set:\n").unwrap_or_else(|| panic!("{text}"));
    rest.trim()
}

/// The command that is recommended can be typed, and builds the pipeline that was profiled.
#[test]
fn the_next_command_builds_what_was_profiled() {
    let folder = workspace(12);
    let here = folder.path();
    std::fs::rename(here.join("photos"), here.join("my photos")).unwrap();
    let own = "name = \"own\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = [20, 20]\n";
    std::fs::write(here.join("own.toml"), own).unwrap();
    let measure = "--seconds 0 --samples 6 --runs 1 --threads 2 --strategy decoded --strategy decoded+png";
    for (pipeline, output) in
        [("own.toml", "mine.json"), ("cv --set random_crop.size=100", "changed.json"), ("cv", "cv.json")]
    {
        let arguments = format!("profile {pipeline} {measure} -o {output}");
        ran(command(here, &arguments).args(["--data", "my photos"])).text();
        let text = forebay(here, &format!("mix {output} --predict"));
        let next = next_command(text.text());
        assert_eq!(next.starts_with("forebay plan "), pipeline != "cv", "{next}");
        let script = format!("forebay() {{ \"{FOREBAY}\" \"$@\"; }}; {next} --overwrite");
        let built = ran(std::process::Command::new("sh").arg("-c").arg(script).current_dir(here));
        built.text();
        let read = |path: &str| -> serde_json::Value {
            serde_json::from_str(&std::fs::read_to_string(here.join(path)).unwrap()).unwrap()
        };
        assert_eq!(read("dataset/mix.json")["pipeline"], read(output)["pipeline"], "{next}");
    }
}

/// What a trainer takes bounds what the mix is expected to give, and what it was seen to give.
#[test]
fn a_prediction_with_a_trainer_is_compared_with_what_the_trainer_gets() {
    let folder = workspace(24);
    let here = folder.path();
    let profile = "profile cv --data photos --seconds 0 --samples 12 --runs 1 --threads 2 --strategy decoded --strategy decoded+png";
    forebay(here, profile).text();
    let text = forebay(here, "mix profile.json --trainer 1 --samples 24 --batch-size 4 --seconds 0");
    let words = text.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("(prediction 0 %)"), "{words}");
    // Ratios that a limit forbids are not the best ones.
    let found = forebay(
        here,
        "mix profile.json --predict --max-storage 1MB --mode sweep --format decoded --format decoded+png",
    );
    assert!(found.error(2).contains("none of 11 ratios"), "{found:?}");
}

#[test]
fn what_makes_no_sense_of_a_mix_is_said() {
    let folder = workspace(8);
    let here = folder.path();
    for (arguments, error) in [
        ("build cv --data photos --mix decoded=1,decoded+png -o x", "expected strategies and their shares"),
        ("build cv --data photos --mix decoded=1 --strategy decoded -o x", "cannot be used with"),
        ("build cv --data photos --mix decoded=1,nothing=1 -o x", "nothing"),
        ("build cv --data photos --strategy decoded --seed 3 -o x", "no effect without `--mix`"),
        ("load cv --data photos --cache liquid:1MB", "requires shuffling"),
        ("load cv --data photos --cache liquid", "needs a budget"),
        ("load cv --data photos --cache page:1MB", "has no budget of its own"),
    ] {
        let ran = forebay(here, arguments);
        assert!(ran.error(2).contains(error), "{arguments}: {ran:?}");
    }
    // A damaged part is found, and a manifest that was edited is refused.
    forebay(here, "build cv --data photos --mix decoded=0.5,decoded+png=0.5 -o dataset").text();
    let manifest = here.join("dataset/format-01/dataset.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"samples\": 4", "\"samples\": 5")).unwrap();
    assert!(forebay(here, "load dataset").error(1).contains("the mix says"));
    let manifest = here.join("dataset/mix.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"seed\": 0", "\"seed\": 1")).unwrap();
    assert!(forebay(here, "load dataset").error(1).contains("damaged or edited"));
}

/// What was measured decides which cache it is, and the loader says so in its figures.
#[test]
fn a_cache_is_chosen_by_what_was_measured() {
    let folder = workspace(40);
    let here = folder.path();
    let profile = "profile cv --data photos --seconds 0 --samples 20 --runs 1 --threads 2 --strategy resized --strategy decoded+png";
    forebay(here, profile).text();
    forebay(here, "build cv --data photos --strategy resized -o dataset").text();
    let mut measured: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(here.join("profile.json")).unwrap()).unwrap();
    let mut load = |bytes_per_second: f64, budget: u64, shuffle: &str| {
        measured["storage"]["sequential_bytes_per_second"] = bytes_per_second.into();
        // What readers got of shards says what the storage gives, where it was measured.
        for strategy in measured["strategies"].as_array_mut().unwrap() {
            strategy["reading"] = serde_json::Value::Null;
        }
        std::fs::write(here.join("changed.json"), measured.to_string()).unwrap();
        let load = format!("load dataset --epochs 2 --cache auto:{budget} --profile changed.json {shuffle}");
        let found = forebay(here, &format!("{load} --json")).json();
        let text = forebay(here, &load);
        let (policy, reason) = (found["cache"]["policy"].as_str().unwrap(), found["cache"]["reason"].as_str().unwrap());
        let words = text.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("cache {policy}")) && words.contains(reason), "{words}");
        assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
        (policy.to_owned(), reason.to_owned())
    };
    let bytes = forebay(here, "inspect dataset --json").json()["bytes"].as_u64().unwrap();
    // From storage that gives ten samples a second, what is kept as it is stored is not read.
    let (policy, reason) = load(bytes as f64 / 4.0, bytes / 2, "--shuffle");
    assert_eq!(policy, "liquid", "{reason}");
    assert!(reason.contains("the disk gives 10.0 samples/s without a cache"), "{reason}");
    assert_eq!(load(bytes as f64 / 4.0, bytes / 2, "").0, "minio");
    // Where storage is no bound and half of what is stored would fit, nothing helps.
    let (policy, reason) = load(1e12, bytes / 2, "--shuffle");
    assert_eq!(policy, "none", "{reason}");
    assert!(reason.contains("the CPU does ") && reason.contains(" without a cache, and `liquid`, "), "{reason}");
    for (arguments, error) in [
        ("load dataset --cache liquid:1MB --shuffle --profile profile.json", "`--profile` has no effect"),
        ("load cv --data photos --cache auto:1MB --profile profile.json", "without `unprocessed`"),
    ] {
        let ran = forebay(here, arguments);
        assert!(ran.error(2).contains(error), "{arguments}: {ran:?}");
    }
}
