//! Bad data and bad disks: a clear message, an exit code, and nothing half-written that claims to be whole.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, PngEffort, encode};

use crate::support::{FOREBAY, Ran, all_photos, command, files, forebay, ran, workspace};

const BUILD: &str = "build cv --data photos --strategy decoded --shards 2 -o dataset";

fn assert_no_dataset(folder: &Path) {
    assert!(!folder.join("dataset/dataset.json").exists(), "a failed build leaves no manifest");
    let partial = |path: &Path| path.to_string_lossy().ends_with(".partial");
    if folder.join("dataset").exists() {
        assert!(!files(&folder.join("dataset")).keys().any(|path| partial(path)), "and no half-written shard");
    }
}

#[test]
fn an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("photos")).unwrap();
    for arguments in [BUILD, "profile cv --data photos --seconds 0", "load cv --data photos", "inspect photos"] {
        let failed = forebay(folder.path(), arguments);
        assert!(failed.error(2).starts_with("error: no file below `photos` matches `"), "{failed:?}");
        assert!(failed.stderr.contains("\nhint: check the folder"), "{failed:?}");
    }
    assert_no_dataset(folder.path());
}

#[test]
fn an_output_replaces_neither_the_input_nor_another_output_nor_a_link() {
    let folder = workspace(2);
    let here = folder.path();
    let profile = "profile cv --data photos --seconds 0 --samples 2 --runs 1 --strategy resized";
    let refused = forebay(here, &format!("{profile} --csv out.json -o out.json"));
    assert!(refused.error(2).contains("--output and --csv are both `out.json`"), "{refused:?}");
    forebay(here, profile).text();
    let content = fs::read(here.join("profile.json")).unwrap();
    for arguments in [
        "plan profile.json -o ./profile.json",
        "report profile.json -o profile.json",
        "report profile.json --csv profile.json",
        "report profile.json --csv x --parquet x",
    ] {
        let refused = forebay(here, arguments);
        assert!(refused.error(2).contains("are both `"), "{arguments}: {refused:?}");
    }
    assert_eq!(fs::read(here.join("profile.json")).unwrap(), content);
    fs::write(here.join("target.json"), "old").unwrap();
    std::os::unix::fs::symlink("target.json", here.join("link.json")).unwrap();
    forebay(here, "plan profile.json -o link.json").text();
    assert!(here.join("link.json").is_symlink());
    assert!(fs::read_to_string(here.join("target.json")).unwrap().contains("\"chosen\""));
    forebay(here, "report profile.json -o /dev/null").text();
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn a_tokenizer_is_found_beside_its_pipeline_and_missed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    forebay(here, "demo --domain nlp --data-only --samples 3 --folder made").text();
    let text = fs::read_to_string(here.join("made/nlp.toml")).unwrap();
    let beside: Vec<String> = text
        .lines()
        .map(|line| {
            if line.starts_with("tokenizer =") {
                "tokenizer = \"tokenizer.tiktoken\"".to_owned()
            } else {
                line.to_owned()
            }
        })
        .collect();
    fs::write(here.join("made/nlp.toml"), beside.join("\n")).unwrap();
    forebay(here, "build made/nlp.toml --data made/pages --strategy decoded -o made/dataset").text();
    // From another folder, too.
    fs::create_dir(here.join("elsewhere")).unwrap();
    assert_eq!(forebay(&here.join("elsewhere"), "load ../made/dataset --json").json()["samples"], 3);
    let missing = forebay(here, "load nlp --data made/pages --on-error skip --set tokenize.tokenizer=nowhere.json");
    assert!(missing.error(2).contains("step `tokenize`: ") && missing.stderr.contains("nowhere.json"), "{missing:?}");
}

#[test]
fn a_window_longer_than_a_recording_is_named_for_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    forebay(here, "demo --domain nilm --data-only --samples 1 --folder made").text();
    let long = "--set signal_windows.window=9000000";
    let none = forebay(here, &format!("load nilm --data made/recordings {long}"));
    assert!(none.text().contains("note: the steps made no samples of what was read"), "{none:?}");
    let failed = forebay(here, &format!("build nilm --data made/recordings {long} --strategy decoded -o dataset"));
    assert!(failed.error(2).contains("the steps made no samples of 1 file"), "{failed:?}");
    assert!(failed.stderr.contains("a window longer than a recording"), "{failed:?}");
}

