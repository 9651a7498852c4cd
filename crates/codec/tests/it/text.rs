//! Pages and tokenizers: real ones, against what is expected of them, and broken and hostile ones.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use forebay_codec::Error;
use forebay_codec::text::{ArticleLimits, Pattern, Tokenizer, TokenizerScratch, article_text};
use proptest::prelude::*;

use crate::allocation::peak_bytes;
use crate::data;

/// How much of the words of two texts is the same, between 0 and 1.
fn overlap(found: &str, expected: &str) -> f64 {
    let count = |text: &str| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
        counts
    };
    let (found, expected) = (count(found), count(expected));
    let common: usize = found.iter().map(|(word, count)| *count.min(expected.get(word).unwrap_or(&0))).sum();
    2.0 * common as f64 / (found.values().sum::<usize>() + expected.values().sum::<usize>()).max(1) as f64
}

fn article(page: &[u8]) -> String {
    article_text(page, None, &ArticleLimits::default()).unwrap()
}

fn gunzip(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn articles_are_those_that_people_marked() {
    let Some(folder) = data::folder("text-html/article-extraction-benchmark") else { return };
    let truth: HashMap<String, serde_json::Value> =
        serde_json::from_slice(&std::fs::read(folder.join("ground-truth.json")).unwrap()).unwrap();
    let mut scores = Vec::new();
    for (name, entry) in &truth {
        let path = folder.join(format!("{name}.html.gz"));
        if path.is_file() {
            scores.push(overlap(&article(&gunzip(&path)), entry["articleBody"].as_str().unwrap()));
        }
    }
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    eprintln!("articles: {} pages, mean overlap of words {mean:.3}", scores.len());
    assert!(scores.len() > 50 && mean > 0.945, "{mean}");
}

#[test]
fn articles_are_those_that_the_reader_mode_shows() {
    let Some(folder) = data::folder("text-html/readability") else { return };
    let mut scores = Vec::new();
    for expected in data::files(&folder).iter().filter(|path| path.to_str().unwrap().ends_with(".expected.html")) {
        let page = expected.to_str().unwrap().replace(".expected.html", ".html");
        let expected = std::fs::read_to_string(expected).unwrap();
        let mut text = String::new();
        for part in expected.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)) {
            text.push_str(part);
            text.push(' ');
        }
        scores.push(overlap(&article(&std::fs::read(page).unwrap()), &text));
    }
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    eprintln!("reader mode: {} pages, mean overlap of words {mean:.3}", scores.len());
    assert!(scores.len() > 20 && mean > 0.985, "{mean}");
}

