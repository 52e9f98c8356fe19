//! What a candidate takes, of the sample and of the whole.

use crate::estimate::Estimate;
use std::collections::BTreeMap;

/// Bytes as the statistics of collections say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    pub data: f64,
    pub indexes: f64,
    /// Documents on disk, compressed.
    pub disk: f64,
}

/// What is measured of one stored collection of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    pub documents: f64,
    pub bytes: Bytes,
    /// How many indexes it has.
    pub indexes: f64,
}

/// One stored collection, and what it would be of the whole.
#[derive(Clone, Debug)]
pub struct Stored {
    pub name: String,
    pub measured: Statistics,
    /// Whether it is known to which unit of the sample each document belongs.
    pub is_of_units: bool,
    pub full_documents: Estimate,
    pub full_data: Estimate,
    pub full: Bytes,
}

impl Stored {
    /// The same with other data bytes of the whole, and what follows from them.
    #[must_use]
    pub fn with_data(&self, full_data: Estimate, is_mongodb: bool) -> Stored {
        let full = match is_mongodb {
            true => in_proportion(&self.measured, &self.full_documents, &full_data),
            false => as_embedded(&self.measured, &self.full_documents, &full_data),
        };
        Stored { full_data, full, ..self.clone() }
    }
}

/// Indexes grow with documents, what is on disk with the data.
fn in_proportion(measured: &Statistics, documents: &Estimate, data: &Estimate) -> Bytes {
    Bytes {
        data: data.total,
        indexes: measured.bytes.indexes * times(documents.total, measured.documents),
        disk: measured.bytes.disk * times(data.total, measured.bytes.data),
    }
}

/// The embedded store counts every index entry as so many bytes, an index as a page at least, and takes that off what the
/// collection has on disk: a small sample is mostly pages.
fn as_embedded(measured: &Statistics, documents: &Estimate, data: &Estimate) -> Bytes {
    const ENTRY: f64 = 40.0;
    const PAGE: f64 = 4096.0;
    let indexes = measured.indexes * (documents.total * ENTRY).max(PAGE);
    let together = (measured.bytes.disk + measured.bytes.indexes) * times(data.total, measured.bytes.data);
    Bytes { data: data.total, indexes, disk: (together - indexes).max(PAGE) }
}

/// All that a candidate takes.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    pub collections: Vec<Stored>,
    /// Of all collections: what units have in several is estimated together.
    pub full_documents: Estimate,
    pub full_data: Estimate,
    /// Sizes of documents, with how many of the whole each stands for.
    pub spread: Spread,
}

impl Sizes {
    pub fn documents(&self) -> f64 {
        self.collections.iter().map(|stored| stored.measured.documents).sum()
    }

    pub fn bytes(&self) -> Bytes {
        sum(self.collections.iter().map(|stored| stored.measured.bytes))
    }

    /// The same of the whole.
    pub fn full(&self) -> Bytes {
        sum(self.collections.iter().map(|stored| stored.full))
    }

    /// The share by which the whole may differ.
    pub fn error(&self) -> f64 {
        self.full_data.share().max(self.full_documents.share())
    }

    /// The same for each part. A sample's spread does not say how a storage engine lays out its pages.
    pub fn errors(&self, is_mongodb: bool) -> Bytes {
        /// Indexes on the same keys differ by so much in a real MongoDB, by the order in which they were filled.
        const PAGES: f64 = 0.2;
        /// Blocks that are compressed hold other neighbours in a sample than in the whole; few blocks are not full.
        const BLOCKS: f64 = 0.15;
        const FEW_BLOCKS: f64 = 0.5;
        const FEW: f64 = 1_048_576.0;
        let blocks = if self.bytes().disk < FEW { FEW_BLOCKS } else { BLOCKS };
        let documents = self.full_documents.share();
        let indexes = if is_mongodb { documents.max(PAGES) } else { documents };
        Bytes { data: self.full_data.share(), indexes, disk: self.error().max(blocks) }
    }

    pub fn average(&self) -> f64 {
        times(self.full_data.total, self.full_documents.total)
    }
}

fn sum(all: impl Iterator<Item = Bytes>) -> Bytes {
    all.fold(Bytes::default(), |sum, one| Bytes {
        data: sum.data + one.data,
        indexes: sum.indexes + one.indexes,
        disk: sum.disk + one.disk,
    })
}

fn times(whole: f64, part: f64) -> f64 {
    if part > 0.0 { whole / part } else { 0.0 }
}

/// Sizes of documents with their weights.
#[derive(Clone, Debug, Default)]
pub struct Spread(BTreeMap<u64, f64>);

impl Spread {
    pub fn add(&mut self, size: u64, weight: f64) {
        *self.0.entry(size).or_default() += weight;
    }

    /// The size that this share of documents does not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = self.0.values().sum::<f64>() * share;
        let mut seen = 0.0;
        for (size, weight) in &self.0 {
            seen += weight;
            if seen >= wanted - 1e-9 {
                return *size;
            }
        }
        self.0.keys().next_back().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_sample_in_the_embedded_store_is_not_scaled_by_its_pages() {
        let measured = Statistics {
            documents: 10.0,
            bytes: Bytes { data: 1_000.0, indexes: 8_192.0, disk: 4_096.0 },
            indexes: 2.0,
        };
        let (documents, data) = (Estimate::exact(1_000.0), Estimate::exact(100_000.0));
        let (name, full, is_of_units) = ("c".to_owned(), Bytes::default(), true);
        let stored = Stored { name, measured, is_of_units, full_documents: documents, full_data: data, full };
        let full = |is_mongodb| stored.with_data(data, is_mongodb).full;
        assert_eq!((full(false).indexes, full(true).indexes), (80_000.0, 819_200.0));
    }

    #[test]
    fn quantiles_are_weighed() {
        let mut spread = Spread::default();
        spread.add(100, 99.0);
        spread.add(5_000, 1.0);
        assert_eq!((spread.quantile(0.5), spread.quantile(0.99), spread.quantile(0.995)), (100, 100, 5_000));
        assert_eq!(Spread::default().quantile(0.5), 0);
    }
}
