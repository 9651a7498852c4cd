//! An object that is written.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_error::ErrorKind;
use object_store::{
    Error as StoreError, MultipartUpload, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload,
};
use tokio::task::JoinHandle;
use xxhash_rust::xxh3::Xxh3;

use super::failure::{failure, of_store, too_slow, was_answered};
use super::file::RemoteFile;
use super::find;
use super::location::Location;
use super::process::Process;
use super::request::{request, request_or, time_for};
use crate::{BufferPool, Error, Result, Upload, sequential};

/// An object of more is sent in parts of this size. Stores take at least 5 MiB, and some want all parts alike.
const PART_BYTES: usize = 8 << 20;
/// So many parts are under way at once.
const PARTS_IN_FLIGHT: usize = 4;
/// In milliseconds: how long to wait before writing again what a store claims to have, but does not.
const PAUSES: [u64; 6] = [100, 200, 400, 800, 1600, 3200];
/// How long giving up may take.
const ABORT_TIME: Duration = Duration::from_secs(10);

/// An object that is being written: it is visible once it is committed.
pub(super) struct RemoteUpload {
    path: PathBuf,
    location: Location,
    /// What was not sent yet.
    rest: Vec<u8>,
    /// Begun when there is more than one part; `None` again once it is complete.
    multipart: Option<Box<dyn MultipartUpload>>,
    /// Parts on their way, the oldest first.
    parts: VecDeque<JoinHandle<io::Result<()>>>,
    /// The total size of all parts, sent or not: to check whether the object exists.
    bytes: u64,
    hash: Xxh3,
}

impl RemoteUpload {
    pub(super) fn new(path: &Path, location: Location) -> Self {
        let (path, parts) = (path.to_path_buf(), VecDeque::new());
        Self { path, location, rest: Vec::new(), multipart: None, parts, bytes: 0, hash: Xxh3::new() }
    }

    /// Sends a part, once there is space among those under way.
    fn send(&mut self, part: Vec<u8>) -> io::Result<()> {
        let process = Process::current()?;
        if self.multipart.is_none() {
            let begun = request(&self.location, 0, |store| {
                let key = self.location.key.clone();
                async move { store.put_multipart_opts(&key, PutMultipartOptions::default()).await }
            });
            self.multipart = Some(begun?);
        }
        while self.parts.len() >= PARTS_IN_FLIGHT {
            self.wait_for_one(process)?;
        }
        let Some(multipart) = &mut self.multipart else { return Err(io::ErrorKind::BrokenPipe.into()) };
        self.bytes += part.len() as u64;
        self.hash.update(&part);
        let time = time_for(part.len() as u64);
        let sent = multipart.put_part(PutPayload::from(part));
        self.parts.push_back(process.runtime.spawn(async move {
            match tokio::time::timeout(time, sent).await {
                Ok(sent) => sent.map_err(|error| of_store(&error)),
                Err(_) => Err(too_slow(time)),
            }
        }));
        Ok(())
    }

    /// Waits for the oldest part that is under way.
    fn wait_for_one(&mut self, process: &Process) -> io::Result<()> {
        let Some(part) = self.parts.pop_front() else { return Ok(()) };
        match process.runtime.block_on(part) {
            Ok(sent) => sent,
            Err(_) => Err(failure(io::ErrorKind::Other, "sending a part was given up", "run the command again")),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        if self.multipart.is_none() {
            let payload = PutPayload::from(rest);
            let put = request(&self.location, payload.content_length() as u64, |store| {
                let key = self.location.key.clone();
                async move { store.put(&key, payload).await }
            });
            return put.map(|_| ());
        }
        if !rest.is_empty() {
            self.send(rest)?;
        }
        let process = Process::current()?;
        while !self.parts.is_empty() {
            self.wait_for_one(process)?;
        }
        let Some(mut multipart) = self.multipart.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let time = time_for(0);
        let completed = process.runtime.block_on(async { tokio::time::timeout(time, multipart.complete()).await });
        let failed = match completed {
            Ok(Ok(_)) => return Ok(()),
            // Perhaps it was completed before, and the response was lost: a store does not know an upload any more once it is completed.
            Ok(Err(error)) if was_answered(&error) && self.is_there().unwrap_or(false) => return Ok(()),
            Ok(Err(StoreError::NotFound { .. })) => {
                let hint = "run the command again; if a rule of the bucket removes unfinished uploads, give them a day at least";
                failure(io::ErrorKind::NotFound, "the store forgot what was sent of it", hint)
            }
            Ok(Err(error)) => of_store(&error),
            Err(_) => too_slow(time),
        };
        // What is left of it is given up when this is dropped.
        self.multipart = Some(multipart);
        Err(failed)
    }

    /// Whether the object has the bytes that were sent.
    fn is_there(&self) -> Result<bool> {
        let found = find(&self.location).map_err(|source| Error::Open { path: self.path.clone(), source })?;
        let Some(meta) = found.filter(|meta| meta.size == self.bytes) else { return Ok(false) };
        let file = RemoteFile::new(&self.path, self.location.clone(), &meta, BufferPool::new());
        let mut hash = Xxh3::new();
        for block in sequential(&file, PART_BYTES) {
            hash.update(&block?);
        }
        Ok(hash.digest128() == self.hash.digest128())
    }
}

impl io::Write for RemoteUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while self.rest.len() > PART_BYTES {
            let next = self.rest.split_off(PART_BYTES);
            let part = std::mem::replace(&mut self.rest, next);
            self.send(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for RemoteUpload {
    fn commit(mut self: Box<Self>) -> Result<()> {
        self.finish().map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

impl Drop for RemoteUpload {
    fn drop(&mut self) {
        for part in &self.parts {
            part.abort();
        }
        if let (Some(mut multipart), Ok(process)) = (self.multipart.take(), Process::current()) {
            // Where this fails, too, the store's rules for unfinished uploads clean up.
            let _ = process.runtime.block_on(async { tokio::time::timeout(ABORT_TIME, multipart.abort()).await });
        }
    }
}

/// Writes an object, unless something has its name already: whether it has this content now, as `holds` says.
pub(super) fn write_new(
    path: &Path,
    location: &Location,
    content: &[u8],
    holds: impl Fn() -> Result<bool>,
) -> Result<bool> {
    let failed = |source| Error::Write { path: path.to_path_buf(), source };
    let payload = PutPayload::from(content.to_vec());
    let mut pauses = PAUSES.into_iter();
    loop {
        let put = request_or(location, content.len() as u64, |store| {
            let (key, payload, options) = (location.key.clone(), payload.clone(), PutOptions::from(PutMode::Create));
            async move { store.put_opts(&key, payload, options).await }
        });
        let taken = match put.map_err(failed)? {
            Ok(_) => return Ok(true),
            Err(error @ (StoreError::AlreadyExists { .. } | StoreError::Precondition { .. })) => error,
            Err(error) => return Err(failed(of_store(&error))),
        };
        // Perhaps by this very request, whose answer was lost on the way.
        match holds() {
            // Of those who write it at once, a store may turn away all but one before that one is done, which then may fail.
            Err(missing) if missing.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
        let pause = pauses.next().ok_or_else(|| failed(of_store(&taken)))?;
        std::thread::sleep(Duration::from_millis(pause));
    }
}
