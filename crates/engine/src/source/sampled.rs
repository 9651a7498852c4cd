//! Samples of another source that were drawn for an epoch: some of them, or some several times.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::{Pipeline, Random, Sample, Strategy};

use super::{Block, Failed, Fetched, GAP_BYTES_MAX, Source};
use crate::data::{Content, Skipped};
use crate::error::Result;
use crate::memory::StreamLimits;

/// Samples of `of`.
pub(crate) struct Sampled {
    of: Arc<dyn Source>,
    /// Of each its number in `of`, in order, and how often it is there already.
    drawn: Vec<(u64, u32)>,
}

impl Sampled {
    /// Those of `of` that were `drawn`, in the order in which they lie.
    pub(crate) fn new(of: Arc<dyn Source>, drawn: Vec<(u64, u32)>) -> Self {
        Self { of, drawn }
    }

    fn within(&self, sample: u64) -> (u64, u32) {
        self.drawn[sample as usize]
    }
}

impl Source for Sampled {
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
        self.of.format_of(self.within(sample).0)
    }

    fn samples(&self) -> u64 {
        self.drawn.len() as u64
    }

    fn classes(&self) -> &[String] {
        self.of.classes()
    }

    fn identity(&self) -> String {
        self.of.identity()
    }

    fn folder(&self) -> Option<&Path> {
        self.of.folder()
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.of.paths()
    }

    /// What was drawn of each block, cut where too much lies between.
    fn blocks(&self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let mut next = 0;
        for block in self.of.blocks()? {
            let gap_max = GAP_BYTES_MAX * block.len() / block.bytes.max(1);
            while let Some(&(first, _)) = self.drawn.get(next).filter(|(sample, _)| block.samples.contains(sample)) {
                let (begin, mut last) = (next, first);
                while let Some(&(sample, _)) = self
                    .drawn
                    .get(next)
                    .filter(|(sample, _)| block.samples.contains(sample) && sample - last <= gap_max + 1)
                {
                    last = sample;
                    next += 1;
                }
                let part = block.part(first - block.samples.start..last + 1 - block.samples.start);
                blocks.push(Block { samples: begin as u64..next as u64, ..part });
            }
        }
        Ok(blocks)
    }

    fn read(&self, samples: Range<u64>) -> Fetched {
        if samples.is_empty() {
            return Fetched { contents: Vec::new(), bytes_read: 0 };
        }
        let (first, last) = (self.within(samples.start).0, self.within(samples.end - 1).0);
        let Fetched { contents, mut bytes_read } = self.of.read(first..last + 1);
        let mut contents: Vec<Option<Result<Content, Failed>>> = contents.into_iter().map(Some).collect();
        let content = |sample: u64| {
            let (number, _) = self.within(sample);
            let is_last = sample + 1 == samples.end || self.within(sample + 1).0 != number;
            let slot = contents.get_mut((number - first) as usize);
            match slot {
                Some(slot) if is_last => slot.take(),
                Some(Some(Ok(content))) => Some(Ok(content.clone())),
                _ => None,
            }
            .unwrap_or_else(|| {
                // An error cannot be given twice: whoever wants the sample again finds out anew.
                let mut again = self.of.read(number..number + 1);
                bytes_read += again.bytes_read;
                let missing = || Failed::new(self.of.key(number), crate::error::Error::internal("nothing was read"));
                again.contents.pop().unwrap_or_else(|| Err(missing()))
            })
        };
        let contents = samples.clone().map(content).collect();
        Fetched { contents, bytes_read }
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        let (number, copies) = self.within(sample);
        let mut sample = self.of.unpack(number, content)?;
        if copies > 0 {
            // Random steps draw from the number: a sample that comes again is another one to them.
            sample.index = Random::from_parts(&[sample.index, u64::from(copies)]).bits();
        }
        Ok(sample)
    }

    fn unpacking_bytes(&self, sample: u64) -> u64 {
        self.of.unpacking_bytes(self.within(sample).0)
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
        self.of.key(self.within(sample).0)
    }

    fn lost(&self) -> Vec<Skipped> {
        self.of.lost()
    }
}
