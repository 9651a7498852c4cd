//! A listing that is written down, so that many machines build from the same one.
//!
//! Two lines: the XXH3-64 of the second, and the listing. Nothing in it says where the data folder is, which may be another path on each machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::Source;
use forebay_plan::Skipped;
use forebay_record::Compression;
use forebay_storage::{Folder, Version};
use serde::{Deserialize, Serialize};

use super::braces;
use super::labels::LabelValue;
use super::listing::{Entry, Listing, Parts, Reach, SampleLocation};
use super::sealed::checksum;
use crate::error::{Error, Result};

#[derive(Serialize, Deserialize)]
struct FrozenListing {
    /// The shards of the source, below the data folder, and how each is compressed.
    shards: Vec<(String, String)>,
    classes: Vec<String>,
    lost: Vec<Skipped>,
    samples: Vec<FrozenSample>,
}

#[derive(Serialize, Deserialize)]
struct FrozenSample {
    key: String,
    /// The path of its file, where that is not its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    bytes: u64,
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<FrozenLabel>,
    /// Its shard, record and offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<(usize, u64, u64)>,
}

#[derive(Serialize, Deserialize)]
enum FrozenLabel {
    #[serde(rename = "int")]
    Int(i64),
    /// Its bits: text would round it.
    #[serde(rename = "float_bits")]
    Float(u32),
}

const COMPRESSIONS: [(&str, Compression); 6] = [
    ("none", Compression::None),
    ("gzip", Compression::Gzip),
    ("zlib", Compression::Zlib),
    ("zstd", Compression::Zstd),
    ("lz4", Compression::Lz4),
    ("snappy", Compression::Snappy),
];

impl Listing {
    /// The listing as text.
    pub(crate) fn freeze(&self) -> Result<Vec<u8>> {
        let root = self.root().path();
        let shard = |(path, compression): (&PathBuf, &Compression)| {
            let name = COMPRESSIONS.iter().find(|(_, known)| known == compression);
            let (name, _) = name.ok_or_else(|| Error::internal("a shard whose compression has no name"))?;
            Ok((text_of(path.strip_prefix(root).unwrap_or(path))?, (*name).to_owned()))
        };
        let sample = |entry: &Entry| {
            let (path, place) = match &entry.location {
                SampleLocation::File(path) => (Some(text_of(path)?).filter(|path| **path != *entry.key), None),
                SampleLocation::Shard { shard, record, offset } => (None, Some((*shard, *record, *offset))),
            };
            let label = entry.label.map(|label| match label {
                LabelValue::Int(number) => FrozenLabel::Int(number),
                LabelValue::Float(number) => FrozenLabel::Float(number.to_bits()),
            });
            let (key, bytes, version) = (entry.key.to_string(), entry.bytes, entry.version.0);
            Ok(FrozenSample { key, path, bytes, version, label, place })
        };
        let frozen = FrozenListing {
            shards: self.shards().iter().zip(self.compressions()).map(shard).collect::<Result<_>>()?,
            classes: self.classes().to_vec(),
            lost: self.lost().to_vec(),
            samples: self.entries().iter().map(sample).collect::<Result<_>>()?,
        };
        let text = serde_json::to_string(&frozen).expect("these types have text keys and plain values");
        Ok(format!("{}\n{text}\n", checksum(text.as_bytes())).into_bytes())
    }

    /// What was frozen as `text`, which `path` has, of the data folder `root`.
    pub(crate) fn thaw(text: &[u8], path: &Path, source: &Source, root: Folder, reach: Reach) -> Result<Self> {
        let damaged = |problem: String| Error::Format { path: path.to_owned(), problem };
        let lines = std::str::from_utf8(text).ok().and_then(|text| text.strip_suffix('\n')?.split_once('\n'));
        let (stated, text) = lines.ok_or_else(|| damaged("is not a listing, or was cut".to_owned()))?;
        let found = checksum(text.as_bytes());
        if found != stated {
            return Err(damaged(format!("has checksum `{found}`, but says `{stated}`: it was damaged or edited")));
        }
        let frozen: FrozenListing =
            serde_json::from_str(text).map_err(|error| damaged(format!("is damaged: {error}")))?;
        let named_root = root.path().to_owned();
        let root = match braces::names(root.path())? {
            Some((folder, _)) => Folder::new(Arc::clone(root.storage()), folder),
            None => root,
        };
        let (mut shards, mut compressions) = (Vec::new(), Vec::new());
        for (below, name) in frozen.shards {
            let known = COMPRESSIONS.iter().find(|(known, _)| *known == name);
            let (_, compression) = known.ok_or_else(|| damaged(format!("names a compression `{name}`")))?;
            shards.push(below_root(&root, &below).ok_or_else(|| damaged(format!("names `{below}`")))?);
            compressions.push(*compression);
        }
        let mut entries = Vec::with_capacity(frozen.samples.len());
        for FrozenSample { key, path, bytes, version, label, place } in frozen.samples {
            let location = match place {
                Some((shard, _, _)) if shard >= shards.len() => return Err(damaged(format!("has no shard {shard}"))),
                Some((shard, record, offset)) => SampleLocation::Shard { shard, record, offset },
                None => {
                    let below = path.unwrap_or_else(|| key.clone());
                    below_root(&root, &below).ok_or_else(|| damaged(format!("names `{below}`")))?;
                    SampleLocation::File(below.into())
                }
            };
            let label = label.map(|label| match label {
                FrozenLabel::Int(number) => LabelValue::Int(number),
                FrozenLabel::Float(bits) => LabelValue::Float(f32::from_bits(bits)),
            });
            entries.push(Entry { key: key.into(), bytes, version: Version(version), label, location });
        }
        let (classes, lost) = (frozen.classes, frozen.lost);
        Self::of_parts(Parts { root, named_root, entries, shards, compressions, classes, lost }, source, reach)
    }
}

/// The full path of what lies below the data folder; nothing leads out of it.
fn below_root(root: &Folder, below: &str) -> Option<PathBuf> {
    let stays = !Path::new(below).is_absolute() && Path::new(below).components().all(|part| part.as_os_str() != "..");
    stays.then(|| root.file(below))
}

fn text_of(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::Usage {
        problem: format!(
            "the name of `{}` is not UTF-8 text, so that it cannot be written down for other machines",
            path.display()
        ),
        remedy: "rename the file, or build on one machine".to_owned(),
    })
}
