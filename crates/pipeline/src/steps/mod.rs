//! The built-in steps. Each is a struct with its parameters, as a pipeline file spells them.

mod annotations;
mod array;
mod audio;
mod augment;
mod coco;
mod coco_mask;
mod color;
mod crop;
mod csv_boxes;
mod decode;
mod distort;
mod dtype;
mod elastic;
mod encoded_tensor;
mod erase;
mod foreign_names;
mod geometry;
mod iou_crop;
mod layout;
mod lookup;
mod many_crops;
mod mask;
mod mix;
mod nested;
mod numbers;
mod pack;
mod pad;

mod audio_augment;
mod audio_perturb;
mod projection;
mod random_size;
mod resize;
mod sample_level;
mod signal;
mod size;
mod spec;
mod text;
mod text_files;
mod tiles;
mod tokens;
mod transcript;
mod voc;
mod warp;
mod yolo;
mod zoom_out;

pub use annotations::{BoxFormat, BoxRow};
pub use array::{DecodeNpy, Rms};
pub use audio::{AudioMix, DecodeAudio, LogMelSpectrogram};
pub use audio_augment::{AddGaussianSnr, Mfcc, RandomGain, RandomTimeCrop, SpecAugment};
pub use audio_perturb::{AddBackgroundNoise, SpeedPerturbation};
pub use augment::{
    AugMix, Augment, Augmentation, AutoAugment, AutoAugmentPolicy, ColorJitter, GaussianBlur, PixelOp, RandAugment,
    RandAugmentTransform, RandConfig, RandomAdjustSharpness, RandomAutocontrast, RandomEqualize, RandomGrayscale,
    RandomInvert, RandomPhotometricDistort, RandomPosterize, RandomSolarize, TrivialAugmentWide,
};
pub use coco::{CocoMasks, CocoObjects, CocoParts, TakeCoco};
pub use coco_mask::Segmentation;
pub(crate) use color::float_output;
pub use color::{Center, Grayscale, Normalize};
pub use crop::{CenterCrop, RandomCrop, RandomHorizontalFlip, RandomVerticalFlip};
pub use csv_boxes::{BoxColumns, BoxTable, TakeCsv, TakeOpenImages};
pub(crate) use decode::encoded;
pub use decode::{Color, Decode};
pub use distort::{RandomAffine, RandomPerspective, RandomRotation};
pub use dtype::ToDtype;
pub use elastic::ElasticTransform;
pub(crate) use encoded_tensor::DecodeTensor;
pub use erase::{ErasedName, ErasedValue, RandomErasing};
pub use foreign_names::meant_step;
pub(crate) use geometry::{Frame, Rectangle};
pub use iou_crop::RandomIouCrop;
pub use layout::ToChw;
pub use lookup::LookupTable;
pub use many_crops::{FiveCrop, TenCrop};
pub use mask::DecodeMask;
pub use mix::{CutMix, MixUp, MixUpOrCutMix, OneHot};
pub use numbers::Numbers;
pub use pack::{Pack, PackOutput, PackingStrategy};
pub use pad::{Pad, PaddingMode};
pub use projection::Projection;
pub use random_size::{DrawSize, Drawn, RandomResize, RandomShortestSize, ScaleJitter};
pub(crate) use resize::resize_rectangle;
pub use resize::{Backend, Interpolation, RandomResizedCrop, Resize};
pub use sample_level::{Call, Drop, Function, JsonValue, TakeJson};
pub use signal::{AggregateSignal, ChannelName, DecodeSignal, Power, RawNumber, RecordingFormat, SignalWindows};
pub use size::Size;
pub use spec::{DEFAULT_FIELD, StepSpec};
pub use text::{Embed, ExtractText, TokenPattern, Tokenize};
pub use text_files::{PreparedFiles, named_files, prepare_files, with_absolute_files};
pub use tiles::Tiles;
pub use tokens::MaskTokens;
pub use transcript::{TakeTranscript, Transcripts};
pub use voc::{TakeVoc, VocObject, parse_voc};
pub use warp::{Warp, WarpInterpolation};
pub use yolo::{TakeYolo, YoloTask, parse_yolo};
pub use zoom_out::RandomZoomOut;

use forebay_codec::{DType, TensorView};

use crate::error::StepError;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::step::Needs;

/// The tensor in `input`, which the schema check has promised.
fn tensor<'a>(input: ValueView<'a>, field_is: &'static str) -> Result<TensorView<'a>, StepError> {
    match input {
        ValueView::Tensor(view) => Ok(view),
        _ => Err(StepError::NoField { field: field_is.to_owned() }),
    }
}

/// The first of a step's fields: its name and what a sample has there.
fn first_field<'a>(
    sample: &'a crate::sample::Sample,
    fields: &'a [String],
) -> Result<(&'a str, &'a crate::sample::Value), StepError> {
    let name = fields.first().map_or("", String::as_str);
    let value = sample.field(name).ok_or_else(|| StepError::NoField { field: name.to_owned() })?;
    Ok((name, value))
}

/// A picture: the view with its height, width and channels.
pub(crate) fn picture(input: ValueView<'_>) -> Result<(TensorView<'_>, [usize; 3]), StepError> {
    const EXPECTED: &str = "an image [height, width, 1 to 4 channels]";
    let view = tensor(input, EXPECTED)?;
    match view.spec.as_picture() {
        Some((height, width, channels)) if height > 0 && width > 0 && (1..=4).contains(&channels) => {
            Ok((view, [height, width, channels]))
        }
        _ => Err(StepError::Unfit { found: view.spec, expected: EXPECTED }),
    }
}

/// The element type and open dimensions of a picture type, or what is needed.
fn picture_type(input: &FieldType) -> Result<(DType, [Option<usize>; 3]), Needs> {
    input.as_picture().ok_or_else(|| Needs("an image [height, width, channels]".to_owned()))
}

/// The type of a picture.
fn picture_of(dtype: DType, dims: [Option<usize>; 3]) -> FieldType {
    FieldType::Tensor { dtype, dims: dims.to_vec() }
}
