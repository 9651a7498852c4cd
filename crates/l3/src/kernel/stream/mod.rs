//! Copies that go past the cache, for pixels that nobody reads soon.
//!
//! An ordinary store to memory that is not in the cache reads a whole line before it changes it, and writes it back later: twice the
//! traffic, and other lines lose their place. A non-temporal store of a whole line does neither.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
use crate::kernel::Level;
use crate::kernel::Supported;

/// The processor writes whole lines of so many bytes.
const LINE_BYTES: usize = 64;

/// Copies past the cache, as long as it lives. Whoever is told of the copies after that sees them.
pub(crate) struct Stream {
    level: Supported,
}

impl Stream {
    pub(crate) fn new(level: Supported) -> Self {
        Self { level }
    }

    /// The instructions that this uses.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn level(&self) -> Level {
        self.level.level()
    }

    /// Whether `to` consists of whole lines.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_whole_lines(to: &[u8]) -> bool {
        to.as_ptr().align_offset(LINE_BYTES) == 0 && to.len().is_multiple_of(LINE_BYTES)
    }

    /// Copies `from` to `to`, which is as long. Lines that are not whole go through the cache.
    pub(crate) fn copy(&self, from: &[u8], to: &mut [u8]) {
        let skipped = to.as_ptr().align_offset(LINE_BYTES).min(to.len());
        let (to_head, to) = to.split_at_mut(skipped);
        let (from_head, from) = from.split_at(skipped);
        let (to, to_tail) = to.as_chunks_mut::<LINE_BYTES>();
        let (from, from_tail) = from.as_chunks::<LINE_BYTES>();
        to_head.copy_from_slice(from_head);
        to_tail.copy_from_slice(from_tail);
        match self.level.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` is made only for instructions that this machine was seen to have. The lines are aligned.
            Level::Avx2 => unsafe { avx2::copy(from, to) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx512 => unsafe { avx512::copy(from, to) },
            _ => to.copy_from_slice(from),
        }
    }
}

/// Such stores are ordered with no others but by a fence: what a lock publishes later could otherwise be seen before them.
impl Drop for Stream {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx2 | Level::Avx512 = self.level.level() {
            // SAFETY: every x86-64 processor has SSE.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES, Stream};
    use crate::kernel::{Level, Supported};

    #[test]
    fn every_byte_is_copied_and_no_other() {
        let from: Vec<u8> = (0..1000_u32).map(|index| (index % 251) as u8).collect();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            for start in 0..=LINE_BYTES {
                for length in [0, 1, 63, 64, 65, 127, 128, 200, 700] {
                    let mut to = vec![255; 1000];
                    Stream::new(Supported::new(level).unwrap())
                        .copy(&from[7..7 + length], &mut to[start..start + length]);
                    let rest = to[..start].iter().chain(&to[start + length..]);
                    assert!(rest.copied().all(|byte| byte == 255), "{level:?}: {length} bytes at {start}");
                    assert_eq!(to[start..start + length], from[7..7 + length], "{level:?}: {length} bytes at {start}");
                }
            }
        }
    }
}
