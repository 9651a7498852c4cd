//! Reading Examples.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, ErrorLocation, MessageFault, Result};
use crate::example::lists::{FeatureView, Kind, check_feature};
use crate::example::{FEATURES_MAX, MESSAGE};
use crate::protobuf::{Fields, Value};
use crate::tensor_proto::TensorProto;

/// Where a feature is in its record.
#[derive(Debug, Clone)]
struct Entry {
    name: Range<usize>,
    kind: Kind,
    /// The part of the `Feature` message that holds its list.
    body: Range<usize>,
}

/// Where the features are in a record, sorted by name, each name once.
#[derive(Debug, Clone, Default)]
struct Layout {
    entries: Vec<Entry>,
}

impl Layout {
    fn parse(record: &[u8]) -> Result<Self> {
        let mut entries = Vec::new();
        let mut example = Fields::new(record, 0, MESSAGE);
        while let Some((number, value)) = example.next_field()? {
            let (1, Value::Length { bytes, position }) = (number, value) else {
                continue;
            };
            let mut features = Fields::new(bytes, position, MESSAGE);
            while let Some((number, value)) = features.next_field()? {
                let (1, Value::Length { bytes, position }) = (number, value) else {
                    continue;
                };
                if entries.len() == FEATURES_MAX {
                    return Err(Error::Limit {
                        location: ErrorLocation::default(),
                        what: "features of an Example",
                        limit: FEATURES_MAX as u64,
                        found: FEATURES_MAX as u64 + 1,
                        hint: "",
                    });
                }
                entries.push(parse_entry(bytes, position)?);
            }
        }
        let name = |entry: &Entry| &record[entry.name.clone()];
        // Of several entries of one name a map keeps the last. Reversing puts that one first, and sorting is stable.
        if !entries.is_sorted_by(|left, right| name(left) < name(right)) {
            entries.reverse();
            entries.sort_by(|left, right| name(left).cmp(name(right)));
            entries.dedup_by(|later, kept| name(later) == name(kept));
        }
        Ok(Self { entries })
    }

    fn find(&self, record: &[u8], name: &str) -> Option<&Entry> {
        let found = self
            .entries
            .binary_search_by(|entry| record.get(entry.name.clone()).unwrap_or_default().cmp(name.as_bytes()));
        found.ok().map(|index| &self.entries[index])
    }
}

fn parse_entry(bytes: &[u8], position: usize) -> Result<Entry> {
    // A key or value that is left out is the empty one.
    let mut name = position..position;
    let mut value = None;
    let mut fields = Fields::new(bytes, position, MESSAGE);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Value::Length { bytes, position }) => {
                if std::str::from_utf8(bytes).is_err() {
                    return Err(Error::message(MESSAGE, position, MessageFault::NameNotUtf8));
                }
                name = position..position + bytes.len();
            }
            (2, Value::Length { bytes, position }) => {
                if value.is_some() {
                    return Err(Error::message(MESSAGE, position, MessageFault::TwoValues));
                }
                let (kind, start) = check_feature(bytes, position)?;
                value = Some((kind, position + start..position + bytes.len()));
            }
            _ => {}
        }
    }
    let (kind, body) = value.unwrap_or((Kind::Unset, position..position));
    Ok(Entry { name, kind, body })
}

fn view<'a>(record: &'a [u8], entry: &Entry) -> FeatureView<'a> {
    FeatureView::of_checked(entry.kind, record.get(entry.body.clone()).unwrap_or_default())
}

fn first_bytes(view: Option<FeatureView<'_>>) -> Option<&[u8]> {
    match view {
        Some(FeatureView::Bytes(list)) => list.first(),
        _ => None,
    }
}

fn first_int64(view: Option<FeatureView<'_>>) -> Option<i64> {
    match view {
        Some(FeatureView::Int64(list)) => list.first(),
        _ => None,
    }
}

fn first_float(view: Option<FeatureView<'_>>) -> Option<f32> {
    match view {
        Some(FeatureView::Float(list)) => list.first(),
        _ => None,
    }
}

