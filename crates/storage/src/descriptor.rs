//! The files of this machine that are open: fewer than the process may have open.
//!
//! A data set may have more shards than that (1,024 is usual), and whoever reads it keeps all of them. So a file that is open is closed where
//! others need its place, the one that was not read for longest first, and is opened again by its next read.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{self, Mode, OFlags, Statx};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::per_process::PerProcess;

/// One in so many of the files that the process may have open is one that is read here: the program around wants some, and so do processes
/// that are forked of it, which inherit all that are open.
const SHARE: u64 = 4;

/// Some are open at once however few may be, and no more than this are kept open: opening one again is cheap.
const OPEN_MIN: u64 = 4;
const OPEN_MAX: u64 = 4096;

/// What is open, the next to be closed first. A child has a list of its own; what it inherits stays open.
static OPEN: PerProcess<Mutex<VecDeque<Weak<Slot>>>> = PerProcess::new();

/// A file to be read, open or not.
#[derive(Debug)]
pub(crate) struct Descriptor {
    path: PathBuf,
    /// Its size and when it was written, by which a file of its name is known to be the same.
    version: (u64, i64, u32),
    slot: Arc<Slot>,
}

#[derive(Debug)]
struct Slot {
    /// Never locked while the system does something that may take long: a fork might copy it so.
    open: Mutex<Option<Arc<OwnedFd>>>,
    /// Whether it was read since it was last looked at.
    used: AtomicBool,
}

impl Descriptor {
    /// That of the file at `path`, which is open.
    pub(crate) fn new(path: &Path, open: OwnedFd, status: &Statx) -> Self {
        let slot = Arc::new(Slot { open: Mutex::new(Some(Arc::new(open))), used: AtomicBool::new(false) });
        keep(&slot, open_max());
        // The program may go to another folder before it is opened again.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Self { path, version: version(status), slot }
    }

    /// What to read by; it stays open until it is dropped. A file that was closed is opened again, with these flags besides.
    pub(crate) fn get(&self, extra: OFlags) -> io::Result<Arc<OwnedFd>> {
        self.slot.used.store(true, Ordering::Relaxed);
        if let Some(open) = &*self.slot.lock() {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(open_descriptor(&self.path, extra)?);
        let found = fs::statx(&*open, c"", fs::AtFlags::EMPTY_PATH, fs::StatxFlags::SIZE | fs::StatxFlags::MTIME)?;
        if version(&found) != self.version {
            return Err(io::Error::other("it was changed after it was opened"));
        }
        *self.slot.lock() = Some(Arc::clone(&open));
        keep(&self.slot, open_max());
        Ok(open)
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn version(status: &Statx) -> (u64, i64, u32) {
    (status.stx_size, status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec)
}

/// How many files are kept open.
fn open_max() -> usize {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (allowed / SHARE).clamp(OPEN_MIN, OPEN_MAX) as usize
}

/// Notes that a file is open, and closes others until there are no more than `open_max`.
fn keep(slot: &Arc<Slot>, open_max: usize) {
    let mut open = list();
    open.push_back(Arc::downgrade(slot));
    while open.len() > open_max {
        let Some(slot) = open.pop_front().and_then(|slot| slot.upgrade()) else { continue };
        // One that was read since it was last looked at stays for another round.
        if slot.used.swap(false, Ordering::Relaxed) {
            open.push_back(Arc::downgrade(&slot));
        } else {
            slot.lock().take();
        }
    }
}

/// Closes all that are not being read at this moment; says whether there were any.
fn close_all() -> bool {
    let all: Vec<Arc<Slot>> = list().drain(..).filter_map(|slot| slot.upgrade()).collect();
    all.iter().filter(|slot| slot.lock().take().is_some()).count() > 0
}

fn list() -> MutexGuard<'static, VecDeque<Weak<Slot>>> {
    OPEN.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens for reading. `NONBLOCK` changes nothing for regular files, but opening a pipe would otherwise wait for a writer. Where too many files are
/// open, those that can be opened again make room.
pub(crate) fn open_descriptor(path: &Path, extra: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut makes_room = true;
    loop {
        match fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | extra, Mode::empty()) {
            Err(Errno::INTR) => {}
            Err(Errno::MFILE | Errno::NFILE) if makes_room && close_all() => makes_room = false,
            result => return result,
        }
    }
}
