//! Moving documents from one form to another, part by part, while clients go on reading and writing them.
//!
//! A part is one transaction: documents are read, put into the first place and taken from where they were. So each is in
//! exactly one place at every moment; a client that changes one of them meanwhile conflicts, and one of the two tries again.
//! New documents go to the first place, so it comes to an end. How far it came is saved with each part: after a stop it does not
//! pass over all that it has emptied again.

use crate::execute::access::Access;
use crate::execute::gate::Point;
use crate::life::relocate::stored_access::Moving;
use crate::life::relocate::{stored, way_back};
use crate::life::replaced::documents::Originals;
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, Recovery, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::Stack;
use crate::rule::shape::{Existing, Inserted, Learn, NewDocuments, Place, Stop};
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::value::show;
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashMap;
use std::time::Instant;

/// How many readings are moved in one transaction; a bucket is moved as a whole.
const PART: u64 = 500;

/// And how many bytes.
const BYTES: usize = 4 << 20;

/// Stored documents that stay where they are, and why.
type Misfits = Vec<(Value<'static>, String)>;

/// How many of those that do not fit are named.
const NAMED: usize = 5;

/// Moves everything to the first place. False if the rule was changed meanwhile.
pub(crate) async fn drain(life: &Life, entry: &CatalogRule) -> Result<bool> {
    let Some((to, others)) = entry.places.split_first() else { return Ok(true) };
    let mut row = entry.row.clone();
    for from in others {
        loop {
            match all(life, entry, &mut row, from, to).await? {
                None => return Ok(false),
                Some(misfits) if !misfits.is_empty() => return Err(do_not_fit(from, &misfits)),
                Some(_) => {}
            }
            let (mut session, context) = (Session::default(), life.context());
            let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
            if stored::is_empty(&mut at, &from.stored).await? {
                break;
            }
        }
    }
    Ok(true)
}

fn do_not_fit(from: &Place, misfits: &[(Value<'static>, String)]) -> Error {
    let named = misfits.iter().take(NAMED).map(|(id, why)| format!("_id {}: {why}", show::element(id)));
    let named: Vec<String> = named.collect();
    let more = if misfits.len() > NAMED { "; …" } else { "" };
    let message = format!(
        "{} documents of {} do not fit and stay where they are: {}{more}",
        misfits.len(),
        from.stored,
        named.join("; ")
    );
    Error::new(Code::OperationFailed, message).with_hint("change or delete them, or drop the rule")
}

/// One walk over a place, from where the last one was stopped. Gives what did not fit; `None` if the rule was changed meanwhile.
async fn all(
    life: &Life,
    entry: &CatalogRule,
    row: &mut catalog::Row,
    from: &Place,
    to: &Place,
) -> Result<Option<Misfits>> {
    let position = row.shape.as_ref().and_then(|shape| shape.position(&from.stored).cloned());
    let (learned, misfits) = (Vec::new(), Vec::new());
    let mut mover = Mover {
        life,
        entry,
        row: row.clone(),
        from,
        to,
        learned,
        guesses: true,
        misfits,
        separates: false,
        separated: 0,
    };
    let end = walk(life, Pace::even(PART), position, &mut mover).await?;
    *row = mover.row;
    Ok((end == WalkEnd::Reached).then_some(mover.misfits))
}

/// Whether a document could not be stored for what it is.
fn is_of_document(error: &Error) -> bool {
    matches!(error.code(), Code::DuplicateKey | Code::DocumentValidationFailure | Code::BSONObjectTooLarge)
}

struct Mover<'a> {
    life: &'a Life,
    entry: &'a CatalogRule,
    row: catalog::Row,
    from: &'a Place,
    to: &'a Place,
    /// Run once the part is committed.
    learned: Vec<Learn>,
    /// Whether what is remembered of open buckets is tried: not after a conflict.
    guesses: bool,
    /// Documents that stay where they are, and why.
    misfits: Misfits,
    /// An `_id` was there twice: from now on each is looked for before it is put into a plain collection.
    separates: bool,
    /// How many documents of the part have got a new `_id`.
    separated: i64,
}

/// What is moved together.
#[derive(Default)]
struct Load {
    /// Each with the document it came from.
    logical: Vec<(Value<'static>, Doc<'static>)>,
    /// The documents that are emptied by it, if all fits.
    emptied: Vec<Value<'static>>,
    misfits: Misfits,
}

impl PartWork for Mover<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }

    fn conflicted(&mut self) {
        self.guesses = false;
    }

    fn failed<'a>(&'a mut self, error: Error, part: PartOfWalk<'a>) -> Answer<'a, Recovery> {
        Box::pin(async move {
            if error.code() == Code::DuplicateKey && self.may_separate() {
                self.separates = true;
                return Ok(Recovery::Again);
            }
            if !is_of_document(&error) {
                return Err(error);
            }
            // One of them cannot be stored.
            if part.size > 1 {
                return Ok(Recovery::OneByOne);
            }
            let (id, next) = self.behind(part).await?;
            self.misfits.push((id, error.to_string()));
            Ok(Recovery::Skip(next))
        })
    }
}

