//! Pipelines are checked when they are made.

use forebay_pipeline::{Pipeline, Setting, Split, preset, preset_names};

fn error(steps: &str) -> String {
    Pipeline::from_toml("mine", &format!("name = \"mine\"\n{steps}")).unwrap_err().to_string()
}

#[test]
fn the_ready_pipelines_are_valid() {
    for name in preset_names() {
        let pipeline = preset(name).unwrap();
        assert_eq!(pipeline.name(), name);
        let output = pipeline.output().field(&pipeline.source().field).unwrap();
        // Speech and text are as long as they are, and arrays as large.
        let fixed = !["flac", "mp3", "nlp", "synthetic"].contains(&name);
        assert_eq!(output.fixed_spec().is_some(), fixed, "{name} gives batches of one shape");
        let spec = pipeline.to_spec().unwrap();
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(Pipeline::from_toml(name, &text).unwrap().to_spec().unwrap(), spec);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<forebay_pipeline::PipelineSpec>(&json).unwrap(), spec);
    }
}

#[test]
fn segmentation_gives_pictures_and_masks() {
    let pipeline = preset("segmentation").unwrap();
    assert_eq!(pipeline.output().to_string(), "image: float32[3, 512, 512], mask: uint8[512, 512]");
    let names: Vec<String> = pipeline.splits().into_iter().map(|split| split.name).collect();
    assert_eq!(names, ["unprocessed", "concatenated", "decoded", "mask-decoded", "resized"]);
    // As its page says.
    let fields = "source.fields=[{field = \"mask\", from = \"{folder:images=masks}/{stem}.png\"}]";
    let pipeline =
        with("segmentation", &["source.files=images/**/*.{jpg,png}", fields, "decode_mask.keep_depth=true"]).unwrap();
    assert_eq!(pipeline.output().to_string(), "image: float32[3, 512, 512], mask: uint16[512, 512]");
    let message =
        with("segmentation", &["source.fields=[{field = \"mask\", from = \"{stme}.png\"}]"]).unwrap_err().to_string();
    assert!(message.contains("did you mean `{stem}`?"), "{message}");
}

#[test]
fn cv_has_the_splits_of_the_paper() {
    let pipeline = preset("cv").unwrap();
    let names: Vec<String> = pipeline.splits().into_iter().map(|split| split.name).collect();
    assert_eq!(names, ["unprocessed", "concatenated", "decoded", "resized", "pixel-centered"]);
    assert_eq!(pipeline.output().to_string(), "image: float32[224, 224, 3], label: int");
    assert_eq!(pipeline.schema_after(2).to_string(), "image: uint8[?, ?, 3], label: int");
    assert_eq!(pipeline.split("resized").unwrap(), Split { position: 3, name: "resized".to_owned() });
    let message = pipeline.split("cropped").unwrap_err().to_string();
    assert!(message.contains("no strategy `cropped`") && message.contains("pixel-centered"), "{message}");
}

fn with(name: &str, settings: &[&str]) -> forebay_pipeline::Result<Pipeline> {
    let settings = settings.iter().map(|text| text.parse::<Setting>()).collect::<Result<Vec<_>, _>>()?;
    preset(name)?.with_settings(&settings)
}

#[test]
fn parameters_are_set_from_outside() {
    let pipeline =
        with("cv", &["random_crop.size=192", "resize.interpolation=lanczos", "source.files=**/*.{png,l3}"]).unwrap();
    assert_eq!(pipeline.output().to_string(), "image: float32[192, 192, 3], label: int");
    assert_eq!(pipeline.source().files.as_deref(), Some("**/*.{png,l3}"));
    // As a pipeline file spells them: lists, truth and numbers; text with or without quotes.
    let settings =
        ["signal_windows.channels=[0, 2]", "signal_windows.remove_offset=false", "aggregate_signal.power=\"active\""];
    let nilm = with("nilm", &settings).unwrap();
    let text = toml::to_string(&nilm.to_spec().unwrap()).unwrap();
    assert!(text.contains("channels = [0, 2]") && text.contains("power = \"active\""), "{text}");
    assert_eq!(with("cv", &[]).unwrap().to_spec(), preset("cv").unwrap().to_spec());
}

#[test]
fn settings_that_fit_nothing_are_errors_that_say_what_does() {
    for (setting, expected) in [
        ("random_crop.size", "write `STEP.PARAMETER=VALUE`"),
        ("size=192", "write `STEP.PARAMETER=VALUE`"),
        ("crop.size=192", "decode, resize, center_pixels, random_crop, source"),
        ("random_crop.sise=192", "sise"),
        ("random_crop.size=large", "large"),
        ("random_crop.size=0", "size"),
        ("source.flies=*.png", "flies"),
        ("random_crop.size=1\nname = 2", "random_crop"),
        ("decode.min_shorter_side=0", "`min_shorter_side` is `0`"),
    ] {
        let message = with("cv", &[setting]).unwrap_err().to_string();
        assert!(message.contains(expected), "{setting}: {message}");
    }
}

