//! Running a plan: the documents that it finds, one after the other, as a snapshot shows them.
//!
//! A scan holds an iterator only while it is used: after [`Scan::pause`] it goes on behind the last key it saw, in
//! whatever state the data is then.

use super::access::plan::{IndexScan, Plan, Source};
use super::access::ranges::KeyRange;
use super::cursor::Cursor;
use super::merged_scans::MergedScans;
use super::text_scan::TextPlace;
use crate::catalog::Collection;
use crate::store::Space;
use crate::store::keys::{DOCUMENTS, EntryParts, KEPT_FIELDS, PREFIX, document, document_key_of};
use crate::transaction::snapshot::ReadSnapshot;
use bytes::Bytes;
use document::filter::{Details, Filter};
use document::op::SortSpec;
use document::pipeline::sort_spec;
use document::value::key;
use document::{Code, Doc, DocWriter, Env, Error, Result};
use hashbrown::HashSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// A document that a scan found, and the key it is stored under.
#[derive(Clone, Debug)]
pub struct Row {
    pub key: Bytes,
    /// Empty if nobody wanted to see it and it was not read. It carries the score of a text search if that was asked for.
    pub doc: Doc<'static>,
    pub details: Details,
}

impl Row {
    /// Leaves the key by which a row was found, where that was not an entry of an index of its own.
    fn key_alone(&mut self, source: &Source) {
        let by_id = match source {
            Source::Id { .. } => true,
            Source::Index(scan) if scan.index().id == DOCUMENTS => true,
            Source::Index(_) | Source::Union(_) | Source::Merge(_) => return,
            // As in MongoDB, what a search found has no key.
            Source::Text(_) => false,
            Source::Collection { .. } | Source::Nothing => false,
        };
        let mut writer = DocWriter::new();
        if by_id && let Some(id) = self.doc.get("_id") {
            writer.append("_id", &id);
        }
        self.doc = writer.finish();
    }
}

/// What is wanted of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    Documents,
    /// How many there are: documents are read only to test them.
    Count,
    /// The keys of the index by which they were found, in place of the documents: `returnKey`.
    Keys,
}

/// What a scan did, for `explain` and for judging plans.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Entries looked at.
    pub keys: u64,
    /// Ranges begun.
    pub seeks: u64,
    /// Documents read.
    pub documents: u64,
    /// Entries that passed their own tests and were of a new document.
    pub entries: u64,
    pub repeated: u64,
    pub rows: u64,
}

impl Counters {
    pub fn works(&self) -> u64 {
        self.keys + self.documents
    }

    fn add(&mut self, other: &Counters) {
        self.keys += other.keys;
        self.seeks += other.seeks;
        self.documents += other.documents;
        self.entries += other.entries;
        self.repeated += other.repeated;
        self.rows += other.rows;
    }
}

pub(super) type SeenKeys = HashSet<Bytes, foldhash::fast::FixedState>;

const BETWEEN_CHECKS: u64 = 256;

pub struct Scan {
    plan: Arc<Plan>,
    space: Option<Space>,
    pub(super) env: Env,
    pub(super) want: Want,
    /// Set if matches are to tell which array element matched: then every document is tested with this filter.
    pub(super) details: Option<Filter>,
    pub(super) place: Place,
    pub(super) counters: Counters,
    unchecked: u64,
    /// It was paused: others may have written meanwhile.
    resumes: bool,
    /// The index has got entries of arrays that the plan does not know of: entries prove nothing, and a document may
    /// come again.
    careful: bool,
}

/// How far a scan has come.
pub(super) enum Place {
    Done,
    Id,
    Ranges(Box<Cursor>),
    Text(Box<TextPlace>),
    Union { scans: Vec<Scan>, at: usize, seen: SeenKeys },
    Merge(Box<MergedScans>),
}

