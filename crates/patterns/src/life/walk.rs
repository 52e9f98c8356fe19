//! The one walk through a collection in the order of `_id`, part by part, while clients go on writing: over hosts, over a source, over
//! stored documents. Ids of all types are crossed, which comparisons in a filter would not do.
//!
//! What a part does is the caller's ([`PartWork`]); the walk decides how large it is, tries again after a conflict, stops with the process
//! and goes on behind what was done.

use crate::execute::access::{Access, by_id, find};
use crate::life::Life;
use crate::life::transaction::{back_off, is_transient};
use crate::mql::{call, call_with, document, list, literal};
use document::backend::Answer;
use document::filter::Filter;
use document::op::{Find, Hint, Namespace};
use document::pipeline::expr::Names;
use document::{Doc, DocWriter, Error, Result, Value};

/// How many documents make a part: begun with `first`, doubled while nothing is in the way, quartered after a conflict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) first: u64,
    pub(crate) most: u64,
    /// A part has about so many bytes, by the size of the documents in the one before.
    pub(crate) bytes: usize,
}

impl Pace {
    /// Parts of one size, whatever the documents are like.
    pub(crate) const fn even(size: u64) -> Pace {
        Pace { first: size, most: size, bytes: usize::MAX }
    }
}

/// What is worked on next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartOfWalk<'a> {
    /// The first `_id`; from the beginning if `None`.
    pub(crate) from: Option<&'a Value<'static>>,
    pub(crate) size: u64,
    /// How often it was tried in vain.
    pub(crate) conflicts: u32,
}

/// What came of a part.
#[derive(Debug, Default)]
pub(crate) struct PartDone {
    /// Where the next part begins; `None` at the end.
    pub(crate) next: Option<Value<'static>>,
    pub(crate) documents: usize,
    pub(crate) bytes: usize,
}

impl PartDone {
    pub(crate) fn of(documents: &[Doc<'static>], next: Option<Value<'static>>) -> PartDone {
        let bytes = documents.iter().map(|document| document.as_bytes().len()).sum();
        PartDone { next, documents: documents.len(), bytes }
    }
}

/// How to go on after an error that is no conflict.
#[derive(Debug)]
pub(crate) enum Recovery {
    Again,
    /// The documents of the part one by one, to learn which is to blame.
    OneByOne,
    /// Behind the part, at this `_id`; `None` at the end.
    Skip(Option<Value<'static>>),
}

/// What is done with the documents of a walk.
pub(crate) trait PartWork: Send {
    /// Works on one part, in one transaction if it writes. Returns `None` if the rule was changed meanwhile: the walk ends then.
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>>;

    /// Forgets what it has learnt in an attempt that was in vain.
    fn conflicted(&mut self) {}

    fn failed<'a>(&'a mut self, error: Error, _part: PartOfWalk<'a>) -> Answer<'a, Recovery> {
        Box::pin(async move { Err(error) })
    }
}

/// How a walk has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    Reached,
    /// Somebody has changed the rule.
    Superseded,
}

/// Walks from a position to the end.
pub(crate) async fn walk(
    life: &Life,
    pace: Pace,
    mut from: Option<Value<'static>>,
    work: &mut dyn PartWork,
) -> Result<WalkEnd> {
    let (mut size, mut conflicts, mut one_by_one) = (life.at_most(pace.first), 0_u32, 0_u64);
    loop {
        life.check_stopped()?;
        let part = PartOfWalk { from: from.as_ref(), size: if one_by_one > 0 { 1 } else { size }, conflicts };
        let next = match work.part(part).await {
            Ok(None) => return Ok(WalkEnd::Superseded),
            Ok(Some(done)) => {
                let each = (done.bytes / done.documents.max(1)).max(1);
                let fits = u64::try_from(pace.bytes / each).unwrap_or(u64::MAX).max(1);
                (size, conflicts) = (life.at_most(size.saturating_mul(2).min(pace.most).min(fits)), 0);
                done.next
            }
            Err(error) if is_transient(&error) => {
                work.conflicted();
                size = (size / 4).max(1);
                conflicts += 1;
                back_off(conflicts).await;
                continue;
            }
            Err(error) => match work.failed(error, part).await? {
                Recovery::Again => continue,
                Recovery::OneByOne => {
                    one_by_one = part.size;
                    continue;
                }
                Recovery::Skip(next) => next,
            },
        };
        one_by_one = one_by_one.saturating_sub(1);
        if next.is_none() {
            return Ok(WalkEnd::Reached);
        }
        from = next;
    }
}

/// Reads the documents of a part, up to but not including the `_id` `until`. Second, where the next part begins; `None` at the end.
pub(crate) async fn read(
    at: &mut Access<'_>,
    ns: &Namespace,
    part: PartOfWalk<'_>,
    until: Option<&Value<'static>>,
) -> Result<(Vec<Doc<'static>>, Option<Value<'static>>)> {
    let documents = at.find(part.find(ns, until)).await?;
    Ok(part.cut(documents))
}

impl PartOfWalk<'_> {
    /// Finds the documents of the part, and the one that the next part begins with.
    pub(crate) fn find(self, ns: &Namespace, until: Option<&Value<'static>>) -> Find {
        let range = match (self.from, until) {
            // A hint needs the collection to be there.
            (None, None) => find(ns, Filter::all()),
            (from, until) => range(ns, from, until),
        };
        Find { sort: Some(by_id()), limit: Some(self.size + 1), ..range }
    }

