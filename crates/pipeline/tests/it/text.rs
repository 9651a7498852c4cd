//! Pages through the language pipeline, from the bytes of files to ids and embeddings.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use forebay_codec::{DType, Tensor};
use forebay_pipeline::steps::{named_files, prepare_files};
use forebay_pipeline::{
    Action, Error, Field, FieldType, Needs, Output, Pipeline, RngKey, Runner, Sample, Scope, Step, StepError,
    StepFiles, Transform, Value, ValueView, preset, preset_text,
};

use crate::data::data_folder;
use crate::support::{Collect, bytes_value, run_all};

const PAGE: &str = "<html><head><title>T</title></head><body><nav>Home</nav><article><p>The first paragraph of a page.</p>\
                    <p>The second one, which is longer than the first.</p></article></body></html>";

fn sample(bytes: &[u8]) -> Sample {
    Sample {
        key: "a".into(),
        index: 5,
        fields: vec![Field { name: "text".into(), value: bytes_value(bytes.to_vec()) }],
    }
}

fn last_value(pipeline: &Pipeline, steps: usize, page: &[u8]) -> Value {
    let mut out = run_all(&pipeline.steps()[..steps], &sample(page), RngKey::default());
    out.pop().unwrap().fields.pop().unwrap().value
}

fn tensor(value: Value) -> Tensor {
    match value {
        Value::Tensor(tensor) => tensor,
        other => panic!("no tensor but {other:?}"),
    }
}

fn ids(tensor: &Tensor) -> Vec<i32> {
    tensor.view().elements_or_copy::<i32>(&mut Vec::new()).unwrap().to_vec()
}

/// The language pipeline with these lines in its step `tokenize`.
fn with_tokenizer(lines: &str) -> Pipeline {
    let text = preset_text("nlp")
        .unwrap()
        .replace("tokenizer = \"bytes\"", lines)
        .replace("num_embeddings = 50257", "num_embeddings = 50258");
    Pipeline::from_toml("nlp", &text).unwrap()
}

fn tokenize(lines: &str, text: &[u8]) -> Result<Vec<i32>, Error> {
    let toml =
        format!("name = \"t\"\n[source]\nfield = \"text\"\nlabel = \"none\"\n[[step]]\nop = \"tokenize\"\n{lines}");
    let pipeline = Pipeline::from_toml("t", &toml)?;
    let mut out = Collect::default();
    Runner::new(pipeline.steps(), 0).run(&sample(text), RngKey::default(), &mut (), &mut out)?;
    Ok(ids(&tensor(out.0.pop().unwrap().fields.pop().unwrap().value)))
}

fn gpt2() -> Option<String> {
    Some(data_folder("text-bpe")?.to_str().unwrap().to_owned())
}

#[test]
fn the_splits_are_called_as_in_the_paper() {
    let names: Vec<String> = preset("nlp").unwrap().splits().into_iter().map(|split| split.name).collect();
    assert_eq!(names, ["unprocessed", "concatenated", "decoded", "bpe-encoded", "embedded"]);
    assert_eq!(preset("nlp").unwrap().output().to_string(), "text: float32[?, 768]");
}

#[test]
fn a_page_becomes_text_then_bytes_then_rows() {
    let pipeline = Pipeline::from_toml("nlp", &preset_text("nlp").unwrap().replace("50257", "256")).unwrap();
    let Value::Text(text) = last_value(&pipeline, 1, PAGE.as_bytes()) else { panic!("no text") };
    assert!(text.contains("The first paragraph of a page."), "{text}");
    assert!(!text.contains("<p>"), "{text}");
    let tokens = ids(&tensor(last_value(&pipeline, 2, PAGE.as_bytes())));
    assert_eq!(tokens, text.bytes().map(i32::from).collect::<Vec<_>>());
    let rows = tensor(last_value(&pipeline, 3, PAGE.as_bytes()));
    assert_eq!(rows.spec().dtype, DType::F32);
    assert_eq!(rows.spec().shape.dims(), [tokens.len(), 768]);
    let rows = rows.view().elements_or_copy::<f32>(&mut Vec::new()).unwrap().to_vec();
    let alike = |a: usize, b: usize| rows[a * 768..(a + 1) * 768] == rows[b * 768..(b + 1) * 768];
    assert!((1..tokens.len()).all(|index| alike(0, index) == (tokens[0] == tokens[index])));
}

#[test]
fn real_pages_become_the_ids_of_their_articles() {
    let (Some(pages), Some(vocabulary)) = (data_folder("text-html"), gpt2()) else { return };
    let pipeline =
        with_tokenizer(&format!("tokenizer = \"{vocabulary}\"\nmax_length = 512\neos_token = \"<|endoftext|>\""));
    let prepared = prepare_files(pipeline.steps()).unwrap();
    let mut tokens = 0;
    for name in ["001", "heise", "lemonde-1", "mozilla-1", "wikipedia-3"] {
        let page = std::fs::read(pages.join(format!("readability/{name}.html"))).unwrap();
        let found = ids(&tensor(last_value(&pipeline, 2, &page)));
        assert!((50..=512).contains(&found.len()), "{name}: {} tokens", found.len());
        assert_eq!(found.last(), Some(&50256));
        assert!(found[..found.len() - 1].iter().all(|id| (0..50256).contains(id)));
        tokens += found.len();
        assert_eq!(tensor(last_value(&pipeline, 3, &page)).spec().shape.dims(), [found.len(), 768]);
    }
    assert!(tokens > 1000);
    drop(prepared);
}

