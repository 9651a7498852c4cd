//! Where the real files are.

use std::path::{Path, PathBuf};

/// A folder of the shared test data, or `None` with a printed reason.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FOREBAY_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: `{}` is absent; set FOREBAY_TEST_DATA to the folder of the test data", folder.display());
    None
}

/// All files below a folder, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
