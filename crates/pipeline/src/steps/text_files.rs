//! The files that steps need: vocabularies, tables, annotations, transcripts, recordings of noise.
//!
//! This is the one place in this room where files are read. A step names a path and asks here when it first needs what is
//! in it; [`prepare_files`] asks for all steps of a pipeline, so that a file that is missing is found before a run starts. What was
//! read is kept as long as a step uses it: two pipelines with the same vocabulary hold it once.
//!
//! Such a file belongs to the pipeline, not to the data, and may lie anywhere: a relative path is looked for beside the pipeline's
//! file, then below the current folder, and is absolute in profiles, plans and data sets, which so mean the same file everywhere. Only
//! regular files are read (a pipe or a device would never end), and of them no more than a limit.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use forebay_codec::audio::{AudioOptions, Resampler, decode};
use forebay_codec::text::{EmbeddingTable, Pattern, Tokenizer};
use forebay_storage::read_file;

use super::audio_perturb::{AddBackgroundNoise, Noises};
use super::coco::{CocoObjects, CocoParts, TakeCoco};
use super::csv_boxes::{BoxColumns, BoxTable, TakeCsv, TakeOpenImages};
use super::text::{BYTES, Embed, TokenPattern, Tokenize};
use super::transcript::{TakeTranscript, Transcripts};
use crate::error::{Error, Result, StepError};
use crate::pipeline::Pipeline;
use crate::step::{Step, StepFiles};

/// The largest file of a tokenizer that is read: ten times the largest in use.
const TOKENIZER_BYTES_MAX: u64 = 256 << 20;

/// The largest table of embeddings: a million rows of a thousand columns.
const TABLE_BYTES_MAX: u64 = 4 << 30;

/// The largest COCO file: nine times that of its 118,000 training images.
const COCO_BYTES_MAX: u64 = 4 << 30;

/// The most files that a folder has of a step, and how deep they lie.
const FOLDER_FILES_MAX: usize = 100_000;
const FOLDER_DEPTH_MAX: usize = 16;

/// All transcripts together: twenty times those of LibriSpeech's thousand hours.
const TRANSCRIPT_BYTES_MAX: u64 = 1 << 30;

/// What recordings of noise are held of: how large one is, and how many samples all have: an hour at 16 kHz is 58 million.
const NOISE_BYTES_MAX: u64 = 1 << 30;
const NOISE_SAMPLES_MAX: usize = 1 << 29;

/// The largest table of boxes: twice that of Open Images' 15 million.
const BOX_TABLE_BYTES_MAX: u64 = 5 << 30;

/// What [`prepare_files`] read, kept for the steps that need it as long as this is.
#[derive(Debug)]
#[must_use = "what was read is forgotten with it, and would be read again"]
pub struct PreparedFiles {
    _kept: Vec<Arc<dyn Any + Send + Sync>>,
}

/// What `ask` gives for the files of each step that has some.
fn of_steps<T>(steps: &[Step], ask: impl Fn(&dyn StepFiles) -> Result<T, StepError>) -> Result<Vec<T>> {
    let asked = steps.iter().filter_map(|step| Some((step, ask(step.action.files()?))));
    let fail = |step: &Step, source| Error::Prepare { step: step.name.clone(), source: Box::new(source) };
    asked.map(|(step, answer)| answer.map_err(|source| fail(step, source))).collect()
}

/// Reads the vocabularies and tables that `steps` name. Done before a run, it reports what is missing or damaged
/// at once, with its path; otherwise the first sample would.
pub fn prepare_files(steps: &[Step]) -> Result<PreparedFiles> {
    Ok(PreparedFiles { _kept: of_steps(steps, |files| files.prepare())? })
}

/// The files that [`prepare_files`] reads for `steps`.
pub fn named_files(steps: &[Step]) -> Result<Vec<PathBuf>> {
    Ok(of_steps(steps, |files| files.named())?.concat())
}

