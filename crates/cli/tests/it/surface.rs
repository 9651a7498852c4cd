//! Help, exit codes of wrong requests, and standard output that goes away.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::support::{command, forebay, ran, workspace};

#[test]
fn help_teaches_and_fits_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let help = forebay(folder.path(), "--help");
    for word in [
        "forebay profile cv --data photos/",
        "forebay plan profile.json",
        "forebay build plan.json -o dataset/",
        "forebay load dataset/",
    ] {
        assert!(help.text().contains(word), "{word}");
    }
    for name in [
        "demo",
        "analyze",
        "profile",
        "plan",
        "build",
        "load",
        "diagnose",
        "advise",
        "mix",
        "report",
        "experiment",
        "experiment strategies",
        "experiment caching",
        "experiment compression",
        "experiment parallelism",
        "experiment sample-count",
        "experiment sample-size",
        "experiment shuffle",
        "experiment add-step",
        "convert",
        "recompress",
        "export",
        "inspect",
        "pipelines",
        "probe",
        "completions",
        "man",
    ] {
        let help = forebay(folder.path(), &format!("{name} --help"));
        assert!(help.text().contains("\nExamples:\n  forebay "), "{name}");
        assert!(help.stdout.contains("--json"), "{name}");
        let long = help.stdout.lines().find(|line| line.chars().count() > 80 && !line.starts_with("Usage: "));
        assert_eq!(long, None, "{name}");
    }
    let nothing = forebay(folder.path(), "");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""));
}

#[test]
fn wrong_requests_exit_with_2_and_a_remedy() {
    let folder = workspace(4);
    let here = folder.path();
    for (arguments, message) in [
        (
            "profile cvv --data photos",
            "error: there is no file or preset `cvv`\nhint: did you mean `cv`? the presets are `cv`, ",
        ),
        (
            "profile cv --data photos --strategy resizd",
            "error: no strategy `resizd` in pipeline `cv`\nhint: did you mean `resized`? one of unprocessed, ",
        ),
        (
            "profile cv --data photos --storage floppy",
            "error: invalid value 'floppy' for '--storage <STORAGE>': cannot understand",
        ),
        ("profile cv --data photos --threads 0", "error: invalid value '0' for '--threads <N>'"),
        (
            "profile cv --data photos --caching system --runs 1",
            "error: with `--caching system` the first run fills the cache",
        ),
        ("profile cv --data photos --csv system.csv", "error: `--csv` names `system.csv`"),
        ("plan profile.json --weights 1,2", "error: invalid value '1,2' for '--weights <P,S,T[,M]>': expected weights"),
        (
            "plan profile.json --max-storage 10GO",
            "error: invalid value '10GO' for '--max-storage <SIZE>': there is no unit `GO`",
        ),
        ("build cv --data photos -o dataset", "error: a pipeline needs `--strategy`\nhint: "),
        ("build cv --strategy resized -o dataset", "error: a pipeline needs `--data`\nhint: "),
        (
            "build cv --data photos --strategy resized -o photos",
            "error: the folder `photos` holds other files, and no `dataset.json` that says whose they are\nhint: ",
        ),
        ("load cv", "error: a pipeline needs `--data`\nhint: "),
        ("load photos", "error: `photos` is not a data set: it has no `dataset.json`\nhint: "),
        ("diagnose photos --trainer 9", "error: `photos` is not a data set: it has no `dataset.json`\nhint: "),
        ("diagnose photos cv", "error: the following required arguments were not provided:\n  --trainer"),
        ("diagnose photos cv --trainer 0", "error: a trainer that takes `0` samples per second\nhint: "),
        (
            "diagnose photos cv --trainer-command true",
            "error: the trainer command printed `` last, which is not a rate\nhint: ",
        ),
        ("diagnose photos cv --trainer-command false", "error: the trainer command failed with exit status: 1\nhint: "),
        ("load photos --shuffle-window 1MB", "error: the following required arguments were not provided:\n  --shuffle"),
        ("inspect nowhere", "error: there is no file, folder or preset `nowhere`\nhint: "),
        ("inspect photos --record 1", "error: `photos` has no records\nhint: "),
        ("convert nowhere a.l3", "error: there is no file or folder `nowhere`\nhint: check the path"),
        ("convert photos out", "error: `photos` is a folder, and no output format is given\nhint: "),
        ("convert photos out --to gif", "error: invalid value 'gif' for '--to <ENCODING>': there is no such encoding"),
        ("convert photos out --to png --mode fast", "error: the argument '--to <ENCODING>' cannot be used with"),
        ("convert photos photos/l3 --mode fast", "error: the output folder `photos/l3` is within `photos`\nhint: "),
        ("frobnicate", "error: unrecognized subcommand 'frobnicate'"),
        (
            "load photos --num-workers 4",
            "error: unexpected argument '--num-workers' found\n\n  tip: use `--threads`: workers are threads",
        ),
        (
            "profile cv --data photos --workers 4",
            "error: unexpected argument '--workers' found\n\n  tip: use `--threads`: workers are threads",
        ),
        (
            "--json load photos --balanced",
            "error: unexpected argument '--balanced' found\n\n  tip: use `--weights`: `balanced` is one of its values",
        ),
        (
            "load photos --persistent-workers",
            "error: unexpected argument '--persistent-workers' found\n\n  tip: not needed: ",
        ),
        (
            "load photos --collate-fn list",
            "error: unexpected argument '--collate-fn' found\n\n  tip: only Python has it: `forebay.Loader(collate=...)`",
        ),
        (
            "profile cv --data photos --compression gzip",
            "error: unexpected argument '--compression' found\n\n  tip: use `--encoding` or `--strategy`",
        ),
        (
            "profile cv --data photos --work here",
            "error: unexpected argument '--work' found\n\n  tip: use `--work-dir`",
        ),
        // What is only misspelled is clap's.
        (
            "load photos --batchsize 4",
            "error: unexpected argument '--batchsize' found\n\n  tip: a similar argument exists: '--batch-size'",
        ),
    ] {
        let refused = forebay(here, arguments);
        assert!(refused.error(2).starts_with(message), "{arguments}: {refused:#?}");
    }
    assert!(!here.join("profile.json").exists() && !here.join("dataset").exists());
}

