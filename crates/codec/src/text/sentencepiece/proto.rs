//! The fields of a `ModelProto` that matter, read from its bytes (`sentencepiece_model.proto`).

use super::FORMAT;
use crate::error::{Error, Result};
use crate::text::byte_level::{TOKEN_BYTES_MAX, check_id};

/// What a `.model` file says.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the file's own")]
pub(super) struct ModelFile {
    pub(super) pieces: Vec<Piece>,
    pub(super) kind: Kind,
    pub(super) byte_fallback: bool,
    pub(super) space_as_suffix: bool,
    pub(super) charsmap: Vec<u8>,
    pub(super) space_before: bool,
    pub(super) single_spaces: bool,
    pub(super) space_signs: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: PieceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unigram,
    BytePairs,
    Other(&'static str),
}

/// The value of a field.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
    /// Eight bytes, which no field that matters has.
    Double,
}

impl ModelFile {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        // What a file does not say has these values.
        let mut file = Self {
            pieces: Vec::new(),
            kind: Kind::Unigram,
            byte_fallback: false,
            space_as_suffix: false,
            charsmap: Vec::new(),
            space_before: true,
            single_spaces: true,
            space_signs: true,
        };
        each_field(bytes, |field, wire| {
            match (field, wire) {
                (1, Wire::Bytes(piece)) => {
                    check_id(file.pieces.len())?;
                    file.pieces.push(Piece::read(piece)?);
                }
                (2, Wire::Bytes(trainer)) => file.read_trainer(trainer)?,
                (3, Wire::Bytes(normalizer)) => file.read_normalizer(normalizer)?,
                _ => {}
            }
            Ok(())
        })?;
        if file.find(PieceKind::Normal).is_none() {
            return Err(Error::format(FORMAT, "it has no pieces"));
        }
        Ok(file)
    }

    fn read_trainer(&mut self, bytes: &[u8]) -> Result<()> {
        each_field(bytes, |field, wire| {
            match (field, wire) {
                (3, Wire::Number(kind)) => {
                    self.kind = match kind {
                        1 => Kind::Unigram,
                        2 => Kind::BytePairs,
                        3 => Kind::Other("word"),
                        4 => Kind::Other("char"),
                        other => return Err(Error::format(FORMAT, format!("`{other}` is not a known kind of model"))),
                    }
                }
                (24, Wire::Number(flag)) => self.space_as_suffix = flag != 0,
                (35, Wire::Number(flag)) => self.byte_fallback = flag != 0,
                _ => {}
            }
            Ok(())
        })
    }

    fn read_normalizer(&mut self, bytes: &[u8]) -> Result<()> {
        each_field(bytes, |field, wire| {
            match (field, wire) {
                (2, Wire::Bytes(charsmap)) => self.charsmap = charsmap.to_vec(),
                (3, Wire::Number(flag)) => self.space_before = flag != 0,
                (4, Wire::Number(flag)) => self.single_spaces = flag != 0,
                (5, Wire::Number(flag)) => self.space_signs = flag != 0,
                _ => {}
            }
            Ok(())
        })
    }

    /// The pieces of a kind, with their ids.
    pub(super) fn of_kind(&self, kind: PieceKind) -> impl Iterator<Item = (u32, &Piece)> {
        let pieces = self.pieces.iter().enumerate();
        pieces.filter(move |(_, piece)| piece.kind == kind).map(|(id, piece)| (id as u32, piece))
    }

    /// The first piece of a kind.
    pub(super) fn find(&self, kind: PieceKind) -> Option<(u32, &Piece)> {
        self.of_kind(kind).next()
    }

    /// The ids of the 256 bytes.
    pub(super) fn byte_pieces(&self) -> Result<Box<[u32; 256]>> {
        let mut ids = [None; 256];
        for (id, piece) in self.of_kind(PieceKind::Byte) {
            if let Some(byte) = super::byte_of_name(&piece.text) {
                ids[usize::from(byte)] = Some(id);
            }
        }
        let mut found = Box::new([0; 256]);
        for (byte, (found, id)) in found.iter_mut().zip(ids).enumerate() {
            *found = id.ok_or_else(|| Error::format(FORMAT, format!("no piece is the byte `{byte:#04x}`")))?;
        }
        Ok(found)
    }
}

impl Piece {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut piece = Self { text: String::new(), score: 0.0, kind: PieceKind::Normal };
        each_field(bytes, |field, wire| {
            match (field, wire) {
                (1, Wire::Bytes(text)) => {
                    let text = str::from_utf8(text).map_err(|_| Error::format(FORMAT, "a piece is not UTF-8"))?;
                    text.clone_into(&mut piece.text);
                }
                (2, Wire::Float(score)) if score.is_finite() => piece.score = score,
                (2, _) => return Err(Error::format(FORMAT, format!("the score of `{}` is not a number", piece.text))),
                (3, Wire::Number(kind)) => {
                    piece.kind = match kind {
                        1 => PieceKind::Normal,
                        2 => PieceKind::Unknown,
                        3 => PieceKind::Control,
                        4 => PieceKind::UserDefined,
                        5 => PieceKind::Unused,
                        6 => PieceKind::Byte,
                        other => return Err(Error::format(FORMAT, format!("`{other}` is not a known kind of piece"))),
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        if piece.text.is_empty() {
            return Err(Error::format(FORMAT, "a piece is empty"));
        }
        if piece.text.len() > TOKEN_BYTES_MAX {
            let (found, limit) = (piece.text.len() as u64, TOKEN_BYTES_MAX as u64);
            return Err(Error::Limit { what: "bytes of a token", found, limit });
        }
        Ok(piece)
    }
}

/// Hands each field of a message to `read`.
fn each_field(mut bytes: &[u8], mut read: impl FnMut(u64, Wire<'_>) -> Result<()>) -> Result<()> {
    let cut_off = || Error::format(FORMAT, "it is not a protocol buffer, or cut off");
    while !bytes.is_empty() {
        let tag = varint(&mut bytes).ok_or_else(cut_off)?;
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes).ok_or_else(cut_off)?),
            1 => {
                bytes = bytes.get(8..).ok_or_else(cut_off)?;
                Wire::Double
            }
            2 => {
                let length = varint(&mut bytes).and_then(|length| usize::try_from(length).ok());
                let (value, rest) = length.and_then(|length| bytes.split_at_checked(length)).ok_or_else(cut_off)?;
                bytes = rest;
                Wire::Bytes(value)
            }
            5 => {
                let (value, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
                bytes = rest;
                Wire::Float(f32::from_le_bytes(*value))
            }
            _ => return Err(cut_off()),
        };
        read(tag >> 3, wire)?;
    }
    Ok(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for index in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << (7 * index);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
