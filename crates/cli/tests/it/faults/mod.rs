//! Every operation on files and every allocation fails once, and what the program makes of it is an error or a right result.
//!
//! `shim.c` is put before the C library by `LD_PRELOAD` and makes the nth operation below a folder, or the nth allocation, go
//! wrong. A [`Case`] is a
//! command on a handful of small pictures. For each n the command runs with the fault, and then once more without: the
//! second run must succeed and leave what a run that nobody disturbed leaves, to the byte and to the last file.
//!
//! By default some n of each kind are tried, chosen by a seed; with `FOREBAY_FAULTS=all` all of them are.

mod memory;
mod storage;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, encode};
use tempfile::TempDir;

use crate::support::{Ran, command};

/// No command of these tests takes nearly as long: one that does hangs.
const HANGS_AFTER: Duration = Duration::from_mins(1);

/// What the process that is killed by a fault returns.
const KILLED: i32 = 137;

/// The folder of the pictures.
const PHOTOS: &str = "photos";

/// The names of all faults; see `shim.c`.
const KINDS: [&str; 6] = ["EIO", "exit", "ENOSPC", "ENOENT", "EINTR", "short"];

/// The shim, compiled once; `None`, with a printed reason, where that cannot be.
fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            eprintln!("skipped: faults are injected by LD_PRELOAD before the GNU C library, which is not here");
            return None;
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/shim.c");
        let shim = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults-shim.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O0", "-Wall", "-Werror", "-o"]);
        match compiler.arg(&shim).arg(source).arg("-ldl").output() {
            Ok(output) if output.status.success() => Some(shim),
            Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => {
                eprintln!("skipped: faults are injected by a shim in C, and `cc` cannot be run: {error}");
                None
            }
        }
    };
    SHIM.get_or_init(compile).as_deref()
}

/// A command, and what it leaves.
struct Case {
    folder: TempDir,
    logs: TempDir,
    /// What is there before, beside the pictures.
    before: Files,
    command: Box<dyn Fn(&Path) -> Command>,
    /// What is there after; times that were measured are taken out.
    result: fn(&Path, &Ran) -> Files,
    expected: Files,
    /// Whether the command refuses to run where it has run before.
    once: bool,
}

/// Every file and folder, with its content.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// One operation that a command did.
#[derive(Debug, Clone)]
struct Operation {
    name: String,
    path: PathBuf,
    failed: bool,
}

impl Case {
    /// The command that `arguments` say, in a folder with `photos/`.
    fn new(arguments: &'static str) -> Self {
        Self::prepared(|_| (), Box::new(move |here| command(here, arguments)), |here, _| everything(here))
    }

    /// Any command, in a folder in which `prepare` made something of `photos/`.
    fn prepared(
        prepare: impl Fn(&Path),
        command: Box<dyn Fn(&Path) -> Command>,
        result: fn(&Path, &Ran) -> Files,
    ) -> Self {
        let mut case = Self::refused(prepare, command);
        case.result = result;
        let ran = case.run("", 0).0;
        case.expected = case.right_result(&ran);
        case
    }

    /// A command that must be refused, and leave everything as it is.
    fn refused(prepare: impl Fn(&Path), command: Box<dyn Fn(&Path) -> Command>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The shim compares paths as they are.
        let here = folder.path().canonicalize().unwrap();
        make_photos(&here.join(PHOTOS));
        prepare(&here);
        let mut before = everything(&here);
        before.retain(|path, _| !path.starts_with(PHOTOS));
        let logs = tempfile::tempdir().unwrap();
        let expected = everything(&here);
        Self { folder, logs, before, command, result: |here, _| everything(here), expected, once: false }
    }