impl Scan {
    pub fn new(plan: Arc<Plan>, collection: Option<&Collection>, env: &Env, want: Want) -> Result<Scan> {
        let space = match collection {
            Some(collection) => Some(collection.space()?.clone()),
            None => None,
        };
        let place = match &plan.source {
            Source::Nothing => Place::Done,
            Source::Id { .. } => Place::Id,
            Source::Collection { .. } => Place::Ranges(Box::new(Cursor::new(false))),
            Source::Index(scan) => Place::Ranges(Box::new(Cursor::new(scan.may_repeat()))),
            Source::Text(scan) => Place::Text(Box::new(TextPlace::new(scan))),
            Source::Union(plans) => {
                let scan = |plan: &Plan| Scan::new(Arc::new(plan.clone()), collection, env, want);
                Place::Union { scans: plans.iter().map(scan).collect::<Result<_>>()?, at: 0, seen: SeenKeys::default() }
            }
            Source::Merge(_) if want == Want::Keys => {
                return Err(Error::not_implemented("returnKey with an order that several indexes give together"));
            }
            Source::Merge(merged) => Place::Merge(Box::new(MergedScans::new(merged, collection, env)?)),
        };
        Ok(Scan {
            plan,
            space,
            env: env.clone(),
            want,
            details: None,
            place,
            counters: Counters::default(),
            unchecked: 0,
            resumes: false,
            careful: false,
        })
    }

