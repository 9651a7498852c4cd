//! Schemas: what fields a sample has between two steps, checked when a pipeline is made.

use std::fmt;

use forebay_codec::{DType, TensorSpec};

/// The fields of a sample and their types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// Name and type, in the order in which they came to be.
    pub fields: Vec<(String, FieldType)>,
}

impl Schema {
    /// The type of a field.
    pub fn field(&self, name: &str) -> Option<&FieldType> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, kind)| kind)
    }

    /// Sets the type of a field that is there.
    pub(crate) fn set(&mut self, name: &str, kind: FieldType) {
        if let Some(field) = self.fields.iter_mut().find(|(field, _)| field == name) {
            field.1 = kind;
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, kind)) in self.fields.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{name}: {kind}")?;
        }
        Ok(())
    }
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldType {
    /// Encoded bytes.
    Bytes,
    /// Text.
    Text,
    /// A whole number.
    Int,
    /// A tensor, some of whose dimensions may differ from sample to sample.
    Tensor {
        /// The element type.
        dtype: DType,
        /// The dimensions; `None` is one that differs.
        dims: Vec<Option<usize>>,
    },
}

impl FieldType {
    /// The spec that every sample has, if no dimension is open.
    pub fn fixed_spec(&self) -> Option<TensorSpec> {
        let Self::Tensor { dtype, dims } = self else { return None };
        let dims: Vec<usize> = dims.iter().copied().collect::<Option<_>>()?;
        Some(TensorSpec { dtype: *dtype, shape: forebay_codec::Shape::try_new(&dims)? })
    }

    /// Element type and channels, if this is a picture with the channels last: `[height, width, 1..=4]`.
    pub fn as_picture(&self) -> Option<(DType, [Option<usize>; 3])> {
        match self {
            Self::Tensor { dtype, dims } => match **dims {
                [height, width, channels] if channels.is_some_and(|count| (1..=4).contains(&count)) => {
                    Some((*dtype, [height, width, channels]))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("bytes"),
            Self::Text => f.write_str("text"),
            Self::Int => f.write_str("int"),
            Self::Tensor { dtype, dims } => {
                let dims: Vec<String> =
                    dims.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string())).collect();
                write!(f, "{dtype}[{}]", dims.join(", "))
            }
        }
    }
}
