//! Shards of records: TFRecord files, the `tf.train.Example` messages inside them, and the index beside them.
//!
//! A *shard* is a file of *records*, each framed by its length and two checksums. This crate writes shards that TensorFlow,
//! DALI and the other readers of the format open as they are, and reads theirs. It works on byte slices, [`std::io::Read`]
//! and [`std::io::Write`]: it opens no files, starts no threads, prints nothing, and knows no pixels.
//!
//! # Which part to use
//!
//! - Writing a shard: [`Writer`], and [`encode_example_into`] for what goes into a record. Each write returns the
//!   [`Location`] of the record; collected, these are the [`Index`].
//! - Reading a shard at random, or fast: read a block that the index says holds whole records, and take them out of it
//!   with [`records_in_block`] (or [`parse_indexed`], one at a time). The records are slices of the block: nothing is copied.
//! - The same of a compressed shard: write through a [`ShardCompressor`], and [`inflate_block`] what its [`Blocks`] name; or
//!   write what a [`RecordCompressor`] makes of each record, and [`inflate_record`] it.
//! - Telling a record that belongs there from one of another shard: [`Checksums`].
//! - Reading a shard from start to end, possibly compressed (GZIP, ZLIB, Zstandard, LZ4,
//!   Snappy), possibly damaged: [`Reader`].
//! - Samples in tars: [`scan_tar`] finds them, [`parse_tar_index`] by the index of DALI beside a tar; [`tar_members`] takes one apart.
//! - Columns and rows of Parquet files and of Arrow's IPC files: [`parquet`], [`arrow`].
//! - Looking into a record: [`Example`] borrows from it, [`SharedExample`] keeps it alive; [`TensorProto`] is the
//!   tensor inside a `bytes_list`.
//!
//! # Example
//!
//! ```
//! use forebay_record::{
//!     Example, Feature, Index, Options, Reader, TensorFlowType, TensorProto, TensorShape, Writer, encode_example,
//! };
//!
//! let shape = TensorShape::new(&[2, 3])?;
//! let pixels = TensorProto::new(TensorFlowType::DT_UINT8, shape, &[1, 2, 3, 4, 5, 6])?;
//! let record = encode_example(&[("data", Feature::Tensor(pixels)), ("label", Feature::Int64(&[7]))])?;
//!
//! let mut writer = Writer::new(Vec::new());
//! let mut index = Index::new();
//! index.push(writer.write(&record)?)?;
//! let shard = writer.finish()?;
//! assert_eq!(index.to_text(), format!("0 {}\n", record.len() + 16));
//!
//! for record in Reader::new(&shard[..], "shard-0.tfrecord", Options::default())? {
//!     let record = record?;
//!     let example = Example::parse(&record.data)?;
//!     assert_eq!(example.int64("label"), Some(7));
//!     let tensor = TensorProto::parse(example.bytes("data").expect("written above"))?;
//!     assert_eq!(tensor.shape().dims(), [2, 3]);
//!     assert_eq!(tensor.content(), [1, 2, 3, 4, 5, 6]);
//! }
//! # Ok::<(), forebay_record::Error>(())
//! ```
//!
//! # When not to use it
//!
//! For messages other than `tf.train.Example` and `TensorProto` (a `SequenceExample`, say), take the records from here and
//! parse them with a general protobuf library. To read one field of a large message without checking the rest, too:
//! parsing here always checks the whole message.
//!
//! # Limits
//!
//! - A record is at most [`Options::max_record_bytes`] long (1 GiB unless said otherwise) when streamed, and a message that
//!   is written stays below protobuf's 2 GiB.
//! - A message has at most [`FEATURES_MAX`] features, a tensor at most [`RANK_MAX`] dimensions.
//! - Nothing that a file says makes this crate panic, loop without end, or allocate more than a small multiple of the
//!   bytes that the file really holds.
//!
//! The formats are specified in `docs/formats/tfrecord.md`.

#![forbid(unsafe_code)]

pub mod arrow;
mod checksums;
mod columns;
mod compression;
mod error;
mod example;
mod index;
mod names;
mod numbers;
mod offsets;
pub mod parquet;
mod protobuf;
mod remembered;
mod tar;
mod tar_index;
mod tensor_proto;
mod tfrecord;

pub use checksums::{CHECKSUMS_SUFFIX, Checksums};
pub use columns::{Cell, ColumnType, Input, rows_max};
pub use compression::{
    Algorithm, BLOCKS_SUFFIX, Blocks, CompressedBlock, DeflateOptions, DeflateStrategy, Dictionary, Lz4Mode,
    RecordCompressor, SIZES_SUFFIX, Scope, ShardCompression, ShardCompressor, Sizes, ZstdOptions, ZstdStrategy,
    inflate_block, inflate_record,
};
pub use error::{Error, ErrorLocation, FormatFault, FramePart, IndexFault, MessageFault, Result, UsageFault};
pub use example::{
    BytesList, BytesListIter, Example, FEATURES_MAX, Feature, FeatureView, FloatList, FloatListIter, Int64List,
    Int64ListIter, SharedExample, encode_example, encode_example_into, encoded_example_len,
};
pub use index::{INDEX_SUFFIX, Index};
pub use names::name_text;
pub use tar::{TarSample, TarWriter, salvage_tar, scan_tar, survey_tar, tar_key, tar_members};
pub use tar_index::{TAR_INDEX_EXTENSION, TarIndex, parse_tar_index};
pub use tensor_proto::{RANK_MAX, TensorFlowType, TensorProto, TensorShape, tensor_frame_bytes};
pub use tfrecord::{
    Compression, Damage, DamageReport, FRAME_OVERHEAD_BYTES, InflateReader, Location, OnDamage, Options, Origin,
    Reader, Record, Writer, masked_crc32c, parse_frame, parse_indexed, records_in_block,
};
