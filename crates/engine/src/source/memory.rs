//! Samples that are in memory already: the application-level cache of a profile.

use std::ops::Range;
use std::sync::Arc;

use forebay_pipeline::{Pipeline, Sample, Strategy};

use super::{Block, Failed, Fetched, Source};
use crate::data::Content;
use crate::error::Result;

/// The samples of another source, unpacked.
pub(crate) struct InMemory {
    pub(crate) of: Arc<dyn Source>,
    pub(crate) samples: Vec<Sample>,
}

impl Source for InMemory {
    fn pipeline(&self) -> &Pipeline {
        self.of.pipeline()
    }

    fn strategy(&self) -> &Strategy {
        self.of.strategy()
    }

    fn samples(&self) -> u64 {
        self.samples.len() as u64
    }

    fn identity(&self) -> String {
        self.of.identity()
    }

    /// Of no bytes: samples are shared with whoever keeps them, and reading them takes no memory.
    fn blocks(&self) -> Result<Vec<Block>> {
        Ok((0..self.samples()).map(|number| Block { samples: number..number + 1, bytes: 0, sequence: None }).collect())
    }

    fn read(&self, samples: Range<u64>) -> Fetched {
        Fetched { contents: samples.map(|_| Ok(Content::default())).collect(), bytes_read: 0 }
    }

    fn unpack(&self, sample: u64, _content: Content) -> Result<Sample, Failed> {
        Ok(self.samples[sample as usize].clone())
    }

    fn key(&self, sample: u64) -> String {
        self.samples[sample as usize].key.to_string()
    }
}
