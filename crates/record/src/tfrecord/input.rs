//! The bytes of a shard, inflated where it is compressed.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use crate::compression::{DeflateReader, LZ4_MAGIC, Lz4Reader, ZSTD_MAGIC, ZstdReader, is_lz4_like_ours};
use crate::error::FormatFault;
use crate::tfrecord::{HEADER_BYTES, check_header};

/// How a shard is compressed: as one stream over all its frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Decided by the first bytes: a valid frame header is a plain shard, then the headers of the formats below are looked
    /// for, and anything else is read as plain.
    #[default]
    Detect,
    /// Not compressed.
    None,
    /// GZIP, of one or several members.
    Gzip,
    /// ZLIB.
    Zlib,
    /// Zstandard, of one or several frames, whose windows are of at most 128 MiB.
    Zstd,
    /// LZ4, of one or several frames.
    Lz4,
    /// Snappy's framing format.
    Snappy,
}

impl Compression {
    /// What its streams are called in errors; `None` where there is none.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Detect | Self::None => None,
            Self::Gzip => Some("GZIP"),
            Self::Zlib => Some("ZLIB"),
            Self::Zstd => Some("ZSTD"),
            Self::Lz4 => Some("LZ4"),
            Self::Snappy => Some("SNAPPY"),
        }
    }

    /// What the first bytes of a shard, 12 of them if there are so many, say that it is; [`Compression::None`] where they say nothing.
    pub fn of(head: &[u8]) -> Self {
        // A plain shard may begin with the bytes of a ZLIB header by chance of its first length; its checksum settles it.
        if head.first_chunk::<HEADER_BYTES>().is_some_and(|header| check_header(header).is_ok()) {
            return Self::None;
        }
        match *head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            _ if head.starts_with(&ZSTD_MAGIC) => Self::Zstd,
            _ if head.starts_with(&LZ4_MAGIC) => Self::Lz4,
            _ if head.starts_with(&SNAPPY_MAGIC) => Self::Snappy,
            // RFC 1950: method 8, a window of at most 32 KiB, no preset dictionary, and the two bytes a multiple of 31.
            [cmf, flg, ..]
                if cmf & 0x0f == 8
                    && cmf >> 4 <= 7
                    && flg & 0x20 == 0
                    && u16::from_be_bytes([cmf, flg]).is_multiple_of(31) =>
            {
                Self::Zlib
            }
            _ => Self::None,
        }
    }
}

/// What Snappy's framing format begins with.
const SNAPPY_MAGIC: [u8; 10] = *b"\xff\x06\x00\x00sNaPpY";

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

/// Bytes that the library for LZ4 inflates at once. Where a stream is damaged, what this call inflated before the damage is lost with what
/// follows it, so this is not larger. All others give what came before the damage.
const LZ4_BYTES: usize = 32 * 1024;

enum Stream<R: Read> {
    Plain(Source<R>),
    Gzip(DeflateReader<Source<R>>),
    Zlib(DeflateReader<Source<R>>),
    Zstd(ZstdReader<Source<R>>),
    Lz4(Lz4Reader<Source<R>>),
    /// Frames that are not like ours.
    OtherLz4(lz4::Decoder<Source<R>>),
    Snappy(Box<snap::read::FrameDecoder<Source<R>>>),
    Ended,
}

/// A shard's bytes, inflated.
pub(crate) struct Input<R: Read> {
    stream: Stream<R>,
    /// What the stream is called, if it is compressed.
    name: Option<&'static str>,
    /// How large the blocks of an LZ4 stream may be, by its header.
    lz4_block_bytes: u64,
}

