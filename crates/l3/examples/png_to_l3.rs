//! Sizes and decode times of a PNG and of what L3 makes of it.
//!
//!     cargo run --release --example png_to_l3 -- image.png

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::io::Cursor;
use std::time::Instant;

use forebay_l3::{Depth, EncodeOptions, Mode, Pixels, Shape, decode, encode};

/// How often each is decoded; the fastest counts.
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give the path of a PNG")?;
    let file = std::fs::read(&path)?;
    let (info, pixels) = decode_png(&file)?;
    let channels = info.color_type.samples() as u8;
    let shape = Shape::new(info.width, info.height, channels, Depth::Eight)?;
    println!("{path}: {} x {}, {channels} channels", info.width, info.height);
    show("png", file.len(), pixels.len(), || decode_png(&file).map(|(_, pixels)| pixels))?;
    for (name, mode) in [("l3 fast", Mode::Fast), ("l3 dense", Mode::Dense)] {
        let bytes = encode(&Pixels::new(shape, &pixels)?, &EncodeOptions::new(mode))?;
        assert_eq!(decode(&bytes)?.data, pixels, "lossless");
        show(name, bytes.len(), pixels.len(), || Ok(decode(&bytes)?.data))?;
    }
    Ok(())
}

fn decode_png(file: &[u8]) -> Result<(png::OutputInfo, Vec<u8>), Box<dyn Error>> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("the image is too large")?];
    let info = reader.next_frame(&mut pixels)?;
    pixels.truncate(info.buffer_size());
    Ok((info, pixels))
}

fn show(
    name: &str,
    bytes: usize,
    pixel_bytes: usize,
    decode: impl Fn() -> Result<Vec<u8>, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut fastest = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        decode()?;
        fastest = fastest.min(begun.elapsed().as_secs_f64());
    }
    println!("{name:9} {bytes:>10} bytes, decoded at {:.0} MB/s of pixels", pixel_bytes as f64 / fastest / 1e6);
    Ok(())
}
