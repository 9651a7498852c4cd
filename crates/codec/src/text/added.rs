//! Added tokens: strings that are a token wherever they occur.

/// A token and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddedToken {
    pub(super) id: u32,
    pub(super) text: String,
    /// Whether it takes the white space before it with it.
    pub(super) strip_before: bool,
    /// Whether it takes the white space after it with it.
    pub(super) strip_after: bool,
}

/// The added tokens of a tokenizer, by their first byte, the longest first.
#[derive(Debug, Clone, Default)]
pub(super) struct AddedTokens {
    by_first: Vec<Vec<AddedToken>>,
}

/// A piece of a text.
pub(super) enum Part<'a> {
    Token(u32),
    Text(&'a str),
}

impl AddedTokens {
    pub(super) fn new(tokens: impl IntoIterator<Item = AddedToken>) -> Self {
        let mut by_first: Vec<Vec<AddedToken>> = Vec::new();
        for token in tokens {
            let Some(&first) = token.text.as_bytes().first() else { continue };
            by_first.resize(256, Vec::new());
            by_first[usize::from(first)].push(token);
        }
        for tokens in &mut by_first {
            tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        }
        Self { by_first }
    }

    /// The longest token that `text` begins with.
    #[inline]
    pub(super) fn at_start_of(&self, text: &str) -> Option<&AddedToken> {
        let first = *text.as_bytes().first()?;
        self.by_first.get(usize::from(first))?.iter().find(|token| text.starts_with(&token.text))
    }

    /// Hands the parts of `text` to `part`, in order, with whether the part is where the text begins.
    pub(super) fn split<'a>(&self, text: &'a str, mut part: impl FnMut(Part<'a>, bool)) {
        let mut done = 0;
        let mut at = 0;
        while !self.by_first.is_empty() && at < text.len() {
            // Tokens begin where characters do.
            let token = text.is_char_boundary(at).then(|| self.at_start_of(&text[at..])).flatten();
            let Some(token) = token else {
                at += 1;
                continue;
            };
            let before = &text[done..at];
            let before = if token.strip_before { before.trim_end() } else { before };
            if !before.is_empty() {
                part(Part::Text(before), done == 0);
            }
            part(Part::Token(token.id), at == 0);
            at += token.text.len();
            if token.strip_after {
                at = text.len() - text[at..].trim_start().len();
            }
            done = at;
        }
        if done < text.len() {
            part(Part::Text(&text[done..]), done == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: u32, text: &str, strip: bool) -> AddedToken {
        AddedToken { id, text: text.to_owned(), strip_before: strip, strip_after: strip }
    }

    #[test]
    fn the_longest_token_is_taken_and_white_space_with_it() {
        let tokens = AddedTokens::new([token(1, "<s>", false), token(2, "<s>>", false), token(3, "<m>", true)]);
        let mut parts = Vec::new();
        tokens.split("a <s>>b <m> \u{e9}<s", |part, first| {
            parts.push(match part {
                Part::Token(id) => (id.to_string(), first),
                Part::Text(text) => (text.to_owned(), first),
            });
        });
        let expected = [("a ", true), ("2", false), ("b", false), ("3", false), ("\u{e9}<s", false)];
        assert_eq!(parts, expected.map(|(text, first)| (text.to_owned(), first)));
    }
}
