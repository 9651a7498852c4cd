//! Tar shards: samples are found by the headers, and taken apart one by one; a naive reader finds the same members.
#![no_main]

use std::io::Cursor;

use bytes::Bytes;
use forebay_fuzz::{naive, structure};
use forebay_record::{salvage_tar, scan_tar, tar_members};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::Tar>(data, size, max_size, seed)
});

fuzz_target!(|file: &[u8]| {
    let (salvaged, damage) = salvage_tar(Cursor::new(file), "shard.tar").expect("memory can be read");
    let scanned = scan_tar(Cursor::new(file), "shard.tar");
    assert_eq!(scanned.is_ok(), damage.is_none());
    let samples = scanned.unwrap_or(salvaged);
    let shard = Bytes::copy_from_slice(file);
    let mut end = 0;
    let mut ours = Some(Vec::new());
    for (number, sample) in samples.iter().enumerate() {
        let range = sample.range.start as usize..sample.range.end as usize;
        assert!(end <= range.start && range.start < range.end && range.end <= shard.len());
        end = range.end;
        match tar_members(&shard.slice(range), &sample.key, "shard.tar", number as u64, sample.range.start) {
            Ok(members) => {
                let named = members.into_iter().map(|(member, content)| (format!("{}.{member}", sample.key), content));
                ours.iter_mut().for_each(|all| all.extend(named.clone()));
            }
            Err(_) => ours = None,
        }
    }
    let (None, Some(ours), Some(files)) = (damage, ours, naive::tar(file)) else { return };
    // Names that are no text, or look like the text for such, are told apart by escapes.
    if files.iter().any(|(name, _)| std::str::from_utf8(name).map_or(true, |name| name.contains(r"\x"))) {
        return;
    }
    let named = files.into_iter().filter_map(|(name, content)| {
        let name = std::str::from_utf8(&name).ok()?.trim_start_matches("./");
        let last = name.rsplit('/').next()?;
        (last.contains('.') && !last.starts_with('.')).then(|| (name.to_owned(), content))
    });
    assert!(ours.iter().map(|(name, content)| (name.clone(), &content[..])).eq(named), "{ours:?}");
});
