//! The bodies of the kernels that change the colors of 8-bit pictures: what torchvision's functions compute, in its order.

/// value · factor + offset, clamped and cut off.
#[inline(always)]
pub(crate) fn scaled(value: u8, factor: f32, offset: f32) -> u8 {
    truncated(f32::from(value) * factor + offset)
}

/// Inverted, if it is at least `threshold`.
#[inline(always)]
pub(crate) fn solarized(value: u8, threshold: f32) -> u8 {
    if f32::from(value) >= threshold { !value } else { value }
}

/// The gray level of a pixel, before it is cut off.
#[inline(always)]
fn gray([r, g, b]: [u8; 3]) -> f32 {
    f32::from(r) * 0.2989 + f32::from(g) * 0.587 + f32::from(b) * 0.114
}

/// The gray level of a pixel.
#[inline(always)]
pub(crate) fn gray_level(pixel: [u8; 3]) -> u8 {
    truncated(gray(pixel))
}

/// Numbers of this size have no fraction: what is added to it is rounded.
const WHOLE: f32 = 12_582_912.0;

/// Nearly a half: taken away before rounding, it cuts off, and leaves whole numbers as they are.
const NEARLY_HALF: f32 = 0.499_99;

/// Clamped, and cut off by an addition: a conversion that minds numbers out of range is many instructions of a vector.
#[inline(always)]
fn truncated(value: f32) -> u8 {
    (value.clamp(0.0, 255.0) - NEARLY_HALF + WHOLE).to_bits() as u8
}

#[inline(always)]
pub(super) fn scale_body(from: &[u8], to: &mut [u8], factor: f32, offset: f32) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = scaled(value, factor, offset));
}

#[inline(always)]
pub(super) fn solarize_body(from: &[u8], to: &mut [u8], threshold: f32) {
    // Among bytes the first that is inverted decides; none is, if there is no such byte.
    let first = threshold.ceil().max(0.0) as u32;
    let (first, flip) = if first > 255 { (255, 0) } else { (first as u8, 0xFF) };
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = if value >= first { value ^ flip } else { value });
}

#[inline(always)]
pub(super) fn gray_sum_body(from: &[u8], sum: &mut u64) {
    // So many pixels at once that a block's sum stays below 2³².
    for block in from.chunks(3 << 16) {
        let levels = block.as_chunks::<3>().0.iter().map(|pixel| u32::from(gray_level(*pixel)));
        *sum += u64::from(levels.sum::<u32>());
    }
}

/// So many pixels are taken apart, computed and put together at once.
const BLOCK: usize = 32;

/// Computes on the channels of whole blocks, which vectors can hold, and on what is left.
#[inline(always)]
fn by_blocks(from: &[u8], to: &mut [u8], compute: impl Fn([f32; 3]) -> [u8; 3]) {
    let (from, _) = from.as_chunks::<3>();
    let (to, _) = to.as_chunks_mut::<3>();
    let (from_blocks, from_rest) = from.as_chunks::<BLOCK>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<BLOCK>();
    for (from, to) in from_blocks.iter().zip(to_blocks) {
        let mut channels = [[0_f32; BLOCK]; 3];
        for (channel, values) in channels.iter_mut().enumerate() {
            values.iter_mut().zip(from).for_each(|(to, pixel)| *to = f32::from(pixel[channel]));
        }
        let mut made = [[0_u8; BLOCK]; 3];
        for place in 0..BLOCK {
            let [r, g, b] = compute([channels[0][place], channels[1][place], channels[2][place]]);
            (made[0][place], made[1][place], made[2][place]) = (r, g, b);
        }
        for (place, to) in to.iter_mut().enumerate() {
            *to = [made[0][place], made[1][place], made[2][place]];
        }
    }
    for (from, to) in from_rest.iter().zip(to_rest) {
        *to = compute(from.map(f32::from));
    }
}

#[inline(always)]
pub(super) fn saturate_body(from: &[u8], to: &mut [u8], factor: f32) {
    by_blocks(from, to, |[r, g, b]| {
        let gray = (r * 0.2989 + g * 0.587 + b * 0.114 - NEARLY_HALF + WHOLE) - WHOLE;
        let gray = gray * (1.0 - factor);
        [r, g, b].map(|value| truncated(value * factor + gray))
    });
}

