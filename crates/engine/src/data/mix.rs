//! The manifest of a data set in several formats: `mix.json`.
//!
//! Each format is a data set by itself, in a folder of its own below; the manifest says which samples are in which, and vouches for their manifests.

use forebay_pipeline::PipelineSpec;
use forebay_plan::Skipped;
use forebay_storage::Folder;
use serde::{Deserialize, Serialize};

use super::manifest::{MANIFEST_BYTES_MAX, MANIFEST_FILE};
use super::sealed::{Broken, checksum, seal, unseal};
use crate::error::{Error, Result};

/// The name of the manifest in the folder of a data set that is kept in several formats.
pub const MIX_FILE: &str = "mix.json";

/// So many formats can be told apart by the digits of [`MixManifest::assignment`].
pub(crate) const MIX_FORMATS_MAX: usize = 36;

/// What a data set in several formats is: `mix.json`. It is written last. The file has a key more than this, `checksum`, of all the rest of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixManifest {
    /// Always [`MixManifest::FORMAT`].
    pub format: String,
    /// The version of this layout: [`MixManifest::VERSION`].
    pub version: u32,
    /// The version of Forebay that wrote it.
    pub forebay: String,
    /// The whole pipeline.
    pub pipeline: PipelineSpec,
    /// What the data set was built from and how, as a checksum. A build with the same identity gives the same bytes.
    pub identity: String,
    /// The seed that decided which sample is in which format.
    pub seed: u64,
    /// How many samples.
    pub samples: u64,
    /// How many bytes of shards.
    pub bytes: u64,
    /// The names of the classes; a label is an index into this list.
    pub classes: Vec<String>,
    /// The formats, each a data set by itself.
    pub formats: Vec<MixEntry>,
    /// The format of each sample, in the order of the listing: a digit (0 to 9, then a to z) that is the number of a format.
    pub assignment: String,
    /// Samples of the source that could not be processed and are not in the data set.
    pub skipped_samples: Vec<Skipped>,
}

/// One format of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixEntry {
    /// The strategy's name.
    pub strategy: String,
    /// The share that was asked for, 0 to 1.
    pub share: f64,
    /// The folder of its data set, below that of the mix.
    pub folder: String,
    /// How many samples it has.
    pub samples: u64,
    /// How many bytes of shards.
    pub bytes: u64,
    /// How many shards.
    pub shards: u64,
    /// The checksum (XXH3-64, in hexadecimal) of its manifest.
    pub manifest_xxh3: String,
}

impl MixManifest {
    /// The mark of such a manifest.
    pub const FORMAT: &str = "forebay-mix";
    /// The layout that this version writes and reads.
    pub const VERSION: u32 = 1;

    /// The manifest in the folder `root`; `None` where there is none.
    pub fn read(root: &Folder) -> Result<Option<Self>> {
        let path = root.file(MIX_FILE);
        if !root.storage().is_taken(&path)? {
            return Ok(None);
        }
        let text = root.storage().read_file(&path, MANIFEST_BYTES_MAX)?;
        let format = |problem: String| Error::Format { path: path.clone(), problem };
        let manifest: Self = unseal(&text).map_err(|broken| match broken {
            Broken::Json(error) => format(format!("is not a manifest of a mix: {error}")),
            broken => format(format!(
                "{broken}\nhint: build the data set again with `--overwrite`; nothing in it may be edited"
            )),
        })?;
        if manifest.format != Self::FORMAT || manifest.version != Self::VERSION {
            return Err(format(format!(
                "has layout `{}` version {}, but this Forebay reads `{}` version {}\nhint: build the data set again, with \
                 `--overwrite`",
                manifest.format,
                manifest.version,
                Self::FORMAT,
                Self::VERSION
            )));
        }
        manifest.check().map_err(format)?;
        Ok(Some(manifest))
    }

    /// Writes it into the folder `root`, once it is sure that it can be read.
    pub(crate) fn write(&self, root: &Folder) -> Result<()> {
        self.check().map_err(|problem| Error::internal(&format!("the manifest of the mix {problem}")))?;
        Ok(root.storage().write_file(&root.file(MIX_FILE), &seal(self))?)
    }

    /// The checksum of the manifest of the data set in `folder`.
    pub(crate) fn checksum_of(folder: &Folder) -> Result<String> {
        Ok(checksum(&folder.storage().read_file(&folder.file(MANIFEST_FILE), MANIFEST_BYTES_MAX)?))
    }

    /// The formats of the samples, in the order of the listing.
    pub fn assigned(&self) -> impl Iterator<Item = usize> {
        self.assignment.chars().filter_map(|digit| digit.to_digit(MIX_FORMATS_MAX as u32)).map(|format| format as usize)
    }

    /// That the manifest agrees with itself.
    fn check(&self) -> std::result::Result<(), String> {
        let count = self.formats.len();
        if count == 0 || count > MIX_FORMATS_MAX {
            return Err(format!("names {count} formats, but must have between 1 and {MIX_FORMATS_MAX}"));
        }
        let mut counts = vec![0_u64; count];
        for digit in self.assignment.bytes() {
            let format = char::from(digit).to_digit(MIX_FORMATS_MAX as u32).map(|format| format as usize);
            match format.and_then(|format| counts.get_mut(format)) {
                Some(count) => *count += 1,
                None => {
                    return Err(format!("assigns a sample to a format `{}` that it does not have", char::from(digit)));
                }
            }
        }
        for (number, (entry, count)) in self.formats.iter().zip(counts).enumerate() {
            if entry.samples != count {
                let strategy = &entry.strategy;
                return Err(format!("says that `{strategy}` has {} samples, but assigns {count} to it", entry.samples));
            }
            if entry.folder != folder_name(number) {
                return Err(format!("names a folder `{}` that no mix has", entry.folder));
            }
        }
        let sum =
            |part: fn(&MixEntry) -> u64| self.formats.iter().try_fold(0_u64, |sum, entry| sum.checked_add(part(entry)));
        if sum(|entry| entry.samples) != Some(self.samples) || sum(|entry| entry.bytes) != Some(self.bytes) {
            return Err(format!("says {} samples in {} bytes, but its formats have others", self.samples, self.bytes));
        }
        Ok(())
    }
}

/// What the folder of format number `number` is called.
pub(crate) fn folder_name(number: usize) -> String {
    format!("format-{number:02}")
}

/// The number of the format that a folder is called after.
pub(crate) fn folder_number(name: &str) -> Option<usize> {
    let number = name.strip_prefix("format-")?.parse().ok()?;
    (folder_name(number) == name).then_some(number)
}

/// The digit of format number `number`.
pub(crate) fn digit(number: usize) -> char {
    char::from_digit(number as u32, MIX_FORMATS_MAX as u32).unwrap_or('?')
}