#[test]
fn audio_comes_out_at_the_rate_that_goes_in() {
    let message = with("flac", &["decode_audio.sample_rate=8000"]).unwrap_err().to_string();
    assert!(message.contains("audio of 8000 hertz") && message.contains("`log_mel_spectrogram`"), "{message}");
    with("flac", &["decode_audio.sample_rate=8000", "log_mel_spectrogram.sample_rate=8000"]).unwrap();
    let message = with("nilm", &["signal_windows.window=100"]).unwrap_err().to_string();
    assert!(message.contains("at least a period, 128 samples"), "{message}");
}

#[test]
fn masks_and_boxes_go_with_whole_pictures_only() {
    let steps = |parameter: &str| {
        format!(
            "[source]\nfields = [{{ field = \"mask\", from = \"masks/{{stem}}.png\" }}]\n[[step]]\nop = \"decode\"\n{parameter}\n\
             [[step]]\nop = \"decode_mask\"\nfields = [\"mask\"]\n\
             [[step]]\nop = \"random_crop\"\nsize = 32\nfields = [\"image\", \"mask\"]\n"
        )
    };
    Pipeline::from_toml("mine", &format!("name = \"mine\"\n{}", steps(""))).unwrap();
    let message = error(&steps("min_shorter_side = 64"));
    assert!(message.contains("`min_shorter_side` is `64`, but must be left out where masks"), "{message}");
}

/// What a message lists between backquotes after `expected`.
fn choices(message: &str) -> Vec<String> {
    let list = message.split_once("expected").map_or("", |(_, list)| list);
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_of_steps_has_every_step_and_parameter() {
    let page = include_str!("../../../../docs/steps.md");
    let unknown = error("[[step]]\nop = \"no-such\"\n");
    let ops = unknown.rsplit_once("one of ").map_or(&*unknown, |(_, list)| list).trim_end_matches('.').split(", ");
    let mut parameters = 0;
    for op in ops.map(|op| op.trim_matches('`')) {
        let heading = |line: &&str| line.starts_with("### ") && line.contains(&format!("`{op}`"));
        assert!(page.lines().any(|line| heading(&line)), "docs/steps.md has no `{op}`: {unknown}");
        let section: String = page
            .lines()
            .skip_while(|line| !heading(line))
            .enumerate()
            .take_while(|(number, line)| *number == 0 || !line.starts_with('#'))
            .map(|(_, line)| line)
            .collect();
        for parameter in choices(&error(&format!("[[step]]\nop = \"{op}\"\nno-such = 1\n"))) {
            assert!(section.contains(&format!("`{parameter}`")), "docs/steps.md: `{op}` has no `{parameter}`");
            parameters += 1;
        }
    }
    assert!(parameters > 50, "{parameters}: the messages no longer list what is expected");
    let source = choices(&error("[source]\nno-such = 1\n"));
    assert!(source.len() > 5, "{source:?}");
    for parameter in source {
        assert!(page.contains(&format!("| `{parameter}` |")), "docs/steps.md: the source has no `{parameter}`");
    }
}

#[test]
fn a_mismatch_names_both_steps() {
    let message = error("[[step]]\nop = \"resize\"\nsize = 8\n");
    assert!(message.contains("`read` gives bytes in field `image`, but `resize` needs an image"), "{message}");
    let message = error("[[step]]\nop=\"decode\"\n[[step]]\nop=\"to_chw\"\n[[step]]\nop=\"center_crop\"\nsize=3\n");
    assert!(message.contains("`to_chw` gives uint8[3, ?, ?]") && message.contains("`center_crop` needs"), "{message}");
    let message = error("[[step]]\nop=\"decode\"\n[[step]]\nop=\"decode\"\nname=\"again\"\n");
    assert!(
        message.contains("`decode` gives uint8[?, ?, 3]") && message.contains("`again` needs encoded bytes"),
        "{message}"
    );
    let message = error("[[step]]\nop=\"decode\"\nfields=[\"mask\"]\n");
    assert!(message.contains("field `mask`") && message.contains("only image: bytes"), "{message}");
    let message = error(
        "[[step]]\nop=\"decode\"\n[[step]]\nop=\"resize\"\nsize = [20, 10]\n[[step]]\nop=\"random_crop\"\nsize=16\n",
    );
    assert!(message.contains("at least 16x16"), "{message}");
}

#[test]
fn nothing_is_accepted_and_ignored() {
    for (steps, expected) in [
        ("[[step]]\nop=\"decode\"\ncolors=\"rgb\"\n", "unknown field `colors`"),
        ("[source]\nfield=\"label\"\n", "cannot be called `label`"),
        ("[source]\nfield=\"\"\n", "not a plain name"),
        ("[[step]]\nop=\"decode\"\nstage = \"../victim\"\n", "`../victim` is not a plain name"),
        ("[[step]]\nop=\"decode\"\nstage = \"a+png\"\n", "not a plain name"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"random_crop\"\nsize=200000\n", "`size`"),
        ("[[step]]\nop=\"blur\"\n", "no operation `blur`"),
        ("[[step]]\nsize=3\n", "no `op`"),
        ("[source]\nfolder=\"x\"\n", "unknown field `folder`"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"decode\"\n", "two steps are called `decode`"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"resize\"\n", "missing field `size`"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"resize\"\nsize=0\n", "`size` is `0`"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"resize\"\nsize=[4]\n", "a number of pixels, or [height, width]"),
        (
            "[[step]]\nop=\"decode\"\n[[step]]\nop=\"resize\"\nsize=9\ninterpolation = \"area\"\nbackend=\"tensorflow\"\n",
            "`interpolation` is",
        ),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"random_crop\"\nsize=0\n", "`size`"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"random_horizontal_flip\"\np = 1.5\n", "`p` is"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"random_resized_crop\"\nsize=8\nscale = [0.5,0.1]\n", "`scale` is"),
        ("[[step]]\nop=\"decode\"\n[[step]]\nop=\"normalize\"\nstd = [0,1,1]\n", "`std` is"),
        ("[[step]]\nop=\"decode\"\nstage = \"kept\"\n[[step]]\nop=\"resize\"\nsize=8\nstage = \"kept\"\n", "`kept`"),
    ] {
        let message = error(steps);
        assert!(message.contains(expected), "{steps} gave: {message}");
    }
}

