//! `forebay demo`: generate data of a domain, and profile, plan, build and load it.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use forebay_codec::DType;
use forebay_demo::{Domain, Made, Order, TensorKind};
use forebay_engine::StorageChoice;
use forebay_engine::load::{CachePolicy, STREAMS};
use forebay_engine::profile::COMPRESSION_CANDIDATES;
use forebay_plan::{Weights, units};
use forebay_storage::{create_fresh, parse_bytes, unlink};
use serde::Serialize;

use super::{build, load, plan, profile, report};
use crate::arguments::{
    CachingChoice, ErrorArguments, MemoryArguments, RunArguments, Settings, StorageArguments, Threads,
};
use crate::error::{Error, Result};
use crate::file_list::ListArguments;
use crate::output::{Output, Page};
use crate::sampling::SamplingArguments;

const EXAMPLES: &str = "\
Examples:
  forebay demo
  forebay demo --storage ssd --samples 300
  forebay demo --domain nlp --folder words
  forebay demo --domain synthetic --sample-bytes 2.5MB --dtype u8
  forebay demo --data-only --folder images --samples 1000

The data is profiled with the preset of its domain on a simulated network
storage. Everything is written to --folder; running the demo again replaces it.";

/// Generate sample data, then profile, plan, build and load it
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Domain of the data
    #[arg(long, value_name = "DOMAIN", default_value = "cv", value_parser = domain_parser())]
    domain: Domain,
    /// Folder for the data and all results
    #[arg(long, value_name = "FOLDER", default_value = "demo")]
    folder: PathBuf,
    /// Number of files [default: 120 for `cv`, fewer for other domains]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    samples: Option<u64>,
    /// Size of a tensor of `synthetic`, from 10KB to 20.5MB [default: 160KB]
    #[arg(long, value_name = "SIZE", value_parser = sample_bytes)]
    sample_bytes: Option<u64>,
    /// Element type of `synthetic` [default: f32]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<ElementType>,
    /// Storage to simulate (see `forebay profile --help`)
    #[arg(long, value_name = "STORAGE", default_value = "ceph-hdd", value_parser = <StorageChoice as std::str::FromStr>::from_str)]
    storage: StorageChoice,
    /// Seed of the data; the same seed generates the same files
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    run: RunArguments,
    /// Only generate the data
    #[arg(long)]
    data_only: bool,
}

/// The element types of tensors, as the command line spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElementType {
    U8,
    U16,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl From<ElementType> for DType {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::U8 => Self::U8,
            ElementType::U16 => Self::U16,
            ElementType::I16 => Self::I16,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
            ElementType::F32 => Self::F32,
            ElementType::F64 => Self::F64,
        }
    }
}

/// The size of a tensor, as PRESTO has them.
pub(crate) fn sample_bytes(text: &str) -> Result<u64, String> {
    /// 20.5 MB is PRESTO's largest, rounded up.
    const MOST: u64 = 20_500_000;
    let bytes = parse_bytes(text)?;
    let fits = (*forebay_demo::SAMPLE_BYTES.start()..=MOST).contains(&bytes);
    if fits { Ok(bytes) } else { Err("expected a size from `10KB` to `20.5MB`".to_owned()) }
}

/// The domains by name, with a description each.
fn domain_parser() -> impl TypedValueParser<Value = Domain> {
    let named = |domain: Domain| PossibleValue::new(domain.name()).help(domain.describe());
    PossibleValuesParser::new(Domain::ALL.map(named))
        .map(|name| Domain::parse(&name).expect("one of the possible values"))
}

/// What `demo --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(serialize_with = "made")]
    data: Made,
    #[serde(flatten)]
    walk: Option<Walk>,
}

/// What was made, with the keys of docs/json.md.
fn made<S: serde::Serializer>(made: &Made, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Data<'a> {
        domain: Domain,
        #[serde(serialize_with = "crate::output::as_text::path")]
        folder: &'a Path,
        pipeline: &'a str,
        samples: u64,
        bytes: u64,
        seconds: f64,
    }
    let Made { domain, folder, pipeline, samples, bytes, seconds } = made;
    let (domain, samples, bytes, seconds) = (*domain, *samples, *bytes, *seconds);
    Data { domain, folder, pipeline, samples, bytes, seconds }.serialize(serializer)
}

