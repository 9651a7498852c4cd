//! Files that came from somebody else: what they name, and what they are called.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{command, files, forebay, workspace};

/// A pipeline whose second field is read from `from`.
fn with_field(from: &str) -> String {
    format!(
        "name = \"t\"\n[source]\nlabel = \"none\"\n[[source.fields]]\nfield = \"note\"\nfrom = \"{from}\"\ntype = \"text\"\n\
         [[step]]\nop = \"decode\"\n"
    )
}

fn with_table(table: &str) -> String {
    format!("name = \"t\"\n[source]\nlabel = \"table\"\ntable = \"{table}\"\n[[step]]\nop = \"decode\"\n")
}

#[test]
fn a_pipeline_reads_nothing_outside_the_data_folder_unless_allowed() {
    let folder = workspace(3);
    let here = folder.path();
    fs::write(here.join("secret.txt"), "TOP-SECRET").unwrap();
    let absolute = format!("{}/{{stem}}/../secret.txt", here.display());
    for from in ["{folder}/../../secret.txt", "../secret.txt{folder}/..", &absolute] {
        fs::write(here.join("t.toml"), with_field(from)).unwrap();
        for arguments in [
            "load t.toml --data photos",
            "build t.toml --data photos --strategy concatenated -o set",
            "profile t.toml --data photos --seconds 0 --runs 1",
            "experiment strategies t.toml --data photos --seconds 0 --runs 1",
        ] {
            let refused = forebay(here, arguments);
            let message = refused.error(2);
            assert!(message.contains("outside the data folder") && message.contains("--allow-outside"), "{refused:?}");
        }
    }
    assert!(!files(here).values().any(|content| content.ends_with(b"TOP-SECRET") && content.len() > 10));
    fs::write(here.join("t.toml"), with_field("{folder}/../../secret.txt")).unwrap();
    assert_eq!(forebay(here, "load t.toml --data photos --allow-outside --json").json()["samples"], 3);
    let table = here.join("labels.tsv");
    fs::write(&table, "").unwrap();
    for named in ["../labels.tsv", &table.display().to_string(), "city/../../labels.tsv"] {
        fs::write(here.join("t.toml"), with_table(named)).unwrap();
        assert!(forebay(here, "load t.toml --data photos").error(2).contains("outside the data folder"), "{named}");
    }
    let set = forebay(here, "build t.toml --data photos --strategy concatenated -o set --allow-outside");
    assert!(set.error(2).contains("the label table has no line for"), "{set:?}");
    forebay(here, "build cv --data photos --strategy resized -o set").text();
    assert!(forebay(here, "load set --allow-outside").error(2).contains("cannot be used with a data set"));
}

#[test]
fn a_placeholder_that_there_is_not_is_refused() {
    let folder = workspace(3);
    let here = folder.path();
    for (from, expected) in [
        ("{folder}/{stme}.txt", "`{stme}`, which is none of `{folder}`, `{stem}`, `{name}`; did you mean `{stem}`?"),
        ("{stem:.jpg}", "as `{stem:old=new}`"),
    ] {
        fs::write(here.join("t.toml"), with_field(from)).unwrap();
        for arguments in ["load t.toml --data photos", "profile t.toml --data photos"] {
            let refused = forebay(here, arguments);
            assert!(refused.error(2).contains(expected), "{refused:?}");
        }
    }
}

#[test]
fn links_in_the_data_folder_are_data() {
    let folder = workspace(4);
    let here = folder.path();
    fs::rename(here.join("photos"), here.join("elsewhere")).unwrap();
    fs::create_dir_all(here.join("photos")).unwrap();
    fs::create_dir_all(here.join("notes")).unwrap();
    for path in files(&here.join("elsewhere")).keys() {
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::create_dir_all(here.join("photos").join(path.parent().unwrap())).unwrap();
        symlink(here.join("elsewhere").join(path), here.join("photos").join(path)).unwrap();
        fs::write(here.join("notes").join(name).with_extension("txt"), "a note").unwrap();
    }
    symlink(here.join("notes"), here.join("photos/notes")).unwrap();
    fs::write(here.join("t.toml"), with_field("{folder}/../notes/{stem}.txt")).unwrap();
    assert_eq!(forebay(here, "load t.toml --data photos --json").json()["samples"], 4);
    assert_eq!(forebay(here, "load cv --data photos --json").json()["samples"], 4);
}

