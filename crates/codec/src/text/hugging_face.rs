//! Hugging Face's `tokenizer.json`.
//!
//! The file is a chain of named components: `added_tokens`, `normalizer`, `pre_tokenizer`, `model`, and two that come after
//! the model. What is done here is what `encode(text, add_special_tokens=False)` does there, so `post_processor`,
//! `truncation` and `padding` have no effect, and `decoder` is not needed. A component that is not handled is refused by
//! its name.

mod model;
mod text;

use serde_json::Value;

use super::added::{AddedToken, AddedTokens};
use super::byte_level::check_id;
use super::cut::Cut;
use super::normalize::{Change, NormalizeScratch, Normalizer};
use super::tokenizer::{Parts, Tokenizer};
use crate::error::{Error, Result};

const FORMAT: &str = "tokenizer.json";

impl Tokenizer {
    /// The tokenizer of a Hugging Face `tokenizer.json`: byte-pair encodings and unigram models. Special tokens that stand
    /// in a text are tokens, and none are put around it.
    pub fn from_hugging_face(json: &[u8]) -> Result<Self> {
        let file: Value = serde_json::from_slice(json).map_err(|error| Error::Format {
            format: FORMAT,
            problem: format!("it is not JSON: {error}").into(),
            offset: None,
            truncated: false,
            source: Some(Box::new(error)),
        })?;
        let mut normalizer = Normalizer::default();
        text::normalizer(&file["normalizer"], &mut normalizer.changes)?;
        let mut prefix = Normalizer::default();
        let mut cuts = Vec::new();
        let bytes = text::pre_tokenizer(&file["pre_tokenizer"], &mut prefix.changes, &mut cuts)?;
        let mut loaded = model::model(&file["model"], bytes)?;
        let [added, added_normalized] = added_tokens(&file["added_tokens"], &normalizer, &mut loaded)?;
        if cuts.is_empty() && loaded.keeps_words_apart {
            cuts.push(Cut::BeforeSpaceSignRuns);
        }
        let mut changes = normalizer.changes.iter().chain(&prefix.changes);
        let space_before =
            changes.any(|change| matches!(change, Change::Prepend { .. } | Change::PrependUnlessThere { .. }));
        Ok(Self::from_parts(Parts {
            added,
            normalizer,
            added_normalized,
            prefix,
            cuts,
            model: loaded.model,
            tokens: loaded.tokens,
            join_unknown: None,
            space_before,
        }))
    }
}

/// Those that are looked for in the text as it is, and those looked for when it has been normalized.
fn added_tokens(list: &Value, normalizer: &Normalizer, loaded: &mut model::Loaded) -> Result<[AddedTokens; 2]> {
    let mut found = [Vec::new(), Vec::new()];
    for token in list.as_array().into_iter().flatten() {
        let content = text_of(token, "added_tokens", "content")?;
        let id = token["id"].as_u64().ok_or_else(|| missing("added_tokens", "id"))?;
        check_id(usize::try_from(id).unwrap_or(usize::MAX))?;
        let flag = |name: &str| token[name].as_bool().unwrap_or(false);
        if flag("single_word") {
            return Err(unsupported("added_tokens with `single_word`"));
        }
        let late = flag("normalized") && !normalizer.is_empty();
        let mut scratch = NormalizeScratch::default();
        let text = if late { normalizer.apply(content, true, &mut scratch) } else { content };
        found[usize::from(late)].push(AddedToken {
            id: id as u32,
            text: text.to_owned(),
            strip_before: flag("lstrip"),
            strip_after: flag("rstrip"),
        });
        let tokens = &mut loaded.tokens;
        tokens.bytes.resize(tokens.bytes.len().max(id as usize + 1), Box::default());
        tokens.bytes[id as usize] = content.as_bytes().into();
        tokens.by_name.insert(content.to_owned(), id as u32);
    }
    Ok(found.map(AddedTokens::new))
}

/// The string `key` of a component called `name`.
fn text_of<'a>(component: &'a Value, name: &str, key: &str) -> Result<&'a str> {
    component[key].as_str().ok_or_else(|| missing(name, key))
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<()> {
    if found <= limit { Ok(()) } else { Err(Error::Limit { what, found: found as u64, limit: limit as u64 }) }
}

fn missing(name: &str, key: &str) -> Error {
    Error::format(FORMAT, format!("the component `{name}` has no `{key}`, or one of another kind"))
}

fn unsupported(what: impl AsRef<str>) -> Error {
    Error::unsupported(
        FORMAT,
        format!("the component {}", what.as_ref()),
        "use a byte-pair or unigram tokenizer, or tokenize with the tool that made it and store the ids",
    )
}
