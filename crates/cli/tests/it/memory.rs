//! The memory budget of the program: what it really takes, and what happens where memory runs out.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, PngEffort, encode};

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
