//! Whether the files that a source wants beside its samples are there at all.

use forebay_pipeline::Format;

use super::listing::Listing;
use crate::error::{Error, Result};

/// Refuses a field whose file is beside no sample: its pattern is wrong, and every sample would be damaged. Where the first sample
/// has it, as nearly always, nothing more is looked at.
pub(super) fn check_beside(listing: &Listing) -> Result<()> {
    let source = listing.source();
    if source.format != Format::Files {
        return Ok(());
    }
    for (place, field) in source.fields.iter().enumerate() {
        let mut paths = listing.entries().iter().filter_map(|entry| listing.files_of(entry).into_iter().nth(place + 1));
        // What cannot be looked at is there, and reading it says why.
        if paths.any(|path| !matches!(listing.root().storage().status(&path), Ok(None))) {
            continue;
        }
        let Some(entry) = listing.entries().first() else { continue };
        let wanted = listing.files_of(entry).into_iter().nth(place + 1).unwrap_or_default();
        let wanted = wanted.strip_prefix(listing.root().path()).unwrap_or(&wanted);
        return Err(Error::Usage {
            problem: format!(
                "no sample has a file for field `{}` beside it: `{}` matches nothing below `{}`; for `{}` it means `{}`",
                field.field,
                field.from,
                listing.root().path().display(),
                entry.key,
                wanted.display()
            ),
            remedy: "write where the files are, from the data folder on, as in `masks/{stem}.png`".to_owned(),
        });
    }
    Ok(())
}