    /// What was found, without the document that the next part begins with, and its `_id`.
    pub(crate) fn cut(self, mut documents: Vec<Doc<'static>>) -> (Vec<Doc<'static>>, Option<Value<'static>>) {
        let next = match documents.len() as u64 > self.size {
            true => documents.pop().and_then(|document| document.get("_id")),
            false => None,
        };
        (documents, next)
    }
}

/// The documents from one `_id` on, up to but not including another.
pub(crate) fn range(ns: &Namespace, from: Option<&Value<'_>>, to: Option<&Value<'_>>) -> Find {
    let bound = |id: &Value<'_>| id_document(id);
    Find {
        hint: Some(Hint::Keys(id_document(&Value::Int32(1)))),
        min: from.map(bound),
        max: to.map(bound),
        ..find(ns, Filter::all())
    }
}

/// The `_id` of the document `count` places behind `from`; `None` if there are fewer.
pub(crate) async fn boundary(
    at: &mut Access<'_>,
    ns: &Namespace,
    from: Option<&Value<'_>>,
    count: u64,
) -> Result<Option<Value<'static>>> {
    let found = at.find(Find { skip: count, limit: Some(1), ..range(ns, from, None) }).await?;
    Ok(found.first().and_then(|doc| doc.get("_id")))
}

/// As [`range`], of a collection that is stored in another form: its logical documents have no index by `_id`, and all are read.
pub(crate) fn range_in_view(ns: &Namespace, from: Option<&Value<'_>>, to: Option<&Value<'_>>) -> Result<Find> {
    let compared = |operator: &str, id: &Value<'_>| call_with(operator, [Value::from("$_id"), literal(id.borrow())]);
    let bounds = from.map(|id| compared("$gte", id)).into_iter().chain(to.map(|id| compared("$lt", id)));
    let filter = Filter::parse(&document([("$expr", call("$and", list(bounds)))]), &mut Names::new())?;
    Ok(Find { allow_disk_use: true, ..find(ns, filter) })
}

/// As [`boundary`], by sorting all of them.
pub(crate) async fn boundary_in_view(
    at: &mut Access<'_>,
    ns: &Namespace,
    from: Option<&Value<'_>>,
    count: u64,
) -> Result<Option<Value<'static>>> {
    let sorted = Find { sort: Some(by_id()), skip: count, limit: Some(1), ..range_in_view(ns, from, None)? };
    Ok(at.find(sorted).await?.first().and_then(|doc| doc.get("_id")))
}

