//! Sound, text, signals, arrays and pictures from files to batches, through every split of their presets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_codec::image::{Encoding, PngEffort, encode};
use forebay_codec::signal::write_hdf5;
use forebay_codec::{DType, Tensor, TensorSpec, npy};
use forebay_engine::Error;
use forebay_engine::load::{Batch, Column, Epoch, LoadOptions};
use forebay_pipeline::{Pipeline, Setting, preset, preset_text};
use tempfile::TempDir;

use crate::data::data_folder;
use crate::support::{build, built, files, local, options, shards, start};

/// A folder with the first `count` files of this extension below `from`, in the order of their names.
fn some_files(from: &Path, extension: &str, count: usize) -> TempDir {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    assert!(paths.len() >= count, "{}", from.display());
    let folder = tempfile::tempdir().unwrap();
    for path in &paths[..count] {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(folder.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    folder
}

/// A folder with one file.
fn one_file(name: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), bytes).unwrap();
    folder
}

fn load_options() -> LoadOptions {
    LoadOptions { threads: 2, batch_size: 3, seed: 5, ..LoadOptions::default() }
}

/// Batches straight from the files.
fn from_files(pipeline: &Pipeline, folder: &Path) -> Epoch {
    start(files(pipeline, folder), load_options(), 0).unwrap()
}

/// The tensors of a data set that is kept at `split`.
fn from_split(pipeline: &Pipeline, split: &str, folder: &Path) -> BTreeMap<String, Tensor> {
    let (_output, dataset) = built(pipeline, split, folder, 2);
    tensors(start(shards(&dataset), load_options(), 0).unwrap(), &pipeline.source().field)
}

