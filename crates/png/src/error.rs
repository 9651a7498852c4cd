//! What can go wrong, classed by whose fault it is.

/// Every fallible function of this crate returns this.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why bytes did not become pixels.
///
/// A refusal is not a judgment: [`Error::Format`] and [`Error::Unsupported`] say only that this decoder cannot promise the
/// pixels of the `png` crate. The caller asks that crate next, and believes what it says of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are damaged, or unusual in a way that other decoders may handle differently.
    #[error("damaged PNG: {problem} at byte `{offset}`\nhint: ask the `png` crate, which decodes what can be saved")]
    Format {
        /// What is wrong.
        problem: &'static str,
        /// Where: the byte of the file, or of the compressed data where it was found there.
        offset: usize,
    },
    /// The bytes may be right, but use something that this crate does not decode.
    #[error("PNG: {feature} is not supported: `{found}`\nhint: ask the `png` crate, which decodes every kind of PNG")]
    Unsupported {
        /// What is not supported.
        feature: &'static str,
        /// The value of it in the file.
        found: u64,
    },
    /// The image is larger than the caller allows.
    #[error("{what} is `{found}`, over the limit of `{limit}`\nhint: raise the limit if the file is trusted")]
    Limit {
        /// What was counted.
        what: &'static str,
        /// How much the file asks for.
        found: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// The system refused memory to work in.
    #[error("out of memory: `{bytes}` bytes to decode in\nhint: give the process more memory")]
    Memory {
        /// How much was asked for.
        bytes: usize,
    },
    /// The caller asked for something impossible.
    #[error("{problem}: expected `{expected}`, found `{found}`")]
    Usage {
        /// What is wrong.
        problem: &'static str,
        /// What would have been right.
        expected: u64,
        /// What was given.
        found: u64,
    },
}

impl Error {
    /// Whether another decoder may succeed: the file is at fault, too unusual or too large, not the caller.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Format { .. } | Self::Unsupported { .. } | Self::Memory { .. })
    }

    pub(crate) fn format(problem: &'static str, offset: usize) -> Self {
        Self::Format { problem, offset }
    }

    pub(crate) fn unsupported(feature: &'static str, found: impl Into<u64>) -> Self {
        Self::Unsupported { feature, found: found.into() }
    }
}

/// Makes a buffer at least so long, unless the system refuses: its size may be the image's.
pub(crate) fn grow(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    if let Some(more) = bytes.checked_sub(buffer.len()) {
        buffer.try_reserve(more).map_err(|_| Error::Memory { bytes })?;
        buffer.resize(bytes, 0);
    }
    Ok(())
}
