//! Numbers of samples that meet while loading, each a type of its own so that none is taken for another.
//!
//! A sample has three: its number in the source (a plain `u64`, as everywhere else), its [`Position`] in the epoch, and, on the rank
//! that takes it, its [`Turn`]. Order and deal turn one into the next: `sample ─ Order ─> Position ─ Deal ─> Turn`.

/// Where a sample comes in the epoch, whoever takes it; the first is 0. A checkpoint is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(pub(super) u64);

/// When a rank takes a sample: the first of what it loads of the epoch is 0. Batches are cut
/// from turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Turn(pub(super) u64);

impl Position {
    /// The first of an epoch.
    pub(super) const FIRST: Self = Self(0);
}

impl Turn {
    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number of the batch that it belongs to, and the slot in it, where batches have `batch_size` samples each.
    pub(super) fn in_batch(self, batch_size: u64) -> (u64, usize) {
        (self.0 / batch_size, (self.0 % batch_size) as usize)
    }
}
