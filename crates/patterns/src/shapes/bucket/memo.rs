//! `$inc`s of slots, compiled once: events of some days with the same amounts are the same few updates again and again.

use crate::mql::call;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, Result, Value};
use hashbrown::HashMap;
use std::cell::RefCell;

/// A quarter of days has some hundred slots and sums; a thread forgets all when it knows this many.
const MOST: usize = 4_096;

/// Longer ones come from batches for one bucket: they hardly ever come again.
const LONGEST: usize = 256;

thread_local! {
    static COMPILED: RefCell<HashMap<Vec<u8>, Update>> = RefCell::default();
}

/// `{ $inc: fields }`.
pub(super) fn increments(fields: Doc<'static>) -> Result<Update> {
    let compile = || Update::parse(&call("$inc", Value::Document(fields.borrow())), &[], &mut Names::new());
    let bytes = fields.as_bytes();
    if bytes.len() > LONGEST {
        return compile();
    }
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(update) = compiled.get(bytes) {
            return Ok(update.clone());
        }
        let update = compile()?;
        if compiled.len() >= MOST {
            compiled.clear();
        }
        compiled.insert(bytes.to_vec(), update.clone());
        Ok(update)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::Env;
    use document::update::Applied;

    #[test]
    fn the_same_words_give_the_same_update_and_others_another() {
        let apply = |fields: bson::Document| {
            let update = increments(Doc::from(fields.clone())).unwrap();
            assert_eq!(update.source, Value::from(bson::bson!({ "$inc": fields })));
            match update.apply(&Doc::from(doc! { "_id": 1 }), &Default::default(), &Env::fixed()).unwrap() {
                Applied::Changed(after) => bson::Document::try_from(&after).unwrap(),
                Applied::Unchanged => panic!("nothing changed"),
            }
        };
        for _ in 0..2 {
            assert_eq!(apply(doc! { "items.0605.a": 1 }), doc! { "_id": 1, "items": { "0605": { "a": 1 } } });
            assert_eq!(apply(doc! { "items.0605.a": 1_i64 }), doc! { "_id": 1, "items": { "0605": { "a": 1_i64 } } });
            assert_eq!(apply(doc! { "items.0606.a": 2 }), doc! { "_id": 1, "items": { "0606": { "a": 2 } } });
        }
        for number in 0..2 * MOST {
            increments(Doc::from(doc! { format!("items.{number}.a"): 1 })).unwrap();
        }
        assert!(COMPILED.with_borrow(|compiled| compiled.len()) <= MOST);
    }
}
