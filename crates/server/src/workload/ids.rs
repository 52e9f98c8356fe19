//! The ids that a read asks for, and where they stand in an answer.

use document::value::order;
use document::{Array, Doc, Text, Value};
use smallvec::SmallVec;

/// Of an `$in` so many ids are looked for.
const LOOKED_FOR: usize = 3;

/// How deep an answer's documents are searched.
const DEPTH: usize = 8;

/// Of so many paths that hold an id each is counted; which of them is a reference is seen from the sum.
const PATHS: usize = 4;

pub(super) type Paths = SmallVec<[String; PATHS]>;

/// The first ids that a read asks for: `{ _id: … }`, alone or among other conditions.
#[derive(Default)]
pub(super) struct Asked<'a> {
    ids: SmallVec<[Value<'a>; LOOKED_FOR]>,
}

impl<'a> Asked<'a> {
    /// Returns `None` if the filter names no ids.
    pub(super) fn of(filter: &Doc<'a>) -> Option<Asked<'a>> {
        let mut asked = Asked::default();
        match filter.get("_id")? {
            Value::Document(operators) => match operators.iter().next()? {
                (name, Value::Array(ids)) if name.as_str() == "$in" => {
                    asked.ids.extend(ids.iter().filter(is_id).take(LOOKED_FOR));
                }
                (name, id) if name.as_str() == "$eq" => asked.ids.extend(Some(id).filter(is_id)),
                (name, _) if name.as_str().starts_with('$') => {}
                _ => asked.ids.push(Value::Document(operators)),
            },
            id => asked.ids.extend(Some(id).filter(is_id)),
        }
        (!asked.ids.is_empty()).then_some(asked)
    }

    /// The paths of the answer's documents that hold what is asked for: of several ids at least two, since one may be there by chance.
    pub(super) fn paths(&self, answer: &[u8]) -> Paths {
        let mut all = self.ids.iter().map(|id| paths_of(id, answer));
        let mut paths = all.next().unwrap_or_default();
        if self.ids.len() > 1 {
            let others: Paths = all.flatten().collect();
            let first = std::mem::take(&mut paths);
            let candidates = first.into_iter().chain(others.iter().cloned());
            let mut seen = Paths::new();
            for path in candidates {
                // Found for the first id and another, or for two others.
                let times = others.iter().filter(|other| **other == path).count();
                if !paths.contains(&path) && (times > 1 || (times == 1 && seen.contains(&path))) {
                    paths.push(path.clone());
                }
                seen.push(path);
            }
        }
        paths
    }
}

/// Truth, null and the like are everywhere.
fn is_id(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::ObjectId(_)
            | Value::String(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::Binary { .. }
            | Value::DateTime(_)
            | Value::Document(_)
    )
}

/// The paths under which documents of a batch hold the value. `batch` are the bytes of an array, perhaps cut.
fn paths_of(id: &Value<'_>, batch: &[u8]) -> Paths {
    let mut found = Paths::new();
    let mut names = SmallVec::new();
    for item in Array::trusted(batch).iter() {
        if let Value::Document(doc) = item {
            search(&doc, id, &mut names, &mut found);
        }
    }
    found
}

fn search<'a>(doc: &Doc<'a>, id: &Value<'_>, names: &mut SmallVec<[Text<'a>; DEPTH]>, found: &mut Paths) {
    for (name, value) in doc.iter() {
        if found.len() >= PATHS {
            return;
        }
        names.push(name);
        visit(&value, id, names, found);
        names.pop();
    }
}

/// An array's elements stand under the path of the array.
fn visit<'a>(value: &Value<'a>, id: &Value<'_>, names: &mut SmallVec<[Text<'a>; DEPTH]>, found: &mut Paths) {
    if is_same(value, id) {
        let path = names.iter().map(Text::as_str).collect::<Vec<_>>().join(".");
        if !found.contains(&path) {
            found.push(path);
        }
        return;
    }
    match value {
        Value::Document(inner) if names.len() < DEPTH => search(inner, id, names, found),
        Value::Array(items) => {
            for item in items.iter() {
                match item {
                    Value::Array(_) => {}
                    item => visit(&item, id, names, found),
                }
            }
        }
        _ => {}
    }
}

