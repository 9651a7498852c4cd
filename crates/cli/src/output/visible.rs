//! Text of others on a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with everything that a terminal would obey instead of showing written out: `\x1B`, `\n`, `\u{202E}`. Names of files, members and
/// records come from others, and so do messages that quote them; they pass through here wherever they are printed.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str(r"\n"),
            '\r' => shown.push_str(r"\r"),
            '\t' => shown.push_str(r"\t"),
            _ if !is_obeyed(letter) => shown.push(letter),
            // Writing to a text does not fail.
            _ if letter.is_ascii() => _ = write!(shown, r"\x{:02X}", letter as u32),
            _ => _ = write!(shown, r"\u{{{:X}}}", letter as u32),
        }
    }
    Cow::Owned(shown)
}

/// Control characters, old and new, and those that turn the direction of what follows.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
        // Lines and paragraphs end at these, too.
        || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The same for JSON, whose own escapes do not cover all of them. They can only occur within strings there.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    let left = |letter: char| is_obeyed(letter) && letter != '\n';
    if !json.contains(left) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 8);
    for letter in json.chars() {
        match letter {
            _ if left(letter) => _ = write!(shown, r"\u{:04x}", letter as u32),
            _ => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        assert_eq!(visible("café ± 5 µs"), "café ± 5 µs");
        assert_eq!(visible("a\u{1b}[31mb\u{7}\u{7f}\n\t"), r"a\x1B[31mb\x07\x7F\n\t");
        assert_eq!(visible("a\u{9b}2Jb\u{202e}gpj"), r"a\u{9B}2Jb\u{202E}gpj");
        for code in (0..0x20).chain(0x7F..0xA0) {
            let letter = char::from_u32(code).unwrap();
            assert!(!visible(&letter.to_string()).contains(letter));
        }
    }

    #[test]
    fn json_stays_json() {
        let text = "a\u{9b}b\u{7f}c\u{202e}d\u{1b}";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let shown = visible_json(&json);
        assert!(shown.chars().all(|letter| letter == '\n' || !is_obeyed(letter)), "{shown:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [text]);
    }
}
