//! What buckets need where they are stored: a collection with their validator, and the indexes that find them.

use crate::rule::{IndexNeed, Needs};
use crate::shapes::bucket::{Body, Bucket, ReadingId};
use document::op::{CollectionOptions, Namespace};
use document::value::Path;

impl Bucket {
    pub fn needs(&self, stored: &Namespace) -> Needs {
        let options = CollectionOptions { validator: Some(self.validator()), ..CollectionOptions::default() };
        Needs { collections: vec![(stored.clone(), options)], indexes: self.index_needs(stored), ..Needs::default() }
    }

    /// Series and period, so that a filter on both reads few buckets; the readings' own `_id` if declared.
    fn index_needs(&self, stored: &Namespace) -> Vec<IndexNeed> {
        let mut list = Vec::new();
        if !self.packed {
            let series = self.by.iter().map(|series| &*series.field);
            let paths = series.chain([self.every.name()]).map(Path::new);
            list.push(IndexNeed::lookup(stored, paths));
        }
        if matches!(&self.body, Body::Readings(readings) if readings.reading_id == ReadingId::Indexed) {
            list.push(IndexNeed::lookup(stored, [Path::new("readings._id")]));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::samples;
    use bson::doc;
    use document::Doc;

    #[test]
    fn indexes_serve_series_and_period() {
        let bucket = samples::with_id(samples::sensors(), ReadingId::Indexed);
        let needs = bucket.needs(&bucket.into).indexes;
        let specs: Vec<Doc<'static>> = needs.iter().map(|need| need.spec(&need.name())).collect();
        let [series, id] = [
            doc! { "key": { "sensorId": 1, "hour": 1 }, "name": "sensorId_1_hour_1" },
            doc! { "key": { "readings._id": 1 }, "name": "readings._id_1" },
        ];
        assert_eq!(specs, [Doc::from(series), Doc::from(id)]);
        let packed = samples::events(true);
        assert!(packed.needs(&packed.into).indexes.is_empty());
    }
}
