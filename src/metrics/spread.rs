//! Statistics of numbers: mean, deviation, quartiles, density.

use serde::{Deserialize, Serialize};

/// The location and the spread of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// The count.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Standard deviation, with n − 1 in its denominator; NaN for fewer than two.
    pub deviation: f64,
    /// The smallest.
    pub least: f64,
    /// The lower quartile.
    pub lower_quartile: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub upper_quartile: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// The statistics of these numbers. `None` if there are none or one is NaN.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values)?;
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            count,
            mean,
            deviation: if count > 1 {
                (squares / (count - 1) as f64).sqrt()
            } else {
                f64::NAN
            },
            least: sorted[0],
            lower_quartile: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper_quartile: quantile(&sorted, 0.75),
            most: sorted[count - 1],
        })
    }

    /// Standard error of the mean: deviation / √count.
    pub fn standard_error(&self) -> f64 {
        self.deviation / (self.count as f64).sqrt()
    }
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The value below which a share of sorted numbers lies, interpolated linearly
/// between neighbours.
///
/// # Panics
/// Without numbers.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let weight = place - below as f64;
    // Infinite neighbours cannot be interpolated.
    if weight == 0.0 || sorted[below] == sorted[above] {
        sorted[below]
    } else {
        sorted[below] + weight * (sorted[above] - sorted[below])
    }
}

/// The density of nonnegative numbers at evenly spaced places of `[0, to]`: a Gaussian around each
/// (with Silverman's bandwidth), reflected at zero.
pub(crate) fn density(values: &[f64], to: f64, places: usize) -> Vec<(f64, f64)> {
    let Some(spread) = Spread::of(values) else {
        return Vec::new();
    };
    let between = (spread.upper_quartile - spread.lower_quartile) / 1.34;
    let width = match (spread.deviation, between) {
        (deviation, between) if between > 0.0 => deviation.min(between),
        (deviation, _) => deviation,
    };
    let bandwidth = 0.9 * width * (values.len() as f64).powf(-0.2);
    // Numbers that hardly differ still need a visible width.
    let bandwidth = bandwidth.max(to / 200.0);
    let scale = 1.0 / (values.len() as f64 * bandwidth * (2.0 * std::f64::consts::PI).sqrt());
    let bell = |distance: f64| (-0.5 * (distance / bandwidth).powi(2)).exp();
    let at = |place: f64| -> f64 {
        let bells = values.iter().map(|v| bell(place - v) + bell(place + v));
        scale * bells.sum::<f64>()
    };
    let step = to / (places.max(2) - 1) as f64;
    let place = |index: usize| index as f64 * step;
    (0..places).map(|k| (place(k), at(place(k)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_numpy() {
        // numpy.quantile([1, 2, 4, 8, 16], [.25, .5, .75]) and std(ddof=1), NumPy 2.4.
        let spread = Spread::of(&[16.0, 1.0, 8.0, 2.0, 4.0]).unwrap();
        assert_eq!(
            (spread.lower_quartile, spread.median, spread.upper_quartile),
            (2.0, 4.0, 8.0)
        );
        assert_eq!((spread.least, spread.most, spread.mean), (1.0, 16.0, 6.2));
        assert!((spread.deviation - 6.099180272790763).abs() < 1e-14);
        assert_eq!(quantile(&[1.0, 2.0], 0.25), 1.25);
        assert!(Spread::of(&[]).is_none() && Spread::of(&[f64::NAN]).is_none());
        assert!(Spread::of(&[3.0]).unwrap().deviation.is_nan());
    }

    #[test]
    fn a_density_integrates_to_one_although_it_ends_at_zero() {
        let values: Vec<f64> = (0..200).map(|k| (k as f64 / 200.0).powi(3)).collect();
        let curve = density(&values, 3.0, 3001);
        let sum: f64 = curve.iter().map(|(_, y)| y).sum();
        // Trapezia: the first place counts half.
        let integral = (sum - curve[0].1 / 2.0) * 0.001;
        assert!((integral - 1.0).abs() < 1e-3, "{integral}");
        assert!(curve[0].1 > curve[1500].1);
        assert!(density(&[], 1.0, 5).is_empty());
        assert!(
            density(&[0.0, 0.0], 1.0, 5)
                .iter()
                .all(|(_, y)| y.is_finite())
        );
    }
}