#[test]
fn texts_are_cut_and_filled_up_as_asked() {
    assert_eq!(tokenize("", b"abcd").unwrap(), [97, 98, 99, 100]);
    assert_eq!(tokenize("max_length = 3", b"abcd").unwrap(), [97, 98, 99]);
    assert_eq!(tokenize("max_length = 3\nbos_token = \"x\"\neos_token = \"y\"", b"abcd").unwrap(), [120, 97, 121]);
    assert_eq!(
        tokenize("max_length = 4\npad_to = 6\npad_token_id = -100", b"ab").unwrap(),
        [97, 98, -100, -100, -100, -100]
    );
    assert_eq!(tokenize("max_length = 4\npad_to = 4", b"abcdef").unwrap(), [97, 98, 99, 100]);
    assert_eq!(tokenize("", b"").unwrap(), [0_i32; 0]);
    for wrong in ["pad_to = 4", "pad_to = 4\nmax_length = 5", "max_length = 1\neos_token = \"x\"", "tokenizer = \"\""] {
        assert!(matches!(tokenize(wrong, b""), Err(Error::Parameter { .. })), "{wrong}");
    }
}

#[test]
fn what_is_filled_up_has_a_fixed_shape() {
    let pipeline = with_tokenizer("max_length = 128\npad_to = 128");
    assert_eq!(pipeline.output().to_string(), "text: float32[128, 768]");
}

fn message(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}\n{}", message(source)))
}

fn refused(lines: &str) -> String {
    message(&prepare_files(with_tokenizer(lines).steps()).unwrap_err())
}

#[test]
fn a_missing_vocabulary_is_reported_before_the_run() {
    let text = refused("tokenizer = \"no/such/tokenizer.json\"");
    for part in ["step `tokenize`", "`no/such/tokenizer.json`", "hint:", "tokenizer = \"bytes\""] {
        assert!(text.contains(part), "{text}");
    }
    assert!(refused("tokenizer = \"vocabulary.xml\"").contains("`.xml` is not a known kind of tokenizer"));
    assert!(
        refused("tokenizer = \"bytes\"\neos_token = \"<|endoftext|>\"").contains("it has no token `<|endoftext|>`")
    );
    let table = preset_text("nlp").unwrap().replace("# table = \"embeddings.npy\"", "table = \"no/such.npy\"");
    let error = prepare_files(Pipeline::from_toml("nlp", &table).unwrap().steps()).unwrap_err();
    assert!(message(&error).contains("the table of embeddings `no/such.npy` cannot be used"), "{error}");
}

/// A step of someone else's that reads a file.
#[derive(Debug)]
struct Lexicon(String);

impl StepFiles for Lexicon {
    fn paths(&self) -> Vec<(&'static str, &str)> {
        vec![("lexicon", &self.0)]
    }

    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError> {
        let fail = |error| StepError::File { what: "lexicon", path: self.0.clone(), source: error, hint: "write one" };
        std::fs::read(&self.0).map(|bytes| Arc::new(bytes) as _).map_err(|error| fail(error.into()))
    }
}

impl Transform for Lexicon {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        Ok(input.clone())
    }

    fn files(&self) -> Option<&dyn StepFiles> {
        Some(self)
    }

    fn run(&self, _input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        output.text(&self.0)
    }
}

#[test]
fn the_files_of_any_step_are_read_before_the_run() {
    let step = |path: &str| Step {
        name: "look-up".to_owned(),
        stage: "looked-up".to_owned(),
        fields: vec!["text".to_owned()],
        action: Action::Transform(Arc::new(Lexicon(path.to_owned()))),
        spec: None,
    };
    let there = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    drop(prepare_files(&[step(there)]).unwrap());
    assert_eq!(named_files(&[step(there), step("no/such")]).unwrap(), [Path::new(there), Path::new("no/such")]);
    let text = message(&prepare_files(&[step(there), step("no/such")]).unwrap_err());
    assert!(text.contains("step `look-up`") && text.contains("lexicon `no/such`"), "{text}");
}

#[test]
fn damaged_vocabularies_are_reported_with_their_path() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("text");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bytes, problem) in [
        ("a.json", &b"{"[..], "it is not JSON"),
        ("b.json", br#"{"model":{"type":"WordPiece"}}"#, "model `WordPiece` is not supported"),
        ("c.tiktoken", b"AA== 0\n??", "line `2` has no space"),
        ("d.model", b"\xFF\xFF", "not a protocol buffer"),
        ("vocab.json", b"[]", "not a JSON object"),
    ] {
        std::fs::write(folder.join("merges.txt"), "").unwrap();
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let text = refused(&format!("tokenizer = \"{}\"", path.display()));
        assert!(text.contains(problem) && text.contains(name), "{text}");
    }
}

#[test]
fn a_given_table_is_looked_up() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("table.npy");
    let mut file = b"\x93NUMPY\x01\0\x3b\0{'descr': '<f4', 'fortran_order': False, 'shape': (256, 2)}".to_vec();
    file.extend((0..512).flat_map(|number| (number as f32).to_le_bytes()));
    std::fs::write(&path, file).unwrap();
    let text = preset_text("nlp").unwrap().replace("embedding_dim = 768", "embedding_dim = 2");
    let text = text.replace("# table = \"embeddings.npy\"", &format!("table = \"{}\"", path.display()));
    let pipeline = Pipeline::from_toml("nlp", &text).unwrap();
    let prepared = prepare_files(pipeline.steps()).unwrap();
    let rows = tensor(last_value(&pipeline, 3, b"ab"));
    assert_eq!(rows.view().elements_or_copy::<f32>(&mut Vec::new()).unwrap(), [194.0, 195.0, 196.0, 197.0]);
    let wrong = Pipeline::from_toml("nlp", &text.replace("embedding_dim = 2", "embedding_dim = 3")).unwrap();
    assert!(message(&prepare_files(wrong.steps()).unwrap_err()).contains("it has 2 columns, but `embedding_dim` is 3"));
    drop(prepared);
}
