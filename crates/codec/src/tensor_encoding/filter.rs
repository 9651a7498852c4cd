//! What makes the bytes of a tensor more alike before they are compressed: byte shuffle and delta.

use super::bits::{Bits, by_width};
use crate::error::Result;
use crate::memory;
use crate::tensor::Shape;

/// A tensor with at most this many elements in its last dimension has interleaved channels: stereo audio, voltage and current, a color.
const CHANNELS_MAX: usize = 4;

/// How many elements back the one is that an element most likely resembles: the last one of the same channel.
pub(super) fn distance_of(shape: &Shape) -> usize {
    match *shape.dims() {
        [_, .., channels @ 2..=CHANNELS_MAX] => channels,
        _ => 1,
    }
}

/// Each element minus the one `distance` before it, as unsigned integers that wrap around; the first ones stay.
pub(super) fn delta(data: &[u8], width: usize, distance: usize) -> Result<Vec<u8>> {
    let mut out = memory::copied(data)?;
    by_width!(width, delta_bits(data, &mut out, distance));
    Ok(out)
}

fn delta_bits<T: Bits>(data: &[u8], out: &mut [u8], distance: usize) {
    let Some(later) = out.get_mut(distance.saturating_mul(T::BYTES)..) else { return };
    let pairs = data.chunks_exact(T::BYTES).zip(data.chunks_exact(T::BYTES).skip(distance));
    for (to, (before, element)) in later.chunks_exact_mut(T::BYTES).zip(pairs) {
        T::read(element).minus(T::read(before)).write(to);
    }
}

/// Undoes [`delta`] in byte.
pub(super) fn undelta(data: &mut [u8], width: usize, distance: usize) {
    by_width!(width, undelta_bits(data, distance));
}

fn undelta_bits<T: Bits>(data: &mut [u8], distance: usize) {
    if distance == 1 {
        let mut sum = T::ZERO;
        for element in data.chunks_exact_mut(T::BYTES) {
            sum = sum.plus(T::read(element));
            sum.write(element);
        }
        return;
    }
    let distance_bytes = distance.saturating_mul(T::BYTES);
    let mut at = distance_bytes;
    while at < data.len() {
        let (before, after) = data.split_at_mut(at);
        let element = &mut after[..T::BYTES];
        T::read(element).plus(T::read(&before[at - distance_bytes..])).write(element);
        at += T::BYTES;
    }
}

/// The first bytes of all elements, then all second bytes, and so on.
pub(super) fn shuffle(data: &[u8], width: usize) -> Result<Vec<u8>> {
    let mut out = memory::zeroed(data.len())?;
    let elements = data.len() / width;
    if elements > 0 {
        for (byte, plane) in out.chunks_exact_mut(elements).enumerate() {
            for (to, element) in plane.iter_mut().zip(data.chunks_exact(width)) {
                *to = element[byte];
            }
        }
    }
    Ok(out)
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(shuffled: &[u8], width: usize, out: &mut [u8]) {
    match width {
        2 => unshuffle_planes::<2>(shuffled, out),
        4 => unshuffle_planes::<4>(shuffled, out),
        8 => unshuffle_planes::<8>(shuffled, out),
        _ => out.copy_from_slice(shuffled),
    }
}

fn unshuffle_planes<const WIDTH: usize>(shuffled: &[u8], out: &mut [u8]) {
    let elements = shuffled.len() / WIDTH;
    let planes: [&[u8]; WIDTH] = std::array::from_fn(|byte| &shuffled[byte * elements..][..elements]);
    let (out, _) = out.as_chunks_mut::<WIDTH>();
    for (index, to) in out.iter_mut().enumerate().take(elements) {
        *to = std::array::from_fn(|byte| planes[byte][index]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_what_others_call_so() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(shuffle(&data, 4).expect("memory"), [1, 5, 2, 6, 3, 7, 4, 8]);
        assert_eq!(shuffle(&data, 2).expect("memory"), [1, 3, 5, 7, 2, 4, 6, 8]);
        assert_eq!(delta(&data, 1, 1).expect("memory"), [1; 8]);
        assert_eq!(delta(&data, 1, 3).expect("memory"), [1, 2, 3, 3, 3, 3, 3, 3]);
        assert_eq!(delta(&data, 2, 9).expect("memory"), data);
        for (width, distance) in [(1, 1), (1, 3), (2, 1), (2, 2), (4, 1), (8, 5), (4, usize::MAX)] {
            let mut back = delta(&data, width, distance).expect("memory");
            undelta(&mut back, width, distance);
            assert_eq!(back, data, "{width} {distance}");
        }
        assert_eq!(distance_of(&Shape::new(&[100, 2])), 2);
        assert_eq!([&[100, 80][..], &[4], &[], &[7, 1]].map(|dims| distance_of(&Shape::new(dims))), [1; 4]);
    }
}
