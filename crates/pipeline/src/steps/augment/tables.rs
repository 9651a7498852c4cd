//! Changes of single values, as tables: however many follow each other, the pixels are gone over once.

use crate::kernels::{self, Supported};

/// A value of each of 256.
pub(super) type Table = [u8; 256];

/// A change of single values.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    /// value · factor + offset, clamped and cut off.
    Affine { factor: f32, offset: f32 },
    /// (value & and) ^ xor.
    Bits { and: u8, xor: u8 },
    /// Inverted from this value on.
    Solarize(f32),
    /// So much more, of values below 128.
    SolarizeAdd(u8),
}

/// The changes that the next pass over the pixels makes.
pub(super) struct Tables {
    tables: [Table; 3],
    made_by: MadeBy,
}

/// What a table is made by: one formula alone is faster computed, in vectors, than looked up.
#[derive(Clone, Copy)]
enum MadeBy {
    Nothing,
    Affine {
        factor: f32,
        offset: f32,
    },
    Bits {
        and: u8,
        xor: u8,
    },
    Solarize(f32),
    /// Several, but the same for all channels.
    Several,
    /// One for each channel.
    Channels,
}

impl Tables {
    pub(super) fn identity() -> Self {
        Self { tables: [std::array::from_fn(|value| value as u8); 3], made_by: MadeBy::Nothing }
    }

    pub(super) fn is_identity(&self) -> bool {
        matches!(self.made_by, MadeBy::Nothing)
    }

    /// `tone` comes after what is there already.
    pub(super) fn then(&mut self, tone: Tone) {
        self.made_by = match (tone, self.made_by) {
            (_, MadeBy::Channels) => MadeBy::Channels,
            (Tone::Affine { factor, offset }, MadeBy::Nothing) => MadeBy::Affine { factor, offset },
            (Tone::Bits { and, xor }, MadeBy::Nothing) => MadeBy::Bits { and, xor },
            (Tone::Solarize(threshold), MadeBy::Nothing) => MadeBy::Solarize(threshold),
            _ => MadeBy::Several,
        };
        let change = |value: &mut u8| {
            *value = match tone {
                Tone::Affine { factor, offset } => kernels::scaled(*value, factor, offset),
                Tone::Bits { and, xor } => (*value & and) ^ xor,
                Tone::Solarize(threshold) => kernels::solarized(*value, threshold),
                Tone::SolarizeAdd(more) if *value < 128 => value.saturating_add(more),
                Tone::SolarizeAdd(_) => *value,
            };
        };
        if let MadeBy::Channels = self.made_by {
            self.tables.as_flattened_mut().iter_mut().for_each(change);
        } else {
            // All three are the same.
            self.tables[0].iter_mut().for_each(change);
            self.tables = [self.tables[0]; 3];
        }
    }

    /// A table of each channel comes after what is there already.
    pub(super) fn then_channels(&mut self, tables: &[Table; 3]) {
        self.made_by = MadeBy::Channels;
        for (own, table) in self.tables.iter_mut().zip(tables) {
            for value in own {
                *value = table[usize::from(*value)];
            }
        }
    }

    /// Makes the changes, in one pass.
    pub(super) fn apply(&self, from: &[u8], to: &mut [u8], channels: usize) {
        let level = Supported::detect();
        match self.made_by {
            MadeBy::Nothing => kernels::copy(level, from, to),
            MadeBy::Bits { and, xor } => kernels::bits(level, from, to, and, xor),
            MadeBy::Solarize(threshold) => kernels::solarize(level, from, to, threshold),
            MadeBy::Affine { factor, offset } if !kernels::has_tables(level) => {
                kernels::scale(level, from, to, factor, offset);
            }
            MadeBy::Channels if channels == 3 => kernels::look_up_channels(level, from, to, &self.tables),
            MadeBy::Affine { .. } | MadeBy::Several | MadeBy::Channels => {
                kernels::look_up(level, from, to, &self.tables[0]);
            }
        }
    }

    /// The mean of the gray of `from`'s pixels, as they are after these changes.
    pub(super) fn gray_mean(&self, from: &[u8], channels: usize) -> f32 {
        let mut sum = 0_u64;
        if channels == 1 {
            let histogram = histograms(from, 1)[0];
            let values = histogram.iter().zip(self.tables[0]);
            sum = values.map(|(&count, value)| u64::from(count) * u64::from(value)).sum();
        } else if self.is_identity() {
            kernels::gray_sum(Supported::detect(), from, &mut sum);
        } else {
            // So many pixels at once that they stay in the nearest cache.
            let mut changed = [0; 3 << 12];
            for from in from.chunks(changed.len()) {
                let changed = &mut changed[..from.len()];
                self.apply(from, changed, channels);
                kernels::gray_sum(Supported::detect(), changed, &mut sum);
            }
        }
        (sum as f64 / (from.len() / channels).max(1) as f64) as f32
    }

    /// How often each value occurs in each channel after these changes.
    fn histograms_after(&self, from: &[u8], channels: usize) -> [[u32; 256]; 3] {
        let before = histograms(from, channels);
        let mut after = [[0; 256]; 3];
        for ((before, after), table) in before.iter().zip(&mut after).zip(&self.tables) {
            before.iter().zip(table).for_each(|(&count, &value)| after[usize::from(value)] += count);
        }
        after
    }

