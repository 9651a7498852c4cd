//! The instructions that kernels use, in this crate and in those that depend on it.
//!
//! `jpeg`, `l3` and `png`, which are published alone, have levels of their own, for the instructions that each of them needs.

/// A set of instructions that kernels are compiled for. All of them give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust: the definition that the others are tested against.
    Scalar,
    /// x86-64 with AVX2: 256 bits at a time.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VBMI as well (Intel from Ice Lake, AMD from Zen 4): 512 bits, and any byte moved to any other.
    Avx512,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// A level that this machine was seen to have. Nothing else makes one than what is here, so holding it is the proof that calling the
/// functions compiled for those instructions is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported(Level);

impl Supported {
    /// What every machine has.
    pub const SCALAR: Self = Self(Level::Scalar);

    /// The fastest level of this machine.
    pub fn detect() -> Self {
        Level::ALL.into_iter().rev().find(|level| level.is_available()).map_or(Self::SCALAR, Self)
    }

    /// Every level of this machine, slowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        Level::ALL.into_iter().filter(|level| level.is_available()).map(Self)
    }

    /// Which one it is.
    pub fn level(self) -> Level {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_the_last_of_all() {
        assert_eq!(Supported::all().next(), Some(Supported::SCALAR));
        assert_eq!(Supported::all().last(), Some(Supported::detect()));
        assert!(Supported::all().all(|supported| supported.level().is_available()));
    }
}
