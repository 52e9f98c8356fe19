//! Clients that write what a rule keeps (R11): every listed field with each `client_writes`.

use super::{Listed, errors, everything};
use crate::doors::{At, at_each_door};
use bson::{Bson, Document, doc};
use testing::registry::owned;

at_each_door!(named_fields_are_refused_or_ignored);

/// All fields, each with that key.
fn with(policy: &str) -> String {
    let line = |line: &str| match line.strip_suffix(" }") {
        Some(start) => format!("{start}, client_writes: {policy} }}\n"),
        None => format!("{line}\n"),
    };
    everything().lines().map(line).collect()
}

/// A document with nothing but a value at a path.
fn only(path: &str, value: i32) -> Document {
    match path.split_once('.') {
        Some((outer, inner)) => doc! { outer: only(inner, value) },
        None => doc! { path: value },
    }
}

fn at_path<'d>(document: &'d Document, path: &str) -> Option<&'d Bson> {
    match path.split_once('.') {
        Some((outer, inner)) => at_path(document.get_document(outer).ok()?, inner),
        None => document.get(path),
    }
}

fn named_fields_are_refused_or_ignored(at: At) {
    for policy in ["refuse", "ignore"] {
        let listed = Listed::new(at, &format!("owned_{policy}"), &with(policy), 45);
        let door = &listed.door;
        let mut seen = 0;
        for ((collection, path), n) in owned(&everything()).into_iter().zip(1_000_000..) {
            let story = format!("{collection}.{path} with client_writes: {policy}");
            let Some(host) = door.all(&collection).into_iter().next() else { continue };
            seen += 1;
            let id = host.get("_id").unwrap();
            let named = doc! { "update": &collection, "updates": [{ "q": { "_id": id }, "u": { "$set": { &path: n, "touched": n } } }] };
            let reply = door.ask(named);
            let mut whole = only(&path, n);
            whole.insert("_id", n);
            let brought = door.ask(doc! { "insert": &collection, "documents": [whole] });
            let after = door.rows(doc! { "find": &collection, "filter": { "_id": id } }).remove(0);
            // An array on the way has a value per element.
            let in_array = path.split_once('.').is_some_and(|(outer, _)| host.get_array(outer).is_ok());
            if !in_array {
                // As text: NaN differs from itself.
                let texts = [&after, &host].map(|document| format!("{:?}", at_path(document, &path)));
                assert_eq!(texts[0], texts[1], "{story}");
            }
            let touched = after.get_i32("touched").ok();
            match policy {
                "refuse" => {
                    assert_eq!((errors(&reply), touched), (vec![(0, 66)], None), "{story}: {reply}");
                    assert_eq!(errors(&brought), [(0, 66)], "{story}: {brought}");
                }
                _ => {
                    assert_eq!((errors(&reply), touched), (vec![], Some(n)), "{story}: {reply}");
                    assert_eq!(errors(&brought), [], "{story}: {brought}");
                    let stored = door.rows(doc! { "find": &collection, "filter": { "_id": n } }).remove(0);
                    assert_ne!(at_path(&stored, &path), Some(&Bson::Int32(n)), "{story}: {stored}");
                }
            }
        }
        assert!(seen > 30, "{seen} fields have a host");
        listed.assert_right(policy);
        listed.door.finish();
    }
}