    /// Tests every document with `filter`, to learn which array element matched.
    pub fn with_details(mut self, filter: &Filter) -> Scan {
        self.details = Some(filter.clone());
        self
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// From here on, what is wanted of each row: rows that are skipped need no document.
    pub fn want(&mut self, want: Want) {
        self.want = want;
        if let Place::Union { scans, .. } = &mut self.place {
            scans.iter_mut().for_each(|scan| scan.want(want));
        }
    }

    /// What was done so far; for a union, by all its parts.
    pub fn counters(&self) -> Counters {
        let mut sum = self.counters.clone();
        self.parts().for_each(|scan| sum.add(&scan.counters()));
        sum.rows = self.counters.rows;
        sum
    }

    /// The parts of a union.
    pub fn parts(&self) -> impl Iterator<Item = &Scan> {
        let (some, merged) = match &self.place {
            Place::Union { scans, .. } => (scans.as_slice(), None),
            Place::Merge(merged) => (&[][..], Some(merged.scans())),
            _ => (&[][..], None),
        };
        some.iter().chain(merged.into_iter().flatten())
    }

    /// Whether everything there is was found.
    pub fn has_ended(&self) -> bool {
        match &self.place {
            Place::Done => true,
            Place::Union { scans, at, .. } => *at >= scans.len(),
            Place::Merge(merged) => merged.has_ended(),
            Place::Text(place) => place.has_ended(),
            Place::Id | Place::Ranges(_) => false,
        }
    }

    /// Lets go of the snapshot.
    pub fn pause(&mut self) {
        self.resumes = true;
        match &mut self.place {
            Place::Ranges(cursor) => cursor.open = None,
            Place::Text(place) => place.pause(),
            Place::Union { scans, .. } => scans.iter_mut().for_each(Scan::pause),
            Place::Merge(merged) => merged.pause(),
            Place::Done | Place::Id => {}
        }
    }

    /// After a pause: whether the index is still what the plan took it for.
    fn look_at_marks(&mut self, scan: &IndexScan) {
        let index = scan.index();
        self.careful |= scan.candidate.multikey.iter().enumerate().any(|(at, known)| index.multikey(at) != *known);
        if self.careful
            && let Place::Ranges(cursor) = &mut self.place
        {
            cursor.seen.get_or_insert_default();
        }
    }

    pub fn next(&mut self, snapshot: &ReadSnapshot) -> Result<Option<Row>> {
        let plan = self.plan.clone();
        if std::mem::take(&mut self.resumes)
            && let Source::Index(scan) = &plan.source
        {
            self.look_at_marks(scan);
        }
        let mut row = match &plan.source {
            Source::Nothing => None,
            Source::Id { key, .. } => self.next_by_id(snapshot, key)?,
            Source::Collection { reverse, ranges } => self.next_document(snapshot, ranges, *reverse)?,
            Source::Index(scan) if scan.index().id == DOCUMENTS => {
                self.next_document(snapshot, &scan.ranges.ranges, scan.reverse)?
            }
            Source::Index(scan) => self.next_entry(snapshot, scan)?,
            Source::Text(scan) => self.next_found(snapshot, scan)?,
            Source::Union(_) => self.next_of_union(snapshot)?,
            Source::Merge(merged) => self.next_merged(snapshot, merged)?,
        };
        match &mut row {
            Some(row) => {
                self.counters.rows += 1;
                if self.want == Want::Keys {
                    row.key_alone(&plan.source);
                }
            }
            None => self.place = finished(std::mem::replace(&mut self.place, Place::Done)),
        }
        Ok(row)
    }

    fn next_by_id(&mut self, snapshot: &ReadSnapshot, key: &Bytes) -> Result<Option<Row>> {
        if !matches!(self.place, Place::Id) {
            return Ok(None);
        }
        self.place = Place::Done;
        self.counters.keys += 1;
        let Some(value) = snapshot.get(self.space()?, key)? else { return Ok(None) };
        self.counters.documents += 1;
        self.counters.entries += 1;
        self.judge(key.clone(), document(value)?, None)
    }

    /// The next document, for callers that do not need its key.
    pub fn next_doc(&mut self, snapshot: &ReadSnapshot) -> Result<Option<Doc<'static>>> {
        let plain = self.details.is_none() && self.plan.residual.is_none();
        if !plain || self.want != Want::Documents {
            return Ok(self.next(snapshot)?.map(|row| row.doc));
        }
        let (ranges, reverse) = match &self.plan.source {
            Source::Collection { reverse, ranges } => (&**ranges, *reverse),
            Source::Index(scan) if scan.index().id == DOCUMENTS => (&*scan.ranges.ranges, scan.reverse),
            _ => return Ok(self.next(snapshot)?.map(|row| row.doc)),
        };
        // The same as `next_document`, without what it does for each row and is not needed here.
        self.unchecked += 1;
        if self.unchecked.is_multiple_of(BETWEEN_CHECKS) {
            (self.env.interrupt)()?;
        }
        let (Place::Ranges(cursor), Some(space)) = (&mut self.place, &self.space) else { return Ok(None) };
        let Some((key, value)) = cursor.next(ranges, reverse, snapshot, space, &mut self.counters.seeks)? else {
            self.place = Place::Done;
            return Ok(None);
        };
        cursor.last = Some(key);
        self.counters.keys += 1;
        self.counters.documents += 1;
        self.counters.entries += 1;
        self.counters.rows += 1;
        document(value).map(Some)
    }

    fn next_document(&mut self, snapshot: &ReadSnapshot, ranges: &[KeyRange], reverse: bool) -> Result<Option<Row>> {
        loop {
            self.check_interrupt()?;
            let Some((key, value)) = self.advance(snapshot, ranges, reverse)? else { return Ok(None) };
            self.counters.documents += 1;
            self.counters.entries += 1;
            if let Some(row) = self.judge(key, document(value)?, None)? {
                return Ok(Some(row));
            }
        }
    }

    fn next_entry(&mut self, snapshot: &ReadSnapshot, scan: &IndexScan) -> Result<Option<Row>> {
        loop {
            if let Place::Ranges(cursor) = &mut self.place
                && let Some(row) = cursor.gathered.pop_front()
            {
                return Ok(Some(row));
            }
            self.check_interrupt()?;
            let Some((key, value)) = self.advance(snapshot, &scan.ranges.ranges, scan.reverse)? else {
                return Ok(None);
            };
            let entry = EntryParts::parse(&key, &value).ok_or_else(torn)?;
            if let (true, Some(order)) = (entry.inexact, &scan.order) {
                self.gather(snapshot, scan, order, (key, value))?;
            } else if let Some(row) = self.row_of(snapshot, scan, &entry)? {
                return Ok(Some(row));
            }
        }
    }

