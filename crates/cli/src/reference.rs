//! The reference of all commands as a page of the documentation, `docs/cli.md`, from the definitions that `--help` is made of.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::arguments::Cli;

const HEAD: &str = "\
# Commands

<!-- `make cli-reference` writes this page from what the program says of itself; a test compares the two. -->

What `forebay COMMAND --help` says, on one page. Python's functions have the same names and arguments: see [Python](python.md).

";

/// Options that every command has: they are described once, for the program.
const EVERYWHERE: [&str; 3] = ["help", "json", "version"];

/// The page.
pub fn reference() -> String {
    let mut program = Cli::command();
    program.build();
    let mut page = HEAD.to_owned();
    page.push_str("| command | what it does |\n|---|---|\n");
    for command in commands(&program) {
        let name = command.get_name();
        let about = command.get_about().map_or_else(String::new, |about| escaped(&about.to_string()));
        let _ = writeln!(page, "| [`{name}`](#forebay-{name}) | {about} |");
    }
    page.push('\n');
    describe(&mut page, &program, 2);
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The commands below a command, but for the one that prints help.
fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set())
}

fn describe(page: &mut String, command: &Command, level: usize) {
    let is_program = level == 2;
    let _ = writeln!(page, "{} `{}`\n", "#".repeat(level), command.get_bin_name().unwrap_or(command.get_name()));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(page, "{}\n", escaped(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim());
    let is_told =
        |argument: &&Arg| !argument.is_hide_set() && (is_program || !EVERYWHERE.contains(&argument.get_id().as_str()));
    list(page, "Arguments", command.get_positionals().filter(is_told));
    let options: Vec<&Arg> = command.get_arguments().filter(|a| !a.is_positional()).filter(is_told).collect();
    let mut headings: Vec<Option<&str>> = vec![None];
    for option in &options {
        if !headings.contains(&option.get_help_heading()) {
            headings.push(option.get_help_heading());
        }
    }
    for heading in headings {
        let under = options.iter().copied().filter(|option| option.get_help_heading() == heading);
        list(page, heading.unwrap_or("Options"), under);
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = writeln!(page, "```text\n{}\n```\n", after.to_string().trim_end());
    }
    for below in commands(command) {
        describe(page, below, level + 1);
    }
}

fn list<'a>(page: &mut String, heading: &str, arguments: impl Iterator<Item = &'a Arg>) {
    let mut arguments = arguments.peekable();
    if arguments.peek().is_none() {
        return;
    }
    let _ = writeln!(page, "**{heading}**\n");
    for argument in arguments {
        let help = argument.get_long_help().or(argument.get_help()).map_or_else(String::new, ToString::to_string);
        let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        let default = match &defaults[..] {
            [_, ..] if takes_values(argument) && !argument.is_hide_default_value_set() => {
                format!(" [default: {}]", defaults.join(","))
            }
            _ => String::new(),
        };
        let _ = writeln!(page, "- `{}`: {}{default}", spelled(argument), escaped(&help).replace('\n', " "));
        for value in argument.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map_or_else(String::new, |help| format!(": {}", escaped(&help.to_string())));
            let _ = writeln!(page, "  - `{}`{help}", value.get_name());
        }
    }
    page.push('\n');
}

fn takes_values(argument: &Arg) -> bool {
    argument.is_positional() || matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// An option as it is typed: `-o, --output <FILE>`.
fn spelled(argument: &Arg) -> String {
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|name| format!("--{name}"));
    let mut text = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if takes_values(argument) {
        let names = argument.get_value_names().unwrap_or_default();
        for name in names {
            let space = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{space}<{name}>");
        }
    }
    text
}

/// What a browser would take for a tag, outside of code.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}
