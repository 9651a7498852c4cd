//! How the program speaks: data on standard output, everything else on standard error.

pub(crate) mod as_text;
mod page;
mod progress;
mod quoted;
mod style;
mod table;
mod visible;

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};

pub(crate) use page::Page;
pub(crate) use progress::Bars;
pub(crate) use quoted::quoted;
pub(crate) use style::Style;
pub(crate) use table::{Align, Table};
pub(crate) use visible::visible;
use visible::visible_json;

/// The width that text is made for.
const WIDTH_COLUMNS: usize = 80;

/// Where output goes and how it looks.
pub(crate) struct Output {
    json: bool,
    stdout_colors: bool,
    stderr_colors: bool,
}

/// The outcome as a document.
fn json<T: Serialize>(outcome: &T) -> Result<String> {
    // A failure to serialize would be a mistake in the types of this program, which the tests would see.
    let mut text = serde_json::to_string_pretty(outcome).map_err(|error| Error::Output(error.into()))?;
    text.push('\n');
    Ok(visible_json(&text).into_owned())
}

impl Output {
    /// Output as the surroundings want it. Colors need a terminal, and respect `NO_COLOR` (see no-color.org) and `TERM=dumb`.
    pub(crate) fn new(json: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colors = !set("NO_COLOR") && !dumb;
        Self {
            json,
            stdout_colors: colors && io::stdout().is_terminal(),
            stderr_colors: colors && io::stderr().is_terminal(),
        }
    }

    /// A page of text for standard output.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.stdout_colors, WIDTH_COLUMNS)
    }

    /// Shows the outcome of a command: as JSON if that was asked for, else as the page that `show` makes.
    pub(crate) fn present<T: Serialize>(&self, outcome: &T, show: impl FnOnce(&T, &mut Page)) -> Result<()> {
        if self.json {
            return self.print(&json(outcome)?);
        }
        let mut page = self.page();
        show(outcome, &mut page);
        self.print(&page.into_text())
    }

    /// The same of a command that makes a text for another program, which is printed as it is.
    pub(crate) fn present_text<T: Serialize>(&self, outcome: &T, text: impl FnOnce(&T) -> &str) -> Result<()> {
        if self.json { self.print(&json(outcome)?) } else { self.print(text(outcome)) }
    }

    /// Writes to standard output as it is.
    #[expect(clippy::unused_self, reason = "printing requires an output")]
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Output)
    }

    /// A bar, or now and then a line, on standard error.
    pub(crate) fn progress(&self) -> Bars {
        Bars::new(io::stderr().is_terminal(), self.stderr_colors)
    }

    /// Warns on standard error about a probable mistake; the work continues.
    pub(crate) fn warn(&self, text: &str) {
        let label = Style::Heading.paint("warning: ", self.stderr_colors);
        let _ = writeln!(io::stderr().lock(), "{label}{}", visible(text));
    }

    /// Says on standard error what went wrong, and the remedy where there is one: `when_full` where a disk is full.
    pub(crate) fn error(&self, error: &Error, when_full: &str) {
        let mut text = String::new();
        let label = if matches!(error, Error::Interrupted(_)) { "" } else { "error: " };
        let mut message = error.to_string();
        if error.is_disk_full() {
            // What was written knows less of the remedy than the command does.
            message.truncate(message.find("\nhint: ").unwrap_or(message.len()));
            message.push_str("\nhint: ");
            message.push_str(when_full);
        }
        for (number, line) in message.lines().enumerate() {
            let line = &*visible(line);
            if number == 0 {
                text.push_str(&Style::Bad.paint(label, self.stderr_colors));
                text.push_str(line);
            } else if let Some(hint) = line.strip_prefix("hint: ") {
                text.push_str(&Style::Heading.paint("hint: ", self.stderr_colors));
                text.push_str(hint);
            } else {
                text.push_str(line);
            }
            text.push('\n');
        }
        if error.is_about_one_sample() {
            text.push_str(&Style::Heading.paint("hint: ", self.stderr_colors));
            text.push_str("pass --on-error skip to skip and list such samples\n");
        }
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// An error if two of these, each with what names it on the command line, are the same file.
pub(crate) fn all_different(files: &[(&str, &Path)]) -> Result<()> {
    let resolved = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or(path.to_owned());
    for (number, (name, path)) in files.iter().enumerate() {
        let twin = files[..number].iter().find(|(_, other)| resolved(other) == resolved(path));
        if let Some((other, _)) = twin.filter(|_| !is_special(path)) {
            return Err(Error::usage(
                format!("{other} and {name} are both `{}`", path.display()),
                "pass a different file for each",
            ));
        }
    }
    Ok(())
}

/// Whether there is something at `path` that is neither a file nor a folder: a pipe, a terminal, a device.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Writes a file that the user named atomically, and creates its folder if it is missing. Where a link
/// is, what it leads to is written: that is the user's word. A pipe or a device is written to as it is.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    if is_special(path) {
        let opened = std::fs::OpenOptions::new().write(true).open(path);
        return opened.and_then(|mut file| file.write_all(content)).map_err(Error::io("write", path));
    }
    let target = if path.is_symlink() { path.canonicalize().ok() } else { None };
    write_inside(target.as_deref().unwrap_or(path), content)
}

/// The same for a file whose name is ours, in a folder that the user named. A link of that name is replaced, and what it leads to
/// stays: whoever made the folder must not decide where else is written.
pub(crate) fn write_inside(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    }
    let mut name = path.file_name().map(std::ffi::OsStr::to_owned).unwrap_or_default();
    // Two programs that write the same file at once do not share what is half-written.
    name.push(".partial-");
    sweep(folder.unwrap_or(Path::new(".")), &name.to_string_lossy());
    name.push(std::process::id().to_string());
    forebay_storage::write_whole(path, &path.with_file_name(name), content).map_err(Error::io("write", path))
}

/// Removes what processes that were killed left in `folder`: files named `prefix` and the number of a process that is gone.
fn sweep(folder: &Path, prefix: &str) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
