//! Large images through the loader: CPU time per image compared with decoding alone.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use forebay_codec::TensorMut;
use forebay_codec::image::{DecodeOptions, Decoder, EncodedImage, Encoding, L3Mode, Region, encode};
use forebay_engine::StorageChoice;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Dataset, Listing};
use forebay_engine::load::{LoadOptions, Loader, OnError};
use forebay_engine::source::Shards;
use forebay_pipeline::{Pipeline, Strategy};
use rustix::time::{ClockId, clock_gettime};

use crate::bandwidth::Copying;
use crate::measure::median;
use crate::{Outcome, processor};

/// The size of street scenes that segmentation is trained with.
const WIDTH: usize = 2048;
const HEIGHT: usize = 1024;
const PICTURE_BYTES: usize = WIDTH * HEIGHT * 3;

/// How many images an epoch has, and a batch.
const PICTURES: usize = 48;
const BATCH_SIZE: usize = 8;

/// Places for images where decoding without a loader fills batches: more than any cache holds.
const PLACES: usize = 4 * BATCH_SIZE;

/// Rounds that count, and epochs in each.
const ROUNDS: usize = 9;
const EPOCHS: u64 = 8;

/// The targets: CPU time compared with the kernel's, two threads compared with one, and the system's part of the time.
const RATIO_MAX: f64 = 1.35;
const SPEEDUP_MIN: f64 = 1.8;
const SYSTEM_MAX: f64 = 0.10;

const PIPELINE: &str = "name = \"decoded\"\n[source]\nlabel = \"none\"\n[[step]]\nop = \"decode\"\n";

/// What a process has used by now.
#[derive(Clone, Copy)]
struct Used {
    wall: Instant,
    processor_seconds: f64,
    system_seconds: f64,
    faults: f64,
}

/// What a round took for each image.
#[derive(Clone, Copy)]
struct Taken {
    wall: f64,
    processor: f64,
    system: f64,
    faults: f64,
}

impl Used {
    fn now() -> Outcome<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let (_, fields) = stat.rsplit_once(')').ok_or("a process has a name in parentheses")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).ok_or("a number");
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            wall: Instant::now(),
            processor_seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
            system_seconds: field(12)? / rustix::param::clock_ticks_per_second() as f64,
            faults: field(7)?,
        })
    }

    /// What `work` takes of each of `images`.
    fn by(pictures: usize, work: impl FnOnce() -> Outcome<()>) -> Outcome<Taken> {
        let begun = Self::now()?;
        work()?;
        let done = Self::now()?;
        let pictures = pictures as f64;
        Ok(Taken {
            wall: (done.wall - begun.wall).as_secs_f64() / pictures,
            processor: (done.processor_seconds - begun.processor_seconds) / pictures,
            system: (done.system_seconds - begun.system_seconds) / pictures,
            faults: (done.faults - begun.faults) / pictures,
        })
    }
}

/// Rounds of the same work.
#[derive(Default)]
struct Rounds(Vec<Taken>);

impl Rounds {
    fn median(&self, of: impl Fn(&Taken) -> f64) -> f64 {
        median(self.0.iter().map(of).collect())
    }

    /// The system's part of the time, of all rounds together: it is counted in steps that are long beside one.
    fn system(&self) -> f64 {
        let sum = |of: fn(&Taken) -> f64| self.0.iter().map(of).sum::<f64>();
        sum(|taken| taken.system) / sum(|taken| taken.processor)
    }
}

/// The images of a folder that are large enough, cut to size, as files of L3 fast.
fn pictures(folder: &Path) -> Outcome<Vec<Vec<u8>>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    paths.sort();
    let region = Some(Region { x: 0, y: 0, width: WIDTH, height: HEIGHT });
    let options = DecodeOptions { region, ..DecodeOptions::default() };
    let mut decoder = Decoder::new();
    let mut files = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path)?;
        let Ok(picture) = EncodedImage::open(&bytes) else { continue };
        let header = picture.header();
        if header.width >= WIDTH && header.height >= HEIGHT && header.channels == 3 && header.bits == 8 {
            let pixels = decoder.decode(&bytes, &options)?;
            files.push(encode(pixels.view(), &Encoding::L3 { mode: L3Mode::Fast, strip_rows: None })?);
        }
    }
    if files.is_empty() {
        Err(format!("no image of {WIDTH}×{HEIGHT} or more in that folder").into())
    } else {
        Ok(files)
    }
}

