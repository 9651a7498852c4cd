//! Projections: where each pixel of a new picture comes from.

#![expect(clippy::many_single_char_names, reason = "matrices are written as everybody writes them")]

use crate::kernels::RowCoordinates;

/// A projection of points in a new picture to points in the old one: with (x, y, 1) to (u, v, w) by the rows of a matrix, the
/// point is (u / w, v / w). Pixels have their centers at halves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projection {
    rows: [[f64; 3]; 3],
}

impl Projection {
    /// The projection of this matrix; `None` if it takes different points to the same one.
    pub fn new(rows: [[f64; 3]; 3]) -> Option<Self> {
        let projection = Self { rows };
        let determinant = projection.determinant();
        (determinant.is_finite() && determinant.abs() > 1e-12).then_some(projection)
    }

    /// The new picture begins so far left of and above the old one.
    pub(crate) fn margin(left: usize, top: usize) -> Self {
        Self { rows: [[1.0, 0.0, -(left as f64)], [0.0, 1.0, -(top as f64)], [0.0, 0.0, 1.0]] }
    }

    /// How far left of and above the old picture the new one begins, if it is [`Self::margin`].
    pub(crate) fn margins(&self) -> [usize; 2] {
        let [[_, _, left], [_, _, top], _] = self.rows;
        [-left as usize, -top as usize]
    }

    /// The same for a larger picture, which begins so far left of and above the new one.
    #[must_use]
    pub(crate) fn around(&self, left: f64, top: f64) -> Self {
        Self { rows: self.rows.map(|[a, b, c]| [a, b, c - a * left - b * top]) }
    }

