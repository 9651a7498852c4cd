//! What training waits for, and what to do about it.

use crate::support::{assert_keys, forebay, workspace};

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
