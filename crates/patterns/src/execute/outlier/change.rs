//! What an update makes of one stored document and of its overflow. Where nothing overflows, the whole array is embedded and the
//! update is applied to it; else operators on the array are applied to each part by itself.

use crate::active::CollectionRules;
use crate::execute::attempt::Attempt;
use crate::execute::outlier::owners::{self, by_index, of_owner};
use crate::execute::outlier::rows::RowChanges;
use crate::execute::outlier::{derive, needs_all_items};
use crate::rule::Outlier;
use crate::shapes::outlier::array_update::ArrayUpdate;
use crate::shapes::outlier::filter::{contains, one_of};
use crate::shapes::outlier::stored::index_of;
use document::filter::{Details, Filter};
use document::op::{Capture, Delete, DeleteStatement, Find, Insert, ReadOp, WriteOp};
use document::update::{Applied, Update};
use document::value::{Path, order};
use document::{Doc, Result, Value};
use std::sync::Arc;

/// What is stored instead of a host; its overflow is written already.
pub(super) struct HostChange {
    pub(super) after: Doc<'static>,
    /// Whether it counts as modified: MongoDB counts a replacement without `_id` by the same document, too.
    is_modified: bool,
}

impl HostChange {
    /// Whether it is modified, and the stored document does not show it.
    pub(super) fn is_hidden(&self, before: &Doc<'static>) -> bool {
        self.is_modified && self.after.as_bytes() == before.as_bytes()
    }
}

/// So many documents of the overflow are deleted by one statement.
const DELETED_TOGETHER: usize = 10_000;

pub(super) async fn of(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    stored: &Doc<'static>,
    filter: &Filter,
    update: &Update,
    rows: &mut RowChanges,
) -> Result<HostChange> {
    let env = attempt.context.env.clone();
    let mut details = Details::default();
    filter.matches_with(stored, &env, &mut details)?;
    // Taken apart for the arrays that have overflow: what is left is applied to what is embedded.
    let (mut left, mut parts) = (Some(update.clone()), Vec::new());
    for outlier in &local.outliers {
        let has_overflow = outlier.read(stored).has_overflow;
        let part = match (&left, has_overflow && !update.is_replacement()) {
            (Some(update), true) => {
                let mut part = ArrayUpdate::of(outlier, update)?;
                left = part.embedded.take();
                Some(part)
            }
            (None, true) => Some(ArrayUpdate::default()),
            (_, false) => None,
        };
        if let Some(part) = &part {
            let embedded = outlier.read(stored).items.map_or(0, |items| items.len());
            if part.place.is_some_and(|place| place >= embedded) {
                return Err(needs_all_items(outlier, "an item past the embedded ones cannot be named in"));
            }
            if part.positional && details.array_index.is_none() {
                return Err(needs_all_items(outlier, "`$` stands for an embedded item of"));
            }
        }
        parts.push(part);
    }
    let applied = left.map(|update| update.apply(stored, &details, &env)).transpose()?;
    let (mut after, mut is_modified) = match applied {
        Some(Applied::Changed(after)) => (after, true),
        Some(Applied::Unchanged) | None => (stored.clone(), false),
    };
    for (outlier, part) in local.outliers.iter().zip(parts) {
        let mut array = HostArray { local, outlier, stored, rows, overflow_changed: false };
        after = array.changed(attempt, after, update, part).await?;
        is_modified |= array.overflow_changed;
    }
    if !is_modified && says_the_same(local, stored, &after) {
        // Fields that a version has moved stand where they came to be.
        after = stored.clone();
    }
    rows.host(Some(stored), Some(&after));
    Ok(HostChange { after, is_modified })
}

/// One array of the host that is written.
pub(super) struct HostArray<'a> {
    pub(super) local: &'a Arc<CollectionRules>,
    pub(super) outlier: &'a Arc<Outlier>,
    pub(super) stored: &'a Doc<'static>,
    pub(super) rows: &'a mut RowChanges,
    pub(super) overflow_changed: bool,
}

