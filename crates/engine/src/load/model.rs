//! The loader under a scheduler that tries out interleavings: every turn exactly once and in order, an end whatever
//! happens and whenever, and never more memory than the budget.
//!
//! In unit tests, locks, conditions and threads are shuttle's (see `sync.rs`), and the code here is the loader as it is:
//! prefetch, batcher, budget, readers and workers. A thread that waits and is never woken is found as a deadlock, and the failing
//! sampler is printed so that `shuttle::replay` can repeat it. Interleavings are drawn at random, half of them by PCT (a
//! few priority changes, which finds rare orders sooner); [`SCHEDULES`] of each for each case, or as many as the variable
//! `FOREBAY_MODEL_SCHEDULES` says.

use std::ops::Range;
use std::sync::Arc;

use forebay_codec::{DType, TensorSpec};
use forebay_pipeline::{
    Action, Field, FieldType, FlatMap, Needs, Output, Parts, Pipeline, Sample, Schema, Scope, Step, StepError,
    Strategy, Transform, Value, ValueView,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler};

use super::deal::Share;
use super::ids::Position;
use super::order::Ordering;
use super::sampler::{Sampler, Samples};
use super::*;
use crate::source::{Block, Content, Failed, Fetched, Source};

/// Interleavings of each kind that are tried of each case.
const SCHEDULES: usize = 60;

/// The budget: shares of 256 KiB for what is staged, 192 KiB for a batch and as much for a sample, and 256 KiB ahead.
const MEMORY_BYTES: u64 = crate::memory::MEMORY_BYTES_MIN;

/// Samples of given sizes.
struct OfSizes {
    pipeline: Pipeline,
    strategy: Strategy,
    sizes: Vec<usize>,
    block_samples: usize,
    /// The read that fails, and the position whose sample does.
    fails: Fails,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Fails {
    read: Option<usize>,
    sample: Option<usize>,
}

impl Source for OfSizes {
    fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn samples(&self) -> u64 {
        self.sizes.len() as u64
    }

    fn identity(&self) -> String {
        String::new()
    }

    fn key(&self, sample: u64) -> String {
        sample.to_string()
    }

    /// A block is as large as a third of what is staged at once.
    fn blocks(&self) -> Result<Vec<Block>> {
        let starts = (0..self.sizes.len()).step_by(self.block_samples);
        let block = |start: usize| Block {
            samples: start as u64..(start + self.block_samples).min(self.sizes.len()) as u64,
            bytes: MEMORY_BYTES / 12,
            sequence: None,
        };
        Ok(starts.map(block).collect())
    }

    fn read(&self, samples: Range<u64>) -> Fetched {
        let fails = self.fails.read.is_some_and(|sample| samples.contains(&(sample as u64)));
        let content = |sample: u64| {
            if fails {
                return Err(Failed::new(self.key(sample), Error::internal("this read fails")));
            }
            Ok(Content::default())
        };
        Fetched { contents: samples.map(content).collect(), bytes_read: 0 }
    }

    fn unpack(&self, sample: u64, _content: Content) -> Result<Sample, Failed> {
        if self.fails.sample == Some(sample as usize) {
            return Err(Failed::new(self.key(sample), broken()));
        }
        let size = self.sizes[sample as usize] as u64;
        let value = Value::Bytes(size.to_le_bytes().to_vec().into());
        let fields = vec![Field { name: "image".into(), value }];
        Ok(Sample { key: sample.to_string().into(), index: sample, fields })
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

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        output.working(size(input))?;
        output.tensor(TensorSpec::new(DType::U8, &[size(input)]))?.data.fill(7);
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

    fn run(&self, _input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        output.tensor(TensorSpec::new(DType::U8, &[8]))?.data.fill(7);
        Ok(())
    }
}

/// Two samples of each.
#[derive(Debug)]
struct Twice;

impl FlatMap for Twice {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        Ok(input.clone())
    }

