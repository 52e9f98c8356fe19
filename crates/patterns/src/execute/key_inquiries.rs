//! What is to be asked about the value of one key: one inquiry about all of it, or some about parts of it, each part once.

use crate::rule::field::Inquiry;
use crate::rule::{Delta, Field, key};
use document::backend::Mode;
use document::{Result, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;

type List = SmallVec<[Inquiry; 1]>;

#[derive(Default)]
pub(super) struct KeyInquiries {
    list: List,
    /// Where the inquiry about a part is; nothing while there is one about the whole.
    places: HashMap<Vec<u8>, usize>,
}

impl KeyInquiries {
    /// Adds one: an inquiry about the whole key swallows the others.
    pub(super) fn add(&mut self, field: &dyn Field, more: Inquiry) -> Result<()> {
        if let Some(whole) = self.whole() {
            return join(field, whole, &more);
        }
        if more.about.is_missing() {
            self.places.clear();
            let mut parts = std::mem::take(&mut self.list).into_iter().chain([more]);
            let Some(mut whole) = parts.next() else { return Ok(()) };
            parts.try_for_each(|part| join(field, &mut whole, &part))?;
            self.list.push(Inquiry { about: Value::Missing, ..whole });
            return Ok(());
        }
        let at = *self.places.entry(key::bytes(&more.about)).or_insert(self.list.len());
        match self.list.get_mut(at) {
            Some(first) => join(field, first, &more),
            None => {
                self.list.push(more);
                Ok(())
            }
        }
    }

    /// The one about the whole key.
    pub(super) fn whole(&mut self) -> Option<&mut Inquiry> {
        self.list.first_mut().filter(|first| first.about.is_missing())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Inquiry> {
        self.list.iter()
    }
}

impl IntoIterator for KeyInquiries {
    type Item = Inquiry;
    type IntoIter = <List as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// Adds an inquiry to one that may stand for many changes: what the first has is neither copied nor looked at again.
fn join(field: &dyn Field, first: &mut Inquiry, second: &Inquiry) -> Result<()> {
    first.delta = field.combine(std::mem::replace(&mut first.delta, Delta::Unset), &second.delta)?;
    if second.mode == Mode::Exclusive {
        first.mode = Mode::Exclusive;
    }
    Ok(())
}
