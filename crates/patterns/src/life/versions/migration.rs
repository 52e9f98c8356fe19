//! The background migration of versions: old documents are found by their number and brought up where they are stored, some at a time,
//! in the declared hours and no faster than declared (SEMANTICS R19).
//!
//! It needs no position: what is still old is what is left to do, so that it can be killed anywhere, goes on in another process, and
//! takes up what old clients insert meanwhile. To bring a document up changes nothing that a client sees, and is guarded by the
//! number: a document that somebody else brought up first is left alone.

use crate::active::Lenses;
use crate::execute::access::find;
use crate::life::walk::id_document;
use crate::life::{CatalogRule, Life};
use crate::rule::lens::{Migrate, TOGETHER};
use crate::rule::{Lens, State};
use document::backend::{Backend, BatchLimit, Session};
use document::filter::{Filter, Node, Test};
use document::op::{Capture, Context, Find, Hint, Namespace, ReadOp, UpdateOp, UpdateStatement, WriteOp, Written};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::key;
use document::{Result, Value};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often old documents are looked for that came after the last.
const LOOK: Duration = Duration::from_secs(5);

/// So many old documents are looked for at once: each look begins at the first, and passes all that were brought up since.
const LOOKED_FOR: u64 = 100_000;

/// So many documents that cannot be brought up are left out by name; with more, the migration waits for somebody to look at them.
const MOST_STUCK: usize = 1_000;

/// What this process knows of its migrations, by rule.
#[derive(Default)]
pub(crate) struct Migrations(Mutex<HashMap<Arc<str>, Migration>>);

