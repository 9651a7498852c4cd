//! Names of files and members as text.

use std::borrow::Cow;

/// The text for a name: itself where it is UTF-8, else with each byte that is not as `\xE9`. Different names give different texts, so a
/// backslash is doubled where it could be mistaken for such a byte's.
///
/// ```
/// use forebay_record::name_text;
///
/// assert_eq!(name_text("café".as_bytes()), "café");
/// assert_eq!(name_text(b"caf\xE9"), r"caf\xE9");
/// assert_eq!(name_text(br"caf\xE9"), r"caf\\xE9");
/// ```
pub fn name_text(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        // What is made below always has this in it.
        Ok(text) if !text.contains(r"\x") => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(name)),
    }
}

fn escaped(name: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(name.len() + 8);
    for chunk in name.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            let _ = write!(text, r"\x{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn different_names_give_different_texts() {
        // All names of up to five bytes of an alphabet that holds everything that matters.
        let alphabet = [b'\\', b'x', b'E', b'9', 0xE9, 0xC3, 0xA9];
        let mut names: Vec<Vec<u8>> = vec![Vec::new()];
        let mut last = names.clone();
        for _ in 0..5 {
            last = last.iter().flat_map(|name| alphabet.map(|byte| [&name[..], &[byte]].concat())).collect();
            names.extend_from_slice(&last);
        }
        let mut seen: HashMap<String, &[u8]> = HashMap::new();
        for name in &names {
            if let Some(other) = seen.insert(name_text(name).into_owned(), name) {
                panic!("{name:?} and {other:?} are both {}", name_text(name));
            }
        }
        assert_eq!(seen.len(), names.len());
    }
}
