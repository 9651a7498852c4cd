//! `forebay completions`: what a shell needs to complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde::Serialize;

use crate::arguments::Cli;
use crate::error::Result;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  forebay completions bash > ~/.local/share/bash-completion/completions/forebay
  forebay completions zsh > ~/.zfunc/_forebay
  forebay completions fish > ~/.config/fish/completions/forebay.fish";

/// Print the completion script for a shell
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell to complete for
    shell: Shell,
}

/// What `completions --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    shell: String,
    script: String,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "forebay", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    output.present_text(&Outcome { shell: arguments.shell.to_string(), script }, |outcome| &outcome.script)
}
