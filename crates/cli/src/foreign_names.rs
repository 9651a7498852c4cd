//! The names of options in other libraries, and ours: one table for the options of the program and the arguments of Python.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Cli;

/// Names that differ from ours in more than spelling.
struct Known {
    /// Names of PyTorch's `DataLoader`, DALI, `WebDataset`, tf.data, FFCV, `MosaicML` Streaming and Hugging Face, as [`folded`] makes them.
    names: &'static [&'static str],
    /// The arguments that do it, as Python spells them. None: it is not needed, or is not an argument.
    ours: &'static [&'static str],
    /// What to know of it.
    note: &'static str,
}

const ELSEWHERE: &[Known] = &[
    Known {
        names: &[
            "numworkers",
            "workers",
            "nworkers",
            "maxworkers",
            "numthreads",
            "nthreads",
            "pynumworkers",
            "numparallelcalls",
            "numproc",
            "jobs",
            "cores",
        ],
        ours: &["threads"],
        note: "workers are threads, as many as there are cores unless you say otherwise",
    },
    Known { names: &["bs", "batch", "maxbatchsize", "trainbatchsize"], ours: &["batch_size"], note: "" },
    Known {
        names: &["randomshuffle", "order", "shuffled", "reshuffleeachiteration", "shuffleafterepoch", "shardshuffle"],
        ours: &["shuffle"],
        note: "the order is another one every epoch",
    },
    Known {
        names: &["shufflebuffer", "shufflebuffersize", "buffersize", "bufsize", "initialfill", "shuffleblocksize"],
        ours: &["shuffle_window"],
        note: "its size is in bytes",
    },
    Known {
        names: &["dropremainder", "droplastbatch", "partial", "lastbatchpolicy", "lastbatchpadded", "padlastbatch"],
        ours: &["drop_last", "even"],
        note: "",
    },
    Known {
        names: &[
            "prefetchfactor",
            "prefetchqueuedepth",
            "prefetchbuffersize",
            "prefetchbatches",
            "numprefetch",
            "batchesahead",
            "predownload",
        ],
        ours: &["prefetch"],
        note: "it counts batches",
    },
    Known {
        names: &["sampler", "batchsampler"],
        ours: &["subset", "where", "weights", "repeats"],
        note: "ranks share an epoch without one",
    },
    Known { names: &["sampleweights", "classweights"], ours: &["weights"], note: "" },
    Known {
        names: &["balanced", "balance", "classbalanced"],
        ours: &["weights"],
        note: "`balanced` is one of its values",
    },
    Known { names: &["indices", "ids"], ours: &["subset"], note: "" },
    Known { names: &["filter", "filters", "predicate"], ours: &["where"], note: "" },
    Known {
        names: &["generator", "randomseed", "manualseed", "shuffleseed", "randomstate", "rng"],
        ours: &["seed"],
        note: "shuffling and random steps follow from it",
    },
    Known {
        names: &["workerinitfn"],
        ours: &[],
        note: "not needed: workers are threads of one process, and random choices follow from the seed, the epoch and the sample",
    },
    Known {
        names: &["persistentworkers"],
        ours: &[],
        note: "not needed: workers are threads, so there are no processes to keep",
    },
    Known {
        names: &["multiprocessingcontext", "mpcontext", "pystartmethod"],
        ours: &[],
        note: "not needed: workers are threads of one process",
    },
    Known { names: &["timeout"], ours: &[], note: "not needed: what fails raises where its batch is awaited" },
    Known {
        names: &["inorder"],
        ours: &[],
        note: "not needed: batches always come in the order that follows from the seed",
    },
    Known { names: &["pinmemorydevice"], ours: &["pin_memory"], note: "" },
    Known {
        names: &["collatefn", "collationfn"],
        ours: &["collate"],
        note: "it is `list` or `pad`, for tensors of different shapes; others are stacked",
    },
    Known {
        names: &[
            "transform",
            "transforms",
            "targettransform",
            "pipelines",
            "augmentations",
            "preprocess",
            "operations",
        ],
        ours: &[],
        note: "not an option: steps belong to the pipeline (docs/steps.md), and `Pipeline.map` makes one of a Python function",
    },
    Known { names: &["dataset", "datasource"], ours: &[], note: "not an option: it comes first, without a name" },
    Known {
        names: &["root", "fileroot", "datadir", "datapath", "datafolder", "folder", "urls", "url", "local", "remote"],
        ours: &["data"],
        note: "a folder or a URL; of a data set that was built, it is the first argument",
    },
    Known { names: &["filelist"], ours: &["files_from", "data"], note: "" },
    Known { names: &["numreplicas", "numshards", "processcount"], ours: &["world_size", "shards"], note: "" },
    Known { names: &["shardid", "processindex", "localrank"], ours: &["rank"], note: "" },
    Known {
        names: &["distributed", "nodesplitter", "workersplitter", "splitbynode", "splitbyworker"],
        ours: &["rank", "world_size"],
        note: "in Python, torchrun's environment gives both",
    },
    Known { names: &["numepochs", "maxepochs"], ours: &["epochs"], note: "" },
    Known {
        names: &["cachelimit", "cachebytes", "oscache"],
        ours: &["cache"],
        note: "with its size, e.g. `decoded:4GB`",
    },
    Known { names: &["localdir", "cachefolder", "cachedirectory"], ours: &["cache_dir"], note: "" },
    Known {
        names: &["handler", "ignoreerrors", "skiperrors", "onexception"],
        ours: &["on_error"],
        note: "`fail` or `skip`",
    },
    Known { names: &["returntensors", "outputtype", "asnumpy"], ours: &["framework"], note: "" },
    Known { names: &["deviceid", "gpuid", "gpu"], ours: &["device"], note: "" },
    Known { names: &["memorylimit", "maxmemory", "memorybudget", "ram"], ours: &["memory"], note: "" },
    Known {
        names: &["epochsize", "samplesperepoch", "length", "limit", "maxsamples", "numexamples"],
        ours: &["num_samples", "samples"],
        note: "",
    },
    Known { names: &["resampled", "withreplacement"], ours: &["replacement"], note: "" },
    Known { names: &["classnames", "labelnames", "categories"], ours: &["classes"], note: "" },
    Known { names: &["outputdir", "outputfolder", "outdir", "destination"], ours: &["output"], note: "" },
    Known { names: &["work", "tmp", "tmpdir", "tempdir", "scratch"], ours: &["work_dir"], note: "" },
    Known { names: &["compression", "imageformat", "codec"], ours: &["encoding", "encodings", "strategy"], note: "" },
];

