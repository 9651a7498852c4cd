//! Several thousand seeded mutants of real and small files: no panic, no wrong record, no loop.

use bytes::Bytes;
use forebay_record::{
    Example, Feature, FeatureView, Index, OnDamage, Options, Reader, TensorFlowType, TensorProto, TensorShape,
    encode_example,
};

use crate::support::{Random, SMALL, golden, is_subsequence, read_all, shard, skipping};

/// One to four random edits.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes.insert(at, random.next() as u8),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            4 => bytes.truncate(at),
            _ => {
                let end = (at + random.below(24)).min(bytes.len());
                let copied = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copied);
            }
        }
    }
}

fn check_shard(mutant: &[u8], index: &Index, whole: &[&[u8]], seed: u64) {
    // Copying may repeat whole records; what must not appear is one that never was.
    let known = |record: &Bytes| whole.contains(&&record[..]);
    for on_damage in [OnDamage::Fail, OnDamage::Skip] {
        let options = Options { on_damage, ..Options::default() };
        for with_index in [false, true] {
            let mut reader = Reader::new(mutant, "mutant", options.clone()).unwrap();
            if with_index {
                reader = reader.with_index(index.clone());
            }
            let mut errors = 0;
            for record in reader {
                match record {
                    Ok(record) => assert!(known(&record.data), "seed {seed}"),
                    Err(_) => errors += 1,
                }
            }
            assert!(errors <= u32::from(on_damage == OnDamage::Fail), "seed {seed}");
        }
    }
}

#[test]
fn mutants_of_a_small_shard() {
    let (whole, index) = shard(&SMALL);
    for seed in 0..4000 {
        let mut mutant = whole.clone();
        mutate(&mut mutant, &mut Random(seed));
        check_shard(&mutant, &index, &SMALL, seed);
    }
}

#[test]
fn mutants_of_tensorflow_files() {
    let Some(plain) = golden("tensorflow-plain.tfrecord") else { return };
    let records = read_all(&plain, Options::default()).unwrap();
    let whole: Vec<&[u8]> = records.iter().map(|record| &record[..]).collect();
    let index = Index::scan(&plain[..], "plain", Options::default()).unwrap();
    for (name, seeds) in [
        ("tensorflow-plain.tfrecord", 0..100),
        ("tensorflow-gzip.tfrecord", 0..300),
        ("tensorflow-zlib-fixed.tfrecord", 0..300),
    ] {
        let shard = golden(name).unwrap();
        for seed in seeds {
            let mut mutant = shard.clone();
            mutate(&mut mutant, &mut Random(seed));
            check_shard(&mutant, &index, &whole, seed);
        }
    }
}

#[test]
fn scattered_damage_loses_only_what_it_hits() {
    let records: Vec<Vec<u8>> = (0..200_u32).map(|n| n.to_le_bytes().repeat(1 + n as usize % 50)).collect();
    let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let (whole, index) = shard(&slices);
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut damaged = whole.clone();
        let mut hit: Vec<usize> = (0..5)
            .map(|_| {
                let at = random.below(damaged.len());
                damaged[at] ^= 0x10;
                index.iter().filter(|entry| entry.end() <= at as u64).count()
            })
            .collect();
        hit.sort_unstable();
        hit.dedup();
        let mut reader = Reader::new(&damaged[..], "damaged", skipping()).unwrap().with_index(index.clone());
        let found: Vec<_> = reader.by_ref().map(|record| record.unwrap().number as usize).collect();
        let expected: Vec<_> = (0..records.len()).filter(|number| !hit.contains(number)).collect();
        // Two hits on one byte may undo each other; nothing else differs.
        assert!(found.len() >= expected.len() && expected.iter().all(|number| found.contains(number)), "seed {seed}");
        assert_eq!(reader.report().records() as usize, records.len() - found.len());
        assert!(is_subsequence(&read_all(&damaged, skipping()).unwrap(), &slices));
    }
}

/// Walks everything that a parser returns.
fn walk(record: &[u8]) {
    if let Ok(example) = Example::parse(record) {
        for (name, view) in example.features() {
            assert!(example.get(name).is_some());
            let count = match view {
                FeatureView::Bytes(list) => list.iter().filter(|value| TensorProto::parse(value).is_ok()).count(),
                FeatureView::Float(list) => list.iter().count(),
                FeatureView::Int64(list) => list.iter().count(),
                FeatureView::Unset => 0,
            };
            assert!(count <= record.len());
        }
    }
    if let Ok(tensor) = TensorProto::parse(record) {
        let again = tensor.encode();
        assert_eq!(TensorProto::parse(&again).unwrap(), tensor);
    }
}

#[test]
fn mutants_of_messages() {
    let shape = TensorShape::new(&[2, 3]).unwrap();
    let tensor = TensorProto::new(TensorFlowType::DT_INT16, shape, &[5; 12]).unwrap();
    let features = [
        ("bytes", Feature::Bytes(&[b"one", b"", b"three"])),
        ("data", Feature::Tensor(tensor)),
        ("float", Feature::Float(&[1.0, f32::NAN])),
        ("int64", Feature::Int64(&[0, -1, 300, i64::MAX])),
    ];
    let example = encode_example(&features).unwrap();
    for whole in [example, tensor.encode()] {
        for length in 0..whole.len() {
            walk(&whole[..length]);
        }
        for seed in 0..20_000 {
            let mut mutant = whole.clone();
            mutate(&mut mutant, &mut Random(seed));
            walk(&mutant);
        }
    }
    // And noise.
    let mut random = Random(1);
    for _ in 0..20_000 {
        let noise: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
        walk(&noise);
    }
}
