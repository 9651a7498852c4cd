//! The one error type of this room.

use std::path::Path;

use forebay_codec::TensorSpec;
use forebay_error::{ErrorContext, ErrorKind};
use forebay_storage::one_line;

/// What can go wrong when a pipeline is made or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pipeline file is not one (fault of the file).
    #[error("pipeline `{name}` cannot be read: {message}")]
    Format {
        /// The file or preset.
        name: String,
        /// What the parser said, with the line.
        message: String,
    },
    /// Two neighboring steps do not fit (fault of the pipeline).
    #[error(
        "steps do not fit: `{before}` gives {found} in field `{field}`, but `{step}` needs {expected}\nhint: add a conversion between them, or reorder them"
    )]
    Mismatch {
        /// The step (or source) before.
        before: Box<str>,
        /// The step that cannot take it.
        step: Box<str>,
        /// The field.
        field: Box<str>,
        /// What the step needs.
        expected: Box<str>,
        /// What the step before gives.
        found: Box<str>,
    },
    /// A parameter that makes no sense (fault of the pipeline).
    #[error("step `{step}`: `{parameter}` is `{found}`, but must be {expected}")]
    Parameter {
        /// The step.
        step: String,
        /// The parameter.
        parameter: &'static str,
        /// What it was.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A split, strategy or pipeline that does not exist (fault of the caller).
    #[error("no {what} `{found}` in pipeline `{pipeline}`\nhint: {hint}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// What was asked for.
        found: String,
        /// The pipeline.
        pipeline: String,
        /// What may have been meant, or what there is.
        hint: String,
    },
    /// An encoding that does not exist (fault of the caller).
    #[error(transparent)]
    Encoding(forebay_codec::Error),
    /// A compression that does not exist, or is told what it cannot do (fault of the caller).
    #[error(transparent)]
    Compression(forebay_record::UsageFault),
    /// A format that has one part twice, or its parts in another order (fault of the caller).
    #[error(
        "`{found}` is not a storage format\nhint: pass an encoding of images (`png`, `l3-fast`, `jpeg-85`), an encoding of tensors (`shuffle-zstd-3`, `pco-8`, `bitpack`), a compression of records (`gzip`, `zlib-6-rle`, `zstd-3`, `lz4`, `snappy`), or several, as in `png+gzip`; `pcr` stands alone"
    )]
    StorageFormat {
        /// What was asked for.
        found: String,
    },
    /// A format for files that are left as they are (fault of the caller).
    #[error(
        "strategy `{strategy}` reads the source files, which `{format}` cannot change\nhint: `concatenated+{format}` stores their bytes that way"
    )]
    KeepsFiles {
        /// The strategy.
        strategy: String,
        /// The format.
        format: String,
    },
    /// An encoding of pictures for something that has none it can hold (fault of the caller).
    #[error(
        "strategy `{strategy}` keeps {found}, which `{encoding}` cannot hold\nhint: encode where the image is uint8 with 1 or 3 channels (uint16 for png, pnm and l3); `pcr` keeps encoded files, as in `concatenated+pcr`"
    )]
    NotAPicture {
        /// The strategy.
        strategy: String,
        /// The encoding.
        encoding: String,
        /// What there is at the split.
        found: String,
    },
    /// An encoding of tensors for something that has none it can hold (fault of the caller).
    #[error(
        "strategy `{strategy}` keeps {found}, of which `{encoding}` can hold nothing\nhint: `bitpack` holds integers, `round` and `bfloat16` hold floating point numbers, and a shuffle needs elements of more than one byte"
    )]
    NotATensor {
        /// The strategy.
        strategy: String,
        /// The encoding.
        encoding: String,
        /// What there is at the split.
        found: String,
    },
    /// Something that only the CPU does (fault of the caller).
    #[error(
        "{what} cannot be done on a GPU\nhint: only images stored as L3 (`decoded+l3-fast-rows-16`) can be decoded on a GPU, followed by `center_crop`, `normalize`, `to_dtype` and `to_chw`; run other steps offline or on the tensors, or decode on the CPU"
    )]
    NotOnDevice {
        /// What it is.
        what: String,
    },
    /// A step failed on one sample.
    #[error("sample `{}`: step `{step}`: {source}", one_line(Path::new(key)))]
    Step {
        /// The sample's key.
        key: String,
        /// The step.
        step: String,
        /// Why.
        source: Box<StepError>,
    },
    /// What a step needs before a run could not be had.
    #[error("step `{step}`: {source}")]
    Prepare {
        /// The step.
        step: String,
        /// Why.
        source: Box<StepError>,
    },
    /// A stored record is not the sample that the schema promises (fault of the data).
    #[error("field `{field}` {problem}")]
    Stored {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A stored record is damaged (fault of the data).
    #[error(transparent)]
    Record(Box<forebay_record::Error>),
}

