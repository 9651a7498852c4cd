//! Samples that were read already: what preparing them takes, without storage.

use std::ops::Range;
use std::sync::Arc;

use forebay_pipeline::{Pipeline, Sample, Strategy};

use super::{Block, Failed, Fetched, Source};
use crate::data::Content;
use crate::error::Result;

/// The first samples of another source, read once and kept as they were read.
pub(crate) struct Held {
    of: Arc<dyn Source>,
    blocks: Vec<Block>,
    contents: Vec<Option<Content>>,
}

impl Held {
    /// As many as `bytes_max` bytes have space for, in whole blocks; one block at least.
    pub(crate) fn of(source: Arc<dyn Source>, bytes_max: u64) -> Result<Self> {
        let (mut blocks, mut contents, mut bytes) = (Vec::new(), Vec::new(), 0);
        for block in source.blocks()? {
            bytes += block.bytes;
            if bytes > bytes_max && !blocks.is_empty() {
                break;
            }
            // Damaged samples are reported by the runs, not here.
            contents.extend(source.read(block.samples.clone()).contents.into_iter().map(Result::ok));
            blocks.push(block);
        }
        Ok(Self { of: source, blocks, contents })
    }
}

impl Source for Held {
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
        self.of.format_of(sample)
    }

    fn samples(&self) -> u64 {
        self.contents.len() as u64
    }

    fn identity(&self) -> String {
        self.of.identity()
    }

    fn blocks(&self) -> Result<Vec<Block>> {
        Ok(self.blocks.clone())
    }

    fn read(&self, samples: Range<u64>) -> Fetched {
        let again =
            |number: u64| self.of.read(number..number + 1).contents.pop().unwrap_or_else(|| Ok(Content::default()));
        let content = |number: u64| self.contents[number as usize].clone().map_or_else(|| again(number), Ok);
        Fetched { contents: samples.map(content).collect(), bytes_read: 0 }
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        self.of.unpack(sample, content)
    }

    fn key(&self, sample: u64) -> String {
        self.of.key(sample)
    }
}