/// The same pipeline with the paths of such files made absolute, so that it means the same from any folder: those that lie below
/// `base`, the folder of the pipeline's file, and others below the current folder.
pub fn with_absolute_files(pipeline: Pipeline, base: &Path) -> Result<Pipeline> {
    let Some(mut spec) = pipeline.to_spec() else { return Ok(pipeline) };
    let mut changed = false;
    for (step, spec) in pipeline.steps().iter().zip(&mut spec.steps) {
        for (parameter, path) in step.action.files().map(StepFiles::paths).unwrap_or_default() {
            let beside = base.join(path);
            let absolute = std::path::absolute(if beside.exists() { &beside } else { Path::new(path) });
            if let Some(absolute) = absolute
                .ok()
                .filter(|absolute| absolute != Path::new(path))
                .and_then(|path| path.into_os_string().into_string().ok())
            {
                spec.set(parameter, absolute.into());
                changed = true;
            }
        }
    }
    if changed { Pipeline::from_spec(&spec) } else { Ok(pipeline) }
}

impl StepFiles for Tokenize {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        if self.tokenizer == BYTES { Vec::new() } else { vec![("tokenizer", &self.tokenizer)] }
    }

    fn named(&self) -> Result<Vec<PathBuf>, StepError> {
        tokenizer_files(&self.tokenizer)
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(self.load()?.tokenizer)
    }
}

impl StepFiles for Embed {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        self.table.iter().map(|path| ("table", path.as_str())).collect()
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(load_embeddings(self)?)
    }
}

impl StepFiles for TakeCoco {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        vec![("annotations", &self.annotations)]
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(load_coco(&self.annotations, self.parts())?)
    }
}

impl StepFiles for TakeCsv {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        vec![("annotations", &self.annotations)]
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(load_box_table(&self.annotations, &self.columns())?)
    }
}

impl StepFiles for TakeOpenImages {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        vec![("annotations", &self.annotations)]
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(load_box_table(&self.annotations, &self.columns())?)
    }
}

impl StepFiles for AddBackgroundNoise {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        vec![("sounds_path", &self.sounds_path)]
    }

    fn named(&self) -> Result<Vec<PathBuf>, StepError> {
        noise_files(&self.sounds_path)
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(load_noises(&self.sounds_path, self.sample_rate)?)
    }
}

impl StepFiles for TakeTranscript {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        vec![("transcripts", &self.transcripts)]
    }

    fn named(&self) -> Result<Vec<PathBuf>, StepError> {
        transcript_files(&self.transcripts)
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        Ok(load_transcripts(&self.transcripts)?)
    }
}

const NOISE_HINT: &str = "name a folder with recordings of noise, FLAC, MP3 or WAV, or one such file; they are held decoded, and have at most 2^29 samples together \
                          (nine hours at 16 kHz)";

/// What a recording of noise ends in.
const NOISE_EXTENSIONS: [&str; 3] = ["flac", "mp3", "wav"];

/// The file `path`, or those of the folder `path` that are wanted, also of folders below, by name. `what` they are, many of them.
fn files_below(path: &str, what: &str, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Cause> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::from(path), 0)];
    if Path::new(path).is_file() {
        return Ok(folders.into_iter().map(|(file, _)| file).collect());
    }
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() || kind.is_symlink() && path.is_dir() {
                folders.extend((depth < FOLDER_DEPTH_MAX).then_some((path, depth + 1)));
            } else if wanted(&path) {
                files.push(path);
            }
        }
        if files.len() > FOLDER_FILES_MAX {
            return Err(format!("it has more than {FOLDER_FILES_MAX} {what}").into());
        }
    }
    files.sort_unstable();
    if files.is_empty() { Err(format!("it has no {what}").into()) } else { Ok(files) }
}

