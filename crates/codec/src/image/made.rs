//! Which settings a file was encoded with, as far as its first bytes say.

use crate::error::Result;
use crate::tensor::{DType, TensorSpec, TensorView};

use super::encode::{Encoding, encode};
use super::format::Format;
use super::l3;

impl Encoding {
    /// So much of a file is enough for [`made`](Self::made).
    pub const HEAD_BYTES: usize = 2048;

    /// Whether a file that begins with `head` was encoded by [`encode`] with these settings. `None` where its header does not tell them
    /// apart from others of the same format: how hard a PNG was compressed, and the quality of a WebP, are nowhere in the file.
    pub fn made(&self, head: &[u8]) -> Result<Option<bool>> {
        if Format::detect(head) != Some(self.format()) {
            return Ok(Some(false));
        }
        Ok(match self {
            Self::L3 { mode, strip_rows } => Some(l3::made(head, *mode, *strip_rows)),
            Self::Jpeg { .. } => {
                let [color, gray] = [self.tables(3)?, self.tables(1)?];
                Some(head.starts_with(&color) || head.starts_with(&gray))
            }
            Self::Bmp | Self::Pnm | Self::Qoi => Some(true),
            Self::Png { .. } | Self::WebP { .. } | Self::WebPLossless { .. } => None,
        })
    }

    /// What stands before the frame of a JPEG of so many channels: its quantization tables, which follow from the quality alone.
    fn tables(self, channels: usize) -> Result<Vec<u8>> {
        const FRAMES: [[u8; 2]; 2] = [[0xFF, 0xC0], [0xFF, 0xC2]];
        let spec = TensorSpec::new(DType::U8, &[1, 1, channels]);
        let mut file = encode(TensorView { spec, data: &[0; 3][..channels] }, &self)?;
        let frame = file.windows(2).position(|marker| FRAMES.iter().any(|frame| frame == marker));
        file.truncate(frame.unwrap_or(file.len()));
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    fn file(encoding: &str, channels: usize) -> Vec<u8> {
        let pixels: Vec<u8> = (0..40 * 50 * channels).map(|index| (index * 7 % 251) as u8).collect();
        let picture = Tensor::from_elements(&[40, 50, channels], &pixels).expect("an image");
        encode(picture.view(), &encoding.parse().expect("an encoding")).expect("it can be encoded")
    }

    #[test]
    fn what_a_header_says() {
        const ALL: [&str; 14] = [
            "l3-fast",
            "l3-fast-rows-16",
            "l3-dense-rows-20",
            "l3-dense",
            "l3-classic",
            "png",
            "png-fast",
            "qoi",
            "webp-lossless",
            "webp-80",
            "bmp",
            "pnm",
            "jpeg-90",
            "jpeg-91",
        ];
        let silent = |one: &str| one.starts_with("png") || one.starts_with("webp");
        for channels in [1, 3] {
            for made in ALL {
                let file = file(made, channels);
                for asked in ALL {
                    let encoding: Encoding = asked.parse().expect("an encoding");
                    let same_format = Some(encoding.format()) == Format::detect(&file);
                    let expected = if same_format && silent(asked) { None } else { Some(made == asked) };
                    let head = &file[..file.len().min(Encoding::HEAD_BYTES)];
                    assert_eq!(encoding.made(head).expect("it can be told"), expected, "{made} for {asked}");
                }
            }
        }
        for cut in [b"".as_slice(), b"L3", b"\xFF\xD8\xFF"] {
            assert_eq!("l3-fast".parse::<Encoding>().expect("one").made(cut).expect("told"), Some(false));
        }
    }

    /// No two qualities share their tables.
    #[test]
    fn every_quality_is_told_from_the_next() {
        let tables =
            |quality: u8| format!("jpeg-{quality}").parse::<Encoding>().expect("one").tables(3).expect("a file");
        for quality in 2..=100 {
            assert_ne!(tables(quality - 1), tables(quality), "{quality}");
        }
    }
}
