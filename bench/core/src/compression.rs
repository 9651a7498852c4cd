//! Reading compressed shards compared with the bare libraries, two threads compared with one, and the cost of zlib's strategies.
//!
//! The data are decoded photos, as in a data set of pixels. Our side goes all the way from a shard in memory to samples: blocks
//! are located and decompressed, and their records verified and parsed. The library's side is one call for all of the same bytes, into memory that
//! is allocated already. LZ4 is so fast that verifying checksums shows, which its library does not do: another row has the library and the checksums
//! together, which is what remains to be gained.
//!
//! A pass over the data may be short, so that starting threads and waiting for the last block would count. A measurement therefore takes as many
//! passes as fill a fifth of a second.

use std::hint::black_box;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Dataset, Listing};
use forebay_engine::load::OnError;
use forebay_engine::source::{Shards, Source};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_record::{Scope, ShardCompressor};
use forebay_storage::{Folder, MemoryStorage, Storage};

use crate::inflating::{Library, Piece};
use crate::measure::{Row, in_turn};
use crate::{Outcome, Selection, rows};

/// Only the source matters: nothing is done to the bytes.
const PIPELINE: &str = "name = \"pixels\"\n[source]\nfiles = \"**/*.npy\"\nfield = \"tensor\"\n\
                        [[step]]\nop = \"decode_npy\"\ntype = \"uint8[1]\"\n";

const SHARDS: usize = 4;

/// The minimum share of a library's speed, and of two threads compared with one.
const LIBRARY_BAR: f64 = 0.9;
const THREADS_BAR: f64 = 1.8;

/// What is read, and the libraries that decompress the same bytes.
const BESIDE: [(&str, &[Library]); 12] = [
    ("zstd-3", &[Library::Zstd]),
    ("zstd-3-record", &[Library::Zstd]),
    // In one call a library needs all of a shard in memory, and all that it inflates to; streams are for what has not so much.
    ("zstd-3-stream", &[Library::ZstdStreaming]),
    ("gzip", &[Library::Zlib, Library::Libdeflate]),
    ("gzip-6-record", &[Library::Zlib, Library::Libdeflate]),
    // Libdeflate takes no streams.
    ("gzip-6-stream", &[Library::Zlib]),
    ("lz4", &[Library::Lz4, Library::Lz4Checked]),
    ("lz4-record", &[Library::Lz4, Library::Lz4Checked]),
    ("lz4-stream", &[Library::Lz4, Library::Lz4Checked]),
    ("snappy", &[Library::Snap]),
    ("snappy-record", &[Library::Snap]),
    ("snappy-stream", &[Library::Snap]),
];

/// The programs that inflate a shard.
const PROGRAMS: [(&str, &[&str]); 3] =
    [("zstd-3-stream", &["zstd", "-dcq"]), ("gzip-6-stream", &["gzip", "-dc"]), ("lz4-stream", &["lz4", "-dcq"])];

/// The strategies of zlib's that are compared with the usual one.
const STRATEGIES: [&str; 2] = ["rle", "huffman-only"];

/// What a measurement of passes takes at least.
const SECONDS_MIN: f64 = 0.2;

pub(crate) fn rows(files: &[Vec<u8>], selection: &Selection) -> Outcome<Vec<Row>> {
    let of_reading = |(name, _): &(&str, _)| {
        [reading(name), on_two(name), alone_on_two(name)].iter().any(|work| selection.has(work))
    };
    let beside: Vec<(&str, &[Library])> = BESIDE.into_iter().filter(of_reading).collect();
    let strategies: Vec<&str> =
        STRATEGIES.into_iter().filter(|strategy| selection.has(&compressing(strategy))).collect();
    if beside.is_empty() && strategies.is_empty() {
        return Ok(Vec::new());
    }
    let pictures = rows::pixels(files)?;
    let mut rows = Vec::new();
    let mut scaling = Vec::new();
    for (name, libraries) in beside {
        let data = Data::new(&pictures, name)?;
        if selection.has(&reading(name)) {
            for library in libraries {
                rows.push(data.beside(*library)?);
            }
            if let Some((_, program)) = PROGRAMS.iter().find(|(of, _)| *of == name) {
                rows.extend(data.beside_program(program)?);
            }
        }
        if selection.has(&on_two(name)) {
            scaling.push(data.scaling()?);
        }
        if selection.has(&alone_on_two(name)) {
            scaling.push(data.scaling_alone(libraries[0])?);
        }
    }
    rows.extend(scaling);
    let filtered: Vec<Vec<u8>> = pictures.iter().map(|picture| filtered(picture)).collect();
    for strategy in strategies {
        rows.push(strategy_row(&filtered, strategy)?);
    }
    Ok(rows)
}

fn reading(name: &str) -> String {
    format!("read a shard of `{name}`")
}

fn on_two(name: &str) -> String {
    format!("read shards of `{name}` on two threads")
}

/// What the machine gives a second thread: the library without anything of ours.
fn alone_on_two(name: &str) -> String {
    format!("inflate shards of `{name}` by the library alone on two threads")
}

