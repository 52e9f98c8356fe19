//! The changed documents of one attempt, by namespace; a document that is changed again is one change, first to last.

use crate::rule::key;
use document::Value;
use document::op::{Change, Namespace};
use hashbrown::HashMap;

/// A changed document.
pub(crate) struct Changed {
    pub(crate) change: Change,
    /// Its own derived fields were put into it before it was written.
    pub(crate) complete: bool,
    /// A roll-up made it: its fields are right but for what follows from other changes.
    pub(crate) made: bool,
}

#[derive(Default)]
pub(crate) struct Changes {
    of: Vec<(Namespace, Vec<Changed>)>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(crate) fn of(&self, ns: &Namespace) -> &[Changed] {
        self.of.iter().find(|(other, _)| other == ns).map_or(&[], |(_, list)| list)
    }

    /// Adds what a statement changed, each document once.
    pub(crate) fn add(&mut self, ns: &Namespace, more: impl IntoIterator<Item = Changed>) {
        let mut more = more.into_iter().peekable();
        if more.peek().is_none() {
            return;
        }
        match self.of.iter_mut().find(|(other, _)| other == ns) {
            None => self.of.push((ns.clone(), more.collect())),
            Some((_, list)) => merge(list, more),
        }
    }

    /// Adds what statements changed; several of them may have changed the same document.
    pub(crate) fn derived(&mut self, ns: &Namespace, more: Vec<Change>) {
        self.changed(ns, more, |_| false);
    }

    /// The same for statements that make a host where there is none.
    pub(crate) fn derived_or_made(&mut self, ns: &Namespace, more: Vec<Change>) {
        self.changed(ns, more, |change| change.before.is_none());
    }

    fn changed(&mut self, ns: &Namespace, more: Vec<Change>, is_made: impl Fn(&Change) -> bool) {
        let mut list = Vec::with_capacity(more.len());
        let changed = |change: Change| Changed { made: is_made(&change), complete: false, change };
        merge(&mut list, more.into_iter().map(changed));
        self.add(ns, list);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Namespace, &[Changed])> {
        self.of.iter().map(|(ns, list)| (ns, &**list))
    }
}

fn merge(list: &mut Vec<Changed>, more: impl Iterator<Item = Changed>) {
    let mut places: HashMap<Vec<u8>, usize> =
        list.iter().enumerate().map(|(at, changed)| (bytes(&changed.change.id), at)).collect();
    for changed in more {
        let id = bytes(&changed.change.id);
        match places.get(&id).and_then(|at| list.get_mut(*at)) {
            Some(earlier) => {
                earlier.change.after = changed.change.after;
                earlier.complete = false;
            }
            None => {
                places.insert(id, list.len());
                list.push(changed);
            }
        }
    }
}

fn bytes(id: &Value<'_>) -> Vec<u8> {
    key::bytes(id)
}
