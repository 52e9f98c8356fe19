//! What the catalog's row of a rule remembers about what was there before it: since when it is kept, which hosts the rule has
//! seeded, what seeding did, and how far the values were given back.

use crate::execute::evaluate::HostDifference;
use crate::execute::replaced::Lifted;
use crate::mql::long;
use crate::rule::{Fate, State};
use document::value::order;
use document::{Doc, DocWriter, Value};

/// What seeding or conversion did to the documents that were there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Had a value, and it was another.
    pub corrected: i64,
    /// Had none.
    pub filled: i64,
    /// Had a value, and there should be none.
    pub removed: i64,
    /// Were right, or are none of the rule's business.
    pub left: i64,
    /// Were brought into another form.
    pub moved: i64,
    /// Documents of a roll-up's source that have no key.
    pub unkeyed: i64,
    /// Items of an array that have become documents.
    pub lifted: i64,
}

/// In the row of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since when what was there is kept, in milliseconds since 1970. `None`: nothing is kept, by an older version or after `forget`.
    pub since: Option<i64>,
    /// Hosts before it have been seeded by the rule in an earlier form.
    pub seeded_to: Option<Value<'static>>,
    /// Of a rule that lifts an array, or did: how far.
    pub lifted: Option<Lifted>,
    pub seeded: Seeded,
    /// Retiring: whether hosts get back what they had …
    pub restore: bool,
    /// … and those before it have.
    pub restored_to: Option<Value<'static>>,
}

impl Progress {
    pub(crate) fn read(row: &Doc<'_>) -> Progress {
        let Some(Value::Document(doc)) = row.get("replaced") else { return Progress::default() };
        let since = match doc.get("since") {
            Some(Value::DateTime(since)) => Some(since),
            _ => None,
        };
        let value = |name: &str| doc.get(name).map(Value::into_owned);
        Progress {
            since,
            seeded_to: value("seeded_to"),
            lifted: match doc.get("lifted") {
                Some(Value::Document(lifted)) => Some(Lifted::read(&lifted)),
                _ => None,
            },
            seeded: match doc.get("seeded") {
                Some(Value::Document(seeded)) => Seeded::read(&seeded),
                _ => Seeded::default(),
            },
            restore: doc.get("restore").is_some_and(|restore| restore.is_truthy()),
            restored_to: value("restored_to"),
        }
    }

    /// What a rule takes over that begins anew, from where it was: which hosts it has seeded and lifted, and since when what was
    /// there is kept.
    pub(crate) fn carried(&self, state: &State) -> Progress {
        let (since, seeded_to, lifted) = (self.since, self.seeded_to(state), self.lifted.clone());
        Progress { since, seeded_to, lifted, ..Progress::default() }
    }

    /// Hosts before it have values of the rule's own; `None` if no host has been seeded.
    pub(crate) fn seeded_to(&self, state: &State) -> Option<Value<'static>> {
        let now = match state {
            State::On => Some(Value::MaxKey),
            State::Seeding { position } => position.clone(),
            State::Maintaining | State::Gathering { .. } | State::Retiring | State::Restoring => None,
        };
        match (now, self.seeded_to.clone()) {
            (Some(now), Some(before)) if order::compare(&now, &before).is_lt() => Some(before),
            (now, before) => now.or(before),
        }
    }

    pub(crate) fn write(&self, row: &mut DocWriter) {
        if *self == Progress::default() {
            return;
        }
        row.start_document("replaced");
        if let Some(since) = self.since {
            row.append("since", &Value::DateTime(since));
        }
        if let Some(to) = &self.seeded_to {
            row.append("seeded_to", to);
        }
        if let Some(lifted) = &self.lifted {
            row.append("lifted", &Value::Document(lifted.show()));
        }
        if self.seeded != Seeded::default() {
            row.append("seeded", &Value::Document(self.seeded.show()));
        }
        if self.restore {
            row.append("restore", &Value::Bool(true));
        }
        if let Some(to) = &self.restored_to {
            row.append("restored_to", to);
        }
        row.end();
    }
}

impl Seeded {
    fn read(doc: &Doc<'_>) -> Seeded {
        let number = |name: &str| long(doc.get(name));
        Seeded {
            corrected: number("corrected"),
            filled: number("filled"),
            removed: number("removed"),
            left: number("left"),
            moved: number("moved"),
            unkeyed: number("unkeyed"),
            lifted: number("lifted"),
        }
    }

    /// `{ corrected, filled, removed, left }`, perhaps `unkeyed` of a roll-up and `lifted` of a window, or `{ moved }` of a conversion.
    pub(crate) fn show(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        if self.moved > 0 {
            doc.append("moved", &Value::Int64(self.moved));
            return doc.finish();
        }
        doc.append("corrected", &Value::Int64(self.corrected)).append("filled", &Value::Int64(self.filled));
        doc.append("removed", &Value::Int64(self.removed)).append("left", &Value::Int64(self.left));
        if self.unkeyed > 0 {
            doc.append("unkeyed", &Value::Int64(self.unkeyed));
        }
        if self.lifted > 0 {
            doc.append("lifted", &Value::Int64(self.lifted));
        }
        doc.finish()
    }

    /// Counts a part of the hosts, each once.
    pub(crate) fn count(&mut self, hosts: usize, differences: &[HostDifference]) {
        let mut changed = 0;
        for difference in differences {
            let counter = match difference.fate {
                // Only the state beside the value.
                Fate::Absent | Fate::Right | Fate::Sourceless => continue,
                Fate::Retyped | Fate::Corrected => &mut self.corrected,
                Fate::Filled => &mut self.filled,
                Fate::Removed => &mut self.removed,
            };
            *counter += 1;
            changed += 1;
        }
        self.left += i64::try_from(hosts).unwrap_or(i64::MAX) - changed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_an_earlier_form_has_seeded_stay_seeded() {
        let (at, before) = (
            |id| State::Seeding { position: Some(Value::Int32(id)) },
            |id| Progress { seeded_to: Some(Value::Int32(id)), ..Progress::default() },
        );
        for (state, progress, expected) in [
            (State::Maintaining, Progress::default(), None),
            (State::Maintaining, before(3), Some(Value::Int32(3))),
            (at(5), before(3), Some(Value::Int32(5))),
            (at(2), before(3), Some(Value::Int32(3))),
            (State::On, before(3), Some(Value::MaxKey)),
            (State::Retiring, Progress::default(), None),
        ] {
            assert_eq!(progress.seeded_to(&state), expected, "{state:?}");
        }
    }
}
