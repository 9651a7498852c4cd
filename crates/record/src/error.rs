//! The crate's one error type.

use std::fmt;
use std::io;

use forebay_error::{ErrorContext, ErrorKind};

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Where something went wrong, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorLocation {
    /// The shard's name as the caller gave it, usually its path.
    pub shard: Option<Box<str>>,
    /// The number of the record in the shard, from 0.
    pub record: Option<u64>,
    /// The offset of the record's frame in the shard. In a compressed shard, in what it inflates to.
    pub offset: Option<u64>,
}

impl fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.record, &self.shard) {
            (Some(record), Some(shard)) => write!(f, "record {record} of `{shard}`")?,
            (Some(record), None) => write!(f, "record {record}")?,
            (None, Some(shard)) => write!(f, "`{shard}`")?,
            (None, None) => f.write_str("record")?,
        }
        match self.offset {
            Some(offset) => write!(f, " at byte {offset}"),
            None => Ok(()),
        }
    }
}

/// The parts of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FramePart {
    /// The length and its checksum: 12 bytes.
    Header,
    /// The record itself.
    Payload,
    /// The record's checksum: 4 bytes.
    Footer,
}

impl fmt::Display for FramePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Payload => "payload",
            Self::Footer => "footer",
        })
    }
}

/// How bytes depart from their format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatFault {
    /// The shard ends within a frame.
    #[error("truncated in the {part}: expected `{expected}` bytes, found `{found}`")]
    Truncated {
        /// The part of the frame that is cut.
        part: FramePart,
        /// The bytes that this part has.
        expected: u64,
        /// The bytes of it that are there.
        found: u64,
    },
    /// The header's checksum does not match its length.
    #[error("length checksum mismatch: expected `{expected:#010x}`, found `{found:#010x}`")]
    LengthChecksum {
        /// The masked checksum that the header holds.
        expected: u32,
        /// The masked checksum of the length that was read.
        found: u32,
    },
    /// The footer's checksum does not match the payload.
    #[error("payload checksum mismatch: expected `{expected:#010x}`, found `{found:#010x}`")]
    PayloadChecksum {
        /// The masked checksum that the footer holds.
        expected: u32,
        /// The masked checksum of the payload that was read.
        found: u32,
    },
    /// The frame is not as long as the index says.
    #[error(
        "frame length mismatch: the index says `{expected}` bytes, the frame's header `{found}`\nhint: rebuild the index of this shard"
    )]
    IndexDisagrees {
        /// The frame's length in the index.
        expected: u64,
        /// The frame's length by its header.
        found: u64,
    },
    /// The record is whole, but not the one that was written at this position.
    #[error(
        "not the record that was written here: expected checksum `{expected:#010x}`, found `{found:#010x}`\nhint: the shard was replaced, or its records were moved; restore it, or rebuild the data set"
    )]
    OtherRecord {
        /// The masked checksum of the record that belongs there.
        expected: u32,
        /// The masked checksum of the one that is there.
        found: u32,
    },
    /// A list of checksums or sizes ends within one.
    #[error("expected 4 bytes per record, found `{found}` bytes in total")]
    NumbersCut {
        /// The bytes that are there.
        found: u64,
    },
    /// A tar is cut or corrupt.
    #[error("the tar is damaged: {problem}")]
    Tar {
        /// What is wrong.
        problem: Box<str>,
    },
    /// A sample of a tar is not where it was listed.
    #[error(
        "sample `{key}` is not as it was listed: {problem}\nhint: the tar changed, or its index (`{index}`) belongs to another tar: delete or regenerate the index"
    )]
    TarSample {
        /// The sample's key.
        key: Box<str>,
        /// What is there.
        problem: Box<str>,
        /// What an index that it was listed by is called.
        index: Box<str>,
    },
    /// A file of columns is cut or corrupt.
    #[error("the {format} file is damaged: {part}: {problem}")]
    Columns {
        /// Its format, such as `Parquet`.
        format: &'static str,
        /// The column, or the part of the file.
        part: Box<str>,
        /// What is wrong.
        problem: Box<str>,
    },
    /// The compressed stream is cut or corrupt.
    #[error("the {compression} stream is damaged: {detail}")]
    Compressed {
        /// Its format, such as `GZIP`.
        compression: &'static str,
        /// What the decompressor said.
        detail: Box<str>,
    },
    /// A block of a compressed shard does not inflate to what it should.
    #[error("the compressed block is damaged: {detail}")]
    CompressedBlock {
        /// What is wrong.
        detail: Box<str>,
    },
    /// A record that was compressed by itself does not inflate to what it should.
    #[error("the compressed record is damaged: {detail}")]
    CompressedRecord {
        /// What is wrong.
        detail: Box<str>,
    },
    /// It should be a dictionary of Zstandard.
    #[error("not a Zstandard dictionary, or a damaged one")]
    Dictionary,
    /// There are bytes after the end of the compressed stream.
    #[error("trailing bytes after the end of the {compression} stream")]
    TrailingGarbage {
        /// Its format, such as `GZIP`.
        compression: &'static str,
    },
    /// A protobuf message is malformed.
    #[error("malformed {message} at its byte `{position}`: {fault}")]
    Message {
        /// `tf.train.Example` or `TensorProto`.
        message: &'static str,
        /// The position in the message.
        position: usize,
        /// What is wrong there.
        fault: MessageFault,
    },
    /// The tensor's content does not have the length that its type and shape ask for.
    #[error("tensor content length mismatch: expected `{expected}` bytes by type and shape, found `{found}`")]
    TensorContent {
        /// Bytes by type and shape.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// A line of an index is wrong.
    #[error("line {line}: {fault}")]
    Index {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        fault: IndexFault,
    },
    /// The index reaches beyond its shard.
    #[error(
        "the index ends at byte `{expected}`, the shard at `{found}`\nhint: the shard is truncated, or the index belongs to another shard"
    )]
    IndexBeyondShard {
        /// Where the last indexed frame ends.
        expected: u64,
        /// The shard's length.
        found: u64,
    },
}

