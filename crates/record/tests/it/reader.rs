//! The streaming reader and the writer: limits, compression, and readers and writers that fail.

use std::io::{self, Cursor, Read, Write};

use bytes::Bytes;
use flate2::write::{GzEncoder, ZlibEncoder};
use forebay_error::ErrorKind;
use forebay_record::{Error, FormatFault, Location, Options, Reader, UsageFault, Writer, masked_crc32c};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};

use crate::support::{SMALL, read_all, shard, skipping};

/// A header with a true checksum, whatever its length.
fn header(length: u64) -> Vec<u8> {
    let length = length.to_le_bytes();
    [&length[..], &masked_crc32c(&length).to_le_bytes()].concat()
}

/// Hands out a few bytes at a time, with interruptions.
struct Trickle<'a> {
    rest: &'a [u8],
    calls: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.rest.len().min(out.len()).min(1 + self.calls % 5);
        out[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

/// Fails after its bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out) {
            Ok(0) => Err(io::Error::other("the disk is gone")),
            count => count,
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn an_empty_shard_has_no_records() {
    assert!(read_all(&[], Options::default()).unwrap().is_empty());
    assert!(read_all(&gzip(&[]), Options::default()).unwrap().is_empty());
    assert!(read_all(&zlib(&[]), Options::default()).unwrap().is_empty());
}

#[test]
fn a_trickle_reads_as_a_flood() {
    let (plain, _) = shard(&SMALL);
    for bytes in [gzip(&plain), zlib(&plain), plain] {
        let reader = Reader::new(Trickle { rest: &bytes, calls: 0 }, "trickle", Options::default()).unwrap();
        assert_eq!(reader.map(|record| record.unwrap().data).collect::<Vec<_>>(), SMALL);
    }
}

#[test]
fn gzip_members_follow_each_other_and_garbage_does_not() {
    let (plain, _) = shard(&SMALL);
    let mut members = gzip(&plain);
    members.extend(gzip(&[]));
    members.extend(gzip(&plain));
    assert_eq!(read_all(&members, Options::default()).unwrap().len(), 8);

    for mut bytes in [members, zlib(&plain)] {
        let count = read_all(&bytes, Options::default()).unwrap().len();
        bytes.push(7);
        let mut reader = Reader::new(&bytes[..], "garbage", Options::default()).unwrap();
        assert!(reader.by_ref().take(count).all(|record| record.is_ok()));
        let error = reader.next().unwrap().unwrap_err();
        assert!(matches!(error, Error::Format { fault: FormatFault::TrailingGarbage { .. }, .. }), "{error}");
        assert!(reader.next().is_none());
        let mut reader = Reader::new(&bytes[..], "garbage", skipping()).unwrap();
        assert_eq!(reader.by_ref().flatten().count(), count);
        assert_eq!(reader.report().records(), 0);
        assert_eq!(reader.report().entries().len(), 1);
    }
}

/// As tapes leave them, and tools that write blocks of 512 bytes. After ZLIB's stream, or with anything else among them, they are garbage.
#[test]
fn zeros_after_the_last_gzip_member_are_padding() {
    let (plain, _) = shard(&SMALL);
    for zeros in [1, 512, 200_000] {
        let padded = |mut bytes: Vec<u8>| {
            bytes.resize(bytes.len() + zeros, 0);
            bytes
        };
        assert_eq!(read_all(&padded(gzip(&plain)), Options::default()).unwrap(), SMALL, "{zeros}");
        let mut garbage = padded(gzip(&plain));
        garbage.push(7);
        for bytes in [garbage, padded(zlib(&plain))] {
            let error = read_all(&bytes, Options::default()).unwrap_err();
            assert!(matches!(error, Error::Format { fault: FormatFault::TrailingGarbage { .. }, .. }), "{error}");
        }
    }
}

#[test]
fn a_plain_shard_that_begins_like_zlib_is_plain() {
    // A first length of 0x9c78 begins with the two bytes of a common ZLIB header.
    let record = vec![3; 0x9c78];
    let (bytes, _) = shard(&[&record]);
    assert_eq!(bytes[..2], [0x78, 0x9c]);
    assert_eq!(read_all(&bytes, Options::default()).unwrap(), [record]);
}

#[test]
fn a_window_that_nobody_has_memory_for_is_refused() {
    // A frame of Zstandard whose header asks for a window of 1 TiB.
    let error = read_all(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xf0, 0, 0, 0, 0, 0, 0], Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("the ZSTD stream is damaged: Frame requires too much memory"), "{error}");
}

