//! Which instructions the decoder uses.

use crate::error::{Error, Result};

/// A set of instructions to decode with. All of them give the same pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust: the definition that the others are tested against.
    Scalar,
    /// x86-64 with SSE4.1 and SSSE3: four rows at a time.
    Sse41,
    /// x86-64 with AVX2, BMI1 and BMI2: eight rows at a time.
    Avx2,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Sse41, Self::Avx2];

    /// The fastest level of this machine.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Self::Scalar)
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                Self::Sse41.is_available()
                    && is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse41 => "sse4.1",
            Self::Avx2 => "avx2",
        }
    }
}

/// A level that this machine was seen to have. Only [`Supported::new`] and [`Supported::detect`] make one, so holding it is the proof
/// that calling the functions compiled for those instructions is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Supported(Level);

impl Supported {
    /// Refuses a level that this machine lacks.
    pub(crate) fn new(level: Level) -> Result<Self> {
        if level.is_available() {
            return Ok(Self(level));
        }
        let fastest = Level::detect() as u64;
        Err(Error::Usage { problem: "this machine lacks the level", expected: fastest, found: level as u64 })
    }

    /// The fastest level of this machine.
    pub(crate) fn detect() -> Self {
        Self(Level::detect())
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}