    /// The row of an entry, if it passes.
    fn row_of(&mut self, snapshot: &ReadSnapshot, scan: &IndexScan, entry: &EntryParts<'_>) -> Result<Option<Row>> {
        if !entry.inexact && !passes(scan, entry, &self.env)? {
            return Ok(None);
        }
        let document_key = document_key_of(entry.id);
        if let Place::Ranges(cursor) = &mut self.place
            && let Some(seen) = &mut cursor.seen
            && !seen.insert(document_key.clone())
        {
            self.counters.repeated += 1;
            return Ok(None);
        }
        self.counters.entries += 1;
        let exact = !entry.inexact && !scan.ranges.inexact && !self.careful;
        if exact && self.want != Want::Keys && self.plan.residual.is_none() && self.details.is_none() {
            if self.want == Want::Count {
                return Ok(Some(Row { key: document_key, doc: Doc::empty(), details: Details::default() }));
            }
            if let Some(doc) = scan.covering.as_ref().and_then(|covering| covering.document(entry)) {
                return Ok(Some(Row { key: document_key, doc, details: Details::default() }));
            }
        }
        // An entry without its document would be a fault of the writer; a reader leaves it out.
        let Some(value) = snapshot.get(self.space()?, &document_key)? else { return Ok(None) };
        self.counters.documents += 1;
        let whole = if exact { None } else { scan.filter.as_ref() };
        let mut row = self.judge(document_key, document(value)?, whole)?;
        if let (Want::Keys, Some(row)) = (self.want, &mut row) {
            row.doc = key_of(scan, entry).ok_or_else(|| Error::not_implemented("returnKey with long index keys"))?;
        }
        Ok(row)
    }

    /// Reads all entries that were cut to the same bytes: only their documents say in which order they belong.
    fn gather(
        &mut self,
        snapshot: &ReadSnapshot,
        scan: &IndexScan,
        order: &SortSpec,
        mut current: (Bytes, Bytes),
    ) -> Result<()> {
        let kept = current.0.slice(..current.0.len().min(PREFIX + KEPT_FIELDS));
        let mut rows = Vec::new();
        let ahead = loop {
            let entry = EntryParts::parse(&current.0, &current.1).ok_or_else(torn)?;
            if !entry.inexact || !current.0.starts_with(&kept) {
                break Some(current);
            }
            if let Some(row) = self.row_of(snapshot, scan, &entry)? {
                let key: Vec<_> = sort_spec::key(order, &row.doc)?.into_iter().collect();
                rows.push((key, row));
            }
            self.check_interrupt()?;
            match self.advance(snapshot, &scan.ranges.ranges, scan.reverse)? {
                Some(next) => current = next,
                None => break None,
            }
        };
        rows.sort_by(|(a, _), (b, _)| sort_spec::compare(order, a, b));
        if let Place::Ranges(cursor) = &mut self.place {
            cursor.ahead = ahead;
            cursor.gathered = rows.into_iter().map(|(_, row)| row).collect();
        }
        Ok(())
    }

    fn next_of_union(&mut self, snapshot: &ReadSnapshot) -> Result<Option<Row>> {
        let Place::Union { scans, at, seen } = &mut self.place else { return Ok(None) };
        while let Some(scan) = scans.get_mut(*at) {
            while let Some(mut row) = scan.next(snapshot)? {
                if !seen.insert(row.key.clone()) {
                    self.counters.repeated += 1;
                    continue;
                }
                if let Some(filter) = &self.details
                    && !filter.matches_with(&row.doc, &self.env, &mut row.details)?
                {
                    continue;
                }
                return Ok(Some(row));
            }
            *at += 1;
        }
        Ok(None)
    }

