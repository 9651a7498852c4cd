//! Memory that is refused: at each allocation, of the program and of the libraries in it.

use std::process::Command;

use super::storage::{BUILD, built, profiling, small};
use super::{Case, assert_same, chosen, everything, shim};
use crate::support::{FOREBAY, Ran, command};

/// How allocations are refused: one large one, one and all large ones after it, or one of any size.
const KINDS: [&str; 3] = ["nomem-large", "nomem-on", "nomem"];

/// Where there are more allocations than this, the first one of each call stack stands for those that follow from there.
const EACH_MAX: usize = 5000;

impl Case {
    /// Lets allocations be refused, one at a time, `most` of them at the most.
    fn sweep_memory(&self, kind: &str, most: usize) {
        self.reset();
        let (ran, log) = self.run_logged(kind, 0);
        assert!(self.right_result(&ran) == self.expected, "nothing was refused yet");
        let count = log.lines().find_map(|line| line.strip_suffix(" allocations")).expect("the count").parse().unwrap();
        let mut numbers = chosen(count, most);
        if numbers.len() > EACH_MAX {
            numbers = log
                .lines()
                .filter_map(|line| line.strip_suffix(" stack"))
                .map(|number| number.parse().unwrap())
                .collect();
        }
        let (mut errors, mut aborts) = (0, 0);
        for &at in &numbers {
            self.reset();
            let (ran, log) = self.run_logged(kind, at);
            let what = format!("{kind} at allocation {at}: {:?}", log.lines().next());
            if ran.code == Some(0) {
                assert_same(&(self.result)(&self.here(), &ran), &self.expected, &what);
            } else if ended_by_a_library(&ran) {
                aborts += 1;
            } else {
                is_error(&ran, &what);
                errors += 1;
            }
            let (again, _) = self.run("", 0);
            assert_eq!(again.code, Some(0), "{what}, then without: {again:#?}");
            assert_same(&(self.result)(&self.here(), &again), &self.expected, &format!("{what}, then without"));
        }
        eprintln!(
            "{kind}: {} of {count} allocations, {errors} errors, {aborts} threads that could not begin",
            numbers.len()
        );
    }
}

fn is_error(ran: &Ran, what: &str) {
    assert_eq!(ran.code, Some(1), "{what}: {ran:#?}");
    assert!(ran.stderr.contains("error: ") && !ran.stderr.contains("panicked"), "{what}: {ran:#?}");
}

/// Whether a library ended the process where a thread begins, with bytes that it takes past the program's allocator and so past its
/// reserve: the standard library those of the thread's handle, the C library those where it notes what the thread is to clean up.
fn ended_by_a_library(ran: &Ran) -> bool {
    let said = |text: &str| ran.stderr.contains(text);
    let no_handle = said("memory allocation of") && said("std::thread::thread::Thread>::new");
    ran.code.is_none() && (no_handle || said("Fatal glibc error: failed to register TLS destructor"))
}

fn sweep(case: &Case, most: usize) {
    for kind in KINDS {
        case.sweep_memory(kind, most);
    }
}

#[test]
fn build() {
    if shim().is_some() {
        sweep(&Case::new(small(BUILD)), 40);
    }
}

#[test]
fn convert() {
    if shim().is_some() {
        sweep(&Case::new("convert photos converted --to webp-lossless --verify --threads 2"), 20);
        sweep(&Case::new("convert photos converted --to jpeg-90 --verify --threads 2"), 20);
    }
}

#[test]
fn load() {
    if shim().is_none() {
        return;
    }
    let load = "load dataset --shuffle --threads 2";
    sweep(&Case::prepared(built, Box::new(move |here| command(here, load)), |here, _| everything(here)), 40);
    sweep(&Case::new(small("load cv --data photos")), 20);
}

#[test]
fn profile() {
    if shim().is_some() {
        sweep(&profiling(), 4);
    }
}

/// The same by the system itself: with less and less memory the program succeeds, then says that there is too little.
#[test]
fn with_less_and_less_memory_it_ends_in_order() {
    let case = Case::new(small(BUILD));
    let limited = |kilobytes: u64, arguments: &str| {
        let mut command = Command::new("sh");
        let script = format!("ulimit -v {kilobytes} && exec {FOREBAY} {arguments}");
        command.args(["-c", &script]).current_dir(case.here());
        crate::support::ran(&mut command)
    };
    // With less the program cannot even be started, which is not for it to report.
    let starts = (1..1024).map(|step| step * 4096).find(|&limit| limited(limit, "--version").code == Some(0)).unwrap();
    let (mut errors, mut successes) = (0, 0);
    // Far, and close by: where a thread begins, a few kilobytes decide.
    for more in (0..40).map(|step| step * 2048).chain((1..80).map(|step| step * 104)) {
        case.reset();
        let ran = limited(starts + more, small(BUILD));
        let what = format!("{more} kB more than nothing");
        if ran.code == Some(0) {
            assert_same(&everything(&case.here()), &case.expected, &what);
            successes += 1;
        } else {
            is_error(&ran, &what);
            errors += 1;
        }
    }
    eprintln!("{errors} errors, {successes} successes from {starts} kB on");
    assert!(errors > 0 && successes > 0);
}
