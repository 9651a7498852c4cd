//! Storage that fails: on each operation, in each way that it can.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use forebay_engine::StorageChoice;
use forebay_engine::load::{Batch, Column, LoadOptions, Loader, OnError, Shuffle};
use forebay_engine::source::Shards;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::{Case, Files, KINDS, everything, shim};
use crate::support::{Ran, command, forebay};

/// Pictures of a handful of pixels, so that a run takes milliseconds.
const SMALL: &str = "--set resize.size=24 --set random_crop.size=16 --threads 2";

pub(super) const BUILD: &str = "build cv --data photos --strategy resized --shards 2 -o dataset";

pub(super) fn small(arguments: &str) -> &'static str {
    Box::leak(format!("{arguments} {SMALL}").into_boxed_str())
}

/// What commands on a data set begin with.
pub(super) fn built(here: &Path) {
    forebay(here, small(BUILD)).text();
}

fn sweep_all(case: &Case, most: usize) {
    let runs: usize = KINDS.iter().map(|kind| case.sweep(kind, most)).sum();
    assert!(runs > KINDS.len(), "it does touch files");
}

#[test]
fn build() {
    if shim().is_some() {
        sweep_all(&Case::new(small(BUILD)), 32);
    }
}

#[test]
fn build_packed_over_another() {
    if shim().is_none() {
        return;
    }
    let over = small("build cv --data photos --strategy decoded+gzip --shards 2 -o dataset --overwrite");
    let case = Case::prepared(built, Box::new(move |here| command(here, over)), |here, _| everything(here));
    sweep_all(&case, 16);
}

#[test]
fn convert() {
    if shim().is_some() {
        sweep_all(&Case::new("convert photos converted --to l3-fast --verify --threads 2"), 40);
    }
}

#[test]
fn load() {
    if shim().is_none() {
        return;
    }
    let program =
        Case::prepared(built, Box::new(|here| command(here, "load dataset --shuffle")), |here, _| everything(here));
    sweep_all(&program, 40);
    let checksums = Case::prepared(built, Box::new(loading), |_, ran| batches(ran));
    sweep_all(&checksums, 40);
}

#[test]
fn load_files() {
    if shim().is_some() {
        sweep_all(&Case::new(small("load cv --data photos")), 40);
    }
}

#[test]
fn profile() {
    if shim().is_some() {
        sweep_all(&profiling(), 4);
    }
}

#[test]
fn export() {
    if shim().is_none() {
        return;
    }
    let mut case =
        Case::prepared(built, Box::new(|here| command(here, "export dataset tars")), |here, _| everything(here));
    case.once = true;
    sweep_all(&case, 16);
}

/// A profile of two strategies.
pub(super) fn profiling() -> Case {
    let arguments = small("profile cv --data photos --seconds 0 --runs 1 --strategy unprocessed --strategy resized");
    Case::prepared(|_| (), Box::new(move |here| command(here, arguments)), |here, _| profiled(here))
}

/// What a profile says that no clock measured.
fn profiled(here: &Path) -> Files {
    let mut files = everything(here);
    let text = files.remove(Path::new("profile.json")).unwrap_or_default();
    let profile: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("profile.json: {error}"));
    let strategies = profile["strategies"].as_array().unwrap().iter().map(|strategy| {
        let runs: Vec<_> = strategy["runs"].as_array().unwrap().iter().map(|run| run["samples"].clone()).collect();
        format!("{} {} {runs:?}", strategy["name"], strategy["storage_bytes"])
    });
    files.insert("profile.json".into(), format!("{} {:?}", profile["data"], strategies.collect::<Vec<_>>()).into());
    files
}

/// A process that loads the data set in `here` and says what is in the batches: this test program itself.
fn loading(here: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::storage::child_that_loads", "--ignored", "--nocapture"]);
    command.current_dir(here).env("FAULT_LOADS", "dataset");
    command
}

fn batches(ran: &Ran) -> Files {
    let lines = ran.stderr.lines().filter(|line| line.starts_with("batch "));
    lines.map(|line| (line.into(), Vec::new())).collect()
}

#[test]
#[ignore = "not a test: what `load` runs in a process of its own"]
fn child_that_loads() {
    let Some(folder) = std::env::var_os("FAULT_LOADS") else { return };
    let load = || -> forebay_engine::Result<()> {
        let source = Shards::open(Path::new(&folder), StorageChoice::Local.open(0)?, OnError::Fail)?;
        let shuffle = Shuffle::Window { bytes: 1 << 20 };
        let options = LoadOptions { batch_size: 2, threads: 2, shuffle, seed: 7, ..LoadOptions::default() };
        let loader = Loader::new(Arc::new(source), options)?;
        for batch in loader.start(&loader.beginning_of(0))? {
            let batch = batch?;
            eprintln!("batch {} {:016x}", batch.number, checksum(&batch));
        }
        Ok(())
    };
    if let Err(error) = load() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn checksum(batch: &Batch) -> u64 {
    let mut hash = Xxh3::new();
    batch.keys.iter().for_each(|key| hash.update(key.as_bytes()));
    for (name, column) in &batch.columns {
        hash.update(name.as_bytes());
        match column {
            Column::Dense { data, .. } => hash.update(data),
            Column::Ints(numbers) => numbers.iter().for_each(|number| hash.update(&number.to_le_bytes())),
            Column::Ragged(_) | Column::Texts(_) | Column::Bytes(_) => unreachable!("the pipeline gives none"),
        }
    }
    hash.digest()
}

/// What somebody else built is never touched, whatever fails while the folder is looked at.
#[test]
fn build_beside_another_data_set() {
    if shim().is_none() {
        return;
    }
    let other = small("build cv --data photos --strategy decoded --shards 2 -o dataset");
    let case = Case::refused(built, Box::new(move |here| command(here, other)));
    for kind in ["EIO", "ENOSPC", "EINTR"] {
        case.sweep_refused(kind, 40);
    }
}
