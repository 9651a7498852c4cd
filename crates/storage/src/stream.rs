//! An open file as the standard library's readers want it.

use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;

use crate::{Error, File};

/// The first piece of a file: this comes about as fast as less, since the time is that to the first byte.
const FIRST_PIECE_BYTES: usize = 1 << 20;
/// The first one behind a leap, which may be all that is wanted there.
const LEAP_PIECE_BYTES: usize = 64 << 10;
/// So many times as large as the last is the next.
const PIECES_GROW: usize = 4;
/// Passing over more than this is a leap: another request takes less time than these bytes on a share of a connection.
const LEAP_BYTES: u64 = 1 << 20;

/// Reads an open file sequentially, with seeking. Each read is one read of the file: wrap it in a [`BufReader`](io::BufReader) where
/// they are small.
pub struct Stream<'a> {
    file: Of<'a>,
    position: u64,
    /// What is read at once at the most, where pieces are; 0 for what is asked for.
    piece_bytes: usize,
    /// What the next piece has.
    next_bytes: usize,
    /// The last piece, and where it begins.
    piece: (u64, Bytes),
}

impl<'a> Stream<'a> {
    /// A stream from the file's first byte on.
    pub fn new(file: &'a dyn File) -> Self {
        Self::of(Of::Borrowed(file))
    }

    fn of(file: Of<'a>) -> Self {
        Self { file, position: 0, piece_bytes: 0, next_bytes: 0, piece: (0, Bytes::new()) }
    }

    /// The same with read-ahead of up to this many bytes, for storage where each read has a high latency, such as an object store.
    ///
    /// Pieces grow as long as reading is sequential, and are small again after a seek: little is read of a file of which little is needed, and
    /// a file that is read completely is read in large pieces, which all have the same size in the end.
    #[must_use]
    pub fn in_pieces(self, piece_bytes: usize) -> Self {
        Self { piece_bytes, next_bytes: piece_bytes.min(FIRST_PIECE_BYTES), ..self }
    }

    /// Reads the piece at the position. It begins where the last one ended, unless that is far away: so cached pieces have no gaps.
    fn take_piece(&mut self) -> io::Result<()> {
        let end = self.piece.0 + self.piece.1.len() as u64;
        let gap = self.position.checked_sub(end).filter(|gap| *gap <= LEAP_BYTES);
        if gap.is_none() {
            self.next_bytes = self.piece_bytes.min(LEAP_PIECE_BYTES);
        }
        let gap = gap.unwrap_or(0);
        let start = self.position - gap;
        let left = usize::try_from(self.file.get().size().saturating_sub(start)).unwrap_or(usize::MAX);
        // Beyond what is passed over there is to be something.
        let length = self.next_bytes.max((gap as usize).saturating_add(LEAP_PIECE_BYTES)).min(left);
        self.piece = (start, self.file.get().read(start, length).map_err(into_io)?);
        self.next_bytes = self.next_bytes.saturating_mul(PIECES_GROW).min(self.piece_bytes);
        Ok(())
    }

    /// The buffered bytes at the position; empty if it is outside the piece.
    fn kept(&self) -> &[u8] {
        let (start, piece) = &self.piece;
        let within = self.position.checked_sub(*start).and_then(|within| usize::try_from(within).ok());
        within.and_then(|within| piece.get(within..)).unwrap_or_default()
    }
}

impl Stream<'static> {
    /// The same of a file that nobody else needs.
    pub fn owning(file: Box<dyn File>) -> Self {
        Self::of(Of::Owned(file))
    }
}

/// A file of somebody else, or of one's own.
enum Of<'a> {
    Borrowed(&'a dyn File),
    Owned(Box<dyn File>),
}

impl Of<'_> {
    fn get(&self) -> &dyn File {
        match self {
            Self::Borrowed(file) => *file,
            Self::Owned(file) => &**file,
        }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.get().size().saturating_sub(self.position);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if self.piece_bytes > 0 && left > 0 && !buffer.is_empty() {
            if self.kept().is_empty() {
                self.take_piece()?;
            }
            let kept = self.kept();
            let length = kept.len().min(buffer.len());
            buffer[..length].copy_from_slice(&kept[..length]);
            self.position += length as u64;
            return Ok(length);
        }
        let length = left.min(buffer.len());
        let bytes = self.file.get().read(self.position, length).map_err(into_io)?;
        buffer[..length].copy_from_slice(&bytes);
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Stream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let sought = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.file.get().size().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = sought.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// The system's error; the caller knows the file's name.
fn into_io(error: Error) -> io::Error {
    match error {
        Error::Open { source, .. } | Error::Read { source, .. } => source,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A file of that many zeros, and what was read of it.
    struct Watched(u64, Mutex<Vec<(u64, usize)>>);

    impl File for Watched {
        fn size(&self) -> u64 {
            self.0
        }

        fn read(&self, offset: u64, length: usize) -> crate::Result<Bytes> {
            self.1.lock().unwrap().push((offset, length));
            Ok(Bytes::from(vec![0; length]))
        }
    }

    /// Reads 512 bytes at the beginning of each `step`, as a tar's headers are, and gives the reads of the file.
    fn headers(size: u64, step: u64) -> Vec<(u64, usize)> {
        let file = Watched(size, Mutex::default());
        let mut stream = Stream::new(&file).in_pieces(4 << 20);
        for position in (0..size).step_by(step as usize) {
            stream.seek(SeekFrom::Start(position)).unwrap();
            stream.read_exact(&mut [0; 512]).unwrap();
        }
        file.1.into_inner().unwrap()
    }

    #[test]
    fn pieces_grow_where_all_is_wanted_and_stay_small_where_little_is() {
        let near = headers(64 << 20, 128 << 10);
        assert!(near.len() <= 17, "{} reads", near.len());
        assert_eq!((near[0], near[1]), ((0, 1 << 20), (1 << 20, 4 << 20)));
        assert!(near.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 == pair[1].0), "{near:?}");
        let far = headers(64 << 20, 4 << 20);
        assert_eq!(far[0], (0, 1 << 20));
        assert_eq!(far[1..], (1..16).map(|number| (number * (4 << 20), 64 << 10)).collect::<Vec<_>>());
        // Headers behind the end of a piece: pieces have the same lengths as without.
        let across = headers(64 << 20, 300 << 10);
        assert!(across.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 == pair[1].0), "{across:?}");
        assert!(across[1..across.len() - 1].iter().all(|(_, length)| *length == 4 << 20), "{across:?}");
    }
}
