//! The files that a pipeline runs on, and the function that labels them.

use std::path::{Path, PathBuf};

use forebay_engine::data::{FileList, GivenLabel, ListingOptions, Reach};
use forebay_pipeline::{Source, StepError};
use pyo3::prelude::*;

use crate::function::Functions;
use crate::turns::Work;
use crate::work::on_error;

/// Where samples are, and how to handle errors.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FilesRequest {
    pub(crate) folder: PathBuf,
    /// The files, where they are given: paths, and as many labels.
    files: Option<(Vec<PathBuf>, Option<Vec<Label>>)>,
    pub(crate) skip_errors: bool,
    /// Whether the pipeline may name files outside the folder.
    allow_outside: bool,
}

/// A label as Python has it.
#[derive(FromPyObject)]
pub(crate) enum Label {
    Text(String),
    Int(i64),
    Float(f64),
}

impl From<Label> for GivenLabel {
    fn from(label: Label) -> Self {
        match label {
            Label::Text(text) => Self::Name(text),
            Label::Int(number) => Self::Int(number),
            Label::Float(number) => Self::Float(number),
        }
    }
}

impl FilesRequest {
    /// Which files the pipeline may name.
    pub(crate) fn reach(&self) -> Reach {
        if self.allow_outside { Reach::Anywhere } else { Reach::Root }
    }

    /// What `list` makes of these files, whose labels come from one of `functions` where `source` says so. Python's lock must not be held.
    pub(crate) fn listed<T>(
        self,
        source: &Source,
        functions: &Functions,
        work: &Work,
        list: impl FnOnce(&Path, &ListingOptions<'_>) -> T,
    ) -> T {
        let reach = self.reach();
        let files = self.files.map(|(paths, labels)| FileList {
            paths,
            labels: labels.map(|labels| labels.into_iter().map(GivenLabel::from).collect()),
        });
        let function = source.function.as_deref().filter(|name| functions.has(name));
        let call = |path: &Path| -> Result<GivenLabel, StepError> {
            Ok(functions.label(function.unwrap_or_default(), path, work)?.into())
        };
        let options = ListingOptions {
            on_error: on_error(self.skip_errors),
            reach,
            files: files.as_ref(),
            label_function: if function.is_some() { Some(&call) } else { None },
        };
        list(&self.folder, &options)
    }
}