/// Whichever command it is given to, and wherever it stands in it.
#[test]
fn a_path_that_is_not_there_exits_with_2() {
    let folder = workspace(2);
    let here = folder.path();
    let profile = "profile cv --data photos --samples 2 --runs 1 --seconds 0 --strategy unprocessed";
    forebay(here, profile).text();
    forebay(here, "plan profile.json").text();
    std::fs::rename(here.join("photos"), here.join("moved")).unwrap();
    std::os::unix::fs::symlink("nowhere", here.join("dangling")).unwrap();
    for (arguments, missing) in [
        ("profile nowhere.toml --data moved", "nowhere.toml"),
        ("profile cv --data nowhere", "nowhere"),
        ("profile cv --data dangling", "dangling"),
        ("profile cv --data moved --files-from nowhere.txt", "nowhere.txt"),
        ("plan nowhere.json", "nowhere.json"),
        ("build nowhere.json -o dataset", "nowhere.json"),
        ("build some/where --data moved --strategy resized -o dataset", "some/where"),
        ("build cv --data nowhere --strategy resized -o dataset", "nowhere"),
        ("build plan.json --strategy resized -o dataset", "photos"),
        ("load nowhere/", "nowhere/"),
        ("load nowhere/dataset.json", "nowhere/dataset.json"),
        ("load cv --data nowhere", "nowhere"),
        ("load cv --data profile.json/below", "profile.json/below"),
        ("load plan.json", "photos"),
        ("report profile.json nowhere.json", "nowhere.json"),
        ("experiment strategies cv --data nowhere", "nowhere"),
        ("experiment parallelism nowhere.toml --data moved", "nowhere.toml"),
        ("convert nowhere.png a.l3", "nowhere.png"),
        ("convert nowhere out --mode fast", "nowhere"),
        ("analyze nowhere", "nowhere"),
        ("export nowhere tars", "nowhere"),
        ("probe nowhere", "nowhere"),
    ] {
        let refused = forebay(here, arguments);
        let message = format!("error: there is no file or folder `{missing}`\nhint: ");
        assert!(refused.error(2).starts_with(&message), "{arguments}: {refused:#?}");
    }
    for (arguments, message) in [
        ("inspect nowhere", "error: there is no file, folder or preset `nowhere`"),
        ("load nowhere", "error: there is no file or preset `nowhere`"),
        ("profile nowhere --data moved", "error: there is no file or preset `nowhere`"),
    ] {
        let refused = forebay(here, arguments);
        assert!(refused.error(2).starts_with(message), "{arguments}: {refused:#?}");
    }
    let left: Vec<_> = std::fs::read_dir(here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "nothing was made: {left:?}");
}

