//! The published format: custom Paeth and base-delta rows in patches of N×N samples.
//!
//! A strip is one row of patches. Its payload is a table of patch lengths (u16, plane after plane, left to right) and the
//! patches in the same order; the planes are the bytes of a pixel, so 16-bit samples make two. A patch row is bit-packed from the
//! least significant bit: a 4-bit width, an 8-bit base, and one delta of that width per column; it ends on a byte. The first
//! row of a patch holds the samples, the others what the prediction from the row above leaves.
//!
//! The layout that the paper's authors released has the same patches. Its encoder loses rows of width 0, 6 and 8 and whatever
//! lies beyond a multiple of N; [`encode_released`] and the decoder refuse what that layout cannot carry.

use crate::{
    error::{Error, Result, reserve, resize},
    header::{HEADER_BYTES_RELEASED, MAGIC_RELEASED},
    image::{Depth, Pixels},
    scratch::Scratch,
    strip::Job,
};

/// Bits before the deltas of a row.
const ROW_BITS: usize = 12;

/// The paper's predictor with the choices that its code makes: a neighbor of value 0 counts as absent, and of three that are
/// present the middle one is taken when the first is as near as the third.
#[inline(always)]
fn predict(top_left: u8, top: u8, top_right: u8) -> u8 {
    let (a, b, c) = (i16::from(top_left), i16::from(top), i16::from(top_right));
    let target = a + c - b;
    let (from_a, from_b, from_c) = ((target - a).abs(), (target - b).abs(), (target - c).abs());
    let without_a = if from_b <= from_c { top } else { top_right };
    let without_c = if from_a <= from_b { top_left } else { top };
    let all = if from_a <= from_b && from_a <= from_c {
        top_left
    } else if from_a <= from_c {
        top
    } else {
        top_right
    };
    if top_left == 0 {
        without_a
    } else if top_right == 0 {
        without_c
    } else {
        all
    }
}

/// The prediction for every column of a patch row; beyond the patch everything is 0.
fn predict_row(above: &[u8], out: &mut [u8]) {
    let mut around = [0u8; 257];
    around[1..=above.len()].copy_from_slice(above);
    let columns = above.len();
    let (left, right) = (&around[..columns], &around[2..columns + 2]);
    for (((out, &left), &here), &right) in out.iter_mut().zip(left).zip(above).zip(right) {
        *out = predict(left, here, right);
    }
}

/// Decodes the wanted part of a row of patches.
pub(crate) fn decode_strip(job: &Job<'_>, scratch: &mut Scratch, out: &mut [u8], stride_bytes: usize) -> Result<()> {
    let (width, patch, planes) = (job.width(), usize::from(job.header.patch), job.header.shape.pixel_bytes());
    resize(&mut scratch.patches, planes * job.rows * width)?;
    let columns = width.div_ceil(patch);
    let mut sizes = job.payload.start;
    let mut position = sizes + 2 * planes * columns;
    for (plane, samples) in scratch.patches.chunks_exact_mut(job.rows * width).enumerate() {
        if let Some(released) = &job.released {
            sizes = released.sizes[plane];
            position = released.patches[plane];
        }
        for column in 0..columns {
            let size = job.data.get(sizes..).and_then(|rest| rest.first_chunk());
            let size = usize::from(size.map_or(0, |bytes| u16::from_le_bytes(*bytes)));
            sizes += 2;
            let end = position + size;
            if end > job.payload.end {
                return Err(job.error("patch bytes", job.payload.end, end));
            }
            let left = column * patch;
            let span = (left, (width - left).min(patch), width);
            decode_patch(job, &job.data[position..end], span, samples)?;
            position = end;
        }
    }
    if job.released.is_none() && position != job.payload.end {
        return Err(job.error("bytes of a row of patches", position, job.payload.end));
    }
    interleave(job, &scratch.patches, out, stride_bytes);
    Ok(())
}

