//! The decoders of compressed blocks and records: any bytes, and what was compressed with one byte changed. The first byte says how it is compressed,
//! the next two how long it is to be, the fourth what is changed; the rest is the content.
#![no_main]

use std::io::Write;

use forebay_record::{
    CompressedBlock, Dictionary, OnDamage, Options, ErrorLocation, Reader, RecordCompressor, Scope, ShardCompression, ShardCompressor, Writer, inflate_block,
    inflate_record,
};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 8] =
    ["gzip-1", "zlib-6-rle", "zlib-1-fixed", "zstd-1", "zstd-fast-3-checksum", "lz4", "lz4-hc-3", "snappy"];
const SCOPES: [Scope; 3] = [Scope::Block, Scope::Record, Scope::Stream];

fuzz_target!(|file: &[u8]| {
    let [kind, low, high, change, content @ ..] = file else { return };
    let compression: ShardCompression = NAMES[*kind as usize % NAMES.len()].parse().expect("a name");
    let compression = ShardCompression { scope: SCOPES[*kind as usize / NAMES.len() % SCOPES.len()], ..compression };
    let length = u64::from(u16::from_le_bytes([*low, *high]));
    inflate(content, length, compression);
    with_dictionary(content, length);

    // Of nothing there is no block.
    if content.is_empty() && compression.scope != Scope::Record {
        return;
    }
    let mut compressed = compress(content, compression);
    let whole = inflate(&compressed, content.len() as u64, compression);
    assert!(whole.as_deref() == Some(content), "what was compressed comes back");
    if let Some(last) = compressed.len().checked_sub(1) {
        compressed[last * *change as usize / 255] ^= 1 << (low % 8);
        inflate(&compressed, content.len() as u64, compression);
        inflate(&compressed[..last * *high as usize / 255], content.len() as u64, compression);
        stream(content, &compressed, compression);
    }
});

/// The content as a dictionary, and as a record that was compressed with it.
fn with_dictionary(content: &[u8], length: u64) {
    let magic = [0x37, 0xa4, 0x30, 0xec];
    let Ok(dictionary) = Dictionary::parse([&magic[..], content].concat().into(), "records.dictionary") else { return };
    let compression: ShardCompression = "zstd-1-dictionary-record".parse().expect("a name");
    let allocate = |length| Ok(vec![0_u8; length]);
    let _ = inflate_record(content, length, compression, Some(&dictionary), ErrorLocation::default, allocate);
    let Ok(mut compressor) = RecordCompressor::new(compression, Some(&dictionary)) else { return };
    let compressed = compressor.compress(content).expect("memory");
    let again =
        inflate_record(compressed, content.len() as u64, compression, Some(&dictionary), ErrorLocation::default, allocate);
    assert!(again.is_ok_and(|again| again == content), "what was compressed comes back");
}

fn inflate(compressed: &[u8], length: u64, compression: ShardCompression) -> Option<Vec<u8>> {
    if compression.scope == Scope::Record {
        return inflate_record(compressed, length, compression, None, ErrorLocation::default, |length| Ok(vec![0; length])).ok();
    }
    let block = CompressedBlock { offset: 0, length: compressed.len() as u64, inflated_offset: 0, inflated_length: length };
    let mut out = vec![0; length as usize];
    inflate_block(compressed, &block, compression, "shard", &mut out).ok().map(|()| out)
}

/// What `content` becomes as one block, stream or record; of a stream only what lies between its header and its trailer.
fn compress(content: &[u8], compression: ShardCompression) -> Vec<u8> {
    if compression.scope == Scope::Record {
        let mut compressor = RecordCompressor::new(compression, None).expect("memory");
        return compressor.compress(content).expect("memory").to_vec();
    }
    let mut compressor = ShardCompressor::new(Vec::new(), compression).expect("memory");
    compressor.write_all(content).expect("memory can be written to");
    let (shard, blocks) = compressor.finish().expect("memory can be written to");
    match blocks.entries() {
        [] => Vec::new(),
        [block] => shard[block.offset as usize..block.end() as usize].to_vec(),
        _ => panic!("one block, since no record ended"),
    }
}

/// A whole shard, changed as the block was, read from front to back: what comes is what was written.
fn stream(content: &[u8], damaged: &[u8], compression: ShardCompression) {
    let options = || Options { on_damage: OnDamage::Skip, max_record_bytes: 1 << 20, ..Options::default() };
    Reader::new(damaged, "shard", options()).into_iter().flatten().take_while(Result::is_ok).for_each(drop);
    if compression.scope == Scope::Record {
        return;
    }
    let mut writer = Writer::new(ShardCompressor::new(Vec::new(), compression).expect("memory"));
    writer.write(content).expect("memory can be written to");
    let (mut shard, _) = writer.finish().and_then(|compressor| Ok(compressor.finish().expect("memory"))).expect("memory");
    let at = shard.len() * (damaged.len() % 251) / 251;
    shard[at] = damaged[0];
    // Up to the damage: whoever skips it looks for the next record, and the content may be a shard, too.
    let options = Options { max_record_bytes: 1 << 20, ..Options::default() };
    for record in Reader::new(&shard[..], "shard", options).into_iter().flatten().map_while(Result::ok) {
        assert!(record.data == content || record.data.is_empty());
    }
}
