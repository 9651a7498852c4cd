//! Places in streams: how much they hold, what is inflated ahead, and that it is never inflated twice.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex as PlainMutex;

use forebay_pipeline::Random;
use forebay_record::ShardCompressor;
use forebay_storage::{DroppedCache, Entry, MemoryStorage, Status, Walk};

use super::cursors::{BYTES_MAX, CURSORS_MAX};
use super::*;
use crate::data::OpenShards;
use crate::data::open_shards::OpenShard;
use crate::memory::StreamLimits;
use crate::sync::{JoinHandle, ThreadBuilder, modeled};

fn stored(content: &[u8], name: &str) -> MemoryStorage {
    let mut compressor = ShardCompressor::new(Vec::new(), name.parse().unwrap()).unwrap();
    compressor.write_all(content).unwrap();
    let (shard, _) = compressor.finish().unwrap();
    let storage = MemoryStorage::new();
    let mut upload = storage.create(Path::new("shard")).unwrap();
    upload.write_all(&shard).unwrap();
    upload.commit().unwrap();
    storage
}

fn opened(storage: &MemoryStorage, count: usize, compression: Compression) -> (Vec<InflatedShard>, Arc<Cursors>) {
    let cursors = Arc::new(Cursors::default());
    let path = Path::new("shard");
    let open = |number| InflatedShard::open(storage, (number, path), compression, &cursors).unwrap();
    ((0..count).map(open).collect(), cursors)
}

/// More shards than there are cursors: all are read right, also from the start again, and what they hold stays bounded.
#[test]
fn many_shards_hold_no_more_than_few() {
    modeled(|| {
        let content: Vec<u8> = (0..100_000_u32).map(|number| (number / 7) as u8).collect();
        let storage = stored(&content, "gzip-1-stream");
        let (shards, cursors) = opened(&storage, 2 * CURSORS_MAX, Compression::Gzip);
        for offset in [90_000, 0, 50_000] {
            for shard in &shards {
                assert_eq!(shard.read(offset, 10_000).unwrap(), content[offset as usize..][..10_000]);
            }
            assert!(cursors.held.lock().idle.len() <= CURSORS_MAX);
            assert!(cursors.bytes().0 <= BYTES_MAX, "{:?}", cursors.bytes());
        }
    });
}

/// However little memory there is, what is read is right, and no more is held than there is, but for the place that is being read at.
#[test]
fn places_stay_within_their_share_of_the_memory() {
    modeled(|| {
        let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 5) as u8).collect();
        for (name, compression) in [
            ("gzip-1-stream", Compression::Gzip),
            ("zstd-1-stream", Compression::Zstd),
            ("lz4-stream", Compression::Lz4),
            ("snappy-stream", Compression::Snappy),
        ] {
            let storage = stored(&content, name);
            for bytes_max in [1, 1 << 20, 6 << 20, 64 << 20] {
                let (shards, cursors) = opened(&storage, 6, compression);
                cursors.limit(bytes_max, false);
                // One place by itself.
                shards[0].read(0, 1000).unwrap();
                let one = cursors.bytes().1;
                for offset in [500_000, 200_000, 2_900_000] {
                    for shard in &shards {
                        assert_eq!(shard.read(offset, 70_000).unwrap(), content[offset as usize..][..70_000]);
                    }
                }
                let (peak, now) = cursors.bytes();
                assert!(peak <= bytes_max.max(one) && now <= peak, "{name}: {peak} of {bytes_max}, one has {one}");
                let all = cursors.held.lock().idle.len();
                assert!(bytes_max < 64 << 20 || all >= 6, "{name}: with memory for all, all are kept: {all}");
            }
        }
    });
}

/// How many bytes were read of each file.
type Reads = Arc<PlainMutex<HashMap<PathBuf, u64>>>;

/// A storage that counts what is read of each file.
#[derive(Debug, Clone, Default)]
struct Counting {
    of: MemoryStorage,
    reads: Reads,
}

struct CountingFile {
    of: Box<dyn File>,
    path: PathBuf,
    reads: Reads,
}

impl File for CountingFile {
    fn size(&self) -> u64 {
        self.of.size()
    }

