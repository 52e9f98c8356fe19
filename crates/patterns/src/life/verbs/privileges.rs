//! The privileges that verbs need, as data (SEMANTICS R37): each verb lists the actions that it takes on the collections that it
//! uses. Which collections these are, the code of the verb finds out; what a client must be allowed to do there is said nowhere else.

use crate::execute::rights::{Rights, namespaces};
use crate::rule::Rule;
use document::op::Namespace;
use document::{Code, Error, Result};

/// What a client needs on one of the resources that a verb uses.
#[derive(Clone, Copy, Debug)]
pub struct Privilege {
    pub on: Resource,
    /// MongoDB's names of the actions. A refusal names the first that is missing.
    pub actions: &'static [&'static str],
}

/// All privileges that a verb needs. A verb whose code checks them outside this folder has them as a constant of its own: that code
/// cannot name the `Verb` whose `run` it is part of.
#[derive(Clone, Copy, Debug)]
pub struct RequiredPrivileges(pub &'static [Privilege]);

/// What a verb uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Any one collection of the database that the command is about: others do not learn that the database exists.
    Database,
    /// Every collection that a rule reads or writes.
    RuleCollections,
    /// The collection whose documents have the rule's field.
    Host,
    /// The collection of the documents that items of an array become, or were.
    LiftedItems,
    /// The collection of a rule's buckets, where buckets are corrected.
    Buckets,
    /// The collections of a rule whose documents change their form: they move, and the names are exchanged.
    MovedCollections,
    /// A collection that has an index for a rule, or gets one.
    IndexedCollection,
    /// A collection that has an index by which documents expire.
    ExpiringCollection,
    /// A collection whose validator has a rule's part, or gets one.
    ConstrainedCollection,
    /// `pleach.catalog` of the database.
    Catalog,
    /// `pleach.replaced` of the database.
    Replaced,
    /// Every collection of Pleach's own in the database.
    OwnCollections,
}

/// What it takes to store a collection in another form, or as it was.
pub(super) const MOVE: &[&str] = &[
    "find",
    "insert",
    "update",
    "remove",
    "createCollection",
    "createIndex",
    "dropCollection",
    "renameCollectionSameDB",
];

pub(super) const fn privilege(on: Resource, actions: &'static [&'static str]) -> Privilege {
    Privilege { on, actions }
}

impl RequiredPrivileges {
    /// Fails with MongoDB's error unless the client may use the collection as the verb does.
    pub(crate) fn need(self, rights: &Rights, on: Resource, ns: &Namespace) -> Result<()> {
        rights.need_all(self.actions(rights, on)?, ns)
    }

    /// The same of every collection of the rule.
    pub(crate) fn need_for_rule(self, rights: &Rights, on: Resource, rule: &Rule) -> Result<()> {
        namespaces(rule).iter().try_for_each(|ns| self.need(rights, on, ns))
    }

    /// Fails if the client may read nothing in a database that it named.
    pub(crate) fn need_to_look_into(self, rights: &Rights, db: &str) -> Result<()> {
        self.actions(rights, Resource::Database)?.iter().try_for_each(|action| rights.need_somewhere_in(action, db))
    }

    /// The actions on the resource. A verb that does not list the resource may not use it, whoever asks.
    fn actions(self, rights: &Rights, on: Resource) -> Result<&'static [&'static str]> {
        let listed = self.0.iter().find(|privilege| privilege.on == on);
        listed.map(|privilege| privilege.actions).ok_or_else(|| {
            Error::new(Code::InternalError, format!("{{ {} }} lists no privileges on {on:?}", rights.command()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::VERBS;
    use super::*;

    #[test]
    fn a_resource_is_listed_once_with_its_actions() {
        for verb in VERBS {
            for (at, privilege) in verb.privileges.0.iter().enumerate() {
                assert!(!privilege.actions.is_empty(), "{}: {privilege:?}", verb.name);
                let is_first = !verb.privileges.0[..at].iter().any(|other| other.on == privilege.on);
                assert!(is_first, "{}: {privilege:?} is listed twice", verb.name);
            }
        }
    }

    #[test]
    fn only_a_verb_that_changes_something_needs_more_than_to_read() {
        for verb in VERBS {
            let only_reads = verb.privileges.0.iter().all(|privilege| privilege.actions == ["find"]);
            assert_eq!(only_reads, !verb.changes, "{}", verb.name);
        }
    }

    #[test]
    fn a_resource_that_is_not_listed_is_refused() {
        let ns = Namespace::new("shop", "orders");
        let status = VERBS.iter().find(|verb| verb.name == "status").unwrap().privileges;
        assert!(status.need_to_look_into(&Rights::unrestricted(), "shop").is_ok());
        let error = status.need(&Rights::unrestricted(), Resource::Host, &ns).unwrap_err();
        assert_eq!(error.code(), Code::InternalError);
    }
}
