//! The segments before the scan.

use crate::error::{Error, Result};

/// libjpeg's own limit.
pub(crate) const SIDE_MAX: usize = 65_500;

/// How much less often the color is sampled than the brightness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// There is no color.
    Gray,
    /// As often: 4:4:4.
    Full,
    /// Half as often across: 4:2:2.
    Horizontal,
    /// Half as often down: 4:4:0.
    Vertical,
    /// Half as often across and down: 4:2:0, the usual.
    Both,
}

/// What three components mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Brightness alone.
    Gray,
    /// Brightness and two color differences, the usual.
    YCbCr,
    /// Red, green and blue as they are.
    Rgb,
}

/// What the header says of an image that this crate decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// How often color is sampled.
    pub sampling: Sampling,
    /// What the components mean.
    pub space: Space,
    /// MCUs between two restart markers, 0 if there are none.
    pub restart_interval: usize,
}

impl Header {
    /// 1 or 3.
    pub fn components(&self) -> usize {
        if self.sampling == Sampling::Gray { 1 } else { 3 }
    }

    /// How often brightness is sampled for each sample of color: across, down.
    pub(crate) fn factors(&self) -> (usize, usize) {
        match self.sampling {
            Sampling::Gray | Sampling::Full => (1, 1),
            Sampling::Horizontal => (2, 1),
            Sampling::Vertical => (1, 2),
            Sampling::Both => (2, 2),
        }
    }
}

/// A Huffman table as it is in the file: the number of codes of each length (1 to 16), then the symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Codes {
    pub(crate) counts: [u8; 16],
    pub(crate) symbols: [u8; 256],
}

/// Everything before the scan's data.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    /// Quantization of each component, in natural order.
    pub(crate) quantizers: [[u16; 64]; 3],
    pub(crate) dc: [Codes; 3],
    pub(crate) ac: [Codes; 3],
    /// Where the scan's data begins.
    pub(crate) data_at: usize,
}

/// The position in a block, row by row, of each coefficient in file order (T.81, figure A.6).
pub(crate) const NATURAL: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

#[derive(Clone, Copy, Default)]
struct Component {
    id: u8,
    across: u8,
    down: u8,
    quantizer: u8,
}

