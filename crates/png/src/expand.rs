//! Rows of indices, and of samples of less than a byte, to rows of bytes.

use crate::chunks::Header;

/// Writes a stored row as it is given: samples of less than 8 bits scaled to 8, indices as their colors.
pub(crate) fn expand(header: &Header, palette: Option<&[[u8; 4]; 256]>, stored: &[u8], row: &mut [u8]) {
    let bits = header.bits;
    let mask = ((1u32 << bits.min(8)) - 1) as u8;
    let sample = |index: usize| {
        let bit = index * bits;
        stored[bit / 8] >> (8 - bits - bit % 8) & mask
    };
    match palette {
        None => {
            let scale = 255 / mask;
            row.iter_mut().enumerate().for_each(|(index, byte)| *byte = sample(index) * scale);
        }
        Some(palette) if header.channels() == 4 => {
            for (index, pixel) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                *pixel = palette[usize::from(sample(index))];
            }
        }
        Some(palette) => {
            for (index, pixel) in row.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                let [red, green, blue, _] = palette[usize::from(sample(index))];
                *pixel = [red, green, blue];
            }
        }
    }
}
