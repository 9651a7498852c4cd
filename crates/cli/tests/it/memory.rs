//! The memory budget of the program: what it really takes, and what happens where memory runs out.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use forebay_codec::image::{Encoding, PngEffort, encode};
use forebay_codec::{Tensor, npy};

use crate::support::{FOREBAY, Ran, command, forebay, ran};

/// A folder of `count` pictures of 2,000 × 2,000 pixels: 12 MB each, though a file has some 50 KB.
fn large_pictures(folder: &Path, count: usize) {
    let side = 2000;
    let picture = Tensor::from_elements(&[side, side, 3], &vec![7_u8; side * side * 3]).unwrap();
    let file = encode(picture.view(), &Encoding::Png { effort: PngEffort::Fastest }).unwrap();
    fs::create_dir_all(folder.join("photos/all")).unwrap();
    for number in 0..count {
        fs::write(folder.join(format!("photos/all/{number:02}.png")), &file).unwrap();
    }
    let pipeline = "name = \"decoded\"\n[[step]]\nop = \"decode\"\n";
    fs::write(folder.join("decoded.toml"), pipeline).unwrap();
    let small = format!("{pipeline}[[step]]\nop = \"resize\"\nsize = [32, 32]\n");
    fs::write(folder.join("small.toml"), small).unwrap();
}

/// The highest resident size of a program while it runs, and its standard output.
fn peak_bytes(command: &mut Command) -> (u64, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|line| line.trim().parse().ok());
        peak = kilobytes.unwrap_or(0_u64).max(peak);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    (peak * 1024, String::from_utf8(output.stdout).unwrap())
}

/// Runs the program with `ulimit -v` of so many kilobytes.
fn limited(folder: &Path, kilobytes: u64, arguments: &str) -> Ran {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {kilobytes} && exec {FOREBAY} {arguments}")]);
    // Otherwise the C library sets 64 MB of address space aside for each thread.
    ran(shell.current_dir(folder).stdin(Stdio::null()).env("MALLOC_ARENA_MAX", "1"))
}

#[test]
fn what_it_takes_stays_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    large_pictures(folder.path(), 16);
    let arguments = "load small.toml --data photos --batch-size 4 --threads 16 --memory";
    let (peak, output) = peak_bytes(&mut command(folder.path(), &format!("{arguments} 72MB --json")));
    let outcome: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(outcome["samples"], 16);
    assert_eq!(outcome["memory_bytes"], 72_000_000);
    assert!(outcome["memory_bytes_peak"].as_u64().unwrap() <= 72_000_000, "{output}");
    // The program itself, its stacks and what the allocator keeps.
    assert!(peak < 72_000_000 + 64_000_000, "{peak} bytes");
    let shown = forebay(folder.path(), &format!("{arguments} 80MB"));
    assert!(shown.text().contains(" of 80.0 MB"), "{shown:#?}");
}