/// Decodes one patch to the columns from `left` of a plane.
fn decode_patch(
    job: &Job<'_>,
    bytes: &[u8],
    (left, columns, width): (usize, usize, usize),
    plane: &mut [u8],
) -> Result<()> {
    let mut position = 0;
    let mut above = [0u8; 255];
    let mut predicted = [0u8; 255];
    for (y, row) in plane.chunks_exact_mut(width).enumerate() {
        let row = &mut row[left..left + columns];
        let Some(&[first, second]) = bytes.get(position..).and_then(|rest| rest.first_chunk()) else {
            return Err(job.error("patch row", position + 2, bytes.len()));
        };
        let bits = usize::from(first & 15);
        if bits > 8 {
            return Err(job.error("width of a patch row", 8, bits));
        }
        if job.released.is_some() && matches!(bits, 0 | 6 | 8) {
            let hint = "the released encoder loses rows of width 0, 6 and 8: encode the original again";
            return Err(Error::Unsupported { what: "row width in the released layout", found: bits as u64, hint });
        }
        let base = first >> 4 | second << 4;
        let end = position + (ROW_BITS + columns * bits).div_ceil(8);
        let Some(packed) = bytes.get(position..end) else {
            return Err(job.error("patch row", end, bytes.len()));
        };
        unpack_deltas(packed, bits, row);
        if y > 0 {
            predict_row(&above[..columns], &mut predicted[..columns]);
        }
        for (sample, prediction) in row.iter_mut().zip(&predicted) {
            *sample = sample.wrapping_add(base).wrapping_add(*prediction);
        }
        above[..columns].copy_from_slice(row);
        position = end;
    }
    if position != bytes.len() {
        return Err(job.error("bytes of a patch", position, bytes.len()));
    }
    Ok(())
}

/// The deltas of a row, which begin after its first 12 bits.
fn unpack_deltas(packed: &[u8], bits: usize, out: &mut [u8]) {
    let mask = (1u32 << bits) - 1;
    let (mut held, mut count) = (u64::from(packed[1] >> 4), 4);
    let mut rest = packed[2..].iter();
    for value in out {
        if count < bits {
            held |= u64::from(*rest.next().unwrap_or(&0)) << count;
            count += 8;
        }
        *value = (held as u32 & mask) as u8;
        held >>= bits;
        count -= bits;
    }
}

/// Planes to pixels.
fn interleave(job: &Job<'_>, planes: &[u8], out: &mut [u8], stride_bytes: usize) {
    let (width, pixel_bytes) = (job.width(), job.header.shape.pixel_bytes());
    for y in job.wanted.clone() {
        let Some(target) = job.target(y, out, stride_bytes) else { continue };
        for (plane, samples) in planes.chunks_exact(job.rows * width).enumerate() {
            let row = &samples[y * width..][job.columns.clone()];
            for (pixel, &sample) in target.chunks_exact_mut(pixel_bytes).zip(row) {
                pixel[plane] = sample;
            }
        }
    }
}

/// Appends a row of patches to a file.
pub(crate) fn encode_strip(pixels: &Pixels<'_>, patch: usize, rows: std::ops::Range<usize>, file: &mut Vec<u8>) {
    let (width, planes) = (pixels.shape().width() as usize, pixels.shape().pixel_bytes());
    let columns = width.div_ceil(patch);
    let sizes = file.len();
    file.resize(sizes + 2 * planes * columns, 0);
    for plane in 0..planes {
        for column in 0..columns {
            let start = file.len();
            let left = column * patch;
            encode_patch(pixels, plane, left..width.min(left + patch), rows.clone(), file);
            let size = (file.len() - start) as u16;
            let entry = sizes + 2 * (plane * columns + column);
            file[entry..entry + 2].copy_from_slice(&size.to_le_bytes());
        }
    }
}

/// Appends one patch of one plane; returns which row widths occurred, as bits.
fn encode_patch(
    pixels: &Pixels<'_>,
    plane: usize,
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
    file: &mut Vec<u8>,
) -> u16 {
    let pixel_bytes = pixels.shape().pixel_bytes();
    let count = columns.len();
    let (mut above, mut predicted, mut residuals) = ([0u8; 255], [0u8; 255], [0u8; 255]);
    let mut widths = 0;
    for (index, y) in rows.enumerate() {
        if index > 0 {
            predict_row(&above[..count], &mut predicted[..count]);
        }
        let samples = pixels.row(y)[columns.start * pixel_bytes..].chunks_exact(pixel_bytes);
        for (x, sample) in samples.take(count).map(|pixel| pixel[plane]).enumerate() {
            residuals[x] = sample.wrapping_sub(predicted[x]);
            above[x] = sample;
        }
        widths |= 1 << pack_row(&residuals[..count], file);
    }
    widths
}