impl Error {
    /// Whose fault it is: of a sample's data or the pipeline's, for the most part.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Step { source, .. } => source.kind(),
            Self::Stored { .. } => ErrorKind::Data,
            Self::NotOnDevice { .. } => ErrorKind::Usage,
            Self::Record(error) => error.kind(),
            Self::Format { .. }
            | Self::Mismatch { .. }
            | Self::Parameter { .. }
            | Self::Unknown { .. }
            | Self::Encoding(_)
            | Self::Compression(_)
            | Self::StorageFormat { .. }
            | Self::KeepsFiles { .. }
            | Self::NotAPicture { .. }
            | Self::NotATensor { .. }
            | Self::Prepare { .. } => ErrorKind::Pipeline,
        }
    }

    /// The sample and the step, or the record.
    pub fn context(&self) -> ErrorContext<'_> {
        match self {
            Self::Step { key, step, .. } => {
                ErrorContext { key: Some(key), step: Some(step), ..ErrorContext::default() }
            }
            Self::Record(error) => error.context(),
            _ => ErrorContext::default(),
        }
    }

    /// Whether a function asked for an end: no sample is to blame, and none can be skipped instead.
    pub fn ends(&self) -> bool {
        let Self::Step { source, .. } = self else { return false };
        matches!(**source, StepError::Function { ends: true, .. })
    }
}

impl From<forebay_record::Error> for Error {
    fn from(error: forebay_record::Error) -> Self {
        Self::Record(Box::new(error))
    }
}

