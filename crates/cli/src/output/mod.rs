//! How the program speaks: data on standard output, everything else on standard error.

mod page;
mod progress;
mod style;
mod table;

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};

pub(crate) use page::Page;
pub(crate) use progress::Bars;
pub(crate) use style::Style;
pub(crate) use table::{Align, Table};

/// The width that text is made for.
const WIDTH_COLUMNS: usize = 80;

/// Where output goes and how it looks.
pub(crate) struct Output {
    json: bool,
    stdout_colours: bool,
    stderr_colours: bool,
}

impl Output {
    /// Output as the surroundings want it. Colours need a terminal, and respect `NO_COLOR` (see no-color.org) and `TERM=dumb`.
    pub(crate) fn new(json: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colours = !set("NO_COLOR") && !dumb;
        Self {
            json,
            stdout_colours: colours && io::stdout().is_terminal(),
            stderr_colours: colours && io::stderr().is_terminal(),
        }
    }

    /// A page of text for standard output.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.stdout_colours, WIDTH_COLUMNS)
    }

    /// Shows the outcome of a command: as JSON if that was asked for, else as the page that `show` makes.
    pub(crate) fn present<T: Serialize>(&self, outcome: &T, show: impl FnOnce(&T, &mut Page)) -> Result<()> {
        let text = if self.json {
            // A failure to serialise would be a mistake in the types of this program, which the tests would see.
            let mut text = serde_json::to_string_pretty(outcome).map_err(|error| Error::Output(error.into()))?;
            text.push('\n');
            text
        } else {
            let mut page = self.page();
            show(outcome, &mut page);
            page.into_text()
        };
        self.print(&text)
    }

    /// Writes to standard output as it is.
    #[expect(clippy::unused_self, reason = "whoever prints has an output in hand")]
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Output)
    }

    /// A bar, or now and then a line, on standard error.
    pub(crate) fn progress(&self) -> Bars {
        Bars::new(io::stderr().is_terminal(), self.stderr_colours)
    }

    /// Says on standard error what went wrong, and the remedy where there is one.
    pub(crate) fn error(&self, error: &Error) {
        let mut text = String::new();
        for (number, line) in error.to_string().lines().enumerate() {
            if number == 0 {
                text.push_str(&Style::Bad.paint("error: ", self.stderr_colours));
                text.push_str(line);
            } else if let Some(hint) = line.strip_prefix("hint: ") {
                text.push_str(&Style::Heading.paint("hint: ", self.stderr_colours));
                text.push_str(hint);
            } else {
                text.push_str(line);
            }
            text.push('\n');
        }
        if error.is_about_one_sample() {
            text.push_str(&Style::Heading.paint("hint: ", self.stderr_colours));
            text.push_str("pass --on-error skip to leave such samples out and list them\n");
        }
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Writes a file so that it is there whole or not at all, and makes its folder where it is missing.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    }
    let mut name = path.file_name().map(std::ffi::OsStr::to_owned).unwrap_or_default();
    name.push(format!(".partial-{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = std::fs::write(&temporary, content).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        Error::io("write", path)(source)
    })
}
