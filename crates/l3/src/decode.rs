//! Bytes to pixels: whole images, regions, and single strips for callers with threads.

use std::ops::Range;

use crate::{
    classic::Released,
    error::{Error, Result, resize},
    header::{CHECKSUM_OFFSET, HEADER_BYTES, HEADER_BYTES_RELEASED, Header, Mode, STRIP_ENTRY_BYTES, TAIL_BYTES},
    image::{Image, Region, check_buffer},
    kernel::{Level, Supported, checksum::checksum},
    model::Model,
    scratch::Scratch,
    strip::{self, Job},
};

/// How to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Whether to verify checksums. Without, damage may give wrong pixels instead of an error (but nothing worse).
    pub verify: bool,
    /// The most pixels an image may have.
    pub max_pixels: u64,
    /// The instructions to use. The pixels are the same with all.
    pub level: Level,
    /// Whether pixels are written past the processor's cache. Faster where the output is larger than the cache, or one of many that
    /// together are, and is not read soon; slower where it is.
    pub streaming: bool,
}

impl Default for DecodeOptions {
    /// Checksums verified, at most 2^28 pixels, this machine's fastest instructions, through the cache.
    fn default() -> Self {
        Self { verify: true, max_pixels: 1 << 28, level: Level::detect(), streaming: false }
    }
}

/// Decodes an image with default options.
pub fn decode(bytes: &[u8]) -> Result<Image> {
    Decoder::new(DecodeOptions::default()).decode(bytes)
}

/// Decodes an image with default options into a buffer whose rows begin `stride_bytes` apart.
pub fn decode_into(bytes: &[u8], out: &mut [u8], stride_bytes: usize) -> Result<Header> {
    Decoder::new(DecodeOptions::default()).decode_into(bytes, out, stride_bytes)
}

/// Decodes one image after another and keeps its working memory in between: once it has grown to the largest image, nothing
/// more is allocated.
#[derive(Clone, Debug)]
pub struct Decoder {
    options: DecodeOptions,
    scratch: Scratch,
    parts: Parts,
}

impl Decoder {
    /// A decoder with empty working memory.
    pub fn new(options: DecodeOptions) -> Self {
        Self { options, scratch: Scratch::default(), parts: Parts::default() }
    }

    /// Decodes an image into a new buffer.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Image> {
        let header = Header::parse(bytes)?;
        check_pixels(&header, &self.options)?;
        let mut data = Vec::new();
        resize(&mut data, header.shape.bytes())?;
        self.decode_into(bytes, &mut data, header.shape.row_bytes())?;
        Ok(Image { shape: header.shape, data })
    }

    /// Decodes an image into a buffer whose rows begin `stride_bytes` apart. What lies between rows is left as it is.
    pub fn decode_into(&mut self, bytes: &[u8], out: &mut [u8], stride_bytes: usize) -> Result<Header> {
        let header = Header::parse(bytes)?;
        self.decode_region_into(bytes, Region::whole(header.shape), out, stride_bytes)
    }

    /// Decodes a rectangle into a buffer whose rows begin `stride_bytes` apart. Strips that it does not touch are not read, and in
    /// those that it touches, rows after its last are not decoded.
    pub fn decode_region_into(
        &mut self,
        bytes: &[u8],
        region: Region,
        out: &mut [u8],
        stride_bytes: usize,
    ) -> Result<Header> {
        let parts = std::mem::take(&mut self.parts);
        let strips = Strips::open_with(bytes, self.options, parts)?;
        let result = strips.decode_region_into(region, &mut self.scratch, out, stride_bytes);
        let header = strips.header;
        self.parts = strips.parts;
        result.map(|()| header)
    }
}

/// What opening a file allocates.
#[derive(Clone, Debug, Default)]
struct Parts {
    model: Model,
    /// Where each strip's payload begins, and where the last ends. In the released layout: where the patches of each row of
    /// patches begin, plane after plane.
    offsets: Vec<usize>,
}

/// An opened file: strips that can be decoded in any order, by any number of threads at once, each with its own [`Scratch`].
#[derive(Clone, Debug)]
pub struct Strips<'a> {
    bytes: &'a [u8],
    header: Header,
    options: DecodeOptions,
    level: Supported,
    parts: Parts,
}

impl<'a> Strips<'a> {
    /// Reads header, strip table and model, and verifies their checksum and the file's length. Strips are verified when they are
    /// decoded.
    pub fn open(bytes: &'a [u8], options: DecodeOptions) -> Result<Self> {
        Self::open_with(bytes, options, Parts::default())
    }

