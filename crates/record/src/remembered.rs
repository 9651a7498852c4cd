//! What was read of a stream once, for whoever goes through the same places again.

use std::collections::BTreeMap;
use std::io::{Read, Result, Seek, SeekFrom};

/// So much is remembered at most. Whatever comes after that is read again.
const BYTES_MAX: usize = if cfg!(test) { 4096 } else { 64 << 20 };

/// Reads a stream, remembers the pieces that were read, and reads no byte of them twice. Going elsewhere costs nothing until something is read there.
pub(crate) struct Remembered<R> {
    input: R,
    /// Where the input stands; `None` where that is not known.
    input_position: Option<u64>,
    position: u64,
    /// The pieces by where they begin. They do not overlap.
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
}

impl<R: Read + Seek> Remembered<R> {
    /// Remembers nothing yet, and stands at the first byte.
    pub(crate) fn new(input: R) -> Self {
        Self { input, input_position: None, position: 0, pieces: BTreeMap::new(), bytes: 0 }
    }

    /// What is remembered from the position on.
    fn remembered(&self) -> Option<&[u8]> {
        let (start, piece) = self.pieces.range(..=self.position).next_back()?;
        let within = usize::try_from(self.position - start).ok()?;
        piece.get(within..).filter(|rest| !rest.is_empty())
    }

    fn remember(&mut self, read: &[u8]) {
        if self.bytes + read.len() > BYTES_MAX {
            return;
        }
        self.bytes += read.len();
        match self.pieces.range_mut(..self.position).next_back() {
            Some((start, piece)) if start + piece.len() as u64 == self.position => piece.extend_from_slice(read),
            _ => _ = self.pieces.insert(self.position, read.to_vec()),
        }
    }
}

impl<R: Read + Seek> Read for Remembered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if let Some(rest) = self.remembered() {
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.position += count as u64;
            return Ok(count);
        }
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.input_position != Some(self.position) {
            self.input_position = None;
            self.input.seek(SeekFrom::Start(self.position))?;
        }
        // Not into what is remembered already.
        let next = self.pieces.range(self.position..).next().map_or(u64::MAX, |(start, _)| *start);
        let space = usize::try_from(next - self.position).unwrap_or(usize::MAX).min(buffer.len());
        self.input_position = None;
        let count = self.input.read(&mut buffer[..space])?;
        if count > 0 {
            self.remember(&buffer[..count]);
        }
        self.position += count as u64;
        self.input_position = Some(self.position);
        Ok(count)
    }
}

impl<R: Read + Seek> Seek for Remembered<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let sought = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(_) => {
                let position = self.input.seek(to)?;
                self.input_position = Some(position);
                Some(position)
            }
        };
        self.position = sought.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// Counts the bytes that are read.
    struct Counted<'a>(Cursor<&'a [u8]>, usize);

    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let count = self.0.read(buffer)?;
            self.1 += count;
            Ok(count)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: SeekFrom) -> Result<u64> {
            self.0.seek(to)
        }
    }

    proptest! {
        /// Whatever is read in whatever order is what the stream has there, and no byte is read twice while there is space to remember it.
        #[test]
        fn the_same_is_read_and_nothing_twice(length in 0_usize..6000, reads in prop::collection::vec((0_u64..6500, 0_usize..700), 1..40)) {
            let content: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let mut stream = Remembered::new(Counted(Cursor::new(&content), 0));
            prop_assert_eq!(stream.seek(SeekFrom::End(0)).unwrap(), length as u64);
            for (position, count) in reads {
                stream.seek(SeekFrom::Start(position)).unwrap();
                let mut found = Vec::new();
                stream.by_ref().take(count as u64).read_to_end(&mut found).unwrap();
                let from = (position as usize).min(length);
                prop_assert_eq!(&found[..], &content[from..(from + count).min(length)]);
            }
            prop_assert!(stream.bytes <= BYTES_MAX);
            if stream.bytes + 700 < BYTES_MAX {
                prop_assert_eq!(stream.input.1, stream.bytes);
            }
        }
    }
}
