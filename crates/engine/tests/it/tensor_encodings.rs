//! Data sets whose tensors are kept encoded: what a trainer gets is what it gets of raw ones, and what is lossy keeps its bound.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use forebay_codec::{DType, Tensor, TensorSpec, npy};
use forebay_engine::data::Dataset;
use forebay_engine::export::export_tar;
use forebay_engine::load::{Column, LoadOptions, OnError};
use forebay_pipeline::{Pipeline, Strategy, preset};
use tempfile::TempDir;

use crate::data::data_folder;
use crate::support::{build, built, local, options, photos, resealed, shards, start};

const LOSSLESS: [&str; 10] = [
    "shuffle-zstd-3",
    "delta-zstd-1",
    "delta-shuffle-zstd-fast-1",
    "shuffle-lz4",
    "delta-lz4",
    "delta-shuffle-lz4-hc-4",
    "pco-8",
    "bitpack",
    "sparse",
    "rle",
];

fn load_options() -> LoadOptions {
    LoadOptions { threads: 2, batch_size: 3, seed: 5, ..LoadOptions::default() }
}

/// The tensor in `field` of each sample, by its key.
fn loaded(dataset: &Arc<Dataset>, field: &str) -> BTreeMap<String, Tensor> {
    let mut found = BTreeMap::new();
    for batch in start(shards(dataset), load_options(), 0).unwrap() {
        let batch = batch.unwrap();
        for (index, key) in batch.keys.iter().enumerate() {
            let tensor = match batch.column(field) {
                Some(Column::Dense { spec, data }) => {
                    Tensor::new(*spec, data[index * spec.bytes()..][..spec.bytes()].to_vec()).unwrap()
                }
                Some(Column::Ragged(tensors)) => tensors[index].clone(),
                _ => panic!("no tensors in `{field}`"),
            };
            assert!(found.insert(key.to_string(), tensor).is_none(), "`{key}` came twice");
        }
    }
    found
}

/// A pipeline that only reads arrays of this type, and a folder of some.
fn arrays(dtype: DType) -> (Pipeline, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..7_usize {
        let rows = [0, 1, 300, 40, 1000, 3, 77][number];
        let values = (0..rows * 3).map(|index| if index % 5 == 0 { (index * 7 + number) as f64 % 90.0 } else { 0.0 });
        // Below zero, where there is something, and between whole numbers.
        let of_type = |value: f64| match dtype {
            DType::U8 | DType::U16 => value,
            DType::I16 | DType::I32 | DType::I64 => value - 9.0,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => value / 3.0,
        };
        let spec = TensorSpec::new(dtype, &[rows, 3]);
        let mut data = vec![0; spec.bytes()];
        data.chunks_exact_mut(dtype.bytes()).zip(values).for_each(|(to, value)| dtype.write(of_type(value), to));
        let array = Tensor::new(spec, data);
        std::fs::write(folder.path().join(format!("{number}.npy")), npy::encode(array.unwrap().view())).unwrap();
    }
    let text = format!(
        "name = \"arrays\"\n[source]\nfiles = \"**/*.npy\"\nfield = \"array\"\nlabel = \"none\"\n\n[[step]]\nop = \"decode_npy\"\ntype = \"{dtype}[?, 3]\"\n"
    );
    (Pipeline::from_toml("arrays", &text).unwrap(), folder)
}