#[test]
fn pipes_and_devices_are_refused_and_not_waited_for() {
    let folder = workspace(2);
    let here = folder.path();
    let pipe = |name: &str| {
        rustix::fs::mkfifoat(rustix::fs::CWD, here.join(name), rustix::fs::Mode::RWXU).unwrap();
    };
    pipe("photos/labels.tsv");
    pipe("photos/note.txt");
    pipe("tokenizer.json");
    pipe("table.npy");
    symlink("/dev/zero", here.join("zero.json")).unwrap();
    symlink("/dev/zero", here.join("photos/zero.tsv")).unwrap();
    fs::write(here.join("page.html"), "<p>words</p>").unwrap();
    let begun = Instant::now();
    fs::write(here.join("t.toml"), with_table("labels.tsv")).unwrap();
    assert!(forebay(here, "load t.toml --data photos").error(2).contains("a pipe"));
    fs::write(here.join("t.toml"), with_table("zero.tsv")).unwrap();
    assert!(forebay(here, "load t.toml --data photos").error(2).contains("a device"));
    fs::write(here.join("t.toml"), with_field("./note.txt{folder}/../note.txt")).unwrap();
    assert!(forebay(here, "load t.toml --data photos").stderr.contains("photos/"));
    for setting in ["tokenize.tokenizer=tokenizer.json", "tokenize.tokenizer=zero.json", "embed.table=table.npy"] {
        let refused = forebay(here, &format!("load nlp --data . --set source.files=*.html --set {setting}"));
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.stderr.contains("not a regular file"), "{setting}: {refused:?}");
    }
    // A data set whose parts are pipes.
    forebay(here, "build cv --data photos --strategy resized --shards 1 -o set").text();
    for name in ["shard-00000.tfrecord.idx", "dataset.json"] {
        fs::remove_file(here.join("set").join(name)).unwrap();
        pipe(&format!("set/{name}"));
        let refused = forebay(here, "load set");
        assert!(refused.stderr.contains("a pipe"), "{name}: {refused:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
}

fn put(folder: &Path, class: &[u8], photo: &[u8]) {
    let folder = folder.join(OsStr::from_bytes(class));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("1.jpg"), photo).unwrap();
}

