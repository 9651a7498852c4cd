//! Ratio and speed of every tensor encoding beside plain ZSTD and LZ4, on tensors made of real files: `tensor_speed <folder of the test data>`.
//!
//! Each tensor is encoded by itself, as a data set has it. MB/s are millions of bytes of raw tensor for each second of CPU time on one
//! thread, the fastest of several rounds over all tensors of a kind: other work disturbs only for the worse.
#![expect(clippy::print_stdout, reason = "a program for measuring, not part of the library")]

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};

use forebay_codec::audio::{AudioOptions, Spectrogram, SpectrogramBuffers, SpectrogramOptions, decode};
use forebay_codec::image::{DecodeOptions, Decoder};
use forebay_codec::signal::{Channel, SignalOptions, read};
use forebay_codec::tensor_encoding::{EncodedTensor, TensorDecoder, TensorEncoding, encode_tensor};
use forebay_codec::text::{ArticleLimits, Tokenizer, TokenizerScratch, article_text};
use forebay_codec::{Tensor, TensorMut};

const ENCODINGS: [&str; 19] = [
    "shuffle-zstd-3",
    "delta-zstd-3",
    "delta-shuffle-zstd-3",
    "shuffle-zstd-9",
    "shuffle-lz4",
    "delta-shuffle-lz4",
    "shuffle-lz4-hc-9",
    "pco-4",
    "pco-8",
    "bitpack",
    "sparse",
    "rle",
    "bfloat16",
    "bfloat16-shuffle-zstd-3",
    "bfloat16-pco-8",
    "round-absolute-0.001-pco-8",
    "round-absolute-0.001-shuffle-zstd-3",
    "round-relative-0.01-pco-8",
    "round-relative-0.01-shuffle-zstd-3",
];

const ROUNDS: usize = 5;

/// More of one kind would only take longer.
const FILES_MAX: usize = 24;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long this thread has run, in seconds; what others do on the machine does not count.
fn now() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn fastest(mut task: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = now();
        task()?;
        least = least.min(now() - started);
    }
    Ok(least)
}

fn files(folder: &Path, extension: &str) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found.truncate(FILES_MAX);
    Ok(found)
}

fn tensor<T: forebay_codec::Element>(dims: &[usize], elements: &[T]) -> Outcome<Tensor> {
    Tensor::from_elements(dims, elements).ok_or_else(|| "the elements do not fit the dimensions".into())
}

/// Speech, and its spectrograms.
fn sound(data: &Path) -> Outcome<(Vec<Tensor>, Vec<Tensor>)> {
    let (mut waves, mut spectrograms) = (Vec::new(), Vec::new());
    let mut samples = Vec::new();
    let spectrogram = Spectrogram::new(&SpectrogramOptions::default())?;
    let mut buffers = SpectrogramBuffers::default();
    for path in files(&data.join("audio-flac/librispeech"), "flac")? {
        decode(&std::fs::read(path)?, &AudioOptions::default(), &mut samples)?;
        waves.push(tensor(&[samples.len()], &samples)?);
        let (frames, bands) = (spectrogram.frames(samples.len()), spectrogram.bands());
        let mut output = vec![0.0; frames * bands];
        spectrogram.run(&samples, &mut output, &mut buffers)?;
        spectrograms.push(tensor(&[frames, bands], &output)?);
    }
    Ok((waves, spectrograms))
}

/// The currents of motors, phase by phase.
fn currents(data: &Path) -> Outcome<Vec<Tensor>> {
    let channels = vec![Channel::Number(0), Channel::Number(1), Channel::Number(2)];
    let options = SignalOptions { channels, ..SignalOptions::default() };
    let mut tensors = Vec::new();
    for path in files(&data.join("electrical/itsc-motor-current"), "csv")? {
        let recording = read(&std::fs::read(path)?, &options)?;
        tensors.push(tensor(&[3, recording.samples()], &recording.channels.concat())?);
    }
    Ok(tensors)
}

/// The tokens of articles, and how often each of the vocabulary is among them.
fn text(data: &Path) -> Outcome<(Vec<Tensor>, Vec<Tensor>)> {
    let vocabulary = std::fs::read(data.join("text-bpe/encoder.json"))?;
    let tokenizer = Tokenizer::from_gpt2(&vocabulary, &std::fs::read(data.join("text-bpe/vocab.bpe"))?)?;
    let (mut tokens, mut counts) = (Vec::new(), Vec::new());
    let mut scratch = TokenizerScratch::default();
    for path in files(&data.join("text-html/article-extraction-benchmark"), "gz")? {
        let mut page = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path)?).read_to_end(&mut page)?;
        let mut ids = Vec::new();
        tokenizer.encode_into(&article_text(&page, None, &ArticleLimits::default())?, &mut scratch, &mut ids);
        let ids: Vec<i32> = ids.into_iter().map(|id: u32| id as i32).collect();
        let mut count = vec![0.0_f32; 50_257];
        for &id in &ids {
            count[id as usize] += 1.0;
        }
        tokens.push(tensor(&[ids.len()], &ids)?);
        counts.push(tensor(&[count.len()], &count)?);
    }
    Ok((tokens, counts))
}