fn compressing(strategy: &str) -> String {
    format!("compress filtered pixels with `zlib-6-{strategy}`")
}

/// A data set in memory, compressed.
struct Data {
    name: &'static str,
    dataset: Arc<Dataset>,
    storage: MemoryStorage,
    /// How many bytes its records are.
    megabytes: f64,
    /// The input of one library call, and its expected output.
    pieces: Vec<Piece>,
    longest: usize,
}

impl Data {
    fn new(pictures: &[Vec<u8>], name: &'static str) -> Outcome<Self> {
        let storage = MemoryStorage::new();
        let (input, output) = (PathBuf::from("/pictures"), PathBuf::from("/dataset"));
        for (number, picture) in pictures.iter().enumerate() {
            let mut upload = storage.create(&input.join(format!("{number:04}.npy")))?;
            upload.write_all(picture)?;
            upload.commit()?;
        }
        let folder = |path: &Path| Folder::new(Arc::new(storage.clone()), path);
        let pipeline = Pipeline::from_toml("pixels", PIPELINE)?;
        let listing = Arc::new(Listing::scan(pipeline.source(), folder(&input))?);
        let strategy = Strategy::parse(&pipeline, &format!("concatenated+{name}"))?;
        Build { pipeline, strategy, listing, storage: Arc::new(storage.clone()) }.run(
            folder(&output),
            &BuildOptions {
                threads: 2,
                shards: SHARDS,
                on_error: OnError::Fail,
                overwrite: false,
                resume: None,
                memory_bytes: 1 << 30,
            },
            &(),
        )?;
        let dataset = Arc::new(Dataset::open(folder(&output))?);
        let pieces = pieces(&dataset, &storage)?;
        let bytes: usize = pieces.iter().map(|piece| piece.inflated).sum();
        let longest = pieces.iter().map(|piece| piece.inflated).max().unwrap_or(0);
        Ok(Self { name, dataset, storage, megabytes: bytes as f64 / 1e6, pieces, longest })
    }

    fn source(&self) -> Shards {
        Shards::new(Arc::clone(&self.dataset), Arc::new(self.storage.clone()))
    }

    /// Reads everything so many times, on so many threads: blocks, or of streams whole ones, go to whoever is free.
    fn read(&self, threads: usize, passes: usize) -> Outcome<()> {
        let source = self.source();
        let mut work: Vec<Vec<Range<u64>>> = Vec::new();
        let mut before = None;
        for block in source.blocks()? {
            match work.last_mut() {
                Some(stream) if block.sequence.is_some() && block.sequence == before => stream.push(block.samples),
                _ => work.push(vec![block.samples]),
            }
            before = block.sequence;
        }
        let (source, work) = (&source, &work);
        share(threads, passes * work.len(), || {
            move |number: usize| {
                for block in &work[number % work.len()] {
                    let fetched = source.read(block.clone());
                    for (sample, content) in block.clone().zip(fetched.contents) {
                        let sample = content.and_then(|content| source.unpack(sample, content));
                        black_box(sample.map_err(|failed| failed.error.to_string())?);
                    }
                }
                Ok(())
            }
        })
    }

    /// Inflates everything so many times on so many threads, by a library alone.
    fn inflate(&self, library: Library, threads: usize, passes: usize) -> Outcome<()> {
        let scope = self.scope()?;
        share(threads, passes * self.pieces.len(), || {
            let mut inflater = library.open(self.longest, scope).map_err(|error| error.to_string());
            move |number: usize| {
                let inflater = inflater.as_mut().map_err(|error| error.clone())?;
                let piece = &self.pieces[number % self.pieces.len()];
                inflater.inflate(piece).map(|_| ()).map_err(|error| error.to_string())
            }
        })
    }

    fn scope(&self) -> Outcome<Scope> {
        Ok(self.dataset.compression().ok_or("a compression")?.scope)
    }

    fn row(&self, work: String, beside: &'static str, (ours, theirs): (f64, f64), bar: Option<f64>) -> Row {
        let rate = |seconds: f64| self.megabytes / seconds;
        Row { work: work.into(), beside, unit: "MB/s", ours: rate(ours), theirs: rate(theirs), bar }
    }

    fn beside(&self, library: Library) -> Outcome<Row> {
        let mut theirs = library.open(self.longest, self.scope()?)?;
        let mut inflate = || self.pieces.iter().try_for_each(|piece| theirs.inflate(piece).map(|_| ()));
        let passes = passes(|| self.read(1, 1))?;
        let seconds = in_turn(|| self.read(1, passes), || (0..passes).try_for_each(|_| inflate()))?;
        let bar = library.is_bare().then_some(LIBRARY_BAR);
        Ok(self.row(reading(self.name), library.name(), each(seconds, passes), bar))
    }

