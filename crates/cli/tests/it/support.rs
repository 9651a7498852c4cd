//! Running the program on pictures that it made itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// The program.
pub(crate) const FOREBAY: &str = env!("CARGO_BIN_EXE_forebay");

/// How many pictures [`all_photos`] has.
pub(crate) const PHOTOS: usize = 80;

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Its standard output, after a success.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:#?}");
        &self.stdout
    }

    /// Its one JSON document, after a success.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// What it said went wrong, after a failure with this code and nothing on standard output.
    #[track_caller]
    pub(crate) fn error(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{self:#?}");
        let start = self.stderr.find("error: ").unwrap_or_else(|| panic!("{self:#?}"));
        &self.stderr[start..]
    }
}

/// A command that runs the program in `folder`.
pub(crate) fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(FOREBAY);
    command.current_dir(folder).args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// Runs the program in `folder`. Arguments are separated by spaces.
pub(crate) fn forebay(folder: &Path, arguments: &str) -> Ran {
    ran(&mut command(folder, arguments))
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The folder with all pictures, made once. Do not change anything in it.
pub(crate) fn all_photos() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        // Statics are not dropped, so a temporary folder would stay: this one is made anew by each test run.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-photos");
        let arguments = format!("demo --data-only --samples {PHOTOS} --folder");
        ran(command(Path::new("."), &arguments).arg(&folder)).text();
        folder.join("photos")
    };
    FOLDER.get_or_init(make).clone()
}

/// A folder of its own with `photos/` in it: `count` of the pictures.
pub(crate) fn workspace(count: usize) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let mut paths: Vec<PathBuf> = files(&all_photos()).into_keys().collect();
    paths.sort_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    for path in paths.iter().take(count) {
        let to = folder.path().join("photos").join(path);
        std::fs::create_dir_all(to.parent().expect("it is in a folder")).unwrap();
        std::fs::copy(all_photos().join(path), to).unwrap();
    }
    folder
}

/// Every file below `folder`, hidden ones too, with its content.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn visit(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(root, &path, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    visit(folder, folder, &mut found);
    found
}

/// `text` with every number as `#` and every run of spaces as one, so that it can be compared as a whole.
pub(crate) fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let in_number = |next: &char| next.is_ascii_digit() || *next == ',' || *next == '.';
        if letter.is_ascii_digit() {
            let mut last = letter;
            while let Some(next) = letters.next_if(in_number) {
                last = next;
            }
            shape.push('#');
            // A comma or period after the last digit belongs to the sentence.
            shape.extend((!last.is_ascii_digit()).then_some(last));
        } else if letter == ' ' && shape.ends_with(' ') {
        } else {
            shape.push(letter);
        }
    }
    shape
}

/// The names in an object.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Checks that every one of `expected` is a key of `value`.
#[track_caller]
pub(crate) fn assert_keys(value: &Value, expected: &str) {
    let found = keys(value);
    for key in expected.split_whitespace() {
        assert!(found.contains(&key), "no `{key}` in {found:?}");
    }
}

/// Whether an unfinished build in the folder `set` has a note of shard number `shard`.
pub(crate) fn is_noted(set: &Path, shard: usize) -> bool {
    let mut entries = std::fs::read_dir(set.join(".forebay-build")).into_iter().flatten().flatten();
    entries.any(|entry| {
        let is_whole = entry.path().extension().is_some_and(|extension| extension == "json");
        is_whole && entry.file_name().to_string_lossy().starts_with(&format!("shard-{shard:05}-"))
    })
}
