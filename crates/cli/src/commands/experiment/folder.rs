//! The folder of an experiment: its settings and its progress.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Common;
use super::planned::{Described, PlannedRun};
use crate::commands::is_regular;
use crate::commands::plan::read_profile;
use crate::error::{Error, Result};
use crate::output::write_inside;

/// What says which experiment a folder holds.
const FILE: &str = "experiment.json";

/// It is never near this size.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// An experiment as it is written down.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Written {
    version: u32,
    experiment: String,
    runs: Vec<Described>,
}

const VERSION: u32 = 1;

/// The folder, which holds nothing or this experiment.
pub(super) struct Folder {
    path: PathBuf,
    /// Held while the experiment runs.
    lock: Option<File>,
}

/// What is locked by the experiment that runs in a folder.
const LOCK_FILE: &str = ".lock";

impl Folder {
    /// Looks into the folder; another experiment is refused, or cleared away if that was asked for.
    pub(super) fn open(path: PathBuf, name: &str, runs: &[PlannedRun], common: &Common) -> Result<Self> {
        let file = path.join(FILE);
        if !file.exists() && holds_other_files(&path) {
            return Err(Error::usage(
                format!("`{}` holds other files, not an experiment", path.display()),
                "name another folder with --output",
            ));
        }
        let folder = Self { lock: if common.dry_run { None } else { Some(lock(&path)?) }, path };
        if !file.exists() {
            return Ok(folder);
        }
        if common.restart && !common.dry_run {
            return folder.clear().map(|()| folder);
        }
        let format = |problem: String| Error::Format { path: file.clone(), problem };
        let found: Written = serde_json::from_str(
            &forebay_storage::read_text(&file, FILE_BYTES_MAX).map_err(forebay_engine::Error::from)?,
        )
        .map_err(|error| format(format!("is not an experiment (--restart begins again): {error}")))?;
        if !common.restart && found != Written::new(name, runs, common)? {
            return Err(Error::usage(
                format!(
                    "`{}` holds an experiment `{}` with other settings or on other data",
                    folder.path.display(),
                    found.experiment
                ),
                "name another folder with --output, or pass --restart to replace it",
            ));
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the profile of run number `number` is.
    pub(super) fn profile_path(&self, number: usize, run: &PlannedRun) -> PathBuf {
        self.numbered(number, &run.name)
    }

    fn numbered(&self, number: usize, name: &str) -> PathBuf {
        self.path.join(format!("{:02}-{name}.json", number + 1))
    }

    /// Records the settings, so that the same command can resume the experiment.
    pub(super) fn begin(&self, name: &str, runs: &[PlannedRun], common: &Common) -> Result<()> {
        let text = serde_json::to_string_pretty(&Written::new(name, runs, common)?)
            .expect("an experiment has text keys and plain values");
        write_inside(&self.path.join(FILE), text.as_bytes())
    }

    /// Removes the profiles, and nothing else: the folder is the user's. What has a profile's name but cannot be read as one stays;
    /// it is measured again where it is in the way.
    fn clear(&self) -> Result<()> {
        for name in names(&self.path).iter().filter(|name| is_profile_name(name)) {
            let path = self.path.join(name);
            if is_regular(&path) && read_profile(&path).is_ok() {
                std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// What is in the folder; nothing where there is none.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether there is anything that no experiment left; what is hidden does not count.
fn holds_other_files(folder: &Path) -> bool {
    names(folder).iter().any(|name| !name.starts_with('.') && !is_profile_name(name))
}

/// `01-threads-4.json`
fn is_profile_name(name: &str) -> bool {
    let (number, rest) = name.split_once('-').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && rest.strip_suffix(".json").is_some()
}

fn lock(folder: &Path) -> Result<File> {
    std::fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    let path = folder.join(LOCK_FILE);
    forebay_storage::lock_file(&path).map_err(Error::io("lock", &path))?.ok_or_else(|| {
        Error::usage(
            format!("another experiment is running in `{}`", folder.display()),
            "wait for it, or name another folder with --output",
        )
    })
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Removed while it is held: the next process creates another one. It does no harm if it stays.
        if self.lock.is_some() {
            let _ = std::fs::remove_file(self.path.join(LOCK_FILE));
        }
    }
}

impl Written {
    fn new(name: &str, runs: &[PlannedRun], common: &Common) -> Result<Self> {
        let runs = runs.iter().map(|run| run.describe(common)).collect::<Result<_>>()?;
        Ok(Self { version: VERSION, experiment: name.to_owned(), runs })
    }
}
