//! How figures are spread: percentiles, average, greatest. As many are kept as a sample has documents.

/// More figures than this are thinned out: every second one is kept from then on.
const MOST: usize = 1 << 16;

#[derive(Clone, Debug, Default)]
pub struct Spread {
    kept: Vec<u64>,
    /// One of so many is kept, as a power of two.
    thinned: u32,
    pub count: u64,
    pub sum: u64,
    pub max: u64,
}

impl Spread {
    pub fn add(&mut self, figure: u64) {
        if self.count.is_multiple_of(1 << self.thinned) {
            self.kept.push(figure);
        }
        if self.kept.len() >= MOST {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.thinned += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(figure);
        self.max = self.max.max(figure);
    }

    pub fn average(&self) -> f64 {
        crate::values::share(self.sum, self.count)
    }

    /// The figure that so many percent are not above.
    pub fn percentile(&self, percent: u64) -> u64 {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let place = (sorted.len() as u64 * percent).div_ceil(100).saturating_sub(1);
        usize::try_from(place).ok().and_then(|place| sorted.get(place)).copied().unwrap_or_default()
    }

    /// The share of the figures that are above one.
    pub fn above(&self, figure: u64) -> f64 {
        let above = self.kept.iter().filter(|kept| **kept > figure).count() as u64;
        crate::values::share(above, self.kept.len() as u64)
    }
}
