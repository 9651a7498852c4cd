use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// A source of formats with so many samples each, as blocks.
#[derive(Debug, Clone)]
struct Case {
    /// Of each format: samples, samples in a block, bytes of a sample.
    formats: Vec<(u64, u64, u64)>,
    /// How much of the data set the buffer is.
    buffer: f64,
    window_bytes: u64,
    streams: u64,
    seed: u64,
}

impl Case {
    fn formats(&self) -> Formats {
        let mut first = 0;
        let mut of_format = |&(samples, in_block, bytes): &(u64, u64, u64)| {
            let blocks = (0..samples.div_ceil(in_block)).map(|number| {
                let samples = first + number * in_block..first + ((number + 1) * in_block).min(samples);
                Block { bytes: bytes * (samples.end - samples.start), samples, sequence: None }
            });
            let blocks: Vec<Block> = blocks.collect();
            first += samples;
            blocks
        };
        let blocks: Vec<Vec<Block>> = self.formats.iter().map(&mut of_format).collect();
        Formats { blocks: blocks.into(), buffer_bytes: (self.buffer * self.bytes() as f64) as u64, entry_bytes: 0 }
    }

    fn samples(&self) -> u64 {
        self.formats.iter().map(|(samples, ..)| samples).sum()
    }

    fn bytes(&self) -> u64 {
        self.formats.iter().map(|(samples, _, bytes)| samples * bytes).sum()
    }

    fn format_of(&self, sample: u64) -> usize {
        let ends = self.formats.iter().scan(0, |end, (samples, ..)| {
            *end += samples;
            Some(*end)
        });
        ends.take_while(|end| *end <= sample).count()
    }

    fn bytes_of(&self, sample: u64) -> u64 {
        self.formats[self.format_of(sample)].2
    }

    fn order(&self, epoch: u64) -> LiquidOrder {
        let shuffle = Shuffle::Window { bytes: self.window_bytes };
        LiquidOrder::new(&self.formats(), Ordering { shuffle, seed: self.seed, epoch, streams: self.streams })
    }

    /// Plays an epoch with what is in `buffer`.
    fn play(&self, epoch: u64, buffer: &mut HashSet<u64>) -> Played {
        let mut order = self.order(epoch);
        let mut at: Vec<Option<(u64, bool)>> = vec![None; self.samples() as usize];
        let mut bytes_read = 0;
        let mut admitted: HashMap<u64, u64> = HashMap::new();
        loop {
            let windows = order.next_windows();
            if windows.is_empty() {
                break;
            }
            for PositionedBlock { block, positions, keep } in windows {
                let is_hit = buffer.contains(&block.samples.start);
                assert!(block.samples.clone().all(|sample| buffer.contains(&sample) == is_hit), "in part");
                bytes_read += if is_hit { 0 } else { block.bytes };
                for (sample, position) in block.samples.zip(positions) {
                    assert_eq!(at[position.0 as usize].replace((sample, keep)), None, "a position twice");
                    *admitted.entry(sample).or_default() += 1;
                }
            }
        }
        assert!(admitted.values().all(|times| *times == 1) && admitted.len() as u64 == self.samples());
        let mut bytes: u64 = buffer.iter().map(|&sample| self.bytes_of(sample)).sum();
        let mut played = Played { samples: Vec::new(), hits: Vec::new(), bytes_read, buffer_bytes_max: bytes };
        for (sample, keep) in at.into_iter().map(|at| at.expect("every position is somebody's")) {
            let is_hit = buffer.contains(&sample);
            match (is_hit, keep) {
                (true, false) => {
                    buffer.remove(&sample);
                    bytes -= self.bytes_of(sample);
                }
                (false, true) => {
                    buffer.insert(sample);
                    bytes += self.bytes_of(sample);
                }
                _ => {}
            }
            played.buffer_bytes_max = played.buffer_bytes_max.max(bytes);
            played.samples.push(sample);
            played.hits.push(is_hit);
        }
        played
    }
}