/// The path that was walked.
#[derive(Debug, Serialize)]
struct Walk {
    profile: profile::Outcome,
    plan: plan::Outcome,
    /// `None` if the plan reads the source files.
    build: Option<build::Outcome>,
    load: load::Outcome,
    #[serde(serialize_with = "crate::output::as_text::path")]
    report: PathBuf,
}

/// The mark of a folder that the demo made, so that it never replaces anything else.
const MARK_FILE: &str = ".forebay-demo";

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let order = order(arguments)?;
    clear(&arguments.folder)?;
    let data = forebay_demo::make(&order, &output.progress())?;
    let walk = if arguments.data_only { None } else { Some(walk(arguments, &data, output)?) };
    output.present(&Outcome { data, walk }, show)
}

/// What to generate; only tensors have a choice of size and type.
fn order(arguments: &Arguments) -> Result<Order> {
    let domain = arguments.domain;
    if domain != Domain::Synthetic && (arguments.sample_bytes.is_some() || arguments.dtype.is_some()) {
        return Err(Error::usage(
            format!("the files of `{}` have a fixed size and type", domain.name()),
            "omit `--sample-bytes` and `--dtype`, or pass `--domain synthetic`",
        ));
    }
    Ok(Order {
        domain,
        folder: arguments.folder.clone(),
        seed: arguments.seed,
        samples: arguments.samples.unwrap_or(domain.usual_samples()),
        tensors: TensorKind {
            sample_bytes: arguments.sample_bytes.unwrap_or(TensorKind::default().sample_bytes),
            dtype: arguments.dtype.map_or(TensorKind::default().dtype, DType::from),
        },
    })
}

