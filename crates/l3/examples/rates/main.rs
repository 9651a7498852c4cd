//! How fast each level of this machine decodes and encodes, beside the `png` crate, turn by turn in one thread.
//!
//!     cargo run --release -p forebay-l3 --example rates -- FILE-OR-FOLDER... [--rounds 5] [--wide] [--only dense,avx2]
//!
//! Images are PNG files of one to four channels. `--wide` makes 16-bit images of them: sums of neighbors with some noise.
//! `--only` keeps the lines whose name contains every one of the words, and leaves PNG out if it is not named: for counting
//! instructions.

#![expect(clippy::print_stdout, reason = "it is a program")]

mod wide;

use std::{
    error::Error,
    io::Cursor,
    path::{Path, PathBuf},
    time::Instant,
};

use forebay_l3::{DecodeOptions, Decoder, Depth, EncodeOptions, Level, Mode, Pixels, Shape, encode};

struct Picture {
    shape: Shape,
    pixels: Vec<u8>,
    png: Vec<u8>,
}

/// One line: what it is called, its files, and seconds by round.
struct Line {
    name: String,
    mode: Option<(Mode, Level)>,
    files: Vec<Vec<u8>>,
    encode_seconds: f64,
    seconds: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut pictures, mut rounds, mut wide, mut only) = (Vec::new(), 5, false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => rounds = arguments.next().ok_or("give a number of rounds")?.parse()?,
            "--wide" => wide = true,
            "--only" => only = arguments.next().ok_or("give words")?.split(',').map(str::to_owned).collect(),
            path => read(Path::new(path), &mut pictures)?,
        }
    }
    if wide {
        pictures = pictures.iter().map(widened).collect::<Result<_, _>>()?;
    }
    let mut lines = vec![Line::new("png", None)];
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        for mode in [Mode::Fast, Mode::Dense] {
            lines.push(Line::new(&format!("{}, {}", mode.name(), level.name()), Some((mode, level))));
        }
    }
    lines.retain(|line| only.iter().all(|word| line.name.contains(word.as_str())));
    for line in &mut lines {
        line.encode(&pictures)?;
    }
    for round in 0..=rounds {
        for line in &mut lines {
            line.decode(&pictures, round)?;
        }
    }
    report(&lines, &pictures);
    Ok(())
}

impl Line {
    fn new(name: &str, mode: Option<(Mode, Level)>) -> Self {
        Self { name: name.to_owned(), mode, files: Vec::new(), encode_seconds: 0.0, seconds: Vec::new() }
    }

    /// Encodes twice; the faster time of each image counts.
    fn encode(&mut self, pictures: &[Picture]) -> Result<(), Box<dyn Error>> {
        let Some((mode, level)) = self.mode else {
            self.files = pictures.iter().map(|picture| picture.png.clone()).collect();
            return Ok(());
        };
        let options = EncodeOptions { level, ..EncodeOptions::new(mode) };
        for picture in pictures {
            let pixels = Pixels::new(picture.shape, &picture.pixels)?;
            let timed = || {
                let begun = Instant::now();
                encode(&pixels, &options).map(|file| (begun.elapsed().as_secs_f64(), file))
            };
            let (first, file) = timed()?;
            let (second, _) = timed()?;
            self.files.push(file);
            self.encode_seconds += first.min(second);
        }
        Ok(())
    }

    /// The first round checks, and warms up.
    fn decode(&mut self, pictures: &[Picture], round: usize) -> Result<(), Box<dyn Error>> {
        let level = self.mode.map_or(Level::Scalar, |(_, level)| level);
        let mut decoder = Decoder::new(DecodeOptions { level, ..DecodeOptions::default() });
        let mut out = vec![0; pictures.iter().map(|picture| picture.pixels.len()).max().unwrap_or(0)];
        let mut seconds = 0.0;
        for (picture, file) in pictures.iter().zip(&self.files) {
            let out = &mut out[..picture.pixels.len()];
            let begun = Instant::now();
            if self.mode.is_some() {
                decoder.decode_into(file, out, picture.shape.row_bytes())?;
            } else {
                png::Decoder::new(Cursor::new(file)).read_info()?.next_frame(out)?;
                if picture.shape.depth() == Depth::Sixteen && round == 0 {
                    out.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
                }
            }
            seconds += begun.elapsed().as_secs_f64();
            assert!(round > 0 || out == picture.pixels, "{}: pixels differ", self.name);
        }
        if round > 0 {
            self.seconds.push(seconds);
        }
        Ok(())
    }
}

fn report(lines: &[Line], pictures: &[Picture]) {
    let bytes = pictures.iter().map(|picture| picture.pixels.len()).sum::<usize>() as f64 / 1e6;
    let png_bytes = pictures.iter().map(|picture| picture.png.len()).sum::<usize>() as f64;
    println!("{} pictures, {bytes:.0} MB", pictures.len());
    println!("{:16} {:>7} {:>12} {:>12} {:>7}", "", "/ PNG", "encode MB/s", "decode MB/s", "x png");
    let mut reference = None;
    for line in lines {
        let size = line.files.iter().map(Vec::len).sum::<usize>() as f64 / png_bytes;
        let mut seconds = line.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let Some(&median) = seconds.get(seconds.len() / 2) else { continue };
        let rate = bytes / median;
        let times = rate / *reference.get_or_insert(rate);
        let encode_rate = if line.encode_seconds > 0.0 { bytes / line.encode_seconds } else { 0.0 };
        println!("{:16} {size:>7.3} {encode_rate:>12.0} {rate:>12.0} {times:>7.2}", line.name);
    }
}

fn read(path: &Path, pictures: &mut Vec<Picture>) -> Result<(), Box<dyn Error>> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut paths = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "png"));
        return paths.iter().try_for_each(|path| read(path, pictures));
    }
    let png = std::fs::read(path)?;
    let mut reader = png::Decoder::new(Cursor::new(&png)).read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("the image is too large")?];
    let info = reader.next_frame(&mut pixels)?;
    if info.bit_depth == png::BitDepth::Eight && info.color_type != png::ColorType::Indexed {
        pixels.truncate(info.buffer_size());
        let shape = Shape::new(info.width, info.height, info.color_type.samples() as u8, Depth::Eight)?;
        pictures.push(Picture { shape, pixels, png });
    }
    Ok(())
}

/// The same content in 16 bits.
fn widened(picture: &Picture) -> Result<Picture, Box<dyn Error>> {
    let (shape, pixels) = wide::widened(picture.shape, &picture.pixels)?;
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, shape.width(), shape.height());
    encoder.set_depth(png::BitDepth::Sixteen);
    encoder.set_color(
        [png::ColorType::Grayscale, png::ColorType::GrayscaleAlpha, png::ColorType::Rgb, png::ColorType::Rgba]
            [usize::from(shape.channels()) - 1],
    );
    let mut writer = encoder.write_header()?;
    let big_endian: Vec<u8> = pixels.as_chunks::<2>().0.iter().flat_map(|[low, high]| [*high, *low]).collect();
    writer.write_image_data(&big_endian)?;
    writer.finish()?;
    Ok(Picture { shape, pixels, png })
}
