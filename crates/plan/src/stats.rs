//! What the threads of a loader did with their time: who waited for whom. What binds is seen here, not inferred.

use serde::{Deserialize, Serialize};

use crate::prediction::Bound;
use crate::units;

/// Where the time of a loader went. Seconds of readers and workers are summed over their threads, of which there are
/// [`threads`](Self::threads) each.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// From the start to the last batch that was consumed, or to now.
    pub seconds: f64,
    /// How many readers there were, and as many workers.
    pub threads: usize,
    /// How many samples were loaded.
    pub samples: u64,
    /// How many bytes were read from storage.
    pub bytes_read: u64,
    /// Readers: reading.
    pub read_seconds: f64,
    /// Readers: waiting for space, because workers are slower.
    pub read_wait_seconds: f64,
    /// Workers: working on samples.
    pub work_seconds: f64,
    /// Workers: waiting for bytes, because readers are slower.
    pub data_wait_seconds: f64,
    /// Workers: waiting for a free batch, because the consumer is slower.
    pub batch_wait_seconds: f64,
    /// The consumer: waiting for a batch.
    pub consumer_wait_seconds: f64,
    /// CPU time of readers and workers in user code.
    pub user_seconds: f64,
    /// CPU time of readers and workers in the kernel.
    pub system_seconds: f64,
}

/// What a loader did in all of its epochs, and what of it came after the first batch of each.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoaderStats {
    /// All of it.
    #[serde(flatten)]
    pub all: Stats,
    /// Without the start of each epoch: until the first batch, all threads wait for the first bytes, whatever the bottleneck is afterwards.
    pub steady: Stats,
}

impl LoaderStats {
    /// The same and one more epoch, which did `epoch` so far, and `at_first` by its first batch, if that was there.
    #[must_use]
    pub fn and_epoch(&self, epoch: &Stats, at_first: Option<&Stats>) -> Self {
        let steady = at_first.map(|at_first| epoch.since(at_first)).unwrap_or_default();
        Self { all: self.all.and(epoch), steady: self.steady.and(&steady) }
    }

    /// What bound the loader on a machine of `cores` cores, once its epochs had begun.
    pub fn bound_by(&self, cores: usize) -> Bound {
        self.steady.bound_by(cores)
    }

    /// The same in words: what was observed, or why there is no verdict.
    pub fn sentence(&self, cores: usize) -> String {
        if self.all.seconds <= 0.0 { NOTHING_LOADED.to_owned() } else { self.steady.sentence(cores) }
    }
}

const NOTHING_LOADED: &str = "nothing was loaded";

/// Threads add their CPU time every 50 ms, so in less than two such spans nobody knows what was busy.
const TELLING_SECONDS: f64 = 0.1;

/// Cores that are busy for more than this share are the bottleneck, regardless of which threads wait.
const CORES_BUSY: f64 = 0.9;

/// If the consumer waits for less than this share of the time, the loader keeps up with it.
const CONSUMER_WAITS: f64 = 0.1;

/// Workers that wait for bytes less than this share of their time are what binds, though readers never wait: few samples are
/// all read before there is anything to wait for.
const WORKERS_WAIT: f64 = 0.1;

impl Stats {
    /// The share of the readers' time that `seconds` are, or of the workers': 0 to 1.
    pub fn share(&self, seconds: f64) -> f64 {
        share(seconds, self.seconds * self.threads as f64)
    }

    /// The share of the time that the consumer waited.
    pub fn consumer_wait_share(&self) -> f64 {
        share(self.consumer_wait_seconds, self.seconds)
    }

    /// The share of `cores` cores that readers and workers kept busy.
    pub fn cores_share(&self, cores: usize) -> f64 {
        share(self.user_seconds + self.system_seconds, self.seconds * cores as f64)
    }

    /// Whether this took long enough to determine the bottleneck.
    pub fn tells(&self) -> bool {
        self.seconds >= TELLING_SECONDS && self.threads > 0
    }

    /// What bound the loader on a machine of `cores` cores: the consumer, if the loader was ahead of it; the CPU, if its cores
    /// were busy or workers hardly waited; otherwise whichever of readers and workers waited less for the other. Unknown where it was
    /// too short to determine it.
    pub fn bound_by(&self, cores: usize) -> Bound {
        let workers_wait = self.share(self.data_wait_seconds) >= WORKERS_WAIT;
        if !self.tells() {
            Bound::Unknown
        } else if self.consumer_wait_share() < CONSUMER_WAITS && self.batch_wait_seconds > self.data_wait_seconds {
            Bound::Trainer
        } else if self.cores_share(cores) >= CORES_BUSY
            || !workers_wait
            || self.data_wait_seconds <= self.read_wait_seconds
        {
            Bound::Cpu
        } else {
            Bound::Storage
        }
    }

    /// What was seen, in words: `CPU-bound: workers busy 98 %, readers waiting for space 71 %; 1.93 of 2 cores used`.
    pub fn sentence(&self, cores: usize) -> String {
        let busy = format!("workers busy {}", units::percent(self.share(self.work_seconds)));
        let reading = format!("readers reading {}", units::percent(self.share(self.read_seconds)));
        let waiting = |who: &str, what: &str, seconds: f64| {
            format!("{who} waiting for {what} {}", units::percent(self.share(seconds)))
        };
        let seen = match self.bound_by(cores) {
            Bound::Cpu => format!("CPU-bound: {busy}, {}", waiting("readers", "space", self.read_wait_seconds)),
            Bound::Storage => {
                format!("storage-bound: {}, {reading}", waiting("workers", "bytes", self.data_wait_seconds))
            }
            Bound::Trainer => format!(
                "bound by the consumer: {}, {busy}",
                waiting("workers", "a free batch", self.batch_wait_seconds)
            ),
            Bound::Unknown => {
                let seconds = units::seconds(self.seconds);
                return format!("too short to determine the bottleneck: it ended {seconds} after the first batch");
            }
        };
        let used = units::number((self.user_seconds + self.system_seconds) / self.seconds);
        format!("{seen}; {used} of {cores} cores used")
    }

