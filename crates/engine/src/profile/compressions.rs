//! The costs of the storage formats of a split, each by itself: how small its records become, and how fast a thread puts them into the
//! format and makes them again, in memory; where a choice depends on it, while others do the same.
//!
//! The records are made here, a few hundred at the most, and never touch a storage. Everything is bounded: how many records and bytes
//! there are, and how much CPU time goes into making them and into each format.

mod timed;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use forebay_pipeline::{
    Format, Pipeline, RngKey, Runner, Sample, SampleView, StorageFormat, Strategy, ValueView, decode_sample,
    encode_sample,
};
use forebay_plan::CompressionCost;
use forebay_record::{Compression, Location, Scope, Writer};

use super::costs::{Collect, Nowhere};
use crate::cpu_time::thread_cpu_seconds;
use crate::data::{Listing, SourceReader};
use crate::error::Result;
use crate::progress::{Progress, while_wanted};
pub(super) use timed::INFLATING_SECONDS;
use timed::{Done, Encoded, Piece, Threads};

/// The formats that are considered unless others are named: what inflates fastest, three levels of what is smallest for most data, and what
/// made raw pixels smallest. docs/how-to/compression.md has the figures.
pub const COMPRESSION_CANDIDATES: [&str; 5] = ["lz4", "zstd-1", "zstd-3", "zstd-9", "gzip"];

/// This many records determine the ratio of a data set within a few percent.
const RECORDS_MAX: u64 = 256;

/// More bytes do not change it, if they are of several records: one that is smoother or longer than the others is not representative.
pub(super) const BYTES_MAX: u64 = 8 << 20;
pub(super) const RECORDS_MIN: usize = 8;
const LARGE_BYTES_MAX: u64 = 128 << 20;

/// Where records are slow to make, fewer do: none is begun after so many CPU seconds, if there are [`RECORDS_MIN`], and none at all after some times as
/// many. Nor where they are slow to come.
pub(super) const MAKING_SECONDS: f64 = 0.2;
const SLOW_MAKING_SECONDS: f64 = 5.0 * MAKING_SECONDS;
const WAITING_SECONDS: f64 = 2.0;

/// Slow compressions process less data than fast ones, which process all: each thread starts nothing more after this many CPU seconds.
pub(super) const COMPRESSING_SECONDS: f64 = 0.6;

/// Images and tensors are encoded one after the other: those of a quarter of the bytes, but at least and at most this many.
const ENCODED_BYTES: Range<u64> = 4 << 20..16 << 20;

/// Decompressed records stay in memory next to earlier ones, as they do while they wait for workers: at least this many bytes, or this many records.
const WAITING_BYTES: u64 = 16 << 20;
const WAITING_RECORDS: u64 = 4;

/// Samples from everywhere in `all`, to make records of: the first of a data set are often of one class, or of one day.
pub(super) fn from_everywhere(all: &Listing) -> Listing {
    let count = all.len() as u64;
    // Files are chosen by size. A stream that is decompressed to its last sample is decompressed completely.
    if all.source().format == Format::Files || is_inflated(all) || count <= RECORDS_MAX {
        return all.clone().sample(RECORDS_MAX);
    }
    let parts = |number: u64| number * RECORDS_MAX / count;
    let mut numbers = 0..count;
    let begins_part = move || numbers.next().is_some_and(|number| parts(number) != parts(number + 1));
    all.clone().part(begins_part, false)
}

fn is_inflated(listing: &Listing) -> bool {
    (0..listing.shards().len()).any(|shard| listing.compression(shard) != Compression::None)
}

/// The numbers below `count` in bit-reversed order, so that any prefix is spread evenly.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let bits = count.next_power_of_two().ilog2();
    let reversed = move |number: usize| number.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
    (0..count.next_power_of_two()).map(reversed).filter(move |number| *number < count)
}

