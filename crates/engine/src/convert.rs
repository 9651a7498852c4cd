//! Converting: images from one format to another, a file or a directory tree.
//!
//! Pixels are preserved with their channels and depth; only the EXIF orientation is applied, because the output
//! has no EXIF. An image is written under a temporary name and renamed when it is complete (and, if
//! requested, has been read back and compared). So every file with its final name is finished, and an interrupted conversion
//! resumes when it is run again; existing files in another encoding are refused. Files are not flushed one by one: after a
//! power failure, verify.

mod existing;
mod picture;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sync::Mutex;
use forebay_codec::image::{Depth, Encoding, Format};
use forebay_pipeline::{Label, Order, Source};

use crate::StorageChoice;
use crate::data::{Listing, Skipped};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::Gate;
use crate::progress::{Progress, while_wanted};
use crate::threads::share;
use picture::{Done, Failure, Worker};
pub(crate) use picture::{create, is_temporary, temporary, unreadable, write};

/// What to convert: images, and the output of each.
#[derive(Debug, Clone)]
pub struct Conversion {
    pairs: Vec<Pair>,
    ignored: u64,
}

/// One image and where it goes.
#[derive(Debug, Clone)]
struct Pair {
    /// How it is called in messages: its path, or that below the folder.
    key: String,
    input: PathBuf,
    output: PathBuf,
    /// The folder that the user named; those between it and `output` are made.
    root: PathBuf,
}

/// How to convert.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// To what.
    pub encoding: Encoding,
    /// Whether 16-bit samples are preserved, which is an error if the encoding cannot hold them, or lose their low byte.
    pub depth: Depth,
    /// Whether to read every image back, including existing ones, and compare it.
    pub verify: bool,
    /// Whether outputs that exist already are replaced; otherwise they are kept where they are of this encoding, and an error
    /// where they are not.
    pub overwrite: bool,
    /// Images that are converted at once.
    pub threads: usize,
    /// What happens to an image that cannot be read or converted.
    pub on_error: OnError,
    /// The memory budget, in bytes, for all images that are being converted.
    pub memory_bytes: u64,
}

/// What a conversion did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Converted {
    /// The number of images written.
    pub converted: u64,
    /// How many were there already.
    pub reused: u64,
    /// The number of files in the folder that are not images, by their names, and were ignored.
    pub ignored: u64,
    /// The number of animations, of which only the first frame was written.
    pub animated: u64,
    /// The size of the input of all images, written and reused.
    pub bytes_in: u64,
    /// And after.
    pub bytes_out: u64,
    /// The size of the pixels of those that were written.
    pub pixel_bytes: u64,
    /// The largest difference of two samples, of 255 or 65,535, where images were verified.
    pub largest_difference: Option<u32>,
    /// Images that were left out.
    pub skipped_samples: Vec<Skipped>,
}

impl Conversion {
    /// One image.
    pub fn of_file(input: &Path, output: &Path) -> Self {
        let key = input.display().to_string();
        let root = output.parent().unwrap_or(Path::new("")).to_owned();
        Self { pairs: vec![Pair { key, input: input.to_owned(), output: output.to_owned(), root }], ignored: 0 }
    }