#[test]
fn a_zero_byte_image_fails_or_is_skipped_by_name() {
    let folder = workspace(10);
    let here = folder.path();
    fs::write(here.join("photos/city/zero.jpg"), "").unwrap();
    let load = "load cv --data photos --json";
    let profile = "profile cv --data photos --seconds 0 --samples 11 --runs 1 --strategy resized --json";
    for arguments in [BUILD, load, profile] {
        let failed = forebay(here, arguments);
        let message = failed.error(1);
        assert!(message.contains("`city/zero.jpg`: step `decode`: ") && message.contains("zero bytes"), "{failed:?}");
        assert!(message.ends_with("hint: pass --on-error skip to skip and list such samples\n"), "{failed:?}");
    }
    assert_no_dataset(here);
    // Left by the failed build: the same command without skipping would go on there.
    fs::remove_dir_all(here.join("dataset")).unwrap();

    let built = forebay(here, &format!("{BUILD} --on-error skip"));
    assert!(built.text().contains("\n1 sample was skipped\n- sample `city/zero.jpg`: step `decode`: "), "{built:?}");
    let found = forebay(here, "inspect dataset --verify --json").json();
    assert_eq!((&found["samples"], &found["skipped"]), (&10.into(), &1.into()));
    let loaded = forebay(here, &format!("{load} --on-error skip")).json();
    assert_eq!((&loaded["samples"], &loaded["skipped"]), (&10.into(), &1.into()));
    assert_eq!(loaded["skipped_samples"][0]["key"], "city/zero.jpg");
    assert_eq!(forebay(here, &format!("{profile} --on-error skip")).json()["strategies"][0]["name"], "resized");
    // What is left out is listed, wherever that was, and counted once however often it came.
    for (strategy, seconds) in [("resized", "0"), ("unprocessed", "0.2")] {
        let profile =
            format!("profile cv --data photos --strategy {strategy} --seconds {seconds} --runs 2 --on-error skip");
        let found = forebay(here, &format!("{profile} --json")).json();
        let skipped = &found["skipped_samples"];
        assert_eq!(
            (&found["skipped"], &skipped[0]["key"], &skipped[0]["samples"], skipped.as_array().unwrap().len()),
            (&1.into(), &"city/zero.jpg".into(), &1.into(), 1),
            "{found:#}"
        );
        let reason = skipped[0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("sample `city/zero.jpg`: step `decode`: "), "{reason}");
        let text = forebay(here, &profile);
        assert!(text.text().contains("\n1 sample was skipped\n- sample `city/zero.jpg`: step `decode`: "), "{text:?}");
        let kept: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(here.join("profile.json")).unwrap()).unwrap();
        assert_eq!(kept["skipped_samples"], *skipped);
    }
    let fast = forebay(here, "profile cv --data photos --fast --on-error skip --json").json();
    assert_eq!(
        (&fast["skipped"], &fast["skipped_samples"][0]["key"]),
        (&1.into(), &"city/zero.jpg".into()),
        "{fast:#}"
    );
    let counted = forebay(here, "inspect photos --verify");
    assert_eq!(counted.code, Some(1));
    assert!(counted.stdout.contains("\nProblems\n- `city/zero.jpg`: "), "{counted:?}");
}

