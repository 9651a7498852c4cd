//! What the samples of a data set are like: the result of `forebay analyze`, and what to do about it.

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::skipped::Skipped;
use crate::units;

/// What samples are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataAnalysis {
    /// How many there are, broken ones too.
    pub samples: u64,
    /// How many of them are images.
    pub images: u64,
    /// The bytes of all that could be read.
    pub bytes: u64,
    /// How many samples could not be read or decoded.
    pub broken: u64,
    /// Those, as far as they are listed.
    pub broken_samples: Vec<Skipped>,
    /// How many were not looked at, because they take more memory than there is.
    #[serde(default)]
    pub unexamined: u64,
    /// Those, as far as they are listed.
    #[serde(default)]
    pub unexamined_samples: Vec<Skipped>,
    /// The formats, most bytes first.
    pub formats: Vec<FormatCount>,
    /// Bytes of a sample; `None` where no sample could be read.
    pub size: Option<Distribution>,
    /// The width of an image in pixels, as it is shown.
    pub width: Option<Distribution>,
    /// Its height.
    pub height: Option<Distribution>,
    /// Its width over its height.
    pub aspect_ratio: Option<Distribution>,
    /// The qualities of JPEG files.
    pub quality: Option<Qualities>,
    /// Colors, where there are images.
    pub color: Option<Colors>,
    /// How many images EXIF says to turn.
    pub turned: u64,
    /// How many samples each class has; empty where there are no labels.
    pub classes: Vec<ClassCount>,
    /// How many readable samples have no class.
    pub unlabeled: u64,
    /// Duplicate samples.
    pub duplicates: Duplicates,
    /// What a lower quality would save.
    pub recompression: Option<Recompression>,
}

/// How many samples are of one format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatCount {
    /// Its name: `jpeg`; `tensor` for pixels that are stored as they are, `other` for what is no image.
    pub format: String,
    /// How many samples.
    pub samples: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The qualities that JPEG files were encoded with, according to their quantization tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Qualities {
    /// On libjpeg's scale, from 1 to 100.
    pub distribution: Distribution,
    /// How many files.
    pub images: u64,
    /// Of how many the quality is known exactly; of others it is the nearest.
    pub exact: u64,
    /// How many are progressive.
    pub progressive: u64,
}

/// The colors of images, each image counting the same, however large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Colors {
    /// The means of red, green and blue, from 0 to 1, as `normalize` takes them.
    pub mean: [f64; 3],
    /// Their standard deviations over all pixels.
    pub std: [f64; 3],
    /// How many images have no color, whether or not they are stored as gray.
    pub gray: u64,
    /// The same as a share of all images.
    pub gray_share: f64,
    /// How many are stored with one channel.
    pub stored_gray: u64,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// Its name, or its number where it has none; `(none)` for files that are in no folder.
    pub name: String,
    /// How many samples it has.
    pub samples: u64,
}

/// Samples that are there more than once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Duplicates {
    /// In how many bits of 64 the perceptual hashes of near duplicates may differ.
    pub max_distance: u32,
    /// Those whose bytes are the same as another's: how many could be removed.
    pub exact: DuplicateCount,
    /// Those that look the same as another, but are not among the former.
    pub near: DuplicateCount,
    /// In how many groups not all have the same label.
    pub conflicting_labels: u64,
    /// Every group, by the sample to keep.
    pub groups: Vec<DuplicateGroup>,
}

/// How many duplicates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicateCount {
    /// The number of groups, each of which has one more sample to keep.
    pub groups: u64,
    /// How many could be removed.
    pub samples: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

/// A sample and its duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicateGroup {
    /// The one to keep: the one with the most pixels, then the most bytes, then the first.
    pub keep: String,
    /// Those with the same bytes.
    pub exact: Vec<String>,
    /// Those that look the same.
    pub near: Vec<String>,
    /// Whether not all have the same label.
    pub conflicting_labels: bool,
}

/// What a lower quality would save, by some images that were encoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recompression {
    /// To what: `jpeg-75`.
    pub encoding: String,
    /// How many images were encoded.
    pub images: u64,
    /// What they take then, over what they take now.
    pub share: f64,
    /// How many bytes that would save of all images.
    pub bytes_saved: u64,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// Why, with its figure.
    pub sentence: String,
    /// The command.
    pub command: String,
}

/// What was analyzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKind {
    /// A folder of files.
    Folder,
    /// Tar or TFRecord shards.
    Shards,
    /// A data set that was built.
    Dataset,
}

/// Less is not worth an encoding that loses something.
const WORTH_SAVING: f64 = 0.2;

impl DataAnalysis {
    /// The share of the largest class among labeled samples over that of the smallest; `None` where there are fewer than two classes.
    pub fn imbalance(&self) -> Option<f64> {
        let counts = self.classes.iter().map(|class| class.samples);
        let (most, least) = (counts.clone().max()?, counts.min()?);
        (self.classes.len() > 1).then(|| most as f64 / least.max(1) as f64)
    }

