//! Files that are given as a list, instead of being looked for.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use forebay_plan::Skipped;
use forebay_record::name_text;
use forebay_storage::{Folder, is_url};

use super::labels::{BYTE_ORDER_MARK, GivenLabel, LabelValue};
use super::listing::{Entry, SampleLocation};
use crate::error::{Error, Result};
use crate::load::OnError;

/// Files in an order, each once: below the data folder, or anywhere where a path is absolute. Whoever gives the list names them, so that they may lie
/// outside the data folder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileList {
    /// Their paths.
    pub paths: Vec<PathBuf>,
    /// As many labels, for `label = "list"`.
    pub labels: Option<Vec<GivenLabel>>,
}

impl FileList {
    /// The list in a text of one path per line, with a tab and a label behind it where it is `labeled`. Empty lines are left out.
    pub fn parse(text: &[u8], labeled: bool) -> Result<Self> {
        let mut list = Self { paths: Vec::new(), labels: labeled.then(Vec::new) };
        let text = text.strip_prefix(BYTE_ORDER_MARK.to_string().as_bytes()).unwrap_or(text);
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let Some(labels) = &mut list.labels else {
                list.paths.push(OsStr::from_bytes(line).into());
                continue;
            };
            let tab = line.iter().rposition(|&byte| byte == b'\t');
            let label = tab.and_then(|tab| std::str::from_utf8(&line[tab + 1..]).ok());
            let (Some(tab), Some(label)) = (tab, label) else {
                return Err(Error::Usage {
                    problem: format!("line {} of the list of files has no label: `{}`", number + 1, name_text(line)),
                    remedy: "write path, tab, label, or use another `label` than `list`".to_owned(),
                });
            };
            list.paths.push(OsStr::from_bytes(&line[..tab]).into());
            labels.push(GivenLabel::Text(label.trim().to_owned()));
        }
        Ok(list)
    }

    /// The files that are there. Each notes its index in the list as its label, as long as nobody labels it.
    pub(super) fn entries(&self, root: &Folder, on_error: OnError, lost: &mut Vec<Skipped>) -> Result<Vec<Entry>> {
        let usage = |problem: String, remedy: &str| Error::Usage { problem, remedy: remedy.to_owned() };
        if self.paths.is_empty() {
            return Err(usage("the list of files is empty".to_owned(), "name at least one"));
        }
        if let Some(labels) = self.labels.as_ref().filter(|labels| labels.len() != self.paths.len()) {
            let problem = format!("the list has {} files and {} labels", self.paths.len(), labels.len());
            return Err(usage(problem, "give each file one label"));
        }
        let is_absolute = is_url(root.path());
        let absolute =
            if is_absolute { root.path().to_owned() } else { std::path::absolute(root.path()).unwrap_or_default() };
        let mut known: HashSet<Arc<str>> = HashSet::with_capacity(self.paths.len());
        let mut entries = Vec::with_capacity(self.paths.len());
        for (index, named) in self.paths.iter().enumerate() {
            let path = tidy(named.strip_prefix(&absolute).unwrap_or(named));
            let key: Arc<str> = name_text(path.as_os_str().as_bytes()).into();
            if path.components().any(|part| part == Component::ParentDir) {
                // Where that leads depends on links, so that one file could be named twice, or be of another folder than it seems.
                return Err(usage(format!("the list of files has `{key}`, with `..` in it"), "name the file without"));
            }
            if !known.insert(Arc::clone(&key)) {
                // A key has one sample: states, tables and what is skipped go by it.
                return Err(usage(format!("the list of files has `{key}` twice"), "name each file once"));
            }
            let full = root.file(&path);
            let found = root.storage().status(&full).map_err(Error::from);
            let missing = || Error::io("find the listed file", &full)(ErrorKind::NotFound.into());
            match found.and_then(|found| found.ok_or_else(missing)) {
                Ok(status) => entries.push(Entry {
                    key,
                    location: SampleLocation::File(path),
                    bytes: status.bytes,
                    version: status.version,
                    label: Some(LabelValue::Int(index as i64)),
                }),
                Err(error) if on_error == OnError::Fail => return Err(error),
                Err(error) => lost.push(Skipped::one(&*key, &error)),
            }
        }
        match lost.first() {
            Some(first) if entries.is_empty() => {
                Err(Error::AllSkipped { samples: self.paths.len() as u64, first: Box::new(first.clone()) })
            }
            _ => Ok(entries),
        }
    }
}

/// The path without what says nothing: `./a//b` is `a/b`.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
