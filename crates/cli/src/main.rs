//! The `forebay` program: see the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Running out of memory ends the work with an error, not the process.
#[global_allocator]
static ALLOCATOR: forebay_allocator::Allocator = forebay_allocator::Allocator;

fn main() -> ExitCode {
    ExitCode::from(forebay_cli::run(std::env::args_os()))
}
