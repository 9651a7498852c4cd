//! Whatever there is to analyze, opened: nobody should need a pipeline to look at data.

use std::path::Path;
use std::sync::Arc;

use forebay_pipeline::{Format, Label, Order, Pipeline, Source as SourceSpec};
use forebay_storage::{Folder, Storage};

use crate::data::{Listing, ListingOptions, MANIFEST_FILE, MIX_FILE};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::source::{Files, Source, open_dataset};

/// The samples in the folder or file `data`: those of a data set that was built, images in folders by class, or those of tar or TFRecord shards
/// that call their fields as is usual.
pub fn open_data(data: &Path, storage: &Arc<dyn Storage>, on_error: OnError) -> Result<Arc<dyn Source>> {
    let is_file = data.is_file();
    for name in [MANIFEST_FILE, MIX_FILE] {
        if !is_file && storage.is_taken(&data.join(name))? {
            return open_dataset(data, Arc::clone(storage), on_error);
        }
    }
    let options = ListingOptions { on_error, ..ListingOptions::default() };
    let (root, name) = match (data.parent(), data.file_name()) {
        (Some(parent), Some(name)) if is_file => (parent, Some(name.to_string_lossy())),
        _ => (data, None),
    };
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let files = name.as_deref().map(globset::escape);
    for format in [Format::Files, Format::Tar, Format::Tfrecord] {
        let pattern = SourceSpec { format, ..SourceSpec::default() };
        let fits = |name: &str| {
            let glob =
                globset::GlobBuilder::new(pattern.pattern()).case_insensitive(true).empty_alternates(true).build();
            glob.is_ok_and(|glob| glob.compile_matcher().is_match(name))
        };
        if let Some(name) = &name {
            if fits(name) {
                return of_format(format, files.as_ref(), root, storage, &options);
            }
        } else if has_files(&pattern, root, storage)? {
            return of_format(format, None, root, storage, &options);
        }
    }
    Err(Error::Usage {
        problem: format!("`{}` holds no images, tar or TFRecord files, and is not a data set", data.display()),
        remedy: "check the path, or name a pipeline whose source reads the files".to_owned(),
    })
}

/// Whether there is a file that the pattern of `source` finds.
fn has_files(source: &SourceSpec, root: &Path, storage: &Arc<dyn Storage>) -> Result<bool> {
    let files = Some(source.pattern().to_owned());
    let named = SourceSpec { files, label: Label::None, order: Some(Order::Sorted), ..SourceSpec::default() };
    let options = ListingOptions { on_error: OnError::Skip, ..ListingOptions::default() };
    match Listing::scan_with(&named, Folder::new(Arc::clone(storage), root), &options) {
        Ok(_) => Ok(true),
        Err(Error::Usage { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// With labels if the samples have some.
fn of_format(
    format: Format,
    files: Option<&String>,
    root: &Path,
    storage: &Arc<dyn Storage>,
    options: &ListingOptions<'_>,
) -> Result<Arc<dyn Source>> {
    let open = |label: Label| -> Result<Files> {
        let source = SourceSpec { format, files: files.cloned(), label, ..SourceSpec::default() };
        Files::open(Pipeline::new("analyze", source, Vec::new())?, root, Arc::clone(storage), options)
    };
    let labeled = open(Label::Folder)?;
    if format == Format::Files || reads_first(&labeled)? {
        return Ok(Arc::new(labeled));
    }
    Ok(Arc::new(open(Label::None)?))
}

/// Whether the first sample has the fields that are looked for.
fn reads_first(source: &Files) -> Result<bool> {
    let Some(block) = source.blocks()?.into_iter().next() else { return Ok(true) };
    let first = block.samples.start;
    let content = source.read(first..first + 1).contents.pop();
    Ok(content.is_none_or(|content| content.and_then(|content| source.unpack(first, content)).is_ok()))
}
