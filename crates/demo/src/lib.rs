//! Data that is made from a seed, so that the demo, experiments and tests need no download: for each domain small files that look, compress
//! and decode like those that its preset is for.

#![forbid(unsafe_code)]

mod bits;
mod flac;
mod mains;
mod mp3;
mod mp3_codes;
mod noise;
mod pages;
mod photos;
mod scenes;
mod speech;
mod tensors;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_codec::text::Tokenizer;
use forebay_engine::{Error, Progress, Result};
use forebay_pipeline::{Random, preset_text};
use forebay_storage::create_fresh;
use serde::Serialize;

use pages::Language;
use photos::Film;
use scenes::Kind;
pub use tensors::{SAMPLE_BYTES, TensorKind};

/// What data is about. Its name is that of its preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// Photos, as in ImageNet
    Cv,
    /// Large JPEG photos, as in Cube++
    #[serde(rename = "cv2-jpg")]
    Cv2Jpg,
    /// Large 16-bit PNG photos, as in Cube++
    #[serde(rename = "cv2-png")]
    Cv2Png,
    /// Web pages, as in OpenWebText
    Nlp,
    /// Speech at 16 kHz, as in LibriSpeech
    Flac,
    /// Speech at 48 kHz, as in Common Voice
    Mp3,
    /// Voltage and current, as in CREAM
    Nilm,
    /// Tensors of random numbers
    Synthetic,
}

impl Domain {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Cv, Self::Cv2Jpg, Self::Cv2Png, Self::Nlp, Self::Flac, Self::Mp3, Self::Nilm, Self::Synthetic];

    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|domain| domain.name() == name)
    }

    /// What its data is, in a line.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Cv => "Photos, as in ImageNet",
            Self::Cv2Jpg => "Large JPEG photos, as in Cube++",
            Self::Cv2Png => "Large 16-bit PNG photos, as in Cube++",
            Self::Nlp => "Web pages, as in OpenWebText",
            Self::Flac => "Speech at 16 kHz, as in LibriSpeech",
            Self::Mp3 => "Speech at 48 kHz, as in Common Voice",
            Self::Nilm => "Voltage and current, as in CREAM",
            Self::Synthetic => "Tensors of random numbers",
        }
    }

    /// Its name, and that of its preset.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cv => "cv",
            Self::Cv2Jpg => "cv2-jpg",
            Self::Cv2Png => "cv2-png",
            Self::Nlp => "nlp",
            Self::Flac => "flac",
            Self::Mp3 => "mp3",
            Self::Nilm => "nilm",
            Self::Synthetic => "synthetic",
        }
    }

    /// What its files are called.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Cv => "photo-like images",
            Self::Cv2Jpg => "large photo-like images",
            Self::Cv2Png => "large photo-like images of 16 bit",
            Self::Nlp => "web pages",
            Self::Flac | Self::Mp3 => "speech-like clips",
            Self::Nilm => "recordings of a minute",
            Self::Synthetic => "tensors of random numbers",
        }
    }

    /// The folder that they go to, below that of the demo.
    pub fn folder_name(self) -> &'static str {
        match self {
            Self::Cv | Self::Cv2Jpg | Self::Cv2Png => "photos",
            Self::Nlp => "pages",
            Self::Flac | Self::Mp3 => "clips",
            Self::Nilm => "recordings",
            Self::Synthetic => "tensors",
        }
    }

    /// So many are enough to see something, and few enough to wait for.
    pub fn usual_samples(self) -> u64 {
        match self {
            Self::Cv => 120,
            Self::Cv2Jpg => 8,
            Self::Cv2Png => 6,
            Self::Nlp | Self::Mp3 | Self::Synthetic => 60,
            Self::Flac => 40,
            Self::Nilm => 12,
        }
    }
}

