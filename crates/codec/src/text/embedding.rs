//! Embeddings: a row of numbers for each token id, from a given table or a seeded one.

use bytes::Bytes;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::memory;
use crate::npy;
use crate::tensor::{DType, Shape, Tensor, TensorSpec};

/// The most numbers of a table: 16 GiB of them.
const ELEMENTS_MAX: u64 = 1 << 32;

const SAFETENSORS: &str = "safetensors";

/// A table with one row of numbers per token. It is only read, so all workers share one.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingTable {
    columns: usize,
    data: Vec<f32>,
}

impl EmbeddingTable {
    /// A table of pseudo-random numbers, uniform in [0, 1), which depend on `seed`, row and column only. It stands for a
    /// trained one where only its size matters: PRESTO's table is random too.
    pub fn seeded(seed: u64, rows: usize, columns: usize) -> Result<Self> {
        check_size(rows, columns)?;
        // SplitMix64: a counter through a mixer, so that any number can be made by itself.
        let uniform = |index: usize| {
            let mut bits = seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((bits ^ bits >> 31) >> 40) as f32 / (1 << 24) as f32
        };
        let mut data = Vec::new();
        memory::reserve(&mut data, rows * columns)?;
        data.extend((0..rows * columns).map(uniform));
        Ok(Self { columns, data })
    }

    /// A table from a `NumPy` file: float32, two dimensions.
    pub fn from_npy(file: impl Into<Bytes>) -> Result<Self> {
        Self::from_tensor("NPY", &npy::decode(file)?)
    }

    /// A table from a safetensors file: the tensor called `name`, or the only one there is.
    pub fn from_safetensors(file: impl Into<Bytes>, name: Option<&str>) -> Result<Self> {
        let file = file.into();
        let damaged = |problem: &str| Error::format(SAFETENSORS, problem.to_owned());
        let length = file.first_chunk().ok_or_else(|| damaged("it is cut off"))?;
        let start = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|length| length.checked_add(8));
        let header = start.and_then(|start| file.get(8..start));
        let (start, header) = start.zip(header).ok_or_else(|| damaged("its header is longer than the file"))?;
        let header: serde_json::Map<String, Value> = serde_json::from_slice(header)
            .map_err(|error| damaged(&format!("its header is not an object: {error}")))?;
        let names: Vec<&str> = header.keys().map(String::as_str).filter(|name| *name != "__metadata__").collect();
        let name = match (name, &names[..]) {
            (Some(name), _) if names.contains(&name) => name,
            (None, [only]) => only,
            (name, _) => {
                let expected = format!("one of {}", names.join(", "));
                return Err(Error::usage("it is not clear which tensor to take", expected, name.unwrap_or("none")));
            }
        };
        let tensor = &header[name];
        let kind = tensor["dtype"].as_str().unwrap_or_default();
        if kind != "F32" {
            return Err(not_float32(SAFETENSORS, kind));
        }
        let numbers = |key: &str| {
            let numbers = tensor[key].as_array()?.iter().map(|number| usize::try_from(number.as_u64()?).ok());
            numbers.collect::<Option<Vec<usize>>>()
        };
        let shape = numbers("shape").and_then(|dims| Shape::try_new(&dims));
        let shape = shape.ok_or_else(|| damaged(&format!("tensor `{name}` has no shape")))?;
        let bytes = match numbers("data_offsets").as_deref() {
            Some(&[from, to]) if from <= to => start.checked_add(from).zip(start.checked_add(to)),
            _ => None,
        };
        let bytes = bytes.filter(|&(_, to)| to <= file.len()).map(|(from, to)| file.slice(from..to));
        let bytes = bytes.ok_or_else(|| damaged(&format!("tensor `{name}` lies outside of the file")))?;
        let spec = TensorSpec { dtype: DType::F32, shape };
        let tensor = Tensor::new(spec, bytes);
        let tensor = tensor.ok_or_else(|| damaged(&format!("tensor `{name}` is {spec}, but not as long")))?;
        Self::from_tensor(SAFETENSORS, &tensor)
    }

    fn from_tensor(format: &'static str, tensor: &Tensor) -> Result<Self> {
        if tensor.spec().dtype != DType::F32 {
            return Err(not_float32(format, tensor.spec().dtype.name()));
        }
        let &[rows, columns] = tensor.spec().shape.dims() else {
            return Err(Error::format(format, format!("it holds {}, not rows and columns", tensor.spec())));
        };
        check_size(rows, columns)?;
        let data = tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(Self { columns, data })
    }

    /// How many tokens have a row.
    pub fn rows(&self) -> usize {
        self.data.len() / self.columns
    }

    /// How many numbers a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The row of a token.
    pub fn row(&self, id: u32) -> Option<&[f32]> {
        let start = (id as usize).checked_mul(self.columns)?;
        self.data.get(start..start + self.columns)
    }

    /// Writes the row of each token to `output`, which has [`EmbeddingTable::columns`] numbers for each.
    pub fn lookup_into(&self, ids: &[i32], output: &mut [f32]) -> Result<()> {
        if output.len() != ids.len() * self.columns {
            let expected = ids.len() * self.columns;
            return Err(Error::usage("the output has another size than the embeddings", expected, output.len()));
        }
        for (&id, output) in ids.iter().zip(output.chunks_exact_mut(self.columns)) {
            let row = u32::try_from(id).ok().and_then(|id| self.row(id)).ok_or_else(|| {
                Error::usage("a token id has no row in the table", format!("0 to {}", self.rows() - 1), id)
            })?;
            output.copy_from_slice(row);
        }
        Ok(())
    }
}

