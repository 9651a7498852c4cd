//! Runs things: listing, building, loading, profiling, probing. The only room that starts threads.
//!
//! - [`data`]: where samples lie. A [`Listing`](data::Listing) of files, or a [`Dataset`](data::Dataset) that was built.
//! - [`build`]: does the offline steps once and writes shards; can be killed and run again.
//! - [`load`]: does the online steps and streams batches, in order, each sample once.
//! - [`profile`]: does both for every split, and times them.
//! - [`probe`]: what a storage can do.
//! - [`convert`]: pictures from one format to another, file by file.
//! - [`export`]: a data set as tars that others read.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use forebay_codec::{Tensor, image};
//! use forebay_engine::StorageChoice;
//! use forebay_engine::build::{Build, BuildOptions};
//! use forebay_engine::data::{Dataset, Listing};
//! use forebay_engine::load::{FromStorage, LoadOptions, Loader, OnError, Online, Schedule, Shuffle};
//! use forebay_pipeline::{Strategy, ready};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A folder of pictures, one class.
//! let folder = tempfile::tempdir()?;
//! let photos = folder.path().join("photos");
//! std::fs::create_dir_all(photos.join("grey"))?;
//! let picture = Tensor::from_elements(&[300, 400, 3], &vec![128_u8; 300 * 400 * 3]).expect("as many as the shape says");
//! for number in 0..10 {
//!     let file = image::encode(picture.view(), &image::Encoding::Qoi)?;
//!     std::fs::write(photos.join("grey").join(format!("{number}.png")), file)?; // content decides, not the name
//! }
//!
//! // Decode and resize once …
//! let pipeline = ready("cv")?;
//! let storage = StorageChoice::Local.open(0)?;
//! let listing = Arc::new(Listing::scan(pipeline.source(), &photos)?);
//! let strategy = Strategy::parse(&pipeline, "resized")?;
//! let options = BuildOptions {
//!     threads: 2, shards: 2, on_error: OnError::Fail, overwrite: false, resume: None, memory_bytes: 1 << 30,
//! };
//! let output = folder.path().join("dataset");
//! Build { pipeline, strategy, listing, storage: Arc::clone(&storage) }.run(&output, &options, &())?;
//!
//! // … and centre and crop every epoch.
//! let dataset = Arc::new(Dataset::open(&output)?);
//! let order = |blocks| Schedule::new(blocks, Shuffle::Window { bytes: 1 << 20 }, 7, 0);
//! let supply = FromStorage::shards(Arc::clone(&dataset), storage, order)?;
//! let online = Online::after(dataset.pipeline(), &dataset.manifest().strategy);
//! let options = LoadOptions { batch_size: 4, ..LoadOptions::default() };
//! let sizes = Loader::start(Arc::new(supply), online, options)?.map(|batch| Ok(batch?.len()));
//! assert_eq!(sizes.collect::<Result<Vec<_>, forebay_engine::Error>>()?, [4, 4, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! A source file is at most 4 GiB. What a loader and a build hold in memory is bounded by a budget: see [`memory`]. Building needs room for the data set it writes; a killed build leaves its finished shards for the next one.

#![forbid(unsafe_code)]

pub mod build;
pub mod convert;
pub mod data;
mod error;
pub mod export;
pub mod load;
pub mod memory;
pub mod probe;
pub mod profile;
mod progress;
mod scratch_folder;
mod storage_choice;
pub mod sync;
mod threads;

pub use error::{Error, Result};
pub use progress::{Progress, while_looking_up};
pub use scratch_folder::ScratchFolder;
pub use storage_choice::StorageChoice;
