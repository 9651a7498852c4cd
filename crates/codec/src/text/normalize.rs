//! What is done to text before it is cut: forms of characters, white space, prefixes.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use super::added::AddedTokens;
use super::charsmap::Charsmap;
use super::cut::SPACE_SIGN;

/// Changes of the text, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Normalizer {
    pub(super) changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Form(Form),
    Lowercase,
    Strip {
        left: bool,
        right: bool,
    },
    /// Puts `text` before everything that is not empty.
    Prepend {
        text: String,
    },
    /// Puts `text` before what does not begin with it; only where the whole text begins, if `first_only`.
    PrependUnlessThere {
        text: String,
        first_only: bool,
    },
    Replace {
        from: String,
        to: String,
    },
    /// Two or more spaces become `to`.
    ReplaceSpaceRuns {
        to: String,
    },
    /// SentencePiece's table of characters as Hugging Face applies it, grapheme by grapheme.
    Charsmap(Charsmap),
    SentencePiece(SentencePiece),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// SentencePiece's own normalizer.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the file's own")]
pub(super) struct SentencePiece {
    pub(super) charsmap: Option<Charsmap>,
    /// Symbols that are left unchanged.
    pub(super) kept: AddedTokens,
    pub(super) space_before: bool,
    pub(super) space_as_suffix: bool,
    pub(super) single_spaces: bool,
    pub(super) space_signs: bool,
}

/// Scratch for the work.
#[derive(Debug, Default)]
pub(super) struct NormalizeScratch {
    text: String,
}

impl Normalizer {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// `text` after all changes; `first` says whether this is the start of the entire text.
    pub(super) fn apply<'a>(&self, text: &'a str, first: bool, scratch: &'a mut NormalizeScratch) -> &'a str {
        let mut now = Cow::Borrowed(text);
        for change in &self.changes {
            if let Some(changed) = change.apply(&now, first) {
                now = Cow::Owned(changed);
            }
        }
        match now {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => {
                scratch.text = text;
                &scratch.text
            }
        }
    }
}

impl Change {
    /// How many times as long a text may become by it; what is put before the text is not counted.
    pub(super) fn growth(&self) -> usize {
        match self {
            // In UTF-8, by the Unicode Consortium's FAQ on normalization.
            Self::Form(Form::Nfc | Form::Nfd) => 3,
            Self::Form(Form::Nfkc | Form::Nfkd) => 11,
            // U+0130 is an i and a dot above it then: three bytes of two.
            Self::Lowercase => 2,
            Self::Strip { .. } | Self::Prepend { .. } | Self::PrependUnlessThere { .. } => 1,
            Self::Replace { from, to } => to.len().div_ceil(from.len()).max(1),
            Self::ReplaceSpaceRuns { to } => to.len().div_ceil(2).max(1),
            Self::Charsmap(charsmap) => charsmap.longest_text(),
            Self::SentencePiece(normalizer) => {
                let sign = if normalizer.space_signs { SPACE_SIGN.len_utf8() } else { 1 };
                normalizer.charsmap.as_ref().map_or(1, Charsmap::longest_text) * sign
            }
        }
    }

    /// What it puts before a text.
    pub(super) fn prefix(&self) -> &str {
        match self {
            Self::Prepend { text } | Self::PrependUnlessThere { text, .. } => text,
            _ => "",
        }
    }

    /// The changed text, or `None` where nothing changes.
    fn apply(&self, text: &str, first: bool) -> Option<String> {
        match self {
            Self::Form(_) if text.is_ascii() => None,
            Self::Form(Form::Nfc) => Some(text.nfc().collect()),
            Self::Form(Form::Nfd) => Some(text.nfd().collect()),
            Self::Form(Form::Nfkc) => Some(text.nfkc().collect()),
            Self::Form(Form::Nfkd) => Some(text.nfkd().collect()),
            // Character by character, as Hugging Face does: a final sigma is a sigma.
            Self::Lowercase => Some(text.chars().flat_map(char::to_lowercase).collect()),
            Self::Strip { left, right } => {
                let text = if *left { text.trim_start() } else { text };
                Some(if *right { text.trim_end() } else { text }.to_owned())
            }
            Self::Prepend { text: before } => (!text.is_empty()).then(|| format!("{before}{text}")),
            Self::PrependUnlessThere { text: before, first_only } => {
                let wanted = (first || !first_only) && !text.starts_with(before);
                wanted.then(|| format!("{before}{text}"))
            }
            Self::Replace { from, to } => text.contains(from).then(|| text.replace(from, to)),
            Self::ReplaceSpaceRuns { to } => text.contains("  ").then(|| replace_space_runs(text, to)),
            Self::Charsmap(charsmap) => Some(by_graphemes(charsmap, text)),
            Self::SentencePiece(normalizer) => Some(normalizer.apply(text)),
        }
    }
}

fn replace_space_runs(text: &str, to: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("  ") {
        out.push_str(&rest[..start]);
        out.push_str(to);
        rest = rest[start..].trim_start_matches(' ');
    }
    out.push_str(rest);
    out
}

/// Hugging Face looks up complete graphemes of up to five bytes, then single characters, and takes the shortest match of each.
fn by_graphemes(charsmap: &Charsmap, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        if grapheme.len() < 6
            && let Some(to) = charsmap.shortest(grapheme.as_bytes())
        {
            out.push_str(to);
            continue;
        }
        let mut buffer = [0; 4];
        for character in grapheme.chars() {
            match charsmap.shortest(character.encode_utf8(&mut buffer).as_bytes()) {
                Some(to) => out.push_str(to),
                None => out.push(character),
            }
        }
    }
    out
}

impl SentencePiece {
    /// The longest entry of the table, a kept symbol, or one character as it is; and how many bytes it stands for.
    fn next<'a>(&'a self, text: &'a str) -> (&'a str, usize) {
        if let Some(kept) = self.kept.at_start_of(text) {
            return (&text[..kept.text.len()], kept.text.len());
        }
        if let Some((to, bytes)) = self.charsmap.as_ref().and_then(|charsmap| charsmap.longest(text.as_bytes()))
            && text.is_char_boundary(bytes)
        {
            return (to, bytes);
        }
        let bytes = text.chars().next().map_or(text.len(), char::len_utf8);
        (&text[..bytes], bytes)
    }

    fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 2);
        let mut rest = text;
        while self.single_spaces && !rest.is_empty() {
            let (to, bytes) = self.next(rest);
            if to != " " {
                break;
            }
            rest = &rest[bytes..];
        }
        if rest.is_empty() {
            return out;
        }
        let space = if self.space_signs { SPACE_SIGN } else { ' ' };
        if self.space_before && !self.space_as_suffix {
            out.push(space);
        }
        let mut after_space = self.single_spaces;
        while !rest.is_empty() {
            let (to, bytes) = self.next(rest);
            rest = &rest[bytes..];
            let to = if after_space { to.trim_start_matches(' ') } else { to };
            if !to.is_empty() {
                out.extend(to.chars().map(|character| if character == ' ' { space } else { character }));
                after_space = self.single_spaces && to.ends_with(' ');
            }
        }
        if self.single_spaces {
            out.truncate(out.trim_end_matches(space).len());
        }
        if self.space_before && self.space_as_suffix {
            out.push(space);
        }
        out
    }
}
