//! What is done to a sample, and where it is split.

#![forbid(unsafe_code)]

mod error;
mod pipeline;
mod random;
mod ready;
mod runner;
mod sample;
mod schema;
mod scope;
mod step;
pub mod steps;
mod stored;

pub use error::{Error, Result, StepError};
pub use pipeline::{LABEL_FIELD, Label, Order, Pipeline, PipelineSpec, Source, Split};
pub use random::Random;
pub use ready::{ready, ready_names, ready_text};
pub use runner::{Observer, Runner, Sink};
pub use sample::{Field, Sample, SampleView, Value, ValueView};
pub use schema::{FieldType, Schema};
pub use scope::{Draw, Scope};
pub use step::{Action, BadParameter, Expand, Needs, Step, Transform};
pub use stored::{KEY_FEATURE, decode_sample, encode_sample};
