//! Probing: what a storage and the memory can do, measured with files of its own.

use std::path::{Path, PathBuf};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant};

use forebay_storage::Storage;
use forebay_storage::probe::{self, Rates, ReadSample, Until};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::processor_time::process_cpu_seconds;
use crate::progress::{Progress, while_wanted};
use crate::scratch_folder::ScratchFolder;
use crate::threads::{cannot_start, space_for_one};

/// How to probe.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// The folder in which the files to read are made, and removed again.
    pub folder: PathBuf,
    /// How many threads read at once, besides one alone.
    pub threads: usize,
    /// The size of the large file of each thread.
    pub large_bytes: u64,
    /// How many small files each thread reads at the most.
    pub small_files: usize,
    /// The size of a small file.
    pub small_bytes: usize,
    /// How long each measurement lasts at the most.
    pub seconds: f64,
}

impl ProbeOptions {
    /// PRESTO's workload (paper Table 3: small files of 0.2 MB), scaled to a few seconds.
    pub fn new(folder: &Path, threads: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            threads,
            large_bytes: 128 << 20,
            small_files: 500,
            small_bytes: 200_000,
            seconds: 2.0,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The storage.
    pub storage: String,
    /// The measurements of the storage.
    pub measurements: Vec<Measurement>,
    /// How fast one thread copies memory.
    pub memory_megabytes_per_second: f64,
    /// What the user should know about how it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// One measurement of a storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was read.
    pub access: Access,
    /// By how many threads at once.
    pub threads: usize,
    /// What came of it.
    #[serde(flatten)]
    pub rates: Rates,
}

/// What was read, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// One large file per thread, in order, in blocks of 4 MiB.
    LargeFile,
    /// Many small files, each whole.
    SmallFiles,
    /// One large file, blocks of 4 KiB at random offsets.
    RandomBlocks,
}

const BLOCK_BYTES: usize = 4 << 20;
const RANDOM_BLOCK_BYTES: usize = 4096;
const MEMORY_BYTES: usize = 256 << 20;
const MEMORY_REPEATS: u32 = 5;

/// Measures `storage`.
pub fn probe(storage: &dyn Storage, options: &ProbeOptions, progress: &dyn Progress) -> Result<Probe> {
    let files = ProbeFiles::make(options, progress)?;
    let thread_counts = if options.threads > 1 { vec![1, options.threads] } else { vec![1] };
    let kinds = [Access::LargeFile, Access::SmallFiles, Access::RandomBlocks];
    let mut measurements = Vec::new();
    progress.begin("probe", (kinds.len() * thread_counts.len() + 1) as u64);
    for access in kinds {
        for &threads in &thread_counts {
            let rates = measure(storage, &files, access, threads, options.seconds, progress)?.rates();
            measurements.push(Measurement { access, threads, rates });
            progress.advance(1);
        }
    }
    let memory_megabytes_per_second = probe::memory_bandwidth(MEMORY_BYTES, MEMORY_REPEATS)? / 1e6;
    progress.end();
    Ok(Probe {
        storage: storage.name().to_owned(),
        measurements,
        memory_megabytes_per_second,
        notice: storage.notice(),
    })
}

/// Large files read in order.
pub(crate) struct Sequential {
    pub(crate) bytes_per_second: f64,
    /// One thread alone.
    pub(crate) stream_bytes_per_second: f64,
    /// The kernel's time included.
    pub(crate) cpu_seconds_per_byte: f64,
}

/// Long enough to tell whether a stream gets as much alone as all together.
const STREAM_SECONDS: f64 = 0.2;

