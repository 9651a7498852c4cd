//! The component `model`: byte-pair encodings and unigram models.

use std::collections::HashMap;

use serde_json::Value;

use super::{FORMAT, missing, unsupported, within};
use crate::error::{Error, Result};
use crate::text::byte_level::{TOKEN_BYTES_MAX, byte_tokens, bytes_of_name, check_id, pairs_of_rules};
use crate::text::cut::keeps_words_apart;
use crate::text::sentencepiece::{byte_of_name, single_character, spaced};
use crate::text::tokenizer::{Model, Start, Tokens};
use crate::text::unigram::{Sums, Unigram};

const NAME: &str = "model";

/// A model and its vocabulary.
pub(super) struct Loaded {
    pub(super) model: Model,
    pub(super) tokens: Tokens,
    /// Whether no token goes across the beginning of a word, so that text can be cut there.
    pub(super) keeps_words_apart: bool,
}

/// The model; `bytes` says whether it works on bytes in GPT-2's alphabet.
pub(super) fn model(component: &Value, bytes: bool) -> Result<Loaded> {
    // Old files of byte-pair encodings do not name the type.
    let kind = component["type"].as_str().or_else(|| component["merges"].is_array().then_some("BPE"));
    match kind {
        Some("BPE") => byte_pairs(component, bytes),
        Some("Unigram") if bytes => Err(unsupported("model `Unigram` on bytes")),
        Some("Unigram") => unigram(component),
        Some(other) => Err(unsupported(format!("model `{other}`"))),
        None => Err(missing(NAME, "type")),
    }
}

fn byte_pairs(component: &Value, bytes: bool) -> Result<Loaded> {
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if component[key].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(unsupported(format!("model `BPE` with `{key}`")));
        }
    }
    if component["dropout"].as_f64().is_some_and(|dropout| dropout > 0.0) {
        return Err(unsupported("model `BPE` with `dropout`"));
    }
    let whole_words = component["ignore_merges"].as_bool().unwrap_or(false);
    if whole_words && !bytes {
        return Err(unsupported("model `BPE` with `ignore_merges` on characters"));
    }
    let vocabulary = component["vocab"].as_object().ok_or_else(|| missing(NAME, "vocab"))?;
    let mut names = HashMap::with_capacity(vocabulary.len());
    for (name, id) in vocabulary {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
        names
            .insert(name.clone(), id.ok_or_else(|| Error::format(FORMAT, format!("the id of `{name}` is not an id")))?);
    }
    let byte_fallback = component["byte_fallback"].as_bool().unwrap_or(false);
    let stands_for = |name: &str| if bytes { bytes_of_name(name) } else { Some(bytes_of_piece(name, byte_fallback)) };
    let tokens = Tokens::from_names(FORMAT, names, stands_for)?;
    let merges = component["merges"].as_array().ok_or_else(|| missing(NAME, "merges"))?;
    let rules = merges.iter().map(rule).collect::<Result<Vec<_>>>()?;
    let pairs = pairs_of_rules(FORMAT, &tokens, rules.into_iter())?;
    let start = if bytes { Start::Bytes(byte_tokens(FORMAT, &tokens)?) } else { characters(component, &tokens)? };
    let keeps_words_apart = !bytes && tokens.by_name.keys().all(|name| keeps_words_apart(name));
    Ok(Loaded { model: Model::Pairs { start, pairs, whole_words }, tokens, keeps_words_apart })
}

/// A merge is two tokens, or one string with a space between them.
fn rule(merge: &Value) -> Result<(&str, &str)> {
    let pair = match merge {
        Value::String(text) => text.split_once(' '),
        Value::Array(pair) => match &pair[..] {
            [left, right] => left.as_str().zip(right.as_str()),
            _ => None,
        },
        _ => None,
    };
    pair.ok_or_else(|| Error::format(FORMAT, format!("the merge `{merge}` is not two tokens")))
}

fn characters(component: &Value, tokens: &Tokens) -> Result<Start> {
    let ids = tokens.by_name.iter().filter_map(|(name, &id)| Some((single_character(name)?, id))).collect();
    let unknown =
        match component["unk_token"].as_str() {
            Some(name) => Some(*tokens.by_name.get(name).ok_or_else(|| {
                Error::format(FORMAT, format!("`unk_token` is `{name}`, which the vocabulary lacks"))
            })?),
            None => None,
        };
    let bytes = component["byte_fallback"].as_bool().unwrap_or(false).then(|| fallback(tokens)).flatten();
    Ok(Start::Characters { ids, bytes, unknown, join: component["fuse_unk"].as_bool().unwrap_or(false) })
}