impl Mover<'_> {
    /// Whether a duplicate key may be an `_id` that readings share, and that was not looked for yet.
    fn may_separate(&self) -> bool {
        self.to.shape.is_plain() && !self.separates
    }

    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let life = self.life;
        self.learned.clear();
        let context = &life.adding_context();
        let mut began = OwnTransaction::begin(life, context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if catalog::epoch(&mut at, &self.entry.db, &self.row.rule).await? != Some(self.row.epoch) {
            return Ok(None);
        }
        life.pass(Point::Life("take")).await?;
        let (documents, mut next) = walk::read(&mut at, &self.from.stored, part, None).await?;
        let mut load = Load::default();
        let (mut bytes, mut taken) = (0, 0);
        for document in &documents {
            bytes += document.as_bytes().len();
            if taken > 0 && (bytes > BYTES || load.logical.len() as u64 >= part.size) {
                next = document.get("_id");
                break;
            }
            taken += 1;
            self.load(document, &mut load);
        }
        life.pass(Point::Life("put")).await?;
        let Load { logical, mut emptied, mut misfits } = load;
        let moved = i64::try_from(logical.len()).unwrap_or(i64::MAX);
        let mut row = self.row.clone();
        let stay = self.put(&mut at, &row, logical).await?;
        emptied.retain(|id| !stay.iter().any(|(owner, _)| owner == id));
        misfits.extend(stay);
        row.done += i64::try_from(emptied.len()).unwrap_or(i64::MAX);
        if row.state.is_kept() {
            row.replaced.seeded.moved += (moved - i64::try_from(misfits.len()).unwrap_or(0)).max(0);
        }
        if let Some(shape) = &mut row.shape {
            shape.duplicates += self.separated;
            // At the end the next walk, if there is one, begins with what came meanwhile.
            shape.moved = next.clone().map(|next| (self.from.stored.collection.to_string(), next));
        }
        if !emptied.is_empty() {
            life.pass(Point::Life("leave")).await?;
            let wanted = emptied.len() as u64;
            let ids = Filter::among("_id", emptied);
            if at.delete(&self.from.stored, ids).await? != wanted {
                let message = format!("documents of {} were not there to be moved", self.from.stored);
                return Err(Error::new(Code::InternalError, message));
            }
            life.pass(Point::Life("save")).await?;
            catalog::save(&mut at, &self.entry.db, &row).await?;
            began.commit().await?;
            self.learned.drain(..).for_each(|learn| learn());
        }
        self.misfits.extend(misfits);
        life.advanced(&self.entry.db, &row);
        (self.row, self.guesses) = (row, true);
        Ok(Some(PartDone { next, ..PartDone::default() }))
    }

    /// Adds what a stored document holds.
    fn load(&self, document: &Doc<'static>, load: &mut Load) {
        let id = document.get("_id").unwrap_or(Value::Null);
        let mut all = Vec::new();
        let decoded = self.from.shape.decode(document, &mut |logical| {
            all.push((id.clone(), logical));
            Ok(())
        });
        match decoded {
            Ok(()) => load.logical.extend(all),
            Err(error) => {
                load.misfits.push((id, error.to_string()));
                return;
            }
        }
        load.emptied.push(id);
    }

    /// Puts logical documents into the first place. Where one of a stored document does not fit, none of it is moved: gives
    /// those, and why.
    async fn put(
        &mut self,
        at: &mut Access<'_>,
        row: &catalog::Row,
        logical: Vec<(Value<'static>, Doc<'static>)>,
    ) -> Result<Misfits> {
        let originals = row.replaced.since.map(|since| Originals { rule: &self.entry.rule, since });
        if self.to.shape.is_plain() {
            self.put_plainly(at, row, originals, logical).await?;
            return Ok(Vec::new());
        }
        let (mut stay, documents) = self.fitting(logical);
        let numbered: Vec<(usize, Doc<'static>)> =
            documents.iter().enumerate().map(|(index, (_, document))| (index, document.clone())).collect();
        let new = NewDocuments {
            documents: &numbered,
            existing: Existing::AddedTo,
            ordered: false,
            bypass_validation: false,
            are_moved: true,
        };
        let stack = self.stack();
        let mut moving = Moving { at: &mut *at, learned: &mut self.learned, guesses: self.guesses };
        let inserted = self.to.shape.insert(&mut moving, &stack, self.to, new).await.map_err(|stop| match stop {
            Stop::Statement { error, .. } | Stop::Command(error) => error,
        })?;
        if let Some(originals) = &originals {
            let put = self.put_documents(&documents, &inserted)?;
            self.life.pass(Point::Life("keep")).await?;
            originals.keep(at, &*self.from.shape, &*self.to.shape, &put).await?;
        }
        let refused = inserted.refused.iter().filter_map(|failed| {
            let (owner, _) = documents.get(failed.index)?;
            Some((owner.clone(), failed.error.to_string()))
        });
        let refused: Misfits = refused.collect();
        if !refused.is_empty() && !self.from.shape.is_plain() {
            // The rest of its stored document has been put already: that must not be.
            let why: Vec<String> = refused.iter().map(|(id, why)| format!("{}: {why}", show::element(id))).collect();
            return Err(Error::new(Code::DuplicateKey, why.join("; ")));
        }
        stay.extend(refused);
        Ok(stay)
    }

    /// The same where documents are stored as they are.
    async fn put_plainly(
        &mut self,
        at: &mut Access<'_>,
        row: &catalog::Row,
        originals: Option<Originals<'_>>,
        logical: Vec<(Value<'static>, Doc<'static>)>,
    ) -> Result<()> {
        let mut documents = logical.into_iter().map(|(_, document)| document).collect::<Vec<_>>();
        if let (Some(originals), true) = (&originals, row.replaced.restore && !self.from.shape.is_plain()) {
            self.life.pass(Point::Life("give back")).await?;
            documents = originals.give_back(at, &*self.from.shape, documents).await?;
        }
        self.separated = 0;
        let collated = self.separates && way_back::is_collated(row.shape.as_ref());
        let together = if collated { 1 } else { documents.len().max(1) };
        for documents in documents.chunks_mut(together) {
            if self.separates {
                self.separated += way_back::separate(at, &self.to.stored, documents, collated).await?;
            }
            at.insert(&self.to.stored, documents.to_vec()).await?;
        }
        Ok(())
    }

    /// Those that stay where they are because one of their stored document does not fit, with the reason, and the others. Where
    /// each stored document is one logical one, the insert tells.
    fn fitting(&self, logical: Vec<(Value<'static>, Doc<'static>)>) -> (Misfits, Vec<(Value<'static>, Doc<'static>)>) {
        if self.from.shape.is_plain() {
            return (Vec::new(), logical);
        }
        let misfit = |(owner, document): &(Value<'static>, Doc<'static>)| {
            Some((owner.clone(), self.to.shape.check(document).err()?.to_string()))
        };
        let stay: Misfits = logical.iter().filter_map(misfit).collect();
        let stays = |owner: &Value<'static>| stay.iter().any(|(id, _)| id == owner);
        let fitting = logical.into_iter().filter(|(owner, _)| !stays(owner)).collect();
        (stay, fitting)
    }

    /// The documents that are stored by now: each as it was, and as clients see it.
    fn put_documents(
        &self,
        documents: &[(Value<'static>, Doc<'static>)],
        inserted: &Inserted,
    ) -> Result<Vec<(Doc<'static>, Doc<'static>)>> {
        let seen: HashMap<usize, &Doc<'static>> = inserted.seen.iter().map(|(index, seen)| (*index, seen)).collect();
        let is_put = |index: usize| !inserted.refused.iter().any(|failed| failed.index == index);
        let put = documents.iter().enumerate().filter(|(index, _)| is_put(*index)).map(|(index, (_, document))| {
            let seen = match seen.get(&index) {
                Some(seen) => Doc::clone(seen),
                None => self.to.shape.as_read(document)?,
            };
            Ok((document.clone(), seen))
        });
        put.collect()
    }

    /// Both places, as clients have them meanwhile.
    fn stack(&self) -> Stack {
        let rule = self.entry.rule.clone();
        let (logical, places) = (rule.host.clone(), vec![self.to.clone(), self.from.clone()]);
        Stack { rule, logical, places, since: Instant::now(), is_source: false }
    }

    /// The document that the part begins with, and where the next begins.
    async fn behind(&self, part: PartOfWalk<'_>) -> Result<(Value<'static>, Option<Value<'static>>)> {
        let (mut session, context) = (Session::default(), self.life.adding_context());
        let mut at = Access { backend: &*self.life.backend, session: &mut session, context: &context };
        let (documents, next) = walk::read(&mut at, &self.from.stored, part, None).await?;
        Ok((documents.first().and_then(|document| document.get("_id")).unwrap_or(Value::Null), next))
    }
}