fn dataset(files: &[Vec<u8>], folder: &Path) -> Outcome<Arc<Dataset>> {
    let data = folder.join("pictures");
    std::fs::create_dir(&data)?;
    for (number, file) in files.iter().cycle().take(PICTURES).enumerate() {
        std::fs::write(data.join(format!("{number:03}.l3")), file)?;
    }
    let pipeline = Pipeline::from_toml("decoded", PIPELINE)?;
    let listing = Arc::new(Listing::scan(pipeline.source(), &data)?);
    let strategy = Strategy::parse(&pipeline, "concatenated")?;
    let (threads, shards, memory_bytes) = (2, 2, 1 << 30);
    let options =
        BuildOptions { threads, shards, on_error: OnError::Fail, overwrite: false, resume: None, memory_bytes };
    let output = folder.join("dataset");
    Build { pipeline, strategy, listing, storage: StorageChoice::Local.open(0)? }.run(&output, &options, &())?;
    Ok(Arc::new(Dataset::open(&output)?))
}

fn loader(dataset: &Arc<Dataset>, storage: &StorageChoice, threads: usize) -> Outcome<Loader> {
    let source = Shards::new(Arc::clone(dataset), storage.open(0)?);
    let options = LoadOptions { threads, batch_size: BATCH_SIZE, ..LoadOptions::default() };
    Ok(Loader::new(Arc::new(source), options)?)
}

fn load(loader: &Loader) -> Outcome<()> {
    for epoch in 0..EPOCHS {
        for batch in loader.start(&loader.beginning_of(epoch))? {
            std::hint::black_box(&batch?);
        }
    }
    Ok(())
}

/// Decoding without a loader: how it is told, into what, and what it took.
struct Bare {
    name: &'static str,
    /// Where the files are that are decoded in turn.
    files: Arc<Vec<Vec<u8>>>,
    /// Whether pixels are written past the cache.
    streaming: bool,
    /// For each thread its decoder and the places that its images go to.
    threads: Vec<(Decoder, Vec<u8>)>,
    rounds: Rounds,
}

impl Bare {
    /// Each thread has as many `places` for images, in huge pages, as those of batches are.
    fn new(
        name: &'static str,
        files: &Arc<Vec<Vec<u8>>>,
        (threads, places): (usize, usize),
        streaming: bool,
    ) -> Outcome<Self> {
        let mut made = Vec::new();
        for _ in 0..threads {
            let mut output: Vec<u8> = forebay_codec::memory::zeroed(places * PICTURE_BYTES)?;
            forebay_allocator::advise_huge_pages(&mut output);
            made.push((Decoder::new(), output));
        }
        Ok(Self { name, files: Arc::clone(files), streaming, threads: made, rounds: Rounds::default() })
    }

    /// Decodes so many images, on all threads together.
    fn decode(&mut self, times: usize) -> Outcome<()> {
        let (files, streaming, share) = (&self.files[..], self.streaming, times / self.threads.len());
        if let [(decoder, output)] = &mut self.threads[..] {
            return decode(decoder, files, share, output, streaming).map_err(Into::into);
        }
        let decoding = |(decoder, output): &mut (Decoder, Vec<u8>)| decode(decoder, files, share, output, streaming);
        let done: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = self.threads.iter_mut().map(|one| scope.spawn(move || decoding(one))).collect();
            running.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        done.into_iter().try_for_each(|done| Ok(done.map_err(|_| "a thread panicked")??))
    }
}

/// Decodes so many images one after another, each into the next of the places that `output` has.
fn decode(
    decoder: &mut Decoder,
    files: &[Vec<u8>],
    times: usize,
    output: &mut [u8],
    streaming: bool,
) -> Result<(), forebay_codec::Error> {
    let places = output.len() / PICTURE_BYTES;
    for (number, file) in files.iter().cycle().take(times).enumerate() {
        let picture = EncodedImage::open(file)?;
        let plan = picture.plan(&DecodeOptions::default())?;
        let plan = if streaming { plan.streaming() } else { plan };
        let place = number % places * PICTURE_BYTES;
        decoder.decode_into(&plan, TensorMut { spec: plan.spec(), data: &mut output[place..place + PICTURE_BYTES] })?;
    }
    Ok(())
}

