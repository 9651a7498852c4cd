//! Where samples lie: files or shards as the user has them, or a data set that Forebay built.

mod ahead;
mod arrow;
mod braces;
mod condition;
mod dataset;
mod extent;
mod file_list;
mod frozen;
mod inflated;
mod kept;
mod label_table;
mod labels;
mod listing;
mod manifest;
mod mix;
mod open_shards;
mod overlooked;
mod parquet;
mod reader;
mod rows;
mod scans;
mod sealed;
mod shards;
mod sidecar;
mod table;
mod tables;
mod verify;

pub use braces::has_braces;
pub use condition::{COLUMNS_OF_SAMPLES, matching};
pub use dataset::Dataset;
pub use extent::Extent;
pub use file_list::FileList;
pub use labels::{GivenLabel, LabelFunction, LabelValue, one_class};
pub use listing::{Entry, Listing, ListingOptions, Reach};
pub(crate) use manifest::MANIFEST_BYTES_MAX;
pub use manifest::{DICTIONARY_FILE, MANIFEST_FILE, Manifest, ShardEntry};
pub use mix::{MIX_FILE, MixEntry, MixManifest};
pub(crate) use mix::{MIX_FORMATS_MAX, digit, folder_name, folder_number};
pub(crate) use open_shards::OpenShards;
pub use reader::{Content, SourceReader};
pub use scans::ScanLayout;
pub(crate) use sealed::{Broken, checksum, digits, seal, unseal};
pub(crate) use tables::{
    BESIDE_SHARD, beside_shard, blocks_path, crc_path, file_checksum, index_path, sizes_path, stream_of,
};

pub use forebay_plan::Skipped;

/// The largest file that is read as one sample.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 32;
