//! The error type of this crate.

use std::io;
use std::path::{Path, PathBuf};

use forebay_error::{ErrorContext, ErrorKind};
use forebay_storage::{hint_for, one_line};
use rustix::io::Errno;

use crate::data::Skipped;

/// What can go wrong when something is run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused (its fault, or the disk's).
    #[error("cannot {doing} `{}`: {source}{}", one_line(path), hint_for(source))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be (fault of the file).
    #[error("`{}` {problem}", one_line(path))]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What was asked for makes no sense (fault of the caller).
    #[error("{problem}\nhint: {remedy}")]
    Usage {
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// It takes more memory than there is, or than the budget has for it.
    #[error("{problem}\nhint: {remedy}")]
    Limit {
        /// What takes how much.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// A record is damaged.
    #[error(transparent)]
    Record(Box<forebay_record::Error>),
    /// A pipeline is wrong, or a step failed on a sample.
    #[error(transparent)]
    Pipeline(#[from] forebay_pipeline::Error),
    /// A sample could not be read or parsed.
    #[error("record {record} of `{shard}` at byte {offset}: {source}")]
    Sample {
        /// The shard.
        shard: String,
        /// Its number in the shard.
        record: u64,
        /// Where it begins.
        offset: u64,
        /// Why.
        source: Box<Error>,
    },
    /// Damaged samples were to be skipped, and that was all of them.
    #[error("not one of {samples} samples could be read and processed; the first, `{}`: {}", first.key, first.reason)]
    AllSkipped {
        /// How many.
        samples: u64,
        /// The first that was skipped.
        first: Box<Skipped>,
    },
    /// Whoever watches the progress asked for an end.
    #[error("canceled")]
    Cancelled,
    /// An internal invariant was violated. This is a bug in Forebay.
    #[error("internal error: {problem}\nhint: this is a bug in Forebay; please report it with the message above")]
    Internal {
        /// What.
        problem: String,
    },
    /// A worker died. This is a bug of Forebay's.
    #[error("a worker panicked: {message}\nhint: this is a bug in Forebay; please report it with the message above")]
    Panicked {
        /// What it said.
        message: String,
    },
}

impl From<forebay_record::Error> for Error {
    fn from(error: forebay_record::Error) -> Self {
        Self::Record(Box::new(error))
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => source.into(),
            Self::Format { .. } | Self::AllSkipped { .. } => ErrorKind::Data,
            Self::Usage { .. } => ErrorKind::Usage,
            Self::Limit { .. } => ErrorKind::Limit,
            Self::Storage(error) => error.kind(),
            Self::Record(error) => error.kind(),
            Self::Pipeline(error) => error.kind(),
            Self::Sample { source, .. } => source.kind(),
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Internal { .. } | Self::Panicked { .. } => ErrorKind::Internal,
        }
    }

    /// Where it happened, as far as it is known.
    pub fn context(&self) -> ErrorContext<'_> {
        match self {
            Self::Io { path, source, .. } => ErrorContext::of_file(path, source),
            Self::Format { path, .. } => ErrorContext { path: Some(path), ..ErrorContext::default() },
            Self::Storage(error) => error.context(),
            Self::Record(error) => error.context(),
            Self::Pipeline(error) => error.context(),
            Self::Sample { shard, record, offset, source } => {
                ErrorContext { shard: Some(shard), record: Some(*record), offset: Some(*offset), ..source.context() }
            }
            Self::AllSkipped { first, .. } => ErrorContext { key: Some(&first.key), ..ErrorContext::default() },
            Self::Usage { .. }
            | Self::Limit { .. }
            | Self::Cancelled
            | Self::Internal { .. }
            | Self::Panicked { .. } => ErrorContext::default(),
        }
    }

    /// Whether this is no error of a sample, which could be skipped instead: everything is to end.
    pub fn ends(&self) -> bool {
        // The process, or the machine, has too many files open: the file that could not be, too, may be as good as any.
        let too_many = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        if self.context().errno.is_some_and(|errno| too_many.contains(&errno)) {
            return true;
        }
        match self {
            Self::Cancelled | Self::Internal { .. } | Self::Panicked { .. } => true,
            Self::Pipeline(error) => error.ends(),
            Self::Sample { source, .. } => source.ends(),
            _ => false,
        }
    }

    /// A bug that was noticed.
    pub(crate) fn internal(problem: &str) -> Self {
        Self::Internal { problem: problem.to_owned() }
    }

    /// What a worker said when it panicked.
    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Self::Panicked { message: message.to_owned() }
    }

    /// An error if the system refused memory since somebody last asked: to be asked between two samples.
    pub(crate) fn if_memory_was_refused() -> Result<()> {
        forebay_allocator::take_refused().map_or(Ok(()), |bytes| {
            Err(Self::Limit {
                problem: format!("out of memory: the system refused {bytes} bytes"),
                remedy: "give it more memory (`ulimit -v`), or use fewer threads or smaller batches".to_owned(),
            })
        })
    }

    /// Wraps what the system said with what was being done to which path.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
