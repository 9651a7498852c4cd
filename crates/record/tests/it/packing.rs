//! Packed shards: read whole by any reader of GZIP and ZLIB, and block by block by us.

use std::io::Read;

use forebay_record::{
    Blocks, Index, Options, Origin, PackFormat, Packer, Packing, Reader, Writer, inflate_block, records_in_block,
};
use proptest::prelude::*;

/// A packed shard of these records.
fn pack(records: &[Vec<u8>], packing: Packing) -> (Vec<u8>, Index, Blocks) {
    let mut writer = Writer::new(Packer::new(Vec::new(), packing).unwrap());
    let mut index = Index::new();
    for record in records {
        index.push(writer.write(record).unwrap()).unwrap();
        writer.output().end_record().unwrap();
    }
    let (shard, blocks) = writer.finish().unwrap().finish().unwrap();
    (shard, index, blocks)
}

/// Records that compress a little.
fn records(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8 & 0x3f
    };
    (0..count).map(|_| (0..bytes).map(|_| next()).collect()).collect()
}

fn packings() -> impl Iterator<Item = Packing> {
    ["gzip", "zlib", "gzip-1", "zlib-9"].into_iter().map(|name| name.parse().unwrap())
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in ["gzip", "zlib", "gzip-1", "zlib-9"] {
        assert_eq!(name.parse::<Packing>().unwrap().to_string(), name);
    }
    assert_eq!("gzip-6".parse::<Packing>().unwrap().to_string(), "gzip");
    for name in ["", "gzip-0", "gzip-10", "gzip-", "zstd", "zlib-a"] {
        assert!(name.parse::<Packing>().unwrap_err().to_string().contains("hint: `gzip` or `zlib`"), "{name}");
    }
}