/// Appends one base-delta row; returns its width.
fn pack_row(residuals: &[u8], file: &mut Vec<u8>) -> usize {
    let signed = |residual: &u8| *residual as i8;
    let base = residuals.iter().map(signed).min().unwrap_or(0);
    let top = residuals.iter().map(signed).max().unwrap_or(0);
    let bits = (8 - top.wrapping_sub(base).cast_unsigned().leading_zeros()) as usize;
    let base = base.cast_unsigned();
    let (mut held, mut count) = (bits as u32 | u32::from(base) << 4, ROW_BITS);
    for residual in residuals {
        held |= u32::from(residual.wrapping_sub(base)) << count;
        count += bits;
        while count >= 8 {
            file.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    }
    while count > 0 {
        file.push(held as u8);
        held >>= 8;
        count = count.saturating_sub(8);
    }
    bits
}

/// Where the parts of the released layout are that a row of patches needs, plane by plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    /// The sizes of its patches.
    pub(crate) sizes: [usize; 3],
    /// Its first patch.
    pub(crate) patches: [usize; 3],
}

/// Writes the layout that the paper's authors released, byte for byte, for 8-bit RGB whose sides are multiples of `patch`. It
/// cannot carry rows of residuals that are constant or that spread over 32 to 63 or over 128 and more values: images with such a
/// row are refused, since a file that loses pixels helps nobody. It has no checksums.
pub fn encode_released(pixels: &Pixels<'_>, patch: u8) -> Result<Vec<u8>> {
    let shape = pixels.shape();
    let hint = "use mode classic, which carries every image";
    if shape.channels() != 3 || shape.depth() != Depth::Eight || patch == 0 {
        let found = u64::from(shape.channels());
        return Err(Error::Unsupported { what: "channels or depth in the released layout", found, hint });
    }
    let side = usize::from(patch);
    let (width, height) = (shape.width() as usize, shape.height() as usize);
    if !width.is_multiple_of(side) || !height.is_multiple_of(side) {
        let found = (width % side).max(height % side) as u64;
        return Err(Error::Unsupported { what: "pixels beyond a multiple of the patch", found, hint });
    }
    let mut file = Vec::new();
    reserve(&mut file, shape.bytes() + HEADER_BYTES_RELEASED)?;
    file.extend_from_slice(&MAGIC_RELEASED);
    file.extend_from_slice(&shape.width().to_le_bytes());
    file.extend_from_slice(&shape.height().to_le_bytes());
    file.push(patch);
    let patches = width / side * (height / side);
    file.resize(HEADER_BYTES_RELEASED + 2 * 3 * patches, 0);
    for plane in 0..3 {
        for index in 0..patches {
            let start = file.len();
            let (left, top) = (index % (width / side) * side, index / (width / side) * side);
            let widths = encode_patch(pixels, plane, left..left + side, top..top + side, &mut file);
            if let Some(bits) = [0, 6, 8].into_iter().find(|bits| widths >> bits & 1 == 1) {
                return Err(Error::Unsupported { what: "row width in the released layout", found: bits, hint });
            }
            let bytes = (file.len() - start) as u16;
            let entry = HEADER_BYTES_RELEASED + 2 * (plane * patches + index);
            file[entry..entry + 2].copy_from_slice(&bytes.to_le_bytes());
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{pack_row, predict, unpack_deltas};

    #[test]
    fn prediction_takes_the_documented_choices() {
        // (top-left, top, top-right) and the choice: nearest; absent left; absent right; and the third test as released.
        for (neighbors, expected) in
            [((10, 20, 30), 20), ((0, 20, 30), 20), ((10, 20, 0), 10), ((50, 50, 50), 50), ((200, 10, 100), 200)]
        {
            assert_eq!(predict(neighbors.0, neighbors.1, neighbors.2), expected, "{neighbors:?}");
        }
    }

    #[test]
    fn every_row_width_survives() {
        for bits in 0..=8u32 {
            let residuals: Vec<u8> = (0..64u32).map(|x| 200u8.wrapping_add((x * 37 % (1 << bits)) as u8)).collect();
            let mut file = Vec::new();
            let width = pack_row(&residuals, &mut file);
            assert_eq!(file.len(), 8 * width + 2, "a row of 64 takes 8 n + 2 bytes");
            let base = file[0] >> 4 | file[1] << 4;
            let mut deltas = [0; 64];
            unpack_deltas(&file, width, &mut deltas);
            assert!(deltas.iter().zip(&residuals).all(|(delta, &residual)| delta.wrapping_add(base) == residual));
        }
    }
}
