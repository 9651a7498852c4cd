//! Our word on pictures, for `tools/fuzz_png.py`: reads files (a length of four bytes, little endian, and the file) from standard
//! input and answers each: height, width and channels (four bytes each) and the pixels; all zero if it is refused, and then the
//! message (its length and its text).

use std::io::{self, BufWriter, Read, Write};

use forebay_codec::image::{Channels, DecodeOptions, Decoder, Depth, Limits};

fn main() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = BufWriter::new(io::stdout().lock());
    let mut decoder = Decoder::new();
    let limits = Limits { max_pixels: 1 << 18, max_bytes: 1 << 24 };
    let options = DecodeOptions {
        channels: Channels::AsStored,
        depth: Depth::AsStored,
        apply_orientation: false,
        limits,
        ..DecodeOptions::default()
    };
    let mut length = [0; 4];
    while input.read_exact(&mut length).is_ok() {
        let mut file = vec![0; u32::from_le_bytes(length) as usize];
        input.read_exact(&mut file)?;
        match decoder.decode(&file, &options) {
            Ok(picture) => {
                for &dim in picture.spec().shape.dims() {
                    output.write_all(&(dim as u32).to_le_bytes())?;
                }
                output.write_all(&(picture.data().len() as u32).to_le_bytes())?;
                output.write_all(picture.data())?;
            }
            Err(error) => {
                let message = error.to_string();
                output.write_all(&[0; 12])?;
                output.write_all(&(message.len() as u32).to_le_bytes())?;
                output.write_all(message.as_bytes())?;
            }
        }
        output.flush()?;
    }
    Ok(())
}