fn features<'a>(record: &'a [u8], layout: &'a Layout) -> impl ExactSizeIterator<Item = (&'a str, FeatureView<'a>)> {
    layout.entries.iter().map(move |entry| {
        // Checked when it was parsed.
        let name = record.get(entry.name.clone()).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
        (name, view(record, entry))
    })
}

/// A `tf.train.Example` that borrows from its record.
///
/// Parsing checks the whole message, so that walking the lists later cannot fail. Names come sorted; of two features of one
/// name the last counts; fields that the message does not have are passed over.
#[derive(Debug, Clone)]
pub struct Example<'a> {
    record: &'a [u8],
    layout: Layout,
}

impl<'a> Example<'a> {
    /// The Example in `record`.
    pub fn parse(record: &'a [u8]) -> Result<Self> {
        Ok(Self { record, layout: Layout::parse(record)? })
    }

    /// How many features it has.
    pub fn len(&self) -> usize {
        self.layout.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.layout.entries.is_empty()
    }

    /// The feature of this name.
    pub fn get(&self, name: &str) -> Option<FeatureView<'a>> {
        self.layout.find(self.record, name).map(|entry| view(self.record, entry))
    }

    /// The names and features, sorted by name.
    pub fn features(&self) -> impl ExactSizeIterator<Item = (&str, FeatureView<'_>)> {
        features(self.record, &self.layout)
    }

    /// The first byte string of the feature of this name.
    pub fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        first_bytes(self.get(name))
    }

    /// The first integer of the feature of this name.
    pub fn int64(&self, name: &str) -> Option<i64> {
        first_int64(self.get(name))
    }

    /// The first float of the feature of this name.
    pub fn float(&self, name: &str) -> Option<f32> {
        first_float(self.get(name))
    }

    /// The tensor in the feature of this name; `None` if there is no such byte string.
    pub fn tensor(&self, name: &str) -> Result<Option<TensorProto<'a>>> {
        self.bytes(name).map(TensorProto::parse).transpose()
    }
}

/// A `tf.train.Example` that shares its record, and hands out byte strings that share it too.
#[derive(Debug, Clone)]
pub struct SharedExample {
    record: Bytes,
    layout: Layout,
}

impl SharedExample {
    /// The Example in `record`.
    pub fn parse(record: Bytes) -> Result<Self> {
        let layout = Layout::parse(&record)?;
        Ok(Self { record, layout })
    }

    /// The record.
    pub fn record(&self) -> &Bytes {
        &self.record
    }

    /// How many features it has.
    pub fn len(&self) -> usize {
        self.layout.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.layout.entries.is_empty()
    }

    /// The feature of this name.
    pub fn get(&self, name: &str) -> Option<FeatureView<'_>> {
        self.layout.find(&self.record, name).map(|entry| view(&self.record, entry))
    }

    /// The names and features, sorted by name.
    pub fn features(&self) -> impl ExactSizeIterator<Item = (&str, FeatureView<'_>)> {
        features(&self.record, &self.layout)
    }

    /// The first byte string of the feature of this name, as a slice that shares the record.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        first_bytes(self.get(name)).map(|bytes| self.share(bytes))
    }

    /// The first integer of the feature of this name.
    pub fn int64(&self, name: &str) -> Option<i64> {
        first_int64(self.get(name))
    }

    /// The first float of the feature of this name.
    pub fn float(&self, name: &str) -> Option<f32> {
        first_float(self.get(name))
    }

    /// The tensor in the feature of this name; `None` if there is no such byte string. [`SharedExample::share`] makes its
    /// content outlive this.
    pub fn tensor(&self, name: &str) -> Result<Option<TensorProto<'_>>> {
        first_bytes(self.get(name)).map(TensorProto::parse).transpose()
    }

    /// A part of the record, such as a byte string of one of its lists or the content of a tensor in one, as a slice that
    /// shares it.
    ///
    /// # Panics
    /// If `part` is not within the record.
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.record.slice_ref(part)
    }
}
