//! Images per second of steps on one core, for `bench/augmentations/run.py`: reads steps from standard input, one in a line as
//! `{ op = "random_invert" }`, and writes a number for each. `copy` instead of a step is one that does nothing, so that the image is only
//! copied into its slot; `level` asks which kernels there are.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an example that a script runs")]

use std::time::{Duration, Instant};

use forebay_codec::{Tensor, TensorSpec};
use forebay_pipeline::steps::StepSpec;
use forebay_pipeline::{Field, RngKey, Runner, Sample, SampleView, Sink, StepError, Value};

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

    fn accept(&mut self, _sample: SampleView<'_>) {}
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
    let fields = vec![Field { name: "image".into(), value: Value::Tensor(photo(224)) }];
    let mut sample = Sample { key: "photo".into(), index: 0, fields };
    let mut slot = Slot(Vec::new());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if line == "level" {
            println!("{}", forebay_pipeline::kernel_level());
            continue;
        }
        let line = if line == "copy" { r#"{ op = "random_invert", p = 0 }"# } else { &*line };
        let steps: Vec<_> =
            line.split(';').map(|step| step.parse::<StepSpec>().unwrap().to_step("bench", "image").unwrap()).collect();
        let mut runner = Runner::new(&steps, 0);
        let done = rate(|| {
            sample.index += 1;
            runner.run(&sample, RngKey::default(), &mut (), &mut slot).unwrap();
        });
        println!("{done:.1}");
    }
}
