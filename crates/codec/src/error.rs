//! What can go wrong, classed by whose fault it is.

use std::borrow::Cow;
use std::error::Error as StdError;

use forebay_error::ErrorKind;

use crate::image::Format;

/// Every fallible function of this crate returns this.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The underlying cause, where a library reported one.
pub type Source = Box<dyn StdError + Send + Sync>;

/// Why bytes did not become a tensor, or a tensor not bytes.
///
/// The variants are the classes: what the file says wrongly ([`Error::Format`]), what it says that this crate does not do
/// ([`Error::Unsupported`]), what it says that the caller forbade ([`Error::Limit`]), what the machine does not have
/// ([`Error::Memory`]), and what the caller asked wrongly ([`Error::Usage`]). There is no class for I/O, because this crate opens no files; callers add the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not what they claim to be, or not all there.
    #[error("{}", format_message(format, problem, *offset, *truncated))]
    Format {
        /// The format that the bytes claim, as a short name (`jpeg`), or `image` where they claim none.
        format: &'static str,
        /// What is wrong with them.
        problem: Cow<'static, str>,
        /// At which byte, where it is known.
        offset: Option<usize>,
        /// Whether the data ends too early (as opposed to being wrong).
        truncated: bool,
        /// The library's own error, where it gave one.
        source: Option<Source>,
    },
    /// The bytes are right but use something that this crate does not decode.
    #[error("{format}: {feature} is not supported\nhint: {hint}")]
    Unsupported {
        /// The format, as a short name.
        format: &'static str,
        /// What is not supported.
        feature: Cow<'static, str>,
        /// The remedy.
        hint: &'static str,
    },
    /// A limit that the caller set was exceeded; nothing was allocated for it.
    #[error(
        "{what} is `{found}`, over the limit of `{limit}`\nhint: raise the limit if the file is trusted{}",
        option_for(what)
    )]
    Limit {
        /// What was counted.
        what: &'static str,
        /// How much the file asks for.
        found: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// Memory that the file asks for within the limits could not be had.
    #[error(
        "`{bytes}` bytes of memory could not be had\nhint: give it more memory, or take less at a time: fewer threads, a smaller memory budget"
    )]
    Memory {
        /// How many bytes were wanted at once.
        bytes: u64,
    },
    /// The caller asked for something impossible.
    #[error("{problem}: expected `{expected}`, found `{found}`")]
    Usage {
        /// What is wrong.
        problem: &'static str,
        /// What would have been right.
        expected: String,
        /// What was given.
        found: String,
    },
}

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Format { .. } => ErrorKind::Data,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Limit { .. } | Self::Memory { .. } => ErrorKind::Limit,
            Self::Usage { .. } => ErrorKind::Usage,
        }
    }

    /// Whether the data ended too early, so that accepting a partial result may help.
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::Format { truncated: true, .. })
    }

    pub(crate) fn format(format: &'static str, problem: impl Into<Cow<'static, str>>) -> Self {
        Self::Format { format, problem: problem.into(), offset: None, truncated: false, source: None }
    }

    pub(crate) fn format_at(format: &'static str, problem: impl Into<Cow<'static, str>>, offset: usize) -> Self {
        Self::Format { format, problem: problem.into(), offset: Some(offset), truncated: false, source: None }
    }

    pub(crate) fn truncated(format: &'static str, problem: impl Into<Cow<'static, str>>, offset: usize) -> Self {
        Self::Format { format, problem: problem.into(), offset: Some(offset), truncated: true, source: None }
    }

    pub(crate) fn unsupported(format: &'static str, feature: impl Into<Cow<'static, str>>, hint: &'static str) -> Self {
        Self::Unsupported { format, feature: feature.into(), hint }
    }

    #[expect(clippy::needless_pass_by_value, reason = "most are literals; a reference would clutter every call")]
    pub(crate) fn usage(problem: &'static str, expected: impl ToString, found: impl ToString) -> Self {
        Self::Usage { problem, expected: expected.to_string(), found: found.to_string() }
    }
}

fn format_message(format: &str, problem: &str, offset: Option<usize>, truncated: bool) -> String {
    let state = if truncated { "data is truncated" } else { "data is damaged" };
    let at = offset.map(|offset| format!(" at byte `{offset}`")).unwrap_or_default();
    let hint = match truncated {
        // A truncated L3 is not decoded partially: see `docs/formats/images.md`.
        true if format == Format::L3.name() => {
            "\nhint: copy or create the file again: an L3 cannot be decoded partially"
        }
        true if matches!(format, "flac" | "mp3") => "\nhint: `allow_truncated` decodes what precedes it",
        true if matches!(format, "audio" | "raw signal" | "NPY" | "tensor") => "\nhint: copy or create the file again",
        true => "\nhint: `allow_truncated` decodes what is there",
        false => "",
    };
    format!("{format} {state}{at}: {problem}{hint}")
}

/// What the limit is called where it is a parameter.
fn option_for(what: &str) -> &'static str {
    match what {
        "the number of pixels" => ": `max_pixels` of the step that decodes it",
        "audio samples" => ": `max_samples` of the step that decodes it",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_and_where_and_end_without_a_period() {
        let error = Error::truncated("png", "the chunk `IDAT` is cut off", 41);
        assert!(error.is_truncated());
        assert_eq!(
            error.to_string(),
            "png data is truncated at byte `41`: the chunk `IDAT` is cut off\n\
             hint: `allow_truncated` decodes what is there"
        );
        let error = Error::Limit { what: "pixels", found: 10, limit: 5 };
        assert_eq!(
            error.to_string(),
            "pixels is `10`, over the limit of `5`\nhint: raise the limit if the file is trusted"
        );
        let error = Error::Limit { what: "the number of pixels", found: 10, limit: 5 };
        assert!(error.to_string().ends_with("trusted: `max_pixels` of the step that decodes it"), "{error}");
    }
}
