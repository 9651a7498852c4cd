//! Drafting the model: which contexts share a table, and the frequencies of each table.
//!
//! Contexts differ mainly in how wide their residuals spread, so they are sorted by that and neighbors are merged while it
//! pays: each table costs bytes in the file, time to build and space in the decoder's cache.

use crate::{
    kernel::rans::{ESCAPE, SLOTS},
    model::{Draft, Frequencies},
};

/// The most tables that the encoder makes: as many as stay in the first cache (see `kernel/notes.md`).
const TABLES: usize = 7;
/// Bits that a symbol takes in a table, about.
const SYMBOL_BITS: f64 = 7.0;
/// A value with a smaller share of its table than one in this many is escaped: a slot of its own would cost more.
const ESCAPE_SHARE: u64 = 4096;

struct Cluster {
    contexts: Vec<usize>,
    histogram: [u32; 256],
    bits: f64,
}

impl Cluster {
    fn new(contexts: Vec<usize>, histogram: &[u32; 256]) -> Self {
        Self { contexts, histogram: *histogram, bits: bits(histogram) }
    }

    fn with(&self, other: &Self) -> [u32; 256] {
        std::array::from_fn(|value| self.histogram[value] + other.histogram[value])
    }
}

/// The bits that coding with a table of its own takes, the table included.
fn bits(histogram: &[u32; 256]) -> f64 {
    let total: u64 = histogram.iter().map(|&count| u64::from(count)).sum();
    if total == 0 {
        return 0.0;
    }
    let (mut sum, mut symbols) = (0.0, 0.0);
    for &count in histogram.iter().filter(|&&count| count > 0) {
        sum += f64::from(count) * logarithm(count);
        symbols += 1.0;
    }
    total as f64 * (total as f64).log2() - sum + symbols * SYMBOL_BITS
}

/// Base 2, to about three digits: enough to compare, and several times as fast as the exact one.
fn logarithm(count: u32) -> f64 {
    let bits = f64::from(count).to_bits();
    let exponent = (bits >> 52) as f64 - 1023.0;
    let mantissa = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000);
    // A parabola through the logarithm at 1, 1.5 and 2.
    exponent + (mantissa - 1.0) * (1.0 + (2.0 - mantissa) * 0.339_85)
}

pub(super) fn draft(histograms: &[&[u32; 256]], shifts: Vec<u8>) -> Draft {
    let mut order: Vec<(f64, usize)> = Vec::new();
    for (context, histogram) in histograms.iter().enumerate() {
        let (mut total, mut sum) = (0u64, 0u64);
        for (value, &count) in histogram.iter().enumerate() {
            total += u64::from(count);
            sum += u64::from(count) * value as u64;
        }
        if total > 0 {
            order.push((sum as f64 / total as f64, context));
        }
    }
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let clusters = order.into_iter().map(|(_, context)| Cluster::new(vec![context], histograms[context]));
    let clusters = merge(clusters.collect());
    let mut map = vec![0; histograms.len()];
    for (table, cluster) in clusters.iter().enumerate() {
        for &context in &cluster.contexts {
            map[context] = table as u8;
        }
    }
    Draft { map, shifts, tables: clusters.iter().map(|cluster| frequencies(&cluster.histogram)).collect() }
}

/// Merges the neighbors that lose least, until there are few enough and no merger saves bits.
fn merge(mut clusters: Vec<Cluster>) -> Vec<Cluster> {
    let loss = |a: &Cluster, b: &Cluster| bits(&a.with(b)) - a.bits - b.bits;
    let mut losses: Vec<f64> = clusters.windows(2).map(|pair| loss(&pair[0], &pair[1])).collect();
    while let Some((at, &least)) = losses.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)) {
        if clusters.len() <= TABLES && least > 0.0 {
            break;
        }
        let right = clusters.remove(at + 1);
        let left = &mut clusters[at];
        left.histogram = left.with(&right);
        left.contexts.extend(right.contexts);
        left.bits = bits(&left.histogram);
        losses.remove(at);
        if at > 0 {
            losses[at - 1] = loss(&clusters[at - 1], &clusters[at]);
        }
        if at < losses.len() {
            losses[at] = loss(&clusters[at], &clusters[at + 1]);
        }
    }
    clusters
}

/// Frequencies that sum to the slots of a table; rare values go to the escape.
fn frequencies(histogram: &[u32; 256]) -> Frequencies {
    let total: u64 = histogram.iter().map(|&count| u64::from(count)).sum::<u64>().max(1);
    let mut kept = [0u64; 256];
    for (value, &count) in histogram.iter().enumerate() {
        let own = value != usize::from(ESCAPE) && u64::from(count) * ESCAPE_SHARE >= total;
        kept[if own { value } else { usize::from(ESCAPE) }] += u64::from(count);
    }
    let mut frequencies = [0u16; 256];
    for (frequency, &count) in frequencies.iter_mut().zip(&kept).filter(|(_, count)| **count > 0) {
        *frequency = ((count * SLOTS as u64 + total / 2) / total).max(1) as u16;
    }
    // What rounding left over or took too much is settled where it matters least: with the most frequent.
    loop {
        let sum: usize = frequencies.iter().map(|&frequency| usize::from(frequency)).sum();
        let Some(largest) = (0..256).max_by_key(|&value| frequencies[value]) else { break };
        match sum.cmp(&SLOTS) {
            std::cmp::Ordering::Equal => break,
            std::cmp::Ordering::Less => frequencies[largest] += (SLOTS - sum) as u16,
            std::cmp::Ordering::Greater => {
                let excess = (sum - SLOTS).min(usize::from(frequencies[largest]) / 2).max(1);
                frequencies[largest] -= excess as u16;
            }
        }
    }
    frequencies
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, frequencies, logarithm};

    #[test]
    fn frequencies_always_fill_the_table() {
        let mut seed = 7u32;
        for round in 0..200 {
            let mut histogram = [0u32; 256];
            for count in &mut histogram {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *count = (seed >> 8) >> (seed % 25).min(20 + round % 5);
            }
            let sum: usize = frequencies(&histogram).iter().map(|&frequency| usize::from(frequency)).sum();
            assert_eq!(sum, SLOTS);
        }
        let mut single = [0; 256];
        single[3] = 1;
        assert_eq!(usize::from(frequencies(&single)[3]), SLOTS);
    }

    #[test]
    fn the_logarithm_is_close() {
        for count in [1u32, 2, 3, 5, 100, 1000, 123_456_789] {
            assert!((logarithm(count) - f64::from(count).log2()).abs() < 0.01, "{count}");
        }
    }
}