/// How a protobuf message is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MessageFault {
    /// A varint is cut by the end of the message.
    #[error("the message ends within a varint")]
    VarintTruncated,
    /// A varint continues after ten bytes.
    #[error("a varint is longer than ten bytes")]
    VarintTooLong,
    /// A fixed-width value or a length-delimited field is cut by the end of the message.
    #[error("a field ends after its message")]
    FieldTruncated,
    /// The field number is 0 or over 2^29 - 1.
    #[error("the field number is out of range")]
    FieldNumber,
    /// The wire type is 6 or 7.
    #[error("unknown wire type")]
    WireType,
    /// A packed list of floats is not a whole number of them.
    #[error("a packed list of floats is not a multiple of four bytes long")]
    FloatsCut,
    /// A feature's name is not UTF-8.
    #[error("the feature's name is not UTF-8")]
    NameNotUtf8,
    /// An entry of the feature map has two values.
    #[error("an entry of the feature map has two values")]
    TwoValues,
    /// A dimension is negative.
    #[error("a dimension is negative")]
    NegativeDimension,
}

/// How a line of an index is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum IndexFault {
    /// Not two decimal numbers.
    #[error("expected `offset size`, two decimal numbers")]
    NotTwoNumbers,
    /// Not four decimal numbers.
    #[error("expected `offset length inflated-offset inflated-length`, four decimal numbers")]
    NotFourNumbers,
    /// A number does not fit into 64 bits, or offset and size together do not.
    #[error("the number does not fit into 64 bits")]
    TooLarge,
    /// A frame is shorter than a frame can be.
    #[error("expected a frame of at least `16` bytes, found `{found}`")]
    TooShort {
        /// The size in the line.
        found: u64,
    },
    /// A frame begins before the one above it ends.
    #[error("expected an offset of at least `{expected}`, where the record above ends, found `{found}`")]
    Overlap {
        /// Where the record above ends.
        expected: u64,
        /// The offset in the line.
        found: u64,
    },
    /// A compressed block does not begin where the one above it ends in what they inflate to.
    #[error("expected an inflated offset of `{expected}`, where the block above ends, found `{found}`")]
    Gap {
        /// Where the block above ends.
        expected: u64,
        /// The offset in the line.
        found: u64,
    },
    /// A compressed block claims to inflate to more than can be made of it.
    #[error("`{length}` bytes cannot inflate to `{inflated}`")]
    Inflation {
        /// The block's length.
        length: u64,
        /// What it is said to inflate to.
        inflated: u64,
    },
}

