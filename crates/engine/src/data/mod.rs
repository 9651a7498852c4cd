//! Where samples lie: files or shards as the user has them, or a data set that Forebay built.

mod beside;
mod dataset;
mod listing;
mod reader;
mod shards;
mod stretch;

pub use dataset::{Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped};
pub(crate) use dataset::{blocks_path, index_path};
pub use listing::{Entry, Listing};
pub use reader::{Content, SourceReader};
pub use stretch::Stretch;

/// The largest file that is read as one sample.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 32;
