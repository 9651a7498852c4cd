//! The kinds of error that every room has, and what is known of the location of one.
//!
//! Each room has an error type of its own, whose messages say what, where and what to do. What a front needs besides to
//! tell errors apart is the same everywhere: [`ErrorKind`], which the program maps to exit codes and the Python package to
//! exceptions, once each; and [`ErrorContext`], the location in fields.
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

/// The enum, and the list of its kinds, which so has all of them.
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
    /// Something is larger than was allowed, takes more than there is, or leaves no choice.
    Limit,
    /// What was asked for makes no sense.
    Usage,
    /// A pipeline cannot work.
    Pipeline,
    /// Whoever asked for the work wants no more of it.
    Cancelled,
    /// A bug of Forebay's.
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

/// What is known of the location of an error, beside its message.
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