/// What somebody may have meant who named the unknown argument `found` where there are those for which `is_there`: the names of ours,
/// perhaps none, and a note.
fn meant(found: &str, is_there: impl Fn(&str) -> bool) -> Option<(Vec<&'static str>, &'static str)> {
    let name = folded(found);
    let known = ELSEWHERE.iter().find(|known| known.names.contains(&name.as_str()))?;
    let ours: Vec<&str> = known.ours.iter().copied().filter(|ours| is_there(ours)).collect();
    (known.ours.is_empty() || !ours.is_empty()).then_some((ours, known.note))
}

/// `--num-workers`, `numWorkers` and `num_workers` are one name.
fn folded(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn sentence(ours: &[String], note: &str) -> String {
    match (ours, note) {
        ([], note) => note.to_owned(),
        (ours, "") => format!("use `{}`", ours.join("` or `")),
        (ours, note) => format!("use `{}`: {note}", ours.join("` or `")),
    }
}

/// What somebody may have meant who passed a Python function that takes `arguments` the unknown one `found`, as a hint: an argument
/// that another library has, or a slip.
pub fn meant_argument(found: &str, arguments: &[&str]) -> Option<String> {
    if let Some((ours, note)) = meant(found, |name| arguments.contains(&name)) {
        return Some(sentence(&ours.into_iter().map(str::to_owned).collect::<Vec<_>>(), note));
    }
    forebay_pipeline::nearest(found, arguments.iter().copied()).map(|name| format!("did you mean `{name}`?"))
}

/// Adds our name of an option to an error about an unknown option, if it is the name in another library.
pub(crate) fn with_hint(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return error };
    let found = found.clone();
    let command = command_of(arguments);
    let is_option = |name: &str| command.get_arguments().any(|known| known.get_long() == Some(name));
    if !found.starts_with("--") {
        return error;
    }
    let hint = match meant(&found, |ours| is_option(&ours.replace('_', "-"))) {
        Some((ours, note)) => {
            let ours: Vec<String> = ours.iter().map(|name| format!("--{}", name.replace('_', "-"))).collect();
            Some(sentence(&ours, note))
        }
        // Python's loader has more arguments than the program has options, which measures.
        None if command.get_name() == "load" => meant(&found, |_| true)
            .and_then(|(ours, _)| Some(format!("only Python has it: `forebay.Loader({}=...)`", ours.first()?))),
        None => None,
    };
    if let Some(hint) = hint {
        // What clap found by spelling is another option.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// The command that the arguments of the program are for.
fn command_of(arguments: &[OsString]) -> clap::Command {
    let mut command = Cli::command();
    for argument in arguments.iter().skip(1) {
        if argument.to_string_lossy().starts_with('-') {
            continue;
        }
        let Some(below) = command.find_subcommand(argument) else { break };
        command = below.clone();
    }
    command
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_of_other_libraries_are_understood() {
        let arguments = ["threads", "shuffle", "batch_size", "subset", "weights"];
        for (found, expected) in [
            ("num_workers", "use `threads`: workers are threads"),
            ("sampler", "use `subset` or `weights`: "),
            ("random_shuffle", "use `shuffle`"),
            ("persistent_workers", "not needed: "),
            ("batchsize", "did you mean `batch_size`?"),
        ] {
            let hint = meant_argument(found, &arguments).unwrap_or_default();
            assert!(hint.starts_with(expected), "{found}: {hint}");
        }
        assert_eq!(meant_argument("collate_fn", &arguments), None);
        assert_eq!(meant_argument("summon", &arguments), None);
    }

    /// Each name once, as `folded` makes it, and none that is ours.
    #[test]
    fn the_table_is_in_order() {
        let mut names = HashSet::new();
        let ours: HashSet<String> = ELSEWHERE.iter().flat_map(|known| known.ours).map(|name| folded(name)).collect();
        for name in ELSEWHERE.iter().flat_map(|known| known.names) {
            assert!(names.insert(*name) && folded(name) == *name && !ours.contains(*name), "{name}");
        }
    }
}
