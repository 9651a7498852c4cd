//! Samples that were left out, as profiles, manifests and loaders list them.

use serde::{Deserialize, Serialize};

/// A sample that was left out, or an extent of a shard with some, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its key, or the shard's.
    pub key: String,
    /// Why.
    pub reason: String,
    /// How many samples: one, or those of an extent; `None` where nobody knows how many that was to hold, and none where it
    /// could be read in another way.
    pub samples: Option<u64>,
}

impl Skipped {
    /// One sample.
    pub fn one(key: impl Into<String>, reason: &impl ToString) -> Self {
        Self { key: key.into(), reason: reason.to_string(), samples: Some(1) }
    }

    /// The number of samples that were skipped; an extent with an unknown number of samples counts as one.
    pub fn count(list: &[Self]) -> u64 {
        list.iter().map(|skipped| skipped.samples.unwrap_or(1)).fold(0, u64::saturating_add)
    }
}
