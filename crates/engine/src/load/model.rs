//! The loader under a scheduler that tries out interleavings: every place exactly once and in order, an end whatever
//! happens and whenever, and never more memory than the budget.
//!
//! In unit tests, locks, conditions and threads are shuttle's (see `sync.rs`), and the code here is the loader as it is:
//! staging, assembly, budget, readers and workers. A thread that waits and is never woken is found as a deadlock, and the failing
//! schedule is printed so that `shuttle::replay` can repeat it. Interleavings are drawn at random, half of them by PCT (a
//! few priority changes, which finds rare orders sooner); [`SCHEDULES`] of each for each case, or as many as the variable
//! `FOREBAY_MODEL_SCHEDULES` says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_codec::{DType, TensorMut, TensorSpec};
use forebay_pipeline::{
    Action, Expand, Field, FieldType, Needs, Parts, Sample, Schema, Scope, Step, StepError, Transform, Value, ValueView,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler};

use super::*;
use crate::sync::Mutex;

/// Interleavings of each kind that are tried of each case.
const SCHEDULES: usize = 60;

/// The budget: shares of 256 KiB for what is staged, 192 KiB for a batch and as much for a sample, and 256 KiB ahead.
const MEMORY_BYTES: u64 = crate::memory::MEMORY_BYTES_MIN;

/// Samples of given sizes, one after another or shuffled.
struct OfSizes {
    schedule: Mutex<Schedule>,
    sizes: Vec<usize>,
    /// The read that fails, and the place whose sample does.
    fails: Fails,
    bytes_read: AtomicU64,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Fails {
    read: Option<usize>,
    sample: Option<usize>,
}

impl Supply for OfSizes {
    fn next(&self) -> Option<Read> {
        self.schedule.lock().next()
    }

    fn samples(&self) -> u64 {
        self.sizes.len() as u64
    }

    fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        self.schedule.lock().window_bytes(block_bytes_max)
    }

    fn read(&self, read: &Read) -> Result<Vec<Payload>> {
        if self.fails.read.is_some_and(|record| read.block.records.contains(&record)) {
            return Err(Error::Panicked { message: "this read fails".to_owned() });
        }
        let sample = |number: usize| {
            let size = self.sizes[number] as u64;
            let value = Value::Bytes(size.to_le_bytes().to_vec().into());
            let fields = vec![Field { name: "image".into(), value }];
            Payload::Ready(Box::new(Sample { key: number.to_string().into(), index: number as u64, fields }))
        };
        Ok(read.block.records.clone().map(sample).collect())
    }

    fn unpack(&self, payload: Payload) -> Result<Sample, Failed> {
        match payload {
            Payload::Ready(sample) if self.fails.sample != Some(sample.index as usize) => Ok(*sample),
            Payload::Failed(failed) => Err(failed),
            _ => Err(Failed { key: String::new(), error: Box::new(broken()) }),
        }
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

fn broken() -> Error {
    Error::Format { path: "sample".into(), problem: "is broken".to_owned() }
}

/// Makes a tensor of as many bytes as the value says, and takes as much again meanwhile.
#[derive(Debug)]
struct Blow;

fn size(input: ValueView<'_>) -> usize {
    match input {
        ValueView::Bytes(bytes) => bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes) as usize),
        _ => 0,
    }
}

impl Transform for Blow {
    fn output_type(&self, _input: &FieldType) -> Result<FieldType, Needs> {
        Ok(ragged())
    }

    fn output_spec(&self, input: ValueView<'_>, _scope: &mut Scope) -> Result<TensorSpec, StepError> {
        Ok(TensorSpec::new(DType::U8, &[size(input)]))
    }

    fn working_bytes(&self, input: ValueView<'_>, _: &TensorSpec, _: &mut Scope) -> Result<usize, StepError> {
        Ok(size(input))
    }

    fn run(&self, _input: ValueView<'_>, output: TensorMut<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        output.data.fill(7);
        Ok(())
    }
}

/// Makes a tensor of 8 bytes of whatever comes.
#[derive(Debug)]
struct Settle;

impl Transform for Settle {
    fn output_type(&self, _input: &FieldType) -> Result<FieldType, Needs> {
        Ok(FieldType::Tensor { dtype: DType::U8, dims: vec![Some(8)] })
    }