#[test]
fn broken_pipelines_name_both_steps() {
    let folder = workspace(4);
    let here = folder.path();
    std::fs::write(here.join("bad.toml"), "name = \"bad\"\n[[step]]\nop = \"resize\"\nsize = 256\n").unwrap();
    let refused = forebay(here, "profile bad.toml --data photos");
    assert!(
        refused
            .error(2)
            .starts_with("error: steps do not fit: `read` gives bytes in field `image`, but `resize` needs "),
        "{refused:?}"
    );
    std::fs::write(here.join("worse.toml"), "name = \n").unwrap();
    assert!(forebay(here, "inspect worse.toml").error(2).contains("line 1"));
}

/// Which shows only when a sample comes: a `UsageError` in Python.
#[test]
fn what_no_file_has_is_a_wrong_request() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::create_dir(here.join("signals")).unwrap();
    std::fs::write(here.join("signals/one.csv"), "a,b\n1,2\n3,4\n").unwrap();
    let pipeline = "name = \"columns\"\n[source]\nfiles = \"*.csv\"\nlabel = \"none\"\nfield = \"signal\"\n\
                    [[step]]\nop = \"decode_signal\"\nfields = [\"signal\"]\nchannels = [\"c\"]\n";
    std::fs::write(here.join("columns.toml"), pipeline).unwrap();
    for command in ["load columns.toml --data signals", "build columns.toml --data signals --strategy decoded -o out"] {
        let refused = forebay(here, command);
        assert!(refused.error(2).contains("step `decode_signal`: there is no such column"), "{refused:?}");
    }
}

#[test]
fn nobody_listening_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(folder.path(), "inspect cv").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_for_the_output_is_an_error() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let failed = ran(command(folder.path(), "inspect cv").stdout(full));
    assert!(failed.error(1).starts_with("error: cannot write the output: "), "{failed:?}");
}

/// The page of the documentation site. `make cli-reference` writes it.
#[test]
fn the_reference_is_what_the_program_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = forebay_cli::reference();
    if std::env::var_os("FOREBAY_WRITE_REFERENCE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    let differs = written.lines().zip(page.lines()).find(|(written, page)| written != page);
    assert_eq!(differs, None, "docs/cli.md is not what the program says: run `make cli-reference`");
    assert_eq!(written.len(), page.len(), "docs/cli.md has another end: run `make cli-reference`");
    let twice = page.lines().find(|line| line.contains("] [default: "));
    assert_eq!(twice, None, "a default is given once, in the help text or by clap");
}

/// What a shell and `man` read is printed as it is, and names every command.
#[test]
fn completions_and_manual_pages_name_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = forebay(folder.path(), &format!("completions {shell}")).stdout;
        assert!(["profile", "build", "shuffle-window"].iter().all(|word| script.contains(word)), "{shell}: {script}");
    }
    assert!(forebay(folder.path(), "man").stdout.contains("forebay\\-profile"));
    let page = forebay(folder.path(), "man load").stdout;
    assert!(page.contains("forebay-load") && page.contains("shuffle\\-window"), "{page}");
    assert!(forebay(folder.path(), "man nothing").error(2).contains("there is no command `nothing`"));
}