    fn flat_map(&self, sample: &Sample, _fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError> {
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
            stage: "stage".to_owned(),
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
            Self::Expanded => (vec![blow, step(Action::FlatMap(Arc::new(Twice)))], ragged()),
        };
        Online {
            formats: vec![super::Steps { steps, first_step: 0 }],
            output: Schema { fields: vec![("image".to_owned(), kind)] },
        }
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
    /// Which of how many ranks it is, and how many samples all have seen.
    rank: (u64, u64),
    samples_seen: u64,
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
    rank: (0, 1),
    samples_seen: 0,
    fails: Fails { read: None, sample: None },
    on_error: OnError::Fail,
    takes: usize::MAX,
};

impl Case {
    fn source(&self) -> OfSizes {
        // Only to say whether there are several samples of one; the steps are given by hand.
        let expands = if self.kind == Kind::Expanded { "[[step]]\nop = \"tiles\"\nsize = 16" } else { "" };
        let pipeline =
            Pipeline::from_toml("sizes", &format!("name = \"sizes\"\n[[step]]\nop = \"decode\"\n{expands}")).unwrap();
        let strategy = Strategy::parse(&pipeline, "unprocessed").unwrap();
        let (sizes, block_samples, fails) = (self.sizes.to_vec(), self.block_samples, self.fails);
        OfSizes { pipeline, strategy, sizes, block_samples, fails }
    }

    fn shuffle(&self) -> Shuffle {
        self.window_bytes.map_or(Shuffle::No, |bytes| Shuffle::Window { bytes })
    }

    fn start(&self) -> Epoch {
        let options = LoadOptions {
            batch_size: self.batch_size,
            threads: self.threads,
            prefetch: 1,
            shuffle: self.shuffle(),
            seed: 1,
            rank: self.rank.0,
            world_size: self.rank.1,
            even: Even::Pad,
            on_error: self.on_error,
            memory_bytes: MEMORY_BYTES,
            ..LoadOptions::default()
        };
        let loader = Loader::new(Arc::new(self.source()), options).unwrap();
        let state = State { samples_seen: self.samples_seen, ..loader.beginning_of(0) };
        loader.start_with(self.kind.online(), &state).unwrap()
    }

    /// The samples in their order.
    fn expected(&self) -> Vec<usize> {
        let ordering = Ordering { shuffle: self.shuffle(), seed: 1, epoch: 0, streams: STREAMS };
        let (batch_size, (rank, world_size)) = (self.batch_size as u64, self.rank);
        let share = Share { batch_size, rank, world_size, drop_last: false, even: Even::Pad };
        let blocks = self.source().blocks().unwrap().into();
        let all = Samples::Blocks(blocks);
        let sampler = Sampler::new(all, ordering, Position(self.samples_seen), share);
        let mut order = vec![0; sampler.deal().samples() as usize];
        for read in sampler {
            for wanted in read.wanted {
                order[wanted.turn.0 as usize] = wanted.sample as usize;
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
                    for (index, key) in batch.keys.iter().enumerate() {
                        let number: usize = key.parse().unwrap();
                        found.push(number);
                        if let Some(Column::Ragged(tensors)) = batch.column("image") {
                            assert_eq!(tensors[index].data().len(), self.sizes[number]);
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
            assert_eq!((shared.prefetch.memory_bytes().1, shared.batcher.memory_bytes().1), (0, 0));
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

/// Windows of two or four streams, which fill what is staged at once.
#[test]
fn streams_and_ranks() {
    let sizes = &[3_000; 14];
    let case = Case { sizes, window_bytes: Some(MEMORY_BYTES / 3), block_samples: 2, threads: 3, ..USUAL };
    check(case);
    check(Case { window_bytes: Some(MEMORY_BYTES / 4), block_samples: 1, batch_size: 3, ..case });
    // Blocks that several ranks want something of, samples that come again, and what is left of an epoch.
    for rank in 0..3 {
        check(Case { rank: (rank, 3), samples_seen: 3, ..case });
    }
    check(Case { rank: (1, 2), window_bytes: None, block_samples: 3, samples_seen: 5, ..case });
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
