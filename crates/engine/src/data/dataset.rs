//! The data set on disk: a manifest, shards, and an index beside each shard.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use forebay_pipeline::{Pipeline, PipelineSpec, Schema, Strategy};
use forebay_record::{BLOCKS_SUFFIX, Blocks, INDEX_SUFFIX, Index};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The name of the manifest in a data set's folder.
pub const MANIFEST_FILE: &str = "dataset.json";

/// What a data set is: `dataset.json`. It is written last, so a folder that has one is whole.
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
    /// What the data set was built from and how, as a checksum. A build with the same identity gives the same bytes.
    pub identity: String,
    /// How many samples.
    pub samples: u64,
    /// How many bytes of shards.
    pub bytes: u64,
    /// The names of the classes; a label is a place in this list.
    pub classes: Vec<String>,
    /// The shards, in order.
    pub shards: Vec<ShardEntry>,
    /// Samples of the source that could not be processed and are not in the data set.
    pub skipped: Vec<Skipped>,
}

/// One shard of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    /// Its file name.
    pub file: String,
    /// How many samples it has.
    pub samples: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// The XXH3 checksum (64 bit) of its bytes, in hexadecimal.
    pub xxh3: String,
}

/// A sample that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its key.
    pub key: String,
    /// Why.
    pub reason: String,
}

impl Manifest {
    /// The mark of a manifest.
    pub const FORMAT: &str = "forebay-dataset";
    /// The layout that this version writes and reads.
    pub const VERSION: u32 = 1;
}

/// A data set that was built, opened for reading.
#[derive(Debug)]
pub struct Dataset {
    root: PathBuf,
    manifest: Manifest,
    pipeline: Pipeline,
    /// `first[s]` is the number of the first sample of shard `s`.
    first: Vec<u64>,
    indexes: Vec<OnceLock<Index>>,
    blocks: Vec<OnceLock<Blocks>>,
}

impl Dataset {
    /// Opens the data set in the folder `root` and checks that every shard is there with its right size.
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(MANIFEST_FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound if root.is_dir() => Error::Usage {
                problem: format!("`{}` is no data set: it has no `{MANIFEST_FILE}`", root.display()),
                remedy: "build one with `forebay build`; a build that was interrupted goes on when run again"
                    .to_owned(),
            },
            _ => Error::io("open the data set", &path)(source),
        })?;
        let format = |problem: String| Error::Format { path: path.clone(), problem };
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| format(format!("is no manifest: {error}")))?;
        if manifest.format != Manifest::FORMAT || manifest.version != Manifest::VERSION {
            return Err(format(format!(
                "has layout `{}` version {}, but this Forebay reads `{}` version {}",
                manifest.format,
                manifest.version,
                Manifest::FORMAT,
                Manifest::VERSION
            )));
        }
        let pipeline = Pipeline::from_spec(&manifest.pipeline)?;
        let strategy = &manifest.strategy;
        if Strategy::parse(&pipeline, &strategy.to_string())? != *strategy {
            return Err(format(format!("names a strategy `{strategy}` that its pipeline does not have")));
        }
        check_sums(&manifest).map_err(format)?;
        for shard in &manifest.shards {
            check_shard(root, shard)?;
        }
        let first = manifest.shards.iter().scan(0, |sum, shard| {
            let first = *sum;
            *sum += shard.samples;
            Some(first)
        });
        let first: Vec<u64> = first.collect();
        let indexes = manifest.shards.iter().map(|_| OnceLock::new()).collect();
        let blocks = manifest.shards.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { root: root.to_owned(), manifest, pipeline, first, indexes, blocks })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The fields of a stored record.
    pub fn stored_schema(&self) -> Schema {
        self.manifest.strategy.stored_schema(&self.pipeline)
    }

    /// The path of shard number `shard`.
    pub fn shard_path(&self, shard: usize) -> PathBuf {
        self.root.join(&self.manifest.shards[shard].file)
    }

    /// The number of the first sample of shard number `shard`.
    pub fn first_sample(&self, shard: usize) -> u64 {
        self.first[shard]
    }

    /// Where the records of shard number `shard` lie, in what it inflates to if it is packed.
    pub fn index(&self, shard: usize) -> Result<&Index> {
        if let Some(index) = self.indexes[shard].get() {
            return Ok(index);
        }
        let entry = &self.manifest.shards[shard];
        let path = index_path(&self.shard_path(shard));
        let text = std::fs::read(&path).map_err(Error::io("read the index", &path))?;
        let index = Index::parse(&text, &path.display().to_string())?;
        let bytes = self.blocks(shard)?.map_or(entry.bytes, Blocks::inflated_bytes);
        index.check_within(bytes, &entry.file)?;
        if index.len() as u64 != entry.samples {
            return Err(Error::Format {
                path,
                problem: format!("has {} records, but the manifest says {}", index.len(), entry.samples),
            });
        }
        Ok(self.indexes[shard].get_or_init(|| index))
    }

    /// Where the blocks of shard number `shard` lie, if it is packed.
    pub fn blocks(&self, shard: usize) -> Result<Option<&Blocks>> {
        if self.manifest.strategy.form.packing.is_none() {
            return Ok(None);
        }
        if let Some(blocks) = self.blocks[shard].get() {
            return Ok(Some(blocks));
        }
        let entry = &self.manifest.shards[shard];
        let path = blocks_path(&self.shard_path(shard));
        let text = std::fs::read(&path).map_err(Error::io("read the list of blocks", &path))?;
        let blocks = Blocks::parse(&text, &path.display().to_string())?;
        blocks.check_within(entry.bytes, &entry.file)?;
        Ok(Some(self.blocks[shard].get_or_init(|| blocks)))
    }
}

