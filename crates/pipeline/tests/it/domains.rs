//! Sound, signals, arrays and pictures through their presets, from the bytes of files to tensors.

use forebay_codec::audio::{AudioOptions, decode};
use forebay_codec::image::{Encoding, PngEffort, encode};
use forebay_codec::signal::write_hdf5;
use forebay_codec::{DType, Tensor, TensorSpec, TensorView, npy};
use forebay_pipeline::{
    Error, Field, Pipeline, RngKey, Runner, Sample, SampleView, Sink, StepError, Value, preset, preset_names,
    preset_text,
};

use crate::data::data_folder;
use crate::support::{bytes_value, run_all};

fn sample(pipeline: &Pipeline, bytes: Vec<u8>) -> Sample {
    let name = pipeline.source().field.as_str().into();
    Sample { key: "a".into(), index: 5, fields: vec![Field { name, value: bytes_value(bytes) }] }
}

/// The tensors that come out for the bytes of one file.
fn tensors(pipeline: &Pipeline, bytes: Vec<u8>) -> Vec<Tensor> {
    let out = run_all(pipeline.steps(), &sample(pipeline, bytes), RngKey::default());
    let tensors = out.into_iter().map(|mut sample| match sample.fields.pop().unwrap().value {
        Value::Tensor(tensor) => tensor,
        other => panic!("no tensor but {other:?}"),
    });
    tensors.collect()
}

fn split_names(pipeline: &Pipeline) -> Vec<String> {
    pipeline.splits().into_iter().map(|split| split.name).collect()
}

#[test]
fn the_splits_are_called_as_in_the_paper() {
    let audio = ["unprocessed", "concatenated", "decoded", "spectrogram-encoded"];
    assert_eq!(split_names(&preset("flac").unwrap()), audio);
    assert_eq!(split_names(&preset("mp3").unwrap()), audio);
    assert_eq!(split_names(&preset("nilm").unwrap()), ["unprocessed", "concatenated", "decoded", "aggregated"]);
    assert!(["flac", "mp3", "nilm"].iter().all(|name| preset_names().any(|ready| ready == *name)));
}

#[test]
fn speech_becomes_tensorflows_spectrogram() {
    let Some(golden) = data_folder("golden") else { return };
    for (pipeline, source, name, largest) in [
        ("flac", "audio-flac/librispeech/1069-133699-0000.flac", "1069-133699-0000_flac", 1e-3),
        ("flac", "audio-flac/librispeech/1998-15444-0001.flac", "1998-15444-0001_flac", 1e-3),
        ("mp3", "audio-mp3/librispeech-derived/1069-133699-0000.mp3", "1069-133699-0000_mp3", 0.3),
    ] {
        let bytes = std::fs::read(golden.parent().unwrap().join(source)).unwrap();
        let found = tensors(&preset(pipeline).unwrap(), bytes);
        let file = std::fs::read(golden.join(format!("logmel-{name}.npy"))).unwrap();
        let start = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        let expected: Vec<f32> = file[start..].as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].spec().shape.dims(), [expected.len() / 80, 80]);
        let found = found[0].view().elements::<f32>().unwrap();
        let difference = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= largest, "{name}: {difference}");
    }
}

#[test]
fn audio_of_any_rate_comes_out_at_the_one_asked_for() {
    let Some(folder) = data_folder("audio-flac") else { return };
    let pipeline = preset("flac").unwrap();
    // 44.1 and 22.05 kHz, stereo and mono.
    for name in ["jfk.flac", "ietf-testbench/subset_21_-_samplerate_22050Hz.flac"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let mut samples = Vec::new();
        let stored = decode(&bytes, &AudioOptions::default(), &mut samples).unwrap();
        let seconds = samples.len() as f64 / f64::from(stored.rate_hz);
        let found = tensors(&pipeline, bytes);
        let frames = (seconds * 100.0 - 1.0) as usize;
        assert_eq!(found[0].spec().shape.dims(), [frames, 80], "{name}");
    }
}

/// Two channels of raw `int16`: a voltage, and a current of half a radian behind it.
fn raw_recording(samples: usize) -> Vec<u8> {
    let wave =
        |n: usize, level: f64, phase: f64| (level * (std::f64::consts::TAU * n as f64 / 128.0 - phase).sin()) as i16;
    (0..samples).flat_map(|n| [wave(n, 9000.0, 0.0), wave(n, 3000.0, 0.5)]).flat_map(i16::to_le_bytes).collect()
}

