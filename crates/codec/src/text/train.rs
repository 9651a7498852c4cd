//! Makes a vocabulary from texts: the byte-pair encoding's own training.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use super::byte_level::{TOKEN_BYTES_MAX, pairs_of_tokens};
use super::split::Pattern;
use super::tokenizer::{Tokenizer, VOCABULARY_MAX};
use crate::error::{Error, Result};

/// A pair of tokens.
type Pair = (u32, u32);

impl Tokenizer {
    /// A tokenizer with up to `vocabulary_size` tokens, made from `texts`: the 256 bytes and then, again and again, the
    /// most frequent pair of neighbors as one token (the first by id among equals), until no pair occurs twice.
    ///
    /// The same texts give the same vocabulary. It is meant for demonstrations and for small corpora: all distinct words
    /// are held in memory.
    pub fn train<'a>(texts: impl IntoIterator<Item = &'a str>, vocabulary_size: usize) -> Result<Self> {
        if !(256..=VOCABULARY_MAX).contains(&vocabulary_size) {
            let expected = format!("256 to {VOCABULARY_MAX}");
            return Err(Error::usage("the vocabulary's size is out of range", expected, vocabulary_size));
        }
        let mut counts: BTreeMap<&[u8], u64> = BTreeMap::new();
        for text in texts {
            Pattern::Gpt2.words(text, |start, end| *counts.entry(&text.as_bytes()[start..end]).or_default() += 1);
        }
        let mut training = Training::default();
        // A longer word is a run of symbols, from which there is nothing to learn.
        for (word, count) in counts.into_iter().filter(|(word, _)| word.len() <= TOKEN_BYTES_MAX) {
            training.add(word.iter().map(|&byte| u32::from(byte)).collect(), count);
        }
        let mut tokens: Vec<Box<[u8]>> = (0..=u8::MAX).map(|byte| Box::from([byte])).collect();
        let mut known: HashMap<Box<[u8]>, u32> = HashMap::new();
        while tokens.len() < vocabulary_size
            && let Some(pair) = training.most_frequent()
        {
            let token: Box<[u8]> = [&*tokens[pair.0 as usize], &*tokens[pair.1 as usize]].concat().into();
            // Two pairs can spell the same token; both become it, so that ids and spellings stay one to one.
            let id = *known.entry(token.clone()).or_insert_with(|| {
                tokens.push(token);
                tokens.len() as u32 - 1
            });
            training.merge(pair, id);
        }
        let pairs = pairs_of_tokens(&tokens)?;
        Ok(Self::of_bytes(tokens, pairs, Pattern::Gpt2))
    }
}

/// Words as they are so far, and how often each pair occurs in them.
#[derive(Default)]
struct Training {
    words: Vec<(Vec<u32>, u64)>,
    counts: HashMap<Pair, u64>,
    /// The words that a pair occurs in, or did.
    words_by_pair: HashMap<Pair, HashSet<usize>>,
    /// Counts that were true once; the true one is in `counts`.
    heap: BinaryHeap<(u64, Reverse<Pair>)>,
}

impl Training {
    fn add(&mut self, word: Vec<u32>, count: u64) {
        let number = self.words.len();
        for pair in word.windows(2) {
            let pair = (pair[0], pair[1]);
            let total = self.counts.entry(pair).or_default();
            *total += count;
            self.heap.push((*total, Reverse(pair)));
            self.words_by_pair.entry(pair).or_default().insert(number);
        }
        self.words.push((word, count));
    }

    /// The most frequent pair that occurs at least twice.
    fn most_frequent(&mut self) -> Option<Pair> {
        while let Some((count, Reverse(pair))) = self.heap.pop() {
            if count >= 2 && self.counts.get(&pair) == Some(&count) {
                return Some(pair);
            }
        }
        None
    }

    fn merge(&mut self, pair: Pair, id: u32) {
        let mut changed = HashSet::new();
        for number in self.words_by_pair.remove(&pair).unwrap_or_default() {
            let (word, count) = &mut self.words[number];
            for old in word.windows(2) {
                let old = (old[0], old[1]);
                *self.counts.entry(old).or_default() -= *count;
                changed.insert(old);
            }
            let mut at = 0;
            while at + 1 < word.len() {
                if (word[at], word[at + 1]) == pair {
                    word[at] = id;
                    word.remove(at + 1);
                }
                at += 1;
            }
            for new in word.windows(2) {
                let new = (new[0], new[1]);
                *self.counts.entry(new).or_default() += *count;
                self.words_by_pair.entry(new).or_default().insert(number);
                changed.insert(new);
            }
        }
        for pair in changed {
            self.heap.push((self.counts[&pair], Reverse(pair)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_words_become_tokens() {
        let text = "the cat and the dog and the bird, the end. ".repeat(10);
        let tokenizer = Tokenizer::train([text.as_str()], 400).unwrap();
        assert!(tokenizer.id_of(" the").is_some());
        let ids = tokenizer.encode(&text);
        assert!(ids.len() * 4 < text.len() * 2, "{} tokens for {} bytes", ids.len(), text.len());
        assert_eq!(tokenizer.decode(&ids).unwrap(), text.as_bytes());
        let again = Tokenizer::from_tiktoken(tokenizer.to_tiktoken().unwrap().as_bytes(), Pattern::Gpt2).unwrap();
        assert_eq!(again.encode(&text), ids);
        assert!(Tokenizer::train([""], 255).is_err());
        assert_eq!(Tokenizer::train([""], 256).unwrap().vocabulary_size(), 256);
    }
}
