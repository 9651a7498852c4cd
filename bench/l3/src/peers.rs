//! Every codec of the table behind two functions.

use std::io::Cursor;

use forebay_l3::{DecodeOptions, Decoder, Depth, EncodeOptions, Level, Mode, Pixels, Shape};
use zune_core::{bit_depth::BitDepth, bytestream::ZCursor, colorspace::ColorSpace, options::EncoderOptions};

use crate::pictures::Picture;

type Encode = Box<dyn FnMut(&Picture) -> Vec<u8>>;
type Decode = Box<dyn FnMut(&[u8], &Picture, &mut [u8])>;

/// The row that all is measured by.
pub const REFERENCE: &str = "png crate, the files";

/// One row of the table.
pub struct Codec {
    pub name: String,
    pub encode: Encode,
    pub decode: Decode,
    /// Whether encoding is fast enough to be measured more than once.
    pub encodes_fast: bool,
    /// Whether encoding is this codec's at all, and not reading a file made by others.
    pub encodes: bool,
    /// Whether samples of 16 bits come out with the higher byte first.
    pub big_endian: bool,
}

impl Codec {
    fn new(
        name: impl Into<String>,
        encodes_fast: bool,
        encode: impl FnMut(&Picture) -> Vec<u8> + 'static,
        decode: impl FnMut(&[u8], &Picture, &mut [u8]) + 'static,
    ) -> Self {
        let (encode, decode) = (Box::new(encode), Box::new(decode));
        Self { name: name.into(), encode, decode, encodes_fast, encodes: true, big_endian: false }
    }
}

/// L3 at a level.
pub fn l3(mode: Mode, level: Level) -> Codec {
    let options = EncodeOptions { level, ..EncodeOptions::new(mode) };
    let mut decoder = Decoder::new(DecodeOptions { level, ..DecodeOptions::default() });
    Codec::new(
        format!("l3 {}", mode.name()),
        true,
        move |picture| {
            let pixels = Pixels::new(picture.shape, &picture.pixels).expect("whole picture");
            forebay_l3::encode(&pixels, &options).expect("l3 encodes")
        },
        move |bytes, picture, out| {
            decoder.decode_into(bytes, out, picture.shape.row_bytes()).expect("l3 decodes");
        },
    )
}

/// The PNG files as they are, decoded by the `png` crate: what all is measured by.
fn reference() -> Codec {
    let mut codec = Codec::new(REFERENCE, false, |picture| picture.png.clone(), decode_png);
    codec.encodes = false;
    codec
}

/// The PNG files as they are, decoded by our own decoder, which looks at checksums, too.
fn own_png(level: forebay_png::Level) -> Codec {
    let mut decoder = forebay_png::Decoder::with_level(level).expect("the level is available");
    let decode = move |bytes: &[u8], _: &Picture, out: &mut [u8]| {
        decoder.decode_into(bytes, out).expect("forebay-png decodes");
    };
    let name = format!("forebay-png, the files, {}", level.name());
    let mut codec = Codec::new(name, false, |picture| picture.png.clone(), decode);
    codec.encodes = false;
    codec
}

/// L3 at each level of this machine.
fn l3_by_level() -> impl Iterator<Item = Codec> {
    let levels = Level::ALL.into_iter().filter(|level| level.is_available());
    levels.flat_map(|level| Mode::ALL.map(|mode| (mode, level))).map(|(mode, level)| {
        let mut codec = l3(mode, level);
        codec.name = format!("l3 {}, {}", mode.name(), level.name());
        codec
    })
}

/// Everything of ours at each level of this machine, and what it is measured by.
pub fn by_level() -> Vec<Codec> {
    let png_levels = forebay_png::Level::ALL.into_iter().filter(|level| level.is_available());
    [reference()].into_iter().chain(png_levels.map(own_png)).chain(l3_by_level()).collect()
}

/// The same for images of 16 bits.
pub fn wide_by_level() -> Vec<Codec> {
    let reference = Codec { big_endian: true, ..reference() };
    [reference].into_iter().chain(l3_by_level()).collect()
}

/// The codecs of the table.
pub fn all() -> Vec<Codec> {
    let mut codecs: Vec<Codec> = Mode::ALL.into_iter().map(|mode| l3(mode, Level::detect())).collect();
    codecs.push(reference());
    let png_levels = forebay_png::Level::ALL.into_iter().filter(|level| level.is_available());
    codecs.extend(png_levels.last().map(own_png));
    for (name, compression) in [("Fastest", png::Compression::Fastest), ("Fast", png::Compression::Fast)] {
        let encode = move |picture: &Picture| encode_png(picture.shape, &picture.pixels, compression);
        codecs.push(Codec::new(format!("png crate, {name}"), true, encode, decode_png));
    }
    codecs.push(Codec::new("png crate, deflate level 1", true, encode_png_level_1, decode_png));
    let mut zune = Codec::new("zune-png, the files", false, |picture| picture.png.clone(), decode_zune_png);
    zune.encodes = false;
    codecs.push(zune);
    let mut spng = Codec::new("libspng with zlib-ng, the files", false, |picture| picture.png.clone(), decode_spng);
    spng.encodes = false;
    codecs.push(spng);
    codecs.push(Codec::new("qoi (rapid-qoi)", true, encode_qoi, |bytes, _, out| {
        rapid_qoi::Qoi::decode(bytes, out).expect("qoi decodes");
    }));
    codecs.push(Codec::new("WebP lossless (libwebp)", false, encode_webp, decode_webp));
    codecs.push(Codec::new("JPEG XL lossless (zune-jpegxl, jxl)", true, encode_jxl, decode_jxl));
    codecs.push(Codec::new(
        "zstd 3 on raw pixels",
        true,
        |picture| zstd::bulk::compress(&picture.pixels, 3).expect("zstd compresses"),
        |bytes, _, out| assert_eq!(zstd::bulk::decompress_to_buffer(bytes, out).expect("zstd"), out.len()),
    ));
    codecs.push(Codec::new(
        "lz4 on raw pixels (lz4_flex)",
        true,
        |picture| lz4_flex::block::compress(&picture.pixels),
        |bytes, _, out| assert_eq!(lz4_flex::block::decompress_into(bytes, out).expect("lz4"), out.len()),
    ));
    let copy = |bytes: &[u8], _: &Picture, out: &mut [u8]| out.copy_from_slice(bytes);
    codecs.push(Codec::new("memcpy", true, |picture| picture.pixels.clone(), copy));
    codecs
}

