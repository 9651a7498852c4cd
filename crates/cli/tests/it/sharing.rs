//! `load` shares an epoch between ranks, and goes on where a state file says.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ran, files, forebay, workspace};

/// Of a load of `dataset` with these arguments, how many samples came.
#[track_caller]
fn samples(here: &Path, arguments: &str) -> u64 {
    forebay(here, &format!("load dataset --threads 1 --json {arguments}")).json()["samples"].as_u64().unwrap()
}

#[track_caller]
fn refused(ran: &Ran, named: &str) {
    let error = ran.error(2);
    assert!(error.contains(named), "{error}");
    assert!(error.contains("hint: ") || error.contains("--help"), "{error}");
}

fn state(here: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(here.join("state.json")).unwrap()).unwrap()
}

#[test]
fn ranks_share_an_epoch() {
    let folder = workspace(23);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized --shards 3 -o dataset").text();
    let shares = |arguments: &str| -> Vec<u64> {
        (0..4).map(|rank| samples(here, &format!("--rank {rank} --world-size 4 --batch-size 2 {arguments}"))).collect()
    };
    for order in ["", "--shuffle", "--shuffle --shuffle-window 1MB --streams 4"] {
        let all = shares(order);
        assert!(all.iter().sum::<u64>() == 23 && all.iter().all(|share| [5, 6].contains(share)), "{all:?}");
        assert_eq!(shares(&format!("{order} --even drop")), [5; 4]);
        assert_eq!(shares(&format!("{order} --even pad")), [6; 4]);
        assert_eq!(shares(&format!("{order} --drop-last")), [4; 4]);
    }
    // A rank without samples is no error, and no step is to blame.
    let text = forebay(here, "load dataset --rank 0 --world-size 100 --batch-size 1");
    assert!(text.text().contains("samples     0\n") && !text.stdout.contains("note: "), "{text:?}");

    for (arguments, named) in [
        ("--rank 4 --world-size 4", "rank 4 is not below the world size 4"),
        ("--rank 1", "--world-size"),
        ("--even drop", "--world-size"),
        ("--even half --world-size 2", "half"),
        ("--streams 4", "--shuffle"),
        ("--shuffle-window 1MB", "--shuffle"),
        ("--world-size 0", "--world-size"),
    ] {
        refused(&forebay(here, &format!("load dataset {arguments}")), named);
    }
}

#[test]
fn a_state_says_where_to_go_on() {
    let folder = workspace(23);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized --shards 3 -o dataset").text();
    let load = "--shuffle --shuffle-window 1MB --seed 5 --state state.json";
    assert_eq!(samples(here, &format!("{load} --epochs 2 --batch-size 4")), 46);
    let done = state(here);
    assert_eq!((&done["epoch"], &done["samples_seen"]), (&2.into(), &0.into()), "{done}");

    // All of it was loaded; more can be asked for.
    let again = forebay(here, &format!("load dataset {load} --epochs 2"));
    refused(&again, "all 2 epochs of `state.json` have been loaded");
    assert!(again.stderr.contains("--epochs") && state(here) == done, "{again:?}");
    assert_eq!(samples(here, &format!("{load} --epochs 3")), 23);
    assert_eq!(state(here)["epoch"], 3);

    // In the middle of an epoch, where a batch of 4 of each of 2 ranks was seen: any number of ranks goes on.
    let middle = done.to_string().replace("\"samples_seen\":0", "\"samples_seen\":8");
    for (world_size, batch) in [(1, 4), (2, 4), (3, 2), (5, 1), (20, 3)] {
        let rest = (0..world_size).map(|rank| {
            fs::write(here.join("state.json"), &middle).unwrap();
            let share = format!("--rank {rank} --world-size {world_size} --batch-size {batch}");
            let found = samples(here, &format!("{load} --epochs 3 {share}"));
            assert_eq!((&state(here)["epoch"], &state(here)["samples_seen"]), (&3.into(), &0.into()));
            found
        });
        assert_eq!(rest.sum::<u64>(), 15, "{world_size} ranks");
    }
    // The table counts epochs from the first, not from where it went on.
    fs::write(here.join("state.json"), &middle).unwrap();
    let text = forebay(here, &format!("load dataset {load} --epochs 4"));
    let row = |start: &str| text.text().lines().any(|line| line.trim_start().starts_with(start));
    assert!(row("3 ") && row("4 ") && !row("1 "), "{text:?}");

    // What is not the same is refused, and the file stays.
    fs::write(here.join("state.json"), &middle).unwrap();
    forebay(here, "build cv --data photos --strategy decoded --shards 3 -o other").text();
    for (arguments, named) in [
        (format!("load other {load} --epochs 3"), "the state was taken of other data"),
        (format!("load dataset {load} --epochs 3 --streams 3"), "with streams `16`, but this loader has `3`"),
        ("load dataset --shuffle --seed 5 --epochs 3 --state state.json".to_owned(), "with shuffle_window `1000000`"),
        ("load dataset --shuffle --shuffle-window 1MB --epochs 3 --state state.json".to_owned(), "with seed `5`"),
        ("load dataset --epochs 3 --seed 5 --state state.json".to_owned(), "with shuffle `true`"),
    ] {
        refused(&forebay(here, &arguments), named);
        assert_eq!(fs::read_to_string(here.join("state.json")).unwrap(), middle);
    }
    for (text, named) in [
        ("{}", "`state.json` is not the state of a loader"),
        ("not JSON", "`state.json` is not the state of a loader"),
        (&middle.replace("\"version\":2", "\"version\":1"), "not a loader state of version 2: found `1`"),
        (&middle.replace("\"samples_seen\":8", "\"samples_seen\":24"), "has seen 24 samples of 23"),
    ] {
        fs::write(here.join("state.json"), text).unwrap();
        refused(&forebay(here, &format!("load dataset {load} --epochs 3")), named);
    }
}

