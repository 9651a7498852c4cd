//! Ctrl-C and its kin: what was temporary goes, what is finished stays, and the exit code says so.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::errors::wait_for;
use crate::support::{Ran, command, files, forebay, is_noted, workspace};

/// Slow enough that a signal always comes in the middle: a picture takes a third of a second.
const SLOW: &str = "--storage custom:read=1MB/s,seek=250ms";
/// Fast enough for measurements to end soon after a signal.
const FASTER: &str = "--storage custom:read=20MB/s,seek=40ms";

fn spawn(folder: &Path, arguments: &str) -> Child {
    command(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the end; it comes soon.
fn ended(child: Child) -> Ran {
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "it ends soon after the signal");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Whether a folder whose name begins so is in `folder`.
fn has(folder: &Path, start: &str) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().any(|name| name.to_string_lossy().starts_with(start))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Whether a set of signals of a process, by its name in `/proc/PID/status`, has `signal`.
fn has_signal(process: &str, set: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let signals = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':')).unwrap().trim();
    u64::from_str_radix(signals, 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

/// How many bytes the threads that read samples have read.
fn bytes_read(child: &Child) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let by_thread = threads.map(|thread| {
        // A thread that has ended meanwhile has none.
        let text = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let reads = text("comm").starts_with("forebay-read-");
        let bytes = text("io").lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
        bytes.filter(|_| reads).unwrap_or(0)
    });
    by_thread.sum()
}

/// Waits until a third of the pictures was read: there is a batch by then, and the rest takes seconds.
fn wait_for_a_third(child: &Child, pictures: &Path) {
    let all: usize = files(pictures).values().map(Vec::len).sum();
    wait_for(|| bytes_read(child) > all as u64 / 3);
}

#[test]
fn scratch_folders_go_with_the_work() {
    let folder = workspace(10);
    let here = folder.path();
    // A probe measures a folder that is there.
    std::fs::create_dir(here.join("work")).unwrap();
    let profile =
        format!("profile cv --data photos --seconds 0 --runs 500 --strategy unprocessed --work-dir work {FASTER}");
    let experiment =
        format!("experiment sample-size --sizes 10KB --seconds 0 --total 100KB --runs 5000 -o work {FASTER}");
    let works = [
        ("probe work --seconds 3600 --threads 1", ".forebay-probe-", Signal::INT, 130),
        ("probe work --seconds 3600 --threads 1", ".forebay-probe-", Signal::TERM, 143),
        ("probe work --seconds 3600 --threads 1", ".forebay-probe-", Signal::HUP, 129),
        (&profile, ".forebay-profile-", Signal::INT, 130),
        (&experiment, ".forebay-data-", Signal::INT, 130),
    ];
    for (arguments, scratch, signal, code) in works {
        // And so does what it starts.
        if signal == Signal::HUP && has_signal("self", "SigIgn", signal) {
            eprintln!("skipped: SIGHUP is ignored here (by nohup?), and so by what is started here");
            continue;
        }
        let work = here.join("work");
        let child = spawn(here, arguments);
        wait_for(|| has(&work, scratch));
        std::thread::sleep(Duration::from_millis(300));
        send(&child, signal);
        let ran = ended(child);
        assert_eq!(ran.code, Some(code), "{arguments}: {ran:?}");
        assert!(ran.stderr.contains("interrupted") && !ran.stderr.contains("error: "), "{ran:?}");
        let left: Vec<String> = names(&work).into_iter().filter(|name| name.starts_with('.')).collect();
        assert!(left.is_empty(), "{arguments}: {left:?}");
        assert!(!here.join("profile.json").exists());
    }
}

#[test]
fn what_a_killed_run_left_the_next_one_removes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // A folder is its process's once there is a file to measure in it.
    let held = || names(here).iter().filter(|name| here.join(name).join("large-0").exists()).count();
    let mut child = spawn(here, "probe --seconds 3600 --threads 1");
    wait_for(|| held() == 1);
    let running = spawn(here, "probe --seconds 3600 --threads 1");
    wait_for(|| held() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(here).len(), 2, "nobody cleans up after SIGKILL");
    forebay(here, "probe --seconds 0.01 --threads 1").text();
    assert_eq!(names(here).len(), 1, "what is in use stays");
    send(&running, Signal::INT);
    assert_eq!(ended(running).code, Some(130));
    assert!(names(here).is_empty());
}

