//! Another machine: what is known about it, and what is assumed to be as it is here.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prediction::{decode_threads, quotient, transfer_seconds};
use crate::profile::{Alone, Caching, Profile, StorageRates, StrategyProfile};
use crate::{requests, units};

/// Another machine, trainer or amount of data. What is not given is as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhatIf {
    /// The number of cores, each as fast as those here and with a thread of its own.
    pub cores: Option<usize>,
    /// How fast the storage reads large blocks in order.
    pub read_bytes_per_second: Option<f64>,
    /// How many source files per second the storage reads; if only `read_bytes_per_second` is given, opening a
    /// file takes as long as here.
    pub files_per_second: Option<f64>,
    /// How long an object store takes to answer a request, however small; 32 are under way at a time.
    pub latency_seconds: Option<f64>,
    /// How many requests per second an object store answers at the most.
    pub requests_per_second: Option<f64>,
    /// How much memory there is to cache the data set in. Without it, what is cached is as in the measurement.
    pub memory_bytes: Option<u64>,
    /// How many samples per second the trainer takes.
    pub trainer_samples_per_second: Option<f64>,
    /// How many samples the data set has, each like those measured.
    pub samples: Option<u64>,
}

/// The full description of the other machine, and what was assumed about it. Part of a plan that was made for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherMachine {
    /// Its cores.
    pub cores: usize,
    /// Its storage, when large blocks are read in order.
    pub read_bytes_per_second: f64,
    /// Its storage, when source files are read.
    pub files_per_second: f64,
    /// Its memory.
    pub memory_bytes: u64,
    /// What it caches between epochs.
    pub caching: Caching,
    /// Its trainer, where it is known.
    pub trainer_samples_per_second: Option<f64>,
    /// How many samples it has to read.
    pub samples: u64,
    /// What was assumed, a sentence each.
    pub assumptions: Vec<String>,
}

impl WhatIf {
    pub(crate) fn check(&self) -> Result<()> {
        let rates = [
            ("read_bytes_per_second", self.read_bytes_per_second),
            ("files_per_second", self.files_per_second),
            ("latency_seconds", self.latency_seconds),
            ("requests_per_second", self.requests_per_second),
            ("trainer_samples_per_second", self.trainer_samples_per_second),
        ];
        for (name, rate) in rates {
            if let Some(rate) = rate.filter(|rate| !(*rate > 0.0 && *rate <= 1e30)) {
                return Err(Error::Argument { name, found: rate.to_string(), expected: "a finite number above 0" });
            }
        }
        let counts = [("cores", self.cores.map(|cores| cores as u64)), ("samples", self.samples)];
        match counts.into_iter().find(|(_, count)| *count == Some(0)) {
            Some((name, _)) => Err(Error::Argument { name, found: "0".to_owned(), expected: "1 or more" }),
            None => Ok(()),
        }
    }

    /// How many requests per second an object store answers there, where it is one.
    fn answered_per_second(&self) -> Option<f64> {
        requests::per_second(self.latency_seconds, self.requests_per_second)
    }

    /// How many threads decode there.
    pub(crate) fn threads(&self, profile: &Profile) -> usize {
        self.cores.unwrap_or_else(|| decode_threads(profile))
    }

    /// `profile` as if it were of the other machine. What was measured of the strategies is left as it is, but how fast another
    /// storage was read.
    pub(crate) fn apply(&self, profile: &Profile) -> Profile {
        let mut there = profile.clone();
        there.method.threads = self.threads(profile);
        there.machine.cores = self.cores.unwrap_or(profile.machine.cores);
        there.data.samples = self.samples.unwrap_or(profile.data.samples);
        if let Some(memory_bytes) = self.memory_bytes {
            there.machine.memory_bytes = memory_bytes;
            if there.method.caching == Caching::None {
                there.method.caching = Caching::System;
            }
        }
        if let Some(rate) = self.read_bytes_per_second {
            there.storage.sequential_bytes_per_second = rate;
            there.storage.stream_bytes_per_second = 0.0;
            there.storage.files_per_second = files_at(&profile.storage, rate);
        }
        if let Some(answered) = self.answered_per_second() {
            let storage = &mut there.storage;
            let by_blocks = answered * requests::BLOCK_BYTES;
            storage.sequential_bytes_per_second = storage.sequential_bytes_per_second.min(by_blocks);
            storage.stream_bytes_per_second = 0.0;
            if requests::samples_are_objects(profile) {
                let by_bytes = quotient(storage.sequential_bytes_per_second, storage.file_bytes);
                storage.files_per_second = by_bytes.map_or(answered, |files| files.min(answered));
            }
        }
        if let Some(rate) = self.files_per_second {
            there.storage.files_per_second = rate;
        }
        if there.storage != profile.storage || there.method.caching != profile.method.caching {
            for strategy in &mut there.strategies {
                // What readers inflate, they inflate there too.
                let inflated = profile.compression_cost(&strategy.name).is_some();
                strategy.reading = strategy.reading.filter(|_| inflated).map(|reading| Alone {
                    samples_per_second: 0.0,
                    min_samples_per_second: 0.0,
                    max_samples_per_second: 0.0,
                    ..reading
                });
            }
        }
        there
    }

