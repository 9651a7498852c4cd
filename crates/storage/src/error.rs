//! The crate's one error type.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use forebay_error::{ErrorContext, ErrorKind};
use rustix::io::Errno;

use crate::url::without_secrets;

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in this crate.
///
/// Reading errors always name the file and the offset; see [`Error::context`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened: it does not exist, or permission is denied, or the system failed.
    #[error("cannot open `{}`: {source}{}", one_line(path), open_hint(source))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path leads to a folder, a pipe, a socket or a device.
    #[error("cannot read `{}`: it is {found}, not a regular file", one_line(path))]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is instead, with its article: `a folder`.
        found: &'static str,
    },
    /// The system failed while a file was read.
    #[error("cannot read `{}` at offset `{offset}`: {source}", one_line(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Where the read started.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A file ended before the bytes that it had when it was opened.
    #[error(
        "cannot read `{}` at offset `{offset}`: expected `{expected}` bytes, found `{found}`\nhint: the file shrank after \
         it was opened; read it again once nothing writes to it",
        one_line(path)
    )]
    ShortRead {
        /// The file.
        path: PathBuf,
        /// Where the read started.
        offset: u64,
        /// How many bytes were asked for.
        expected: u64,
        /// How many there were.
        found: u64,
    },
    /// A range was asked for that reaches beyond the end of the file.
    #[error(
        "cannot read `{length}` bytes of `{}` at offset `{offset}`: the file had `{size}` bytes when it was opened",
        one_line(path)
    )]
    BeyondEnd {
        /// The file.
        path: PathBuf,
        /// Where the read would have started.
        offset: u64,
        /// How many bytes were asked for.
        length: u64,
        /// The size of the file when it was opened.
        size: u64,
    },
    /// A file is larger than the caller allowed.
    #[error("`{}` has `{found}` bytes, more than the limit of `{limit_bytes}`", one_line(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The caller's limit.
        limit_bytes: u64,
        /// The size of the file.
        found: u64,
    },
    /// A folder could not be listed, or a file in it not be looked at.
    #[error("cannot list `{}`: {source}{}", one_line(path), hint_for(source))]
    List {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or folder could not be written, locked or removed.
    #[error("cannot write `{}`: {source}{}", one_line(path), hint_for(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A URL that does not name an object, or that has in it what does not belong there.
    #[error("cannot use `{}`: {problem}\nhint: {hint}", one_line(url))]
    Url {
        /// The URL.
        url: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What may be written instead.
        hint: &'static str,
    },
    /// A file that should be text is not.
    #[error("`{}` is not UTF-8 text", one_line(path))]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The cached pages of a file could not be dropped.
    #[error("cannot drop the cached pages of `{}`: {source}", one_line(path))]
    DropCache {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system's page cache could not be dropped, which only root may do.
    #[error(
        "cannot drop all caches through `{}`: {source}\nhint: run as root, or drop the cached pages of single files, \
         which needs no rights",
        one_line(path)
    )]
    DropAllCaches {
        /// The control file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A storage was described in a way that cannot be understood.
    #[error("cannot understand storage `{text}`: {reason}\nhint: {hint}")]
    Throttle {
        /// The description as given.
        text: String,
        /// What is wrong with it.
        reason: String,
        /// What may be written instead.
        hint: String,
    },
    /// An argument is out of its range.
    #[error("`{name}` is `{found}`, but must be {expected}")]
    Argument {
        /// The argument.
        name: &'static str,
        /// Its value.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// A buffer for a measurement does not fit in memory.
    #[error("cannot allocate `{bytes}` bytes of memory to measure with\nhint: measure with a smaller buffer")]
    Memory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

impl Error {
    /// Whose fault this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open { source, .. }
            | Self::Read { source, .. }
            | Self::List { source, .. }
            | Self::Write { source, .. }
            | Self::DropCache { source, .. } => source.into(),
            Self::ShortRead { .. } => ErrorKind::Io,
            Self::DropAllCaches { .. } => ErrorKind::Unsupported,
            Self::TooLarge { .. } | Self::Memory { .. } => ErrorKind::Limit,
            Self::NotText { .. }
            | Self::NotAFile { .. }
            | Self::BeyondEnd { .. }
            | Self::Url { .. }
            | Self::Throttle { .. }
            | Self::Argument { .. } => ErrorKind::Usage,
        }
    }

    /// The file that this is about, and the offset at which reading failed.
    pub fn context(&self) -> ErrorContext<'_> {
        match self {
            Self::Read { path, offset, source } => {
                ErrorContext { offset: Some(*offset), ..ErrorContext::of_file(path, source) }
            }
            Self::Open { path, source }
            | Self::List { path, source }
            | Self::Write { path, source }
            | Self::DropCache { path, source }
            | Self::DropAllCaches { path, source } => ErrorContext::of_file(path, source),
            Self::ShortRead { path, offset, .. } | Self::BeyondEnd { path, offset, .. } => {
                ErrorContext { path: Some(path), offset: Some(*offset), ..ErrorContext::default() }
            }
            Self::NotAFile { path, .. } | Self::TooLarge { path, .. } | Self::NotText { path } => {
                ErrorContext { path: Some(path), ..ErrorContext::default() }
            }
            // What may be a secret is not handed on.
            Self::Url { .. } | Self::Throttle { .. } | Self::Argument { .. } | Self::Memory { .. } => {
                ErrorContext::default()
            }
        }
    }
}

/// A path for a message: always on one line, so that a file name cannot add lines to the message. A URL
/// is shown without what may be a secret in it.
pub fn one_line(path: &Path) -> String {
    without_secrets(&path.display().to_string()).replace('\n', r"\n").replace('\r', r"\r")
}

/// What to do about what the system said of a file or folder that is listed or written.
pub fn hint_for(source: &io::Error) -> &'static str {
    if has_hint(source) {
        return "";
    }
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhint: free some space there, or choose a folder on another disk"
        }
        io::ErrorKind::PermissionDenied => "\nhint: check the permissions of the folder",
        io::ErrorKind::NotFound => "\nhint: check the path",
        io::ErrorKind::ReadOnlyFilesystem => "\nhint: name a folder or a bucket that can be written to",
        _ => "",
    }
}

/// What a system said that is not this machine's, with a remedy that only it knows.
#[derive(Debug, Clone)]
pub(crate) struct WithHint {
    pub(crate) said: String,
    pub(crate) hint: Cow<'static, str>,
}

impl fmt::Display for WithHint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\nhint: {}", self.said, self.hint)
    }
}

impl StdError for WithHint {}

/// Whether an error has a hint of its own.
pub(crate) fn has_hint(source: &io::Error) -> bool {
    source.get_ref().is_some_and(<dyn StdError + Send + Sync>::is::<WithHint>)
}

fn open_hint(source: &io::Error) -> &'static str {
    if has_hint(source) {
        return "";
    }
    match source.kind() {
        io::ErrorKind::NotFound => {
            "\nhint: check the path; the file may have been moved or deleted since it was listed"
        }
        io::ErrorKind::PermissionDenied => "\nhint: give this user the right to read the file and to enter its folder",
        _ if Errno::from_io_error(source) == Some(Errno::MFILE) => {
            "\nhint: raise the limit of open files (`ulimit -n`), or use fewer threads"
        }
        _ => "",
    }
}
