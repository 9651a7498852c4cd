//! Offsets in a shard, of which there may be millions.

/// Offsets that only grow. Most shards are smaller than 4 GiB: so long an offset takes four bytes, and eight in the others.
#[derive(Debug, Clone)]
pub(crate) enum Offsets {
    Short(Vec<u32>),
    Long(Vec<u64>),
}

impl Default for Offsets {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

/// However they are held.
impl PartialEq for Offsets {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|number| self.at(number) == other.at(number))
    }
}

impl Eq for Offsets {}

impl Offsets {
    /// No offsets, and space for so many of a shard smaller than 4 GiB.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self::Short(Vec::with_capacity(count))
    }

    pub(crate) fn push(&mut self, offset: u64) {
        match self {
            Self::Short(offsets) => {
                if let Ok(short) = u32::try_from(offset) {
                    offsets.push(short);
                } else {
                    let mut long: Vec<u64> = Vec::with_capacity(offsets.capacity().max(offsets.len() + 1));
                    long.extend(offsets.iter().copied().map(u64::from));
                    long.push(offset);
                    *self = Self::Long(long);
                }
            }
            Self::Long(offsets) => offsets.push(offset),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Short(offsets) => offsets.len(),
            Self::Long(offsets) => offsets.len(),
        }
    }

    /// Offset `number`, which there is.
    pub(crate) fn at(&self, number: usize) -> u64 {
        match self {
            Self::Short(offsets) => u64::from(offsets[number]),
            Self::Long(offsets) => offsets[number],
        }
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.len().checked_sub(1).map(|last| self.at(last))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|number| self.at(number))
    }

    /// How many there are before the first that `is_before` says no of; it says no of all after that.
    pub(crate) fn partition_point(&self, is_before: impl Fn(u64) -> bool) -> usize {
        match self {
            Self::Short(offsets) => offsets.partition_point(|&offset| is_before(u64::from(offset))),
            Self::Long(offsets) => offsets.partition_point(|&offset| is_before(offset)),
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        match self {
            Self::Short(offsets) => offsets.truncate(count),
            Self::Long(offsets) => offsets.truncate(count),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        match self {
            Self::Short(offsets) => offsets.shrink_to_fit(),
            Self::Long(offsets) => offsets.shrink_to_fit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Offsets;

    #[test]
    fn those_of_large_shards_are_held_too() {
        let last_short = u64::from(u32::MAX);
        let all = [0, 7, last_short, last_short + 1, 1 << 40];
        let mut offsets = Offsets::default();
        for (count, &offset) in all.iter().enumerate() {
            offsets.push(offset);
            assert_eq!(offsets.iter().collect::<Vec<_>>(), all[..=count]);
            assert_eq!(matches!(offsets, Offsets::Short(_)), offset <= last_short, "{offset}");
            assert_eq!((offsets.len(), offsets.last()), (count + 1, Some(offset)));
        }
        assert_eq!(offsets.partition_point(|offset| offset <= last_short), 3);
        offsets.truncate(3);
        let mut short = Offsets::with_capacity(3);
        all[..3].iter().for_each(|&offset| short.push(offset));
        assert_eq!(offsets, short, "the same offsets, held otherwise");
    }
}
