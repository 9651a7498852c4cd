//! A folder of a storage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{AnyStorage, LocalStorage, Storage};

/// A folder in a storage: the location of a source, a data set or the journal of a build. A path alone means a folder of this machine, or of
/// a store where it is a URL.
#[derive(Debug, Clone)]
pub struct Folder {
    storage: Arc<dyn Storage>,
    path: PathBuf,
}

impl Folder {
    /// The folder `path` of `storage`.
    pub fn new(storage: Arc<dyn Storage>, path: impl Into<PathBuf>) -> Self {
        Self { storage, path: path.into() }
    }

    /// The storage.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Its path there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of this name in it.
    #[must_use]
    pub fn folder(&self, name: impl AsRef<Path>) -> Self {
        Self { storage: Arc::clone(&self.storage), path: self.path.join(name) }
    }

    /// The path of the file of this name in it.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Folder {
    fn from(path: &P) -> Self {
        Self::new(Arc::new(AnyStorage::new(LocalStorage::buffered())), path.as_ref())
    }
}
