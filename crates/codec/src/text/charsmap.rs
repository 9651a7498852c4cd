//! SentencePiece's table of characters: what each sequence of bytes is replaced by.
//!
//! ```text
//! u32 bytes of the tree | the tree: u32 units of a double array (Darts-clone) | texts, each ended by NUL
//! ```
//! All numbers are little-endian. The value of a leaf is where its text begins.

use crate::error::{Error, Result};

/// The most bytes that a character may be replaced by. The table of SentencePiece itself has 33: for U+FDFA, which is a sentence.
const TEXT_BYTES_MAX: usize = 256;

/// The table.
#[derive(Debug, Clone)]
pub(super) struct Charsmap {
    units: Vec<Unit>,
    texts: String,
}

/// One unit of the double array.
#[derive(Debug, Clone, Copy)]
struct Unit(u32);

impl Unit {
    fn has_leaf(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn value(self) -> usize {
        (self.0 & 0x7FFF_FFFF) as usize
    }

    fn label(self) -> u32 {
        self.0 & 0x8000_00FF
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 1 << 9) >> 6)) as usize
    }
}

impl Charsmap {
    /// The table in `blob`, which came out of a file of `format`.
    pub(super) fn new(format: &'static str, blob: &[u8]) -> Result<Self> {
        let damaged = |problem: &'static str| Error::format(format, problem);
        let (length, rest) =
            blob.split_first_chunk().ok_or_else(|| damaged("the table of characters is cut off before its length"))?;
        let tree_bytes = u32::from_le_bytes(*length) as usize;
        if tree_bytes == 0 || !tree_bytes.is_multiple_of(4) || tree_bytes > rest.len() {
            let problem = format!("the table of characters has `{}` bytes, but its tree `{tree_bytes}`", rest.len());
            return Err(Error::format(format, problem));
        }
        let (tree, texts) = rest.split_at(tree_bytes);
        let units = tree.as_chunks::<4>().0.iter().map(|unit| Unit(u32::from_le_bytes(*unit))).collect();
        let texts =
            str::from_utf8(texts).map_err(|_| damaged("the table of characters holds text that is not UTF-8"))?;
        let charsmap = Self { units, texts: texts.to_owned() };
        let (found, limit) = (charsmap.longest_text() as u64, TEXT_BYTES_MAX as u64);
        if found > limit {
            return Err(Error::Limit { what: "bytes that a character is replaced by", found, limit });
        }
        Ok(charsmap)
    }

    /// What the longest entry that `key` begins with is replaced by, and its length.
    pub(super) fn longest(&self, key: &[u8]) -> Option<(&str, usize)> {
        let mut found = None;
        self.walk(key, |value, length| {
            found = Some((value, length));
            true
        });
        found.and_then(|(value, length)| Some((self.text(value)?, length)))
    }

    /// What the shortest entry that `key` begins with is replaced by.
    pub(super) fn shortest(&self, key: &[u8]) -> Option<&str> {
        let mut found = None;
        self.walk(key, |value, _| {
            found = Some(value);
            false
        });
        found.and_then(|value| self.text(value))
    }

    /// Hands each entry that `key` begins with to `entry` until it says stop.
    fn walk(&self, key: &[u8], mut entry: impl FnMut(usize, usize) -> bool) {
        let Some(mut at) = self.units.first().map(|unit| unit.offset()) else { return };
        for (index, &byte) in key.iter().enumerate() {
            at ^= usize::from(byte);
            let Some(node) = self.units.get(at).filter(|node| byte != 0 && node.label() == u32::from(byte)) else {
                return;
            };
            at ^= node.offset();
            if node.has_leaf()
                && let Some(leaf) = self.units.get(at)
                && !entry(leaf.value(), index + 1)
            {
                return;
            }
        }
    }

    /// The bytes of the longest text that something can be replaced by; 1 if that is less.
    pub(super) fn longest_text(&self) -> usize {
        self.texts.split('\0').map(str::len).max().unwrap_or(0).max(1)
    }

    fn text(&self, start: usize) -> Option<&str> {
        self.texts.get(start..)?.split('\0').next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_table_is_refused_or_finds_nothing() {
        for blob in [&b""[..], b"\x04\0\0", b"\x08\0\0\0\0\0\0\0", b"\x03\0\0\0abc", b"\x04\0\0\0\0\0\0\0\xFF"] {
            assert!(Charsmap::new("sentencepiece", blob).is_err(), "{blob:?}");
        }
        let mut long = vec![4, 0, 0, 0, 0, 0, 0, 0];
        long.extend([b'a'; TEXT_BYTES_MAX + 1]);
        assert!(matches!(Charsmap::new("sentencepiece", &long), Err(Error::Limit { .. })));
        let mut blob = vec![8, 0, 0, 0];
        blob.extend([0xFF; 8]);
        let charsmap = Charsmap::new("sentencepiece", &blob).unwrap();
        assert_eq!(charsmap.longest(b"abc"), None);
    }
}