    /// All images below the folder `input`, by the extensions of their names, to the same paths below `output`, with the
    /// extension of `format`.
    pub fn of_folder(input: &Path, output: &Path, format: Format) -> Result<Self> {
        refuse_nesting(input, output)?;
        let source = Source {
            files: Some("**/*".to_owned()),
            label: Label::None,
            order: Some(Order::Sorted),
            ..Source::default()
        };
        let listing = Listing::scan(&source, input)?;
        let is_picture =
            |path: &Path| path.extension().is_some_and(|name| Format::from_name(&name.to_string_lossy()).is_some());
        let mut pairs = Vec::new();
        let mut sources: HashMap<PathBuf, String> = HashMap::new();
        for file in listing.entries().iter().filter(|file| is_picture(file.path())) {
            let to = output.join(file.path().with_extension(format.extension()));
            let key = file.key.to_string();
            if let Some(first) = sources.insert(to.clone(), key.clone()) {
                return Err(Error::Usage {
                    problem: format!("`{first}` and `{key}` would both become `{}`", to.display()),
                    remedy: "rename one of them, or convert them to different folders".to_owned(),
                });
            }
            pairs.push(Pair { key, input: input.join(file.path()), output: to, root: output.to_owned() });
        }
        if pairs.is_empty() {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.extension()).collect();
            return Err(Error::Usage {
                problem: format!("there are no images below `{}`", input.display()),
                remedy: format!("their names end with .{} or the like", names.join(", .")),
            });
        }
        let ignored = (listing.len() - pairs.len()) as u64;
        Ok(Self { pairs, ignored })
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Converts them, several at once. After an error, finished ones stay.
    pub fn run(&self, options: &ConvertOptions, progress: &dyn Progress) -> Result<Converted> {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let results = Mutex::new(Vec::new());
        let storage = StorageChoice::Local.open(0)?;
        let threads = options.threads.clamp(1, self.pairs.len().max(1));
        let gate = Gate::new(options.memory_bytes, threads);
        if !options.overwrite {
            existing::check(self, options, &mut Worker::new(options, &*storage, &gate), threads, progress)?;
        }
        progress.begin("convert", self.pairs.len() as u64);
        let work = || {
            let mut worker = Worker::new(options, &*storage, &gate);
            while !stop.load(Ordering::Relaxed) && !progress.is_cancelled() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(pair) = self.pairs.get(number) else { return };
                let done = match Error::if_memory_was_refused() {
                    Ok(()) => worker.convert(pair),
                    Err(error) => Err(Failure::OfOutput(error)),
                };
                let fatal = match &done {
                    Ok(_) => false,
                    Err(Failure::OfPicture(_)) => options.on_error == OnError::Fail,
                    Err(Failure::OfOutput(_)) => true,
                };
                stop.fetch_or(fatal, Ordering::Relaxed);
                results.lock().push((number, done));
                progress.advance(1);
            }
        };
        std::thread::scope(|scope| share(scope, threads, "convert", &work))?;
        while_wanted(progress)?;
        let mut results = results.into_inner();
        results.sort_unstable_by_key(|(number, _)| *number);
        let converted = self.sum(results, options)?;
        progress.end();
        Ok(converted)
    }

    /// Adds up the outcomes, or returns the first error that ended the work.
    fn sum(
        &self,
        results: Vec<(usize, std::result::Result<Done, Failure>)>,
        options: &ConvertOptions,
    ) -> Result<Converted> {
        let mut sum = Converted { ignored: self.ignored, ..Converted::default() };
        for (number, result) in results {
            match result {
                Ok(done) => {
                    sum.converted += u64::from(!done.reused);
                    sum.reused += u64::from(done.reused);
                    sum.animated += u64::from(done.animated);
                    sum.bytes_in += done.bytes_in;
                    sum.bytes_out += done.bytes_out;
                    sum.pixel_bytes += done.pixel_bytes;
                    sum.largest_difference = sum.largest_difference.max(done.difference);
                }
                Err(Failure::OfPicture(error)) if options.on_error == OnError::Skip => {
                    sum.skipped_samples.push(Skipped::one(self.pairs[number].key.clone(), &error));
                }
                Err(Failure::OfPicture(error) | Failure::OfOutput(error)) => return Err(error),
            }
        }
        if sum.converted + sum.reused == 0 {
            return Err(Error::Usage {
                problem: "not one image could be converted".to_owned(),
                remedy: "run again without skipping images to see the first error".to_owned(),
            });
        }
        Ok(sum)
    }
}

/// Refuses an output folder within the input folder: a second run would use its images as sources.
pub(crate) fn refuse_nesting(input: &Path, output: &Path) -> Result<()> {
    if output.is_file() {
        return Err(Error::Usage {
            problem: format!("`{}` is a folder, but `{}` is a file", input.display(), output.display()),
            remedy: "choose a folder for the images".to_owned(),
        });
    }
    let root = fs::canonicalize(input).map_err(Error::io("list", input))?;
    // What does not exist yet has no links to follow: its nearest ancestor that exists decides.
    let absolute = std::path::absolute(output).map_err(Error::io("look at", output))?;
    let there = absolute.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok());
    if there.is_some_and(|there| there.starts_with(&root)) {
        return Err(Error::Usage {
            problem: format!("the output folder `{}` is within `{}`", output.display(), input.display()),
            remedy: "choose a folder outside of it: otherwise its files would be converted, too".to_owned(),
        });
    }
    Ok(())
}
