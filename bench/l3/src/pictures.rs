//! The images: real files beside the workspace, decoded.

use std::{
    io::Cursor,
    path::{Path, PathBuf},
};

use forebay_l3::{Depth, Shape};

#[path = "../../../crates/l3/examples/rates/wide.rs"]
mod wide;

/// The sets that the figures are about.
pub const SETS: [&str; 4] = ["kodak", "images-png-hd", "images-png-neverjpeg", "images-jpeg"];

/// One image: its pixels, and its PNG file.
pub struct Picture {
    pub shape: Shape,
    pub pixels: Vec<u8>,
    /// The file as it is, or for a JPEG what the `png` crate makes of its pixels with its default compression.
    pub png: Vec<u8>,
}

/// Reads a set; images that are not 8-bit RGB are left out.
pub fn read(root: &Path, set: &str) -> Vec<Picture> {
    let folder = root.join(set);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("`{}`: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|path| picture(path)).collect()
}

fn picture(path: &Path) -> Option<Picture> {
    let extension = path.extension()?.to_str()?;
    let bytes = std::fs::read(path).ok()?;
    let (width, height, pixels, png) = match extension {
        "png" => {
            let mut reader = png::Decoder::new(Cursor::new(&bytes)).read_info().ok()?;
            let mut pixels = vec![0; reader.output_buffer_size()?];
            let info = reader.next_frame(&mut pixels).ok()?;
            pixels.truncate(info.buffer_size());
            (info.width, info.height, pixels, Some(bytes))
        }
        "jpg" => {
            let mut decoder = zune_jpeg::JpegDecoder::new(zune_core::bytestream::ZCursor::new(&bytes));
            let pixels = decoder.decode().ok()?;
            let (width, height) = decoder.dimensions()?;
            (width as u32, height as u32, pixels, None)
        }
        _ => return None,
    };
    let shape = Shape::new(width, height, 3, Depth::Eight).ok()?;
    if pixels.len() != shape.bytes() {
        return None;
    }
    let png = png.unwrap_or_else(|| crate::peers::encode_png(shape, &pixels, png::Compression::Balanced));
    Some(Picture { shape, pixels, png })
}

/// The same content in 16 bits.
pub fn widened(picture: &Picture) -> Picture {
    let (shape, pixels) = wide::widened(picture.shape, &picture.pixels).expect("it was an image of 8 bits");
    let png = crate::peers::encode_png(shape, &pixels, png::Compression::Balanced);
    Picture { shape, pixels, png }
}