    /// The other machine in numbers and words.
    pub fn machine(&self, profile: &Profile) -> OtherMachine {
        let there = self.apply(profile);
        OtherMachine {
            cores: there.machine.cores,
            read_bytes_per_second: there.storage.sequential_bytes_per_second,
            files_per_second: there.storage.files_per_second,
            memory_bytes: there.machine.memory_bytes,
            caching: there.method.caching,
            trainer_samples_per_second: self.trainer_samples_per_second,
            samples: there.data.samples,
            assumptions: self.assumptions(profile, &there),
        }
    }

    fn assumptions(&self, here: &Profile, there: &Profile) -> Vec<String> {
        let threads = match there.method.threads {
            1 => "1 thread decodes".to_owned(),
            threads => format!("{threads} threads decode"),
        };
        let mut all = vec![format!("each core does the work of one here ({}), and {threads}", here.machine.cpu)];
        if let Some(answered) = self.answered_per_second() {
            let rate = units::number(answered);
            let each = if requests::samples_are_objects(here) {
                format!(
                    "each source file takes one request: no more than {rate} are read per second, however small they are"
                )
            } else {
                format!("the store answers {rate} requests per second")
            };
            all.push(format!("{each}; records are read {} a request", units::bytes(requests::BLOCK_BYTES)));
        } else if self.read_bytes_per_second.is_some() && self.files_per_second.is_none() {
            all.push("opening a file takes as long as here; only its bytes are read at the other rate".to_owned());
        }
        if there.method.caching != Caching::None {
            let memory = units::bytes(there.machine.memory_bytes as f64);
            all.push(format!(
                "{memory} of memory cache as much of the data set as fits, from epoch to epoch, and the rest is \
                 read: the share of hits is memory over bytes; a page cache that evicts what was read longest ago does worse \
                 where the data set does not fit, and the first epoch reads everything"
            ));
        }
        all.push(
            "the rate of the bottleneck here is corrected by the error of the model here; predicted rates below the measured throughput are raised to it"
                .to_owned(),
        );
        all
    }
}

/// How many files of the mean size are read per second if bytes are read at another rate: the time to find and open one stays.
fn files_at(here: &StorageRates, rate: f64) -> f64 {
    let Some(measured_seconds) = quotient(1.0, here.files_per_second) else { return here.files_per_second };
    let transfer = transfer_seconds(here, here.file_bytes);
    let faster = here.sequential_bytes_per_second / rate;
    let seconds = if transfer <= measured_seconds {
        measured_seconds - transfer + transfer * faster
    } else {
        measured_seconds * faster
    };
    quotient(1.0, seconds).unwrap_or(here.files_per_second)
}

/// The share of a strategy's bytes that fits in memory: memory over the bytes of the entire data set, which are its bytes on
/// storage, or where samples are cached deserialized, their bytes after the last step that is done once.
pub(crate) fn hit_ratio(there: &Profile, strategy: &StrategyProfile) -> f64 {
    let samples = there.data.samples as f64;
    let whole = samples / there.method.sample_count as f64;
    let bytes = match there.method.caching {
        Caching::None => return 0.0,
        Caching::System => strategy.storage_bytes as f64 * whole,
        Caching::Application => {
            there.steps.get(strategy.split.offline_steps()).map_or(0.0, |step| step.bytes_out) * samples
        }
    };
    let ratio = there.machine.memory_bytes as f64 / bytes;
    if ratio.is_finite() { ratio.min(1.0) } else { 1.0 }
}
