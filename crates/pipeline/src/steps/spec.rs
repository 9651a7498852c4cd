//! A step as a pipeline file spells it, and the table from `op` to step.

use std::str::FromStr;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::foreign_names::meant_step;
use super::nested::{random_apply, random_choice};
use super::{
    AddBackgroundNoise, AddGaussianSnr, MaskTokens, Mfcc, Pack, RandomGain, RandomTimeCrop, SpecAugment,
    SpeedPerturbation, ToDtype,
};
use super::{AggregateSignal, DecodeAudio, DecodeNpy, DecodeSignal, LogMelSpectrogram, Rms, SignalWindows};
use super::{
    AugMix, Augment, Augmentation, AutoAugment, ColorJitter, GaussianBlur, RandAugment, RandAugmentTransform,
    RandomAdjustSharpness, RandomAffine, RandomAutocontrast, RandomEqualize, RandomGrayscale, RandomInvert,
    RandomPerspective, RandomPhotometricDistort, RandomPosterize, RandomRotation, RandomSolarize, TrivialAugmentWide,
};
use super::{
    Center, CenterCrop, Decode, DecodeMask, Drop, Function, Grayscale, Normalize, Pad, RandomCrop, RandomErasing,
    RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Resize, TakeCoco, TakeCsv, TakeJson, TakeOpenImages,
    TakeTranscript, TakeVoc, TakeYolo, Tiles, ToChw,
};
use super::{CutMix, Embed, ExtractText, FiveCrop, MixUp, MixUpOrCutMix, OneHot, TenCrop, Tokenize};
use super::{
    Drawn, ElasticTransform, LookupTable, RandomIouCrop, RandomResize, RandomShortestSize, RandomZoomOut, ScaleJitter,
};
use crate::error::{Error, Result};
use crate::step::{Action, Step};

/// One `[[step]]` of a pipeline file: `op`, optionally `name`, `stage` and `fields`, and the operation's parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepSpec(toml::Table);

/// The field that a source's files go to unless it says otherwise.
pub const DEFAULT_FIELD: &str = "image";

/// A built-in operation: what a pipeline file calls it, what a data set is called after it, and how it is made.
struct BuiltIn {
    op: &'static str,
    stage: &'static str,
    make: fn(toml::Table) -> std::result::Result<Action, toml::de::Error>,
}

fn transform<T: DeserializeOwned + crate::step::Transform + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::Transform(Arc::new(step)))
}

fn sample_transform<T: DeserializeOwned + crate::step::SampleTransform + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::SampleTransform(Arc::new(step)))
}

fn flat_map<T: DeserializeOwned + crate::step::FlatMap + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::FlatMap(Arc::new(step)))
}

fn batch_transform<T: DeserializeOwned + crate::step::BatchTransform + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::BatchTransform(Arc::new(step)))
}

fn shard_transform<T: DeserializeOwned + crate::step::ShardTransform + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::ShardTransform(Arc::new(step)))
}