/// The path of the index beside a shard.
pub(crate) fn index_path(shard: &Path) -> PathBuf {
    beside(shard, INDEX_SUFFIX)
}

/// The path of the list of blocks beside a packed shard.
pub(crate) fn blocks_path(shard: &Path) -> PathBuf {
    beside(shard, BLOCKS_SUFFIX)
}

fn beside(shard: &Path, suffix: &str) -> PathBuf {
    let mut name = shard.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// That the manifest agrees with itself.
fn check_sums(manifest: &Manifest) -> std::result::Result<(), String> {
    let names: HashSet<&str> = manifest.shards.iter().map(|shard| shard.file.as_str()).collect();
    if names.len() != manifest.shards.len() {
        return Err("names a shard twice".to_owned());
    }
    let sum = |part: fn(&ShardEntry) -> u64| {
        manifest.shards.iter().try_fold(0_u64, |sum, shard| sum.checked_add(part(shard)))
    };
    let (samples, bytes) = (sum(|shard| shard.samples), sum(|shard| shard.bytes));
    if samples != Some(manifest.samples) || bytes != Some(manifest.bytes) || manifest.samples == 0 {
        return Err(format!(
            "says {} samples in {} bytes, but its shards have {} in {}",
            manifest.samples,
            manifest.bytes,
            samples.unwrap_or(u64::MAX),
            bytes.unwrap_or(u64::MAX)
        ));
    }
    Ok(())
}

fn check_shard(root: &Path, shard: &ShardEntry) -> Result<()> {
    let path = root.join(&shard.file);
    if Path::new(&shard.file).file_name().is_none_or(|name| name != shard.file.as_str()) {
        return Err(Error::Format {
            path: root.join(MANIFEST_FILE),
            problem: format!("names a shard `{}` outside its folder", shard.file),
        });
    }
    let found = std::fs::metadata(&path).map_err(Error::io("open the shard", &path))?.len();
    if found != shard.bytes {
        return Err(Error::Format {
            path,
            problem: format!("has {found} bytes, but the manifest says {}: it was damaged or replaced", shard.bytes),
        });
    }
    Ok(())
}