#[test]
fn a_build_keeps_what_is_finished_and_inspect_knows_it() {
    let folder = workspace(20);
    let here = folder.path();
    let build = "build cv --data photos --strategy resized --shards 5 --threads 1 -o set";
    let child = spawn(here, &format!("{build} {SLOW} --overwrite"));
    wait_for(|| is_noted(&here.join("set"), 0));
    let found = forebay(here, "inspect set --json").json();
    assert_eq!((&found["kind"], &found["running"]), (&"unfinished-build".into(), &true.into()));
    send(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("interrupted: finished shards are kept"), "{ran:?}");
    assert!(ran.stderr.contains("hint: run the same command again"), "{ran:?}");
    assert!(!names(&here.join("set")).iter().any(|name| name.ends_with(".partial")), "{:?}", names(&here.join("set")));

    let found = forebay(here, "inspect set --json").json();
    let done = found["shards_done"].as_u64().unwrap();
    assert!((1..5).contains(&done) && found["shards"] == 5 && found["running"] == false, "{found}");
    assert!(found["samples_done"].as_u64().unwrap() >= done);
    let command = found["command"].as_str().unwrap().to_owned();
    assert_eq!(command, format!("forebay {build} {SLOW}"), "without --overwrite, which would begin anew");
    let text = forebay(here, "inspect set");
    assert!(text.text().contains(&format!("{done} of 5 are done")) && text.stdout.contains(&command), "{text:?}");

    let finished = forebay(here, build).text().to_owned();
    assert!(finished.contains("of an interrupted build were kept"), "{finished}");
    let whole = workspace(20);
    forebay(whole.path(), build).text();
    let shards = |folder: &Path| files(&folder.join("set"));
    assert_eq!(shards(here).len(), shards(whole.path()).len());
    assert_eq!(forebay(here, "inspect set --json").json()["kind"], "dataset");
}

#[test]
fn a_load_says_what_it_had() {
    let folder = workspace(30);
    let here = folder.path();
    fs::write(here.join("photos/zero.jpg"), "").unwrap();
    let load = format!("load cv --data photos --batch-size 1 --threads 1 --epochs 1000 --on-error skip {SLOW}");
    for json in [true, false] {
        let child = spawn(here, &format!("{load} {}", if json { "--json" } else { "" }));
        wait_for_a_third(&child, &here.join("photos"));
        send(&child, Signal::INT);
        let ran = ended(child);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(ran.stderr.ends_with("interrupted\n"), "{ran:?}");
        if json {
            let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(found["interrupted"], true);
            assert!(found["samples"].as_u64().unwrap() > 0 && found["samples_per_second"].as_f64().unwrap() > 0.0);
            assert!(found["skipped"].is_u64());
        } else {
            assert!(ran.stdout.starts_with("Interrupted while loading `unprocessed`"), "{ran:?}");
            assert!(ran.stdout.contains("throughput"), "{ran:?}");
        }
    }
    assert_eq!(forebay(here, "load cv --data photos --on-error skip --json").json()["interrupted"], false);
}

#[test]
fn a_load_goes_on_where_it_was_interrupted() {
    let folder = workspace(30);
    let here = folder.path();
    // A few pictures are mixed at a time, so that there are batches before all are read.
    let load = "load cv --data photos --batch-size 1 --threads 1 --shuffle --shuffle-window 200KB --streams 1 --json \
                --state state.json";
    let child = spawn(here, &format!("{load} {SLOW}"));
    wait_for_a_third(&child, &here.join("photos"));
    send(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let samples = found["samples"].as_u64().unwrap();
    assert!((1..30).contains(&samples), "{found}");
    let state: serde_json::Value = serde_json::from_slice(&fs::read(here.join("state.json")).unwrap()).unwrap();
    assert_eq!((&state["epoch"], &state["samples_seen"]), (&0.into(), &samples.into()), "{state}");
    let rest = forebay(here, load).json();
    assert_eq!(rest["samples"].as_u64().unwrap(), 30 - samples, "{rest}");
}

#[test]
fn conversion_and_export_leave_nothing_half_done() {
    let folder = workspace(60);
    let here = folder.path();
    let child = spawn(here, "convert photos converted --to l3-dense --threads 1");
    wait_for(|| here.join("converted").exists());
    send(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let left = files(&here.join("converted"));
    assert!(left.len() < 60 && !left.keys().any(|path| path.to_string_lossy().ends_with("partial")), "{left:?}");
    assert!(forebay(here, "convert photos converted --to l3-dense").text().contains(" reused\n"));

    forebay(here, "build cv --data photos --strategy decoded --shards 8 -o set").text();
    let child = spawn(here, "export set tars --threads 1");
    wait_for(|| here.join("tars").exists());
    send(&child, Signal::INT);
    let ran = ended(child);
    // It may have been quicker than the signal.
    if ran.code == Some(130) {
        assert!(names(&here.join("tars")).is_empty(), "{:?}", names(&here.join("tars")));
    } else {
        assert_eq!(names(&here.join("tars")).len(), 8 * 2, "each with its index: {ran:?}");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = workspace(4);
    // One read takes a minute, within which the bytes come first: the first signal is seen only after it.
    let mut child = spawn(folder.path(), "load cv --data photos --threads 1 --storage custom:read=1MB/s,seek=60s");
    wait_for(|| bytes_read(&child) > 0);
    send(&child, Signal::INT);
    let process = child.id().to_string();
    wait_for(|| !has_signal(&process, "ShdPnd", Signal::INT));
    // The handler has it now, and takes some microseconds.
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it waits for what is being read");
    send(&child, Signal::INT);
    assert_eq!(ended(child).code, Some(130));
}