/// The NILM pipeline for raw numbers.
fn raw_pipeline(power: &str) -> Pipeline {
    let text = preset_text("nilm").unwrap();
    let raw = "format = \"raw\"\nchannels = [0, 1]\nraw_element = \"i16\"\nfactors = [0.05, 0.002]";
    let text =
        text.replace("channels = [\"voltage\", \"current1\"]", raw).replace("\"reactive\"", &format!("\"{power}\""));
    Pipeline::from_toml("nilm", &text).unwrap()
}

#[test]
fn a_recording_becomes_windows_and_windows_become_features() {
    // Two windows and a rest, which is dropped.
    let bytes = raw_recording(64_000 * 2 + 1000);
    for (power, expected) in [("reactive", 0.5_f64.sin()), ("active", 0.5_f64.cos()), ("apparent", 1.0)] {
        let found = tensors(&raw_pipeline(power), bytes.clone());
        assert_eq!(found.len(), 2);
        for window in &found {
            assert_eq!((window.spec().dtype, window.spec().shape.dims()), (DType::F64, &[3, 500][..]));
            let values = window.view().elements::<f64>().unwrap();
            // Effective values of 450 V and 6 A at their peaks.
            let watts = 450.0 * 6.0 / 2.0 * expected;
            assert!(values[..500].iter().all(|value| (value - watts).abs() < 2.0), "{power}: {}", values[0]);
            assert!(values[500..1000].iter().all(|value| (value - 6.0 / 2.0_f64.sqrt()).abs() < 0.01));
            assert!(values[1000..].iter().all(|value| value.abs() < 0.1));
        }
    }
}

#[test]
fn windows_have_keys_and_numbers_of_their_own() {
    let pipeline = raw_pipeline("reactive");
    let out = run_all(&pipeline.steps()[..1], &sample(&pipeline, raw_recording(64_000 * 2)), RngKey::default());
    let keys: Vec<&str> = out.iter().map(|sample| &*sample.key).collect();
    assert_eq!(keys, ["a#0", "a#1"]);
    assert_eq!(out[1].index, out[0].index + 1);
    assert_eq!(tensors(&pipeline, raw_recording(63_999)).len(), 0);
}

#[test]
fn a_whole_recording_is_one_tensor() {
    let Some(folder) = data_folder("electrical/itsc-motor-current") else { return };
    let text = "name = \"motor\"\n[source]\nfield = \"signal\"\nlabel = \"none\"\n[[step]]\nop = \"decode_signal\"\nchannels = [0, 1, 2]";
    let pipeline = Pipeline::from_toml("motor", text).unwrap();
    let found = tensors(&pipeline, std::fs::read(folder.join("SC_HLT_001.csv")).unwrap());
    assert_eq!(found[0].spec().shape.dims(), [3, 1000]);
    let values = found[0].view().elements::<f64>().unwrap();
    assert_eq!([values[0], values[1000]].map(|value| format!("{value:.6}")), ["-1.151580", "2.631864"]);
}

#[test]
fn parameters_that_make_no_sense_are_named() {
    for (step, parameter) in [
        ("op = \"log_mel_spectrogram\"\nsample_rate = 7000", "f_max"),
        ("op = \"log_mel_spectrogram\"\nsample_rate = 96000", "window_milliseconds"),
        ("op = \"log_mel_spectrogram\"\nn_fft = 1023", "n_fft"),
        ("op = \"log_mel_spectrogram\"\nn_mels = 0", "n_mels"),
    ] {
        let text =
            format!("name = \"a\"\n[source]\nfield = \"audio\"\n[[step]]\nop = \"decode_audio\"\n[[step]]\n{step}");
        let error = Pipeline::from_toml("a", &text).unwrap_err().to_string();
        assert!(error.contains(parameter), "{error}");
    }
    for (step, parameter) in [
        ("op = \"signal_windows\"\nwindow = 0", "window"),
        ("op = \"signal_windows\"\nperiod = 1", "period"),
        ("op = \"signal_windows\"\nfactors = [1.0]", "factors"),
        ("op = \"signal_windows\"\nwidth = 3", "width"),
        ("op = \"decode_signal\"\nchannels = []", "channels"),
        ("op = \"decode_audio\"\nsample_rate = 0", "rate"),
    ] {
        let text = format!("name = \"a\"\n[source]\nfield = \"signal\"\n[[step]]\n{step}");
        let error = Pipeline::from_toml("a", &text).unwrap_err().to_string();
        assert!(error.contains(parameter), "{error}");
    }
    // A picture is no sound.
    let text =
        "name = \"a\"\n[source]\nfield = \"audio\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"log_mel_spectrogram\"";
    assert!(Pipeline::from_toml("a", text).unwrap_err().to_string().contains("int16[samples]"));
}

