//! An audio file.

use std::path::{Path, PathBuf};

use forebay_codec::audio::{self, AudioOptions};
use forebay_plan::units;
use serde::Serialize;

use super::show_problems;
use crate::error::{Error, Result};
use crate::output::Page;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    format: &'static str,
    bytes: u64,
    sample_rate: u32,
    channels: usize,
    /// Of each channel; `null` where the header does not say.
    samples: Option<u64>,
    seconds: Option<f64>,
    /// Whether every sample was decoded.
    verified: bool,
    pub(super) problems: Vec<String>,
}

/// `content` may be only the beginning of a file of `bytes`.
pub(super) fn inspect(path: &Path, content: &[u8], bytes: u64, verify: bool) -> Result<Found> {
    let failed = |source| Error::Codec { path: path.to_owned(), source };
    let header = audio::inspect(content).map_err(failed)?;
    let whole = content.len() as u64 == bytes;
    let mut problems: Vec<String> =
        header.damage.filter(|_| whole).map(|damage| damage.to_string()).into_iter().collect();
    let mut samples = header.samples.filter(|_| whole || header.format == audio::AudioFormat::Flac);
    if verify && whole && problems.is_empty() {
        let mut decoded = Vec::new();
        match audio::decode(content, &AudioOptions::default(), &mut decoded) {
            Ok(_) => samples = Some(decoded.len() as u64),
            Err(error) => problems.push(error.to_string()),
        }
    }
    Ok(Found {
        path: path.to_owned(),
        format: header.format.name(),
        bytes,
        sample_rate: header.rate_hz,
        channels: header.channels,
        samples,
        seconds: samples.map(|samples| samples as f64 / f64::from(header.rate_hz.max(1))),
        verified: verify && whole,
        problems,
    })
}

impl Found {
    /// In a few words.
    pub(super) fn brief(&self) -> String {
        let seconds = self.seconds.map_or_else(String::new, |seconds| format!(", {}", units::seconds(seconds)));
        format!(
            "{} Hz, {}{seconds}",
            units::count(self.sample_rate.into()),
            units::counted(self.channels as u64, "channel")
        )
    }

    pub(super) fn show(&self, page: &mut Page) {
        let known = |text: Option<String>| text.unwrap_or_else(|| "not known: its header does not say".to_owned());
        let mut facts = vec![
            ("audio", self.path.display().to_string()),
            ("format", self.format.to_owned()),
            ("rate", format!("{} Hz", units::count(self.sample_rate.into()))),
            ("channels", self.channels.to_string()),
            ("length", known(self.seconds.map(units::seconds))),
            ("samples", known(self.samples.map(|samples| format!("{} of each channel", units::count(samples))))),
            ("bytes", units::bytes(self.bytes as f64)),
        ];
        if self.verified {
            let state = if self.problems.is_empty() { "every sample could be decoded" } else { "damaged" };
            facts.push(("verified", state.to_owned()));
        }
        page.facts(&facts);
        show_problems(page, &self.problems);
    }
}