/// Why a step could not be done on one sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The bytes could not be decoded.
    #[error(transparent)]
    Codec(#[from] forebay_codec::Error),
    /// The picture is smaller than what must be cut from it.
    #[error(
        "an image of {width}x{height} is too small for a crop of {crop_width}x{crop_height}\nhint: resize first, or crop less"
    )]
    TooSmall {
        /// The picture's width in pixels.
        width: usize,
        /// Its height.
        height: usize,
        /// The crop's width.
        crop_width: usize,
        /// Its height.
        crop_height: usize,
    },
    /// A mask (or second picture) that is not as large as the picture it belongs to.
    #[error(
        "it is {width}x{height}, but the first of the step's fields is {first_width}x{first_height}\nhint: a mask has the size of its image; leave it out of `fields` if it does not belong to it"
    )]
    OtherSize {
        /// Its width in pixels.
        width: usize,
        /// Its height.
        height: usize,
        /// The width of the first field.
        first_width: usize,
        /// Its height.
        first_height: usize,
    },
    /// A mask of 16 bits where masks are `uint8`.
    #[error(
        "it is a mask of 16 bits, but the step gives uint8\nhint: write `keep_depth = true` into the step, which then gives uint16 (in Python: `decode_mask(keep_depth=True)`)"
    )]
    DeepMask,
    /// A JSON document that is none, or has no such value.
    #[error("field `{field}`: {problem}")]
    Json {
        /// The field.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// An annotation that is damaged, or says nothing of the sample.
    #[error("field `{field}`: {problem}")]
    Annotation {
        /// The field that is made of it, or that holds it.
        field: String,
        /// What is wrong, and in which line.
        problem: String,
    },
    /// A function of the host program failed.
    #[error("{source}")]
    Function {
        /// Why, as the host program has it.
        source: forebay_codec::Source,
        /// Whether it asks for an end (in Python `KeyboardInterrupt` or `SystemExit`): then the sample is not to blame, and
        /// cannot be skipped.
        ends: bool,
    },
    /// A function of the host program gave something else than it is said to give (fault of the pipeline).
    #[error("the function `{function}` gave {found}, but should give {expected}\nhint: {hint}")]
    FunctionOutput {
        /// The function.
        function: String,
        /// What it gave.
        found: String,
        /// What the step says that it gives.
        expected: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A function that this program does not have.
    #[error(
        "the function `{function}` is not known here\nhint: load from the program that has it, and pass it there (in Python: `functions={{\"{function}\": ...}}`)"
    )]
    NoFunction {
        /// What it is called.
        function: String,
    },
    /// A tensor that the schema check let through because its shape was open, but that does not fit after all.
    #[error("cannot work on {found}: needs {expected}")]
    Unfit {
        /// What came.
        found: TensorSpec,
        /// What is needed.
        expected: &'static str,
    },
    /// A file that holds a tensor of another type than the step says.
    #[error(
        "it holds {found}, but the step says {expected}\nhint: write what the files hold into the step's `type`, with `?` for a size that differs"
    )]
    OtherType {
        /// What it holds.
        found: TensorSpec,
        /// What the step says.
        expected: crate::schema::FieldType,
    },
    /// What would come out is larger than any tensor may be.
    #[error("{found} takes more than the {limit_bytes} bytes that a tensor may have")]
    TooLarge {
        /// What would come out.
        found: TensorSpec,
        /// The limit.
        limit_bytes: usize,
    },
    /// It takes more memory than the budget has for one sample.
    #[error(
        "it takes {bytes} bytes of memory at once, but a budget of {memory_bytes} bytes has {limit_bytes} for one sample\nhint: raise `memory` (`--memory`), or make it smaller: `min_shorter_side` decodes a large image smaller"
    )]
    Budget {
        /// What the sample takes.
        bytes: u64,
        /// What it may take.
        limit_bytes: u64,
        /// The whole budget.
        memory_bytes: u64,
    },
    /// Everything was stopped while the sample waited for memory.
    #[error("stopped")]
    Stopped,
    /// The picture cannot be resized.
    #[error("cannot resize: {0}")]
    Resize(#[from] forebay_resize::Error),
    /// A file that a step names could not be used: it is missing, damaged, or of a kind that is not handled.
    #[error("the {what} `{path}` cannot be used: {source}\nhint: {hint}")]
    File {
        /// What it is for.
        what: &'static str,
        /// Its path, as the step names it.
        path: String,
        /// Why.
        source: forebay_codec::Source,
        /// The remedy.
        hint: &'static str,
    },
    /// A label that is no class.
    #[error("label {label} is not one of {classes} classes\nhint: classes count from 0; raise `num_classes`")]
    NoSuchClass {
        /// The label.
        label: i64,
        /// How many classes there are.
        classes: usize,
    },
    /// A field that the step works on is missing or of another kind.
    #[error("the sample has no field `{field}` that this step can work on")]
    NoField {
        /// The field.
        field: String,
    },
}

impl StepError {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Codec(error) => error.kind(),
            Self::FunctionOutput { .. } | Self::NoFunction { .. } => ErrorKind::Pipeline,
            Self::Budget { .. } => ErrorKind::Limit,
            Self::Stopped => ErrorKind::Cancelled,
            Self::TooSmall { .. }
            | Self::OtherSize { .. }
            | Self::DeepMask
            | Self::NoSuchClass { .. }
            | Self::Json { .. }
            | Self::Annotation { .. }
            | Self::Function { .. }
            | Self::Unfit { .. }
            | Self::OtherType { .. }
            | Self::TooLarge { .. }
            | Self::Resize(_)
            | Self::File { .. }
            | Self::NoField { .. } => ErrorKind::Data,
        }
    }
}

/// A result of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;
