//! A build that is killed at any moment, and run again, gives what an uninterrupted one gives.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::errors::wait_for;
use crate::support::{all_photos, command, files, forebay, is_noted};

fn build(output: &str, more: &str) -> String {
    build_as("--strategy resized", output, more)
}

fn build_as(what: &str, output: &str, more: &str) -> String {
    let photos = all_photos();
    format!("build cv --data {} {what} --shards 10 --threads 2 -o {output} {more}", photos.display())
}

/// Builds `what` `rounds` times, each killed up to three times on its way, at moments spread over the time that a build takes.
fn killed_and_finished(what: &str, rounds: u32) {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let begun = Instant::now();
    forebay(here, &build_as(what, "whole", "")).text();
    let whole_seconds = begun.elapsed().as_secs_f64();
    let expected = files(&here.join("whole"));
    let mut kept_total = 0;
    for round in 0..rounds {
        for kill in 0..3_u32 {
            let share = f64::from((round * 3 + kill) * 7 % 18) / 18.0;
            let build = build_as(what, "killed", "");
            let mut child = command(here, &build).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_secs_f64(whole_seconds * share));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let finished = forebay(here, &build_as(what, "killed", "--json")).json();
        kept_total += finished["shards_reused"].as_u64().unwrap();
        let found = files(&here.join("killed"));
        assert!(found.keys().eq(expected.keys()), "round {round}: {:?}", found.keys());
        assert!(found == expected, "round {round}: the same files, but other bytes");
        fs::remove_dir_all(here.join("killed")).unwrap();
    }
    assert!(kept_total > 0, "some shards were finished before the kill, and kept");
}

#[test]
fn killed_at_any_moment_it_gives_the_same_bytes() {
    killed_and_finished("--strategy resized", 6);
}

#[test]
fn a_mix_killed_at_any_moment_gives_the_same_bytes() {
    killed_and_finished("--mix resized=0.5,decoded+l3-fast=0.5 --seed 3", 3);
}

#[test]
fn finished_shards_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // Two of ten shards take most of a second, and the others three more.
    let slow = build("killed", "--storage custom:read=100MB/s,seek=100ms");
    let mut child = command(here, &slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let notes = || (0..10).filter(|&shard| is_noted(&here.join("killed"), shard)).count() as u64;
    wait_for(|| notes() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = notes();
    let times = |path: &std::path::Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let shards: Vec<_> = (0..10).map(|shard| here.join(format!("killed/shard-{shard:05}.tfrecord"))).collect();
    let before: Vec<_> = shards.iter().map(|path| times(path)).collect();
    assert!(!here.join("killed/dataset.json").exists(), "it was killed before its end");
    let unfinished = forebay(here, "load killed");
    assert!(unfinished.error(2).contains("an interrupted build resumes when it is run again"), "{unfinished:?}");

    let finished = forebay(here, &build("killed", ""));
    assert!(
        finished.text().contains(&format!("{kept} shards of an interrupted build were kept.")),
        "{kept}: {finished:?}"
    );
    let unchanged = shards.iter().zip(&before).filter(|(path, before)| before.is_some() && times(path) == **before);
    assert!(unchanged.count() as u64 >= kept);
    let same = forebay(here, &build("killed", "--on-error skip"));
    assert!(same.text().contains("was finished already"), "nothing was damaged, so nothing differs: {same:?}");
    let decoded = build("killed", "").replace("--strategy resized", "--strategy decoded");
    let other = forebay(here, &decoded);
    assert!(other.error(2).contains("--overwrite"), "another build is not mixed in: {other:?}");
    forebay(here, &format!("{decoded} --overwrite")).text();
}
