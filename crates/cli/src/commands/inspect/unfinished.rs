//! A build that is not finished.

use std::path::{Path, PathBuf};

use forebay_engine::build::{Resume, Unfinished};
use forebay_plan::units;
use serde::Serialize;

use crate::error::Result;
use crate::output::{Page, quoted};

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    strategy: String,
    /// The total number of shards, and the number of finished ones.
    shards: usize,
    shards_done: usize,
    samples_done: u64,
    bytes_done: u64,
    /// Whether it is running now.
    running: bool,
    /// The command that resumes it, if known, and the folder to run it in.
    command: Option<String>,
    command_folder: Option<String>,
}

pub(super) fn inspect(path: &Path) -> Result<Option<Found>> {
    Ok(Unfinished::find(path)?.map(|found| Found {
        path: path.to_owned(),
        strategy: found.strategy,
        shards: found.shards,
        shards_done: found.shards_done,
        samples_done: found.samples_done,
        bytes_done: found.bytes_done,
        running: found.running,
        command: found.resume.as_ref().map(command),
        command_folder: found.resume.map(|resume| resume.folder),
    }))
}

/// The command line to type. It always begins with the program and its subcommand, whatever the folder says, since the folder may be untrusted.
fn command(resume: &Resume) -> String {
    let arguments = resume.arguments.strip_prefix(&["build".to_owned()]).unwrap_or(&resume.arguments);
    let arguments = arguments.iter().map(quoted);
    ["forebay".to_owned(), "build".to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

impl Found {
    pub(super) fn show(&self, page: &mut Page) {
        page.facts(&[
            ("unfinished build", self.path.display().to_string()),
            ("keeps", self.strategy.clone()),
            (
                "shards",
                format!("{} of {} are done", units::count(self.shards_done as u64), units::count(self.shards as u64)),
            ),
            ("samples", format!("{} so far", units::count(self.samples_done))),
            ("size", format!("{} so far", units::bytes(self.bytes_done as f64))),
            ("state", if self.running { "running now" } else { "stopped" }.to_owned()),
        ]);
        match (&self.command, &self.command_folder) {
            _ if self.running => {}
            (Some(command), Some(folder)) => page.next_step(&format!("Go on with it, in {folder}:"), command),
            _ => {
                page.gap();
                page.paragraph("To resume, run the same build again: finished shards are kept.");
            }
        }
    }
}
