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

/// What red, green and blue count in a pixel's gray, of 2¹⁵: torchvision's 0.2989, 0.587 and 0.114. Of all colors, one in 700 has
/// another level than by those, and by one.
pub(super) const GRAY_WEIGHTS: [i16; 3] = [9794, 19_235, 3736];

/// The bits of such a weight.
pub(super) const GRAY_BITS: u32 = 15;

/// The gray level of a pixel.
#[inline(always)]
pub(crate) fn gray_level([r, g, b]: [u8; 3]) -> u8 {
    let [red, green, blue] = GRAY_WEIGHTS;
    let sum = i32::from(r) * i32::from(red) + i32::from(g) * i32::from(green) + i32::from(b) * i32::from(blue);
    (sum >> GRAY_BITS) as u8
}

/// Clamped, and cut off. What is no number becomes 0.
#[inline(always)]
pub(super) fn truncated(value: f32) -> u8 {
    // Spelled so that each comparison is one instruction of a vector, and so is the conversion.
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < 255.0 { value } else { 255.0 };
    // SAFETY: from 0 to 255, so that it has a whole number.
    unsafe { value.to_int_unchecked::<i32>() as u8 }
}

/// Numbers of this size have no fraction: what is added to it is rounded, to even where it is between two.
pub(super) const WHOLE: f32 = 12_582_912.0;

/// The largest whole number that is not above: without SSE4.1 the function of that name is a call.
#[inline(always)]
pub(super) fn floor(value: f32) -> f32 {
    let near = (value + WHOLE) - WHOLE;
    if near > value { near - 1.0 } else { near }
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
pub(super) fn look_up_body(from: &[u8], to: &mut [u8], table: &[u8; 256]) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = table[usize::from(value)]);
}

#[inline(always)]
pub(super) fn look_up_channels_body(from: &[u8], to: &mut [u8], tables: &[[u8; 256]; 3]) {
    let [red, green, blue] = tables;
    for (to, &[r, g, b]) in to.as_chunks_mut::<3>().0.iter_mut().zip(from.as_chunks::<3>().0) {
        *to = [red[usize::from(r)], green[usize::from(g)], blue[usize::from(b)]];
    }
}

#[inline(always)]
pub(super) fn mix_body(from: &[u8], weight: f32, to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to += f32::from(value) * weight);
}

#[inline(always)]
pub(super) fn add_pairs_body(before: &[f32], after: &[f32], weight: f32, to: &mut [f32]) {
    to.iter_mut().zip(before).zip(after).for_each(|((to, before), after)| *to += (before + after) * weight);
}

#[inline(always)]
pub(super) fn cut_off_body(from: &[f32], to: &mut [u8]) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = truncated(value));
}

/// So many pixels are taken apart and put together at once: what lies between stays in the nearest cache.
const PLANE: usize = 512;

/// The channels of some pixels, each by itself, as vectors want them.
type Planes = [[u8; PLANE]; 3];

/// Takes the channels of pixels apart.
#[inline(always)]
fn split(from: &[u8], planes: &mut Planes) {
    let (pixels, _) = from.as_chunks::<3>();
    let [red, green, blue] = planes;
    for (((pixel, red), green), blue) in pixels.iter().zip(red).zip(green).zip(blue) {
        [*red, *green, *blue] = *pixel;
    }
}

/// Puts them together.
#[inline(always)]
fn join([red, green, blue]: [&[u8; PLANE]; 3], to: &mut [u8]) {
    let (pixels, _) = to.as_chunks_mut::<3>();
    for (((pixel, red), green), blue) in pixels.iter_mut().zip(red).zip(green).zip(blue) {
        *pixel = [*red, *green, *blue];
    }
}

#[inline(always)]
pub(super) fn gray_sum_body(from: &[u8], sum: &mut u64) {
    let mut planes = [[0; PLANE]; 3];
    for from in from.chunks(3 * PLANE) {
        split(from, &mut planes);
        let [red, green, blue] = planes.each_ref().map(|plane| &plane[..from.len() / 3]);
        let levels = red.iter().zip(green).zip(blue);
        *sum += u64::from(levels.map(|((&r, &g), &b)| u32::from(gray_level([r, g, b]))).sum::<u32>());
    }
}

#[inline(always)]
pub(super) fn gray_body(from: &[u8], to: &mut [u8]) {
    let (mut planes, mut made) = ([[0; PLANE]; 3], [0; PLANE]);
    for (from, to) in from.chunks(3 * PLANE).zip(to.chunks_mut(3 * PLANE)) {
        split(from, &mut planes);
        let [red, green, blue] = planes.each_ref().map(|plane| &plane[..from.len() / 3]);
        for (((made, &r), &g), &b) in made.iter_mut().zip(red).zip(green).zip(blue) {
            *made = gray_level([r, g, b]);
        }
        join([&made; 3], to);
    }
}