    /// What happened after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, |now, before| now - before, u64::saturating_sub)
    }

    /// The same of two extents of loading, one after the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, |one, other| one + other, u64::saturating_add)
    }

    fn with(&self, other: &Self, times: fn(f64, f64) -> f64, counts: fn(u64, u64) -> u64) -> Self {
        let time = |field: fn(&Self) -> f64| times(field(self), field(other));
        let count = |field: fn(&Self) -> u64| counts(field(self), field(other));
        Self {
            seconds: time(|stats| stats.seconds),
            threads: self.threads.max(other.threads),
            samples: count(|stats| stats.samples),
            bytes_read: count(|stats| stats.bytes_read),
            read_seconds: time(|stats| stats.read_seconds),
            read_wait_seconds: time(|stats| stats.read_wait_seconds),
            work_seconds: time(|stats| stats.work_seconds),
            data_wait_seconds: time(|stats| stats.data_wait_seconds),
            batch_wait_seconds: time(|stats| stats.batch_wait_seconds),
            consumer_wait_seconds: time(|stats| stats.consumer_wait_seconds),
            user_seconds: time(|stats| stats.user_seconds),
            system_seconds: time(|stats| stats.system_seconds),
        }
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds on two threads.
    const IDLE: Stats = Stats {
        seconds: 10.0,
        threads: 2,
        samples: 0,
        bytes_read: 0,
        read_seconds: 0.0,
        read_wait_seconds: 0.0,
        work_seconds: 0.0,
        data_wait_seconds: 0.0,
        batch_wait_seconds: 0.0,
        consumer_wait_seconds: 10.0,
        user_seconds: 0.0,
        system_seconds: 0.0,
    };

    #[test]
    fn who_waits_does_not_bind() {
        let slow_disk = Stats { read_seconds: 19.0, data_wait_seconds: 18.0, work_seconds: 2.0, ..IDLE };
        assert_eq!(slow_disk.bound_by(2), Bound::Storage);
        let slow_steps = Stats { read_wait_seconds: 18.0, work_seconds: 20.0, user_seconds: 10.0, ..IDLE };
        assert_eq!(slow_steps.bound_by(4), Bound::Cpu);
        let words = "CPU-bound: workers busy 100 %, readers waiting for space 90 %; 1.00 of 4 cores used";
        assert_eq!(slow_steps.sentence(4), words);
        let few_samples = Stats { read_seconds: 0.1, data_wait_seconds: 0.5, work_seconds: 19.0, ..IDLE };
        assert_eq!(few_samples.bound_by(2), Bound::Cpu);
        let slow_trainer = Stats { batch_wait_seconds: 15.0, consumer_wait_seconds: 0.1, ..IDLE };
        assert_eq!(slow_trainer.bound_by(2), Bound::Trainer);
        assert_eq!(Stats::default().bound_by(2), Bound::Unknown);
    }

    #[test]
    fn busy_cores_bind_although_workers_wait_for_bytes() {
        let copying = Stats { data_wait_seconds: 9.0, read_seconds: 18.0, system_seconds: 19.0, ..IDLE };
        assert_eq!(copying.bound_by(2), Bound::Cpu);
        assert_eq!(copying.bound_by(8), Bound::Storage);
    }

    #[test]
    fn the_start_of_an_epoch_does_not_bind() {
        let start = Stats { seconds: 10.0, data_wait_seconds: 20.0, read_seconds: 20.0, ..IDLE };
        let after = Stats { work_seconds: 2.0, user_seconds: 2.0, read_wait_seconds: 1.5, seconds: 1.0, ..IDLE };
        let whole = start.and(&after);
        assert_eq!(whole.bound_by(2), Bound::Storage, "what its threads waited for the first bytes");
        let loader = LoaderStats::default().and_epoch(&whole, Some(&start));
        assert_eq!((loader.all, loader.steady, loader.bound_by(2)), (whole, after, Bound::Cpu));
        let words = "CPU-bound: workers busy 100 %, readers waiting for space 75 %; 2.00 of 2 cores used";
        assert_eq!(loader.sentence(2), words);
        let two = loader.and_epoch(&whole, Some(&start));
        assert_eq!((two.all.seconds, two.steady.seconds), (22.0, 2.0));
    }

    #[test]
    fn what_is_over_too_soon_tells_nothing() {
        assert_eq!(LoaderStats::default().sentence(2), "nothing was loaded");
        // All of it was one batch.
        let one_batch = LoaderStats::default().and_epoch(&IDLE, Some(&Stats { seconds: 9.96, ..IDLE }));
        assert_eq!(one_batch.bound_by(2), Bound::Unknown);
        let words = "too short to determine the bottleneck: it ended 40.0 ms after the first batch";
        assert_eq!(one_batch.sentence(2), words);
        assert_eq!(LoaderStats::default().and_epoch(&IDLE, None).bound_by(2), Bound::Unknown, "no batch came");
    }

    #[test]
    fn stretches_add_up() {
        let both = IDLE.and(&Stats { samples: 5, work_seconds: 5.0, ..IDLE });
        assert_eq!((both.seconds, both.samples, both.threads), (20.0, 5, 2));
        assert_eq!(both.since(&IDLE).samples, 5);
        assert!((both.share(both.work_seconds) - 0.125).abs() < 1e-12);
    }
}
