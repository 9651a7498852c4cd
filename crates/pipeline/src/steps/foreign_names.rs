//! What other libraries call a step, and what it is here.

use super::spec::operations;
use crate::nearest::nearest;

/// Names of torchvision, DALI, Albumentations, torchaudio, tf.data and WebDataset that more than spelling tells apart from ours, as
/// [`folded`] makes them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("totensor", "not needed: batches are tensors; `to_chw` puts the channels first, `normalize` makes float32"),
    ("totensorv2", "not needed: batches are tensors; `to_chw` puts the channels first, `normalize` makes float32"),
    ("toimage", "not needed: `decode` gives an image"),
    ("piltotensor", "not needed: `decode` gives a tensor; `to_chw` puts the channels first"),
    ("compose", "not needed: a pipeline is its steps, one after another"),
    ("sequential", "not needed: a pipeline is its steps, one after another"),
    ("topuretensor", "not needed: batches have plain tensors"),
    (
        "topilimage",
        "not needed: leave out `normalize` and `to_chw`, and `PIL.Image.fromarray` takes an image of a batch",
    ),
    ("rgb", "not needed: `decode` gives RGB unless its `color` says `gray`"),
    ("identity", "not needed: leave it out"),
    ("transform", "a Python function is a step of a pipeline that Python makes: `Pipeline.map(function)`"),
    ("interpolationmode", "steps that resize or warp take `interpolation = \"bilinear\"`"),
    ("autoaugmentpolicy", "`auto_augment` takes `policy = \"imagenet\"`"),
    (
        "randomorder",
        "there is none: steps run as they are listed; `color_jitter` shuffles the order of its own changes",
    ),
    (
        "randomchannelpermutation",
        "there is none alone: `random_photometric_distort` permutes channels, or use a Python function, `Pipeline.map(function, random=True)`",
    ),
    (
        "gaussiannoise",
        "there is none for images: use a Python function, `Pipeline.map(function, random=True)`; waveforms have `add_gaussian_snr`",
    ),
    (
        "jpeg",
        "no step compresses images at random: use a Python function, `Pipeline.map(function, random=True)`; `forebay recompress` lowers the quality of files",
    ),
    (
        "lineartransformation",
        "there is none: use a Python function, `Pipeline.map(function)`; `normalize` scales each channel",
    ),
    ("sanitizeboundingboxes", "not needed: crops drop the boxes of which less than a pixel is left"),
    ("sanitizekeypoints", "not needed: key points that leave the image become 0, 0, 0"),
    ("clampboundingboxes", "not needed: crops clip boxes"),
    ("clampkeypoints", "not needed: key points that leave the image become 0, 0, 0"),
    ("setclampingmode", "not needed: crops clip boxes"),
    (
        "convertboundingboxformat",
        "not needed: boxes are left, top, right and bottom in pixels; `take_csv` reads others by its `box_format`",
    ),
    ("uniformtemporalsubsample", "there is none: video is not supported"),
    ("convertimagedtype", "did you mean `to_dtype`?"),
    ("rescaling", "`center_pixels` is x / 127.5 - 1, `normalize` has a `scale`"),
    ("horizontalflip", "did you mean `random_horizontal_flip`?"),
    ("flip", "did you mean `random_horizontal_flip`?"),
    ("fliplr", "did you mean `random_horizontal_flip`?"),
    ("randomflipleftright", "did you mean `random_horizontal_flip`?"),
    ("verticalflip", "did you mean `random_vertical_flip`?"),
    ("flipud", "did you mean `random_vertical_flip`?"),
    ("randomflipupdown", "did you mean `random_vertical_flip`?"),
    ("rotate", "did you mean `random_rotation`?"),
    ("affine", "did you mean `random_affine`?"),
    ("shiftscalerotate", "did you mean `random_affine`?"),
    ("perspective", "did you mean `random_perspective`?"),
    ("brightnesscontrast", "did you mean `color_jitter`?"),
    ("randombrightnesscontrast", "did you mean `color_jitter`?"),
    ("huesaturationvalue", "did you mean `color_jitter`?"),
    ("coarsedropout", "did you mean `random_erasing`?"),
    ("cutout", "did you mean `random_erasing`?"),
    ("sharpen", "did you mean `random_adjust_sharpness`?"),
    ("padifneeded", "did you mean `pad`?"),
    ("oneof", "did you mean `random_choice`?"),
    ("cropmirrornormalize", "`center_crop`, `random_horizontal_flip`, `normalize` and `to_chw` do it, as one pass"),
    ("decodejpeg", "did you mean `decode`?"),
    ("decodepng", "did you mean `decode`?"),
    ("decodeimage", "did you mean `decode`?"),
    ("imdecode", "did you mean `decode`?"),
    ("readimage", "did you mean `decode`?"),
    ("smallestmaxsize", "did you mean `resize`? One number is the shorter side"),
    ("togray", "did you mean `grayscale`?"),
    ("rgbtograyscale", "did you mean `grayscale`?"),
    ("greyscale", "did you mean `grayscale`?"),
    ("normalise", "did you mean `normalize`?"),
    ("centrecrop", "did you mean `center_crop`?"),
    ("permute", "did you mean `to_chw`?"),
    ("transpose", "did you mean `to_chw`?"),
    ("melspectrogram", "did you mean `log_mel_spectrogram`?"),
    ("logmel", "did you mean `log_mel_spectrogram`?"),
    ("timemasking", "did you mean `spec_augment`?"),
    ("frequencymasking", "did you mean `spec_augment`?"),
    ("gain", "did you mean `random_gain`?"),
    ("applybackgroundnoise", "did you mean `add_background_noise`?"),
    ("speed", "did you mean `speed_perturbation`?"),
    ("speedperturb", "did you mean `speed_perturbation`?"),
    ("addgaussiannoise", "did you mean `add_gaussian_snr`?"),
    ("datacollatorforlanguagemodeling", "did you mean `mask_tokens`?"),
    ("packdataset", "did you mean `pack`?"),
    ("packing", "did you mean `pack`?"),
    ("grouptexts", "did you mean `pack`?"),
    ("constantlengthdataset", "did you mean `pack`?"),
    ("encode", "did you mean `tokenize`?"),
    ("embedding", "did you mean `embed`?"),
    ("map", "a Python function is a step of a pipeline that Python makes: `Pipeline.map(function)`"),
    ("lambda", "a Python function is a step of a pipeline that Python makes: `Pipeline.map(function)`"),
    ("shuffle", "a loader shuffles: `Loader(..., shuffle=True)`, `forebay load --shuffle`"),
    ("batch", "a loader makes batches: `Loader(..., batch_size=64)`, `forebay load --batch-size 64`"),
    ("batched", "a loader makes batches: `Loader(..., batch_size=64)`, `forebay load --batch-size 64`"),
    ("totuple", "not needed: a batch is a dictionary of fields"),
];