impl HostArray<'_> {
    pub(super) fn owner(&self) -> Value<'static> {
        self.stored.get("_id").unwrap_or(Value::Missing)
    }

    /// The document with this array and its overflow as they become; `after` is what the update makes of what is embedded.
    async fn changed(
        &mut self,
        attempt: &mut Attempt<'_>,
        after: Doc<'static>,
        update: &Update,
        part: Option<ArrayUpdate>,
    ) -> Result<Doc<'static>> {
        let outlier = self.outlier.clone();
        let before = outlier.read(self.stored);
        let is_same = same_array(&outlier, self.stored, &after);
        let holds_excerpt = update.is_replacement() && outlier.read(&after).has_overflow;
        if holds_excerpt && !is_same {
            return Err(needs_all_items(&outlier, "a replacement that carries the flag holds an excerpt, and changes")
                .with_hint(format!("leave '{}' as it was read, or leave '{}' out", outlier.field, outlier.flag)));
        }
        if !before.has_overflow {
            return self.divided(attempt, &after).await;
        }
        let overflow = match before.count {
            Some(count) => count.saturating_sub(before.items.as_ref().map_or(0, Vec::len) as u64),
            None => owners::count(attempt, &outlier, &self.owner()).await?,
        };
        let is_operators = matches!(update.source, Value::Document(_)) && !update.is_replacement();
        let Some(part) = part.filter(|part| is_operators && !part.replaces) else {
            let is_whole = is_operators || update.is_replacement();
            return match (is_same && (holds_excerpt || !is_whole || update.whole), is_whole && !update.whole) {
                (true, _) => Ok(outlier.with(&after, before.items.as_deref(), overflow)),
                (false, true) => {
                    self.delete(attempt, of_owner(&outlier, &self.owner())).await?;
                    self.divided(attempt, &after).await
                }
                (false, false) => Err(needs_all_items(&outlier, "an update that computes documents cannot change")),
            };
        };
        let items = outlier.read(&after).items.unwrap_or_default();
        self.in_parts(attempt, after, items, overflow, part).await
    }

    /// A document whose whole array is embedded.
    async fn divided(&mut self, attempt: &mut Attempt<'_>, after: &Doc<'static>) -> Result<Doc<'static>> {
        let (stored, items) = self.outlier.divided(after)?;
        self.overflow_changed |= !items.is_empty();
        spill(attempt, self.local, self.outlier, &self.owner(), &items, self.rows).await?;
        Ok(stored)
    }

    /// `items` are embedded, `overflow` more are not.
    async fn in_parts(
        &mut self,
        attempt: &mut Attempt<'_>,
        after: Doc<'static>,
        mut items: Vec<Value<'static>>,
        mut overflow: u64,
        part: ArrayUpdate,
    ) -> Result<Doc<'static>> {
        let outlier = self.outlier.clone();
        let changes_embedded = part.changes_embedded();
        if part.concerns_items() {
            overflow = overflow.saturating_sub(self.each_item(attempt, &items, &part).await?);
        }
        let is_first_outside = outlier.read(self.stored).items.is_none_or(|items| items.is_empty());
        if (part.pops_last || part.pops_first && is_first_outside)
            && let Some(popped) = self.at_end(attempt, part.pops_last, 1).await?.first()
        {
            self.delete_all(attempt, std::slice::from_ref(popped)).await?;
            overflow = overflow.saturating_sub(1);
        }
        if outlier.unique && changes_embedded {
            self.refuse_twice(attempt, &items).await?;
        }
        let new = self.new_items(attempt, &items, part).await?;
        if !new.is_empty() {
            let last = self.at_end(attempt, true, 1).await?;
            let next = last.first().map_or(0, |last| index_of(last) + 1).max(items.len() as u64);
            let count = new.len() as u64;
            let numbered: Vec<(u64, Value<'static>)> = (next..).zip(new).collect();
            spill(attempt, self.local, &outlier, &self.owner(), &numbered, self.rows).await?;
            self.overflow_changed = true;
            overflow += count;
        }
        let fitting = outlier.embedded(&items);
        if changes_embedded && fitting < items.len() {
            // They have grown past `keep_bytes`; whatever overflows already stands behind them.
            let grown: Vec<(u64, Value<'static>)> = (fitting as u64..).zip(items.split_off(fitting)).collect();
            spill(attempt, self.local, &outlier, &self.owner(), &grown, self.rows).await?;
            self.overflow_changed = true;
            overflow += grown.len() as u64;
        }
        if overflow > 0 && items.len() < outlier.keep && outlier.has_limit() {
            overflow = overflow.saturating_sub(self.brought_back(attempt, &mut items).await?);
        }
        Ok(outlier.with(&after, Some(&items), overflow))
    }

    /// What goes behind the last item.
    async fn new_items(
        &mut self,
        attempt: &mut Attempt<'_>,
        items: &[Value<'static>],
        part: ArrayUpdate,
    ) -> Result<Vec<Value<'static>>> {
        let (outlier, mut new) = (self.outlier.clone(), part.pushed);
        if !part.added.is_empty() {
            let filter = of_owner(&outlier, &self.owner());
            let filter = filter.and(Filter::from_node(one_of(&outlier, part.added.clone())));
            let find = Find::matching(outlier.overflow.clone(), filter);
            let found = attempt.read(&self.local.rule_of(&outlier), ReadOp::Find(find)).await?;
            let known: Vec<Value<'static>> = found.iter().filter_map(|document| document.get(&outlier.item)).collect();
            for item in part.added {
                if !contains(items, &item) && !contains(&known, &item) && !contains(&new, &item) {
                    new.push(item);
                }
            }
        }
        if outlier.unique
            && let Some(item) = new.iter().find(|item| contains(items, item))
        {
            return Err(outlier.twice(&self.owner(), item));
        }
        Ok(new)
    }

    /// Embeds the first items of the overflow while there is room; returns how many.
    async fn brought_back(&mut self, attempt: &mut Attempt<'_>, items: &mut Vec<Value<'static>>) -> Result<u64> {
        let outlier = self.outlier.clone();
        let room = outlier.keep.saturating_sub(items.len()) as u64;
        let first = self.at_end(attempt, false, room).await?;
        let mut taken = 0;
        for document in &first {
            items.push(document.get(&outlier.item).unwrap_or(Value::Null));
            if outlier.embedded(items) < items.len() {
                items.pop();
                break;
            }
            taken += 1;
        }
        let taken = first.get(..taken).unwrap_or_default();
        self.delete_all(attempt, taken).await?;
        Ok(taken.len() as u64)
    }

    /// The first or the last documents of the overflow, from that end.
    async fn at_end(&self, attempt: &mut Attempt<'_>, last: bool, limit: u64) -> Result<Vec<Doc<'static>>> {
        let filter = of_owner(self.outlier, &self.owner());
        let find = Find {
            sort: Some(by_index(last)),
            limit: Some(limit),
            ..Find::matching(self.outlier.overflow.clone(), filter)
        };
        attempt.read(&self.local.rule_of(self.outlier), ReadOp::Find(find)).await
    }

    pub(super) async fn delete_all(&mut self, attempt: &mut Attempt<'_>, documents: &[Doc<'static>]) -> Result<()> {
        for some in documents.chunks(DELETED_TOGETHER) {
            let ids = some.iter().filter_map(|document| document.get("_id")).collect();
            self.delete(attempt, Filter::among("_id", ids)).await?;
        }
        Ok(())
    }

    async fn delete(&mut self, attempt: &mut Attempt<'_>, filter: Filter) -> Result<()> {
        self.overflow_changed = true;
        let statements = vec![DeleteStatement::all(filter)];
        let op = WriteOp::Delete(Delete::of(self.outlier.overflow.clone(), statements));
        let capture = if self.rows.is_empty() { Capture::Nothing } else { Capture::Everything };
        let written = derive(attempt, self.local, self.outlier, &op, &capture).await?;
        for change in &written.changes {
            self.rows.overflow(self.outlier, change.before.as_ref(), None);
        }
        Ok(())
    }
}

