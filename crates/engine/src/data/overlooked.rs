//! What whoever made a folder of images may not expect of it: images that the pattern of the source does not match, and hidden files that it does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use forebay_record::name_text;

use super::listing::Entry;

/// What images are called, those that no decoder reads included.
const IMAGES: [&str; 19] = [
    "jpg", "jpeg", "jfif", "png", "webp", "bmp", "ppm", "pgm", "pnm", "qoi", "l3", "gif", "tif", "tiff", "heic",
    "heif", "avif", "jxl", "jp2",
];

/// Files that look like images and are not listed, by what their names end with.
#[derive(Debug, Default)]
pub(super) struct Overlooked {
    counts: RefCell<BTreeMap<&'static str, u64>>,
}

impl Overlooked {
    /// Notes a file that is not listed.
    pub(super) fn note(&self, below: &Path) {
        let extension = below.extension().and_then(OsStr::to_str);
        let known =
            extension.and_then(|extension| IMAGES.into_iter().find(|known| known.eq_ignore_ascii_case(extension)));
        if let Some(known) = known {
            *self.counts.borrow_mut().entry(known).or_default() += 1;
        }
    }

    /// How many of each there are, in words; `None` where there are none.
    pub(super) fn found(&self) -> Option<String> {
        let counts = self.counts.borrow();
        let found: Vec<String> = counts.iter().map(|(extension, count)| format!("{count} `.{extension}`")).collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// What to say of them, where `pattern` is one that means images of any format: whoever names one format, or one of two kinds of files, leaves
    /// out the others on purpose.
    pub(super) fn notice(&self, pattern: &str) -> Option<String> {
        if !["**/*.{", "jpg", "png", "webp"].iter().all(|part| pattern.contains(part)) {
            return None;
        }
        let found = self.found()?;
        let all = self.counts.borrow().values().sum::<u64>();
        Some(format!(
            "{all} more {} left out: their names do not match `{pattern}` ({found}). Convert them, or set `files` in the \
             pipeline's [source]",
            if all == 1 { "image is" } else { "images are" }
        ))
    }
}

/// What to say of files that are listed and hidden, or lie in a hidden folder: a program has put them there, and not for training.
pub(super) fn hidden(entries: &[Entry]) -> Option<String> {
    let is_hidden = |entry: &&Entry| {
        entry
            .path()
            .components()
            .any(|part| matches!(part, Component::Normal(name) if name.as_bytes().starts_with(b".")))
    };
    let mut hidden = entries.iter().filter(is_hidden);
    let first = hidden.next()?;
    let (count, name) = (1 + hidden.count(), name_text(first.path().as_os_str().as_bytes()));
    Some(format!(
        "{count} of {} files {} hidden, such as `{name}`, and belong{} to the data all the same: remove what is no sample",
        entries.len(),
        if count == 1 { "is" } else { "are" },
        if count == 1 { "s" } else { "" },
    ))
}