impl<R: Read> Input<R> {
    /// Reads the first bytes where the compression is to be detected.
    pub(crate) fn open(input: R, compression: Compression) -> io::Result<Self> {
        let mut tracked = Tracked { inner: input, failed: false };
        let mut head = Vec::new();
        let compression = match compression {
            Compression::Detect => {
                tracked.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut head)?;
                Compression::of(&head)
            }
            known => known,
        };
        let mut source = BufReader::with_capacity(SOURCE_BUFFER_BYTES, Cursor::new(head).chain(tracked));
        // No frame at all is no error of LZ4, as it is none of the others that are frames one after the other.
        let lz4_head = if compression == Compression::Lz4 { source.fill_buf()? } else { &[] };
        let empty = compression == Compression::Lz4 && lz4_head.is_empty();
        let lz4_block_bytes = lz4_head.get(5).map_or(0, |&descriptor| lz4_block_bytes(descriptor));
        let stream = if empty { Stream::Plain(source) } else { Stream::open(source, compression)? };
        Ok(Self { stream, name: compression.name(), lz4_block_bytes })
    }

    /// About how many bytes of memory inflating holds between reads.
    fn memory_bytes(&self) -> u64 {
        let state = match &self.stream {
            Stream::Plain(_) | Stream::Ended => 0,
            // A window of 32 KiB, tables, and what is read ahead.
            Stream::Gzip(_) | Stream::Zlib(_) => 64 << 10,
            Stream::Zstd(decoder) => decoder.memory_bytes(),
            // A block that came and one that goes, and what blocks may refer to.
            Stream::OtherLz4(_) => 2 * self.lz4_block_bytes + (192 << 10),
            Stream::Lz4(decoder) => decoder.memory_bytes(),
            Stream::Snappy(_) => 144 << 10,
        };
        SOURCE_BUFFER_BYTES as u64 + state
    }

    /// What its compression is called, if it is compressed.
    pub(crate) fn compression(&self) -> Option<&'static str> {
        self.name
    }

    /// Reads some bytes into `out`, which is not empty; 0 at the end.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, InputFault> {
        let lz4_bytes = out.len().min(LZ4_BYTES);
        loop {
            let (result, source) = match &mut self.stream {
                Stream::Plain(source) => return source.read(out).map_err(InputFault::Io),
                Stream::Gzip(decoder) | Stream::Zlib(decoder) => (decoder.read(out), decoder.get_ref()),
                Stream::Zstd(decoder) => (decoder.read(out), decoder.get_ref()),
                Stream::Lz4(decoder) => (decoder.read(out), decoder.get_ref()),
                Stream::OtherLz4(decoder) => (decoder.read(&mut out[..lz4_bytes]), decoder.reader()),
                Stream::Snappy(decoder) => (decoder.read(out), decoder.get_ref()),
                Stream::Ended => return Ok(0),
            };
            let failed = source.get_ref().get_ref().1.failed;
            match result {
                Ok(0) => self.next_member()?,
                Ok(count) => return Ok(count),
                Err(error) if failed => return Err(InputFault::Io(error)),
                Err(error) => return Err(self.damaged(&error.to_string())),
            }
        }
    }

    fn damaged(&self, detail: &str) -> InputFault {
        let compression = self.name.unwrap_or_default();
        InputFault::Format(FormatFault::Compressed { compression, detail: detail.into() })
    }

    /// After the end of a compressed stream: another of its members, or the end of the shard, or garbage.
    fn next_member(&mut self) -> Result<(), InputFault> {
        // What the next member of a format begins with that leaves looking for it to us.
        let (mut source, compression, magic) = match std::mem::replace(&mut self.stream, Stream::Ended) {
            // RFC 1952 allows members one after the other; `cat` makes such files.
            Stream::Gzip(decoder) => (decoder.into_inner(), Compression::Gzip, Some(0x1f)),
            Stream::Zlib(decoder) => (decoder.into_inner(), Compression::Zlib, None),
            Stream::Lz4(decoder) => (decoder.into_inner(), Compression::Lz4, Some(LZ4_MAGIC[0])),
            Stream::OtherLz4(decoder) => match decoder.finish() {
                (source, Ok(())) => (source, Compression::Lz4, Some(LZ4_MAGIC[0])),
                (_, Err(_)) => return Err(self.damaged("it ends within a frame")),
            },
            Stream::Zstd(_) | Stream::Snappy(_) | Stream::Plain(_) | Stream::Ended => return Ok(()),
        };
        match source.fill_buf().map_err(InputFault::Io)?.first().copied() {
            None => Ok(()),
            // Tapes and block devices leave them after GZIP's last member; `gzip` ignores them, too.
            Some(0) if compression == Compression::Gzip && only_zeros(&mut source).map_err(InputFault::Io)? => Ok(()),
            Some(first) if Some(first) == magic => {
                self.stream = Stream::open(source, compression).map_err(InputFault::Io)?;
                Ok(())
            }
            Some(_) => {
                let compression = self.name.unwrap_or_default();
                Err(InputFault::Format(FormatFault::TrailingGarbage { compression }))
            }
        }
    }
}

/// Reads on as long as there is nothing but zeros; whether that was all.
fn only_zeros(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        let length = bytes.len();
        source.consume(length);
    }
}

/// The largest block of an LZ4 frame, by the byte of its header that says so.
fn lz4_block_bytes(descriptor: u8) -> u64 {
    (64 << 10) << (2 * u32::from(descriptor >> 4 & 7).saturating_sub(4))
}

/// What a compressed stream inflates to, in order: for whoever reads something else than records from it.
///
/// A damaged stream is an error of the kind [`io::ErrorKind::InvalidData`], and one that is cut of [`io::ErrorKind::UnexpectedEof`] or the
/// same; other errors are those of the reader underneath.
pub struct InflateReader<R: Read>(Input<R>);

impl<R: Read> InflateReader<R> {
    /// Inflates `input`, which is compressed as `compression` says.
    pub fn new(input: R, compression: Compression) -> io::Result<Self> {
        Input::open(input, compression).map(Self)
    }

    /// About how many bytes of memory it holds between reads, besides what `input` does.
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }
}

impl<R: Read> Read for InflateReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        self.0.read(out).map_err(|fault| match fault {
            InputFault::Io(error) => error,
            InputFault::Format(fault) => io::Error::new(io::ErrorKind::InvalidData, fault),
        })
    }
}

impl<R: Read> Stream<R> {
    fn open(mut source: Source<R>, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::Detect | Compression::None => Self::Plain(source),
            Compression::Gzip => Self::Gzip(DeflateReader::gzip(source)),
            Compression::Zlib => Self::Zlib(DeflateReader::zlib(source)),
            Compression::Zstd => Self::Zstd(ZstdReader::new(source)?),
            Compression::Lz4 if is_lz4_like_ours(source.fill_buf()?) => Self::Lz4(Lz4Reader::new(source)?),
            Compression::Lz4 => Self::OtherLz4(lz4::Decoder::new(source)?),
            Compression::Snappy => Self::Snappy(Box::new(snap::read::FrameDecoder::new(source))),
        })
    }
}
