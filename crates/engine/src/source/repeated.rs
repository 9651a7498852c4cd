//! The samples of another source, several times over: an epoch that lasts long enough to be measured.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_pipeline::{Pipeline, Sample, Strategy};

use super::{Block, Failed, Fetched, Source};
use crate::data::{Content, Skipped};
use crate::error::Result;
use crate::memory::StreamLimits;

/// Each sample of `of`, `times` times.
pub(crate) struct Repeated {
    pub(crate) of: Arc<dyn Source>,
    pub(crate) times: u64,
}

impl Repeated {
    /// Which sample of the source sample number `sample` is.
    fn within(&self, sample: u64) -> u64 {
        sample % self.of.samples().max(1)
    }
}

impl Source for Repeated {
    fn pipeline(&self) -> &Pipeline {
        self.of.pipeline()
    }

    fn strategy(&self) -> &Strategy {
        self.of.strategy()
    }

    fn strategies(&self) -> Vec<&Strategy> {
        self.of.strategies()
    }

    fn pipelines(&self) -> Vec<&Pipeline> {
        self.of.pipelines()
    }

    fn format_of(&self, sample: u64) -> usize {
        self.of.format_of(self.within(sample))
    }

    fn samples(&self) -> u64 {
        self.of.samples() * self.times
    }

    fn different(&self) -> u64 {
        self.of.samples()
    }

    fn identity(&self) -> String {
        self.of.identity()
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.of.paths()
    }

    fn blocks(&self) -> Result<Vec<Block>> {
        let (once, samples) = (self.of.blocks()?, self.of.samples());
        let shifted = |round: u64, block: &Block| {
            let first = round * samples;
            let samples = first + block.samples.start..first + block.samples.end;
            Block { samples, bytes: block.bytes, sequence: block.sequence }
        };
        Ok((0..self.times).flat_map(|round| once.iter().map(move |block| shifted(round, block))).collect())
    }

    /// A block, or a part of one: within one round.
    fn read(&self, samples: Range<u64>) -> Fetched {
        let first = self.within(samples.start);
        self.of.read(first..first + (samples.end - samples.start))
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        self.of.unpack(self.within(sample), content)
    }

    fn unpacking_bytes(&self, sample: u64) -> u64 {
        self.of.unpacking_bytes(self.within(sample))
    }

    fn reads_at_once(&self) -> usize {
        self.of.reads_at_once()
    }

    fn inflates(&self) -> bool {
        self.of.inflates()
    }

    fn limit_streams(&self, limits: StreamLimits) -> u64 {
        self.of.limit_streams(limits)
    }

    fn streams_bytes(&self) -> (u64, u64) {
        self.of.streams_bytes()
    }

    fn key(&self, sample: u64) -> String {
        self.of.key(self.within(sample))
    }

    fn lost(&self) -> Vec<Skipped> {
        self.of.lost()
    }
}