    /// Tables that spread each channel's values evenly, as Pillow's and torchvision's `equalize`.
    pub(super) fn equalized(&self, from: &[u8], channels: usize) -> [Table; 3] {
        self.histograms_after(from, channels).map(|histogram| {
            let pixels: u32 = histogram.iter().sum();
            let last = histogram.iter().rev().find(|&&count| count > 0).copied().unwrap_or(0);
            let step = (pixels - last) / 255;
            let mut before = step / 2;
            let mut table = [0; 256];
            for (value, (to, count)) in table.iter_mut().zip(histogram).enumerate() {
                *to = before.checked_div(step).map_or(value as u8, |level| level.min(255) as u8);
                before += count;
            }
            table
        })
    }

    /// Tables that stretch each channel's values from 0 to 255, as torchvision's `autocontrast`.
    pub(super) fn stretched(&self, from: &[u8], channels: usize) -> [Table; 3] {
        let extremes = if self.is_identity() {
            extremes(from, channels)
        } else {
            self.histograms_after(from, channels).map(|histogram| {
                let low = histogram.iter().position(|&count| count > 0).unwrap_or(0);
                let high = histogram.iter().rposition(|&count| count > 0).unwrap_or(0);
                [low as u8, high as u8]
            })
        };
        extremes.map(|[low, high]| {
            let scale = (f32::from(high) - f32::from(low)) * (1.0 / 255.0);
            let stretched = |value: usize| ((value as f32 - f32::from(low)) / scale).clamp(0.0, 255.0) as u8;
            std::array::from_fn(|value| if high > low { stretched(value) } else { value as u8 })
        })
    }
}

/// How often each value occurs in each channel.
fn histograms(from: &[u8], channels: usize) -> [[u32; 256]; 3] {
    let mut found = [[0; 256]; 3];
    if channels == 3 {
        count::<3>(from, &mut found);
    } else {
        count::<1>(from, &mut found);
    }
    found
}

/// Neighbors often have the same value, and a count that was just written is slow to be read again: so neighbors count in different lanes.
/// Counting loads and stores as much as a processor can, so bytes are loaded eight at a time, and what decides is how near the stores are to
/// each other: short counts, of the channels one after another, whose values differ less than those of channels do.
fn count<const CHANNELS: usize>(from: &[u8], found: &mut [[u32; 256]; 3]) {
    const LANES: usize = 4;
    const WORD: usize = size_of::<u64>();
    /// A multiple of the channels and of the words.
    const BLOCK: usize = 24;
    let pixels = BLOCK / CHANNELS;
    // So many bytes that no count ends at its limit.
    let part = usize::from(u16::MAX) / pixels.div_ceil(LANES) * BLOCK;
    for from in from.chunks(part) {
        let mut counts = [[[0_u16; LANES]; 256]; CHANNELS];
        let (blocks, rest) = from.as_chunks::<BLOCK>();
        for block in blocks {
            let words = block.as_chunks::<WORD>().0;
            for (channel, counts) in counts.iter_mut().enumerate() {
                for pixel in 0..pixels {
                    let byte = pixel * CHANNELS + channel;
                    let value = (u64::from_le_bytes(words[byte / WORD]) >> (8 * (byte % WORD))) as u8;
                    counts[usize::from(value)][pixel % LANES] += 1;
                }
            }
        }
        for (pixel, values) in rest.chunks(CHANNELS).enumerate() {
            for (counts, &value) in counts.iter_mut().zip(values) {
                counts[usize::from(value)][pixel % LANES] += 1;
            }
        }
        for (found, counts) in found.iter_mut().zip(&counts) {
            for (found, lanes) in found.iter_mut().zip(counts) {
                *found += lanes.iter().map(|&count| u32::from(count)).sum::<u32>();
            }
        }
    }
}

/// The smallest and largest value of each channel.
fn extremes(from: &[u8], channels: usize) -> [[u8; 2]; 3] {
    // A block of three vectors' width has every channel at the same places, so that vectors can be compared whole.
    const BLOCK: usize = 96;
    let (mut low, mut high) = ([u8::MAX; BLOCK], [u8::MIN; BLOCK]);
    let (blocks, rest) = from.as_chunks::<BLOCK>();
    for block in blocks {
        low.iter_mut().zip(block).for_each(|(low, &value)| *low = value.min(*low));
        high.iter_mut().zip(block).for_each(|(high, &value)| *high = value.max(*high));
    }
    for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(rest) {
        (*low, *high) = (value.min(*low), value.max(*high));
    }
    let mut found = [[u8::MAX, u8::MIN]; 3];
    for (place, (low, high)) in low.into_iter().zip(high).enumerate() {
        let [lowest, highest] = &mut found[place % channels];
        (*lowest, *highest) = (low.min(*lowest), high.max(*highest));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted() {
        // One value so often that short counts would end at their limit, and all kinds of them.
        let flat = |length: usize| vec![7; length];
        let noise = |length: usize| (0..length).map(|place| (place * place * 7919 / 64) as u8).collect();
        for length in [0, 3, 21, 24, 27, 96, 3 * 1001, 800_001, 1_600_002] {
            for from in [flat(length), noise(length)] {
                for channels in [1, 3] {
                    let mut expected = [[0; 256]; 3];
                    from.iter().enumerate().for_each(|(at, value)| expected[at % channels][usize::from(*value)] += 1);
                    assert!(histograms(&from, channels) == expected, "{length} bytes, {channels} channels");
                }
            }
        }
    }
}
