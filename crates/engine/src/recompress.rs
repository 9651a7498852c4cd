//! Recompressing: a folder of images, or a data set, at other qualities, each in a separate folder, never at a higher quality than the source's.
//!
//! An image is encoded only where that can make it smaller without pretending to a quality that is gone: a JPEG whose quantization tables say that it has
//! the asked quality or a lower one is copied byte for byte, and so is a lossy WebP, whose quality cannot be told, an animation, and whatever would not become smaller. So what was
//! recompressed once is copied the next time. Files other than images (labels, lists) are copied, too; EXIF and the color profile are preserved.
//!
//! As in [`convert`](crate::convert), a file is written under a temporary name and renamed, and files with their final names are reused by the next run.

mod dataset;
mod original;
mod variant;

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use forebay_codec::image::{Decoder, EncodedImage, Encoding, Format, similarity};
use forebay_pipeline::{Label, Order, Source};
use forebay_storage::{Storage, sequential};
use serde::Serialize;

use crate::StorageChoice;
use crate::convert::{create, is_temporary, refuse_nesting, temporary, unreadable, write};
use crate::data::{FILE_BYTES_MAX, Listing, MANIFEST_FILE, MIX_FILE, Skipped};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::{Gate, Pass};
use crate::progress::{Progress, while_wanted};
use crate::sync::Mutex;
use crate::threads::share;
pub(crate) use original::{Original, as_stored};
pub use variant::RecompressedVariant;

/// How to recompress.
#[derive(Debug, Clone)]
pub struct RecompressOptions {
    /// To what, one after another: JPEG or WebP, each with a quality. The folder of each is called like it: `jpeg-75`.
    pub encodings: Vec<Encoding>,
    /// Whether every output is read back: an image must decode to the size of its source, a copy must have its bytes.
    pub verify: bool,
    /// Whether each output is compared with its source: PSNR, SSIM and MS-SSIM.
    pub metrics: bool,
    /// Whether existing outputs are replaced; otherwise they are reused.
    pub overwrite: bool,
    /// Files that are worked on at once.
    pub threads: usize,
    /// What happens to an image that cannot be read.
    pub on_error: OnError,
    /// The memory budget: how many bytes the images at work may take together.
    pub memory_bytes: u64,
}

/// What became of a file at one quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was encoded.
    Encoded,
    /// It was copied: it has the asked quality or a lower one, or would not have become smaller.
    Copied,
    /// It was there already.
    Reused,
}

/// One image at one quality.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecompressedImage {
    /// Its path below the folder.
    pub key: String,
    /// To what: `jpeg-75`.
    pub encoding: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The quality of a source that is a JPEG.
    pub source_quality: Option<u8>,
    /// Whether that is known, from libjpeg's tables, or only the nearest.
    pub source_quality_exact: Option<bool>,
    /// Its width as stored.
    pub width: u64,
    /// Its height as stored.
    pub height: u64,
    /// The size of its file before.
    pub bytes_in: u64,
    /// And after.
    pub bytes_out: u64,
    /// Bits of its file after, over its pixels.
    pub bits_per_pixel: f64,
    /// How long encoding took, where it was encoded.
    pub encode_seconds: Option<f64>,
    /// The peak signal-to-noise ratio in decibels, where that was asked for; `None` too where no pixel differs.
    pub psnr: Option<f64>,
    /// The structural similarity, where that was asked for and the image is large enough.
    pub ssim: Option<f64>,
    /// The same over five scales.
    pub ms_ssim: Option<f64>,
}

/// What recompressing did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recompressed {
    /// The totals of each quality.
    pub variants: Vec<RecompressedVariant>,
    /// Every image at every quality, in order; none of a data set.
    pub images: Vec<RecompressedImage>,
    /// How many files that are no images were copied (or were there already), to each folder.
    pub others: u64,
    /// Images that were left out.
    pub skipped_samples: Vec<Skipped>,
}