    /// What to do about it, the most important first; `data` is what was analyzed. Where nothing is wrong, what comes after looking at data.
    pub fn next_steps(&self, data: &str, kind: DataKind) -> Vec<NextStep> {
        let step = |sentence: String, command: String| NextStep { sentence, command };
        let mut steps = Vec::new();
        if self.broken > 0 {
            let what = units::counted(self.broken, "sample");
            let sentence = format!("{what} cannot be read. List them, to repair or remove them:");
            steps.push(step(sentence, format!("forebay analyze {data} --list broken")));
        }
        if self.unexamined > 0 {
            let what = units::counted(self.unexamined, "sample");
            let sentence = format!("{what} may be as good as the others: looking at them takes more memory. Allow it:");
            steps.push(step(sentence, format!("forebay analyze {data} --memory 16GB")));
        }
        let Duplicates { exact, near, conflicting_labels, .. } = &self.duplicates;
        if exact.samples > 0 {
            let (what, size) = (units::counted(exact.samples, "duplicate"), units::bytes(exact.bytes as f64));
            let conflict = if *conflicting_labels == 0 {
                String::new()
            } else {
                format!(" (in {} labels differ)", units::counted(*conflicting_labels, "group"))
            };
            let sentence = format!("Remove {what} of {size}{conflict}. List them:");
            steps.push(step(sentence, format!("forebay analyze {data} --list duplicates")));
        }
        if near.samples > 0 {
            let look = if near.samples == 1 { "image looks" } else { "images look" };
            let count = units::count(near.samples);
            let sentence = format!("{count} {look} like another one. List them, and look before you remove any:");
            steps.push(step(sentence, format!("forebay analyze {data} --list near-duplicates")));
        }
        let worth = |found: &&Recompression| kind != DataKind::Shards && found.share <= 1.0 - WORTH_SAVING;
        if let Some(found) = self.recompression.as_ref().filter(worth) {
            let (format, quality) = found.encoding.split_once('-').unwrap_or((&found.encoding, "75"));
            let format = if format == "jpeg" { String::new() } else { format!(" --format {format}") };
            let sentence = format!(
                "Quality {quality} would save about {}, {} (estimated from {}), if a loss of quality is acceptable:",
                units::bytes(found.bytes_saved as f64),
                units::percent(1.0 - found.share),
                units::counted(found.images, "image")
            );
            steps.push(step(sentence, format!("forebay recompress {data} smaller/ --quality {quality}{format}")));
        }
        if steps.is_empty() {
            let (sentence, command) = match kind {
                DataKind::Folder => ("Find out how to store and load it:", format!("forebay advise {data}")),
                DataKind::Shards => {
                    let sentence = "Find out how to store and load it, with a pipeline that reads it:";
                    (sentence, format!("forebay advise {data} pipeline.toml"))
                }
                DataKind::Dataset => {
                    ("Find out whether it is loaded fast enough:", format!("forebay diagnose {data} --trainer 1000"))
                }
            };
            steps.push(step(sentence.to_owned(), command));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> DataAnalysis {
        DataAnalysis {
            samples: 10,
            images: 10,
            bytes: 1_000_000,
            broken: 0,
            broken_samples: Vec::new(),
            unexamined: 0,
            unexamined_samples: Vec::new(),
            formats: Vec::new(),
            size: None,
            width: None,
            height: None,
            aspect_ratio: None,
            quality: None,
            color: None,
            turned: 0,
            classes: Vec::new(),
            unlabeled: 10,
            duplicates: Duplicates {
                max_distance: 4,
                exact: DuplicateCount::default(),
                near: DuplicateCount::default(),
                conflicting_labels: 0,
                groups: Vec::new(),
            },
            recompression: None,
        }
    }

    #[test]
    fn what_is_wrong_comes_before_what_could_be_better() {
        let mut found = sound();
        assert_eq!(found.next_steps("photos/", DataKind::Folder)[0].command, "forebay advise photos/");
        assert!(found.next_steps("dataset/", DataKind::Dataset)[0].command.starts_with("forebay diagnose dataset/"));
        let recompression =
            Recompression { encoding: "jpeg-75".to_owned(), images: 8, share: 0.9, bytes_saved: 100_000 };
        found.recompression = Some(recompression);
        assert_eq!(
            found.next_steps("photos/", DataKind::Folder)[0].command,
            "forebay advise photos/",
            "a tenth is not worth it"
        );
        found.recompression.as_mut().unwrap().share = 0.4;
        assert!(
            found.next_steps("tars/", DataKind::Shards)[0].command.starts_with("forebay advise tars/ "),
            "only files"
        );
        found.duplicates.near.samples = 1;
        found.duplicates.exact = DuplicateCount { groups: 2, samples: 12, bytes: 5000 };
        found.duplicates.conflicting_labels = 1;
        found.broken = 3;
        let steps = found.next_steps("photos/", DataKind::Folder);
        let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "forebay analyze photos/ --list broken",
                "forebay analyze photos/ --list duplicates",
                "forebay analyze photos/ --list near-duplicates",
                "forebay recompress photos/ smaller/ --quality 75"
            ]
        );
        assert_eq!(steps[1].sentence, "Remove 12 duplicates of 5.00 kB (in 1 group labels differ). List them:");
    }

    #[test]
    fn balance_is_the_largest_class_over_the_smallest() {
        let mut found = sound();
        assert_eq!(found.imbalance(), None);
        found.classes =
            [("cat", 30), ("dog", 10)].map(|(name, samples)| ClassCount { name: name.to_owned(), samples }).to_vec();
        assert_eq!(found.imbalance(), Some(3.0));
    }
}