/// How one of them goes.
#[derive(Default)]
struct Migration {
    /// When it began, and how many documents it has brought up since: anew after it had nothing to do.
    began: Option<Instant>,
    done: u64,
    is_resting: bool,
    /// Documents that cannot be brought up, with the reason.
    stuck: HashMap<Vec<u8>, (Value<'static>, String)>,
    next: NextDocuments,
}

/// Documents that were found and are brought up next, by their `_id`s. Somebody else may be faster: their number is looked at again.
#[derive(Debug, Default)]
pub(crate) struct NextDocuments(Vec<Value<'static>>);

/// Works until the life is stopped.
pub(crate) async fn work(life: Arc<Life>) {
    while !life.is_stopped() {
        let mut wait = LOOK;
        for entry in life.entries() {
            let Some(lens) = entry.rule.lens().filter(|lens| lens.migrate.background) else { continue };
            if entry.row.state != State::On || !life.is_ours(&entry.row) {
                continue;
            }
            match round(&life, &entry, lens).await {
                Ok(Some(pause)) => wait = wait.min(pause),
                Ok(None) => {}
                Err(_) if life.is_stopped() => {}
                Err(error) => tracing::warn!(rule = &*entry.rule.name, %error, "a migration does not get on"),
            }
        }
        let seen = life.patterned.rules().lenses().seen.clone();
        tokio::select! {
            () = life.wait_for_stop(wait) => {}
            () = seen.came.notified() => {}
        }
        if let Err(error) =
            write_back(&**life.patterned.inner(), &life.adding_context(), life.patterned.rules().lenses()).await
        {
            tracing::debug!(%error, "documents that were read are not written back");
        }
    }
}

/// Writes old documents back that clients have read, as far as they are still old. Such a client may lack the right: it is our work.
async fn write_back(backend: &dyn Backend, context: &Context, lenses: &Lenses) -> Result<()> {
    for (ns, ids) in lenses.seen.take() {
        let Some(lens) = lenses.of(&ns) else { continue };
        for some in ids.chunks(TOGETHER) {
            upgrade(backend, context, &ns, lens, some).await?;
        }
    }
    Ok(())
}

/// Brings some documents up. Returns how long to wait before the next; `None` if nothing is to be done now.
async fn round(life: &Life, entry: &CatalogRule, lens: &Arc<Lens>) -> Result<Option<Duration>> {
    let context = life.adding_context();
    if !is_open(&lens.migrate, context.env.now) {
        return Ok(None);
    }
    let stuck: Vec<Value<'static>> = life.migrations.stuck(&entry.rule.name).into_iter().map(|(id, _)| id).collect();
    if stuck.len() >= MOST_STUCK {
        return Ok(None);
    }
    let mut filter = lens.old();
    if !stuck.is_empty() {
        filter = filter.and(Filter::from_node(Node::field("_id", Test::Not(Box::new(Test::among(stuck))))));
    }
    let began = Instant::now();
    let most = lens.migrate.most_together();
    let mut next = life.migrations.take_next(&entry.rule.name);
    let outcome = part(&**life.patterned.inner(), &context, &entry.rule.host, lens, filter, most, &mut next).await?;
    life.migrations.put_next(&entry.rule.name, next);
    if outcome.found == 0 {
        life.migrations.rest(&entry.rule.name);
        return Ok(None);
    }
    life.migrations.note(&entry.rule.name, began, outcome.done, outcome.stuck);
    Ok(Some(share(&lens.migrate, outcome.found).saturating_sub(began.elapsed())))
}

/// How long so many documents are to take.
pub(crate) fn share(migrate: &Migrate, documents: usize) -> Duration {
    let documents = f64::from(u32::try_from(documents).unwrap_or(u32::MAX));
    Duration::from_secs_f64(migrate.rate.map_or(0.0, |rate| documents / f64::from(rate)))
}

/// Whether the background work runs at that time, in milliseconds since 1970.
pub(crate) fn is_open(migrate: &Migrate, now: i64) -> bool {
    let Some((from, to)) = migrate.hours else { return true };
    let minute = u16::try_from(now.div_euclid(60_000).rem_euclid(24 * 60)).unwrap_or_default();
    match from < to {
        true => (from..to).contains(&minute),
        false => minute >= from || minute < to,
    }
}

/// What came of a part.
#[derive(Debug, Default)]
pub(crate) struct PartOutcome {
    pub(crate) found: usize,
    pub(crate) done: u64,
    pub(crate) stuck: Vec<(Value<'static>, String)>,
}

/// Makes up to `most` stored documents the newest: of those that are `next`, or else of those that match.
pub(crate) async fn part(
    backend: &dyn Backend,
    context: &Context,
    ns: &Namespace,
    lens: &Arc<Lens>,
    filter: Filter,
    most: u32,
    next: &mut NextDocuments,
) -> Result<PartOutcome> {
    if next.0.is_empty() {
        next.0 = matching(backend, context, ns, filter).await?;
        // They are taken from the end.
        next.0.reverse();
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut ids = next.0.split_off(next.0.len().saturating_sub(most));
    ids.reverse();
    let mut outcome = PartOutcome { found: ids.len(), ..PartOutcome::default() };
    let mut left = vec![ids];
    while let Some(mut some) = left.pop().filter(|some| !some.is_empty()) {
        let written = upgrade(backend, context, ns, lens, &some).await?;
        outcome.done += written.modified;
        // A unique index, a validator or a pipeline of somebody's own is against one of them: which is found by halves.
        let Some(failed) = written.errors.into_iter().next() else { continue };
        match some.len() {
            1 => outcome.stuck.extend(some.pop().map(|id| (id, failed.error.message().to_owned()))),
            length => {
                let second = some.split_off(length / 2);
                left.extend([second, some]);
            }
        }
    }
    Ok(outcome)
}

/// The first documents that match.
async fn matching(
    backend: &dyn Backend,
    context: &Context,
    ns: &Namespace,
    filter: Filter,
) -> Result<Vec<Value<'static>>> {
    let mut session = Session::default();
    let only_id = Projection::parse_find(&id_document(&Value::Int32(1)), &filter, &mut Names::new())?;
    let old = Find { limit: Some(LOOKED_FOR), projection: Some(Arc::new(only_id)), ..find(ns, filter) };
    let mut cursor = backend.read(&mut session, context, ReadOp::Find(old)).await?;
    let mut ids = Vec::new();
    loop {
        let batch = cursor.next(&mut session, context, BatchLimit { documents: 10_000, bytes: 16 << 20 }).await?;
        ids.extend(batch.documents.iter().filter_map(|doc| doc.get("_id")));
        if batch.exhausted {
            return Ok(ids);
        }
    }
}

/// Brings those of the documents up that are old.
async fn upgrade(
    backend: &dyn Backend,
    context: &Context,
    ns: &Namespace,
    lens: &Arc<Lens>,
    ids: &[Value<'static>],
) -> Result<Written> {
    let filter = lens.old().and(Filter::among("_id", ids.to_vec()));
    // Not by the index on the number, which finds all that are old.
    let hint = Some(Hint::Keys(id_document(&Value::Int32(1))));
    let statement = UpdateStatement { filter, update: lens.upgrade(), multi: true, upsert: false, hint };
    let op = WriteOp::Update(UpdateOp::of(ns.clone(), vec![statement]));
    backend.write(&mut Session::default(), context, &op, &Capture::Nothing).await
}

impl Migrations {
    /// The documents that cannot be brought up, each with the reason.
    pub(crate) fn stuck(&self, rule: &str) -> Vec<(Value<'static>, String)> {
        let all = self.0.lock();
        all.get(rule).map(|own| own.stuck.values().cloned().collect()).unwrap_or_default()
    }

    fn take_next(&self, rule: &Arc<str>) -> NextDocuments {
        std::mem::take(&mut self.0.lock().entry(rule.clone()).or_default().next)
    }

    fn put_next(&self, rule: &Arc<str>, next: NextDocuments) {
        self.0.lock().entry(rule.clone()).or_default().next = next;
    }

    /// Nothing is left to do for now: how long that lasts says nothing of how fast the work is.
    fn rest(&self, rule: &Arc<str>) {
        self.0.lock().entry(rule.clone()).or_default().is_resting = true;
    }

    /// A part of the work that began then.
    fn note(&self, rule: &Arc<str>, began: Instant, done: u64, stuck: Vec<(Value<'static>, String)>) {
        let mut all = self.0.lock();
        let own = all.entry(rule.clone()).or_default();
        if std::mem::take(&mut own.is_resting) || own.began.is_none() {
            own.began = Some(began);
            own.done = 0;
        }
        own.done += done;
        for (id, reason) in stuck {
            let mut name = Vec::new();
            key::encode(&id, &mut name);
            tracing::warn!(rule = &**rule, ?id, reason, "a document cannot be brought to the newest version");
            own.stuck.insert(name, (id, reason));
        }
    }

    /// How many documents a second were brought up; `None` before the first.
    pub(crate) fn rate(&self, rule: &str) -> Option<f64> {
        let all = self.0.lock();
        let own = all.get(rule)?;
        let seconds = own.began?.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        Some(own.done as f64 / seconds.max(0.001))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::versions::figures::count;
    use crate::rule::lens::steps::{Pipelines, Rename};
    use bson::{Document, doc};
    use document::value::Path;
    use document::{Array, Doc};
    use engine::{Engine, Options};

    fn lens(steps: crate::rule::lens::VersionSteps) -> Arc<Lens> {
        Arc::new(Lens::new("v", vec![steps], Migrate::default()).unwrap())
    }

    async fn with_documents(documents: Vec<Document>) -> (tempfile::TempDir, Engine, Namespace) {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), Options::default()).unwrap();
        let ns = Namespace::new("shop", "users");
        let op = testing::insert(ns.clone(), documents);
        engine.write(&mut Session::default(), &testing::context(), &op, &Capture::Nothing).await.unwrap();
        (folder, engine, ns)
    }

    async fn stored(engine: &Engine, ns: &Namespace) -> Vec<Document> {
        let op = ReadOp::Find(testing::find(ns.clone(), doc! {}));
        testing::rows(engine, &mut Session::default(), op).await.unwrap()
    }

    #[test]
    fn hours_may_lie_on_both_sides_of_midnight() {
        let at = |hour: i64| hour * 3_600_000 + 5 * 86_400_000;
        let open = |hours, hour| is_open(&Migrate { hours, ..Migrate::default() }, at(hour));
        for (hours, hour, expected) in [
            (None, 12, true),
            (Some((60, 300)), 0, false),
            (Some((60, 300)), 1, true),
            (Some((60, 300)), 5, false),
            (Some((23 * 60, 300)), 23, true),
            (Some((23 * 60, 300)), 4, true),
            (Some((23 * 60, 300)), 12, false),
        ] {
            assert_eq!(open(hours, hour), expected, "{hours:?} {hour}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_work_and_not_of_the_rest() {
        let (migrations, rule): (Migrations, Arc<str>) = (Migrations::default(), "users.versions".into());
        assert_eq!(migrations.rate(&rule), None);
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let is_about = |expected: f64| (migrations.rate(&rule).unwrap() / expected - 1.0).abs() < 0.1;
        migrations.note(&rule, ago(100), 500, Vec::new());
        migrations.note(&rule, ago(50), 500, Vec::new());
        assert!(is_about(10.0), "{:?}", migrations.rate(&rule));
        migrations.rest(&rule);
        migrations.note(&rule, ago(10), 500, Vec::new());
        assert!(is_about(50.0), "{:?}", migrations.rate(&rule));
    }

    #[tokio::test]
    async fn old_documents_are_brought_up_part_by_part() {
        let lens = lens(vec![Arc::new(Rename { from: Path::new("a"), to: Path::new("b") })]);
        let documents = (0..7)
            .map(|id| doc! { "_id": id, "a": id })
            .chain([doc! { "_id": 8, "b": 8, "v": 2 }, doc! { "_id": 9, "a": 9, "v": 7 }]);
        let (_folder, engine, ns) = with_documents(documents.collect()).await;
        let context = testing::context();
        let mut next = NextDocuments::default();
        for (found, left) in [(3, 4), (3, 1), (1, 0), (0, 0)] {
            let outcome = part(&engine, &context, &ns, &lens, lens.old(), 3, &mut next).await.unwrap();
            assert_eq!((outcome.found, outcome.done), (found, found as u64));
            assert_eq!(count(&engine, &context, &ns, lens.old()).await.unwrap(), left);
        }
        let all = stored(&engine, &ns).await;
        assert_eq!(all[3], doc! { "_id": 3, "b": 3, "v": 2 });
        assert_eq!(all[8], doc! { "_id": 9, "a": 9, "v": 7 }, "newer than known");
    }

    #[tokio::test]
    async fn one_that_cannot_be_brought_up_holds_up_no_other() {
        let stage = doc! { "$set": { "n": { "$divide": [1, "$a"] } } };
        let Value::Array(up) = Value::from(bson::Bson::from(vec![stage])) else { panic!() };
        let up = crate::rule::lens::steps::stages_of(&up);
        let down = crate::rule::lens::steps::stages_of(&Array::empty());
        let lens = lens(vec![Arc::new(Pipelines { up, down })]);
        let (_folder, engine, ns) = with_documents((0..5).map(|id| doc! { "_id": id, "a": id }).collect()).await;
        let context = testing::context();
        let mut next = NextDocuments::default();
        let outcome = part(&engine, &context, &ns, &lens, lens.old(), 10, &mut next).await.unwrap();
        assert_eq!((outcome.found, outcome.done), (5, 4));
        let stuck: Vec<Value<'static>> = outcome.stuck.into_iter().map(|(id, _)| id).collect();
        assert_eq!(stuck, [Value::Int32(0)]);
        let others = Filter::from_node(Node::field("_id", Test::Not(Box::new(Test::among(stuck)))));
        let found = part(&engine, &context, &ns, &lens, lens.old().and(others), 10, &mut next).await.unwrap().found;
        assert_eq!(found, 0);
        assert_eq!(stored(&engine, &ns).await[0], doc! { "_id": 0, "a": 0 });
    }

    #[tokio::test]
    async fn what_was_read_is_written_back_if_it_is_still_old() {
        let steps: crate::rule::lens::VersionSteps =
            vec![Arc::new(Rename { from: Path::new("a"), to: Path::new("b") })];
        let migrate = Migrate { on_read: true, background: false, ..Migrate::default() };
        let lens = Arc::new(Lens::new("v", vec![steps], migrate).unwrap());
        let documents = vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }, doc! { "_id": 3, "b": 3, "v": 2 }];
        let (_folder, engine, ns) = with_documents(documents).await;
        let rule = crate::rule::Rule {
            name: "users.versions".into(),
            pattern: "versions",
            host: ns.clone(),
            field: Path::new("versions"),
            kind: crate::rule::Kind::Lens(lens),
            client_writes: crate::rule::ClientWrites::Override,
            declaration: Doc::empty(),
            lift: None,
        };
        let layer = crate::Patterned::new(Arc::new(engine.clone()));
        layer.set_rules(vec![(Arc::new(rule), State::On)]).unwrap();
        let context = testing::context();
        let read = |query: Document| ReadOp::Find(testing::find(ns.clone(), query));
        let found = testing::rows(&layer, &mut Session::default(), read(doc! { "b": { "$gt": 1 } })).await.unwrap();
        assert_eq!(found, [doc! { "_id": 2, "b": 2, "v": 2 }, doc! { "_id": 3, "b": 3, "v": 2 }]);
        assert_eq!(stored(&engine, &ns).await[1], doc! { "_id": 2, "a": 2 }, "not by the read itself");
        write_back(&engine, &context, layer.rules().lenses()).await.unwrap();
        assert_eq!(stored(&engine, &ns).await[1], doc! { "_id": 2, "b": 2, "v": 2 });
        assert_eq!(stored(&engine, &ns).await[0], doc! { "_id": 1, "a": 1 });
        let mut session = Session::default();
        layer.begin(&mut session, &context).await.unwrap();
        testing::rows(&layer, &mut session, read(doc! {})).await.unwrap();
        session.transaction.take().unwrap().abort();
        write_back(&engine, &context, layer.rules().lenses()).await.unwrap();
        assert_eq!(stored(&engine, &ns).await[0], doc! { "_id": 1, "a": 1 }, "never in a transaction");
    }
}
