//! The bucket as a shape: what each question of [`Shape`] comes to.

use crate::rule::shape::{
    CommandOptions, DirectAccess, Existing, Inserted, LogicalFate, NewDocuments, Place, Rewrite, Shape, Stepped, Stop,
    StoredAccess,
};
use crate::rule::{Needs, Stack};
use crate::shapes::bucket::losses::TAKEN_TIME;
use crate::shapes::bucket::write::open_buckets::{self, OpenBuckets};
use crate::shapes::bucket::write::place::{self, Buckets, NewReading, NewReadings, Placed};
use crate::shapes::bucket::write::single_statement::{SingleStatement, all, failure, is_one_statement, reading};
use crate::shapes::bucket::write::{rewrite, slots};
use crate::shapes::bucket::{Body, Bucket, BucketEntry, Encoded, Key};
use crate::shapes::find;
use crate::shapes::refused::duplicate;
use crate::shapes::with_id;
use document::backend::Answer;
use document::filter::{Details, Filter};
use document::op::{Find, Namespace, SortKey, SortSpec, UpdateOp, WriteError, WriteOp, Written};
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::{Path, key};
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};
use hashbrown::HashMap;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// A bucket, and what this process remembers of those that are open.
#[derive(Clone, Debug)]
pub struct BucketShape {
    pub bucket: Arc<Bucket>,
    open: Arc<OpenBuckets>,
}

impl BucketShape {
    pub fn new(bucket: Arc<Bucket>) -> BucketShape {
        BucketShape { bucket, open: Arc::default() }
    }

    pub fn of(shape: &dyn Shape) -> Option<&BucketShape> {
        (shape as &dyn Any).downcast_ref()
    }

