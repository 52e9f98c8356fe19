//! What becomes of a shape when it is declared, changed or dropped: where its documents will be, and what is renamed for it.

use crate::execute::access::Access;
use crate::life::relocate::record::{Location, Switchover};
use crate::life::relocate::stored;
use crate::life::relocate::stored::CollectionInfo;
use crate::life::{CatalogRule, expiry};
use crate::rule::Rule;
use crate::rule::State;
use document::op::Namespace;
use document::{Code, Error, Result, Value};

/// What a declared shape asks for.
#[derive(Clone, Debug)]
pub(crate) struct RelocationPlan {
    pub(crate) switchover: Switchover,
    /// Whether the view is there already.
    pub(crate) view_is_there: bool,
}

impl RelocationPlan {
    /// Whether documents that are there will be stored in another form.
    pub(crate) fn rewrites(&self) -> bool {
        self.switchover.places.len() > 1
    }
}

/// From what is there to what is declared; `entry` is the rule as it is kept, if it is.
pub(crate) async fn to_declared(
    at: &mut Access<'_>,
    entry: Option<&CatalogRule>,
    rule: &Rule,
    into: &Namespace,
) -> Result<RelocationPlan> {
    let place = Location { stored: into.collection.to_string(), declaration: Some(rule.declaration.clone()) };
    let relocation = entry.and_then(|entry| entry.row.shape.as_ref().map(|shape| (entry, shape)));
    let Some((entry, relocation)) = relocation else { return from_outside(at, rule, into, place).await };
    if relocation.switchover.as_ref().is_some_and(|switchover| switchover.begun)
        || (entry.row.with_data && entry.row.state == State::Retiring)
    {
        return Err(under_way(rule));
    }
    if relocation.places.is_empty() {
        // Nothing has become of it yet.
        return from_outside(at, rule, into, place).await;
    }
    let (mut same, others): (Vec<Location>, Vec<Location>) =
        relocation.places.iter().cloned().partition(|known| *known == place);
    if let Some(place) = same.pop() {
        // It was on its way out, or to another form.
        let places = [place].into_iter().chain(others).collect();
        return Ok(RelocationPlan { switchover: Switchover { places, ..Switchover::default() }, view_is_there: true });
    }
    let [old] = relocation.places.as_slice() else { return Err(under_way(rule)) };
    if old.stored != place.stored {
        refuse_documents(at, rule, into).await?;
        let switchover = Switchover { places: vec![place, old.clone()], ..Switchover::default() };
        return Ok(RelocationPlan { switchover, view_is_there: true });
    }
    let aside = stored::free_name(at, into).await?.collection.to_string();
    let renames = vec![(old.stored.clone(), aside.clone())];
    let old = Location { stored: aside, ..old.clone() };
    Ok(RelocationPlan {
        switchover: Switchover { places: vec![place, old], renames, begun: false },
        view_is_there: true,
    })
}

/// Of a collection that no rule has shaped.
async fn from_outside(at: &mut Access<'_>, rule: &Rule, into: &Namespace, place: Location) -> Result<RelocationPlan> {
    let logical = &rule.host;
    let just_there = |place: Location, view_is_there: bool| RelocationPlan {
        switchover: Switchover { places: vec![place], ..Switchover::default() },
        view_is_there,
    };
    match stored::look_up(at, logical).await? {
        None => {
            crate::life::relocate::adopt::check(at, rule, into).await?;
            Ok(just_there(place, false))
        }
        Some(found) if found.is_view() && found.view_on().as_deref() == Some(&*into.collection) => {
            crate::life::relocate::adopt::check(at, rule, into).await?;
            Ok(just_there(place, true))
        }
        Some(found) if found.kind == "collection" => {
            refuse_what_cannot_move(at, rule, &found).await?;
            refuse_documents(at, rule, into).await?;
            let aside = stored::free_name(at, logical).await?.collection.to_string();
            let renames = vec![(logical.collection.to_string(), aside.clone())];
            let places = vec![place, Location::plain(&aside)];
            Ok(RelocationPlan { switchover: Switchover { places, renames, begun: false }, view_is_there: false })
        }
        Some(found) => Err(Error::new(
            Code::NamespaceExists,
            format!("rule {} needs the name {logical}, and that is a {}", rule.name, found.kind),
        )
        .with_hint("drop it, or declare the rule on another name")),
    }
}

/// The way back: documents as they are, under their own name. `None` if they are there already.
pub(crate) async fn to_plain(at: &mut Access<'_>, entry: &CatalogRule) -> Result<Option<Switchover>> {
    let relocation = entry.row.shape.clone().unwrap_or_default();
    if relocation.switchover.as_ref().is_some_and(|switchover| switchover.begun) {
        return Err(under_way(&entry.rule));
    }
    if relocation.places.is_empty() {
        return Ok(None);
    }
    let (plain, shaped): (Vec<Location>, Vec<Location>) =
        relocation.places.into_iter().partition(|place| place.declaration.is_none());
    let first = match plain.into_iter().next() {
        Some(plain) => plain,
        None => Location::plain(&stored::free_name(at, &entry.rule.host).await?.collection),
    };
    let places = [first].into_iter().chain(shaped).collect();
    Ok(Some(Switchover { places, ..Switchover::default() }))
}

/// What the collection's own indexes and options promise, buckets cannot.
async fn refuse_what_cannot_move(at: &mut Access<'_>, rule: &Rule, found: &CollectionInfo) -> Result<()> {
    let logical = &rule.host;
    let refused = |what: &str, hint: &str| {
        let message = format!("the readings of {logical} cannot become buckets as they are: {what}");
        Err(Error::new(Code::OperationFailed, message).with_hint(hint.to_owned()))
    };
    if found.options.get("capped").is_some_and(|capped| capped.is_truthy()) {
        return refused("it is capped", "copy them into an ordinary collection first");
    }
    for index in expiry::indexes(at, logical).await? {
        let name = index.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        if index.get("unique").is_some_and(|unique| unique.is_truthy()) {
            let hint =
                "drop the index; `reading_id: time` keeps one reading per series and time, and drops their `_id`s";
            return refused(&format!("its index {name} is unique, and nobody would keep that"), hint);
        }
        if matches!(index.get("expireAfterSeconds"), Some(value) if value.is_number()) {
            let hint = "drop the index and delete old readings yourself, or use a time-series collection with `expireAfterSeconds`";
            return refused(&format!("they expire by its index {name}, and buckets would not"), hint);
        }
    }
    Ok(())
}

async fn refuse_documents(at: &mut Access<'_>, rule: &Rule, ns: &Namespace) -> Result<()> {
    if stored::look_up(at, ns).await?.is_some_and(|found| found.kind != "collection") {
        let message = format!("rule {} stores its buckets in {ns}, and that is no collection", rule.name);
        return Err(Error::new(Code::NamespaceExists, message).with_hint("name another with `into`"));
    }
    match stored::is_empty(at, ns).await? {
        true => Ok(()),
        false => {
            let message = format!("rule {} stores its buckets in {ns}, and there are documents already", rule.name);
            Err(Error::new(Code::NamespaceExists, message).with_hint("name another with `into`, or empty it"))
        }
    }
}

pub(crate) fn under_way(rule: &Rule) -> Error {
    let message = format!("the collection of rule {} is still being brought into another form", rule.name);
    Error::new(Code::ConflictingOperationInProgress, message).with_hint("wait until `pleach status` shows it `on`")
}

/// A name as a value.
pub(super) fn name(ns: &Namespace) -> Value<'static> {
    Value::string(ns.to_string())
}