    fn read(&self, offset: u64, length: usize) -> forebay_storage::Result<Bytes> {
        *self.reads.lock().unwrap().entry(self.path.clone()).or_default() += length as u64;
        self.of.read(offset, length)
    }
}

impl Storage for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn open(&self, path: &Path) -> forebay_storage::Result<Box<dyn File>> {
        let (of, path) = (self.of.open(path)?, path.to_owned());
        Ok(Box::new(CountingFile { of, path, reads: Arc::clone(&self.reads) }))
    }

    fn status(&self, path: &Path) -> forebay_storage::Result<Option<Status>> {
        self.of.status(path)
    }

    fn entries(&self, folder: &Path) -> forebay_storage::Result<Vec<Entry>> {
        self.of.entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        self.of.walk(root, wanted)
    }

    fn drop_cache(&self, paths: &[&Path]) -> forebay_storage::Result<DroppedCache> {
        self.of.drop_cache(paths)
    }
}

/// Compressed shards, what each inflates to, and the places in them.
struct Set {
    storage: Counting,
    contents: Vec<Vec<u8>>,
    open: OpenShards,
}

impl Set {
    /// Of so many bytes each, which hardly become smaller.
    fn new(count: usize, bytes: usize, (streams_bytes, in_order): (u64, bool)) -> Self {
        let storage = Counting::default();
        let mut random = Random::from_parts(&[7]);
        let mut content = || (0..bytes).map(|_| random.below(200) as u8).collect();
        let contents: Vec<Vec<u8>> = (0..count).map(|_| content()).collect();
        for (number, content) in contents.iter().enumerate() {
            let mut compressor = ShardCompressor::new(Vec::new(), "zstd-1-stream".parse().unwrap()).unwrap();
            compressor.write_all(content).unwrap();
            storage.of.write_file(&path(number), &compressor.finish().unwrap().0).unwrap();
        }
        let open = OpenShards::new(count);
        open.limit_streams(StreamLimits { in_order, ..StreamLimits::of(streams_bytes) });
        Self { storage, contents, open }
    }

    fn get(&self, number: usize) -> Result<&OpenShard> {
        self.open.get(number, &self.storage, &path(number), Compression::Zstd)
    }

    /// Somebody who reads `number` at `offset`, or waits until it is his turn.
    fn turn(&self, number: usize, offset: usize) -> Option<Wanted<'_>> {
        self.get(number).unwrap();
        self.open.turn(number, offset as u64, |next| self.get(next))
    }

    /// Reads as a reader does.
    fn read(&self, number: usize, offset: usize, length: usize) {
        let _turn = self.turn(number, offset);
        let read = self.get(number).unwrap().read(offset as u64, length).unwrap();
        assert!(read == self.contents[number][offset..offset + length], "{number}: {offset}");
    }

    /// Of which shards anything was read so far.
    fn begun(&self) -> Vec<usize> {
        let reads = self.storage.reads.lock().unwrap();
        (0..self.contents.len()).filter(|&number| reads.contains_key(&path(number))).collect()
    }

    /// How often all bytes of the shards were read.
    fn passes(&self) -> f64 {
        let size = |number| self.storage.of.open(&path(number)).unwrap().size();
        let all: u64 = (0..self.contents.len()).map(size).sum();
        self.storage.reads.lock().unwrap().values().sum::<u64>() as f64 / all as f64
    }
}

fn path(number: usize) -> PathBuf {
    PathBuf::from(format!("shard-{number}"))
}

const BLOCK: usize = 70_000;
const BLOCKS: usize = 10;

/// While one reader inflates a shard, others that must wait for it inflate the next ones, as far as memory goes; and what they inflated is not inflated
/// again.
#[test]
fn the_next_shards_are_inflated_while_one_is() {
    modeled(|| {
        let set = Set::new(6, BLOCK * BLOCKS, (64 << 20, true));
        set.read(0, 0, BLOCK);
        let one = set.open.streams_bytes().1;
        let first = set.turn(0, BLOCK);
        assert_eq!(set.begun(), [0], "whose turn it is has nothing else to do");
        let second = set.turn(0, 2 * BLOCK);
        assert_eq!(set.begun(), [0, 1, 2, 3, 4, 5], "there is memory for all");
        let (peak, now) = set.open.streams_bytes();
        assert!(peak <= 64 << 20 && now >= 5 * (BLOCK * BLOCKS) as u64, "{peak} {now}");
        drop((first, second));
        for number in 0..6 {
            // Not all blocks come in their order.
            for block in [1, 0, 2, 4, 3, 5, 6, 7, 9, 8].into_iter().filter(|block| number + block > 0) {
                set.read(number, block * BLOCK, BLOCK);
            }
        }
        assert!((1.0..1.01).contains(&set.passes()), "each byte is inflated once: {}", set.passes());
        assert!(set.open.streams_bytes().1 <= one, "what was read is let go: {:?}", set.open.streams_bytes());
    });
}

