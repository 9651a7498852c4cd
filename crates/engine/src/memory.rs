//! The memory budget: how much memory a loader (or a build) may take, and how it is shared out.
//!
//! A file of 32 KB can hold an image of 800 MB, so that what is at work is bounded by bytes, not by a number of samples. One
//! number, the budget, is cut into `Shares` that each have one owner:
//!
//! ```text
//! streams  of sources that are compressed as streams, an eighth: the places within them, what was passed over there, and what was inflated
//!          ahead (half of it at the most); a window of Zstandard that is larger than that comes on top, once for each reader. Of plain shards in a store, what was read of them for their
//!          listing, as long as there is any: up to a quarter, less where shuffled windows want more than a quarter staged
//! staged   what was read and not yet worked on: a quarter, or more where shuffled windows want it, up to a half
//! of the rest:
//!   batch    3/12  what is in the batch that the consumer waits for
//!   sample   3/12  what the oldest sample that is not done takes while it is worked on
//!   ahead    4/12  all other samples at work, and the batches after the first
//!   pool     1/12  buffers that wait to be used again; as long as an epoch runs, also what `batch` and `ahead` do not take
//!   workers  1/12  what each worker may take without asking, and as much that it keeps from sample to sample
//! ```
//!
//! **Nobody waits for ever.** Memory is granted in the order of positions: the oldest sample that is not done, if it belongs to
//! the batch that the consumer waits for, takes from `sample` and `batch`, where nobody else does, and which it cannot
//! overdraw, because a sample that takes more than `sample`, and a batch that takes more than `batch`, are errors wherever
//! the memory came from. So it never waits. All others wait until `ahead` has space or until they are the oldest. Reads are
//! admitted to `staged` in their order: what is admitted and not done yet is older than what waits, or of the same windows, one
//! of each stream, and those fit. `load/model.rs` tries this out under many interleavings.
//!
//! Not in the budget: a cache, which has a limit of its own; what was read of shards in a store while they were listed, before the first epoch
//! begins (up to a quarter of the default budget); what the consumer keeps of the batches that it took before the
//! last; the code, the stacks, and what libraries hold beside images (a few MB for each thread); idle buffers of the storage
//! room (up to 128 MB) and of what was inflated (up to 32 MB).

use std::fs;

use forebay_pipeline::StepError;

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex};

/// The least that can be worked with.
pub const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// What a worker keeps from sample to sample at most, however large the budget is.
const WORKER_BYTES_MAX: u64 = 64 << 20;

/// What a source may hold in memory between reads, of which only one is ever used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// By the places within compressed streams, or pages and buffers of Parquet and Arrow files.
    pub streams_bytes: u64,
    /// Of what was read of plain shards in a store for their listing.
    pub kept_bytes: u64,
    /// Whether samples are read as they lie. Then the next streams are begun while one is read, within the same limit.
    pub in_order: bool,
}

impl StreamLimits {
    /// The same for both.
    pub fn of(bytes: u64) -> Self {
        Self { streams_bytes: bytes, kept_bytes: bytes, in_order: false }
    }

    /// The part of each of so many sources that are read together.
    #[must_use]
    pub(crate) fn each_of(self, sources: usize) -> Self {
        let sources = sources.max(1) as u64;
        Self { streams_bytes: self.streams_bytes / sources, kept_bytes: self.kept_bytes / sources, ..self }
    }
}

/// How a budget is shared out; see the module's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The whole budget.
    pub(crate) memory_bytes: u64,
    pub(crate) staged_bytes: u64,
    /// A read of more is refused.
    pub(crate) read_bytes_max: u64,
    pub(crate) batch_bytes: u64,
    pub(crate) sample_bytes: u64,
    pub(crate) ahead_bytes: u64,
    pub(crate) pool_bytes: u64,
    /// What each worker may take without asking, and as much again that it may keep.
    pub(crate) worker_bytes: u64,
}

impl Shares {
    /// What the places within compressed streams may hold of a budget of `memory_bytes`.
    pub(crate) fn streams_bytes_max(memory_bytes: u64) -> u64 {
        memory_bytes / 8
    }

    /// What may be kept of what was read of far shards for their listing. With what is staged, that is no more than five eighths of the budget, as streams
    /// and the largest windows are: samples and batches have as much space as beside those.
    pub(crate) fn kept_bytes_max(memory_bytes: u64, window_bytes: u64) -> u64 {
        let staged_bytes = window_bytes.clamp(memory_bytes / 4, memory_bytes / 2);
        (memory_bytes / 4).min((memory_bytes / 8 * 5).saturating_sub(staged_bytes))
    }

    /// The limits of both, for an epoch whose samples come as they lie or not.
    pub(crate) fn stream_limits(memory_bytes: u64, window_bytes: u64, in_order: bool) -> StreamLimits {
        let streams_bytes = Self::streams_bytes_max(memory_bytes);
        StreamLimits { streams_bytes, kept_bytes: Self::kept_bytes_max(memory_bytes, window_bytes), in_order }
    }

