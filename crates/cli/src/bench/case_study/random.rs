//! Random numbers that are the same on every machine and in every version: a seed names a stream of events for good.

/// SplitMix64: one addition and three multiplications, good enough for workloads.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 (never 0 itself) to 1 (never 1 itself).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn fraction(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// From 0 up to, not including, `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// The size of a normally distributed number, by Box and Muller.
    pub(crate) fn half_normal(&mut self) -> f64 {
        let radius = (-2.0 * self.fraction().ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.fraction()).cos()).abs()
    }
}