    fn open_with(bytes: &'a [u8], options: DecodeOptions, mut parts: Parts) -> Result<Self> {
        let level = Supported::new(options.level)?;
        let header = Header::parse(bytes)?;
        check_pixels(&header, &options)?;
        parts.offsets.clear();
        if header.released {
            open_released(bytes, &header, &mut parts.offsets)?;
        } else {
            open_payload(bytes, &header, options.verify, &mut parts)?;
        }
        Ok(Self { bytes, header, options, level, parts })
    }

    /// The file's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many strips there are.
    pub fn count(&self) -> u32 {
        self.header.strip_count()
    }

    /// The image rows of a strip.
    pub fn rows(&self, strip: u32) -> Range<u32> {
        let start = strip.saturating_mul(self.header.strip_rows).min(self.header.shape.height());
        start..start.saturating_add(self.header.strip_rows).min(self.header.shape.height())
    }

    /// The bytes of a strip's payload in the file; `None` in the released layout, where a strip lies in three pieces.
    pub fn payload_bytes(&self, strip: u32) -> Option<u64> {
        let ends = self.parts.offsets.get(strip as usize..)?.first_chunk::<2>()?;
        (!self.header.released).then(|| (ends[1] - ends[0]) as u64)
    }

    /// Decodes a strip into a buffer that begins with the strip's first row.
    pub fn decode_strip_into(
        &self,
        strip: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
        stride_bytes: usize,
    ) -> Result<()> {
        if strip >= self.count() {
            return Err(Error::Usage { what: "strip", expected: u64::from(self.count()) - 1, found: u64::from(strip) });
        }
        let rows = self.rows(strip).len();
        check_buffer(self.header.shape.row_bytes(), rows, out.len(), stride_bytes)?;
        let columns = 0..self.header.shape.width() as usize;
        self.decode_part(strip, 0..rows, columns, scratch, out, stride_bytes)
    }

    /// Decodes a rectangle into a buffer that begins with the rectangle's first row.
    pub fn decode_region_into(
        &self,
        region: Region,
        scratch: &mut Scratch,
        out: &mut [u8],
        stride_bytes: usize,
    ) -> Result<()> {
        region.check(self.header.shape)?;
        let row_bytes = region.width as usize * self.header.shape.pixel_bytes();
        check_buffer(row_bytes, region.height as usize, out.len(), stride_bytes)?;
        let (top, bottom) = (region.y, region.y + region.height);
        let columns = region.x as usize..(region.x + region.width) as usize;
        let strips = top / self.header.strip_rows..bottom.div_ceil(self.header.strip_rows);
        for strip in strips {
            let rows = self.rows(strip);
            let (first, last) = (rows.start.max(top), rows.end.min(bottom));
            let wanted = (first - rows.start) as usize..(last - rows.start) as usize;
            let out = &mut out[(first - top) as usize * stride_bytes..];
            self.decode_part(strip, wanted, columns.clone(), scratch, out, stride_bytes)?;
        }
        Ok(())
    }

    fn decode_part(
        &self,
        strip: u32,
        wanted: Range<usize>,
        columns: Range<usize>,
        scratch: &mut Scratch,
        out: &mut [u8],
        stride_bytes: usize,
    ) -> Result<()> {
        let result = strip::decode(&self.job(strip, wanted, columns), scratch, out, stride_bytes);
        // Verified afterwards, when the bytes are in the cache: whatever they are, decoding them does no harm. Where both fail,
        // the checksum says what is wrong.
        self.verify(strip)?;
        result
    }

