//! Where a loader is: what a checkpoint keeps, to go on from there.
//!
//! The order of an epoch does not depend on how many ranks share it, so the position that was reached is one number, and whoever
//! goes on may have another number of ranks, other batches, and other threads.

use serde::{Deserialize, Serialize};

use super::ids::Position;
use super::loader::Loader;
use super::order::Shuffle;
use crate::error::{Error, Result};

/// Where a loader is. The same for all ranks, unless batches are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The version of this layout: [`State::VERSION`].
    pub version: u32,
    /// A checksum of the samples and of what is done to them.
    pub identity: String,
    /// The seed.
    pub seed: u64,
    /// The bytes of the shuffle's windows; none if samples come as they lie.
    pub shuffle_window_bytes: Option<u64>,
    /// The most streams; none if samples come as they lie.
    pub streams: Option<u64>,
    /// The bytes of Liquid's buffer, which the order depends on; none with other caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liquid_bytes: Option<u64>,
    /// The epoch.
    pub epoch: u64,
    /// How many samples of the epoch were seen, by all ranks together.
    pub samples_seen: u64,
    /// Where a step makes several samples of one, nobody knows which sample a batch begins with: batches are counted instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<Batches>,
}

/// How many batches were seen, and of what kind. Only a loader that makes the same ones can go on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// How many.
    pub seen: u64,
    /// Samples in each.
    pub size: u64,
    /// Whose: the rank, and the world size.
    pub rank: u64,
    /// See `rank`.
    pub world_size: u64,
}

impl State {
    /// The layout that this version writes and reads.
    pub const VERSION: u32 = 2;

    /// The beginning of an epoch.
    pub(super) fn new(loader: &Loader, epoch: u64) -> Self {
        let options = loader.options();
        let batches =
            Batches { seen: 0, size: options.batch_size as u64, rank: options.rank, world_size: options.world_size };
        Self {
            version: Self::VERSION,
            identity: loader.identity().to_owned(),
            seed: options.seed,
            shuffle_window_bytes: match options.shuffle {
                Shuffle::No => None,
                Shuffle::Window { bytes } => Some(bytes),
            },
            streams: (options.shuffle != Shuffle::No).then_some(options.streams),
            liquid_bytes: options.cache.liquid_bytes(),
            epoch,
            samples_seen: 0,
            batches: loader.source().expands().then_some(batches),
        }
    }

    /// The position in the epoch that comes next; the first where batches are counted.
    pub(super) fn position(&self) -> Position {
        if self.batches.is_some() { Position::FIRST } else { Position(self.samples_seen) }
    }

    /// That `loader` gives what was given up to here, and would have been given after it.
    pub fn check(&self, loader: &Loader) -> Result<()> {
        let mine = Self::new(loader, self.epoch);
        let usage = |problem: String, remedy: String| Err(Error::Usage { problem, remedy });
        if self.version != Self::VERSION {
            let problem = format!("this is not a loader state of version {}: found `{}`", Self::VERSION, self.version);
            return usage(problem, "begin the epoch again".to_owned());
        }
        if self.identity != mine.identity {
            return usage(
                "the state was taken of other data: its samples, or what is done to them, differ".to_owned(),
                "load from the data set (or folder and pipeline) that the state was taken of".to_owned(),
            );
        }
        let text = |number: Option<u64>| number.map_or("none".to_owned(), |number| number.to_string());
        let batches = |state: &Self, part: fn(Batches) -> u64| text(state.batches.map(part));
        let compared = [
            ("seed", self.seed.to_string(), mine.seed.to_string()),
            (
                "shuffle",
                self.shuffle_window_bytes.is_some().to_string(),
                mine.shuffle_window_bytes.is_some().to_string(),
            ),
            ("shuffle_window", text(self.shuffle_window_bytes), text(mine.shuffle_window_bytes)),
            ("streams", text(self.streams), text(mine.streams)),
            ("a `liquid` cache of", text(self.liquid_bytes), text(mine.liquid_bytes)),
            ("batch_size", batches(self, |of| of.size), batches(&mine, |of| of.size)),
            ("rank", batches(self, |of| of.rank), batches(&mine, |of| of.rank)),
            ("world_size", batches(self, |of| of.world_size), batches(&mine, |of| of.world_size)),
        ];
        match compared.into_iter().find(|(_, theirs, mine)| theirs != mine) {
            None if self.samples_seen > loader.samples() => usage(
                format!("the state has seen {} samples of {}", self.samples_seen, loader.samples()),
                "begin the epoch again".to_owned(),
            ),
            None => Ok(()),
            Some((name, theirs, mine)) => usage(
                format!("the state was taken with {name} `{theirs}`, but this loader has `{mine}`"),
                format!("load with {name} {theirs}"),
            ),
        }
    }
}
