//! Images per second of steps on one core, for `bench/augmentations/run.py`: reads steps from standard input, one in a line as
//! `{ op = "random_invert" }`, and writes a number for each. `copy` instead of a step is one that does nothing, so that the image is only
//! copied into its slot; `copy 602112` copies so many bytes, and `level` asks which kernels there are. Steps of whole batches get 64 images in `float32`, steps of spectrograms 1,000 frames of
//! 80 bands.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an example that a script runs")]

use std::time::{Duration, Instant};

use forebay_codec::{DType, Tensor, TensorSpec};
use forebay_pipeline::steps::StepSpec;
use forebay_pipeline::{
    Action, BatchColumn, BatchTransform, Field, Random, RngKey, Runner, Sample, SampleView, Sink, StepError, Value,
    ValueView,
};

/// The slot of a batch.
struct Slot(Vec<u8>);

impl Sink for Slot {
    fn has_slots(&self) -> bool {
        true
    }

    fn slot(&mut self, _field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        self.0.resize(spec.bytes().max(self.0.len()), 0);
        Ok(Some(&mut self.0[..spec.bytes()]))
    }

    /// What a step made elsewhere, as those that make several samples of one, is copied into its batch.
    fn accept(&mut self, sample: SampleView<'_>) {
        for (_, value) in sample.fields {
            if let ValueView::Tensor(view) = value {
                self.0.resize(view.data.len().max(self.0.len()), 0);
                self.0[..view.data.len()].copy_from_slice(view.data);
            }
        }
    }
}

/// Smooth colors with some noise, as photos have.
fn photo(side: usize) -> Tensor {
    let value = |index: usize| {
        let (y, x, channel) = (index / 3 / side, index / 3 % side, index % 3);
        (60.0 + 50.0 * ((x + 40 * channel) as f64 / 37.0).sin() + 50.0 * (y as f64 / 29.0).cos()) as u8
            + (index * 7919 % 41) as u8
    };
    Tensor::from_elements(&[side, side, 3], &(0..side * side * 3).map(value).collect::<Vec<u8>>()).unwrap()
}

/// Loudness of 1,000 frames in 80 bands.
fn spectrogram() -> Tensor {
    let values: Vec<f32> = (0..80_000).map(|place| (place * 7919 % 1551) as f32 / 100.0 - 11.5).collect();
    Tensor::from_elements(&[1000, 80], &values).unwrap()
}

fn sample(tensor: Tensor) -> Sample {
    Sample { key: "one".into(), index: 0, fields: vec![Field { name: "image".into(), value: Value::Tensor(tensor) }] }
}

/// The images of a batch.
const BATCH: usize = 64;

/// Copies per second of so many bytes, read in one place and written in another that stay the same: the limit of whatever writes as much.
fn copy_rate(bytes: usize) -> f64 {
    let (from, mut to) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    rate(|| {
        to.copy_from_slice(&from);
        std::hint::black_box(&mut to);
    })
}

/// Images per second of a step of whole batches, channels first in `float32`, with labels of 1,000 classes.
fn batch_rate(step: &dyn BatchTransform) -> f64 {
    let values = photo(224).data().iter().map(|value| f32::from(*value) / 255.0).collect::<Vec<f32>>();
    let image: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
    let (mut images, mut labels) = (image.repeat(BATCH), vec![0; BATCH * 4000]);
    let mut number = 0;
    let batches = rate(|| {
        number += 1;
        let mut columns = [
            BatchColumn { spec: TensorSpec::new(DType::F32, &[3, 224, 224]), data: &mut images },
            BatchColumn { spec: TensorSpec::new(DType::F32, &[1000]), data: &mut labels },
        ];
        step.run(&mut columns, &mut Random::from_parts(&[number]));
    });
    batches * BATCH as f64
}

/// Images per second, in a run of 0.2 s.
fn rate(mut image: impl FnMut()) -> f64 {
    // What it works in is there from the first image on, and so are the caches.
    (0..8).for_each(|_| image());
    let (begun, mut images) = (Instant::now(), 0_u32);
    while begun.elapsed() < Duration::from_millis(200) {
        (0..8).for_each(|_| image());
        images += 8;
    }
    f64::from(images) / begun.elapsed().as_secs_f64()
}

fn main() {
    let (mut photo, mut spectrogram) = (sample(photo(224)), sample(spectrogram()));
    let mut slot = Slot(Vec::new());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if line == "level" {
            println!("{}", forebay_pipeline::kernel_level());
            continue;
        }
        if let Some(bytes) = line.strip_prefix("copy ") {
            println!("{:.1}", copy_rate(bytes.parse().unwrap()));
            continue;
        }
        let line = if line == "copy" { r#"{ op = "random_invert", p = 0 }"# } else { &*line };
        let steps: Vec<_> =
            line.split(';').map(|step| step.parse::<StepSpec>().unwrap().to_step("bench", "image").unwrap()).collect();
        if let [step] = &steps[..]
            && let Action::BatchTransform(step) = &step.action
        {
            println!("{:.1}", batch_rate(&**step));
            continue;
        }
        let of_sound = line.contains("spec_augment") || line.contains("mfcc");
        let sample = if of_sound { &mut spectrogram } else { &mut photo };
        let mut runner = Runner::new(&steps, 0);
        let done = rate(|| {
            sample.index += 1;
            runner.run(sample, RngKey::default(), &mut (), &mut slot).unwrap();
        });
        println!("{done:.1}");
    }
}
