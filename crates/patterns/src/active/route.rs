//! Who answers a command: decided in one place, from its class and the collection that it names.

use super::side_writes;
use super::side_writes::sink;
use crate::active::lease::Lease;
use crate::active::{CollectionRules, Rules};
use crate::rule::names;
use crate::rule::read::names_others;
use crate::shapes::Stack;
use document::backend::{Class, Head, Route};
use document::filter::Filter;
use document::op::NamespaceRef;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Code, Doc, Error, Value};
use std::sync::Arc;

/// What a collection is under the rules.
pub(crate) enum Role<'r> {
    /// Clients call it so, and its documents are stored in another form.
    Logical(&'r Arc<Stack>),
    /// Documents of a logical collection are stored there, or will be.
    Stored(&'r Arc<Stack>),
    /// Rules keep fields of it, read it or name it.
    Named(&'r Arc<CollectionRules>),
    /// It is Pleach's own.
    Bookkeeping,
    Free,
}

impl Rules {
    pub(crate) fn role(&self, ns: NamespaceRef<'_>) -> Role<'_> {
        if let Some(shaped) = self.shaped.get(&ns) {
            return Role::Logical(shaped);
        }
        if let Some(shaped) = self.stored.get(&ns) {
            return Role::Stored(shaped);
        }
        match self.namespaces.get(&ns) {
            Some(local) => Role::Named(local),
            None if names::is_ours(ns.collection) => Role::Bookkeeping,
            None => Role::Free,
        }
    }

    pub(crate) fn is_free(&self, ns: NamespaceRef<'_>) -> bool {
        matches!(self.role(ns), Role::Free)
    }

    /// Whether rules name a collection of the database.
    pub(crate) fn has_database(&self, db: &str) -> bool {
        self.namespaces.keys().any(|ns| &*ns.db == db)
    }

    /// Whether documents of the collection may only go by planned deletes.
    pub(crate) fn reads(&self, ns: NamespaceRef<'_>) -> bool {
        self.namespaces.get(&ns).is_some_and(|local| local.watches_deletes())
    }
}

/// What a route depends on beside the command.
pub(crate) struct Circumstances<'a> {
    pub(crate) rules: &'a Rules,
    /// Without a lease other rules may be in force.
    pub(crate) lease: &'a Lease,
    /// Whether the rules of a database come with a dump that is being restored.
    pub(crate) is_restoring: &'a dyn Fn(&str) -> bool,
    /// Whether indexes of a collection expire through Pleach.
    pub(crate) expires: &'a dyn Fn(NamespaceRef<'_>) -> bool,
}

/// Who answers the command, as far as its first look tells.
pub(crate) fn of(at: &Circumstances<'_>, command: &Head<'_>) -> Route {
    let (rules, class) = (at.rules, command.class);
    let target = command.target.map(|collection| NamespaceRef { db: command.db, collection });
    if class.is_write() && (at.is_restoring)(command.db) || is_switching(rules, command, target) {
        return Route::Wait;
    }
    if writes(command) && !at.lease.is_valid() {
        return Route::Planned;
    }
    let planned_if = |planned: bool| if planned { Route::Planned } else { Route::Forward };
    let is_free = |ns: NamespaceRef<'_>| rules.is_free(ns);
    match class {
        // `bulkWrite` is unknown here, so that drivers send its statements one by one.
        Class::Hello | Class::Pleach | Class::Rename | Class::BulkWrite | Class::ServerStatus => Route::Plain,
        Class::DropDatabase | Class::Explain => planned_if(rules.has_database(command.db)),
        Class::CreateIndexes | Class::DropIndexes | Class::ListIndexes => {
            planned_if(target.is_some_and(|ns| plans_indexes(at, command, ns)))
        }
        Class::ApplyOps | Class::CloneAsCapped | Class::ConvertToCapped | Class::MapReduce => {
            match side_writes::unplanned(rules, command) {
                Some(_) => Route::Refused,
                None => Route::Forward,
            }
        }
        _ if class.is_read() => match target.map(|ns| rules.role(ns)) {
            Some(Role::Logical(_)) if is_stream(command) => Route::Refused,
            Some(Role::Logical(_)) if !is_for_mongodb_only(command) => Route::Planned,
            // Its filter may have to look into an overflow.
            Some(Role::Named(local)) if tests_outlier(local, command) && !is_for_mongodb_only(command) => {
                Route::Planned
            }
            _ if is_versioned(rules, command, target) => Route::Planned,
            _ if joins_items(rules, command) => Route::Planned,
            _ if class == Class::Aggregate && !rules.all.is_empty() && side_writes::has_sink(command) => {
                planned_if(!sink(command).is_some_and(|target| is_free(target.by_ref())))
            }
            _ => Route::Forward,
        },
        _ if class.is_write() => planned_if(target.is_some_and(|ns| match rules.role(ns) {
            Role::Named(local) => !local.is_only_constrained(),
            role => !matches!(role, Role::Free),
        })),
        _ if class.defines_collection() && !rules.lenses().is_empty() => {
            note_view(rules, command, target);
            planned_if(!target.is_none_or(is_free))
        }
        _ if class.defines_collection() => planned_if(!target.is_none_or(is_free)),
        _ => Route::Forward,
    }
}

/// Whether a read is about a collection whose documents have several versions, or joins one.
fn is_versioned(rules: &Rules, command: &Head<'_>, target: Option<NamespaceRef<'_>>) -> bool {
    if rules.lenses().is_empty() || is_stream(command) {
        return false;
    }
    let lenses = rules.lenses();
    let is_own = target.is_some_and(|ns| lenses.named(ns).is_some() || lenses.views.knows(ns));
    is_own || matches!(command.body.get("pipeline"), Some(Value::Array(stages)) if names_others(&stages))
}

/// A view that is made where documents have versions is read through Pleach from then on.
fn note_view(rules: &Rules, command: &Head<'_>, target: Option<NamespaceRef<'_>>) {
    let is_view = command.body.contains("viewOn");
    if let Some(ns) = target.filter(|ns| is_view && rules.lenses().in_database(ns.db).next().is_some()) {
        rules.lenses().views.is_coming(ns);
    }
}

/// Whether a pipeline joins the items of an array in a transaction, where MongoDB reads no view of them.
fn joins_items(rules: &Rules, command: &Head<'_>) -> bool {
    let is_in_transaction = || matches!(command.body.get("autocommit"), Some(Value::Bool(false)));
    if !rules.all_shaped().any(|stack| stack.is_virtual()) || !is_in_transaction() {
        return false;
    }
    matches!(command.body.get("pipeline"), Some(Value::Array(stages)) if rules.names_items(command.db, &stages))
}

/// Whether a command may change documents of clients.
fn writes(command: &Head<'_>) -> bool {
    let class = command.class;
    match class {
        Class::Aggregate => side_writes::has_sink(command),
        Class::DropDatabase => true,
        _ => class.is_write() || class.defines_collection() || side_writes::is_unplanned(command),
    }
}

/// Whether a command may have to wait until a collection is renamed.
fn is_switching(rules: &Rules, command: &Head<'_>, target: Option<NamespaceRef<'_>>) -> bool {
    if rules.switching.is_empty() {
        return false;
    }
    match command.class {
        // A pipeline can name any collection. A transaction that began earlier is waited for: it must be able to go on.
        Class::Aggregate | Class::ListCollections => {
            !matches!(command.body.get("autocommit"), Some(Value::Bool(false)))
        }
        class if class.is_read() || class.is_write() || class.defines_collection() || class.is_about_indexes() => {
            target.is_some_and(|ns| rules.switching.contains(&ns))
        }
        _ => false,
    }
}

fn plans_indexes(at: &Circumstances<'_>, command: &Head<'_>, ns: NamespaceRef<'_>) -> bool {
    let by_role = match at.rules.role(ns) {
        Role::Logical(_) => true,
        // A rule may need the index that is to go.
        Role::Stored(_) | Role::Named(_) if command.class == Class::DropIndexes => true,
        _ => names::is_ours(ns.collection) && command.class != Class::ListIndexes,
    };
    let makes_expiry =
        || command.class == Class::CreateIndexes && at.rules.reads(ns) && asks_for(command.body, "expireAfterSeconds");
    // It may be about a path that older documents have elsewhere.
    let makes_unique = || {
        let is_versioned = at.rules.lenses().named(ns).is_some();
        command.class == Class::CreateIndexes && is_versioned && asks_for(command.body, "unique")
    };
    by_role || (at.expires)(ns) || makes_expiry() || makes_unique()
}

/// Whether one of the indexes has the option.
fn asks_for(body: &Doc<'_>, option: &str) -> bool {
    let Some(Value::Array(indexes)) = body.get("indexes") else { return false };
    indexes.iter().any(|index| matches!(index, Value::Document(index) if index.contains(option)))
}

/// Whether the command watches a collection.
pub(crate) fn is_stream(command: &Head<'_>) -> bool {
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return false };
    matches!(stages.get(0), Some(Value::Document(first)) if first.contains("$changeStream"))
}

