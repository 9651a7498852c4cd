//! Arrow's streams: a part is a message; what it says is the kind, and its buffers are the content.

use super::{Part, Structure};

/// Streams.
pub struct Arrow;

const CONTINUATION: [u8; 4] = [0xFF; 4];

/// The field of a message that says how long its buffers are.
const BODY_LENGTH: usize = 3;

/// Where a message says how long its buffers are (`FlatBuffers`: a table has the distance to the list of its fields' offsets).
fn body_length(message: &[u8]) -> Option<usize> {
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(*message.get(at..)?.first_chunk()?)));
    let table = u32::from_le_bytes(*message.first_chunk()?) as usize;
    let back = i32::from_le_bytes(*message.get(table..)?.first_chunk()?);
    let list = usize::try_from(table as i64 - i64::from(back)).ok()?;
    let at = 4 + 2 * BODY_LENGTH;
    let offset = if short(list)? >= at + 2 { short(list + at)? } else { 0 };
    (offset > 0 && table + offset + 8 <= message.len()).then_some(table + offset)
}

impl Structure for Arrow {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut rest = file;
        while let Some(after) = rest.strip_prefix(&CONTINUATION) {
            let (length, after) = after.split_first_chunk::<4>()?;
            let (message, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            if message.is_empty() {
                break;
            }
            let length = body_length(message).map_or(0, |at| {
                let bytes = message[at..].first_chunk().expect("eight bytes that are there");
                usize::try_from(i64::from_le_bytes(*bytes)).unwrap_or(0)
            });
            let (body, after) = after.split_at(length.min(after.len()));
            parts.push(Part::new(message, body));
            rest = after;
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = Vec::new();
        for Part { kind, content } in parts {
            let mut message = kind.clone();
            if let Some(at) = body_length(&message) {
                message[at..at + 8].copy_from_slice(&(content.len() as i64).to_le_bytes());
            }
            file.extend(CONTINUATION);
            file.extend((message.len() as u32).to_le_bytes());
            file.extend(message);
            file.extend_from_slice(content);
        }
        file.extend(CONTINUATION);
        file.extend([0; 4]);
        file
    }
}
