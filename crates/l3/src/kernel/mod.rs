//! Which instructions the kernels use. `scalar.rs` in each folder is the definition; the others give the same bytes.

pub(crate) mod checksum;
pub(crate) mod finish;
pub(crate) mod pack;
pub(crate) mod predict;
pub(crate) mod rans;
pub(crate) mod start;
pub(crate) mod stream;

use crate::error::{Error, Result};

/// A set of instructions to decode and encode with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Plain Rust: the definition that the others are tested against.
    Scalar,
    /// x86-64 with AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL, VBMI, VBMI2, GFNI and VPCLMULQDQ (Intel from Ice Lake, AMD from Zen 4).
    Avx512,
    /// 64-bit ARM with NEON.
    Neon,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// The fastest level of this machine.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Self::Scalar)
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("gfni")
                    && is_x86_feature_detected!("vpclmulqdq")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            _ => false,
        }
    }

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }
}

/// A level that this machine was seen to have. Only [`Supported::new`] makes one, so holding it is the proof that calling the
/// functions compiled for those instructions is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Supported(Level);

impl Supported {
    /// Refuses a level that this machine lacks.
    pub(crate) fn new(level: Level) -> Result<Self> {
        if level.is_available() {
            return Ok(Self(level));
        }
        let hint = "use Level::detect() or a level for which is_available() is true";
        Err(Error::Unsupported { what: "instruction set on this machine", found: level as u64, hint })
    }

    /// The level.
    #[inline(always)]
    pub(crate) fn level(self) -> Level {
        self.0
    }
}

/// Calls the same function of the file for the level's instructions.
macro_rules! dispatch {
    ($level:expr, $function:ident $(::<$generic:ident>)? ($($argument:expr),* $(,)?)) => {
        match $level.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
            $crate::kernel::Level::Avx2 => unsafe { avx2::$function $(::<$generic>)? ($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
            $crate::kernel::Level::Avx512 => unsafe { avx512::$function $(::<$generic>)? ($($argument),*) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
            $crate::kernel::Level::Neon => unsafe { neon::$function $(::<$generic>)? ($($argument),*) },
            _ => scalar::$function $(::<$generic>)? ($($argument),*),
        }
    };
}
pub(crate) use dispatch;
