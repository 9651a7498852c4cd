//! The classes of characters that tokenizers split by: letters, numbers, white space and the rest.

use std::sync::OnceLock;

use regex_syntax::hir::{Class as HirClass, HirKind};

/// What a character is to a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// None of the others: punctuation, symbols, marks, what is not assigned.
    Other,
    /// `\p{L}`.
    Letter,
    /// `\p{N}`.
    Number,
    /// `\s`.
    Space,
}

const PAGE: usize = 256;

/// The class of every character: pages of 256, most of which are alike and stored once.
pub(super) struct Classes {
    page_of: Vec<u16>,
    pages: Vec<[Class; PAGE]>,
}

impl Classes {
    /// The table, made at first use.
    pub(super) fn get() -> &'static Self {
        static CLASSES: OnceLock<Classes> = OnceLock::new();
        CLASSES.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut classes = vec![Class::Other; char::MAX as usize + 1];
        for (pattern, class) in [(r"\p{L}", Class::Letter), (r"\p{N}", Class::Number)] {
            for (first, last) in ranges(pattern) {
                classes[first as usize..=last as usize].fill(class);
            }
        }
        for space in ('\0'..='\u{ffff}').filter(|character| character.is_whitespace()) {
            classes[space as usize] = Class::Space;
        }
        let mut pages: Vec<[Class; PAGE]> = Vec::new();
        let mut page_of = Vec::new();
        for page in classes.as_chunks::<PAGE>().0 {
            // Neighboring pages are alike (a whole script of letters), so the search from the end is short.
            let known = pages.iter().rposition(|known| known == page).unwrap_or_else(|| {
                pages.push(*page);
                pages.len() - 1
            });
            page_of.push(known as u16);
        }
        Self { page_of, pages }
    }

    #[inline]
    pub(super) fn of(&self, character: char) -> Class {
        let code = character as usize;
        self.pages[self.page_of[code / PAGE] as usize][code % PAGE]
    }
}

/// The ranges of a Unicode class, from the tables of the regular expressions that the established tokenizers use.
fn ranges(pattern: &str) -> Vec<(char, char)> {
    let class = regex_syntax::parse(pattern).expect("a general category is a pattern");
    match class.kind() {
        HirKind::Class(HirClass::Unicode(class)) => {
            class.ranges().iter().map(|range| (range.start(), range.end())).collect()
        }
        // Only a pattern that is no class comes here, and both above are.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_unicode() {
        let classes = Classes::get();
        for (character, class) in [
            ('a', Class::Letter),
            ('\u{e9}', Class::Letter),
            ('\u{4f60}', Class::Letter),
            ('\u{20000}', Class::Letter),
            ('7', Class::Number),
            ('\u{bd}', Class::Number),
            ('\u{2167}', Class::Number),
            (' ', Class::Space),
            ('\u{a0}', Class::Space),
            ('\u{3000}', Class::Space),
            // A combining mark is alphabetic to some, but no letter.
            ('\u{345}', Class::Other),
            ('\u{1f642}', Class::Other),
            ('\u{200b}', Class::Other),
            (char::MAX, Class::Other),
        ] {
            assert_eq!(classes.of(character), class, "{character:?}");
        }
    }
}