/// Photos as a network takes them: from -1 to 1.
fn photos(data: &Path) -> Outcome<Vec<Tensor>> {
    let mut decoder = Decoder::new();
    let mut tensors = Vec::new();
    for path in files(&data.join("images-jpeg"), "jpg")?.into_iter().take(8) {
        let picture = decoder.decode(&std::fs::read(path)?, &DecodeOptions::default())?;
        let centered: Vec<f32> = picture.data().iter().map(|&sample| f32::from(sample) / 127.5 - 1.0).collect();
        tensors.push(tensor(picture.spec().shape.dims(), &centered)?);
    }
    Ok(tensors)
}

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).ok_or("usage: tensor_speed <folder of the test data>")?;
    let data = Path::new(&folder);
    let (waves, spectrograms) = sound(data)?;
    let (tokens, counts) = text(data)?;
    for (name, tensors) in [
        ("speech", waves),
        ("spectrograms of speech", spectrograms),
        ("currents of motors", currents(data)?),
        ("tokens of articles", tokens),
        ("counts of tokens", counts),
        ("centered photos", photos(data)?),
    ] {
        table(name, &tensors)?;
    }
    Ok(())
}

fn table(name: &str, tensors: &[Tensor]) -> Outcome<()> {
    let bytes: usize = tensors.iter().map(|tensor| tensor.data().len()).sum();
    let first = tensors.first().ok_or("there are no such files")?;
    println!("\n{name}: {} tensors such as {}, {:.1} MB\n", tensors.len(), first.spec(), bytes as f64 / 1e6);
    println!("| encoding | ratio | encode MB/s | decode MB/s |\n|---|---:|---:|---:|");
    let row = |name: &str, stored: usize, encoding: f64, decoding: f64| {
        let (ratio, speed) = (bytes as f64 / stored as f64, |seconds: f64| bytes as f64 / 1e6 / seconds);
        println!("| {name} | {ratio:.2} | {:.0} | {:.0} |", speed(encoding), speed(decoding));
    };
    plain(tensors, &row)?;
    let mut output = vec![0_u64; tensors.iter().map(|tensor| tensor.data().len()).max().unwrap_or(0).div_ceil(8)];
    let mut decoder = TensorDecoder::new();
    for name in ENCODINGS {
        let encoding: TensorEncoding = name.parse()?;
        if !encoding.holds(first.spec().dtype) {
            continue;
        }
        let mut stored = Vec::new();
        let encode_seconds = fastest(|| {
            stored = tensors.iter().map(|tensor| encode_tensor(tensor.view(), &encoding)).collect::<Result<_, _>>()?;
            Ok(())
        })?;
        let decode_seconds = fastest(|| {
            for bytes in &stored {
                let value = EncodedTensor::open(bytes)?;
                let data = &mut bytemuck::cast_slice_mut(&mut output)[..value.spec().bytes()];
                decoder.decode_into(&value, TensorMut { spec: value.spec(), data })?;
            }
            Ok(())
        })?;
        row(name, stored.iter().map(Vec::len).sum(), encode_seconds, decode_seconds);
    }
    Ok(())
}

/// The bare libraries, which know nothing of elements.
fn plain(tensors: &[Tensor], row: &dyn Fn(&str, usize, f64, f64)) -> Outcome<()> {
    let mut output = vec![0_u8; tensors.iter().map(|tensor| tensor.data().len()).max().unwrap_or(0)];
    let failed = |code: usize| zstd_safe::get_error_name(code);
    for level in [3, 9] {
        let mut stored: Vec<Vec<u8>> = Vec::new();
        let encode_seconds = fastest(|| {
            stored.clear();
            for tensor in tensors {
                let mut out = vec![0; zstd_safe::compress_bound(tensor.data().len())];
                let length = zstd_safe::compress(&mut out[..], tensor.data(), level).map_err(failed)?;
                out.truncate(length);
                stored.push(out);
            }
            Ok(())
        })?;
        let mut context = zstd_safe::DCtx::create();
        let decode_seconds = fastest(|| {
            for bytes in &stored {
                context.decompress(&mut output[..], bytes).map_err(failed)?;
            }
            Ok(())
        })?;
        row(&format!("plain zstd-{level}"), stored.iter().map(Vec::len).sum(), encode_seconds, decode_seconds);
    }
    let mut stored: Vec<Vec<u8>> = Vec::new();
    let encode_seconds = fastest(|| {
        stored =
            tensors.iter().map(|tensor| lz4::block::compress(tensor.data(), None, false)).collect::<Result<_, _>>()?;
        Ok(())
    })?;
    let decode_seconds = fastest(|| {
        for (bytes, tensor) in stored.iter().zip(tensors) {
            lz4::block::decompress_to_buffer(bytes, Some(tensor.data().len() as i32), &mut output)?;
        }
        Ok(())
    })?;
    row("plain lz4", stored.iter().map(Vec::len).sum(), encode_seconds, decode_seconds);
    Ok(())
}
