//! What many samples cost before the first of them is available: listing their files, opening a data set, starting an epoch.
//!
//! One million small files are made as links to a few (a file system has room for names, not for a million files of a bench), listed,
//! built into a data set and opened. Each figure is taken in a process of its own: what an earlier one gave back to the allocator and not
//! to the system would hide what the next one takes. Memory is what the process holds more than before, as the system counts it.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use forebay_engine::StorageChoice;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Dataset, Listing, ListingOptions};
use forebay_engine::load::{LoadOptions, Loader, OnError, Shuffle, WINDOW_BYTES};
use forebay_engine::source::{Files, Shards, Source};
use forebay_pipeline::{Pipeline, Strategy};

use crate::{Outcome, Selection};

/// The first argument of a process that takes one figure.
pub(crate) const CHILD: &str = "--figure-of-scale";

const SAMPLES: usize = 1_000_000;
const FOLDERS: usize = 1_000;
/// The most bytes that an opened data set may hold for a sample, and the most seconds to its first batch.
const BYTES_MAX: f64 = 16.0;
const SECONDS_MAX: f64 = 1.0;

const PIPELINE: &str = "name = \"scale\"\n[source]\nfiles = \"**/*.npy\"\nfield = \"tensor\"\n\
                        [[step]]\nop = \"decode_npy\"\ntype = \"uint8[1]\"\n";

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

/// What is measured in a separate process.
#[derive(Clone, Copy)]
enum Work {
    List,
    FirstBatchOfFiles,
    Open,
    FirstBatch,
}

impl Work {
    const ALL: [Self; 4] = [Self::List, Self::FirstBatchOfFiles, Self::Open, Self::FirstBatch];

    fn describe(self) -> &'static str {
        match self {
            Self::List => "list a folder of files",
            Self::Open => "open the data set built of them, with all its indexes",
            Self::FirstBatchOfFiles | Self::FirstBatch => "the same, and the first batch of a shuffled epoch",
        }
    }

    /// What it leaves behind is dropped after memory was counted.
    fn run(self, folder: &Path) -> Outcome<Box<dyn Any>> {
        let storage = StorageChoice::Local.open(0)?;
        let list = || -> Outcome<Files> {
            Ok(Files::open(pipeline()?, &files(folder), Arc::clone(&storage), &ListingOptions::default())?)
        };
        let open =
            || -> Outcome<Shards> { Ok(Shards::new(Arc::new(Dataset::open(&dataset(folder))?), Arc::clone(&storage))) };
        Ok(match self {
            Self::List => Box::new(list()?),
            Self::FirstBatchOfFiles => Box::new(first_batch(Arc::new(list()?))?),
            Self::Open => {
                let source = open()?;
                source.blocks()?;
                Box::new(source)
            }
            Self::FirstBatch => Box::new(first_batch(Arc::new(open()?))?),
        })
    }
}

fn files(folder: &Path) -> PathBuf {
    folder.join("files")
}

fn dataset(folder: &Path) -> PathBuf {
    folder.join("dataset")
}

fn pipeline() -> Outcome<Pipeline> {
    Ok(Pipeline::from_toml("scale", PIPELINE)?)
}

pub(crate) fn figures(selection: &Selection) -> Outcome<Vec<Figure>> {
    let wanted: Vec<usize> =
        (0..Work::ALL.len()).filter(|&number| selection.has(Work::ALL[number].describe())).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir()?;
    make_files(&files(folder.path()))?;
    let pipeline = pipeline()?;
    let build = Build {
        listing: Arc::new(Listing::scan(pipeline.source(), &files(folder.path()))?),
        strategy: Strategy::parse(&pipeline, "decoded")?,
        pipeline,
        storage: StorageChoice::Local.open(0)?,
    };
    let options = BuildOptions {
        threads: 2,
        shards: 64,
        on_error: OnError::Fail,
        overwrite: false,
        resume: None,
        memory_bytes: 1 << 30,
    };
    build.run(&dataset(folder.path()), &options, &())?;
    wanted.into_iter().map(|number| figure(number, folder.path())).collect()
}

/// Measures figure `number` in a separate process.
fn figure(number: usize, folder: &Path) -> Outcome<Figure> {
    let program = std::env::current_exe()?;
    let ran = Command::new(program).arg(CHILD).arg(number.to_string()).arg(folder).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(ran.stdout)?;
    let (seconds, bytes) = text.trim().split_once(' ').ok_or("a figure of one million samples could not be taken")?;
    let work = Work::ALL[number];
    let (seconds_max, bytes_max) = match work {
        Work::List | Work::FirstBatchOfFiles => (None, None),
        Work::Open => (None, Some(BYTES_MAX)),
        Work::FirstBatch => (Some(SECONDS_MAX), None),
    };
    Ok(Figure { work: work.describe(), seconds: seconds.parse()?, bytes: bytes.parse()?, seconds_max, bytes_max })
}

/// What the process of one figure does: prints the seconds that it took and the bytes that are held after it.
pub(crate) fn child(number: &str, folder: &Path) -> Outcome<()> {
    let work = *Work::ALL.get(number.parse::<usize>()?).ok_or("no such figure")?;
    let before = held_bytes()?;
    let begun = Instant::now();
    let made = work.run(folder)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seconds} {}", held_bytes()?.saturating_sub(before));
    drop(made);
    Ok(())
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
