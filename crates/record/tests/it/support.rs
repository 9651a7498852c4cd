//! What several tests share.

use bytes::Bytes;
use forebay_record::{Index, OnDamage, Options, Reader, Result, Writer};

use crate::data::data_folder;

/// A golden file, or `None` with a word of why where the shared data is not there.
pub(crate) fn golden(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(data_folder(&format!("golden/{name}"))?).unwrap())
}

/// A shard of these records and its index.
pub(crate) fn shard(records: &[&[u8]]) -> (Vec<u8>, Index) {
    let mut writer = Writer::new(Vec::new());
    let mut index = Index::new();
    for record in records {
        index.push(writer.write(record).unwrap()).unwrap();
    }
    (writer.finish().unwrap(), index)
}

/// Four short records, one of them empty.
pub(crate) const SMALL: [&[u8]; 4] = [b"the first record", b"", b"third", &[0; 40]];

pub(crate) fn skipping() -> Options {
    Options { on_damage: OnDamage::Skip, ..Options::default() }
}

pub(crate) fn read_all(shard: &[u8], options: Options) -> Result<Vec<Bytes>> {
    Reader::new(shard, "small.tfrecord", options)?.map(|record| record.map(|record| record.data)).collect()
}

/// Whether `part` is `whole` with some left out.
pub(crate) fn is_subsequence(part: &[Bytes], whole: &[&[u8]]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|record| whole.any(|candidate| candidate == record))
}

/// A small seeded generator (splitmix64), so that a failing mutant can be made again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
