//! What was said in each recording, out of files that have the texts of many: those of LibriSpeech, of Kaldi.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::annotations::{by_path_or_stem, shown, wrong};
use super::text_files::load_transcripts;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::SampleView;
use crate::sample_changes::SampleChanges;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform, StepFiles};

/// The field that texts are put into.
const TRANSCRIPT: &str = "transcript";

/// Gives each sample its text as a field `transcript`: of the line that begins with the sample's name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeTranscript {
    /// A file of lines, or a folder with LibriSpeech's (`*.trans.txt`), also in folders below.
    pub transcripts: String,
    /// What is in the files, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<Transcripts>>,
}

/// Texts by the names of their samples.
#[derive(Debug, Default)]
pub struct Transcripts(HashMap<Box<str>, Box<str>>);

impl Transcripts {
    /// Takes the lines of a file: a name and, after spaces or a tab, its text, to the end of the line. What is wrong with it, and in which
    /// line, otherwise.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            format!("line {line} is not UTF-8 text")
        })?;
        for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let (name, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match self.0.entry(name.into()) {
                Entry::Vacant(entry) => {
                    entry.insert(text.trim_start().into());
                }
                Entry::Occupied(entry) if **entry.get() == *text.trim_start() => {}
                Entry::Occupied(_) => return Err(format!("line {number}: `{}` has another text already", shown(name))),
            }
        }
        Ok(())
    }

    /// The text of the sample `key`, a path: of that name or the end of it, or of that name without the extension.
    pub fn of(&self, key: &str) -> Option<&str> {
        by_path_or_stem(&self.0, key).map(|text| &**text)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TakeTranscript {
    fn loaded(&self) -> Result<&Transcripts, StepError> {
        if let Some(transcripts) = self.loaded.get() {
            return Ok(transcripts);
        }
        let transcripts = load_transcripts(&self.transcripts)?;
        Ok(self.loaded.get_or_init(|| transcripts))
    }
}

impl SampleTransform for TakeTranscript {
    fn check(&self) -> Result<(), BadParameter> {
        let named = !self.transcripts.is_empty();
        BadParameter::unless(named, "transcripts", &self.transcripts, "the path of a file or folder")
    }

    fn files(&self) -> Option<&dyn StepFiles> {
        Some(self)
    }

    fn output_schema(&self, _fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let mut output = input.clone();
        output.put(TRANSCRIPT, FieldType::Text);
        Ok(output)
    }

    fn run(
        &self,
        _fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let text = self.loaded()?.of(sample.key).ok_or_else(|| {
            let problem = format!(
                "`{}` has no line for this sample\nhint: a line begins with the sample's path, or its file's name without the extension",
                self.transcripts
            );
            wrong(TRANSCRIPT, problem)
        })?;
        changes.set(TRANSCRIPT, &mut |output: &mut Output<'_>| output.text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_its_text() {
        let mut transcripts = Transcripts::default();
        let lines = "\u{feff}84-121123-0000 GO DO YOU HEAR\r\n\n84-121123-0001\tBUT  IN  LESS \n84-121123-0002\n";
        transcripts.add(lines.as_bytes()).unwrap();
        transcripts.add(b"84-121123-0000  GO DO YOU HEAR\nclips/a.flac it's a path").unwrap();
        for (key, text) in [
            ("84/121123/84-121123-0000.flac", Some("GO DO YOU HEAR")),
            ("dev-clean/84/121123/84-121123-0001.flac", Some("BUT  IN  LESS")),
            ("84-121123-0002.wav", Some("")),
            ("84-121123-0002", Some("")),
            ("train/clips/a.flac", Some("it's a path")),
            ("train/a.flac", None),
            ("84/121123/84-121123-0003.flac", None),
            ("", None),
        ] {
            assert_eq!(transcripts.of(key), text, "{key}");
        }
        let twice = transcripts.add(b"b B\n84-121123-0001 OTHER").unwrap_err();
        assert_eq!(twice, "line 2: `84-121123-0001` has another text already");
        assert_eq!(transcripts.add(b"c C\nd \xff").unwrap_err(), "line 2 is not UTF-8 text");
    }
}
