//! Paths in JSON, which is text: invalid bytes in a name are escaped, so that it does not cause a failure after the work is done.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_record::name_text;
use serde::Serializer;

fn text(path: &Path) -> String {
    name_text(path.as_os_str().as_bytes()).into_owned()
}

/// One.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(path))
}

/// Several.
pub(crate) fn paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| text(path)))
}

/// One or none.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
pub(crate) fn optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&text(path)),
        None => serializer.serialize_none(),
    }
}
