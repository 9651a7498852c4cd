//! Tokeniser files: Hugging Face, SentencePiece, tiktoken, and GPT-2's two, with a NUL between them. What a file is, its
//! content says: no parser takes another's.
#![no_main]

use forebay_codec::text::{Pattern, Tokeniser};
use libfuzzer_sys::fuzz_target;

/// Words, spaces, signs for them, digits, what normal forms change, added tokens, and characters of one to four bytes.
const TEXT: &str = "  To name ab ab's parts, 1234\r\n\tna\u{ef}ve \u{fb01}ne \u{ff41}b\u{2581}\u{2581}<unk><sep> e\u{301} \u{5b57}\u{1f642} ";

fuzz_target!(|file: &[u8]| {
    let gpt2 = file.iter().position(|&byte| byte == 0).map(|nul| Tokeniser::from_gpt2(&file[..nul], &file[nul + 1..]));
    let others = [
        Tokeniser::from_hugging_face(file),
        Tokeniser::from_sentencepiece(file),
        Tokeniser::from_tiktoken(file, Pattern::Cl100k { digits_max: 3 }),
    ];
    for tokeniser in others.into_iter().chain(gpt2).flatten() {
        let ids = tokeniser.encode(TEXT);
        assert!(ids.iter().all(|&id| (id as usize) < tokeniser.vocabulary_size()));
        tokeniser.decode(&ids).expect("they are in the vocabulary");
        if let Some(ranks) = tokeniser.to_tiktoken() {
            let _ = Tokeniser::from_tiktoken(ranks.as_bytes(), Pattern::Gpt2);
        }
    }
});
