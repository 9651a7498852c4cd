//! The components that change and cut text: `normalizer` and `pre_tokenizer`.

use serde_json::Value;

use super::{FORMAT, missing, text_of, unsupported, within};
use crate::error::{Error, Result};
use crate::text::base64;
use crate::text::byte_level::TOKEN_BYTES_MAX;
use crate::text::charsmap::Charsmap;
use crate::text::cut::{Cut, SPACE_SIGN};
use crate::text::normalize::{Change, Form};
use crate::text::split::Pattern;

/// The patterns that are done by hand, as tokenizer files spell them.
const PATTERNS: [(&str, Pattern); 4] = [
    (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", Pattern::Gpt2),
    (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", Pattern::Gpt2),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::Cl100k { digits_max: 3 },
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::Cl100k { digits_max: 1 },
    ),
];

/// Components may hold a sequence of others, which no true file nests.
const SEQUENCE_DEPTH_MAX: usize = 4;

/// The most changes one after the other; those in use have a handful.
const CHANGES_MAX: usize = 64;

/// How many times as long a text may become. Changes multiply what each of them does: a dozen that double a letter would
/// make a page of it, and a hundred more than there is memory.
const GROWTH_MAX: usize = 1 << 12;

/// The most cuts one after the other, each of which is a call within another; those in use have one or two.
const CUTS_MAX: usize = 16;

pub(super) fn normalizer(component: &Value, changes: &mut Vec<Change>) -> Result<()> {
    normalizer_within(component, changes, 0)?;
    check_changes(changes)
}

/// Whether what is done to a text takes reasonable time and memory.
fn check_changes(changes: &[Change]) -> Result<()> {
    let longest = changes.iter().map(|change| change.prefix().len()).max().unwrap_or(0);
    let growth = changes.iter().fold(1, |product: usize, change| product.saturating_mul(change.growth()));
    within("number of changes of a text", changes.len(), CHANGES_MAX)?;
    within("bytes to be put before a text", longest, TOKEN_BYTES_MAX)?;
    within("growth of a text by its changes", growth, GROWTH_MAX)
}

fn normalizer_within(component: &Value, changes: &mut Vec<Change>, depth: usize) -> Result<()> {
    const NAME: &str = "normalizer";
    if component.is_null() {
        return Ok(());
    }
    let flag = |key: &str| component[key].as_bool().ok_or_else(|| missing(NAME, key));
    changes.push(match text_of(component, NAME, "type")? {
        "Sequence" if depth < SEQUENCE_DEPTH_MAX => {
            let members = component["normalizers"].as_array().ok_or_else(|| missing(NAME, "normalizers"))?;
            return members.iter().try_for_each(|member| normalizer_within(member, changes, depth + 1));
        }
        "NFC" => Change::Form(Form::Nfc),
        "NFD" => Change::Form(Form::Nfd),
        "NFKC" => Change::Form(Form::Nfkc),
        "NFKD" => Change::Form(Form::Nfkd),
        "Lowercase" => Change::Lowercase,
        "Strip" => Change::Strip { left: flag("strip_left")?, right: flag("strip_right")? },
        "Prepend" => Change::Prepend { text: text_of(component, NAME, "prepend")?.to_owned() },
        "Replace" => replace(component)?,
        "Precompiled" => {
            let blob = base64::decode(text_of(component, NAME, "precompiled_charsmap")?.as_bytes());
            let blob = blob.ok_or_else(|| Error::format(FORMAT, "`precompiled_charsmap` is not Base64"))?;
            Change::Charsmap(Charsmap::new(FORMAT, &blob)?)
        }
        other => return Err(unsupported(format!("normalizer `{other}`"))),
    });
    Ok(())
}

fn replace(component: &Value) -> Result<Change> {
    let to = text_of(component, "normalizer", "content")?.to_owned();
    let pattern = &component["pattern"];
    match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
        (Some(from), _) if !from.is_empty() => Ok(Change::Replace { from: from.to_owned(), to }),
        (None, Some(" {2,}")) => Ok(Change::ReplaceSpaceRuns { to }),
        (None, Some(other)) => Err(unsupported(format!("normalizer `Replace` with the pattern `{other}`"))),
        _ => Err(missing("normalizer", "pattern")),
    }
}

