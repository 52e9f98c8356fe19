//! The collections that a row of the catalog may name as places of its rule's documents. Whoever can write the catalog, directly or
//! with a dump, must not be able to make the background connection move a collection that has nothing to do with the rule.

use crate::declare::from_catalog;
use crate::life::relocate::record::{Location, Relocation};
use crate::rule::Rule;
use crate::rule::names;
use document::op::Namespace;
use document::{Code, Error, Result};
use std::collections::BTreeSet;

/// Fails unless every collection that the shape names is one that Pleach would have named for the rule: the collection where the
/// declared form or an earlier one is stored, and what `pleach.aside.` has for these and for the rule's own collection.
pub(crate) fn check(rule: &Rule, shape: &Relocation) -> Result<()> {
    let places = || shape.places.iter().chain(shape.switchover.iter().flat_map(|switchover| &switchover.places));
    let mut forms = BTreeSet::from_iter(
        rule.shape().and_then(|shape| shape.declared_place()).map(|into| into.collection.to_string()),
    );
    for place in places() {
        forms.extend(check_place(rule, place)?);
    }
    let is_aside_of_form = |name: &str| forms.iter().any(|form| is_aside(&Namespace::new(&rule.host.db, form), name));
    for (from, to) in shape.switchover.iter().flat_map(|switchover| &switchover.renames) {
        let makes_room = **from == *rule.host.collection && is_aside(&rule.host, to);
        let comes_back = **to == *rule.host.collection && is_aside(&rule.host, from);
        let is_form = forms.contains(from) && is_aside(&Namespace::new(&rule.host.db, from), to);
        if !makes_room && !comes_back && !is_form {
            return Err(foreign(rule, &format!("the renaming of {from} to {to}")));
        }
    }
    match &shape.moved {
        Some((stored, _)) if !is_aside(&rule.host, stored) && !forms.contains(stored) && !is_aside_of_form(stored) => {
            Err(foreign(rule, stored))
        }
        _ => Ok(()),
    }
}

/// The collections that the shape names, under every name that they have while it is moved.
pub(crate) fn collections(rule: &Rule, shape: &Relocation) -> Vec<Namespace> {
    let switchover = || shape.switchover.iter();
    let places =
        shape.places.iter().chain(switchover().flat_map(|switchover| &switchover.places)).map(|place| &place.stored);
    let renamed = switchover().flat_map(|switchover| &switchover.renames).flat_map(|(from, to)| [from, to]);
    let all: BTreeSet<&String> = places.chain(renamed).collect();
    all.into_iter().map(|name| Namespace::new(&rule.host.db, name)).collect()
}

/// Returns where the place's form is stored when nothing is under way, if it has one.
fn check_place(rule: &Rule, place: &Location) -> Result<Option<String>> {
    let Some(declaration) = &place.declaration else {
        return match is_aside(&rule.host, &place.stored) {
            true => Ok(None),
            false => Err(foreign(rule, &place.stored)),
        };
    };
    let form = from_catalog(declaration)?;
    match form.shape().and_then(|shape| shape.declared_place()) {
        Some(into)
            if form.name == rule.name
                && form.host == rule.host
                && (*into.collection == *place.stored || is_aside(into, &place.stored)) =>
        {
            Ok(Some(into.collection.to_string()))
        }
        _ => Err(foreign(rule, &place.stored)),
    }
}

/// Whether a name is one of those that a collection gets when it has to make room (see [`crate::life::relocate::stored::free_name`]).
fn is_aside(ns: &Namespace, name: &str) -> bool {
    let aside = names::aside(ns);
    match name.strip_prefix(&*aside.collection) {
        Some("") => true,
        Some(more) => more.strip_prefix('.').is_some_and(|number| number.parse::<u32>().is_ok()),
        None => false,
    }
}

fn foreign(rule: &Rule, what: &str) -> Error {
    let message =
        format!("the row of rule {} in the catalog names \"{what}\", which is none of its collections", rule.name);
    Error::new(Code::BadValue, message).with_hint("Pleach did not write this row: see who may write to pleach.catalog")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::relocate::record::Switchover;
    use bson::doc;
    use document::{Doc, Value};

    fn declared(into: &str) -> Doc<'static> {
        let bucket = doc! { "into": into, "time": "ts", "by": ["s"], "every": "hour" };
        Doc::from(doc! { "database": "shop", "collections": { "data": { "bucket": bucket } } })
    }

    fn stored(name: &str, into: &str) -> Location {
        Location { stored: name.to_owned(), declaration: Some(declared(into)) }
    }

    fn renamed(from: &str, to: &str) -> Relocation {
        let renames = vec![(from.to_owned(), to.to_owned())];
        let switchover = Switchover { places: vec![stored("hours", "hours")], renames, begun: true };
        Relocation { switchover: Some(switchover), ..Relocation::default() }
    }

    #[test]
    fn only_names_of_the_rule_are_its_own() {
        let rule = from_catalog(&declared("hours")).unwrap();
        let at = |places: Vec<Location>| Relocation { places, ..Relocation::default() };
        let other = Doc::from(doc! { "database": "shop", "collections": { "other": { "bucket": {
        "into": "secret", "time": "ts", "by": ["s"], "every": "hour" } } } });
        let elsewhere = Doc::from(doc! { "database": "bank", "collections": { "data": { "bucket": {
        "into": "hours", "time": "ts", "by": ["s"], "every": "hour" } } } });
        let moved =
            |name: &str| Relocation { moved: Some((name.to_owned(), Value::Int32(1))), ..Relocation::default() };
        for (shape, is_own) in [
            (Relocation::default(), true),
            (at(vec![stored("hours", "hours")]), true),
            (at(vec![stored("hours", "hours"), Location::plain("pleach.aside.data")]), true),
            (at(vec![stored("hours", "hours"), Location::plain("pleach.aside.data.2")]), true),
            (at(vec![stored("hours", "hours"), stored("pleach.aside.hours", "hours")]), true),
            (at(vec![stored("hours", "hours"), stored("days", "days")]), true),
            (at(vec![stored("hours", "hours"), Location::plain("secret")]), false),
            (at(vec![stored("hours", "hours"), Location::plain("pleach.aside.secret")]), false),
            (at(vec![stored("hours", "hours"), Location::plain("pleach.aside.data.x")]), false),
            (at(vec![stored("secret", "hours")]), false),
            (at(vec![Location { stored: "secret".to_owned(), declaration: Some(other) }]), false),
            (at(vec![Location { stored: "hours".to_owned(), declaration: Some(elsewhere) }]), false),
            (renamed("data", "pleach.aside.data"), true),
            (renamed("pleach.aside.data", "data"), true),
            (renamed("hours", "pleach.aside.hours"), true),
            (renamed("secret", "pleach.aside.data"), false),
            (renamed("secret", "mine"), false),
            (renamed("hours", "mine"), false),
            (moved("pleach.aside.data"), true),
            (moved("hours"), true),
            (moved("secret"), false),
        ] {
            assert_eq!(check(&rule, &shape).is_ok(), is_own, "{shape:?}");
        }
    }
}