#[test]
fn a_wrong_extension_does_not_matter() {
    let folder = workspace(5);
    let here = folder.path();
    let pixels: Vec<u8> = (0..300 * 400 * 3).map(|index| (index * 7 % 256) as u8).collect();
    let picture = Tensor::from_elements(&[300, 400, 3], &pixels).unwrap();
    let png = encode(picture.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    fs::write(here.join("photos/city/really-a-png.jpg"), png).unwrap();
    assert!(forebay(here, BUILD).text().starts_with("Built `decoded` in dataset: 6 samples"));
    let found = forebay(here, "inspect photos --json").json();
    assert_eq!((&found["wrong_extensions"], found["formats"].as_array().unwrap().len()), (&1.into(), 2));
    let picture = forebay(here, "inspect photos/city/really-a-png.jpg");
    assert!(picture.text().contains("name         says jpeg, which does no harm"), "{picture:?}");
    let text = here.join("photos/city/notes.jpg");
    fs::write(&text, "dear diary").unwrap();
    assert!(forebay(here, "load cv --data photos").error(1).contains("`city/notes.jpg`: step `decode`: "));
}

#[test]
fn an_unreadable_file() {
    let folder = workspace(5);
    let here = folder.path();
    let (name, _) = files(&here.join("photos")).pop_first().unwrap();
    let path = here.join("photos").join(&name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let failed = forebay(here, BUILD);
    assert!(
        failed.error(1).contains("Permission denied") && failed.stderr.contains(name.to_str().unwrap()),
        "{failed:?}"
    );
    assert_no_dataset(here);
}

#[test]
fn a_file_that_vanishes_while_it_is_needed() {
    let folder = workspace(20);
    let here = folder.path();
    // Slow enough that most files are still to be read when they vanish.
    let slow = format!("{BUILD} --threads 1 --storage custom:read=100MB/s,seek=100ms");
    let child =
        command(here, &slow).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_for(|| here.join("dataset/.forebay-build").exists());
    fs::remove_dir_all(here.join("photos")).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.starts_with("error: cannot open `photos/") && message.contains("No such file"), "{message}");
    assert_no_dataset(here);
}

pub(crate) fn wait_for(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_file_that_may_not_grow() {
    let folder = workspace(10);
    let here = folder.path();
    // The signal is ignored, so that writing fails with an error as it does on a full disk. Blocks are of 1024 bytes.
    let script = format!("trap '' XFSZ; ulimit -f 1000; exec {FOREBAY} {BUILD}");
    let failed = ran(Command::new("bash").current_dir(here).args(["-c", &script]));
    let message = failed.error(1);
    assert!(message.starts_with("error: cannot write the shard `dataset/shard-0000"), "{message}");
    assert!(message.contains("File too large"), "{message}");
    assert_no_dataset(here);
    assert!(forebay(here, BUILD).text().starts_with("Built `decoded`"), "and it can be built when there is room");
}

/// Runs the program where it may have so many files open.
fn with_open_files(here: &Path, count: u32, arguments: &str) -> Ran {
    let script = format!("ulimit -n {count} && exec {FOREBAY} {arguments}");
    ran(Command::new("sh").current_dir(here).args(["-c", &script]))
}

#[test]
fn a_data_set_may_have_more_shards_than_files_may_be_open() {
    let folder = workspace(80);
    let here = folder.path();
    with_open_files(here, 40, "build cv --data photos --strategy concatenated --shards 80 -o set").text();
    assert!(here.join("set/shard-00079.tfrecord").exists());
    for arguments in [
        "load set --shuffle --epochs 2",
        "load set --on-error skip --storage direct",
        "load set --shuffle --cache liquid:1MB",
        "export set tars",
        "inspect set --verify",
    ] {
        let loaded = with_open_files(here, 40, &format!("{arguments} --json"));
        let loaded = loaded.json();
        assert!(loaded.get("skipped").is_none_or(|skipped| skipped == 0), "{arguments}: {loaded}");
    }
    // One at a time: whether two threads want one at once is chance. That is no fault of samples, which are never left out for it.
    let few = with_open_files(here, 4, "load set --on-error skip --json");
    if few.code == Some(0) {
        let loaded = few.json();
        assert!(loaded["samples"] == 80 && loaded.get("skipped").is_none_or(|skipped| skipped == 0), "{loaded}");
    } else {
        let message = few.error(1);
        assert!(message.contains("Too many open files") && !message.contains("--on-error"), "{message}");
    }
}

/// Runs a command on a file system of 4 MB that nobody else sees, after `first`; `None`, with a printed reason, where there can be none.
fn on_a_small_disk(first: &str, arguments: &str, last: &str) -> Option<(Option<i32>, String)> {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=4m none . 2>/dev/null && cd \"$PWD\" || exit 77\n{first}\n{FOREBAY} {arguments}; code=$?\n\
         {last}\nexit $code"
    );
    let unshared = Command::new("unshare").current_dir(folder.path()).args(["--mount", "bash", "-c", &script]).output();
    let Ok(output) = unshared else {
        eprintln!("skipped: there is no `unshare` here");
        return None;
    };
    assert!(!output.status.success(), "there was room for `{arguments}`: {output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    let Some(start) = message.find("error: ").filter(|_| !message.starts_with("unshare")) else {
        eprintln!("skipped: cannot mount a small file system here: {message}");
        return None;
    };
    Some((output.status.code(), message[start..].to_owned()))
}

#[test]
fn a_full_disk() {
    let build = BUILD.replace("photos", &all_photos().display().to_string());
    let last = "test -e dataset/dataset.json && exit 99\nls -A dataset | grep partial && exit 98";
    let Some((code, message)) = on_a_small_disk("", &build, last) else { return };
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("No space left on device") && message.contains("\nhint: free some space"), "{message}");
}