/// What to generate.
#[derive(Debug, Clone)]
pub struct Order {
    /// What it is about.
    pub domain: Domain,
    /// The folder for all of it; the files go to a folder below it.
    pub folder: PathBuf,
    /// The same seed gives the same files.
    pub seed: u64,
    /// How many files.
    pub samples: u64,
    /// The size and type of tensors, for [`Domain::Synthetic`].
    pub tensors: TensorKind,
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// What it is about.
    pub domain: Domain,
    /// The folder of the files.
    pub folder: PathBuf,
    /// The pipeline for them: a preset's name, or the path of a file.
    pub pipeline: String,
    /// How many files there are.
    pub samples: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Generates the data of a domain: its files, and a pipeline file if the preset needs parameters for them.
pub fn make(order: &Order, progress: &dyn Progress) -> Result<Made> {
    let begun = Instant::now();
    let folder = order.folder.join(order.domain.folder_name());
    let bytes = write_files(order, &folder, progress)?;
    let pipeline = match order.domain {
        Domain::Nlp => nlp_pipeline(order)?,
        Domain::Synthetic => synthetic_pipeline(order)?,
        domain => domain.name().to_owned(),
    };
    let (domain, samples) = (order.domain, order.samples);
    Ok(Made { domain, folder, pipeline, samples, bytes, seconds: begun.elapsed().as_secs_f64() })
}

fn write_files(order: &Order, folder: &Path, progress: &dyn Progress) -> Result<u64> {
    let make = files_of(order);
    progress.begin(&format!("making {}", order.domain.noun()), order.samples);
    let mut bytes = 0;
    for number in 0..order.samples {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let (name, file) = make(number);
        let path = folder.join(name);
        let file = file.map_err(|error| not_made(&path, &error))?;
        write(&path, &file)?;
        bytes += file.len() as u64;
        progress.advance(1);
    }
    progress.end();
    Ok(bytes)
}

/// What is made up here can always be encoded.
fn not_made(path: &Path, error: &forebay_codec::Error) -> Error {
    Error::Internal { problem: format!("`{}` cannot be made: {error}", path.display()) }
}

/// Makes a file: its name, and what is in it.
type MakeFile = Box<dyn Fn(u64) -> (String, forebay_codec::Result<Vec<u8>>)>;

fn files_of(order: &Order) -> MakeFile {
    let (seed, tensors) = (order.seed, order.tensors);
    let pictures = move |film: Film, extension: &'static str, classes: bool| -> MakeFile {
        Box::new(move |number| {
            let kind = Kind::ALL[number as usize % Kind::ALL.len()];
            let class = if classes { format!("{}/", kind.name()) } else { String::new() };
            (format!("{class}{number:05}.{extension}"), photos::photo(kind, film, seed, number))
        })
    };
    match order.domain {
        Domain::Cv => pictures(Film::Small, "jpg", true),
        Domain::Cv2Jpg => pictures(Film::LargeJpeg, "jpg", false),
        Domain::Cv2Png => pictures(Film::LargePng, "png", false),
        Domain::Nlp => {
            let language = Language::new(seed);
            Box::new(move |number| (format!("{number:05}.html"), Ok(language.page(seed, number).html.into_bytes())))
        }
        Domain::Flac => Box::new(move |number| {
            let mut random = Random::from_parts(&[seed, number]);
            let count = random.between(5.0, 15.0) * 16_000.0;
            let samples = speech::speech(&mut random, 16_000, count as usize);
            (format!("{number:05}.flac"), Ok(flac::encode(&samples, 16_000)))
        }),
        Domain::Mp3 => Box::new(move |number| {
            let mut random = Random::from_parts(&[seed, number]);
            let seconds = random.between(3.0, 6.0);
            (format!("{number:05}.mp3"), Ok(mp3::clip(&mut random, seconds)))
        }),
        Domain::Nilm => Box::new(move |number| (format!("{number:05}.hdf5"), mains::recording(seed, number))),
        Domain::Synthetic => {
            Box::new(move |number| (format!("{number:06}.npy"), Ok(tensors::tensor(tensors, seed, number))))
        }
    }
}

/// So many tokens are learned from the articles.
const VOCABULARY: usize = 8000;

/// So many articles are enough to learn them from.
const LEARNED_FROM_MAX: u64 = 500;

/// The names of what is generated next to the files of a domain.
pub const PIPELINE_FILES: [&str; 2] = ["nlp.toml", "synthetic.toml"];
/// The name of the vocabulary of `nlp`.
pub const TOKENIZER_FILE: &str = "tokenizer.tiktoken";

/// The preset with a vocabulary that is learned from the articles.
fn nlp_pipeline(order: &Order) -> Result<String> {
    let language = Language::new(order.seed);
    let pages = (0..order.samples.min(LEARNED_FROM_MAX)).map(|number| language.page(order.seed, number).article);
    let articles: Vec<String> = pages.collect();
    // A data set that is built may be loaded from anywhere.
    let path =
        std::path::absolute(order.folder.join(TOKENIZER_FILE)).map_err(Error::io("find the folder", &order.folder))?;
    let tokenizer =
        Tokenizer::train(articles.iter().map(String::as_str), VOCABULARY).map_err(|error| not_made(&path, &error))?;
    write(&path, tokenizer.to_tiktoken().unwrap_or_default().as_bytes())?;
    let named = serde_json::json!(path.display().to_string());
    write_pipeline(order, &changed_text(Domain::Nlp, "tokenizer = \"bytes\"", &format!("tokenizer = {named}")))
}

/// The preset for tensors of this type and shape.
fn synthetic_pipeline(order: &Order) -> Result<String> {
    write_pipeline(order, &synthetic_text(order.tensors))
}

/// Its text.
pub fn synthetic_text(tensors: TensorKind) -> String {
    changed_text(Domain::Synthetic, "float32[2500, ?]", &tensors.spec().to_string())
}

/// The domain's preset with one thing changed.
fn changed_text(domain: Domain, from: &str, to: &str) -> String {
    preset_text(domain.name()).unwrap_or_default().replace(from, to)
}

/// Writes a pipeline for the domain; the file's path.
fn write_pipeline(order: &Order, text: &str) -> Result<String> {
    let path = order.folder.join(format!("{}.toml", order.domain.name()));
    write(&path, text.as_bytes())?;
    Ok(path.display().to_string())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    }
    create_fresh(path).and_then(|mut file| file.write_all(content)).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_the_name_of_its_pipeline() {
        for domain in Domain::ALL {
            assert_eq!(Domain::parse(domain.name()), Some(domain));
            assert_eq!(serde_json::to_value(domain).unwrap(), domain.name());
            assert!(preset_text(domain.name()).is_some(), "{domain:?}");
        }
    }
}
