//! What is done to a sample, and where it is split.
//!
//! A [`Sample`] is one training example: a key and named fields. A [`Step`] is one named transformation of a field. A
//! [`Pipeline`] is a source and its steps; making one checks that each step can take what the one before gives. A [`Split`] cuts
//! it into steps that are done once and steps that are done every epoch. A [`Runner`] does an extent of steps to one sample
//! after another. Everything here is a function of its input: no files, no threads, no clock.
//!
//! # Example
//!
//! ```
//! use forebay_codec::{DType, Tensor};
//! use forebay_pipeline::{RngKey, Field, Pipeline, Runner, Sample, SampleView, Sink, Value, ValueView};
//!
//! let pipeline = Pipeline::from_toml(
//!     "thumbnails",
//!     r#"
//!     name = "thumbnails"
//!     [[step]]
//!     op = "decode"
//!     [[step]]
//!     op = "resize"
//!     size = 64
//!     [[step]]
//!     op = "random_crop"
//!     size = 56
//!     "#,
//! )?;
//! // The crop is random, so it runs every epoch: what can be kept is what comes before it.
//! let splits: Vec<String> = pipeline.splits().into_iter().map(|split| split.name).collect();
//! assert_eq!(splits, ["unprocessed", "concatenated", "decoded", "resized"]);
//! assert_eq!(pipeline.output().to_string(), "image: uint8[56, 56, 3], label: int");
//!
//! // Two steps that do not fit are found now, not after an hour of training.
//! let wrong = Pipeline::from_toml("wrong", "name = \"wrong\"\n[[step]]\nop = \"grayscale\"\n").unwrap_err();
//! assert!(wrong.to_string().starts_with("steps do not fit: `read` gives bytes in field `image`, but `grayscale` needs"));
//!
//! // The online part of the strategy `decoded`, on one picture.
//! let picture = Tensor::from_elements(&[100, 80, 3], &vec![9_u8; 100 * 80 * 3]).expect("as many as the shape says");
//! let fields = vec![Field { name: "image".into(), value: Value::Tensor(picture) }];
//! let sample = Sample { key: "cats/1.jpg".into(), index: 0, fields };
//! let online = pipeline.split("decoded")?.offline_steps();
//! struct Shape(Vec<usize>);
//! impl Sink for Shape {
//!     fn accept(&mut self, sample: SampleView<'_>) {
//!         if let ValueView::Tensor(view) = sample.fields[0].1 {
//!             assert_eq!(view.spec.dtype, DType::U8);
//!             self.0 = view.spec.shape.dims().to_vec();
//!         }
//!     }
//! }
//! let mut shape = Shape(Vec::new());
//! let mut runner = Runner::new(&pipeline.steps()[online..], online);
//! runner.run(&sample, RngKey { seed: 7, epoch: 0 }, &mut (), &mut shape)?;
//! assert_eq!(shape.0, [56, 56, 3]);
//! # Ok::<(), forebay_pipeline::Error>(())
//! ```
//!
//! # Limits
//!
//! A step that expands one sample into many holds them all at once. A picture is `[height, width, channels]` with one to
//! four channels. Random steps are never offline.

#![deny(unsafe_code)]

mod error;
mod fuse;
mod kernels;
mod nearest;
mod on_device;
mod output;
mod pipeline;
mod predicate;
mod preset;
mod random;
mod runner;
mod sample;
mod sample_changes;
mod schema;
mod scope;
mod setting;
mod sidecar;
mod source;
mod step;
pub mod steps;
mod storage_format;
mod stored;
mod strategy;
mod table;

pub use error::{Error, Result, StepError};
pub use kernels::kernel_level;
pub use nearest::nearest;
pub use on_device::{DeviceDecoding, OnDevice};
pub use output::Output;
pub use pipeline::{Pipeline, PipelineSpec, Split};
pub use predicate::{Datum, Predicate};
pub use preset::{preset, preset_names, preset_text};
pub use random::Random;
pub use runner::{Observer, Runner, Sink};
pub use sample::{Field, Sample, SampleView, Value, ValueView};
pub use sample_changes::SampleChanges;
pub use schema::{BOX_COLUMNS_MAX, FieldType, Schema};
pub use scope::{RngKey, Scope, Scratch};
pub use setting::Setting;
pub use sidecar::SidecarPath;
pub use source::{Format, GIVEN_FILES, LABEL_FIELD, Label, LabelType, Order, Source, SourceField};
pub use step::{
    Action, BadParameter, BatchColumn, BatchTransform, FlatMap, Needs, Parts, SampleTransform, ShardState,
    ShardTransform, Step, StepFiles, Transform,
};
pub use storage_format::StorageFormat;
pub use stored::{KEY_FEATURE, decode_sample, encode_sample, encode_scan_groups, join_scan_groups};
pub use strategy::{FieldEncoding, Strategy};
pub use table::{Row, Rows};