/// The recordings of the folder `path`.
fn noise_files(path: &str) -> Result<Vec<PathBuf>, StepError> {
    let is_noise = |file: &Path| NOISE_EXTENSIONS.iter().any(|known| extension(file).eq_ignore_ascii_case(known));
    files_below(path, "recordings", is_noise).map_err(|source| failure("folder of noises", path, source, NOISE_HINT))
}

const TRANSCRIPT_HINT: &str =
    "name a file whose lines are a name and its text, or a folder of LibriSpeech, whose files end in `.trans.txt`";

/// The transcripts of the folder `path`.
fn transcript_files(path: &str) -> Result<Vec<PathBuf>, StepError> {
    let is_transcript =
        |file: &Path| file.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".trans.txt"));
    files_below(path, "transcripts", is_transcript)
        .map_err(|source| failure("transcripts", path, source, TRANSCRIPT_HINT))
}

/// The transcripts at `path`.
pub(super) fn load_transcripts(path: &str) -> Result<Arc<Transcripts>, StepError> {
    static READ: Shared<Vec<Stamp>, Transcripts> = Shared::new();
    let fail = |source| failure("transcripts", path, source, TRANSCRIPT_HINT);
    let files = transcript_files(path)?;
    let key = stamps(&files).map_err(fail)?;
    READ.get_or_load(key, || read_transcripts(&files)).map_err(fail)
}

fn read_transcripts(files: &[PathBuf]) -> Result<Transcripts, Cause> {
    let mut transcripts = Transcripts::default();
    let mut left = TRANSCRIPT_BYTES_MAX;
    for file in files {
        let bytes = read_file(file, left)?;
        left -= bytes.len() as u64;
        transcripts.add(&bytes).map_err(|problem| format!("`{}`: {problem}", file.display()))?;
    }
    if transcripts.is_empty() { Err("there is no line in it".into()) } else { Ok(transcripts) }
}

/// The recordings of noise at `path`, as one channel of `sample_rate`.
pub(super) fn load_noises(path: &str, sample_rate: Option<u32>) -> Result<Arc<Noises>, StepError> {
    static READ: Shared<(Vec<Stamp>, Option<u32>), Noises> = Shared::new();
    let fail = |source| failure("folder of noises", path, source, NOISE_HINT);
    let files = noise_files(path)?;
    let key = (stamps(&files).map_err(fail)?, sample_rate);
    READ.get_or_load(key, || read_noises(&files, sample_rate)).map_err(fail)
}

fn read_noises(files: &[PathBuf], sample_rate: Option<u32>) -> Result<Noises, Cause> {
    let mut noises = Noises::default();
    let mut left = NOISE_SAMPLES_MAX;
    for file in files {
        let named = |error: Cause| Cause::from(format!("`{}`: {error}", file.display()));
        let bytes = read_file(file, NOISE_BYTES_MAX)?;
        let mut samples = Vec::new();
        let options = AudioOptions { max_samples: left, ..AudioOptions::default() };
        let info = decode(&bytes, &options, &mut samples).map_err(|error| named(error.into()))?;
        if let Some(rate) = sample_rate.filter(|rate| *rate != info.rate_hz) {
            let resampler = Resampler::new(info.rate_hz, rate).map_err(|error| named(error.into()))?;
            resampler.run(&mut samples, 1, left, &mut Vec::new()).map_err(|error| named(error.into()))?;
        }
        left -= samples.len().min(left);
        if !samples.is_empty() {
            noises.0.push(samples);
        }
    }
    if noises.0.is_empty() { Err("the recordings are empty".into()) } else { Ok(noises) }
}