/// The synthetic pipeline for files of this type.
fn synthetic(kind: &str) -> Pipeline {
    let text = preset_text("synthetic").unwrap().replace("float32[2500, ?]", kind);
    Pipeline::from_toml("synthetic", &text).unwrap()
}

#[test]
fn arrays_of_every_type_become_root_mean_squares() {
    assert_eq!(split_names(&preset("synthetic").unwrap()), ["unprocessed", "concatenated", "decoded", "aggregated"]);
    assert_eq!(preset("synthetic").unwrap().output().to_string(), "tensor: float32[?]");
    for dtype in DType::ALL {
        let pipeline = synthetic(&format!("{dtype}[2500, 2]"));
        let spec = TensorSpec::new(dtype, &[2500, 2]);
        let data = vec![1; spec.bytes()];
        let found = tensors(&pipeline, npy::encode(TensorView { spec, data: &data }));
        assert_eq!(found[0].spec().shape.dims(), [10]);
        let wide = if dtype == DType::F32 { DType::F32 } else { DType::F64 };
        assert_eq!(found[0].spec().dtype, wide);
        assert_eq!(pipeline.output().field("tensor").unwrap().fixed_spec(), Some(*found[0].spec()));
        if let Some(values) = found[0].view().elements::<f64>()
            && dtype == DType::U16
        {
            assert!(values.iter().all(|value| value.to_bits() == 257.0_f64.to_bits()), "{values:?}");
        }
    }
}

#[test]
fn a_file_of_another_type_or_none_is_an_error_that_says_so() {
    let pipeline = preset("synthetic").unwrap();
    let error = |bytes: Vec<u8>| {
        let mut runner = forebay_pipeline::Runner::new(pipeline.steps(), 0);
        let mut out = crate::support::Collect::default();
        runner.run(&sample(&pipeline, bytes), RngKey::default(), &mut (), &mut out).unwrap_err().to_string()
    };
    let file = |dims: &[usize]| {
        let spec = TensorSpec::new(DType::F32, dims);
        npy::encode(TensorView { spec, data: &vec![0; spec.bytes()] })
    };
    let message = error(file(&[2499, 1]));
    assert!(message.contains("sample `a`: step `decode_npy`: it holds float32[2499, 1], but"), "{message}");
    assert!(message.contains("float32[2500, ?]\nhint: "), "{message}");
    let whole = file(&[2500, 1]);
    let message = error(whole[..9000].to_vec());
    assert!(message.contains("NPY data is truncated at byte `9000`"), "{message}");
    assert!(message.contains("copy or create the file again"), "{message}");
    assert!(error(b"no array".to_vec()).contains("does not begin as one"));
    for (step, parameter) in [("op = \"decode_npy\"\ntype = \"text\"", "`type`"), ("op = \"decode_npy\"", "`type`")] {
        let text = format!("name = \"a\"\n[source]\nfield = \"tensor\"\n[[step]]\n{step}");
        let message = Pipeline::from_toml("a", &text).unwrap_err().to_string();
        assert!(message.contains(parameter), "{message}");
    }
    let text = preset_text("synthetic").unwrap().replace("period = 500", "period = 0");
    assert!(Pipeline::from_toml("a", &text).unwrap_err().to_string().contains("`period` is `0`"));
}