#[derive(Debug, PartialEq)]
struct Played {
    /// In their order.
    samples: Vec<u64>,
    hits: Vec<bool>,
    bytes_read: u64,
    buffer_bytes_max: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let format = (1..400_u64, 1..12_u64, 1..100_u64);
    let formats = prop::collection::vec(format, 1..4);
    (formats, 0.0..1.2_f64, 1..20_000_u64, 1..17_u64, any::<u64>()).prop_map(
        |(formats, buffer, window_bytes, streams, seed)| Case { formats, buffer, window_bytes, streams, seed },
    )
}

proptest! {
    /// Five epochs: everything once, in another order each time, with as much of each format and from memory in each batch as in all.
    #[test]
    fn epochs_are_even(case in case(), batch_size in 1..64_usize) {
        let mut buffer = HashSet::new();
        let mut before: Vec<u64> = Vec::new();
        let streams = case.order(0).streams();
        let lanes = case.formats.len() as u64 * streams;
        let buffer_bytes = case.formats().buffer_bytes;
        for epoch in 0..5 {
            let held = buffer.clone();
            let held_bytes: u64 = held.iter().map(|&sample| case.bytes_of(sample)).sum();
            let played = case.play(epoch, &mut buffer);
            prop_assert_eq!(&played, &case.play(epoch, &mut held.clone()), "the seed decides");
            prop_assert!(case.samples() < 20 || before != played.samples, "epoch {epoch} is in the order of the last");
            prop_assert_eq!(played.bytes_read, case.bytes() - held_bytes);
            // The buffer, to two samples of each lane: they come and go in whole ones.
            let slack = lanes * case.formats.iter().map(|(.., bytes)| 2 * bytes).max().unwrap_or(0);
            prop_assert!(played.buffer_bytes_max <= buffer_bytes + slack, "{} of {buffer_bytes}", played.buffer_bytes_max);
            if epoch > 0 {
                let fits = (case.buffer.min(1.0) * case.bytes() as f64) as u64;
                prop_assert!(held_bytes + slack + fits / 100 >= fits, "{held_bytes} of {fits}");
            }
            for (number, &(count, ..)) in case.formats.iter().enumerate() {
                // One sample, or two where there are more than two formats. Up to 16 streams, which are for ranks, are off by some more together.
                let (each, most) = if streams == 1 { (1.0, 1.0) } else { (6.0, 4.0) };
                let most = if case.formats.len() > 2 { 2.0 * most } else { most };
                let share = count as f64 / case.samples() as f64;
                let held = held.iter().filter(|sample| case.format_of(**sample) == number).count();
                let hit_share = held as f64 / count as f64;
                for (batch, hits) in played.samples.chunks(batch_size).zip(played.hits.chunks(batch_size)) {
                    let mine = |&(sample, _): &(&u64, &bool)| case.format_of(*sample) == number;
                    let found = batch.iter().zip(hits).filter(mine).count() as f64;
                    prop_assert!((found - share * batch.len() as f64).abs() <= most + 1e-9, "format {number}");
                    let hits = batch.iter().zip(hits).filter(mine).filter(|(_, hit)| **hit).count() as f64;
                    prop_assert!((hits - hit_share * found).abs() <= each + 1e-9, "{hits} of {found}, {hit_share}");
                }
            }
            // And so from memory, of all formats together.
            let hit_share = held.len() as f64 / case.samples() as f64;
            let most = if streams == 1 { case.formats.len() as f64 } else { 10.0 };
            for hits in played.hits.chunks(batch_size) {
                let off = hits.iter().filter(|hit| **hit).count() as f64 - hit_share * hits.len() as f64;
                prop_assert!(off.abs() <= most + 1e-9, "{off}");
            }
            before = played.samples;
        }
    }

    /// At any time one window of each lane, and no more, is given and not used up: what memory must hold.
    #[test]
    fn windows_fit(case in case(), epoch in 0..3_u64) {
        let mut order = case.order(epoch);
        let most = order.window_bytes(u64::MAX);
        // By the place in the stream at which a window's block is used up: admitted in this order.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let streams = order.streams();
        loop {
            let windows = order.next_windows();
            let Some(first) = windows.iter().flat_map(|window| &window.positions).map(|at| at.0 / streams).min() else { break };
            open.retain(|(last, _)| *last >= first);
            open.extend(windows.iter().map(|window| {
                let last = window.positions.iter().map(|at| at.0 / streams).max().unwrap_or(0);
                (last, window.block.bytes)
            }));
            let bytes: u64 = open.iter().map(|(_, bytes)| bytes).sum();
            prop_assert!(bytes <= most, "{bytes} of {most}");
        }
    }
}

