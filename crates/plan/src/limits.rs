//! Hard limits: what a strategy must not exceed, whatever it would gain.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::units;

/// What a strategy must not exceed. Sizes and times are of the entire data set, extrapolated from the samples measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Bytes on storage.
    pub max_storage_bytes: Option<u64>,
    /// Seconds to prepare once.
    pub max_prep_seconds: Option<f64>,
    /// Whether what is stored must be exactly what the pipeline computes, without lossy encodings. It does not forbid steps
    /// that the user put into the pipeline, such as resizing.
    pub lossless: bool,
}

/// One limit that a strategy misses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Miss {
    Storage { found_bytes: u64, limit_bytes: u64 },
    Prep { found_seconds: f64, limit_seconds: f64 },
    Lossy,
}

impl Limits {
    pub(crate) fn check(&self) -> Result<()> {
        match self.max_prep_seconds {
            Some(limit) if limit.is_nan() || limit < 0.0 => Err(Error::Argument {
                name: "max_prep_seconds",
                found: limit.to_string(),
                expected: "a number of seconds, 0 or more",
            }),
            _ => Ok(()),
        }
    }

    /// Every limit that a strategy misses that needs so much.
    pub(crate) fn misses(&self, storage_bytes: u64, prep_seconds: f64, lossy: bool) -> Vec<Miss> {
        let storage = self
            .max_storage_bytes
            .filter(|limit| storage_bytes > *limit)
            .map(|limit_bytes| Miss::Storage { found_bytes: storage_bytes, limit_bytes });
        let prep = self
            .max_prep_seconds
            .filter(|limit| prep_seconds > *limit)
            .map(|limit_seconds| Miss::Prep { found_seconds: prep_seconds, limit_seconds });
        let lossy = (self.lossless && lossy).then_some(Miss::Lossy);
        [storage, prep, lossy].into_iter().flatten().collect()
    }
}

impl Miss {
    /// By how much it misses, in words.
    pub(crate) fn sentence(&self) -> String {
        match *self {
            Self::Storage { found_bytes, limit_bytes } => format!(
                "needs {} of storage, {} over the limit of {}",
                units::bytes(found_bytes as f64),
                units::bytes((found_bytes - limit_bytes) as f64),
                units::bytes(limit_bytes as f64),
            ),
            Self::Prep { found_seconds, limit_seconds } => format!(
                "takes {} to prepare, {} over the limit of {}",
                units::seconds(found_seconds),
                units::seconds(found_seconds - limit_seconds),
                units::seconds(limit_seconds),
            ),
            Self::Lossy => "is lossy, and only lossless strategies are allowed".to_owned(),
        }
    }

    /// What would have to be allowed, exactly: rounded figures would miss again.
    fn remedy(&self) -> String {
        match *self {
            Self::Storage { found_bytes, .. } => format!("allow `{found_bytes}` bytes of storage"),
            Self::Prep { found_seconds, .. } => format!("allow `{:.0}` seconds of preparation", found_seconds.ceil()),
            Self::Lossy => "allow lossy strategies".to_owned(),
        }
    }

    /// How many times the limit is needed.
    fn factor(&self) -> f64 {
        match *self {
            Self::Storage { found_bytes, limit_bytes } => found_bytes as f64 / limit_bytes as f64,
            Self::Prep { found_seconds, limit_seconds } => found_seconds / limit_seconds,
            Self::Lossy => f64::INFINITY,
        }
    }
}

/// The misses of one strategy as one line.
pub(crate) fn exclusion(misses: &[Miss]) -> Option<String> {
    (!misses.is_empty()).then(|| misses.iter().map(Miss::sentence).collect::<Vec<_>>().join("; "))
}

/// The error for when every strategy misses a limit. The hint names the one whose worst miss is the smallest.
pub(crate) fn none_left(missed: &[(&str, Vec<Miss>)]) -> Error {
    let worst = |misses: &[Miss]| misses.iter().map(Miss::factor).fold(0.0, f64::max);
    let nearest = missed.iter().min_by(|(_, one), (_, other)| worst(one).total_cmp(&worst(other)));
    let hint = nearest.map_or_else(
        || "the profile has no strategy".to_owned(),
        |(name, misses)| {
            let remedies = misses.iter().map(Miss::remedy).collect::<Vec<_>>().join(" and ");
            format!("`{name}` comes nearest: {remedies}")
        },
    );
    let excluded =
        missed.iter().map(|(name, misses)| ((*name).to_owned(), exclusion(misses).unwrap_or_default())).collect();
    Error::NoneLeft { excluded, hint }
}