/// How many page faults a program has that need no reading, all of its threads together.
fn page_faults(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    // Of a process that ended, and was not waited for yet, the counts can still be read.
    let faults = loop {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        if fields[0] == "Z" {
            break fields[7].parse().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert!(child.wait().unwrap().success());
    faults
}

/// Sides of pictures, no two alike: the smallest has 240 pages, the largest 320.
const SIDES: std::ops::Range<usize> = 572..661;

/// The least pages that pixels of one of them take.
const PAGES_MIN: u64 = (SIDES.start * SIDES.start * 3 / 4096) as u64;

/// A folder with a data set of decoded pictures of different sizes, and one of the same cut to one size.
fn decoded_pictures(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("photos/all")).unwrap();
    for (number, side) in SIDES.step_by(SIDES.len().div_ceil(count)).enumerate() {
        let picture = Tensor::from_elements(&[side, side, 3], &vec![number as u8; side * side * 3]).unwrap();
        fs::write(
            folder.path().join(format!("photos/all/{number:02}.bmp")),
            encode(picture.view(), &Encoding::Bmp).unwrap(),
        )
        .unwrap();
    }
    let pipeline = "name = \"decoded\"\n[[step]]\nop = \"decode\"\n";
    fs::write(folder.path().join("ragged.toml"), pipeline).unwrap();
    let size = SIDES.start;
    let dense = format!("{pipeline}[[step]]\nop = \"center_crop\"\nsize = [{size}, {size}]\n");
    fs::write(folder.path().join("dense.toml"), dense).unwrap();
    for (name, strategy) in [("ragged", "decoded"), ("dense", "cropped")] {
        let build = format!("build {name}.toml --data photos --strategy {strategy} -o {name}");
        forebay(folder.path(), &build).text();
    }
    folder
}

/// What is read, worked in and put into batches has its pages after the first epochs, whether shapes vary or not. A fault for each page
/// of the pixels would be there if batches were made in new memory, and another if files were read into it. Where the system has huge
/// pages for everybody, there are few faults anyway.
#[test]
fn buffers_are_used_again_from_epoch_to_epoch() {
    let count = 30;
    let folder = decoded_pictures(count);
    for (what, options) in [
        ("ragged", "--threads 1 --batch-size 5"),
        ("ragged", "--threads 3 --shuffle --batch-size 5"),
        ("dense", "--threads 2 --batch-size 5"),
        ("dense", "--threads 2 --batch-size 7 --shuffle"),
        ("ragged.toml --data photos", "--threads 2 --batch-size 5"),
    ] {
        let load = |epochs: u64| {
            let arguments = format!("load {what} {options} --epochs {epochs} --memory 512MB --json");
            page_faults(&mut command(folder.path(), &arguments))
        };
        let (few, many) = (load(4), load(12));
        let each = many.saturating_sub(few) / (8 * count as u64);
        assert!(each < PAGES_MIN / 7, "{each} page faults a sample with `{what} {options}` ({few}, {many})");
    }
}

#[test]
fn a_budget_that_is_too_small_is_an_error_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    large_pictures(folder.path(), 3);
    let small = forebay(folder.path(), "load small.toml --data photos --batch-size 4 --memory 10MB");
    let error = small.error(1);
    assert!(error.contains("sample `all/0") && error.contains("--memory"), "{error}");
    let batch = forebay(folder.path(), "load decoded.toml --data photos --batch-size 3 --memory 140MB");
    assert!(batch.error(1).contains("a batch of 3 samples"), "{batch:#?}");
    let tiny = forebay(folder.path(), "load small.toml --data photos --memory 1kB");
    assert!(tiny.error(2).contains("too small to work with"), "{tiny:#?}");
    let build = forebay(folder.path(), "build small.toml --data photos --strategy resized -o out --memory 10MB");
    assert!(build.error(1).contains("sample `all/0"), "{build:#?}");
}

#[test]
fn where_memory_runs_out_there_is_an_error_and_no_abort() {
    let folder = tempfile::tempdir().unwrap();
    large_pictures(folder.path(), 16);
    // The budget follows from the limit.
    let fits = limited(folder.path(), 1_000_000, "load small.toml --data photos --batch-size 4 --threads 4 --json");
    let outcome = fits.json();
    assert_eq!(outcome["samples"], 16);
    assert!(outcome["memory_bytes"].as_u64().unwrap() < 512_000_000, "{outcome}");
    // A budget that promises more than there is: whatever cannot be had is named, and nothing aborts.
    for arguments in [
        "load decoded.toml --data photos --batch-size 16 --threads 4 --memory 100GB",
        "load small.toml --data photos --batch-size 16 --threads 16 --prefetch 0 --memory 100GB",
        "build decoded.toml --data photos --strategy decoded -o out --threads 16 --memory 100GB",
    ] {
        let outcome = limited(folder.path(), 250_000, arguments);
        let code = outcome.code.unwrap_or_else(|| panic!("`{arguments}` was killed: {outcome:#?}"));
        assert!(code == 0 || code == 1, "{arguments}: {outcome:#?}");
        if code == 1 {
            let error = outcome.error(1);
            assert!(error.contains("memory"), "{arguments}: {error}");
        }
    }
}

/// How many tensors [`tensors`] makes, and how large each is.
const TENSORS: usize = 1200;
const TENSOR_BYTES: usize = 160_000;

/// The budgets of the tests below. All tensors together, 192 MB, are more than these and what a program takes besides.
const CACHE_BYTES: u64 = 40_000_000;
const MEMORY_BYTES: u64 = 32_000_000;
/// The program itself, its stacks, and what the C library's allocator keeps in the arenas of nine threads: samples that come and go leave gaps there.
const SLACK_BYTES: u64 = 80_000_000;

