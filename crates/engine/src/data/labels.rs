//! The labels of files: what says them, and what becomes of that.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use forebay_codec::DType;
use forebay_pipeline::{Label, LabelType, Source, StepError, Value};
use forebay_plan::Skipped;
use forebay_record::name_text;
use forebay_storage::Folder;

use super::label_table::read_table;
use super::listing::{Entry, ListingOptions};
use crate::error::{Error, Result};
use crate::load::OnError;

/// What some editors begin a text with.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The label of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelValue {
    /// A class, as an index into the classes, or another whole number.
    Int(i64),
    /// A number to be learned as it is.
    Float(f32),
}

// One of each file is kept in memory, of millions of files.
const _: () = assert!(size_of::<Option<LabelValue>>() == size_of::<Option<i64>>());

impl LabelValue {
    /// The label in a field of a sample.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(number) => Some(Self::Int(*number)),
            Value::Tensor(tensor) if tensor.spec().dtype == DType::F32 => {
                Some(Self::Float(f32::from_le_bytes(tensor.data().first_chunk::<4>().copied()?)))
            }
            _ => None,
        }
    }

    /// What tells one label, or none, from all others: for checksums.
    pub(crate) fn identity(label: Option<Self>) -> [u8; 9] {
        let (kind, number) = match label {
            None => (0, 0),
            Some(Self::Int(number)) => (1, number as u64),
            Some(Self::Float(number)) => (2, u64::from(number.to_bits())),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }
}

/// A label as a list, a function or a table has it.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenLabel {
    /// The name of a class, also where it looks like a number.
    Name(String),
    /// As it is written in a file: the name of a class, or a number.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
}

/// Gives the label of the file at a path.
pub type LabelFunction<'a> = dyn Fn(&Path) -> Result<GivenLabel, StepError> + Send + Sync + 'a;

/// What to know about labels that are taken from folders, where that gives all of `samples` the same: pictures that lie side by side have no
/// classes, and a model would learn nothing of them.
pub fn one_class(source: &Source, classes: &[String], samples: u64) -> Option<String> {
    let by_folder = matches!(source.label, Label::Folder | Label::TopFolder) && source.classes.is_none();
    let ([class], true) = (classes, by_folder && samples > 1) else { return None };
    let which = if class.is_empty() {
        format!("none of the {samples} files is in a class folder")
    } else {
        format!("all {samples} files are in the same class folder, `{class}`")
    };
    Some(format!(
        "{which}, so all get the same label: use one folder per class, set `label` in the pipeline's [source] (`table`, \
         `list`), or pass `--set source.label=none`"
    ))
}

/// Labels the files, and returns the names of the classes. Files that have no label are in `lost` afterwards, or an error.
pub(super) fn label(
    entries: &mut Vec<Entry>,
    source: &Source,
    root: &Folder,
    options: &ListingOptions<'_>,
    lost: &mut Vec<Skipped>,
) -> Result<Vec<String>> {
    let table = if source.label == Label::Table { read_table(source, root, options)? } else { HashMap::new() };
    let given = |entry: &Entry| match source.label {
        Label::Folder | Label::None => Ok(GivenLabel::Text(folder_of(entry.path()))),
        Label::TopFolder => top_folder_of(entry).map(GivenLabel::Text),
        Label::Table => table_entry(&table, entry.path()).map(GivenLabel::Text),
        Label::List => of_list(entry, options),
        Label::Function => of_function(entry, source, root, options),
    };
    let mut names = Names::default();
    // Files that are not there have classes too: what is skipped must not change the labels of the others.
    if let (Label::List, Some(labels)) = (source.label, options.files.and_then(|list| list.labels.as_ref())) {
        for given in labels {
            // What is wrong with one is said when its file comes.
            let _ = names.take(source.label_type, given.clone(), "");
        }
    }
    let first = |entry: &mut Entry| {
        let given = given(entry)?;
        if given.is_empty() && !matches!(source.label, Label::Folder | Label::TopFolder) {
            return Err(Error::Usage {
                problem: format!("the label of `{}` is empty", entry.key),
                remedy: "give it one, or leave the file out".to_owned(),
            });
        }
        entry.label = Some(names.take(source.label_type, given, &entry.key)?);
        Ok(())
    };
    keep(entries, options.on_error, lost, first)?;
    if source.label_type == Some(LabelType::Float) {
        return Ok(Vec::new());
    }
    let (labels, classes) = names.numbered(source);
    let second = |entry: &mut Entry| {
        let Some(LabelValue::Int(name)) = entry.label else { return Ok(()) };
        let label = labels[name as usize].ok_or_else(|| unknown(entry, &names.texts[name as usize], &classes))?;
        entry.label = Some(LabelValue::Int(label));
        Ok(())
    };
    keep(entries, options.on_error, lost, second)?;
    Ok(classes)
}

