//! The tokenizer: text to token ids and back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::added::{AddedTokens, Part};
use super::cache::{KnownWords, WordCache, WordKey};
use super::cut::Cut;
use super::merge::MergeScratch;
use super::normalize::{NormalizeScratch, Normalizer};
use super::pairs::Pairs;
use super::unigram::{Unigram, UnigramScratch};
use crate::error::{Error, Result};

/// The most tokens of a vocabulary. The largest in use have a quarter of a million.
pub const VOCABULARY_MAX: usize = 1 << 22;

/// Turns text into token ids and back. It is only read, so all workers share one.
///
/// Made from the files of GPT-2 ([`Tokenizer::from_gpt2`]), of tiktoken ([`Tokenizer::from_tiktoken`]), of Hugging Face
/// ([`Tokenizer::from_hugging_face`]) or of SentencePiece ([`Tokenizer::from_sentencepiece`]); from nothing
/// ([`Tokenizer::byte_level`]); or from texts ([`Tokenizer::train`]).
#[derive(Debug, Clone)]
pub struct Tokenizer {
    pub(super) parts: Parts,
    known: KnownWords,
    /// Tells the caches of this tokenizer from those of another.
    number: u64,
}

/// What a tokenizer is put together from.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    /// Tokens that are matched in the text literally, before anything else is done.
    pub(super) added: AddedTokens,
    pub(super) normalizer: Normalizer,
    /// The same, looked for when the text has been normalized.
    pub(super) added_normalized: AddedTokens,
    /// What is changed last: a prefix, signs for spaces.
    pub(super) prefix: Normalizer,
    pub(super) cuts: Vec<Cut>,
    pub(super) model: Model,
    pub(super) tokens: Tokens,
    /// The unknown token, if those that follow each other become one, even across words.
    pub(super) join_unknown: Option<u32>,
    /// Whether a space is put before the text, which [`Tokenizer::decode`] removes.
    pub(super) space_before: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Model {
    Pairs {
        start: Start,
        pairs: Pairs,
        /// Whether a word that is a token is used as it is, regardless of the merges.
        whole_words: bool,
    },
    Unigram {
        unigram: Unigram,
        unknown: u32,
        /// The tokens for the bytes of characters that have none.
        bytes: Option<Box<[u32; 256]>>,
    },
}

/// What a word is before anything is merged.
#[derive(Debug, Clone)]
pub(super) enum Start {
    /// Its bytes.
    Bytes(Box<[u32; 256]>),
    /// Its characters.
    Characters {
        ids: HashMap<char, u32>,
        /// The tokens for the bytes of characters that have none.
        bytes: Option<Box<[u32; 256]>>,
        unknown: Option<u32>,
        /// Whether unknown characters that follow each other become one unknown.
        join: bool,
    },
}

/// The bytes of each token, and its name in the vocabulary.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    pub(super) bytes: Vec<Box<[u8]>>,
    pub(super) by_bytes: HashMap<Box<[u8]>, u32>,
    pub(super) by_name: HashMap<String, u32>,
}

/// Scratch for the work of one worker, with the words it has seen.
#[derive(Default)]
pub struct TokenizerScratch {
    tokenizer: u64,
    cache: WordCache,
    merge: MergeScratch,
    unigram: UnigramScratch,
    normalize: NormalizeScratch,
    prefix: NormalizeScratch,
}

