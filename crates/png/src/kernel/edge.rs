//! How pixels come into vectors of 16 bytes and out again, also where a row begins or ends within one.
//!
//! A pixel takes 4 bytes of a vector, or 8 if it is wider than 4.

/// The bytes of a vector that a pixel of that many bytes takes.
const fn slot(pixel_bytes: usize) -> usize {
    if pixel_bytes > 4 { 8 } else { 4 }
}

/// 16 bytes of a row from `at` on, if the row has all of them.
#[inline(always)]
pub(super) fn sixteen(row: &[u8], at: isize) -> Option<&[u8; 16]> {
    row.get(usize::try_from(at).ok()?..)?.first_chunk()
}

/// 16 bytes, with zeros for those beyond the row.
#[cold]
#[inline(never)]
pub(super) fn sixteen_at_edge(row: &[u8], at: isize) -> [u8; 16] {
    let mut bytes = [0; 16];
    if at <= -16 {
        return bytes;
    }
    for (byte, position) in bytes.iter_mut().zip(at..) {
        *byte = usize::try_from(position).ok().and_then(|position| row.get(position)).copied().unwrap_or(0);
    }
    bytes
}

/// Writes the packed pixels of a vector to a row from `at` on, as far as they are within it.
#[inline(always)]
pub(super) fn put<const PIXEL_BYTES: usize>(row: &mut [u8], at: isize, bytes: &[u8; 16]) {
    let bytes = &bytes[..16 / slot(PIXEL_BYTES) * PIXEL_BYTES];
    if let Ok(start) = usize::try_from(at)
        && let Some(target) = row.get_mut(start..start + bytes.len())
    {
        target.copy_from_slice(bytes);
    } else {
        put_at_edge(row, at, bytes);
    }
}

#[cold]
#[inline(never)]
fn put_at_edge(row: &mut [u8], at: isize, bytes: &[u8]) {
    if at <= -16 || at >= row.len() as isize {
        return;
    }
    for (&byte, position) in bytes.iter().zip(at..) {
        if let Some(target) = usize::try_from(position).ok().and_then(|position| row.get_mut(position)) {
            *target = byte;
        }
    }
}

/// Indices that spread packed pixels over a vector; what no pixel takes becomes zero.
pub(super) const fn spreading(pixel_bytes: usize) -> [u8; 16] {
    let mut indices = [0x80; 16];
    let mut at = 0;
    while at < 16 {
        if at % slot(pixel_bytes) < pixel_bytes {
            indices[at] = (at / slot(pixel_bytes) * pixel_bytes + at % slot(pixel_bytes)) as u8;
        }
        at += 1;
    }
    indices
}

/// Indices that undo [`spreading`].
pub(super) const fn gathering(pixel_bytes: usize) -> [u8; 16] {
    let mut indices = [0x80; 16];
    let mut at = 0;
    while at < 16 / slot(pixel_bytes) * pixel_bytes {
        indices[at] = (at / pixel_bytes * slot(pixel_bytes) + at % pixel_bytes) as u8;
        at += 1;
    }
    indices
}
