//! Tensors of random numbers, as PRESTO makes them to find out how the size and type of samples matter.

use forebay_codec::{DType, TensorSpec, TensorView, npy};
use forebay_pipeline::Random;

/// The size and type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorKind {
    /// The size of its elements in bytes, rounded to columns; at least one column.
    pub sample_bytes: u64,
    /// Their type.
    pub dtype: DType,
}

/// The number of rows of every tensor.
const ROWS: usize = 2500;

/// PRESTO's smallest and largest samples: [2500, 1] and [2500, 2048] of float32.
pub const SAMPLE_BYTES: std::ops::RangeInclusive<u64> = 10_000..=20_480_000;

impl Default for TensorKind {
    fn default() -> Self {
        Self { sample_bytes: 160_000, dtype: DType::F32 }
    }
}

impl TensorKind {
    /// The tensor: `[2500, k]`.
    pub fn spec(&self) -> TensorSpec {
        let row_bytes = ROWS * self.dtype.bytes();
        let columns = (self.sample_bytes as usize + row_bytes / 2) / row_bytes;
        TensorSpec::new(self.dtype, &[ROWS, columns.max(1)])
    }
}

/// Tensor number `number` as a file. All numbers of the range are equally likely: 0 to 254 of 8 bits, −2¹⁵ to 2¹⁵ − 1 of types with a
/// sign (as PRESTO's `float32`), 0 to 2¹⁶ − 1 of 16 bits without one.
pub(crate) fn tensor(kind: TensorKind, seed: u64, number: u64) -> Vec<u8> {
    const LOW: f64 = -32_768.0;
    const HIGH: f64 = 32_767.0;
    let spec = kind.spec();
    let mut random = Random::from_parts(&[seed, number]);
    let mut data = Vec::with_capacity(spec.bytes());
    for _ in 0..spec.shape.elements() {
        match kind.dtype {
            DType::U8 => data.push(random.below(255) as u8),
            DType::U16 => data.extend((random.below(65_536) as u16).to_le_bytes()),
            DType::I16 => data.extend((random.below(65_536) as u16 as i16).to_le_bytes()),
            dtype => {
                let start = data.len();
                data.resize(start + dtype.bytes(), 0);
                dtype.write(random.between(LOW, HIGH), &mut data[start..]);
            }
        }
    }
    npy::encode(TensorView { spec, data: &data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_paper() {
        // 0.01 MB, doubled eleven times.
        for step in 0..12 {
            let kind = TensorKind { sample_bytes: 10_000 << step, dtype: DType::F32 };
            assert_eq!(kind.spec(), TensorSpec::new(DType::F32, &[2500, 1 << step]));
            let bytes = TensorKind { dtype: DType::U8, ..kind }.spec();
            assert_eq!(bytes, TensorSpec::new(DType::U8, &[2500, 4 << step]));
        }
        assert_eq!(TensorKind { sample_bytes: 10_000, dtype: DType::F64 }.spec().shape.dims(), [2500, 1]);
    }

    #[test]
    fn numbers_fill_their_range() {
        for dtype in DType::ALL {
            let kind = TensorKind { sample_bytes: 40_000, dtype };
            let file = tensor(kind, 1, 0);
            assert_ne!(file, tensor(kind, 1, 1));
            let array = npy::decode(file).unwrap();
            assert_eq!(*array.spec(), kind.spec());
            if let Some(bytes) = array.view().elements::<u8>() {
                assert_eq!((bytes.iter().min(), bytes.iter().max()), (Some(&0), Some(&254)));
            }
            if let Some(floats) = array.view().elements_or_copy::<f32>(&mut Vec::new()) {
                assert!(floats.iter().all(|value| (-32_768.0..=32_767.0).contains(value)));
                assert!(floats.iter().any(|value| *value < -32_000.0) && floats.iter().any(|value| *value > 32_000.0));
            }
        }
    }
}