#[test]
fn a_packed_shard_is_one_stream_to_others() {
    let records = records(400, 7_000);
    for packing in packings() {
        let (shard, index, blocks) = pack(&records, packing);
        // The fastest level does without codes of its own, which is all that would help such records.
        let saves = packing.level > 1;
        assert!(!saves || shard.len() < records.len() * 7_000 * 9 / 10, "{packing} saves a tenth: {}", shard.len());
        assert!(blocks.entries().len() > 3, "{packing} makes several blocks of 2.8 MB");
        let reader = Reader::new(&shard[..], "shard", Options::default()).unwrap();
        assert!(reader.is_compressed());
        let read: Vec<_> = reader.map(Result::unwrap).collect();
        assert!(read.iter().map(|record| &record.data[..]).eq(records.iter().map(|record| &record[..])));
        assert!(read.iter().map(|record| record.location).eq(index.iter()));
        // Checksums and lengths at the stream's end are right: the library's own decoder checks them.
        let mut inflated = Vec::new();
        match packing.format {
            PackFormat::Gzip => flate2::read::GzDecoder::new(&shard[..]).read_to_end(&mut inflated).unwrap(),
            PackFormat::Zlib => flate2::read::ZlibDecoder::new(&shard[..]).read_to_end(&mut inflated).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(inflated.len() as u64, index.end());
    }
}

#[test]
fn each_block_inflates_on_its_own() {
    let records = records(300, 9_000);
    for packing in packings() {
        let (shard, index, blocks) = pack(&records, packing);
        blocks.check_within(shard.len() as u64, "shard").unwrap();
        assert_eq!(Blocks::parse(blocks.to_text().as_bytes(), "shard.blocks").unwrap(), blocks);
        let mut seen = 0;
        // Backwards, so that nothing can come from the block before.
        for block in blocks.entries().iter().rev() {
            let packed = &shard[block.offset as usize..block.end() as usize];
            let mut frames = Vec::new();
            inflate_block(packed, block, "shard", &mut frames).unwrap();
            let inside = |entry: &forebay_record::Location| {
                entry.offset >= block.inflated_offset && entry.end() <= block.inflated_end()
            };
            let locations: Vec<_> = index.iter().filter(inside).collect();
            let first = index.iter().position(|entry| entry == locations[0]).unwrap();
            let base = Origin { shard: "shard", record: first as u64, offset: block.inflated_offset };
            for (number, record) in records_in_block(&frames.into(), locations.into_iter(), base, true).enumerate() {
                assert_eq!(record.unwrap(), records[first + number]);
                seen += 1;
            }
        }
        assert_eq!(seen, records.len(), "no record lies in two blocks");
    }
}

#[test]
fn blocks_that_cover_a_range_are_found() {
    let (_, index, blocks) = pack(&records(300, 9_000), "gzip".parse().unwrap());
    for record in index.iter() {
        let [block] = blocks.covering(record.offset..record.end()) else { panic!("a record lies in one block") };
        assert!(block.inflated_offset <= record.offset && record.end() <= block.inflated_end());
    }
    assert_eq!(blocks.covering(0..index.end()), blocks.entries());
    assert!(blocks.covering(index.end()..u64::MAX).is_empty());
}

#[test]
fn a_damaged_list_of_blocks_is_refused() {
    let parse = |text: &str| Blocks::parse(text.as_bytes(), "a.blocks").unwrap_err().to_string();
    assert!(parse("10 20 0").contains("`a.blocks`: line 1: expected `offset length"), "{}", parse("10 20 0"));
    assert!(parse("10 20 0 30 5").contains("four decimal numbers"));
    assert!(parse("10 20 0 x").contains("four decimal numbers"));
    assert!(parse("10 20 0 40\n20 20 40 40").contains("line 2: expected an offset of at least `30`"));
    assert!(parse("10 20 0 40\n30 20 41 40").contains("inflated offset of `40`"));
    assert!(parse("10 20 0 99999999").contains("cannot inflate to `99999999`"));
    assert!(parse("10 99999999 0 9999999999").contains("cannot inflate to `9999999999`"), "more than any block has");
    assert!(parse("18446744073709551615 1 0 1").contains("does not fit 64 bits"));
    let blocks = Blocks::parse(b"10 20 0 40\n", "a.blocks").unwrap();
    assert!(blocks.check_within(29, "a").unwrap_err().to_string().contains("the shard at `29`"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_of_any_size_come_back(sizes in prop::collection::vec(0_usize..60_000, 0..12), level in 1_u8..=9) {
        let records: Vec<Vec<u8>> = sizes.iter().map(|&size| records(1, size).remove(0)).collect();
        let packing = format!("zlib-{level}").parse().unwrap();
        let (shard, index, blocks) = pack(&records, packing);
        let mut all = Vec::new();
        for block in blocks.entries() {
            inflate_block(&shard[block.offset as usize..block.end() as usize], block, "shard", &mut all).unwrap();
        }
        prop_assert_eq!(all.len() as u64, index.end());
        let base = Origin { shard: "shard", record: 0, offset: 0 };
        let all = all.into();
        for (record, expected) in records_in_block(&all, index.iter(), base, true).zip(&records) {
            prop_assert_eq!(&record.unwrap()[..], &expected[..]);
        }
    }

    #[test]
    fn damaged_blocks_never_panic(at in any::<prop::sample::Index>(), value: u8, cut in any::<prop::sample::Index>()) {
        let (mut shard, _, blocks) = pack(&records(3, 2_000), "gzip".parse().unwrap());
        let block = blocks.entries()[0];
        let place = block.offset as usize + at.index(block.length as usize);
        shard[place] = value;
        let end = block.offset as usize + cut.index(block.length as usize + 1);
        let mut out = Vec::new();
        // Wrong bytes may inflate to the right length: the records' checksums find that.
        let _ = inflate_block(&shard[block.offset as usize..end], &block, "shard", &mut out);
        prop_assert!(out.len() as u64 <= block.inflated_length);
    }
}
