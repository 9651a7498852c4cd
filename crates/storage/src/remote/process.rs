//! What a process needs to talk to stores: one small runtime, and a client of each store.
//!
//! Neither survives a fork: the threads that do the work stay behind, and a child that used its parent's clients would wait for them
//! ever. So both belong to a process, and a child makes its own when it first needs them (`per_process.rs`).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::ObjectStore;
use tokio::runtime::{Builder, Runtime};

use super::connect::connect;
use super::failure::failure;
use super::gate::Gate;
use super::location::{Location, Settings};
use super::pace::Pace;
use crate::per_process::PerProcess;

/// The threads that talk to stores. Requests wait in threads of their own; these only transfer bytes.
const THREADS: usize = 2;

pub(super) struct Process {
    pub(super) runtime: Runtime,
    stores: Mutex<HashMap<(String, Settings), Store>>,
}

/// A store that is connected to.
#[derive(Debug, Clone)]
pub(super) struct Store {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) gate: Arc<Gate>,
    pub(super) pace: Arc<Pace>,
}

static PROCESSES: PerProcess<io::Result<Process>> = PerProcess::new();

impl Process {
    /// That of this process.
    pub(super) fn current() -> io::Result<&'static Self> {
        PROCESSES.get(Self::new).as_ref().map_err(|error| {
            let hint = "raise the limits of threads and open files (`ulimit -u`, `ulimit -n`)";
            failure(error.kind(), format!("no threads could be started: {error}"), hint)
        })
    }

    fn new() -> io::Result<Self> {
        // Whoever uses this library in a program of theirs may have chosen another one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("forebay-remote").enable_all().build()?;
        Ok(Self { runtime, stores: Mutex::default() })
    }

    /// The store of `location`, connected to on first use.
    pub(super) fn store(&self, location: &Location) -> io::Result<Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (location.base.clone(), location.settings.clone());
        if let Some(store) = stores.get(&name) {
            return Ok(store.clone());
        }
        let gate = Arc::new(Gate::new());
        let _within = self.runtime.enter();
        let objects = connect(location, &gate)?;
        let store = Store { objects, gate, pace: Arc::new(Pace::new()) };
        stores.insert(name, store.clone());
        Ok(store)
    }
}