/// Whether a table can be so large.
fn check_size(rows: usize, columns: usize) -> Result<()> {
    if rows == 0 || columns == 0 {
        return Err(Error::usage(
            "a table must have rows and columns",
            "at least 1 x 1",
            format!("{rows} x {columns}"),
        ));
    }
    let found = (rows as u64).saturating_mul(columns as u64);
    if found > ELEMENTS_MAX {
        return Err(Error::Limit { what: "numbers of an embedding table", found, limit: ELEMENTS_MAX });
    }
    Ok(())
}

fn not_float32(format: &'static str, kind: &str) -> Error {
    Error::unsupported(format, format!("a table of `{kind}`"), "convert the table to little-endian float32")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    fn bytes_of(data: &[f32]) -> impl Iterator<Item = u8> {
        data.iter().flat_map(|number| number.to_le_bytes())
    }

    fn npy(header: &str) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(bytes_of(&DATA));
        file
    }

    fn safetensors(header: &str) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(bytes_of(&DATA));
        file
    }

    #[test]
    fn tables_are_read_from_both_formats() {
        let file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }");
        let table = EmbeddingTable::from_npy(file).unwrap();
        let mut output = vec![0.0; 4];
        table.lookup_into(&[2, 0], &mut output).unwrap();
        assert_eq!(output, vec![5.0, 6.0, 1.0, 2.0]);
        let file = safetensors(r#"{"__metadata__":{},"wte":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}}"#);
        assert_eq!(EmbeddingTable::from_safetensors(file.clone(), None).unwrap(), table);
        assert_eq!(EmbeddingTable::from_safetensors(file.clone(), Some("wte")).unwrap(), table);
        assert!(EmbeddingTable::from_safetensors(file.clone(), Some("wpe")).is_err());
        for cut in 0..file.len() {
            assert!(EmbeddingTable::from_safetensors(file[..cut].to_vec(), None).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for header in [
            "{'descr': '|u1', 'fortran_order': False, 'shape': (12, 2), }",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }",
            "{}",
        ] {
            assert!(EmbeddingTable::from_npy(npy(header)).is_err(), "{header}");
        }
        for tensor in [
            r#"{"dtype":"F16","shape":[3,4],"data_offsets":[0,24]}"#,
            r#"{"dtype":"F32","shape":[3,2],"data_offsets":[0,25]}"#,
            r#"{"dtype":"F32","shape":[3,2],"data_offsets":[24,0]}"#,
            r#"{"dtype":"F32","shape":[3,2],"data_offsets":[18446744073709551615,18446744073709551615]}"#,
            r#"{"dtype":"F32","shape":[6],"data_offsets":[0,24]}"#,
            r#"{"dtype":"F32","shape":"x"}"#,
            "7",
        ] {
            let file = safetensors(&format!(r#"{{"wte":{tensor}}}"#));
            assert!(EmbeddingTable::from_safetensors(file, None).is_err(), "{tensor}");
        }
    }

    #[test]
    fn a_seed_gives_one_table() {
        let table = EmbeddingTable::seeded(7, 100, 8).unwrap();
        assert_eq!(table, EmbeddingTable::seeded(7, 100, 8).unwrap());
        assert_ne!(table, EmbeddingTable::seeded(8, 100, 8).unwrap());
        assert!(table.data.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = table.data.iter().sum::<f32>() / 800.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert_eq!((table.rows(), table.columns()), (100, 8));
        assert!(table.lookup_into(&[100], &mut [0.0; 8]).is_err());
        assert!(table.lookup_into(&[-1], &mut [0.0; 8]).is_err());
        assert!(EmbeddingTable::seeded(7, usize::MAX, 8).is_err());
    }
}
