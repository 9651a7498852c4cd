//! Tokenizer files: Hugging Face, SentencePiece, tiktoken, and GPT-2's two, with a NUL between them. What a file is, its
//! content says: no parser takes another's.
#![no_main]

use forebay_codec::text::{Pattern, Tokenizer};
use libfuzzer_sys::fuzz_target;

/// Words, spaces, signs for them, digits, what normal forms change, added tokens, and characters of one to four bytes.
const TEXT: &str = "  To name ab ab's parts, 1234\r\n\tna\u{ef}ve \u{fb01}ne \u{ff41}b\u{2581}\u{2581}<unk><sep> e\u{301} \u{5b57}\u{1f642} ";

fuzz_target!(|file: &[u8]| {
    let gpt2 = file.iter().position(|&byte| byte == 0).map(|nul| Tokenizer::from_gpt2(&file[..nul], &file[nul + 1..]));
    let others = [
        Tokenizer::from_hugging_face(file),
        Tokenizer::from_sentencepiece(file),
        Tokenizer::from_tiktoken(file, Pattern::Cl100k { digits_max: 3 }),
    ];
    for tokenizer in others.into_iter().chain(gpt2).flatten() {
        let ids = tokenizer.encode(TEXT);
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocabulary_size()));
        tokenizer.decode(&ids).expect("they are in the vocabulary");
        if let Some(ranks) = tokenizer.to_tiktoken() {
            let _ = Tokenizer::from_tiktoken(ranks.as_bytes(), Pattern::Gpt2);
        }
    }
});
