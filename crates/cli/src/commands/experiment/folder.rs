//! The folder of an experiment: what it is, and what is done of it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Common;
use super::planned::{Described, PlannedRun};
use crate::commands::read_text;
use crate::error::{Error, Result};
use crate::output::write_file;

/// What says which experiment a folder holds.
const FILE: &str = "experiment.json";

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
}

impl Folder {
    /// Looks into the folder; another experiment is refused, or cleared away if that was asked for.
    pub(super) fn open(path: PathBuf, name: &str, runs: &[PlannedRun], common: &Common) -> Result<Self> {
        let folder = Self { path };
        let file = folder.path.join(FILE);
        if !file.exists() {
            return Ok(folder);
        }
        let format = |problem: String| Error::Format { path: file.clone(), problem };
        let found: Written = serde_json::from_str(&read_text("read the experiment", &file)?)
            .map_err(|error| format(format!("is no experiment: {error}")))?;
        if common.restart && !common.dry_run {
            return folder.clear(&found).map(|()| folder);
        }
        if !common.restart && found != Written::new(name, runs, common)? {
            return Err(Error::usage(
                format!("`{}` holds an experiment `{}` with other settings", folder.path.display(), found.experiment),
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

    /// Writes down what is being done, so that the same command goes on with it.
    pub(super) fn begin(&self, name: &str, runs: &[PlannedRun], common: &Common) -> Result<()> {
        let text = serde_json::to_string_pretty(&Written::new(name, runs, common)?)
            .expect("an experiment has text keys and plain values");
        write_file(&self.path.join(FILE), text.as_bytes())
    }

    /// Removes the profiles of `written`, and nothing else: the folder is the user's.
    fn clear(&self, written: &Written) -> Result<()> {
        for (number, run) in written.runs.iter().enumerate() {
            let path = self.numbered(number, run.file_name());
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Written {
    fn new(name: &str, runs: &[PlannedRun], common: &Common) -> Result<Self> {
        let runs = runs.iter().map(|run| run.describe(common)).collect::<Result<_>>()?;
        Ok(Self { version: VERSION, experiment: name.to_owned(), runs })
    }
}
