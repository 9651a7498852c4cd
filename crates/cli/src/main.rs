//! The `forebay` program: the only room that prints.
//!
//! Each command is one file under `commands/`: it reads its arguments, calls the engine or the planner, and presents what came
//! back, as text for people or (with `--json`) as one document for programs. Data goes to standard output, everything else
//! to standard error. The exit code is decided here: 0 for success, 1 where the work failed, 2 where the request itself
//! was wrong (it names a path that is not there, for instance), 130 after Ctrl-C.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod demo;
mod error;
mod file_list;
mod interrupt;
mod output;
mod report;

use std::process::ExitCode;

use clap::Parser;
use forebay_allocator::Allocator;

use crate::arguments::Cli;
use crate::output::Output;

/// Running out of memory ends the work with an error, not the process.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.json);
    // Without them a signal does what it always did.
    let _ = interrupt::install();
    match commands::run(&cli.command, &output) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough (`forebay inspect cv | head -3`). Files are written before printing.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error, commands::when_full(&cli.command));
            ExitCode::from(error.exit_code())
        }
    }
}
