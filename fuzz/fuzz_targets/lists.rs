//! The lists beside a shard (index, blocks, checksums), read as a naive reader does; and compressed shards by them: a list of blocks, a NUL, and
//! the shard.
#![no_main]

use std::io::Write;

use forebay_fuzz::naive;
use forebay_record::{Blocks, Checksums, Index, ShardCompression, ShardCompressor, Sizes, inflate_block};
use libfuzzer_sys::fuzz_target;

/// Blocks that inflate to more are left out: the list is believed up to 2 GiB, and the time is for other things.
const INFLATED_BYTES_MAX: u64 = 1 << 20;

fuzz_target!(|file: &[u8]| {
    index(file);
    if let Ok(checksums) = Checksums::parse(file, "shard.crc") {
        assert!(checksums.to_bytes() == file && checksums.len() * 4 == file.len());
    }
    if let Ok(sizes) = Sizes::parse(file, "shard.sizes") {
        assert!(sizes.to_bytes() == file && sizes.len() * 4 == file.len());
    }
    let nul = file.iter().position(|&byte| byte == 0).unwrap_or(file.len());
    let (list, shard) = (&file[..nul], file.get(nul + 1..).unwrap_or_default());
    let compression = if list.len() % 2 == 0 { "gzip-1" } else { "zlib-1" };
    let compression = compression.parse().expect("a name");
    blocks(list, shard, compression);
    if !shard.is_empty() {
        packed(shard, compression);
    }
});

fn index(text: &[u8]) {
    let ours = Index::parse(text, "shard.idx");
    let lines = naive::numbers(text, 2).filter(|lines| {
        let ends = std::iter::once(Some(0)).chain(lines.iter().map(|line| line[0].checked_add(line[1])));
        lines.iter().zip(ends).all(|(line, end)| {
            line[1] >= 16 && end.is_some_and(|end| line[0] >= end) && line[0].checked_add(line[1]).is_some()
        })
    });
    assert_eq!(ours.is_ok(), lines.is_some(), "{ours:?}");
    let (Ok(ours), Some(lines)) = (ours, lines) else { return };
    assert!(ours.iter().map(|entry| vec![entry.offset, entry.length]).eq(lines));
    let again = Index::parse(ours.to_text().as_bytes(), "shard.idx").expect("what was sound stays so");
    assert_eq!(again, ours);
    assert!(ours.iter().enumerate().all(|(number, entry)| ours.find(entry) == Some(number)));
    let _ = ours.check_within(1 << 20, "shard");
}

fn blocks(list: &[u8], shard: &[u8], compression: ShardCompression) {
    let Ok(ours) = Blocks::parse(list, compression.algorithm, "shard.blocks") else { return };
    let lines = naive::numbers(list, 4).expect("what is a list is one to both");
    let entries = ours.entries().iter();
    assert!(entries.map(|block| vec![block.offset, block.length, block.inflated_offset, block.inflated_length]).eq(lines));
    let again = Blocks::parse(ours.to_text().as_bytes(), compression.algorithm, "shard.blocks").expect("what was sound stays so");
    assert_eq!(again, ours);
    if ours.check_within(shard.len() as u64, "shard").is_err() || ours.inflated_bytes() > INFLATED_BYTES_MAX {
        return;
    }
    for block in ours.entries() {
        let mut inflated = vec![0; block.inflated_length as usize];
        let packed = &shard[block.offset as usize..block.end() as usize];
        let _ = inflate_block(packed, block, compression, "shard", &mut inflated);
        assert_eq!(ours.covering(block.inflated_offset..block.inflated_end()).contains(block), block.inflated_length > 0);
    }
}

/// What is packed is unpacked to the same bytes.
fn packed(content: &[u8], compression: ShardCompression) {
    let mut compressor = ShardCompressor::new(Vec::new(), compression).expect("memory can be written to");
    for record in content.chunks(1000) {
        compressor.write_all(record).and_then(|()| compressor.end_record()).expect("memory can be written to");
    }
    let (shard, blocks) = compressor.finish().expect("memory can be written to");
    let mut inflated = Vec::new();
    for block in blocks.entries() {
        let packed = &shard[block.offset as usize..block.end() as usize];
        let start = inflated.len();
        inflated.resize(start + block.inflated_length as usize, 0);
        inflate_block(packed, block, compression, "shard", &mut inflated[start..]).expect("what was packed");
    }
    assert_eq!(inflated, content);
}