fn augment<T: DeserializeOwned + Augmentation + 'static>(
    parameters: toml::Table,
) -> std::result::Result<Action, toml::de::Error> {
    parameters.try_into::<T>().map(|step| Action::Transform(Arc::new(Augment::new(step))))
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { op: "decode", stage: "decoded", make: transform::<Decode> },
    BuiltIn { op: "resize", stage: "resized", make: transform::<Resize> },
    BuiltIn { op: "center_crop", stage: "cropped", make: transform::<CenterCrop> },
    BuiltIn { op: "random_crop", stage: "cropped", make: transform::<RandomCrop> },
    BuiltIn { op: "random_resized_crop", stage: "cropped", make: transform::<RandomResizedCrop> },
    BuiltIn { op: "scale_jitter", stage: "resized", make: transform::<Drawn<ScaleJitter>> },
    BuiltIn { op: "random_shortest_size", stage: "resized", make: transform::<Drawn<RandomShortestSize>> },
    BuiltIn { op: "random_resize", stage: "resized", make: transform::<Drawn<RandomResize>> },
    BuiltIn { op: "random_horizontal_flip", stage: "flipped", make: transform::<RandomHorizontalFlip> },
    BuiltIn { op: "random_vertical_flip", stage: "flipped", make: transform::<RandomVerticalFlip> },
    BuiltIn { op: "pad", stage: "padded", make: transform::<Pad> },
    BuiltIn { op: "random_zoom_out", stage: "zoomed-out", make: transform::<RandomZoomOut> },
    BuiltIn { op: "random_iou_crop", stage: "cropped", make: sample_transform::<RandomIouCrop> },
    BuiltIn { op: "random_erasing", stage: "erased", make: transform::<RandomErasing> },
    BuiltIn { op: "color_jitter", stage: "color-jittered", make: augment::<ColorJitter> },
    BuiltIn { op: "random_photometric_distort", stage: "distorted", make: augment::<RandomPhotometricDistort> },
    BuiltIn { op: "random_grayscale", stage: "grayscaled", make: augment::<RandomGrayscale> },
    BuiltIn { op: "random_invert", stage: "inverted", make: augment::<RandomInvert> },
    BuiltIn { op: "random_solarize", stage: "solarized", make: augment::<RandomSolarize> },
    BuiltIn { op: "random_posterize", stage: "posterized", make: augment::<RandomPosterize> },
    BuiltIn { op: "random_equalize", stage: "equalized", make: augment::<RandomEqualize> },
    BuiltIn { op: "random_autocontrast", stage: "autocontrasted", make: augment::<RandomAutocontrast> },
    BuiltIn { op: "random_adjust_sharpness", stage: "sharpened", make: augment::<RandomAdjustSharpness> },
    BuiltIn { op: "gaussian_blur", stage: "blurred", make: augment::<GaussianBlur> },
    BuiltIn { op: "five_crop", stage: "cropped", make: flat_map::<FiveCrop> },
    BuiltIn { op: "ten_crop", stage: "cropped", make: flat_map::<TenCrop> },
    BuiltIn { op: "random_rotation", stage: "rotated", make: transform::<RandomRotation> },
    BuiltIn { op: "random_affine", stage: "warped", make: transform::<RandomAffine> },
    BuiltIn { op: "random_perspective", stage: "warped", make: transform::<RandomPerspective> },
    BuiltIn { op: "elastic_transform", stage: "warped", make: transform::<ElasticTransform> },
    BuiltIn { op: "random_apply", stage: "augmented", make: random_apply },
    BuiltIn { op: "random_choice", stage: "augmented", make: random_choice },
    BuiltIn { op: "rand_augment", stage: "augmented", make: augment::<RandAugment> },
    BuiltIn { op: "rand_augment_transform", stage: "augmented", make: augment::<RandAugmentTransform> },
    BuiltIn { op: "trivial_augment_wide", stage: "augmented", make: augment::<TrivialAugmentWide> },
    BuiltIn { op: "auto_augment", stage: "augmented", make: augment::<AutoAugment> },
    BuiltIn { op: "aug_mix", stage: "augmented", make: transform::<AugMix> },
    BuiltIn { op: "grayscale", stage: "grayscaled", make: transform::<Grayscale> },
    BuiltIn { op: "center_pixels", stage: "pixel-centered", make: transform::<Center> },
    BuiltIn { op: "normalize", stage: "normalized", make: transform::<Normalize> },
    BuiltIn { op: "to_dtype", stage: "converted", make: transform::<ToDtype> },
    BuiltIn { op: "to_chw", stage: "channels-first", make: transform::<ToChw> },
    BuiltIn { op: "decode_mask", stage: "mask-decoded", make: transform::<DecodeMask> },
    BuiltIn { op: "lookup_table", stage: "looked-up", make: transform::<LookupTable> },
    BuiltIn { op: "take_json", stage: "taken", make: sample_transform::<TakeJson> },
    BuiltIn { op: "take_coco", stage: "annotated", make: sample_transform::<TakeCoco> },
    BuiltIn { op: "drop", stage: "dropped", make: sample_transform::<Drop> },
    BuiltIn { op: "function", stage: "called", make: sample_transform::<Function> },
    BuiltIn { op: "decode_audio", stage: "decoded", make: transform::<DecodeAudio> },
    BuiltIn { op: "log_mel_spectrogram", stage: "spectrogram-encoded", make: transform::<LogMelSpectrogram> },
    BuiltIn { op: "random_time_crop", stage: "cropped", make: transform::<RandomTimeCrop> },
    BuiltIn { op: "random_gain", stage: "augmented", make: transform::<RandomGain> },
    BuiltIn { op: "add_gaussian_snr", stage: "augmented", make: transform::<AddGaussianSnr> },
    BuiltIn { op: "add_background_noise", stage: "augmented", make: transform::<AddBackgroundNoise> },
    BuiltIn { op: "speed_perturbation", stage: "perturbed", make: transform::<SpeedPerturbation> },
    BuiltIn { op: "spec_augment", stage: "augmented", make: transform::<SpecAugment> },
    BuiltIn { op: "mfcc", stage: "mfcc-encoded", make: transform::<Mfcc> },
    BuiltIn { op: "decode_signal", stage: "decoded", make: transform::<DecodeSignal> },
    BuiltIn { op: "signal_windows", stage: "decoded", make: flat_map::<SignalWindows> },
    BuiltIn { op: "aggregate_signal", stage: "aggregated", make: transform::<AggregateSignal> },
    BuiltIn { op: "decode_npy", stage: "decoded", make: transform::<DecodeNpy> },
    BuiltIn { op: "rms", stage: "aggregated", make: transform::<Rms> },
    BuiltIn { op: "extract_text", stage: "decoded", make: transform::<ExtractText> },
    BuiltIn { op: "tokenize", stage: "bpe-encoded", make: transform::<Tokenize> },
    BuiltIn { op: "mask_tokens", stage: "masked", make: sample_transform::<MaskTokens> },
    BuiltIn { op: "pack", stage: "packed", make: shard_transform::<Pack> },
    BuiltIn { op: "embed", stage: "embedded", make: transform::<Embed> },
    BuiltIn { op: "take_voc", stage: "annotated", make: sample_transform::<TakeVoc> },
    BuiltIn { op: "take_yolo", stage: "annotated", make: sample_transform::<TakeYolo> },
    BuiltIn { op: "take_csv", stage: "annotated", make: sample_transform::<TakeCsv> },
    BuiltIn { op: "take_open_images", stage: "annotated", make: sample_transform::<TakeOpenImages> },
    BuiltIn { op: "take_transcript", stage: "annotated", make: sample_transform::<TakeTranscript> },
    BuiltIn { op: "one_hot", stage: "one-hot", make: transform::<OneHot> },
    BuiltIn { op: "mixup", stage: "mixed", make: batch_transform::<MixUp> },
    BuiltIn { op: "cutmix", stage: "mixed", make: batch_transform::<CutMix> },
    BuiltIn { op: "mixup_or_cutmix", stage: "mixed", make: batch_transform::<MixUpOrCutMix> },
    BuiltIn { op: "tiles", stage: "tiled", make: flat_map::<Tiles> },
];

