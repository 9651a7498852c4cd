//! The tables beside a shard: where its records lie, each record's checksum, and of a compressed one where its blocks lie, or how long its
//! records are.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use forebay_record::{
    Algorithm, BLOCKS_SUFFIX, Blocks, CHECKSUMS_SUFFIX, Checksums, Compression, INDEX_SUFFIX, Index, Options, Reader,
    SIZES_SUFFIX, Scope, ShardCompression, Sizes, masked_crc32c,
};
use forebay_storage::{Storage, Stream, sequential};
use xxhash_rust::xxh3::Xxh3;

use super::manifest::ShardEntry;
use super::sealed::{checksum, digits};
use crate::error::{Error, Result};

/// What lies beside a shard.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) index: Index,
    pub(super) checksums: Checksums,
    pub(super) blocks: Option<Blocks>,
    pub(super) sizes: Option<Sizes>,
}

/// No table takes more bytes for a record (an index has 42 at most) and besides.
const RECORD_BYTES_MAX: u64 = 128;
const BYTES_MAX: u64 = 1 << 16;
/// What is read at once of a file that is read whole.
const PIECE_BYTES: usize = 1 << 20;

impl Tables {
    /// Reads the tables of the shard at `path`, which is compressed as `compression` says, and checks that they are what the
    /// manifest says.
    pub(super) fn read(
        storage: &dyn Storage,
        path: &Path,
        entry: &ShardEntry,
        compression: Option<ShardCompression>,
    ) -> Result<Self> {
        let index_path = index_path(path);
        let index = read_table(storage, &index_path, entry, &entry.index_xxh3)?;
        let index = Index::parse(&index, &index_path.display().to_string())?;
        let crc_path = crc_path(path);
        let checksums = read_table(storage, &crc_path, entry, &entry.crc_xxh3)?;
        let checksums = Checksums::parse(&checksums, &crc_path.display().to_string())?;
        Self::with_blocks_and_sizes(storage, path, entry, compression, (index, checksums))
    }

    /// Makes the tables again from the shard, if all of it is as it was built. Where its blocks lie, or how long its records
    /// are, cannot be made out.
    pub(super) fn rebuild(
        storage: &dyn Storage,
        path: &Path,
        entry: &ShardEntry,
        compression: Option<ShardCompression>,
    ) -> Result<Self> {
        let (mut index, mut checksums) = (Index::new(), Checksums::new());
        let options = Options { compression: stream_of(compression), ..Options::default() };
        let found = read_shard(storage, path, entry, options, None, |record| {
            checksums.push(masked_crc32c(&record.data));
            Ok(index.push(record.location)?)
        })?;
        if found.checksum != entry.xxh3 {
            return Err(other_checksum(path, &entry.xxh3, &found.checksum));
        }
        Self::with_blocks_and_sizes(storage, path, entry, compression, (index, checksums))
    }

    fn with_blocks_and_sizes(
        storage: &dyn Storage,
        path: &Path,
        entry: &ShardEntry,
        compression: Option<ShardCompression>,
        (index, checksums): (Index, Checksums),
    ) -> Result<Self> {
        let blocks = read_blocks(storage, path, entry, compression)?;
        let sizes = read_sizes(storage, path, entry)?;
        let tables = Self { index, checksums, blocks, sizes };
        tables.check(path, entry)?;
        Ok(tables)
    }

    fn check(&self, path: &Path, entry: &ShardEntry) -> Result<()> {
        let bytes = self.blocks.as_ref().map_or(entry.bytes, Blocks::inflated_bytes);
        self.index.check_within(bytes, &entry.file)?;
        let counts = [(index_path(path), self.index.len()), (crc_path(path), self.checksums.len())];
        let sizes = self.sizes.as_ref().map(|sizes| (sizes_path(path), sizes.len()));
        for (file, records) in counts.into_iter().chain(sizes) {
            if records as u64 != entry.records() {
                let problem = format!("has {records} records, but the manifest says {}", entry.records());
                return Err(Error::Format { path: file, problem });
            }
        }
        Ok(())
    }
}

fn read_blocks(
    storage: &dyn Storage,
    path: &Path,
    entry: &ShardEntry,
    compression: Option<ShardCompression>,
) -> Result<Option<Blocks>> {
    let (Some(expected), Some(compression)) = (&entry.blocks_xxh3, compression) else { return Ok(None) };
    let path = blocks_path(path);
    let text = read_table(storage, &path, entry, expected)?;
    let blocks = Blocks::parse(&text, compression.algorithm, &path.display().to_string())?;
    blocks.check_within(entry.bytes, &entry.file)?;
    Ok(Some(blocks))
}

fn read_sizes(storage: &dyn Storage, path: &Path, entry: &ShardEntry) -> Result<Option<Sizes>> {
    let Some(expected) = &entry.sizes_xxh3 else { return Ok(None) };
    let path = sizes_path(path);
    let bytes = read_table(storage, &path, entry, expected)?;
    Ok(Some(Sizes::parse(&bytes, &path.display().to_string())?))
}

