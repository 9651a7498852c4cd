//! What somebody may have meant who wrote an unknown name.

/// The choice that differs from `found` in the fewest letters, if that is a slip and not another word.
pub fn nearest<'a>(found: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_lowercase();
    let choices = choices.into_iter().map(|choice| (distance(&lower, &choice.to_lowercase()), choice));
    let (distance, choice) = choices.min_by_key(|(distance, _)| *distance)?;
    (distance <= choice.chars().count().div_ceil(3).max(1)).then_some(choice)
}

/// The choices as a hint, the one that may have been meant first.
pub(crate) fn one_of<'a>(found: &str, choices: impl IntoIterator<Item = &'a str>) -> String {
    let choices: Vec<&str> = choices.into_iter().collect();
    let meant =
        nearest(found, choices.iter().copied()).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
    format!("{meant}one of {}", choices.join(", "))
}

/// How many letters must be put in, taken out, changed or swapped with their neighbor to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // The row before the last, the last and the one at work of the table of distances of all beginnings.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (y, letter) in one.iter().enumerate() {
        let mut row = vec![y + 1];
        for (x, with) in other.iter().enumerate() {
            let mut fewest = (last[x] + usize::from(letter != with)).min(last[x + 1] + 1).min(row[x] + 1);
            if y > 0 && x > 0 && *letter == other[x - 1] && one[y - 1] == *with {
                fewest = fewest.min(before[x - 1] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_words() {
        assert_eq!((distance("", "abc"), distance("stme", "stem"), distance("kitten", "sitting")), (3, 1, 3));
        let choices = ["folder", "stem", "name"];
        assert_eq!(nearest("stme", choices), Some("stem"));
        assert_eq!(nearest("FOLDR", choices), Some("folder"));
        assert_eq!(nearest("path", choices), None);
        assert_eq!(nearest("x", []), None);
    }
}
