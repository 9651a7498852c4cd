//! An object that is written.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use object_store::{Error as StoreError, MultipartUpload, ObjectStoreExt, PutMultipartOptions, PutPayload};
use tokio::task::JoinHandle;

use super::failure::{failure, of_store, too_slow};
use super::location::Location;
use super::process::Process;
use super::request::{request, time_for};
use crate::{Error, Result, Upload};

/// An object of more is sent in parts of this size. Stores take at least 5 MiB, and some want all parts alike.
const PART_BYTES: usize = 8 << 20;
/// So many parts are under way at once.
const PARTS_IN_FLIGHT: usize = 4;
/// How long giving up may take.
const ABORT_TIME: Duration = Duration::from_secs(10);

/// An object that is being written: it is there once it is committed.
pub(super) struct RemoteUpload {
    path: PathBuf,
    location: Location,
    /// What was not sent yet.
    rest: Vec<u8>,
    /// Begun when there is more than one part; `None` again once it is whole.
    multipart: Option<Box<dyn MultipartUpload>>,
    /// Parts on their way, the oldest first.
    parts: VecDeque<JoinHandle<io::Result<()>>>,
}

impl RemoteUpload {
    pub(super) fn new(path: &Path, location: Location) -> Self {
        Self { path: path.to_path_buf(), location, rest: Vec::new(), multipart: None, parts: VecDeque::new() }
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
        match completed {
            Ok(Ok(_)) => Ok(()),
            failed => {
                // What is left of it is given up when this is dropped.
                self.multipart = Some(multipart);
                Err(failed.map_or_else(
                    |_| too_slow(time),
                    |done| done.map_or_else(|error| of_store(&error), |_| too_slow(time)),
                ))
            }
        }
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

/// Whether a store said that something has the name already.
pub(super) fn is_taken(error: &StoreError) -> bool {
    matches!(error, StoreError::AlreadyExists { .. } | StoreError::Precondition { .. })
}
