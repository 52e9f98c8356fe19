//! Stored documents as the mover writes them: in its own transaction, through the placement that clients' readings take.

use crate::execute::access::Access;
use crate::rule::shape::{Learn, StoredAccess, StoredReads, Visit};
use document::Doc;
use document::backend::Answer;
use document::op::{Capture, Context, Find, WriteOp, Written};

pub(super) struct Moving<'m, 'a> {
    pub(super) at: &'m mut Access<'a>,
    /// Run once the part is committed.
    pub(super) learned: &'m mut Vec<Learn>,
    pub(super) guesses: bool,
}

impl StoredReads for Moving<'_, '_> {
    fn context(&self) -> &Context {
        self.at.context
    }

    fn each<'a>(&'a mut self, find: Find, visit: &'a mut Visit<'_>) -> Answer<'a, ()> {
        Box::pin(async move {
            for document in self.at.find(find).await? {
                if !visit(document)? {
                    break;
                }
            }
            Ok(())
        })
    }
}

impl StoredAccess for Moving<'_, '_> {
    fn write<'a>(&'a mut self, op: &'a WriteOp, _adds: Option<Vec<Doc<'static>>>) -> Answer<'a, Written> {
        let Access { backend, session, context } = &mut *self.at;
        backend.write(session, context, op, &Capture::Nothing)
    }

    /// A move leaves logical documents as they are.
    fn is_watched(&self) -> bool {
        false
    }

    fn may_guess(&self) -> bool {
        self.guesses
    }

    fn touch(&mut self, _host: u64) {}

    fn once_committed(&mut self, learn: Learn) {
        self.learned.push(learn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::write::place::{self, NewReading, NewReadings};
    use crate::shapes::bucket::{Bucket, BucketEntry, BucketShape, Key};
    use bson::doc;
    use document::backend::Session;
    use document::filter::Filter;
    use document::op::Namespace;
    use engine::{Engine, Options};
    use std::sync::Arc;

    const RULES: &str = "{ database: shop, collections: { sensor_data: { bucket: { into: hours, time: ts, by: [sensorId], every: hour, at_most: 4 } } } }";

    fn bucket() -> Arc<Bucket> {
        let rules = crate::declare::from_yaml("rules", RULES).into_result().unwrap().rules;
        rules.first().unwrap().bucket().unwrap().clone()
    }

    /// Puts readings, as a part of the mover does; a wrong guess is another attempt without.
    async fn put_all(at: &mut Access<'_>, shape: &BucketShape, ids: std::ops::Range<i32>) -> bool {
        let bucket = &shape.bucket;
        let reading = |id: i32| {
            let ts = bson::DateTime::from_millis(i64::from(id) * 1_000);
            bucket.encode(&Doc::from(doc! { "_id": id, "sensorId": 1, "ts": ts })).unwrap()
        };
        let readings: Vec<NewReading> =
            ids.enumerate().map(|(index, id)| NewReading { index, encoded: reading(id) }).collect();
        let logical = Namespace::new("shop", "sensor_data");
        for guesses in [true, false] {
            let mut learned = Vec::new();
            let new = NewReadings { readings: &readings, ordered: false, bypass_validation: true, are_moved: false };
            at.backend.begin(at.session, at.context).await.unwrap();
            let mut moving = Moving { at, learned: &mut learned, guesses };
            let placed = place::add(&mut moving, shape.buckets(&bucket.into, &logical), new).await;
            let transaction = at.session.transaction.take().unwrap();
            if placed.is_ok_and(|placed| placed.refused.is_empty()) {
                transaction.commit(at.context).await.unwrap();
                learned.into_iter().for_each(|learn| learn());
                return guesses;
            }
            transaction.abort();
        }
        panic!("a placement that looks does not fail");
    }

    /// The last bucket seen is full when clients begin the next one, and then they take a reading out of it.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_bucket_that_clients_have_begun_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), Options { memory_bytes: 64 << 20, ..Options::default() }).unwrap();
        let (mut session, context, bucket) = (Session::default(), testing::context(), bucket());
        let (mover, client) = (BucketShape::new(bucket.clone()), BucketShape::new(bucket.clone()));
        let mut at = Access { backend: &engine, session: &mut session, context: &context };
        put_all(&mut at, &mover, 0..4).await;
        // Clients, by their own memory of open buckets.
        put_all(&mut at, &client, 4..5).await;
        let full = at.one(&bucket.into, &bucket.id(&key(&bucket), 0)).await.unwrap().unwrap();
        let left: Vec<BucketEntry> = bucket.entries(&full).unwrap().into_iter().skip(1).collect();
        at.put(&bucket.into, &bucket.build(&key(&bucket), 0, &left).unwrap()).await.unwrap();
        put_all(&mut at, &mover, 5..7).await;
        // The memory of one that is full by now is a wrong guess.
        put_all(&mut at, &client, 7..8).await;
        put_all(&mut at, &mover, 8..12).await;
        let all = at.find(crate::execute::access::find(&bucket.into, Filter::all())).await.unwrap();
        let mut ids = Vec::new();
        for stored in &all {
            assert!(bucket.flaws(stored).is_empty(), "{stored:?}");
            bucket
                .decode(stored, &mut |reading| {
                    ids.extend(reading.get("_id").and_then(|id| id.as_i64_exact()));
                    Ok(())
                })
                .unwrap();
        }
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        engine.close();
    }

    fn key(bucket: &Bucket) -> Key {
        bucket.encode(&Doc::from(doc! { "_id": 0, "sensorId": 1, "ts": bson::DateTime::from_millis(0) })).unwrap().key
    }
}