/// With blocks that are small beside the buffer, the buffer holds what it has room for, and never more.
#[test]
fn the_budget_is_kept() {
    for (formats, streams) in [
        (vec![(5000, 4, 1000)], 1),
        (vec![(3000, 4, 300), (2000, 1, 3000)], 1),
        (vec![(4000, 5, 500), (900, 2, 900)], 4),
    ] {
        let case = Case { formats, buffer: 0.3, window_bytes: 200_000, streams, seed: 7 };
        let buffer_bytes = case.formats().buffer_bytes;
        let mut buffer = HashSet::new();
        for epoch in 0..5 {
            let played = case.play(epoch, &mut buffer);
            assert!(played.buffer_bytes_max <= buffer_bytes, "{} of {buffer_bytes}", played.buffer_bytes_max);
            let held: u64 = buffer.iter().map(|&sample| case.bytes_of(sample)).sum();
            assert!(held as f64 >= 0.98 * buffer_bytes as f64, "{held} of {buffer_bytes}");
            if epoch > 0 {
                let ratio = played.bytes_read as f64 / case.bytes() as f64;
                assert!((0.699..0.706).contains(&ratio), "{ratio}");
            }
        }
    }
}

/// The rank correlation with how samples lie, beside that of a full shuffle, which has none.
#[test]
fn the_order_is_shuffled() {
    let case = Case { formats: vec![(4000, 10, 100)], buffer: 0.3, window_bytes: 40_000, streams: 1, seed: 3 };
    let mut buffer = HashSet::new();
    for epoch in 0..4 {
        let played = case.play(epoch, &mut buffer);
        let middle = (case.samples() - 1) as f64 / 2.0;
        let (mut product, mut square) = (0.0, 0.0);
        for (at, &sample) in played.samples.iter().enumerate() {
            product += (at as f64 - middle) * (sample as f64 - middle);
            square += (at as f64 - middle).powi(2);
        }
        let correlation = product / square;
        assert!(correlation.abs() < 0.15, "{correlation} in epoch {epoch}");
        let near = played.samples.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 10).count();
        assert!(near < 300, "{near} neighbors of 4,000 are from one block");
    }
}

/// How well an order is shuffled: its rank correlation with how samples lie, the mean distance of neighbors (of a full shuffle a third of all), and
/// the mean entropy of the labels of a batch in bits, where samples lie by class.
fn quality(order: &[u64]) -> [f64; 3] {
    const CLASSES: u64 = 16;
    const BATCH: usize = 64;
    let count = order.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let (mut product, mut square) = (0.0, 0.0);
    for (at, &sample) in order.iter().enumerate() {
        product += (at as f64 - middle) * (sample as f64 - middle);
        square += (at as f64 - middle).powi(2);
    }
    let distance: u64 = order.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
    let entropy = |batch: &[u64]| {
        let mut counts = [0_u32; CLASSES as usize];
        for sample in batch {
            counts[(sample * CLASSES / order.len() as u64) as usize] += 1;
        }
        let share = |&count: &u32| f64::from(count) / batch.len() as f64;
        counts.iter().map(share).filter(|share| *share > 0.0).map(|share| -share * share.log2()).sum::<f64>()
    };
    let batches = order.chunks_exact(BATCH);
    let entropies: f64 = batches.clone().map(entropy).sum::<f64>() / batches.len() as f64;
    [product / square, distance as f64 / (count - 1.0) / count, entropies]
}