/// Which formats a strategy that keeps its records uncompressed may be kept in instead: those of `candidates` that can hold what it keeps,
/// and those that `asked` has of its split.
pub(super) fn formats_of(
    pipeline: &Pipeline,
    plain: &Strategy,
    asked: &[Strategy],
    candidates: &[StorageFormat],
) -> Vec<Strategy> {
    if plain.split.keeps_files() || plain.format.compression.is_some() || plain.format.progressive {
        return Vec::new();
    }
    let candidate = |format: &StorageFormat| {
        let format = StorageFormat {
            encoding: format.encoding.or(plain.format.encoding),
            tensor_encoding: format.tensor_encoding.or(plain.format.tensor_encoding),
            progressive: format.progressive,
            compression: format.compression,
        };
        Strategy::new(pipeline, plain.split.clone(), format).ok()
    };
    let same = |other: &&Strategy| plain.format.is_plain() && other.split == plain.split;
    let mut all: Vec<Strategy> = Vec::new();
    for strategy in asked.iter().filter(same).cloned().chain(candidates.iter().filter_map(candidate)) {
        if strategy != *plain && !all.contains(&strategy) {
            all.push(strategy);
        }
    }
    all
}

/// What a format costs, and what was compressed to know it.
type Measured = (CompressionCost, Vec<Piece>);

/// Records of a split, as a shard has them.
pub(super) struct Records<'p> {
    pipeline: &'p Pipeline,
    plain: &'p Strategy,
    /// What they were made of.
    samples: Vec<Sample>,
    frames: Vec<u8>,
    locations: Vec<Location>,
    /// What compresses and inflates them.
    threads: Threads,
}

impl<'p> Records<'p> {
    /// Makes records as `plain` stores them, of samples from everywhere in `reader`, as many as time allows. `threads` threads will compress them.
    pub(super) fn of(
        pipeline: &'p Pipeline,
        plain: &'p Strategy,
        reader: &SourceReader,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut runner = Runner::new(plain.offline(pipeline), 0);
        let mut writer = Writer::new(Vec::new());
        let (mut samples, mut locations, mut record) = (Vec::new(), Vec::new(), Vec::new());
        let (begun, waited) = (thread_cpu_seconds(), Instant::now());
        let count = reader.listing().len();
        let numbers: Vec<usize> =
            if is_inflated(reader.listing()) { (0..count).collect() } else { spread(count).collect() };
        for number in numbers {
            let seconds = thread_cpu_seconds() - begun;
            let few = samples.len() < RECORDS_MIN;
            let late = seconds > if few { SLOW_MAKING_SECONDS } else { MAKING_SECONDS };
            let late = late || waited.elapsed().as_secs_f64() > WAITING_SECONDS;
            let bytes_max = if few { LARGE_BYTES_MAX } else { BYTES_MAX };
            let enough = writer.position() >= bytes_max || samples.len() as u64 >= RECORDS_MAX;
            if enough || late && !samples.is_empty() {
                break;
            }
            while_wanted(progress)?;
            // Damaged samples are reported by the runs, not here.
            let Ok(sample) = reader.sample(number) else { continue };
            let mut made = Collect::default();
            match runner.run(&sample, RngKey::default(), &mut (), &mut made) {
                Err(error) if error.ends() => return Err(error.into()),
                Err(_) => continue,
                Ok(()) => {}
            }
            for sample in made.samples {
                record.clear();
                encode(&sample, plain.format, &mut record)?;
                locations.push(writer.write(&record)?);
                samples.push(sample);
            }
        }
        let largest = locations.iter().map(|location| location.length).max().unwrap_or(0);
        let waiting_bytes = (WAITING_RECORDS * largest).clamp(WAITING_BYTES, LARGE_BYTES_MAX.max(largest));
        let threads = Threads::new(threads, waiting_bytes)?;
        Ok(Self { pipeline, plain, samples, frames: writer.finish()?, locations, threads })
    }

    /// What keeping them as each of `formats` costs, where there are any.
    pub(super) fn costs(&self, formats: &[Strategy], progress: &dyn Progress) -> Result<Vec<CompressionCost>> {
        let mut measured = Vec::new();
        for strategy in formats {
            while_wanted(progress)?;
            measured.extend(self.cost(strategy)?);
        }
        compare(&self.locations, &mut measured);
        Ok(measured.into_iter().map(|(cost, _)| cost).collect())
    }

    /// What keeping them as `strategy` costs, and what was compressed for that; `None` where there are none.
    fn cost(&self, strategy: &Strategy) -> Result<Option<Measured>> {
        let encoded = if added(self.plain, strategy).has_plain_fields() {
            Encoded { frames: &self.frames, locations: &self.locations, encoding: 0.0, decoding: 0.0, whole: false }
        } else {
            return self.encoded(strategy);
        };
        self.compressed(strategy, &encoded)
    }