    fn output_spec(&self, _input: ValueView<'_>, _scope: &mut Scope) -> Result<TensorSpec, StepError> {
        Ok(TensorSpec::new(DType::U8, &[8]))
    }

    fn run(&self, _input: ValueView<'_>, output: TensorMut<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        output.data.fill(7);
        Ok(())
    }
}

/// Two samples of each.
#[derive(Debug)]
struct Twice;

impl Expand for Twice {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        Ok(input.clone())
    }

    fn expand(&self, sample: &Sample, _field: &str, parts: &mut Parts<'_>) -> Result<(), StepError> {
        (parts.reserve)(2 * sample.bytes())?;
        (parts.emit)(sample.clone());
        (parts.emit)(sample.clone());
        Ok(())
    }
}

fn ragged() -> FieldType {
    FieldType::Tensor { dtype: DType::U8, dims: vec![None] }
}

/// What the steps make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Tensors of the samples' sizes.
    Ragged,
    /// Tensors of one size, of larger ones.
    Dense,
    /// Twice as many samples.
    Expanded,
}

impl Kind {
    fn online(self) -> Online {
        let step = |action| Step {
            name: "step".to_owned(),
            state: "state".to_owned(),
            fields: vec!["image".to_owned()],
            action,
            spec: None,
        };
        let blow = step(Action::Transform(Arc::new(Blow)));
        let (steps, kind) = match self {
            Self::Ragged => (vec![blow], ragged()),
            Self::Dense => {
                let settled = FieldType::Tensor { dtype: DType::U8, dims: vec![Some(8)] };
                (vec![blow, step(Action::Transform(Arc::new(Settle)))], settled)
            }
            Self::Expanded => (vec![blow, step(Action::Expand(Arc::new(Twice)))], ragged()),
        };
        Online { steps, first_step: 0, output: Schema { fields: vec![("image".to_owned(), kind)] } }
    }
}

/// One case.
#[derive(Debug, Clone, Copy)]
struct Case {
    kind: Kind,
    sizes: &'static [usize],
    threads: usize,
    batch_size: usize,
    window_bytes: Option<u64>,
    block_samples: usize,
    fails: Fails,
    on_error: OnError,
    /// The consumer stops after so many batches.
    takes: usize,
}

const USUAL: Case = Case {
    kind: Kind::Ragged,
    sizes: &[60_000, 90_000, 10_000, 80_000, 5_000, 70_000],
    threads: 2,
    batch_size: 2,
    window_bytes: None,
    block_samples: 1,
    fails: Fails { read: None, sample: None },
    on_error: OnError::Fail,
    takes: usize::MAX,
};

impl Case {
    fn start(&self) -> Loader {
        let shuffle = self.window_bytes.map_or(Shuffle::No, |bytes| Shuffle::Window { bytes });
        let starts = (0..self.sizes.len()).step_by(self.block_samples);
        // A block is as large as a third of what is staged at once.
        let block = |start: usize| {
            let records = start..(start + self.block_samples).min(self.sizes.len());
            Block { shard: 0, records, bytes: MEMORY_BYTES / 12 }
        };
        let schedule = Mutex::new(Schedule::new(starts.map(block).collect(), shuffle, 1, 0));
        let (sizes, fails) = (self.sizes.to_vec(), self.fails);
        let supply = Arc::new(OfSizes { schedule, sizes, fails, bytes_read: AtomicU64::new(0) });
        let options = LoadOptions {
            batch_size: self.batch_size,
            threads: self.threads,
            prefetch: 1,
            drop_last: false,
            on_error: self.on_error,
            draw: Draw::default(),
            cache: None,
            memory_bytes: MEMORY_BYTES,
        };
        Loader::start(supply, self.kind.online(), options).unwrap()
    }