/// The encodings for a format's name, `jpeg` or `webp`, and qualities from 1 to 100.
pub fn lossy_encodings(format: &str, qualities: &[u8]) -> Result<Vec<Encoding>> {
    let named = |quality: &u8| format!("{format}-{quality}").parse::<Encoding>();
    let mut encodings: Vec<Encoding> = Vec::new();
    for quality in qualities {
        let encoding = named(quality).map_err(forebay_pipeline::Error::Encoding)?;
        // What is asked for twice is done once.
        if !encodings.contains(&encoding) {
            encodings.push(encoding);
        }
    }
    Ok(encodings)
}

/// Files other than images are copied in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// A file of the folder.
struct File {
    key: String,
    path: PathBuf,
    /// Its path below the folder, which its outputs have, too.
    below: PathBuf,
    is_image: bool,
}

/// Recompresses the images below the folder `input`, or those of the data set there, to folders below `output`, one for each encoding.
pub fn recompress(
    input: &Path,
    output: &Path,
    options: &RecompressOptions,
    progress: &dyn Progress,
) -> Result<Recompressed> {
    let lossy = |encoding: &Encoding| matches!(encoding, Encoding::Jpeg { .. } | Encoding::WebP { .. });
    if options.encodings.is_empty() || !options.encodings.iter().all(lossy) {
        return Err(Error::Usage {
            problem: "images are recompressed as JPEG or WebP with a quality".to_owned(),
            remedy: "pass encodings such as `jpeg-75` or `webp-50`".to_owned(),
        });
    }
    refuse_nesting(input, output)?;
    let storage = StorageChoice::Local.open(0)?;
    for name in [MANIFEST_FILE, MIX_FILE] {
        if storage.is_taken(&input.join(name))? {
            return dataset::recompress_dataset(input, output, options, &storage, progress);
        }
    }
    let files = files_below(input, &options.encodings)?;
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results = Mutex::new(Vec::new());
    let threads = options.threads.clamp(1, files.len().max(1));
    let gate = Gate::new(options.memory_bytes, threads);
    progress.begin("recompress", files.len() as u64);
    let work = || {
        let mut worker = Worker { output, options, storage: &*storage, gate: &gate, decoder: Decoder::new() };
        while !stop.load(Ordering::Relaxed) && !progress.is_cancelled() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(number) else { return };
            let done = Error::if_memory_was_refused().and_then(|()| worker.file(file));
            let is_skipped = |error: &Error| options.on_error == OnError::Skip && !error.ends();
            stop.fetch_or(done.as_ref().is_err_and(|error| !is_skipped(error)), Ordering::Relaxed);
            results.lock().push((number, done));
            progress.advance(1);
        }
    };
    std::thread::scope(|scope| share(scope, threads, "recompress", &work))?;
    while_wanted(progress)?;
    let mut results = results.into_inner();
    results.sort_unstable_by_key(|(number, _)| *number);
    let mut sum = Recompressed::default();
    for (number, done) in results {
        match done {
            Ok(images) if files[number].is_image => sum.images.extend(images),
            Ok(_) => sum.others += 1,
            Err(error) if options.on_error == OnError::Skip && !error.ends() => {
                sum.skipped_samples.push(Skipped::one(files[number].key.clone(), &error));
            }
            Err(error) => return Err(error),
        }
    }
    if sum.images.is_empty() {
        return Err(Error::Usage {
            problem: "not one image could be recompressed".to_owned(),
            remedy: "run again without skipping images to see the first error".to_owned(),
        });
    }
    let names = options.encodings.iter().map(ToString::to_string);
    sum.variants = names.map(|name| RecompressedVariant::of(&name, &sum.images)).collect();
    progress.end();
    Ok(sum)
}