impl Tokenizer {
    pub(super) fn from_parts(parts: Parts) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let known = parts.known_words();
        Self { parts, known, number: NUMBER.fetch_add(1, Ordering::Relaxed) }
    }

    /// How many tokens there are: one more than the highest id.
    pub fn vocabulary_size(&self) -> usize {
        self.parts.tokens.bytes.len()
    }

    /// The id of a token by its name in the vocabulary, as `<|endoftext|>` or `</s>`.
    pub fn id_of(&self, name: &str) -> Option<u32> {
        let tokens = &self.parts.tokens;
        tokens.by_name.get(name).or_else(|| tokens.by_bytes.get(name.as_bytes())).copied()
    }

    /// The ids of `text`.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        self.encode_into(text, &mut TokenizerScratch::default(), &mut ids);
        ids
    }

    /// Appends the ids of `text` to `ids`. Words that `scratch` has seen are not worked out again.
    pub fn encode_into(&self, text: &str, scratch: &mut TokenizerScratch, ids: &mut Vec<u32>) {
        if scratch.tokenizer != self.number {
            scratch.cache.forget();
            scratch.tokenizer = self.number;
        }
        let parts = &self.parts;
        parts.added.split(text, |part, first| match part {
            Part::Token(id) => ids.push(id),
            Part::Text(text) if parts.normalizer.is_empty() => self.encode_normalized(text, first, scratch, ids),
            Part::Text(text) => {
                let mut normalize = std::mem::take(&mut scratch.normalize);
                let text = parts.normalizer.apply(text, first, &mut normalize);
                self.encode_normalized(text, first, scratch, ids);
                scratch.normalize = normalize;
            }
        });
    }

    fn encode_normalized(&self, text: &str, first: bool, scratch: &mut TokenizerScratch, ids: &mut Vec<u32>) {
        let parts = &self.parts;
        parts.added_normalized.split(text, |part, first_part| match part {
            Part::Token(id) => ids.push(id),
            Part::Text(text) if parts.prefix.is_empty() => self.encode_words(text, scratch, ids),
            Part::Text(text) => {
                let mut prefix = std::mem::take(&mut scratch.prefix);
                let text = parts.prefix.apply(text, first && first_part, &mut prefix);
                self.encode_words(text, scratch, ids);
                scratch.prefix = prefix;
            }
        });
    }

    fn encode_words(&self, text: &str, scratch: &mut TokenizerScratch, ids: &mut Vec<u32>) {
        let mut word = |start, end| self.encode_word(text, start, end, scratch, ids);
        match self.parts.cuts[..] {
            // By far the most frequent, and worth its own loop.
            [Cut::Pattern(pattern)] => pattern.words(text, word),
            ref cuts => Cut::words(cuts, text, &mut word),
        }
    }

    #[inline]
    fn encode_word(&self, text: &str, start: usize, end: usize, scratch: &mut TokenizerScratch, ids: &mut Vec<u32>) {
        let key = WordKey::new(text.as_bytes(), start, end);
        let before = ids.len();
        if let Some(id) = key.and_then(|key| self.known.get(key)) {
            ids.push(id);
            return;
        }
        if !key.is_some_and(|key| scratch.cache.append(key, ids)) {
            self.encode_unseen(&text[start..end], key, scratch, ids);
        }
        if let Some(unknown) = self.parts.join_unknown
            && ids.get(before) == Some(&unknown)
            && before.checked_sub(1).is_some_and(|last| ids[last] == unknown)
        {
            ids.remove(before);
        }
    }

    fn encode_unseen(&self, word: &str, key: Option<WordKey>, scratch: &mut TokenizerScratch, ids: &mut Vec<u32>) {
        let before = ids.len();
        match &self.parts.model {
            Model::Pairs { whole_words: true, .. } if self.parts.tokens.by_bytes.contains_key(word.as_bytes()) => {
                ids.push(self.parts.tokens.by_bytes[word.as_bytes()]);
            }
            Model::Pairs { start, pairs, .. } => {
                scratch.merge.symbols.clear();
                start.symbols(word, &mut scratch.merge.symbols);
                scratch.merge.merge(pairs);
                ids.extend_from_slice(&scratch.merge.symbols);
            }
            Model::Unigram { unigram, unknown, bytes } => {
                unigram.cut(word, &mut scratch.unigram);
                let mut last_unknown = false;
                for &(start, end, id) in &scratch.unigram.pieces {
                    match bytes {
                        Some(bytes) if id == *unknown => {
                            let spelt = &word.as_bytes()[start as usize..end as usize];
                            ids.extend(spelt.iter().map(|&byte| bytes[usize::from(byte)]));
                        }
                        _ if id == *unknown && last_unknown => {}
                        _ => ids.push(id),
                    }
                    last_unknown = id == *unknown;
                }
            }
        }
        if let Some(key) = key {
            scratch.cache.remember(key, &ids[before..]);
        }
    }

    /// The bytes that `ids` stand for. Those of a tokenizer of bytes are the bytes of the text; others may have changed
    /// white space and the form of characters.
    pub fn decode(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let tokens = &self.parts.tokens.bytes;
        let mut bytes = Vec::new();
        for &id in ids {
            let token = tokens.get(id as usize).ok_or_else(|| {
                Error::usage("a token id is not in the vocabulary", format!("less than {}", tokens.len()), id)
            })?;
            bytes.extend_from_slice(token);
        }
        if self.parts.space_before && bytes.first() == Some(&b' ') {
            bytes.remove(0);
        }
        Ok(bytes)
    }
}

impl Parts {
    /// The tokens that come out if their own bytes go in. Not all do: some vocabularies have tokens that no merge makes.
    fn known_words(&self) -> KnownWords {
        let mut known = Vec::new();
        if let Model::Pairs { start: start @ Start::Bytes(_), pairs, whole_words } = &self.model {
            let mut scratch = MergeScratch::default();
            for (id, token) in self.tokens.bytes.iter().enumerate() {
                let key = WordKey::new(token, 0, token.len());
                let (Some(key), Ok(word)) = (key, str::from_utf8(token)) else { continue };
                scratch.symbols.clear();
                start.symbols(word, &mut scratch.symbols);
                scratch.merge(pairs);
                let made = *whole_words || scratch.symbols == [id as u32];
                if made && self.tokens.by_bytes.get(token) == Some(&(id as u32)) {
                    known.push((key, id as u32));
                }
            }
        }
        KnownWords::new(&known)
    }
}

impl Start {
    fn symbols(&self, word: &str, symbols: &mut Vec<u32>) {
        let (ids, bytes, unknown, join) = match self {
            Self::Bytes(ids) => return symbols.extend(word.bytes().map(|byte| ids[usize::from(byte)])),
            Self::Characters { ids, bytes, unknown, join } => (ids, bytes, unknown, *join),
        };
        let mut last_unknown = false;
        for character in word.chars() {
            let known = ids.get(&character);
            match (known, bytes, unknown) {
                (Some(&id), ..) => symbols.push(id),
                (None, Some(bytes), _) => {
                    let mut buffer = [0; 4];
                    let spelt = character.encode_utf8(&mut buffer).bytes();
                    symbols.extend(spelt.map(|byte| bytes[usize::from(byte)]));
                }
                (None, None, Some(_)) if join && last_unknown => {}
                (None, None, Some(id)) => symbols.push(*id),
                // A vocabulary without an unknown drops what it does not know, as Hugging Face's does.
                (None, None, None) => {}
            }
            last_unknown = known.is_none();
        }
    }
}
