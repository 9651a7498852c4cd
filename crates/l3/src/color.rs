//! The color transforms, sample by sample: the definition that the kernels are tested against.

use crate::{header::ColorTransform, sample::Sample};

/// `(difference - half) / 2^shift`, rounded down, modulo the range; `difference` has half the range added.
#[inline(always)]
fn fraction<S: Sample>(difference: S, shift: u32) -> S {
    difference.shifted(shift).minus(S::HALF.shifted(shift))
}

/// Red, green, blue to planes.
#[inline(always)]
pub(crate) fn forward<S: Sample>(transform: ColorTransform, [red, green, blue]: [S; 3]) -> [S; 3] {
    if transform == ColorTransform::None {
        return [red, green, blue];
    }
    let (luma, shift) = transform.parameters();
    let u = red.minus(green).plus(S::HALF);
    let v = blue.minus(green).plus(S::HALF);
    let first = if luma { green.plus(fraction(u.plus(v).plus(S::HALF), 2)) } else { green };
    let third = if shift > 0 { v.minus(fraction(u, shift)) } else { v };
    [first, u, third]
}

/// Planes to red, green, blue.
#[inline(always)]
pub(crate) fn inverse<S: Sample>(transform: ColorTransform, [first, u, third]: [S; 3]) -> [S; 3] {
    if transform == ColorTransform::None {
        return [first, u, third];
    }
    let (luma, shift) = transform.parameters();
    let v = if shift > 0 { third.plus(fraction(u, shift)) } else { third };
    let green = if luma { first.minus(fraction(u.plus(v).plus(S::HALF), 2)) } else { first };
    [u.plus(green).plus(S::HALF), green, v.plus(green).plus(S::HALF)]
}

#[cfg(test)]
mod tests {
    use super::{forward, inverse};
    use crate::header::ColorTransform;

    #[test]
    fn every_transform_is_a_bijection() {
        for transform in ColorTransform::ALL {
            for value in (0..1u32 << 24).step_by(97) {
                let pixel = [0, 8, 16].map(|shift| (value >> shift) as u8);
                assert_eq!(inverse(transform, forward(transform, pixel)), pixel, "{transform:?}");
                let wide = pixel.map(|sample| u16::from(sample).wrapping_mul(25_733));
                assert_eq!(inverse(transform, forward(transform, wide)), wide, "{transform:?}");
            }
        }
    }
}
