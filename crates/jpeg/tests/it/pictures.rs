//! Images to encode, and random numbers.

/// A small generator, so that every run tests the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Less than `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
}

/// Waves with edges and noise, in RGB; `noise` is its height.
pub(crate) fn paint(width: usize, height: usize, noise: u64, random: &mut Random) -> Vec<u8> {
    let (a, b, c) = (1 + random.below(40), 1 + random.below(40), random.below(256));
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let wave = (x * a / 8) ^ (y * b / 8);
            for channel in 0..3 {
                let base = if (x + 2 * y) / 13 % 3 == channel { wave + c } else { x * a + y * b / 2 };
                let value = (base & 255) as u64 + random.next() % (noise + 1);
                pixels.push(value.min(255) as u8);
            }
        }
    }
    pixels
}
