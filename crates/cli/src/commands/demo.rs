//! `forebay demo`: make a small photographic data set, and walk the whole path on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use forebay_engine::StorageChoice;
use forebay_plan::{Weights, units};
use serde::Serialize;

use super::{build, load, plan, profile, report};
use crate::arguments::{CachingChoice, ErrorArguments, StorageArguments, Threads};
use crate::demo::photos;
use crate::error::{Error, Result};
use crate::output::{Output, Page};

const EXAMPLES: &str = "\
Examples:
  forebay demo
  forebay demo --storage ssd --samples 300
  forebay demo --photos-only --folder pictures --samples 1000

Makes photo-like pictures, profiles the ready pipeline `cv` on them as if they
lay on a slow network storage, plans, builds and loads. Everything is in
--folder; running it again replaces what it made there.";

/// Make a small data set of photo-like pictures and walk the whole path on it
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder for everything
    #[arg(long, value_name = "FOLDER", default_value = "demo")]
    folder: PathBuf,
    /// How many pictures
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    samples: u64,
    /// The storage that the pictures are read from as if they lay there: see `forebay profile --help`
    #[arg(long, value_name = "STORAGE", default_value = "ceph-hdd", value_parser = <StorageChoice as std::str::FromStr>::from_str)]
    storage: StorageChoice,
    /// The seed of the pictures; the same seed gives the same pictures
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only make the pictures
    #[arg(long)]
    photos_only: bool,
}

/// What `demo --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    photos: Photos,
    #[serde(flatten)]
    walk: Option<Walk>,
}

/// The pictures that were made.
#[derive(Debug, Serialize)]
struct Photos {
    folder: PathBuf,
    samples: u64,
    bytes: u64,
    seconds: f64,
}

/// The path that was walked.
#[derive(Debug, Serialize)]
struct Walk {
    profile: profile::Outcome,
    plan: plan::Outcome,
    /// `None` where the plan keeps the files as they are.
    build: Option<build::Outcome>,
    load: load::Outcome,
    report: PathBuf,
}

/// The mark of a folder that the demo made, so that it never replaces anything else.
const MARK_FILE: &str = ".forebay-demo";

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let folder = &arguments.folder;
    clear(folder)?;
    let photos = make_photos(arguments, output)?;
    let walk = if arguments.photos_only { None } else { Some(walk(arguments, &photos.folder, output)?) };
    output.present(&Outcome { photos, walk }, show)
}

/// Removes what an earlier demo left, and refuses a folder with anything else in it.
fn clear(folder: &Path) -> Result<()> {
    let mark = folder.join(MARK_FILE);
    if !mark.exists() {
        let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if taken {
            return Err(Error::usage(
                format!("the folder `{}` holds something that no demo made", folder.display()),
                "choose another one with `--folder`",
            ));
        }
        fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
        return fs::write(&mark, "").map_err(Error::io("write", &mark));
    }
    for name in ["photos", "dataset"] {
        let path = folder.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
    }
    for name in ["profile.json", "profile.csv", "system.csv", "plan.json", "report.html"] {
        let path = folder.join(name);
        if path.exists() {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

fn make_photos(arguments: &Arguments, output: &Output) -> Result<Photos> {
    let folder = arguments.folder.join("photos");
    let begun = Instant::now();
    let progress = output.progress();
    let bytes = photos::write_set(&folder, arguments.samples, arguments.seed, &progress)?;
    Ok(Photos { folder, samples: arguments.samples, bytes, seconds: begun.elapsed().as_secs_f64() })
}

fn walk(arguments: &Arguments, photos: &Path, output: &Output) -> Result<Walk> {
    let file = |name: &str| arguments.folder.join(name);
    let threads = Threads::new(std::thread::available_parallelism().map_or(1, usize::from));
    let storage = StorageArguments { storage: arguments.storage.clone() };
    let (measured, profile) = profile::execute(
        &profile::Arguments {
            pipeline: "cv".to_owned(),
            data: photos.to_owned(),
            samples: arguments.samples,
            runs: 3,
            fast: false,
            storage: storage.clone(),
            caching: CachingChoice::None,
            threads: threads.clone(),
            shards: None,
            batch: 32,
            seed: 0,
            strategies: Vec::new(),
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
        if plan.plan().split.position == 0 { None } else { Some(build_plan(arguments, &threads, &storage, output)?) };
    let loaded = if build.is_some() { file("dataset") } else { file("plan.json") };
    let load = load::execute(&load_arguments(&loaded, threads, storage), output)?;
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
            shards: None,
            storage: storage.clone(),
            on_error: ErrorArguments::fail(),
            overwrite: true,
        },
        output,
    )
}

fn load_arguments(what: &Path, threads: Threads, storage: StorageArguments) -> load::Arguments {
    load::Arguments {
        what: what.display().to_string(),
        data: None,
        batch: 32,
        threads,
        shuffle: true,
        window: 64_000_000,
        seed: 0,
        epochs: 2,
        samples: None,
        storage,
        cold: true,
        on_error: ErrorArguments::fail(),
        cache: None,
        drop_last: false,
        prefetch: 2,
    }
}

fn show(outcome: &Outcome, page: &mut Page) {
    let photos = &outcome.photos;
    page.heading("1. Pictures");
    page.paragraph(&format!(
        "Made {} photo-like pictures in {}: {}, in {}.",
        units::count(photos.samples),
        photos.folder.display(),
        units::bytes(photos.bytes as f64),
        units::seconds(photos.seconds),
    ));
    let Some(walk) = &outcome.walk else { return };
    page.heading("2. Profile: every way to split the pipeline");
    profile::show(&walk.profile, page);
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
    let folder = photos.folder.parent().unwrap_or(Path::new("."));
    let file = |name: &str| folder.join(name).display().to_string();
    let mut facts = vec![
        ("pictures", photos.folder.display().to_string()),
        ("profile", file("profile.json")),
        ("runs as CSV", format!("{}, {}", file("profile.csv"), file("system.csv"))),
        ("plan", file("plan.json")),
    ];
    if walk.build.is_some() {
        facts.push(("data set", file("dataset")));
    }
    facts.push(("report", format!("{} (open it in a browser)", walk.report.display())));
    page.facts(&facts);
    page.next_step("Now on your own pictures:", "forebay profile cv --data FOLDER");
}