/// What decoding takes without a loader, from where a cache holds everything to where it holds nothing.
fn bare(files: Vec<Vec<u8>>) -> Outcome<Vec<Bare>> {
    // As many files as the data set has: more than a cache holds.
    let many = Arc::new(files.iter().cycle().take(PICTURES).cloned().collect());
    let (files, places) = (Arc::new(files), PLACES);
    Ok(vec![
        Bare::new("decoding alone", &files, (1, 1), false)?,
        Bare::new("the same into batches, through the cache", &files, (1, places), false)?,
        Bare::new("the same into batches, past the cache", &files, (1, places), true)?,
        Bare::new("the same, of files that no cache holds", &many, (1, places), true)?,
        Bare::new("the same, on two threads", &many, (2, places), true)?,
    ])
}

/// Measures, and says what was found; an error where a bar was missed.
pub(crate) fn run(folder: &Path, output: Option<&Path>) -> Outcome<()> {
    let files = pictures(folder)?;
    let scratch = tempfile::tempdir()?;
    let dataset = dataset(&files, scratch.path())?;
    let mut loads = Vec::new();
    for storage in [StorageChoice::Local, StorageChoice::Mapped] {
        for threads in [1, 2] {
            loads.push(Load { loader: loader(&dataset, &storage, threads)?, rounds: Rounds::default(), threads });
        }
    }
    let file_bytes = file_bytes(&files);
    let mut bare = bare(files)?;
    let mut copying = [1, 2].map(Copying::new);
    let times = PICTURES * EPOCHS as usize;
    for round in 0..=ROUNDS {
        // The first round warms up: files come into the page cache, and buffers into the loaders.
        for one in &mut bare {
            let taken = Used::by(times, || one.decode(times))?;
            one.rounds.0.extend((round > 0).then_some(taken));
        }
        for one in &mut loads {
            let taken = Used::by(times, || load(&one.loader))?;
            one.rounds.0.extend((round > 0).then_some(taken));
        }
        if round > 0 {
            copying.iter_mut().for_each(Copying::measure);
        }
    }
    let (mut text, missed) = report(file_bytes, &bare, &loads);
    text.push_str(&floor(&bare, &loads));
    text.push_str(&roof(file_bytes, &loads, copying.each_ref().map(Copying::bytes_per_second)));
    write_or_print(&text, output)?;
    if missed { Err("a bar was missed; is the machine busy with something else?".into()) } else { Ok(()) }
}

/// What no loader can do without, by what decoding without one took in the same run, and what is left to the loader.
fn floor(bare: &[Bare], loads: &[Load]) -> String {
    let processor = |rounds: &Rounds| rounds.median(|taken| taken.processor);
    let wall = |rounds: &Rounds| rounds.median(|taken| taken.wall);
    let [alone, .., one, two] = bare else { return String::new() };
    let (alone, one, two) = (&alone.rounds, &one.rounds, &two.rounds);
    let mapped = &loads[loads.len() - 2].rounds;
    let (floor, loader) = (processor(one) / processor(alone), processor(mapped) / processor(one));
    let speedup = wall(one) / wall(two);
    let ratio = if floor < RATIO_MAX {
        format!("so the bar of {RATIO_MAX} leaves a loader {:.2} × that", RATIO_MAX / floor)
    } else {
        format!("so in this run no loader could meet the bar of {RATIO_MAX}")
    };
    let threads = if speedup > SPEEDUP_MIN {
        format!("more than the bar of {SPEEDUP_MIN}")
    } else {
        format!("so in this run no loader could meet the bar of {SPEEDUP_MIN}")
    };
    format!(
        "\n## What the bars leave to a loader\n\nA loader reads each file from memory that no cache holds, and writes each image there. Decoding \
         that does the same without a loader takes {floor:.2} × *decoding alone*, {ratio}; with `mmap` this one takes {loader:.2} × that, \
         {:.3} ms an image more. On two threads decoding without a loader is {speedup:.2} × as fast as on one, {threads}.\n",
        (processor(mapped) - processor(one)) * 1e3,
    )
}

/// The bytes of a file, on average.
fn file_bytes(files: &[Vec<u8>]) -> f64 {
    files.iter().map(Vec::len).sum::<usize>() as f64 / files.len() as f64
}

/// What memory allows at most, by what it gave to plain copies in the same run.
fn roof(file_bytes: f64, loads: &[Load], rates: [f64; 2]) -> String {
    let mut text = String::from(
        "\n## What memory allows\n\nCopies of 128 MB, on one thread and on two at the same time, give bytes that were read or written in a \
         second. An image is at least read from its file and written to its batch, past the cache; `local` also writes and reads a copy of \
         the file, which may stay in the cache and is not counted. *At least* is what these bytes take at the speed of copies, for each \
         image by the clock; the last column, which part of the loader's time by the clock that is.\n\n\
         | threads | copies | bytes / image | at least | loader, `mmap` | part |\n|---:|---:|---:|---:|---:|---:|\n",
    );
    let bytes = file_bytes + PICTURE_BYTES as f64;
    for (load, rate) in loads[loads.len() - 2..].iter().zip(rates) {
        let (least, wall) = (bytes / rate, load.rounds.median(|taken| taken.wall));
        let _ = writeln!(
            text,
            "| {} | {:.1} GB/s | {:.1} MB | {:.3} ms | {:.3} ms | {:.0} % |",
            load.threads,
            rate / 1e9,
            bytes / 1e6,
            least * 1e3,
            wall * 1e3,
            least / wall * 100.0
        );
    }
    text
}