#[test]
fn random_steps_are_never_a_split() {
    let toml =
        "name=\"m\"\n[[step]]\nop=\"decode\"\n[[step]]\nop=\"random_crop\"\nsize=8\n[[step]]\nop=\"center_pixels\"\n";
    let pipeline = Pipeline::from_toml("m", toml).unwrap();
    let names: Vec<String> = pipeline.splits().into_iter().map(|split| split.name).collect();
    assert_eq!(names, ["unprocessed", "concatenated", "decoded"]);
}

#[test]
fn a_source_that_says_something_in_vain_is_refused() {
    for (source, message) in [
        ("table = \"labels.tsv\"", "`table` has no effect without `label = \"table\"`"),
        ("classes = [\"a\", \"a\"]", "`classes` have `a` twice"),
        ("classes = []", "`classes` are none"),
        ("label = \"none\"\nclasses = [\"a\"]", "`classes` has no effect without `label`"),
        ("label = \"none\"\nlabel_type = \"float\"", "`label_type` has no effect without `label`"),
        ("label_type = \"int\"\nclasses = [\"a\"]", "`classes` has no effect without `label_type = \"class\"`"),
        ("label = \"list\"", "`label = \"list\"` has no effect without `files = \"-\"`"),
        ("label = \"function\"", "needs both `label = \"function\"` and `function`"),
        ("function = \"f\"", "needs both `label = \"function\"` and `function`"),
        ("format = \"tar\"\nlabel = \"top-folder\"", "only files can have labels by their top folder"),
        ("format = \"tar\"\nclasses = [\"a\"]", "only files can have `classes`"),
        ("format = \"tar\"\nlabel = \"table\"", "only files can have a table: read the label as a field"),
        ("order = \"sorted\"\nseed = 1", "`seed` has no effect with a sorted order"),
        ("format = \"tfrecord\"\nseed = 1", "`seed` has no effect with a sorted order"),
    ] {
        let error = Pipeline::from_toml("p", &format!("name = \"p\"\n[source]\n{source}\n")).unwrap_err().to_string();
        assert!(error.contains(message), "{source}: {error}");
    }
    // What was written down has a seed in any case, and is read.
    let sorted = Pipeline::from_toml("p", "name = \"p\"\n[source]\norder = \"sorted\"\n").unwrap();
    assert!(Pipeline::from_spec(&sorted.to_spec().unwrap()).is_ok());
    for settings in [&["source.seed=1"][..], &["source.files=-", "source.files=*.jpg"]] {
        let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        let error = sorted.clone().with_settings(&settings).unwrap_err().to_string();
        assert!(error.contains("no effect"), "{error}");
    }
    let both: Vec<Setting> =
        ["source.seed=1", "source.order=shuffled"].map(|setting| setting.parse().unwrap()).to_vec();
    assert!(sorted.with_settings(&both).is_ok());
}

#[test]
fn a_label_that_is_a_value_is_a_number() {
    let text = "name = \"p\"\n[source]\nlabel = \"table\"\ntable = \"t\"\nlabel_type = \"float\"\n";
    let pipeline = Pipeline::from_toml("p", text).unwrap();
    assert_eq!(pipeline.output().field("label").unwrap().to_string(), "float32[]");
    let text = "name = \"p\"\n[source]\nlabel = \"top-folder\"\nclasses = [\"a\", \"b\"]\n";
    assert_eq!(Pipeline::from_toml("p", text).unwrap().output().field("label").unwrap().to_string(), "int");
}