    /// The shares of `memory_bytes` for `threads` workers and windows of up to `window_bytes`, which must be staged whole, where streams hold
    /// `streams_bytes`.
    pub(crate) fn new(memory_bytes: u64, threads: usize, window_bytes: u64, streams_bytes: u64) -> Result<Self> {
        let (least, most) = (memory_bytes / 4, memory_bytes / 2);
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(Error::Usage {
                problem: format!("a memory budget of {memory_bytes} bytes is too small to work with"),
                remedy: format!("raise `memory` (`--memory`) to at least {MEMORY_BYTES_MIN} bytes"),
            });
        }
        if window_bytes > most {
            return Err(Error::Usage {
                problem: format!(
                    "a window of {window_bytes} bytes to shuffle in does not fit into half of the memory budget of {memory_bytes} bytes"
                ),
                remedy: "raise `memory` (`--memory`), or shuffle in a smaller window".to_owned(),
            });
        }
        let staged_bytes = window_bytes.clamp(least, most);
        let twelfth = (memory_bytes - staged_bytes - streams_bytes) / 12;
        Ok(Self {
            memory_bytes,
            staged_bytes,
            read_bytes_max: least,
            batch_bytes: 3 * twelfth,
            sample_bytes: 3 * twelfth,
            ahead_bytes: 4 * twelfth,
            pool_bytes: twelfth,
            worker_bytes: (twelfth / 2 / threads.max(1) as u64).min(WORKER_BYTES_MAX),
        })
    }

    /// The error of a sample that takes `bytes` at once.
    pub(crate) fn too_large(&self, bytes: u64) -> StepError {
        StepError::Budget { bytes, limit_bytes: self.sample_bytes, memory_bytes: self.memory_bytes }
    }
}

/// What is taken of two shares: the one of the oldest, and the one of all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) front: u64,
    pub(crate) ahead: u64,
}

impl Charge {
    pub(crate) fn bytes(self) -> u64 {
        self.front + self.ahead
    }
}

impl std::ops::AddAssign for Charge {
    fn add_assign(&mut self, other: Self) {
        self.front += other.front;
        self.ahead += other.ahead;
    }
}

/// A budget for workers that need nothing of each other, as those of a build: each may take its part of a quarter, and keep its
/// part of another; and one at a time, whose sample takes more than that, may take a half.
#[derive(Debug)]
pub(crate) struct Gate {
    memory_bytes: u64,
    worker_bytes: u64,
    taken: Mutex<bool>,
    free: Condvar,
}

impl Gate {
    pub(crate) fn new(memory_bytes: u64, threads: usize) -> Self {
        let worker_bytes = memory_bytes / 4 / threads.max(1) as u64;
        Self { memory_bytes, worker_bytes, taken: Mutex::new(false), free: Condvar::new() }
    }

    /// Waits until a sample may take `bytes`; `pass` is what it waited for before, and is held until the sample is done.
    pub(crate) fn wait<'a>(&'a self, bytes: u64, pass: &mut Option<Pass<'a>>) -> std::result::Result<(), StepError> {
        let limit_bytes = self.memory_bytes / 2;
        if bytes > limit_bytes {
            return Err(StepError::Budget { bytes, limit_bytes, memory_bytes: self.memory_bytes });
        }
        if bytes > self.worker_bytes && pass.is_none() {
            let mut taken = self.taken.lock();
            while *taken {
                self.free.wait(&mut taken);
            }
            *taken = true;
            *pass = Some(Pass(self));
        }
        Ok(())
    }

    /// What the places within compressed streams that a worker reads may hold: half of what it may keep.
    pub(crate) fn streams_bytes(&self) -> u64 {
        self.keep_bytes() as u64 / 2
    }

    /// What a worker may keep from sample to sample.
    pub(crate) fn keep_bytes(&self) -> usize {
        self.worker_bytes.min(WORKER_BYTES_MAX) as usize
    }
}

/// The right to the half that one sample at a time may take.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock() = false;
        self.0.free.notify_all();
    }
}

/// The budget unless one is given: half of what this process can have. That is the least of what the machine has free, what
/// the control groups of the process allow, and what its resource limits leave.
pub fn default_memory_bytes() -> u64 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let free = meminfo_bytes(&read("/proc/meminfo"), "MemAvailable");
    let groups = group_files(&read("/proc/self/cgroup"));
    let groups = groups.iter().filter_map(|path| read(path).trim().parse::<u64>().ok());
    // The C library sets address space aside for each thread that it never uses: of that limit, half is counted.
    let limits = process_limit_bytes(&read("/proc/self/limits"), &read("/proc/self/statm")).map(|left| left / 2);
    let least = free.into_iter().chain(groups).chain(limits).min().unwrap_or(4 << 30);
    (least / 2).max(MEMORY_BYTES_MIN)
}

