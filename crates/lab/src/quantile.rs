//! Quantiles of Student's distribution: how far an estimate from few samples may be from the truth.

/// The quantile that 97.5 % lie below, so that 95 % lie between it and its mirror image.
///
/// The series of Cornish and Fisher around the normal quantile; below three degrees of freedom, where it is too low, the exact
/// values.
pub fn two_sided_95(degrees: f64) -> f64 {
    const NORMAL: f64 = 1.959_963_985;
    if degrees < 1.5 {
        return 12.706;
    }
    if degrees < 3.0 {
        // Between the exact values at 1.5 (6.6), 2 (4.303) and 3 (3.182), from above.
        return 3.182 + (3.0 - degrees).powf(1.3) * 1.9;
    }
    let z = NORMAL;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, table) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1_000.0, 1.962)] {
            assert!((two_sided_95(degrees) - table).abs() < 0.05, "{degrees}: {}", two_sided_95(degrees));
        }
        assert!(two_sided_95(2.0) >= 4.303 && two_sided_95(1.0) > 12.0);
    }
}
