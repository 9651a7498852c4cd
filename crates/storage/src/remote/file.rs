//! An object that is read.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};
use xxhash_rust::xxh3::xxh3_64;

use super::failure::of_store;
use super::location::Location;
use super::pace::Pace;
use super::process::Store;
use super::request::{request_again, request_paced, unless_stalled};
use crate::{BufferPool, Error, File, PooledBuffer, Result, Status, Version};

/// How often reading is resumed after a body ended too early, in addition to the client's own retries.
const ATTEMPTS: usize = 4;

/// An object, as it was when it was opened: reading fails if it was replaced since.
pub(super) struct RemoteFile {
    path: PathBuf,
    location: Location,
    /// What the store said of it then.
    meta: ObjectMeta,
    buffers: BufferPool,
}

impl RemoteFile {
    pub(super) fn new(path: &Path, location: Location, meta: &ObjectMeta, buffers: BufferPool) -> Self {
        Self { path: path.to_path_buf(), location, meta: meta.clone(), buffers }
    }

    /// Opens an object and reads all of it, with one request where nothing goes wrong; `limit_bytes` at the most.
    pub(super) fn read_whole(
        path: &Path,
        location: &Location,
        limit_bytes: u64,
        buffers: &BufferPool,
    ) -> Result<Bytes> {
        // How many, the answer says first.
        let bytes = &Cell::new(None);
        let got = request_again(location, bytes, |store| async move {
            let begun = Instant::now();
            let result = store.objects.get_opts(&location.key, GetOptions::default()).await?;
            let meta = result.meta.clone();
            store.pace.note_beginning(begun.elapsed());
            bytes.set(Some(meta.size).filter(|size| *size <= limit_bytes));
            let buffer = match usize::try_from(meta.size) {
                Ok(length) if meta.size <= limit_bytes => take(buffers, length),
                _ => Err(Error::TooLarge { path: path.to_path_buf(), limit_bytes, found: meta.size }),
            };
            let body = match buffer {
                Ok(buffer) => Ok(Body::of(result, buffer, meta.size as usize, &store.pace).await),
                Err(error) => Err(error),
            };
            Ok((meta, body))
        });
        let (meta, body) = got.map_err(|source| Error::Open { path: path.to_path_buf(), source })?;
        let file = Self::new(path, location.clone(), &meta, buffers.clone());
        file.complete(0, meta.size as usize, body?)
    }

    /// What comes of one request for a range.
    async fn fetch(&self, store: Store, range: Range<u64>, buffer: Result<PooledBuffer>) -> object_store::Result<Body> {
        let source = "there is no memory for a second answer".into();
        let buffer = buffer.map_err(|_| object_store::Error::Generic { store: "remote", source })?;
        let length = (range.end - range.start) as usize;
        let result = self.get(&store, range).await?;
        let body = Body::of(result, buffer, length, &store.pace).await;
        match body {
            // The client tried it several times already; only a body that came in part is worth more.
            Body { filled: 0, failed: Some(error), .. } => Err(error),
            body => Ok(body),
        }
    }

    /// Asks for a range of the version that was opened.
    async fn get(&self, store: &Store, range: Range<u64>) -> object_store::Result<GetResult> {
        let if_match = self.strong_tag().map(str::to_owned);
        // What is not known is given as the beginning of 1970.
        let modified = Some(self.meta.last_modified).filter(|time| time.timestamp_nanos_opt() != Some(0));
        let if_unmodified_since = modified.filter(|_| if_match.is_none());
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions { range, if_match, if_unmodified_since, ..GetOptions::default() };
        let result = store.objects.get_opts(&self.location.key, options).await?;
        // Not every server looks at conditions, and a time has only seconds.
        if self.is_version(&result.meta) {
            return Ok(result);
        }
        let path = self.location.key.to_string();
        Err(object_store::Error::Precondition { path, source: "another version answered".into() })
    }

    /// The entity tag, if only this version can have it. A weak one may not be asked for.
    fn strong_tag(&self) -> Option<&str> {
        self.meta.e_tag.as_deref().filter(|tag| !tag.starts_with("W/"))
    }

    /// Whether this is the version that was opened, as far as the store says.
    fn is_version(&self, found: &ObjectMeta) -> bool {
        let is_same = match (&self.meta.e_tag, &found.e_tag) {
            (Some(opened), Some(found)) => bare(opened) == bare(found),
            _ => self.meta.last_modified == found.last_modified,
        };
        is_same && self.meta.size == found.size
    }

