//! Storage: listing files, reading them at an offset, writing them atomically, and measuring how fast that is.
//!
//! This crate accesses the disk on behalf of all of Forebay. It knows no format: it lists and opens regular files,
//! reads ranges of them exactly or fails with an error that names file and offset, writes files atomically, and drops
//! what is cached when a measurement must start cold. It spawns no threads (but for two that talk to object stores, once one is used) and prints nothing; everything in it may be used from many threads at once.
//!
//! - [`Storage`] is what a storage must implement, [`Folder`] a folder in one.
//! - [`LocalStorage`] reads local files, [through the page cache](LocalStorage::buffered), [past it](LocalStorage::direct), or
//!   [as memory](LocalStorage::mapped).
//! - [`RemoteStorage`] reads and writes objects by their URLs: S3 and compatible, Google Cloud, Azure, and web servers. [`AnyStorage`] is both.
//! - [`CachedStorage`] caches what is read of objects on a local disk, from run to run.
//! - [`MemoryStorage`] holds files in memory: for tests, and to show how little a storage must be.
//! - [`ThrottledStorage`] wraps another storage and slows it down to the figures of a [`Throttle`]: `hdd`, `ssd`,
//!   `ceph-hdd` (the cluster that the PRESTO paper measured) or any other. Results then do not depend on the machine's
//!   own disk, and no expensive hardware is needed to see what a pipeline would do on it.
//! - [`sequential`] reads a file from front to back in large blocks.
//! - [`probe`] measures: sequential and random reads, many small files, memory.
//! - [`drop_all_caches`] and [`Storage::drop_cache`] make reads cold again, with and without root.
//!
//! # When not to use it
//!
//! For pipes, sockets and devices: they are refused. What a user names as one output of this machine is written with [`create_fresh`] and
//! its kin, which follow no links, and [`std::fs`]'s `Write`.
//!
//! # Example
//!
//! ```
//! use forebay_storage::{LocalStorage, Storage, Throttle, ThrottledStorage, sequential};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("shard");
//! std::fs::write(&path, vec![7; 1_000_000])?;
//!
//! // Bypassing the page cache, at an unaligned offset: alignment is not the caller's concern.
//! let direct = LocalStorage::direct();
//! let file = direct.open(&path)?;
//! assert_eq!(file.read(333, 3)?, [7, 7, 7].as_slice());
//! if let Some(notice) = direct.notice() {
//!     println!("{notice}"); // the file system of the temporary folder cannot do it
//! }
//!
//! // The same file as if it lay on a slow network disk.
//! let throttle = Throttle::parse("custom:read=50MB/s,seek=5ms,iops=200")?;
//! let slow = ThrottledStorage::new(Arc::new(LocalStorage::buffered()), throttle)?;
//! let started = std::time::Instant::now();
//! let file = slow.open(&path)?;
//! let mut bytes = 0;
//! for block in sequential(&*file, 256 << 10) {
//!     bytes += block?.len();
//! }
//! assert_eq!(bytes, 1_000_000);
//! assert!(started.elapsed().as_secs_f64() > 0.024); // 5 ms for the seek, 20 ms for the bytes
//!
//! // Nothing is read beyond the limit.
//! let error = slow.read_file(&path, 1000).unwrap_err();
//! assert!(error.to_string().contains("has `1000000` bytes, more than the limit of `1000`"));
//! # Ok(())
//! # }
//! ```
//!
//! # Buffers
//!
//! A read returns [`Bytes`](bytes::Bytes) over a buffer that goes back to a pool when the last clone or slice of it is dropped.
//! Large reads therefore reuse memory instead of faulting in new pages. A pool holds at most 128 MiB of idle buffers. Direct
//! reads return a slice of their aligned buffer, so they copy nothing either. Mapped files are their own buffers.
//!
//! # Limits
//!
//! - A file's size is determined when it is opened. A range beyond it is refused before anything is allocated, even if the file has
//!   grown since; if the file has shrunk, reading fails. Only what is mapped must not shrink while bytes of it are in use.
//! - One read allocates as much as was requested, up to the size of the file: if you do not trust a file's size, read it by
//!   [`Storage::read_file`] with a limit, or in blocks.
//! - A quarter of the files that the process may have open (`ulimit -n`) are kept open, however many are read; others are closed and opened again. One that
//!   was changed meanwhile is then an error.
//! - An object is read as it was when it was opened: where it was replaced since, reading fails. Stores have no locks: only threads of one
//!   process are separated.
//! - A throttled storage models bandwidth, seeks and their caps. It does not model that several streams that read one disk
//!   in sequence make it seek between them, nor writes, nor metadata: opening is free until the first read. It can only slow
//!   down: rates above those of the real storage are not reached.
//! - The simulated page cache knows a file by its path and size; it does not see writes. It affects time only, never bytes.

#![forbid(unsafe_code)]

mod any;
mod block_cache;
mod buffer;
mod cached;
mod clock;
mod descriptor;
mod error;
mod folder;
mod local;
mod memory;
mod page_cache;
mod per_process;
pub mod probe;
mod quantity;
mod reading;
#[cfg(feature = "remote")]
mod remote;
mod schedule;
mod simulated_cache;
mod storage;
mod stream;
mod throttle;
mod throttled;
mod tree;
mod url;
mod writing;

pub use any::AnyStorage;
pub use buffer::{BufferPool, PooledBuffer};
pub use cached::CachedStorage;
pub use clock::{Clock, SystemClock};
pub use error::{Error, Result, hint_for, one_line};
pub use folder::Folder;
pub use local::LocalStorage;
pub use memory::MemoryStorage;
pub use page_cache::{drop_all_caches, resident_fraction};
pub use quantity::{parse_bytes, parse_bytes_per_second, parse_seconds};
pub use reading::{open_file, read_file, read_text};
#[cfg(feature = "remote")]
pub use remote::RemoteStorage;
pub use storage::{
    DroppedCache, Entry, EntryKind, File, Lock, Sequential, Status, Storage, Upload, Version, Walk, Walked, sequential,
};
pub use stream::Stream;
pub use throttle::Throttle;
pub use throttled::ThrottledStorage;
pub use url::is_url;
pub use writing::{create_folders_below, create_fresh, lock_file, own_folder, rename_durably, unlink, write_whole};
