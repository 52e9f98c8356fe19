//! Inquiries: sources that are read again, behind the client's own statement, before it is known what a change means for their
//! hosts. The questions of one field share their reads.
//!
//! An exclusive inquiry passes its fence before the read, a shared one at the end (SEMANTICS R1). Two shared ones that both change
//! the host meet there: so one that should have changed it and left it as it was has its fence to itself after all
//! ([`HostUpdates::add_answer`]).

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::host_updates::HostUpdates;
use crate::execute::key_inquiries::KeyInquiries;
use crate::rule::field::{Inquiry, Question};
use crate::rule::{Delta, Field, fence, key};
use document::backend::Mode;
use document::{Doc, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Inquiries {
    fields: Vec<FieldInquiries>,
}

/// What is to be asked for one field, by key.
struct FieldInquiries {
    kept: Arc<ActiveRule>,
    field: Arc<dyn Field>,
    keys: Vec<(Value<'static>, KeyInquiries)>,
    places: HashMap<Vec<u8>, usize>,
}

/// The answers to the questions about one key.
struct Answered {
    key: Value<'static>,
    delta: Option<Delta>,
    /// The children of questions whose answer leaves the host as it is.
    children: i64,
    /// What the shared inquiries were about whose answers change the host.
    shared: Vec<Value<'static>>,
}

impl Inquiries {
    pub(super) fn add(
        &mut self,
        kept: &Arc<ActiveRule>,
        field: &Arc<dyn Field>,
        key: Value<'static>,
        inquiry: Inquiry,
    ) -> Result<()> {
        let at = self.fields.iter().position(|other| Arc::ptr_eq(&other.kept, kept)).unwrap_or_else(|| {
            let (kept, field) = (kept.clone(), field.clone());
            self.fields.push(FieldInquiries { kept, field, keys: Vec::new(), places: HashMap::new() });
            self.fields.len() - 1
        });
        let Some(FieldInquiries { keys, places, .. }) = self.fields.get_mut(at) else { return Ok(()) };
        let place = *places.entry(key::bytes(&key)).or_insert_with(|| {
            keys.push((key, KeyInquiries::default()));
            keys.len() - 1
        });
        match keys.get_mut(place) {
            Some((_, known)) => known.add(&**field, inquiry),
            None => Ok(()),
        }
    }

    /// Asks, and adds what follows.
    pub(super) async fn ask(self, attempt: &mut Attempt<'_>, updates: &mut HostUpdates) -> Result<()> {
        for inquiries in self.fields {
            inquiries.ask(attempt, updates).await?;
        }
        Ok(())
    }
}

impl FieldInquiries {
    async fn ask(self, attempt: &mut Attempt<'_>, updates: &mut HostUpdates) -> Result<()> {
        let FieldInquiries { kept, field, keys, .. } = self;
        let mut questions = Vec::new();
        let mut modes = Vec::new();
        for (key, inquiries) in keys {
            for Inquiry { about, delta, mode } in inquiries {
                match mode {
                    Mode::Exclusive => attempt.exclusive_part(&kept, &key, &about).await?,
                    Mode::Shared => attempt.shared_later(&kept, fence::part(&key, &about)),
                }
                modes.push(mode);
                questions.push(Question { key: key.clone(), about, delta });
            }
        }
        let rows = read(attempt, &kept, &*field, &questions).await?;
        for answered in answers(&*field, &questions, &modes, &rows)? {
            let Answered { key, delta, children, shared } = answered;
            let delta = match delta {
                Some(delta) => delta.with_children(children),
                None => {
                    attempt.unwritten(&kept, key.clone());
                    Delta::of_children(children)
                }
            };
            if !delta.is_zero() || !shared.is_empty() {
                updates.add_answer(&kept, &field, key, delta, shared)?;
            }
        }
        Ok(())
    }
}

/// By key and by what the question is about.
type AnswerRows = HashMap<(Vec<u8>, Vec<u8>), Doc<'static>>;

async fn read(
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    field: &dyn Field,
    questions: &[Question],
) -> Result<AnswerRows> {
    let fetch = attempt.fetch_of(field);
    let mut rows = AnswerRows::new();
    for some in questions.chunks(field.lookup().inquiries_per_read(questions.len(), fetch)) {
        let documents = attempt.read(std::slice::from_ref(kept), field.ask(some, fetch)?).await?;
        let found = documents.iter().filter_map(|document| field.answer_row(document, fetch));
        rows.extend(found.map(|(key, about, row)| ((key::bytes(&key), key::bytes(&about)), row)));
    }
    Ok(rows)
}

/// What follows for each key. The questions of one key stand together.
fn answers(field: &dyn Field, questions: &[Question], modes: &[Mode], rows: &AnswerRows) -> Result<Vec<Answered>> {
    let mut list: Vec<Answered> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    for (question, mode) in questions.iter().zip(modes) {
        let place = (key::bytes(&question.key), key::bytes(&question.about));
        let answer = field.answer(question, rows.get(&place))?.filter(|delta| !delta.is_zero());
        if list.is_empty() || last != place.0 {
            list.push(Answered { key: question.key.clone(), delta: None, children: 0, shared: Vec::new() });
            last = place.0;
        }
        let Some(known) = list.last_mut() else { continue };
        match answer {
            None => known.children += question.delta.children(),
            Some(delta) => {
                if *mode == Mode::Shared {
                    known.shared.push(question.about.clone());
                }
                known.delta = Some(match known.delta.take() {
                    Some(first) => field.combine(first, &delta)?,
                    None => delta,
                });
            }
        }
    }
    Ok(list)
}