    fn here(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Runs the command with the fault `kind` at operation number `at`, if that is not 0; the operations that could have gone
    /// wrong in this way.
    fn run(&self, kind: &str, at: usize) -> (Ran, Vec<Operation>) {
        let (ran, log) = self.run_logged(kind, at);
        (ran, log.lines().map(|line| Operation::parse(line, &self.here())).collect())
    }

    /// The same, with the shim's log as it is.
    fn run_logged(&self, kind: &str, at: usize) -> (Ran, String) {
        let log = self.logs.path().join("log");
        let _ = fs::remove_file(&log);
        let mut command = (self.command)(&self.here());
        if !kind.is_empty() {
            command.env("LD_PRELOAD", shim().expect("checked before")).env("FAULT_KIND", kind);
            command.env("FAULT_ROOT", self.here()).env("FAULT_LOG", &log).env("FAULT_AT", at.to_string());
            command.env("FAULT_VANISHED", self.vanished()).env("RUST_BACKTRACE", "1");
            if all_are_wanted() {
                command.env("FAULT_STACKS", "1");
            }
        }
        let ran = run_within(&mut command, HANGS_AFTER);
        (ran, fs::read_to_string(&log).unwrap_or_default())
    }

    /// Where a file that vanishes goes.
    fn vanished(&self) -> PathBuf {
        self.logs.path().join("vanished")
    }

    /// Brings back what vanished, if it was there before.
    fn bring_back(&self, failed: &[&Operation]) {
        let from = self.vanished();
        // Whether something is there may be asked of what never was.
        if fs::symlink_metadata(&from).is_err() {
            return;
        }
        let to = |operation: &Operation| self.here().join(&operation.path);
        match failed {
            [failed]
                // A scratch folder may be gone with all that was in it.
                if !to(failed).exists()
                    && to(failed).parent().is_some_and(Path::exists)
                    && (failed.path.starts_with(PHOTOS) || self.had(&failed.path) || failed.is_of_journal()) =>
            {
                fs::rename(from, to(failed)).unwrap();
            }
            _ if from.is_dir() => fs::remove_dir_all(from).unwrap(),
            _ => fs::remove_file(from).unwrap(),
        }
    }

    fn had(&self, path: &Path) -> bool {
        self.before.contains_key(path) || self.before.contains_key(&path.join(""))
    }

    /// Makes everything as it was before. The pictures stay: a build knows them by their times, too.
    fn reset(&self) {
        for entry in fs::read_dir(self.here()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != PHOTOS) {
                fs::remove_dir_all(path).unwrap();
            } else if path.is_file() {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, content) in &self.before {
            let path = self.here().join(path);
            if path.to_string_lossy().ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::write(path, content).unwrap();
            }
        }
    }

    #[track_caller]
    fn right_result(&self, ran: &Ran) -> Files {
        ran.text();
        (self.result)(&self.here(), ran)
    }

    /// Lets the operations that can go wrong as `kind` says do so, one at a time, `most` of them at the most, and says how many.
    fn sweep(&self, kind: &str, most: usize) -> usize {
        self.reset();
        let (ran, operations) = self.run(kind, 0);
        assert!(self.right_result(&ran) == self.expected, "nothing went wrong yet");
        let numbers = chosen(operations.len(), most);
        for &at in &numbers {
            self.reset();
            let (ran, operations) = self.run(kind, at);
            let failed: Vec<&Operation> = operations.iter().filter(|operation| operation.failed).collect();
            let what = format!("{kind} at operation {at}: {:?}", failed.first());
            self.judge(kind, &failed, &ran, &what);
            if self.vanished().exists() {
                self.bring_back(&failed);
            }
            if self.once && matches!(ran.code, Some(0 | KILLED)) {
                self.reset();
            }
            let (again, _) = self.run("", 0);
            assert_eq!(again.code, Some(0), "{what}, then without: {again:#?}\n--- before: {ran:#?}");
            assert_same(&(self.result)(&self.here(), &again), &self.expected, &format!("{what}, then without"));
        }
        eprintln!("{kind}: {} of {} operations", numbers.len(), operations.len());
        numbers.len()
    }

    /// The same for a command that must be refused: what is there stays, whatever fails.
    fn sweep_refused(&self, kind: &str, most: usize) {
        self.reset();
        let (ran, operations) = self.run(kind, 0);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(!operations.is_empty(), "it looks at files");
        for at in chosen(operations.len(), most) {
            self.reset();
            let (ran, operations) = self.run(kind, at);
            let failed = operations.iter().find(|operation| operation.failed);
            let what = format!("{kind} at operation {at}: {failed:?}");
            assert!(matches!(ran.code, Some(1 | 2)), "{what}: {ran:#?}");
            let mut found = everything(&self.here());
            // What was made to look may be left: it says nothing about what is there.
            found.retain(|path, _| {
                self.expected.contains_key(path) || !path.to_string_lossy().contains(".forebay-build")
            });
            assert_same(&found, &self.expected, &what);
            assert_eq!(self.run("", 0).0.code, Some(2), "{what}, then without");
        }
    }

