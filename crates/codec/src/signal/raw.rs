//! Raw recordings: little-endian numbers and nothing else.

use super::read::{Channel, Recording, SignalOptions, ask_for, check_limit};
use crate::memory::{self, MemoryGate};
use crate::{Error, Result};

const FORMAT: &str = "raw signal";

/// The type of a raw number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RawElement {
    /// Signed 16 bit.
    I16,
    /// Single precision.
    F32,
    /// Double precision.
    #[default]
    F64,
}

impl RawElement {
    /// Bytes per number.
    pub const fn bytes(self) -> usize {
        match self {
            Self::I16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

pub(super) fn read(bytes: &[u8], options: &SignalOptions, gate: MemoryGate<'_>) -> Result<Recording> {
    let element_bytes = options.raw_element.bytes();
    let instant_bytes = options.raw_channels.saturating_mul(element_bytes);
    if instant_bytes == 0 {
        return Err(Error::usage("a raw recording has no channels", "at least 1", options.raw_channels));
    }
    let samples = bytes.len() / instant_bytes;
    check_limit(samples as u64, options)?;
    if samples == 0 || !bytes.len().is_multiple_of(instant_bytes) {
        let problem =
            format!("`{}` bytes are not a multiple of the `{instant_bytes}` bytes of an instant", bytes.len());
        return Err(Error::truncated(FORMAT, problem, samples * instant_bytes));
    }
    ask_for(samples as u64, options.channels.len(), 0, gate)?;
    let channels = options.channels.iter().map(|channel| match channel {
        Channel::Number(number) if *number < options.raw_channels => {
            let instants = bytes.chunks_exact(instant_bytes);
            take(instants.map(|instant| &instant[number * element_bytes..]), options.raw_element)
        }
        channel => {
            let expected = format!("a number below {}", options.raw_channels);
            Err(Error::usage("a raw recording has no such channel", expected, channel))
        }
    });
    Ok(Recording::uncalibrated(channels.collect::<Result<_>>()?))
}

/// The first number of each.
fn take<'a>(elements: impl ExactSizeIterator<Item = &'a [u8]>, element: RawElement) -> Result<Vec<f64>> {
    let mut numbers = Vec::new();
    memory::reserve(&mut numbers, elements.len())?;
    match element {
        RawElement::I16 => numbers.extend(elements.filter_map(first).map(i16::from_le_bytes).map(f64::from)),
        RawElement::F32 => numbers.extend(elements.filter_map(first).map(f32::from_le_bytes).map(f64::from)),
        RawElement::F64 => numbers.extend(elements.filter_map(first).map(f64::from_le_bytes)),
    }
    Ok(numbers)
}

fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}