/// What the `png` crate makes of pixels.
pub fn encode_png(shape: Shape, pixels: &[u8], compression: png::Compression) -> Vec<u8> {
    write_png(shape, pixels, |encoder| encoder.set_compression(compression))
}

fn encode_png_level_1(picture: &Picture) -> Vec<u8> {
    write_png(picture.shape, &picture.pixels, |encoder| {
        encoder.set_deflate_compression(png::DeflateCompression::Level(1));
        encoder.set_filter(png::Filter::Adaptive);
    })
}

fn write_png(shape: Shape, pixels: &[u8], set: impl FnOnce(&mut png::Encoder<'_, &mut Vec<u8>>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, shape.width(), shape.height());
    encoder.set_color(png::ColorType::Rgb);
    let is_wide = shape.depth() == Depth::Sixteen;
    encoder.set_depth(if is_wide { png::BitDepth::Sixteen } else { png::BitDepth::Eight });
    set(&mut encoder);
    let mut writer = encoder.write_header().expect("png encodes");
    let big_endian: Vec<u8>;
    let samples = if is_wide {
        big_endian = pixels.as_chunks::<2>().0.iter().flat_map(|[low, high]| [*high, *low]).collect();
        &big_endian
    } else {
        pixels
    };
    writer.write_image_data(samples).expect("png encodes");
    writer.finish().expect("png encodes");
    bytes
}

fn decode_png(bytes: &[u8], _: &Picture, out: &mut [u8]) {
    let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().expect("png decodes");
    reader.next_frame(out).expect("png decodes");
}

fn decode_zune_png(bytes: &[u8], _: &Picture, out: &mut [u8]) {
    zune_png::PngDecoder::new(ZCursor::new(bytes)).decode_into(out).expect("zune-png decodes");
}

fn decode_spng(bytes: &[u8], _: &Picture, out: &mut [u8]) {
    let mut reader = spng::Decoder::new(Cursor::new(bytes)).read_info().expect("spng decodes");
    reader.next_frame(out).expect("spng decodes");
}

fn encode_qoi(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.shape.width(), picture.shape.height());
    let header = rapid_qoi::Qoi { width, height, colors: rapid_qoi::Colors::Rgb };
    header.encode_alloc(&picture.pixels).expect("qoi encodes")
}

fn encode_webp(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.shape.width() as i32, picture.shape.height() as i32);
    let mut output = std::ptr::null_mut();
    // SAFETY: the pixels are `height` rows of `3 * width` bytes; libwebp allocates what it returns.
    unsafe {
        let size =
            libwebp_sys::WebPEncodeLosslessRGB(picture.pixels.as_ptr(), width, height, 3 * width, &raw mut output);
        assert!(size > 0, "libwebp encodes");
        let bytes = std::slice::from_raw_parts(output, size).to_vec();
        libwebp_sys::WebPFree(output.cast());
        bytes
    }
}

fn decode_webp(bytes: &[u8], picture: &Picture, out: &mut [u8]) {
    let stride = picture.shape.row_bytes() as i32;
    // SAFETY: input and output are slices of the lengths given.
    let result =
        unsafe { libwebp_sys::WebPDecodeRGBInto(bytes.as_ptr(), bytes.len(), out.as_mut_ptr(), out.len(), stride) };
    assert!(!result.is_null(), "libwebp decodes");
}

fn encode_jxl(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.shape.width() as usize, picture.shape.height() as usize);
    let options = EncoderOptions::new(width, height, ColorSpace::RGB, BitDepth::Eight).set_num_threads(1);
    let mut bytes = Vec::new();
    zune_jpegxl::JxlSimpleEncoder::new(&picture.pixels, options).encode(&mut bytes).expect("zune-jpegxl encodes");
    bytes
}

fn decode_jxl(bytes: &[u8], picture: &Picture, out: &mut [u8]) {
    use jxl::api::{Event, JxlDecoder, JxlDecoderOptions, JxlOutputBuffer, JxlPixelFormat};
    let mut input = bytes;
    let mut decoder = JxlDecoder::new(JxlDecoderOptions::default());
    let row_bytes = picture.shape.row_bytes();
    loop {
        let rows = picture.shape.height() as usize;
        let mut buffers = [JxlOutputBuffer::new(out, rows, row_bytes)];
        let ready = decoder.basic_info().is_some();
        match decoder.process(&mut input, ready.then_some(&mut buffers[..]), None).expect("jxl decodes") {
            Event::BasicInfo => decoder.set_pixel_format(JxlPixelFormat::rgb8(0)).expect("jxl writes bytes"),
            Event::FrameComplete { .. } | Event::Complete => return,
            Event::NeedMoreInput { .. } => panic!("jxl wants more than the file"),
            Event::FrameHeader => {}
        }
    }
}