/// The tokens `<0x00>` to `<0xFF>`, if all of them exist.
fn fallback(tokens: &Tokens) -> Option<Box<[u32; 256]>> {
    let mut ids = Box::new([0; 256]);
    for (byte, id) in ids.iter_mut().enumerate() {
        *id = *tokens.by_name.get(&format!("<0x{byte:02X}>"))?;
    }
    Some(ids)
}

fn bytes_of_piece(name: &str, byte_fallback: bool) -> Vec<u8> {
    match byte_of_name(name) {
        Some(byte) if byte_fallback => vec![byte],
        _ => spaced(name),
    }
}

/// The number that Hugging Face's reader makes of the text of `score`: its digits as a whole number, which is rounded, over a power of
/// ten, which rounds again. That is off by a bit now and then, and decides between two cuts whose sums are equal.
fn as_hugging_face_reads(score: f64) -> f64 {
    // The shortest text that stands for the score, which is what such files have.
    let text = format!("{:e}", score.abs());
    let parts = text.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    let Some((digits, exponent)) = parts else { return score };
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    let Ok(whole) = digits.replace('.', "").parse::<u64>() else { return score };
    match exponent - decimals {
        // Powers of ten up to this one are exact.
        power @ 0..=22 => (whole as f64 * 10_f64.powi(power)).copysign(score),
        power @ -22..0 => (whole as f64 / 10_f64.powi(-power)).copysign(score),
        _ => score,
    }
}

fn unigram(component: &Value) -> Result<Loaded> {
    let vocabulary = component["vocab"].as_array().ok_or_else(|| missing(NAME, "vocab"))?;
    check_id(vocabulary.len())?;
    let byte_fallback = component["byte_fallback"].as_bool().unwrap_or(false);
    let mut tokens = Tokens::default();
    let mut pieces = Vec::with_capacity(vocabulary.len());
    for (id, entry) in vocabulary.iter().enumerate() {
        let score = entry[1].as_f64().filter(|score| score.is_finite());
        let Some((name, score)) = entry[0].as_str().zip(score) else {
            return Err(Error::format(
                FORMAT,
                format!("the entry `{entry}` of the vocabulary is not a token and score"),
            ));
        };
        // A text is compared with them from every character on.
        within("bytes of a token", name.len(), TOKEN_BYTES_MAX)?;
        pieces.push((id as u32, name.as_bytes(), as_hugging_face_reads(score)));
        tokens.bytes.push(bytes_of_piece(name, byte_fallback).into());
        tokens.by_name.insert(name.to_owned(), id as u32);
    }
    let unknown = component["unk_id"].as_u64().ok_or_else(|| missing(NAME, "unk_id"))?;
    if unknown >= vocabulary.len() as u64 {
        return Err(Error::format(FORMAT, format!("`unk_id` is `{unknown}`, which the vocabulary lacks")));
    }
    let unknown = unknown as u32;
    let unigram = Unigram::new(pieces.into_iter(), unknown, Sums::Double);
    let bytes = byte_fallback.then(|| fallback(&tokens)).flatten();
    // Without a cut of its own the scores of the whole text are summed, so it is not cut.
    Ok(Loaded { model: Model::Unigram { unigram, unknown, bytes }, tokens, keeps_words_apart: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_as_their_library_reads_them() {
        // Sixteen digits are exact as a whole number, so one division rounds as it should.
        for score in [-7.951_095_103_584_298, -0.0, 0.0, -10.5, -3.0, 1e-7, 2e30, f64::MIN_POSITIVE] {
            assert_eq!(as_hugging_face_reads(score).to_bits(), score.to_bits(), "{score}");
        }
        // Seventeen are not: 12864072317121257 becomes ...256.
        let (score, read) = (-12.864_072_317_121_257_f64, -12.864_072_317_121_256_f64);
        assert_ne!(score.to_bits(), read.to_bits());
        assert_eq!(as_hugging_face_reads(score).to_bits(), read.to_bits());
    }
}
