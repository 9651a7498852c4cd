//! Text: article text from web pages, token ids from text, and embeddings of token ids.
//!
//! [`article_text`] finds the article of a web page, [`Tokenizer`] turns text into token ids and back, and
//! [`EmbeddingTable`] turns ids into rows of numbers. All three are for one worker or many: tokenizers and tables are only
//! read, and what a worker needs for itself is in its [`TokenizerScratch`].
//!
//! ```
//! use forebay_codec::text::{ArticleLimits, EmbeddingTable, Tokenizer, article_text};
//!
//! let page = b"<html><nav>Home</nav><p>To tokenize a text is to name its parts.</p></html>";
//! let text = article_text(page, None, &ArticleLimits::default())?;
//!
//! // A vocabulary made from the text itself; usually it comes from a file.
//! let tokenizer = Tokenizer::train([text.as_str()], 300)?;
//! let ids = tokenizer.encode(&text);
//! assert_eq!(tokenizer.decode(&ids)?, text.as_bytes());
//!
//! let table = EmbeddingTable::seeded(1, tokenizer.vocabulary_size(), 768)?;
//! assert_eq!(table.row(ids[0]).map(<[f32]>::len), Some(768));
//! # Ok::<(), forebay_codec::Error>(())
//! ```
//!
//! # Which tokenizers
//! Byte-pair encodings and unigram models, from the files of GPT-2, tiktoken, Hugging Face and SentencePiece; the ids are
//! theirs, to the last one. WordPiece, tokenizers of words or characters, and patterns other than those of GPT-2,
//! `cl100k_base`, Llama 3 and Qwen 2 are refused, with the name of what is not handled.

mod added;
mod article;
mod base64;
mod byte_level;
mod cache;
mod charset;
mod charsmap;
mod classes;
mod cut;
mod embedding;
mod guard;
mod hugging_face;
mod merge;
mod normalize;
mod pairs;
mod sentencepiece;
mod split;
mod tokenizer;
mod train;
mod unigram;

pub use article::{ArticleLimits, article_text};
pub use charset::decode_text;
pub use embedding::EmbeddingTable;
pub use split::Pattern;
pub use tokenizer::{Tokenizer, TokenizerScratch, VOCABULARY_MAX};
