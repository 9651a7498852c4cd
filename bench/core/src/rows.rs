//! One benchmark per row: a step or a format.

use std::path::Path;

use bytes::Bytes;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use forebay_codec::image::{DecodeOptions, Decoder, EncodedImage, Encoding, Format, PngEffort, Scale, encode};
use forebay_codec::{Tensor, TensorMut};
use forebay_pipeline::steps::Resize;
use forebay_pipeline::{
    FieldType, Output, SampleView, Schema, Scope, StorageFormat, Transform, ValueView, decode_sample, encode_sample,
};
use forebay_record::{Index, Location, Origin, Writer, records_in_block};

use crate::Outcome;
use crate::bare::Turbo;
use crate::loader::SlotSink;
use crate::measure::{Row, in_turn};

/// What a row is measured with.
type Measure = fn(&'static str, &[Vec<u8>]) -> Outcome<Row>;

/// The work of each row, and what measures it.
pub(crate) const ROWS: [(&str, Measure); 5] = [
    ("JPEG decode", jpeg),
    ("JPEG decode at half size", jpeg_half),
    ("PNG decode", png),
    ("resize to 256, bilinear", resize),
    ("record reading, checked and taken apart", records),
];

/// So many photos are enough for a steady median.
const PHOTOS_MAX: usize = 120;

/// The JPEG files of a folder.
pub(crate) fn photos(folder: &Path) -> Outcome<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    let files = paths.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let jpegs = files.into_iter().filter(|file| Format::detect(file) == Some(Format::Jpeg));
    let jpegs: Vec<Vec<u8>> = jpegs.take(PHOTOS_MAX).collect();
    if jpegs.is_empty() { Err("no JPEG in that folder".into()) } else { Ok(jpegs) }
}

/// Orientation is left as it is stored, as the bare library leaves it.
fn as_stored(scale: Scale) -> DecodeOptions {
    DecodeOptions { apply_orientation: false, scale, ..DecodeOptions::default() }
}

fn decode_all(decoder: &mut Decoder, files: &[Vec<u8>], options: &DecodeOptions, output: &mut Vec<u8>) -> Outcome<()> {
    for file in files {
        let picture = EncodedImage::open(file)?;
        let plan = picture.plan(options)?;
        let spec = plan.spec();
        if output.len() < spec.bytes() {
            output.resize(spec.bytes(), 0);
        }
        decoder.decode_into(&plan, TensorMut { spec, data: &mut output[..spec.bytes()] })?;
    }
    Ok(())
}

