//! What the formats cost alone in which a split may be kept: how small its records become, and how fast one thread puts them into the
//! format and makes them again, in memory.
//!
//! The records are made here, a few hundred at the most, and never touch a storage. Everything is bounded: how many records and bytes
//! there are, and how much processor time goes into making them and into each format.

use std::cell::RefCell;
use std::io::Write as _;
use std::ops::Range;

use forebay_codec::memory;
use forebay_pipeline::{
    Pipeline, RngKey, Runner, Sample, SampleView, StorageFormat, Strategy, ValueView, decode_sample, encode_sample,
};
use forebay_plan::CompressionCost;
use forebay_record::{
    Dictionary, ErrorLocation, FRAME_OVERHEAD_BYTES, Location, RecordCompressor, Scope, ShardCompression,
    ShardCompressor, Writer, inflate_block, inflate_record,
};

use super::costs::{Collect, Nowhere};
use crate::data::SourceReader;
use crate::error::{Error, Result};
use crate::processor_time::thread_cpu_seconds;
use crate::progress::{Progress, while_wanted};

/// The formats that are considered unless others are named: what inflates fastest, three levels of what is smallest for most data, and what
/// made raw pixels smallest. docs/how-to/compression.md has the figures.
pub const COMPRESSION_CANDIDATES: [&str; 5] = ["lz4", "zstd-1", "zstd-3", "zstd-9", "gzip"];

/// So many records tell the ratio of a data set within a few per cent.
pub(super) const RECORDS_MAX: u64 = 256;

/// More bytes do not change it, if they are of several records.
const BYTES_MAX: u64 = 8 << 20;
const LARGE_RECORDS: usize = 4;
const LARGE_BYTES_MAX: u64 = 128 << 20;

/// Where records are slow to make, fewer do: none is begun after so many processor seconds.
const MAKING_SECONDS: f64 = 0.2;

/// So many bytes of records are compressed, or a quarter of them, but no more than this: the same by all, which makes their ratios comparable.
const COMPRESSED_BYTES: Range<u64> = 4 << 20..16 << 20;

/// Of a large record a piece at a time, at most from so many places of it: then several records are seen, which may be unlike each other, and
/// of each more than its sky. As large as the window of ZSTD's higher levels: it takes longer to look back further than a core's own cache.
const PIECE_BYTES: usize = 4 << 20;
const PIECES_MAX: usize = 8;

/// Compressions that are slower than any considered unless named get to see less: nothing is compressed after so many processor seconds.
const COMPRESSING_SECONDS: f64 = 0.6;

/// All is inflated once more until so many processor seconds are over.
const INFLATING_SECONDS: f64 = 0.015;

/// What is inflated lies beside what was before it, as it does while it waits for workers: at least so much, or so many records.
const WAITING_BYTES: u64 = 16 << 20;
const WAITING_RECORDS: u64 = 4;

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

/// Records of a split, as a shard has them.
pub(super) struct Records<'p> {
    pipeline: &'p Pipeline,
    plain: &'p Strategy,
    /// What they were made of.
    samples: Vec<Sample>,
    frames: Vec<u8>,
    locations: Vec<Location>,
    /// What they are inflated into.
    waiting: RefCell<Ring>,
}

