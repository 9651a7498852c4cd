//! The metadata that must survive re-encoding: EXIF and the color profile.

use crate::error::Result;

use super::format::Format;
use super::jpeg::Walk;
use super::png;

/// The EXIF data and the color profile of a picture. (XMP, comments and thumbnails outside EXIF are not preserved.)
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The TIFF structure that EXIF is, without `Exif\0\0` before it.
    pub exif: Option<Vec<u8>>,
    /// The ICC profile.
    pub icc: Option<Vec<u8>>,
}

/// What JPEG puts before EXIF.
const EXIF_MARK: &[u8] = b"Exif\0\0";
/// What JPEG puts before each piece of a profile, and then the piece's number and how many there are.
const ICC_MARK: &[u8] = b"ICC_PROFILE\0";
/// The maximum size of a JPEG segment, including its length.
const SEGMENT_BYTES_MAX: usize = 65_535;
/// The maximum size of a profile: those of printers have a few megabytes.
const ICC_BYTES_MAX: usize = 16 << 20;

impl Metadata {
    /// Reads those of the JPEG, PNG or WebP in `bytes`; other formats have none. Damaged metadata is ignored: it must not make the image unreadable.
    pub fn read(bytes: &[u8]) -> Self {
        match Format::detect(bytes) {
            Some(Format::Jpeg) => read_jpeg(bytes),
            Some(Format::Png) => png::metadata(bytes),
            Some(Format::WebP) => read_webp(bytes),
            _ => Self::default(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.exif.is_none() && self.icc.is_none()
    }

    /// The JPEG or WebP in `file`, which has no metadata, with these. Other formats stay as they are; EXIF that no segment of a JPEG holds is left out.
    ///
    /// ```
    /// use forebay_codec::image::{Encoding, Metadata, encode};
    /// use forebay_codec::Tensor;
    ///
    /// let gray = Tensor::from_elements(&[8, 8, 1], &[77_u8; 64]).expect("64 samples fit the shape");
    /// let metadata = Metadata { icc: Some(b"a profile".to_vec()), ..Metadata::default() };
    /// for name in ["jpeg-80", "webp-80"] {
    ///     let file = encode(gray.view(), &name.parse::<Encoding>()?)?;
    ///     assert_eq!(Metadata::read(&metadata.write(file)?), metadata);
    /// }
    /// # Ok::<(), forebay_codec::Error>(())
    /// ```
    pub fn write(&self, file: Vec<u8>) -> Result<Vec<u8>> {
        if self.is_empty() {
            return Ok(file);
        }
        match Format::detect(&file) {
            Some(Format::Jpeg) => Ok(self.write_jpeg(file)),
            Some(Format::WebP) => self.write_webp(&file),
            _ => Ok(file),
        }
    }

    fn write_jpeg(&self, mut file: Vec<u8>) -> Vec<u8> {
        let mut segments = Vec::new();
        let mut push = |marker: u8, parts: &[&[u8]]| {
            let bytes: usize = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
            if bytes <= SEGMENT_BYTES_MAX {
                segments.extend_from_slice(&[0xFF, marker]);
                segments.extend_from_slice(&(bytes as u16).to_be_bytes());
                segments.extend(parts.iter().copied().flatten());
            }
        };
        if let Some(exif) = &self.exif {
            push(0xE1, &[EXIF_MARK, exif]);
        }
        if let Some(icc) = &self.icc {
            let piece_bytes = SEGMENT_BYTES_MAX - 2 - ICC_MARK.len() - 2;
            let pieces = icc.len().div_ceil(piece_bytes);
            if pieces <= 255 {
                for (number, piece) in icc.chunks(piece_bytes).enumerate() {
                    push(0xE2, &[ICC_MARK, &[number as u8 + 1, pieces as u8], piece]);
                }
            }
        }
        // After JFIF's own segment, which should come first.
        let mut walk = Walk::new(&file, 2);
        let at = match walk.marker() {
            Ok((0xE0, _)) => walk.payload().map_or(2, |payload| 2 + 4 + payload.len()),
            _ => 2,
        };
        file.splice(at..at, segments);
        file
    }

    /// The chunks of the extended layout: what there is, the profile, the image, EXIF.
    fn write_webp(&self, file: &[u8]) -> Result<Vec<u8>> {
        const ICC_FLAG: u8 = 0x20;
        const ALPHA_FLAG: u8 = 0x10;
        const EXIF_FLAG: u8 = 0x08;
        let opened = super::EncodedImage::open(file)?;
        let header = *opened.header();
        let chunks = webp_chunks(file);
        let mut flags = chunks.iter().find(|(name, _)| name == b"VP8X").and_then(|(_, data)| data.first()).copied();
        if header.channels == 4 {
            *flags.get_or_insert(0) |= ALPHA_FLAG;
        }
        let flags = flags.unwrap_or(0)
            | if self.icc.is_some() { ICC_FLAG } else { 0 }
            | if self.exif.is_some() { EXIF_FLAG } else { 0 };
        let [width, height] = [header.width, header.height].map(|side| (side as u32).saturating_sub(1).to_le_bytes());
        let mut head = vec![flags, 0, 0, 0];
        head.extend_from_slice(&width[..3]);
        head.extend_from_slice(&height[..3]);
        let mut body = b"WEBP".to_vec();
        push_chunk(&mut body, *b"VP8X", &head);
        if let Some(icc) = &self.icc {
            push_chunk(&mut body, *b"ICCP", icc);
        }
        for (name, data) in chunks.iter().filter(|(name, _)| name != b"VP8X") {
            push_chunk(&mut body, *name, data);
        }
        if let Some(exif) = &self.exif {
            push_chunk(&mut body, *b"EXIF", exif);
        }
        let mut whole = b"RIFF".to_vec();
        whole.extend_from_slice(&(body.len() as u32).to_le_bytes());
        whole.extend_from_slice(&body);
        Ok(whole)
    }
}

fn push_chunk(body: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    body.extend_from_slice(&name);
    body.extend_from_slice(&(data.len() as u32).to_le_bytes());
    body.extend_from_slice(data);
    body.extend((data.len() % 2 == 1).then_some(0));
}

fn read_jpeg(bytes: &[u8]) -> Metadata {
    let mut found = Metadata::default();
    let mut pieces: Vec<(u8, &[u8])> = Vec::new();
    let mut walk = Walk::new(bytes, 2);
    while let Ok((marker, _)) = walk.marker() {
        if matches!(marker, 0xD9 | 0xDA) {
            break;
        }
        if matches!(marker, 0x01 | 0xD0..=0xD8) {
            continue;
        }
        let Ok(payload) = walk.payload() else { break };
        match marker {
            0xE1 if found.exif.is_none() => found.exif = payload.strip_prefix(EXIF_MARK).map(<[u8]>::to_vec),
            0xE2 => {
                let piece = payload.strip_prefix(ICC_MARK).and_then(|rest| rest.split_at_checked(2));
                pieces.extend(piece.map(|(number, piece)| (number[0], piece)));
            }
            _ => {}
        }
    }
    pieces.sort_by_key(|(number, _)| *number);
    let bytes: usize = pieces.iter().map(|(_, piece)| piece.len()).sum();
    let is_whole = pieces.iter().enumerate().all(|(index, (number, _))| usize::from(*number) == index + 1);
    if !pieces.is_empty() && is_whole && bytes <= ICC_BYTES_MAX {
        found.icc = Some(pieces.iter().flat_map(|(_, piece)| piece.iter().copied()).collect());
    }
    found
}

/// The chunks of a WebP, as far as they are complete.
fn webp_chunks(bytes: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let mut chunks = Vec::new();
    let mut at = 12;
    while let Some(&[a, b, c, d, ref length @ ..]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some(data) = bytes.get(at + 8..).and_then(|rest| rest.get(..length)) else { break };
        chunks.push(([a, b, c, d], data));
        at += 8 + length + length % 2;
    }
    chunks
}

fn read_webp(bytes: &[u8]) -> Metadata {
    let chunks = webp_chunks(bytes);
    let of = |name: &[u8; 4]| chunks.iter().find(|(found, _)| found == name).map(|(_, data)| *data);
    let exif = of(b"EXIF").map(|exif| exif.strip_prefix(EXIF_MARK).unwrap_or(exif).to_vec());
    Metadata { exif, icc: of(b"ICCP").filter(|icc| icc.len() <= ICC_BYTES_MAX).map(<[u8]>::to_vec) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Channels, DecodeOptions, Decoder, Encoding, encode};
    use crate::tensor::Tensor;

    #[test]
    fn metadata_go_from_format_to_format_and_pixels_stay() {
        let as_stored = DecodeOptions { channels: Channels::AsStored, ..DecodeOptions::default() };
        let mut decoder = Decoder::new();
        let metadata = Metadata { exif: Some(b"II*\0\x08\0\0\0\0\0".to_vec()), icc: Some(vec![7; 150_001]) };
        for channels in [3, 4] {
            let pixels: Vec<u8> = (0..40 * 30 * channels).map(|index| (index * 13 % 256) as u8).collect();
            let picture = Tensor::from_elements(&[30, 40, channels], &pixels).expect("it fits");
            for name in ["jpeg-80", "webp-80", "webp-lossless"].into_iter().skip(channels - 3) {
                let plain = encode(picture.view(), &name.parse::<Encoding>().expect("a name")).expect("a file");
                let written = metadata.write(plain.clone()).expect("it can be written");
                assert_eq!(Metadata::read(&written), metadata, "{name}");
                let [before, after] =
                    [&plain, &written].map(|file| decoder.decode(file, &as_stored).expect("it decodes"));
                assert_eq!(before, after, "{name} of {channels} channels");
                assert_eq!(Metadata::read(&plain), Metadata::default());
            }
        }
    }

    #[test]
    fn cut_files_do_no_harm() {
        let gray = Tensor::from_elements(&[8, 8, 1], &[77_u8; 64]).expect("it fits");
        let metadata = Metadata { exif: Some(vec![1; 99]), icc: Some(vec![2; 99]) };
        for name in ["jpeg-80", "webp-80"] {
            let file = encode(gray.view(), &name.parse::<Encoding>().expect("a name")).expect("a file");
            let file = metadata.write(file).expect("it can be written");
            (0..file.len()).for_each(|end| drop(Metadata::read(&file[..end])));
        }
    }
}
