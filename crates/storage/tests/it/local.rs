//! Buffered and direct reads of real files.

use std::path::{Path, PathBuf};

use forebay_error::ErrorKind;
use forebay_storage::{LocalStorage, Storage, sequential};
use proptest::prelude::*;

use crate::data::data_folder;
use crate::support::pattern;

fn storages() -> [LocalStorage; 3] {
    [LocalStorage::buffered(), LocalStorage::direct(), LocalStorage::mapped()]
}

fn temporary_file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn names_tell_the_way_of_reading() {
    assert_eq!(storages().each_ref().map(Storage::name), ["local", "local-direct", "local-mmap"]);
    assert_eq!(storages().each_ref().map(LocalStorage::is_direct), [false, true, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any range of a file of any size has the bytes that were written, whichever way it is read.
    #[test]
    fn every_range_is_exact_each_way(
        size in prop_oneof![0_usize..20, 4090_usize..4100, 0_usize..300_000, 262_140_usize..600_000],
        ranges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
    ) {
        let expected = pattern(size);
        let (_folder, path) = temporary_file(&expected);
        for storage in storages() {
            let file = storage.open(&path).unwrap();
            prop_assert_eq!(file.size(), size as u64);
            // All results are kept while others are read, so a buffer that is reused too early shows.
            let mut results = Vec::new();
            for (one, other) in &ranges {
                let (one, other) = (one.index(size + 1), other.index(size + 1));
                let (start, end) = (one.min(other), one.max(other));
                results.push((start, end, file.read(start as u64, end - start).unwrap()));
            }
            for (start, end, bytes) in results {
                prop_assert!(bytes == expected[start..end], "{start}..{end} of {size} by {}", storage.name());
            }
        }
    }

    #[test]
    fn blocks_in_sequence_are_the_file(size in 0_usize..200_000, block_bytes in 1_usize..70_000) {
        let expected = pattern(size);
        let (_folder, path) = temporary_file(&expected);
        for storage in storages() {
            let file = storage.open(&path).unwrap();
            let blocks: Vec<_> = sequential(&*file, block_bytes).map(|block| block.unwrap()).collect();
            prop_assert_eq!(blocks.len(), size.div_ceil(block_bytes));
            prop_assert!(blocks.concat() == expected);
        }
    }
}

#[test]
fn large_reads_cross_many_buffers() {
    let expected = pattern((9 << 20) + 777);
    let (_folder, path) = temporary_file(&expected);
    for storage in storages() {
        assert!(storage.read_file(&path, u64::MAX).unwrap() == expected, "{}", storage.name());
        let file = storage.open(&path).unwrap();
        assert!(file.read(4097, 8 << 20).unwrap() == expected[4097..4097 + (8 << 20)], "{}", storage.name());
    }
}

#[test]
fn threads_share_a_file_and_the_pool() {
    let expected = pattern(2 << 20);
    let (_folder, path) = temporary_file(&expected);
    for storage in storages() {
        let file = storage.open(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8_usize {
                let (file, expected) = (&file, &expected);
                scope.spawn(move || {
                    for round in 0..200 {
                        let offset = (thread * 7919 + round * 104_729) % (1 << 20);
                        let length = 20_000 + (round * 4001) % 100_000;
                        let bytes = file.read(offset as u64, length).unwrap();
                        assert!(bytes == expected[offset..offset + length]);
                    }
                });
            }
        });
    }
}

#[test]
fn an_open_file_survives_its_deletion() {
    let (_folder, path) = temporary_file(&pattern(10_000));
    for storage in storages() {
        std::fs::write(&path, pattern(10_000)).unwrap();
        let file = storage.open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(file.read(0, 10_000).unwrap() == pattern(10_000));
    }
}

#[test]
fn a_whole_file_is_read_up_to_the_limit() {
    let (_folder, path) = temporary_file(&pattern(1000));
    for storage in storages() {
        assert_eq!(storage.read_file(&path, 1000).unwrap().len(), 1000);
        let error = storage.read_file(&path, 999).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(error.context().path, Some(&*path));
    }
    std::fs::write(&path, "").unwrap();
    for storage in storages() {
        assert!(storage.read_file(&path, 0).unwrap().is_empty());
    }
}

#[test]
fn a_refused_direct_read_falls_back_and_says_so() {
    // The kernel's own files have no device behind them, so direct reads of them are always refused.
    let path = Path::new("/proc/version");
    if !path.exists() {
        eprintln!("skipped: there is no {}", path.display());
        return;
    }
    let storage = LocalStorage::direct();
    assert_eq!(storage.notice(), None);
    storage.open(path).unwrap();
    let notice = storage.notice().unwrap();
    assert!(notice.contains("`/proc/version`") && notice.contains("page cache"), "{notice}");
    assert_eq!(storage.clone().notice(), Some(notice), "clones share it");

    let path = Path::new("/sys/kernel/btf/vmlinux");
    let Ok(expected) = std::fs::read(path) else {
        eprintln!("skipped: cannot read {}", path.display());
        return;
    };
    let file = storage.open(path).unwrap();
    assert!(file.read(1001, 4444).unwrap() == expected[1001..5445]);
}

#[test]
fn pictures_are_the_same_each_way() {
    let Some(folder) = data_folder("codec") else { return };
    let entries = std::fs::read_dir(folder).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).take(50) {
        let expected = std::fs::read(&path).unwrap();
        for storage in storages() {
            assert!(storage.read_file(&path, 1 << 30).unwrap() == expected, "{} {}", path.display(), storage.name());
        }
    }
}

