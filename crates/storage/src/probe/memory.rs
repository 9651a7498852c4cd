//! How fast memory can be copied.

use std::hint::black_box;
use std::time::Instant;

use crate::{Error, Result};

/// Copies a buffer of `buffer_bytes` to another, `repeats` times, and returns the bytes copied per second of the fastest
/// repeat. Each byte copied is one read and one written.
///
/// To measure memory rather than a processor cache, take a buffer several times the size of the last cache level. It needs
/// twice that much memory.
pub fn memory_bandwidth(buffer_bytes: usize, repeats: u32) -> Result<f64> {
    for (name, is_zero) in [("buffer_bytes", buffer_bytes == 0), ("repeats", repeats == 0)] {
        if is_zero {
            return Err(Error::Argument { name, found: "0".to_owned(), expected: "at least 1" });
        }
    }
    // Non-zero bytes, so that each page of the source really exists and is not the system's one page of zeros.
    let source = filled(buffer_bytes, 1)?;
    let mut target = filled(buffer_bytes, 2)?;
    let mut fastest_seconds = f64::INFINITY;
    for _ in 0..repeats {
        let started = Instant::now();
        target.copy_from_slice(black_box(&source));
        // Without this the compiler could leave out a copy that nobody looks at.
        black_box(&mut target);
        fastest_seconds = fastest_seconds.min(started.elapsed().as_secs_f64());
    }
    // A clock that did not move during a tiny copy must not make the rate infinite.
    Ok(buffer_bytes as f64 / fastest_seconds.max(1e-9))
}

fn filled(bytes: usize, value: u8) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| Error::Memory { bytes })?;
    buffer.resize(bytes, value);
    Ok(buffer)
}