    /// The same if images or tensors are encoded first.
    fn encoded(&self, strategy: &Strategy) -> Result<Option<Measured>> {
        let mut writer = Writer::new(Vec::new());
        let (mut records, mut locations): (Vec<Vec<u8>>, _) = (Vec::new(), Vec::new());
        let begun = thread_cpu_seconds();
        let mut taken = 0;
        for (sample, location) in self.samples.iter().zip(&self.locations) {
            let late = thread_cpu_seconds() - begun > COMPRESSING_SECONDS;
            let enough = (self.frames.len() as u64 / 4).clamp(ENCODED_BYTES.start, ENCODED_BYTES.end);
            if !records.is_empty() && (late || taken >= enough) {
                break;
            }
            taken += location.length;
            let mut record = Vec::new();
            encode(sample, strategy.format, &mut record)?;
            records.push(record);
        }
        let encoding = thread_cpu_seconds() - begun;
        let mut decoding = 0.0;
        let schema = strategy.stored_schema(self.pipeline);
        let mut runner = Runner::new(&strategy.unpacking(self.pipeline), 0);
        for (number, record) in records.into_iter().enumerate() {
            locations.push(writer.write(&record)?);
            let sample = decode_sample(record.into(), &schema, number as u64)?;
            let begun = thread_cpu_seconds();
            runner.run(&sample, RngKey::default(), &mut (), &mut Nowhere)?;
            decoding += thread_cpu_seconds() - begun;
        }
        let frames = writer.finish()?;
        let locations = &locations;
        self.compressed(strategy, &Encoded { frames: &frames, locations, encoding, decoding, whole: true })
    }

    fn compressed(&self, strategy: &Strategy, encoded: &Encoded<'_>) -> Result<Option<Measured>> {
        let Done { mut pieces, compressing, inflating } = match strategy.format.compression {
            None => encoded.as_it_is(),
            Some(compression) if compression.scope == Scope::Record => encoded.by_record(compression, &self.threads)?,
            Some(compression) => encoded.by_block(compression, &self.threads)?,
        };
        for piece in pieces.iter_mut().filter(|_| encoded.whole) {
            piece.bytes = self.locations[piece.record].length;
        }
        let ratio = ratio(&self.locations, &pieces);
        if !ratio.is_finite() || ratio <= 0.0 {
            return Ok(None);
        }
        let (bytes, records) = (pieces.iter().map(|piece| piece.bytes).sum(), pieces.len().min(self.locations.len()));
        // Where not all that was encoded was compressed, only its share counts.
        let share = records as f64 / encoded.locations.len().max(1) as f64;
        let decompressing = inflating + encoded.decoding * share;
        let of_readers =
            if strategy.format.compression.is_some_and(|one| one.scope == Scope::Record) { 0.0 } else { inflating };
        let rate = |seconds: f64| bytes as f64 / seconds.max(1e-9);
        let cost = CompressionCost {
            strategy: strategy.to_string(),
            plain: self.plain.to_string(),
            compression: added(self.plain, strategy).to_string(),
            records: records as u64,
            bytes,
            ratio,
            compress_bytes_per_second: rate(compressing + encoded.encoding * share),
            decompress_bytes_per_second: rate(decompressing),
            reader_share: if decompressing > 0.0 { of_readers / decompressing } else { 0.0 },
            lossy: strategy.is_lossy(),
        };
        Ok(Some((cost, pieces)))
    }
}

/// Makes the ratios comparable: a format that was cut short saw fewer records than the others, and those may be unlike the rest. Its ratio counts in
/// proportion to what another one made of the same, and of all.
fn compare(records: &[Location], measured: &mut [Measured]) {
    let fuller = |one: &&Measured, other: &&Measured| {
        one.1.len().cmp(&other.1.len()).then(one.0.ratio.total_cmp(&other.0.ratio))
    };
    let Some((_, fullest)) = measured.iter().max_by(fuller).cloned() else { return };
    for (cost, pieces) in measured.iter_mut().filter(|(_, pieces)| pieces.len() < fullest.len()) {
        cost.ratio *= ratio(records, &fullest) / ratio(records, &fullest[..pieces.len()]);
    }
}

