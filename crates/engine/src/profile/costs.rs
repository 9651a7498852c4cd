//! What each step costs: CPU time on one thread, and bytes.

use forebay_codec::memory;
use forebay_pipeline::{Observer, Pipeline, RngKey, Runner, Sample, SampleView, Sink, StepError};
use forebay_plan::{Alone, StepCost};

use crate::cpu_time::thread_cpu_seconds;
use crate::data::SourceReader;
use crate::error::Result;
use crate::load::{Online, Shuffle, in_order};
use crate::progress::{Progress, while_wanted};
use crate::source::Source;

/// How much is measured to determine a mean cost: at most this many samples, seconds and bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    samples: usize,
    /// Slow samples are fewer: none is begun after so much CPU time, if there are as many as the next says.
    seconds: f64,
    samples_min: usize,
    /// Large ones too: more would be the disk's time, not the steps'.
    bytes: f64,
}

impl Effort {
    /// So many samples are enough to know a mean cost within a few per cent.
    pub(super) const THOROUGH: Self =
        Self { samples: 64, samples_min: SAMPLES_MIN, seconds: f64::INFINITY, bytes: f64::INFINITY };
    /// Enough to distinguish strategies.
    pub(super) const FAST: Self = Self { samples: 32, samples_min: SAMPLES_MIN, seconds: 0.4, bytes: 32e6 };
    /// Enough that a run takes longer than its start.
    pub(super) const CHECK: Self = Self { samples: 400, samples_min: RUN_SAMPLES_MIN, seconds: 1.5, bytes: 256e6 };
    /// The same with less time, to distinguish two formats of one split.
    pub(super) const RIVALS: Self = Self { samples: 200, samples_min: RUN_SAMPLES_MIN, seconds: 0.5, bytes: 256e6 };

    /// The number of samples to measure, given their mean seconds and maximum bytes.
    pub(super) fn samples(self, (seconds_each, bytes_each): (f64, f64)) -> u64 {
        let in_time = (self.seconds / seconds_each.max(1e-9)).max(self.samples_min as f64);
        let affordable = in_time.min(self.bytes / bytes_each.max(1.0));
        affordable.clamp(SAMPLES_MIN as f64, self.samples as f64) as u64
    }

    /// How many samples are measured at the most.
    pub(super) fn most(self) -> u64 {
        self.samples as u64
    }

    fn is_enough(self, samples: usize, seconds: f64) -> bool {
        samples >= self.samples || (samples >= self.samples_min && seconds > self.seconds)
    }
}

/// Fewer say nothing about a mean.
const SAMPLES_MIN: usize = 4;

/// Fewer do not keep readers and workers busy at the same time.
const RUN_SAMPLES_MIN: usize = 12;

/// Reads and processes some samples on this thread, and returns the cost of reading and of each step.
pub(super) fn step_costs(
    pipeline: &Pipeline,
    reader: &SourceReader,
    rng_key: RngKey,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<Vec<StepCost>> {
    let mut runner = Runner::step_by_step(pipeline.steps(), 0);
    let mut meter = Meter { begun: 0.0, totals: vec![(0.0, 0.0); pipeline.steps().len()] };
    let (mut read_seconds, mut read_bytes, mut samples) = (0.0, 0.0, 0.0);
    let all = reader.listing().len();
    let started = thread_cpu_seconds();
    for number in 0..all {
        let begun = thread_cpu_seconds();
        if effort.is_enough(number, begun - started) {
            break;
        }
        while_wanted(progress)?;
        let Ok(content) = reader.read(number) else { continue };
        read_seconds += thread_cpu_seconds() - begun;
        read_bytes += content.bytes() as f64;
        // The first sample warms caches and allocates buffers; damaged ones are reported by the runs, not here.
        let Ok(sample) = reader.unpack(number, content) else { continue };
        match runner.run(&sample, rng_key, &mut meter, &mut Nowhere) {
            Ok(()) => samples += 1.0,
            Err(error) if error.ends() => return Err(error.into()),
            Err(_) => {}
        }
        if number == 0 && all > 1 {
            meter.totals.fill((0.0, 0.0));
            (read_seconds, read_bytes, samples) = (0.0, 0.0, 0.0);
        }
    }
    let mean = |total: f64| if samples > 0.0 { total / samples } else { 0.0 };
    let mut costs = vec![StepCost {
        name: "read".to_owned(),
        cpu_seconds: mean(read_seconds),
        bytes_out: mean(read_bytes),
        random: false,
    }];
    costs.extend(pipeline.steps().iter().zip(meter.totals).map(|(step, (seconds, bytes))| StepCost {
        name: step.name.clone(),
        cpu_seconds: mean(seconds),
        bytes_out: mean(bytes),
        random: step.action.is_random(),
    }));
    Ok(costs)
}

/// Means per stored sample, of what a worker does to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnlineCosts {
    /// CPU seconds to deserialize it, its images decoded.
    pub(super) deserialize: f64,
    /// CPU seconds of the online steps.
    pub(super) steps: f64,
    /// How many samples come out.
    pub(super) given: f64,
}

impl OnlineCosts {
    /// The same per sample that reaches the trainer, where `per_reached` are stored for one; as much as `working` took, where that is
    /// known: threads get in each other's way, and batches cost something, too. Samples that were `unpacked` in advance took it for the steps alone.
    pub(super) fn scaled_to(self, working: Option<&Alone>, per_reached: f64, unpacked: bool) -> Self {
        let (deserialize, steps) = (self.deserialize * per_reached, self.steps * per_reached);
        let Some(working) = working else { return Self { deserialize, steps, ..self } };
        let share = if unpacked { 0.0 } else { deserialize / (deserialize + steps).max(f64::MIN_POSITIVE) };
        let deserialize = if unpacked { deserialize } else { share * working.cpu_seconds };
        Self { deserialize, steps: (1.0 - share) * working.cpu_seconds, ..self }
    }
}