    /// Whether what came of a fault is an error that says what failed, or a right result.
    fn judge(&self, kind: &str, failed: &[&Operation], ran: &Ran, what: &str) {
        if ran.code == Some(0) {
            let (mut found, mut expected) = ((self.result)(&self.here(), ran), self.expected.clone());
            // Perhaps nobody needed what vanished.
            let gone = |path: &Path| failed.iter().any(|gone| path.starts_with(&gone.path));
            expected.retain(|path, _| kind != "ENOENT" || found.contains_key(path) || !gone(path));
            // A folder of ours that could not be removed is removed by the next run.
            found.retain(|path, _| expected.contains_key(path) || !path.to_string_lossy().contains(".forebay-"));
            assert_same(&found, &expected, what);
            return;
        }
        // With several threads one run may do fewer operations than another, but not fail by itself.
        assert!(!failed.is_empty(), "{what}: nothing went wrong, but {ran:#?}");
        match kind {
            "exit" => assert_eq!(ran.code, Some(KILLED), "{what}: {ran:#?}"),
            "EINTR" | "short" => panic!("{what}: what must only be done again became an error: {ran:#?}"),
            _ => {
                // That nothing is there may be a mistake in the command line.
                let codes: &[_] = if kind == "ENOENT" { &[Some(1), Some(2)] } else { &[Some(1)] };
                assert!(codes.contains(&ran.code), "{what}: {ran:#?}");
                assert!(ran.stderr.contains("error: ") && !ran.stderr.contains("panicked"), "{what}: {ran:#?}");
                let named = failed.iter().any(|failed| failed.is_named_in(&ran.stderr));
                assert!(named, "{what}: the error does not name the file: {ran:#?}");
            }
        }
    }
}

impl Operation {
    /// Whether it was done to a build's journal. Without that nobody knows whose the shards are, and the next build refuses to touch them.
    fn is_of_journal(&self) -> bool {
        self.path.ends_with(".forebay-build")
    }

    /// A line of the shim's log; the path becomes one below `root`.
    fn parse(line: &str, root: &Path) -> Self {
        let (line, failed) = line.strip_suffix(" !").map_or((line, false), |line| (line, true));
        let [_, name, path] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("a log's line: {line}") };
        let path = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path)).to_owned();
        Self { name: name.to_owned(), path, failed }
    }

    /// Whether `message` names the path, what it is to become, or something below it. Where a folder is removed with all
    /// that is in it, naming the folder is enough; a missing manifest is named together with its folder, or shows by a file in it of which
    /// nobody knows whose it is.
    fn is_named_in(&self, message: &str) -> bool {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let path = self.path.to_string_lossy();
        let whole = path.split_once(".partial").map_or(&*path, |(whole, _)| whole);
        let finished = whole.replace("/.forebay-", "/");
        let apart = self.path.file_name().is_some_and(|name| message.contains(&format!("`{}`", name.display())));
        // It may begin with `./`.
        let names_folder = message.contains(&format!("{}`", folder.display()));
        let in_the_way = self.path.ends_with("dataset.json") && message.contains(&format!("`{}/", folder.display()));
        message.contains(whole)
            || message.contains(&finished)
            || (names_folder && (self.name == "unlinkat" || apart))
            || in_the_way
    }
}

/// Whether everything is to go wrong, and not a part of it.
fn all_are_wanted() -> bool {
    std::env::var("FOREBAY_FAULTS").is_ok_and(|value| value == "all")
}

/// `most` of the numbers from 1 to `count`, or all of them: the first, the last, and others by chance, always the same.
fn chosen(count: usize, most: usize) -> Vec<usize> {
    if count <= most || all_are_wanted() {
        return (1..=count).collect();
    }
    let mut random = forebay_pipeline::Random::from_parts(&[count as u64, most as u64]);
    let mut numbers: Vec<usize> = (2..count).collect();
    random.shuffle(&mut numbers);
    numbers.truncate(most - 2);
    numbers.extend([1, count]);
    numbers.sort_unstable();
    numbers
}

#[track_caller]
fn assert_same(found: &Files, expected: &Files, what: &str) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}: other files");
    for (path, content) in expected {
        assert!(found[path] == *content, "{what}: `{}` has other bytes", path.display());
    }
}

/// Runs a command that must end by itself.
fn run_within(command: &mut Command, most: Duration) -> Ran {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What these commands say fits into a pipe, so they never wait for a reader.
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > most {
            child.kill().unwrap();
            panic!("it hangs: {command:?}");
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// All files and folders below `folder`.
fn everything(folder: &Path) -> Files {
    fn visit(root: &Path, folder: &Path, found: &mut Files) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap();
            if path.is_dir() {
                found.insert(name.join(""), Vec::new());
                visit(root, &path, found);
            } else {
                found.insert(name.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    let mut found = Files::new();
    visit(folder, folder, &mut found);
    found
}

/// Five small pictures of two classes, no two alike.
fn make_photos(folder: &Path) {
    for number in 0..5_usize {
        let pixels: Vec<u8> = (0..32 * 32 * 3).map(|index| (index * 7 / (number + 1) + number * 31) as u8).collect();
        let picture = Tensor::from_elements(&[32, 32, 3], &pixels).unwrap();
        let class = folder.join(["ant", "bee"][number % 2]);
        fs::create_dir_all(&class).unwrap();
        fs::write(class.join(format!("{number}.png")), encode(picture.view(), &Encoding::Qoi).unwrap()).unwrap();
    }
}
