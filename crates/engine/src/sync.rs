//! Locks that survive a fork and do not poison.
//!
//! They are the standard library's. Those of `parking_lot` keep waiting threads in one table of the whole process: a child
//! that is forked while a loader runs inherits entries of threads that it does not have, and its own threads wait for ever
//! or trip over them. A panic while a lock is held is reported by whoever runs the thread, so poisoning adds nothing.
//!
//! In the unit tests of this crate they are shuttle's, and so are threads: whatever uses them runs under a scheduler that tries
//! out one interleaving after another (`load/model.rs`). Such a test must run within `modeled`.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Instant;
#[cfg(not(test))]
use std::{sync, thread};

#[cfg(test)]
use shuttle::{sync, thread};

pub(crate) use thread::{Builder as ThreadBuilder, JoinHandle, current as current_thread};

/// Runs a unit test that uses locks, under one interleaving.
#[cfg(test)]
pub(crate) fn modeled(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, 1);
}

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// Holds a [`Mutex`].
pub struct Guard<'a, T>(Option<sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        Guard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The lock, unless somebody holds it.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        match self.0.try_lock() {
            Ok(held) => Some(Guard(Some(held))),
            Err(TryLockError::Poisoned(poisoned)) => Some(Guard(Some(poisoned.into_inner()))),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("given away only while a condition is awaited")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("given away only while a condition is awaited")
    }
}

/// A condition that threads wait for.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition that nobody waits for yet.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Lets go of the lock until somebody notifies.
    pub fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        guard.0 = guard.0.take().map(|held| self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// The same, up to `deadline`.
    pub(crate) fn wait_until<T>(&self, guard: &mut Guard<'_, T>, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = |held| self.0.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        guard.0 = guard.0.take().map(wait);
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Wakes one of those that wait.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// A lock that many may read at once.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
