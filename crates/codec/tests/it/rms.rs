//! The root mean square, against what NumPy gives (`golden/rms.py`).

use forebay_codec::signal::{rms, rms_spec};
use forebay_codec::{DType, Tensor, TensorMut, TensorView};

const NUMPY: &str = include_str!("../golden/rms.txt");

/// The array that the script generates.
fn generated(dtype: DType, count: usize) -> Tensor {
    let bits = |index: usize| (index as u64).wrapping_mul(2_654_435_761).wrapping_add(12_345) % (1 << 32);
    let signed = |index: usize| bits(index) as i64 - (1 << 31);
    macro_rules! array {
        ($number:expr) => {
            Tensor::from_elements(&[count], &(0..count).map($number).collect::<Vec<_>>()).unwrap()
        };
    }
    match dtype {
        DType::U8 => array!(|index| (bits(index) >> 24) as u8),
        DType::U16 => array!(|index| (bits(index) >> 16) as u16),
        DType::I16 => array!(|index| (signed(index) >> 16) as i16),
        DType::I32 => array!(|index| signed(index) as i32),
        DType::I64 => array!(|index| signed(index) * 1_000_003),
        DType::F32 => array!(|index| (signed(index) as f64 / 65_536.0) as f32),
        DType::F64 => array!(|index| signed(index) as f64 / 65_536.0),
        DType::F16 | DType::BF16 => panic!("NumPy sums these in half precision; here they are summed in double"),
    }
}

fn run(input: TensorView<'_>, period: usize) -> Vec<f64> {
    let spec = rms_spec(&input.spec, period);
    let mut data = vec![0xff; spec.bytes()];
    rms(input, period, TensorMut { spec, data: &mut data }).unwrap();
    match spec.dtype {
        DType::F32 => data.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
        _ => data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
    }
}

#[test]
fn every_type_equals_numpy_to_the_bit() {
    let mut cases = 0;
    for line in NUMPY.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, count, period] = words[..3] else { panic!("{line}") };
        let array = generated(DType::from_name(name).unwrap(), count.parse().unwrap());
        let expected: Vec<u64> = words[3..].iter().map(|word| word.parse::<f64>().unwrap().to_bits()).collect();
        let found: Vec<u64> = run(array.view(), period.parse().unwrap()).into_iter().map(f64::to_bits).collect();
        assert_eq!(found, expected, "{name} {count} {period}");
        cases += 1;
    }
    assert_eq!(cases, 7 * 5);
}

#[test]
fn elements_may_lie_anywhere() {
    let array = generated(DType::F64, 1000);
    let expected = run(array.view(), 100);
    let mut shifted = vec![0];
    shifted.extend_from_slice(array.data());
    assert_eq!(run(TensorView { spec: *array.spec(), data: &shifted[1..] }, 100), expected);
}

#[test]
fn a_rest_counts_for_nothing_and_an_output_must_fit() {
    let array = generated(DType::F32, 999);
    assert_eq!(run(array.view(), 1000), [0.0_f64; 0]);
    assert_eq!(run(array.view(), 500).len(), 1);
    let spec = rms_spec(array.spec(), 100);
    let wrong = TensorMut { spec, data: &mut vec![0; spec.bytes()] };
    assert!(rms(array.view(), 200, wrong).unwrap_err().to_string().contains("do not fit the output"));
    let wrong = TensorMut { spec, data: &mut vec![0; spec.bytes()] };
    assert!(rms(array.view(), 0, wrong).is_err());
}
