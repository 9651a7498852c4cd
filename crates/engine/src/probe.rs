//! Probing: measures what a storage and the memory can do, with temporary files, or with existing ones where it may not write.

mod found;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use forebay_storage::probe::{self, Rates, ReadSample, Until};
use forebay_storage::{Storage, is_url};
use serde::{Deserialize, Serialize};

use crate::cpu_time::process_cpu_seconds;
use crate::error::{Error, Result};
use crate::progress::{Progress, while_wanted};
use crate::scratch_folder::ScratchFolder;
use crate::threads::{cannot_start, space_for_one};

/// How to probe.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// The folder in which the files to read are made, and removed again.
    pub folder: PathBuf,
    /// How many threads read at once, in addition to one alone.
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

    /// How many threads read at once: one, those that are asked for, and as many as it takes where each read waits long.
    fn thread_counts(&self, storage: &dyn Storage) -> Vec<usize> {
        let mut counts = vec![1, self.threads.max(1), storage.reads_at_once(&self.folder).max(1)];
        counts.sort_unstable();
        counts.dedup();
        counts
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
    pub memory_bytes_per_second: f64,
    /// What the user should know about how it was read.
    pub notices: Vec<String>,
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
    /// Many small files.
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
    let thread_counts = options.thread_counts(storage);
    let files = ProbeFiles::make(storage, options, progress)?;
    let mut kinds = vec![Access::LargeFile, Access::SmallFiles, Access::RandomBlocks];
    kinds.retain(|access| files.are_there_for(*access));
    let mut measurements = Vec::new();
    progress.begin("probe", (kinds.len() * thread_counts.len() + 1) as u64);
    for access in kinds {
        for &threads in &thread_counts {
            let rates = measure(storage, &files, access, threads, options.seconds, progress)?.rates();
            measurements.push(Measurement { access, threads, rates });
            progress.advance(1);
        }
    }
    let memory_bytes_per_second = probe::memory_bandwidth(MEMORY_BYTES, MEMORY_REPEATS)?;
    progress.end();
    let notices = [files.notice, storage.notice()].into_iter().flatten().collect();
    Ok(Probe { storage: storage.name().to_owned(), measurements, memory_bytes_per_second, notices })
}

/// Large files read in order.
pub(crate) struct Sequential {
    pub(crate) bytes_per_second: f64,
    /// One thread alone.
    pub(crate) stream_bytes_per_second: f64,
    /// The kernel's time included.
    pub(crate) cpu_seconds_per_byte: f64,
}

/// Long enough to determine whether a single stream reaches the total bandwidth.
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
    let files = ProbeFiles::make(storage, &options, progress)?;
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
    files: &ProbeFiles<'_>,
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

/// Runs `work` on that many threads at once and adds up their measurements.
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
struct ProbeFiles<'a> {
    folder: ProbeFolder<'a>,
    large: Vec<PathBuf>,
    small: Vec<Vec<PathBuf>>,
    /// What there is to say where they are others'.
    notice: Option<String>,
}

/// Their location.
enum ProbeFolder<'a> {
    Scratch(ScratchFolder),
    /// In a store: a folder that exists as long as there is something in it.
    Remote(&'a dyn Storage, PathBuf, Vec<PathBuf>),
}

impl ProbeFolder<'_> {
    fn path(&self) -> &Path {
        match self {
            Self::Scratch(folder) => folder.path(),
            Self::Remote(_, path, _) => path,
        }
    }

    /// Writes a file of that many bytes.
    fn write(&mut self, path: &Path, content: &[u8], bytes: u64, progress: &dyn Progress) -> Result<()> {
        match self {
            Self::Scratch(_) => {
                let file = forebay_storage::create_fresh(path).map_err(Error::io("write the probe's file", path))?;
                fill(file, path, content, bytes, progress)
            }
            Self::Remote(storage, _, written) => {
                let mut upload = storage.create(path)?;
                fill(&mut upload, path, content, bytes, progress)?;
                written.push(path.to_owned());
                Ok(upload.commit()?)
            }
        }
    }
}

