//! The `forebay` program, as a function: the only crate that prints. `main.rs` calls it, and so does the command that the Python package installs.
//!
//! Each command is one file under `commands/`: it reads its arguments, calls the engine or the planner, and presents what came
//! back, as text for people or (with `--json`) as one document for programs. Data goes to standard output, everything else
//! to standard error. The exit code is decided here: 0 for success, 1 where the work failed, 2 where the request itself
//! was wrong (it names a path that is not there, for instance), 130 after Ctrl-C.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod error;
mod file_list;
mod foreign_names;
mod interrupt;
mod output;
mod reference;
mod sampling;

use std::ffi::OsString;

use clap::Parser;

use crate::arguments::Cli;
pub use crate::foreign_names::meant_argument;
use crate::output::Output;
pub use crate::reference::reference;

/// Runs the command line, whose first argument is the program's name; the exit code. A command line that makes no sense, `--help` and
/// `--version` end the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli =
        Cli::try_parse_from(&arguments).unwrap_or_else(|error| foreign_names::with_hint(error, &arguments).exit());
    let output = Output::new(cli.json);
    // Without them a signal does what it always did.
    let _ = interrupt::install();
    match commands::run(&cli.command, &output) {
        Ok(()) => 0,
        // Whoever reads the output has seen enough (`forebay inspect cv | head -3`). Files are written before printing.
        Err(error) if error.is_broken_pipe() => 0,
        Err(error) => {
            output.error(&error, commands::when_full(&cli.command));
            error.exit_code()
        }
    }
}
