//! Byte-level tokenizers: GPT-2's two files, tiktoken's one, and no file.

use std::collections::HashMap;

use super::added::AddedTokens;
use super::base64;
use super::cut::Cut;
use super::normalize::Normalizer;
use super::pairs::{Merge, Pairs};
use super::split::Pattern;
use super::tokenizer::{Model, Parts, Start, Tokenizer, Tokens, VOCABULARY_MAX};
use crate::error::{Error, Result};

const VOCABULARY: &str = "gpt-2 vocabulary";
const MERGES: &str = "gpt-2 merges";
const TIKTOKEN: &str = "tiktoken";

/// The longest token where all ways to cut it in two are tried: many longer ones would take longer to load than to read.
pub(super) const TOKEN_BYTES_MAX: usize = 1 << 10;

impl Tokenizer {
    /// The 256 bytes and nothing else: every byte of the text is a token, and its value the id.
    pub fn byte_level() -> Self {
        let tokens = (0..=u8::MAX).map(|byte| Box::from([byte])).collect();
        Self::of_bytes(tokens, Pairs::with_capacity(0), Pattern::Gpt2)
    }

    /// GPT-2's tokenizer, from its vocabulary (`vocab.json` or `encoder.json`) and merges (`merges.txt` or `vocab.bpe`).
    ///
    /// Special tokens such as `<|endoftext|>` that stand in a text are text, as for tiktoken's `encode_ordinary`; their ids
    /// are had by [`Tokenizer::id_of`].
    pub fn from_gpt2(vocabulary: &[u8], merges: &[u8]) -> Result<Self> {
        let names: HashMap<String, u32> = serde_json::from_slice(vocabulary).map_err(|error| Error::Format {
            format: VOCABULARY,
            problem: format!("it is not a JSON object from tokens to ids: {error}").into(),
            offset: None,
            truncated: false,
            source: Some(Box::new(error)),
        })?;
        let merges =
            str::from_utf8(merges).map_err(|error| Error::format_at(MERGES, "it is not UTF-8", error.valid_up_to()))?;
        let lines = merges.lines().enumerate().filter(|(_, line)| !line.starts_with("#version") && !line.is_empty());
        let rules = lines.map(|(number, line)| {
            line.split_once(' ').filter(|(_, right)| !right.contains(' ')).ok_or_else(|| {
                Error::format(MERGES, format!("line `{}` is `{line}`, not two tokens and a space", number + 1))
            })
        });
        let rules = rules.collect::<Result<Vec<_>>>()?;
        let tokens = Tokens::from_names(VOCABULARY, names, bytes_of_name)?;
        let pairs = pairs_of_rules(MERGES, &tokens, rules.into_iter())?;
        let start = byte_tokens(VOCABULARY, &tokens)?;
        Ok(Self::from_parts(Parts::of_bytes(tokens, start, pairs, Pattern::Gpt2)))
    }

    /// A tokenizer from tiktoken's file of ranks (`r50k_base.tiktoken`, `cl100k_base.tiktoken`): lines of a token in Base64
    /// and its id. The file does not say which pattern it was made with, so the caller does. Special tokens are not in it.
    pub fn from_tiktoken(ranks: &[u8], pattern: Pattern) -> Result<Self> {
        let mut tokens: Vec<Box<[u8]>> = Vec::new();
        for (number, line) in ranks.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let damaged = |problem: &str| Error::format(TIKTOKEN, format!("line `{}` {problem}", number + 1));
            let space = line.iter().position(|&byte| byte == b' ').ok_or_else(|| damaged("has no space"))?;
            let token = base64::decode(&line[..space]).filter(|token| !token.is_empty());
            let token = token.ok_or_else(|| damaged("does not begin with a token in Base64"))?;
            let id = str::from_utf8(&line[space + 1..]).ok().and_then(|id| id.parse::<usize>().ok());
            let id = id.ok_or_else(|| damaged("does not end with an id"))?;
            check_id(id)?;
            tokens.resize(tokens.len().max(id + 1), Box::default());
            if !tokens[id].is_empty() {
                return Err(damaged("repeats an id"));
            }
            tokens[id] = token.into();
        }
        let pairs = pairs_of_tokens(&tokens)?;
        let tokens = Tokens::from_bytes(tokens);
        let start = byte_tokens(TIKTOKEN, &tokens)?;
        Ok(Self::from_parts(Parts::of_bytes(tokens, start, pairs, pattern)))
    }

    /// The tokens of a tokenizer of bytes as tiktoken's file of ranks; `None` if it is none, or if ids are missing.
    pub fn to_tiktoken(&self) -> Option<String> {
        let Model::Pairs { start: Start::Bytes(_), .. } = &self.parts.model else { return None };
        let tokens = &self.parts.tokens.bytes;
        let whole = tokens.iter().all(|token| !token.is_empty());
        let lines = tokens.iter().enumerate().map(|(id, token)| format!("{} {id}\n", base64::encode(token)));
        whole.then(|| lines.collect())
    }

    /// A tokenizer whose first 256 tokens are the bytes.
    pub(super) fn of_bytes(tokens: Vec<Box<[u8]>>, pairs: Pairs, pattern: Pattern) -> Self {
        let start = Box::new(std::array::from_fn(|byte| byte as u32));
        Self::from_parts(Parts::of_bytes(Tokens::from_bytes(tokens), start, pairs, pattern))
    }
}