impl<'p> Records<'p> {
    /// Makes records as `plain` keeps them, of the first samples of `reader`.
    pub(super) fn of(
        pipeline: &'p Pipeline,
        plain: &'p Strategy,
        reader: &SourceReader,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut runner = Runner::new(plain.offline(pipeline), 0);
        let mut writer = Writer::new(Vec::new());
        let (mut samples, mut locations, mut record) = (Vec::new(), Vec::new(), Vec::new());
        let begun = thread_cpu_seconds();
        for number in 0..reader.listing().len() {
            let late = thread_cpu_seconds() - begun > MAKING_SECONDS;
            let bytes_max = if samples.len() < LARGE_RECORDS { LARGE_BYTES_MAX } else { BYTES_MAX };
            if late && number > 0 || writer.position() >= bytes_max || samples.len() as u64 >= RECORDS_MAX {
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
        let waiting = RefCell::new(Ring::new(waiting_bytes)?);
        Ok(Self { pipeline, plain, samples, frames: writer.finish()?, locations, waiting })
    }

    /// What keeping them as `strategy` costs; `None` where there are none.
    pub(super) fn cost(&self, strategy: &Strategy) -> Result<Option<CompressionCost>> {
        let encoded = if added(self.plain, strategy).has_plain_fields() {
            Encoded { frames: &self.frames, locations: &self.locations, encoding: 0.0, decoding: 0.0, whole: false }
        } else {
            return self.encoded(strategy);
        };
        self.compressed(strategy, &encoded)
    }

    /// The same where pictures or tensors are encoded first.
    fn encoded(&self, strategy: &Strategy) -> Result<Option<CompressionCost>> {
        let mut writer = Writer::new(Vec::new());
        let (mut records, mut locations): (Vec<Vec<u8>>, _) = (Vec::new(), Vec::new());
        let begun = thread_cpu_seconds();
        let mut taken = 0;
        for (sample, location) in self.samples.iter().zip(&self.locations) {
            let late = thread_cpu_seconds() - begun > COMPRESSING_SECONDS;
            if !records.is_empty() && (late || taken >= enough_bytes(self.frames.len())) {
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

    fn compressed(&self, strategy: &Strategy, encoded: &Encoded<'_>) -> Result<Option<CompressionCost>> {
        let ring = &mut self.waiting.borrow_mut();
        let done = match strategy.format.compression {
            None => Done { records: encoded.locations.len(), bytes: encoded.frames.len() as u64, ..Done::default() },
            Some(compression) if compression.scope == Scope::Record => encoded.by_record(compression, ring)?,
            Some(compression) => encoded.by_block(compression, ring)?,
        };
        let as_they_are = || self.locations.iter().take(done.records).map(|location| location.length).sum();
        let bytes: u64 = if encoded.whole { as_they_are() } else { done.taken };
        if bytes == 0 || done.bytes == 0 {
            return Ok(None);
        }
        // Where not all that was encoded was compressed, only its share counts.
        let share = done.records as f64 / encoded.locations.len().max(1) as f64;
        let decoding = encoded.decoding * share;
        let decompressing = done.inflating + decoding;
        let of_readers = if strategy.format.compression.is_some_and(|one| one.scope == Scope::Record) {
            0.0
        } else {
            done.inflating
        };
        let rate = |seconds: f64| bytes as f64 / seconds.max(1e-9);
        Ok(Some(CompressionCost {
            strategy: strategy.to_string(),
            plain: self.plain.to_string(),
            compression: added(self.plain, strategy).to_string(),
            records: done.records as u64,
            bytes,
            ratio: bytes as f64 / done.bytes as f64,
            compress_bytes_per_second: rate(done.compressing + encoded.encoding * share),
            decompress_bytes_per_second: rate(decompressing),
            reader_share: if decompressing > 0.0 { of_readers / decompressing } else { 0.0 },
            lossy: strategy.is_lossy(),
        }))
    }
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

/// Records as they are before they are compressed, and what it took to get there and back, in processor seconds.
struct Encoded<'r> {
    frames: &'r [u8],
    locations: &'r [Location],
    encoding: f64,
    decoding: f64,
    /// Whether all of each record is compressed.
    whole: bool,
}

/// What compressing the first records gave and took.
#[derive(Default)]
struct Done {
    records: usize,
    /// How many bytes of them were compressed.
    taken: u64,
    /// What they take on storage.
    bytes: u64,
    compressing: f64,
    /// Processor seconds to inflate them once.
    inflating: f64,
}

impl Encoded<'_> {
    fn frame(&self, location: &Location) -> &[u8] {
        &self.frames[location.offset as usize..location.end() as usize]
    }

    fn enough_bytes(&self) -> u64 {
        enough_bytes(self.frames.len())
    }

    /// What is compressed: small records whole; of large ones a piece of each, then another of each.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let rounds = if self.whole { 1 } else { PIECES_MAX };
        let of_round = move |round| {
            let numbered = self.locations.iter().enumerate();
            numbered.filter_map(move |(number, location)| self.piece(number, location, round))
        };
        (0..rounds).flat_map(of_round)
    }

    /// The piece of record `number` that comes in this round; `None` where the rounds before had all of it.
    fn piece(&self, number: usize, location: &Location, round: usize) -> Option<&[u8]> {
        let frame = self.frame(location);
        if self.whole || frame.len() <= PIECE_BYTES {
            return (round == 0).then_some(frame);
        }
        let pieces = (frame.len() / PIECE_BYTES).min(PIECES_MAX);
        // Another part of each record, and in the next round one that lies apart from it.
        let steps = (0..PIECES_MAX).map(|step| (step * 3 + PIECES_MAX / 2) % PIECES_MAX);
        let place = steps.filter(|place| *place < pieces).nth((round + number) % pieces).filter(|_| round < pieces)?;
        let part = frame.len() / pieces;
        let begin = place * part + (part - PIECE_BYTES) / 2;
        Some(&frame[begin..begin + PIECE_BYTES])
    }

    fn by_block(&self, compression: ShardCompression, ring: &mut Ring) -> Result<Done> {
        let begun = thread_cpu_seconds();
        let mut shard = ShardCompressor::new(Vec::new(), compression).map_err(refused)?;
        let (mut pieces, mut taken) = (0, 0);
        for piece in self.pieces() {
            let late = thread_cpu_seconds() - begun > COMPRESSING_SECONDS;
            if pieces > 0 && (late || taken >= self.enough_bytes()) {
                break;
            }
            shard.write_all(piece).and_then(|()| shard.end_record()).map_err(refused)?;
            pieces += 1;
            taken += piece.len() as u64;
        }
        let (shard, blocks) = shard.finish().map_err(refused)?;
        let compressing = thread_cpu_seconds() - begun;
        let entries = blocks.entries();
        let inflating = repeated(entries.len(), |number| {
            let block = &entries[number];
            let compressed = &shard[block.offset as usize..block.end() as usize];
            let into = ring.next(block.inflated_length as usize);
            inflate_block(compressed, block, compression, "", into)?;
            std::hint::black_box(into);
            Ok(())
        })?;
        let records = pieces.min(self.locations.len());
        Ok(Done { records, taken, bytes: shard.len() as u64, compressing, inflating })
    }

    fn by_record(&self, compression: ShardCompression, ring: &mut Ring) -> Result<Done> {
        // The length and its checksum come before the record, and its own checksum after it.
        let record = |location: &Location| -> &[u8] {
            let frame = self.frame(location);
            &frame[12..frame.len() - 4]
        };
        // Trained once for a data set, and so not part of what a record costs.
        let dictionary = compression.has_dictionary().then(|| Dictionary::train(self.locations.iter().map(record)));
        let dictionary = dictionary.transpose()?;
        let mut compressor = RecordCompressor::new(compression, dictionary.as_ref()).map_err(refused)?;
        let mut all: Vec<(Vec<u8>, u64)> = Vec::new();
        let begun = thread_cpu_seconds();
        let mut taken = 0;
        for location in self.locations {
            let late = thread_cpu_seconds() - begun > COMPRESSING_SECONDS;
            if !all.is_empty() && (late || taken >= self.enough_bytes()) {
                break;
            }
            let record = record(location);
            all.push((compressor.compress(record)?.to_vec(), record.len() as u64));
            taken += location.length;
        }
        let compressing = thread_cpu_seconds() - begun;
        let inflating = repeated(all.len(), |number| {
            let (compressed, length) = &all[number];
            let given = inflate_record(
                compressed,
                *length,
                compression,
                dictionary.as_ref(),
                ErrorLocation::default,
                |length| Ok(ring.next(length)),
            )?;
            std::hint::black_box(given);
            Ok(())
        })?;
        let bytes = all.iter().map(|(compressed, _)| compressed.len() as u64 + FRAME_OVERHEAD_BYTES).sum();
        Ok(Done { records: all.len(), taken, bytes, compressing, inflating })
    }
}

/// How many bytes are compressed of so many.
fn enough_bytes(all: usize) -> u64 {
    (all as u64 / 4).clamp(COMPRESSED_BYTES.start, COMPRESSED_BYTES.end)
}

/// How many processor seconds it takes to do all `count` pieces once. They are done again and again until that is known; the first is
/// done once more before, to have everything in place.
fn repeated(count: usize, mut piece: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    if count == 0 {
        return Ok(0.0);
    }
    piece(0)?;
    let begun = thread_cpu_seconds();
    let mut passes = 0.0;
    loop {
        for number in 0..count {
            piece(number)?;
        }
        passes += 1.0;
        let seconds = thread_cpu_seconds() - begun;
        if seconds >= INFLATING_SECONDS {
            return Ok(seconds / passes);
        }
    }
}

/// Memory that is used from end to end, and then again.
struct Ring {
    memory: Vec<u8>,
    end: usize,
}

impl Ring {
    /// The system has given it all of its memory already.
    fn new(bytes: u64) -> Result<Self> {
        let mut memory = space(bytes)?;
        memory.fill(1);
        Ok(Self { memory, end: 0 })
    }

    /// The next `length` bytes.
    fn next(&mut self, length: usize) -> &mut [u8] {
        if self.memory.len() < length {
            self.memory.resize(length, 1);
        }
        let begin = if self.end + length <= self.memory.len() { self.end } else { 0 };
        self.end = begin + length;
        &mut self.memory[begin..self.end]
    }
}

/// Memory for so many bytes.
fn space(bytes: u64) -> Result<Vec<u8>> {
    memory::zeroed(bytes as usize).map_err(|_| refused(std::io::ErrorKind::OutOfMemory.into()))
}

fn refused(source: std::io::Error) -> Error {
    forebay_record::Error::Io { location: ErrorLocation::default(), action: "compress", source }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of one record of `length` bytes, by where they begin.
    fn pieces_of(length: usize, whole: bool) -> Vec<(usize, usize)> {
        let frames = vec![0; length];
        let locations = [Location { offset: 0, length: length as u64 }];
        let encoded = Encoded { frames: &frames, locations: &locations, encoding: 0.0, decoding: 0.0, whole };
        let begin = |piece: &[u8]| piece.as_ptr() as usize - frames.as_ptr() as usize;
        encoded.pieces().map(|piece| (begin(piece), piece.len())).collect()
    }

    #[test]
    fn large_records_are_seen_in_places_that_lie_apart_and_small_ones_whole() {
        assert_eq!(pieces_of(1000, false), [(0, 1000)]);
        assert_eq!(pieces_of(9 * PIECE_BYTES, true), [(0, 9 * PIECE_BYTES)]);
        assert_eq!(pieces_of(PIECE_BYTES + 2, false), [(1, PIECE_BYTES)]);
        for length in [2 * PIECE_BYTES, 3 * PIECE_BYTES + 7, 8 * PIECE_BYTES, 50 * PIECE_BYTES + 1] {
            let mut pieces = pieces_of(length, false);
            assert!(pieces[0].0.abs_diff(pieces[1].0) >= length / 3, "{pieces:?}");
            pieces.sort_unstable();
            assert_eq!(pieces.len(), (length / PIECE_BYTES).min(PIECES_MAX));
            assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{pieces:?}");
            assert!(pieces.iter().all(|(begin, bytes)| begin + bytes <= length), "{pieces:?}");
        }
    }

    #[test]
    fn every_large_record_comes_before_another_piece_of_one() {
        let frames = vec![0; 8 * PIECE_BYTES];
        let half = 4 * PIECE_BYTES as u64;
        let locations = [Location { offset: 0, length: half }, Location { offset: half, length: half }];
        let encoded = Encoded { frames: &frames, locations: &locations, encoding: 0.0, decoding: 0.0, whole: false };
        let begins: Vec<u64> =
            encoded.pieces().map(|piece| (piece.as_ptr() as usize - frames.as_ptr() as usize) as u64).collect();
        let records: Vec<u64> = begins.iter().map(|begin| begin / half).collect();
        assert_eq!(records, [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_ne!(begins[0], begins[1] - half, "two records are seen in the same part");
    }
}