/// Makes pixels of pixels.
#[inline(always)]
fn by_pixels(from: &[u8], to: &mut [u8], compute: impl Fn([u8; 3]) -> [u8; 3]) {
    let mut planes = [[0; PLANE]; 3];
    for (from, to) in from.chunks(3 * PLANE).zip(to.chunks_mut(3 * PLANE)) {
        split(from, &mut planes);
        let [red, green, blue] = planes.each_mut().map(|plane| &mut plane[..from.len() / 3]);
        for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
            [*r, *g, *b] = compute([*r, *g, *b]);
        }
        join(planes.each_ref(), to);
    }
}

/// Bits of a level's fraction where saturation is computed in 16 bit: a level has eight more, and one is the sign.
pub(super) const SATURATION_BITS: u32 = 7;

/// What is added to a channel, in 2⁻¹⁵ of its distance from the gray, for the factors that recipes have. `None` for others.
#[inline(always)]
pub(super) fn saturation_share(factor: f32) -> Option<i16> {
    let share = ((factor - 1.0) * 32_768.0).round_ties_even().min(32_767.0) as i16;
    (0.0..2.0).contains(&factor).then_some(share)
}

#[inline(always)]
pub(super) fn saturate_body(from: &[u8], to: &mut [u8], factor: f32) {
    let Some(share) = saturation_share(factor) else {
        return by_pixels(from, to, |pixel| {
            let gray = f32::from(gray_level(pixel)) * (1.0 - factor);
            pixel.map(|value| truncated(f32::from(value) * factor + gray))
        });
    };
    by_pixels(from, to, |pixel| {
        let gray = i32::from(gray_level(pixel)) << SATURATION_BITS;
        pixel.map(|value| {
            let value = i32::from(value) << SATURATION_BITS;
            // As one instruction rounds a product of 16 bit.
            let more = ((value - gray) * i32::from(share) + (1 << 14)) >> 15;
            ((value + more) >> SATURATION_BITS).clamp(0, 255) as u8
        })
    });
}

/// Brings a color of 0 to 1 back to bytes, as torchvision does, from one of 0 to 255.
pub(super) const TO_BYTE: f32 = 255.999 / 255.0;

#[inline(always)]
pub(super) fn turn_hue_body(from: &[u8], to: &mut [u8], turn: f32) {
    let turn = turn * 6.0;
    by_pixels(from, to, |pixel| {
        let [red, green, blue] = pixel;
        let (high, low) = (f32::from(red.max(green).max(blue)), f32::from(red.min(green).min(blue)));
        let [r, g, b] = pixel.map(f32::from);
        let range = high - low;
        let scale = 1.0 / if range > 1.0 { range } else { 1.0 };
        // In sixths of a turn: before it is turned, from −1 to 5.
        let (away, begin) = if high <= g { (b - r, turn + 2.0) } else { (r - g, turn + 4.0) };
        let (away, begin) = if high <= r { (g - b, turn) } else { (away, begin) };
        let hue = away * scale + begin;
        let hue = hue - floor(hue * (1.0 / 6.0)) * 6.0;
        let (low, range) = (low * TO_BYTE, range * TO_BYTE);
        // How far a channel is from the lowest: a trapezoid over the hue.
        let channel = |share: f32| {
            let share = if share > 0.0 { share } else { 0.0 };
            let share = if share < 1.0 { share } else { 1.0 };
            truncated(low + range * share)
        };
        [channel((hue - 3.0).abs() - 1.0), channel(2.0 - (hue - 2.0).abs()), channel(2.0 - (hue - 4.0).abs())]
    });
}

/// A table of two bytes for each value.
pub(super) type Pairs = [[u8; 2]; 256];

#[inline(always)]
pub(super) fn look_up_pairs_body(from: &[u8], to: &mut [u8], table: &Pairs) {
    let (to, _) = to.as_chunks_mut::<2>();
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = table[usize::from(value)]);
}

#[inline(always)]
pub(super) fn floats_body(from: &[u8], to: &mut [f32], factor: f32) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = f32::from(value) * factor);
}

#[inline(always)]
pub(super) fn permute_body(from: &[u8], to: &mut [u8], order: [u8; 3]) {
    // With constants the compiler makes shuffles of it.
    match order {
        [0, 2, 1] => permuted::<0, 2, 1>(from, to),
        [1, 0, 2] => permuted::<1, 0, 2>(from, to),
        [1, 2, 0] => permuted::<1, 2, 0>(from, to),
        [2, 0, 1] => permuted::<2, 0, 1>(from, to),
        [2, 1, 0] => permuted::<2, 1, 0>(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[inline(always)]
fn permuted<const R: usize, const G: usize, const B: usize>(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.as_chunks_mut::<3>().0.iter_mut().zip(from.as_chunks::<3>().0) {
        *to = [from[R], from[G], from[B]];
    }
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
