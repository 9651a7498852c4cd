//! The index of a tar: a text, a NUL, and the tar. Samples tile the tar; and where each of them is there, they are those that its headers give.
#![no_main]

use std::io::Cursor;

use bytes::Bytes;
use forebay_record::{TarIndex, parse_tar_index, scan_tar, tar_members};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let nul = file.iter().position(|&byte| byte == 0).unwrap_or(file.len());
    let (text, tar) = (&file[..nul], file.get(nul + 1..).unwrap_or_default());
    // Of any length, too: a tar that nobody looks into.
    for bytes in [file.len() as u64 * 512, u64::MAX] {
        check(text, bytes);
    }
    let Some(samples) = check(text, tar.len() as u64) else { return };
    let shard = Bytes::copy_from_slice(tar);
    let end = samples.last().map_or(0, |sample| sample.range.end as usize);
    let is_there = samples.iter().all(|sample| {
        let bytes = shard.slice(sample.range.start as usize..sample.range.end as usize);
        tar_members(&bytes, &sample.key, "shard.tar", 0, sample.range.start).is_ok()
    });
    if !is_there || tar[end..].iter().any(|&byte| byte != 0) {
        return;
    }
    if let Ok(scanned) = scan_tar(Cursor::new(tar), "shard.tar") {
        assert_eq!(samples, scanned);
        let mut index = TarIndex::new();
        for sample in &samples {
            index.add(&sample.key, "bin", sample.range.start + 512, sample.range.end - sample.range.start - 512);
        }
        let again = index.into_text();
        let keys = |found: Option<Vec<forebay_record::TarSample>>| {
            found.map(|found| found.into_iter().map(|sample| sample.key).collect::<Vec<_>>())
        };
        // A key may be of a name that is no text, which is written otherwise in it.
        if let Some(again) = again.filter(|_| samples.iter().all(|sample| !sample.key.contains('\\'))) {
            assert_eq!(keys(parse_tar_index(again.as_bytes(), tar.len() as u64)), keys(Some(samples)));
        }
    }
});

fn check(text: &[u8], bytes: u64) -> Option<Vec<forebay_record::TarSample>> {
    let samples = parse_tar_index(text, bytes)?;
    let mut end = 0;
    for sample in &samples {
        assert!(sample.range.start == end && sample.range.end > end && sample.range.end <= bytes);
        end = sample.range.end;
    }
    assert!(!samples.is_empty() && samples.windows(2).all(|pair| pair[0].key != pair[1].key));
    Some(samples)
}