/// The boxes of the table that `path` names.
pub(super) fn load_box_table(path: &str, columns: &BoxColumns) -> Result<Arc<BoxTable>, StepError> {
    static READ: Shared<(Vec<Stamp>, BoxColumns), BoxTable> = Shared::new();
    let fail = |source| {
        failure(
            "annotations",
            path,
            source,
            "name a CSV or TSV file whose first line names its columns, or a Parquet file",
        )
    };
    let file = PathBuf::from(path);
    let key = (stamps(std::slice::from_ref(&file)).map_err(fail)?, columns.clone());
    READ.get_or_load(key, || Ok(BoxTable::parse(&read_file(&file, BOX_TABLE_BYTES_MAX)?, columns)?)).map_err(fail)
}

/// These parts of the COCO file that `path` names.
pub(super) fn load_coco(path: &str, parts: CocoParts) -> Result<Arc<CocoObjects>, StepError> {
    static READ: Shared<(Vec<Stamp>, CocoParts), CocoObjects> = Shared::new();
    let fail = |source| failure("annotations", path, source, "name a COCO file: JSON with `images` and `annotations`");
    let file = PathBuf::from(path);
    let key = (stamps(std::slice::from_ref(&file)).map_err(fail)?, parts);
    READ.get_or_load(key, || Ok(CocoObjects::parse(&read_file(&file, COCO_BYTES_MAX)?, parts)?)).map_err(fail)
}

/// The tokenizer that `path` names.
pub(super) fn load_tokenizer(path: &str, pattern: TokenPattern) -> Result<Arc<Tokenizer>, StepError> {
    static LOADED: Shared<(Vec<Stamp>, bool), Tokenizer> = Shared::new();
    let fail = |source| failure("tokenizer", path, source, TOKENIZER_HINT);
    let files = tokenizer_files(path)?;
    let key = (stamps(&files).map_err(fail)?, pattern == TokenPattern::Cl100k);
    LOADED.get_or_load(key, || read_tokenizer(&files, pattern)).map_err(fail)
}

const TOKENIZER_HINT: &str = "name a tokenizer.json, a .model, a .tiktoken, or a vocab.json with its merges.txt next to it; \
                              or use `tokenizer = \"bytes\"`, which needs no file";

fn read_tokenizer(files: &[PathBuf], pattern: TokenPattern) -> Result<Tokenizer, Cause> {
    let pattern = match pattern {
        TokenPattern::Gpt2 => Pattern::Gpt2,
        TokenPattern::Cl100k => Pattern::Cl100k { digits_max: 3 },
    };
    Ok(match files {
        [] => Tokenizer::byte_level(),
        [vocabulary, merges] => Tokenizer::from_gpt2(
            &read_file(vocabulary, TOKENIZER_BYTES_MAX)?,
            &read_file(merges, TOKENIZER_BYTES_MAX)?,
        )?,
        [file, ..] => {
            let bytes = read_file(file, TOKENIZER_BYTES_MAX)?;
            match extension(file) {
                "json" => Tokenizer::from_hugging_face(&bytes)?,
                "tiktoken" => Tokenizer::from_tiktoken(&bytes, pattern)?,
                _ => Tokenizer::from_sentencepiece(&bytes)?,
            }
        }
    })
}

