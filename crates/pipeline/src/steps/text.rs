//! Text: the article of a page, its tokens, and their embeddings.

use std::sync::{Arc, OnceLock};

use forebay_codec::text::{ArticleLimits, EmbeddingTable, Tokenizer, TokenizerScratch, article_text, decode_text};
use forebay_codec::{DType, TensorSpec, memory};
use serde::{Deserialize, Serialize};

use super::text_files::{load_embeddings, load_tokenizer};
use super::{encoded, tensor};
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::{Scope, Scratch};
use crate::step::{BadParameter, Needs, StepFiles, Transform};

/// The text of a web page's article; all of its visible text where no part of it reads like an article.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExtractText {
    /// The character set of all pages, as `utf-8` or `windows-1252`. Unless given, each page is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charset: Option<String>,
    /// The longest page, in bytes.
    pub max_bytes: usize,
}

impl Default for ExtractText {
    fn default() -> Self {
        Self { charset: None, max_bytes: ArticleLimits::default().max_bytes }
    }
}

impl Transform for ExtractText {
    fn check(&self) -> Result<(), BadParameter> {
        let known = self.charset.as_deref().is_none_or(|charset| decode_text(b"", Some(charset)).is_ok());
        BadParameter::unless(known, "charset", &self.charset, "a character set that browsers know, as utf-8")?;
        BadParameter::unless(self.max_bytes > 0, "max_bytes", &self.max_bytes, "at least 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Bytes => Ok(FieldType::Text),
            _ => Err(Needs("the bytes of a page".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let limits = ArticleLimits { max_bytes: self.max_bytes, ..ArticleLimits::default() };
        output.text(&article_text(encoded(input)?, self.charset.as_deref(), &limits)?)
    }
}

/// Turns text into token ids, `int32[tokens]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokenize {
    /// `bytes`, where every byte is a token; or the path of a tokenizer: a Hugging Face `tokenizer.json`, a SentencePiece
    /// `.model`, a `.tiktoken` file, GPT-2's `vocab.json` or `encoder.json` beside its merges, or a folder with one of these.
    pub tokenizer: String,
    /// The pattern that a `.tiktoken` file was made with: `gpt2` or `cl100k`. Other files say it themselves.
    pub pattern: TokenPattern,
    /// A token to put before each text, by its name in the vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bos_token: Option<String>,
    /// A token to put after each text, by its name in the vocabulary; it stays when a text is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eos_token: Option<String>,
    /// The most tokens; what a text has more is cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// Fills every text up to so many tokens, so that all are as long. Needs a `max_length` that is no larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad_to: Option<usize>,
    /// The id that texts are filled up with.
    pub pad_token_id: i32,
    /// The tokenizer and the ids around a text, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Loaded>,
}

/// The pattern of a `.tiktoken` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenPattern {
    /// GPT-2's: `r50k_base`, `p50k_base`.
    Gpt2,
    /// GPT-4's: `cl100k_base`, and Llama 3's.
    Cl100k,
}

/// What `tokenizer` says where no file is wanted.
pub(super) const BYTES: &str = "bytes";

#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) tokenizer: Arc<Tokenizer>,
    begin: Option<u32>,
    end: Option<u32>,
}

impl Default for Tokenize {
    fn default() -> Self {
        Self {
            tokenizer: BYTES.to_owned(),
            pattern: TokenPattern::Gpt2,
            bos_token: None,
            eos_token: None,
            max_length: None,
            pad_to: None,
            pad_token_id: 0,
            loaded: OnceLock::new(),
        }
    }
}

impl Tokenize {
    fn loaded(&self) -> Result<&Loaded, StepError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// The tokenizer, if it has the tokens that are wanted of it.
    pub(super) fn load(&self) -> Result<Loaded, StepError> {
        let tokenizer = load_tokenizer(&self.tokenizer, self.pattern)?;
        let id = |name: &Option<String>| match name {
            None => Ok(None),
            Some(name) => tokenizer.id_of(name).map(Some).ok_or_else(|| StepError::File {
                what: "tokenizer",
                path: self.tokenizer.clone(),
                source: format!("it has no token `{name}`").into(),
                hint: "`bos_token` and `eos_token` are names of tokens as the vocabulary spells them",
            }),
        };
        let (begin, end) = (id(&self.bos_token)?, id(&self.eos_token)?);
        Ok(Loaded { tokenizer, begin, end })
    }
}

#[derive(Default)]
struct TokenizeScratch {
    ids: Vec<u32>,
    /// With the words that were seen.
    words: TokenizerScratch,
}

impl Scratch for TokenizeScratch {
    fn capacity_bytes(&self) -> usize {
        self.ids.capacity_bytes()
    }

