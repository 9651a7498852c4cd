//! Sizes as torchvision spells them: `224`, or `[height, width]`.

use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::step::BadParameter;

/// A side longer than this is a mistake, and would allocate without bound.
const SIDE_MAX: usize = 1 << 16;

/// How large a picture becomes, in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// One number: both sides of what is cut out, or the shorter side of what is resized.
    Side(usize),
    /// Height and width.
    Exact([usize; 2]),
}

impl Size {
    /// Height and width, where one number is both.
    pub(crate) fn height_and_width(self) -> [usize; 2] {
        match self {
            Self::Side(side) => [side, side],
            Self::Exact(size) => size,
        }
    }

    /// Refuses sides that no picture has.
    pub(super) fn check(self) -> Result<(), BadParameter> {
        let possible = self.height_and_width().iter().all(|side| (1..=SIDE_MAX).contains(side));
        BadParameter::unless(possible, "size", &self, "from 1 to 65536 pixels")
    }
}

/// As a pipeline file spells it.
impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Side(side) => side.fmt(f),
            Self::Exact(size) => size.fmt(f),
        }
    }
}

impl From<usize> for Size {
    fn from(side: usize) -> Self {
        Self::Side(side)
    }
}

impl From<[usize; 2]> for Size {
    fn from(height_and_width: [usize; 2]) -> Self {
        Self::Exact(height_and_width)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sides;

        impl<'de> Visitor<'de> for Sides {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pixels, or [height, width]")
            }

            fn visit_u64<E: serde::de::Error>(self, side: u64) -> Result<Size, E> {
                usize::try_from(side).map(Size::Side).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, side: i64) -> Result<Size, E> {
                usize::try_from(side)
                    .map(Size::Side)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(side), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sides: A) -> Result<Size, A::Error> {
                let mut size = [0; 2];
                for (number, side) in size.iter_mut().enumerate() {
                    *side = sides.next_element()?.ok_or_else(|| serde::de::Error::invalid_length(number, &self))?;
                }
                match sides.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(Size::Exact(size)),
                    Some(_) => Err(serde::de::Error::invalid_length(3, &self)),
                }
            }
        }

        deserializer.deserialize_any(Sides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holds {
        size: Size,
    }

    #[test]
    fn sizes_are_one_number_or_two() {
        for (text, expected) in [("size = 224\n", Size::Side(224)), ("size = [10, 20]\n", Size::Exact([10, 20]))] {
            let found: Holds = toml::from_str(text).unwrap();
            assert_eq!(found.size, expected);
            assert_eq!(toml::to_string(&found).unwrap(), text);
        }
        for text in ["size = [1]", "size = [1, 2, 3]", "size = -4", "size = \"large\"", "size = 1.5"] {
            let refused = toml::from_str::<Holds>(text).unwrap_err().to_string();
            assert!(refused.contains("a number of pixels, or [height, width]"), "{text}: {refused}");
        }
    }
}
