//! What training waits for, and what to do about it.

use crate::support::{assert_keys, forebay, in_one_of_some_tries, workspace};

/// How far a diagnosed share may be from the constructed one.
const POINTS: f64 = 0.05;

/// Trainers that sleep and a storage that is throttled: whatever else the machine does, their rates are known. There is only a crop to
/// prepare, which is far faster than both.
#[test]
fn diagnosed_stalls_are_the_constructed_ones() {
    in_one_of_some_tries(|| {
        let folder = workspace(24);
        let here = folder.path();
        let built = forebay(here, "build cv --data photos --strategy pixel-centered -o dataset --json").json();
        let sample_bytes = built["bytes"].as_f64().unwrap() / built["samples"].as_f64().unwrap();
        for (trainer, fetch) in [(100.0, 50.0), (100.0, 75.0), (50.0, 200.0)] {
            let read = fetch * sample_bytes / 1e6;
            let command = format!(
                "diagnose dataset --trainer {trainer} --storage custom:read={read}MB/s --batch-size 2 --seconds 1.5 --threads 2 --json"
            );
            let found = forebay(here, &command).json();
            assert_keys(
                &found,
                "source strategy storage threads measured wait_share prep_stall_share fetch_stall_share bound_by cores_needed \
             what_ifs sentences next",
            );
            let share = |name: &str| found[name].as_f64().unwrap();
            let constructed = 1.0 - f64::min(fetch / trainer, 1.0);
            assert!((share("fetch_stall_share") - constructed).abs() < POINTS, "{constructed}: {found:#}");
            assert!(share("prep_stall_share") < POINTS, "{found:#}");
            assert_eq!(found["bound_by"], if fetch < trainer { "storage" } else { "trainer" }, "{found:#}");
            // Twice the disk is what a disk of twice the rate gives.
            let disk = found["what_ifs"].as_array().unwrap().iter().find(|one| one["resource"] == "disk").unwrap();
            let (promised, true_rate) = (disk["samples_per_second"].as_f64().unwrap(), f64::min(2.0 * fetch, trainer));
            assert!((promised / true_rate - 1.0).abs() < 0.1, "{promised} {true_rate}: {found:#}");
        }
    });
}

/// Samples are repeated to measure them: that does not hide for long that there are none.
#[test]
fn nothing_but_broken_files_is_an_error_soon() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["a", "b"] {
        std::fs::create_dir_all(folder.path().join("broken").join(class)).unwrap();
        std::fs::write(folder.path().join("broken").join(class).join("1.jpg"), b"\xff\xd8\xff\xe0 cut").unwrap();
    }
    let begun = std::time::Instant::now();
    for command in ["diagnose broken cv --trainer 100", "advise broken cv --trainer 100", "profile cv --data broken"] {
        let failed = forebay(folder.path(), &format!("{command} --on-error skip"));
        let message = failed.error(1);
        assert!(message.contains("not one of 2 samples"), "{command}: {message}");
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn a_diagnosis_is_a_page_with_a_verdict_and_a_next_step() {
    let folder = workspace(12);
    let command = "diagnose photos cv --trainer-command pwd --seconds 0.2 --batch-size 4";
    assert!(forebay(folder.path(), command).error(2).contains("which is not a rate"));
    std::fs::write(folder.path().join("rate.sh"), "echo warming up\necho '1,000 samples/s'\n").unwrap();
    let command = "diagnose photos cv --trainer-command ./rate.sh --seconds 0.2 --batch-size 4";
    let refused = forebay(folder.path(), command);
    // Not executable, and `sh` says so.
    assert!(refused.error(2).contains("the trainer command failed with exit status: 126"), "{refused:?}");
    let command = "diagnose photos cv --trainer 1000000 --seconds 0.2 --batch-size 4";
    let page = forebay(folder.path(), command);
    let text = page.text();
    for part in [
        "Your accelerator waits ",
        " for preparation, ",
        "trainer alone",
        "twice the disk",
        "forebay advise photos cv --trainer 1000000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn advice_answers_with_figures_and_ends_in_commands_that_run() {
    let folder = workspace(24);
    let here = folder.path();
    let found = forebay(here, "advise photos cv --trainer 1000000 --memory 1GB --json").json();
    assert_keys(
        &found,
        "profile data pipeline storage samples strategy samples_per_second files_samples_per_second mix cache answers commands",
    );
    let answers: Vec<&str> =
        found["answers"].as_array().unwrap().iter().map(|answer| answer["about"].as_str().unwrap()).collect();
    for about in ["memory", "bottleneck", "offline steps", "mix", "quality", "cache"] {
        assert!(answers.contains(&about), "{found:#}");
    }
    assert!(here.join("profile.json").exists());
    for command in found["commands"].as_array().unwrap() {
        let command = command.as_str().unwrap().strip_prefix("forebay ").unwrap();
        let seconds = if command.starts_with("diagnose") { " --seconds 0.2 --batch-size 4" } else { "" };
        forebay(here, &format!("{command}{seconds}")).text();
    }
    let page = forebay(here, "advise photos cv --lossy");
    assert!(page.text().contains("\nRun:\n  forebay "), "{page:?}");
    if here.join("dataset").exists() {
        assert!(forebay(here, "advise dataset cv").error(2).starts_with("error: `dataset` is a data set"));
    }
}
