//! Names by a pattern, as WebDataset writes them: `https://host/shard-{000000..000099}.tar`. A web server cannot say what it has, so that names are
//! given; in a bucket it saves listing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_plan::Skipped;
use forebay_record::name_text;
use forebay_storage::{Folder, is_url};

use super::listing::{Entry, SampleLocation};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::threads;

/// More names are no pattern but a mistake.
const NAMES_MAX: usize = 1_000_000;

/// Whether this is a URL with a pattern in it. (A file of this machine may be called like one.)
pub fn has_braces(path: &Path) -> bool {
    is_url(path) && path.to_str().and_then(first_braces).is_some()
}

/// The folder that the names of a pattern lie in, and those names below it; `None` where `path` is no pattern.
pub(super) fn names(path: &Path) -> Result<Option<(PathBuf, Vec<PathBuf>)>> {
    let Some((text, (start, _))) =
        path.to_str().filter(|_| is_url(path)).and_then(|text| Some((text, first_braces(text)?)))
    else {
        return Ok(None);
    };
    let folder = text[..start].rfind('/').unwrap_or(0);
    let mut names = Vec::new();
    expand(&text[folder + 1..], &mut names).map_err(|problem| Error::Usage {
        problem: format!("`{}` is not a pattern of names: {problem}", path.display()),
        remedy: "write it like `https://host/shard-{000000..000099}.tar`, or `{a,b,c}`".to_owned(),
    })?;
    Ok(Some((text[..folder].into(), names.into_iter().map(PathBuf::from).collect())))
}

/// Where the first braces are.
fn first_braces(text: &str) -> Option<(usize, usize)> {
    let start = text.find('{')?;
    Some((start, start + text[start..].find('}')?))
}

/// Every name that a pattern means, in its order.
fn expand(text: &str, names: &mut Vec<String>) -> std::result::Result<(), String> {
    let Some((start, end)) = first_braces(text) else {
        if names.len() >= NAMES_MAX {
            return Err(format!("it has more than {NAMES_MAX} names"));
        }
        names.push(text.to_owned());
        return Ok(());
    };
    let (before, within, after) = (&text[..start], &text[start + 1..end], &text[end + 1..]);
    let mut each = |part: &str| expand(&format!("{before}{part}{after}"), names);
    let Some((first, last)) = within.split_once("..") else {
        return within.split(',').try_for_each(|part| each(part.trim()));
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
    let (from, to) = (number(first)?, number(last)?);
    if from > to || to - from >= NAMES_MAX as u64 {
        return Err(format!("`{within}` counts backwards, or too far"));
    }
    // As many digits as the first has.
    (from..=to).try_for_each(|number| each(&format!("{number:0width$}", width = first.len())))
}

/// The files of these names below `root`, looked at several together.
pub(super) fn look_up(
    root: &Folder,
    names: &[PathBuf],
    on_error: OnError,
    lost: &mut Vec<Skipped>,
) -> Result<Vec<Entry>> {
    let look = |number: usize| {
        let path = root.file(&names[number]);
        let missing = || Error::io("find the named file", &path)(std::io::ErrorKind::NotFound.into());
        root.storage().status(&path).map_err(Error::from).and_then(|status| status.ok_or_else(missing))
    };
    let ends = |status: &Result<_>| status.is_err() && on_error == OnError::Fail;
    let threads = root.storage().reads_at_once(root.path());
    let found = threads::each(names.len(), threads, "look at the named files", look, ends)?;
    let mut entries = Vec::with_capacity(names.len());
    for (name, status) in names.iter().zip(found) {
        let key: Arc<str> = name_text(name.as_os_str().as_encoded_bytes()).into();
        match status {
            Ok(status) => entries.push(Entry {
                key,
                location: SampleLocation::File(name.clone()),
                bytes: status.bytes,
                version: status.version,
                label: None,
            }),
            Err(error) if on_error == OnError::Fail => return Err(error),
            Err(error) => lost.push(Skipped::one(&*key, &error)),
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Vec<String> {
        let mut names = Vec::new();
        expand(text, &mut names).unwrap();
        names
    }

    #[test]
    fn patterns_are_written_out() {
        assert_eq!(
            expanded("shard-{008..011}.tar"),
            ["shard-008.tar", "shard-009.tar", "shard-010.tar", "shard-011.tar"]
        );
        assert_eq!(expanded("{a,b}-{0..1}"), ["a-0", "a-1", "b-0", "b-1"]);
        assert_eq!(expanded("plain"), ["plain"]);
        for wrong in ["{3..1}", "{a..b}", "{0..99999999}", "{0..999}{0..9999}"] {
            assert!(expand(wrong, &mut Vec::new()).is_err(), "{wrong}");
        }
        let (folder, names) = names(Path::new("s3://bucket/train/x-{0..2}.tar")).unwrap().unwrap();
        assert_eq!((folder.to_str(), names.len()), (Some("s3://bucket/train"), 3));
        assert!(!has_braces(Path::new("/data/{0..2}")) && !has_braces(Path::new("s3://bucket/train")));
    }
}
