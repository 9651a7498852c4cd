//! Samples of 8 and 16 bits, and the few operations that prediction is made of. All arithmetic wraps.

/// One sample of one channel.
pub(crate) trait Sample: Copy + Default + Ord {
    /// The middle of the range: what a difference of zero is stored as.
    const HALF: Self;

    /// Sum modulo the range.
    fn plus(self, other: Self) -> Self;
    /// Difference modulo the range.
    fn minus(self, other: Self) -> Self;
    /// `(self + other + 1) / 2`, without overflow.
    fn average(self, other: Self) -> Self;
    /// Logical shift.
    fn shifted(self, bits: u32) -> Self;
    /// Residuals -1, 1, -2 … become 1, 2, 3 ….
    fn zigzag(self) -> Self;
    /// The inverse of [`Sample::zigzag`].
    fn unzigzag(self) -> Self;
    /// Sum that stops at the largest value.
    fn plus_saturating(self, other: Self) -> Self;
    /// The value shifted right and clamped to a byte.
    fn activity(self, shift: u32) -> u8;
    /// Reads sample `index` of a row.
    fn read(row: &[u8], index: usize) -> Self;
    /// Writes sample `index` of a row.
    fn write(self, row: &mut [u8], index: usize);

    /// Absolute difference.
    #[inline(always)]
    fn distance(self, other: Self) -> Self {
        self.max(other).minus(self.min(other))
    }

    /// The median edge detector of LOCO-I: the gradient `a + b - c`, held between `a` and `b`.
    #[inline(always)]
    fn median(a: Self, b: Self, c: Self) -> Self {
        let (low, high) = (a.min(b), a.max(b));
        a.plus(b).minus(c.max(low).min(high))
    }
}

/// What is written the same for both depths.
macro_rules! same_for_each_depth {
    () => {
        #[inline(always)]
        fn plus(self, other: Self) -> Self {
            self.wrapping_add(other)
        }

        #[inline(always)]
        fn minus(self, other: Self) -> Self {
            self.wrapping_sub(other)
        }

        #[inline(always)]
        fn shifted(self, bits: u32) -> Self {
            self >> bits
        }

        #[inline(always)]
        fn unzigzag(self) -> Self {
            (self >> 1) ^ (self & 1).wrapping_neg()
        }

        #[inline(always)]
        fn plus_saturating(self, other: Self) -> Self {
            self.saturating_add(other)
        }
    };
}

impl Sample for u8 {
    const HALF: Self = 0x80;

    same_for_each_depth!();

    #[inline(always)]
    fn average(self, other: Self) -> Self {
        ((u16::from(self) + u16::from(other) + 1) >> 1) as u8
    }

    #[inline(always)]
    fn zigzag(self) -> Self {
        (self << 1) ^ ((self as i8) >> 7) as u8
    }

    #[inline(always)]
    fn activity(self, _shift: u32) -> u8 {
        self
    }

    #[inline(always)]
    fn read(row: &[u8], index: usize) -> Self {
        row[index]
    }

    #[inline(always)]
    fn write(self, row: &mut [u8], index: usize) {
        row[index] = self;
    }
}

impl Sample for u16 {
    const HALF: Self = 0x8000;

    same_for_each_depth!();

    #[inline(always)]
    fn average(self, other: Self) -> Self {
        ((u32::from(self) + u32::from(other) + 1) >> 1) as u16
    }

    #[inline(always)]
    fn zigzag(self) -> Self {
        (self << 1) ^ ((self as i16) >> 15) as u16
    }

    #[inline(always)]
    fn activity(self, shift: u32) -> u8 {
        (self >> shift).min(255) as u8
    }

    #[inline(always)]
    fn read(row: &[u8], index: usize) -> Self {
        u16::from_le_bytes([row[2 * index], row[2 * index + 1]])
    }

    #[inline(always)]
    fn write(self, row: &mut [u8], index: usize) {
        row[2 * index..2 * index + 2].copy_from_slice(&self.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn zigzag_is_a_bijection() {
        assert!((0..=u8::MAX).all(|value| value.zigzag().unzigzag() == value));
        assert!((0..=u16::MAX).all(|value| value.zigzag().unzigzag() == value));
        assert_eq!([0u8, 255, 1, 254, 128].map(Sample::zigzag), [0, 1, 2, 3, 255]);
    }
}
