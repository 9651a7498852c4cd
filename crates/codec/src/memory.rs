//! Buffers whose size depends on a file: if an allocation fails, an error says how much was requested. It never aborts.

use bytemuck::Zeroable;

use crate::error::{Error, Result};

/// Grants or refuses memory. It is called before that many more bytes are allocated for something whose size depends on a file; if it refuses, the work ends with
/// [`Error::Memory`].
pub type MemoryGate<'a> = &'a mut dyn FnMut(usize) -> bool;

/// An error unless `gate` grants that many more bytes.
pub(crate) fn ask(gate: MemoryGate<'_>, bytes: usize) -> Result<()> {
    if gate(bytes) { Ok(()) } else { Err(Error::Memory { bytes: bytes as u64 }) }
}

/// A buffer of `count` zeros.
pub fn zeroed<T: Zeroable + Clone>(count: usize) -> Result<Vec<T>> {
    let mut buffer = Vec::new();
    grow(&mut buffer, count)?;
    Ok(buffer)
}

/// Makes `buffer` at least `count` elements long; those that are new are zero. What it held may be lost: a buffer that is
/// too small is given back before a larger one is asked for, so that the two never take memory at the same time.
pub fn grow<T: Zeroable + Clone>(buffer: &mut Vec<T>, count: usize) -> Result<()> {
    if buffer.len() >= count {
        return Ok(());
    }
    if buffer.capacity() < count {
        *buffer = Vec::new();
        // The system's new pages are zero already: they are not written, and not even there, before they are used.
        *buffer = bytemuck::try_zeroed_slice_box(count).map_err(|()| refused::<T>(count))?.into_vec();
    } else {
        buffer.resize(count, T::zeroed());
    }
    Ok(())
}

/// Reserves space for `more` elements, with amortized growth.
pub fn reserve<T>(buffer: &mut Vec<T>, more: usize) -> Result<()> {
    buffer.try_reserve(more).map_err(|_| refused::<T>(buffer.len().saturating_add(more)))
}

/// A copy of `elements`.
pub fn copied<T: Clone>(elements: &[T]) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(elements.len()).map_err(|_| refused::<T>(elements.len()))?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

fn refused<T>(count: usize) -> Error {
    Error::Memory { bytes: (count as u64).saturating_mul(size_of::<T>() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_that_says_how_much() {
        let most = isize::MAX as usize / 8;
        let error = zeroed::<u64>(most).expect_err("no machine has that much");
        assert!(error.to_string().starts_with(&format!("`{}` bytes of memory", most * 8)), "{error}");
        let mut buffer = vec![1_u8; 10];
        assert!(reserve(&mut buffer, isize::MAX as usize - 20).is_err());
        assert_eq!(buffer, [1; 10]);
        assert!(grow(&mut buffer, usize::MAX).is_err());
    }

    #[test]
    fn a_buffer_grows_only_where_it_must() {
        let mut buffer = vec![7_u16; 100];
        grow(&mut buffer, 60).expect("it is long enough");
        assert_eq!(buffer, [7; 100]);
        grow(&mut buffer, 1000).expect("a small buffer");
        assert_eq!(buffer.len(), 1000);
        assert_eq!(copied(&buffer).expect("a small buffer"), buffer);
    }
}
