//! Writing a data set as tar shards that `WebDataset` reads.
//!
//! Each shard becomes one tar, sample by sample, in order. A field becomes a member: encoded bytes under the extension of their
//! format, texts as `txt` or `json`, the label as `cls`, other whole numbers as `index`, tensors as `npy`, however they
//! were kept. The member of any
//! field but the image and the label is called after the field, too (`mask.png`).
//!
//! Each tar has its index next to it, in the format of DALI's `wds2idx`, so that readers need not scan the tar to find its samples. A tar whose keys have spaces
//! or backslashes has none, since the readers of an index take those apart.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::sync::Mutex;
use forebay_codec::image::Format;
use forebay_codec::npy;
use forebay_pipeline::{FieldType, LABEL_FIELD, RngKey, Runner, Sample, SampleView, Schema, Sink, StepError, Value};
use forebay_record::{TAR_INDEX_EXTENSION, TarIndex, TarWriter, tar_key};
use forebay_storage::{Entry, Storage, Upload, create_fresh, is_url, rename_durably};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::memory::{Gate, Pass};
use crate::progress::Progress;
use crate::source::{Shards, Source};
use crate::threads::share;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The tars, in order.
    pub files: Vec<PathBuf>,
    /// Their indexes.
    pub indexes: Vec<PathBuf>,
    /// How many samples they have.
    pub samples: u64,
    /// How many bytes the tars have.
    pub bytes: u64,
}

/// Writes `dataset` as tars into the folder `output`, which must not have any yet, on `threads` threads that hold at most
/// `memory_bytes`. The tars get their names when all of them are whole, so that a part of an export is never taken for all of it. In a store,
/// where nothing is renamed, each gets its name when it is whole, and an export that fails removes them.
pub fn export_tar(
    dataset: &Arc<Dataset>,
    storage: &Arc<dyn Storage>,
    output: &Path,
    threads: usize,
    memory_bytes: u64,
    progress: &dyn Progress,
) -> Result<Exported> {
    storage.make_folder(output)?;
    for Entry { path, .. } in storage.entries(output)? {
        if path.extension().is_some_and(|extension| extension == "tar" || extension == TAR_INDEX_EXTENSION) {
            return Err(Error::Usage {
                problem: format!("`{}` has tars already, or indexes of such: `{}`", output.display(), path.display()),
                remedy: "export into another folder".to_owned(),
            });
        }
    }
    let source = Shards::new(Arc::clone(dataset), Arc::clone(storage));
    let shards = dataset.manifest().shards.len();
    let threads = threads.clamp(1, shards.max(1));
    let gate = Gate::new(memory_bytes, threads);
    progress.begin("export", dataset.manifest().samples);
    let next = AtomicUsize::new(0);
    let bytes = AtomicU64::new(0);
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let shards_with_index = Mutex::new(BTreeSet::new());
    let work = || {
        loop {
            let shard = next.fetch_add(1, Ordering::Relaxed);
            if shard >= shards || failure.lock().is_some() {
                return;
            }
            let path = tar_path(output, shard);
            let tar = Tar::create(&**storage, &path);
            let written = tar.and_then(|tar| write_shard(&source, tar, shard, &gate, progress));
            let indexing = |(written, index): (u64, Option<String>)| {
                if let Some(text) = index {
                    let mut index = Tar::create(&**storage, &index_path(&path))?;
                    index.write_all(text.as_bytes()).map_err(Error::io("write", &index.path))?;
                    index.finish()?;
                    shards_with_index.lock().insert(shard);
                }
                Ok(written)
            };
            match written.and_then(indexing) {
                Ok(written) => _ = bytes.fetch_add(written, Ordering::Relaxed),
                Err(error) => _ = failure.lock().get_or_insert(error),
            }
        }
    };
    std::thread::scope(|scope| share(scope, threads, "export", &work))?;
    let files: Vec<PathBuf> = (0..shards).map(|shard| tar_path(output, shard)).collect();
    let indexes: Vec<PathBuf> =
        shards_with_index.into_inner().into_iter().map(|shard| index_path(&files[shard])).collect();
    let named = match failure.into_inner() {
        Some(error) => Err(error),
        None if is_url(output) => Ok(()),
        // An index never exists without its tar.
        None => files
            .iter()
            .chain(&indexes)
            .try_for_each(|path| rename_durably(&temporary(path), path).map_err(Error::io("rename to", path))),
    };
    if named.is_err() {
        // There were none before, so these are ours, and would keep the next export from running.
        let indexes = files.iter().map(|path| index_path(path));
        let left = files.iter().cloned().chain(indexes).flat_map(|path| [temporary(&path), path]);
        left.for_each(|path| _ = storage.remove(&path));
    }
    named?;
    progress.end();
    Ok(Exported { files, indexes, samples: dataset.manifest().samples, bytes: bytes.into_inner() })
}

fn tar_path(output: &Path, shard: usize) -> PathBuf {
    output.join(format!("shard-{shard:06}.tar"))
}

/// What the index of a tar is called.
fn index_path(tar: &Path) -> PathBuf {
    tar.with_extension(TAR_INDEX_EXTENSION)
}

/// The temporary name of a tar or its index until all are complete.
fn temporary(path: &Path) -> PathBuf {
    path.with_added_extension("partial")
}

/// A tar or its index that is written: under its temporary name on this machine, or as an object.
struct Tar {
    /// What it is called now.
    path: PathBuf,
    to: Target,
    bytes: u64,
}

enum Target {
    File(File),
    Object(Box<dyn Upload>),
}