/// What `threads` threads get that read in order, each from its own file made in `folder`.
pub(crate) fn sequential(
    storage: &dyn Storage,
    folder: &Path,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Sequential> {
    let options =
        ProbeOptions { small_files: 0, large_bytes: 64 << 20, seconds: 0.5, ..ProbeOptions::new(folder, threads) };
    let files = ProbeFiles::make(&options, progress)?;
    // What was written is on its way to the disk, which is no part of reading.
    storage.drop_cache(&files.large.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let before = process_cpu_seconds();
    let sample = measure(storage, &files, Access::LargeFile, threads, options.seconds, progress)?;
    let cpu_seconds = process_cpu_seconds() - before;
    let rate = |sample: &ReadSample| sample.bytes as f64 / sample.elapsed_seconds;
    let stream = if threads > 1 {
        rate(&measure(storage, &files, Access::LargeFile, 1, STREAM_SECONDS, progress)?)
    } else {
        rate(&sample)
    };
    Ok(Sequential {
        bytes_per_second: rate(&sample),
        stream_bytes_per_second: stream,
        cpu_seconds_per_byte: cpu_seconds / sample.bytes.max(1) as f64,
    })
}

fn measure(
    storage: &dyn Storage,
    files: &ProbeFiles,
    access: Access,
    threads: usize,
    seconds: f64,
    progress: &dyn Progress,
) -> Result<ReadSample> {
    let all: Vec<&Path> = files.large.iter().chain(files.small.iter().flatten()).map(PathBuf::as_path).collect();
    storage.drop_cache(&all)?;
    run_threads(threads, seconds, progress, |thread, until| {
        Ok(match access {
            Access::LargeFile => probe::read_sequential(storage, &files.large[thread], BLOCK_BYTES, until)?,
            Access::RandomBlocks => {
                probe::read_random(storage, &files.large[thread], RANDOM_BLOCK_BYTES, thread as u64, until)?
            }
            Access::SmallFiles => {
                let share: Vec<&Path> = files.small[thread].iter().map(PathBuf::as_path).collect();
                probe::read_files(storage, &share, until)?
            }
        })
    })
}

/// Runs `work` on so many threads at once and adds up what they measured.
fn run_threads(
    threads: usize,
    seconds: f64,
    progress: &dyn Progress,
    work: impl Fn(usize, Until<'_>) -> Result<ReadSample> + Sync,
) -> Result<ReadSample> {
    let cancelled = || progress.is_cancelled();
    let until = Until::new(Instant::now() + Duration::from_secs_f64(seconds), &cancelled);
    let work = &work;
    let samples: Vec<Result<ReadSample>> = std::thread::scope(|scope| {
        let start = |thread| {
            space_for_one()?;
            Builder::new().spawn_scoped(scope, move || work(thread, until))
        };
        let handles: Vec<_> = (0..threads).map(start).collect();
        let join = |handle: std::io::Result<ScopedJoinHandle<'_, _>>| {
            handle
                .map_err(|source| cannot_start("probing", source))?
                .join()
                .unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
        };
        handles.into_iter().map(join).collect()
    });
    while_wanted(progress)?;
    samples.into_iter().try_fold(ReadSample::default(), |mut sum, sample| {
        sum.merge(&sample?);
        Ok(sum)
    })
}

/// The files that are read, removed when dropped.
struct ProbeFiles {
    folder: ScratchFolder,
    large: Vec<PathBuf>,
    small: Vec<Vec<PathBuf>>,
}

impl ProbeFiles {
    fn make(options: &ProbeOptions, progress: &dyn Progress) -> Result<Self> {
        let folder = ScratchFolder::new(&options.folder, "probe")?;
        let mut files = Self { folder, large: Vec::new(), small: Vec::new() };
        // Not zeros, which some file systems do not store.
        let mut random = forebay_pipeline::Random::from_parts(&[options.large_bytes]);
        let content: Vec<u8> = (0..(1 << 20) / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        for thread in 0..options.threads.max(1) {
            let large = files.folder.path().join(format!("large-{thread}"));
            write_file(&large, &content, options.large_bytes, progress)?;
            files.large.push(large);
            let mut small = Vec::with_capacity(options.small_files);
            for number in 0..options.small_files {
                let path = files.folder.path().join(format!("small-{thread}-{number}"));
                write_file(&path, &content, options.small_bytes as u64, progress)?;
                small.push(path);
            }
            files.small.push(small);
        }
        Ok(files)
    }
}

fn write_file(path: &Path, content: &[u8], bytes: u64, progress: &dyn Progress) -> Result<()> {
    use std::io::Write;
    let failed = || Error::io("write the probe's file", path);
    let mut file = forebay_storage::create_fresh(path).map_err(failed())?;
    let mut left = bytes;
    while left > 0 {
        while_wanted(progress)?;
        let part = &content[..(content.len() as u64).min(left) as usize];
        file.write_all(part).map_err(failed())?;
        left -= part.len() as u64;
    }
    Ok(())
}
