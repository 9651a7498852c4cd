//! Which character set bytes are in, and the text they spell.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::error::{Error, Result};

/// How far into a page its declaration is looked for; the HTML standard asks for this much (§13.2.3.2, the prescan).
const PRESCAN_BYTES: usize = 1024;

/// The text that `bytes` spell.
///
/// In this order: a byte order mark; `declared`, the label of a character set that the caller knows (from an HTTP header,
/// say); the page's own `<meta charset>` within its first kilobyte; UTF-8 if the bytes are; and windows-1252, which has a
/// character for every byte. Sequences that spell nothing become U+FFFD.
pub fn decode_text<'a>(bytes: &'a [u8], declared: Option<&str>) -> Result<Cow<'a, str>> {
    let declared = declared.map(encoding_of_label).transpose()?;
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let encoding = match marked.or(declared).or_else(|| encoding_of_page(bytes)) {
        Some(encoding) => encoding,
        None if std::str::from_utf8(bytes).is_ok() => UTF_8,
        None => WINDOWS_1252,
    };
    Ok(encoding.decode(bytes).0)
}

fn encoding_of_label(label: &str) -> Result<&'static Encoding> {
    let unknown = || Error::usage("the character set is unknown", "a label of the Encoding Standard, as utf-8", label);
    Encoding::for_label(label.as_bytes()).ok_or_else(unknown)
}

/// What the page says of itself: the value after the first `charset=` inside a `<meta` tag.
fn encoding_of_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN_BYTES)].to_ascii_lowercase();
    let mut rest = &head[..];
    while let Some(start) = find(rest, b"<meta") {
        rest = &rest[start + 5..];
        let tag = &rest[..rest.iter().position(|&byte| byte == b'>').unwrap_or(rest.len())];
        let Some(at) = find(tag, b"charset") else { continue };
        let value = tag[at + 7..].trim_ascii_start();
        let Some(value) = value.strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
        let end = value.iter().position(|&byte| byte.is_ascii_whitespace() || b"\"';/".contains(&byte));
        if let Some(encoding) = Encoding::for_label(&value[..end.unwrap_or(value.len())]) {
            // A page whose declaration could be read at all is not in UTF-16, whatever it says.
            return Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 });
        }
    }
    None
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_beats_the_caller_who_beats_the_page() {
        assert_eq!(decode_text(b"\xEF\xBB\xBFn\xC3\xA9", Some("latin1")).unwrap(), "n\u{e9}");
        let page = b"<META http-equiv=content-type content=\"text/html; charset=windows-1251\">\xEF\xF0";
        assert!(decode_text(page, None).unwrap().ends_with("\u{43f}\u{440}"));
        assert!(decode_text(page, Some("latin1")).unwrap().ends_with("\u{ef}\u{f0}"));
        assert!(decode_text(b"<meta charset='utf-16'>\xC3\xA9", None).unwrap().ends_with('\u{e9}'));
        assert!(decode_text(page, Some("klingon")).is_err());
    }

    #[test]
    fn bytes_that_declare_nothing_are_utf8_or_windows_1252() {
        assert_eq!(decode_text("\u{fc}ber".as_bytes(), None).unwrap(), "\u{fc}ber");
        assert_eq!(decode_text(b"\xFCber \x80", None).unwrap(), "\u{fc}ber \u{20ac}");
        assert_eq!(decode_text(b"", None).unwrap(), "");
    }
}
