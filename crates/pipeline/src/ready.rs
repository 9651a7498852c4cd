//! The ready pipelines, by name. Their text is in the folder `pipelines/` at the root of the project.

use crate::error::{Error, Result};
use crate::pipeline::Pipeline;

/// Name and text of each.
const READY: &[(&str, &str)] = &[
    ("cv", include_str!("../../../pipelines/cv.toml")),
    ("cv2-jpg", include_str!("../../../pipelines/cv2-jpg.toml")),
    ("cv2-png", include_str!("../../../pipelines/cv2-png.toml")),
    ("cv-grey-before-centering", include_str!("../../../pipelines/cv-grey-before-centering.toml")),
    ("cv-grey-after-centering", include_str!("../../../pipelines/cv-grey-after-centering.toml")),
    ("cv-grey-before-resize", include_str!("../../../pipelines/cv-grey-before-resize.toml")),
    ("imagenet", include_str!("../../../pipelines/imagenet.toml")),
    ("segmentation", include_str!("../../../pipelines/segmentation.toml")),
    ("flac", include_str!("../../../pipelines/flac.toml")),
    ("mp3", include_str!("../../../pipelines/mp3.toml")),
    ("nlp", include_str!("../../../pipelines/nlp.toml")),
    ("nilm", include_str!("../../../pipelines/nilm.toml")),
    ("synthetic", include_str!("../../../pipelines/synthetic.toml")),
];

/// The names of the ready pipelines.
pub fn ready_names() -> impl Iterator<Item = &'static str> {
    READY.iter().map(|(name, _)| *name)
}

/// The TOML text of a ready pipeline, to start one's own from.
pub fn ready_text(name: &str) -> Option<&'static str> {
    READY.iter().find(|(ready, _)| *ready == name).map(|(_, text)| *text)
}

/// A ready pipeline by its name.
pub fn ready(name: &str) -> Result<Pipeline> {
    let text = ready_text(name).ok_or_else(|| Error::Unknown {
        what: "ready pipeline",
        found: name.to_owned(),
        pipeline: "forebay".to_owned(),
        choices: ready_names().collect::<Vec<_>>().join(", "),
    })?;
    Pipeline::from_toml(name, text)
}
