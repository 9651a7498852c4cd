//! ARCHITECTURE.md is compared with the folders and with the edges that Cargo reports, so that it cannot rot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

type Edges = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The table after the mark `<!-- map`: room, what it uses, job. In order.
fn map() -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, after) = text.split_once("<!-- map").expect("ARCHITECTURE.md marks its map");
    let rows =
        after.lines().skip(1).skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with('|'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        (names(cells[1]).pop_first().expect("a room has a name"), names(cells[2]))
    })
    .collect()
}

/// What Cargo says of each crate.
fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Each crate of `crates/` and the crates of ours that it depends on (tests aside), as Cargo has them.
fn edges() -> Edges {
    let mut edges = Edges::new();
    for package in packages() {
        let Some(room) = package["name"].as_str().unwrap().strip_prefix("forebay-") else { continue };
        if room == "bench" {
            continue;
        }
        let used = package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"].is_null());
        let ours = used.filter_map(|dependency| dependency["name"].as_str()?.strip_prefix("forebay-"));
        edges.insert(room.to_owned(), ours.map(str::to_owned).collect());
    }
    edges
}

#[test]
fn the_map_is_the_territory() {
    let map = map();
    let rooms: BTreeSet<String> = map.iter().map(|(room, _)| room.clone()).collect();
    let folders: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(rooms, folders, "the rooms of ARCHITECTURE.md, and the folders of crates/");
    let drawn: Edges = map.iter().cloned().collect();
    assert_eq!(drawn, edges(), "the edges of ARCHITECTURE.md, and those that Cargo reports");
}

#[test]
fn a_room_knows_only_the_rooms_above_it() {
    let map = map();
    for (index, (room, uses)) in map.iter().enumerate() {
        let above: BTreeSet<String> = map[..index].iter().map(|(room, _)| room.clone()).collect();
        assert!(uses.is_subset(&above), "`{room}` uses {uses:?}");
    }
}

/// Why things are as they are is in `docs/decisions.md`, so that the map stays a page.
#[test]
fn the_map_is_short() {
    let lines = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap().lines().count();
    assert!(lines < 200, "ARCHITECTURE.md has {lines} lines");
}

/// Each library that a room depends on has its reason in the table of `docs/dependencies.md`.
#[test]
fn every_dependency_has_its_reason() {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let cells = page.lines().filter(|line| line.starts_with("| `")).filter_map(|row| row.split('|').nth(1));
    let named: BTreeSet<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    for package in packages() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            assert!(name.starts_with("forebay-") || named.contains(name), "docs/dependencies.md lacks `{name}`");
        }
    }
}

/// What is compiled for the tests and for the Python package has the same features, so that neither is compiled twice.
#[test]
fn the_python_package_is_made_of_what_the_tests_compiled() {
    let features = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--prefix", "none", "--format", "{p} {f}"])
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect::<BTreeSet<_>>()
    };
    let package = features(&["--package", "forebay-python", "--edges", "normal,build"]);
    let tests = features(&["--workspace", "--edges", "normal,build,dev"]);
    let alone: Vec<&String> = package.difference(&tests).collect();
    assert!(alone.is_empty(), "compiled once more for the Python package: {alone:?}");
}

/// Every file that a page names in backticks or as a link is there.
#[test]
fn what_the_pages_name_exists() {
    for page in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "docs/decisions.md", "docs/dependencies.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for name in quoted.chain(linked) {
            let file = name.contains('/')
                && Path::new(name)
                    .extension()
                    .is_some_and(|kind| ["rs", "md", "toml", "py", "sh"].iter().any(|known| kind == *known));
            if file && !name.contains([' ', '*', '<']) {
                let paths = ["", "crates", "docs"].map(|folder| root().join(folder).join(name));
                assert!(paths.iter().any(|path| path.exists()), "{page} names `{name}`");
            }
        }
    }
}

/// A package holds only what is in its folder, so the crates that are published have copies of the licenses, and `l3` of its format. Links
/// would do where every tool keeps them; here they once became files that hold a path.
#[test]
fn packages_bring_their_licenses_and_their_format() {
    let licenses = ["LICENSE-MIT", "LICENSE-APACHE"];
    let mut copies: Vec<(String, String)> = ["l3", "jpeg", "png"]
        .iter()
        .flat_map(|room| licenses.map(|license| (format!("crates/{room}/{license}"), license.to_owned())))
        .collect();
    copies.push(("crates/l3/FORMAT.md".to_owned(), "docs/formats/l3.md".to_owned()));
    let text = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    for (copy, original) in copies {
        assert!(text(&copy) == text(&original), "`{copy}` differs from `{original}`: copy it again");
    }
}

/// The code of a room, comments and unit tests aside: each file with its lines.
fn code(room: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let mut files = Vec::new();
    let mut folders = vec![room.join("src")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            files.push((path, lines.map(str::to_owned).collect()));
        }
    }
    files
}

fn rooms() -> Vec<PathBuf> {
    std::fs::read_dir(root().join("crates")).unwrap().map(|room| room.unwrap().path()).collect()
}

/// Fails where a line of `files` has one of `words`.
#[track_caller]
fn assert_without(files: &[(PathBuf, Vec<String>)], words: &[&str]) {
    for (path, lines) in files {
        let found = lines.iter().find(|line| words.iter().any(|word| line.contains(word)));
        assert_eq!(found, None, "{}", path.display());
    }
}

/// Only the engine starts threads: looked for as text.
#[test]
fn only_the_engine_starts_threads() {
    for room in rooms().iter().filter(|room| !room.ends_with("engine")) {
        assert_without(&code(room), &["thread::spawn", "thread::scope", "thread::Builder"]);
    }
}

/// Bytes come to all other rooms as slices: looked for as text. Steps read the files that they name, at first use.
#[test]
fn only_four_rooms_touch_files() {
    let allowed = ["storage", "engine", "cli", "demo"];
    for room in rooms().iter().filter(|room| !allowed.iter().any(|name| room.ends_with(name))) {
        let mut files = code(room);
        files.retain(|(path, _)| !path.ends_with("pipeline/src/steps/text_files.rs"));
        assert_without(&files, &["std::fs", " fs::", "File::open"]);
    }
}

/// Only `storage/src/writing.rs` makes files: looked for as text. What is opened for writing elsewhere is a control file of the system, or a
/// pipe or device that the user named.
#[test]
fn only_one_module_makes_files() {
    for room in rooms() {
        let mut files = code(&room);
        files.retain(|(path, _)| !path.ends_with("storage/src/writing.rs"));
        assert_without(
            &files,
            &["File::create", "fs::write(", "create_new(", ".create(true)", "fs::copy(", "hard_link("],
        );
    }
}

/// Every byte of a data set goes through a storage: what lists, builds, opens and loads never asks the file system itself.
#[test]
fn a_data_set_is_reached_through_its_storage() {
    let mut files = code(&root().join("crates/engine"));
    let parts = ["data", "build", "source", "load"].map(|part| format!("engine/src/{part}"));
    files.retain(|(path, _)| parts.iter().any(|part| path.to_string_lossy().contains(part)));
    assert!(files.len() > 20, "{} files", files.len());
    assert_without(&files, &["std::fs", " fs::", "File::open", ".exists()", ".is_file()", ".is_dir()", ".metadata()"]);
}
