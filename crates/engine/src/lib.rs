//! Runs things: build, load, profile, probe.

#![forbid(unsafe_code)]

pub mod build;
pub mod data;
mod error;
pub mod load;
pub mod probe;
pub mod profile;
mod progress;
mod storage_choice;

pub use error::{Error, Result};
pub use progress::Progress;
pub use storage_choice::StorageChoice;
