//! The state that folds keep in `_pleach` stands at the end of its host (SEMANTICS R8): documents and updates that leave it there.
//! What a client adds to a host later stands behind it until one of our own statements writes the host's fields anew: to move it with
//! every write would be a rewrite per write.

use crate::mql::{call, call_with, document, field, list, literal, object};
use crate::rule::owned::STATE;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Array, Doc, DocWriter, Result, Value};

/// Whether a document has a state that something stands behind.
pub(crate) fn is_covered(host: &Doc<'_>) -> bool {
    let mut names = host.iter().map(|(name, _)| name);
    names.any(|name| name.as_str() == STATE) && names.next().is_some()
}

/// The document with its state at its end.
pub(crate) fn with_state_last(host: Doc<'static>) -> Doc<'static> {
    if !is_covered(&host) {
        return host;
    }
    let mut writer = DocWriter::with_capacity(host.as_bytes().len());
    for (name, value) in host.iter().filter(|(name, _)| name.as_str() != STATE) {
        writer.append(name.as_str(), &value);
    }
    writer.append(STATE, &host.get(STATE).unwrap_or(Value::Missing));
    writer.finish()
}

/// The same as a stage of an update.
fn stage() -> Value<'static> {
    let without = call("$unsetField", object([("field", Value::from(STATE)), ("input", Value::from("$$ROOT"))]));
    let state = object([(STATE, field(STATE))]);
    call("$replaceWith", call_with("$mergeObjects", [without, state]))
}

/// An update in stages that leaves the state last; `None` if it has operators.
pub(crate) fn in_stages(update: &Update) -> Result<Option<Update>> {
    let Value::Array(stages) = &update.source else { return Ok(None) };
    let stages: Array<'static> = stages.iter().map(Value::into_owned).chain([stage()]).collect();
    let mut moved = Update::parse(&Value::Array(stages), &[], &mut Names::new())?;
    moved.constants = update.constants.clone();
    Ok(Some(moved))
}

/// The update that makes fields of the first level in `stored` what they are in `wanted`, with the state last; `None` if they are.
pub(crate) fn difference<'n>(
    stored: &Doc<'_>,
    wanted: &Doc<'_>,
    names: impl Iterator<Item = &'n str>,
) -> Result<Option<Update>> {
    let mut seen: Vec<&str> = Vec::new();
    let (mut set, mut unset): (Vec<(&str, Value<'_>)>, Vec<&str>) = (Vec::new(), Vec::new());
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        match (stored.get(name), wanted.get(name)) {
            (have, Some(want)) if have.as_ref() != Some(&want) => set.push((name, want)),
            (Some(_), None) => unset.push(name),
            _ => {}
        }
    }
    if set.is_empty() && unset.is_empty() {
        return Ok(None);
    }
    let comes_behind = set.iter().any(|(name, _)| !stored.contains(name));
    let spec = match wanted.contains(STATE) && (comes_behind || is_covered(stored)) {
        true => {
            let set = document(set.into_iter().map(|(name, value)| (name, literal(value))));
            let unset = list(unset.into_iter().map(Value::from));
            let stages = [call("$unset", unset), call("$set", Value::Document(set)), stage()];
            list(stages.into_iter().filter(|stage| !is_empty(stage)))
        }
        false => {
            let set = Value::Document(document(set));
            let unset = Value::Document(document(unset.into_iter().map(|name| (name, Value::from(true)))));
            let operators = [("$set", set), ("$unset", unset)];
            object(
                operators
                    .into_iter()
                    .filter(|(_, fields)| !matches!(fields, Value::Document(fields) if fields.is_empty())),
            )
        }
    };
    Update::parse(&spec, &[], &mut Names::new()).map(Some)
}

/// Whether a stage names no field.
fn is_empty(stage: &Value<'_>) -> bool {
    let Value::Document(stage) = stage else { return false };
    stage.iter().any(|(_, fields)| match fields {
        Value::Document(fields) => fields.is_empty(),
        Value::Array(fields) => fields.iter().next().is_none(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{bson, doc};
    use document::Env;
    use document::filter::Details;
    use document::update::Applied;

    fn applied(update: &Update, host: &Doc<'_>) -> Doc<'static> {
        match update.apply(host, &Details::default(), &Env::fixed()).unwrap() {
            Applied::Changed(doc) => doc,
            Applied::Unchanged => host.clone().into_owned(),
        }
    }

    #[test]
    fn documents_end_with_their_state() {
        for (host, wanted) in [
            (doc! { "_id": 1, "_pleach": { "a": 1 }, "best": 5 }, doc! { "_id": 1, "best": 5, "_pleach": { "a": 1 } }),
            (doc! { "_id": 1, "a": 2, "_pleach": {} }, doc! { "_id": 1, "a": 2, "_pleach": {} }),
            (doc! { "_id": 1, "a": 2 }, doc! { "_id": 1, "a": 2 }),
            (doc! {}, doc! {}),
        ] {
            let (host, wanted) = (Doc::from(host), Doc::from(wanted));
            assert_eq!(with_state_last(host.clone()).as_bytes(), wanted.as_bytes());
            // As stages the same, whether there is a state or not.
            let touched = Value::from(bson!([{ "$set": { "_id": "$_id" } }]));
            let update = Update::parse(&touched, &[], &mut Names::new()).unwrap();
            if host.contains("_id") {
                assert_eq!(applied(&in_stages(&update).unwrap().unwrap(), &host).as_bytes(), wanted.as_bytes());
            }
        }
    }

    #[test]
    fn a_difference_leaves_the_state_last() {
        let names = ["a", "best", "gone", "_pleach", "a"];
        for (stored, wanted, has_stages) in [
            // A new field; a new field and a new state; only changed ones; one that goes; something of a client's behind.
            (
                doc! { "_id": 1, "a": 1, "_pleach": { "a": 1 } },
                doc! { "_id": 1, "a": 1, "best": { "$x": 2 }, "_pleach": { "a": 1 } },
                true,
            ),
            (doc! { "_id": 1 }, doc! { "_id": 1, "a": 1, "best": [1], "_pleach": { "a": 1 } }, true),
            (doc! { "_id": 1, "a": 1, "_pleach": { "a": 1 } }, doc! { "_id": 1, "a": 2, "_pleach": { "a": 2 } }, false),
            (
                doc! { "_id": 1, "a": 1, "gone": 1, "_pleach": { "a": 1 } },
                doc! { "_id": 1, "a": 1, "_pleach": { "a": 1 } },
                false,
            ),
            (doc! { "_id": 1, "gone": 1, "_pleach": {} }, doc! { "_id": 1, "a": 1, "_pleach": {} }, true),
            (
                doc! { "_id": 1, "a": 1, "_pleach": { "a": 1 }, "x": 1 },
                doc! { "_id": 1, "a": 2, "x": 1, "_pleach": { "a": 1 } },
                true,
            ),
            (doc! { "_id": 1, "x": 1 }, doc! { "_id": 1, "x": 1, "best": 2 }, false),
        ] {
            let (stored, wanted) = (Doc::from(stored), Doc::from(wanted));
            let update = difference(&stored, &wanted, names.into_iter()).unwrap().unwrap();
            assert_eq!(matches!(update.source, Value::Array(_)), has_stages, "{:?}", update.source);
            assert_eq!(applied(&update, &stored), wanted);
            assert!(!is_covered(&applied(&update, &stored)));
            assert!(difference(&wanted, &wanted, names.into_iter()).unwrap().is_none());
        }
    }
}
