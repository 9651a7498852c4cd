//! Cuts: the ways in which a tokenizer file may ask for text to be cut into words, one after the other.

use super::classes::{Class, Classes};
use super::split::Pattern;

/// SentencePiece's sign for a space.
pub(super) const SPACE_SIGN: char = '\u{2581}';

/// One way to split. The pieces of one may be split further by the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// A pattern of GPT-2's kind.
    Pattern(Pattern),
    /// Numbers by themselves: each digit, or each run of them.
    Numbers {
        /// Each digit.
        each: bool,
    },
    /// Before each sign for a space.
    BeforeSpaceSigns,
    /// Before each run of signs for spaces.
    BeforeSpaceSignRuns,
}

impl Cut {
    /// Hands each word of `text` to `word` as a range of bytes.
    pub(super) fn words(cuts: &[Self], text: &str, word: &mut dyn FnMut(usize, usize)) {
        match cuts {
            [] if text.is_empty() => {}
            [] => word(0, text.len()),
            [first, rest @ ..] => first.once(text, &mut |start, end| {
                Self::words(rest, &text[start..end], &mut |from, to| word(start + from, start + to));
            }),
        }
    }

    fn once(self, text: &str, word: &mut dyn FnMut(usize, usize)) {
        match self {
            Self::Pattern(pattern) => pattern.words(text, word),
            Self::Numbers { each } => {
                let is_number = |character| Classes::get().of(character) == Class::Number;
                before(text, word, |previous, character| match (is_number(previous), is_number(character)) {
                    (true, true) => each,
                    (was, is) => was != is,
                });
            }
            Self::BeforeSpaceSigns => before(text, word, |_, character| character == SPACE_SIGN),
            Self::BeforeSpaceSignRuns => {
                before(text, word, |previous, character| character == SPACE_SIGN && previous != SPACE_SIGN);
            }
        }
    }
}

/// Whether a token has signs for spaces only where it begins. If all have, text can be cut before runs of them.
pub(super) fn keeps_words_apart(name: &str) -> bool {
    !name.trim_start_matches(SPACE_SIGN).contains(SPACE_SIGN)
}

/// Cuts wherever `cut` says so of two characters that follow each other.
fn before(text: &str, word: &mut dyn FnMut(usize, usize), cut: impl Fn(char, char) -> bool) {
    let mut start = 0;
    let mut previous = None;
    for (at, character) in text.char_indices() {
        if previous.is_some_and(|previous| cut(previous, character)) {
            word(start, at);
            start = at;
        }
        previous = Some(character);
    }
    if start < text.len() {
        word(start, text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'a>(cuts: &[Cut], text: &'a str) -> Vec<&'a str> {
        let mut words = Vec::new();
        Cut::words(cuts, text, &mut |start, end| words.push(&text[start..end]));
        words
    }

    #[test]
    fn cuts_follow_each_other() {
        let digits_then_words = [Cut::Numbers { each: true }, Cut::Pattern(Pattern::Gpt2)];
        assert_eq!(words(&[], "ab c"), ["ab c"]);
        assert_eq!(words(&digits_then_words, "a 12b"), ["a", " ", "1", "2", "b"]);
        assert_eq!(words(&[Cut::Numbers { each: false }], "a 12b"), ["a ", "12", "b"]);
        assert_eq!(words(&[Cut::BeforeSpaceSigns], "a\u{2581}\u{2581}b"), ["a", "\u{2581}", "\u{2581}b"]);
        assert_eq!(words(&[Cut::BeforeSpaceSignRuns], "a\u{2581}\u{2581}b"), ["a", "\u{2581}\u{2581}b"]);
        assert!(words(&[Cut::BeforeSpaceSigns], "").is_empty());
    }
}
