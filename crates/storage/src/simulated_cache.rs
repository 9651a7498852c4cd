//! A model of the page cache, so that a throttled storage can be fast the second time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::schedule::{Cost, continues};

/// The unit of caching and eviction: the size of Linux's default read-ahead window, so that reading a little brings in about as
/// much as it would for real.
pub(crate) const BLOCK_BYTES: u64 = 128 << 10;

/// Which file a block belongs to. A file that is opened with another size than before gets a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct BlockKey {
    file: FileId,
    index: u64,
}

#[derive(Debug)]
struct Block {
    last_use: u64,
    bytes: u64,
}

/// Which blocks would be in memory: the most recently used, up to a number of bytes. It holds no data.
#[derive(Debug)]
pub(crate) struct SimulatedCache {
    capacity_bytes: u64,
    held_bytes: u64,
    uses: u64,
    files_seen: u64,
    files: HashMap<PathBuf, (FileId, u64)>,
    blocks: HashMap<BlockKey, Block>,
    by_use: BTreeMap<u64, BlockKey>,
}

impl SimulatedCache {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes,
            held_bytes: 0,
            uses: 0,
            files_seen: 0,
            files: HashMap::new(),
            blocks: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// The id of a file that was opened with this size.
    pub(crate) fn file(&mut self, path: &Path, size: u64) -> FileId {
        if let Some(&(id, known_size)) = self.files.get(path)
            && known_size == size
        {
            return id;
        }
        self.forget(&[path]);
        let id = FileId(self.files_seen);
        self.files_seen += 1;
        self.files.insert(path.to_path_buf(), (id, size));
        id
    }

    /// Reads a range: blocks that are not cached are charged in full and cached from now on. `position` is the device's position
    /// in this open file, and moves.
    ///
    /// Of two threads that ask for the same block at the same time only the first waits for it; for real both would.
    pub(crate) fn read(
        &mut self,
        file: FileId,
        size: u64,
        offset: u64,
        length: u64,
        position: &mut Option<u64>,
    ) -> Cost {
        let mut cost = Cost::default();
        for index in offset / BLOCK_BYTES..(offset + length).div_ceil(BLOCK_BYTES) {
            let start = index * BLOCK_BYTES;
            let bytes = BLOCK_BYTES.min(size - start);
            if self.touch(BlockKey { file, index }, bytes) {
                continue;
            }
            cost.bytes += bytes;
            cost.seeks += u32::from(!continues(*position, start, length));
            *position = Some(start + bytes);
        }
        cost
    }

    /// Marks a block as used now and says whether it was held before.
    fn touch(&mut self, key: BlockKey, bytes: u64) -> bool {
        self.uses += 1;
        let last_use = self.uses;
        if let Some(block) = self.blocks.get_mut(&key) {
            self.by_use.remove(&block.last_use);
            block.last_use = last_use;
            self.by_use.insert(last_use, key);
            return true;
        }
        self.blocks.insert(key, Block { last_use, bytes });
        self.by_use.insert(last_use, key);
        self.held_bytes += bytes;
        while self.held_bytes > self.capacity_bytes {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(block) = self.blocks.remove(&oldest) {
                self.held_bytes -= block.bytes;
            }
        }
        false
    }

    /// Drops all blocks of these files. The files keep their ids, since they may be open.
    pub(crate) fn forget(&mut self, paths: &[&Path]) {
        let ids: HashSet<FileId> = paths.iter().filter_map(|&path| Some(self.files.get(path)?.0)).collect();
        if ids.is_empty() {
            return;
        }
        let Self { blocks, by_use, held_bytes, .. } = self;
        blocks.retain(|key, block| {
            let forgotten = ids.contains(&key.file);
            if forgotten {
                by_use.remove(&block.last_use);
                *held_bytes -= block.bytes;
            }
            !forgotten
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl SimulatedCache {
        fn check(&self) {
            assert!(self.held_bytes <= self.capacity_bytes);
            assert_eq!(self.held_bytes, self.blocks.values().map(|block| block.bytes).sum::<u64>());
            assert_eq!(self.blocks.len(), self.by_use.len());
            for (last_use, key) in &self.by_use {
                assert_eq!(self.blocks[key].last_use, *last_use);
            }
        }
    }

    #[test]
    fn the_least_recently_used_block_goes_first() {
        let mut cache = SimulatedCache::new(2 * BLOCK_BYTES);
        let size = 10 * BLOCK_BYTES;
        let file = cache.file(Path::new("a"), size);
        let mut read = |index: u64| cache.read(file, size, index * BLOCK_BYTES + 5, 10, &mut None).bytes;
        assert_eq!([read(0), read(1), read(0), read(2)], [BLOCK_BYTES, BLOCK_BYTES, 0, BLOCK_BYTES]);
        assert_eq!([read(0), read(1)], [0, BLOCK_BYTES], "1 was evicted, 0 was not");
    }

    #[test]
    fn a_run_of_missing_blocks_is_one_seek() {
        let mut cache = SimulatedCache::new(u64::MAX);
        let size = 6 * BLOCK_BYTES + 100;
        let file = cache.file(Path::new("a"), size);
        let mut position = None;
        let mut read =
            |first: u64, blocks: u64| cache.read(file, size, first * BLOCK_BYTES, blocks * BLOCK_BYTES, &mut position);
        assert_eq!(read(0, 2), Cost { bytes: 2 * BLOCK_BYTES, seeks: 1 });
        assert_eq!(read(2, 1), Cost { bytes: BLOCK_BYTES, seeks: 0 }, "continues at the device's position");
        assert_eq!(read(4, 1), Cost { bytes: BLOCK_BYTES, seeks: 1 });
        assert_eq!(read(0, 6), Cost { bytes: 2 * BLOCK_BYTES, seeks: 0 }, "blocks 3 and 5, near the device's position");
        assert_eq!(cache.read(file, size, 6 * BLOCK_BYTES + 50, 50, &mut position), Cost { bytes: 100, seeks: 0 });
    }

    proptest! {
        #[test]
        fn the_books_always_balance(
            capacity in 0_u64..2_000_000,
            actions in prop::collection::vec((0_u8..6, 0_u64..3, 0_u64..1_000_000, 0_u64..400_000), 1..80),
        ) {
            let mut cache = SimulatedCache::new(capacity);
            for (action, name, offset, length) in actions {
                let path = PathBuf::from(name.to_string());
                if action == 0 {
                    cache.forget(&[&path]);
                } else {
                    let size = 1_400_000 + u64::from(action == 1);
                    let file = cache.file(&path, size);
                    let cost = cache.read(file, size, offset, length, &mut None);
                    prop_assert!(cost.bytes <= length + 2 * BLOCK_BYTES);
                    prop_assert_eq!(cost.bytes == 0, cost.seeks == 0);
                }
                cache.check();
            }
        }
    }
}
