//! Running a search: the entries of each term give documents and scores.
//!
//! Without scores, or with one term, documents come as their entries do. Otherwise all entries are read first and scores added
//! up, in the order of terms as MongoDB does; documents are read only then, the best first.

use super::access::text::TextScan;
use super::cursor::Cursor;
use super::scan::{Place, Row, Scan, SeenKeys, Want, torn};
use crate::store::keys::{EntryParts, document, document_key_of};
use crate::transaction::snapshot::ReadSnapshot;
use bytes::Bytes;
use document::filter::Details;
use document::text::carried::with_score;
use document::value::key;
use document::{Doc, Result};
use hashbrown::HashMap;

/// How far a search has come.
pub(super) struct TextPlace {
    cursor: Cursor,
    seen: SeenKeys,
    /// How many entries of each term were looked at, the last term first.
    pub(super) examined: Vec<u64>,
    /// What is left of the documents and their scores, the best last; `None` before the entries were read.
    scored: Option<Vec<(Bytes, f64)>>,
    /// Others may have written since the entries were read.
    stale: bool,
    ended: bool,
}

impl TextPlace {
    pub(super) fn new(scan: &TextScan) -> TextPlace {
        TextPlace {
            cursor: Cursor::new(false),
            seen: SeenKeys::default(),
            examined: vec![0; scan.ranges.len()],
            scored: None,
            stale: false,
            ended: false,
        }
    }

    pub(super) fn pause(&mut self) {
        self.cursor.open = None;
        self.stale = self.scored.is_some();
    }

    /// What is left when nothing more comes: the counts.
    pub(super) fn finished(self) -> TextPlace {
        TextPlace { seen: SeenKeys::default(), scored: None, ended: true, ..self }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }
}

/// What an entry tells.
struct Found {
    /// The key of the document.
    key: Bytes,
    /// `None` if the entry does not say it: only the document does.
    score: Option<f64>,
}

impl Scan {
    /// How many entries of the term at `at` were looked at, the first term first.
    pub fn examined_of_term(&self, at: usize) -> u64 {
        match &self.place {
            Place::Text(place) => place.examined.iter().rev().nth(at).copied().unwrap_or_default(),
            _ => 0,
        }
    }