    /// The samples in their order.
    fn expected(&self) -> Vec<usize> {
        let shuffle = self.window_bytes.map_or(Shuffle::No, |bytes| Shuffle::Window { bytes });
        let starts = (0..self.sizes.len()).step_by(self.block_samples);
        let block = |start: usize| {
            let records = start..(start + self.block_samples).min(self.sizes.len());
            Block { shard: 0, records, bytes: MEMORY_BYTES / 12 }
        };
        let mut order = vec![0; self.sizes.len()];
        for read in Schedule::new(starts.map(block).collect(), shuffle, 1, 0) {
            for (record, place) in read.block.records.zip(read.places) {
                order[place as usize] = record;
            }
        }
        let fails = |number: &usize| self.on_error == OnError::Skip && self.fails.sample == Some(*number);
        order.retain(|number| !fails(number));
        let copies = if self.kind == Kind::Expanded { 2 } else { 1 };
        order.into_iter().flat_map(|number| std::iter::repeat_n(number, copies)).collect()
    }

    fn run(&self) {
        let expected = self.expected();
        let mut loader = self.start();
        let mut found = Vec::new();
        let mut failed = false;
        for _ in 0..self.takes {
            match loader.next() {
                Some(Ok(batch)) => {
                    for (place, key) in batch.keys.iter().enumerate() {
                        let number: usize = key.parse().unwrap();
                        found.push(number);
                        if let Some(Column::Ragged(tensors)) = batch.column("image") {
                            assert_eq!(tensors[place].data().len(), self.sizes[number]);
                        }
                    }
                }
                Some(Err(_)) => {
                    failed = true;
                    break;
                }
                None => break,
            }
        }
        assert!(loader.memory_bytes_peak() <= MEMORY_BYTES, "{} bytes", loader.memory_bytes_peak());
        let fails = self.fails.read.is_some() || (self.fails.sample.is_some() && self.on_error == OnError::Fail);
        assert_eq!(failed, fails && self.takes == usize::MAX, "{found:?}");
        assert_eq!(found, expected[..found.len()], "in order, each once");
        if self.takes == usize::MAX && !fails {
            assert_eq!(found.len(), expected.len(), "all of them");
        }
        let shared = Arc::clone(&loader.shared);
        drop(loader);
        if self.takes == usize::MAX && !fails {
            assert_eq!((shared.staging.memory_bytes().1, shared.assembly.memory_bytes().1), (0, 0));
        }
    }
}

fn check(case: Case) {
    let schedules = std::env::var("FOREBAY_MODEL_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules = schedules.unwrap_or(SCHEDULES);
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 18;
    shuttle::Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || case.run());
    shuttle::Runner::new(PctScheduler::new(3, schedules), config).run(move || case.run());
}

#[test]
fn sizes_that_nobody_knows_before() {
    check(USUAL);
    check(Case { threads: 3, batch_size: 1, ..USUAL });
    check(Case { threads: 3, sizes: &[1000; 9], batch_size: 4, block_samples: 3, ..USUAL });
}

#[test]
fn intermediates_larger_than_what_comes_out() {
    check(Case { kind: Kind::Dense, ..USUAL });
    check(Case { kind: Kind::Dense, threads: 3, sizes: &[90_000; 7], batch_size: 3, ..USUAL });
}

#[test]
fn many_samples_of_one() {
    let sizes = &[20_000, 5_000, 15_000, 1_000, 18_000];
    check(Case { kind: Kind::Expanded, sizes, batch_size: 3, ..USUAL });
    check(Case { kind: Kind::Expanded, sizes, threads: 3, batch_size: 1, takes: 3, ..USUAL });
}

#[test]
fn shuffled_windows_of_blocks() {
    check(Case { window_bytes: Some(MEMORY_BYTES / 6), block_samples: 2, ..USUAL });
    check(Case { kind: Kind::Dense, window_bytes: Some(MEMORY_BYTES / 12), threads: 3, ..USUAL });
}

#[test]
fn a_consumer_that_leaves() {
    for takes in [0, 1, 2] {
        check(Case { takes, ..USUAL });
        check(Case { kind: Kind::Dense, threads: 3, takes, ..USUAL });
    }
}

#[test]
fn samples_and_reads_that_fail() {
    for fails in [Fails { sample: Some(3), read: None }, Fails { sample: None, read: Some(2) }] {
        check(Case { fails, ..USUAL });
        check(Case { fails, on_error: OnError::Skip, threads: 3, ..USUAL });
        check(Case { fails, kind: Kind::Expanded, sizes: &[9000; 5], batch_size: 3, ..USUAL });
    }
}