/// Whether the filter of a read, or the first stages of a pipeline, may be about an array that overflows.
fn tests_outlier(local: &CollectionRules, command: &Head<'_>) -> bool {
    if local.outliers.is_empty() {
        return false;
    }
    let names = |filter: Option<Value<'_>>| filter.is_some_and(|filter| names_outlier(local, &filter));
    match (command.class, command.body.get("pipeline")) {
        (Class::Aggregate, Some(Value::Array(stages))) => stages
            .iter()
            .map_while(|stage| match stage {
                Value::Document(stage) => stage.get("$match"),
                _ => None,
            })
            .any(|filter| names(Some(filter))),
        (Class::Find, _) => names(command.body.get("filter")),
        _ => names(command.body.get("query")),
    }
}

fn names_outlier(local: &CollectionRules, value: &Value<'_>) -> bool {
    match value {
        Value::Document(fields) => fields.iter().any(|(name, value)| {
            let first = name.as_str().split('.').next();
            local.outliers.iter().any(|outlier| first == Some(&outlier.field)) || names_outlier(local, &value)
        }),
        Value::Array(items) => items.iter().any(|item| names_outlier(local, &item)),
        _ => false,
    }
}

/// Whether only a real MongoDB understands a read: it answers from the view that it has under the logical name.
fn is_for_mongodb_only(command: &Head<'_>) -> bool {
    if command.body.contains("collation") {
        return true;
    }
    let unknown = |error: Option<Error>| error.is_some_and(|error| error.code() == Code::NotImplemented);
    let filter = |name: &str| match command.body.get(name) {
        Some(Value::Document(filter)) => unknown(Filter::parse(&filter, &mut Names::new()).err()),
        _ => false,
    };
    match (command.class, command.body.get("pipeline")) {
        (Class::Aggregate, Some(Value::Array(stages))) => unknown(Pipeline::parse(&stages, &mut Names::new()).err()),
        (Class::Find, _) => filter("filter"),
        _ => filter("query"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn route(class: Class, has_lease: bool, is_restoring: bool) -> Route {
        let body = Doc::from(doc! { "pipeline": [{ "$out": "there" }] });
        let (rules, lease, is_restoring) = (Rules::default(), Lease::default(), |_: &str| is_restoring);
        if !has_lease {
            lease.end();
        }
        let at = Circumstances { rules: &rules, lease: &lease, is_restoring: &is_restoring, expires: &|_| false };
        of(&at, &Head { name: "", class, db: "shop", target: Some("orders"), user: None, body: &body })
    }

    #[test]
    fn without_rules_all_is_forwarded_but_what_is_ours() {
        let rows = [
            (Class::Insert, Route::Forward),
            (Class::Aggregate, Route::Forward),
            (Class::DropDatabase, Route::Forward),
            (Class::CreateIndexes, Route::Forward),
            (Class::Other, Route::Forward),
            (Class::Pleach, Route::Plain),
            (Class::BulkWrite, Route::Plain),
        ];
        for (class, expected) in rows {
            assert_eq!(route(class, true, false), expected, "{class:?}");
        }
    }

    #[test]
    fn writes_are_not_forwarded_while_other_rules_may_be_in_force() {
        let rows = [
            (Class::Insert, Route::Planned, Route::Wait),
            (Class::Aggregate, Route::Planned, Route::Forward),
            (Class::Drop, Route::Planned, Route::Forward),
            (Class::ApplyOps, Route::Planned, Route::Forward),
            (Class::Find, Route::Forward, Route::Forward),
        ];
        for (class, without_lease, while_restoring) in rows {
            assert_eq!(route(class, false, false), without_lease, "{class:?}");
            assert_eq!(route(class, true, true), while_restoring, "{class:?}");
        }
    }
}