/// A folder with files of one tensor each, a pipeline that reads them, and two data sets of them: as files, and as tensors in two formats.
fn tensors() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("tensors")).unwrap();
    let mut elements = vec![0_u8; TENSOR_BYTES];
    for number in 0..TENSORS {
        // Not all alike, so that nothing can be made smaller.
        elements
            .iter_mut()
            .zip((number..).step_by(7))
            .for_each(|(element, value)| *element = ((value * value) >> 3) as u8);
        let tensor = Tensor::from_elements(&[TENSOR_BYTES], &elements).unwrap();
        fs::write(here.join(format!("tensors/{number:04}.npy")), npy::encode(tensor.view())).unwrap();
    }
    let pipeline = "name = \"tensors\"\n[source]\nfiles = \"*.npy\"\nfield = \"tensor\"\nlabel = \"none\"\n\
                    [[step]]\nop = \"decode_npy\"\ntype = \"uint8[160000]\"\n";
    fs::write(here.join("tensors.toml"), pipeline).unwrap();
    forebay(here, "build tensors.toml --data tensors --strategy concatenated -o files --shards 8").text();
    forebay(here, "build tensors.toml --data tensors --mix concatenated=0.5,decoded=0.5 -o mixed --shards 8").text();
    fs::remove_dir_all(here.join("tensors")).unwrap();
    folder
}

/// What is loaded, and how.
fn cached_loads() -> Vec<String> {
    let load = |dataset: &str, cache: &str| {
        format!(
            "load {dataset} --shuffle --shuffle-window 8MB --streams 2 --epochs 4 --batch-size 16 --threads 4 --memory {MEMORY_BYTES} \
             --cache {cache}:{CACHE_BYTES} --json"
        )
    };
    vec![
        load("files", "minio"),
        load("files", "decoded"),
        load("files", "liquid"),
        load("mixed", "minio"),
        load("mixed", "liquid"),
    ]
}

/// The budget of a cache and that of what is in flight are all that a process takes, with the slack of a program.
#[test]
fn caches_stay_within_their_budgets() {
    let folder = tensors();
    for arguments in cached_loads() {
        let (peak, output) = peak_bytes(&mut command(folder.path(), &arguments));
        let outcome: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!(outcome["samples"], 4 * TENSORS, "{arguments}: {output}");
        let cached = outcome["cache"]["bytes"].as_u64().unwrap();
        assert!(cached <= CACHE_BYTES && cached > CACHE_BYTES * 3 / 4, "{arguments}: {cached}");
        eprintln!("{peak} bytes: {arguments}");
        assert!(peak < CACHE_BYTES + MEMORY_BYTES + SLACK_BYTES, "{arguments}: {peak} bytes");
    }
}

/// A control group below this process's own that limits the memory of what is put into it. It is removed with this.
struct MemoryGroup(std::path::PathBuf);

impl MemoryGroup {
    /// `Err` says why there is none.
    fn new(limit_bytes: u64) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let parts = own.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
        let named = |controller: &str| {
            let is_it = |parts: &Vec<&str>| parts.len() == 3 && parts[1].split(',').any(|name| name == controller);
            parts.clone().find(is_it).map(|parts| parts[2].trim_start_matches('/').to_owned())
        };
        let (root, below, file) = match (named("memory"), named("")) {
            (Some(below), _) => ("/sys/fs/cgroup/memory", below, "memory.limit_in_bytes"),
            (None, Some(below)) => ("/sys/fs/cgroup", below, "memory.max"),
            (None, None) => return Err("this process is in no control group for memory".to_owned()),
        };
        let path = Path::new(root).join(below).join(format!("forebay-test-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Self(path);
        let limit = group.0.join(file);
        fs::write(&limit, limit_bytes.to_string()).map_err(|error| format!("{}: {error}", limit.display()))?;
        let found = fs::read_to_string(&limit).unwrap_or_default();
        // The system rounds to pages.
        match found.trim().parse::<u64>() {
            Ok(found) if found.abs_diff(limit_bytes) < 1 << 16 => Ok(group),
            _ => Err(format!("{} is `{}`", limit.display(), found.trim())),
        }
    }

    /// Runs the program in `folder` within this group.
    fn ran(&self, folder: &Path, arguments: &str) -> Ran {
        let mut shell = Command::new("sh");
        let procs = self.0.join("cgroup.procs");
        shell.args(["-c", &format!("echo $$ > '{}' && exec {FOREBAY} {arguments}", procs.display())]);
        ran(shell.current_dir(folder).stdin(Stdio::null()))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Whoever was in it may take a moment to be gone.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// With no more memory than its budgets and the slack of a program, a load is not killed.
#[test]
fn caches_live_within_a_control_group() {
    let group = match MemoryGroup::new(CACHE_BYTES + MEMORY_BYTES + SLACK_BYTES) {
        Ok(group) => group,
        Err(reason) => {
            eprintln!("skipped: no control group can be made: {reason}");
            return;
        }
    };
    let folder = tensors();
    for arguments in cached_loads() {
        let outcome = group.ran(folder.path(), &arguments).json();
        assert_eq!(outcome["samples"], 4 * TENSORS, "{arguments}");
    }
}
