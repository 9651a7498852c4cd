//! Dropping the real page cache of single files.

use std::path::Path;

use forebay_storage::{DroppedCache, LocalStorage, Storage, resident_fraction};

#[test]
fn dropped_files_leave_the_page_cache() {
    // Not in the usual temporary folder, which may be in memory, where nothing can be dropped.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    std::fs::write(&first, vec![1; 3_000_000]).unwrap();
    std::fs::write(&second, vec![2; 1_000_001]).unwrap();
    let fraction = |path: &Path| resident_fraction(path).unwrap();
    assert!(fraction(&first) > 0.9, "what was just written is cached");

    let storage = LocalStorage::buffered();
    let paths = [&*first, &*second];
    assert_eq!(storage.drop_cache(&paths).unwrap(), DroppedCache { files: 2, bytes: 4_000_001 });
    let after = fraction(&first);
    if after > 0.5 {
        eprintln!("skipped: this file system keeps its pages ({after} cached after dropping)");
        return;
    }
    assert!(after < 0.1, "{after}");

    storage.read_file(&first, u64::MAX).unwrap();
    assert!(fraction(&first) > 0.9, "a buffered read fills the cache");

    let direct = LocalStorage::direct();
    direct.read_file(&second, u64::MAX).unwrap();
    if direct.notice().is_none() {
        assert!(fraction(&second) < 0.1, "a direct read does not");
    }
}

#[test]
fn an_empty_file_has_nothing_to_drop() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let dropped = LocalStorage::buffered().drop_cache(&[file.path()]).unwrap();
    assert_eq!(dropped, DroppedCache { files: 1, bytes: 0 });
    assert!((resident_fraction(file.path()).unwrap() - 1.0).abs() < f64::EPSILON);
}
