//! What stays in memory from one epoch to the next: one option, with a budget.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use forebay_plan::{CacheChoice, CacheSubject, DECODED_ENTRY_BYTES, Profile, STORED_ENTRY_BYTES, choose_cache, units};
use forebay_storage::{Storage, parse_bytes};

use super::order::Shuffle;
use crate::error::{Error, Result};
use crate::source::{Block, Source};
use crate::storage_choice::StorageChoice;

/// What stays in memory from one epoch to the next, and up to how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// Nothing, nor does the system keep what was read.
    None,
    /// What the system keeps: its page cache. Of a storage that is slowed down, a simulated one of so many bytes.
    Page {
        /// How large it is; none by default.
        bytes: Option<u64>,
    },
    /// Samples as they are stored: a fixed set, drawn once and never evicted (`MinIO`).
    MinIo {
        /// The budget of this process.
        bytes: u64,
    },
    /// Samples after as many of the steps that always give the same as let all of them fit; the first that come, never evicted.
    Decoded {
        /// The budget of this process.
        bytes: u64,
    },
    /// Samples as they are stored: others in each epoch, the same share of every batch (Liquid).
    Liquid {
        /// The buffers of all ranks together. The order of an epoch depends on it.
        bytes: u64,
    },
    /// The one of these that suits, by the rates of a profile where there is one, otherwise by sizes.
    Auto {
        /// The budget.
        bytes: u64,
    },
}

/// What the system keeps.
impl Default for CachePolicy {
    fn default() -> Self {
        Self::Page { bytes: None }
    }
}

const EXPECTED: &str = "expected `none`, `page`, or `minio`, `decoded`, `liquid` or `auto` with a budget, e.g. `liquid:4GB`; a size alone means \
                        `decoded`";

