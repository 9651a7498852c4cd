//! Documents packed into windows.

use forebay_codec::Tensor;
use forebay_pipeline::{Field, Pipeline, RngKey, Runner, Sample, Value};
use proptest::prelude::*;

use crate::support::Collect;

fn pipeline(lines: &str) -> Result<Pipeline, forebay_pipeline::Error> {
    let toml = format!(
        "name = \"t\"\n[source]\nfield = \"text\"\nlabel = \"none\"\n[[step]]\nop = \"tokenize\"\n[[step]]\nop = \"pack\"\n{lines}"
    );
    Pipeline::from_toml("t", &toml)
}

/// The windows of documents of these lengths, whose tokens count on from document to document.
pub(crate) fn packed(lines: &str, lengths: &[usize]) -> Vec<Sample> {
    let pipeline = pipeline(lines).unwrap();
    let mut runner = Runner::new(&pipeline.steps()[1..], 1);
    let mut out = Collect::default();
    let mut first = 1;
    for (number, &length) in lengths.iter().enumerate() {
        let tokens: Vec<i32> = (first..first + length as i32).collect();
        first += length as i32;
        let value = Value::Tensor(Tensor::from_elements(&[length], &tokens).unwrap());
        let fields = vec![Field { name: "text".into(), value }];
        let sample = Sample { key: format!("doc{number}").into(), index: number as u64, fields };
        runner.run(&sample, RngKey::default(), &mut (), &mut out).unwrap();
    }
    runner.end_shard(RngKey::default(), &mut (), &mut out).unwrap();
    assert_eq!(runner.shard_bytes(), 0);
    out.0
}

fn numbers(sample: &Sample, field: &str) -> Vec<i32> {
    let Some(Value::Tensor(tensor)) = sample.field(field) else { panic!("no `{field}` in {sample:?}") };
    tensor.view().elements_or_copy::<i32>(&mut Vec::new()).unwrap().to_vec()
}

pub(crate) fn column(samples: &[Sample], field: &str) -> Vec<Vec<i32>> {
    samples.iter().map(|sample| numbers(sample, field)).collect()
}

const ALL: &str = "outputs = [\"position_ids\", \"segment_ids\", \"cu_seqlens\", \"labels\"]\n";

#[test]
fn documents_follow_each_other_and_are_cut() {
    let windows = packed(&format!("max_length = 4\n{ALL}"), &[3, 0, 6, 1]);
    assert_eq!(column(&windows, "text"), [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9, 10, 0, 0]]);
    assert_eq!(column(&windows, "position_ids"), [vec![0, 1, 2, 0], vec![0, 1, 2, 3], vec![0, 0, 0, 0]]);
    assert_eq!(column(&windows, "segment_ids"), [vec![1, 1, 1, 2], vec![1, 1, 1, 1], vec![1, 2, 0, 0]]);
    assert_eq!(column(&windows, "cu_seqlens"), [vec![0, 3, 4], vec![0, 4], vec![0, 1, 2]]);
    assert_eq!(column(&windows, "labels"), [vec![-100, 2, 3, -100], vec![-100, 6, 7, 8], vec![-100; 4]]);
    let keys: Vec<&str> = windows.iter().map(|window| &*window.key).collect();
    assert_eq!(keys, ["doc0#0", "doc2#1", "doc2#5"]);
    let full = packed("max_length = 4\ndrop_last = true\npad_token_id = 9", &[3, 0, 6, 1]);
    assert_eq!(column(&full, "text"), [vec![1, 2, 3, 4], vec![5, 6, 7, 8]]);
}

