//! PBM, PGM and PPM: raw pixels behind a text header.
//!
//! ```text
//! P1 P2 P3    bits, gray, RGB in ASCII          P4 P5 P6    the same in binary
//! "P6" white width white height white maxval one-white samples      (a bitmap has no maxval)
//! ```
//! `white` is any run of white space and of comments from `#` to the end of the line. Binary samples of a maxval over 255
//! take two bytes, the high one first. A maxval other than 255 or 65535 is scaled to it.

use crate::error::{Error, Result};

use super::decoder::Task;
use super::format::Format;
use super::header::Header;
use super::layout;
use super::orientation::Orientation;
use super::sink::{self, Samples, SourceRows};

const NAME: &str = Format::Pnm.name();

/// What the header says beyond [`Header`].
#[derive(Debug, Clone)]
pub(crate) struct Netpbm {
    pub(crate) header: Header,
    ascii: bool,
    bitmap: bool,
    maxval: u32,
    pixels_at: usize,
}

/// Reads numbers.
struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Tokens<'_> {
    fn skip_white(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte == b'#' {
                let line = self.bytes[self.at..].iter().position(|&byte| matches!(byte, b'\n' | b'\r'));
                self.at = line.map_or(self.bytes.len(), |length| self.at + length);
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn number(&mut self) -> Result<u32> {
        self.skip_white();
        let start = self.at;
        let mut value = 0_u32;
        while let Some(digit) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u32::from(digit - b'0')))
                .ok_or_else(|| Error::format_at(NAME, "a number is too large", start))?;
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            None if self.at == start => Err(Error::truncated(NAME, "it ends where a number is due", start)),
            Some(_) if self.at == start => Err(Error::format_at(NAME, "a number is expected", start)),
            _ => Ok(value),
        }
    }

    /// One digit of an ASCII bitmap, which needs no white space between digits.
    fn bit(&mut self) -> Result<u32> {
        self.skip_white();
        let at = self.at;
        self.at += 1;
        match self.bytes.get(at) {
            Some(b'0') => Ok(0),
            Some(b'1') => Ok(1),
            None => Err(Error::truncated(NAME, "it ends where a bit is due", at)),
            Some(_) => Err(Error::format_at(NAME, "a bit is neither `0` nor `1`", at)),
        }
    }
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<Netpbm> {
    let kind = bytes[1];
    if kind == b'7' {
        return Err(Error::unsupported(NAME, "the PAM variant (`P7`)", "convert the file to PPM or PGM"));
    }
    let mut tokens = Tokens { bytes, at: 2 };
    let (width, height) = (tokens.number()? as usize, tokens.number()? as usize);
    let bitmap = matches!(kind, b'1' | b'4');
    let maxval = if bitmap { 1 } else { tokens.number()? };
    if !(1..=65535).contains(&maxval) {
        return Err(Error::format_at(NAME, format!("the maxval is `{maxval}`, not 1 to 65535"), tokens.at));
    }
    let header = Header {
        format: Format::Pnm,
        width,
        height,
        channels: if matches!(kind, b'3' | b'6') { 3 } else { 1 },
        bits: if maxval > 255 { 16 } else { 8 },
        orientation: Orientation::Normal,
        progressive: false,
        animated: false,
    };
    Ok(Netpbm { header, ascii: kind < b'4', bitmap, maxval, pixels_at: tokens.at + 1 })
}

impl Netpbm {
    /// Appends one sample, scaled to the full range of its depth.
    fn push_sample(&self, value: u32, at: usize, row: &mut Vec<u8>) -> Result<()> {
        if value > self.maxval {
            let problem = format!("a sample is `{value}`, over the maxval of `{}`", self.maxval);
            return Err(Error::format_at(NAME, problem, at));
        }
        if self.header.bits == 16 {
            let scaled = (u64::from(value) * 65535 + u64::from(self.maxval) / 2) / u64::from(self.maxval);
            row.extend_from_slice(&(scaled as u16).to_be_bytes());
        } else {
            row.push(((value * 255 + self.maxval / 2) / self.maxval) as u8);
        }
        Ok(())
    }

    /// Reads row `y` of a binary file into `row`.
    fn binary_row(&self, bytes: &[u8], y: usize, row: &mut Vec<u8>) -> Result<()> {
        let samples = self.header.width * self.header.channels;
        let row_bytes = if self.bitmap { samples.div_ceil(8) } else { samples * usize::from(self.header.bits / 8) };
        let start = self.pixels_at + y * row_bytes;
        let stored = bytes
            .get(start..start + row_bytes)
            .ok_or_else(|| Error::truncated(NAME, format!("row `{y}` is cut off"), bytes.len()))?;
        row.clear();
        match self.maxval {
            _ if self.bitmap => {
                row.extend((0..samples).map(|x| if stored[x / 8] & (128 >> (x % 8)) == 0 { 255 } else { 0 }));
            }
            255 | 65535 => row.extend_from_slice(stored),
            _ if self.header.bits == 16 => {
                for (index, &pair) in stored.as_chunks::<2>().0.iter().enumerate() {
                    self.push_sample(u32::from(u16::from_be_bytes(pair)), start + index * 2, row)?;
                }
            }
            _ => {
                for (index, &byte) in stored.iter().enumerate() {
                    self.push_sample(u32::from(byte), start + index, row)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the next row of an ASCII file into `row`.
    fn ascii_row(&self, tokens: &mut Tokens<'_>, row: &mut Vec<u8>) -> Result<()> {
        row.clear();
        for _ in 0..self.header.width * self.header.channels {
            let at = tokens.at;
            if self.bitmap {
                row.push(if tokens.bit()? == 0 { 255 } else { 0 });
            } else {
                let value = tokens.number()?;
                self.push_sample(value, at, row)?;
            }
        }
        Ok(())
    }
}

/// Decodes; `true` if data was missing and that was accepted.
pub(crate) fn decode(netpbm: &Netpbm, task: &mut Task<'_>) -> Result<bool> {
    let header = &netpbm.header;
    layout::require_bytes(task.layout, 0, task.options)?;
    let source = SourceRows {
        x: 0,
        height: header.height,
        channels: header.channels,
        samples: if header.bits == 16 { Samples::SixteenBigEndian } else { Samples::Eight },
        divisor: task.layout.divisor,
    };
    let mut rows = sink::open(task.layout, source, task.output);
    let mut tokens = Tokens { bytes: task.bytes, at: netpbm.pixels_at };
    let mut row = Vec::new();
    let mut partial = false;
    for y in 0..rows.end() {
        let result = if netpbm.ascii {
            netpbm.ascii_row(&mut tokens, &mut row)
        } else {
            netpbm.binary_row(task.bytes, y, &mut row)
        };
        match result {
            Ok(()) => rows.push(y, &row),
            Err(_) if task.options.allow_truncated => {
                partial = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    rows.finish();
    Ok(partial)
}

/// Encodes packed gray or RGB samples, which are big-endian where they are `deep`.
pub(crate) fn encode(samples: &[u8], (width, height): (usize, usize), channels: usize, deep: bool) -> Result<Vec<u8>> {
    let kind = match channels {
        1 => 5,
        3 => 6,
        _ => return Err(Error::usage("a PNM holds no alpha", "1 or 3 channels", channels)),
    };
    let maxval = if deep { 65535 } else { 255 };
    let mut bytes = format!("P{kind}\n{width} {height}\n{maxval}\n").into_bytes();
    bytes.extend_from_slice(samples);
    Ok(bytes)
}