/// The tensor of each sample, by its key.
fn tensors(batches: impl Iterator<Item = Result<Batch, Error>>, field: &str) -> BTreeMap<String, Tensor> {
    let mut found = BTreeMap::new();
    for batch in batches {
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

/// What a pipeline makes of files, after checking that every split makes the same.
fn through_every_split(pipeline: &Pipeline, folder: &Path) -> BTreeMap<String, Tensor> {
    let field = pipeline.source().field.as_str();
    let expected = tensors(from_files(pipeline, folder), field);
    for split in &pipeline.splits()[1..] {
        let found = from_split(pipeline, &split.name, folder);
        assert!(found == expected, "{} of {}", split.name, pipeline.name());
    }
    expected
}

#[test]
fn speech_of_different_lengths() {
    let Some(data) = data_folder("audio-flac/librispeech") else { return };
    let folder = some_files(&data, "flac", 5);
    let found = through_every_split(&preset("flac").unwrap(), folder.path());
    assert_eq!(found.len(), 5);
    assert!(found.values().all(|tensor| tensor.spec().dtype == DType::F32 && tensor.spec().shape.dims()[1] == 80));
    let mut lengths: Vec<usize> = found.values().map(|tensor| tensor.spec().shape.dims()[0]).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 1 && lengths[0] > 100, "{lengths:?}");

    let Some(data) = data_folder("audio-mp3/librispeech-derived") else { return };
    let folder = some_files(&data, "mp3", 4);
    let found = through_every_split(&preset("mp3").unwrap(), folder.path());
    assert_eq!(found.len(), 4);
}

#[test]
fn batches_of_speech_are_ragged_or_padded() {
    let Some(data) = data_folder("audio-flac/librispeech") else { return };
    let folder = some_files(&data, "flac", 5);
    let pipeline = preset("flac").unwrap();
    let ragged: Vec<Batch> = from_files(&pipeline, folder.path()).map(Result::unwrap).collect();
    let padded: Vec<Batch> = from_files(&pipeline, folder.path())
        .map(|batch| {
            let mut batch = batch.unwrap();
            batch.pad(-1.0).unwrap();
            batch
        })
        .collect();
    assert_eq!((ragged.len(), padded.len()), (2, 2));
    for (ragged, padded) in ragged.iter().zip(&padded) {
        assert_eq!(ragged.keys, padded.keys);
        let Some(Column::Ragged(tensors)) = ragged.column("audio") else { panic!("ragged") };
        let Some(Column::Dense { spec, data }) = padded.column("audio") else { panic!("padded") };
        let Some(Column::Dense { data: shapes, .. }) = padded.column("audio_shape") else { panic!("shapes") };
        let longest = tensors.iter().map(|tensor| tensor.spec().shape.dims()[0]).max().unwrap();
        assert_eq!(*spec, TensorSpec::new(DType::F32, &[longest, 80]));
        let shapes = shapes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect::<Vec<_>>();
        for (index, tensor) in tensors.iter().enumerate() {
            let slot = &data[index * spec.bytes()..][..spec.bytes()];
            let (audio, rest) = slot.split_at(tensor.data().len());
            assert_eq!(audio, &tensor.data()[..]);
            assert!(rest.as_chunks::<4>().0.iter().all(|bytes| *bytes == (-1.0_f32).to_le_bytes()));
            assert_eq!(shapes[index * 2..][..2], [tensor.spec().shape.dims()[0] as i64, 80]);
        }
    }
}

/// The language pipeline with GPT-2's vocabulary and a small table.
fn language(vocabulary: &Path) -> Pipeline {
    let named = format!("tokenizer = {:?}", vocabulary.display().to_string());
    let text = preset_text("nlp")
        .unwrap()
        .replace("tokenizer = \"bytes\"", &named)
        .replace("embedding_dim = 768", "embedding_dim = 16");
    Pipeline::from_toml("nlp", &text).unwrap()
}

#[test]
fn pages_become_embedded_tokens() {
    let (Some(data), Some(vocabulary)) = (data_folder("text-html/readability"), data_folder("text-bpe")) else {
        return;
    };
    let folder = some_files(&data, "html", 6);
    let found = through_every_split(&language(&vocabulary), folder.path());
    assert_eq!(found.len(), 6);
    assert!(found.values().all(|tensor| tensor.spec().shape.dims()[0] > 20), "{found:?}");
}

/// Voltage and current of so many samples, as CREAM has them.
fn recording(samples: usize) -> Vec<u8> {
    let wave = |index: usize, level: f64, lag: f64| {
        (level * (std::f64::consts::TAU * index as f64 / 128.0 - lag).sin() + 40.0) as i16
    };
    let voltage: Vec<i16> = (0..samples).map(|index| wave(index, 9000.0, 0.0)).collect();
    let current: Vec<i16> = (0..samples).map(|index| wave(index, 700.0 + index as f64 / 100.0, 0.7)).collect();
    write_hdf5(&[("voltage", &voltage, 0.0382), ("current1", &current, 0.00195)]).unwrap()
}

#[test]
fn recordings_become_windows() {
    let folder = one_file("one.hdf5", &recording(64_000 * 3 + 5));
    std::fs::write(folder.path().join("other.h5"), recording(64_000)).unwrap();
    let found = through_every_split(&preset("nilm").unwrap(), folder.path());
    let keys: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(keys, ["one.hdf5#0", "one.hdf5#1", "one.hdf5#2", "other.h5#0"]);
    assert!(found.values().all(|tensor| *tensor.spec() == TensorSpec::new(DType::F64, &[3, 500])));

    let Some(data) = data_folder("electrical/itsc-motor-current") else { return };
    let folder = some_files(&data, "csv", 3);
    let text = preset_text("nilm").unwrap();
    let text = text.replace("{hdf5,h5}", "csv").replace("[\"voltage\", \"current1\"]", "[0, 1]");
    let text = text.replace("window = 64000", "window = 500").replace("period = 128", "period = 50");
    let found = through_every_split(&Pipeline::from_toml("nilm", &text).unwrap(), folder.path());
    assert_eq!(found.len(), 6);
}

#[test]
fn arrays_become_root_mean_squares() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..5_usize {
        let columns = 1 + number % 3;
        let values: Vec<f32> = (0..2500 * columns).map(|index| (index % 97) as f32 - number as f32).collect();
        let array = Tensor::from_elements(&[2500, columns], &values).unwrap();
        std::fs::write(folder.path().join(format!("{number}.npy")), npy::encode(array.view())).unwrap();
    }
    let found = through_every_split(&preset("synthetic").unwrap(), folder.path());
    let lengths: Vec<usize> = found.values().map(|tensor| tensor.spec().shape.elements()).collect();
    assert_eq!(lengths, [5, 10, 15, 5, 10]);
}