#[test]
fn a_state_is_kept_after_an_error_too() {
    let folder = workspace(9);
    let here = folder.path();
    // The last by name, so that all others come before it.
    fs::write(here.join("photos/zzz.jpg"), "no image").unwrap();
    let load = "load cv --data photos --batch-size 2 --threads 1 --prefetch 0 --state state.json";
    let failed = forebay(here, load);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let seen = state(here)["samples_seen"].as_u64().unwrap();
    assert!(seen >= 2 && seen.is_multiple_of(2) && seen < 10, "{seen}");
    fs::remove_file(here.join("photos/zzz.jpg")).unwrap();
    assert_ne!(forebay(here, load).code, Some(0), "these are other data");
}

#[test]
fn an_epoch_has_the_samples_that_are_asked_for() {
    let folder = workspace(12);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized --shards 2 -o dataset").text();
    fs::write(here.join("subset.txt"), "3\n\n 7 \n1\n").unwrap();
    let weights: String = (0..12).map(|at| if at < 4 { "0.5\n" } else { "0\n" }).collect();
    fs::write(here.join("weights.txt"), weights).unwrap();
    assert_eq!(samples(here, "--subset subset.txt --shuffle"), 3);
    assert_eq!(samples(here, "--subset subset.txt --cache minio:1MB --epochs 2"), 6);
    assert_eq!(samples(here, "--num-samples 5"), 5);
    assert_eq!(samples(here, "--weights weights.txt --num-samples 4"), 4);
    assert_eq!(samples(here, "--weights weights.txt --replacement --num-samples 40 --epochs 2"), 80);
    assert_eq!(samples(here, "--weights balanced"), 12);
    assert_eq!(samples(here, "--weights balanced --num-samples 40 --shuffle"), 40);
    assert_eq!(samples(here, "--weights balanced --subset subset.txt"), 3);
    assert_eq!(samples(here, "--weights balanced --where label>=0"), 12);
    assert_eq!(samples(here, "--repeats 3 --shuffle"), 12);
    assert_eq!(samples(here, "--interleave dataset=0.5 --shuffle --batch-size 3"), 24);
    assert_eq!(samples(here, "--interleave dataset=3 --shuffle --num-samples 40"), 40);
    let photos = files(&here.join("photos"));
    let keys: Vec<&str> = photos.keys().take(2).map(|path| path.to_str().unwrap()).collect();
    fs::write(here.join("keys.txt"), keys.join("\n")).unwrap();
    assert_eq!(samples(here, "--subset keys.txt"), 2);

    let rows: Vec<String> =
        photos.keys().enumerate().map(|(at, path)| format!("{},{}", path.display(), at % 3)).collect();
    fs::write(here.join("thirds.csv"), format!("path,third\n{}\n", rows.join("\n"))).unwrap();
    assert_eq!(samples(here, "--where third==1 --table thirds.csv --shuffle"), 4);
    assert_eq!(samples(here, "--where third<2 --table thirds.csv --subset subset.txt --num-samples 1"), 1);
    assert_eq!(samples(here, "--where label>=0"), 12);

    fs::write(here.join("words.txt"), "1\ntwo\n").unwrap();
    fs::write(here.join("twice.txt"), "1\n1\n").unwrap();
    fs::write(here.join("outside.txt"), "1\n12\n").unwrap();
    for (arguments, named) in [
        ("--subset words.txt", "`words.txt` has `1`, which is neither a number nor the key of a sample"),
        ("--interleave dataset", "DATASET=WEIGHT"),
        ("--interleave dataset=-1", "a number from 0 on"),
        ("--interleave nowhere=1", "nowhere"),
        ("--interleave dataset=1 --repeats 2", "cannot be used with"),
        ("--subset twice.txt", "has a sample twice"),
        ("--subset nowhere.txt", "nowhere.txt"),
        ("--weights subset.txt", "3 weights for 12 samples"),
        ("--weights weights.txt", "12 samples of 4 without replacement"),
        ("--weights weights.txt --subset subset.txt", "cannot be used with"),
        ("--balanced", "use `--weights`: `balanced` is one of its values"),
        ("--weights balanced --interleave dataset=1", "cannot be used with"),
        ("--subset outside.txt --weights balanced", "sample 12 of 12"),
        ("--num-samples 0", "--num-samples"),
        ("--where thirds==1 --table thirds.csv", "did you mean `third`?"),
        ("--where third=1 --table thirds.csv", "write `==`"),
        ("--where third==1", "`where` names a column `third`, but there are `key`, `label`, `class`"),
        ("--where third==7 --table thirds.csv", "none of 12 samples meets `where`"),
        ("--table thirds.csv", "--where"),
        ("--where label==0 --weights weights.txt", "cannot be used with"),
        ("--repeats 2 --cache minio:1MB", "sampling"),
    ] {
        refused(&forebay(here, &format!("load dataset {arguments}")), named);
    }
}