/// How a call is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UsageFault {
    /// Two features have the same name.
    #[error("two features are named `{name}`")]
    DuplicateFeature {
        /// The name.
        name: Box<str>,
    },
    /// A tensor was made of content that does not fit its type and shape.
    #[error("tensor content length mismatch: expected `{expected}` bytes by type and shape, found `{found}`")]
    TensorContent {
        /// Bytes by type and shape.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// A location was added to an index before the end of the one above it, or is too short to be a frame.
    #[error("the location `{offset} {length}` does not follow an index that ends at byte `{end}`")]
    LocationOrder {
        /// The location's offset.
        offset: u64,
        /// The location's length.
        length: u64,
        /// Where the index ends.
        end: u64,
    },
    /// A record was asked for that is not in the block.
    #[error(
        "the frame of `{length}` bytes is not within the block, which holds bytes `{block_start}` to `{block_end}`"
    )]
    NotInBlock {
        /// The frame's length.
        length: u64,
        /// The offset of the block in the shard.
        block_start: u64,
        /// The offset of the block's end in the shard.
        block_end: u64,
    },
    /// A compression that does not exist.
    #[error(
        "unknown compression `{found}`\nhint: `gzip`, `zlib`, `zstd`, `lz4` or `snappy`, with their options, as in `gzip-1`, `zlib-6-rle`, `zstd-19-record`"
    )]
    UnknownCompression {
        /// What was asked for.
        found: Box<str>,
    },
    /// A compression has an invalid option.
    #[error("invalid compression `{found}`: {problem}")]
    CompressionParameter {
        /// What was asked for.
        found: Box<str>,
        /// What is wrong with it, and what is allowed.
        problem: Box<str>,
    },
    /// A dictionary cannot be trained on the records that there are.
    #[error(
        "cannot train a dictionary on {records} records of {bytes} bytes: {problem}\nhint: it takes a few hundred small records that have something in common; leave `dictionary` out"
    )]
    Dictionary {
        /// How many there were.
        records: u64,
        /// And of how many bytes.
        bytes: u64,
        /// What the library said.
        problem: Box<str>,
    },
    /// A record is too long to be compressed by itself.
    #[error("a record of `{found}` bytes cannot be compressed by itself: it must be shorter than 4 GiB")]
    RecordTooLong {
        /// Its length.
        found: u64,
    },
    /// A record was written after a write had failed, when the shard ends within a frame.
    #[error("an earlier write failed, so the shard ends within a frame\nhint: write the shard again")]
    WriteAfterFailure,
}

/// Anything that goes wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader or writer underneath failed.
    #[error("{location}: cannot {action}: {source}")]
    Io {
        /// Where.
        location: ErrorLocation,
        /// `read`, `write`, `compress` or `inflate`.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The bytes are not what the format says they must be.
    #[error("{location}: {fault}")]
    Format {
        /// Where.
        location: ErrorLocation,
        /// How.
        fault: FormatFault,
    },
    /// The bytes hold something that this crate does not handle.
    #[error("{location}: {what} is not supported: found `{found}`{}", hint_line(hint))]
    Unsupported {
        /// Where.
        location: ErrorLocation,
        /// What kind of thing.
        what: &'static str,
        /// Which one.
        found: Box<str>,
        /// The remedy; empty where there is none.
        hint: &'static str,
    },
    /// A limit was reached.
    #[error("{location}: {what} over the limit: expected at most `{limit}`, found `{found}`{}", hint_line(hint))]
    Limit {
        /// Where.
        location: ErrorLocation,
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What was found or asked for.
        found: u64,
        /// The remedy; empty where there is none.
        hint: &'static str,
    },
    /// The caller asked for something impossible.
    #[error("{location}: {fault}")]
    Usage {
        /// Where.
        location: ErrorLocation,
        /// What.
        fault: UsageFault,
    },
}

fn hint_line(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") }
}

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => source.into(),
            Self::Format { .. } => ErrorKind::Data,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Limit { .. } => ErrorKind::Limit,
            Self::Usage { .. } => ErrorKind::Usage,
        }
    }

    /// Where it happened, as far as it is known.
    pub fn context(&self) -> ErrorContext<'_> {
        let (Self::Io { location, .. }
        | Self::Format { location, .. }
        | Self::Unsupported { location, .. }
        | Self::Limit { location, .. }
        | Self::Usage { location, .. }) = self;
        let errno = if let Self::Io { source, .. } = self { source.raw_os_error() } else { None };
        let ErrorLocation { shard, record, offset } = location;
        ErrorContext { shard: shard.as_deref(), record: *record, offset: *offset, errno, ..ErrorContext::default() }
    }

    /// The same error, with what its location lacks filled in: a message is parsed without knowing which record it is, and
    /// whoever took it from the shard says so with this.
    #[must_use]
    pub fn in_record(mut self, shard: &str, record: u64, offset: Option<u64>) -> Self {
        let (Self::Io { location, .. }
        | Self::Format { location, .. }
        | Self::Unsupported { location, .. }
        | Self::Limit { location, .. }
        | Self::Usage { location, .. }) = &mut self;
        location.shard.get_or_insert_with(|| shard.into());
        location.record.get_or_insert(record);
        if location.offset.is_none() {
            location.offset = offset;
        }
        self
    }

    pub(crate) fn format(fault: FormatFault) -> Self {
        Self::Format { location: ErrorLocation::default(), fault }
    }

    pub(crate) fn usage(fault: UsageFault) -> Self {
        Self::Usage { location: ErrorLocation::default(), fault }
    }

    pub(crate) fn message(message: &'static str, position: usize, fault: MessageFault) -> Self {
        Self::format(FormatFault::Message { message, position, fault })
    }
}