#[test]
fn a_mapped_file_that_was_cut_short_is_an_error() {
    let expected = pattern(1 << 20);
    let (_folder, path) = temporary_file(&expected);
    let storage = LocalStorage::mapped();
    let file = storage.open(&path).unwrap();
    let kept = file.read(1000, 5000).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(500_000).unwrap();
    assert!(kept == expected[1000..6000] && file.read(0, 500_000).unwrap() == expected[..500_000]);
    for (offset, length) in [(0, 1 << 20), (499_999, 2), (600_000, 1)] {
        let error = file.read(offset, length).unwrap_err();
        assert_eq!((error.kind(), error.context().offset), (ErrorKind::Io, Some(offset)), "{error}");
        assert!(error.to_string().contains("file"), "{error}");
    }
    assert_eq!(storage.notice(), None);
}

#[test]
fn what_is_mapped_can_be_dropped_from_the_page_cache() {
    let expected = pattern(1 << 20);
    let (_folder, path) = temporary_file(&expected);
    let storage = LocalStorage::mapped();
    let file = storage.open(&path).unwrap();
    let kept = file.read(0, 1 << 20).unwrap();
    assert!(kept == expected);
    storage.drop_cache(&[&path]).unwrap();
    let left = forebay_storage::resident_fraction(&path).unwrap();
    // Where files lie in memory anyway there is nothing to drop, mapped or not.
    let (_other_folder, other) = temporary_file(&expected);
    let buffered = LocalStorage::buffered();
    buffered.read_file(&other, 1 << 30).unwrap();
    buffered.drop_cache(&[&other]).unwrap();
    if forebay_storage::resident_fraction(&other).unwrap() > 0.5 {
        eprintln!("skipped: the page cache of {} cannot be dropped", other.display());
    } else {
        assert!(left < 0.5, "{left} of what was mapped stays");
    }
    assert!(kept == expected && file.read(77, 100_000).unwrap() == expected[77..100_077]);
}

/// How many files this process has open at the moment.
fn open_now() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn more_files_than_a_process_may_open_are_read() {
    let expected = pattern(10_000);
    let (_folder, path) = temporary_file(&expected);
    for storage in storages() {
        // The limit of the process is not touched, so this takes more than are kept open under any.
        let files: Vec<_> = (0..5000).map(|_| storage.open(&path).unwrap()).collect();
        assert!(open_now() < 4800, "{} are open by {}", open_now(), storage.name());
        for (number, file) in files.iter().enumerate().chain(files.iter().enumerate().rev()) {
            assert!(file.read(number as u64, 1000).unwrap() == expected[number..number + 1000], "{}", storage.name());
        }
        assert!(open_now() < 4800, "{} are open by {}", open_now(), storage.name());
        // Those that are open still read what they opened; others have nothing to read that is the same, and say so.
        let other = path.with_file_name("other");
        std::fs::write(&other, pattern(10_001)).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let read: Vec<_> = files.iter().map(|file| file.read(0, 1000)).collect();
        assert!(read.iter().flatten().all(|bytes| *bytes == expected[..1000]), "{}", storage.name());
        let refused: Vec<_> = read.iter().filter_map(|read| read.as_ref().err()).collect();
        assert!(refused.len() >= 200, "{} of 5000 were closed by {}", refused.len(), storage.name());
        assert!(refused.iter().all(|error| error.to_string().ends_with("it was changed after it was opened")));
        std::fs::write(&path, &expected).unwrap();
    }
}