#[test]
fn every_encoding_and_type_gives_what_raw_tensors_give() {
    for dtype in DType::ALL {
        let (pipeline, folder) = arrays(dtype);
        let (_raw_output, raw) = built(&pipeline, "decoded", folder.path(), 2);
        let expected = loaded(&raw, "array");
        assert_eq!(expected.len(), 7);
        for name in LOSSLESS {
            let strategy = format!("decoded+{name}");
            let holds = (name != "bitpack" || !dtype.is_float()) && (!name.contains("shuffle") || dtype != DType::U8);
            let parsed = Strategy::parse(&pipeline, &strategy);
            if !holds {
                let error = parsed.unwrap_err().to_string();
                assert!(error.contains("can hold nothing") && error.contains(&dtype.to_string()), "{error}");
                continue;
            }
            assert!(!parsed.unwrap().is_lossy());
            let (_output, dataset) = built(&pipeline, &strategy, folder.path(), 2);
            assert_eq!(loaded(&dataset, "array"), expected, "{strategy} of {dtype}");
            assert!(dataset.manifest().bytes < raw.manifest().bytes, "{strategy} of {dtype}");
            let encodings = &dataset.manifest().encodings;
            assert_eq!((encodings.len(), &*encodings[0].field, &*encodings[0].encoding), (1, "array", name));
            assert_eq!((encodings[0].max_absolute_error, encodings[0].max_relative_error), (None, None));
        }
        assert!(raw.manifest().encodings.is_empty());
    }
}

#[test]
fn an_encoding_joins_others_and_leaves_alone_what_it_cannot_hold() {
    let folder = photos(6);
    let pipeline = preset("cv").unwrap();
    // Steps follow, some of them random: what comes out is the same to the bit.
    let (_output, raw) = built(&pipeline, "resized", folder.path(), 2);
    let expected = loaded(&raw, "image");
    for name in
        ["resized+delta-zstd-3", "resized+rle+zstd-3", "resized+pco-4+gzip-1", "pixel-centered+shuffle-zstd-3-record"]
    {
        // A compression of records is no part of an encoding of tensors.
        if name.ends_with("-record") {
            assert!(Strategy::parse(&pipeline, name).unwrap_err().to_string().contains("too many words"));
            continue;
        }
        let (_output, dataset) = built(&pipeline, name, folder.path(), 2);
        assert_eq!(loaded(&dataset, "image"), expected, "{name}");
    }
    // The pictures are all that an encoding of tensors could hold, and are pictures already.
    let error = Strategy::parse(&pipeline, "resized+png+pco-8").unwrap_err().to_string();
    assert!(error.contains("`pco-8` can hold nothing"), "{error}");
    let error = Strategy::parse(&pipeline, "resized+pco-8+bitpack").unwrap_err().to_string();
    assert!(error.contains("is not a storage format"), "{error}");
    let error = Strategy::parse(&pipeline, "concatenated+pco-8").unwrap_err().to_string();
    assert!(error.contains("can hold nothing"), "{error}");
}

#[test]
fn a_bound_is_kept_and_in_the_manifest() {
    for dtype in [DType::F32, DType::F64] {
        let (pipeline, folder) = arrays(dtype);
        let (_output, raw) = built(&pipeline, "decoded", folder.path(), 1);
        let expected = loaded(&raw, "array");
        for (name, absolute, relative) in [
            ("bfloat16", 2_f64.powi(-134), 1.0 / 256.0),
            ("bfloat16-shuffle-zstd-3", 2_f64.powi(-134), 1.0 / 256.0),
            ("round-absolute-0.001-pco-8", 0.001, 0.0),
            ("round-relative-0.01-shuffle-zstd-3", 0.0, 0.01),
            ("round-absolute-2-sparse", 2.0, 0.0),
        ] {
            if dtype == DType::F64 && name.starts_with("bfloat16") {
                continue;
            }
            let strategy = format!("decoded+{name}");
            assert!(Strategy::parse(&pipeline, &strategy).unwrap().is_lossy());
            let (_output, dataset) = built(&pipeline, &strategy, folder.path(), 1);
            let [encoding] = &dataset.manifest().encodings[..] else { panic!("one field") };
            assert_eq!((encoding.max_absolute_error, encoding.max_relative_error), (Some(absolute), Some(relative)));
            let found = loaded(&dataset, "array");
            assert_eq!(found.len(), expected.len());
            let mut largest = 0.0;
            for (key, tensor) in &expected {
                for (before, after) in numbers(tensor).into_iter().zip(numbers(&found[key])) {
                    let moved = (before - after).abs();
                    assert!(moved <= absolute.max(relative * before.abs()), "{strategy}: {before} became {after}");
                    largest = f64::max(largest, moved);
                }
            }
            assert!(largest > 0.0, "{strategy}: nothing was lost");
        }
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.spec().dtype {
        DType::F32 => {
            tensor.view().elements_or_copy::<f32>(&mut Vec::new()).unwrap().iter().copied().map(f64::from).collect()
        }
        _ => tensor.view().elements_or_copy::<f64>(&mut Vec::new()).unwrap().to_vec(),
    }
}

#[test]
fn a_manifest_that_says_another_bound_is_refused() {
    let (pipeline, folder) = arrays(DType::F32);
    let (output, _dataset) = built(&pipeline, "decoded+round-absolute-0.001-pco-8", folder.path(), 1);
    let path = output.path().join("dataset.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"tensor_encoding\": \"round-absolute-0.001-pco-8\""), "{text}");
    assert!(text.contains("\"max_absolute_error\": 0.001"), "{text}");
    std::fs::write(&path, resealed(&text.replace("\"max_absolute_error\": 0.001", "\"max_absolute_error\": 0.0001")))
        .unwrap();
    let error = Dataset::open(output.path()).unwrap_err().to_string();
    assert!(error.contains("other encodings of fields"), "{error}");
}