/// Puts items into the overflow of a host.
pub(super) async fn spill(
    attempt: &mut Attempt<'_>,
    local: &CollectionRules,
    outlier: &Outlier,
    owner: &Value<'_>,
    items: &[(u64, Value<'static>)],
    rows: &mut RowChanges,
) -> Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let env = attempt.context.env.clone();
    let document = |(index, item): &(u64, Value<'static>)| outlier.overflow_document(owner, *index, item, &env);
    let documents: Vec<Doc<'static>> = items.iter().map(document).collect();
    if !rows.is_empty() {
        documents.iter().for_each(|document| rows.overflow(outlier, None, Some(document)));
    }
    let op = WriteOp::Insert(Insert::of(outlier.overflow.clone(), documents));
    derive(attempt, local, outlier, &op, &Capture::Nothing).await.map(drop)
}

/// Whether the array is in both as in the other.
fn same_array(outlier: &Outlier, one: &Doc<'static>, other: &Doc<'static>) -> bool {
    let array = |doc: &Doc<'static>| doc.get(&outlier.field).unwrap_or(Value::Missing);
    order::equal(&array(one), &array(other))
}

/// Whether arrays, flags and counts are in both as in the other.
fn says_the_same(local: &CollectionRules, one: &Doc<'static>, other: &Doc<'static>) -> bool {
    let value = |doc: &Doc<'static>, path: &Path| doc.get(path.first()).unwrap_or(Value::Missing);
    let watched: Vec<Path> = local.outliers.iter().flat_map(|outlier| outlier.watched()).collect();
    watched.iter().all(|path| value(one, path) == value(other, path))
}
