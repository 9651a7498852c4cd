//! What several tests need.

use bytes::Bytes;
use forebay_codec::{Tensor, TensorView};
use forebay_pipeline::steps::StepSpec;
use forebay_pipeline::{Field, RngKey, Runner, Sample, SampleView, Sink, Step, Value};

/// A step from its TOML.
pub(crate) fn step(toml: &str) -> Step {
    let spec: StepSpec = toml::from_str(toml).unwrap();
    spec.to_step("test", "image").unwrap()
}

/// A sample with one field `image`.
pub(crate) fn sample(value: Value) -> Sample {
    Sample { key: "a".into(), index: 5, fields: vec![Field { name: "image".into(), value }] }
}

/// A picture whose bytes are given by a function of row, column and channel.
pub(crate) fn picture(height: usize, width: usize, channels: usize, at: impl Fn(usize, usize, usize) -> u8) -> Tensor {
    let mut data = Vec::new();
    for row in 0..height {
        for column in 0..width {
            data.extend((0..channels).map(|channel| at(row, column, channel)));
        }
    }
    Tensor::from_elements(&[height, width, channels], &data).unwrap()
}

/// Collects what comes out.
#[derive(Default)]
pub(crate) struct Collect(pub(crate) Vec<Sample>);

impl Sink for Collect {
    fn accept(&mut self, sample: SampleView<'_>) {
        self.0.push(sample.to_sample().unwrap());
    }
}

/// Runs steps on a sample and returns everything that comes out.
pub(crate) fn run_all(steps: &[Step], sample: &Sample, draw: RngKey) -> Vec<Sample> {
    let mut out = Collect::default();
    Runner::new(steps, 0).run(sample, draw, &mut (), &mut out).unwrap();
    out.0
}

/// Runs one step on a tensor and returns the tensor that comes out.
pub(crate) fn run(toml: &str, input: Tensor) -> Tensor {
    run_seeded(toml, input, 0)
}

pub(crate) fn run_seeded(toml: &str, input: Tensor, seed: u64) -> Tensor {
    let mut out = run_all(&[step(toml)], &sample(Value::Tensor(input)), RngKey { seed, epoch: 0 });
    assert_eq!(out.len(), 1);
    match out.pop().unwrap().fields.pop().unwrap().value {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.view().elements_or_copy::<f32>(&mut Vec::new()).unwrap().to_vec()
}

/// The largest difference of two byte tensors.
pub(crate) fn difference_max(a: TensorView<'_>, b: TensorView<'_>) -> u8 {
    assert_eq!(a.spec, b.spec);
    a.data.iter().zip(b.data).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}

pub(crate) fn bytes_value(bytes: Vec<u8>) -> Value {
    Value::Bytes(Bytes::from(bytes))
}

/// Whether numbers are spread evenly over a range: the largest distance of the two distributions (Kolmogorov and Smirnov).
pub(crate) fn assert_even(mut numbers: Vec<f64>, low: f64, high: f64) {
    numbers.sort_by(f64::total_cmp);
    let count = numbers.len() as f64;
    let distance = |(place, number): (usize, &f64)| ((number - low) / (high - low) - place as f64 / count).abs();
    let furthest = numbers.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(furthest < 1.63 / count.sqrt() + 1.0 / count, "{furthest} of {count} in {low} to {high}");
}

/// How far two distributions, of thousands of draws each, may be apart.
const APART_MAX: f64 = 0.035;

/// Compares numbers of each name with the quantiles that a golden file has for this call: lines of a call, a name and 0 %, 5 %, ..., 100 %.
/// Names that were not drawn are left out.
pub(crate) fn assert_drawn_as(golden: &str, call: &str, drawn: &[(&str, Vec<f64>)]) {
    let lines = golden.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let lines: Vec<Vec<&str>> = lines.filter(|line| line[0] == call).collect();
    assert!(!lines.is_empty(), "{call} is not in the golden file");
    for line in lines {
        let name = line[1];
        let Some((_, numbers)) = drawn.iter().find(|(drawn, _)| *drawn == name) else { continue };
        let quantiles: Vec<f64> = line[2..].iter().map(|number| number.parse().unwrap()).collect();
        let range = quantiles[20] - quantiles[0];
        let rounding = 1e-3 * range;
        for (place, quantile) in quantiles.iter().enumerate() {
            let share = |within: &dyn Fn(f64) -> bool| {
                numbers.iter().filter(|number| within(**number)).count() as f64 / numbers.len() as f64
            };
            let (below, up_to) =
                (share(&|number| number < quantile - rounding), share(&|number| number <= quantile + rounding));
            let expected = place as f64 / 20.0;
            let fits = below <= expected + APART_MAX && up_to >= expected - APART_MAX;
            assert!(fits, "{call}: {name} is below {quantile} {below}, up to it {up_to}, not {expected}");
        }
        let outside = |number: &&f64| **number < quantiles[0] - 0.05 * range || **number > quantiles[20] + 0.05 * range;
        assert_eq!(numbers.iter().find(outside), None, "{call}: {name} is outside of {quantiles:?}");
    }
}
