//! The bodies of the kernels that blur: weighted sums of what is around each value, in 16 bit.
//!
//! A blur weighs the bytes of a row, and then the sums of several rows. Values are levels times 2⁷, so that the sum of two fits, and weights are times 2¹⁶. What is the same distance from the middle has
//! the same weight and is added first; of each product the upper half is kept, which a vector has an instruction for. What that cuts
//! off is a half on average, so a half is added for each product.

/// The bits of a value that are below a level.
pub(super) const FRACTION_BITS: u32 = 7;

/// The upper half of a product.
#[inline(always)]
fn product(value: u16, weight: u16) -> u16 {
    ((u32::from(value) * u32::from(weight)) >> 16) as u16
}

/// Half of what the products of so many weights cut off.
#[inline(always)]
pub(super) fn lost(weights: usize) -> u16 {
    weights.div_ceil(2) as u16
}

/// Where blocks of `BLOCK` sums begin that are all of so many: the last one may begin within the one before it. `None`, if they are less than a block.
#[cfg(target_arch = "x86_64")]
pub(super) fn blocks<const BLOCK: usize>(count: usize) -> Option<impl Iterator<Item = usize>> {
    let last = count.checked_sub(BLOCK)?;
    let whole = (0..=last / BLOCK).map(|block| block * BLOCK);
    Some(whole.chain((!last.is_multiple_of(BLOCK)).then_some(last)))
}

/// What can be weighed: the bytes of a row, or such sums of them.
pub(super) trait Value: Copy {
    /// Whether it is a sum, of 16 bits, and not a byte.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only the kernels of x86-64 ask"))]
    const IS_SUM: bool;

    /// The level times 2⁷.
    fn value(self) -> u16;
}

impl Value for u8 {
    const IS_SUM: bool = false;

    #[inline(always)]
    fn value(self) -> u16 {
        u16::from(self) << FRACTION_BITS
    }
}

impl Value for u16 {
    const IS_SUM: bool = true;

    #[inline(always)]
    fn value(self) -> u16 {
        self
    }
}

/// Each sum is of values that lie `sides` from it on, one pair for each weight. The first is the middle's, and of its pair only the first
/// counts. The weights' sum is at most 65535.
#[inline(always)]
pub(super) fn weigh_body<T: Value>(from: &[T], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16]) {
    let (Some((middle, weights)), Some(([middle_side, _], sides))) = (weights.split_first(), sides.split_first())
    else {
        return;
    };
    let lost = lost(weights.len() + 1);
    to.iter_mut().zip(&from[*middle_side..]).for_each(|(to, &value)| *to = lost + product(value.value(), *middle));
    for (&weight, [before, after]) in weights.iter().zip(sides) {
        for ((to, &before), &after) in to.iter_mut().zip(&from[*before..]).zip(&from[*after..]) {
            *to += product(before.value() + after.value(), weight);
        }
    }
}

/// Values as bytes, rounded.
#[inline(always)]
pub(super) fn to_levels_body(from: &[u16], to: &mut [u8]) {
    const HALF: u16 = 1 << (FRACTION_BITS - 1);
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = ((value + HALF) >> FRACTION_BITS).min(255) as u8);
}

/// Weighed sums as bytes: both in one, `sums` being what lies between.
#[inline(always)]
pub(super) fn weigh_levels_body(from: &[u16], sides: &[[usize; 2]], weights: &[u16], sums: &mut [u16], to: &mut [u8]) {
    weigh_body(from, sides, weights, sums);
    to_levels_body(sums, to);
}
