//! Which files, and what their labels are.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::support::{command, files, forebay, workspace};

/// The pictures of a workspace below `photos`, by name.
fn pictures(here: &Path) -> Vec<String> {
    files(&here.join("photos")).into_keys().map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn pictures_without_folders_of_classes_are_warned_of() {
    let folder = workspace(6);
    let here = folder.path();
    fs::create_dir(here.join("flat")).unwrap();
    for (path, content) in files(&here.join("photos")) {
        fs::write(here.join("flat").join(path.file_name().unwrap()), content).unwrap();
    }
    let warning = "warning: none of the 6 files is in a class folder, so all get the same label: ";
    for arguments in [
        "load cv --data flat --json",
        "build cv --data flat --strategy resized -o dataset --json",
        "profile cv --data flat --strategy resized --samples 2 --runs 1 --seconds 0 --json",
    ] {
        let warned = forebay(here, arguments);
        let warnings = warned.json()["warnings"].clone();
        assert!(warnings[0].as_str().unwrap().contains("`--set source.label=none`"), "{warned:?}");
        assert!(warned.stderr.contains(warning), "{warned:?}");
        let silent = format!("{arguments} --set source.label=none --overwrite");
        let silent = if arguments.starts_with("build") { silent } else { silent.replace(" --overwrite", "") };
        for quiet in [silent, arguments.replace("flat", "photos").replace("dataset", "dataset2")] {
            let quiet = forebay(here, &quiet);
            assert_eq!(quiet.json()["warnings"], serde_json::json!([]), "{quiet:?}");
            assert!(!quiet.stderr.contains("warning: "), "{quiet:?}");
        }
    }
    // A data set was warned of when it was built.
    assert!(!forebay(here, "load dataset").stderr.contains("warning: "));
    fs::rename(here.join("flat"), here.join("cats")).unwrap();
    fs::create_dir(here.join("flat")).unwrap();
    fs::rename(here.join("cats"), here.join("flat/cats")).unwrap();
    let one = forebay(here, "load cv --data flat");
    assert!(one.stderr.contains("warning: all 6 files are in the same class folder, `cats`, so "), "{one:?}");
    // Where the classes are named, one may well be all that there is.
    let named = forebay(here, r#"load cv --data flat --set source.classes=["cats","dogs"]"#);
    named.text();
    assert!(!named.stderr.contains("warning: "), "{named:?}");
}

#[test]
fn files_come_from_a_list() {
    let folder = workspace(12);
    let here = folder.path();
    let all = pictures(here);
    let some: Vec<&str> = all.iter().rev().take(5).map(String::as_str).collect();
    fs::write(here.join("some.txt"), some.join("\n")).unwrap();
    let samples = |arguments: &str| {
        forebay(here, &format!("load cv --data photos --json {arguments}")).json()["samples"].as_u64().unwrap()
    };
    assert_eq!((samples(""), samples("--files-from some.txt"), samples("--files-from some.txt --shuffle")), (12, 5, 5));
    // From a pipe.
    let mut child = command(here, "load cv --data photos --json --files-from -")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(some.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8(output.stdout).unwrap().contains("\"samples\": 5"));

    fs::write(here.join("twice.txt"), format!("{0}\n./{0}\n", some[0])).unwrap();
    fs::write(here.join("gone.txt"), format!("{}\nnowhere.jpg\n", some[0])).unwrap();
    fs::write(here.join("empty.txt"), "\n").unwrap();
    for (arguments, code, named) in [
        ("load cv --data photos --files-from twice.txt", 2, "twice"),
        ("load cv --data photos --files-from gone.txt", 1, "cannot find the listed file `photos/nowhere.jpg`"),
        ("load cv --data photos --files-from empty.txt", 2, "the list of files is empty"),
        ("load cv --data photos --files-from nothing.txt", 2, "nothing.txt"),
        (
            "load cv --data photos --set source.files=- ",
            2,
            "given as a list, and there is none\nhint: give it with `--files-from",
        ),
        ("load cv --data photos --set source.files=*.jpg --files-from some.txt", 2, "one would have no effect"),
    ] {
        let ran = forebay(here, arguments);
        let error = ran.error(code);
        assert!(error.contains(named), "{arguments}: {error}");
    }
    let skipped = forebay(here, "load cv --data photos --files-from gone.txt --on-error skip --json").json();
    assert_eq!((&skipped["samples"], &skipped["skipped"]), (&1.into(), &1.into()), "{skipped}");
}

#[test]
fn a_plan_of_listed_files_wants_them_again() {
    let folder = workspace(8);
    let here = folder.path();
    fs::write(here.join("some.txt"), pictures(here)[..5].join("\n")).unwrap();
    let list = "--files-from some.txt";
    let profile = format!("profile cv --data photos --seconds 0 --samples 4 --runs 1 --strategy resized {list}");
    forebay(here, &profile).text();
    forebay(here, "plan profile.json").text();
    let refused = forebay(here, "build plan.json -o dataset");
    assert!(refused.error(2).contains("given as a list, and there is none"), "{refused:?}");
    assert_eq!(forebay(here, &format!("build plan.json -o dataset --json {list}")).json()["samples"], 5);
    let refused = forebay(here, &format!("load dataset {list}"));
    assert!(refused.error(2).contains("`--files-from` cannot be used with a data set"), "{refused:?}");
}

#[test]
fn classes_are_fixed_and_labels_listed() {
    let folder = workspace(12);
    let here = folder.path();
    let all = pictures(here);
    let mut classes: Vec<&str> = all.iter().map(|path| path.split('/').next().unwrap()).collect();
    classes.dedup();
    assert!(classes.len() > 1, "{classes:?}");
    // A class without files in front moves the others up.
    let fixed = format!("--set source.classes=[\"aardvark\",\"{}\"]", classes.join("\",\""));
    let build = |more: &str, output: &str| {
        forebay(here, &format!("build cv --data photos --strategy resized -o {output} {more}")).text().to_owned()
    };
    build(&fixed, "fixed");
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(here.join("fixed/dataset.json")).unwrap()).unwrap();
    assert_eq!(manifest["classes"][0], "aardvark");
    assert_eq!(manifest["classes"].as_array().unwrap().len(), classes.len() + 1);
    let only = forebay(here, &format!("load cv --data photos --set source.classes=[\"{}\"]", classes[0]));
    let error = only.error(2);
    assert!(error.contains(&format!("is of the class `{}`", classes[1])) && error.contains("hint: add it"), "{error}");
    // A list with labels; values.
    let lines: Vec<String> = all.iter().enumerate().map(|(number, path)| format!("{path}\t{number}.5")).collect();
    fs::write(here.join("values.tsv"), lines.join("\n")).unwrap();
    let label = "--files-from values.tsv --set source.label=list --set source.label_type=float";
    let batch = forebay(here, &format!("load cv --data photos --batch-size 12 --json {label}")).json();
    let labels = batch["batch"].as_array().unwrap().iter().find(|field| field["field"] == "label").unwrap();
    assert_eq!((&labels["dtype"], &labels["shape"]), (&"float32".into(), &serde_json::json!([12])), "{batch}");
    build(label, "values");
    assert_eq!(forebay(here, "load values --json").json()["samples"], 12);
    let refused = forebay(here, "load cv --data photos --set source.label=function --set source.function=mine");
    assert!(refused.error(2).contains("Python function `mine`"), "{refused:?}");
}
