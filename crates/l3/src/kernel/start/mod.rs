//! From pixels to phases: takes the channels apart, applies the color transform and cuts the planes into phases.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::{
    header::ColorTransform,
    kernel::{Supported, dispatch},
    phases::Phases,
    sample::Sample,
};

/// Takes a row of 1 to 4 channels apart.
pub(crate) fn start_row<S: Sample>(
    level: Supported,
    transform: ColorTransform,
    row: &[u8],
    width: usize,
    planes: &mut [Phases<S>],
) {
    dispatch!(level, start::<S>(transform, row, width, planes));
}

/// The same for 8 bits, where more is done by hand.
pub(crate) fn start_row_narrow(
    level: Supported,
    transform: ColorTransform,
    row: &[u8],
    width: usize,
    planes: &mut [Phases<u8>],
) {
    match (level.level(), planes) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        (crate::kernel::Level::Avx512, [first, second, third]) => unsafe {
            avx512::start3(transform, row, width, [first, second, third]);
        },
        (_, planes) => start_row(level, transform, row, width, planes),
    }
}