#[test]
fn the_best_fit_keeps_documents_whole() {
    let best = "max_length = 4\npad_token_id = -1\npacking_strategy = ";
    let windows = packed(&format!("{best}\"bfd\""), &[2, 3, 6, 1, 2]);
    // 1 to 2, 3 to 5, 6 to 11, 12, 13 to 14: the fullest window with space for 12 is that of 3 to 5.
    assert_eq!(column(&windows, "text"), [vec![1, 2, 13, 14], vec![3, 4, 5, 12], vec![6, 7, 8, 9]]);
    assert_eq!(column(&windows, "segment_ids"), [vec![1, 1, 2, 2], vec![1, 1, 1, 2], vec![1, 1, 1, 1]]);
    let windows = packed(&format!("{best}\"bfd_split\""), &[2, 3, 6, 1, 2]);
    let expected = [vec![1, 2, 10, 11], vec![3, 4, 5, 12], vec![6, 7, 8, 9], vec![13, 14, -1, -1]];
    assert_eq!(column(&windows, "text"), expected);
    // What was packed already stays: a buffer of one window finds nothing better.
    let few = packed(&format!("{best}\"bfd\"\nbuffer_tokens = 4"), &[3, 2, 1]);
    assert_eq!(column(&few, "text"), [vec![1, 2, 3, -1], vec![4, 5, 6, -1]]);
}

#[test]
fn packing_is_always_done_once() {
    let pipeline = pipeline("max_length = 4").unwrap();
    let names: Vec<String> = pipeline.splits().into_iter().map(|split| split.name).collect();
    assert_eq!(names, ["packed"]);
    assert_eq!(pipeline.output().to_string(), "text: int32[4], position_ids: int32[4], segment_ids: int32[4]");
    let late = "name = \"t\"\n[source]\nfield = \"text\"\nlabel = \"none\"\n[[step]]\nop = \"tokenize\"\n[[step]]\nop = \"mask_tokens\"\n\
                mask_token_id = 1\nvocab_size = 9\n[[step]]\nop = \"pack\"\nmax_length = 4";
    let error = Pipeline::from_toml("t", late).unwrap_err().to_string();
    assert!(error.contains("`pack` comes after `mask_tokens`, which is random"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (lines, problem) in [
        ("max_length = 0", "`max_length` is `0`"),
        ("max_length = 8\nbuffer_tokens = 4", "`buffer_tokens` is `4`"),
        ("max_length = 8\npacking_strategy = \"bfd\"\ndrop_last = true", "`drop_last` is `true`"),
        ("max_length = 8\noutputs = [\"labels\", \"labels\"]", "each of them once"),
        ("max_length = 8\noutputs = [\"mask\"]", "unknown variant `mask`"),
    ] {
        let error = pipeline(lines).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

proptest! {
    /// No token is lost or comes twice, windows keep the order of documents, and nothing depends on how far a runner was used before.
    #[test]
    fn every_token_is_in_one_window(
        lengths in proptest::collection::vec(0usize..40, 0..60),
        length in 1usize..24,
        buffer in 0usize..200,
        split in proptest::bool::ANY,
    ) {
        let total: usize = lengths.iter().sum();
        let strategy = if split { "bfd_split" } else { "wrapped" };
        let buffer = buffer.max(length);
        let lines = format!("max_length = {length}\npacking_strategy = \"{strategy}\"\nbuffer_tokens = {buffer}\n{ALL}");
        let windows = packed(&lines, &lengths);
        let mut found = Vec::new();
        for window in &windows {
            let (tokens, segments) = (numbers(window, "text"), numbers(window, "segment_ids"));
            let ends = numbers(window, "cu_seqlens");
            prop_assert_eq!(tokens.len(), length);
            prop_assert_eq!(ends[ends.len() - 1] as usize, segments.iter().filter(|segment| **segment > 0).count());
            for (place, pair) in ends.windows(2).enumerate() {
                let range = pair[0] as usize..pair[1] as usize;
                prop_assert!(segments[range.clone()].iter().all(|segment| *segment == place as i32 + 1));
                prop_assert!(tokens[range.clone()].windows(2).all(|pair| pair[0] + 1 == pair[1]), "a document is whole");
                found.extend_from_slice(&tokens[range]);
            }
        }
        if strategy == "wrapped" {
            prop_assert!(found.is_sorted());
        }
        found.sort_unstable();
        prop_assert_eq!(found, (1..=total as i32).collect::<Vec<_>>());
        let keys: std::collections::HashSet<_> = windows.iter().map(|window| window.key.clone()).collect();
        prop_assert_eq!(keys.len(), windows.len());
    }
}
