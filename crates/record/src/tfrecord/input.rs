//! The bytes of a shard, inflated where it is compressed.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::{GzDecoder, ZlibDecoder};

use crate::error::FormatFault;
use crate::tfrecord::{HEADER_BYTES, check_header};

/// How a shard is compressed: as one stream over all its frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Decided by the first bytes: a valid frame header is a plain shard, then GZIP's and ZLIB's own headers are looked for,
    /// and anything else is read as plain.
    #[default]
    Detect,
    /// Not compressed.
    None,
    /// GZIP, of one or several members.
    Gzip,
    /// ZLIB.
    Zlib,
}

/// Why there are no more bytes.
pub(crate) enum InputFault {
    /// The reader underneath failed.
    Io(io::Error),
    /// The compressed stream is damaged.
    Format(FormatFault),
}

/// Remembers that the reader underneath failed, which tells its errors from the decompressor's.
struct Tracked<R> {
    inner: R,
    failed: bool,
}

impl<R: Read> Read for Tracked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
                count => return count,
            }
        }
    }
}

type Source<R> = BufReader<Chain<Cursor<Vec<u8>>, Tracked<R>>>;

/// Small beside what is read at once from a plain shard, which therefore goes around this buffer.
const SOURCE_BUFFER_BYTES: usize = 64 * 1024;

/// Bytes inflated at once. Where a compressed stream is damaged, what this call inflated before the damage is lost with what
/// follows it, so this is not larger.
const INFLATE_BYTES: usize = 32 * 1024;

enum Stream<R> {
    Plain(Source<R>),
    Gzip(GzDecoder<Source<R>>),
    Zlib(ZlibDecoder<Source<R>>),
    Ended,
}

/// A shard's bytes, inflated.
pub(crate) struct Input<R> {
    stream: Stream<R>,
}

/// What the first bytes of a shard say that it is.
enum Kind {
    Plain,
    Gzip,
    Zlib,
    Zstd,
}

fn detect(head: &[u8]) -> Kind {
    // A plain shard may begin with the bytes of a ZLIB header by chance of its first length; its checksum settles it.
    if head.first_chunk::<HEADER_BYTES>().is_some_and(|header| check_header(header).is_ok()) {
        return Kind::Plain;
    }
    match *head {
        [0x1f, 0x8b, 8, ..] => Kind::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Kind::Zstd,
        // RFC 1950: method 8, a window of at most 32 KiB, no preset dictionary, and the two bytes a multiple of 31.
        [cmf, flg, ..]
            if cmf & 0x0f == 8
                && cmf >> 4 <= 7
                && flg & 0x20 == 0
                && u16::from_be_bytes([cmf, flg]).is_multiple_of(31) =>
        {
            Kind::Zlib
        }
        _ => Kind::Plain,
    }
}

impl<R: Read> Input<R> {
    /// Reads the first bytes where the compression is to be detected. `None` if it is one that this crate does not read.
    pub(crate) fn open(input: R, compression: Compression) -> io::Result<Option<Self>> {
        let mut tracked = Tracked { inner: input, failed: false };
        let mut head = Vec::new();
        let kind = match compression {
            Compression::Detect => {
                tracked.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut head)?;
                detect(&head)
            }
            Compression::None => Kind::Plain,
            Compression::Gzip => Kind::Gzip,
            Compression::Zlib => Kind::Zlib,
        };
        let source = BufReader::with_capacity(SOURCE_BUFFER_BYTES, Cursor::new(head).chain(tracked));
        let stream = match kind {
            Kind::Plain => Stream::Plain(source),
            Kind::Gzip => Stream::Gzip(GzDecoder::new(source)),
            Kind::Zlib => Stream::Zlib(ZlibDecoder::new(source)),
            Kind::Zstd => return Ok(None),
        };
        Ok(Some(Self { stream }))
    }

    pub(crate) fn is_compressed(&self) -> bool {
        !matches!(self.stream, Stream::Plain(_))
    }

    /// Reads some bytes into `out`, which is not empty; 0 at the end.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, InputFault> {
        let inflated = out.len().min(INFLATE_BYTES);
        loop {
            let (result, source, compression) = match &mut self.stream {
                Stream::Plain(source) => return source.read(out).map_err(InputFault::Io),
                Stream::Gzip(decoder) => (decoder.read(&mut out[..inflated]), decoder.get_ref(), "GZIP"),
                Stream::Zlib(decoder) => (decoder.read(&mut out[..inflated]), decoder.get_ref(), "ZLIB"),
                Stream::Ended => return Ok(0),
            };
            let failed = source.get_ref().get_ref().1.failed;
            match result {
                Ok(0) => self.next_member()?,
                Ok(count) => return Ok(count),
                Err(error) if failed => return Err(InputFault::Io(error)),
                Err(error) => {
                    let detail = error.to_string().into();
                    return Err(InputFault::Format(FormatFault::Compressed { compression, detail }));
                }
            }
        }
    }

    /// After the end of a compressed stream: another GZIP member, or the end of the shard, or garbage.
    fn next_member(&mut self) -> Result<(), InputFault> {
        let (mut source, compression) = match std::mem::replace(&mut self.stream, Stream::Ended) {
            Stream::Gzip(decoder) => (decoder.into_inner(), "GZIP"),
            Stream::Zlib(decoder) => (decoder.into_inner(), "ZLIB"),
            Stream::Plain(_) | Stream::Ended => return Ok(()),
        };
        let first = source.fill_buf().map_err(InputFault::Io)?.first().copied();
        match first {
            None => Ok(()),
            // RFC 1952 allows members one after the other; `cat` makes such files.
            Some(0x1f) if compression == "GZIP" => {
                self.stream = Stream::Gzip(GzDecoder::new(source));
                Ok(())
            }
            Some(_) => Err(InputFault::Format(FormatFault::TrailingGarbage { compression })),
        }
    }
}
