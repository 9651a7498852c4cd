//! The definition of interleaved rANS decoding.

use super::{
    EMIT_SHIFT, ESCAPE, LANES, Phase, Plane, SLOT_BITS, SLOTS, STATE_LOW, Source, Stream, lane, last_table,
    refill_order,
};
use crate::phases::{ORDER, counts};

pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    let Phase { tables, values, start, count } = phase;
    for ((plane, tables), values) in planes.iter_mut().zip(tables).zip(values) {
        let values = &mut values[start..start + count];
        if decode_plane(entries, data, plane, &tables[start..start + count], values).is_none() {
            return false;
        }
    }
    true
}

pub(super) fn decode_plane(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[u8],
    values: &mut [u8],
) -> Option<()> {
    decode_symbols(entries, data, plane, tables, values)?;
    replace_escaped(data, plane, values)
}

/// Reads symbols, of which there may be any number.
fn decode_symbols(entries: &[u32], data: &[u8], plane: &mut Plane, tables: &[u8], values: &mut [u8]) -> Option<()> {
    let last = last_table(entries);
    for (tables, values) in tables.chunks(LANES).zip(values.chunks_mut(LANES)) {
        for (index, (&table, value)) in tables.iter().zip(values).enumerate() {
            let state = &mut plane.states[lane(index)];
            let entry = entries[usize::from(table.min(last)) * SLOTS + (*state as usize & (SLOTS - 1))];
            *value = entry as u8;
            *state = (entry >> 8 & 0xFFF) * (*state >> SLOT_BITS) + (entry >> 20);
        }
        // States that took no part are not below the bound: every one that did was refilled.
        for state in refill_order() {
            let state = &mut plane.states[state];
            if *state >= STATE_LOW {
                continue;
            }
            let word = data.get(plane.words..)?.first_chunk()?;
            *state = *state << 16 | u32::from(u16::from_le_bytes(*word));
            plane.words += 2;
        }
    }
    Some(())
}

/// Puts escaped values in the places of the symbols that stand for them.
pub(super) fn replace_escaped(data: &[u8], plane: &mut Plane, values: &mut [u8]) -> Option<()> {
    for value in values.iter_mut().filter(|value| **value == ESCAPE) {
        *value = *data.get(plane.escapes)?;
        plane.escapes += 1;
    }
    Some(())
}

pub(super) fn encode(source: &Source<'_>, stream: &mut Stream) {
    let Source { residuals, contexts, map, codes, width } = *source;
    let counts = counts(width);
    for (residuals, contexts) in residuals.chunks_exact(width).zip(contexts.chunks_exact(width)).rev() {
        let mut end = width;
        for phase in ORDER.into_iter().rev() {
            let start = end - counts[phase];
            let code = |index: usize| {
                let table = usize::from(map[usize::from(contexts[start + index]) & 63]);
                codes[table * 256 + usize::from(residuals[start + index])]
            };
            for chunk in (0..counts[phase]).step_by(LANES).rev() {
                // In the reverse of the order in which a decoder refills.
                for state in refill_order().rev() {
                    let index = chunk + state % 16 * 4 + state / 16;
                    if index < counts[phase] {
                        stream.encode(state, code(index));
                    }
                }
                for index in (chunk..counts[phase].min(chunk + LANES)).rev() {
                    if code(index) >> 31 == 1 {
                        stream.escapes_start -= 1;
                        stream.escapes[stream.escapes_start] = residuals[start + index];
                    }
                }
            }
            end = start;
        }
    }
}

impl Stream {
    /// Encodes one symbol.
    fn encode(&mut self, state: usize, code: u32) {
        let (frequency, start) = (code & 0x7FF, code >> 11 & 0xF_FFFF);
        let mut state_now = self.states[state];
        // The state would leave its range: give off a word first.
        if state_now >> EMIT_SHIFT >= frequency {
            self.words_start -= 1;
            self.words[self.words_start] = state_now as u16;
            state_now >>= 16;
        }
        self.states[state] = ((state_now / frequency) << SLOT_BITS) + state_now % frequency + start;
    }
}