#[test]
fn hostile_lengths_are_refused_without_allocating_them() {
    for length in [1 << 31, 1 << 40, 1 << 62, u64::MAX - 16, u64::MAX] {
        let error = read_all(&header(length), Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        // Without the limit, it is a truncated shard; memory follows what is really there (2^62 bytes could not be had).
        let options = Options { max_record_bytes: u64::MAX, ..Options::default() };
        let class = read_all(&[header(length), vec![0; 1000]].concat(), options).unwrap_err().kind();
        assert!(matches!(class, ErrorKind::Data | ErrorKind::Limit));
    }
}

#[test]
fn a_record_over_the_limit_is_passed_over_by_its_length() {
    let long = vec![9; 600_000];
    let (bytes, _) = shard(&[b"before", &long, b"after"]);
    let options = Options { max_record_bytes: 100, ..skipping() };
    let mut reader = Reader::new(&bytes[..], "long", options).unwrap();
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(records.iter().map(|record| &record.data[..]).collect::<Vec<_>>(), [&b"before"[..], b"after"]);
    assert_eq!(records[1].number, 2);
    assert_eq!(records[1].location, Location { offset: 22 + 600_016, length: 21 });
    assert_eq!((reader.report().records(), reader.report().bytes()), (1, 600_016));
    assert_eq!(reader.report().entries()[0].error.kind(), ErrorKind::Limit);
}

#[test]
fn skipping_has_limits() {
    let (mut bytes, index) = shard(&[b"a".as_slice(); 300]);
    for entry in index.iter() {
        bytes[entry.offset as usize + 12] ^= 1;
    }
    let mut reader = Reader::new(&bytes[..], "bad", skipping()).unwrap();
    assert_eq!(reader.by_ref().count(), 0);
    assert_eq!(reader.report().records(), 300);
    assert_eq!(reader.report().entries().len(), 100);

    let options = Options { max_skipped_records: 10, ..skipping() };
    let mut reader = Reader::new(&bytes[..], "bad", options).unwrap();
    assert_eq!(reader.next().unwrap().unwrap_err().kind(), ErrorKind::Limit);
    assert!(reader.next().is_none());
    assert_eq!(reader.report().records(), 11);

    let options = Options { max_resync_bytes: 1 << 20, ..skipping() };
    let noise = vec![0xee; 4 << 20];
    assert_eq!(read_all(&noise, options).unwrap_err().kind(), ErrorKind::Limit);
    assert!(read_all(&noise, skipping()).unwrap().is_empty());
}

#[test]
fn a_damaged_compressed_stream_ends_after_its_good_records() {
    let records: Vec<Vec<u8>> = (0..5000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes().repeat(9)).collect();
    let (plain, _) = shard(&records.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for mut bytes in [gzip(&plain), zlib(&plain)] {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 8].fill(0xff);
        let mut reader = Reader::new(&bytes[..], "bad", skipping()).unwrap();
        let found: Vec<_> = reader.by_ref().map(|record| record.unwrap().data).collect();
        assert!(!found.is_empty() && found.len() < records.len());
        let good = found.iter().zip(&records).take_while(|(found, record)| found == record).count();
        // A quarter of the shard is well before the damage.
        assert!(good > 1250);
        assert!(!reader.report().is_empty());
    }
}

#[test]
fn a_failing_reader_is_fatal_even_when_skipping() {
    let (plain, _) = shard(&SMALL);
    for bytes in [gzip(&plain), plain] {
        for length in [0, 5, 12, 30, bytes.len()] {
            let read = || -> Result<Vec<_>, Error> {
                Reader::new(Failing(&bytes[..length]), "failing", skipping())?.collect::<Result<_, _>>()
            };
            let error = read().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(std::error::Error::source(&error).is_some());
        }
    }
}

#[test]
fn a_failed_write_ends_the_shard() {
    let mut space = [0; 50];
    let mut writer = Writer::new(Cursor::new(&mut space[..])).with_name("full.tfrecord");
    writer.write(b"fits").unwrap();
    let error = writer.write(&[0; 60]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!((error.context().record, error.context().offset), (Some(1), Some(20)));
    let error = writer.write(b"").unwrap_err();
    assert!(matches!(error, Error::Usage { fault: UsageFault::WriteAfterFailure, .. }));
    assert!(writer.finish().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..2000), 0..20),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 3),
    ) {
        let mut whole = Writer::new(Vec::new());
        let mut parts = Writer::new(Vec::new());
        for record in &records {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(record.len() + 1)).collect();
            cuts.sort_unstable();
            let pieces = [&record[..cuts[0]], &record[cuts[0]..cuts[1]], &record[cuts[1]..cuts[2]], &record[cuts[2]..]];
            prop_assert_eq!(whole.write(record).unwrap(), parts.write_parts(&pieces).unwrap());
        }
        let plain = whole.finish().unwrap();
        prop_assert_eq!(&plain, &parts.finish().unwrap());
        let expected: Vec<_> = records.into_iter().map(Bytes::from).collect();
        for bytes in [gzip(&plain), zlib(&plain), plain] {
            prop_assert_eq!(&read_all(&bytes, Options::default()).unwrap(), &expected);
        }
    }
}