/// Bytes as they are over compressed ones, of those of `records` that `pieces` are of: each counts with all of its bytes, however many were seen.
fn ratio(records: &[Location], pieces: &[Piece]) -> f64 {
    let mut seen: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for piece in pieces {
        let (bytes, compressed) = seen.entry(piece.record).or_default();
        *bytes += piece.bytes as f64;
        *compressed += piece.compressed_bytes;
    }
    let length = |record: usize| records[record].length as f64;
    let all: f64 = seen.keys().map(|&record| length(record)).sum();
    let part = |(&record, (bytes, compressed)): (&usize, &(f64, f64))| length(record) * compressed / bytes;
    all / seen.iter().map(part).sum::<f64>()
}

/// The part of the format of `strategy` that `plain` does not have.
fn added(plain: &Strategy, strategy: &Strategy) -> StorageFormat {
    let (format, plain) = (strategy.format, plain.format);
    StorageFormat {
        encoding: format.encoding.filter(|_| format.encoding != plain.encoding),
        tensor_encoding: format.tensor_encoding.filter(|_| format.tensor_encoding != plain.tensor_encoding),
        progressive: format.progressive && !plain.progressive,
        compression: format.compression,
    }
}

fn encode(sample: &Sample, format: StorageFormat, record: &mut Vec<u8>) -> Result<()> {
    let fields: Vec<(&str, ValueView<'_>)> =
        sample.fields.iter().map(|field| (&*field.name, field.value.view())).collect();
    let view = SampleView { key: &sample.key, index: sample.index, fields: &fields };
    Ok(encode_sample(&view, &format, record)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_few_are_visited_they_lie_spread() {
        assert_eq!(spread(0).count(), 0);
        assert_eq!(spread(1).collect::<Vec<_>>(), [0]);
        for count in [2, 5, 12, 40, 256, 1000] {
            let all: Vec<usize> = spread(count).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count), "each once");
            for first in [2, 4, 8].into_iter().filter(|first| first * 2 <= count) {
                let mut places = all[..first].to_vec();
                places.sort_unstable();
                let gap = places.windows(2).map(|pair| pair[1] - pair[0]).chain([count - places[first - 1]]).max();
                assert!(gap.unwrap() <= 2 * count.next_power_of_two() / first, "{first} of {count}: {places:?}");
                assert!(places[first - 1] >= count / 4, "{first} of {count}: {places:?}");
            }
        }
    }

    fn measured(name: &str, pieces: Vec<Piece>, records: &[Location]) -> Measured {
        let cost = CompressionCost {
            strategy: format!("decoded+{name}"),
            plain: "decoded".to_owned(),
            compression: name.to_owned(),
            records: pieces.len() as u64,
            bytes: pieces.iter().map(|piece| piece.bytes).sum(),
            ratio: ratio(records, &pieces),
            compress_bytes_per_second: 1e6,
            decompress_bytes_per_second: 1e6,
            reader_share: 1.0,
            lossy: false,
        };
        (cost, pieces)
    }

    #[test]
    fn ratios_are_of_the_same_bytes() {
        let records: Vec<Location> = (0..4).map(|at| Location { offset: 1000 * at, length: 1000 }).collect();
        // The first two records become a tenth, the last two stay as they are; the slow one makes half as many bytes of any, and saw the first two only.
        let pieces = |count: usize, times: f64| {
            let share = |record: usize| if record < 2 { 0.1 } else { 1.0 };
            let piece = |record| Piece { record, bytes: 100, compressed_bytes: 100.0 * share(record) * times };
            (0..count).map(piece).collect::<Vec<_>>()
        };
        let mut all = [measured("zstd-19", pieces(2, 0.5), &records), measured("lz4", pieces(4, 1.0), &records)];
        assert!((all[0].0.ratio - 20.0).abs() < 1e-9 && (all[1].0.ratio - 4.0 / 2.2).abs() < 1e-9);
        compare(&records, &mut all);
        assert!((all[0].0.ratio - 2.0 * 4.0 / 2.2).abs() < 1e-9, "{}", all[0].0.ratio);
        assert!((all[1].0.ratio - 4.0 / 2.2).abs() < 1e-9);
        compare(&records, &mut []);
    }

    #[test]
    fn a_long_record_counts_for_more_than_the_piece_of_it_that_was_seen() {
        let records = [Location { offset: 0, length: 9000 }, Location { offset: 9000, length: 1000 }];
        let piece = |record, compressed_bytes| Piece { record, bytes: 1000, compressed_bytes };
        let found = ratio(&records, &[piece(0, 100.0), piece(1, 1000.0)]);
        assert!((found - 10_000.0 / 1900.0).abs() < 1e-9, "{found}");
    }
}