/// The files that limit the control groups which `/proc/self/cgroup` names, and the groups around them. A container that sees
/// its own group as the root finds its limit there.
fn group_files(text: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for ancestor in std::path::Path::new(path).ancestors().filter(|ancestor| ancestor.is_absolute()) {
            files.push(format!("{root}{}/{file}", ancestor.to_string_lossy().trim_end_matches('/')));
        }
    }
    files
}

/// What the resource limits of a process leave it of address space and of data (`ulimit -v` and `-d`), from its files
/// `limits` and `statm`.
fn process_limit_bytes(limits: &str, statm: &str) -> Option<u64> {
    let pages: Vec<u64> = statm.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let used = |index: usize| pages.get(index).copied().unwrap_or(0) * rustix::param::page_size() as u64;
    let left = |name: &str, used: u64| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_sub(used))
    };
    left("Max address space", used(0)).into_iter().chain(left("Max data size", used(5))).min()
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Shares {
        fn sum(&self, threads: usize) -> u64 {
            let Self { staged_bytes, batch_bytes, sample_bytes, ahead_bytes, pool_bytes, worker_bytes, .. } = *self;
            staged_bytes + batch_bytes + sample_bytes + ahead_bytes + pool_bytes + 2 * worker_bytes * threads as u64
        }
    }

    #[test]
    fn shares_are_no_more_than_the_budget() {
        for memory_bytes in [MEMORY_BYTES_MIN, 100_000_003, 1 << 40] {
            for window_bytes in [0, memory_bytes / 3, memory_bytes / 2] {
                for threads in [1, 7, 1000] {
                    let shares = Shares::new(memory_bytes, threads, window_bytes, 0).unwrap();
                    let streams_bytes = Shares::streams_bytes_max(memory_bytes);
                    let with_streams = Shares::new(memory_bytes, threads, window_bytes, streams_bytes).unwrap();
                    assert!(with_streams.sum(threads) + streams_bytes <= memory_bytes, "{with_streams:?}");
                    let kept_bytes = Shares::kept_bytes_max(memory_bytes, window_bytes);
                    let with_kept = Shares::new(memory_bytes, threads, window_bytes, kept_bytes).unwrap();
                    assert!(with_kept.sum(threads) + kept_bytes <= memory_bytes, "{with_kept:?}");
                    // As much as beside streams and the largest windows.
                    assert!(with_kept.sample_bytes >= memory_bytes / 32 * 3 - 12, "{with_kept:?}");
                    assert!(shares.sum(threads) <= memory_bytes, "{shares:?}");
                    assert!(shares.staged_bytes >= window_bytes);
                    assert!(shares.sample_bytes >= memory_bytes / 8 - 12);
                }
            }
        }
        assert!(Shares::new(MEMORY_BYTES_MIN - 1, 1, 0, 0).is_err());
        assert!(Shares::new(1 << 30, 1, (1 << 29) + 1, 0).unwrap_err().to_string().contains("smaller window"));
    }

    #[test]
    fn the_default_is_found() {
        assert_eq!(meminfo_bytes("MemTotal:  10 kB\nMemAvailable:   7 kB\n", "MemAvailable"), Some(7 * 1024));
        assert_eq!(meminfo_bytes("MemTotal:  10 kB\n", "MemAvailable"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax data size   unlimited  unlimited  bytes\nMax address space   1000000  unlimited   bytes\n";
        let page = rustix::param::page_size() as u64;
        assert_eq!(process_limit_bytes(limits, "3 1 1 1 0 2 0"), Some(1_000_000 - 3 * page));
        assert_eq!(process_limit_bytes(&limits.replace("1000000", "unlimited"), ""), None);
        assert_eq!(
            group_files("12:cpu:/a\n3:memory:/b\n0::/c/d\n"),
            [
                "/sys/fs/cgroup/memory/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/c/d/memory.max",
                "/sys/fs/cgroup/c/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        let budget = default_memory_bytes();
        assert!(budget >= MEMORY_BYTES_MIN, "{budget}");
    }

    #[test]
    fn one_large_sample_at_a_time_passes_the_gate() {
        shuttle::check_random(pass_the_gate, 100);
    }

    fn pass_the_gate() {
        let gate = std::sync::Arc::new(Gate::new(1000, 5));
        let (mut small, mut large) = (None, None);
        gate.wait(50, &mut small).unwrap();
        assert!(small.is_none(), "a worker's own part needs no pass");
        gate.wait(51, &mut large).unwrap();
        gate.wait(500, &mut large).unwrap();
        assert!(large.is_some() && *gate.taken.lock());
        assert!(gate.wait(501, &mut large).is_err());
        let other = std::sync::Arc::clone(&gate);
        let waiting = shuttle::thread::spawn(move || other.wait(200, &mut None).is_ok());
        drop(large);
        assert!(waiting.join().unwrap());
        assert!(!*gate.taken.lock());
    }
}