pub(crate) fn id_document(id: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(32);
    writer.append("_id", id);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Patterned;
    use bson::doc;
    use document::Code;
    use document::backend::Session;
    use document::error::label;
    use engine::{Engine, Options};
    use std::sync::Arc;

    /// Notes what it was given; some parts fail.
    struct Noting<'a> {
        life: &'a Life,
        ns: Namespace,
        /// The first and the number of the documents of each part that was done.
        parts: Vec<(i64, usize)>,
        conflicts: u32,
        /// A document that no part can be done with.
        broken: Option<i64>,
        skipped: Vec<i64>,
        ends_at: Option<i64>,
    }

    fn number(id: Option<Value<'_>>) -> i64 {
        id.and_then(|id| id.as_i64_exact()).unwrap()
    }

    impl PartWork for Noting<'_> {
        fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
            Box::pin(async move {
                let (mut session, context) = (Session::default(), self.life.context());
                let mut at = Access { backend: &*self.life.backend, session: &mut session, context: &context };
                let (documents, next) = read(&mut at, &self.ns, part, None).await?;
                let first = number(documents[0].get("_id"));
                if self.ends_at.is_some_and(|end| first >= end) {
                    return Ok(None);
                }
                if self.conflicts > part.conflicts {
                    return Err(Error::new(Code::WriteConflict, "again").with_label(label::TRANSIENT));
                }
                self.conflicts = 0;
                if documents.iter().any(|document| Some(number(document.get("_id"))) == self.broken) {
                    return Err(Error::new(Code::DuplicateKey, "one of them"));
                }
                self.parts.push((first, documents.len()));
                Ok(Some(PartDone::of(&documents, next)))
            })
        }

        fn failed<'a>(&'a mut self, error: Error, part: PartOfWalk<'a>) -> Answer<'a, Recovery> {
            Box::pin(async move {
                assert_eq!(error.code(), Code::DuplicateKey);
                if part.size > 1 {
                    return Ok(Recovery::OneByOne);
                }
                let broken = number(part.from.cloned());
                self.skipped.push(broken);
                Ok(Recovery::Skip(Some(Value::Int64(broken + 1))))
            })
        }
    }

    async fn walked(pace: Pace, change: impl FnOnce(&mut Noting<'_>)) -> (WalkEnd, Vec<(i64, usize)>, Vec<i64>) {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), Options { memory_bytes: 64 << 20, ..Options::default() }).unwrap();
        let layer = Patterned::new(Arc::new(engine.clone()));
        let life = Life::new(&layer, Arc::new(testing::context));
        let ns = Namespace::new("shop", "hosts");
        let (mut session, context) = (Session::default(), life.context());
        let mut at = Access { backend: &engine, session: &mut session, context: &context };
        let hosts = (0..20_i64).map(|id| Doc::from(doc! { "_id": id, "text": "x".repeat(100) })).collect();
        at.insert(&ns, hosts).await.unwrap();
        let (parts, skipped) = (Vec::new(), Vec::new());
        let mut noting = Noting { life: &life, ns, parts, conflicts: 0, broken: None, skipped, ends_at: None };
        change(&mut noting);
        let end = walk(&life, pace, None, &mut noting).await.unwrap();
        let Noting { parts, skipped, .. } = noting;
        engine.close();
        (end, parts, skipped)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn parts_grow_up_to_what_is_allowed() {
        let (end, parts, _) = walked(Pace { first: 2, most: 8, bytes: usize::MAX }, |_| {}).await;
        assert_eq!((end, parts), (WalkEnd::Reached, vec![(0, 2), (2, 4), (6, 8), (14, 6)]));
        let (_, parts, _) = walked(Pace { first: 2, most: 8, bytes: 400 }, |_| {}).await;
        assert_eq!(parts.iter().map(|(_, documents)| *documents).max(), Some(3), "{parts:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_conflict_makes_parts_smaller() {
        let (end, parts, _) = walked(Pace::even(8), |noting| noting.conflicts = 1).await;
        assert_eq!((end, parts), (WalkEnd::Reached, vec![(0, 2), (2, 4), (6, 8), (14, 6)]));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_document_that_cannot_be_worked_on_is_passed() {
        let (end, parts, skipped) = walked(Pace::even(4), |noting| noting.broken = Some(5)).await;
        assert_eq!((end, skipped), (WalkEnd::Reached, vec![5]));
        assert_eq!(parts, [(0, 4), (4, 1), (6, 1), (7, 1), (8, 4), (12, 4), (16, 4)]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_ends_where_the_rule_was_changed() {
        let (end, parts, _) = walked(Pace::even(4), |noting| noting.ends_at = Some(8)).await;
        assert_eq!((end, parts), (WalkEnd::Superseded, vec![(0, 4), (4, 4)]));
    }
}
