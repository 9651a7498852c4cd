//! One image: it is read, written in another format, read back and compared.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use forebay_codec::image::{Channels, DecodeOptions, DecodePlan, Decoder, Depth, EncodedImage, encode};
use forebay_codec::{DType, Tensor};
use forebay_storage::{Storage, create_folders_below, create_fresh};

use super::{ConvertOptions, Pair};
use crate::data::FILE_BYTES_MAX;
use crate::error::{Error, Result};
use crate::memory::{Gate, Pass};

/// The outcome of one image.
pub(super) struct Done {
    pub(super) reused: bool,
    pub(super) animated: bool,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Of an image that was written.
    pub(super) pixel_bytes: u64,
    /// The largest difference of two samples, if it was verified.
    pub(super) difference: Option<u32>,
}

/// Why an image was not converted.
pub(super) enum Failure {
    /// The image is at fault: others may succeed.
    OfPicture(Error),
    /// What is written cannot be: neither can the others.
    OfOutput(Error),
}

/// Converts images, one after another.
pub(super) struct Worker<'a> {
    options: &'a ConvertOptions,
    storage: &'a dyn Storage,
    decoder: Decoder,
    gate: &'a Gate,
    /// What the current image may take beyond the worker's own share.
    pass: Option<Pass<'a>>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(options: &'a ConvertOptions, storage: &'a dyn Storage, gate: &'a Gate) -> Self {
        Self { options, storage, decoder: Decoder::new(), gate, pass: None }
    }

    pub(super) fn storage(&self) -> &'a dyn Storage {
        self.storage
    }

    /// The output file of an image.
    pub(super) fn encoded(&mut self, pair: &Pair) -> Result<Vec<u8>> {
        let file = self.read(&pair.input).and_then(|source| self.encode(&source.picture, pair));
        self.pass = None;
        file
    }

    pub(super) fn convert(&mut self, pair: &Pair) -> Result<Done, Failure> {
        let done = self.convert_one(pair);
        self.pass = None;
        if self.decoder.capacity_bytes() > self.gate.keep_bytes() {
            self.decoder.trim();
        }
        done
    }

    /// Waits for the memory that an image takes: its file, its pixels, as they are written and as they are read back.
    fn wait_for_memory(&mut self, path: &Path, file_bytes: u64, plan: &DecodePlan<'_>) -> Result<()> {
        let bytes = 3 * plan.spec().bytes() as u64 + plan.working_bytes() as u64 + file_bytes;
        self.gate.wait(bytes, &mut self.pass).map_err(|_| Error::Limit {
            problem: format!(
                "`{}` takes {bytes} bytes of memory to convert, over half of a budget of {}",
                path.display(),
                self.options.memory_bytes
            ),
            remedy: "raise `memory` (`--memory`)".to_owned(),
        })
    }

    fn convert_one(&mut self, pair: &Pair) -> Result<Done, Failure> {
        let kept = if self.options.overwrite { None } else { size_if_there(&pair.output)? };
        if let (Some(bytes_out), false) = (kept, self.options.verify) {
            let bytes_in = fs::metadata(&pair.input).map_err(Error::io("look at", &pair.input));
            let bytes_in = bytes_in.map_err(Failure::OfPicture)?.len();
            return Ok(Done { reused: true, animated: false, bytes_in, bytes_out, pixel_bytes: 0, difference: None });
        }
        let source = self.read(&pair.input).map_err(Failure::OfPicture)?;
        let bytes_in = source.bytes;
        if let Some(bytes_out) = kept {
            let difference = Some(self.compare(&source.picture, pair, &pair.output).map_err(Failure::OfPicture)?);
            return Ok(Done { reused: true, animated: false, bytes_in, bytes_out, pixel_bytes: 0, difference });
        }
        let file = self.encode(&source.picture, pair).map_err(Failure::OfPicture)?;
        let temporary = temporary(&pair.output);
        let difference = self.write(&file, &source.picture, pair, &temporary);
        if difference.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        Ok(Done {
            reused: false,
            animated: source.animated,
            bytes_in,
            bytes_out: file.len() as u64,
            pixel_bytes: source.picture.data().len() as u64,
            difference: difference?,
        })
    }

    /// Writes a file under its temporary name, and renames it when it is intact; the difference if that was looked at.
    fn write(&mut self, file: &[u8], picture: &Tensor, pair: &Pair, temporary: &Path) -> Result<Option<u32>, Failure> {
        write(&pair.root, temporary, file).map_err(Failure::OfOutput)?;
        let difference = if self.options.verify {
            Some(self.compare(picture, pair, temporary).map_err(Failure::OfPicture)?)
        } else {
            None
        };
        let renamed = fs::rename(temporary, &pair.output).map_err(Error::io("write", &pair.output));
        renamed.map_err(Failure::OfOutput).map(|()| difference)
    }

    /// Reads an image, upright, with its channels.
    fn read(&mut self, path: &Path) -> Result<Source> {
        let content = self.storage.read_file(path, FILE_BYTES_MAX)?;
        let failed = |error: forebay_codec::Error| unreadable(path, &error);
        let bytes = content.len() as u64;
        let opened = EncodedImage::open(&content).map_err(failed)?;
        let animated = opened.header().animated;
        let options =
            DecodeOptions { channels: Channels::AsStored, depth: self.options.depth, ..DecodeOptions::default() };
        let plan = opened.plan(&options).map_err(failed)?;
        self.wait_for_memory(path, bytes, &plan)?;
        let (picture, _) = self.decoder.decode_reporting(&plan).map_err(failed)?;
        if picture.spec().dtype == DType::U16 && !self.options.encoding.holds_sixteen_bits() {
            let format = self.options.encoding.format();
            return Err(Error::Usage {
                problem: format!("`{}` has 16 bits per sample, and {format} holds 8", path.display()),
                remedy: "convert it to l3, png or pnm, or request a depth of 8 bits, which keeps their high bytes"
                    .to_owned(),
            });
        }
        Ok(Source { picture, animated, bytes })
    }

    fn encode(&self, picture: &Tensor, pair: &Pair) -> Result<Vec<u8>> {
        let encoding = &self.options.encoding;
        encode(picture.view(), encoding).map_err(|error| match error {
            // The image is intact: it only does not fit the format.
            forebay_codec::Error::Usage { .. } => Error::Usage {
                problem: format!("`{}` cannot be stored as {encoding}: {error}", pair.input.display()),
                remedy: "choose a format that holds it: l3 and png hold every image".to_owned(),
            },
            other => {
                Error::Format { path: pair.input.clone(), problem: format!("cannot be stored as {encoding}: {other}") }
            }
        })
    }

    /// Reads what was written back from `path`: the largest difference of two samples. Any is an error if the encoding is
    /// lossless.
    fn compare(&mut self, picture: &Tensor, pair: &Pair, path: &Path) -> Result<u32> {
        let content = self.storage.read_file(path, FILE_BYTES_MAX)?;
        let options =
            DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..DecodeOptions::default() };
        let back = self.decoder.decode(&content, &options).map_err(|error| unreadable(&pair.output, &error))?;
        let differs = |how: String| Error::Format {
            path: pair.output.clone(),
            problem: format!(
                "does not hold the pixels of `{}`: {how}\nhint: if it was made of something else, overwrite it",
                pair.input.display()
            ),
        };
        let Some(largest) = difference(picture, &back) else {
            return Err(differs(format!("they are {}, not {}", back.spec(), picture.spec())));
        };
        if largest > 0 && self.options.encoding.is_lossless() {
            return Err(differs(format!("they differ by up to `{largest}` levels")));
        }
        Ok(largest)
    }
}

