//! Tests of the whole crate through its public face.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops when it cannot go on, and says why it skips"
)]

mod annotations;
mod audio_and_text;
mod audio_augment;
mod augmentations;
#[path = "../../../../tests/data.rs"]
mod data;
mod detection;
mod domains;
mod draws;
mod dtypes;
mod following;
mod golden;
mod packing;
mod pillow;
mod pipelines;
mod running;
mod steps;
mod stored;
mod strategies;
mod support;
mod text;
