//! The shards of a source, each opened when it is first read.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_record::Compression;
use forebay_storage::{File, Storage, Version};

use super::inflated::{Cursors, InflatedShard};
use crate::error::Result;

/// Shards that are open, and those that were not read yet. May be shared by threads.
pub(crate) struct OpenShards {
    open: Vec<OnceLock<OpenShard>>,
    cursors: Arc<Cursors>,
}

/// A shard that is open.
pub(crate) enum OpenShard {
    /// Which can be read anywhere.
    Plain(Box<dyn File>),
    /// Which is one compressed stream.
    Inflated(Box<InflatedShard>),
}

impl OpenShards {
    /// So many shards, none of them open.
    pub(crate) fn new(count: usize) -> Self {
        Self { open: (0..count).map(|_| OnceLock::new()).collect(), cursors: Arc::default() }
    }

    /// Limits what the places within compressed streams hold in memory.
    pub(crate) fn limit_streams(&self, bytes_max: u64) {
        self.cursors.limit(bytes_max);
    }

    /// How many bytes those held at most, and do now.
    pub(crate) fn streams_bytes(&self) -> (u64, u64) {
        self.cursors.bytes()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether shard number `number` was opened.
    pub(crate) fn is_open(&self, number: usize) -> bool {
        self.open[number].get().is_some()
    }

    /// Shard number `number`, which lies at `path` and is one stream compressed so, or none.
    pub(crate) fn get(
        &self,
        number: usize,
        storage: &dyn Storage,
        path: &Path,
        compression: Compression,
    ) -> Result<&OpenShard> {
        if let Some(open) = self.open[number].get() {
            return Ok(open);
        }
        let open = if compression == Compression::None {
            OpenShard::Plain(storage.open(path)?)
        } else {
            OpenShard::Inflated(Box::new(InflatedShard::open(storage, (number, path), compression, &self.cursors)?))
        };
        Ok(self.open[number].get_or_init(|| open))
    }
}

impl OpenShard {
    /// Which version of it is read, where that is known.
    pub(crate) fn version(&self) -> Option<Version> {
        match self {
            Self::Plain(file) => file.version(),
            Self::Inflated(_) => None,
        }
    }

    /// Reads `length` bytes at `offset` of the shard, or of what it inflates to.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        match self {
            Self::Plain(file) => Ok(file.read(offset, length)?),
            Self::Inflated(shard) => shard.read(offset, length),
        }
    }
}