/// Changes every file. One that cannot be changed is an error, or lost.
pub(super) fn keep(
    entries: &mut Vec<Entry>,
    on_error: OnError,
    lost: &mut Vec<Skipped>,
    mut change: impl FnMut(&mut Entry) -> Result<()>,
) -> Result<()> {
    let mut failure = Ok(());
    let before = entries.len();
    let mut first = None;
    entries.retain_mut(|entry| {
        let Err(error) = (if failure.is_ok() { change(entry) } else { Ok(()) }) else { return true };
        if on_error == OnError::Fail || error.ends() {
            failure = Err(error);
            return true;
        }
        let skipped = Skipped::one(&*entry.key, &error);
        first.get_or_insert_with(|| skipped.clone());
        lost.push(skipped);
        false
    });
    failure?;
    match first {
        Some(first) if entries.is_empty() => Err(Error::AllSkipped { samples: before as u64, first: Box::new(first) }),
        _ => Ok(()),
    }
}

/// The names of labels, each once: few, where there are many files.
#[derive(Default)]
struct Names {
    texts: Vec<String>,
    indexes: HashMap<String, usize>,
    /// Whether any of them was said to be a name, so that none is a number.
    is_literal: bool,
}

impl Names {
    /// A number as it is, or the index of its name among these.
    fn take(&mut self, kind: Option<LabelType>, given: GivenLabel, key: &str) -> Result<LabelValue> {
        let wrong = |found: &str, expected: &str, remedy: &str| Error::Usage {
            problem: format!("the label of `{key}` is `{found}`, but must be {expected}"),
            remedy: remedy.to_owned(),
        };
        if kind == Some(LabelType::Float) {
            let number = match &given {
                GivenLabel::Name(text) | GivenLabel::Text(text) => text.trim().parse().ok(),
                GivenLabel::Int(number) => Some(*number as f64),
                GivenLabel::Float(number) => Some(*number),
            };
            // As the trainer sees it: what is too large for it is no number there.
            let number = number.map(|number| number as f32).filter(|number| number.is_finite());
            let remedy = "correct it, or leave the file out";
            return number.map(LabelValue::Float).ok_or_else(|| wrong(&given.into_text(), "a finite number", remedy));
        }
        if let GivenLabel::Float(number) = given {
            let remedy = "write `label_type = \"float\"` into the source (in Python: `label_type=\"float\"`)";
            return Err(wrong(&number.to_string(), "a class or an integer", remedy));
        }
        self.is_literal |= matches!(given, GivenLabel::Name(_));
        let name = given.into_text();
        if kind == Some(LabelType::Int) && number_in(&name).is_none() {
            return Err(wrong(&name, "an integer", "correct it, or use another `label_type`"));
        }
        let index = self.indexes.get(&name).copied().unwrap_or_else(|| {
            self.texts.push(name.clone());
            self.indexes.insert(name, self.texts.len() - 1);
            self.texts.len() - 1
        });
        Ok(LabelValue::Int(index as i64))
    }

    /// The label of each name, `None` for what is no class, and the names of the classes. Numbers of a table, a list or a function stay what they
    /// are where all of them are whole, unless they are said to be classes or two are written for one (`1` and `01`); they have names if they
    /// count from 0.
    fn numbered(&self, source: &Source) -> (Vec<Option<i64>>, Vec<String>) {
        if let Some(classes) = &source.classes {
            let indexes: HashMap<&str, i64> = classes.iter().map(String::as_str).zip(0..).collect();
            return (self.texts.iter().map(|name| indexes.get(name.as_str()).copied()).collect(), classes.clone());
        }
        let numbers: Option<Vec<i64>> = self.texts.iter().map(|name| number_in(name)).collect();
        let distinct: BTreeSet<i64> = numbers.iter().flatten().copied().collect();
        let are_numbers = match source.label_type {
            Some(kind) => kind == LabelType::Int,
            None if matches!(source.label, Label::Folder | Label::TopFolder) => false,
            None => !self.is_literal && distinct.len() == self.texts.len(),
        };
        if let Some(numbers) = numbers.filter(|_| are_numbers) {
            let counted = distinct.iter().copied().eq(0..distinct.len() as i64);
            let classes = if counted { distinct.iter().map(ToString::to_string).collect() } else { Vec::new() };
            return (numbers.into_iter().map(Some).collect(), classes);
        }
        let mut classes = self.texts.clone();
        classes.sort_unstable();
        let label = |name| classes.binary_search(name).ok().map(|class| class as i64);
        (self.texts.iter().map(label).collect(), classes)
    }
}

