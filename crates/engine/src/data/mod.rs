//! Where samples lie: files or shards as the user has them, or a data set that Forebay built.

mod beside;
mod dataset;
mod file_list;
mod label_table;
mod labels;
mod listing;
mod manifest;
mod reader;
mod sealed;
mod shards;
mod stretch;
mod tables;
mod verify;

pub use dataset::Dataset;
pub use file_list::FileList;
pub use labels::{GivenLabel, LabelFunction, LabelValue, one_class};
pub use listing::{Entry, Listing, ListingOptions, Reach};
pub(crate) use manifest::MANIFEST_BYTES_MAX;
pub use manifest::{MANIFEST_FILE, Manifest, ShardEntry};
pub use reader::{Content, SourceReader};
pub(crate) use sealed::{Broken, checksum, digits, seal, unseal};
pub use stretch::Stretch;
pub(crate) use tables::{BESIDE_SHARD, beside_shard, blocks_path, crc_path, file_checksum, index_path};

pub use forebay_plan::Skipped;

/// The largest file that is read as one sample.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 32;
