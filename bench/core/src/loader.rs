//! The loader compared with the sum of its parts, and on two threads compared with one.

use std::sync::Arc;

use forebay_codec::image::{DecodeOptions, Decoder, EncodedImage};
use forebay_codec::{TensorMut, TensorSpec};
use forebay_engine::StorageChoice;
use forebay_engine::build::{Build, BuildOptions};
use forebay_engine::data::{Dataset, Listing};
use forebay_engine::load::{LoadOptions, Loader, OnError};
use forebay_engine::source::Shards;
use forebay_pipeline::steps::{Center, RandomCrop, Resize};
use forebay_pipeline::{
    Output, Pipeline, SampleView, Scope, Sink, StepError, Strategy, Transform, ValueView, preset_text,
};

use crate::measure::{Row, in_turn};
use crate::{Outcome, Selection};

/// How often the photos are loaded in one measurement.
const COPIES: usize = 8;

const ON_ONE: &str = "load on one thread";
const ON_TWO: &str = "load on two threads";

pub(crate) fn rows(files: &[Vec<u8>], selection: &Selection) -> Outcome<Vec<Row>> {
    if ![ON_ONE, ON_TWO].into_iter().any(|work| selection.has(work)) {
        return Ok(Vec::new());
    }
    // Labels are of no account here, and a photo folder need not have folders.
    let text = preset_text("cv").ok_or("the pipeline `cv`")?.replace("label = \"folder\"", "label = \"none\"");
    let pipeline = Pipeline::from_toml("cv", &text)?;
    let folder = tempfile::tempdir()?;
    let copies = folder.path().join("photos");
    std::fs::create_dir(&copies)?;
    for (number, file) in files.iter().enumerate() {
        for copy in 0..COPIES {
            std::fs::write(copies.join(format!("{number}-{copy}.jpg")), file)?;
        }
    }
    let output = folder.path().join("dataset");
    let storage = StorageChoice::Local.open(0)?;
    let listing = Arc::new(Listing::scan(pipeline.source(), &copies)?);
    let strategy = Strategy::parse(&pipeline, "concatenated")?;
    Build { pipeline: pipeline.clone(), strategy, listing, storage }.run(
        &output,
        &BuildOptions {
            threads: 2,
            shards: 4,
            on_error: OnError::Fail,
            overwrite: false,
            resume: None,
            memory_bytes: 1 << 30,
        },
        &(),
    )?;
    let dataset = Arc::new(Dataset::open(&output)?);
    let mut rows = Vec::new();
    if selection.has(ON_ONE) {
        rows.push(overhead(&dataset, files)?);
    }
    if selection.has(ON_TWO) {
        rows.push(scaling(&dataset)?);
    }
    Ok(rows)
}

fn load(dataset: &Arc<Dataset>, threads: usize) -> Outcome<()> {
    let source = Shards::new(Arc::clone(dataset), StorageChoice::Local.open(0)?);
    let loader = Loader::new(Arc::new(source), LoadOptions { threads, ..LoadOptions::default() })?;
    for batch in loader.start(&loader.beginning_of(0))? {
        std::hint::black_box(&batch?);
    }
    Ok(())
}

/// One worker of the loader compared with a plain loop over the same steps.
fn overhead(dataset: &Arc<Dataset>, files: &[Vec<u8>]) -> Outcome<Row> {
    let mut parts = Parts::default();
    let (ours, theirs) = in_turn(
        || load(dataset, 1),
        || {
            for _ in 0..COPIES {
                files.iter().try_for_each(|file| parts.run(file))?;
            }
            Ok(())
        },
    )?;
    let samples = dataset.manifest().samples as f64;
    Ok(Row {
        work: ON_ONE.into(),
        beside: "the sum of its parts",
        unit: "samples/s",
        ours: samples / ours,
        theirs: samples / theirs,
        bar: Some(1.0 / 1.05),
    })
}

fn scaling(dataset: &Arc<Dataset>) -> Outcome<Row> {
    let (two, one) = in_turn(|| load(dataset, 2), || load(dataset, 1))?;
    let samples = dataset.manifest().samples as f64;
    Ok(Row {
        work: ON_TWO.into(),
        beside: "on one",
        unit: "samples/s",
        ours: samples / two,
        theirs: samples / one,
        bar: Some(1.9),
    })
}

/// Decode, resize, center and crop in a plain loop, without a loader.
#[derive(Default)]
struct Parts {
    decoder: Decoder,
    scope: Scope,
    buffers: [Vec<u64>; 4],
}

impl Parts {
    fn run(&mut self, file: &[u8]) -> Outcome<()> {
        let [decoded, resized, centered, cropped] = &mut self.buffers;
        let picture = EncodedImage::open(file)?;
        let plan = picture.plan(&DecodeOptions::default())?;
        let spec = plan.spec();
        self.decoder.decode_into(&plan, TensorMut { spec, data: room(decoded, spec) })?;
        let spec = step(&Resize::to(256), (decoded, spec), resized, &mut self.scope)?;
        let spec = step(&Center {}, (resized, spec), centered, &mut self.scope)?;
        step(&RandomCrop::to(224), (centered, spec), cropped, &mut self.scope)?;
        std::hint::black_box(&cropped);
        Ok(())
    }
}

fn step(
    step: &dyn Transform,
    (input, spec): (&mut Vec<u64>, TensorSpec),
    output: &mut Vec<u64>,
    scope: &mut Scope,
) -> Outcome<TensorSpec> {
    let input = ValueView::Tensor(forebay_codec::TensorView { spec, data: room(input, spec) });
    let mut sink = SlotSink { buffer: output, spec };
    scope.begin_fields();
    step.run(input, &mut Output::new("image", &mut sink), scope)?;
    Ok(sink.spec)
}

/// Gives a tensor its slot in a buffer, and records its spec.
pub(crate) struct SlotSink<'a> {
    pub(crate) buffer: &'a mut Vec<u64>,
    pub(crate) spec: TensorSpec,
}

impl Sink for SlotSink<'_> {
    fn has_slots(&self) -> bool {
        true
    }

    fn slot(&mut self, _field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        self.spec = *spec;
        Ok(Some(room(self.buffer, *spec)))
    }

    fn accept(&mut self, _sample: SampleView<'_>) {}
}

/// The bytes of a tensor in a buffer that is aligned for every element type.
fn room(buffer: &mut Vec<u64>, spec: TensorSpec) -> &mut [u8] {
    let words = spec.bytes().div_ceil(8);
    if buffer.len() < words {
        buffer.resize(words, 0);
    }
    &mut bytemuck::cast_slice_mut(buffer)[..spec.bytes()]
}
