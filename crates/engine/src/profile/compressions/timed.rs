//! Compressing the records of a split and inflating them again, timed, in memory.
//!
//! Where there are several threads, they do it at the same time, as those of builds and loaders do, each on other records: what one of them takes of the
//! caches that they share, the others lack. A compression that reaches far back needs much of them.

use std::io::Write as _;

use forebay_codec::memory;
use forebay_record::{
    CompressedBlock, Dictionary, ErrorLocation, FRAME_OVERHEAD_BYTES, Location, RecordCompressor, ShardCompression,
    ShardCompressor, inflate_block, inflate_record,
};

use super::COMPRESSING_SECONDS;
use crate::cpu_time::thread_cpu_seconds;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::threads::{each, share};

/// Large records are compressed in pieces of this size: several times the window of ZSTD's usual levels, so that it finds nearly all that it would find in
/// the whole record. Of a record that is larger yet there are several pieces, at most so many.
const PIECE_BYTES: usize = 16 << 20;
const PIECES_MAX: usize = 8;

/// A thread processes this many bytes at once, of one record or of several shorter ones.
const PORTION_BYTES: usize = 2 << 20;

/// Everything is decompressed repeatedly until this many CPU seconds are over.
pub(in super::super) const INFLATING_SECONDS: f64 = 0.03;

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

/// A piece before it is compressed: the number of its record, and its bytes.
type Plain<'r> = (usize, &'r [u8]);

impl<'r> Encoded<'r> {
    fn frame(&self, location: &Location) -> &'r [u8] {
        &self.frames[location.offset as usize..location.end() as usize]
    }

    /// What is compressed: small records completely; of large ones a piece of each, then another of each.
    fn pieces(&self) -> impl Iterator<Item = Plain<'r>> {
        let rounds = if self.whole { 1 } else { PIECES_MAX };
        let of_round = move |round| {
            let numbered = self.locations.iter().enumerate();
            numbered.filter_map(move |(number, location)| Some((number, self.piece(number, location, round)?)))
        };
        (0..rounds).flat_map(of_round)
    }

    /// The piece of record `number` that comes in this round; `None` where the rounds before had all of it.
    fn piece(&self, number: usize, location: &Location, round: usize) -> Option<&'r [u8]> {
        let frame = self.frame(location);
        if self.whole || frame.len() <= PIECE_BYTES {
            return (round == 0).then_some(frame);
        }
        let pieces = (frame.len() / PIECE_BYTES).min(PIECES_MAX);
        // Another part of each record, and in the next round a distant one.
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

    pub(super) fn by_block(&self, compression: ShardCompression, threads: &Threads) -> Result<Done> {
        let compress = |pieces: &[Plain<'_>]| -> Result<Portion> {
            let mut shard = ShardCompressor::new(Vec::new(), compression).map_err(refused)?;
            for (_, piece) in pieces {
                shard.write_all(piece).and_then(|()| shard.end_record()).map_err(refused)?;
            }
            let (bytes, blocks) = shard.finish().map_err(refused)?;
            Ok(Portion { bytes, blocks: blocks.entries().to_vec(), pieces: Vec::new() }.with(pieces))
        };
        let inflate = |compressed: &[u8], block: &CompressedBlock, ring: &mut Ring| -> Result<()> {
            let into = ring.next(block.inflated_length as usize);
            inflate_block(compressed, block, compression, "", into)?;
            std::hint::black_box(into);
            Ok(())
        };
        threads.time(&portions(self.pieces()), compress, inflate)
    }

    pub(super) fn by_record(&self, compression: ShardCompression, threads: &Threads) -> Result<Done> {
        // The length and its checksum come before the record, and its own checksum after it.
        let records = self.locations.iter().map(|location| {
            let frame = self.frame(location);
            &frame[12..frame.len() - 4]
        });
        // Trained once for a data set, and so not part of what a record costs.
        let dictionary = compression.has_dictionary().then(|| Dictionary::train(records.clone()));
        let dictionary = dictionary.transpose()?;
        let compress = |pieces: &[Plain<'_>]| -> Result<Portion> {
            let mut compressor = RecordCompressor::new(compression, dictionary.as_ref()).map_err(refused)?;
            let mut portion = Portion { bytes: Vec::new(), blocks: Vec::new(), pieces: Vec::new() };
            let mut inflated_offset = 0;
            for &(record, piece) in pieces {
                let compressed = compressor.compress(piece)?;
                let (offset, length) = (portion.bytes.len() as u64, compressed.len() as u64);
                portion.bytes.extend_from_slice(compressed);
                let inflated_length = piece.len() as u64;
                portion.blocks.push(CompressedBlock { offset, length, inflated_offset, inflated_length });
                inflated_offset += inflated_length;
                let compressed_bytes = (length + FRAME_OVERHEAD_BYTES) as f64;
                portion.pieces.push(Piece { record, bytes: inflated_length + FRAME_OVERHEAD_BYTES, compressed_bytes });
            }
            Ok(portion)
        };
        let inflate = |compressed: &[u8], block: &CompressedBlock, ring: &mut Ring| -> Result<()> {
            let (length, dictionary) = (block.inflated_length, dictionary.as_ref());
            let given =
                inflate_record(compressed, length, compression, dictionary, ErrorLocation::default, |length| {
                    Ok(ring.next(length))
                })?;
            std::hint::black_box(given);
            Ok(())
        };
        threads.time(&portions(records.enumerate()), compress, inflate)
    }
}

