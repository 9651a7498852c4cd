//! Tar shards: samples are found by the headers, and taken apart one by one.
#![no_main]

use std::io::Cursor;

use bytes::Bytes;
use forebay_record::{scan_tar, tar_members};
use libfuzzer_sys::fuzz_target;

const BLOCK_BYTES: usize = 512;
/// Where the checksum is in a header (POSIX.1-1988, ustar).
const CHECKSUM: std::ops::Range<usize> = 148..156;

fuzz_target!(|shard: &[u8]| {
    read(shard);
    // With the checksums put right the fuzzer reaches what is behind them.
    let mut repaired = shard.to_vec();
    for block in repaired.chunks_exact_mut(BLOCK_BYTES).filter(|block| block[0] != 0) {
        block[CHECKSUM].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    read(&repaired);
});

fn read(shard: &[u8]) {
    let Ok(samples) = scan_tar(Cursor::new(shard), "shard.tar") else { return };
    let shard = Bytes::copy_from_slice(shard);
    let mut end = 0;
    for (number, sample) in samples.iter().enumerate() {
        let range = sample.range.start as usize..sample.range.end as usize;
        assert!(end <= range.start && range.start < range.end && range.end <= shard.len());
        end = range.end;
        let _ = tar_members(&shard.slice(range), "shard.tar", number as u64, sample.range.start);
    }
}
