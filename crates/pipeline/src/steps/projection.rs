//! Projections: where each pixel of a new picture comes from.

/// A projection of places in a new picture to places in the old one: with (x, y, 1) to (u, v, w) by the rows of a matrix, the
/// place is (u / w, v / w). Pixels have their centers at halves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projection {
    rows: [[f64; 3]; 3],
}

impl Projection {
    /// The projection of this matrix; `None` if it takes different places to the same one.
    pub fn new(rows: [[f64; 3]; 3]) -> Option<Self> {
        let projection = Self { rows };
        let determinant = projection.determinant();
        (determinant.is_finite() && determinant.abs() > 1e-12).then_some(projection)
    }

    /// The new picture begins so far left of and above the old one.
    pub(crate) fn margin(left: usize, top: usize) -> Self {
        Self { rows: [[1.0, 0.0, -(left as f64)], [0.0, 1.0, -(top as f64)], [0.0, 0.0, 1.0]] }
    }

    fn determinant(&self) -> f64 {
        let [[a, b, c], [d, e, f], [g, h, i]] = self.rows;
        a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    }

    /// Where in the new picture a place of the old one is.
    pub(crate) fn forward(&self, x: f64, y: f64) -> (f64, f64) {
        let [[a, b, c], [d, e, f], [g, h, i]] = self.rows;
        let adjugate = [
            [e * i - f * h, c * h - b * i, b * f - c * e],
            [f * g - d * i, a * i - c * g, c * d - a * f],
            [d * h - e * g, b * g - a * h, a * e - b * d],
        ];
        Self { rows: adjugate }.backward(x, y)
    }

    /// Where in the old picture a place of the new one comes from.
    pub(crate) fn backward(&self, x: f64, y: f64) -> (f64, f64) {
        let [u, v, w] = self.rows.map(|[a, b, c]| a * x + b * y + c);
        (u / w, v / w)
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
        assert_eq!(Projection::margin(2, 3).forward_box([0.0, 0.0, 4.0, 5.0]), [2.0, 3.0, 6.0, 8.0]);
    }
}
