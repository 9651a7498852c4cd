//! Compressing the records of a split and inflating them again, timed, on one thread and in memory.

use std::io::Write as _;
use std::ops::Range;

use forebay_codec::memory;
use forebay_record::{
    Dictionary, ErrorLocation, FRAME_OVERHEAD_BYTES, Location, RecordCompressor, ShardCompression, ShardCompressor,
    inflate_block, inflate_record,
};

use super::{COMPRESSING_SECONDS, RECORDS_MIN};
use crate::cpu_time::thread_cpu_seconds;
use crate::error::{Error, Result};

/// So many bytes of records are compressed, or a quarter of them, but no more than this.
pub(in super::super) const COMPRESSED_BYTES: Range<u64> = 4 << 20..16 << 20;

/// Of a large record a piece at a time, at most from so many places of it: then several records are seen, which may be unlike each other, and
/// of each more than its sky. As large as the window of ZSTD's usual levels: smaller ones would not show what it finds further back, and of larger ones
/// there would be fewer in the same time.
const PIECE_BYTES: usize = 2 << 20;
const PIECES_MAX: usize = 8;

/// All is inflated once more until so many CPU seconds are over.
pub(in super::super) const INFLATING_SECONDS: f64 = 0.015;

/// Records as they are before they are compressed, and what it took to get there and back, in CPU seconds.
pub(super) struct Encoded<'r> {
    pub(super) frames: &'r [u8],
    pub(super) locations: &'r [Location],
    pub(super) encoding: f64,
    pub(super) decoding: f64,
    /// Whether all of each record is compressed.
    pub(super) whole: bool,
}

/// What compressing the first records gave and took.
pub(super) struct Done {
    /// What was compressed, in order.
    pub(super) pieces: Vec<Piece>,
    pub(super) compressing: f64,
    /// CPU seconds to inflate them once.
    pub(super) inflating: f64,
}

/// A part of a record, or all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// The number of the record.
    pub(super) record: usize,
    pub(super) bytes: u64,
    /// What it takes on storage: its part of a block, where that has several.
    pub(super) compressed_bytes: f64,
}

impl Encoded<'_> {
    fn frame(&self, location: &Location) -> &[u8] {
        &self.frames[location.offset as usize..location.end() as usize]
    }

    fn enough_bytes(&self) -> u64 {
        enough_bytes(self.frames.len())
    }

    /// What is compressed, and the number of its record: small records whole; of large ones a piece of each, then another of each.
    fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let rounds = if self.whole { 1 } else { PIECES_MAX };
        let of_round = move |round| {
            let numbered = self.locations.iter().enumerate();
            numbered.filter_map(move |(number, location)| Some((number, self.piece(number, location, round)?)))
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

    /// Where nothing is compressed after it was encoded.
    pub(super) fn as_it_is(&self) -> Done {
        let whole = |(record, location): (usize, &Location)| Piece {
            record,
            bytes: location.length,
            compressed_bytes: location.length as f64,
        };
        Done { pieces: self.locations.iter().enumerate().map(whole).collect(), compressing: 0.0, inflating: 0.0 }
    }

    pub(super) fn by_block(&self, compression: ShardCompression, ring: &mut Ring) -> Result<Done> {
        let begun = thread_cpu_seconds();
        let mut shard = ShardCompressor::new(Vec::new(), compression).map_err(refused)?;
        let (mut pieces, mut taken): (Vec<Piece>, _) = (Vec::new(), 0);
        for (record, piece) in self.pieces() {
            let late = thread_cpu_seconds() - begun > COMPRESSING_SECONDS;
            let enough = taken >= self.enough_bytes() && (pieces.len() >= RECORDS_MIN || self.whole);
            if !pieces.is_empty() && (late || enough) {
                break;
            }
            shard.write_all(piece).and_then(|()| shard.end_record()).map_err(refused)?;
            taken += piece.len() as u64;
            pieces.push(Piece { record, bytes: piece.len() as u64, compressed_bytes: 0.0 });
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
        let (mut at, mut number) = (0, 0);
        for piece in &mut pieces {
            // A piece is never in two blocks.
            while number + 1 < entries.len() && at >= entries[number + 1].inflated_offset {
                number += 1;
            }
            let each = entries.get(number).map_or(1.0, |block| block.length as f64 / block.inflated_length as f64);
            piece.compressed_bytes = piece.bytes as f64 * each;
            at += piece.bytes;
        }
        Ok(Done { pieces, compressing, inflating })
    }

    pub(super) fn by_record(&self, compression: ShardCompression, ring: &mut Ring) -> Result<Done> {
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
        let mut pieces = Vec::new();
        let begun = thread_cpu_seconds();
        let mut taken = 0;
        for (number, location) in self.locations.iter().enumerate() {
            let late = thread_cpu_seconds() - begun > COMPRESSING_SECONDS;
            if !all.is_empty() && (late || taken >= self.enough_bytes()) {
                break;
            }
            let record = record(location);
            let compressed = compressor.compress(record)?.to_vec();
            let compressed_bytes = (compressed.len() as u64 + FRAME_OVERHEAD_BYTES) as f64;
            pieces.push(Piece { record: number, bytes: location.length, compressed_bytes });
            all.push((compressed, record.len() as u64));
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
        Ok(Done { pieces, compressing, inflating })
    }
}

/// How many bytes are compressed of so many.
pub(super) fn enough_bytes(all: usize) -> u64 {
    (all as u64 / 4).clamp(COMPRESSED_BYTES.start, COMPRESSED_BYTES.end)
}

/// How many CPU seconds it takes to do all `count` pieces once. They are done again and again until that is known; the first is
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
pub(super) struct Ring {
    memory: Vec<u8>,
    end: usize,
}

impl Ring {
    /// The system has given it all of its memory already.
    pub(super) fn new(bytes: u64) -> Result<Self> {
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
        encoded.pieces().map(|(_, piece)| (begin(piece), piece.len())).collect()
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
            encoded.pieces().map(|(_, piece)| (piece.as_ptr() as usize - frames.as_ptr() as usize) as u64).collect();
        let records: Vec<u64> = begins.iter().map(|begin| begin / half).collect();
        assert_eq!(records, [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_ne!(begins[0], begins[1] - half, "two records are seen in the same part");
    }
}