/// Adds the cuts, and the changes that come before them; returns whether the model works on bytes.
pub(super) fn pre_tokenizer(component: &Value, changes: &mut Vec<Change>, cuts: &mut Vec<Cut>) -> Result<bool> {
    let mut bytes = false;
    pre_tokenizer_within(component, changes, cuts, &mut bytes, 0)?;
    check_changes(changes)?;
    within("number of cuts of a text", cuts.len(), CUTS_MAX)?;
    Ok(bytes)
}

fn pre_tokenizer_within(
    component: &Value,
    changes: &mut Vec<Change>,
    cuts: &mut Vec<Cut>,
    bytes: &mut bool,
    depth: usize,
) -> Result<()> {
    const NAME: &str = "pre_tokenizer";
    if component.is_null() {
        return Ok(());
    }
    let flag = |key: &str, default: bool| component[key].as_bool().unwrap_or(default);
    match text_of(component, NAME, "type")? {
        "Sequence" if depth < SEQUENCE_DEPTH_MAX => {
            let members = component["pretokenizers"].as_array().ok_or_else(|| missing(NAME, "pretokenizers"))?;
            for member in members {
                pre_tokenizer_within(member, changes, cuts, bytes, depth + 1)?;
            }
        }
        "ByteLevel" => {
            if flag("add_prefix_space", true) {
                change_first(Change::PrependUnlessThere { text: " ".to_owned(), first_only: false }, changes, cuts)?;
            }
            if flag("use_regex", true) {
                cuts.push(Cut::Pattern(Pattern::Gpt2));
            }
            *bytes = true;
        }
        "Metaspace" => {
            let sign = text_of(component, NAME, "replacement")?;
            if sign != SPACE_SIGN.to_string() {
                return Err(unsupported(format!("pre_tokenizer `Metaspace` with the replacement `{sign}`")));
            }
            change_first(Change::Replace { from: " ".to_owned(), to: sign.to_owned() }, changes, cuts)?;
            // Files from before the scheme have a switch.
            let old = if flag("add_prefix_space", true) { "always" } else { "never" };
            let scheme = component["prepend_scheme"].as_str().unwrap_or(old);
            if scheme != "never" {
                let first_only = scheme == "first";
                changes.push(Change::PrependUnlessThere { text: sign.to_owned(), first_only });
            }
            if flag("split", true) {
                cuts.push(Cut::BeforeSpaceSigns);
            }
        }
        "Digits" => cuts.push(Cut::Numbers { each: flag("individual_digits", false) }),
        "Split" => cuts.push(Cut::Pattern(split(component)?)),
        other => return Err(unsupported(format!("pre_tokenizer `{other}`"))),
    }
    Ok(())
}

/// What changes the text must come first: after a cut, it would have to be done to every word.
fn change_first(change: Change, changes: &mut Vec<Change>, cuts: &[Cut]) -> Result<()> {
    if !cuts.is_empty() {
        return Err(unsupported("pre_tokenizer `Sequence` that changes the text after cutting it"));
    }
    changes.push(change);
    Ok(())
}

fn split(component: &Value) -> Result<Pattern> {
    let Some(pattern) = component["pattern"]["Regex"].as_str() else {
        return Err(unsupported("pre_tokenizer `Split` with a pattern that is no `Regex`"));
    };
    let Some((_, known)) = PATTERNS.iter().find(|(text, _)| *text == pattern) else {
        return Err(unsupported(format!("pre_tokenizer `Split` with the pattern `{pattern}`")));
    };
    // The patterns match everything, so what is between matches is nothing, and it is all one whether that is removed.
    match (component["behavior"].as_str(), component["invert"].as_bool().unwrap_or(false)) {
        (Some("Isolated"), _) | (Some("Removed"), true) => Ok(*known),
        (behavior, invert) => {
            let behavior = behavior.unwrap_or("none");
            Err(unsupported(format!("pre_tokenizer `Split` with behavior `{behavior}` and invert `{invert}`")))
        }
    }
}
