//! Fractal noise: the stuff that clouds, hills, leaves and sand are made of here.

/// A field of smooth random values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    seed: u32,
}

impl Noise {
    /// The field of this seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { seed: (seed ^ (seed >> 32)) as u32 }
    }

    /// The value of a lattice point, 0 to 1.
    pub(super) fn lattice(self, x: i32, y: i32) -> f32 {
        let mut hash = (x as u32).wrapping_mul(0x27d4_eb2d) ^ (y as u32).wrapping_mul(0x1656_67b1) ^ self.seed;
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        (hash ^ (hash >> 16)) as f32 / u32::MAX as f32
    }

    /// The value at a point, 0 to 1: smooth between lattice points.
    pub(super) fn at(self, x: f32, y: f32) -> f32 {
        let (column, row) = (floor(x), floor(y));
        let (across, down) = (ease(x - column as f32), ease(y - row as f32));
        let top = mix(self.lattice(column, row), self.lattice(column.wrapping_add(1), row), across);
        let below = row.wrapping_add(1);
        let bottom = mix(self.lattice(column, below), self.lattice(column.wrapping_add(1), below), across);
        mix(top, bottom, down)
    }

    /// Fractal noise, 0 to 1: each octave is twice as fine and half as strong as the one before.
    pub(super) fn fractal(self, x: f32, y: f32, octaves: u32) -> f32 {
        let (mut sum, mut weights, mut weight, mut scale) = (0.0, 0.0, 1.0, 1.0);
        for octave in 0..octaves {
            // Shifted, so that the lattices of the octaves do not coincide.
            let shift = octave as f32 * 17.3;
            sum += weight * self.at(x * scale + shift, y * scale - shift);
            weights += weight;
            weight *= 0.5;
            scale *= 2.03;
        }
        sum / weights
    }
}

/// As `f32::floor`, which is a call into the C library where the processor's rounding instruction cannot be assumed.
fn floor(value: f32) -> i32 {
    let whole = value as i32;
    whole - i32::from(value < whole as f32)
}

fn ease(share: f32) -> f32 {
    share * share * (3.0 - 2.0 * share)
}

/// From `one` to `other`.
pub(super) fn mix(one: f32, other: f32, share: f32) -> f32 {
    one + (other - one) * share
}

/// 0 below `low`, 1 above `high`, smooth between.
pub(super) fn smooth_step(low: f32, high: f32, value: f32) -> f32 {
    ease(((value - low) / (high - low)).clamp(0.0, 1.0))
}
