//! Element types: converted as torch converts them.

use forebay_codec::{DType, Tensor, TensorSpec};

use crate::support::run;

/// How far two elements lie apart, counted in numbers that the type has between them.
fn apart(dtype: DType, ours: &[u8], theirs: &[u8]) -> u64 {
    if !dtype.is_float() {
        return (dtype.read(ours) - dtype.read(theirs)).abs() as u64;
    }
    // Numbers of floating point from 0 on lie in the order of their bits.
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
    bits(ours).abs_diff(bits(theirs))
}

#[test]
fn numbers_become_what_torch_makes_of_them() {
    let bytes = |digits: &str| -> Vec<u8> {
        let pairs = digits.as_bytes().as_chunks::<2>().0.iter();
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let (mut cases, mut values, mut differing) = (0, 0, 0);
    for line in include_str!("../golden/to_dtype.txt").lines() {
        let [from, to, scale, given, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let dtypes = [from, to].map(|name| DType::from_name(name).unwrap());
        let (given, expected) = (bytes(given), bytes(expected));
        let spec = TensorSpec::new(dtypes[0], &[given.len() / dtypes[0].bytes()]);
        let toml = format!("op = \"to_dtype\"\ndtype = \"{to}\"\nscale = {scale}");
        let ours = run(&toml, Tensor::new(spec, given).unwrap());
        let size = dtypes[1].bytes();
        assert_eq!(ours.data().len(), expected.len(), "{from} to {to}");
        // What is not scaled is the nearest number there is. Scaled, torch rounds to single precision (or to halves) in between.
        let most = u64::from(scale == "true");
        for (ours, theirs) in ours.data().chunks(size).zip(expected.chunks(size)) {
            let apart = apart(dtypes[1], ours, theirs);
            let [ours, theirs] = [ours, theirs].map(|element| dtypes[1].read(element));
            assert!(apart <= most, "{from} to {to}, scaled: {scale}: {ours}, not {theirs}");
            differing += usize::from(apart > 0);
        }
        values += expected.len() / size;
        cases += 1;
    }
    eprintln!("{differing} of {values} values differ from torch's by one");
    assert!(cases > 60 && differing * 20 < values, "{cases} cases, {differing} of {values} differ");
}