    /// The next document that a search finds.
    pub(super) fn next_found(&mut self, snapshot: &ReadSnapshot, scan: &TextScan) -> Result<Option<Row>> {
        if matches!(&self.place, Place::Text(place) if place.ended) {
            return Ok(None);
        }
        let scores = scan.by_score || scan.carries || self.details.is_some();
        if scores && (scan.ranges.len() > 1 || !scan.exact) {
            return self.next_scored(snapshot, scan);
        }
        while let Some(found) = self.next_text_entry(snapshot, scan)? {
            let Place::Text(place) = &mut self.place else { return Ok(None) };
            if !place.seen.insert(found.key.clone()) {
                self.counters.repeated += 1;
                continue;
            }
            self.counters.entries += 1;
            if let Some(row) = self.found_row(snapshot, scan, found, false)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn next_scored(&mut self, snapshot: &ReadSnapshot, scan: &TextScan) -> Result<Option<Row>> {
        if matches!(&self.place, Place::Text(place) if place.scored.is_none()) {
            let scored = self.gather_scores(snapshot, scan)?;
            if let Place::Text(place) = &mut self.place {
                place.scored = Some(scored);
            }
        }
        loop {
            self.check_interrupt()?;
            let Place::Text(place) = &mut self.place else { return Ok(None) };
            let stale = place.stale;
            let Some((key, score)) = place.scored.as_mut().and_then(Vec::pop) else { return Ok(None) };
            self.counters.entries += 1;
            let score = (!score.is_nan()).then_some(score);
            if let Some(row) = self.found_row(snapshot, scan, Found { key, score }, stale)? {
                return Ok(Some(row));
            }
        }
    }

    /// All documents with their scores, the best last; not a number if only the document says it.
    fn gather_scores(&mut self, snapshot: &ReadSnapshot, scan: &TextScan) -> Result<Vec<(Bytes, f64)>> {
        let mut scores: HashMap<Bytes, f64, foldhash::fast::FixedState> = HashMap::default();
        while let Some(found) = self.next_text_entry(snapshot, scan)? {
            // Not known yet: the document says it.
            let score = found.score.unwrap_or(f64::NAN);
            match scores.entry(found.key) {
                hashbrown::hash_map::Entry::Occupied(mut sum) => {
                    self.counters.repeated += 1;
                    *sum.get_mut() += score;
                }
                hashbrown::hash_map::Entry::Vacant(free) => {
                    free.insert(score);
                }
            }
        }
        let mut scored: Vec<(Bytes, f64)> = scores.into_iter().collect();
        if scored.iter().any(|(_, score)| score.is_nan()) {
            for (key, score) in scored.iter_mut().filter(|(_, score)| score.is_nan()) {
                *score = match snapshot.get(self.space()?, key)? {
                    Some(value) => scan.keys.spec.score(&document(value)?, &scan.query.lookups)?,
                    None => 0.0,
                };
            }
        }
        scored.sort_unstable_by(|(a_key, a), (b_key, b)| a.total_cmp(b).then_with(|| b_key.cmp(a_key)));
        Ok(scored)
    }

    /// The next entry of a term that passes the tests on its values.
    fn next_text_entry(&mut self, snapshot: &ReadSnapshot, scan: &TextScan) -> Result<Option<Found>> {
        loop {
            self.check_interrupt()?;
            let space = self.space()?.clone();
            let Place::Text(place) = &mut self.place else { return Ok(None) };
            let next = place.cursor.next(&scan.ranges, true, snapshot, &space, &mut self.counters.seeks)?;
            let Some((entry_key, value)) = next else { return Ok(None) };
            self.counters.keys += 1;
            let begun = place.cursor.begun;
            if let Some(count) = place.examined.iter_mut().rev().nth(begun) {
                *count += 1;
            }
            let entry = EntryParts::parse(&entry_key, &value).ok_or_else(torn)?;
            let at = scan.ranges.len().saturating_sub(begun + 1);
            let start = scan.ranges.get(at).map_or(0, |range| range.from.len());
            let exact = scan.exact && !entry.inexact;
            let found = if exact {
                let score = entry_key.get(start..).and_then(key::decode_double).ok_or_else(torn)?;
                passes(scan, &entry, &self.env)?.then(|| Found { key: document_key_of(entry.id), score: Some(score) })
            } else {
                Some(Found { key: document_key_of(entry.id), score: None })
            };
            place.cursor.last = Some(entry_key);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// The document that was found, if it passes; `stale` if it may have changed since.
    fn found_row(
        &mut self,
        snapshot: &ReadSnapshot,
        scan: &TextScan,
        found: Found,
        stale: bool,
    ) -> Result<Option<Row>> {
        let Found { key, score } = found;
        let whole = stale || score.is_none();
        let told = !whole && scan.query.is_answered_by_terms();
        let unread = told && self.details.is_none() && self.plan().residual.is_none() && !scan.carries;
        if unread && self.want == Want::Count {
            return Ok(Some(Row { key, doc: Doc::empty(), details: Details::default() }));
        }
        // Deleted since its entry was read.
        let Some(value) = snapshot.get(self.space()?, &key)? else { return Ok(None) };
        self.counters.documents += 1;
        let doc = document(value)?;
        if whole {
            if !scan.filter.matches(&doc.borrow(), &self.env, None)? {
                return Ok(None);
            }
        } else if !told && !scan.query.accepts(&scan.keys.spec, &doc)? {
            return Ok(None);
        }
        let Some(mut row) = self.judge(key, doc, None)? else { return Ok(None) };
        row.details.text_score = score;
        if let (true, Some(score)) = (scan.carries, score) {
            row.doc = with_score(&row.doc, score);
        }
        Ok(Some(row))
    }
}

/// Whether an entry passes the tests on the keys behind the text.
fn passes(scan: &TextScan, entry: &EntryParts<'_>, env: &document::Env) -> Result<bool> {
    if scan.key_tests.is_empty() {
        return Ok(true);
    }
    let values = entry.values(scan.index.keys.iter().map(|key| key.descending)).ok_or_else(torn)?;
    for (at, test) in &scan.key_tests {
        if !values.get(*at).map_or(Ok(false), |value| test.matches_value(value, env))? {
            return Ok(false);
        }
    }
    Ok(true)
}