#[test]
fn exports_have_arrays_that_others_read() {
    let (pipeline, folder) = arrays(DType::I32);
    let members = |strategy: &str| {
        let (_output, dataset) = built(&pipeline, strategy, folder.path(), 1);
        let output = tempfile::tempdir().unwrap();
        let done = export_tar(&dataset, &local(), output.path(), 1, 1 << 30, &()).unwrap();
        std::fs::read(&done.files[0]).unwrap()
    };
    assert_eq!(members("decoded+bitpack"), members("decoded"));
}

#[test]
fn a_damaged_value_is_named_or_skipped() {
    let (pipeline, folder) = arrays(DType::F32);
    let (output, dataset) = built(&pipeline, "decoded+shuffle-zstd-3", folder.path(), 1);
    let sound = loaded(&dataset, "array").len();
    let shard = output.path().join("shard-00000.tfrecord");
    let mut bytes = std::fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&shard, bytes).unwrap();
    let damaged = Arc::new(Dataset::open(output.path()).unwrap());
    assert!(start(shards(&damaged), load_options(), 0).unwrap().any(|batch| batch.is_err()));
    let damaged = Arc::new(Dataset::open_on_error(output.path(), OnError::Skip).unwrap());
    let options = LoadOptions { on_error: OnError::Skip, ..load_options() };
    let samples = start(shards(&damaged), options, 0).unwrap().map(|batch| batch.unwrap().keys.len()).sum::<usize>();
    assert_eq!(samples, sound - 1);
}

/// Builds real data raw and in each encoding, and compares what a trainer gets.
fn compare(pipeline: &Pipeline, split: &str, field: &str, folder: &Path, encodings: &[&str]) {
    let (_output, raw) = built(pipeline, split, folder, 2);
    let expected = loaded(&raw, field);
    for encoding in encodings {
        let output = tempfile::tempdir().unwrap();
        let strategy = format!("{split}+{encoding}");
        build(pipeline, &strategy, folder, local()).run(output.path(), &options(2), &()).unwrap();
        let dataset = Arc::new(Dataset::open(output.path()).unwrap());
        assert!(loaded(&dataset, field) == expected, "{strategy}");
        eprintln!("{strategy}: {} of {} bytes", dataset.manifest().bytes, raw.manifest().bytes);
    }
}

#[test]
fn speech_is_kept_encoded() {
    let Some(data) = data_folder("audio-flac/librispeech") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "flac"));
    paths.sort();
    for path in &paths[..3] {
        std::fs::write(folder.path().join(path.file_name().unwrap()), std::fs::read(path).unwrap()).unwrap();
    }
    let pipeline = preset("flac").unwrap();
    compare(&pipeline, "decoded", "audio", folder.path(), &["pco-8", "delta-shuffle-zstd-3"]);
    compare(&pipeline, "spectrogram-encoded", "audio", folder.path(), &["pco-8", "shuffle-zstd-3", "shuffle-lz4"]);
}
