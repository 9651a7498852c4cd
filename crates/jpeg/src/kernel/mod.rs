//! The kernels, which work on rows and blocks. `scalar.rs` in each folder is the definition; the others give the same
//! bytes.

pub(crate) mod color;
pub(crate) mod idct;
pub(crate) mod upsample;

/// Calls the same function of the file for the level's instructions.
macro_rules! dispatch {
    ($level:expr, $function:ident ($($argument:expr),* $(,)?)) => {
        match $level.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` level is one that this machine was seen to have.
            $crate::level::Level::Avx2 => unsafe { avx2::$function($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` level is one that this machine was seen to have.
            $crate::level::Level::Avx512 => unsafe { avx512::$function($($argument),*) },
            _ => scalar::$function($($argument),*),
        }
    };
}
pub(crate) use dispatch;