/// Removes what an earlier demo left, and refuses a folder with anything else in it.
fn clear(folder: &Path) -> Result<()> {
    let mark = folder.join(MARK_FILE);
    let marked = fs::symlink_metadata(&mark).is_ok_and(|found| found.is_file());
    if !marked {
        let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if taken {
            return Err(Error::usage(
                format!("the folder `{}` was not made by `forebay demo`, and is not empty", folder.display()),
                "choose another folder with `--folder`",
            ));
        }
        fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
        return create_fresh(&mark).map(drop).map_err(Error::io("write", &mark));
    }
    for name in Domain::ALL.iter().map(|domain| domain.folder_name()).chain(["dataset"]) {
        let path = folder.join(name);
        // A link is removed, not what it leads to.
        if fs::symlink_metadata(&path).is_ok() {
            fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
    }
    let written =
        ["profile.json", "profile.csv", "system.csv", "plan.json", "report.html", forebay_demo::TOKENIZER_FILE];
    for name in written.into_iter().chain(forebay_demo::PIPELINE_FILES) {
        let path = folder.join(name);
        unlink(&path).map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

fn walk(arguments: &Arguments, data: &Made, output: &Output) -> Result<Walk> {
    let file = |name: &str| arguments.folder.join(name);
    let threads = Threads::new(forebay_engine::cores());
    let storage = StorageArguments { storage: arguments.storage.clone() };
    let (measured, profile) = profile::execute(
        &profile::Arguments {
            pipeline: data.pipeline.clone(),
            data: data.folder.clone(),
            samples: data.samples,
            // Fewer than usual, to finish within two minutes.
            runs: NonZeroU32::MIN.saturating_add(2),
            run: arguments.run.clone(),
            fast: false,
            storage: storage.clone(),
            caching: CachingChoice::None,
            threads: threads.clone(),
            memory: MemoryArguments::default(),
            shards: None,
            batch_size: 32,
            seed: 0,
            strategies: Vec::new(),
            settings: Settings::default(),
            list: ListArguments::default(),
            encodings: Vec::new(),
            compression_candidates: COMPRESSION_CANDIDATES.map(str::to_owned).to_vec(),
            on_error: ErrorArguments::fail(),
            work_dir: None,
            output: file("profile.json"),
            csv: Some(file("profile.csv")),
        },
        output,
    )?;
    report::write(&measured, &file("profile.json"), &file("report.html"))?;
    let plan = plan::execute(&plan::Arguments {
        profile: file("profile.json"),
        weights: Weights::default(),
        max_storage: None,
        max_prep_time: None,
        lossless: false,
        trainer: None,
        output: file("plan.json"),
    })?;
    let build =
        if plan.plan().split.keeps_files() { None } else { Some(build_plan(arguments, &threads, &storage, output)?) };
    let loaded = if build.is_some() { file("dataset") } else { file("plan.json") };
    let epochs = epochs(&arguments.run, plan.plan().prediction.samples_per_second.unwrap_or_default(), data.samples);
    let load = load::execute(&load_arguments(&loaded, epochs, threads, storage), output)?;
    if load.interrupted {
        return Err(Error::Interrupted(""));
    }
    Ok(Walk { profile, plan, build, load, report: file("report.html") })
}

fn build_plan(
    arguments: &Arguments,
    threads: &Threads,
    storage: &StorageArguments,
    output: &Output,
) -> Result<build::Outcome> {
    build::execute(
        &build::Arguments {
            what: arguments.folder.join("plan.json").display().to_string(),
            output: arguments.folder.join("dataset"),
            data: None,
            strategy: None,
            mix: None,
            seed: None,
            threads: threads.clone(),
            memory: MemoryArguments::default(),
            shards: None,
            storage: storage.clone(),
            on_error: ErrorArguments::fail(),
            settings: Settings::default(),
            list: ListArguments::default(),
            overwrite: true,
            prepare: false,
            part: None,
            finish: false,
        },
        None,
        output,
    )
}

/// How often to load the samples: twice as long as a run of the profile, so that startup does not dominate.
fn epochs(run: &RunArguments, samples_per_second: f64, samples: u64) -> u64 {
    ((2.0 * run.seconds * samples_per_second / samples.max(1) as f64).ceil() as u64).clamp(2, 1_000)
}

fn load_arguments(what: &Path, epochs: u64, threads: Threads, storage: StorageArguments) -> load::Arguments {
    load::Arguments {
        what: what.display().to_string(),
        data: None,
        batch_size: 32,
        threads,
        memory: MemoryArguments::default(),
        shuffle: true,
        shuffle_window: None,
        streams: STREAMS,
        rank: 0,
        world_size: 1,
        even: load::EvenChoice::None,
        state: None,
        seed: 0,
        epochs,
        samples: None,
        storage,
        cold: true,
        on_error: ErrorArguments::fail(),
        scans: None,
        cache: CachePolicy::default(),
        cache_dir: None,
        cache_size: load::CACHE_BYTES,
        profile: None,
        settings: Settings::default(),
        list: ListArguments::default(),
        sampling: SamplingArguments::default(),
        drop_last: false,
        prefetch: 2,
    }
}

fn show(outcome: &Outcome, page: &mut Page) {
    let data = &outcome.data;
    if outcome.walk.is_some() {
        page.heading("1. Data");
    }
    page.paragraph(&format!(
        "Generated {} {} in {}: {}, {} each, in {}.",
        units::count(data.samples),
        data.domain.noun(),
        data.folder.display(),
        units::bytes(data.bytes as f64),
        units::bytes(data.bytes as f64 / data.samples as f64),
        units::seconds(data.seconds),
    ));
    let Some(walk) = &outcome.walk else { return };
    page.heading("2. Profile");
    // The plan repeats the caveats.
    profile::tables(&walk.profile, page);
    profile::written(&walk.profile, page);
    page.heading("3. Plan");
    plan::show(walk.plan.plan(), page);
    page.heading("4. Build");
    match &walk.build {
        Some(build) => build::show(build, page),
        None => page.line("Nothing to build: the source files are loaded directly."),
    }
    page.heading("5. Load");
    load::show(&walk.load, page);
    page.heading("Results");
    let folder = data.folder.parent().unwrap_or(Path::new("."));
    let file = |name: &str| folder.join(name).display().to_string();
    let mut facts = vec![("data", data.folder.display().to_string())];
    if data.pipeline != data.domain.name() {
        facts.push(("pipeline", data.pipeline.clone()));
    }
    facts.extend([
        ("profile", file("profile.json")),
        ("runs as CSV", format!("{}, {}", file("profile.csv"), file("system.csv"))),
        ("plan", file("plan.json")),
    ]);
    if walk.build.is_some() {
        facts.push(("data set", file("dataset")));
    }
    facts.push(("report", format!("{} (open it in a browser)", walk.report.display())));
    page.facts(&facts);
    page.next_step("Next, profile your own data:", &format!("forebay profile {} --data FOLDER", data.pipeline));
}
