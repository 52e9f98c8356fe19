//! What counts as the same answer: values, exact BSON types, field order, error code and code name.

use bson::{Bson, Document};

use crate::json;

/// One place where two replies differ.
#[derive(Debug, PartialEq)]
pub struct Difference {
    pub path: String,
    pub theirs: String,
    pub ours: String,
}

/// Compares two replies that are already in normal form. Messages count only if asked for.
pub fn compare(theirs: &Document, ours: &Document, message: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    documents("", theirs, ours, message, &mut found);
    found
}

fn documents(path: &str, theirs: &Document, ours: &Document, message: bool, found: &mut Vec<Difference>) {
    let left: Vec<_> = theirs.iter().filter(|(key, _)| message || !is_message(key)).collect();
    let right: Vec<_> = ours.iter().filter(|(key, _)| message || !is_message(key)).collect();
    let before = found.len();
    for (key, value) in &left {
        let path = join(path, key);
        match ours.get(key) {
            Some(other) => values(&path, value, other, message, found),
            None => found.push(difference(&path, &json::line(value), "(missing)")),
        }
    }
    for (key, value) in &right {
        if !theirs.contains_key(key) {
            found.push(difference(&join(path, key), "(missing)", &json::line(value)));
        }
    }
    // A real server writes the fields of a cursor in one order for a collection and in another for none.
    if path != "cursor"
        && found.len() == before
        && !left.iter().map(|(key, _)| key).eq(right.iter().map(|(key, _)| key))
    {
        let names = |fields: &[(&String, &Bson)]| {
            let names: Vec<_> = fields.iter().map(|(key, _)| key.as_str()).collect();
            format!("fields in order {}", names.join(", "))
        };
        found.push(difference(path, &names(&left), &names(&right)));
    }
}

fn values(path: &str, theirs: &Bson, ours: &Bson, message: bool, found: &mut Vec<Difference>) {
    match (theirs, ours) {
        (Bson::Document(a), Bson::Document(b)) => documents(path, a, b, message, found),
        (Bson::Array(a), Bson::Array(b)) => {
            if a.len() != b.len() {
                found.push(difference(path, &json::line(theirs), &json::line(ours)));
                return;
            }
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                values(&join(path, &at.to_string()), a, b, message, found);
            }
        }
        _ if same(theirs, ours) => {}
        _ => found.push(difference(path, &json::line(theirs), &json::line(ours))),
    }
}

/// Equal in type and value; zeros keep their sign and all NaN are one.
fn same(a: &Bson, b: &Bson) -> bool {
    match (a, b) {
        (Bson::Double(a), Bson::Double(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

fn is_message(key: &str) -> bool {
    key == "errmsg"
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn difference(path: &str, theirs: &str, ours: &str) -> Difference {
    Difference { path: path.to_owned(), theirs: theirs.to_owned(), ours: ours.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn check(theirs: Document, ours: Document, paths: &[&str]) {
        let found: Vec<_> = compare(&theirs, &ours, false).into_iter().map(|difference| difference.path).collect();
        assert_eq!(found, paths, "{theirs} and {ours}");
    }

    #[test]
    fn what_counts() {
        check(doc! { "a": 1, "b": [1, { "c": 2 }] }, doc! { "a": 1, "b": [1, { "c": 2 }] }, &[]);
        check(doc! { "a": 1 }, doc! { "a": 1i64 }, &["a"]);
        check(doc! { "a": 0.0 }, doc! { "a": -0.0 }, &["a"]);
        check(doc! { "a": f64::NAN }, doc! { "a": f64::NAN }, &[]);
        check(doc! { "a": 1, "b": 2 }, doc! { "b": 2, "a": 1 }, &[""]);
        check(doc! { "cursor": { "id": 1, "ns": 2 } }, doc! { "cursor": { "ns": 2, "id": 1 } }, &[]);
        check(doc! { "a": { "b": 1 } }, doc! { "a": { "c": 1 } }, &["a.b", "a.c"]);
        check(doc! { "a": [1, 2] }, doc! { "a": [1] }, &["a"]);
        check(doc! { "errmsg": "x", "code": 2 }, doc! { "errmsg": "y", "code": 3 }, &["code"]);
        assert_eq!(compare(&doc! { "errmsg": "x" }, &doc! { "errmsg": "y" }, true).len(), 1);
    }
}