#[test]
fn folders_whose_names_are_no_text_are_classes_of_their_own() {
    let folder = workspace(1);
    let here = folder.path();
    let (_, photo) = files(&here.join("photos")).pop_first().unwrap();
    for class in [&b"caf\xE9"[..], b"caf\xE8", br"caf\xE9", "café".as_bytes()] {
        put(&here.join("names"), class, &photo);
    }
    forebay(here, "build cv --data names --strategy resized -o set").text();
    let found = forebay(here, "inspect set --json").json();
    let classes: Vec<&str> = found["classes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let mut expected = [r"caf\xE9", r"caf\xE8", r"caf\\xE9", "café"];
    expected.sort_unstable();
    assert_eq!(classes, expected);
    // By a table, and with files beside them.
    let lines = expected.iter().map(|class| format!("{class}/1.jpg\t{class}")).collect::<Vec<_>>().join("\n");
    fs::write(here.join("names/labels.tsv"), lines).unwrap();
    fs::write(here.join("t.toml"), with_table("labels.tsv")).unwrap();
    assert_eq!(forebay(here, "load t.toml --data names --json").json()["samples"], 4);
    fs::write(here.join("t.toml"), with_field("{folder}/{stem}.txt")).unwrap();
    for class in
        fs::read_dir(here.join("names")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        fs::write(class.join("1.txt"), "a note").unwrap();
    }
    assert_eq!(forebay(here, "load t.toml --data names --json").json()["samples"], 4);
    // A folder that is named on the command line; JSON is written all the same.
    let odd = OsStr::from_bytes(b"se\xE9t");
    let built =
        crate::support::ran(command(here, "build cv --data names --strategy resized --json -o").arg(odd)).json();
    assert_eq!(built["dataset"], r"se\xE9t");
    let loaded = crate::support::ran(command(here, "inspect --json").arg(odd)).json();
    assert_eq!((&loaded["path"], &loaded["samples"]), (&r"se\xE9t".into(), &4.into()));
    fs::write(here.join("names/labels.tsv"), "1\tcat\n1\tdog\n").unwrap();
    fs::write(here.join("t.toml"), with_table("labels.tsv")).unwrap();
    assert!(forebay(here, "load t.toml --data names").error(1).contains("line 2 gives `1` the label `dog`"));
}

/// Whether a terminal would obey anything in this.
fn obeyed(text: &str) -> bool {
    text.chars().any(|letter| (letter.is_control() && letter != '\n') || ('\u{202A}'..='\u{202E}').contains(&letter))
}

#[test]
fn control_bytes_of_names_do_not_reach_the_terminal() {
    let folder = workspace(2);
    let here = folder.path();
    let (_, photo) = files(&here.join("photos")).pop_first().unwrap();
    let evil = "evil\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{7f}";
    fs::create_dir(here.join("photos").join(evil)).unwrap();
    fs::write(here.join("photos").join(evil).join("bad\r\u{1b}[2K.jpg"), b"no image").unwrap();
    fs::write(here.join("photos").join(evil).join("good.jpg"), photo).unwrap();
    let mut shown = String::new();
    for arguments in [
        "inspect photos",
        "inspect photos --verify",
        "load cv --data photos",
        "load cv --data photos --on-error skip",
        "load cv --data photos --on-error skip --json",
        "build cv --data photos --strategy resized --shards 1 -o set --on-error skip",
        "build cv --data photos --strategy resized --shards 1 -o set2",
        "inspect set",
        "inspect set --json",
        "inspect set --record 0",
        "profile cv --data photos --seconds 0 --runs 1 --strategy resized --on-error skip",
        "convert photos converted --to png",
        "convert photos converted --to png --on-error skip",
        "report profile.json",
    ] {
        let ran = forebay(here, arguments);
        assert!(!obeyed(&ran.stdout) && !obeyed(&ran.stderr), "{arguments}: {ran:?}");
        shown.push_str(&ran.stdout);
        shown.push_str(&ran.stderr);
    }
    for path in [format!("photos/{evil}/none.jpg"), format!("{evil}.toml"), format!("{evil}.json")] {
        let ran = crate::support::ran(command(here, "inspect").arg(&path));
        assert!(!obeyed(&ran.stderr) && ran.code != Some(0), "{ran:?}");
        shown.push_str(&ran.stderr);
    }
    assert!(shown.contains(r"evil\x1B]0;owned\x07\x1B[31m\u{9B}2J\u{202E}\x7F"), "they are written out");
    // A name adds no lines of its own to a message.
    let forged = "photos/x\nhint: run this instead\n.jpg";
    fs::write(here.join(forged), "no image").unwrap();
    for arguments in ["load cv --data photos", "convert photos forged --to png"] {
        let ran = forebay(here, arguments);
        assert!(ran.code == Some(1) && !ran.stderr.contains("\nhint: run this"), "{ran:?}");
    }
    let ran = crate::support::ran(command(here, "inspect").arg(forged));
    assert!(ran.code != Some(0) && !ran.stderr.contains("\nhint: run this"), "{ran:?}");
    let pipeline = "name = \"\\u001b[31mred\"\n[[step]]\nop = \"decode\"\n";
    fs::write(here.join("p.toml"), pipeline).unwrap();
    for arguments in ["inspect p.toml", "build p.toml --data photos --strategy nothing -o x"] {
        let ran = forebay(here, arguments);
        assert!(!obeyed(&ran.stdout) && !obeyed(&ran.stderr), "{ran:?}");
    }
}

#[test]
fn what_lies_in_an_output_folder_decides_nothing_outside_it() {
    let folder = workspace(3);
    let here = folder.path();
    fs::create_dir(here.join("elsewhere")).unwrap();
    for name in ["a", "build.json", "lock"] {
        fs::write(here.join("elsewhere").join(name), "precious").unwrap();
    }
    let before = files(&here.join("elsewhere"));
    let link = |to: &str, at: &str| {
        fs::create_dir_all(here.join(at).parent().unwrap()).unwrap();
        symlink(here.join(to), here.join(at)).unwrap();
    };
    link("elsewhere", "set/.forebay-build");
    let build = "build cv --data photos --strategy resized --shards 1 --overwrite -o";
    assert!(forebay(here, &format!("{build} set")).error(1).contains("symbolic link"));
    link("elsewhere/a", "set2/shard-00000.tfrecord.partial");
    fs::create_dir(here.join("set2/.forebay-build")).unwrap();
    assert!(forebay(here, &format!("{build} set2")).error(2).contains("is in the way"));
    // An experiment, its lock, its profiles, its report.
    let experiment = "experiment strategies cv --data photos --seconds 0 --runs 1 --strategy resized -o";
    link("elsewhere/lock", "experiment/.lock");
    assert!(forebay(here, &format!("{experiment} experiment")).error(1).contains("symbolic link"));
    for name in ["01-strategies.json", "report.html", "runs.csv", "experiment.json"] {
        fs::remove_file(here.join("experiment/.lock")).unwrap_or_default();
        link("elsewhere/a", &format!("experiment/{name}"));
    }
    forebay(here, &format!("{experiment} experiment --restart"));
    // The demo, its mark and its files.
    link("elsewhere/a", "demo/.forebay-demo");
    assert!(forebay(here, "demo --data-only --samples 1").error(2).contains("was not made by `forebay demo`"));
    fs::remove_file(here.join("demo/.forebay-demo")).unwrap();
    forebay(here, "demo --data-only --samples 1").text();
    fs::remove_dir_all(here.join("demo/photos")).unwrap();
    link("elsewhere", "demo/photos");
    link("elsewhere/a", "demo/report.html");
    forebay(here, "demo --data-only --samples 1").text();
    // Plots, and metrics beside a table.
    forebay(here, "profile cv --data photos --seconds 0 --runs 1 --strategy resized").text();
    link("elsewhere/a", "csv/system.csv");
    forebay(here, "profile cv --data photos --seconds 0 --runs 1 --strategy resized --csv csv/runs.csv").text();
    forebay(here, "report profile.json --svg-folder plots").text();
    for name in files(&here.join("plots")).keys() {
        fs::remove_file(here.join("plots").join(name)).unwrap();
        symlink(here.join("elsewhere/a"), here.join("plots").join(name)).unwrap();
    }
    forebay(here, "report profile.json --svg-folder plots").text();
    assert_eq!(files(&here.join("elsewhere")), before);
}

#[test]
fn images_that_are_left_out_and_hidden_files_that_are_not_are_named() {
    let folder = workspace(6);
    let here = folder.path();
    let command = "build cv --data photos --strategy concatenated --overwrite -o set --json";
    assert_eq!(forebay(here, command).json()["warnings"], serde_json::json!([]));
    let photo = files(&here.join("photos")).into_iter().next().unwrap().1;
    fs::create_dir(here.join("photos/.ipynb_checkpoints")).unwrap();
    fs::write(here.join("photos/.ipynb_checkpoints/1.jpg"), photo).unwrap();
    for name in ["scan.TIF", "notes.txt", "animation.gif", "other.tif"] {
        fs::write(here.join("photos").join(name), "").unwrap();
    }
    let built = forebay(here, command);
    let warnings = built.json()["warnings"].as_array().unwrap().clone();
    let [left_out, hidden] = &warnings[..] else { panic!("{built:?}") };
    assert!(left_out.as_str().unwrap().starts_with("3 more images are left out: "), "{left_out}");
    assert!(left_out.as_str().unwrap().contains("(1 `.gif`, 2 `.tif`)"), "{left_out}");
    assert!(
        hidden.as_str().unwrap().starts_with("1 of 7 files is hidden, such as `.ipynb_checkpoints/1.jpg`"),
        "{hidden}"
    );
    assert!(built.stderr.contains("warning: 3 more images are left out"), "{built:?}");
    // Whoever names one format means it.
    let named = forebay(here, &format!("{command} --set source.files=**/*.jpg --set source.order=sorted"));
    assert_eq!(named.json()["warnings"].as_array().unwrap().len(), 1, "{named:?}");
    fs::create_dir(here.join("scans")).unwrap();
    fs::write(here.join("scans/1.tiff"), "").unwrap();
    let none = forebay(here, "load cv --data scans");
    assert!(none.error(2).contains("l3}`, but there are 1 `.tiff`\n"), "{none:?}");
    let file = forebay(here, "load cv --data scans/1.tiff");
    assert!(file.error(2).starts_with("error: `scans/1.tiff` is a file, and not a folder of files\n"), "{file:?}");
}