#[test]
fn on_a_full_disk_the_remedy_fits_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    let photos = all_photos().display().to_string();
    let fast = format!("cv --data {photos} --samples 80 --runs 1 --seconds 0");
    forebay(folder.path(), &BUILD.replace("photos", &photos)).text();
    forebay(folder.path(), &format!("profile {fast} --strategy resized")).text();
    let fill = "head -c 9000000 /dev/zero > fill 2>/dev/null";
    for (first, arguments, remedy) in [
        ("", BUILD.replace("photos", &photos), "finished shards are kept"),
        ("", format!("convert {photos} out --to bmp"), "finished images are kept"),
        ("", format!("profile {fast} --strategy decoded"), "a --work-dir folder on another disk"),
        ("", format!("experiment strategies {fast} -o out"), "finished runs are kept"),
        ("", format!("export {here}/dataset tars"), "a failed export keeps nothing"),
        ("", "probe".to_owned(), "choose a folder on another disk"),
        ("", "demo --samples 100".to_owned(), "a --folder on another disk"),
        (fill, format!("report {here}/profile.json"), "pass --output, --svg-folder"),
        (fill, format!("plan {here}/profile.json"), "pass an --output on another disk"),
    ] {
        let Some((code, message)) = on_a_small_disk(first, &arguments, "") else { return };
        assert_eq!(code, Some(1), "{arguments}: {message}");
        assert!(message.contains("No space left on device"), "{arguments}: {message}");
        let hints: Vec<&str> = message.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert!(hints.len() == 1 && hints[0].contains(remedy), "{arguments}: {message}");
    }
}

#[test]
fn damage_is_found_and_named() {
    let folder = workspace(10);
    let here = folder.path();
    forebay(here, BUILD).text();
    let shard = here.join("dataset/shard-00001.tfrecord");
    let mut bytes = fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&shard, &bytes).unwrap();
    let verified = forebay(here, "inspect dataset --verify");
    assert_eq!(verified.code, Some(1));
    assert!(verified.stdout.contains("verified     damaged\n"), "{verified:?}");
    assert!(
        verified.stdout.contains("of `shard-00001.tfrecord` at byte ") && verified.stdout.contains("has checksum `"),
        "{verified:?}"
    );
    let loaded = forebay(here, "load dataset");
    assert!(loaded.error(1).contains("of `shard-00001.tfrecord` at byte "), "{loaded:?}");
    let loaded = forebay(here, "load dataset --on-error skip --json").json();
    assert_eq!((&loaded["samples"], &loaded["skipped"]), (&9.into(), &1.into()));
    fs::write(&shard, &bytes[..middle]).unwrap();
    let loaded = forebay(here, "load dataset");
    assert!(loaded.error(1).contains("bytes, but the manifest says"), "{loaded:?}");
}