/// All files below a folder. No two may get the same name.
fn files_below(input: &Path, encodings: &[Encoding]) -> Result<Vec<File>> {
    let source =
        Source { files: Some("**/*".to_owned()), label: Label::None, order: Some(Order::Sorted), ..Source::default() };
    let listing = Listing::scan(&source, input)?;
    let mut taken: HashMap<PathBuf, String> = HashMap::new();
    let mut files = Vec::new();
    for entry in listing.entries().iter().filter(|entry| !is_temporary(entry.path())) {
        let path = entry.path().to_owned();
        let extension = path.extension().map(|name| name.to_string_lossy().into_owned());
        let is_image = extension.is_some_and(|name| Format::from_name(&name).is_some());
        let mut names = vec![path.clone()];
        names.extend(encodings.iter().filter(|_| is_image).map(|encoding| encoded_name(&path, encoding.format())));
        names.sort();
        names.dedup();
        for name in names {
            if let Some(first) = taken.insert(name.clone(), entry.key.to_string()) {
                return Err(Error::Usage {
                    problem: format!("`{first}` and `{}` would both become `{}`", entry.key, name.display()),
                    remedy: "rename one of them, or recompress them to different folders".to_owned(),
                });
            }
        }
        files.push(File { key: entry.key.to_string(), path: input.join(&path), below: path, is_image });
    }
    if !files.iter().any(|file| file.is_image) {
        return Err(Error::Usage {
            problem: format!("there are no images below `{}`", input.display()),
            remedy: "their names end with .jpg, .png, .webp or the like".to_owned(),
        });
    }
    Ok(files)
}

/// The name of an image once it is encoded: its own where the extension says the format already.
fn encoded_name(path: &Path, format: Format) -> PathBuf {
    let is_so = path.extension().is_some_and(|name| Format::from_name(&name.to_string_lossy()) == Some(format));
    if is_so { path.to_owned() } else { path.with_extension(format.extension()) }
}

/// Recompresses files, one after another.
struct Worker<'a> {
    output: &'a Path,
    options: &'a RecompressOptions,
    storage: &'a dyn Storage,
    gate: &'a Gate,
    decoder: Decoder,
}