fn is_same(value: &Value<'_>, id: &Value<'_>) -> bool {
    match (value, id) {
        (Value::ObjectId(value), Value::ObjectId(id)) => value == id,
        (Value::String(value), Value::String(id)) => value.as_bytes() == id.as_bytes(),
        (Value::DateTime(value), Value::DateTime(id)) => value == id,
        (Value::Binary { bytes: value, .. }, Value::Binary { bytes: id, .. }) => value.as_slice() == id.as_slice(),
        (Value::Document(value), Value::Document(id)) => value.as_bytes() == id.as_bytes(),
        (value, id) if value.is_number() && id.is_number() => order::compare(value, id).is_eq(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

    fn paths(filter: &RawDocumentBuf, answer: &[RawDocumentBuf]) -> Vec<String> {
        let mut batch = RawArrayBuf::new();
        answer.iter().for_each(|doc| batch.push(doc.clone()));
        let Some(asked) = Asked::of(&Doc::trusted(filter.as_bytes())) else { return vec!["none".into()] };
        asked.paths(batch.as_bytes()).into_vec()
    }

    #[test]
    fn ids_are_found_where_they_stand() {
        let order = rawdoc! { "_id": 1, "customerId": 77, "ship": { "by": "dhl" }, "items": [{ "product": "a" }, { "product": "b" }] };
        assert_eq!(paths(&rawdoc! { "_id": 77 }, std::slice::from_ref(&order)), ["customerId"]);
        assert_eq!(
            paths(&rawdoc! { "_id": 77_i64 }, std::slice::from_ref(&order)),
            ["customerId"],
            "numbers of all types are one type"
        );
        assert_eq!(paths(&rawdoc! { "_id": { "$eq": "dhl" } }, std::slice::from_ref(&order)), ["ship.by"]);
        assert_eq!(paths(&rawdoc! { "_id": { "$in": ["a", "b"] } }, std::slice::from_ref(&order)), ["items.product"]);
        assert_eq!(paths(&rawdoc! { "_id": 78 }, std::slice::from_ref(&order)), [""; 0]);
        assert_eq!(paths(&rawdoc! { "_id": { "$gt": 77 } }, std::slice::from_ref(&order)), ["none"]);
        assert_eq!(paths(&rawdoc! { "_id": true }, std::slice::from_ref(&order)), ["none"]);
        assert_eq!(paths(&rawdoc! { "customerId": 77 }, &[order]), ["none"]);
    }

    #[test]
    fn one_of_several_ids_may_be_there_by_chance() {
        let orders =
            [rawdoc! { "_id": 1, "customerId": 5, "pieces": 9 }, rawdoc! { "_id": 2, "customerId": 9, "pieces": 1 }];
        assert_eq!(paths(&rawdoc! { "_id": { "$in": [5, 9] } }, &orders), ["customerId"]);
    }

    #[test]
    fn a_cut_answer_is_searched_as_far_as_it_goes() {
        let mut batch = RawArrayBuf::new();
        (0..50).for_each(|at| batch.push(rawdoc! { "_id": at, "user": format!("user{at}") }));
        let filter = rawdoc! { "_id": "user1" };
        let asked = Asked::of(&Doc::trusted(filter.as_bytes())).unwrap();
        for length in 0..batch.as_bytes().len() {
            let found = asked.paths(&batch.as_bytes()[..length]);
            assert!(found.is_empty() || found[0] == "user");
        }
        assert_eq!(asked.paths(&batch.as_bytes()[..200]).into_vec(), ["user"]);
    }
}
