//! The documents that a client's statement is about: candidates by what can be asked of newest documents, and then what the client sees
//! of them.

use crate::execute::client_version::statement::{Place, Work};
use crate::execute::outlier::older;
use document::backend::BatchLimit;
use document::filter::{Details, Filter};
use document::op::{Find, Hint, Modify, ReadOp, SortSpec};
use document::pipeline::sort_spec;
use document::{Code, Doc, Error, Result, Value};
use std::cmp::Ordering;

/// How many newest documents are looked at together.
const BATCH: BatchLimit = BatchLimit { documents: 500, bytes: 16 << 20 };

/// A document that matches.
pub(super) struct Found {
    pub(super) newest: Doc<'static>,
    pub(super) seen: Doc<'static>,
    pub(super) details: Details,
}

impl Found {
    pub(super) fn id(&self) -> Value<'static> {
        self.newest.get("_id").unwrap_or(Value::Missing)
    }
}

/// What is looked for.
pub(super) struct Search<'s> {
    filter: &'s Filter,
    sort: Option<&'s SortSpec>,
    hint: Option<&'s Hint>,
}

impl<'s> Search<'s> {
    pub(super) fn of(work: &Work<'s>) -> Search<'s> {
        match work {
            Work::Update { statement, .. } => {
                Search { filter: &statement.filter, sort: None, hint: statement.hint.as_ref() }
            }
            Work::Delete { statement } => {
                Search { filter: &statement.filter, sort: None, hint: statement.hint.as_ref() }
            }
            Work::Modify(op) => Search { filter: &op.filter, sort: op.sort.as_ref(), hint: op.hint.as_ref() },
        }
    }

    /// The `_id`s of all.
    pub(super) async fn ids(&self, place: &mut Place<'_>) -> Result<Vec<Value<'static>>> {
        let mut ids = Vec::new();
        self.each(place, Filter::all(), None, &mut |found| {
            ids.push(found.id());
            true
        })
        .await?;
        Ok(ids)
    }

    /// Those among these.
    pub(super) async fn among(&self, place: &mut Place<'_>, ids: &[Value<'static>]) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        self.each(place, Filter::among("_id", ids.to_vec()), None, &mut |found| {
            all.push(found);
            true
        })
        .await?;
        Ok(all)
    }

    /// The first one, by the order if there is one.
    pub(super) async fn first(&self, place: &mut Place<'_>) -> Result<Option<Found>> {
        let mut best: Option<Found> = None;
        if place.client.is_same_order(self.sort) {
            self.each(place, Filter::all(), self.sort, &mut |found| {
                best = Some(found);
                false
            })
            .await?;
            return Ok(best);
        }
        let Some(sort) = self.sort else { return Ok(None) };
        let mut failed = None;
        self.each(place, Filter::all(), None, &mut |found| {
            match is_before(sort, &found, best.as_ref()) {
                Ok(true) => best = Some(found),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        })
        .await?;
        failed.map_or(Ok(best), Err)
    }

    /// Calls `take` with each match, as long as that says so.
    async fn each(
        &self,
        place: &mut Place<'_>,
        only: Filter,
        sort: Option<&SortSpec>,
        take: &mut (dyn FnMut(Found) -> bool + Send),
    ) -> Result<()> {
        let client = place.client;
        let context = client.context;
        let own = older::filter(client.executor, place.session, context, &client.arrays, self.filter).await?;
        let filter = client.lens.seen_filter(&own, client.version);
        if filter.left.as_ref().is_some_and(|left| left.collation.is_some()) {
            let message = "a collation does not go together with fields that versions of documents have changed";
            return Err(Error::new(Code::NotImplemented, message));
        }
        let find = Find {
            sort: sort.cloned(),
            hint: self.hint.cloned().filter(|_| only.is_all()),
            ..Find::matching(place.ns.clone(), only.and(filter.asked))
        };
        let env = &context.env;
        let mut cursor = client.backend.read(place.session, context, ReadOp::Find(find)).await?;
        loop {
            let batch = cursor.next(place.session, context, BATCH).await?;
            for newest in batch.documents {
                (env.interrupt)()?;
                let seen = client.lens.seen(&newest, client.version, env)?;
                if let Some(left) = &filter.left
                    && !left.matches(&seen, env)?
                {
                    continue;
                }
                let mut details = Details::default();
                if !self.filter.has_text() {
                    self.filter.matches_with(&seen, env, &mut details)?;
                }
                if !take(Found { newest, seen, details }) {
                    return Ok(());
                }
            }
            if batch.exhausted {
                return Ok(());
            }
        }
    }
}

fn is_before(by: &SortSpec, found: &Found, best: Option<&Found>) -> Result<bool> {
    let Some(best) = best else { return Ok(true) };
    let (new, old) = (sort_spec::key(by, &found.seen)?, sort_spec::key(by, &best.seen)?);
    Ok(sort_spec::compare(by, &new, &old) == Ordering::Less)
}

/// Whether a statement makes a document where it finds none.
pub(super) fn upserts(work: &Work<'_>) -> bool {
    match work {
        Work::Update { statement, .. } => statement.upsert,
        Work::Modify(op) => matches!(op.action, Modify::Update { upsert: true, .. }),
        Work::Delete { .. } => false,
    }
}
