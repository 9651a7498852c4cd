//! `forebay man`: the manual page of the program, or of one command.

use clap::{Args, CommandFactory};
use clap_mangen::Man;
use serde::Serialize;

use crate::arguments::Cli;
use crate::error::{Error, Result};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  forebay man > forebay.1
  forebay man profile | man -l -";

/// Print a manual page
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Command to describe [default: the whole program]
    command: Option<String>,
}

/// What `man --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    name: String,
    page: String,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let mut whole = Cli::command();
    whole.build();
    let command = match &arguments.command {
        None => whole,
        Some(name) => {
            let names: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
            let unknown = || {
                Error::usage(format!("there is no command `{name}`"), format!("expected one of {}", names.join(", ")))
            };
            whole.get_subcommands().find(|command| command.get_name() == name).ok_or_else(unknown)?.clone()
        }
    };
    let name = command.get_display_name().unwrap_or("forebay").to_owned();
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(Error::Output)?;
    let page = String::from_utf8_lossy(&page).into_owned();
    output.present_text(&Outcome { name, page }, |outcome| &outcome.page)
}
