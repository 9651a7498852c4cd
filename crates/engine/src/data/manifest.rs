//! The manifest of a data set: `dataset.json`.

use std::collections::HashSet;
use std::path::Path;

use forebay_pipeline::{FieldEncoding, PipelineSpec, Strategy};
use forebay_plan::Skipped;
use forebay_record::Scope;
use serde::{Deserialize, Serialize};

use super::scans::ScanLayout;
use super::sealed::{Broken, unseal};
use crate::error::{Error, Result};

/// The name of the manifest in a data set's folder.
pub const MANIFEST_FILE: &str = "dataset.json";

/// The name of the dictionary in a data set's folder, where its records are compressed with one.
pub const DICTIONARY_FILE: &str = "records.dictionary";

/// A manifest, or an index of others, is at most so large: space for tens of millions of records.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 4 << 30;

/// What a data set is: `dataset.json`. It is written last, so a folder that has one is whole. The file has a key more than this,
/// `checksum`, of all the rest of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`Manifest::FORMAT`].
    pub format: String,
    /// The version of this layout: [`Manifest::VERSION`].
    pub version: u32,
    /// The version of Forebay that wrote it.
    pub forebay: String,
    /// The whole pipeline.
    pub pipeline: PipelineSpec,
    /// What was done once and is in the shards, and how.
    pub strategy: Strategy,
    /// The fields that are kept encoded, as follows from the strategy: which encoding, and of lossy ones of tensors the bound of the error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encodings: Vec<FieldEncoding>,
    /// What the data set was built from and how, as a checksum. A build with the same identity gives the same bytes.
    pub identity: String,
    /// How many samples.
    pub samples: u64,
    /// How many bytes of shards.
    pub bytes: u64,
    /// The names of the classes; a label is an index into this list.
    pub classes: Vec<String>,
    /// The checksum (XXH3-64, in hexadecimal) of the dictionary that records are compressed with, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dictionary_xxh3: Option<String>,
    /// The shards, in order.
    pub shards: Vec<ShardEntry>,
    /// Samples of the source that could not be processed and are not in the data set.
    pub skipped_samples: Vec<Skipped>,
}

/// One shard of a data set. Checksums are XXH3-64, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    /// Its file name.
    pub file: String,
    /// How many samples it has.
    pub samples: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// The checksum of its bytes.
    pub xxh3: String,
    /// The checksum of the index beside it.
    pub index_xxh3: String,
    /// The checksum of the list of its records' checksums beside it.
    pub crc_xxh3: String,
    /// The checksum of the list of blocks beside it, where it is compressed by blocks or as a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_xxh3: Option<String>,
    /// The checksum of the list of its records' sizes beside it, where they are compressed each by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_xxh3: Option<String>,
    /// How its records lie, where they are progressive: several of each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scans: Option<ScanLayout>,
    /// The numbers of the samples that it lacks since they were skipped, in the order of what was built. (Keys do not tell: two tar files may have the same.)
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_numbers: Vec<u64>,
}

impl ShardEntry {
    /// How many records it has: one of each sample, or one of each of its groups of scans.
    pub(crate) fn records(&self) -> u64 {
        self.samples.saturating_mul(self.scans.map_or(1, |scans| scans.groups))
    }
}

impl Manifest {
    /// The mark of a manifest.
    pub const FORMAT: &str = "forebay-dataset";
    /// The layout that this version writes and reads.
    pub const VERSION: u32 = 2;

    /// The manifest in `text`, which was read from `path`.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<Self> {
        let format = |problem: String| Error::Format { path: path.to_owned(), problem };
        // The version first, as far as it can be made out: of another layout nothing else can be said.
        if let Ok(Layout { format: Some(layout), version: Some(version) }) = serde_json::from_slice(text)
            && (layout != Self::FORMAT || version != Self::VERSION)
        {
            return Err(format(format!(
                "has layout `{layout}` version {version}, but this Forebay reads `{}` version {}\nhint: build the data set \
                 again, with `--overwrite`",
                Self::FORMAT,
                Self::VERSION
            )));
        }
        let manifest: Self = unseal(text).map_err(|broken| {
            let hint = match &broken {
                Broken::Json(_) => "",
                _ => "\nhint: restore it, or build the data set again with `--overwrite`; nothing in it may be edited",
            };
            format(match broken {
                Broken::Json(error) => format!("is not a manifest: {error}"),
                broken => format!("{broken}{hint}"),
            })
        })?;
        manifest.check().map_err(format)?;
        Ok(manifest)
    }

    /// That the manifest agrees with itself.
    fn check(&self) -> std::result::Result<(), String> {
        let names: HashSet<&str> = self.shards.iter().map(|shard| shard.file.as_str()).collect();
        if names.len() != self.shards.len() {
            return Err("names a shard twice".to_owned());
        }
        let is_plain = |file: &str| Path::new(file).file_name().is_some_and(|name| name == file);
        if let Some(shard) = self.shards.iter().find(|shard| !is_plain(&shard.file)) {
            return Err(format!("names a shard `{}` outside its folder", shard.file));
        }
        let compression = self.strategy.format.compression;
        let by_record = compression.is_some_and(|compression| compression.scope == Scope::Record);
        // A record takes 16 bytes besides what is in it; compressed together, no less than what these can become.
        let inflation_max = compression.filter(|_| !by_record).map_or(1, |by| by.algorithm.inflation_max());
        let records_max = |bytes: u64| bytes.saturating_mul(inflation_max) / 16;
        if let Some(shard) = self.shards.iter().find(|shard| shard.records() > records_max(shard.bytes)) {
            let (file, samples, bytes) = (&shard.file, shard.samples, shard.bytes);
            return Err(format!("says that `{file}` has {samples} samples in {bytes} bytes, which cannot be"));
        }
        let by_block = compression.is_some() && !by_record;
        let is_right =
            |shard: &&ShardEntry| shard.blocks_xxh3.is_some() == by_block && shard.sizes_xxh3.is_some() == by_record;
        if let Some(shard) = self.shards.iter().find(|shard| !is_right(shard)) {
            return Err(format!("has a shard `{}` that is not compressed as the strategy says", shard.file));
        }
        let progressive = self.strategy.format.progressive;
        let is_right = |shard: &&ShardEntry| match &shard.scans {
            Some(scans) => progressive && scans.is_valid(),
            None => !progressive,
        };
        if let Some(shard) = self.shards.iter().find(|shard| !is_right(shard)) {
            return Err(format!("has a shard `{}` whose records do not lie as the strategy says", shard.file));
        }
        if self.dictionary_xxh3.is_some() != compression.is_some_and(|compression| compression.has_dictionary()) {
            return Err("has a dictionary that the strategy does not ask for, or lacks one that it does".to_owned());
        }
        let sum = |part: fn(&ShardEntry) -> u64| {
            self.shards.iter().try_fold(0_u64, |sum, shard| sum.checked_add(part(shard)))
        };
        let (samples, bytes) = (sum(|shard| shard.samples), sum(|shard| shard.bytes));
        if samples != Some(self.samples) || bytes != Some(self.bytes) || self.samples == 0 {
            return Err(format!(
                "says {} samples in {} bytes, but its shards have {} in {}",
                self.samples,
                self.bytes,
                samples.unwrap_or(u64::MAX),
                bytes.unwrap_or(u64::MAX)
            ));
        }
        Ok(())
    }
}

/// What every layout has.
#[derive(Deserialize)]
struct Layout {
    format: Option<String>,
    version: Option<u32>,
}
