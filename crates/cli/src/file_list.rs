//! Files that are given as a list, for a pipeline to run on.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_engine::data::{FileList, Listing, ListingOptions, one_class};
use forebay_pipeline::{Label, Pipeline, Setting, Source};

use crate::arguments::{ErrorArguments, INPUT, Settings};
use crate::error::{Error, Result};
use crate::output::Output;

/// Which files, where they are given.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ListArguments {
    /// Read the paths of the source files from FILE instead of searching the data folder: one per line, absolute or relative
    /// to that folder, in this order; `-` reads standard input
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    files_from: Option<PathBuf>,
}

/// The maximum size of a list in bytes: tens of millions of paths.
const LIST_BYTES_MAX: u64 = 4 << 30;

impl ListArguments {
    /// What makes a pipeline take the files of the list; nothing where there is none.
    pub(crate) fn setting(&self) -> Option<Setting> {
        self.files_from.as_ref().map(|_| Setting::given_files())
    }

    /// The pipeline of a plan, which takes the files of the list if there is one.
    pub(crate) fn applied(&self, pipeline: Pipeline) -> Result<Pipeline> {
        Ok(pipeline.with_settings(self.setting().as_slice())?)
    }

    /// An error if there is one: what is loaded is settled already.
    pub(crate) fn none_with(&self, what: &str) -> Result<()> {
        if self.files_from.is_none() {
            return Ok(());
        }
        Err(Error::usage(format!("`--files-from` cannot be used with {what}"), "omit it"))
    }

    /// The file of the list, where it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.files_from.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// The list that `pipeline` takes its files from.
    pub(crate) fn read(&self, pipeline: &Pipeline) -> Result<Option<FileList>> {
        let Some(path) = &self.files_from else { return Ok(None) };
        let text = if path == Path::new("-") {
            let mut text = Vec::new();
            let read = std::io::stdin().lock().take(LIST_BYTES_MAX).read_to_end(&mut text);
            read.map_err(Error::io("read the list of files from", Path::new("standard input")))?;
            text
        } else {
            forebay_storage::read_file(path, LIST_BYTES_MAX).map_err(forebay_engine::Error::from)?
        };
        Ok(Some(FileList::parse(&text, pipeline.source().label == Label::List)?))
    }
}

/// Warns of files that are not what one may think, and of labels that say nothing; what it said, for JSON.
pub(crate) fn warnings(listing: &Listing, output: &Output) -> Vec<String> {
    for text in listing.notices() {
        output.warn(text);
    }
    let labels = warn_of_one_class(listing.source(), listing.classes(), listing.len() as u64, output);
    listing.notices().iter().cloned().chain(labels).collect()
}

/// The same of a source that is loaded.
pub(crate) fn warn_of_one_class(source: &Source, classes: &[String], samples: u64, output: &Output) -> Vec<String> {
    let found = one_class(source, classes, samples);
    if let Some(text) = &found {
        output.warn(text);
    }
    found.into_iter().collect()
}

/// How the data of a pipeline is listed.
pub(crate) fn listing_options<'a>(
    settings: &Settings,
    on_error: &ErrorArguments,
    files: Option<&'a FileList>,
) -> ListingOptions<'a> {
    ListingOptions { on_error: on_error.choice(), reach: settings.reach(), files, label_function: None }
}
