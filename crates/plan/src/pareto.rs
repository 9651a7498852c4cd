//! The Pareto front: what nothing else beats in everything.

/// Which of `costs` are on the front: those for which no other is at least as good in every column and better in one. Less is
/// better in every column; negate where more is.
///
/// ```
/// let cheap_fast_dear = [[1.0, 9.0], [5.0, 2.0], [6.0, 2.0]];
/// assert_eq!(forebay_plan::pareto_front(&cheap_fast_dear), [true, true, false]);
/// ```
pub fn pareto_front<const N: usize>(costs: &[[f64; N]]) -> Vec<bool> {
    let beats = |one: &[f64; N], other: &[f64; N]| {
        one.iter().zip(other).all(|(one, other)| one <= other) && one.iter().zip(other).any(|(one, other)| one < other)
    };
    costs.iter().map(|cost| !costs.iter().any(|other| beats(other, cost))).collect()
}