#[test]
fn pictures_are_made_gray_where_each_pipeline_says() {
    let Some(folder) = data_folder("images-jpeg") else { return };
    let bytes = std::fs::read(folder.join("Abyssinian_116.jpg")).unwrap();
    for (name, splits, gray) in [
        ("cv-gray-before-centering", ["decoded", "resized", "grayscaled", "pixel-centered"], [3, 3, 1, 1]),
        ("cv-gray-after-centering", ["decoded", "resized", "pixel-centered", "grayscaled"], [3, 3, 3, 1]),
        ("cv-gray-before-resize", ["decoded", "grayscaled", "resized", "pixel-centered"], [3, 1, 1, 1]),
    ] {
        let pipeline = preset(name).unwrap();
        assert_eq!(split_names(&pipeline)[2..], splits, "{name}");
        assert_eq!(pipeline.output().to_string(), "image: float32[224, 224, 1], label: int");
        for (steps, channels) in gray.into_iter().enumerate() {
            let out = run_all(&pipeline.steps()[..=steps], &sample(&pipeline, bytes.clone()), RngKey::default());
            let Value::Tensor(tensor) = &out[0].fields[0].value else { panic!("an image") };
            assert_eq!(tensor.spec().shape.dims()[2], channels, "{name} after {} steps", steps + 1);
        }
        assert_eq!(tensors(&pipeline, bytes.clone())[0].spec().shape.dims(), [224, 224, 1]);
    }
}

#[test]
fn deep_pictures_are_reduced_to_8_bit_when_they_are_decoded() {
    let samples: Vec<u16> = (0..300 * 280 * 3).map(|index| (index * 7919 % 65_536) as u16).collect();
    let picture = Tensor::from_elements(&[300, 280, 3], &samples).unwrap();
    let file = encode(picture.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    let pipeline = preset("cv2-png").unwrap();
    assert_eq!(pipeline.output().to_string(), "image: float32[224, 224, 3]");
    let out = run_all(&pipeline.steps()[..1], &sample(&pipeline, file.clone()), RngKey::default());
    let Value::Tensor(decoded) = &out[0].fields[0].value else { panic!("an image") };
    assert_eq!(decoded.spec().dtype, DType::U8);
    assert!(decoded.data().iter().zip(&samples).all(|(byte, deep)| *byte == (deep >> 8) as u8));
    assert_eq!(tensors(&pipeline, file)[0].spec().shape.dims(), [224, 224, 3]);
    assert_eq!(split_names(&pipeline), split_names(&preset("cv").unwrap()));
    assert_eq!(split_names(&preset("cv2-jpg").unwrap()), split_names(&pipeline));
}

/// Grants so many bytes, and notes what was asked for.
struct Grants {
    max_bytes: usize,
    asked: Vec<usize>,
}

impl Sink for Grants {
    fn reserve(&mut self, bytes: usize) -> Result<(), StepError> {
        self.asked.push(bytes);
        let (limit_bytes, memory_bytes) = (self.max_bytes as u64, self.max_bytes as u64);
        if bytes <= self.max_bytes {
            return Ok(());
        }
        Err(StepError::Budget { bytes: bytes as u64, limit_bytes, memory_bytes })
    }

    fn accept(&mut self, _sample: SampleView<'_>) {}
}

/// Sound and signals that are much larger than their files ask for memory before they take it.
#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_is_there() {
    let mut frame = vec![0; 417];
    frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0xc4]);
    let mp3 = frame.repeat(2000);
    let counts: Vec<i16> = vec![0; 1 << 20];
    let hdf5 = write_hdf5(&[("voltage", &counts, 1.0), ("current1", &counts, 1.0)]).unwrap();
    let csv = "voltage,current1\n".to_owned() + &"1,2\n".repeat(1 << 19);
    let windows = preset("nilm").unwrap();
    for (what, pipeline, file) in
        [("mp3", preset("mp3").unwrap(), mp3), ("hdf5", windows.clone(), hdf5), ("csv", windows, csv.into_bytes())]
    {
        let sample = sample(&pipeline, file);
        let mut runner = Runner::new(pipeline.steps(), 0);
        let mut little = Grants { max_bytes: 4_000_000, asked: Vec::new() };
        let error = runner.run(&sample, RngKey::default(), &mut (), &mut little).unwrap_err();
        let is_budget = |source: &StepError| matches!(source, StepError::Budget { .. });
        assert!(matches!(&error, Error::Step { source, .. } if is_budget(source)), "{what}: {error}");
        let mut enough = Grants { max_bytes: 1 << 30, asked: Vec::new() };
        runner.run(&sample, RngKey::default(), &mut (), &mut enough).unwrap();
        assert!(enough.asked.iter().max() > Some(&4_000_000), "{what}: {:?}", enough.asked);
    }
}
