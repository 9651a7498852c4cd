//! The sample: one training example, a key and named fields.

use std::sync::Arc;

use bytes::Bytes;
use forebay_codec::{Tensor, TensorView, memory};

use crate::error::StepError;

/// One training example.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What it is called, unique in its data set: for a file, its path below the data folder.
    pub key: Arc<str>,
    /// Its number in the data set, which stays the same whatever order it is read in. Random steps draw from it.
    pub index: u64,
    /// Its fields, in no particular order.
    pub fields: Vec<Field>,
}

/// A named value of a sample.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name.
    pub name: Arc<str>,
    /// The value.
    pub value: Value,
}

/// The value of a field.
#[derive(Debug, Clone)]
pub enum Value {
    /// Encoded bytes: a whole JPEG file, say.
    Bytes(Bytes),
    /// Text.
    Text(Arc<str>),
    /// A whole number: a class, say.
    Int(i64),
    /// A tensor.
    Tensor(Tensor),
}

impl Sample {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|field| &*field.name == name).map(|field| &field.value)
    }

    /// Bytes held by its fields.
    pub fn bytes(&self) -> usize {
        self.fields.iter().map(|field| field.value.view().bytes()).sum()
    }
}

impl Value {
    /// A view of it.
    pub fn view(&self) -> ValueView<'_> {
        match self {
            Self::Bytes(bytes) => ValueView::Bytes(bytes),
            Self::Text(text) => ValueView::Text(text),
            Self::Int(number) => ValueView::Int(*number),
            Self::Tensor(tensor) => ValueView::Tensor(tensor.view()),
        }
    }
}

/// A borrowed value.
#[derive(Clone, Copy)]
pub enum ValueView<'a> {
    /// Encoded bytes.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A whole number.
    Int(i64),
    /// A tensor.
    Tensor(TensorView<'a>),
}

impl ValueView<'_> {
    /// An owned copy; an error where there is no memory for it.
    pub fn to_value(self) -> Result<Value, StepError> {
        Ok(match self {
            Self::Bytes(bytes) => Value::Bytes(memory::copied(bytes)?.into()),
            Self::Text(text) => Value::Text(text.into()),
            Self::Int(number) => Value::Int(number),
            Self::Tensor(view) => Value::Tensor(view.to_tensor()?),
        })
    }

    /// How many bytes it takes in memory.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Text(text) => text.len(),
            Self::Int(_) => size_of::<i64>(),
            Self::Tensor(view) => view.data.len(),
        }
    }
}

/// A finished sample whose values may still live in the buffers of the runner that made it.
pub struct SampleView<'a> {
    /// See [`Sample::key`].
    pub key: &'a str,
    /// See [`Sample::index`].
    pub index: u64,
    /// Name and value of every field that was not written into a slot already.
    pub fields: &'a [(&'a str, ValueView<'a>)],
}

impl SampleView<'_> {
    /// An owned copy; an error where there is no memory for it.
    pub fn to_sample(&self) -> Result<Sample, StepError> {
        let field = |&(name, value): &(&str, ValueView<'_>)| Ok(Field { name: name.into(), value: value.to_value()? });
        let fields = self.fields.iter().map(field).collect::<Result<_, StepError>>()?;
        Ok(Sample { key: self.key.into(), index: self.index, fields })
    }
}
