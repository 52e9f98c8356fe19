//! The array of a `lift` in a host that a client writes (SEMANTICS R11). Its items are or become documents of their own, so what a
//! client puts there would be lost: it is refused, unless the array is left as it is stored.

use crate::execute::evaluation::Host;
use crate::execute::host_fields::at;
use crate::execute::replaced::values::without;
use crate::fields::set_paths::put;
use crate::rule::Rule;
use document::value::order;
use document::{Result, Value};

/// Fails if the write would lose items. A host without the array keeps the one that is stored.
pub(crate) fn check(rule: &Rule, host: &mut Host) -> Result<()> {
    let Some(array) = &rule.lift else { return Ok(()) };
    let given = at(&host.after, array);
    let stored = host.before.as_ref().map_or(Value::Missing, |before| at(before, array));
    if order::equal(&given, &stored) && given.is_missing() == stored.is_missing() {
        return Ok(());
    }
    let loses_nothing = given.is_missing() || holds_nothing(&given) && holds_nothing(&stored);
    if !loses_nothing {
        return Err(rule.refusal(array));
    }
    host.after = match stored.is_missing() {
        true => without(&host.after, array),
        false => put(&host.after, &[(&array.parts, stored.borrow())]),
    };
    Ok(())
}

fn holds_nothing(value: &Value<'_>) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        value => value.is_nullish(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};
    use document::{Code, Doc};

    fn rule() -> Rule {
        let text = "database: shop\ncollections:\n  products:\n    subset:\n      recent: { from: reviews, by: productId, sort: { date: -1 }, keep: 2, lift: info.reviews }\n";
        crate::declare::from_yaml("pleach.yaml", text).into_result().unwrap().rules.remove(0)
    }

    /// What the host becomes; `None` if the write is refused.
    fn written(before: Option<Document>, after: Document) -> Option<Doc<'static>> {
        let mut host = Host { before: before.map(Doc::from), after: Doc::from(after) };
        match check(&rule(), &mut host) {
            Ok(()) => Some(host.after),
            Err(error) => {
                assert_eq!(error.code(), Code::ImmutableField);
                assert!(error.message().ends_with("write to reviews instead"), "{error}");
                None
            }
        }
    }

    #[test]
    fn an_array_is_accepted_as_it_is_stored_and_refused_otherwise() {
        let items = || doc! { "info": { "reviews": [{ "n": 1 }] } };
        let (empty, none) = (|| doc! { "info": { "reviews": [] } }, || doc! { "info": { "a": 1 } });
        for (before, after, becomes) in [
            (None, none(), Some(none())),
            (None, empty(), Some(doc! {})),
            (None, items(), None),
            (Some(items()), items(), Some(items())),
            (Some(items()), doc! { "info": { "a": 1 } }, Some(doc! { "info": { "a": 1, "reviews": [{ "n": 1 }] } })),
            (Some(items()), doc! {}, Some(items())),
            (Some(items()), empty(), None),
            (Some(items()), doc! { "info": { "reviews": 5 } }, None),
            (Some(items()), doc! { "info": { "reviews": null } }, None),
            (Some(empty()), doc! { "info": { "reviews": null } }, Some(empty())),
            (Some(none()), items(), None),
        ] {
            assert_eq!(written(before.clone(), after.clone()), becomes.map(Doc::from), "{before:?} {after}");
        }
    }
}