    /// Some rows and columns of a strip, to be decoded.
    pub(crate) fn job(&self, strip: u32, wanted: Range<usize>, columns: Range<usize>) -> Job<'_> {
        let index = strip as usize;
        let (payload, released) = if self.header.released {
            (HEADER_BYTES_RELEASED..self.bytes.len(), Some(self.released(index)))
        } else {
            (self.parts.offsets[index]..self.parts.offsets[index + 1], None)
        };
        Job {
            header: &self.header,
            model: &self.parts.model,
            data: self.bytes,
            payload,
            rows: self.rows(strip).len(),
            wanted,
            columns,
            released,
            level: self.level,
            streaming: self.options.streaming,
        }
    }

    /// The tables of `dense`.
    pub(crate) fn model(&self) -> &Model {
        &self.parts.model
    }

    /// Compares a strip's payload with its checksum.
    pub(crate) fn verify(&self, strip: u32) -> Result<()> {
        if !self.options.verify || self.header.released {
            return Ok(());
        }
        let index = strip as usize;
        let payload = self.parts.offsets[index]..self.parts.offsets[index + 1];
        let expected = word(self.bytes, HEADER_BYTES + STRIP_ENTRY_BYTES * index + 4);
        let found = checksum(self.level, &self.bytes[payload.clone()]);
        if found == expected {
            return Ok(());
        }
        let (what, offset) = ("a strip", payload.start as u64);
        Err(Error::Checksum { what, strip: Some(strip), offset, expected, found })
    }

    /// Where the parts of a row of patches are.
    fn released(&self, row: usize) -> Released {
        let rows = self.count() as usize;
        let columns = (self.header.shape.width() / u32::from(self.header.patch)) as usize;
        Released {
            sizes: [0, 1, 2].map(|plane| HEADER_BYTES_RELEASED + 2 * (plane * rows + row) * columns),
            patches: [0, 1, 2].map(|plane| self.parts.offsets[plane * rows + row]),
        }
    }
}

fn check_pixels(header: &Header, options: &DecodeOptions) -> Result<()> {
    let (found, limit) = (header.shape.pixels(), options.max_pixels);
    if found > limit {
        let hint = "raise DecodeOptions::max_pixels if the file is trusted";
        return Err(Error::Limit { what: "number of pixels", limit, found, hint });
    }
    Ok(())
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[offset + i]))
}

/// Checks the strip table and the file's length, and reads the model.
fn open_payload(bytes: &[u8], header: &Header, verify: bool, parts: &mut Parts) -> Result<()> {
    let truncated = |what, needed: u64| Error::Truncated { what, needed, found: bytes.len() as u64 };
    let strips = header.strip_count() as usize;
    let model = HEADER_BYTES + STRIP_ENTRY_BYTES * strips;
    let payload = model + header.model_bytes as usize;
    if payload + TAIL_BYTES > bytes.len() {
        return Err(truncated("the strip table", (payload + TAIL_BYTES) as u64));
    }
    if verify {
        let found = crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]);
        let found = crc32c::crc32c_append(found, &bytes[HEADER_BYTES..payload]);
        if found != header.checksum {
            let (what, expected) = ("the header", header.checksum);
            return Err(Error::Checksum { what, strip: None, offset: 0, expected, found });
        }
    }
    let mut end = payload;
    parts.offsets.push(end);
    for strip in 0..strips {
        end += word(bytes, HEADER_BYTES + STRIP_ENTRY_BYTES * strip) as usize;
        if end + TAIL_BYTES > bytes.len() {
            return Err(truncated("a strip", (end + TAIL_BYTES) as u64));
        }
        parts.offsets.push(end);
    }
    let (expected, found) = ((end + TAIL_BYTES) as u64, bytes.len() as u64);
    if expected != found {
        return Err(Error::Format { what: "length of the file", offset: 0, expected, found });
    }
    if let Some(position) = bytes[end..].iter().position(|&byte| byte != 0) {
        let (offset, found) = ((end + position) as u64, u64::from(bytes[end + position]));
        return Err(Error::Format { what: "zero bytes at the end", offset, expected: 0, found });
    }
    if header.mode == Mode::Dense {
        let (channels, depth) = (usize::from(header.shape.channels()), header.shape.depth().bytes());
        parts.model.read(&bytes[model..payload], model, channels, depth)?;
    }
    Ok(())
}

/// Finds where the patches of each row of patches begin in the released layout.
fn open_released(bytes: &[u8], header: &Header, offsets: &mut Vec<usize>) -> Result<()> {
    let columns = (header.shape.width() / u32::from(header.patch)) as usize;
    let sizes_bytes = 2 * 3 * columns * header.strip_count() as usize;
    let mut end = HEADER_BYTES_RELEASED + sizes_bytes;
    let Some(sizes) = bytes.get(HEADER_BYTES_RELEASED..end) else {
        return Err(Error::Truncated { what: "the patch sizes", needed: end as u64, found: bytes.len() as u64 });
    };
    for row in sizes.chunks_exact(2 * columns) {
        offsets.push(end);
        end += row.as_chunks::<2>().0.iter().map(|size| usize::from(u16::from_le_bytes(*size))).sum::<usize>();
    }
    if end == bytes.len() {
        return Ok(());
    }
    let (expected, found) = (end as u64, bytes.len() as u64);
    Err(Error::Format { what: "length of the file", offset: 0, expected, found })
}
