//! Numbers as torchvision spells them: one, or a list of them.

use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// One number, or a few: `0.4`, or `[0.6, 1.4]`.
#[derive(Clone, PartialEq)]
pub struct Numbers(Vec<f64>);

impl Numbers {
    /// All of them; at least one.
    pub(crate) fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// From the smaller to the larger: a pair is that, one number `x` is `center − x` to `center + x`.
    pub(crate) fn around(&self, center: f64) -> [f64; 2] {
        match *self.0 {
            [low, high, ..] => [low, high],
            [width] => [center - width, center + width],
            [] => [center; 2],
        }
    }

    /// From the smaller to the larger: a pair is that, one number is both.
    pub(crate) fn range(&self) -> [f64; 2] {
        match *self.0 {
            [low, high, ..] => [low, high],
            [only] => [only; 2],
            [] => [0.0; 2],
        }
    }

    /// Whether these are one number or two, finite and in order.
    pub(crate) fn is_range(&self) -> bool {
        let [low, high] = self.range();
        matches!(self.0.len(), 1 | 2) && low <= high && low.is_finite() && high.is_finite()
    }
}

impl From<f64> for Numbers {
    fn from(number: f64) -> Self {
        Self(vec![number])
    }
}

impl<const N: usize> From<[f64; N]> for Numbers {
    fn from(numbers: [f64; N]) -> Self {
        Self(numbers.to_vec())
    }
}

/// As a pipeline file spells them.
impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            [only] => only.fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self.0 {
            [only] => only.serialize(serializer),
            _ => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a list of numbers")
            }

            fn visit_f64<E>(self, number: f64) -> Result<Numbers, E> {
                Ok(number.into())
            }

            fn visit_i64<E>(self, number: i64) -> Result<Numbers, E> {
                Ok((number as f64).into())
            }

            fn visit_u64<E>(self, number: u64) -> Result<Numbers, E> {
                Ok((number as f64).into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = items.next_element()? {
                    numbers.push(number);
                }
                if numbers.is_empty() {
                    return Err(serde::de::Error::invalid_length(0, &self));
                }
                Ok(Numbers(numbers))
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holds {
        factor: Numbers,
    }

    #[test]
    fn they_are_one_or_several() {
        let read = |text: &str| toml::from_str::<Holds>(text).map(|holds| holds.factor);
        assert_eq!(read("factor = [-1, 1]").unwrap(), Numbers::from([-1.0, 1.0]));
        assert_eq!(Numbers::from(read("factor = 1").unwrap().around(0.0)), Numbers::from([-1.0, 1.0]));
        assert_eq!(toml::to_string(&Holds { factor: 0.5.into() }).unwrap(), "factor = 0.5\n");
        for text in ["factor = []", "factor = \"half\"", "factor = [\"half\"]"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(!read("factor = [2, 1]").unwrap().is_range());
    }
}
