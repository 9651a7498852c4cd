//! What can this storage and this memory do? Each function here is one thread's share of the answer.
//!
//! This crate spawns no threads: to measure with several, run these functions on each and
//! [merges](ReadSample::merge) the samples. Whether the page cache helps is the caller's choice too: drop it before, or
//! read past it with [`LocalStorage::direct`](crate::LocalStorage::direct). No block is read twice, so the page cache does not
//! flatter a measurement by itself.

mod latencies;
mod memory;
mod permutation;

use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub use latencies::{Latencies, LatencySummary};
pub use memory::memory_bandwidth;

use crate::{Error, Result, Storage, sequential};
use permutation::Permutation;

/// In [`read_files`], larger files are read in blocks of this size, so that no file decides how much memory is used.
const FILE_BLOCK_BYTES: usize = 8 << 20;

/// When a measurement ends, if there is still something to read then.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    deadline: Instant,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Until<'a> {
    /// At `deadline`, or as soon as `cancelled` says so.
    pub fn new(deadline: Instant, cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { deadline, cancelled }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline || (self.cancelled)()
    }
}

impl From<Instant> for Until<'_> {
    fn from(deadline: Instant) -> Self {
        Self { deadline, cancelled: &|| false }
    }
}

impl std::fmt::Debug for Until<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Until").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// What was read, and how long it took.
#[derive(Debug, Clone, Default)]
pub struct ReadSample {
    /// How many bytes were read.
    pub bytes: u64,
    /// The number of operations: blocks, or files in [`read_files`].
    pub operations: u64,
    /// How long all of it took.
    pub elapsed_seconds: f64,
    /// How long each operation took.
    pub latencies: Latencies,
}

/// The rates of a [`ReadSample`], for reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Operations per second.
    pub iops: f64,
    /// The percentiles of an operation's duration.
    pub latency: LatencySummary,
}

impl ReadSample {
    /// Adds what another thread read at the same time: the work adds up, the time is that of the slower.
    pub fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.operations += other.operations;
        self.elapsed_seconds = self.elapsed_seconds.max(other.elapsed_seconds);
        self.latencies.merge(&other.latencies);
    }

    /// What that is per second; zero if no time passed.
    pub fn rates(&self) -> Rates {
        let per_second =
            |amount: u64| if self.elapsed_seconds > 0.0 { amount as f64 / self.elapsed_seconds } else { 0.0 };
        Rates {
            bytes_per_second: per_second(self.bytes),
            iops: per_second(self.operations),
            latency: self.latencies.summary(),
        }
    }
}

/// Reads a file from front to back in blocks of `block_bytes`, until its end or the deadline.
pub fn read_sequential<'a>(
    storage: &dyn Storage,
    path: &Path,
    block_bytes: usize,
    until: impl Into<Until<'a>>,
) -> Result<ReadSample> {
    let mut stopwatch = Stopwatch::start(until.into());
    let file = storage.open(path)?;
    for block in sequential(&*file, block_bytes) {
        stopwatch.operation_done(block?.len() as u64);
        if stopwatch.is_over() {
            break;
        }
    }
    Ok(stopwatch.stop())
}

/// Opens and reads files one after the other, until the last or the deadline. An operation is one file.
pub fn read_files<'a>(storage: &dyn Storage, paths: &[&Path], until: impl Into<Until<'a>>) -> Result<ReadSample> {
    let mut stopwatch = Stopwatch::start(until.into());
    for path in paths {
        if stopwatch.is_over() {
            break;
        }
        let file = storage.open(path)?;
        let mut bytes = 0;
        for block in sequential(&*file, FILE_BLOCK_BYTES) {
            bytes += block?.len() as u64;
            if stopwatch.is_over() {
                break;
            }
        }
        stopwatch.operation_done(bytes);
    }
    Ok(stopwatch.stop())
}

/// Reads blocks of `block_bytes` in a random order that `seed` decides, each at most once, until all are read or the deadline.
/// Blocks start at multiples of their size; a partial block at the end of the file is not read.
pub fn read_random<'a>(
    storage: &dyn Storage,
    path: &Path,
    block_bytes: usize,
    seed: u64,
    until: impl Into<Until<'a>>,
) -> Result<ReadSample> {
    let file = storage.open(path)?;
    let Some(blocks) = file.size().checked_div(block_bytes as u64) else {
        return Err(Error::Argument { name: "block_bytes", found: "0".to_owned(), expected: "at least 1" });
    };
    let order = Permutation::new(blocks, seed);
    let mut stopwatch = Stopwatch::start(until.into());
    for index in 0..blocks {
        if stopwatch.is_over() {
            break;
        }
        let block = file.read(order.at(index) * block_bytes as u64, block_bytes)?;
        stopwatch.operation_done(block.len() as u64);
    }
    Ok(stopwatch.stop())
}

/// Collects a [`ReadSample`] while it happens.
struct Stopwatch<'a> {
    started: Instant,
    last: Instant,
    until: Until<'a>,
    sample: ReadSample,
}

impl<'a> Stopwatch<'a> {
    fn start(until: Until<'a>) -> Self {
        let now = Instant::now();
        Self { started: now, last: now, until, sample: ReadSample::default() }
    }

    /// Counts an operation that began when the previous one ended.
    fn operation_done(&mut self, bytes: u64) {
        let now = Instant::now();
        self.sample.latencies.record(now - self.last);
        self.sample.bytes += bytes;
        self.sample.operations += 1;
        self.last = now;
    }

    fn is_over(&self) -> bool {
        self.until.is_over()
    }

    fn stop(mut self) -> ReadSample {
        self.sample.elapsed_seconds = self.started.elapsed().as_secs_f64();
        self.sample
    }
}
