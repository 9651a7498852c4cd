//! 16-bit images to measure with: there are no real ones in the test data. `bench/l3` takes them from here, too.

use forebay_l3::{Depth, Error, Shape};

/// An image with the content of an 8-bit one: sums over neighbors, and noise in the lowest six bits.
pub(crate) fn widened(shape: Shape, pixels: &[u8]) -> Result<(Shape, Vec<u8>), Error> {
    let (row, step, last) = (shape.row_bytes(), usize::from(shape.channels()), pixels.len() - 1);
    let (mut wide, mut noise) = (Vec::new(), 1u32);
    for at in 0..pixels.len() {
        let sum: u16 = [0, step, row, row + step].iter().map(|&near| u16::from(pixels[(at + near).min(last)])).sum();
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        wide.extend_from_slice(&(sum * 64 + (noise >> 26) as u16).to_le_bytes());
    }
    Ok((Shape::new(shape.width(), shape.height(), shape.channels(), Depth::Sixteen)?, wide))
}
