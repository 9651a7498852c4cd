//! Every truncation and every flipped bit of a small shard.

use bytes::Bytes;
use forebay_error::ErrorKind;
use forebay_record::{
    Error, FormatFault, FramePart, Index, Location, Options, Origin, Reader, parse_frame, records_in_block,
};

use crate::support::{SMALL, is_subsequence, read_all, shard, skipping};

/// The records before the first error, and the error.
fn until_error(shard: &[u8]) -> (Vec<Bytes>, Option<Error>) {
    let mut records = Vec::new();
    for record in Reader::new(shard, "small.tfrecord", Options::default()).unwrap() {
        match record {
            Ok(record) => records.push(record.data),
            Err(error) => return (records, Some(error)),
        }
    }
    (records, None)
}

/// The number of the record whose frame holds byte `position`.
fn record_at(index: &Index, position: usize) -> usize {
    index.iter().filter(|entry| entry.end() <= position as u64).count()
}

#[test]
fn every_truncation_is_named() {
    let (whole, index) = shard(&SMALL);
    for length in 0..whole.len() {
        let cut = &whole[..length];
        let (records, error) = until_error(cut);
        let number = record_at(&index, length);
        assert_eq!(records, SMALL[..number]);
        let Location { offset, length: frame } = index.get(number).unwrap();
        let found = length as u64 - offset;
        let Some(error) = error else {
            assert_eq!(found, 0, "a cut between records is not seen without an index");
            assert!(index.check_within(length as u64, "small").is_err());
            continue;
        };
        assert_eq!(error.context().record, Some(number as u64));
        assert_eq!(error.context().offset, Some(offset));
        let part = match found {
            0..12 => FramePart::Header,
            _ if found < frame - 4 => FramePart::Payload,
            _ => FramePart::Footer,
        };
        let Error::Format { fault: FormatFault::Truncated { part: found, .. }, .. } = error else { panic!("{error}") };
        assert_eq!(found, part);

        // Skipping gives the same records, and says what it lost.
        let mut reader = Reader::new(cut, "small.tfrecord", skipping()).unwrap();
        assert_eq!(reader.by_ref().map(|record| record.unwrap().data).collect::<Vec<_>>(), SMALL[..number]);
        assert_eq!((reader.report().records(), reader.report().bytes()), (1, length as u64 - offset));

        // So does a block.
        let block = Bytes::copy_from_slice(cut);
        let origin = Origin { shard: "small.tfrecord", record: number as u64, offset: 0 };
        let blocked = parse_frame(&block, offset as usize, origin).unwrap_err();
        assert!(matches!(blocked, Error::Format { fault: FormatFault::Truncated { part: p, .. }, .. } if p == part));
    }
}

#[test]
fn every_flipped_bit_is_an_error_and_is_skipped() {
    let (whole, index) = shard(&SMALL);
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let number = record_at(&index, bit / 8);
        let mut rest = SMALL.to_vec();
        rest.remove(number);

        let (records, error) = until_error(&flipped);
        let error = error.expect("every bit is covered by a checksum");
        assert_eq!(records, SMALL[..number]);
        assert_eq!(error.context().record, Some(number as u64));
        assert_eq!(error.kind(), ErrorKind::Data);

        // With and without the index, exactly the damaged record is lost.
        assert_eq!(read_all(&flipped, skipping()).unwrap(), rest);
        let mut reader = Reader::new(&flipped[..], "small.tfrecord", skipping()).unwrap().with_index(index.clone());
        let found: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(found.iter().map(|record| &record.data).collect::<Vec<_>>(), rest);
        for record in &found {
            assert_eq!(index.get(record.number as usize), Some(record.location));
        }
        assert_eq!(reader.report().records(), 1);
        assert_eq!(reader.report().bytes(), index.get(number).unwrap().length);
        assert_eq!(reader.report().entries()[0].error.context().offset, index.get(number).map(|entry| entry.offset));

        let block = Bytes::from(flipped);
        let base = Origin { shard: "small.tfrecord", record: 0, offset: 0 };
        for (at, record) in records_in_block(&block, index.iter(), base, true).enumerate() {
            assert_eq!(record.is_err(), at == number);
        }
    }
}

#[test]
fn removed_and_inserted_bytes_never_make_a_wrong_record() {
    let (whole, _) = shard(&SMALL);
    for at in 0..whole.len() {
        for change in 0..3 {
            let mut changed = whole.clone();
            match change {
                0 => drop(changed.remove(at)),
                1 => changed.insert(at, 0),
                _ => drop(changed.splice(at..at, [0xff; 30])),
            }
            assert!(is_subsequence(&read_all(&changed, skipping()).unwrap(), &SMALL));
            assert!(read_all(&changed, Options::default()).is_err());
        }
    }
}

#[test]
fn two_damaged_lengths_in_a_row_are_two_losses_with_an_index() {
    let (mut shard, index) = shard(&SMALL);
    for number in [1, 2] {
        shard[index.get(number).unwrap().offset as usize] ^= 0x40;
    }
    let mut reader = Reader::new(&shard[..], "small.tfrecord", skipping()).unwrap().with_index(index);
    let numbers: Vec<_> = reader.by_ref().map(|record| record.unwrap().number).collect();
    assert_eq!(numbers, [0, 3]);
    assert_eq!(reader.report().records(), 2);
    assert_eq!(reader.into_report().entries().len(), 2);
}

#[test]
fn garbage_after_the_last_record_is_reported() {
    let (mut shard, index) = shard(&SMALL);
    let end = shard.len() as u64;
    shard.extend_from_slice(b"garbage that is longer than a header");
    let (records, error) = until_error(&shard);
    assert_eq!(records, SMALL);
    assert_eq!(error.unwrap().context().offset, Some(end));
    assert!(index.gaps(shard.len() as u64).eq(std::iter::once(end..shard.len() as u64)));
    // The index knows that no record is lost there.
    let mut reader = Reader::new(&shard[..], "small.tfrecord", skipping()).unwrap().with_index(index);
    assert_eq!(reader.by_ref().count(), 4);
    assert_eq!((reader.report().records(), reader.report().bytes()), (0, 36));
}

#[test]
fn unverified_payloads_are_returned_as_they_are() {
    let (mut shard, index) = shard(&SMALL);
    shard[12] ^= 1;
    let options = Options { verify_checksums: false, ..Options::default() };
    assert_eq!(read_all(&shard, options.clone()).unwrap()[0][..], b"uhe first record"[..]);
    let block = Bytes::from(shard.clone());
    let base = Origin { shard: "small.tfrecord", record: 0, offset: 0 };
    assert!(records_in_block(&block, index.iter(), base, false).all(|record| record.is_ok()));
    // The lengths are verified all the same.
    shard[0] ^= 1;
    assert!(read_all(&shard, options).is_err());
}
