//! How long things took: all of them are kept, so percentiles are exact.

use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn join(&mut self, other: Latencies) {
        self.0.extend(other.0);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// In milliseconds; 0 if nothing was measured.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50), 0.0);
        (1..=10).rev().for_each(|millis| latencies.add(Duration::from_millis(millis)));
        assert_eq!([1, 50, 90, 91, 100].map(|percent| latencies.percentile(percent)), [1.0, 5.0, 9.0, 10.0, 10.0]);
    }
}
