//! Text: article text from web pages, token ids from text, and embeddings of token ids.
//!
//! [`article_text`] finds the article of a web page, [`Tokeniser`] turns text into token ids and back, and
//! [`EmbeddingTable`] turns ids into rows of numbers. All three are for one worker or many: tokenisers and tables are only
//! read, and what a worker needs for itself is in its [`TokeniserRoom`].
//!
//! ```
//! use forebay_codec::text::{ArticleLimits, EmbeddingTable, Tokeniser, article_text};
//!
//! let page = b"<html><nav>Home</nav><p>To tokenise a text is to name its parts.</p></html>";
//! let text = article_text(page, None, &ArticleLimits::default())?;
//!
//! // A vocabulary made from the text itself; usually it comes from a file.
//! let tokeniser = Tokeniser::train([text.as_str()], 300)?;
//! let ids = tokeniser.encode(&text);
//! assert_eq!(tokeniser.decode(&ids)?, text.as_bytes());
//!
//! let table = EmbeddingTable::seeded(1, tokeniser.vocabulary_size(), 768)?;
//! assert_eq!(table.row(ids[0]).map(<[f32]>::len), Some(768));
//! # Ok::<(), forebay_codec::Error>(())
//! ```
//!
//! # Which tokenisers
//! Byte-pair encodings and unigram models, from the files of GPT-2, tiktoken, Hugging Face and SentencePiece; the ids are
//! theirs, to the last one. WordPiece, tokenisers of words or characters, and patterns other than those of GPT-2,
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
mod normalise;
mod pairs;
mod sentencepiece;
mod split;
mod tokeniser;
mod train;
mod unigram;

pub use article::{ArticleLimits, article_text};
pub use charset::decode_text;
pub use embedding::EmbeddingTable;
pub use split::Pattern;
pub use tokeniser::{Tokeniser, TokeniserRoom, VOCABULARY_MAX};
