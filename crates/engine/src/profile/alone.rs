//! Each half of loading without the other: what readers reach when nobody works, what workers reach when nobody reads. The cost model
//! puts the two together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_plan::{Alone, Caching, Others, Runs};

use super::Profiler;
use super::metrics::Machine;
use crate::cpu_time::{process_cpu_seconds, thread_cpu_seconds};
use crate::error::Result;
use crate::load::{Next, Online, in_order, readers};
use crate::progress::{Progress, while_wanted};
use crate::source::{Block, Held, Source};
use crate::sync::Mutex;
use crate::threads::{cores, share};

/// Each half is measured in this many parts, to see how far they differ. Work has one more before them, which does not count: in it the loader gets
/// the memory that it then uses again and again.
pub(super) const PARTS: usize = 5;

/// So many bytes stay in memory after they were read, as they do while they wait for a worker: memory that is used again at once is in the
/// CPU's cache, and costs less.
const STAGED_BYTES: u64 = 16 << 20;

/// What a part gave: samples, elapsed seconds, CPU seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub(crate) samples: f64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
}

impl Part {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            samples: self.samples - earlier.samples,
            seconds: self.seconds - earlier.seconds,
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
        }
    }
}

/// Both halves of a strategy; of reading perhaps only what it takes of the CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Halves {
    pub(super) reading: Option<Alone>,
    pub(super) working: Option<Alone>,
}

/// Samples are repeated to last this many times the duration.
pub(super) const SURPLUS: f64 = 2.0;

/// The duration of each half of a strategy that is not run: enough to distinguish strategies.
pub(super) const FAST_SECONDS: f64 = 0.3;

impl Profiler<'_> {
    /// Both halves of loading `source` with `online` steps.
    /// A stored sample takes about `cpu_seconds` of work.
    pub(super) fn halves(&self, source: &Arc<dyn Source>, online: &Online, cpu_seconds: f64) -> Result<Halves> {
        let runs_each = matches!(self.options.runs, Runs::Each(_));
        let seconds = self.options.run_seconds.min(if runs_each { f64::INFINITY } else { FAST_SECONDS });
        // This reads all, so that where there is a page cache, it is filled.
        let working = self.working_alone(source, online, (seconds, cpu_seconds))?;
        if self.options.caching == Caching::Application {
            return Ok(Halves { reading: None, working });
        }
        if self.options.caching == Caching::None {
            self.forget(&**source)?;
        }
        let reading = self.reading_alone(source, seconds)?;
        // How fast a few samples come from storage says nothing: the start weighs too much. What they take of the CPU does,
        // and from the page cache they come as all will.
        let few = |reading| Alone {
            samples_per_second: 0.0,
            min_samples_per_second: 0.0,
            max_samples_per_second: 0.0,
            ..reading
        };
        let is_rate = runs_each || self.options.caching == Caching::System;
        Ok(Halves { reading: if is_rate { reading } else { reading.map(few) }, working })
    }

    /// What readers get of `source`, as many as a loader would have, in about `seconds`: samples of the source.
    pub(super) fn reading_alone(&self, source: &Arc<dyn Source>, seconds: f64) -> Result<Option<Alone>> {
        let blocks: Vec<Block> = in_order(source.blocks()?, self.options.shuffle, self.options.seed).collect();
        let before = (Machine::now(), Instant::now());
        let mut parts = Vec::new();
        let mut next = 0;
        for _ in 0..PARTS {
            while_wanted(self.progress)?;
            parts.push(read_for(
                &**source,
                &blocks,
                &mut next,
                (seconds / PARTS as f64, self.options.threads),
                self.progress,
            )?);
            // A pass over the samples is enough where no time is given.
            if seconds == 0.0 {
                break;
            }
        }
        Ok(self.alone(&parts, &before))
    }

    /// What the loader makes of the samples of `source` where reading them costs nothing, in about `seconds`, if each takes
    /// `cpu_seconds` or so.
    fn working_alone(
        &self,
        source: &Arc<dyn Source>,
        online: &Online,
        (seconds, cpu_seconds): (f64, f64),
    ) -> Result<Option<Alone>> {
        let held = Arc::new(Held::of(Arc::clone(source), self.memory_bytes / 8)?) as Arc<dyn Source>;
        if held.samples() == 0 {
            return Ok(None);
        }
        // Longer than it takes: it is left as soon as the time is over.
        let samples = SURPLUS * seconds * self.options.threads as f64 / cpu_seconds.max(1e-6);
        let times = (samples / held.samples() as f64).ceil().max(1.0) as u64 + u64::from(seconds > 0.0);
        let loader = self.loader(&held, times)?;
        let before = (Machine::now(), Instant::now());
        let mut epoch = loader.start_with(online.clone(), &loader.beginning_of(0))?;
        let (mut parts, mut start) = (Vec::new(), None);
        loop {
            match epoch.next_timeout(Duration::from_millis(100)) {
                Next::Batch(batch) => drop(batch?),
                Next::NotYet => {}
                Next::End => break,
            }
            while_wanted(self.progress)?;
            let now = Part {
                samples: epoch.samples() as f64,
                seconds: before.1.elapsed().as_secs_f64(),
                cpu_seconds: process_cpu_seconds(),
            };
            // The first batch starts the clock.
            let Some(since) = &mut start else {
                start = (now.samples > 0.0).then_some(now);
                continue;
            };
            let part = now.since(since);
            if part.seconds >= seconds / PARTS as f64 && part.samples > 0.0 {
                parts.push(part);
                *since = now;
                if parts.len() > PARTS && seconds > 0.0 {
                    break;
                }
            }
        }
        if parts.len() > 1 && seconds > 0.0 {
            parts.remove(0);
        }
        Ok(self.alone(&parts, &before))
    }

    /// The medians of the parts: one that something held up says nothing about the others.
    fn alone(&self, parts: &[Part], (machine, begun): &(Machine, Instant)) -> Option<Alone> {
        let sorted = |figure: fn(&Part) -> f64| {
            let mut figures: Vec<f64> = parts.iter().filter(|part| part.samples > 0.0).map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let rates = sorted(|part| part.samples / part.seconds.max(1e-9));
        let cpu_seconds = sorted(|part| part.cpu_seconds / part.samples);
        let others = Machine::now().since(machine, begun.elapsed().as_secs_f64());
        (!rates.is_empty()).then(|| Alone {
            samples_per_second: rates[rates.len() / 2],
            min_samples_per_second: rates[0],
            max_samples_per_second: rates[rates.len() - 1],
            cpu_seconds: cpu_seconds[cpu_seconds.len() / 2],
            threads: self.options.threads.min(cores()),
            disturbed: others.is_some_and(|others| others.cores > Others::CORES_MAX),
        })
    }
}

