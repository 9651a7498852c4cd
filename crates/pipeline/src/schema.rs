//! Schemas: what fields a sample has between two steps, checked when a pipeline is made.

use std::fmt;
use std::str::FromStr;

use forebay_codec::{DType, RANK_MAX, Shape, TensorSpec};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

    /// Sets the type of a field, which is added if it is not there.
    pub(crate) fn put(&mut self, name: &str, kind: FieldType) {
        if self.field(name).is_some() {
            self.set(name, kind);
        } else {
            self.fields.push((name.to_owned(), kind));
        }
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
        for (index, (name, kind)) in self.fields.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
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
    /// A JSON document: a text that was checked to be one.
    Json,
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
        Some(TensorSpec { dtype: *dtype, shape: Shape::try_new(&dims)? })
    }

    /// Whether a tensor of this spec is of this type.
    pub fn holds(&self, spec: &TensorSpec) -> bool {
        let Self::Tensor { dtype, dims } = self else { return false };
        let found = spec.shape.dims();
        *dtype == spec.dtype
            && dims.len() == found.len()
            && dims.iter().zip(found).all(|(dim, found)| dim.is_none_or(|dim| dim == *found))
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

    /// Element type, height and width, if this is a mask: whole numbers `[height, width]`.
    pub fn as_mask(&self) -> Option<(DType, [Option<usize>; 2])> {
        match self {
            Self::Tensor { dtype: dtype @ (DType::U8 | DType::U16 | DType::I32), dims } => match **dims {
                [height, width] => Some((*dtype, [height, width])),
                _ => None,
            },
            _ => None,
        }
    }

    /// How many columns, if these are boxes: `float32` rows of left, top, right, bottom in pixels, and up to
    /// [`BOX_COLUMNS_MAX`] - 4 columns that ride along (a class, a score).
    pub fn as_boxes(&self) -> Option<usize> {
        match self {
            Self::Tensor { dtype: DType::F32, dims } => match **dims {
                [_, Some(columns)] if (4..=BOX_COLUMNS_MAX).contains(&columns) => Some(columns),
                _ => None,
            },
            _ => None,
        }
    }

    /// How many columns, if these are key points: `float32` rows of x and y in pixels, and of how visible they are, if there is a third.
    pub fn as_keypoints(&self) -> Option<usize> {
        match self {
            Self::Tensor { dtype: DType::F32, dims } => match **dims {
                [_, Some(columns @ (2 | 3))] => Some(columns),
                _ => None,
            },
            _ => None,
        }
    }
}

/// More columns than this are no boxes, but a table of something else.
pub const BOX_COLUMNS_MAX: usize = 16;

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("bytes"),
            Self::Text => f.write_str("text"),
            Self::Json => f.write_str("json"),
            Self::Int => f.write_str("int"),
            Self::Tensor { dtype, dims } => {
                let dims: Vec<String> =
                    dims.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string())).collect();
                write!(f, "{dtype}[{}]", dims.join(", "))
            }
        }
    }
}

/// The type of this name, as `Display` writes it: `int`, `text`, `float32[?, 4]`.
impl FromStr for FieldType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown =
            || format!("`{text}` is not a type: write it like `int`, `text`, `json`, `bytes` or `float32[?, 4]`");
        match text.trim() {
            "bytes" => return Ok(Self::Bytes),
            "text" => return Ok(Self::Text),
            "json" => return Ok(Self::Json),
            "int" => return Ok(Self::Int),
            _ => {}
        }
        let (dtype, dims) = text.trim().strip_suffix(']').and_then(|text| text.split_once('[')).ok_or_else(unknown)?;
        let dim = |dim: &str| match dim.trim() {
            "?" => Ok(None),
            number => number.parse().map(Some).map_err(|_| unknown()),
        };
        let dims: Vec<Option<usize>> =
            if dims.trim().is_empty() { Vec::new() } else { dims.split(',').map(dim).collect::<Result<_, _>>()? };
        if dims.len() > RANK_MAX {
            return Err(format!("`{text}` has more than {RANK_MAX} dimensions"));
        }
        let dtype = DType::from_name(dtype.trim()).ok_or_else(unknown)?;
        Ok(Self::Tensor { dtype, dims })
    }
}

impl Serialize for FieldType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FieldType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
