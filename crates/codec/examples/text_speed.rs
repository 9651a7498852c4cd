//! Tokenizes a file of texts and prints how fast, for `bench/domains/text.py`.
//!
//! ```text
//! text_speed <kind> <tokenizer file>... <texts> <ids>
//! text_speed article <pages> <articles>
//! ```
//! Speeds are MB of text per second of CPU time: with new scratch (no word seen yet), and with all words seen; then the
//! seconds of loading. `kind` is `gpt2` (two files), `tiktoken`, `cl100k`, `hugging-face` or `sentencepiece`. Texts are separated by NUL bytes. The
//! ids are written as 32-bit numbers, little-endian, with a -1 after each text; articles as texts.

#![expect(clippy::print_stdout, reason = "printing is what a command is for")]

use std::error::Error;
use std::time::Instant;

use forebay_codec::text::{ArticleLimits, Pattern, Tokenizer, TokenizerScratch, article_text};

/// How much text is tokenized for one number.
const PASSES_BYTES: usize = 30_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let files: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["article", pages, articles] = files[..] {
        return extract(pages, articles);
    }
    let started = Instant::now();
    let (tokenizer, texts, output) = match files[..] {
        ["gpt2", vocabulary, merges, texts, output] => {
            (Tokenizer::from_gpt2(&std::fs::read(vocabulary)?, &std::fs::read(merges)?)?, texts, output)
        }
        ["tiktoken", ranks, texts, output] => {
            (Tokenizer::from_tiktoken(&std::fs::read(ranks)?, Pattern::Gpt2)?, texts, output)
        }
        ["cl100k", ranks, texts, output] => {
            let pattern = Pattern::Cl100k { digits_max: 3 };
            (Tokenizer::from_tiktoken(&std::fs::read(ranks)?, pattern)?, texts, output)
        }
        ["hugging-face", file, texts, output] => (Tokenizer::from_hugging_face(&std::fs::read(file)?)?, texts, output),
        ["sentencepiece", file, texts, output] => {
            (Tokenizer::from_sentencepiece(&std::fs::read(file)?)?, texts, output)
        }
        _ => return Err("usage: text_speed <kind> <tokenizer file>... <texts> <ids>".into()),
    };
    let load_seconds = started.elapsed().as_secs_f64();
    let all = std::fs::read_to_string(texts)?;
    let mut ids = Vec::with_capacity(all.len());
    // The clock of processor time ticks every few milliseconds, so a small file is read many times.
    let passes = PASSES_BYTES / all.len().max(1) + 1;
    let mut measure = |forget: bool| {
        let mut scratch = TokenizerScratch::default();
        let started = cpu_seconds();
        for _ in 0..passes {
            if forget {
                scratch = TokenizerScratch::default();
            }
            ids.clear();
            for text in all.split('\0') {
                tokenizer.encode_into(text, &mut scratch, &mut ids);
                ids.push(u32::MAX);
            }
        }
        (passes * all.len()) as f64 / (cpu_seconds() - started) / 1e6
    };
    // With new scratch no word has been seen, as at the beginning of a run.
    let first = measure(true);
    let again = measure(false);
    std::fs::write(output, ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>())?;
    println!("{first:.2} {again:.2} {load_seconds:.3}");
    Ok(())
}

/// Seconds that this thread was on a processor, so that what else the machine does is not counted.
fn cpu_seconds() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedule.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    nanoseconds.unwrap_or_default() / 1e9
}

fn extract(pages: &str, articles: &str) -> Result<(), Box<dyn Error>> {
    let pages = std::fs::read(pages)?;
    let limits = ArticleLimits::default();
    let started = cpu_seconds();
    let texts: Result<Vec<String>, _> =
        pages.split(|&byte| byte == 0).map(|page| article_text(page, None, &limits)).collect();
    let seconds = cpu_seconds() - started;
    std::fs::write(articles, texts?.join("\0"))?;
    println!("{:.2}", pages.len() as f64 / seconds / 1e6);
    Ok(())
}