/// One way of loading.
struct Load {
    loader: Loader,
    rounds: Rounds,
    threads: usize,
}

fn write_or_print(text: &str, output: Option<&Path>) -> Outcome<()> {
    println!("{text}");
    if let Some(output) = output {
        std::fs::write(output, text)?;
        eprintln!("written to {}", output.display());
    }
    Ok(())
}

fn report(file_bytes: f64, decoding: &[Bare], loads: &[Load]) -> (String, bool) {
    let file_megabytes = file_bytes / 1e6;
    let mut text = format!(
        "# Large images in the loader\n\nRegenerate with `make bench-large`. {WIDTH}×{HEIGHT} pixels in L3 fast, {file_megabytes:.1} MB a \
         file and {:.1} MB of pixels; {PICTURES} samples in batches of {BATCH_SIZE}, each of its own shape as far as the loader knows; page \
         cache warm. CPU time of all threads, user and system; medians of {ROUNDS} rounds of {EPOCHS} epochs, in turn. *Decoding \
         alone* is one thread that decodes a few files in memory into the same 6 MB again and again; \
         *into batches*, into {PLACES} places in huge pages, which no cache holds. `local` copies out of the page cache, \
         `mmap` reads it where it is.\n\nMachine: {}.\n\n\
         | work | CPU ms / image | × decoding | of it system | page faults / image | images/s | × one thread |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
        PICTURE_BYTES as f64 / 1e6,
        processor(),
    );
    let base = decoding[0].rounds.median(|taken| taken.processor);
    let mut row = |name: &str, rounds: &Rounds, speedup: Option<f64>| {
        let (processor, wall) = (rounds.median(|taken| taken.processor), rounds.median(|taken| taken.wall));
        let (system, faults) = (rounds.system() * 100.0, rounds.median(|taken| taken.faults));
        let speedup = speedup.map_or(String::new(), |speedup| format!("{speedup:.2}"));
        let _ = writeln!(
            text,
            "| {name} | {:.3} | {:.2} | {system:.1} % | {faults:.1} | {:.0} | {speedup} |",
            processor * 1e3,
            processor / base,
            1.0 / wall
        );
        processor / base
    };
    for (number, one) in decoding.iter().enumerate() {
        let wall = |one: &Bare| one.rounds.median(|taken| taken.wall);
        row(one.name, &one.rounds, (one.threads.len() > 1).then(|| wall(&decoding[number - 1]) / wall(one)));
    }
    let mut bars = Vec::new();
    for (storage, pair) in ["local", "mmap"].iter().zip(loads.chunks_exact(2)) {
        let one = &pair[0].rounds;
        let ratio = row(&format!("loader, `{storage}`, one thread"), one, None);
        let two = &pair[1];
        let speedup = one.median(|taken| taken.wall) / two.rounds.median(|taken| taken.wall);
        row(&format!("loader, `{storage}`, {} threads", two.threads), &two.rounds, Some(speedup));
        bars.push((ratio <= RATIO_MAX, speedup >= SPEEDUP_MIN, one.system() < SYSTEM_MAX));
    }
    let names = [
        format!("CPU time at most {RATIO_MAX} × decoding alone, on one thread"),
        format!("two threads at least {SPEEDUP_MIN} × one"),
        format!("system time under {:.0} %", SYSTEM_MAX * 100.0),
    ];
    text.push_str("\n| bar | `local` | `mmap` |\n|---|---|---|\n");
    let word = |is_met: bool| if is_met { "met" } else { "missed" };
    let (local, mapped) = (bars[0], bars[1]);
    for (name, (local, mapped)) in names.iter().zip([(local.0, mapped.0), (local.1, mapped.1), (local.2, mapped.2)]) {
        let _ = writeln!(text, "| {name} | {} | {} |", word(local), word(mapped));
    }
    (text, !(mapped.0 && mapped.1 && mapped.2))
}
