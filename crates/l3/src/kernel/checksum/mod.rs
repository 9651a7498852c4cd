//! CRC-32C of a strip.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::kernel::Supported;

/// CRC-32C. The `crc32c` crate uses the processor's instruction, eight bytes at a time; wide carry-less multiplication is
/// several times as fast, which shows in the speed of `fast`.
pub(crate) fn checksum(level: Supported, bytes: &[u8]) -> u32 {
    match level.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Avx512 => unsafe { avx512::checksum(bytes) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: this machine was seen to have the instruction.
        crate::kernel::Level::Neon if std::arch::is_aarch64_feature_detected!("crc") => unsafe {
            neon::checksum(bytes)
        },
        _ => crc32c::crc32c(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::checksum;
    use crate::kernel::{Level, Supported};

    #[test]
    fn all_levels_agree_on_all_lengths() {
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert_eq!(
            checksum(Supported::new(Level::Scalar).unwrap(), b"123456789"),
            0xE306_9283,
            "the check value of CRC-32C"
        );
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let supported = Supported::new(level).unwrap();
            for length in (0..1100).chain([2047, 2048, 2049, 3000, 6143, 6144, 6145, 12_288, 20_000]) {
                assert_eq!(
                    checksum(supported, &bytes[..length]),
                    crc32c::crc32c(&bytes[..length]),
                    "{level:?} {length}"
                );
            }
        }
    }
}