/// `cargo test -p forebay-engine --lib quality -- --nocapture` prints the table of docs/benchmarks.md.
#[test]
fn the_quality_of_the_shuffle() {
    const SAMPLES: u64 = 16_384;
    let case = Case {
        formats: vec![(SAMPLES, 32, 1000)],
        buffer: 0.3,
        window_bytes: SAMPLES * 1000 / 20,
        streams: 1,
        seed: 5,
    };
    let mut random = Random::from_parts(&[7]);
    let mut full: Vec<u64> = (0..SAMPLES).collect();
    random.shuffle(&mut full);
    let windows = |share: f64| {
        let shuffle = Shuffle::Window { bytes: (share * case.bytes() as f64) as u64 };
        let ordering = Ordering { shuffle, seed: 5, epoch: 1, streams: 1 };
        let mut order = super::super::order::Order::new(case.formats().blocks[0].clone(), ordering);
        let mut at = vec![0; SAMPLES as usize];
        loop {
            let windows = order.next_windows();
            if windows.is_empty() {
                return at;
            }
            for PositionedBlock { block, positions, .. } in windows {
                block.samples.zip(positions).for_each(|(sample, position)| at[position.0 as usize] = sample);
            }
        }
    };
    // A buffer that is filled in the order in which samples lie, and drawn from at random.
    let mut drawn = |share: f64| {
        let mut buffer: Vec<u64> = (0..(share * SAMPLES as f64) as u64).collect();
        let mut next = buffer.len() as u64;
        let mut order = Vec::new();
        while !buffer.is_empty() {
            let at = random.below(buffer.len());
            order.push(buffer[at]);
            if next < SAMPLES {
                buffer[at] = next;
                next += 1;
            } else {
                buffer.swap_remove(at);
            }
        }
        order
    };
    let mut buffer = HashSet::new();
    let liquid: Vec<Vec<u64>> = (0..3).map(|epoch| case.play(epoch, &mut buffer).samples).collect();
    let rows = [
        ("full shuffle", quality(&full)),
        ("window of 30 %", quality(&windows(0.3))),
        ("window of 5 %", quality(&windows(0.05))),
        ("buffer of tf.data, 30 %", quality(&drawn(0.3))),
        ("Liquid, 30 % and a window of 5 %, epoch 1", quality(&liquid[0])),
        ("epoch 2", quality(&liquid[1])),
        ("epoch 3", quality(&liquid[2])),
    ];
    let mut table =
        "| order | rank correlation | distance of neighbors | label entropy per batch, bits |\n|---|---|---|---|\n"
            .to_owned();
    for (name, [correlation, distance, entropy]) in rows {
        writeln!(table, "| {name} | {correlation:+.3} | {distance:.3} | {entropy:.2} |").unwrap();
    }
    eprintln!("{table}");
    let [_, full_distance, full_entropy] = rows[0].1;
    for (name, [correlation, distance, entropy]) in &rows[5..] {
        assert!(correlation.abs() < 0.1, "{name}: {correlation}");
        assert!(*distance > 0.9 * full_distance && *entropy > 0.9 * full_entropy, "{name}: {distance}, {entropy}");
    }
}

/// A buffer that is less than a sample of each stream is used all the same.
#[test]
fn what_streams_keep_of_a_small_buffer_adds_up() {
    let formats = vec![(600, 4, 1000), (400, 4, 3000)];
    let case = Case { formats, buffer: 0.05, window_bytes: 900_000, streams: 128, seed: 3 };
    assert!(case.order(0).streams() > 50, "{}", case.order(0).streams());
    let mut buffer = HashSet::new();
    case.play(0, &mut buffer);
    let bytes: u64 = buffer.iter().map(|&sample| case.bytes_of(sample)).sum();
    let wanted = case.formats().buffer_bytes;
    assert!(bytes > wanted * 3 / 4 && bytes <= wanted, "{bytes} of {wanted}");
    assert_eq!(case.play(1, &mut buffer).hits.iter().filter(|hit| **hit).count(), buffer.len());
}