    /// Beside a program, where it is there.
    fn beside_program(&self, program: &[&'static str]) -> Outcome<Option<Row>> {
        if Command::new(program[0]).arg("--version").stdout(Stdio::null()).status().is_err() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let mut paths = Vec::new();
        for (number, piece) in self.pieces.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, &piece.compressed)?;
            paths.push(path);
        }
        let run = || {
            for path in &paths {
                let mut command = Command::new(program[0]);
                command.args(&program[1..]).stdin(std::fs::File::open(path)?).stdout(Stdio::null());
                if !command.status()?.success() {
                    return Err(format!("`{}` failed", program[0]).into());
                }
            }
            Ok(())
        };
        let seconds = in_turn(|| self.read(1, 1), run)?;
        Ok(Some(self.row(reading(self.name), program[0], seconds, Some(LIBRARY_BAR))))
    }

    fn scaling(&self) -> Outcome<Row> {
        let passes = passes(|| self.read(2, 1))?;
        let seconds = in_turn(|| self.read(2, passes), || self.read(1, passes))?;
        Ok(self.row(on_two(self.name), "on one", each(seconds, passes), Some(THREADS_BAR)))
    }

    fn scaling_alone(&self, library: Library) -> Outcome<Row> {
        let passes = passes(|| self.inflate(library, 2, 1))?;
        let seconds = in_turn(|| self.inflate(library, 2, passes), || self.inflate(library, 1, passes))?;
        Ok(self.row(alone_on_two(self.name), "on one", each(seconds, passes), None))
    }
}

/// Does the parts of some work, whose number is told, on so many threads: each makes its own worker, and takes the next part when it is free.
fn share<W: FnMut(usize) -> Result<(), String>>(
    threads: usize,
    parts: usize,
    worker: impl Fn() -> W + Sync,
) -> Outcome<()> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut work = worker();
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                part if part < parts => work(part)?,
                _ => return Ok(()),
            }
        }
    };
    if threads == 1 {
        return Ok(run()?);
    }
    let done: Result<(), String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|_| Err("a panic".to_owned()));
        threads.into_iter().try_for_each(joined)
    });
    Ok(done?)
}

/// How many passes fill a measurement.
fn passes(one: impl Fn() -> Outcome<()>) -> Outcome<usize> {
    one()?;
    let begun = Instant::now();
    one()?;
    Ok((SECONDS_MIN / begun.elapsed().as_secs_f64()).ceil().clamp(1.0, 1000.0) as usize)
}

/// The seconds of one of so many passes.
fn each((ours, theirs): (f64, f64), passes: usize) -> (f64, f64) {
    (ours / passes as f64, theirs / passes as f64)
}

/// Whole shards, or where records are compressed each by itself those.
fn pieces(dataset: &Dataset, storage: &MemoryStorage) -> Outcome<Vec<Piece>> {
    let mut pieces = Vec::new();
    for shard in 0..dataset.manifest().shards.len() {
        let file = storage.open(&dataset.shard_path(shard))?;
        let content = file.read(0, file.size() as usize)?;
        let index = dataset.index(shard)?;
        if dataset.compression().is_some_and(|compression| compression.scope == Scope::Record) {
            for (record, location) in index.iter().enumerate() {
                let payload = location.offset as usize + 12..location.end() as usize - 4;
                let inflated = dataset.payload_bytes(shard, record) as usize;
                pieces.push(Piece { compressed: content.slice(payload), inflated });
            }
        } else {
            pieces.push(Piece { compressed: content, inflated: index.end() as usize });
        }
    }
    Ok(pieces)
}

/// What a PNG compresses: of each byte what it differs by from the same channel of the pixel before it, which is PNG's filter Sub. The paper
/// found what it says of strategies on such data.
fn filtered(picture: &[u8]) -> Vec<u8> {
    let before = std::iter::repeat_n(0, 3).chain(picture.iter().copied());
    picture.iter().zip(before).map(|(value, before)| value.wrapping_sub(before)).collect()
}

/// How fast a strategy of zlib compresses compared with the usual one, and the size of its output for the same data.
fn strategy_row(pictures: &[Vec<u8>], strategy: &str) -> Outcome<Row> {
    let compressed = |name: &str| -> Outcome<usize> {
        let mut output = ShardCompressor::new(Vec::new(), name.parse()?)?;
        for picture in pictures {
            output.write_all(picture)?;
        }
        Ok(output.finish()?.0.len())
    };
    let (mut ours, mut theirs) = (0, 0);
    let name = format!("zlib-6-{strategy}");
    let seconds = in_turn(
        || {
            ours = compressed(&name)?;
            Ok(())
        },
        || {
            theirs = compressed("zlib-6")?;
            Ok(())
        },
    )?;
    let bytes: usize = pictures.iter().map(Vec::len).sum();
    let of = |part: usize| 100.0 * part as f64 / bytes as f64;
    let work = format!("{}, to {:.0} % ({:.0} % with `zlib-6`)", compressing(strategy), of(ours), of(theirs));
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    Ok(Row {
        work: work.into(),
        beside: "`zlib-6`",
        unit: "MB/s",
        ours: rate(seconds.0),
        theirs: rate(seconds.1),
        bar: Some(2.0),
    })
}