/// As what a shard that is compressed so is read from front to back.
pub(crate) fn stream_of(compression: Option<ShardCompression>) -> Compression {
    match compression {
        Some(compression) if compression.scope != Scope::Record => match compression.algorithm {
            Algorithm::Gzip(_) => Compression::Gzip,
            Algorithm::Zlib(_) => Compression::Zlib,
            Algorithm::Zstd(_) => Compression::Zstd,
            Algorithm::Lz4(_) => Compression::Lz4,
            Algorithm::Snappy => Compression::Snappy,
            _ => Compression::Detect,
        },
        _ => Compression::None,
    }
}

/// What lies beside a shard and belongs to it, by the end of its name.
pub(crate) const BESIDE_SHARD: [&str; 4] = [INDEX_SUFFIX, BLOCKS_SUFFIX, CHECKSUMS_SUFFIX, SIZES_SUFFIX];

/// Reads a table whose checksum must be `expected`.
fn read_table(storage: &dyn Storage, path: &Path, entry: &ShardEntry, expected: &str) -> Result<Bytes> {
    let limit_bytes = entry.records().saturating_mul(RECORD_BYTES_MAX).saturating_add(BYTES_MAX);
    let content = storage.read_file(path, limit_bytes)?;
    let found = checksum(&content);
    if found == expected { Ok(content) } else { Err(other_checksum(path, expected, &found)) }
}

fn other_checksum(path: &Path, expected: &str, found: &str) -> Error {
    Error::Format {
        path: path.to_owned(),
        problem: format!(
            "has checksum `{found}`, but the manifest says `{expected}`: it was damaged or replaced\nhint: restore it, or \
             build the data set again with `--overwrite`"
        ),
    }
}

/// What a pass over a whole shard found.
pub(super) struct Pass {
    pub(super) checksum: String,
    /// How many bytes lie after the last record.
    pub(super) rest: u64,
    /// What was passed over.
    pub(super) problems: Vec<String>,
}

/// Reads the shard at `path` from front to back, and shows each record. Where it is damaged and an index is known, that says
/// where to go on.
pub(super) fn read_shard(
    storage: &dyn Storage,
    path: &Path,
    entry: &ShardEntry,
    options: Options,
    index: Option<Index>,
    mut record: impl FnMut(&forebay_record::Record) -> Result<()>,
) -> Result<Pass> {
    let file = storage.open(path)?;
    file.advise_sequential();
    let inner = BufReader::with_capacity(PIECE_BYTES, Stream::new(&*file));
    let mut hashing = HashingRead { inner, hash: Xxh3::new() };
    let mut reader = Reader::new(&mut hashing, &entry.file, options)?;
    if let Some(index) = index {
        reader = reader.with_index(index);
    }
    while let Some(found) = reader.next_record()? {
        record(&found)?;
    }
    let problems = reader.report().entries().iter().map(|damage| damage.error.to_string()).collect();
    drop(reader);
    let rest = io::copy(&mut hashing, &mut io::sink()).map_err(Error::io("read the shard", path))?;
    Ok(Pass { checksum: digits(hashing.hash.digest()), rest, problems })
}

/// The checksum of a file, taken in pieces; `None` if `stop` says so in between.
pub(crate) fn file_checksum(storage: &dyn Storage, path: &Path, stop: impl Fn() -> bool) -> Result<Option<String>> {
    let file = storage.open(path)?;
    let mut hash = Xxh3::new();
    for piece in sequential(&*file, PIECE_BYTES) {
        if stop() {
            return Ok(None);
        }
        hash.update(&piece?);
    }
    Ok(Some(digits(hash.digest())))
}

/// Takes the checksum of what is read.
struct HashingRead<R> {
    inner: R,
    hash: Xxh3,
}

impl<R: Read> Read for HashingRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// The path of the index beside a shard.
pub(crate) fn index_path(shard: &Path) -> PathBuf {
    beside_shard(shard, INDEX_SUFFIX)
}

/// The path of the list of blocks beside a compressed shard.
pub(crate) fn blocks_path(shard: &Path) -> PathBuf {
    beside_shard(shard, BLOCKS_SUFFIX)
}

/// The path of the records' checksums beside a shard.
pub(crate) fn crc_path(shard: &Path) -> PathBuf {
    beside_shard(shard, CHECKSUMS_SUFFIX)
}

/// The path of the records' sizes beside a shard whose records are compressed each by itself.
pub(crate) fn sizes_path(shard: &Path) -> PathBuf {
    beside_shard(shard, SIZES_SUFFIX)
}

/// The path of what lies beside a shard under its name with `suffix`.
pub(crate) fn beside_shard(shard: &Path, suffix: &str) -> PathBuf {
    let mut name = shard.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
