//! `forebay advise`: what to do about a slow input pipeline, and why.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_engine::StorageChoice;
use forebay_engine::data::{MANIFEST_FILE, MIX_FILE};
use forebay_engine::profile::COMPRESSION_CANDIDATES;
use forebay_engine::source::Files;
use forebay_plan::{Advice, AdviceOptions, LowerQuality, units};
use forebay_storage::{parse_bytes, parse_seconds};
use serde::Serialize;

use super::profile;
use crate::arguments::{
    self, CachingChoice, ErrorArguments, MemoryArguments, OUTPUT, RUNS_DEFAULT, RunArguments, Settings,
    StorageArguments, Threads,
};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options};
use crate::output::{Output, Page, quoted};

const EXAMPLES: &str = "\
Examples:
  forebay advise photos/
  forebay advise photos/ imagenet --trainer 1500
  forebay advise photos/ cv --storage hdd --max-storage 100GB
  forebay advise photos/ cv --lossy

Runs `forebay profile --fast` and answers from its results: whether the data
fits in memory, what is slow, which steps to run once, whether compression, a
mix of formats or lower quality would help, and which cache to use. It ends with
the commands to run. The profile is kept for `forebay plan` and `forebay report`.";

/// Recommend how to store and load a data set, with the reasons and the commands
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder with the source files
    #[arg(value_name = "FOLDER")]
    data: PathBuf,
    /// Pipeline: a TOML file or a preset
    #[arg(default_value = "imagenet")]
    pipeline: String,
    /// Samples per second that the trainer consumes when it never waits
    #[arg(long, value_name = "SAMPLES/S")]
    trainer: Option<f64>,
    /// Largest size of the data set, e.g. 100GB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_storage: Option<u64>,
    /// Longest time to run the offline steps, e.g. 2h
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    max_prep_time: Option<f64>,
    /// Allow lossy strategies: also consider storing images as JPEG of quality 85, and recompressing the files to quality 75
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    list: ListArguments,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    storage: StorageArguments,
    #[command(flatten)]
    on_error: ErrorArguments,
    /// Folder for temporary data sets [default: the folder of the output]
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT)]
    work_dir: Option<PathBuf>,
    /// Write the profile to FILE
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT, default_value = "profile.json")]
    output: PathBuf,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let pipeline = arguments::named_file(&self.pipeline);
        [self.data.as_path()].into_iter().chain(pipeline).chain(self.list.file()).collect()
    }
}

/// The encoding that is considered where quality may be lost.
const LOSSY_ENCODING: &str = "jpeg-85";
/// The quality that files may be recompressed to, and how many of them are, to know what it saves.
const LOWER_QUALITY: u8 = 75;
const ENCODED_IMAGES: u64 = 32;

/// What `advise --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Where the profile is.
    #[serde(serialize_with = "crate::output::as_text::path")]
    profile: PathBuf,
    data: String,
    pipeline: String,
    storage: String,
    samples: u64,
    #[serde(flatten)]
    advice: Advice,
    commands: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    for file in [MANIFEST_FILE, MIX_FILE] {
        if arguments::look_at(&arguments.data.join(file))?.is_some() {
            let data = arguments.data.display();
            return Err(Error::usage(
                format!("`{data}` is a data set, whose offline steps were chosen when it was built"),
                format!("pass the folder of its source files, or run `forebay diagnose {data} --trainer …`"),
            ));
        }
    }
    let (profile, _) = profile::execute(&as_profile(arguments), output)?;
    let options = AdviceOptions {
        trainer_samples_per_second: arguments.trainer,
        memory_bytes: arguments.memory.bytes(),
        max_storage_bytes: arguments.max_storage,
        max_prep_seconds: arguments.max_prep_time,
        lossy: arguments.lossy,
        lower_quality: if arguments.lossy { lower_quality(arguments)? } else { None },
    };
    let advice = forebay_plan::advise(&profile, &options).map_err(Error::plan(&arguments.output))?;
    let data = arguments.data.display().to_string();
    let outcome = Outcome {
        profile: arguments.output.clone(),
        pipeline: arguments.pipeline.clone(),
        storage: arguments.storage.storage.to_string(),
        samples: profile.data.samples,
        commands: advice.commands(&quoted(&arguments.pipeline), &quoted(&data), &options),
        data,
        advice,
    };
    output.present(&outcome, show)
}

/// What a lower quality makes of the files, where they are images.
fn lower_quality(arguments: &Arguments) -> Result<Option<LowerQuality>> {
    let pipeline = arguments::pipeline(&arguments.pipeline, &arguments.settings, &arguments.list)?;
    // A list that is read from standard input was read already.
    if arguments.list.setting().is_some() && arguments.list.file().is_none() {
        return Ok(None);
    }
    let files = arguments.list.read(&pipeline)?;
    let options = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    let source = Files::open(pipeline, &arguments.data, StorageChoice::Local.open(0)?, &options)?;
    Ok(forebay_engine::analyze::lower_quality(&source, LOWER_QUALITY, ENCODED_IMAGES)?)
}

/// A fast profile of the same.
fn as_profile(arguments: &Arguments) -> profile::Arguments {
    profile::Arguments {
        pipeline: arguments.pipeline.clone(),
        data: arguments.data.clone(),
        list: arguments.list.clone(),
        settings: arguments.settings.clone(),
        samples: 200,
        runs: RUNS_DEFAULT,
        run: RunArguments::default(),
        fast: true,
        storage: arguments.storage.clone(),
        caching: CachingChoice::None,
        threads: arguments.threads.clone(),
        memory: arguments.memory.clone(),
        shards: None,
        batch_size: 64,
        seed: 0,
        strategies: Vec::new(),
        encodings: if arguments.lossy { vec![LOSSY_ENCODING.to_owned()] } else { Vec::new() },
        compression_candidates: COMPRESSION_CANDIDATES.map(str::to_owned).to_vec(),
        on_error: arguments.on_error.clone(),
        work_dir: arguments.work_dir.clone(),
        output: arguments.output.clone(),
        csv: None,
    }
}

fn show(outcome: &Outcome, page: &mut Page) {
    let Outcome { data, pipeline, storage, samples, advice, commands, .. } = outcome;
    let samples = units::counted(*samples, "sample");
    page.paragraph(&format!("Advice for {samples} from {data} through `{pipeline}`, on storage `{storage}`:"));
    page.gap();
    let answers: Vec<(&str, String)> =
        advice.answers.iter().map(|answer| (answer.about.as_str(), answer.sentence.clone())).collect();
    page.facts(&answers);
    if let Some((first, others)) = commands.split_first() {
        page.next_step("Run:", first);
        for command in others {
            page.line(&format!("  {command}"));
        }
    }
}
