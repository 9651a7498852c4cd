//! Commands that are printed to be typed.

use std::fmt::Display;

/// An argument, quoted for a shell.
pub(crate) fn quoted(argument: impl Display) -> String {
    let argument = argument.to_string();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=,@%+".contains(letter);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}
