//! Random numbers that a seed names for good: the same seed on the same data takes the same sample.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// From 0 up to, not including, `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.draw()) * (bound as u128);
        usize::try_from(wide >> 64).unwrap_or_default()
    }

    /// From 0 to 1, neither of them itself.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn fraction(&mut self) -> f64 {
        ((self.draw() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The place of a key in the random order that the seed names.
pub fn place(seed: u64, key: &[u8]) -> u64 {
    let hashed = key
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3));
    mixed(hashed ^ mixed(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_seed_and_even() {
        let key = |number: u32| number.to_be_bytes();
        assert_eq!(place(1, &key(7)), place(1, &key(7)));
        assert_ne!(place(1, &key(7)), place(2, &key(7)));
        let low = (0..10_000).filter(|number| place(3, &key(*number)) < u64::MAX / 10).count();
        assert!((900..1_100).contains(&low), "{low}");
        let mut random = Random::seeded(1);
        assert!((0..1_000).all(|_| random.below(3) < 3 && random.fraction() < 1.0));
        assert_eq!(random.below(0), 0);
    }
}
