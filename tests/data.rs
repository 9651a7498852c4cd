//! Where the real files are that tests look for. The tests of each crate include this file, but those of `jpeg`, `l3` and `png`, which are published and
//! run without the rest of the repository.

use std::path::PathBuf;

/// What is called `name` in the shared test data, or `None` with a printed reason.
pub(crate) fn data_folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FOREBAY_TEST_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let folder = root.join(name);
    if folder.exists() {
        return Some(folder);
    }
    eprintln!("skipped: `{}` is absent; set FOREBAY_TEST_DATA to the folder of the test data", folder.display());
    None
}