impl Parts {
    fn of_bytes(tokens: Tokens, start: Box<[u32; 256]>, pairs: Pairs, pattern: Pattern) -> Self {
        Self {
            added: AddedTokens::default(),
            normalizer: Normalizer::default(),
            added_normalized: AddedTokens::default(),
            prefix: Normalizer::default(),
            cuts: vec![Cut::Pattern(pattern)],
            model: Model::Pairs { start: Start::Bytes(start), pairs, whole_words: false },
            tokens,
            join_unknown: None,
            space_before: false,
        }
    }
}

impl Tokens {
    fn from_bytes(bytes: Vec<Box<[u8]>>) -> Self {
        let ids = bytes.iter().enumerate().filter(|(_, token)| !token.is_empty());
        let by_bytes = ids.map(|(id, token)| (token.clone(), id as u32)).collect();
        Self { bytes, by_bytes, by_name: HashMap::new() }
    }

    /// Tokens from the names that a vocabulary of `format` has for them; `bytes_of` says what a name stands for, or
    /// `None` where it stands for itself.
    pub(super) fn from_names(
        format: &'static str,
        names: HashMap<String, u32>,
        bytes_of: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Self> {
        let mut tokens = Self::default();
        for (name, &id) in &names {
            check_id(id as usize)?;
            let stands_for: Box<[u8]> = bytes_of(name).unwrap_or_else(|| name.as_bytes().to_vec()).into();
            tokens.bytes.resize(tokens.bytes.len().max(id as usize + 1), Box::default());
            if !tokens.bytes[id as usize].is_empty() {
                return Err(Error::format(format, format!("two tokens have the id `{id}`, one of them `{name}`")));
            }
            tokens.bytes[id as usize].clone_from(&stands_for);
            tokens.by_bytes.insert(stands_for, id);
        }
        tokens.by_name = names;
        Ok(tokens)
    }
}

pub(super) fn check_id(id: usize) -> Result<()> {
    if id < VOCABULARY_MAX {
        return Ok(());
    }
    Err(Error::Limit { what: "token id", found: id as u64, limit: VOCABULARY_MAX as u64 - 1 })
}

/// The tokens of the 256 bytes, all of which a tokenizer of bytes must have.
pub(super) fn byte_tokens(format: &'static str, tokens: &Tokens) -> Result<Box<[u32; 256]>> {
    let mut ids = Box::new([0; 256]);
    for (byte, id) in ids.iter_mut().enumerate() {
        let found = tokens.by_bytes.get(&[byte as u8][..]);
        *id = *found.ok_or_else(|| Error::format(format, format!("there is no token for the byte `{byte:#04x}`")))?;
    }
    Ok(ids)
}

/// The table of merges, in the order of `rules`, whose sides are names of tokens.
pub(super) fn pairs_of_rules<'a>(
    format: &'static str,
    tokens: &Tokens,
    rules: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
) -> Result<Pairs> {
    let mut pairs = Pairs::with_capacity(rules.len());
    let mut both = String::new();
    for (rank, (left, right)) in rules.enumerate() {
        both.clear();
        both.push_str(left);
        both.push_str(right);
        let id = |name: &str| {
            let missing = || format!("merge `{left} {right}` needs the token `{name}`, which the vocabulary lacks");
            tokens.by_name.get(name).copied().ok_or_else(|| Error::format(format, missing()))
        };
        pairs.insert(id(left)?, id(right)?, Merge { rank: rank as u32, id: id(&both)? });
    }
    Ok(pairs)
}

/// Every way to make a token of two others; it ranks by its id. This is how tiktoken merges.
pub(super) fn pairs_of_tokens(tokens: &[Box<[u8]>]) -> Result<Pairs> {
    let ids: HashMap<&[u8], u32> = tokens.iter().enumerate().map(|(id, token)| (&**token, id as u32)).collect();
    let mut pairs = Pairs::with_capacity(tokens.len() * 2);
    for (id, token) in tokens.iter().enumerate() {
        if token.len() > TOKEN_BYTES_MAX {
            let (found, limit) = (token.len() as u64, TOKEN_BYTES_MAX as u64);
            return Err(Error::Limit { what: "bytes of a token", found, limit });
        }
        for at in 1..token.len() {
            if let (Some(&left), Some(&right)) = (ids.get(&token[..at]), ids.get(&token[at..])) {
                pairs.insert(left, right, Merge { rank: id as u32, id: id as u32 });
            }
        }
    }
    Ok(pairs)
}

/// The bytes that a name in GPT-2's alphabet stands for, or `None` if it holds a character outside of it.
///
/// The alphabet writes each byte as a visible character: itself where it is one in Latin-1, otherwise the next from U+0100.
pub(super) fn bytes_of_name(name: &str) -> Option<Vec<u8>> {
    let bytes = name.chars().map(|character| match u32::from(character) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character_in_the_alphabet() {
        let mut seen = [false; 256];
        for character in '\0'..='\u{200}' {
            for byte in bytes_of_name(&character.to_string()).into_iter().flatten() {
                assert!(!std::mem::replace(&mut seen[usize::from(byte)], true), "{byte}");
            }
        }
        assert!(seen.iter().all(|&seen| seen));
        assert_eq!(bytes_of_name("\u{120}a\u{10a}"), Some(b" a\n".to_vec()));
    }

    #[test]
    fn bytes_are_their_own_tokens() {
        let tokenizer = Tokenizer::byte_level();
        assert_eq!(tokenizer.vocabulary_size(), 256);
        assert_eq!(tokenizer.encode("h\u{e9}"), [0x68, 0xC3, 0xA9]);
    }
}