/// The names of the built-in operations.
pub(super) fn operations() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|built_in| built_in.op)
}

impl StepSpec {
    /// A step of operation `op` with these parameters.
    ///
    /// # Panics
    /// If the parameters do not serialize to a table; those of every built-in step do.
    pub fn new(op: &str, parameters: &impl Serialize) -> Self {
        let mut table = toml::Table::new();
        table.insert("op".to_owned(), op.into());
        let parameters = toml::Table::try_from(parameters).expect("a step's parameters are a table");
        table.extend(parameters);
        Self(table)
    }

    /// Whether it says anything of this.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Gives a parameter another value. Whether the step has it, [`Self::to_step`] finds out.
    pub(crate) fn set(&mut self, parameter: &str, value: toml::Value) {
        self.0.insert(parameter.to_owned(), value);
    }

    /// The step, or an error that names it and what is wrong with it. It works on `default_field` unless it says otherwise.
    pub fn to_step(&self, pipeline: &str, default_field: &str) -> Result<Step> {
        let format = |message: String| Error::Format { name: pipeline.to_owned(), message };
        let mut table = self.0.clone();
        let op = take_text(&mut table, "op").ok_or_else(|| format("a [[step]] has no `op`".to_owned()))?;
        let built_in = BUILT_IN.iter().find(|built_in| built_in.op == op).ok_or_else(|| {
            let choices = operations().collect::<Vec<_>>().join(", ");
            Error::Unknown {
                what: "operation",
                found: op.clone(),
                pipeline: pipeline.to_owned(),
                hint: meant_step(&op).unwrap_or_else(|| format!("one of {choices}")),
            }
        })?;
        let name = take_text(&mut table, "name").unwrap_or_else(|| op.clone());
        let stage = take_text(&mut table, "stage").unwrap_or_else(|| built_in.stage.to_owned());
        let fields = match table.remove("fields") {
            None => vec![default_field.to_owned()],
            Some(fields) => fields
                .try_into()
                .map_err(|error| format(format!("step `{name}`: `fields` is not a list of names: {error}")))?,
        };
        let action = (built_in.make)(table).map_err(|error| format(format!("step `{name}`: {}", error.message())))?;
        Ok(Step { name, stage, fields, action, spec: Some(self.clone()) })
    }
}

/// An operation by its name, as `grayscale`, or a whole step as a pipeline file may spell it in one line:
/// `{ op = "resize", size = 64 }`.
impl FromStr for StepSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Line {
            step: StepSpec,
        }
        let text = text.trim();
        let table = if text.starts_with('{') { text.to_owned() } else { format!("{{ op = {text:?} }}") };
        toml::from_str(&format!("step = {table}"))
            .map(|line: Line| line.step)
            .map_err(|error| Error::Format { name: text.to_owned(), message: error.message().to_owned() })
    }
}

fn take_text(table: &mut toml::Table, key: &str) -> Option<String> {
    match table.remove(key)? {
        toml::Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}
