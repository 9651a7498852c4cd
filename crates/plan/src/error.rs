//! The crate's one error type.

use forebay_error::ErrorKind;

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is not the JSON of a profile or plan.
    #[error("cannot read the {what}: {source}\nhint: pass a file written by `forebay {what}`")]
    Json {
        /// `profile` or `plan`.
        what: &'static str,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// A plan was given for a profile, or the other way round.
    #[error("this is a {found}, not a {wanted}\nhint: pass a file written by `forebay {wanted}`")]
    Other {
        /// `profile` or `plan`.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A profile or plan cannot be written as JSON.
    #[error("cannot write the {what} as JSON: {source}")]
    Write {
        /// `profile` or `plan`.
        what: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A profile or plan has a layout that this version does not know.
    #[error(
        "cannot read the {what}: its layout has version `{found}`, expected `{expected}`\nhint: write it again with this \
         version of `forebay {what}`"
    )]
    Version {
        /// `profile` or `plan`.
        what: &'static str,
        /// The version that this version of Forebay reads.
        expected: u32,
        /// The version in the file.
        found: u64,
    },
    /// A profile holds a value that no measurement gives.
    #[error("cannot plan with this profile: `{field}` is `{found}`, but must be {expected}\nhint: {hint}")]
    Value {
        /// Where in the profile: `strategies.resized.prep_seconds`.
        field: String,
        /// What was found.
        found: String,
        /// What is allowed.
        expected: &'static str,
        /// The remedy.
        hint: &'static str,
    },
    /// A weight, a limit or the trainer's rate is out of its range.
    #[error("`{name}` is `{found}`, but must be {expected}")]
    Argument {
        /// Which one.
        name: &'static str,
        /// Its value.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// Something has a price that would count for nothing.
    #[error("the price of `{price}` needs `{missing}`\nhint: pass the number of `{missing}` to pay for")]
    Unpaid {
        /// Which price.
        price: &'static str,
        /// What says for how long: `epochs` or `months`.
        missing: &'static str,
    },
    /// Every strategy misses a limit.
    #[error("no strategy meets the limits\n{}\nhint: {hint}", lines(.excluded))]
    NoneLeft {
        /// Each strategy, and by how much it misses which limits.
        excluded: Vec<(String, String)>,
        /// Which strategy comes nearest, and what it would need.
        hint: String,
    },
}

impl Error {
    /// Whose fault this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Json { .. } | Self::Value { .. } => ErrorKind::Data,
            Self::Write { .. } => ErrorKind::Internal,
            Self::Version { .. } => ErrorKind::Unsupported,
            Self::NoneLeft { .. } => ErrorKind::Limit,
            Self::Other { .. } | Self::Argument { .. } | Self::Unpaid { .. } => ErrorKind::Usage,
        }
    }
}

fn lines(excluded: &[(String, String)]) -> String {
    excluded.iter().map(|(name, misses)| format!("  `{name}`: {misses}")).collect::<Vec<_>>().join("\n")
}