    fn advance(
        &mut self,
        snapshot: &ReadSnapshot,
        ranges: &[KeyRange],
        reverse: bool,
    ) -> Result<Option<(Bytes, Bytes)>> {
        let Place::Ranges(cursor) = &mut self.place else { return Ok(None) };
        let Some(space) = &self.space else { return Ok(None) };
        let found = cursor.next(ranges, reverse, snapshot, space, &mut self.counters.seeks)?;
        if let Some((key, _)) = &found {
            self.counters.keys += 1;
            cursor.last = Some(key.clone());
        }
        Ok(found)
    }

    /// The row, if the document passes what the plan left to test; `whole` is tested instead if given.
    pub(super) fn judge(&self, key: Bytes, doc: Doc<'static>, whole: Option<&Filter>) -> Result<Option<Row>> {
        let mut details = Details::default();
        let passes = match (&self.details, whole, &self.plan.residual) {
            (Some(filter), ..) => filter.matches_with(&doc, &self.env, &mut details)?,
            (None, Some(filter), _) => filter.matches(&doc, &self.env)?,
            (None, None, Some(residual)) => residual.matches(&doc.borrow(), &self.env, None)?,
            (None, None, None) => true,
        };
        Ok(passes.then_some(Row { key, doc, details }))
    }

    pub(super) fn space(&self) -> Result<&Space> {
        self.space.as_ref().ok_or_else(|| Error::new(Code::InternalError, "a plan without a collection"))
    }

    pub(super) fn check_interrupt(&mut self) -> Result<()> {
        self.unchecked += 1;
        if self.unchecked.is_multiple_of(BETWEEN_CHECKS) {
            (self.env.interrupt)()?;
        }
        Ok(())
    }
}

/// What is left of a place when nothing more comes: the parts of a union keep their counts.
fn finished(place: Place) -> Place {
    match place {
        Place::Union { scans, .. } => Place::Union { at: scans.len(), scans, seen: SeenKeys::default() },
        Place::Merge(merged) => Place::Merge(merged),
        Place::Text(place) => Place::Text(Box::new(place.finished())),
        _ => Place::Done,
    }
}

/// The entry as a document: each key's path with its value. Returns `None` if it was cut.
fn key_of(scan: &IndexScan, entry: &EntryParts<'_>) -> Option<Doc<'static>> {
    let keys = &scan.index().keys;
    let values = entry.values(keys.iter().map(|key| key.descending))?;
    let mut writer = DocWriter::new();
    for (key, value) in keys.iter().zip(&values) {
        writer.append(&key.path.dotted(), value);
    }
    Some(writer.finish())
}

pub(super) fn torn() -> Error {
    Error::new(Code::InternalError, "an index entry cannot be read")
}

/// Whether an entry passes what is said about the keys behind the range, and the tests on its values.
fn passes(scan: &IndexScan, entry: &EntryParts<'_>, env: &Env) -> Result<bool> {
    if scan.ranges.checks.is_empty() && scan.candidate.key_tests.is_empty() {
        return Ok(true);
    }
    let keys = &scan.index().keys;
    if !scan.ranges.checks.is_empty() {
        let mut parts = SmallVec::<[&[u8]; 8]>::new();
        let mut rest = entry.fields;
        for key in keys {
            let (part, behind) =
                key::length(rest, key.descending).and_then(|length| rest.split_at_checked(length)).ok_or_else(torn)?;
            parts.push(part);
            rest = behind;
        }
        if !scan.ranges.checks.iter().all(|check| parts.get(check.at).is_some_and(|part| check.allows(part))) {
            return Ok(false);
        }
    }
    if !scan.candidate.key_tests.is_empty() {
        let values = entry.values(keys.iter().map(|key| key.descending)).ok_or_else(torn)?;
        for (at, test) in &scan.candidate.key_tests {
            if !values.get(*at).map_or(Ok(false), |value| test.matches_value(value, env))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