/// Pages that would take a parser hours or all memory.
fn hostile_pages() -> Vec<(&'static str, Vec<u8>)> {
    let attributes: String = (0..60_000).flat_map(|number| [" a".to_owned(), number.to_string()]).collect();
    let formats: String =
        (0..3_000).flat_map(|number| ["<b a".to_owned(), number.to_string(), ">".to_owned()]).collect();
    vec![
        ("deep", "<div>".repeat(200_000).into_bytes()),
        ("deep in tables", "<table><div>".repeat(100_000).into_bytes()),
        ("deep in templates", "<template>".repeat(100_000).into_bytes()),
        ("deep in svg", "<svg><g>".repeat(100_000).into_bytes()),
        ("left open", format!("{formats}{}", "<p>x".repeat(100_000)).into_bytes()),
        ("left open, shallow", format!("<b a><b b><b c>{}", "<p>x</p>".repeat(60_000)).into_bytes()),
        ("misnested", "<a><p></a>".repeat(40_000).into_bytes()),
        ("attributes", format!("<p{attributes}>").repeat(4).into_bytes()),
        ("many attributes", format!("<p{attributes}>").repeat(12).into_bytes()),
        ("quotes", "<a b=\"".repeat(200_000).into_bytes()),
        ("wide", "<p>x</p>".repeat(100_000).into_bytes()),
        ("line breaks", "x<br>".repeat(100_000).into_bytes()),
        ("entities", "&amp;&#x1F642;&bogus;".repeat(200_000).into_bytes()),
        ("entities in a table", format!("<table>{}", "&amp;x".repeat(200_000)).into_bytes()),
        ("comments", "<!--x-->".repeat(100_000).into_bytes()),
        ("links", "<a href=x>word, word, word</a> ".repeat(30_000).into_bytes()),
        ("one long word", vec![b'x'; 4 << 20]),
        ("noise", (0..1_u32 << 20).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        (
            "tags of noise",
            (0..1_u32 << 19)
                .map(|number| b"<>/=\"' ab!-[p&;"[(number.wrapping_mul(2_654_435_761) >> 24) as usize % 15])
                .collect(),
        ),
        ("wide characters", "<p>\u{1f642}\u{5b57}".repeat(30_000).into_bytes()),
    ]
}

#[test]
fn hostile_pages_neither_hang_nor_fill_memory() {
    for (name, page) in hostile_pages() {
        let started = Instant::now();
        let (result, peak) = peak_bytes(|| article_text(&page, None, &ArticleLimits::default()));
        let elapsed = started.elapsed();
        eprintln!(
            "{name}: {} bytes, {elapsed:?}, {} MB, {:?}",
            page.len(),
            peak >> 20,
            result.as_ref().map(String::len)
        );
        assert!(elapsed < Duration::from_mins(1), "{name} took {elapsed:?}");
        assert!(peak < 1 << 30, "{name} took {peak} bytes");
        if let Err(error) = result {
            assert!(matches!(error, Error::Limit { .. }), "{name}: {error}");
        }
    }
}

fn gpt2() -> Option<Tokenizer> {
    let folder = data::folder("text-bpe")?;
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    Some(Tokenizer::from_gpt2(&read("encoder.json"), &read("vocab.bpe")).unwrap())
}

#[test]
fn ids_are_those_of_hugging_face() {
    let (Some(tokenizer), Some(golden)) = (gpt2(), data::folder("golden")) else { return };
    let golden: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(golden.join("gpt2-bpe.json")).unwrap()).unwrap();
    let ranks = Tokenizer::from_tiktoken(without_special(&tokenizer).as_bytes(), Pattern::Gpt2).unwrap();
    let mut scratch = TokenizerScratch::default();
    for entry in golden {
        let text = entry["text"].as_str().unwrap();
        let expected: Vec<u32> =
            entry["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
        let mut ids = Vec::new();
        tokenizer.encode_into(text, &mut scratch, &mut ids);
        assert_eq!(ids, expected, "{text}");
        assert_eq!(ranks.encode(text), expected, "{text}");
        assert_eq!(tokenizer.decode(&ids).unwrap(), text.as_bytes());
    }
    assert_eq!(tokenizer.id_of("<|endoftext|>"), Some(50256));
    assert_eq!(tokenizer.vocabulary_size(), 50257);
}

/// tiktoken's file has no special tokens.
fn without_special(tokenizer: &Tokenizer) -> String {
    let all = tokenizer.to_tiktoken().unwrap();
    all.lines().filter(|line| !line.ends_with(" 50256")).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn long_words_take_no_longer_than_long_texts() {
    let Some(tokenizer) = gpt2() else { return };
    let started = Instant::now();
    for text in ["x".repeat(1 << 20), "ab".repeat(1 << 19), " ".repeat(1 << 20), "\u{5b57}".repeat(1 << 18)] {
        assert_eq!(tokenizer.decode(&tokenizer.encode(&text)).unwrap(), text.as_bytes());
    }
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

/// Small files of each kind, made by `golden/tokenizers.py`. The fuzz target begins from them.
const UNIGRAM: &[u8] = include_bytes!("../golden/tokenizers/unigram.json");
const PAIRS: &[u8] = include_bytes!("../golden/tokenizers/pairs.json");
const BYTES: &[u8] = include_bytes!("../golden/tokenizers/bytes.json");
const GPT2: &[u8] = include_bytes!("../golden/tokenizers/gpt2.pair");
const RANKS: &[u8] = include_bytes!("../golden/tokenizers/ranks.tiktoken");
const MODELS: [&[u8]; 2] =
    [include_bytes!("../golden/tokenizers/unigram.model"), include_bytes!("../golden/tokenizers/pairs.model")];

#[test]
fn small_tokenizers_do_what_they_say() {
    let unigram = Tokenizer::from_hugging_face(UNIGRAM).unwrap();
    // The full-width a is an a to this normalizer; the e has no piece, but a byte.
    assert_eq!(unigram.encode("\u{ff41}b ae"), [1, 4, 3, 6 + 0x65]);
    assert_eq!(unigram.decode(&unigram.encode("ab ae")).unwrap(), b"ab ae");
    assert_eq!(unigram.encode("a<unk>"), [3, 0]);
    let pairs = Tokenizer::from_hugging_face(PAIRS).unwrap();
    assert_eq!(pairs.encode("ab ab xx"), [5, 5, 1, 0]);
    assert_eq!(pairs.decode(&[5, 5]).unwrap(), b"ab ab");
    assert!(pairs.decode(&[6]).is_err());
}

#[test]
fn small_tokenizers_of_bytes_agree() {
    let nul = GPT2.iter().position(|&byte| byte == 0).unwrap();
    let gpt2 = Tokenizer::from_gpt2(&GPT2[..nul], &GPT2[nul + 1..]).unwrap();
    let ranks = Tokenizer::from_tiktoken(RANKS, Pattern::Gpt2).unwrap();
    let bytes = Tokenizer::from_hugging_face(BYTES).unwrap();
    assert_eq!(gpt2.encode("ab ab 1"), [256, 257, 0x20, 0x31]);
    assert_eq!(ranks.encode("ab ab 1"), gpt2.encode("ab ab 1"));
    // This one makes capitals small, by a change and by its table, and single digits words.
    assert_eq!(bytes.encode("AB ab 12"), [256, 257, 0x20, 0x31, 0x32]);
    assert_eq!(bytes.encode("ab <|end|> ab"), [256, 258, 256]);
}

/// A SentencePiece file with these pieces (text, score, kind), of this kind.
fn sentencepiece(kind: u8, byte_fallback: bool, pieces: &[(&str, f32, u8)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (text, score, kind) in pieces {
        let mut piece = vec![0x0A, text.len() as u8];
        piece.extend(text.as_bytes());
        piece.push(0x15);
        piece.extend(score.to_le_bytes());
        piece.extend([0x18, *kind]);
        file.extend([0x0A, piece.len() as u8]);
        file.extend(piece);
    }
    let trainer = [0x18, kind, 0x98, 0x02, u8::from(byte_fallback)];
    file.extend([0x12, trainer.len() as u8]);
    file.extend(trainer);
    file
}

const PIECES: [(&str, f32, u8); 8] = [
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("\u{2581}ab", -1.0, 1),
    ("ab", -0.5, 1),
    ("\u{2581}", -3.0, 1),
    ("a", -4.0, 1),
    ("b", -5.0, 1),
    ("<sep>", 0.0, 4),
];

#[test]
fn small_sentencepiece_models_do_what_they_say() {
    for kind in [1, 2] {
        let tokenizer = Tokenizer::from_sentencepiece(&sentencepiece(kind, false, &PIECES)).unwrap();
        assert_eq!(tokenizer.encode("  ab   ab<sep>a "), [2, 2, 7, 5], "{kind}");
        assert_eq!(tokenizer.encode("xy z<s>"), [4, 0, 4, 0], "{kind}");
        assert_eq!(tokenizer.decode(&[2, 2, 7, 5]).unwrap(), b"ab ab<sep>a");
        assert_eq!(tokenizer.id_of("<s>"), Some(1));
        assert!(tokenizer.encode("").is_empty() && tokenizer.encode("   ").is_empty());
    }
    for model in MODELS {
        // Its table makes a small letter of the capital.
        assert_eq!(Tokenizer::from_sentencepiece(model).unwrap().encode("Ab ab"), [2, 2]);
    }
}

#[test]
fn what_is_not_handled_is_named() {
    let model = r#""model":{"type":"BPE","vocab":{},"merges":[]}"#;
    for (json, name) in [
        (r#"{"model":{"type":"WordPiece"}}"#.to_owned(), "model `WordPiece`"),
        (format!(r#"{{"normalizer":{{"type":"BertNormalizer"}},{model}}}"#), "normalizer `BertNormalizer`"),
        (format!(r#"{{"pre_tokenizer":{{"type":"BertPreTokenizer"}},{model}}}"#), "pre_tokenizer `BertPreTokenizer`"),
        (
            format!(
                r#"{{"pre_tokenizer":{{"type":"Split","pattern":{{"Regex":"x+"}},"behavior":"Isolated"}},{model}}}"#
            ),
            "pre_tokenizer `Split` with the pattern `x+`",
        ),
        (
            r#"{"model":{"type":"BPE","end_of_word_suffix":"</w>","vocab":{},"merges":[]}}"#.to_owned(),
            "model `BPE` with `end_of_word_suffix`",
        ),
    ] {
        let error = Tokenizer::from_hugging_face(json.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains(name), "{error}");
    }
    let words = Tokenizer::from_sentencepiece(&sentencepiece(3, false, &PIECES)).unwrap_err();
    assert!(words.to_string().contains("a model of kind `word` is not supported"), "{words}");
    let bytes = Tokenizer::from_sentencepiece(&sentencepiece(2, true, &PIECES)).unwrap_err();
    assert!(bytes.to_string().contains("no piece is the byte `0x00`"), "{bytes}");
}

#[test]
fn damaged_files_say_what_is_wrong() {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Tokenizer::from_hugging_face(nested.as_bytes()).is_err());
    for (json, problem) in [
        ("{}", "the component `model` has no `type`"),
        (r#"{"model":{"type":"BPE","merges":[]}}"#, "has no `vocab`"),
        (r#"{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}"#, "the id of `a` is not an id"),
        (r#"{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}"#, "two tokens have the id `0`"),
        (r#"{"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}}"#, "token id is `4000000000`"),
        (r#"{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}"#, "needs the token `aa`"),
        (r#"{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}"#, "is not two tokens"),
        (r#"{"model":{"type":"BPE","unk_token":"u","vocab":{"a":0},"merges":[]}}"#, "`unk_token` is `u`"),
        (r#"{"model":{"type":"Unigram","unk_id":1,"vocab":[["a",0]]}}"#, "`unk_id` is `1`"),
        (r#"{"model":{"type":"Unigram","unk_id":0,"vocab":[["a"]]}}"#, "is not a token and score"),
        (r#"{"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{},"merges":[]}}"#, "byte `0x00`"),
    ] {
        let error = Tokenizer::from_hugging_face(json.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(problem), "{json}: {error}");
    }
    for (merges, problem) in
        [(&b"a b c"[..], "line `1` is `a b c`"), (b"\n\xFF", "not UTF-8"), (b"a b", "needs the token `a`")]
    {
        let error = Tokenizer::from_gpt2(b"{}", merges).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    for (ranks, problem) in [
        ("AA== 0\nAQ==", "line `2` has no space"),
        ("?? 0", "line `1` does not begin with a token"),
        ("AA== x", "line `1` does not end with an id"),
        ("AA== 0\nAQ== 0", "line `2` repeats an id"),
        ("AA== 99999999999", "token id is `99999999999`"),
        ("AA== 0", "there is no token for the byte `0x01`"),
    ] {
        let error = Tokenizer::from_tiktoken(ranks.as_bytes(), Pattern::Gpt2).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

/// Files that are valid word for word, and would make a text of a few letters fill memory, the stack, or a day.
#[test]
fn hostile_tokenizers_are_refused() {
    let model = r#""model":{"type":"BPE","vocab":{"a":0},"merges":[]}"#;
    let of = |component: &str, members: &str, member: &str, count: usize| {
        let all = vec![member; count].join(",");
        format!(r#"{{"{component}":{{"type":"Sequence","{members}":[{all}]}},{model}}}"#)
    };
    let double = r#"{"type":"Replace","pattern":{"String":"a"},"content":"aa"}"#;
    let long = format!(r#"{{"type":"Prepend","prepend":"{}"}}"#, "a".repeat(5000));
    let piece = "a".repeat(5000);
    for (json, what) in [
        (of("normalizer", "normalizers", double, 40), "growth of a text by its changes"),
        (of("normalizer", "normalizers", r#"{"type":"NFKC"}"#, 5), "growth of a text by its changes"),
        (of("normalizer", "normalizers", &long, 1), "bytes to be put before a text"),
        (
            of("normalizer", "normalizers", r#"{"type":"Strip","strip_left":true,"strip_right":true}"#, 1000),
            "number of changes of a text",
        ),
        (of("pre_tokenizer", "pretokenizers", r#"{"type":"Digits"}"#, 100_000), "number of cuts of a text"),
        (format!(r#"{{"model":{{"type":"Unigram","unk_id":0,"vocab":[["{piece}",0]]}}}}"#), "bytes of a token"),
    ] {
        let error = Tokenizer::from_hugging_face(json.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }) && error.to_string().starts_with(what), "{error}");
    }
    let few = of("normalizer", "normalizers", double, 3);
    assert_eq!(Tokenizer::from_hugging_face(few.as_bytes()).unwrap().encode("a"), [0; 8]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_come_back_as_they_were(text in any::<String>(), corpus in "[a-e ]{0,200}", size in 256_usize..400) {
        let tokenizer = Tokenizer::train([corpus.as_str(), text.as_str()], size).unwrap();
        for tokenizer in [&tokenizer, &Tokenizer::byte_level()] {
            for text in [&text, &corpus] {
                prop_assert_eq!(tokenizer.decode(&tokenizer.encode(text)).unwrap(), text.as_bytes());
            }
        }
        // What has been seen makes no difference.
        let mut scratch = TokenizerScratch::default();
        let mut ids = Vec::new();
        tokenizer.encode_into(&corpus, &mut scratch, &mut ids);
        ids.clear();
        tokenizer.encode_into(&text, &mut scratch, &mut ids);
        prop_assert_eq!(ids, tokenizer.encode(&text));
    }

    #[test]
    fn damaged_tokenizers_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(), text in any::<String>()) {
        let of_hugging_face = [UNIGRAM, PAIRS, BYTES].map(|file| (file, true));
        for (file, json) in of_hugging_face.into_iter().chain(MODELS.map(|file| (file, false))) {
            let mut file = file.to_vec();
            let offset = at.index(file.len());
            file[offset] = byte;
            for file in [&file[..], &file[..cut.index(file.len())]] {
                let tokenizer = if json { Tokenizer::from_hugging_face(file) } else { Tokenizer::from_sentencepiece(file) };
                if let Ok(tokenizer) = tokenizer {
                    let ids = tokenizer.encode(&text);
                    prop_assert!(tokenizer.decode(&ids).is_ok());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_page(page in proptest::collection::vec(any::<u8>(), 0..400), tags in "(<(p|b|a|table|td|li|svg|/p|/b|/a|/table|template|br|!--)[ >]| x|&lt;){0,60}") {
        article(&page);
        article(tags.as_bytes());
    }
}
