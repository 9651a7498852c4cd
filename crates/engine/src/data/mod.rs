//! Where samples lie: files or shards as the user has them, or a data set that Forebay built.

mod dataset;
mod listing;
mod reader;
mod shards;

pub(crate) use dataset::index_path;
pub use dataset::{Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped};
pub use listing::{Entry, Listing};
pub use reader::{Content, SourceReader};

/// The largest file that is read as one sample.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 32;