    fn trim(&mut self) {
        self.ids.trim();
    }
}

impl Transform for Tokenize {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(!self.tokenizer.is_empty(), "tokenizer", &self.tokenizer, "`bytes` or a path")?;
        let around = usize::from(self.bos_token.is_some()) + usize::from(self.eos_token.is_some());
        let is_long_enough = self.max_length.is_none_or(|length| length > around);
        BadParameter::unless(is_long_enough, "max_length", &self.max_length, "more than the tokens around a text")?;
        let fits = self.pad_to.is_none_or(|pad| self.max_length.is_some_and(|length| length <= pad));
        BadParameter::unless(fits, "pad_to", &self.pad_to, "at least `max_length`, which must be given with it")
    }

    fn files(&self) -> Option<&dyn StepFiles> {
        Some(self)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Text | FieldType::Bytes => Ok(FieldType::Tensor { dtype: DType::I32, dims: vec![self.pad_to] }),
            _ => Err(Needs("text, or the bytes of a text".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let Loaded { tokenizer, begin, end } = self.loaded()?;
        let TokenizeScratch { ids, words } = scope.scratch();
        ids.clear();
        ids.extend(begin);
        match input {
            ValueView::Text(text) => tokenizer.encode_into(text, words, ids),
            _ => tokenizer.encode_into(&decode_text(encoded(input)?, None)?, words, ids),
        }
        if let Some(length) = self.max_length {
            ids.truncate(length - usize::from(end.is_some()));
        }
        ids.extend(end);
        // A negative id to fill with has the same bits.
        ids.resize(self.pad_to.unwrap_or(ids.len()), self.pad_token_id as u32);
        let spec = TensorSpec::new(DType::I32, &[ids.len()]);
        output.tensor(spec)?.data.copy_from_slice(bytemuck::cast_slice(ids));
        Ok(())
    }
}

/// Turns token ids into rows of numbers: `int32[tokens]` to `float32[tokens, embedding_dim]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Embed {
    /// The path of a table, `.npy` or `.safetensors`: float32, a row for each token. Unless given, the table is random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Which tensor of a `.safetensors` file; needed where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// The seed of a random table.
    pub seed: u64,
    /// How many tokens a random table has; GPT-2's vocabulary, unless given.
    pub num_embeddings: usize,
    /// How many numbers a token becomes. A table that is given must have so many.
    pub embedding_dim: usize,
    /// The table, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<EmbeddingTable>>,
}

impl Default for Embed {
    fn default() -> Self {
        Self {
            table: None,
            tensor: None,
            seed: 42,
            num_embeddings: 50_257,
            embedding_dim: 768,
            loaded: OnceLock::new(),
        }
    }
}

impl Embed {
    fn loaded(&self) -> Result<&EmbeddingTable, StepError> {
        if let Some(table) = self.loaded.get() {
            return Ok(table);
        }
        let table = load_embeddings(self)?;
        Ok(self.loaded.get_or_init(|| table))
    }
}

impl Transform for Embed {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.num_embeddings > 0, "num_embeddings", &self.num_embeddings, "at least 1")?;
        BadParameter::unless(self.embedding_dim > 0, "embedding_dim", &self.embedding_dim, "at least 1")?;
        let alone = self.tensor.is_none() || self.table.is_some();
        BadParameter::unless(alone, "tensor", &self.tensor, "given with a `table` only")
    }

    fn files(&self) -> Option<&dyn StepFiles> {
        Some(self)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype: DType::I32, dims } if dims.len() == 1 => {
                Ok(FieldType::Tensor { dtype: DType::F32, dims: vec![dims[0], Some(self.embedding_dim)] })
            }
            _ => Err(Needs("token ids, int32[tokens]".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        const EXPECTED: &str = "token ids, int32[tokens]";
        let view = tensor(input, EXPECTED)?;
        let unfit = || StepError::Unfit { found: view.spec, expected: EXPECTED };
        let mut copy = Vec::new();
        let ids = view.elements_or_copy::<i32>(&mut copy).ok_or_else(unfit)?;
        let table = self.loaded()?;
        let mut slot = output.tensor(TensorSpec::new(DType::F32, &[ids.len(), self.embedding_dim]))?;
        if let Some(numbers) = slot.elements_mut::<f32>() {
            return Ok(table.lookup_into(ids, numbers)?);
        }
        // The slot of a batch may lie anywhere.
        let floats: &mut Vec<f32> = scope.scratch();
        memory::reserve(floats, ids.len() * self.embedding_dim)?;
        floats.resize(ids.len() * self.embedding_dim, 0.0);
        table.lookup_into(ids, floats)?;
        slot.data.copy_from_slice(bytemuck::cast_slice(floats));
        Ok(())
    }
}
