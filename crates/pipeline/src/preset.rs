//! The presets, by name. Their text is in the folder `pipelines/` at the root of the project.

use crate::error::{Error, Result};
use crate::nearest::one_of;
use crate::pipeline::Pipeline;

/// Name and text of each.
const PRESETS: &[(&str, &str)] = &[
    ("cv", include_str!("../../../pipelines/cv.toml")),
    ("cv2-jpg", include_str!("../../../pipelines/cv2-jpg.toml")),
    ("cv2-png", include_str!("../../../pipelines/cv2-png.toml")),
    ("cv-gray-before-centering", include_str!("../../../pipelines/cv-gray-before-centering.toml")),
    ("cv-gray-after-centering", include_str!("../../../pipelines/cv-gray-after-centering.toml")),
    ("cv-gray-before-resize", include_str!("../../../pipelines/cv-gray-before-resize.toml")),
    ("imagenet", include_str!("../../../pipelines/imagenet.toml")),
    ("segmentation", include_str!("../../../pipelines/segmentation.toml")),
    ("flac", include_str!("../../../pipelines/flac.toml")),
    ("mp3", include_str!("../../../pipelines/mp3.toml")),
    ("nlp", include_str!("../../../pipelines/nlp.toml")),
    ("nilm", include_str!("../../../pipelines/nilm.toml")),
    ("synthetic", include_str!("../../../pipelines/synthetic.toml")),
];

/// The names of the presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The TOML text of a preset, to start one's own from.
pub fn preset_text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// A preset by its name.
pub fn preset(name: &str) -> Result<Pipeline> {
    let text = preset_text(name).ok_or_else(|| Error::Unknown {
        what: "preset",
        found: name.to_owned(),
        pipeline: "forebay".to_owned(),
        hint: one_of(name, preset_names()),
    })?;
    Pipeline::from_toml(name, text)
}
