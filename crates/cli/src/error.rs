//! The one error type of the program, and what exit code each error means.

use std::io;
use std::path::{Path, PathBuf};

use forebay_engine::Error as EngineError;
use forebay_error::ErrorKind;
use forebay_pipeline::Error as PipelineError;
use forebay_storage::Error as StorageError;
use forebay_storage::{is_url, one_line};

use crate::interrupt;

/// The work failed: a file, the disk or a sample is at fault.
const EXIT_FAILED: u8 = 1;
/// The request makes no sense; the same code that a wrong option gives.
const EXIT_USAGE: u8 = 2;

/// What can go wrong in the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The operating system refused.
    #[error("cannot {doing} `{}`: {source}", one_line(path))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// A file is not what it should be.
    #[error("`{}` {problem}", one_line(path))]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The request makes no sense.
    #[error("{problem}\nhint: {remedy}")]
    Usage {
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// An image, or another file of samples, could not be read or made.
    #[error("`{}`: {source}", one_line(path))]
    Codec {
        /// The file.
        path: PathBuf,
        /// What the codec said.
        source: forebay_codec::Error,
    },
    /// The user wanted no more.
    #[error("interrupted{0}")]
    Interrupted(&'static str),
    /// Running something failed.
    #[error(transparent)]
    Engine(EngineError),
    /// Planning failed.
    #[error("{about}{source}")]
    Plan {
        /// Which file it was about, as the start of the message; may be empty.
        about: String,
        /// What the planner said.
        source: forebay_plan::Error,
    },
    /// A pipeline is wrong.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A shard is damaged.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
}

/// A result of the program.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps what the system said with what was being done to which path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Wraps what the planner said about the file `path`.
    pub(crate) fn plan(path: &Path) -> impl FnOnce(forebay_plan::Error) -> Self + use<> {
        let about = format!("`{}`: ", one_line(path));
        move |source| Self::Plan { about, source }
    }

    /// The same, but an end that the user wanted says what is left of the work, and how to go on.
    pub(crate) fn leaving(self, left: &'static str) -> Self {
        if matches!(self, Self::Interrupted(_)) { Self::Interrupted(left) } else { self }
    }

    pub(crate) fn usage(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Usage { problem: problem.into(), remedy: remedy.into() }
    }

    /// Whether the reader of standard output went away.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether a disk that was written to is full, or the user's share of it.
    pub(crate) fn is_disk_full(&self) -> bool {
        let number = match self {
            Self::Io { source, .. } => source.raw_os_error(),
            Self::Engine(error) => error.context().errno,
            Self::Record(error) => error.context().errno,
            _ => None,
        };
        let kind = number.map(|number| io::Error::from_raw_os_error(number).kind());
        matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }

    /// Whose fault it is.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } | Self::Output(source) => source.into(),
            Self::Format { .. } => ErrorKind::Data,
            Self::Usage { .. } => ErrorKind::Usage,
            Self::Codec { source, .. } => source.kind(),
            Self::Interrupted(_) => ErrorKind::Cancelled,
            Self::Engine(error) => error.kind(),
            Self::Plan { source, .. } => source.kind(),
            Self::Pipeline(error) => error.kind(),
            Self::Record(error) => error.kind(),
        }
    }

    /// The exit code that this error means.
    pub(crate) fn exit_code(&self) -> u8 {
        exit_code(self.kind())
    }

    /// Whether one sample is at fault, so that leaving it out would help.
    pub(crate) fn is_about_one_sample(&self) -> bool {
        let Self::Engine(error) = self else { return false };
        if error.ends() {
            return false;
        }
        match error {
            EngineError::Sample { .. } | EngineError::Pipeline(PipelineError::Step { .. }) => true,
            // A partially damaged shard.
            EngineError::Record(error) => error.kind() == ErrorKind::Data,
            // Reading a source file, a record or a table next to a shard.
            EngineError::Storage(error) => match error {
                // A store that refuses everything, or that cannot be reached, is not skipped by leaving samples out.
                StorageError::Open { path, source } => !is_url(path) || source.kind() == io::ErrorKind::NotFound,
                StorageError::Read { .. } | StorageError::ShortRead { .. } => true,
                _ => false,
            },
            _ => false,
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            // Nobody else cancels anything here.
            EngineError::Cancelled => Self::Interrupted(""),
            other => Self::Engine(other),
        }
    }
}

/// The exit code that errors of this kind mean. What must be asked for in another way gives the one of a wrong option.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Usage | ErrorKind::Pipeline => EXIT_USAGE,
        ErrorKind::Cancelled => interrupt::exit_code(),
        _ => EXIT_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that is new has no line here, and fails.
    #[test]
    fn every_kind_has_its_exit_code() {
        let codes = [
            (ErrorKind::NotFound, 1),
            (ErrorKind::PermissionDenied, 1),
            (ErrorKind::Io, 1),
            (ErrorKind::Data, 1),
            (ErrorKind::Unsupported, 1),
            (ErrorKind::Limit, 1),
            (ErrorKind::Usage, 2),
            (ErrorKind::Pipeline, 2),
            (ErrorKind::Cancelled, 130),
            (ErrorKind::Internal, 1),
        ];
        let found: Vec<_> = ErrorKind::ALL.iter().map(|&kind| (kind, exit_code(kind))).collect();
        assert_eq!(found, codes);
    }
}