#[test]
fn pictures_through_their_variants() {
    let (Some(jpegs), Some(pngs)) = (data_folder("images-jpeg"), data_folder("kodak")) else { return };
    let (jpegs, pngs) = (some_files(&jpegs, "jpg", 4), some_files(&pngs, "png", 2));
    for name in ["cv2-jpg", "cv-gray-before-centering", "cv-gray-after-centering", "cv-gray-before-resize"] {
        assert_eq!(through_every_split(&preset(name).unwrap(), jpegs.path()).len(), 4);
    }
    assert_eq!(through_every_split(&preset("cv2-png").unwrap(), pngs.path()).len(), 2);
}

/// Street scenes as Cityscapes lays them out: pictures, and masks of the classes that their pixels show, or of ids of 16 bits.
fn cityscapes(dtype: DType) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, city) in
        ["train/ulm/ulm", "train/ulm/ulm", "train/jena/jena", "train/jena/jena"].into_iter().enumerate()
    {
        let (height, width) = (90, 120);
        let class = |index: usize| (index / width / 30 * 4 + index % width / 30 + number * 20) as u8;
        let classes: Vec<u8> = (0..height * width).map(class).collect();
        let picture: Vec<u8> = classes.iter().flat_map(|&class| [class, 255 - class, 7]).collect();
        let picture = Tensor::from_elements(&[height, width, 3], &picture).unwrap();
        let mask = if dtype == DType::U16 {
            let ids: Vec<u16> = classes.iter().map(|&class| u16::from(class) * 900 + 1).collect();
            Tensor::from_elements(&[height, width, 1], &ids).unwrap()
        } else {
            Tensor::from_elements(&[height, width, 1], &classes).unwrap()
        };
        for (kind, suffix, tensor) in [("leftImg8bit", "leftImg8bit", picture), ("gtFine", "gtFine_labelIds", mask)] {
            let path = folder.path().join(format!("{kind}/{city}_00000{number}_000019_{suffix}.png"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = encode(tensor.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
            std::fs::write(path, file).unwrap();
        }
    }
    folder
}

#[test]
fn segmentation_keeps_pictures_and_masks_together() {
    let small = ["resize.size=60", "random_crop.size=40", "normalize.mean=[0.0, 0.0, 0.0]"];
    for dtype in [DType::U8, DType::U16] {
        let folder = cityscapes(dtype);
        let depth = format!("decode_mask.keep_depth={}", dtype == DType::U16);
        let settings: Vec<Setting> =
            small.into_iter().chain([&*depth]).map(|setting| setting.parse().unwrap()).collect();
        let pipeline = preset("segmentation").unwrap().with_settings(&settings).unwrap();
        let masks = tensors(from_files(&pipeline, folder.path()), "mask");
        let pictures = through_every_split(&pipeline, folder.path());
        assert_eq!(masks.len(), 4);
        for (key, mask) in &masks {
            assert_eq!(*mask.spec(), TensorSpec::new(dtype, &[40, 40]), "{key}");
            let number: usize = key.split("_00000").nth(1).and_then(|rest| rest[..1].parse().ok()).unwrap();
            let classes: Vec<u16> = if dtype == DType::U16 {
                mask.view().elements::<u16>().unwrap().iter().map(|id| (id - 1) / 900).collect()
            } else {
                mask.data().iter().map(|&class| u16::from(class)).collect()
            };
            assert!(
                classes.iter().all(|class| (number * 20..number * 20 + 12).contains(&usize::from(*class))),
                "{key}"
            );
            // The red of each pixel is its class, but for edges where it is interpolated: cut and mirrored alike.
            let picture = pictures[key].view();
            let red = &picture.elements::<f32>().unwrap()[..40 * 40];
            let agree = red
                .iter()
                .zip(&classes)
                .filter(|(red, class)| (*red * 0.229 * 255.0 - f32::from(**class)).abs() < 0.01);
            assert!(agree.count() > 40 * 40 * 8 / 10, "{key}");
        }
        for split in pipeline.splits().iter().skip(1) {
            let (_output, dataset) = built(&pipeline, &split.name, folder.path(), 2);
            let kept = tensors(start(shards(&dataset), load_options(), 0).unwrap(), "mask");
            assert_eq!(kept, masks, "{}", split.name);
        }
    }
}

/// What loading a file ends with: nothing wrong, or an error that names it.
fn load_one(pipeline: &Pipeline, name: &str, bytes: &[u8]) -> Option<String> {
    let folder = one_file(name, bytes);
    let error = from_files(pipeline, folder.path()).find_map(Result::err)?;
    assert!(!matches!(error, Error::Panicked { .. }), "{name}: {error}");
    let message = error.to_string();
    assert!(message.contains(name), "{message}");
    Some(message)
}

#[test]
fn malformed_audio_is_named() {
    let Some(data) = data_folder("malformed") else { return };
    let (mut files, mut refused) = (0, 0);
    for (folder, pipeline) in [("flac-faulty", "flac"), ("flac-fuzz-seeds", "flac"), ("mp3", "mp3")] {
        // Of any rate, so that it is the damage that is found.
        let text = preset_text(pipeline).unwrap();
        let pipeline = text.replacen("sample_rate = 16000", "", 1).replacen("sample_rate = 48000", "", 1);
        let pipeline = Pipeline::from_toml("sound", &pipeline).unwrap();
        let extension = if folder == "mp3" { "mp3" } else { "flac" };
        for entry in std::fs::read_dir(data.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{}.{extension}", path.file_stem().unwrap().display());
            files += 1;
            refused += usize::from(load_one(&pipeline, &name, &std::fs::read(&path).unwrap()).is_some());
        }
    }
    eprintln!("{refused} of {files} malformed files of sound were refused");
    assert!(files >= 12 && refused >= 6, "{refused} of {files}");
}

#[test]
fn malformed_recordings_are_named() {
    let pipeline = preset("nilm").unwrap();
    let whole = recording(64_000);
    for end in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        assert!(load_one(&pipeline, "cut.hdf5", &whole[..end]).is_some(), "{end} of {}", whole.len());
    }
    for offset in (0..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        damaged[offset] ^= 0x5a;
        load_one(&pipeline, "damaged.hdf5", &damaged);
    }
    let unnamed = write_hdf5(&[("volts", &vec![1; 64_000], 1.0)]).unwrap();
    let message = load_one(&pipeline, "unnamed.hdf5", &unnamed).unwrap();
    assert!(message.contains("there is no such data set"), "{message}");
}

#[test]
fn malformed_pages_are_named_or_read() {
    let text = preset_text("nlp")
        .unwrap()
        .replace("embedding_dim = 768", "embedding_dim = 4")
        .replace("num_embeddings = 50257", "num_embeddings = 256");
    let pipeline = Pipeline::from_toml("nlp", &text).unwrap();
    let noise: Vec<u8> = (0..50_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let deep = "<div>".repeat(200_000);
    for page in [&b""[..], b"<html><body><p>never closed", b"<!DOCTYPE", b"\xff\xfe<\0p\0>", &noise, deep.as_bytes()] {
        load_one(&pipeline, "page.html", page);
    }
    let small =
        Pipeline::from_toml("nlp", &text.replace("op = \"extract_text\"", "op = \"extract_text\"\nmax_bytes = 100"));
    let message = load_one(&small.unwrap(), "long.html", &[b'x'; 101]).unwrap();
    assert!(message.contains("over the limit of `100`"), "{message}");
}

#[test]
fn a_damaged_vocabulary_is_named_before_anything_is_read() {
    let folder = one_file("page.html", b"<p>words</p>");
    for (name, content) in
        [("tokenizer.json", &b"{\"model\":"[..]), ("v.tiktoken", b"AA==\n"), ("v.model", b"\xff\xff\xff")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let output = folder.path().join("set");
        let build = build(&language(&path), "concatenated", folder.path(), local());
        let message = build.run(&output, &options(1), &()).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("tokenize"), "{message}");
        assert!(!output.exists());
    }
}