/// As many readers as a loader with so many `threads` has read `blocks` from number `next` on, again and again, for so long; at least one of them, and each once where no time is given.
pub(crate) fn read_for(
    source: &dyn Source,
    blocks: &[Block],
    next: &mut usize,
    (seconds, threads): (f64, usize),
    progress: &dyn Progress,
) -> Result<Part> {
    let threads = readers(source, threads);
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(seconds);
    let first = *next;
    let total = Mutex::new((first, Part::default()));
    let work = || {
        let cpu_before = thread_cpu_seconds();
        let (mut samples, mut staged, mut staged_bytes) = (0, VecDeque::new(), 0);
        loop {
            let number = {
                let mut total = total.lock();
                let done = if seconds == 0.0 { total.0 >= first + blocks.len() } else { Instant::now() >= end };
                if done && total.0 > first || blocks.is_empty() || progress.is_cancelled() {
                    break;
                }
                total.0 += 1;
                total.0 - 1
            };
            let block = &blocks[number % blocks.len()];
            let fetched = source.read(block.samples.clone());
            samples += fetched.contents.iter().filter(|content| content.is_ok()).count();
            staged_bytes += block.bytes;
            staged.push_back((fetched, block.bytes));
            while staged_bytes > STAGED_BYTES / threads as u64
                && let Some((_, bytes)) = staged.pop_front()
            {
                staged_bytes -= bytes;
            }
        }
        let mut total = total.lock();
        total.1.samples += samples as f64;
        total.1.cpu_seconds += thread_cpu_seconds() - cpu_before;
    };
    std::thread::scope(|scope| share(scope, threads, "read", &work))?;
    while_wanted(progress)?;
    let (number, part) = *total.lock();
    *next = number;
    Ok(Part { seconds: begun.elapsed().as_secs_f64(), ..part })
}
