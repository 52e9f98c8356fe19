//! What the catalog's row of a rule remembers about what was there before it: since when it is kept, which hosts the rule has
//! seeded, what seeding did, and how far the values were given back.

use crate::life::catalog::long;
use crate::life::evaluate::Difference;
use crate::rule::Rule;
use document::value::path::Part;
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
}

/// In the row of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since when what was there is kept, in milliseconds since 1970. `None`: nothing is kept, by an older version or after `forget`.
    pub since: Option<i64>,
    /// Hosts before it have been seeded by the rule in an earlier form.
    pub seeded_to: Option<Value<'static>>,
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
            seeded: match doc.get("seeded") {
                Some(Value::Document(seeded)) => Seeded::read(&seeded),
                _ => Seeded::default(),
            },
            restore: doc.get("restore").is_some_and(|restore| restore.is_truthy()),
            restored_to: value("restored_to"),
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
        }
    }

    /// `{ corrected, filled, removed, left }`, or `{ moved }` of a conversion.
    pub(crate) fn show(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        if self.moved > 0 {
            doc.append("moved", &Value::Int64(self.moved));
            return doc.finish();
        }
        doc.append("corrected", &Value::Int64(self.corrected)).append("filled", &Value::Int64(self.filled));
        doc.append("removed", &Value::Int64(self.removed)).append("left", &Value::Int64(self.left));
        doc.finish()
    }

    /// Counts a part of the hosts, each once.
    pub(crate) fn count(&mut self, rule: &Rule, hosts: &[Doc<'static>], differences: &[Difference]) {
        let mut changed = 0;
        let mut by_id = hosts.iter();
        for difference in differences {
            // Differences come in the order of their hosts.
            let is_its = |host: &&Doc<'static>| host.get("_id").is_some_and(|id| id == difference.id);
            let array = by_id.find(is_its).is_some_and(|host| leads_through_array(host, &rule.field.parts));
            let counter = match change(&difference.stored, &difference.expected, array) {
                Change::None => continue,
                Change::Corrected => &mut self.corrected,
                Change::Filled => &mut self.filled,
                Change::Removed => &mut self.removed,
            };
            *counter += 1;
            changed += 1;
        }
        self.left += i64::try_from(hosts.len()).unwrap_or(i64::MAX) - changed;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// Only the state beside the value.
    None,
    Filled,
    Corrected,
    Removed,
}

/// What becomes of a value; of values in an array, the worst that becomes of one.
fn change(stored: &Value<'_>, expected: &Value<'_>, in_array: bool) -> Change {
    if let (Value::Array(stored), Value::Array(expected), true) = (stored, expected, in_array) {
        let none = |value: Value<'static>| if value.is_nullish() { Value::Missing } else { value };
        let pairs = stored.iter().map(|value| none(value.into_owned()));
        let pairs = pairs.zip(expected.iter().map(|value| none(value.into_owned())));
        return pairs.map(|(stored, expected)| change(&stored, &expected, false)).max().unwrap_or(Change::None);
    }
    match (stored.is_missing(), expected.is_missing()) {
        _ if stored == expected => Change::None,
        (true, _) => Change::Filled,
        (_, true) => Change::Removed,
        (false, false) => Change::Corrected,
    }
}

/// Whether an array lies on the way to a path's end.
fn leads_through_array(doc: &Doc<'_>, parts: &[Part]) -> bool {
    match parts.split_first() {
        None | Some((_, [])) => false,
        Some((first, rest)) => match doc.get(&first.name) {
            Some(Value::Array(_)) => true,
            Some(Value::Document(inner)) => leads_through_array(&inner, rest),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson};

    #[test]
    fn what_becomes_of_a_value_is_told() {
        let value = |bson: Option<Bson>| bson.map_or(Value::Missing, Value::from);
        for (stored, expected, in_array, becomes) in [
            (None, Some(bson!(3)), false, Change::Filled),
            (Some(bson!(3)), Some(bson!(3)), false, Change::None),
            (Some(bson!(3)), Some(bson!(4)), false, Change::Corrected),
            (Some(Bson::Null), Some(bson!(4)), false, Change::Corrected),
            (Some(bson!(3)), None, false, Change::Removed),
            (Some(bson!([1, (Bson::Null)])), Some(bson!([1, 2])), true, Change::Filled),
            (Some(bson!([1, 2])), Some(bson!([(Bson::Null), 3])), true, Change::Removed),
            (Some(bson!([1, 2])), Some(bson!([2, 1])), false, Change::Corrected),
        ] {
            assert_eq!(
                change(&value(stored.clone()), &value(expected.clone()), in_array),
                becomes,
                "{stored:?} {expected:?}"
            );
        }
    }
}