    /// Width and height of what holds all of a picture of these, as torchvision's `expand` finds them: whole pixels around where the corners
    /// go, less what rounding adds to them; after a quarter turn just the two exchanged.
    pub(crate) fn expanded(&self, size: (usize, usize)) -> (usize, usize) {
        const DIGITS: f64 = 1e4;
        let (width, height) = (size.0 as f64, size.1 as f64);
        let corners = [(0.0, 0.0), (0.0, height), (width, height), (width, 0.0)].map(|(x, y)| self.backward(x, y));
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let places = corners.each_ref().map(of);
            places
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &place| (place.min(least), place.max(most)))
        };
        let (across, down) = (ends(|corner| corner.0), ends(|corner| corner.1));
        let is = |(least, most): (f64, f64), length: f64| (most - least - length).abs() < 1.0 / DIGITS;
        if is(across, height) && is(down, width) {
            return (size.1, size.0);
        }
        let cut = |place: f64| (place * DIGITS).trunc() / DIGITS;
        let whole = |(least, most): (f64, f64)| ((cut(most).ceil() - cut(least).floor()) as usize).max(1);
        (whole(across), whole(down))
    }

    fn determinant(&self) -> f64 {
        let [[a, b, c], [d, e, f], [g, h, i]] = self.rows;
        a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    }

    /// Where in the new picture a point of the old one is.
    pub(crate) fn forward(&self, x: f64, y: f64) -> (f64, f64) {
        let [[a, b, c], [d, e, f], [g, h, i]] = self.rows;
        let adjugate = [
            [e * i - f * h, c * h - b * i, b * f - c * e],
            [f * g - d * i, a * i - c * g, c * d - a * f],
            [d * h - e * g, b * g - a * h, a * e - b * d],
        ];
        Self { rows: adjugate }.backward(x, y)
    }

    /// Where in the old picture a point of the new one comes from.
    pub(crate) fn backward(&self, x: f64, y: f64) -> (f64, f64) {
        let [u, v, w] = self.rows.map(|[a, b, c]| a * x + b * y + c);
        (u / w, v / w)
    }

    /// Where the pixels of row `y` of the new picture come from, in pixels of the old one whose centers are whole numbers.
    pub(crate) fn coordinates(&self, y: usize, width: usize) -> RowCoordinates {
        let middle = width / 2;
        let (x, y) = (middle as f64 + 0.5, y as f64 + 0.5);
        let [u, v, w] = self.rows.map(|[a, b, c]| a * x + b * y + c);
        let [along_u, along_v, along_w] = self.rows.map(|[a, _, _]| a);
        let (start, along) = if along_w.abs() > 0.0 {
            ([u, v, w], [along_u, along_v, along_w])
        } else {
            ([u / w - 0.5, v / w - 0.5, 1.0], [along_u / w, along_v / w, 0.0])
        };
        RowCoordinates {
            start: start.map(|number| number as f32),
            along: along.map(|number| number as f32),
            middle: middle as f32,
        }
    }

    /// Of an affine map about a point, as torchvision spells it: turned by `angle` degrees clockwise, moved, scaled, and sheared by two
    /// angles in degrees. `None` if nothing is left of a picture.
    pub fn affine(center: [f64; 2], angle: f64, translate: [f64; 2], scale: f64, shear: [f64; 2]) -> Option<Self> {
        let (turn, shear_x, shear_y) = (angle.to_radians(), shear[0].to_radians(), shear[1].to_radians());
        let a = (turn - shear_y).cos() / shear_y.cos();
        let b = -a * shear_x.tan() - turn.sin();
        let c = (turn - shear_y).sin() / shear_y.cos();
        let d = -c * shear_x.tan() + turn.cos();
        // The matrix of rotation and shear has determinant 1, so this is its inverse.
        let [[a, b], [c, d]] = [[d, -b], [-c, a]].map(|row| row.map(|value| value / scale));
        let (x, y) = (center[0] + translate[0], center[1] + translate[1]);
        let rows = [[a, b, center[0] - a * x - b * y], [c, d, center[1] - c * x - d * y], [0.0, 0.0, 1.0]];
        Self::new(rows)
    }

    /// Of the perspective that takes four points of the old picture to four of the new one. `None` if three lie on a line.
    pub fn perspective(old: [[f64; 2]; 4], new: [[f64; 2]; 4]) -> Option<Self> {
        // Eight equations for eight unknowns: each pair of points gives one for x and one for y.
        let mut equations = [[0.0; 9]; 8];
        for (index, ([x, y], [u, v])) in new.into_iter().zip(old).enumerate() {
            equations[2 * index] = [x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, u];
            equations[2 * index + 1] = [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, v];
        }
        let [a, b, c, d, e, f, g, h] = solved(equations)?;
        Self::new([[a, b, c], [d, e, f], [g, h, 1.0]])
    }

    /// The hull of a box, seen in the new picture: left, top, right, bottom.
    pub(crate) fn forward_box(&self, [left, top, right, bottom]: [f32; 4]) -> [f32; 4] {
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        let corners = corners.map(|(x, y)| self.forward(f64::from(x), f64::from(y)));
        let least = |of: fn(&(f64, f64)) -> f64| corners.iter().map(of).fold(f64::INFINITY, f64::min) as f32;
        let most = |of: fn(&(f64, f64)) -> f64| corners.iter().map(of).fold(f64::NEG_INFINITY, f64::max) as f32;
        [least(|corner| corner.0), least(|corner| corner.1), most(|corner| corner.0), most(|corner| corner.1)]
    }
}

/// The solution of eight linear equations, the last column being their right sides (Gauss, with pivots).
fn solved(mut equations: [[f64; 9]; 8]) -> Option<[f64; 8]> {
    for column in 0..8 {
        let pivot = (column..8).max_by(|&a, &b| equations[a][column].abs().total_cmp(&equations[b][column].abs()))?;
        equations.swap(column, pivot);
        let by = equations[column];
        if by[column].abs() < 1e-9 {
            return None;
        }
        for (row, equation) in equations.iter_mut().enumerate() {
            if row != column {
                let factor = equation[column] / by[column];
                equation.iter_mut().zip(by).for_each(|(value, by)| *value -= factor * by);
            }
        }
    }
    Some(std::array::from_fn(|row| equations[row][8] / equations[row][row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_is_the_inverse_of_backward() {
        let projection = Projection::new([[0.9, 0.2, 3.0], [-0.1, 1.1, -2.0], [0.001, 0.002, 1.0]]).unwrap();
        let (x, y) = projection.backward(7.0, 9.0);
        let (x, y) = projection.forward(x, y);
        assert!((x - 7.0).abs() < 1e-9 && (y - 9.0).abs() < 1e-9, "{x} {y}");
        assert_eq!(Projection::new([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]]), None);
        let moved = Projection::margin(2, 3).forward_box([0.0, 0.0, 4.0, 5.0]);
        assert!(moved.iter().zip([2.0, 3.0, 6.0, 8.0]).all(|(a, b)| (a - b).abs() < 1e-6), "{moved:?}");
    }
}