    pub(crate) fn buckets<'b>(&'b self, stored: &'b Namespace, logical: &'b Namespace) -> Buckets<'b> {
        Buckets { bucket: &self.bucket, stored, logical, open: &self.open }
    }

    /// Whether the bucket has the slot that a document would go to.
    async fn has_slot(&self, at: &mut dyn StoredAccess, stored: &Namespace, encoded: &Encoded) -> Result<bool> {
        let BucketEntry::Slot { key: wanted, .. } = &encoded.entry else { return Ok(false) };
        let id = self.bucket.id(&encoded.key, 0);
        for doc in &find(at, Find::matching(stored.clone(), Filter::equality("_id", &id))).await? {
            let same = |entry: &BucketEntry| matches!(entry, BucketEntry::Slot { key, .. } if key == wanted);
            if self.bucket.entries(doc)?.iter().any(same) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What clients see of readings that are stored by now, each with the key of the bucket that it is in.
    fn seen(
        &self,
        readings: &[NewReading],
        refused: &[WriteError],
        keys: &[(usize, Arc<Key>)],
    ) -> Vec<(usize, Doc<'static>)> {
        let keys: HashMap<usize, &Key> = keys.iter().map(|(index, key)| (*index, &**key)).collect();
        let stored = readings.iter().filter(|reading| !refused.iter().any(|failed| failed.index == reading.index));
        let seen = stored.filter_map(|reading| {
            let mut encoded = reading.encoded.clone();
            if let Some(key) = keys.get(&reading.index) {
                encoded.key = Key::clone(key);
            }
            Some((reading.index, self.bucket.seen(std::slice::from_ref(&encoded))?))
        });
        seen.collect()
    }

    /// The statement of one client's statement on a slot; `None` if it is not that.
    fn single(&self, op: &WriteOp, index: usize) -> Option<SingleStatement> {
        let WriteOp::Update(op) = op else { return None };
        op.statements.get(index).and_then(|statement| slots::increment(&self.bucket, statement, index))
    }
}

impl Shape for BucketShape {
    fn is_same(&self, other: &dyn Shape) -> bool {
        BucketShape::of(other).is_some_and(|other| *other.bucket == *self.bucket)
    }

    fn declared_place(&self) -> Option<&Namespace> {
        Some(&self.bucket.into)
    }

    fn needs(&self, stored: &Namespace) -> Needs {
        self.bucket.needs(stored)
    }

    /// Series and time, as the logical documents have them.
    fn order(&self) -> SortSpec {
        ascending(self.bucket.by.iter().map(|series| &*series.field).chain([&*self.bucket.time]))
    }

    /// Series and period, as buckets have them; the index that `apply` makes.
    fn stored_order(&self) -> Option<SortSpec> {
        let bucket = &self.bucket;
        Some(match bucket.packed {
            true => ascending(["_id"]),
            false => ascending(bucket.by.iter().map(|series| &*series.field).chain([bucket.every.name()])),
        })
    }

    /// Null and missing are at one place in an index.
    fn place_in_order(&self, stored: &Doc<'static>) -> Result<Vec<u8>> {
        let at = self.bucket.key_of(stored)?.0;
        let mut bytes = Vec::with_capacity(48);
        for series in &at.series {
            key::encode(series.as_ref().unwrap_or(&Value::Null), &mut bytes);
        }
        key::encode(&Value::DateTime(at.start), &mut bytes);
        Ok(bytes)
    }

    fn derives_id(&self) -> bool {
        self.bucket.derives_id()
    }

    fn with_key(&self, logical: Doc<'static>) -> Doc<'static> {
        let (true, Some(Value::Document(id))) = (self.bucket.derives_id(), logical.get("_id")) else { return logical };
        let mut writer = DocWriter::with_capacity(logical.as_bytes().len() + id.as_bytes().len());
        for (name, value) in logical.iter() {
            writer.append(name.as_str(), &value);
        }
        for (name, value) in id.iter().filter(|(name, _)| !logical.contains(name.as_str())) {
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    }

    fn check(&self, logical: &Doc<'static>) -> Result<Value<'static>> {
        self.bucket.encode(logical).map(|encoded| encoded.id)
    }

    fn as_read(&self, logical: &Doc<'static>) -> Result<Doc<'static>> {
        let encoded = self.bucket.encode(logical)?;
        Ok(self.bucket.logical(&encoded)?.unwrap_or_else(|| logical.clone()))
    }

    fn normal(&self, logical: &Doc<'static>) -> Option<Doc<'static>> {
        self.bucket.in_lower_case(logical)
    }

    /// A slot with the sums of another added.
    fn sum(&self, slot: &Doc<'static>, more: &Doc<'static>) -> Result<Option<Doc<'static>>> {
        let Body::Slots(slots) = &self.bucket.body else { return Ok(None) };
        let mut sums = DocWriter::new();
        for (name, value) in more.iter().filter(|(name, _)| slots.sums.iter().any(|(sum, _)| **sum == *name.as_str())) {
            sums.append(name.as_str(), &value);
        }
        let sums = sums.finish();
        if sums.is_empty() {
            return Ok(Some(slot.clone()));
        }
        let update = Update::parse(&crate::mql::call("$inc", Value::Document(sums)), &[], &mut Names::new())?;
        Ok(Some(match update.apply(slot, &Details::default(), &Env::fixed())? {
            Applied::Changed(after) => after,
            Applied::Unchanged => slot.clone(),
        }))
    }

    fn rewrite(&self, place: &Place, stored: &Doc<'static>, fates: Vec<(usize, LogicalFate)>) -> Result<Rewrite> {
        rewrite::rewrite(&self.bucket, &place.stored, stored, fates)
    }

    fn insert<'a>(
        &'a self,
        at: &'a mut dyn StoredAccess,
        stack: &'a Stack,
        place: &'a Place,
        new: NewDocuments<'a>,
    ) -> Stepped<'a, Inserted> {
        Box::pin(async move {
            let (mut readings, mut refused) = (Vec::with_capacity(new.documents.len()), Vec::new());
            for (index, document) in new.documents {
                match self.bucket.encode(document) {
                    Ok(encoded) => {
                        if new.existing == Existing::Refused && self.has_slot(at, &place.stored, &encoded).await? {
                            let error = duplicate(&stack.logical, &encoded.id);
                            return Err(Stop::Statement { at: *index, error });
                        }
                        readings.push(NewReading { index: *index, encoded });
                    }
                    Err(error) => {
                        refused.push(WriteError { index: *index, error });
                        if new.ordered {
                            break;
                        }
                    }
                }
            }
            let to = self.buckets(&place.stored, &stack.logical);
            let (ordered, are_moved) = (new.ordered, new.are_moved);
            // Slots are validated even then: what one may be called and how many there may be is the validator's.
            let bypass_validation = new.bypass_validation || (are_moved && self.bucket.is_numbered());
            let placed = NewReadings { readings: &readings, ordered, bypass_validation, are_moved };
            let Placed { refused: mut taken, keys } = place::add(at, to, placed).await?;
            let mut seen = Vec::new();
            if are_moved {
                taken.iter_mut().for_each(|failed| failed.error = taken_time());
                seen = self.seen(&readings, &taken, &keys);
            }
            // Ordered, a reading that is taken stands before the one that cannot be stored.
            if !new.ordered || taken.is_empty() {
                taken.extend(refused);
                taken.sort_by_key(|failed| failed.index);
            }
            Ok(Inserted { refused: taken, seen })
        })
    }

    fn hosts(&self, place: &Place, documents: &[Doc<'static>]) -> Vec<u64> {
        let encoded = documents.iter().filter_map(|document| self.bucket.encode(document).ok());
        encoded.map(|encoded| open_buckets::host(&place.stored, &encoded.key)).collect()
    }

    fn forget(&self, host: u64) {
        self.open.learn(host, None);
    }

    fn direct(&self, stack: &Stack, op: &WriteOp, from: usize, in_transaction: bool) -> Range<usize> {
        let is_only = stack.only_place().is_some();
        let nothing = from..from;
        if stack.is_source {
            return nothing;
        }
        match op {
            WriteOp::Insert(insert) => {
                let all = from..insert.documents.len();
                match &self.bucket.body {
                    Body::Slots(_) if is_only => all,
                    // While there are two places, only if no other reading may be it.
                    Body::Readings(_) if insert.documents.len() == 1 && !in_transaction => {
                        let is_direct = is_one_statement(&self.bucket) && (is_only || !self.bucket.derives_id());
                        if is_direct { all } else { nothing }
                    }
                    Body::Slots(_) | Body::Readings(_) => nothing,
                }
            }
            WriteOp::Update(update) if is_only => {
                let mut end = from;
                while end < update.statements.len() && self.single(op, end).is_some() {
                    end += 1;
                }
                from..end
            }
            WriteOp::Update(_) | WriteOp::Delete(_) | WriteOp::FindAndModify(_) => nothing,
        }
    }

    fn single_statement(&self, stack: &Stack, place: &Place, op: &WriteOp, index: usize) -> Option<WriteOp> {
        if stack.is_source || stack.only_place().is_none() {
            return None;
        }
        let single = self.single(op, index)?;
        let CommandOptions { ordered, bypass_validation, .. } = CommandOptions::of(op);
        let update = UpdateOp::of(place.stored.clone(), vec![single.statement]);
        Some(WriteOp::Update(UpdateOp { ordered, bypass_validation, ..update }))
    }

    fn run_direct<'a>(
        &'a self,
        at: &'a mut dyn DirectAccess,
        stack: &'a Stack,
        place: &'a Place,
        op: &'a WriteOp,
        statements: Vec<usize>,
    ) -> Answer<'a, Written> {
        Box::pin(async move {
            let (how, to) = (CommandOptions::of(op), self.buckets(&place.stored, &stack.logical));
            let WriteOp::Insert(insert) = op else {
                let singles = statements.into_iter().filter_map(|index| self.single(op, index)).collect();
                return all(at, to, singles, &how).await;
            };
            let (mut singles, mut refused) = (Vec::new(), Vec::new());
            for index in statements {
                let Some(document) = insert.documents.get(index) else { continue };
                let complete = match self.bucket.derives_id() {
                    true => document.clone(),
                    false => with_id(document, &at.context().env),
                };
                let encoded = match self.bucket.encode(&complete) {
                    Ok(encoded) => encoded,
                    Err(error) => {
                        refused.push(WriteError { index, error });
                        if insert.ordered {
                            break;
                        }
                        continue;
                    }
                };
                if self.bucket.is_numbered() {
                    return reading(at, to, encoded, &how).await;
                }
                let statement = self.bucket.add(&encoded.key, 0, &[encoded.entry])?;
                singles.push(SingleStatement { index, statement, id: Value::Missing });
            }
            // In a client's transaction what fails, fails it.
            if let Some(first) = refused.first().filter(|_| at.is_in_transaction()) {
                return Ok(failure(first.index, first.error.clone()));
            }
            let mut written = all(at, to, singles, &how).await?;
            // An insert says nothing of the bucket that it made.
            written.upserted.clear();
            if !insert.ordered || written.errors.is_empty() {
                written.errors.extend(refused);
                written.errors.sort_by_key(|failed| failed.index);
            }
            Ok(written)
        })
    }
}

/// Why a moved reading has no place: clients have stored another one meanwhile, or there were two.
fn taken_time() -> Error {
    Error::new(Code::DuplicateKey, TAKEN_TIME)
}

fn ascending<'n>(fields: impl IntoIterator<Item = &'n str>) -> SortSpec {
    let key = |field: &str| SortKey { path: Path::new(field), descending: false };
    SortSpec { keys: fields.into_iter().map(key).collect() }
}