/// What somebody may have meant who named an unknown step.
pub fn meant_step(found: &str) -> Option<String> {
    let name = folded(found);
    let spelled = operations().find(|op| folded(op) == name).map(|op| format!("did you mean `{op}`?"));
    spelled
        .or_else(|| ELSEWHERE.iter().find(|(known, _)| *known == name).map(|(_, hint)| (*hint).to_owned()))
        .or_else(|| nearest(found, operations()).map(|op| format!("did you mean `{op}`?")))
}

/// `transforms.v2.CenterCrop`, `center-crop` and `center_crop` are one name.
fn folded(name: &str) -> String {
    let last = name.rsplit(['.', ':']).next().unwrap_or(name);
    last.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_libraries_are_understood() {
        for (found, expected) in [
            ("CenterCrop", "did you mean `center_crop`?"),
            ("transforms.v2.RandomResizedCrop", "did you mean `random_resized_crop`?"),
            ("random-crop", "did you mean `random_crop`?"),
            ("ToTensor", "not needed: batches are tensors"),
            ("HorizontalFlip", "did you mean `random_horizontal_flip`?"),
            ("v2.RandomIoUCrop", "did you mean `random_iou_crop`?"),
            ("v2.JPEG", "no step"),
            ("ToPILImage", "not needed"),
            ("resise", "did you mean `resize`?"),
        ] {
            let meant = meant_step(found).unwrap_or_default();
            assert!(meant.starts_with(expected), "{found}: {meant}");
        }
        assert_eq!(meant_step("summon"), None);
    }

    /// The public classes of `torchvision.transforms.v2`, as its `__init__.py` imports them, and those of key points that came later.
    const TORCHVISION_V2: &[&str] = &[
        "AugMix",
        "AutoAugment",
        "AutoAugmentPolicy",
        "CenterCrop",
        "ClampBoundingBoxes",
        "ClampKeyPoints",
        "ColorJitter",
        "Compose",
        "ConvertBoundingBoxFormat",
        "ConvertImageDtype",
        "CutMix",
        "ElasticTransform",
        "FiveCrop",
        "GaussianBlur",
        "GaussianNoise",
        "Grayscale",
        "Identity",
        "InterpolationMode",
        "JPEG",
        "Lambda",
        "LinearTransformation",
        "MixUp",
        "Normalize",
        "PILToTensor",
        "Pad",
        "RGB",
        "RandAugment",
        "RandomAdjustSharpness",
        "RandomAffine",
        "RandomApply",
        "RandomAutocontrast",
        "RandomChannelPermutation",
        "RandomChoice",
        "RandomCrop",
        "RandomEqualize",
        "RandomErasing",
        "RandomGrayscale",
        "RandomHorizontalFlip",
        "RandomInvert",
        "RandomIoUCrop",
        "RandomOrder",
        "RandomPerspective",
        "RandomPhotometricDistort",
        "RandomPosterize",
        "RandomResize",
        "RandomResizedCrop",
        "RandomRotation",
        "RandomShortestSize",
        "RandomSolarize",
        "RandomVerticalFlip",
        "RandomZoomOut",
        "Resize",
        "SanitizeBoundingBoxes",
        "SanitizeKeyPoints",
        "ScaleJitter",
        "SetClampingMode",
        "TenCrop",
        "ToDtype",
        "ToImage",
        "ToPILImage",
        "ToPureTensor",
        "ToTensor",
        "Transform",
        "TrivialAugmentWide",
        "UniformTemporalSubsample",
    ];

    /// Not by a name that happens to be near: either the step has this name, or the table says what to do instead.
    #[test]
    fn every_transform_of_torchvision_is_known() {
        let known = |name: &str| {
            let name = folded(name);
            operations().any(|op| folded(op) == name) || ELSEWHERE.iter().any(|(other, _)| *other == name)
        };
        let unknown: Vec<_> = TORCHVISION_V2.iter().filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(ELSEWHERE.iter().all(|(name, _)| folded(name) == *name), "names are as `folded` makes them");
    }

    #[test]
    fn what_is_named_is_there() {
        for (_, hint) in ELSEWHERE.iter().filter(|(_, hint)| hint.starts_with("did you mean")) {
            let op = hint.split('`').nth(1).unwrap();
            assert!(operations().any(|known| known == op), "{hint}");
        }
    }
}