#[test]
fn what_is_inflated_ahead_has_half_of_the_memory() {
    modeled(|| {
        for bytes_max in [1, 1 << 20, 4 << 20, 8 << 20] {
            let set = Set::new(6, BLOCK * 40, (bytes_max, true));
            set.read(0, 0, BLOCK);
            let one = set.open.streams_bytes().1;
            let first = set.turn(0, BLOCK);
            drop(set.turn(0, 2 * BLOCK));
            let (now, begun) = (set.open.streams_bytes().1, set.begun().len());
            assert!(now <= one.max(bytes_max / 2), "{now} of {bytes_max}");
            assert_eq!(begun > 1, bytes_max > 4 << 20, "{begun} of {bytes_max}");
            drop(first);
            for number in 0..6 {
                (0..40).filter(|block| number + block > 0).for_each(|block| set.read(number, block * BLOCK, BLOCK));
            }
            assert!((1.0..1.01).contains(&set.passes()), "{bytes_max}: {}", set.passes());
        }
    });
}

/// In any other order nobody knows what comes next, nor what is damaged.
#[test]
fn what_is_not_read_in_order_is_not_inflated_ahead() {
    modeled(|| {
        let set = Set::new(3, BLOCK * BLOCKS, (64 << 20, false));
        set.read(0, 0, BLOCK);
        let _first = set.turn(0, BLOCK);
        let _second = set.turn(0, 2 * BLOCK);
        assert_eq!(set.begun(), [0]);
    });
}

/// What comes before the damage of a shard that was inflated ahead comes, and the damage is reported when it is read.
#[test]
fn damage_ahead_is_reported_in_its_turn() {
    modeled(|| {
        let set = Set::new(3, BLOCK * BLOCKS, (64 << 20, true));
        let whole = set.storage.of.read_file(&path(1), u64::MAX).unwrap();
        set.storage.of.write_file(&path(1), &whole[..whole.len() / 2]).unwrap();
        set.read(0, 0, BLOCK);
        let first = set.turn(0, BLOCK);
        drop(set.turn(0, 2 * BLOCK));
        assert_eq!(set.begun(), [0, 1, 2]);
        drop(first);
        (1..BLOCKS).for_each(|block| set.read(0, block * BLOCK, BLOCK));
        (0..4).for_each(|block| set.read(1, block * BLOCK, BLOCK));
        let error = set.get(1).unwrap().read((6 * BLOCK) as u64, BLOCK).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
        (0..BLOCKS).for_each(|block| set.read(2, block * BLOCK, BLOCK));
    });
}

/// Several readers, however they come: each block is right, nobody waits for ever, and what is held stays within the limit.
#[test]
fn readers_take_turns() {
    let readers = || {
        let set = Arc::new(Set::new(4, BLOCK * 6, (4 << 20, true)));
        let next = Arc::new(Mutex::new(0));
        let work = |set: Arc<Set>, next: Arc<Mutex<usize>>| {
            move || {
                loop {
                    let block = {
                        let mut next = next.lock();
                        *next += 1;
                        *next - 1
                    };
                    if block >= 24 {
                        return;
                    }
                    set.read(block / 6, block % 6 * BLOCK, BLOCK);
                }
            }
        };
        let spawn = |_| ThreadBuilder::new().spawn(work(Arc::clone(&set), Arc::clone(&next))).unwrap();
        let threads: Vec<JoinHandle<()>> = (0..3).map(spawn).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(set.open.streams_bytes().0 <= 4 << 20);
    };
    shuttle::check_random(readers, 40);
}
