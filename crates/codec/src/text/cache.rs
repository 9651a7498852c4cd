//! Words and their tokens, looked up instead of worked out.
//!
//! [`KnownWords`] are the words that are one token; they belong to the tokenizer, and all workers share them. [`WordCache`] has
//! the others as a worker comes across them: most words of a text have been seen before.

/// The longest word that is remembered, in bytes; with its length it fills a key.
const WORD_MAX: usize = 15;

/// The most tokens of a word that is remembered. Few words of 15 bytes have more.
const TOKENS_MAX: usize = 7;

/// A key is the word's bytes and, in the highest byte, its length: two words are equal if their keys are.
#[derive(Clone, Copy, Default)]
struct Entry {
    key: u128,
    ids: [u32; TOKENS_MAX],
    count: u32,
}

/// As many entries as fill three quarters of a megabyte, which fits into the private cache of most cores.
const ENTRIES: usize = 1 << 14;

/// A direct-mapped table: a word replaces the previous one in its slot. It takes no memory until it is used.
#[derive(Default)]
pub(super) struct WordCache {
    entries: Vec<Entry>,
}

/// A word short enough to be remembered.
#[derive(Clone, Copy)]
pub(super) struct WordKey(u128);

impl WordKey {
    /// The key of `text[start..end]`, if it is short enough.
    #[inline]
    pub(super) fn new(text: &[u8], start: usize, end: usize) -> Option<Self> {
        let length = end - start;
        if length > WORD_MAX || length == 0 {
            return None;
        }
        let bytes = if let Some(bytes) = text.get(start..start + 16) {
            // Sixteen bytes at once, and away with what is beyond the word.
            u128::from_le_bytes(bytes.try_into().ok()?) & (u128::MAX >> (128 - 8 * length))
        } else {
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(&text[start..end]);
            u128::from_le_bytes(bytes)
        };
        Some(Self(bytes | (length as u128) << 120))
    }

    #[inline]
    fn hash(self) -> usize {
        let folded = (self.0 as u64) ^ ((self.0 >> 64) as u64).rotate_left(23);
        (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
    }

    #[inline]
    fn slot(self) -> usize {
        self.hash() & (ENTRIES - 1)
    }
}

/// The words that are one token.
#[derive(Debug, Clone)]
pub(super) struct KnownWords {
    /// Open addressing; no word has the key zero.
    slots: Vec<(u128, u32)>,
}

impl KnownWords {
    /// The words and their tokens.
    pub(super) fn new(words: &[(WordKey, u32)]) -> Self {
        let mut slots = vec![(0, 0); (words.len() * 2).next_power_of_two().max(2)];
        let mask = slots.len() - 1;
        for &(key, id) in words {
            let mut slot = key.hash() & mask;
            while slots[slot].0 != 0 && slots[slot].0 != key.0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = (key.0, id);
        }
        Self { slots }
    }

    /// The token that the word is.
    #[inline]
    pub(super) fn get(&self, key: WordKey) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = key.hash() & mask;
        loop {
            let (found, id) = self.slots[slot];
            if found == key.0 {
                return Some(id);
            }
            if found == 0 {
                return None;
            }
            slot = (slot + 1) & mask;
        }
    }
}

impl WordCache {
    /// Appends the tokens of the word, if it is remembered.
    #[inline]
    pub(super) fn append(&self, key: WordKey, ids: &mut Vec<u32>) -> bool {
        let Some(entry) = self.entries.get(key.slot()).filter(|entry| entry.key == key.0) else { return false };
        ids.extend_from_slice(&entry.ids[..entry.count as usize]);
        true
    }

    /// Remembers the tokens of the word, unless they are too many.
    pub(super) fn remember(&mut self, key: WordKey, tokens: &[u32]) {
        if tokens.len() <= TOKENS_MAX {
            self.entries.resize(ENTRIES, Entry::default());
            let mut ids = [0; TOKENS_MAX];
            ids[..tokens.len()].copy_from_slice(tokens);
            self.entries[key.slot()] = Entry { key: key.0, ids, count: tokens.len() as u32 };
        }
    }

    pub(super) fn forget(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_wherever_it_stands() {
        let mut cache = WordCache::default();
        let long = b"word, and more text after it";
        let key = WordKey::new(long, 0, 4).unwrap();
        cache.remember(key, &[1, 2, 3]);
        let mut ids = Vec::new();
        assert!(cache.append(WordKey::new(b"word", 0, 4).unwrap(), &mut ids));
        assert_eq!(ids, [1, 2, 3]);
        assert!(!cache.append(WordKey::new(b"word\0", 0, 5).unwrap(), &mut ids));
        cache.forget();
        assert!(!cache.append(key, &mut ids));
        assert!(WordKey::new(long, 0, 16).is_none());
        let known = KnownWords::new(&[(key, 7)]);
        assert_eq!(known.get(key), Some(7));
        assert_eq!(known.get(WordKey::new(long, 0, 5).unwrap()), None);
        assert_eq!(KnownWords::new(&[]).get(key), None);
    }
}
