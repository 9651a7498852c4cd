//! The bodies of the kernels that move rows of bytes: whole pictures, upside down, or with a margin.
//!
//! The C library copies some processors' memory by one instruction, whose speed hangs on where the two lie (half of a plain loop's on Zen 3),
//! and rows are so short that calling it counts.

#[inline(always)]
pub(super) fn copy_body(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

#[inline(always)]
pub(super) fn bits_body(from: &[u8], to: &mut [u8], and: u8, xor: u8) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = (value & and) ^ xor);
}

#[inline(always)]
pub(super) fn flip_rows_body(from: &[u8], to: &mut [u8], row_bytes: usize) {
    let rows = from.chunks_exact(row_bytes).rev();
    to.chunks_exact_mut(row_bytes).zip(rows).for_each(|(to, from)| to.copy_from_slice(from));
}

#[inline(always)]
pub(super) fn pad_rows_body(from: &[u8], row_bytes: usize, to: &mut [u8], margin_bytes: usize, value: u8) {
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes + margin_bytes)) {
        let (row, margin) = to.split_at_mut(row_bytes);
        row.copy_from_slice(from);
        margin.fill(value);
    }
}

#[inline(always)]
pub(super) fn mirror_rgb_body(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes)) {
        let (from, to) = (from.as_chunks::<3>().0, to.as_chunks_mut::<3>().0);
        to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
    }
}
