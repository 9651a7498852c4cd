//! `forebay probe`: the throughput and latency of a storage, and the bandwidth of memory.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_engine::probe::{Access, Probe, ProbeOptions, probe};
use forebay_plan::units;
use forebay_storage::is_url;

use crate::arguments::{StorageArguments, Threads};
use crate::error::Result;
use crate::output::{Align, Output, Page, Table};

const EXAMPLES: &str = "\
Examples:
  forebay probe /mnt/data
  forebay probe /mnt/data --storage direct --threads 8
  forebay probe --storage ceph-hdd
  forebay probe s3://bucket/scratch

Writes temporary files to a hidden folder in FOLDER (128 MiB, and 100 MB per
thread), and reads them. The page cache is dropped before each measurement;
`direct` bypasses it. In a bucket it writes 70 MB, and also reads with 32
threads, as a loader does; if it may not write (a public bucket, a web
server), it reads up to 64 existing objects. Memory bandwidth is measured
too. Takes about 15 seconds.";

/// Measure the throughput and latency of storage
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder to measure in, or a URL
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    #[command(flatten)]
    storage: StorageArguments,
    #[command(flatten)]
    threads: Threads,
    /// Maximum duration of each measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        // A folder of a store exists once it contains something.
        if is_url(&self.folder) { Vec::new() } else { vec![&self.folder] }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.01 to 3600".to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let storage = arguments.storage.storage.open(0)?;
    let options =
        ProbeOptions { seconds: arguments.seconds, ..ProbeOptions::new(&arguments.folder, arguments.threads.count()) };
    let progress = output.progress();
    let found = probe(&*storage, &options, &progress)?;
    drop(progress);
    output.present(&found, show)
}

fn show(found: &Probe, page: &mut Page) {
    page.line(&format!("Storage `{}`", found.storage));
    page.gap();
    let mut table = Table::new(&[
        ("what", Align::Left),
        ("threads", Align::Right),
        ("bandwidth", Align::Right),
        ("per second", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
    ]);
    for measurement in &found.measurements {
        let rates = &measurement.rates;
        let what = match measurement.access {
            Access::LargeFile => "large file, 4 MiB blocks".to_owned(),
            // Where nothing can be written, they have other sizes.
            Access::SmallFiles if rates.iops > 0.0 => {
                format!("files of {}", units::bytes(rates.bytes_per_second / rates.iops))
            }
            Access::SmallFiles => "small files".to_owned(),
            Access::RandomBlocks => "random 4 KiB blocks".to_owned(),
        };
        table.row(
            [
                what,
                measurement.threads.to_string(),
                units::bytes_per_second(rates.bytes_per_second),
                units::number(rates.iops),
                units::seconds(rates.latency.p50_seconds),
                units::seconds(rates.latency.p95_seconds),
                units::seconds(rates.latency.p99_seconds),
            ],
            false,
        );
    }
    page.table(&table);
    page.gap();
    let memory = units::bytes_per_second(found.memory_bytes_per_second);
    page.line(&format!("Memory: {memory} copied by one thread"));
    for notice in &found.notices {
        page.hanging("note: ", notice);
    }
}
