//! The listing: the files of a source, their order and their labels.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use forebay_pipeline::{Field, LABEL_FIELD, Label, Order, Random, Sample, Source, Value};
use globset::GlobBuilder;
use walkdir::WalkDir;

use crate::error::{Error, Result};

/// The files of a source, in the order that numbers them.
#[derive(Debug, Clone)]
pub struct Listing {
    root: PathBuf,
    files: Vec<SourceFile>,
    classes: Vec<String>,
    field: Arc<str>,
}

/// One file of a source.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path below the root.
    pub path: PathBuf,
    /// The same as text: the sample's key.
    pub key: Arc<str>,
    /// Its size.
    pub bytes: u64,
    /// When it was changed last, where the file system says so.
    pub modified: Option<SystemTime>,
    /// Its class, as a number into [`Listing::classes`].
    pub label: Option<i64>,
}

impl Listing {
    /// Lists what `source` means in the folder `root`.
    pub fn scan(source: &Source, root: &Path) -> Result<Self> {
        let mut files = walk(source, root)?;
        if files.is_empty() {
            return Err(Error::Usage {
                problem: format!("no file below `{}` matches `{}`", root.display(), source.files),
                remedy: "check the folder, or set `files` in the pipeline's [source]".to_owned(),
            });
        }
        files.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let classes = match source.label {
            Label::None => Vec::new(),
            Label::Folder => label_by(&mut files, |file| folder_of(&file.path))?,
            Label::Table => {
                let table = read_table(source, root)?;
                label_by(&mut files, |file| table_entry(&table, &file.path))?
            }
        };
        if source.order == Order::Shuffled {
            Random::from_parts(&[source.seed]).shuffle(&mut files);
        }
        Ok(Self { root: root.to_owned(), files, classes, field: source.field.as_str().into() })
    }

    /// The first `count` samples only.
    #[must_use]
    pub fn take(mut self, count: u64) -> Self {
        self.files.truncate(count as usize);
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The files, in order.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The names of the classes; a label is a place in this list.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The size of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The full path of file number `number`.
    pub fn path(&self, number: usize) -> PathBuf {
        self.root.join(&self.files[number].path)
    }

    /// The sample that file number `number` with this content is.
    pub fn sample(&self, number: usize, content: Bytes) -> Sample {
        let file = &self.files[number];
        let mut fields = vec![Field { name: Arc::clone(&self.field), value: Value::Bytes(content) }];
        fields.extend(file.label.map(|label| Field { name: LABEL_FIELD.into(), value: Value::Int(label) }));
        Sample { key: Arc::clone(&file.key), index: number as u64, fields }
    }
}

fn walk(source: &Source, root: &Path) -> Result<Vec<SourceFile>> {
    let glob =
        GlobBuilder::new(&source.files).literal_separator(true).case_insensitive(true).build().map_err(|error| {
            Error::Usage {
                problem: format!("`{}` is not a file pattern: {}", source.files, error.kind()),
                remedy: "write it like `**/*.{jpg,png}`".to_owned(),
            }
        })?;
    let matcher = glob.compile_matcher();
    let mut files = Vec::new();
    for entry in WalkDir::new(root).follow_links(true) {
        let (path, metadata) = match entry {
            Ok(entry) => (entry.path().to_owned(), entry.metadata().ok()),
            // A link to a folder that it lies in leads nowhere new.
            Err(error) if error.loop_ancestor().is_some() => continue,
            // A link whose target is gone is a file that cannot be read: a damaged sample, if it is one at all.
            Err(error) if error.path().is_some_and(Path::is_symlink) => {
                (error.path().map(Path::to_owned).unwrap_or_default(), None)
            }
            Err(error) => {
                let path = error.path().unwrap_or(root).to_owned();
                let source = error.into_io_error().unwrap_or_else(|| std::io::Error::other("cannot be listed"));
                return Err(Error::Io { doing: "list", path, source });
            }
        };
        let below = path.strip_prefix(root).unwrap_or(&path);
        if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) || !matcher.is_match(below) {
            continue;
        }
        files.push(SourceFile {
            path: below.to_owned(),
            key: below.to_string_lossy().into(),
            bytes: metadata.as_ref().map_or(0, std::fs::Metadata::len),
            modified: metadata.and_then(|metadata| metadata.modified().ok()),
            label: None,
        });
    }
    Ok(files)
}

/// Gives each file the class that `class_of` names, and returns the classes in alphabetical order.
fn label_by(files: &mut [SourceFile], class_of: impl Fn(&SourceFile) -> Result<String>) -> Result<Vec<String>> {
    let names: Vec<String> = files.iter().map(class_of).collect::<Result<_>>()?;
    let classes: Vec<String> = names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    for (file, name) in files.iter_mut().zip(&names) {
        file.label = classes.binary_search(name).ok().map(|class| class as i64);
    }
    Ok(classes)
}

/// The name of the folder a file is in; the empty name for files right in the root.
#[expect(clippy::unnecessary_wraps, reason = "the signature of the table's look-up, which can fail")]
fn folder_of(path: &Path) -> Result<String> {
    let folder = path.parent().and_then(Path::file_name);
    Ok(folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

fn read_table(source: &Source, root: &Path) -> Result<HashMap<String, String>> {
    let name = source.table.as_deref().ok_or_else(|| Error::Usage {
        problem: "the source has `label = \"table\"` but no `table`".to_owned(),
        remedy: "add `table = \"labels.tsv\"`, a file below the data folder".to_owned(),
    })?;
    let path = root.join(name);
    let text = std::fs::read_to_string(&path).map_err(Error::io("read the label table", &path))?;
    let mut table = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut columns = line.split('\t');
        let (Some(key), Some(label)) = (columns.next(), columns.next()) else {
            return Err(Error::Format {
                path,
                problem: format!("line {} has no tab: expected path, tab, label; found `{line}`", number + 1),
            });
        };
        table.insert(key.trim().to_owned(), label.trim().to_owned());
    }
    Ok(table)
}

/// The label of a file by its path, its name, or its name without the extension.
fn table_entry(table: &HashMap<String, String>, path: &Path) -> Result<String> {
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    let names = [Some(text(path.as_os_str())), path.file_name().map(text), path.file_stem().map(text)];
    names.into_iter().flatten().find_map(|name| table.get(&name)).cloned().ok_or_else(|| Error::Usage {
        problem: format!("the label table has no line for `{}`", path.display()),
        remedy: "add one (path or file name, tab, label), or narrow the source's `files`".to_owned(),
    })
}
