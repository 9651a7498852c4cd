//! Runs things: listing, building, loading, profiling, probing. The only crate that starts threads.
//!
//! - [`source`]: where samples come from, opened: a folder of files or shards, or a data set that was built.
//! - [`load`]: does the online steps and streams batches: a [`Loader`](load::Loader) of a source has many epochs, each in order, each
//!   sample once, shared by ranks and resumed where it was left.
//! - [`build`]: does the offline steps once and writes shards; can be killed and run again.
//! - [`data`]: where samples are stored. A [`Listing`](data::Listing) of files, or a [`Dataset`](data::Dataset) that was built.
//! - [`profile`]: does both for every split, and times them.
//! - [`probe`]: what a storage can do.
//! - [`convert`]: images from one format to another, file by file.
//! - [`recompress`]: a folder of images at other qualities.
//! - [`analyze`]: what samples are like.
//! - [`export`]: a data set as tars that others read.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use forebay_codec::{Tensor, image};
//! use forebay_engine::StorageChoice;
//! use forebay_engine::build::{Build, BuildOptions};
//! use forebay_engine::data::Listing;
//! use forebay_engine::load::{LoadOptions, Loader, OnError, Shuffle};
//! use forebay_engine::source::Shards;
//! use forebay_pipeline::{Strategy, preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A folder of images, one class.
//! let folder = tempfile::tempdir()?;
//! let photos = folder.path().join("photos");
//! std::fs::create_dir_all(photos.join("gray"))?;
//! let picture = Tensor::from_elements(&[300, 400, 3], &vec![128_u8; 300 * 400 * 3]).expect("as many as the shape says");
//! for number in 0..10 {
//!     let file = image::encode(picture.view(), &image::Encoding::Qoi)?;
//!     std::fs::write(photos.join("gray").join(format!("{number}.png")), file)?; // content decides, not the name
//! }
//!
//! // Decode and resize once …
//! let pipeline = preset("cv")?;
//! let storage = StorageChoice::Local.open(0)?;
//! let listing = Arc::new(Listing::scan(pipeline.source(), &photos)?);
//! let strategy = Strategy::parse(&pipeline, "resized")?;
//! let options = BuildOptions {
//!     threads: 2, shards: 2, on_error: OnError::Fail, overwrite: false, resume: None, memory_bytes: 1 << 30,
//! };
//! let output = folder.path().join("dataset");
//! Build { pipeline, strategy, listing, storage: Arc::clone(&storage) }.run(&output, &options, &())?;
//!
//! // … and center and crop every epoch.
//! let source = Arc::new(Shards::open(&output, storage, OnError::Fail)?);
//! let shuffle = Shuffle::Window { bytes: 1 << 20 };
//! let loader = Loader::new(source, LoadOptions { batch_size: 4, shuffle, seed: 7, ..LoadOptions::default() })?;
//! for epoch in 0..2 {
//!     let sizes = loader.start(&loader.beginning_of(epoch))?.map(|batch| Ok(batch?.len()));
//!     assert_eq!(sizes.collect::<Result<Vec<_>, forebay_engine::Error>>()?, [4, 4, 2]);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! A source file is at most 4 GiB. What a loader and a build hold in memory is bounded by a budget: see [`memory`]. Building needs space for the data set it writes; a killed build leaves its finished shards for the next one.

#![forbid(unsafe_code)]

pub mod analyze;
pub mod build;
pub mod convert;
mod cpu_time;
pub mod data;
pub mod diagnose;
mod error;
pub mod export;
pub mod load;
pub mod memory;
pub mod mix;
pub mod probe;
pub mod profile;
mod progress;
pub mod recompress;
mod scratch_folder;
pub mod source;
mod spread;
mod storage_choice;
pub mod sync;
mod threads;

pub use error::{Error, Result};
pub use progress::{Progress, while_looking_up};
pub use scratch_folder::ScratchFolder;
pub use storage_choice::StorageChoice;
pub use threads::cores;
