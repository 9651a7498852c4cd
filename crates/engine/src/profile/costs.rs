//! What each step costs: processor time on one thread, and bytes.

use forebay_pipeline::{Draw, Observer, Pipeline, Runner, Sample, SampleView, Sink, Strategy};
use forebay_plan::StepCost;
use rustix::time::{ClockId, clock_gettime};

use crate::data::SourceReader;
use crate::error::Result;
use crate::load::{Online, Supply};

/// So many samples are enough to know a step's mean cost within a few per cent.
const COST_SAMPLES_MAX: usize = 64;

/// Seconds of processor time that this thread has used.
fn thread_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Reads and processes some samples on this thread, and returns the cost of reading and of each step.
pub(super) fn step_costs(pipeline: &Pipeline, reader: &SourceReader, draw: Draw) -> Vec<StepCost> {
    let mut runner = Runner::step_by_step(pipeline.steps(), 0);
    let mut meter = Meter { begun: 0.0, totals: vec![(0.0, 0.0); pipeline.steps().len()] };
    let (mut read_seconds, mut read_bytes, mut samples) = (0.0, 0.0, 0.0);
    let all = reader.listing().len();
    for number in 0..all.min(COST_SAMPLES_MAX) {
        let begun = thread_cpu_seconds();
        let Ok(content) = reader.read(number) else { continue };
        read_seconds += thread_cpu_seconds() - begun;
        read_bytes += content.bytes() as f64;
        // The first sample warms caches and allocates buffers; damaged ones are reported by the runs, not here.
        let Ok(sample) = reader.unpack(number, content) else { continue };
        if runner.run(&sample, draw, &mut meter, &mut Nowhere).is_ok() {
            samples += 1.0;
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
    costs
}

/// Mean processor seconds per stored sample to take it apart (its pictures decoded), and to do the online steps to it, both
/// as a worker does them.
pub(super) fn online_costs(
    supply: &dyn Supply,
    pipeline: &Pipeline,
    strategy: &Strategy,
    draw: Draw,
) -> Result<(f64, f64)> {
    let mut runner = Online::after(pipeline, strategy).runner();
    let unpacking_steps = strategy.unpacking(pipeline);
    let mut unpacker = Runner::new(&unpacking_steps, 0);
    let mut batches = Slots::default();
    let (mut unpacking, mut running, mut samples) = (0.0, 0.0, 0_u32);
    // The first sample warms caches and allocates buffers, and does not count unless it is the only one.
    let mut warm = supply.samples() < 2;
    while (samples as usize) < COST_SAMPLES_MAX
        && let Some(read) = supply.next()
    {
        let before = thread_cpu_seconds();
        let payloads = supply.read(&read)?;
        // A reader's copying is work, too.
        let copying = (thread_cpu_seconds() - before) / payloads.len().max(1) as f64;
        for payload in payloads {
            let begun = thread_cpu_seconds();
            // Damaged samples are reported by the runs, not here.
            let Ok(sample) = supply.unpack(payload) else { continue };
            let taken_apart = thread_cpu_seconds();
            let done = runner.run(&sample, draw, &mut (), &mut batches);
            let finished = thread_cpu_seconds();
            let decoded = unpacker.run(&sample, draw, &mut (), &mut Nowhere);
            // Part of the worker's time was decoding what was kept encoded.
            let decoding = if unpacking_steps.is_empty() { 0.0 } else { thread_cpu_seconds() - finished };
            let decoding = decoding.min(finished - taken_apart);
            if done.is_ok() && decoded.is_ok() && std::mem::replace(&mut warm, true) {
                unpacking += copying + taken_apart - begun + decoding;
                running += finished - taken_apart - decoding;
                samples += 1;
            }
        }
    }
    let mean = |total: f64| if samples > 0 { total / f64::from(samples) } else { 0.0 };
    Ok((mean(unpacking), mean(running)))
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
/// the next slot is not in the processor's cache.
#[derive(Default)]
struct Slots {
    slots: Vec<Vec<u64>>,
    next: usize,
}

/// As many as a usual batch has.
const SLOTS: usize = 64;

impl Sink for Slots {
    fn place(&mut self, _field: &str, spec: &forebay_codec::TensorSpec) -> Option<&mut [u8]> {
        self.slots.resize_with(SLOTS, Vec::new);
        self.next = (self.next + 1) % SLOTS;
        let slot = &mut self.slots[self.next];
        let words = spec.bytes().div_ceil(size_of::<u64>());
        if slot.len() < words {
            slot.resize(words, 0);
        }
        Some(&mut bytemuck::cast_slice_mut(slot)[..spec.bytes()])
    }

    fn accept(&mut self, _sample: SampleView<'_>) {}
}

/// Drops what comes out.
struct Nowhere;

impl Sink for Nowhere {
    fn place(&mut self, _field: &str, _spec: &forebay_codec::TensorSpec) -> Option<&mut [u8]> {
        None
    }

    fn accept(&mut self, _sample: SampleView<'_>) {}
}

/// Keeps what comes out.
#[derive(Default)]
pub(super) struct Collect(pub(super) Vec<Sample>);

impl Sink for Collect {
    fn place(&mut self, _field: &str, _spec: &forebay_codec::TensorSpec) -> Option<&mut [u8]> {
        None
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        self.0.push(sample.to_sample());
    }
}
