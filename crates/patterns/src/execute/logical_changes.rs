//! What statements on stored documents mean for logical ones: each that came, went or changed, once (SEMANTICS R34).
//!
//! A reading may move from one stored document to another, or to another place: what one statement takes and another puts is one
//! change, in whichever order they run.

use crate::rule::{Stack, key};
use crate::shapes::evaluate::decoded;
use document::op::{Change, Namespace};
use document::{Doc, Result, Value};
use hashbrown::HashMap;

#[derive(Default)]
pub(crate) struct LogicalChanges {
    /// By `_id`: one that is not unique names several readings.
    readings: HashMap<Vec<u8>, Pair>,
}

#[derive(Default)]
struct Pair {
    before: Vec<Doc<'static>>,
    after: Vec<Doc<'static>>,
}

impl LogicalChanges {
    /// Takes in what a statement changed in one of the places.
    pub(crate) fn add(&mut self, stack: &Stack, stored: &Namespace, changes: &[Change]) -> Result<()> {
        let Some(place) = stack.place(stored) else { return Ok(()) };
        for change in changes {
            for reading in change.before.iter().map(|stored| decoded(&*place.shape, stored)) {
                reading?.into_iter().for_each(|reading| self.of(&reading).before.push(reading));
            }
            for reading in change.after.iter().map(|stored| decoded(&*place.shape, stored)) {
                reading?.into_iter().for_each(|reading| self.of(&reading).after.push(reading));
            }
        }
        Ok(())
    }

    /// Takes in documents that were added.
    pub(crate) fn add_new(&mut self, documents: Vec<Doc<'static>>) {
        documents.into_iter().for_each(|document| self.of(&document).after.push(document));
    }

    fn of(&mut self, reading: &Doc<'static>) -> &mut Pair {
        self.readings.entry(key::bytes(&reading.get("_id").unwrap_or(Value::Missing))).or_default()
    }

    /// The changes, each of one reading; those that are as they were are none.
    pub(crate) fn into_changes(self) -> Vec<Change> {
        let mut changes = Vec::new();
        for Pair { before, mut after } in self.readings.into_values() {
            let mut left: Vec<Doc<'static>> = Vec::new();
            for reading in before {
                match after.iter().position(|other| other.as_bytes() == reading.as_bytes()) {
                    Some(at) => drop(after.swap_remove(at)),
                    None => left.push(reading),
                }
            }
            let (mut before, mut after) = (left.into_iter(), after.into_iter());
            loop {
                let (before, after) = (before.next(), after.next());
                if before.is_none() && after.is_none() {
                    break;
                }
                // Readings that share an `_id` are changes of their own.
                let id = Value::Int64(i64::try_from(changes.len()).unwrap_or(i64::MAX));
                changes.push(Change { id, before, after });
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::shape::Place;
    use bson::doc;
    use std::sync::Arc;
    use std::time::Instant;

    fn stack() -> Stack {
        let text =
            "{ database: shop, collections: { data: { bucket: { into: hours, time: ts, by: [s], every: hour } } } }";
        let mut rules = crate::declare::from_yaml("rules", text).into_result().unwrap().rules;
        let rule = Arc::new(rules.remove(0));
        let bucket = rule.bucket().unwrap().clone();
        let places = vec![Place::of_bucket(&bucket), Place::plain(Namespace::new("shop", "aside"))];
        Stack { logical: rule.host.clone(), rule, places, since: Instant::now(), is_source: true }
    }

    fn reading(id: i32, temp: i32) -> Doc<'static> {
        Doc::from(doc! { "_id": id, "s": 1, "ts": bson::DateTime::from_millis(i64::from(id) * 1_000), "temp": temp })
    }

    fn stored(stack: &Stack, readings: &[(i32, i32)]) -> Option<Doc<'static>> {
        let bucket = stack.bucket().unwrap();
        let encoded: Vec<_> = readings.iter().map(|(id, temp)| bucket.encode(&reading(*id, *temp)).unwrap()).collect();
        let entries: Vec<_> = encoded.iter().map(|encoded| encoded.entry.clone()).collect();
        bucket.build(&encoded.first()?.key, 0, &entries)
    }

    fn shown(changes: LogicalChanges) -> Vec<String> {
        let temp = |doc: Option<Doc<'static>>| doc.map(|doc| format!("{:?}", doc.get("temp").unwrap()));
        let mut shown: Vec<String> = changes
            .into_changes()
            .into_iter()
            .map(|change| format!("{:?} -> {:?}", temp(change.before), temp(change.after)))
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn what_a_bucket_becomes_is_said_per_reading() {
        let stack = stack();
        let bucket = stack.bucket().unwrap().into.clone();
        let change = |before: &[(i32, i32)], after: &[(i32, i32)]| {
            let change = Change { id: Value::Null, before: stored(&stack, before), after: stored(&stack, after) };
            let mut changes = LogicalChanges::default();
            changes.add(&stack, &bucket, &[change]).unwrap();
            shown(changes)
        };
        assert_eq!(change(&[(1, 5), (2, 6)], &[(1, 5), (2, 7)]), ["Some(\"Int32(6)\") -> Some(\"Int32(7)\")"]);
        assert_eq!(change(&[], &[(1, 5)]), ["None -> Some(\"Int32(5)\")"]);
        assert_eq!(change(&[(1, 5), (2, 6)], &[]), ["Some(\"Int32(5)\") -> None", "Some(\"Int32(6)\") -> None"]);
        assert_eq!(change(&[(1, 5), (2, 6)], &[(2, 6), (1, 5)]), [] as [&str; 0]);
        // Two readings share an `_id`: one of them goes.
        assert_eq!(change(&[(1, 5), (1, 6)], &[(1, 6)]), ["Some(\"Int32(5)\") -> None"]);
    }

    #[test]
    fn a_reading_that_moves_to_another_place_is_one_change() {
        let stack = stack();
        let bucket = stack.bucket().unwrap().into.clone();
        for put_first in [true, false] {
            let mut changes = LogicalChanges::default();
            let put = Change { id: Value::Null, before: None, after: stored(&stack, &[(1, 9)]) };
            let taken = Change { id: Value::Null, before: Some(reading(1, 5)), after: None };
            if put_first {
                changes.add(&stack, &bucket, std::slice::from_ref(&put)).unwrap();
            }
            changes.add(&stack, &Namespace::new("shop", "aside"), &[taken]).unwrap();
            if !put_first {
                changes.add(&stack, &bucket, &[put]).unwrap();
            }
            assert_eq!(shown(changes), ["Some(\"Int32(5)\") -> Some(\"Int32(9)\")"]);
        }
    }
}
