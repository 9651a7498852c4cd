//! JSON files that carry their own checksum: the manifest, and the notes of a build's journal.
//!
//! ```text
//! {
//!   "checksum": "2f0c9a…",       16 hexadecimal digits
//!   …
//! ```
//!
//! It is the XXH3-64 of the file's bytes, with the 16 digits taken as zeros. So any change of any byte shows.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

/// What a sealed file begins with.
const START: &str = "{\n  \"checksum\": \"";
/// How many digits follow.
const DIGITS: usize = 16;
const ZEROS: &str = "0000000000000000";

/// Why a sealed file cannot be read. Completes a sentence that begins with the file's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("does not begin with its checksum: it is damaged, or was made by hand")]
    NotSealed,
    #[error("has checksum `{found}`, but says `{stated}`: it was damaged or edited")]
    Checksum { stated: String, found: String },
    #[error("is damaged: {0}")]
    Json(#[from] serde_json::Error),
}

/// The checksum of a file's content, as it is written everywhere: XXH3-64 in hexadecimal.
pub(crate) fn checksum(content: &[u8]) -> String {
    digits(xxh3_64(content))
}

/// A checksum as it is written.
pub(crate) fn digits(hash: u64) -> String {
    format!("{hash:0DIGITS$x}")
}

#[derive(Serialize)]
struct Sealed<'a, T> {
    checksum: &'a str,
    #[serde(flatten)]
    value: &'a T,
}

/// `value` as JSON with its checksum.
pub(crate) fn seal<T: Serialize>(value: &T) -> Vec<u8> {
    let sealed = Sealed { checksum: ZEROS, value };
    let mut text = serde_json::to_vec_pretty(&sealed).expect("these types have text keys and plain values");
    text.push(b'\n');
    let sum = checksum(&text);
    text[START.len()..START.len() + DIGITS].copy_from_slice(sum.as_bytes());
    text
}

/// What was sealed as `text`.
pub(crate) fn unseal<T: DeserializeOwned>(text: &[u8]) -> Result<T, Broken> {
    let stated = text.strip_prefix(START.as_bytes()).and_then(|rest| rest.get(..DIGITS)).ok_or(Broken::NotSealed)?;
    let mut zeroed = text.to_vec();
    zeroed[START.len()..START.len() + DIGITS].copy_from_slice(ZEROS.as_bytes());
    let found = checksum(&zeroed);
    if found.as_bytes() != stated {
        return Err(Broken::Checksum { stated: String::from_utf8_lossy(stated).into_owned(), found });
    }
    Ok(serde_json::from_slice(text)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_flipped_bit_shows() {
        let value = BTreeMap::from([("size".to_owned(), vec![224_u64, 1]), ("checks".to_owned(), Vec::new())]);
        let text = seal(&value);
        assert_eq!(unseal::<BTreeMap<String, serde_json::Value>>(&text).unwrap()["size"], serde_json::json!([224, 1]));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal::<serde_json::Value>(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..text.len() {
            assert!(unseal::<serde_json::Value>(&text[..length]).is_err(), "cut to {length}");
        }
        assert!(unseal::<serde_json::Value>(&[&text[..], b"\n"].concat()).is_err(), "a byte more");
    }
}