impl Tar {
    fn create(storage: &dyn Storage, path: &Path) -> Result<Self> {
        if is_url(path) {
            return Ok(Self { path: path.to_owned(), to: Target::Object(storage.create(path)?), bytes: 0 });
        }
        let path = temporary(path);
        let file = create_fresh(&path).map_err(Error::io("create", &path))?;
        Ok(Self { path, to: Target::File(file), bytes: 0 })
    }

    /// Makes it last; its size.
    fn finish(self) -> Result<u64> {
        match self.to {
            Target::File(file) => file.sync_all().map_err(Error::io("write", &self.path))?,
            Target::Object(upload) => upload.commit()?,
        }
        Ok(self.bytes)
    }
}

impl Write for Tar {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            Target::File(file) => file.write(buffer)?,
            Target::Object(upload) => upload.write(buffer)?,
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes one tar; its size, and its index.
fn write_shard(
    source: &Shards,
    tar: Tar,
    shard: usize,
    gate: &Gate,
    progress: &dyn Progress,
) -> Result<(u64, Option<String>)> {
    let schema = source.dataset().stored_schema();
    let path = tar.path.clone();
    let mut writer = TarWriter::new(BufWriter::with_capacity(1 << 20, tar));
    let mut index = TarIndex::new();
    let mut keys = HashSet::new();
    // Images are members as they are, but only we read encoded tensors.
    let (strategy, pipeline) = (source.strategy(), source.dataset().pipeline());
    let decoding = strategy.unpacking_tensors(pipeline);
    let encoded = !decoding.is_empty();
    let mut runner = Runner::new(&decoding, 0).keeping(gate.keep_bytes());
    for block in source.blocks_of(shard)? {
        let mut pass = None;
        // What is read, perhaps inflated, and the members of one of its samples.
        let bytes = block.bytes.saturating_mul(3);
        gate.wait(bytes, &mut pass).map_err(|_| Error::Limit {
            problem: format!(
                "samples {} to {} are read together, and writing `{}` would take {bytes} bytes for them: more than half of \
                 the memory budget",
                block.samples.start,
                block.samples.end - 1,
                path.display()
            ),
            remedy: "raise `memory` (`--memory`)".to_owned(),
        })?;
        let contents = source.read(block.samples.clone()).contents;
        for (number, content) in block.samples.zip(contents) {
            let mut sample =
                content.and_then(|content| source.unpack(number, content)).map_err(|failed| *failed.error)?;
            if encoded {
                let mut decoded = Decoded { sample: None, gate, pass: &mut pass, beside_bytes: bytes };
                runner.run(&sample, RngKey::default(), &mut (), &mut decoded)?;
                if let Some(done) = decoded.sample {
                    let key = sample.key.clone();
                    sample = done.map_err(|source| forebay_pipeline::Error::Step {
                        key: key.to_string(),
                        step: "export".to_owned(),
                        source: Box::new(source),
                    })?;
                }
            }
            // Samples that share a key would be read back as one.
            let mut key = tar_key(&sample.key);
            while !keys.insert(key.clone()) {
                key = format!("{key}_{}", sample.index);
            }
            for (member, content) in members(&sample, &schema) {
                let offset = writer.write(&key, &member, &content).map_err(|error| tar_error(error, &path))?;
                index.add(&key, &member, offset, content.len() as u64);
            }
            progress.advance(1);
            Error::if_memory_was_refused()?;
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
        }
    }
    let buffered = writer.finish().map_err(|error| tar_error(error, &path))?;
    let tar = buffered.into_inner().map_err(|error| Error::io("write", &path)(error.into_error()))?;
    Ok((tar.finish()?, index.into_text()))
}

/// Takes the sample whose tensors were decoded, within the memory budget.
struct Decoded<'a, 'g> {
    sample: Option<std::result::Result<Sample, StepError>>,
    gate: &'g Gate,
    pass: &'a mut Option<Pass<'g>>,
    beside_bytes: u64,
}

impl Sink for Decoded<'_, '_> {
    fn reserve(&mut self, bytes: usize) -> std::result::Result<(), StepError> {
        // What is decoded, its copy, and the member that it becomes.
        self.gate.wait(self.beside_bytes.saturating_add((bytes as u64).saturating_mul(3)), self.pass)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        self.sample = Some(sample.to_sample());
    }
}

/// An error of writing a member is an error of its tar.
fn tar_error(error: forebay_record::Error, path: &Path) -> Error {
    match error {
        forebay_record::Error::Io { source, .. } => Error::io("write", path)(source),
        error => error.into(),
    }
}

/// The members of a sample: what each is called, and its content.
fn members(sample: &Sample, schema: &Schema) -> Vec<(String, Vec<u8>)> {
    let pictures = schema.fields.iter().filter(|(_, kind)| matches!(kind, FieldType::Bytes | FieldType::Tensor { .. }));
    let main = pictures.map(|(name, _)| name.as_str()).next();
    let member = |name: &str, value: &Value| {
        let (extension, content) = match (value, schema.field(name)) {
            (Value::Bytes(bytes), _) => (Format::detect(bytes).map_or("bin", Format::extension), bytes.to_vec()),
            (Value::Text(text), Some(FieldType::Json)) => ("json", text.as_bytes().to_vec()),
            (Value::Text(text), _) => ("txt", text.as_bytes().to_vec()),
            (Value::Int(number), _) if name == LABEL_FIELD => {
                return ("cls".to_owned(), number.to_string().into_bytes());
            }
            (Value::Int(number), _) => ("index", number.to_string().into_bytes()),
            (Value::Tensor(tensor), _) => ("npy", npy::encode(tensor.view())),
        };
        let name = if Some(name) == main { extension.to_owned() } else { format!("{name}.{extension}") };
        (name, content)
    };
    sample.fields.iter().map(|field| member(&field.name, &field.value)).collect()
}
