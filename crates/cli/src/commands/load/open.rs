//! Opening what is loaded: a data set, several of them, or files through a pipeline or a plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_engine::data::{MANIFEST_FILE, MIX_FILE, Reach};
use forebay_engine::source::{Files, Interleaved, Mixed, Shards, Source};
use forebay_pipeline::Pipeline;
use forebay_storage::{EntryKind, Storage};

use super::Arguments;
use crate::arguments::{self, ErrorArguments, Settings};
use crate::commands::plan::read_plan;
use crate::error::{Error, Result};
use crate::file_list::listing_options;

/// What to load.
pub(super) fn open(arguments: &Arguments, storage: &Arc<dyn Storage>) -> Result<Arc<dyn Source>> {
    let path = Path::new(&arguments.what);
    let is_folder = arguments::look_at(path)? == Some(EntryKind::Folder);
    if is_folder || path.file_name().is_some_and(|name| name == MANIFEST_FILE || name == MIX_FILE) {
        if arguments.data.is_some() {
            return Err(Error::usage("`--data` cannot be used with a data set", "omit it"));
        }
        arguments.list.none_with("a data set")?;
        if arguments.settings.reach() != Reach::Root {
            let problem = "`--allow-outside` cannot be used with a data set: it has no files outside its folder";
            return Err(Error::usage(problem, "omit it"));
        }
        let folder = if is_folder { path } else { path.parent().unwrap_or(Path::new(".")) };
        return open_dataset(folder, storage, &arguments.settings, &arguments.on_error, arguments.scans);
    }
    no_scans(arguments.scans)?;
    let (pipeline, data) = if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        arguments.settings.none_with("a plan")?;
        of_plan(path, arguments)?
    } else {
        let pipeline = arguments::pipeline(&arguments.what, &arguments.settings, &arguments.list)?;
        (pipeline, arguments::data_folder(arguments.data.as_ref(), "load")?)
    };
    let files = arguments.list.read(&pipeline)?;
    let options = listing_options(&arguments.settings, &arguments.on_error, files.as_ref());
    Ok(Arc::new(Files::open(pipeline, &data, Arc::clone(storage), &options)?))
}

/// The source with those that are mixed in, and how many samples each has.
pub(super) fn interleaved(
    arguments: &Arguments,
    first: Arc<dyn Source>,
    storage: &Arc<dyn Storage>,
) -> Result<(Arc<dyn Source>, Vec<u64>)> {
    let mut sources = vec![first];
    for folder in arguments.sampling.interleaved() {
        sources.push(open_dataset(folder, storage, &arguments.settings, &arguments.on_error, None)?);
    }
    let counts = sources.iter().map(|source| source.samples()).collect();
    if sources.len() == 1 {
        return Ok((sources.remove(0), counts));
    }
    Ok((Arc::new(Interleaved::new(sources)?), counts))
}

/// The data set in `folder`, in one format or several; of progressive records, that many groups of scans.
pub(in crate::commands) fn open_dataset(
    folder: &Path,
    storage: &Arc<dyn Storage>,
    settings: &Settings,
    on_error: &ErrorArguments,
    scans: Option<u64>,
) -> Result<Arc<dyn Source>> {
    if arguments::look_at(&folder.join(MIX_FILE))?.is_some() {
        no_scans(scans)?;
        let mixed = Mixed::open(folder, storage, on_error.choice())?;
        let changed = settings.applied(mixed.pipeline())?;
        return Ok(Arc::new(match changed {
            Some(pipeline) => mixed.with_pipeline(&pipeline)?,
            None => mixed,
        }));
    }
    let shards = Shards::open(folder, Arc::clone(storage), on_error.choice())?;
    let shards = match scans {
        Some(scans) => shards.with_scans(scans)?,
        None => shards,
    };
    let changed = settings.applied(shards.pipeline())?;
    Ok(Arc::new(match changed {
        Some(pipeline) => shards.with_pipeline(pipeline)?,
        None => shards,
    }))
}

/// Only a data set in one format can be read in part.
fn no_scans(scans: Option<u64>) -> Result<()> {
    match scans {
        None => Ok(()),
        Some(_) => Err(Error::usage(
            "`--scans` is for a data set of progressive records",
            "omit it, or build one: `forebay build … --strategy concatenated+pcr`",
        )),
    }
}

/// A plan can be loaded directly if it chose to read the source files.
fn of_plan(path: &Path, arguments: &Arguments) -> Result<(Pipeline, PathBuf)> {
    let plan = read_plan(path)?;
    if !plan.split.keeps_files() {
        return Err(Error::usage(
            format!(
                "the plan `{}` chose `{}`, which must be built before it can be loaded",
                path.display(),
                plan.chosen
            ),
            format!("run `forebay build {} -o dataset/`, then `forebay load dataset/`", path.display()),
        ));
    }
    let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from(&plan.data.root));
    arguments::must_exist(&data, "pass the folder where the data is now with `--data`")?;
    Ok((arguments.list.applied(Pipeline::from_spec(&plan.pipeline)?)?, data))
}
