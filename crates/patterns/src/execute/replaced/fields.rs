//! Where a field stands in its document, and a field put back there. Pure.

use document::{Doc, DocWriter, Value};

/// The fields before and behind one of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Beside {
    previous: Option<String>,
    next: Option<String>,
}

impl Beside {
    pub(super) fn of(doc: &Doc<'_>, name: &str) -> Beside {
        let (mut previous, mut found) = (None, false);
        for (other, _) in doc.iter() {
            match (found, other.as_str() == name) {
                (true, _) => return Beside { previous, next: Some(other.as_str().to_owned()) },
                (false, true) => found = true,
                (false, false) => previous = Some(other.as_str().to_owned()),
            }
        }
        Beside { previous, next: None }
    }

    pub(super) fn write(&self, to: &mut DocWriter) {
        for (name, beside) in [("previous", &self.previous), ("next", &self.next)] {
            if let Some(beside) = beside {
                to.append(name, &Value::from(&**beside));
            }
        }
    }

    pub(super) fn read(from: &Value<'_>) -> Beside {
        let Value::Document(from) = from else { return Beside::default() };
        let text = |name: &str| Some(from.get(name)?.as_str()?.to_owned());
        Beside { previous: text("previous"), next: text("next") }
    }

    /// Whether the field has one of its neighbours again.
    fn is_met(&self, now: &Beside) -> bool {
        (self.previous.is_some() && self.previous == now.previous) || (self.next.is_some() && self.next == now.next)
    }
}

/// The document with another value of one field. It comes beside the neighbours that it had; if none of them is there, it stays
/// where it is, and a new one comes last.
pub(super) fn with_field(doc: &Doc<'_>, name: &str, value: &Value<'_>, was: Option<&Beside>) -> Doc<'static> {
    let is_there = doc.contains(name);
    let was = was.filter(|was| !is_there || !was.is_met(&Beside::of(doc, name)));
    let has = |beside: &Option<String>| beside.as_deref().filter(|beside| doc.contains(beside)).map(str::to_owned);
    let next = was.and_then(|was| has(&was.next));
    let previous = was.and_then(|was| has(&was.previous)).filter(|_| next.is_none());
    let moves = next.is_some() || previous.is_some();
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 64);
    for (other, current) in doc.iter() {
        let other = other.as_str();
        if next.as_deref() == Some(other) {
            writer.append(name, value);
        }
        match other == name {
            true if moves => {}
            true => drop(writer.append(name, value)),
            false => drop(writer.append(other, &current)),
        }
        if previous.as_deref() == Some(other) {
            writer.append(name, value);
        }
    }
    if !is_there && !moves {
        writer.append(name, value);
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_field_comes_back_beside_its_neighbours() {
        let was = Beside::of(&Doc::from(doc! { "_id": 1, "a": 0, "f": 0, "z": 1 }), "f");
        assert_eq!(was, Beside { previous: Some("a".to_owned()), next: Some("z".to_owned()) });
        for (now, right) in [
            (doc! { "_id": 1, "a": 0, "z": 1 }, doc! { "_id": 1, "a": 0, "f": 7, "z": 1 }),
            (doc! { "_id": 1, "a": 0, "z": 1, "f": 2 }, doc! { "_id": 1, "a": 0, "f": 7, "z": 1 }),
            (doc! { "_id": 1, "a": 0, "x": 1, "f": 2 }, doc! { "_id": 1, "a": 0, "f": 7, "x": 1 }),
            (doc! { "_id": 1, "a": 0, "f": 2, "x": 1, "z": 1 }, doc! { "_id": 1, "a": 0, "f": 7, "x": 1, "z": 1 }),
            (doc! { "_id": 1, "f": 2, "x": 1 }, doc! { "_id": 1, "f": 7, "x": 1 }),
            (doc! { "_id": 1, "x": 1 }, doc! { "_id": 1, "x": 1, "f": 7 }),
        ] {
            let given = with_field(&Doc::from(now.clone()), "f", &Value::Int32(7), Some(&was));
            assert_eq!(given.as_bytes(), Doc::from(right).as_bytes(), "{now}");
        }
    }
}
