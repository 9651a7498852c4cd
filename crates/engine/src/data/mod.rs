//! Where samples lie: a folder of files as the user has it, or a data set that Forebay built.

mod dataset;
mod listing;

pub(crate) use dataset::index_path;
pub use dataset::{Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped};
pub use listing::{Listing, SourceFile};

/// The largest file that is read as one sample.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 32;
