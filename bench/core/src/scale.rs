//! What many samples cost before the first of them is there: listing their files, opening a data set, starting an epoch.
//!
//! One million small files are made as links to a few (a file system has room for names, not for a million files of a bench), listed,
//! built into a data set and opened. Memory is what the process holds more than before, as the system counts it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use forebay_engine::StorageChoice;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Dataset, Listing, ListingOptions};
use forebay_engine::load::{LoadOptions, Loader, OnError, Shuffle, WINDOW_BYTES};
use forebay_engine::source::{Files, Shards, Source};
use forebay_pipeline::{Pipeline, Strategy};

use crate::Outcome;

const SAMPLES: usize = 1_000_000;
const FOLDERS: usize = 1_000;
/// The most bytes that an opened data set may hold for a sample, and the most seconds to its first batch.
const BYTES_MAX: f64 = 16.0;
const SECONDS_MAX: f64 = 1.0;

const PIPELINE: &str = "name = \"scale\"\n[source]\nfiles = \"**/*.npy\"\nfield = \"tensor\"\n\
                        [[step]]\nop = \"decode-npy\"\ntype = \"uint8[1]\"\n";

/// One line of the table.
pub(crate) struct Figure {
    work: &'static str,
    seconds: f64,
    bytes: f64,
    /// What was aimed for.
    seconds_max: Option<f64>,
    bytes_max: Option<f64>,
}

impl Figure {
    pub(crate) fn is_missed(&self) -> bool {
        let over = |found: f64, most: Option<f64>| most.is_some_and(|most| found > most);
        over(self.seconds, self.seconds_max) || over(self.bytes / SAMPLES as f64, self.bytes_max)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bars = [
            self.seconds_max.map(|most| format!("≤ {most:.0} s")),
            self.bytes_max.map(|most| format!("≤ {most:.0} bytes")),
        ];
        let bars: Vec<String> = bars.into_iter().flatten().collect();
        let verdict = match (bars.is_empty(), self.is_missed()) {
            (true, _) => "",
            (_, true) => "missed",
            (_, false) => "met",
        };
        let (work, seconds, each) = (self.work, self.seconds, self.bytes / SAMPLES as f64);
        writeln!(f, "| {work} | {seconds:.2} s | {each:.1} bytes | {} | {verdict} |", bars.join(", "))
    }
}

pub(crate) fn figures() -> Outcome<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let files = folder.path().join("files");
    make_files(&files)?;
    let pipeline = Pipeline::from_toml("scale", PIPELINE)?;
    let storage = StorageChoice::Local.open(0)?;
    let mut figures = Vec::new();

    let source: Arc<dyn Source> = measured(&mut figures, "list a folder of files", None, || {
        Ok(Arc::new(Files::open(pipeline.clone(), &files, Arc::clone(&storage), &ListingOptions::default())?) as _)
    })?;
    measured(&mut figures, "…, and the first batch of a shuffled epoch of them", None, || first_batch(source))?;

    let output = folder.path().join("dataset");
    let listing = Arc::new(Listing::scan(pipeline.source(), &files)?);
    let strategy = Strategy::parse(&pipeline, "decoded")?;
    let build = Build { pipeline, strategy, listing, storage: Arc::clone(&storage) };
    let options = BuildOptions {
        threads: 2,
        shards: 64,
        on_error: OnError::Fail,
        overwrite: false,
        resume: None,
        memory_bytes: 1 << 30,
    };
    build.run(&output, &options, &())?;
    drop(build);

    let source: Arc<dyn Source> = measured(&mut figures, "open the data set built of them", None, || {
        Ok(Arc::new(Shards::new(Arc::new(Dataset::open(&output)?), storage)) as _)
    })?;
    measured(
        &mut figures,
        "…, and the first batch of a shuffled epoch of it",
        Some((SECONDS_MAX, BYTES_MAX)),
        || first_batch(source),
    )?;
    Ok(figures)
}

/// Does `work` and notes what it took and what is held after it.
fn measured<T>(
    figures: &mut Vec<Figure>,
    work: &'static str,
    most: Option<(f64, f64)>,
    run: impl FnOnce() -> Outcome<T>,
) -> Outcome<T> {
    let before = held_bytes()?;
    let begun = Instant::now();
    let made = run()?;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = held_bytes()?.saturating_sub(before) as f64;
    let (seconds_max, bytes_max) = most.unzip();
    figures.push(Figure { work, seconds, bytes, seconds_max, bytes_max });
    Ok(made)
}

/// The loader, with the epoch ended, after its first batch.
fn first_batch(source: Arc<dyn Source>) -> Outcome<Loader> {
    let shuffle = Shuffle::Window { bytes: WINDOW_BYTES };
    let loader = Loader::new(source, LoadOptions { threads: 2, shuffle, ..LoadOptions::default() })?;
    let mut epoch = loader.start(&loader.beginning_of(0))?;
    epoch.next().ok_or("an epoch without a batch")??;
    drop(epoch);
    Ok(loader)
}

/// So many bytes of memory the process has now.
fn held_bytes() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

fn make_files(root: &Path) -> Outcome<()> {
    // A NumPy file with one byte.
    let mut content = b"\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }".to_vec();
    content.resize(127, b' ');
    content.extend(b"\n\x07");
    for folder in 0..FOLDERS {
        let folder = root.join(format!("class-{folder:04}"));
        std::fs::create_dir_all(&folder)?;
        let first = folder.join("000000.npy");
        std::fs::write(&first, &content)?;
        for file in 1..SAMPLES / FOLDERS {
            std::fs::hard_link(&first, folder.join(format!("{file:06}.npy")))?;
        }
    }
    Ok(())
}
