//! The kinds of error that every crate has, and the location of an error.
//!
//! Each crate has an error type of its own, whose messages say what happened, where, and what to do. To distinguish errors, a front
//! also needs two things that are the same everywhere: [`ErrorKind`], which the program maps to exit codes and the Python package to
//! exceptions, and [`ErrorContext`], the location as fields.
//!
//! ```
//! use forebay_error::ErrorKind;
//!
//! let missing = std::fs::read("no/such/file").unwrap_err();
//! assert_eq!(ErrorKind::from(&missing), ErrorKind::NotFound);
//! ```

#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

/// The enum and the list of its kinds, from one place so that the list is complete.
macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident,)*) => {
        /// Whose fault an error is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$meta])* $kind,)*
        }

        impl ErrorKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];
        }
    };
}

kinds! {
    /// A file or folder does not exist.
    NotFound,
    /// A file or folder must not be read or written.
    PermissionDenied,
    /// The operating system or the device failed in another way.
    Io,
    /// A file or a record is damaged, or not what it should be.
    Data,
    /// Data that may be right, or something of the system, that is not handled here.
    Unsupported,
    /// Something exceeds a limit, needs more than is available, or leaves no choice.
    Limit,
    /// The request makes no sense.
    Usage,
    /// A pipeline cannot work.
    Pipeline,
    /// The caller cancelled the work.
    Cancelled,
    /// A bug in Forebay.
    Internal,
}

impl From<&io::Error> for ErrorKind {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            _ => Self::Io,
        }
    }
}

/// The location of an error, as far as it is known, in addition to its message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorContext<'a> {
    /// The file that is at fault.
    pub path: Option<&'a Path>,
    /// The shard, as messages name it.
    pub shard: Option<&'a str>,
    /// The number of the record in the shard, from 0.
    pub record: Option<u64>,
    /// The byte at which the record begins, or at which reading failed.
    pub offset: Option<u64>,
    /// The sample's key.
    pub key: Option<&'a str>,
    /// The step that failed on it.
    pub step: Option<&'a str>,
    /// The system's number of the error.
    pub errno: Option<i32>,
}

impl<'a> ErrorContext<'a> {
    /// What the system said of a file.
    pub fn of_file(path: &'a Path, source: &io::Error) -> Self {
        Self { path: Some(path), errno: source.raw_os_error(), ..Self::default() }
    }
}
