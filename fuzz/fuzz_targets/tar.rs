//! Tar shards: samples are found by the headers, and taken apart one by one; a naive reader finds the same members. Of a compressed one (`.tar.gz`,
//! `.tar.zst`) a listing finds what is in the tar that it inflates to, and reads it.
#![no_main]

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use forebay_engine::StorageChoice;
use forebay_engine::data::{Listing, ListingOptions, SourceReader};
use forebay_engine::load::OnError;
use forebay_fuzz::{naive, structure};
use forebay_pipeline::Pipeline;
use forebay_record::{TarSample, salvage_tar, scan_tar, tar_members};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

/// A folder of this process, for a shard to be listed in.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("forebay-fuzz-tar-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
});

/// Tars with images.
static PIPELINE: LazyLock<Pipeline> = LazyLock::new(|| {
    let text = "name = \"tars\"\n[source]\nformat = \"tar\"\nfiles = \"*\"\n\
                [[source.fields]]\nfield = \"image\"\nfrom = \"jpg\"\n[[step]]\nop = \"decode\"\n";
    Pipeline::from_toml("tars", text).expect("a pipeline on tars")
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::PackedTar>(data, size, max_size, seed)
});

fuzz_target!(|file: &[u8]| {
    match structure::unpack(file) {
        None => tar(file),
        // Bombs end at a limit of the engine that is higher than that.
        Some((inflated, _)) if inflated.len() as u64 > structure::INFLATED_BYTES_MAX => {}
        Some((inflated, is_sound)) => {
            tar(&inflated);
            compressed(file, &inflated, is_sound);
        }
    }
});

/// A listing has the samples of what the shard inflates to; of a damaged one as far as it was inflated.
fn compressed(file: &[u8], inflated: &[u8], is_sound: bool) {
    let expected = salvage_tar(Cursor::new(inflated), "shard").expect("memory can be read").0;
    std::fs::write(FOLDER.join("shard"), file).expect("the temporary folder can be written to");
    let options = ListingOptions { on_error: OnError::Skip, ..ListingOptions::default() };
    let Ok(listing) = Listing::scan_with(PIPELINE.source(), FOLDER.as_path(), &options) else {
        assert!(!is_sound || expected.is_empty(), "{expected:?}");
        return;
    };
    let entries = listing.entries().iter().map(|entry| (&*entry.key, entry.bytes));
    let same = |sample: &TarSample| (sample.key.clone(), sample.range.end - sample.range.start);
    assert!(entries.clone().zip(&expected).all(|((key, bytes), sample)| (key.to_owned(), bytes) == same(sample)));
    assert!(!is_sound || entries.len() == expected.len(), "{} of {}", entries.len(), expected.len());
    let bytes: Vec<u64> = entries.map(|(_, bytes)| bytes).collect();
    let reader = SourceReader::new(Arc::new(listing), StorageChoice::Local.open(0).expect("local files"));
    // Backward, too, which inflates it again.
    for number in (0..bytes.len()).chain([0]) {
        match reader.read(number) {
            Ok(content) => assert_eq!(content.bytes(), bytes[number]),
            Err(_) => assert!(!is_sound),
        }
    }
}

/// A tar that is not compressed.
fn tar(file: &[u8]) {
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
}