/// Deserializes some stored samples and does the online steps of `pipeline` to them, as a worker does: not of the source's own, which
/// may name functions that only the caller has. They come twice: the first time warms caches and gets memory, as a loader does
/// once, and does not count.
pub(super) fn online_costs(
    source: &dyn Source,
    pipeline: &Pipeline,
    shuffle: Shuffle,
    rng_key: RngKey,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<OnlineCosts> {
    let strategy = source.strategy();
    let mut worker = Worker {
        runner: Online::after(pipeline, strategy).runner(),
        unpacker: Runner::new(&strategy.unpacking(pipeline), 0),
        unpacks: !strategy.unpacking(pipeline).is_empty(),
        rng_key,
        batches: Slots::default(),
    };
    worker.work(source, shuffle, effort, progress)?;
    worker.work(source, shuffle, effort, progress)
}

/// What does to samples what a loader's worker does, and takes the time.
struct Worker {
    runner: Runner,
    /// Runs the steps that decode the stored encoding, which are also among the runner's.
    unpacker: Runner,
    unpacks: bool,
    rng_key: RngKey,
    batches: Slots,
}

impl Worker {
    fn work(
        &mut self,
        source: &dyn Source,
        shuffle: Shuffle,
        effort: Effort,
        progress: &dyn Progress,
    ) -> Result<OnlineCosts> {
        let mut blocks = in_order(source.blocks()?, shuffle, self.rng_key.seed);
        let (mut deserialize, mut steps, mut given, mut samples) = (0.0, 0.0, 0_u64, 0_u32);
        let started = thread_cpu_seconds();
        while !effort.is_enough(samples as usize, thread_cpu_seconds() - started)
            && let Some(block) = blocks.next()
        {
            let contents = source.read(block.samples.clone()).contents;
            for (number, content) in block.samples.zip(contents) {
                while_wanted(progress)?;
                let begun = thread_cpu_seconds();
                // Damaged samples are reported by the runs, not here.
                let Ok(sample) = content.and_then(|content| source.unpack(number, content)) else { continue };
                let taken_apart = thread_cpu_seconds();
                let given_before = self.batches.accepted;
                let done = self.runner.run(&sample, self.rng_key, &mut (), &mut self.batches);
                let finished = thread_cpu_seconds();
                let decoded = self.unpacker.run(&sample, self.rng_key, &mut (), &mut Nowhere);
                // Part of the worker's time was spent decoding the stored encoding.
                let decoding = if self.unpacks { thread_cpu_seconds() - finished } else { 0.0 };
                let decoding = decoding.min(finished - taken_apart);
                let done = match done {
                    Err(error) if error.ends() => return Err(error.into()),
                    done => done.is_ok(),
                };
                if done && decoded.is_ok() {
                    deserialize += taken_apart - begun + decoding;
                    steps += finished - taken_apart - decoding;
                    given += self.batches.accepted - given_before;
                    samples += 1;
                }
            }
        }
        let mean = |total: f64| if samples > 0 { total / f64::from(samples) } else { 0.0 };
        Ok(OnlineCosts { deserialize: mean(deserialize), steps: mean(steps), given: mean(given as f64) })
    }
}

/// Adds up time and bytes of each step.
struct Meter {
    begun: f64,
    totals: Vec<(f64, f64)>,
}

impl Observer for Meter {
    fn begin(&mut self) {
        self.begun = thread_cpu_seconds();
    }

    fn end(&mut self, step: usize, bytes: usize) {
        let (seconds, all_bytes) = &mut self.totals[step];
        *seconds += thread_cpu_seconds() - self.begun;
        *all_bytes += bytes as f64;
    }
}

/// Takes what comes out into slots as a batch has them, one after another, so that writing costs what it costs a worker:
/// the next slot is not in the CPU's cache.
#[derive(Default)]
struct Slots {
    buffers: Vec<Vec<u64>>,
    next: usize,
    /// How many samples came.
    accepted: u64,
}

/// Enough that what was written last is not where the next is written.
const SLOTS: usize = 8;

impl Sink for Slots {
    fn has_slots(&self) -> bool {
        true
    }

    fn slot(
        &mut self,
        _field: &str,
        spec: &forebay_codec::TensorSpec,
    ) -> std::result::Result<Option<&mut [u8]>, StepError> {
        let words = spec.bytes().div_ceil(size_of::<u64>());
        if self.buffers.first().is_none_or(|buffer| buffer.len() < words) {
            // With space to spare: a loader uses the same buffers again and again.
            self.buffers.clear();
            for _ in 0..SLOTS {
                self.buffers.push(memory::zeroed(words + words / 2)?);
            }
        }
        self.next = (self.next + 1) % SLOTS;
        let slot = &mut self.buffers[self.next];
        Ok(Some(&mut bytemuck::cast_slice_mut(slot)[..spec.bytes()]))
    }

    fn accept(&mut self, _sample: SampleView<'_>) {
        self.accepted += 1;
    }
}

/// Drops what comes out.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn accept(&mut self, _sample: SampleView<'_>) {}
}

/// Keeps what comes out.
#[derive(Default)]
pub(super) struct Collect {
    pub(super) samples: Vec<Sample>,
    /// Why one could not be stored.
    pub(super) refused: Option<StepError>,
}

impl Sink for Collect {
    fn accept(&mut self, sample: SampleView<'_>) {
        match sample.to_sample() {
            Ok(sample) => self.samples.push(sample),
            Err(error) => self.refused = Some(error),
        }
    }
}