/// Some pieces, compressed.
struct Portion {
    bytes: Vec<u8>,
    /// The ranges of `bytes` that are decompressed at once.
    blocks: Vec<CompressedBlock>,
    pieces: Vec<Piece>,
}

impl Portion {
    /// The same with its pieces, each of which has its part of a block: none is in two of them.
    fn with(mut self, pieces: &[Plain<'_>]) -> Self {
        let (mut at, mut number) = (0, 0);
        for &(record, piece) in pieces {
            while number + 1 < self.blocks.len() && at >= self.blocks[number + 1].inflated_offset {
                number += 1;
            }
            let each = self.blocks.get(number).map_or(1.0, |block| block.length as f64 / block.inflated_length as f64);
            let bytes = piece.len() as u64;
            self.pieces.push(Piece { record, bytes, compressed_bytes: bytes as f64 * each });
            at += bytes;
        }
        self
    }
}

/// Neighboring pieces together, each portion of about as many bytes.
fn portions<'r>(pieces: impl Iterator<Item = Plain<'r>>) -> Vec<Vec<Plain<'r>>> {
    let (mut all, mut bytes): (Vec<Vec<Plain<'r>>>, _) = (Vec::new(), PORTION_BYTES);
    for piece in pieces {
        if bytes >= PORTION_BYTES {
            all.push(Vec::new());
            bytes = 0;
        }
        bytes += piece.1.len();
        all.last_mut().expect("there is one: the first piece begins it").push(piece);
    }
    all
}

/// Threads that compress and inflate at the same time.
pub(super) struct Threads {
    count: usize,
    /// What each inflates into.
    rings: Mutex<Vec<Ring>>,
}

/// What all threads inflate into takes no more: rather than more memory there are fewer of them.
const RINGS_BYTES_MAX: u64 = 512 << 20;

impl Threads {
    /// At most this many, each of which decompresses into that much memory.
    pub(super) fn new(count: usize, ring_bytes: u64) -> Result<Self> {
        let count = count.min((RINGS_BYTES_MAX / ring_bytes.max(1)) as usize).max(1);
        let rings = (0..count).map(|_| Ring::new(ring_bytes)).collect::<Result<_>>()?;
        Ok(Self { count, rings: Mutex::new(rings) })
    }