    /// Reads on where only a part of the bytes at `offset` came.
    fn complete(&self, offset: u64, length: usize, body: Body) -> Result<Bytes> {
        let Body { mut buffer, mut filled, failed } = body;
        let mut failed = failed.map(|error| of_store(&error));
        for attempt in 1..=ATTEMPTS {
            if filled == length {
                return Ok(buffer.into_bytes(0..length));
            }
            let before = filled;
            let range = offset + filled as u64..offset + length as u64;
            let (into, reached) = (&mut buffer.as_mut_slice()[..length], &mut filled);
            let got = request_paced(&self.location, length as u64, |store| async move {
                let result = self.get(&store, range).await?;
                // The last one may take as long as the client lets it.
                fill(result, into, reached, (attempt < ATTEMPTS).then_some(&*store.pace)).await
            });
            if let Err(source) = got {
                if filled == before {
                    return Err(Error::Read { path: self.path.clone(), offset: offset + before as u64, source });
                }
                failed = Some(source);
            }
        }
        if filled == length {
            return Ok(buffer.into_bytes(0..length));
        }
        let offset_reached = offset + filled as u64;
        Err(match failed {
            Some(source) => Error::Read { path: self.path.clone(), offset: offset_reached, source },
            None => Error::ShortRead { path: self.path.clone(), offset, expected: length as u64, found: filled as u64 },
        })
    }
}

/// As much of an answer as came.
struct Body {
    buffer: PooledBuffer,
    filled: usize,
    failed: Option<object_store::Error>,
}

impl Body {
    /// Takes up to `length` bytes of an answer into `buffer`.
    async fn of(result: GetResult, mut buffer: PooledBuffer, length: usize, pace: &Pace) -> Self {
        let mut filled = 0;
        let failed = fill(result, &mut buffer.as_mut_slice()[..length], &mut filled, Some(pace)).await.err();
        Self { buffer, filled, failed }
    }
}

/// Copies a body behind what is filled already: all of it, unless it ends early or stalls, by `pace`.
async fn fill(result: GetResult, into: &mut [u8], filled: &mut usize, pace: Option<&Pace>) -> object_store::Result<()> {
    let mut body = result.into_stream();
    let mut longest = Duration::ZERO;
    loop {
        let begun = Instant::now();
        let next = match pace {
            Some(pace) => unless_stalled(pace, body.next()).await,
            None => Some(body.next().await),
        };
        longest = longest.max(begun.elapsed());
        let Some(next) = next else { return Ok(()) };
        let Some(chunk) = next.transpose()? else { break };
        let end = *filled + chunk.len();
        let Some(space) = into.get_mut(*filled..end) else {
            let source = "the store sent more bytes than were asked for".into();
            return Err(object_store::Error::Generic { store: "remote", source });
        };
        space.copy_from_slice(&chunk);
        *filled = end;
    }
    if let Some(pace) = pace {
        pace.note_pause(longest);
    }
    Ok(())
}

fn take(buffers: &BufferPool, length: usize) -> Result<PooledBuffer> {
    buffers.take(length, 1).map_err(|_| Error::Memory { bytes: length })
}

impl File for RemoteFile {
    fn size(&self) -> u64 {
        self.meta.size
    }

    fn version(&self) -> Option<Version> {
        self.strong_tag().map(|_| status_of(&self.meta).version)
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.meta.size) {
            let (path, size) = (self.path.clone(), self.meta.size);
            return Err(Error::BeyondEnd { path, offset, length: length as u64, size });
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        // That of the first request. A second one, if the first is slow, has its own.
        let buffer = Cell::new(Some(take(&self.buffers, length)?));
        let body = request_again(&self.location, &Cell::new(Some(length as u64)), |store| {
            let buffer = buffer.take().map_or_else(|| take(&self.buffers, length), Ok);
            self.fetch(store, offset..offset + length as u64, buffer)
        });
        let body = body.map_err(|source| Error::Read { path: self.path.clone(), offset, source })?;
        self.complete(offset, length, body)
    }
}

/// What the store says of an object, without reading it; `None` where there is none.
pub(super) async fn head(store: &dyn ObjectStore, location: &Location) -> object_store::Result<Option<ObjectMeta>> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    match store.get_opts(&location.key, options).await {
        Ok(result) => Ok(Some(result.meta)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An entity tag as it is compared: a listing and a request may quote it differently.
fn bare(tag: &str) -> &str {
    tag.trim_start_matches("W/").trim_matches('"')
}

/// The size and version of an object.
pub(super) fn status_of(meta: &ObjectMeta) -> Status {
    let version = match &meta.e_tag {
        Some(tag) => xxh3_64(bare(tag).as_bytes()),
        None => meta.last_modified.timestamp_nanos_opt().unwrap_or_default().cast_unsigned(),
    };
    Status { bytes: meta.size, version: Version(version) }
}