struct Source {
    picture: Tensor,
    animated: bool,
    bytes: u64,
}

/// The error of an image, without the codec's hints, which are for callers of a decoder: here the file is at fault.
pub(crate) fn unreadable(path: &Path, error: &forebay_codec::Error) -> Error {
    let text = error.to_string();
    let problem = format!("cannot be decoded: {}", text.lines().next().unwrap_or_default());
    Error::Format { path: path.to_owned(), problem }
}

/// The size of the file at `path`, if there is one.
fn size_if_there(path: &Path) -> Result<Option<u64>, Failure> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::OfOutput(Error::io("look at", path)(error))),
    }
}

/// Always the same, so that what a killed run left is replaced by the next one; and no name that other programs give.
pub(crate) fn temporary(output: &Path) -> PathBuf {
    let mut name = OsString::from(TEMPORARY.0);
    name.push(output.file_name().unwrap_or_default());
    name.push(TEMPORARY.1);
    output.with_file_name(name)
}

/// Whether a file has such a name: it was left by a run that was killed.
pub(crate) fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(TEMPORARY.0.as_bytes()) && name.ends_with(TEMPORARY.1.as_bytes())
}

/// What the names of unfinished files begin and end with.
const TEMPORARY: (&str, &str) = (".forebay-", ".partial");

/// Writes a file below the folder `root`, without following links on the way.
pub(crate) fn write(root: &Path, path: &Path, content: &[u8]) -> Result<()> {
    create(root, path)?.write_all(content).map_err(Error::io("write", path))
}

/// Begins to write one.
pub(crate) fn create(root: &Path, path: &Path) -> Result<fs::File> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let below = folder.strip_prefix(root).unwrap_or(Path::new(""));
    if !root.as_os_str().is_empty() {
        create_folders_below(root, below).map_err(Error::io("create the folder", folder))?;
    }
    create_fresh(path).map_err(Error::io("write", path))
}

/// The largest difference of two samples; `None` where the images are of different sizes or depths. Where a format knows no
/// gray it is compared with each color, and alpha that is not there is opaque.
fn difference(one: &Tensor, other: &Tensor) -> Option<u32> {
    let (height, width, _) = one.spec().as_picture()?;
    let (other_height, other_width, _) = other.spec().as_picture()?;
    if (height, width, one.spec().dtype) != (other_height, other_width, other.spec().dtype) {
        return None;
    }
    if one == other {
        return Some(0);
    }
    let pixels = 0..height * width;
    let differences = pixels.map(|pixel| {
        let pairs = rgba(one, pixel).into_iter().zip(rgba(other, pixel));
        pairs.map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0)
    });
    differences.max()
}

/// One pixel as red, green, blue and alpha.
fn rgba(picture: &Tensor, pixel: usize) -> [u32; 4] {
    let spec = picture.spec();
    let channels = spec.shape.dims()[2];
    let first = pixel * channels;
    let data = picture.data();
    let (opaque, sample): (u32, &dyn Fn(usize) -> u32) = if spec.dtype == DType::U16 {
        (65535, &|at: usize| u32::from(u16::from_ne_bytes([data[2 * (first + at)], data[2 * (first + at) + 1]])))
    } else {
        (255, &|at: usize| u32::from(data[first + at]))
    };
    match channels {
        1 => [sample(0), sample(0), sample(0), opaque],
        2 => [sample(0), sample(0), sample(0), sample(1)],
        3 => [sample(0), sample(1), sample(2), opaque],
        _ => [sample(0), sample(1), sample(2), sample(3)],
    }
}
