//! The runner: order, draws, slots, expansions.

use forebay_codec::image::{Encoding, PngEffort, Subsampling, encode, headers_read};
use forebay_codec::{Tensor, TensorSpec};
use forebay_pipeline::{Field, RngKey, Runner, Sample, SampleView, Sink, StepError, Value, preset};

use crate::support::{Collect, bytes_value, picture, run_all, sample, step};

fn jpeg() -> Vec<u8> {
    let photo = picture(300, 400, 3, |row, column, channel| (row / 2 + column / 3 + channel * 40) as u8);
    encode(photo.view(), &Encoding::Jpeg { quality: 90, subsampling: Subsampling::Both, progressive: false }).unwrap()
}

fn tensor(sample: &Sample) -> &Tensor {
    match sample.field("image").unwrap() {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_crop_is_the_same_wherever_the_pipeline_is_split() {
    let pipeline = preset("cv").unwrap();
    let input = sample(bytes_value(jpeg()));
    let draw = RngKey { seed: 3, epoch: 1 };
    let whole = run_all(pipeline.steps(), &input, draw);
    for split in 0..=3 {
        let kept = run_all(&pipeline.steps()[..split], &input, RngKey::default());
        let mut out = Collect::default();
        Runner::new(&pipeline.steps()[split..], split).run(&kept[0], draw, &mut (), &mut out).unwrap();
        assert_eq!(tensor(&out.0[0]), tensor(&whole[0]), "split {split}");
    }
}

#[test]
fn seed_epoch_and_sample_decide_the_draw() {
    let steps = [step("op = \"random_crop\"\nsize = 16")];
    let mut input = sample(Value::Tensor(picture(200, 200, 3, |row, column, _| (row ^ column) as u8)));
    let out = |input: &Sample, seed, epoch| tensor(&run_all(&steps, input, RngKey { seed, epoch })[0]).clone();
    let first = out(&input, 1, 1);
    assert_eq!(first, out(&input, 1, 1));
    assert_ne!(first, out(&input, 2, 1));
    assert_ne!(first, out(&input, 1, 2));
    input.index += 1;
    assert_ne!(first, out(&input, 1, 1));
}

#[test]
fn a_picture_and_its_mask_are_cut_alike() {
    let content = picture(60, 60, 3, |row, column, _| (row * 4 + column) as u8);
    let mut input = sample(Value::Tensor(content.clone()));
    input.fields.push(Field { name: "mask".into(), value: Value::Tensor(content) });
    let crop = step("op = \"random_crop\"\nsize = 8\nfields = [\"image\", \"mask\"]");
    let out = run_all(&[crop], &input, RngKey { seed: 9, epoch: 0 });
    let Some(Value::Tensor(mask)) = out[0].field("mask") else { panic!("a mask") };
    assert_eq!(tensor(&out[0]), mask);
}

#[test]
fn a_mask_of_16_bits_is_moved_unchanged() {
    let ids: Vec<u16> = (0..60 * 40).map(|index| index * 27).collect();
    let deep = Tensor::from_elements(&[60, 40, 1], &ids).unwrap();
    let file = encode(deep.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    let decode = step("op = \"decode_mask\"\nkeep_depth = true");
    let mask = |steps: &[forebay_pipeline::Step], file: &[u8]| -> (Vec<usize>, Vec<u16>) {
        let out = run_all(steps, &sample(bytes_value(file.to_vec())), RngKey::default());
        let tensor = tensor(&out[0]);
        (tensor.spec().shape.dims().to_vec(), tensor.view().elements::<u16>().unwrap().to_vec())
    };
    assert_eq!(mask(std::slice::from_ref(&decode), &file), (vec![60, 40], ids.clone()));
    let half = step("op = \"resize\"\nsize = [30, 20]");
    let flip = step("op = \"random_horizontal_flip\"\np = 1.0");
    // The value under the center of each pixel, mirrored.
    let expected: Vec<u16> =
        (0..30).flat_map(|y| (0..20).rev().map(move |x| ((y * 2 + 1) * 40 + x * 2 + 1) as u16 * 27)).collect();
    assert_eq!(mask(&[decode.clone(), half, flip], &file), (vec![30, 20], expected));
    let crop = step("op = \"center_crop\"\nsize = 2");
    let middle = [29 * 40 + 19, 29 * 40 + 20, 30 * 40 + 19, 30 * 40 + 20].map(|index: u16| index * 27);
    assert_eq!(mask(&[decode.clone(), crop], &file), (vec![2, 2], middle.to_vec()));
    // One of 8 bits has its own values, not their shades; without `keep_depth` one of 16 bits is refused.
    let gray = picture(2, 2, 1, |row, column, _| (row * 100 + column) as u8);
    let shallow = encode(gray.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    assert_eq!(mask(&[decode], &shallow).1, [0, 1, 100, 101]);
    let mut runner = Runner::new(&[step("op = \"decode_mask\"")], 0);
    let refused = runner.run(&sample(bytes_value(file)), RngKey::default(), &mut (), &mut Collect::default());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("mask of 16 bits") && message.contains("`keep_depth = true`"), "{message}");
}

/// A sink that offers a slot for every tensor.
struct SlotSink {
    buffer: Vec<u8>,
    written: Option<TensorSpec>,
    accepted: usize,
}

impl Sink for SlotSink {
    fn has_slots(&self) -> bool {
        true
    }

    fn slot(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        assert_eq!(field, "image");
        assert!(self.written.replace(*spec).is_none(), "only the last step is offered a slot");
        Ok(Some(&mut self.buffer[..spec.bytes()]))
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        assert_eq!(sample.fields.len(), 0, "what was written is not handed over again");
        self.accepted += 1;
    }
}

#[test]
fn the_last_step_writes_into_its_slot() {
    let pipeline = preset("cv").unwrap();
    let input = sample(bytes_value(jpeg()));
    let bytes = 224 * 224 * 3 * 4;
    let mut sink = SlotSink { buffer: vec![0; bytes], written: None, accepted: 0 };
    let mut runner = Runner::new(pipeline.steps(), 0);
    let expected = run_all(pipeline.steps(), &input, RngKey::default());
    for _ in 0..3 {
        sink.written = None;
        runner.run(&input, RngKey::default(), &mut (), &mut sink).unwrap();
        assert_eq!(sink.buffer[..bytes], tensor(&expected[0]).data()[..]);
    }
    assert_eq!(sink.accepted, 3);
}

#[test]
fn one_sample_may_become_many() {
    let input = sample(Value::Tensor(picture(25, 37, 3, |row, column, _| (row / 10 * 50 + column / 10) as u8)));
    let steps = [step("op = \"tiles\"\nsize = 10"), step("op = \"center_pixels\"")];
    let out = run_all(&steps, &input, RngKey::default());
    let keys: Vec<&str> = out.iter().map(|sample| &*sample.key).collect();
    assert_eq!(keys, ["a#0", "a#1", "a#2", "a#3", "a#4", "a#5"]);
    let mut numbers: Vec<u64> = out.iter().map(|sample| sample.index).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 6);
    let first = |number: usize| crate::support::floats(tensor(&out[number]))[0];
    assert!((first(5) - (52.0 / 127.5 - 1.0)).abs() < 1e-6);
    assert!(run_all(&steps, &sample(Value::Tensor(picture(9, 50, 3, |_, _, _| 0))), RngKey::default()).is_empty());
}

#[test]
fn an_error_names_sample_and_step() {
    let fail = |steps: &[forebay_pipeline::Step], input: &Sample| {
        Runner::new(steps, 0).run(input, RngKey::default(), &mut (), &mut Collect::default()).unwrap_err().to_string()
    };
    let message = fail(&[step("op = \"decode\"")], &sample(bytes_value(b"GIF89a no".to_vec())));
    assert!(message.starts_with("sample `a`: step `decode`: "), "{message}");
    let small = sample(Value::Tensor(picture(10, 20, 3, |_, _, _| 0)));
    let message = fail(&[step("op = \"random_crop\"\nsize = 16")], &small);
    assert!(message.contains("an image of 20x10 is too small for a crop of 16x16"), "{message}");
}

#[test]
fn a_large_picture_is_decoded_smaller_but_not_too_small() {
    let decoded = |least: usize| {
        let decode = step(&format!("op = \"decode\"\nmin_shorter_side = {least}"));
        tensor(&run_all(&[decode], &sample(bytes_value(jpeg())), RngKey::default())[0]).clone()
    };
    // It has 300 rows and 400 columns.
    for (least, dims) in
        [(38, [38, 50, 3]), (39, [75, 100, 3]), (150, [150, 200, 3]), (151, [300, 400, 3]), (999, [300, 400, 3])]
    {
        assert_eq!(decoded(least).spec().shape.dims(), dims, "{least}");
    }
    // It shows the same: a slope of one step down for two rows, and one to the right for three columns.
    let half = decoded(150);
    let found = half.view().elements::<u8>().unwrap();
    for (row, column) in [(10, 10), (75, 100), (140, 90)] {
        let expected = (row * 2 / 2 + column * 2 / 3) as f64;
        assert!((f64::from(found[(row * 200 + column) * 3]) - expected).abs() < 4.0, "{row}, {column}");
    }
}

#[test]
fn a_header_is_read_once_per_sample() {
    let gray = picture(90, 80, 1, |row, column, _| (row / 30 + column / 40) as u8);
    let mask = encode(gray.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    let (crop, resized) = ("op = \"random_crop\"\nsize = 30", "op = \"random_resized_crop\"\nsize = 40");
    let chains: [(&[&str], &[u8]); 8] = [
        (&["op = \"decode\""], &jpeg()),
        (&["op = \"decode\"", crop], &jpeg()),
        (&["op = \"decode\"", resized], &jpeg()),
        (&["op = \"decode\"\nmin_shorter_side = 70"], &jpeg()),
        (&["op = \"decode\"\nmin_shorter_side = 70", crop], &jpeg()),
        (&["op = \"decode\"\ncolor = \"gray\"\nkeep_depth = true"], &mask),
        (&["op = \"decode_mask\""], &mask),
        (&["op = \"decode_mask\"", crop], &mask),
    ];
    for (chain, file) in chains {
        let steps: Vec<_> = chain.iter().map(|toml| step(toml)).collect();
        let input = sample(bytes_value(file.to_vec()));
        for mut runner in [Runner::new(&steps, 0), Runner::step_by_step(&steps, 0)] {
            let mut sink = SlotSink { buffer: vec![0; 1 << 20], written: None, accepted: 0 };
            let before = headers_read();
            runner.run(&input, RngKey::default(), &mut (), &mut sink).unwrap();
            assert_eq!((headers_read() - before, sink.accepted), (1, 1), "{chain:?}");
        }
    }
}

/// Every chain of steps that is done as one somewhere gives the same as its steps one by one.
#[test]
fn steps_done_as_one_give_the_same_bits() {
    let steps = |names: &[&str]| -> Vec<forebay_pipeline::Step> {
        let toml = |name: &&str| match *name {
            "random_resized_crop" => "op = \"random_resized_crop\"\nsize = 40".to_owned(),
            "random_crop" => "op = \"random_crop\"\nsize = 30".to_owned(),
            "center_crop" => "op = \"center_crop\"\nsize = 31".to_owned(),
            "decode-smaller" => "op = \"decode\"\nmin_shorter_side = 70".to_owned(),
            name => format!("op = \"{name}\""),
        };
        names.iter().map(|name| step(&toml(name))).collect()
    };
    let chains: [&[&str]; 12] = [
        &["decode-smaller", "random_crop"],
        &["decode-smaller", "random_resized_crop", "normalize"],
        &["decode", "random_crop"],
        &["decode", "center_crop", "center_pixels"],
        &["decode", "random_resized_crop"],
        &["decode", "random_resized_crop", "random_horizontal_flip", "normalize", "to_chw"],
        &["decode", "random_horizontal_flip", "center_pixels", "to_chw"],
        &["decode", "normalize", "to_chw"],
        &["decode", "center_pixels", "random_crop", "to_chw"],
        &["decode", "normalize", "center_crop"],
        &["decode", "grayscale", "center_pixels", "random_crop"],
        &["decode", "grayscale", "random_horizontal_flip", "center_pixels", "to_chw"],
    ];
    let file = jpeg();
    for chain in chains {
        let steps = steps(chain);
        let (mut fused, mut plain) = (Runner::new(&steps, 2), Runner::step_by_step(&steps, 2));
        for index in 0..12 {
            let input = Sample { index, ..sample(bytes_value(file.clone())) };
            let draw = RngKey { seed: 4, epoch: 1 };
            let (mut together, mut apart) = (Collect::default(), Collect::default());
            fused.run(&input, draw, &mut (), &mut together).unwrap();
            plain.run(&input, draw, &mut (), &mut apart).unwrap();
            assert_eq!(tensor(&together.0[0]), tensor(&apart.0[0]), "{chain:?}");
        }
    }
}