impl Drop for ProbeFolder<'_> {
    fn drop(&mut self) {
        if let Self::Remote(storage, _, written) = self {
            // What cannot be removed is left.
            for path in written {
                let _ = storage.remove(path);
            }
        }
    }
}

/// In a store all threads read the same few objects, which nothing caches: writing takes time there.
const REMOTE_FILES: usize = 32;
const REMOTE_LARGE_BYTES: u64 = 64 << 20;

impl<'a> ProbeFiles<'a> {
    /// A few objects, for that many threads.
    fn make_remote(storage: &'a dyn Storage, options: &ProbeOptions, progress: &dyn Progress) -> Result<Self> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let path = options.folder.join(format!(".forebay-probe-{}-{time}", std::process::id()));
        let mut folder = ProbeFolder::Remote(storage, path.clone(), Vec::new());
        let content = content(options);
        let large = path.join("large");
        folder.write(&large, &content, options.large_bytes.min(REMOTE_LARGE_BYTES), progress)?;
        let mut small = Vec::new();
        for number in 0..options.small_files.min(REMOTE_FILES) {
            let path = path.join(format!("small-{number}"));
            folder.write(&path, &content, options.small_bytes as u64, progress)?;
            small.push(path);
        }
        let threads = options.thread_counts(storage).into_iter().max().unwrap_or(1);
        Ok(Self { folder, large: vec![large; threads], small: vec![small; threads], notice: None })
    }

    /// Existing files.
    fn found(storage: &'a dyn Storage, options: &ProbeOptions) -> Option<Self> {
        let found = found::find(storage, options)?;
        let threads = options.thread_counts(storage).into_iter().max().unwrap_or(1);
        Some(Self {
            folder: ProbeFolder::Remote(storage, options.folder.clone(), Vec::new()),
            large: found.large.iter().cycle().take(if found.large.is_empty() { 0 } else { threads }).cloned().collect(),
            small: vec![found.small; threads],
            notice: Some(found.notice),
        })
    }

    /// Whether there is anything to read so.
    fn are_there_for(&self, access: Access) -> bool {
        match access {
            Access::LargeFile | Access::RandomBlocks => !self.large.is_empty(),
            Access::SmallFiles => self.small.iter().any(|files| !files.is_empty()),
        }
    }

    fn make(storage: &'a dyn Storage, options: &ProbeOptions, progress: &dyn Progress) -> Result<Self> {
        if is_url(&options.folder) {
            return Self::make_remote(storage, options, progress).or_else(|error| {
                let found = found::may_only_read(&error).then(|| Self::found(storage, options)).flatten();
                found.ok_or(error)
            });
        }
        let folder = ProbeFolder::Scratch(ScratchFolder::new(&options.folder, "probe")?);
        let mut files = Self { folder, large: Vec::new(), small: Vec::new(), notice: None };
        let content = content(options);
        for thread in 0..options.threads.max(1) {
            let large = files.folder.path().join(format!("large-{thread}"));
            files.folder.write(&large, &content, options.large_bytes, progress)?;
            files.large.push(large);
            let mut small = Vec::with_capacity(options.small_files);
            for number in 0..options.small_files {
                let path = files.folder.path().join(format!("small-{thread}-{number}"));
                files.folder.write(&path, &content, options.small_bytes as u64, progress)?;
                small.push(path);
            }
            files.small.push(small);
        }
        Ok(files)
    }
}

/// Not zeros, which some file systems do not store.
fn content(options: &ProbeOptions) -> Vec<u8> {
    let mut random = forebay_pipeline::Random::from_parts(&[options.large_bytes]);
    (0..(1 << 20) / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// Writes `content` repeatedly, up to that many bytes.
fn fill(mut file: impl Write, path: &Path, content: &[u8], bytes: u64, progress: &dyn Progress) -> Result<()> {
    let mut left = bytes;
    while left > 0 {
        while_wanted(progress)?;
        let part = &content[..(content.len() as u64).min(left) as usize];
        file.write_all(part).map_err(Error::io("write the probe's file", path))?;
        left -= part.len() as u64;
    }
    Ok(())
}
