//! Values that become others by a table: classes of a mask as they are trained.

use forebay_codec::DType;
use serde::{Deserialize, Serialize};

use super::tensor;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Each value becomes the one that stands beside it in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupTable {
    /// The values that come in.
    pub keys: Vec<u16>,
    /// What each of them becomes.
    pub values: Vec<u16>,
    /// What all others become.
    #[serde(default)]
    pub default_value: u16,
}

const EXPECTED: &str = "a mask, or another tensor in uint8 or uint16";

impl LookupTable {
    /// What each of so many values becomes.
    fn table(&self, length: usize) -> Vec<u16> {
        let mut table = vec![self.default_value; length];
        for (&key, &value) in self.keys.iter().zip(&self.values) {
            if let Some(to) = table.get_mut(usize::from(key)) {
                *to = value;
            }
        }
        table
    }
}

impl Transform for LookupTable {
    fn check(&self) -> Result<(), BadParameter> {
        let valid = self.keys.len() == self.values.len();
        BadParameter::unless(valid, "values", &self.values.len(), "as many as `keys`")?;
        let mut sorted = self.keys.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
        BadParameter::unless(twice.is_none(), "keys", &twice.map_or(0, |pair| pair[0]), "each of them once")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype: DType::U16, .. } => Ok(input.clone()),
            FieldType::Tensor { dtype: DType::U8, .. } => {
                match self.values.iter().chain([&self.default_value]).find(|value| **value > 255) {
                    None => Ok(input.clone()),
                    Some(value) => Err(Needs(format!("a tensor in uint16, which {value} fits in: `keep_depth`"))),
                }
            }
            _ => Err(Needs(EXPECTED.to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, EXPECTED)?;
        match view.spec.dtype {
            DType::U8 => {
                let table = self.table(1 << 8);
                let table: [u8; 256] = std::array::from_fn(|value| table[value] as u8);
                let slot = output.tensor(view.spec)?;
                slot.data.iter_mut().zip(view.data).for_each(|(to, from)| *to = table[usize::from(*from)]);
            }
            DType::U16 => {
                let table = self.table(1 << 16);
                let slot = output.tensor(view.spec)?;
                let (to, from) = (slot.data.as_chunks_mut::<2>().0, view.data.as_chunks::<2>().0);
                for (to, from) in to.iter_mut().zip(from) {
                    *to = table[usize::from(u16::from_le_bytes(*from))].to_le_bytes();
                }
            }
            _ => return Err(StepError::Unfit { found: view.spec, expected: EXPECTED }),
        }
        Ok(())
    }
}
