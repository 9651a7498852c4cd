//! Removes harmless oddities from a JPEG before libjpeg-turbo sees it.
//!
//! The library reports only its first warning, and reports a fatal error after a warning as a warning, too. So harmless warnings
//! cannot be ignored while the others are heeded. Instead, the library is given bytes without anything harmless to warn
//! about, so that every remaining warning means damage: images are accepted only if it decodes them without a warning.

use std::borrow::Cow;

use super::header::{Frame, Walk};

/// The last bytes of a scan's header that every scan of a sequential image has: all coefficients, at full precision.
const SEQUENTIAL: [u8; 3] = [0, 63, 0];

/// The oddities of a header.
#[derive(Debug, Clone, Default)]
pub(super) struct Oddities {
    /// Bytes that mean nothing to a decoder, and what libjpeg expects in their place.
    patches: Vec<(usize, u8)>,
    /// Where the color transforms of Adobe's segments are, and what they are.
    adobe: Vec<(usize, u8)>,
    /// Where the segments before the first scan lie. Kept if bytes lie between them that belong to none.
    pub(super) segments: Vec<(usize, usize)>,
}

impl Oddities {
    /// Looks at a segment of the header that ends at `end`.
    pub(super) fn look(&mut self, marker: u8, payload: &[u8], end: usize) {
        let at = end - payload.len();
        // The revision of JFIF decides nothing. libjpeg looks for it in segments of at least 14 bytes.
        if marker == 0xE0 && payload.len() >= 14 && payload.starts_with(b"JFIF\0") && payload[5] != 1 {
            self.patches.push((at + 5, 1));
        }
        if marker == 0xEE && payload.len() >= 12 && payload.starts_with(b"Adobe") {
            self.adobe.push((at + 11, payload[11]));
        }
    }

    /// Called at the first scan, when the number of components is known.
    pub(super) fn end(&mut self, stray: bool, components: usize) {
        // An unknown transform is taken for the usual one: YCbCr of three components, YCCK of four.
        let usual = if components == 4 { 2 } else { 1 };
        let unknown = self.adobe.drain(..).filter(|&(_, transform)| transform != 0 && transform != usual);
        self.patches.extend(unknown.map(|(at, _)| (at, usual)));
        if !stray {
            self.segments.clear();
        }
    }

    /// Whether libjpeg has something to warn of in the header.
    pub(super) fn is_none(&self) -> bool {
        self.patches.is_empty() && self.segments.is_empty()
    }
}

/// A scan's header: its components, and its last three bytes with their offset.
struct Scan<'a> {
    ids: Vec<u8>,
    tail: &'a [u8],
    tail_at: usize,
}

/// The scans, as far as they can be found. libjpeg finds the same, or warns.
fn scans<'a>(frame: &Frame, bytes: &'a [u8]) -> Vec<Scan<'a>> {
    let mut found = Vec::new();
    let mut walk = Walk::new(bytes, frame.scan_at);
    // Within a scan's data 0xFF stands only before zero or a restart marker: the next other marker ends it.
    // One that has all components is the only one.
    while (frame.multiple_scans || found.is_empty())
        && let Ok((marker, _)) = walk.marker()
    {
        match marker {
            0x01 | 0xD0..=0xD7 => {}
            0xD8 | 0xD9 => break,
            _ => {
                let Ok(payload) = walk.payload() else { break };
                let Some((tail, &[count, ref rest @ ..])) =
                    payload.split_last_chunk::<3>().map(|(rest, tail)| (tail, rest))
                else {
                    continue;
                };
                // Of another length it is a fatal error.
                if marker == 0xDA && rest.len() == usize::from(count) * 2 {
                    let ids = rest.as_chunks::<2>().0.iter().map(|pair| pair[0]).collect();
                    found.push(Scan { ids, tail, tail_at: walk.at - 3 });
                }
            }
        }
    }
    found
}

/// What [`prepare`] found.
pub(super) struct Quiet<'a> {
    /// The bytes without what harms no pixel.
    pub(super) bytes: Cow<'a, [u8]>,
    /// A component that no scan holds. libjpeg is silent about it and makes it zero.
    pub(super) absent: Option<u8>,
}

/// Takes out of `bytes` what libjpeg would warn of although it harms no pixel.
pub(super) fn prepare<'a>(frame: &Frame, bytes: &'a [u8]) -> Quiet<'a> {
    let Oddities { patches, segments, .. } = &frame.oddities;
    let scans = scans(frame, bytes);
    let absent = frame.ids.iter().copied().find(|id| !scans.iter().any(|scan| scan.ids.contains(id)));
    let absent = absent.filter(|_| frame.multiple_scans);
    let odd = scans.iter().filter(|scan| !frame.header.progressive && *scan.tail != SEQUENTIAL);
    let tails: Vec<_> = odd
        .flat_map(|scan| SEQUENTIAL.into_iter().enumerate().map(|(index, byte)| (scan.tail_at + index, byte)))
        .collect();
    if patches.is_empty() && tails.is_empty() && segments.is_empty() {
        return Quiet { bytes: Cow::Borrowed(bytes), absent };
    }
    let mut clean = bytes.to_vec();
    for &(at, byte) in patches.iter().chain(&tails) {
        clean[at] = byte;
    }
    if !segments.is_empty() {
        let kept = std::iter::once((0, 2)).chain(segments.iter().copied()).chain([(frame.scan_at, bytes.len())]);
        clean = kept.flat_map(|(start, end)| clean[start..end].iter().copied()).collect();
    }
    Quiet { bytes: Cow::Owned(clean), absent }
}
