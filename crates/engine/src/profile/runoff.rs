//! Which formats of a split are run once more, by the runs that they had: they take turns, until it is clear which is the fastest.

/// The minimum number of runs of each: one may have been disturbed.
pub(super) const ROUNDS_MIN: usize = 2;

/// And at the most: what is as close as this after them is alike.
const ROUNDS_MAX: usize = 4;

/// The two best are run again while they are no further apart.
const CLOSE: f64 = 0.06;

/// The numbers of those that are run in the next round, in the order of their turns, by the rates of their runs so far; none once it is clear. What
/// was last in a round is first in the next: a machine that becomes slower meanwhile does so for all of them.
pub(super) fn next_round(rates: &[Vec<f64>]) -> Vec<usize> {
    let rounds = rates.iter().map(Vec::len).max().unwrap_or(0);
    let mut next: Vec<usize> = (0..rates.len()).collect();
    if rounds >= ROUNDS_MIN {
        next.sort_by(|&one, &other| middle(&rates[other]).total_cmp(&middle(&rates[one])));
        next.truncate(2);
        let [best, second] = next[..] else { return Vec::new() };
        let is_close = middle(&rates[second]) >= middle(&rates[best]) * (1.0 - CLOSE);
        if !is_close || next.iter().any(|&number| rates[number].len() >= ROUNDS_MAX) {
            return Vec::new();
        }
        next.sort_unstable();
    }
    if rounds % 2 == 1 {
        next.reverse();
    }
    next
}

/// The rate in the middle, or between the two that are.
fn middle(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length => f64::midpoint(sorted[(length - 1) / 2], sorted[length / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who runs when, where each always gives the same; and how often.
    fn turns(rates: &[f64]) -> Vec<Vec<usize>> {
        let mut runs = vec![Vec::new(); rates.len()];
        let mut rounds = Vec::new();
        loop {
            let next = next_round(&runs);
            if next.is_empty() {
                return rounds;
            }
            for &number in &next {
                runs[number].push(rates[number]);
            }
            rounds.push(next);
        }
    }

    #[test]
    fn they_take_turns_there_and_back() {
        assert_eq!(turns(&[100.0, 80.0]), [[0, 1], [1, 0]]);
        assert_eq!(turns(&[80.0, 100.0, 50.0]), [[0, 1, 2], [2, 1, 0]]);
    }

    #[test]
    fn the_two_best_are_run_on_while_they_are_close() {
        let found = turns(&[80.0, 100.0, 50.0, 97.0]);
        assert_eq!(found, [vec![0, 1, 2, 3], vec![3, 2, 1, 0], vec![1, 3], vec![3, 1]]);
    }

    #[test]
    fn one_run_that_was_held_up_does_not_decide() {
        // After two rounds the second leads; after the third, the first.
        let mut runs = vec![vec![100.0, 90.0], vec![96.0, 96.0]];
        let next = next_round(&runs);
        assert_eq!(next, [0, 1]);
        runs[0].push(100.0);
        runs[1].push(92.0);
        assert_eq!(next_round(&runs), [1, 0], "4 % apart");
        runs[1][2] = 80.0;
        runs[1][1] = 80.0;
        assert!(next_round(&runs).is_empty());
    }

    #[test]
    fn nobody_to_run_against_is_no_round_for_ever() {
        assert!(next_round(&[]).is_empty());
        assert_eq!(turns(&[100.0]).len(), ROUNDS_MIN);
    }
}
