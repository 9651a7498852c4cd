//! Which storage to read from, as a user names it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use forebay_storage::{AnyStorage, LocalStorage, Storage, Throttle, ThrottledStorage};

use crate::error::{Error, Result};

/// A storage by name: `local`, `direct`, `mmap`, a preset such as `ceph-hdd`, or `custom:…`. With each of them, a path that is a URL lies in the store that
/// it names.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StorageChoice {
    /// Local files through the page cache.
    Local,
    /// Local files past the page cache.
    Direct,
    /// Local files as memory.
    Mapped,
    /// Local files, slowed down to the figures of another storage.
    Throttled(Throttle),
}

impl StorageChoice {
    /// The storage, with a simulated page cache of so many bytes if it is a throttled one. (The others have a real one.)
    pub fn open(&self, page_cache_bytes: u64) -> Result<Arc<dyn Storage>> {
        Ok(match self {
            Self::Local => Arc::new(AnyStorage::new(LocalStorage::buffered())),
            Self::Direct => Arc::new(AnyStorage::new(LocalStorage::direct())),
            Self::Mapped => Arc::new(AnyStorage::new(LocalStorage::mapped())),
            Self::Throttled(throttle) => {
                let inner = Arc::new(AnyStorage::new(LocalStorage::buffered()));
                Arc::new(ThrottledStorage::new(inner, throttle.clone())?.with_page_cache(page_cache_bytes))
            }
        })
    }

    /// The same for reading what is cached nowhere, as of data that is larger than the memory: nothing that was read stays in the page cache.
    pub fn open_uncached(&self) -> Result<Arc<dyn Storage>> {
        match self {
            // Pages that are mapped stay.
            Self::Local | Self::Mapped => Ok(Arc::new(AnyStorage::new(LocalStorage::uncached()))),
            Self::Direct | Self::Throttled(_) => self.open(0),
        }
    }

    /// The same for measurements that read a few samples again and again, as if each time they were others: a file that begins again
    /// goes on.
    pub fn open_looping(&self) -> Result<Arc<dyn Storage>> {
        match self {
            Self::Throttled(throttle) => {
                let inner = Arc::new(AnyStorage::new(LocalStorage::buffered()));
                Ok(Arc::new(ThrottledStorage::new(inner, throttle.clone())?.with_loops()))
            }
            Self::Local | Self::Direct | Self::Mapped => self.open_uncached(),
        }
    }
}

impl FromStr for StorageChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "local" => Ok(Self::Local),
            "direct" => Ok(Self::Direct),
            "mmap" => Ok(Self::Mapped),
            other => Ok(Self::Throttled(Throttle::parse(other)?)),
        }
    }
}

impl fmt::Display for StorageChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Direct => "direct",
            Self::Mapped => "mmap",
            Self::Throttled(throttle) => &throttle.name,
        })
    }
}