impl Worker<'_> {
    fn file(&mut self, file: &File) -> Result<Vec<RecompressedImage>> {
        if !file.is_image {
            for encoding in &self.options.encodings {
                self.copy(&file.path, &self.output.join(encoding.to_string()).join(&file.below))?;
            }
            return Ok(Vec::new());
        }
        let gate = self.gate;
        let mut pass: Option<Pass<'_>> = None;
        let mut reserve = |bytes: u64| {
            gate.wait(bytes, &mut pass).map_err(|_| Error::Limit {
                problem: format!("`{}` takes {bytes} bytes of memory to recompress", file.path.display()),
                remedy: "raise `memory` (`--memory`)".to_owned(),
            })
        };
        let file_bytes = self.storage.open(&file.path)?.size();
        reserve(2 * file_bytes)?;
        let content = self.storage.read_file(&file.path, file_bytes)?;
        let failed = |error: forebay_codec::Error| unreadable(&file.path, &error);
        let opened = EncodedImage::open(&content).map_err(failed)?;
        let plan = opened.plan(&as_stored(opened.header())).map_err(failed)?;
        // The pixels, those that are read back, and of a comparison the planes of both.
        let pixel_bytes = plan.spec().bytes() as u64 * if self.options.metrics { 40 } else { 3 };
        let bytes = pixel_bytes + plan.working_bytes() as u64 + 2 * content.len() as u64;
        reserve(bytes)?;
        let original = Original::decode(&content, &opened, &mut self.decoder).map_err(failed)?;
        let encodings = self.options.encodings.clone();
        let images = encodings.into_iter().map(|encoding| self.image(file, &original, encoding)).collect();
        if self.decoder.capacity_bytes() > self.gate.keep_bytes() {
            self.decoder.trim();
        }
        images
    }

    /// One image at one quality.
    fn image(&mut self, file: &File, read: &Original<'_>, encoding: Encoding) -> Result<RecompressedImage> {
        let folder = self.output.join(encoding.to_string());
        let copied_to = folder.join(&file.below);
        let encoded_to = encoded_name(&copied_to, encoding.format());
        let there = [&copied_to, &encoded_to].into_iter().find(|path| !self.options.overwrite && path.is_file());
        let (outcome, written, encode_seconds) = if let Some(path) = there {
            let kept = self.storage.read_file(path, FILE_BYTES_MAX)?.to_vec();
            if self.options.verify {
                let expected = read.encoded(encoding).map_err(|error| unreadable(&file.path, &error))?;
                if kept != expected.as_deref().unwrap_or(read.content) {
                    return Err(differs(path, &file.path));
                }
            }
            (Outcome::Reused, kept, None)
        } else {
            let begun = Instant::now();
            let encoded = read.encoded(encoding).map_err(|error| unreadable(&file.path, &error))?;
            if let Some(encoded) = encoded {
                let seconds = begun.elapsed().as_secs_f64();
                self.commit(&encoded_to, &encoded)?;
                (Outcome::Encoded, encoded, Some(seconds))
            } else {
                self.commit(&copied_to, read.content)?;
                (Outcome::Copied, read.content.to_vec(), None)
            }
        };
        let mut image = RecompressedImage {
            key: file.key.clone(),
            encoding: encoding.to_string(),
            outcome,
            source_quality: read.quality.map(|found| found.quality),
            source_quality_exact: read.quality.map(|found| found.exact),
            width: read.header.width as u64,
            height: read.header.height as u64,
            bytes_in: read.content.len() as u64,
            bytes_out: written.len() as u64,
            bits_per_pixel: 8.0 * written.len() as f64 / (read.header.width * read.header.height).max(1) as f64,
            encode_seconds,
            psnr: None,
            ssim: None,
            ms_ssim: None,
        };
        if self.options.metrics || self.options.verify {
            let failed = |error: forebay_codec::Error| unreadable(&copied_to, &error);
            let back = self.decoder.decode(&written, &as_stored(&read.header)).map_err(failed)?;
            let near = similarity(read.pixels.view(), back.view()).map_err(failed)?;
            if self.options.metrics {
                image.psnr = Some(near.psnr).filter(|psnr| psnr.is_finite());
                (image.ssim, image.ms_ssim) = (near.ssim, near.ms_ssim);
            }
        }
        Ok(image)
    }

    /// Copies a file in pieces, unless it exists; compares an existing one if requested.
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let kept = !self.options.overwrite && to.is_file();
        if !kept {
            let temporary = temporary(to);
            let source = self.storage.open(from)?;
            let written = create(self.output, &temporary)
                .and_then(|mut file| {
                    sequential(&*source, PIECE_BYTES)
                        .try_for_each(|piece| file.write_all(&piece?).map_err(Error::io("write", &temporary)))
                })
                .and_then(|()| fs::rename(&temporary, to).map_err(Error::io("write", to)));
            if written.is_err() {
                let _ = fs::remove_file(&temporary);
            }
            written?;
        }
        if self.options.verify {
            let (one, other) = (self.storage.open(from)?, self.storage.open(to)?);
            let mut pieces = sequential(&*one, PIECE_BYTES).zip(sequential(&*other, PIECE_BYTES));
            let equal = pieces
                .try_fold(one.size() == other.size(), |equal, (one, other)| Ok::<_, Error>(equal && one? == other?))?;
            if !equal {
                return Err(differs(to, from));
            }
        }
        Ok(())
    }

    /// Writes a file under its temporary name, reads it back if that was asked for, and renames it.
    fn commit(&self, path: &Path, content: &[u8]) -> Result<()> {
        let temporary = temporary(path);
        let written = write(self.output, &temporary, content).and_then(|()| {
            if self.options.verify && *self.storage.read_file(&temporary, FILE_BYTES_MAX)? != *content {
                let problem = "does not hold what was written".to_owned();
                return Err(Error::Format { path: path.to_owned(), problem });
            }
            fs::rename(&temporary, path).map_err(Error::io("write", path))
        });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// The error of an output that was there already, and is not what it should be.
fn differs(path: &Path, source: &Path) -> Error {
    let problem =
        format!("is not what `{}` gives\nhint: if it was made of something else, overwrite it", source.display());
    Error::Format { path: path.to_owned(), problem }
}