    /// Compresses as many portions as there is time for, the first ones, and inflates what came of it.
    fn time(
        &self,
        portions: &[Vec<Plain<'_>>],
        compress: impl Fn(&[Plain<'_>]) -> Result<Portion> + Sync,
        inflate: impl Fn(&[u8], &CompressedBlock, &mut Ring) -> Result<()> + Sync,
    ) -> Result<Done> {
        let spent = Mutex::new(0.0);
        let one = |number: usize| {
            if number > 0 && *spent.lock() >= COMPRESSING_SECONDS * self.count as f64 {
                return Ok(None);
            }
            let begun = thread_cpu_seconds();
            let portion = compress(&portions[number])?;
            *spent.lock() += thread_cpu_seconds() - begun;
            Ok(Some(portion))
        };
        let made: Vec<Result<Option<Portion>>> =
            each(portions.len(), self.count, "compress", one, |made| !matches!(made, Ok(Some(_))))?;
        // What came after one that was left out is left out, too: others saw these.
        let made = made.into_iter().collect::<Result<Vec<_>>>()?;
        let made: Vec<Portion> = made.into_iter().map_while(|portion| portion).collect();
        let all = made.iter().flat_map(|portion| portion.blocks.iter().map(|block| (&*portion.bytes, block)));
        let inflating = self.inflating(&all.collect::<Vec<_>>(), inflate)?;
        let compressing = spent.into_inner();
        Ok(Done { pieces: made.into_iter().flat_map(|portion| portion.pieces).collect(), compressing, inflating })
    }

    /// How many CPU seconds it takes to inflate all `blocks` once, while the others inflate them, too. They are inflated again and again until that is
    /// known.
    fn inflating(
        &self,
        blocks: &[(&[u8], &CompressedBlock)],
        inflate: impl Fn(&[u8], &CompressedBlock, &mut Ring) -> Result<()> + Sync,
    ) -> Result<f64> {
        if blocks.is_empty() {
            return Ok(0.0);
        }
        let passes = |first: usize, ring: &mut Ring| {
            let one = |number: usize, ring: &mut Ring| {
                let (bytes, block) = blocks[number % blocks.len()];
                inflate(&bytes[block.offset as usize..block.end() as usize], block, ring)
            };
            // Once more, to warm up.
            one(first, ring)?;
            let (begun, mut passes) = (thread_cpu_seconds(), 0.0);
            loop {
                for number in 0..blocks.len() {
                    one(first + number, ring)?;
                }
                passes += 1.0;
                let seconds = thread_cpu_seconds() - begun;
                if seconds >= INFLATING_SECONDS {
                    return Ok(seconds / passes);
                }
            }
        };
        let found: Mutex<Vec<Result<f64>>> = Mutex::new(Vec::new());
        let work = || {
            let (ring, others) = {
                let mut rings = self.rings.lock();
                (rings.pop(), rings.len())
            };
            let Some(mut ring) = ring else { return };
            // Each begins elsewhere.
            let first = others * blocks.len() / self.count;
            let seconds = passes(first, &mut ring);
            self.rings.lock().push(ring);
            found.lock().push(seconds);
        };
        std::thread::scope(|scope| share(scope, self.count, "inflate", &work))?;
        let found = found.into_inner().into_iter().collect::<Result<Vec<f64>>>()?;
        Ok(found.iter().sum::<f64>() / found.len().max(1) as f64)
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

/// Memory for that many bytes.
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
    fn very_large_records_are_seen_in_places_that_lie_apart_and_others_whole() {
        assert_eq!(pieces_of(1000, false), [(0, 1000)]);
        assert_eq!(pieces_of(PIECE_BYTES, false), [(0, PIECE_BYTES)]);
        assert_eq!(pieces_of(9 * PIECE_BYTES, true), [(0, 9 * PIECE_BYTES)]);
        assert_eq!(pieces_of(PIECE_BYTES + 2, false), [(1, PIECE_BYTES)]);
        for length in [2 * PIECE_BYTES, 3 * PIECE_BYTES + 7, 8 * PIECE_BYTES, 20 * PIECE_BYTES + 1] {
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

    #[test]
    fn short_pieces_come_together_and_long_ones_alone() {
        let memory = vec![0; 3 * PORTION_BYTES];
        let lengths = [PORTION_BYTES / 2, PORTION_BYTES / 2, PORTION_BYTES / 4, 3 * PORTION_BYTES, 1, 2];
        let pieces = lengths.iter().enumerate().map(|(number, &length)| (number, &memory[..length]));
        let numbers = |portion: &Vec<Plain<'_>>| portion.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        let found: Vec<Vec<usize>> = portions(pieces).iter().map(numbers).collect();
        assert_eq!(found, [vec![0, 1], vec![2, 3], vec![4, 5]]);
        assert!(portions(std::iter::empty()).is_empty());
    }
}
