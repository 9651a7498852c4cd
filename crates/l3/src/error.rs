//! The one error type of the crate.

/// Whose fault an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The bytes are not a whole, undamaged L3 file.
    Format,
    /// The bytes are an L3 file that this version does not read, or this machine lacks the instruction set asked for.
    Unsupported,
    /// The image is larger than a limit of the format or of the caller, or than memory.
    Limit,
    /// The caller's arguments contradict each other.
    Usage,
}

/// Everything that can go wrong between pixels and L3 bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field or a stream of the file contradicts the format.
    #[error("damaged L3 file: {what} at byte {offset}: expected `{expected}`, found `{found}`")]
    Format {
        /// What was being read.
        what: &'static str,
        /// Where it lies in the file.
        offset: u64,
        /// The value that the format asks for.
        expected: u64,
        /// The value in the file.
        found: u64,
    },
    /// The file ends before it is whole.
    #[error("damaged L3 file: {what} needs `{needed}` bytes, the file has `{found}`")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// How long the file would have to be.
        needed: u64,
        /// How long it is.
        found: u64,
    },
    /// A checksum does not match the bytes that it covers.
    #[error("damaged L3 file: checksum of {what} at byte {offset} is `{expected:08x}`, its bytes give `{found:08x}`")]
    Checksum {
        /// "header" or "strip".
        what: &'static str,
        /// The strip, when it is a strip's.
        strip: Option<u32>,
        /// Where the covered bytes begin.
        offset: u64,
        /// The checksum in the file.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The file is of a kind that this version does not read, or an instruction set is missing on this machine.
    #[error("unsupported {what}: `{found}`; hint: {hint}")]
    Unsupported {
        /// Which field or feature.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What would help.
        hint: &'static str,
    },
    /// The image is larger than a limit.
    #[error("{what} is `{found}`, the limit is `{limit}`; hint: {hint}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The largest value allowed.
        limit: u64,
        /// The value found.
        found: u64,
        /// What would help.
        hint: &'static str,
    },
    /// The system refused memory to work in.
    #[error("out of memory: `{bytes}` bytes to work in; hint: give the process more memory")]
    Memory {
        /// How much was asked for.
        bytes: u64,
    },
    /// The caller's arguments contradict each other.
    #[error("{what}: expected `{expected}`, found `{found}`")]
    Usage {
        /// Which argument.
        what: &'static str,
        /// What would have been right (for sizes: at least this).
        expected: u64,
        /// What was given.
        found: u64,
    },
}

impl Error {
    /// Whose fault this is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Format { .. } | Self::Truncated { .. } | Self::Checksum { .. } => ErrorClass::Format,
            Self::Unsupported { .. } => ErrorClass::Unsupported,
            Self::Limit { .. } | Self::Memory { .. } => ErrorClass::Limit,
            Self::Usage { .. } => ErrorClass::Usage,
        }
    }
}

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Makes a buffer so long, unless the system refuses: its size is the image's.
pub(crate) fn resize<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) -> Result<()> {
    reserve(buffer, length.saturating_sub(buffer.len()))?;
    buffer.resize(length, T::default());
    Ok(())
}

/// Makes space for `more` behind what a buffer holds, unless the system refuses.
pub(crate) fn reserve<T>(buffer: &mut Vec<T>, more: usize) -> Result<()> {
    buffer.try_reserve(more).map_err(|_| Error::Memory { bytes: (more as u64).saturating_mul(size_of::<T>() as u64) })
}