/// What the segments said so far. Borrowed tables are the last definitions.
#[derive(Default)]
struct Walk<'a> {
    size: Option<(usize, usize)>,
    components: [Component; 3],
    count: usize,
    quantizers: [Option<(&'a [u8], bool)>; 4],
    dc: [Option<&'a [u8]>; 4],
    ac: [Option<&'a [u8]>; 4],
    restart_interval: usize,
    jfif: bool,
    adobe: Option<u8>,
}

/// Reads everything before the scan's data.
pub(crate) fn read(bytes: &[u8]) -> Result<Frame> {
    if bytes.get(..2) != Some(&[0xFF, 0xD8]) {
        return Err(Error::format("no start of image", 0));
    }
    let mut walk = Walk::default();
    let mut at = 2;
    loop {
        let marker_at = at;
        match bytes.get(at..) {
            Some([0xFF, 0xFF, ..]) => {
                at += 1;
                continue;
            }
            Some([0xFF, _, ..]) => {}
            Some([_, _, ..]) => return Err(Error::format("bytes between the segments", at)),
            _ => return Err(Error::format("the file ends within the header", at)),
        }
        let marker = bytes[at + 1];
        if matches!(marker, 0x00 | 0x01 | 0xD0..=0xD9) {
            return Err(Error::unsupported("this marker in the header", marker));
        }
        let cut = || Error::format("the file ends within a segment", marker_at);
        let length: [u8; 2] = bytes.get(at + 2..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(cut)?;
        let length = usize::from(u16::from_be_bytes(length));
        if length < 2 {
            return Err(Error::format("a segment shorter than its length", marker_at));
        }
        let payload = bytes.get(at + 4..at + 2 + length).ok_or_else(cut)?;
        at += 2 + length;
        match marker {
            0xC0 | 0xC1 => walk.frame(payload, marker_at)?,
            0xC4 => walk.codes(payload, marker_at)?,
            0xDB => walk.quantizer(payload, marker_at)?,
            0xDD => {
                let &[high, low] = payload else {
                    return Err(Error::format("a restart interval of the wrong length", marker_at));
                };
                walk.restart_interval = usize::from(u16::from_be_bytes([high, low]));
            }
            0xDA => return walk.scan(payload, marker_at, at),
            0xE0..=0xEF => walk.application(marker, payload)?,
            0xFE => {}
            _ => return Err(Error::unsupported("this marker in the header", marker)),
        }
    }
}

impl<'a> Walk<'a> {
    fn frame(&mut self, payload: &[u8], at: usize) -> Result<()> {
        if self.size.is_some() {
            return Err(Error::format("a second frame header", at));
        }
        let &[bits, height_high, height_low, width_high, width_low, count, ref components @ ..] = payload else {
            return Err(Error::format("a frame header of the wrong length", at));
        };
        if bits != 8 {
            return Err(Error::unsupported("a sample depth other than 8 bit", bits));
        }
        let width = usize::from(u16::from_be_bytes([width_high, width_low]));
        let height = usize::from(u16::from_be_bytes([height_high, height_low]));
        let side = width.min(height);
        if side == 0 || width.max(height) > SIDE_MAX {
            return Err(Error::unsupported(
                "a side of this length",
                if side == 0 { 0 } else { width.max(height) as u64 },
            ));
        }
        if count != 1 && count != 3 {
            return Err(Error::unsupported("this number of components", count));
        }
        let (chunks, rest) = components.as_chunks::<3>();
        if chunks.len() != usize::from(count) || !rest.is_empty() {
            return Err(Error::format("a frame header of the wrong length", at));
        }
        for (slot, &[id, factors, quantizer]) in self.components.iter_mut().zip(chunks) {
            *slot = Component { id, across: factors >> 4, down: factors & 15, quantizer };
        }
        self.size = Some((width, height));
        self.count = usize::from(count);
        Ok(())
    }

    fn codes(&mut self, mut payload: &'a [u8], at: usize) -> Result<()> {
        while let Some((&slot, rest)) = payload.split_first() {
            let wrong = || Error::format("a Huffman table of the wrong length", at);
            let counts = rest.get(..16).ok_or_else(wrong)?;
            let symbols: usize = counts.iter().map(|&count| usize::from(count)).sum();
            if symbols > 256 {
                return Err(Error::format("a Huffman table of more than 256 codes", at));
            }
            let table = rest.get(..16 + symbols).ok_or_else(wrong)?;
            payload = &rest[16 + symbols..];
            match slot {
                0..4 => self.dc[usize::from(slot)] = Some(table),
                0x10..0x14 => self.ac[usize::from(slot - 0x10)] = Some(table),
                _ => return Err(Error::format("a Huffman table for no slot", at)),
            }
        }
        Ok(())
    }

    fn quantizer(&mut self, mut payload: &'a [u8], at: usize) -> Result<()> {
        while let Some((&slot, rest)) = payload.split_first() {
            let wide = slot >> 4 != 0;
            let length = if wide { 128 } else { 64 };
            let (Some(table), true) = (rest.get(..length), slot & 15 < 4) else {
                return Err(Error::format("a quantization table of the wrong length or slot", at));
            };
            self.quantizers[usize::from(slot & 15)] = Some((table, wide));
            payload = &rest[length..];
        }
        Ok(())
    }

    fn application(&mut self, marker: u8, payload: &[u8]) -> Result<()> {
        if marker == 0xE0 && payload.len() >= 14 && payload.starts_with(b"JFIF\0") {
            if payload[5] != 1 {
                return Err(Error::unsupported("a JFIF version other than 1", payload[5]));
            }
            self.jfif = true;
        }
        if marker == 0xEE && payload.len() >= 12 && payload.starts_with(b"Adobe") {
            self.adobe = Some(payload[11]);
        }
        Ok(())
    }

    /// What libjpeg takes three components for.
    fn space(&self) -> Result<Space> {
        if self.count == 1 {
            return Ok(Space::Gray);
        }
        let ids = self.components.map(|component| component.id);
        match (self.jfif, self.adobe) {
            (true, _) | (false, Some(1)) => Ok(Space::YCbCr),
            (false, Some(0)) => Ok(Space::Rgb),
            (false, Some(other)) => Err(Error::unsupported("this Adobe color transform", other)),
            (false, None) if ids == *b"RGB" => Ok(Space::Rgb),
            (false, None) => Ok(Space::YCbCr),
        }
    }

    fn sampling(&self) -> Result<Sampling> {
        let [first, second, third] = self.components.map(|component| (component.across, component.down));
        if self.count == 1 {
            let valid = (1..=4).contains(&first.0) && (1..=4).contains(&first.1);
            return if valid { Ok(Sampling::Gray) } else { Err(Error::format("a sampling factor not of 1 to 4", 0)) };
        }
        if second != (1, 1) || third != (1, 1) {
            return Err(Error::unsupported("this sampling of color", second.0 << 4 | second.1));
        }
        match first {
            (1, 1) => Ok(Sampling::Full),
            (2, 1) => Ok(Sampling::Horizontal),
            (1, 2) => Ok(Sampling::Vertical),
            (2, 2) => Ok(Sampling::Both),
            _ => Err(Error::unsupported("this sampling of brightness", first.0 << 4 | first.1)),
        }
    }

    fn scan(&self, payload: &[u8], at: usize, data_at: usize) -> Result<Frame> {
        let (width, height) = self.size.ok_or_else(|| Error::format("a scan before any frame header", at))?;
        let Some((&count, rest)) = payload.split_first() else {
            return Err(Error::format("a scan header of the wrong length", at));
        };
        if usize::from(count) != self.count {
            return Err(Error::unsupported("a scan of some of the components", count));
        }
        let (selectors, tail) = rest.split_at_checked(2 * self.count).unwrap_or((&[], &[]));
        if tail.len() != 3 {
            return Err(Error::format("a scan header of the wrong length", at));
        }
        if tail != [0, 63, 0] {
            return Err(Error::unsupported("a scan of some of the coefficients", tail[1]));
        }
        let header = Header {
            width,
            height,
            sampling: self.sampling()?,
            space: self.space()?,
            restart_interval: self.restart_interval,
        };
        let none = Codes { counts: [0; 16], symbols: [0; 256] };
        let mut frame = Frame {
            header,
            quantizers: [[0; 64]; 3],
            dc: [none.clone(), none.clone(), none.clone()],
            ac: [none.clone(), none.clone(), none],
            data_at,
        };
        let (pairs, _) = selectors.as_chunks::<2>();
        for (index, &[id, tables]) in pairs.iter().enumerate() {
            let component = self.components[index];
            let repeated = self.components[..index].iter().any(|earlier| earlier.id == id);
            if id != component.id || repeated {
                return Err(Error::unsupported("components in this order", id));
            }
            frame.dc[index] = find(&self.dc, tables >> 4, at)?;
            frame.ac[index] = find(&self.ac, tables & 15, at)?;
            frame.quantizers[index] = self.natural(component.quantizer, at)?;
        }
        Ok(frame)
    }

    /// A quantization table in natural order.
    fn natural(&self, slot: u8, at: usize) -> Result<[u16; 64]> {
        let table = self.quantizers.get(usize::from(slot)).copied().flatten();
        let (values, wide) = table.ok_or_else(|| Error::format("a quantization table is missing", at))?;
        let mut natural = [0; 64];
        for (index, &position) in NATURAL.iter().enumerate() {
            natural[usize::from(position)] = if wide {
                u16::from_be_bytes([values[2 * index], values[2 * index + 1]])
            } else {
                u16::from(values[index])
            };
        }
        Ok(natural)
    }
}

fn find(tables: &[Option<&[u8]>; 4], slot: u8, at: usize) -> Result<Codes> {
    let table = tables.get(usize::from(slot)).copied().flatten();
    let table = table.ok_or_else(|| Error::format("a Huffman table is missing", at))?;
    let mut codes = Codes { counts: [0; 16], symbols: [0; 256] };
    codes.counts.copy_from_slice(&table[..16]);
    codes.symbols[..table.len() - 16].copy_from_slice(&table[16..]);
    Ok(codes)
}
