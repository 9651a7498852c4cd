//! Where the files beside a sample's own lie: a path with parts of the sample's in it, as they are or with a text replaced.
//!
//! ```text
//! masks/{stem}.png
//! {folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_labelIds}.png
//! ```
//!
//! `{part:old=new}` is the part with every `old` in it replaced by `new`, as `$(name:old=new)` of make or Python's `str.replace` do it.
//! A part without `old` is an error: the path would be that of another file, the sample's own for the most part. Braces that
//! are meant are written twice.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::nearest::nearest;

/// The path of a file beside a sample's own, from the data folder on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarPath(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Part { part: Part, replaced: Option<(String, String)> },
}

/// A part of the path of a sample's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Folder,
    Stem,
    Name,
}

const PARTS: [(&str, Part); 3] = [("folder", Part::Folder), ("stem", Part::Stem), ("name", Part::Name)];

impl SidecarPath {
    /// The path that `from` describes, or what is wrong with it.
    pub fn parse(from: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = from;
        while let Some(letter) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                text.push(letter);
                rest = after;
            } else if letter == '{' {
                let (inside, after) = rest[1..].split_once('}').ok_or("a `{` that is not closed")?;
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(placeholder(inside)?);
                rest = after;
            } else if letter == '}' {
                return Err("a `}` that closes nothing: write `}}` for a brace".to_owned());
            } else {
                text.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        pieces.push(Piece::Text(text));
        Ok(Self(pieces))
    }

    /// Whether it is the same for every sample.
    pub fn is_fixed(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// The path for the sample whose file is `sample`, or why there is none.
    pub fn of(&self, sample: &Path) -> Result<PathBuf, String> {
        // As bytes, since a name need not be text.
        let mut path = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => path.extend_from_slice(text.as_bytes()),
                Piece::Part { part, replaced: None } => path.extend_from_slice(part.of(sample)),
                Piece::Part { part, replaced: Some((old, new)) } => {
                    if !replace(part.of(sample), old.as_bytes(), new.as_bytes(), &mut path) {
                        return Err(format!("its {} has no `{old}` to be replaced", part.name()));
                    }
                }
            }
        }
        Ok(PathBuf::from(OsStr::from_bytes(&path)))
    }
}

impl Part {
    fn name(self) -> &'static str {
        PARTS.iter().find(|(_, part)| *part == self).map_or("", |(name, _)| name)
    }

    fn of(self, sample: &Path) -> &[u8] {
        let folder = || sample.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match self {
            Self::Folder => folder().as_os_str(),
            Self::Stem => sample.file_stem().unwrap_or_default(),
            Self::Name => sample.file_name().unwrap_or_default(),
        }
        .as_bytes()
    }
}

/// What stands between two braces.
fn placeholder(inside: &str) -> Result<Piece, String> {
    let (name, replaced) = match inside.split_once(':') {
        None => (inside, None),
        Some((name, replaced)) => (name, Some(replaced)),
    };
    let Some((_, part)) = PARTS.iter().find(|(known, _)| *known == name) else {
        let names = PARTS.map(|(name, _)| name);
        let meant = nearest(name, names).map(|name| format!("; did you mean `{{{name}}}`?")).unwrap_or_default();
        let known = names.map(|name| format!("`{{{name}}}`")).join(", ");
        return Err(format!("the placeholder `{{{inside}}}`, which is none of {known}{meant}"));
    };
    let replaced = match replaced.map(|replaced| replaced.split_once('=')) {
        None => None,
        Some(Some((old, new))) if !old.is_empty() => Some((old.to_owned(), new.to_owned())),
        Some(_) => return Err(format!("`{{{inside}}}`: write what is replaced by what, as `{{{name}:old=new}}`")),
    };
    Ok(Piece::Part { part: *part, replaced })
}

/// Appends `value` with every `old` replaced to `out`; whether there was one.
fn replace(value: &[u8], old: &[u8], new: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut rest, mut found) = (value, false);
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(old) {
            out.extend_from_slice(new);
            (rest, found) = (after, true);
        } else {
            out.push(first);
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(from: &str, sample: &str) -> Result<PathBuf, String> {
        SidecarPath::parse(from)?.of(Path::new(sample))
    }

    #[test]
    fn parts_are_taken_as_they_are_or_replaced() {
        for (from, sample, expected) in [
            ("masks/{stem}.png", "images/a.b.jpg", "masks/a.b.png"),
            ("{folder}/../masks/{name}", "a.jpg", "./../masks/a.jpg"),
            (
                "{folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_labelIds}.png",
                "leftImg8bit/train/aachen/aachen_000000_000019_leftImg8bit.png",
                "gtFine/train/aachen/aachen_000000_000019_gtFine_labelIds.png",
            ),
            ("{folder:train/images=train/masks}/{name:jpg=png}", "train/images/x.jpg", "train/masks/x.png"),
            ("{stem:a=aa}", "banana.png", "baanaanaa"),
            ("{stem:_left=}.png", "x_left.jpg", "x.png"),
            ("{stem:a=b=c}", "a.jpg", "b=c"),
            ("{{{stem}}}", "{name}.jpg", "{{name}}"),
        ] {
            assert_eq!(path(from, sample).unwrap(), Path::new(expected), "{from}");
        }
        let no_text = Path::new(OsStr::from_bytes(b"caf\xE9_left.jpg"));
        let found = SidecarPath::parse("{stem:_left=_right}").unwrap().of(no_text).unwrap();
        assert_eq!(found.as_os_str().as_bytes(), b"caf\xE9_right");
    }

    #[test]
    fn what_is_not_there_cannot_be_replaced() {
        assert_eq!(path("{stem:_left=_right}.png", "x.png").unwrap_err(), "its stem has no `_left` to be replaced");
        assert!(path("{folder:images=masks}/{name}", "x.png").unwrap_err().contains("its folder has no `images`"));
    }

    #[test]
    fn what_is_no_placeholder_is_refused() {
        for (from, expected) in [
            ("{stme}.png", "`{stme}`, which is none of `{folder}`, `{stem}`, `{name}`; did you mean `{stem}`?"),
            ("{dir}/x", "`{dir}`, which is none of `{folder}`, `{stem}`, `{name}`"),
            ("{Stem}", "did you mean `{stem}`?"),
            ("{}", "the placeholder `{}`"),
            ("{stem", "not closed"),
            ("a}b", "closes nothing"),
            ("{stem:a}", "as `{stem:old=new}`"),
            ("{stem:=a}", "as `{stem:old=new}`"),
        ] {
            let found = SidecarPath::parse(from).unwrap_err();
            assert!(found.contains(expected), "{from}: {found}");
        }
        assert!(!SidecarPath::parse("{dir}").unwrap_err().contains("mean"));
        assert!(SidecarPath::parse("a{{stem}}").unwrap().is_fixed());
    }
}
