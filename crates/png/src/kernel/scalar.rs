//! One row after the other, in plain Rust: the definition.

use super::Filter;

/// Unfilters a row. `filtered` and `above` are at least as long as `row`.
pub(super) fn unfilter(filter: Filter, pixel_bytes: usize, filtered: &[u8], above: &[u8], row: &mut [u8]) {
    let length = row.len();
    let (filtered, above) = (&filtered[..length], &above[..length]);
    let step = pixel_bytes.min(length);
    match filter {
        Filter::None => row.copy_from_slice(filtered),
        Filter::Up => {
            for ((byte, &filtered), &above) in row.iter_mut().zip(filtered).zip(above) {
                *byte = filtered.wrapping_add(above);
            }
        }
        Filter::Sub => {
            row[..step].copy_from_slice(&filtered[..step]);
            for at in step..length {
                row[at] = filtered[at].wrapping_add(row[at - step]);
            }
        }
        Filter::Average => {
            for at in 0..step {
                row[at] = filtered[at].wrapping_add(above[at] / 2);
            }
            for at in step..length {
                let sum = u16::from(row[at - step]) + u16::from(above[at]);
                row[at] = filtered[at].wrapping_add((sum / 2) as u8);
            }
        }
        Filter::Paeth => {
            for at in 0..step {
                row[at] = filtered[at].wrapping_add(above[at]);
            }
            for at in step..length {
                row[at] = filtered[at].wrapping_add(paeth(row[at - step], above[at], above[at - step]));
            }
        }
    }
}

/// The one of left, above and left above that is nearest to left + above - left above (PNG, 9.4).
fn paeth(left: u8, above: u8, left_above: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(left_above));
    let (to_a, to_b, to_c) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if to_a <= to_b && to_a <= to_c {
        left
    } else if to_b <= to_c {
        above
    } else {
        left_above
    }
}