fn jpeg_at(work: &'static str, files: &[Vec<u8>], scale: Scale, divisor: i32) -> Outcome<Row> {
    let (mut decoder, mut turbo) = (Decoder::new(), Turbo::new()?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let options = as_stored(scale);
    let (our_seconds, their_seconds) = in_turn(
        || decode_all(&mut decoder, files, &options, &mut ours),
        || files.iter().try_for_each(|file| turbo.decode(file, divisor, &mut theirs).map(|_| ())),
    )?;
    let count = files.len() as f64;
    Ok(Row {
        work: work.into(),
        beside: "libjpeg-turbo",
        unit: "images/s",
        ours: count / our_seconds,
        theirs: count / their_seconds,
        bar: Some(0.97),
    })
}

fn jpeg(work: &'static str, files: &[Vec<u8>]) -> Outcome<Row> {
    jpeg_at(work, files, Scale::Full, 1)
}

fn jpeg_half(work: &'static str, files: &[Vec<u8>]) -> Outcome<Row> {
    jpeg_at(work, files, Scale::Half, 2)
}

/// The photos, decoded.
fn pictures(files: &[Vec<u8>]) -> Outcome<Vec<Tensor>> {
    let mut decoder = Decoder::new();
    let options = as_stored(Scale::Full);
    Ok(files.iter().map(|file| decoder.decode(file, &options)).collect::<Result<_, _>>()?)
}

/// The bytes of the photos' pixels.
pub(crate) fn pixels(files: &[Vec<u8>]) -> Outcome<Vec<Vec<u8>>> {
    Ok(pictures(files)?.into_iter().map(|picture| picture.data().to_vec()).collect())
}

fn png(work: &'static str, files: &[Vec<u8>]) -> Outcome<Row> {
    let encoding = Encoding::Png { effort: PngEffort::Balanced };
    let some = &files[..files.len().min(24)];
    let pngs: Vec<Vec<u8>> =
        pictures(some)?.iter().map(|picture| encode(picture.view(), &encoding)).collect::<Result<_, _>>()?;
    let mut decoder = Decoder::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let options = as_stored(Scale::Full);
    let (our_seconds, their_seconds) = in_turn(
        || decode_all(&mut decoder, &pngs, &options, &mut ours),
        || {
            for file in &pngs {
                let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info()?;
                let bytes = reader.output_buffer_size().ok_or("a PNG too large for memory")?;
                if theirs.len() < bytes {
                    theirs.resize(bytes, 0);
                }
                reader.next_frame(&mut theirs)?;
            }
            Ok(())
        },
    )?;
    let count = pngs.len() as f64;
    Ok(Row {
        work: work.into(),
        beside: "png",
        unit: "images/s",
        ours: count / our_seconds,
        theirs: count / their_seconds,
        bar: Some(0.97),
    })
}

fn resize(work: &'static str, files: &[Vec<u8>]) -> Outcome<Row> {
    let pictures = pictures(files)?;
    let step = Resize::to(256);
    let mut scope = Scope::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut resizer = Resizer::new();
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear)).use_alpha(false);
    let (our_seconds, their_seconds) = in_turn(
        || {
            for picture in &pictures {
                let input = ValueView::Tensor(picture.view());
                let mut sink = SlotSink { buffer: &mut ours, spec: *picture.spec() };
                scope.begin_fields();
                step.run(input, &mut Output::new("image", &mut sink), &mut scope)?;
            }
            Ok(())
        },
        || {
            for picture in &pictures {
                let (height, width, _) = picture.spec().as_picture().ok_or("a picture has three dimensions")?;
                let longer = 256 * width.max(height) / width.min(height);
                let (out_width, out_height) = if width <= height { (256, longer) } else { (longer, 256) };
                if theirs.len() < out_width * out_height * 3 {
                    theirs.resize(out_width * out_height * 3, 0);
                }
                let source = ImageRef::new(width as u32, height as u32, picture.data(), PixelType::U8x3)?;
                let room = &mut theirs[..out_width * out_height * 3];
                let mut target = Image::from_slice_u8(out_width as u32, out_height as u32, room, PixelType::U8x3)?;
                resizer.resize(&source, &mut target, &options)?;
            }
            Ok(())
        },
    )?;
    let count = pictures.len() as f64;
    Ok(Row {
        work: work.into(),
        beside: "fast_image_resize",
        unit: "images/s",
        ours: count / our_seconds,
        theirs: count / their_seconds,
        bar: Some(0.97),
    })
}

/// Records of encoded photos from a block in memory, compared with the checksum alone, which is the minimum that reading must do.
fn records(work: &'static str, files: &[Vec<u8>]) -> Outcome<Row> {
    let mut writer = Writer::new(Vec::new());
    let mut index = Index::new();
    let mut record = Vec::new();
    for file in files {
        record.clear();
        let fields = [("image", ValueView::Bytes(file)), ("label", ValueView::Int(1))];
        encode_sample(&SampleView { key: "key", index: 0, fields: &fields }, &StorageFormat::default(), &mut record)?;
        index.push(writer.write(&record)?)?;
    }
    let shard = Bytes::from(writer.finish()?);
    let schema = Schema { fields: vec![("image".to_owned(), FieldType::Bytes), ("label".to_owned(), FieldType::Int)] };
    let locations: Vec<Location> = index.iter().collect();
    let origin = Origin { shard: "shard", record: 0, offset: 0 };
    // Many times over, since one pass is too short to time.
    let passes = 200;
    let (our_seconds, their_seconds) = in_turn(
        || {
            for _ in 0..passes {
                for record in records_in_block(&shard, locations.iter().copied(), origin, true) {
                    std::hint::black_box(decode_sample(record?, &schema, 0)?);
                }
            }
            Ok(())
        },
        || {
            for _ in 0..passes {
                for location in &locations {
                    let payload = location.offset as usize + 12..location.end() as usize - 4;
                    std::hint::black_box(crc32c::crc32c(&shard[payload]));
                }
            }
            Ok(())
        },
    )?;
    let megabytes = shard.len() as f64 * f64::from(passes) / 1e6;
    Ok(Row {
        work: work.into(),
        beside: "crc32c alone",
        unit: "MB/s",
        ours: megabytes / our_seconds,
        theirs: megabytes / their_seconds,
        bar: None,
    })
}
