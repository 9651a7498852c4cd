//! Base64, as tokenizer files use it: the plain alphabet, padded.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes that `text` spells, or `None` if it is not Base64.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits = 0_u32;
    for (index, byte) in text[..text.len() - padding].iter().enumerate() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        match index % 4 {
            1 => bytes.push((bits >> 4) as u8),
            2 => bytes.push((bits >> 2) as u8),
            3 => bytes.push(bits as u8),
            _ => {}
        }
    }
    Some(bytes)
}

/// `bytes` in Base64.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0, |bits, (index, &byte)| bits | u32::from(byte) << (16 - 8 * index));
        for index in 0..4 {
            let sign = if index <= chunk.len() { ALPHABET[(bits >> (18 - 6 * index) & 63) as usize] } else { b'=' };
            text.push(char::from(sign));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let cases =
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"\xFF\xFE\xFD\0", "//79AA==")];
        for (bytes, text) in cases {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes));
        }
        for text in ["Zg", "Zg=", "Z===", "Zm9*", "===="] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
