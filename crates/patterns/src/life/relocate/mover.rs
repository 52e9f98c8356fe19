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
use crate::rule::shape::{Learn, Place, Stop};
use crate::shapes::bucket::write::place;
use crate::shapes::bucket::write::place::{NewReading, NewReadings, Placed};
use crate::shapes::bucket::{BucketShape, Key};
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::value::show;
use document::{Code, Doc, Error, Result, Value};

/// How many readings are moved in one transaction; a bucket is moved as a whole.
const PART: u64 = 500;

/// And how many bytes.
const BYTES: usize = 4 << 20;

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

/// One walk over a place, from where the last one was stopped. Gives what did not fit; nothing if the rule was changed meanwhile.
async fn all(
    life: &Life,
    entry: &CatalogRule,
    row: &mut catalog::Row,
    from: &Place,
    to: &Place,
) -> Result<Option<Vec<(Value<'static>, String)>>> {
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
    misfits: Vec<(Value<'static>, String)>,
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
    misfits: Vec<(Value<'static>, String)>,
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
    ) -> Result<Vec<(Value<'static>, String)>> {
        let originals = row.replaced.since.map(|since| Originals { rule: &self.entry.rule, since });
        let from = self.from.bucket();
        if !self.to.shape.is_plain() && self.to.bucket().is_none() {
            return self.put_generally(at, logical).await;
        }
        let Some(to) = BucketShape::of(&*self.to.shape) else {
            let mut documents = logical.into_iter().map(|(_, document)| document).collect::<Vec<_>>();
            if let (Some(originals), Some(from), true) = (&originals, from, row.replaced.restore) {
                self.life.pass(Point::Life("give back")).await?;
                documents = originals.give_back(at, from, documents).await?;
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
            return Ok(Vec::new());
        };
        let bucket = &to.bucket;
        let mut stay: Vec<(Value<'static>, String)> = Vec::new();
        let mut moved = Vec::with_capacity(logical.len());
        let (mut owners, mut readings) = (Vec::with_capacity(logical.len()), Vec::with_capacity(logical.len()));
        for (owner, document) in logical {
            match bucket.encode(&document) {
                Ok(encoded) => {
                    readings.push(NewReading { index: owners.len(), encoded: encoded.clone() });
                    moved.push((document, encoded));
                    owners.push(owner);
                }
                Err(error) => stay.push((owner, error.to_string())),
            }
        }
        let stays = |owner: &Value<'static>| stay.iter().any(|(id, _)| id == owner);
        readings.retain(|reading| owners.get(reading.index).is_some_and(|owner| !stays(owner)));
        let new = NewReadings {
            readings: &readings,
            ordered: false,
            // Slots are validated: what one may be called and how many there may be is the validator's.
            bypass_validation: bucket.is_numbered(),
            are_moved: true,
        };
        let buckets = to.buckets(&self.to.stored, &self.entry.rule.host);
        let mut moving = Moving { at: &mut *at, learned: &mut self.learned, guesses: self.guesses };
        let Placed { refused, keys } = place::add(&mut moving, buckets, new).await.map_err(|stop| match stop {
            Stop::Statement { error, .. } | Stop::Command(error) => error,
        })?;
        for (index, key) in keys {
            if let Some((_, encoded)) = moved.get_mut(index) {
                encoded.key = Key::clone(&key);
            }
        }
        if let Some(originals) = &originals {
            let is_put = |(index, _): &(usize, _)| {
                owners.get(*index).is_some_and(|owner| !stay.iter().any(|(id, _)| id == owner))
                    && !refused.iter().any(|failed| failed.index == *index)
            };
            let put: Vec<_> = moved.into_iter().enumerate().filter(is_put).map(|(_, one)| one).collect();
            self.life.pass(Point::Life("keep")).await?;
            originals.keep(at, from.map(|from| &**from), bucket, &put).await?;
        }
        if refused.is_empty() {
            return Ok(stay);
        }
        let why = "there is another reading of its series and time";
        let refused =
            refused.into_iter().filter_map(|failed| Some((owners.get(failed.index)?.clone(), why.to_owned())));
        match self.from.shape.is_plain() {
            true => stay.extend(refused),
            // The rest of its bucket has been put already: that must not be.
            false => {
                let why: Vec<String> = refused.map(|(id, why)| format!("{}: {why}", show::element(&id))).collect();
                return Err(Error::new(Code::DuplicateKey, why.join("; ")));
            }
        }
        Ok(stay)
    }

    /// The same for any shape, by what it does with clients' documents.
    async fn put_generally(
        &mut self,
        at: &mut Access<'_>,
        logical: Vec<(Value<'static>, Doc<'static>)>,
    ) -> Result<Vec<(Value<'static>, String)>> {
        let (mut stay, mut owners, mut documents) = (Vec::new(), Vec::new(), Vec::new());
        for (owner, document) in logical {
            match self.to.shape.check(&document) {
                Ok(_) => {
                    documents.push((owners.len(), document));
                    owners.push(owner);
                }
                Err(error) => stay.push((owner, error.to_string())),
            }
        }
        let stack = crate::rule::Stack {
            rule: self.entry.rule.clone(),
            logical: self.entry.rule.host.clone(),
            places: vec![self.to.clone(), self.from.clone()],
            since: std::time::Instant::now(),
            is_source: false,
        };
        let new = crate::rule::shape::NewDocuments {
            documents: &documents,
            existing: crate::rule::shape::Existing::Refused,
            ordered: false,
            bypass_validation: false,
        };
        let mut moving = Moving { at: &mut *at, learned: &mut self.learned, guesses: self.guesses };
        let refused = self.to.shape.insert(&mut moving, &stack, self.to, new).await.map_err(|stop| match stop {
            Stop::Statement { error, .. } | Stop::Command(error) => error,
        })?;
        stay.extend(
            refused
                .into_iter()
                .filter_map(|failed| Some((owners.get(failed.index)?.clone(), failed.error.to_string()))),
        );
        Ok(stay)
    }

    /// The document that the part begins with, and where the next begins.
    async fn behind(&self, part: PartOfWalk<'_>) -> Result<(Value<'static>, Option<Value<'static>>)> {
        let (mut session, context) = (Session::default(), self.life.adding_context());
        let mut at = Access { backend: &*self.life.backend, session: &mut session, context: &context };
        let (documents, next) = walk::read(&mut at, &self.from.stored, part, None).await?;
        Ok((documents.first().and_then(|document| document.get("_id")).unwrap_or(Value::Null), next))
    }
}
