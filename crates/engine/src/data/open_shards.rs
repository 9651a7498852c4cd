//! The shards of a source, each opened when it is first read.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_record::Compression;
use forebay_storage::{File, Storage, Version};

use super::inflated::cursors::Cursors;
use super::inflated::{InflatedShard, Wanted};
use crate::error::Result;
use crate::memory::StreamLimits;

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

    /// Limits what the places within compressed streams hold in memory, and says whether shards are read one after the other.
    pub(crate) fn limit_streams(&self, limits: StreamLimits) {
        self.cursors.limit(limits.streams_bytes, limits.in_order);
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

    /// Waits for the turn to read at `offset` of shard number `number`, which is open, where it is one stream and shards are read in order: while others
    /// read what comes before that, the shards after it are inflated ahead, as `open` opens them, until there is no memory for more. The turn
    /// is over when what is returned is dropped.
    pub(crate) fn turn<'a>(
        &'a self,
        number: usize,
        offset: u64,
        open: impl Fn(usize) -> Result<&'a OpenShard>,
    ) -> Option<Wanted<'a>> {
        let Some(OpenShard::Inflated(shard)) = self.open[number].get() else { return None };
        let ahead = self.cursors.shards_ahead();
        if ahead == 0 {
            return None;
        }
        let wanted = shard.wants(offset);
        let next = number + 1..self.len().min(number + 1 + ahead);
        // What cannot be opened or read is reported when it is wanted.
        let reads_ahead = |shard: usize| matches!(open(shard), Ok(OpenShard::Inflated(shard)) if shard.read_ahead());
        while wanted.must_wait() && next.clone().any(&reads_ahead) {}
        Some(wanted)
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
