//! The files beside those of samples: where they lie, and whether they are there at all.

use std::path::{Path, PathBuf};

use forebay_pipeline::{Format, SidecarPath, Source, SourceField};
use forebay_plan::Skipped;
use forebay_storage::Folder;

use super::labels::keep;
use super::listing::{Entry, Listing, Reach, outside};
use crate::error::{Error, Result};
use crate::load::OnError;

/// Where the files beside a sample's own lie, a path for each field of the source.
#[derive(Debug, Clone)]
pub(super) struct Sidecars {
    paths: Vec<(SourceField, SidecarPath)>,
    reach: Reach,
}

impl Sidecars {
    pub(super) fn new(source: &Source, reach: Reach) -> Result<Self> {
        let fields = source.fields.iter().filter(|_| source.format == Format::Files);
        let path = |field: &SourceField| {
            let path = SidecarPath::parse(&field.from).map_err(|problem| Error::Usage {
                problem: format!("the source's field `{}` is from `{}`, which has {problem}", field.field, field.from),
                remedy: "write it as in `masks/{stem}.png`".to_owned(),
            })?;
            Ok((field.clone(), path))
        };
        Ok(Self { paths: fields.map(path).collect::<Result<_>>()?, reach })
    }

    /// The paths below `root` for the sample at `path`. Those that there are not were refused by [`Self::check`].
    pub(super) fn below(&self, path: &Path, root: &Path) -> impl Iterator<Item = PathBuf> {
        let paths = self.paths.iter().filter_map(move |(_, sidecar)| sidecar.of(path).ok());
        paths.filter_map(move |named| self.reach.below(root, &named))
    }

    /// That every sample has such paths, and that none of them leads out of the root, unless that is allowed. A sample whose path has nothing
    /// to replace is an error, or lost.
    pub(super) fn check(
        &self,
        entries: &mut Vec<Entry>,
        root: &Folder,
        on_error: OnError,
        lost: &mut Vec<Skipped>,
    ) -> Result<()> {
        let mut leads_out = Ok(());
        for (field, sidecar) in &self.paths {
            keep(entries, on_error, lost, |entry| {
                let named = sidecar.of(entry.path()).map_err(|problem| Error::Usage {
                    problem: format!(
                        "sample `{}` has no path for field `{}`, which is from `{}`: {problem}",
                        entry.key, field.field, field.from
                    ),
                    remedy: "correct it, or narrow the source's `files`".to_owned(),
                })?;
                if leads_out.is_ok() && self.reach.below(root.path(), &named).is_none() {
                    leads_out = Err(outside(format!(
                        "field `{}` of sample `{}` would be read from outside the data folder: `from` is `{}`",
                        field.field, entry.key, field.from
                    )));
                }
                Ok(())
            })?;
        }
        leads_out
    }
}

/// Refuses a field whose file is beside no sample: its pattern is wrong, and every sample would be damaged. Where the first sample
/// has it, as nearly always, nothing more is looked at.
pub(super) fn check_there(listing: &Listing) -> Result<()> {
    let source = listing.source();
    if source.format != Format::Files {
        return Ok(());
    }
    for (index, field) in source.fields.iter().enumerate() {
        let mut paths = listing.entries().iter().filter_map(|entry| listing.files_of(entry).into_iter().nth(index + 1));
        // What cannot be looked at is there, and reading it says why.
        if paths.any(|path| !matches!(listing.root().storage().status(&path), Ok(None))) {
            continue;
        }
        let Some(entry) = listing.entries().first() else { continue };
        let wanted = listing.files_of(entry).into_iter().nth(index + 1).unwrap_or_default();
        let wanted = wanted.strip_prefix(listing.root().path()).unwrap_or(&wanted);
        return Err(Error::Usage {
            problem: format!(
                "no sample has a file for field `{}`: `{}` matches nothing below `{}`; for `{}` it means `{}`",
                field.field,
                field.from,
                listing.root().path().display(),
                entry.key,
                wanted.display()
            ),
            remedy:
                "write the path relative to the data folder, as in `masks/{stem}.png` or `{folder:images=masks}/{name}`"
                    .to_owned(),
        });
    }
    Ok(())
}
