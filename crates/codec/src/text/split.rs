//! Cuts text into words before tokens are made of them: the patterns of GPT-2 and its heirs, without a regular expression.
//!
//! A tokenizer never joins characters across words, so words can be looked up. Each pattern is given in its own notation
//! beside the function that does it.

use super::classes::{Class, Classes};

/// How text is cut into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// GPT-2, and most that came until 2022.
    Gpt2,
    /// Like OpenAI's `cl100k_base` and Llama 3, with at most that many digits in a word (3 there, 1 in Qwen 2).
    Cl100k {
        /// The most digits in a word.
        digits_max: u8,
    },
}

impl Pattern {
    /// Hands each word of `text` to `word` as a range of bytes; together they are all of it.
    #[inline]
    pub(super) fn words(self, text: &str, mut word: impl FnMut(usize, usize)) {
        let cursor = Cursor { text, classes: Classes::get() };
        let mut start = 0;
        while start < text.len() {
            let end = match self {
                Self::Gpt2 => cursor.gpt2(start),
                Self::Cl100k { digits_max } => cursor.cl100k(start, digits_max),
            };
            word(start, end);
            start = end;
        }
    }
}

/// What may follow an apostrophe to make a word: `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d`.
const CONTRACTIONS: [&str; 7] = ["s", "t", "re", "ve", "m", "ll", "d"];

struct Cursor<'a> {
    text: &'a str,
    classes: &'static Classes,
}

impl Cursor<'_> {
    /// The class of the character at `at` and where the next begins; `None` at the end.
    #[inline]
    fn look(&self, at: usize) -> Option<(Class, usize)> {
        let byte = *self.text.as_bytes().get(at)?;
        if byte < 0x80 {
            return Some((ASCII[usize::from(byte)], at + 1));
        }
        let character = self.text[at..].chars().next()?;
        Some((self.classes.of(character), at + character.len_utf8()))
    }

    /// The end of the run of characters of `class` from `at`.
    #[inline]
    fn run(&self, class: Class, mut at: usize) -> usize {
        while let Some((found, next)) = self.look(at)
            && found == class
        {
            at = next;
        }
        at
    }

    /// ```text
    /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    /// ```
    #[inline]
    fn gpt2(&self, start: usize) -> usize {
        let Some((class, next)) = self.look(start) else { return start };
        match class {
            Class::Space => match self.look(next) {
                Some((class, after)) if class != Class::Space && self.text.as_bytes()[start] == b' ' => {
                    self.run(class, after)
                }
                _ => self.spaces(start, next),
            },
            Class::Other if self.text.as_bytes()[start] == b'\'' => {
                let rest = &self.text.as_bytes()[next..];
                let contraction = CONTRACTIONS.iter().find(|end| rest.starts_with(end.as_bytes()));
                contraction.map_or_else(|| self.run(class, next), |end| next + end.len())
            }
            _ => self.run(class, next),
        }
    }

    /// ```text
    /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
    /// ```
    fn cl100k(&self, start: usize, digits_max: u8) -> usize {
        let Some((class, next)) = self.look(start) else { return start };
        let first = self.text.as_bytes()[start];
        if first == b'\''
            && let Some(length) = any_case_contraction(&self.text[next..])
        {
            return next + length;
        }
        match (class, self.look(next)) {
            (Class::Letter, _) => self.run(Class::Letter, next),
            (Class::Number, _) => {
                let mut end = next;
                for _ in 1..digits_max {
                    let Some((Class::Number, next)) = self.look(end) else { break };
                    end = next;
                }
                end
            }
            (_, Some((Class::Letter, after))) if first != b'\r' && first != b'\n' => self.run(Class::Letter, after),
            (Class::Other, _) => self.line_ends(self.run(Class::Other, next)),
            (Class::Space, Some((Class::Other, after))) if first == b' ' => {
                self.line_ends(self.run(Class::Other, after))
            }
            (Class::Space, _) => {
                let run = &self.text[start..self.run(Class::Space, next)];
                match run.rfind(['\r', '\n']) {
                    Some(last) => start + last + 1,
                    None => self.spaces(start, next),
                }
            }
        }
    }

    fn line_ends(&self, mut at: usize) -> usize {
        while let Some(b'\r' | b'\n') = self.text.as_bytes().get(at) {
            at += 1;
        }
        at
    }

    /// `\s+(?!\S)|\s+`: white space, but for the last of it where a word follows, to which it may belong.
    fn spaces(&self, start: usize, next: usize) -> usize {
        let end = self.run(Class::Space, next);
        if end == self.text.len() || end == next {
            return end;
        }
        let last = self.text[start..end].chars().next_back().map_or(0, char::len_utf8);
        end - last
    }
}

/// The length of a contraction's letters in either case. The long s is an s to regular expressions that ignore case.
fn any_case_contraction(rest: &str) -> Option<usize> {
    let mut letters = rest.chars();
    let first = letters.next()?;
    let second = letters.next();
    match (first.to_ascii_lowercase(), second.map(|letter| letter.to_ascii_lowercase())) {
        ('s' | '\u{17f}' | 't' | 'm' | 'd', _) => Some(first.len_utf8()),
        ('r' | 'v', Some('e')) | ('l', Some('l')) => Some(2),
        _ => None,
    }
}

const ASCII: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut byte = 0;
    while byte < 128 {
        let character = byte as u8;
        if character.is_ascii_alphabetic() {
            classes[byte] = Class::Letter;
        } else if character.is_ascii_digit() {
            classes[byte] = Class::Number;
        } else if matches!(character, b' ' | 0x09..=0x0D) {
            classes[byte] = Class::Space;
        }
        byte += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pattern: Pattern, text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        pattern.words(text, |start, end| words.push(&text[start..end]));
        words
    }

    #[test]
    fn gpt2_words() {
        for (text, expected) in [
            ("Hello world", &["Hello", " world"][..]),
            ("we'll I'M !'s", &["we", "'ll", " I", "'", "M", " !'", "s"]),
            ("a  b\n\nc \t d  ", &["a", " ", " b", "\n", "\n", "c", " \t", " d", "  "]),
            ("x\u{a0}\u{a0}y 12.5", &["x", "\u{a0}", "\u{a0}", "y", " 12", ".", "5"]),
            ("", &[]),
        ] {
            assert_eq!(words(Pattern::Gpt2, text), expected);
        }
    }

    #[test]
    fn cl100k_words() {
        let pattern = Pattern::Cl100k { digits_max: 3 };
        for (text, expected) in [
            ("I'M 12345 (ok)\r\n\n x", &["I", "'M", " ", "123", "45", " (", "ok", ")\r\n\n", " x"][..]),
            ("a \n  b  ", &["a", " \n", " ", " b", "  "]),
            ("'\u{17f}'x\tab", &["'\u{17f}", "'x", "\tab"]),
        ] {
            assert_eq!(words(pattern, text), expected);
        }
        assert_eq!(words(Pattern::Cl100k { digits_max: 1 }, "12"), ["1", "2"]);
    }

    #[test]
    fn the_table_of_ascii_agrees_with_unicode() {
        for byte in 0..128_u8 {
            assert_eq!(ASCII[usize::from(byte)], Classes::get().of(char::from(byte)), "{byte}");
        }
    }
}