/// GPT-2's vocabulary and the merges beside it, under the two names that each goes by.
const PAIRS: [(&str, &str); 2] = [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")];

/// The files of the tokenizer that `path` names; `bytes` needs none.
fn tokenizer_files(path: &str) -> Result<Vec<PathBuf>, StepError> {
    if path == BYTES {
        return Ok(Vec::new());
    }
    find_tokenizer(Path::new(path)).map_err(|source| failure("tokenizer", path, source, TOKENIZER_HINT))
}

/// The file (or GPT-2's two files) that a path or folder means.
fn find_tokenizer(path: &Path) -> Result<Vec<PathBuf>, Cause> {
    if path.is_dir() {
        let whole = ["tokenizer.json", "tokenizer.model", "sentencepiece.bpe.model", "spiece.model"];
        if let Some(file) = whole.iter().map(|name| path.join(name)).find(|file| file.is_file()) {
            return Ok(vec![file]);
        }
        let pairs = PAIRS.iter().map(|(vocabulary, merges)| vec![path.join(vocabulary), path.join(merges)]);
        let found = pairs.into_iter().find(|pair| pair.iter().all(|file| file.is_file()));
        return found.ok_or_else(|| "the folder has no tokenizer".into());
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some((_, merges)) = PAIRS.iter().find(|(vocabulary, _)| *vocabulary == name) {
        return Ok(vec![path.to_owned(), path.with_file_name(merges)]);
    }
    match extension(path) {
        "json" | "tiktoken" | "model" => Ok(vec![path.to_owned()]),
        other => Err(format!("`.{other}` is not a known kind of tokenizer").into()),
    }
}

/// The table that an embedding step names, or a random one.
pub(super) fn load_embeddings(step: &Embed) -> Result<Arc<EmbeddingTable>, StepError> {
    static READ: Shared<(Vec<Stamp>, Option<String>), EmbeddingTable> = Shared::new();
    static SEEDED: Shared<(u64, usize, usize), EmbeddingTable> = Shared::new();
    let Some(path) = &step.table else {
        let make = || Ok(EmbeddingTable::seeded(step.seed, step.num_embeddings, step.embedding_dim)?);
        let key = (step.seed, step.num_embeddings, step.embedding_dim);
        return SEEDED.get_or_load(key, make).map_err(|cause| failure("table", "random", cause, TABLE_HINT));
    };
    let fail = |source| failure("table of embeddings", path, source, TABLE_HINT);
    let file = PathBuf::from(path);
    let key = (stamps(std::slice::from_ref(&file)).map_err(fail)?, step.tensor.clone());
    let table = READ.get_or_load(key, || match extension(&file) {
        "npy" => Ok(EmbeddingTable::from_npy(read_file(&file, TABLE_BYTES_MAX)?)?),
        "safetensors" => {
            Ok(EmbeddingTable::from_safetensors(read_file(&file, TABLE_BYTES_MAX)?, step.tensor.as_deref())?)
        }
        other => Err(format!("`.{other}` is not a known kind of table").into()),
    });
    let table = table.map_err(fail)?;
    if table.columns() == step.embedding_dim {
        return Ok(table);
    }
    Err(fail(format!("it has {} columns, but `embedding_dim` is {}", table.columns(), step.embedding_dim).into()))
}

const TABLE_HINT: &str =
    "name a .npy or .safetensors of float32 with a row for each token, or leave `table` out for a random one";

/// Why a file could not be used.
type Cause = Box<dyn std::error::Error + Send + Sync>;

fn failure(what: &'static str, path: &str, source: Cause, hint: &'static str) -> StepError {
    StepError::File { what, path: path.to_owned(), source, hint }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// A file as it was when it was read: one that has changed since is read again.
type Stamp = (PathBuf, u64, Option<SystemTime>);

fn stamps(files: &[PathBuf]) -> Result<Vec<Stamp>, Cause> {
    let stamp = |file: &PathBuf| {
        let metadata = std::fs::metadata(file).map_err(|error| format!("`{}`: {error}", file.display()))?;
        Ok((file.clone(), metadata.len(), metadata.modified().ok()))
    };
    files.iter().map(stamp).collect()
}

/// What was read, as long as somebody uses it.
struct Shared<K, V>(LazyLock<Mutex<HashMap<K, Weak<V>>>>);

impl<K: Eq + Hash + Debug, V> Shared<K, V> {
    const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    /// Workers that ask for the same at once wait for the first to read it.
    fn get_or_load(&self, key: K, load: impl FnOnce() -> Result<V, Cause>) -> Result<Arc<V>, Cause> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = kept.get(&key).and_then(Weak::upgrade) {
            return Ok(value);
        }
        let value = Arc::new(load()?);
        kept.retain(|_, value| value.strong_count() > 0);
        kept.insert(key, Arc::downgrade(&value));
        Ok(value)
    }
}