impl CachePolicy {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Page { .. } => "page",
            Self::MinIo { .. } => "minio",
            Self::Decoded { .. } => "decoded",
            Self::Liquid { .. } => "liquid",
            Self::Auto { .. } => "auto",
        }
    }

    /// Its budget, where it has one.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Page { bytes } => bytes,
            Self::MinIo { bytes } | Self::Decoded { bytes } | Self::Liquid { bytes } | Self::Auto { bytes } => {
                Some(bytes)
            }
        }
    }

    pub(super) fn liquid_bytes(self) -> Option<u64> {
        if let Self::Liquid { bytes } = self { Some(bytes) } else { None }
    }

    /// The storage that `choice` names, as this cache wants it: past the page cache, where memory is to be used for something else.
    pub fn open(self, choice: &StorageChoice) -> Result<Arc<dyn Storage>> {
        match (self, choice) {
            // Blocks are large: the disk may write them where they are wanted.
            (Self::Liquid { .. }, StorageChoice::Local | StorageChoice::Mapped) => StorageChoice::Direct.open(0),
            // Whatever is chosen, its budget is the memory that there is for samples: the page cache would take as much again.
            (Self::None | Self::MinIo { .. } | Self::Liquid { .. } | Self::Auto { .. }, _) => choice.open_uncached(),
            (Self::Page { bytes: Some(_) }, StorageChoice::Local | StorageChoice::Direct | StorageChoice::Mapped) => {
                Err(Error::Usage {
                    problem: format!(
                        "the page cache of storage `{choice}` is the system's, and has no budget of its own"
                    ),
                    remedy: "pass `page` alone, and limit the memory of the process (a cgroup)".to_owned(),
                })
            }
            (Self::Page { .. } | Self::Decoded { .. }, _) => {
                choice.open(if let Self::Page { bytes } = self { bytes.unwrap_or(0) } else { 0 })
            }
        }
    }

    /// That samples of `source` can be kept so.
    pub(super) fn check(self, source: &dyn Source, shuffle: Shuffle) -> Result<()> {
        match self {
            Self::Liquid { .. } if shuffle == Shuffle::No => Err(Error::Usage {
                problem: "a `liquid` cache requires shuffling".to_owned(),
                remedy: "shuffle, or choose the cache `minio`".to_owned(),
            }),
            Self::Decoded { .. } if source.strategies().len() > 1 => Err(Error::Usage {
                problem: format!(
                    "a `decoded` cache keeps samples at one stage, but these are kept in several formats: {}",
                    source.formats()
                ),
                remedy: "choose the cache `liquid` or `minio`".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Which cache of `bytes` suits `source`, and why: by the rates of a profile, or by sizes where there is none.
pub(super) fn chosen(
    source: &dyn Source,
    shuffle: Shuffle,
    bytes: u64,
    profile: Option<&Profile>,
) -> Result<(CachePolicy, String)> {
    let blocks = source.blocks()?;
    match profile {
        Some(profile) => by_rates(source, shuffle, bytes, &blocks, profile),
        None => Ok(by_size(source, shuffle, bytes, &blocks)),
    }
}

/// Samples as they are stored: in an order that has them come and go, or a set that stays.
fn as_stored(shuffle: Shuffle, bytes: u64) -> CachePolicy {
    if shuffle == Shuffle::No { CachePolicy::MinIo { bytes } } else { CachePolicy::Liquid { bytes } }
}

fn by_rates(
    source: &dyn Source,
    shuffle: Shuffle,
    bytes: u64,
    blocks: &[Block],
    profile: &Profile,
) -> Result<(CachePolicy, String)> {
    let (measured, loaded) = (&profile.pipeline.name, source.pipeline().name());
    if measured != loaded {
        return Err(Error::Usage {
            problem: format!("the profile is of the pipeline `{measured}`, but `{loaded}` is loaded"),
            remedy: "pass a profile of this data, or none: sizes alone decide then".to_owned(),
        });
    }
    let strategies = source.strategies();
    let mut counts = vec![0; strategies.len()];
    for block in blocks {
        counts[source.format_of(block.samples.start)] += block.len();
    }
    let samples: u64 = counts.iter().sum();
    let share = |count: u64| count as f64 / samples.max(1) as f64;
    let subject = CacheSubject {
        formats: strategies.iter().map(ToString::to_string).zip(counts.into_iter().map(share)).collect(),
        samples,
        stored_bytes: blocks.iter().map(|block| block.bytes).sum(),
        budget_bytes: bytes,
        stored_name: as_stored(shuffle, bytes).name(),
        can_keep_decoded: strategies.len() == 1 && !source.expands(),
    };
    let (choice, reason) = choose_cache(profile, &subject).map_err(|error| Error::Usage {
        problem: format!("the profile does not say which cache suits: {error}"),
        remedy: "pass a profile of this data set's own strategy, or none: sizes alone decide then".to_owned(),
    })?;
    let cache = match choice {
        CacheChoice::None => CachePolicy::None,
        CacheChoice::Stored => as_stored(shuffle, bytes),
        CacheChoice::Decoded => CachePolicy::Decoded { bytes },
    };
    Ok((cache, reason))
}

fn by_size(source: &dyn Source, shuffle: Shuffle, bytes: u64, blocks: &[Block]) -> (CachePolicy, String) {
    let stored: u64 = blocks.iter().map(|block| block.bytes).sum();
    let samples: u64 = blocks.iter().map(Block::len).sum();
    // A sample in memory takes more than its own bytes.
    let fits = |entry_bytes: u64| stored.saturating_add(samples.saturating_mul(entry_bytes)) <= bytes;
    let beside = format!(
        "{} of samples, budget {}; a profile would tell the rates",
        units::bytes(stored as f64),
        units::bytes(bytes as f64)
    );
    let one_format = source.strategies().len() == 1;
    if one_format && fits(DECODED_ENTRY_BYTES) {
        (
            CachePolicy::Decoded { bytes },
            format!("all samples fit, so that the steps done to them can be kept too ({beside})"),
        )
    } else if shuffle == Shuffle::No {
        (CachePolicy::MinIo { bytes }, format!("samples come in the same order every epoch ({beside})"))
    } else if fits(STORED_ENTRY_BYTES) {
        let why = if one_format {
            "all samples fit, but only as they are stored"
        } else {
            "samples are kept in several formats, and all fit"
        };
        (CachePolicy::Liquid { bytes }, format!("{why} ({beside})"))
    } else {
        (
            CachePolicy::Liquid { bytes },
            format!("not all samples fit, and every batch is to be read at the same rate ({beside})"),
        )
    }
}

impl FromStr for CachePolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let usage = |problem: String| Error::Usage { problem, remedy: EXPECTED.to_owned() };
        let size = |size: &str| parse_bytes(size).map_err(|error| usage(format!("`{text}` is not a cache: {error}")));
        let (name, budget) = text.split_once(':').map_or((text, None), |(name, size)| (name, Some(size)));
        let bytes = || match budget {
            Some(budget) => size(budget),
            None => Err(usage(format!("the cache `{name}` needs a budget"))),
        };
        Ok(match name {
            "none" if budget.is_none() => Self::None,
            "page" => Self::Page { bytes: budget.map(size).transpose()? },
            "minio" => Self::MinIo { bytes: bytes()? },
            "decoded" => Self::Decoded { bytes: bytes()? },
            "liquid" => Self::Liquid { bytes: bytes()? },
            "auto" => Self::Auto { bytes: bytes()? },
            _ if budget.is_none() && text.starts_with(|first: char| first.is_ascii_digit()) => match size(text)? {
                0 => Self::default(),
                bytes => Self::Decoded { bytes },
            },
            _ => return Err(usage(format!("there is no cache `{text}`"))),
        })
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "{}:{bytes}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in ["none", "page", "page:7", "minio:5", "decoded:6", "liquid:1000", "auto:9"] {
            assert_eq!(name.parse::<CachePolicy>().unwrap().to_string(), name);
        }
        assert_eq!("4GB".parse::<CachePolicy>().unwrap(), CachePolicy::Decoded { bytes: 4_000_000_000 });
        assert_eq!("0".parse::<CachePolicy>().unwrap(), CachePolicy::default());
        assert_eq!("liquid:1.5MB".parse::<CachePolicy>().unwrap(), CachePolicy::Liquid { bytes: 1_500_000 });
        for wrong in ["", "liquid", "none:5", "lru:5GB", "minio:", "liquid:much", "GB"] {
            let error = wrong.parse::<CachePolicy>().unwrap_err().to_string();
            assert!(error.contains("hint: ") && error.contains("`liquid:4GB`"), "{wrong}: {error}");
        }
        let page = CachePolicy::Page { bytes: Some(5) };
        assert!(page.open(&StorageChoice::Local).is_err());
    }
}
