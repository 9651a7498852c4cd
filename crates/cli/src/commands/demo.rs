//! `forebay demo`: make a small data set of a domain, and walk the whole path on it.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use forebay_codec::DType;
use forebay_engine::StorageChoice;
use forebay_engine::load::STREAMS;
use forebay_plan::{Weights, units};
use forebay_storage::{create_fresh, unlink};
use serde::Serialize;

use super::{build, load, plan, profile, report};
use crate::arguments::{
    CachingChoice, ErrorArguments, MemoryArguments, RUNS_DEFAULT, RunArguments, Settings, StorageArguments, Threads,
    size_bytes,
};
use crate::demo::{self, Domain, Made, Order, TensorKind};
use crate::error::{Error, Result};
use crate::file_list::ListArguments;
use crate::output::{Output, Page};

const EXAMPLES: &str = "\
Examples:
  forebay demo
  forebay demo --storage ssd --samples 300
  forebay demo --domain nlp --folder words
  forebay demo --domain synthetic --sample-bytes 2.5MB --dtype u8
  forebay demo --data-only --folder pictures --samples 1000

Makes data of a domain (pictures, pages, sound, signals or random numbers) from
a seed, profiles its ready pipeline on it as if it lay on a slow network
storage, plans, builds and loads. Everything is in --folder; running it again
replaces what it made there.";

/// Make a small data set of a domain and walk the whole path on it
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What the data is about
    #[arg(long, value_name = "DOMAIN", default_value = "cv")]
    domain: Domain,
    /// The folder for everything
    #[arg(long, value_name = "FOLDER", default_value = "demo")]
    folder: PathBuf,
    /// How many files [default: 120 of `cv`, fewer of others]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    samples: Option<u64>,
    /// The size of a tensor of `synthetic`, 10KB to 20.5MB [default: 160KB]
    #[arg(long, value_name = "SIZE", value_parser = sample_bytes)]
    sample_bytes: Option<u64>,
    /// The type of its elements [default: f32]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<ElementType>,
    /// The storage that the data is read from as if it lay there: see `forebay profile --help`
    #[arg(long, value_name = "STORAGE", default_value = "ceph-hdd", value_parser = <StorageChoice as std::str::FromStr>::from_str)]
    storage: StorageChoice,
    /// The seed of the data; the same seed gives the same files
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    run: RunArguments,
    /// Only make the data
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
    let bytes = size_bytes(text)?;
    let sound = (*demo::SAMPLE_BYTES.start()..=MOST).contains(&bytes);
    if sound { Ok(bytes) } else { Err("write a size from `10KB` to `20.5MB`".to_owned()) }
}

/// What `demo --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    data: Made,
    #[serde(flatten)]
    walk: Option<Walk>,
}

/// The path that was walked.
#[derive(Debug, Serialize)]
struct Walk {
    profile: profile::Outcome,
    plan: plan::Outcome,
    /// `None` where the plan keeps the files as they are.
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
    let data = demo::make(&order, &output.progress())?;
    let walk = if arguments.data_only { None } else { Some(walk(arguments, &data, output)?) };
    output.present(&Outcome { data, walk }, show)
}

/// What is to be made; only tensors have a size and a type to choose.
fn order(arguments: &Arguments) -> Result<Order> {
    let domain = arguments.domain;
    if domain != Domain::Synthetic && (arguments.sample_bytes.is_some() || arguments.dtype.is_some()) {
        return Err(Error::usage(
            format!("the files of `{}` are of the size and type that they are", domain.name()),
            "leave `--sample-bytes` and `--dtype` out, or add `--domain synthetic`",
        ));
    }
    Ok(Order {
        domain,
        folder: arguments.folder.clone(),
        seed: arguments.seed,
        samples: arguments.samples.unwrap_or(domain.usual_samples()),
        tensors: TensorKind {
            sample_bytes: arguments.sample_bytes.unwrap_or(160_000),
            dtype: arguments.dtype.map_or(DType::F32, DType::from),
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
                format!("the folder `{}` holds something that no demo made", folder.display()),
                "choose another one with `--folder`",
            ));
        }
        fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
        return create_fresh(&mark).map(drop).map_err(Error::io("write", &mark));
    }
    for name in Domain::value_variants().iter().map(|domain| domain.folder_name()).chain(["dataset"]) {
        let path = folder.join(name);
        // A link is removed, not what it leads to.
        if fs::symlink_metadata(&path).is_ok() {
            fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
    }
    let written = ["profile.json", "profile.csv", "system.csv", "plan.json", "report.html", demo::TOKENISER_FILE];
    for name in written.into_iter().chain(demo::PIPELINE_FILES) {
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
            runs: RUNS_DEFAULT,
            run: arguments.run.clone(),
            fast: false,
            storage: storage.clone(),
            caching: CachingChoice::None,
            threads: threads.clone(),
            memory: MemoryArguments::default(),
            shards: None,
            batch: 32,
            seed: 0,
            strategies: Vec::new(),
            settings: Settings::default(),
            list: ListArguments::default(),
            encodings: Vec::new(),
            on_error: ErrorArguments::fail(),
            work: None,
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
    let load = load::execute(&load_arguments(&loaded, threads, storage), output)?;
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
            threads: threads.clone(),
            memory: MemoryArguments::default(),
            shards: None,
            storage: storage.clone(),
            on_error: ErrorArguments::fail(),
            settings: Settings::default(),
            list: ListArguments::default(),
            overwrite: true,
        },
        None,
        output,
    )
}

fn load_arguments(what: &Path, threads: Threads, storage: StorageArguments) -> load::Arguments {
    load::Arguments {
        what: what.display().to_string(),
        data: None,
        batch: 32,
        threads,
        memory: MemoryArguments::default(),
        shuffle: true,
        window: None,
        streams: STREAMS,
        rank: 0,
        world_size: 1,
        even: load::EvenChoice::None,
        state: None,
        seed: 0,
        epochs: 2,
        samples: None,
        storage,
        cold: true,
        on_error: ErrorArguments::fail(),
        cache: None,
        settings: Settings::default(),
        list: ListArguments::default(),
        drop_last: false,
        prefetch: 2,
    }
}

fn show(outcome: &Outcome, page: &mut Page) {
    let data = &outcome.data;
    page.heading("1. Data");
    page.paragraph(&format!(
        "Made {} {} in {}: {}, {} each, in {}.",
        units::count(data.samples),
        data.domain.noun(),
        data.folder.display(),
        units::bytes(data.bytes as f64),
        units::bytes(data.bytes as f64 / data.samples as f64),
        units::seconds(data.seconds),
    ));
    let Some(walk) = &outcome.walk else { return };
    page.heading("2. Profile: every way to split the pipeline");
    // The plan repeats what is to be known before relying on it.
    profile::tables(&walk.profile, page);
    profile::written(&walk.profile, page);
    page.heading("3. Plan");
    plan::show(walk.plan.plan(), page);
    page.heading("4. Build");
    match &walk.build {
        Some(build) => build::show(build, page),
        None => page.line("Nothing to build: the files are read as they are."),
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
    page.next_step("Now on your own data:", &format!("forebay profile {} --data FOLDER", data.pipeline));
}