#[inline(always)]
pub(super) fn turn_hue_body(from: &[u8], to: &mut [u8], turn: f32) {
    let turn = turn * 6.0;
    by_blocks(from, to, |[r, g, b]| {
        let high = r.max(g).max(b);
        let low = r.min(g).min(b);
        let range = high - low;
        let scale = 1.0 / if range > 0.0 { range } else { 1.0 };
        // In sixths of a turn, from −1 to 5.
        let of_blue = (r - g) * scale + 4.0;
        let of_green = (b - r) * scale + 2.0;
        let of_red = (g - b) * scale;
        let hue = if high <= g { of_green } else { of_blue };
        let hue = if high <= r { of_red } else { hue };
        let hue = hue + turn;
        // How far a channel is from the highest: a trapezoid over the hue.
        let channel = |shift: f32| {
            let place = hue + shift;
            let place = place - (place * (1.0 / 6.0)).floor() * 6.0;
            let value = high - range * place.min(4.0 - place).clamp(0.0, 1.0);
            truncated(value * (255.999 / 255.0))
        };
        [channel(5.0), channel(3.0), channel(1.0)]
    });
}

#[inline(always)]
pub(super) fn sharpen_row_body(rows: [&[u8]; 3], to: &mut [u8], channels: usize, factor: f32) {
    let [above, row, below] = rows;
    let length = row.len();
    to[..channels].copy_from_slice(&row[..channels]);
    to[length - channels..].copy_from_slice(&row[length - channels..]);
    let inner = length - 2 * channels;
    let [a0, a1, a2] = [0, channels, 2 * channels].map(|shift| &above[shift..][..inner]);
    let [r0, r1, r2] = [0, channels, 2 * channels].map(|shift| &row[shift..][..inner]);
    let [b0, b1, b2] = [0, channels, 2 * channels].map(|shift| &below[shift..][..inner]);
    let to = &mut to[channels..][..inner];
    for place in 0..inner {
        let wide = |value: u8| u32::from(value);
        let around = wide(a0[place]) + wide(a1[place]) + wide(a2[place]) + wide(r0[place]) + wide(r2[place]);
        let sum = around + wide(b0[place]) + wide(b1[place]) + wide(b2[place]) + 5 * wide(r1[place]);
        // A thirteenth, rounded: exact for every sum up to 13 · 255.
        let blurred = (sum * 80_660 + (1 << 19)) >> 20;
        let value = f32::from(r1[place]);
        to[place] = truncated(value + (blurred as f32 - value) * (1.0 - factor));
    }
}

/// So many sums are held in registers at once.
const SUMS: usize = 32;

#[inline(always)]
pub(super) fn weigh_row_body(from: &[f32], channels: usize, weights: &[f32], to: &mut [f32]) {
    let (blocks, rest) = to.as_chunks_mut::<SUMS>();
    let done = blocks.len() * SUMS;
    for (block, to) in blocks.iter_mut().enumerate() {
        let mut sums = [0_f32; SUMS];
        for (place, &weight) in weights.iter().enumerate() {
            let from = &from[block * SUMS + place * channels..][..SUMS];
            sums.iter_mut().zip(from).for_each(|(sum, value)| *sum += value * weight);
        }
        *to = sums;
    }
    for (index, to) in rest.iter_mut().enumerate() {
        let values = weights.iter().enumerate();
        *to = values.fold(0.0, |sum, (place, weight)| sum + from[done + index + place * channels] * weight);
    }
}

#[inline(always)]
pub(super) fn weigh_rows_body(from: &[f32], row: &dyn Fn(usize) -> usize, weights: &[f32], to: &mut [u8]) {
    // Sums are at least 0, so that adding a half and cutting off rounds; ties, which round otherwise, do not matter.
    let rounded = |sum: f32| truncated(sum + 0.5);
    let (blocks, rest) = to.as_chunks_mut::<SUMS>();
    let done = blocks.len() * SUMS;
    for (block, to) in blocks.iter_mut().enumerate() {
        let mut sums = [0_f32; SUMS];
        for (place, &weight) in weights.iter().enumerate() {
            let from = &from[row(place) + block * SUMS..][..SUMS];
            sums.iter_mut().zip(from).for_each(|(sum, value)| *sum += value * weight);
        }
        to.iter_mut().zip(sums).for_each(|(to, sum)| *to = rounded(sum));
    }
    for (index, to) in rest.iter_mut().enumerate() {
        let values = weights.iter().enumerate();
        *to = rounded(values.fold(0.0, |sum, (place, weight)| sum + from[row(place) + done + index] * weight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thirteenth_is_exact() {
        for sum in 0..=13 * 255_u32 {
            assert_eq!((sum * 80_660 + (1 << 19)) >> 20, (2 * sum + 13) / 26);
        }
    }

    #[test]
    fn solarizing_is_the_same_by_either_way() {
        let values: Vec<u8> = (0..=255).collect();
        for threshold in [0.0, 0.5, 1.0, 127.3, 128.0, 254.9, 255.0, 255.5, 256.0] {
            let mut made = vec![0; 256];
            solarize_body(&values, &mut made, threshold);
            assert!(made.iter().zip(&values).all(|(made, value)| *made == solarized(*value, threshold)), "{threshold}");
        }
    }
}
