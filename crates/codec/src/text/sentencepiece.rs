//! SentencePiece's `.model` files: a protocol buffer `ModelProto` with the pieces, the kind of model and the normalizer.

mod proto;

use std::collections::HashMap;

use super::added::{AddedToken, AddedTokens};
use super::charsmap::Charsmap;
use super::cut::{Cut, SPACE_SIGN, keeps_words_apart};
use super::normalize::{Change, Normalizer, SentencePiece};
use super::pairs::{Merge, Pairs};
use super::tokenizer::{Model, Parts, Start, Tokenizer, Tokens};
use super::unigram::{Sums, Unigram};
use crate::error::{Error, Result};
use proto::{Kind, ModelFile, Piece, PieceKind};

const FORMAT: &str = "sentencepiece";

const HINT: &str = "use a model of kind `bpe` or `unigram`, or tokenize with SentencePiece and store the ids";

impl Tokenizer {
    /// The tokenizer of a SentencePiece `.model` file: byte-pair encodings and unigram models, with the table of characters
    /// and the bytes for unknown characters that the file has.
    pub fn from_sentencepiece(model: &[u8]) -> Result<Self> {
        let file = ModelFile::read(model)?;
        let unknown = file.find(PieceKind::Unknown).map(|(id, _)| id);
        let unknown = unknown.ok_or_else(|| Error::format(FORMAT, "no piece is the unknown"))?;
        if file.find(PieceKind::Unused).is_some() {
            return Err(Error::unsupported(FORMAT, "a piece that is marked as unused", HINT));
        }
        let bytes = if file.byte_fallback { Some(file.byte_pieces()?) } else { None };
        let kept = AddedTokens::new(file.of_kind(PieceKind::UserDefined).map(|(id, piece)| AddedToken {
            id,
            text: piece.text.clone(),
            strip_before: false,
            strip_after: false,
        }));
        let (model, cuts) = match file.kind {
            Kind::BytePairs => {
                // No merge goes across the beginning of a word unless a piece does, so words can be looked up one by one.
                let apart = file.pieces.iter().all(|piece| keeps_words_apart(&piece.text));
                let cuts = if apart { vec![Cut::BeforeSpaceSignRuns] } else { Vec::new() };
                (byte_pairs(&file, unknown, bytes)?, cuts)
            }
            Kind::Unigram => {
                let unigram = Unigram::new(pieces_and_scores(&file), unknown, Sums::Single);
                (Model::Unigram { unigram, unknown, bytes }, Vec::new())
            }
            Kind::Other(name) => return Err(Error::unsupported(FORMAT, format!("a model of kind `{name}`"), HINT)),
        };
        let charsmap = match &file.charsmap[..] {
            [] => None,
            blob => Some(Charsmap::new(FORMAT, blob)?),
        };
        let normalizer = SentencePiece {
            charsmap,
            kept: kept.clone(),
            space_before: file.space_before,
            space_as_suffix: file.space_as_suffix,
            single_spaces: file.single_spaces,
            space_signs: file.space_signs,
        };
        Ok(Self::from_parts(Parts {
            added: AddedTokens::default(),
            normalizer: Normalizer { changes: vec![Change::SentencePiece(normalizer)] },
            // A unigram model weighs them against other pieces; in byte pairs they stand by themselves.
            added_normalized: if file.kind == Kind::BytePairs { kept } else { AddedTokens::default() },
            prefix: Normalizer::default(),
            cuts,
            model,
            tokens: tokens(&file)?,
            join_unknown: (!file.byte_fallback).then_some(unknown),
            space_before: file.space_before && !file.space_as_suffix,
        }))
    }
}

fn tokens(file: &ModelFile) -> Result<Tokens> {
    let mut tokens = Tokens::default();
    for (id, piece) in file.pieces.iter().enumerate() {
        let bytes = match (piece.kind, byte_of_name(&piece.text)) {
            (PieceKind::Byte, Some(byte)) => vec![byte],
            (PieceKind::Byte, None) => {
                return Err(Error::format(FORMAT, format!("the piece `{}` is not a byte", piece.text)));
            }
            // What begins and ends a text is not part of it.
            (PieceKind::Control, _) => Vec::new(),
            _ => spaced(&piece.text),
        };
        tokens.bytes.push(bytes.into());
        tokens.by_name.insert(piece.text.clone(), id as u32);
    }
    Ok(tokens)
}

fn byte_pairs(file: &ModelFile, unknown: u32, bytes: Option<Box<[u32; 256]>>) -> Result<Model> {
    let mut pieces: Vec<(u32, &Piece)> = file.of_kind(PieceKind::Normal).collect();
    let ids: HashMap<&str, u32> = pieces.iter().map(|&(id, piece)| (&*piece.text, id)).collect();
    pieces.sort_by(|one, other| other.1.score.total_cmp(&one.1.score));
    let mut pairs = Pairs::with_capacity(pieces.len() * 2);
    let mut rank = 0;
    for (index, &(id, piece)) in pieces.iter().enumerate() {
        // Pieces of equal score have equal rank: the leftmost comes first.
        rank += u32::from(index > 0 && pieces[index - 1].1.score > piece.score);
        for (at, character) in piece.text.char_indices() {
            if !ids.contains_key(&*character.encode_utf8(&mut [0; 4])) {
                let what = format!("the piece `{}` with the character `{character}`, which is not a piece", piece.text);
                return Err(Error::unsupported(FORMAT, what, HINT));
            }
            let (left, right) = piece.text.split_at(at);
            if let (Some(&left), Some(&right)) = (ids.get(left), ids.get(right)) {
                pairs.insert(left, right, Merge { rank, id });
            }
        }
    }
    let ids = pieces.iter().filter_map(|&(id, piece)| Some((single_character(&piece.text)?, id))).collect();
    let start = Start::Characters { ids, bytes, unknown: Some(unknown), join: true };
    Ok(Model::Pairs { start, pairs, whole_words: false })
}

/// The pieces of a unigram model. Symbols that the user defined have a score of their own (SentencePiece 0.2.2).
fn pieces_and_scores(file: &ModelFile) -> impl Iterator<Item = (u32, &[u8], f64)> {
    file.pieces.iter().enumerate().filter_map(|(id, piece)| {
        let bytes = piece.text.as_bytes();
        let score = match piece.kind {
            PieceKind::Normal => piece.score,
            PieceKind::UserDefined => (0.1 * (bytes.len() as f64 - 1.0)) as f32,
            _ => return None,
        };
        Some((id as u32, bytes, f64::from(score)))
    })
}

/// A piece as text: its signs for spaces are spaces.
pub(super) fn spaced(piece: &str) -> Vec<u8> {
    piece.replace(SPACE_SIGN, " ").into_bytes()
}

/// The byte that a piece such as `<0x0A>` stands for.
pub(super) fn byte_of_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The character of a text that has one only.
pub(super) fn single_character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}