impl GivenLabel {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Name(text) | Self::Text(text) if text.trim().is_empty())
    }

    fn into_text(self) -> String {
        match self {
            Self::Name(text) | Self::Text(text) => text,
            Self::Int(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
        }
    }
}

fn number_in(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

fn unknown(entry: &Entry, name: &str, classes: &[String]) -> Error {
    Error::Usage {
        problem: format!(
            "`{}` is of the class `{name}`, which is none of the {} in `classes`",
            entry.key,
            classes.len()
        ),
        remedy: "add it there, narrow the source's `files`, or leave such files out (`--on-error skip`; in Python: \
                 `on_error=\"skip\"`)"
            .to_owned(),
    }
}

/// The name of the folder a file is in; the empty name for files right in the root.
fn folder_of(path: &Path) -> String {
    path.parent().and_then(Path::file_name).map(text_of).unwrap_or_default()
}

/// The name of the first folder below the root; the empty name for files right in the root. A file of a list may lie elsewhere.
fn top_folder_of(entry: &Entry) -> Result<String> {
    match entry.path().parent().and_then(|folder| folder.components().next()) {
        None => Ok(String::new()),
        Some(Component::Normal(name)) => Ok(text_of(name)),
        Some(_) => Err(Error::Usage {
            problem: format!("`{}` does not lie below the data folder, so that it has no top folder there", entry.key),
            remedy:
                "name the folder that it lies in as the data folder, in full and without links, or use another `label`"
                    .to_owned(),
        }),
    }
}

fn text_of(name: &OsStr) -> String {
    name_text(name.as_bytes()).into_owned()
}

/// The label that the list of files has for this one: its index there is noted.
fn of_list(entry: &Entry, options: &ListingOptions<'_>) -> Result<GivenLabel> {
    let labels = options.files.and_then(|list| list.labels.as_ref()).ok_or_else(|| Error::Usage {
        problem: "the source has `label = \"list\"`, but the list of files has no labels".to_owned(),
        remedy: "write them behind the paths, after a tab (in Python: `FileList(paths, labels=…)`)".to_owned(),
    })?;
    match entry.label {
        Some(LabelValue::Int(index)) if (index as usize) < labels.len() => Ok(labels[index as usize].clone()),
        _ => Err(Error::Usage {
            problem: format!("the list of files has no label for `{}`", entry.key),
            remedy: "give as many labels as files".to_owned(),
        }),
    }
}

/// What the function that the source names says.
fn of_function(entry: &Entry, source: &Source, root: &Folder, options: &ListingOptions<'_>) -> Result<GivenLabel> {
    let name = source.function.as_deref().unwrap_or_default();
    let function = options.label_function.ok_or_else(|| Error::Usage {
        problem: format!("the labels of this source come from the Python function `{name}`, which is not here"),
        remedy: format!(
            "run this in Python, with `functions={{\"{name}\": …}}`, or write the labels into a table and use `label = \"table\"`"
        ),
    })?;
    function(&root.file(entry.path())).map_err(|source| {
        let step = "label".to_owned();
        Error::Pipeline(forebay_pipeline::Error::Step { key: entry.key.to_string(), step, source: Box::new(source) })
    })
}

/// The label of a file by its path, its name, or its name without the extension.
fn table_entry(table: &HashMap<String, String>, path: &Path) -> Result<String> {
    of_path(table, path).cloned().ok_or_else(|| Error::Usage {
        problem: format!("the label table has no line for `{}`", text_of(path.as_os_str())),
        remedy: "add one (path or file name, and label), or narrow the source's `files`".to_owned(),
    })
}

/// What a table has for a file: for its path, its name, or its name without the extension.
pub(super) fn of_path<'a, T>(table: &'a HashMap<String, T>, path: &Path) -> Option<&'a T> {
    let names = [Some(text_of(path.as_os_str())), path.file_name().map(text_of), path.file_stem().map(text_of)];
    names.into_iter().flatten().find_map(|name| table.get(&name))
}
