//! The index.

use bytes::Bytes;
use forebay_error::ErrorKind;
use forebay_record::{Error, FormatFault, Index, IndexFault, Location, Options, Origin, parse_indexed};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};

use crate::support::{SMALL, shard, skipping};

fn fault(text: &[u8]) -> (u64, IndexFault) {
    match Index::parse(text, "small.tfrecord.idx") {
        Err(Error::Format { fault: FormatFault::Index { line, fault }, .. }) => (line, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_text_is_that_of_tfrecord2idx() {
    let (bytes, index) = shard(&SMALL);
    assert_eq!(index.to_text(), "0 32\n32 16\n48 21\n69 56\n");
    assert_eq!(Index::parse(index.to_text().as_bytes(), "a").unwrap(), index);
    assert_eq!(Index::scan(&bytes[..], "a", Options::default()).unwrap(), index);
    assert_eq!((index.len(), index.payload_length(2), index.payload_length(4)), (4, Some(5), None));
    assert_eq!(index.end(), bytes.len() as u64);
}

#[test]
fn white_space_is_forgiven() {
    let index = Index::parse(b"0 32\r\n  32\t16 \n\n48   21", "a").unwrap();
    assert_eq!(index.to_text(), "0 32\n32 16\n48 21\n");
    assert!(Index::parse(b"", "a").unwrap().is_empty());
}

#[test]
fn wrong_lines_are_named() {
    for text in ["0 32\n32\n", "0 32\n-1 20\n", "0 32\n32 16 5\n", "0 32\n32,16\n", "0 32\nx\n", "0 32\n0x20 16"] {
        assert_eq!(fault(text.as_bytes()), (2, IndexFault::NotTwoNumbers), "{text}");
    }
    assert_eq!(fault(b"0 18446744073709551616"), (1, IndexFault::TooLarge));
    assert_eq!(fault(b"16 18446744073709551600"), (1, IndexFault::TooLarge));
    assert_eq!(fault(b"0 15"), (1, IndexFault::TooShort { found: 15 }));
    assert_eq!(fault(b"0 32\n31 16"), (2, IndexFault::Overlap { expected: 32, found: 31 }));
}

#[test]
fn gaps_and_ends_are_found() {
    let index = Index::parse(b"10 20\n30 20\n60 20", "a").unwrap();
    assert_eq!(index.gaps(100).collect::<Vec<_>>(), [0..10, 50..60, 80..100]);
    index.check_within(80, "a").unwrap();
    let error = index.check_within(79, "a").unwrap_err();
    assert_eq!((error.context().record, error.context().offset), (Some(2), Some(60)));
}

#[test]
fn a_scan_leaves_damaged_records_out_if_asked() {
    let (mut bytes, index) = shard(&SMALL);
    bytes[50] ^= 1;
    assert!(Index::scan(&bytes[..], "a", Options::default()).is_err());
    let scanned = Index::scan(&bytes[..], "a", skipping()).unwrap();
    let mut rest: Vec<_> = index.iter().collect();
    rest.remove(2);
    assert_eq!(scanned.iter().collect::<Vec<_>>(), rest);
    assert!(scanned.gaps(bytes.len() as u64).eq(std::iter::once(48..69)));
}

#[test]
fn an_index_of_another_shard_is_noticed() {
    let (bytes, _) = shard(&SMALL);
    let block = Bytes::from(bytes).slice(32..);
    let parse = |offset, length| {
        let base = Origin { shard: "small.tfrecord", record: 1, offset: 32 };
        parse_indexed(&block, Location { offset, length }, base, true)
    };
    assert_eq!(parse(48, 21).unwrap(), SMALL[2]);
    assert!(matches!(parse(48, 25), Err(Error::Format { fault: FormatFault::IndexDisagrees { .. }, .. })));
    assert!(matches!(parse(49, 21), Err(Error::Format { fault: FormatFault::LengthChecksum { .. }, .. })));
    for (offset, length) in [(0, 32), (69, 57), (u64::MAX, 16), (48, u64::MAX), (500, 16)] {
        assert_eq!(parse(offset, length).unwrap_err().kind(), ErrorKind::Usage);
    }
    // A frame of too few bytes to be one.
    assert_eq!(parse(48, 3).unwrap_err().kind(), ErrorKind::Data);
    assert_eq!(parse(48, 14).unwrap_err().kind(), ErrorKind::Data);
}

#[test]
fn locations_are_added_in_order() {
    let mut index = Index::new();
    index.push(Location { offset: 5, length: 16 }).unwrap();
    for (offset, length) in [(20, 16), (21, 15), (u64::MAX, 16)] {
        assert_eq!(index.push(Location { offset, length }).unwrap_err().kind(), ErrorKind::Usage);
    }
    index.push(Location { offset: 21, length: 16 }).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_parsed(
        steps in proptest::collection::vec((0_u64..3, 16_u64..1_000_000), 0..50),
        // Offsets are held in another way from 4 GiB on.
        long in proptest::option::of((0_usize..50, (1_u64 << 31)..(1 << 33))),
    ) {
        let mut steps = steps;
        if let Some((at, length)) = long {
            steps.insert(at.min(steps.len()), (0, length));
        }
        let mut index = Index::new();
        let mut locations = Vec::new();
        for (gap, length) in steps {
            locations.push(Location { offset: index.end() + gap, length });
            index.push(locations[locations.len() - 1]).unwrap();
        }
        prop_assert_eq!(index.iter().collect::<Vec<_>>(), &locations[..]);
        for (number, &location) in locations.iter().enumerate() {
            prop_assert_eq!(index.find(location), Some(number));
            prop_assert_eq!(index.first_after(location.offset), number + 1);
            prop_assert_eq!(index.find(Location { length: location.length + 1, ..location }), None);
        }
        prop_assert_eq!(Index::parse(index.to_text().as_bytes(), "a").unwrap(), index);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in proptest::collection::vec(any::<u8>(), 0..60), digits in "[0-9 \\n]{0,60}") {
        let _ = Index::parse(&text, "a");
        if let Ok(index) = Index::parse(digits.as_bytes(), "a") {
            prop_assert_eq!(Index::parse(index.to_text().as_bytes(), "a").unwrap(), index);
        }
    }
}
