//! What a client may do, by its own privileges (SEMANTICS R37): asked before anything is shown or changed that MongoDB does not
//! see sent by that client. Refusals are MongoDB's own: 13, before anything has changed.

pub(crate) mod discreet;
pub(crate) mod privilege_cache;

use crate::rule::{Rule, names};
use crate::shapes::Stack;
use document::backend::{Backend, Privileges, Relay};
use document::op::{Modify, Namespace, ReadOp, WriteOp};
use document::{Code, Error, Result};
use std::sync::Arc;

/// The privileges of the client that asks.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    /// `None` if nobody is restricted: the embedded store, or a MongoDB without access control.
    privileges: Option<Arc<Privileges>>,
    /// The command, as a refusal names it.
    command: String,
    /// The collections that the client has named itself.
    named: Vec<Namespace>,
}

impl Rights {
    /// Asks the server behind for the privileges of the line's user. A client that has not authenticated has none.
    pub(crate) async fn of(backend: &dyn Backend, line: Option<&Arc<dyn Relay>>, command: &str) -> Result<Rights> {
        let privileges = match backend.remote() {
            Some(remote) => remote.privileges(line).await?.map(Arc::new),
            None => None,
        };
        match &privileges {
            Some(known) if known.is_anonymous() => {
                let name = command.split(':').next().unwrap_or_default();
                Err(Error::new(Code::Unauthorized, format!("command {name} requires authentication")))
            }
            _ => Ok(Rights::by(privileges, command)),
        }
    }

    /// By privileges that were asked for before.
    pub(crate) fn by(privileges: Option<Arc<Privileges>>, command: &str) -> Rights {
        Rights { privileges, command: command.to_owned(), named: Vec::new() }
    }

    pub(crate) fn privileges(&self) -> Option<&Arc<Privileges>> {
        self.privileges.as_ref()
    }

    /// Of a client whose command names these collections: refusals may name them too.
    pub(crate) fn naming(mut self, namespaces: impl IntoIterator<Item = Namespace>) -> Rights {
        self.named.extend(namespaces);
        self
    }

    /// The command that the rights are asked for.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// Of this process itself, which acts for nobody else.
    pub(crate) fn unrestricted() -> Rights {
        Rights::by(None, "")
    }

    pub(crate) fn may(&self, action: &str, ns: &Namespace) -> bool {
        self.privileges.as_ref().is_none_or(|privileges| privileges.allows(action, ns))
    }

    /// Whether the client may read every collection of a rule, and so know of it.
    pub(crate) fn may_see(&self, rule: &Rule) -> bool {
        namespaces(rule).iter().all(|ns| self.may("find", ns))
    }

    /// Whether the client may read anything in the database.
    pub(crate) fn may_look_into(&self, db: &str) -> bool {
        self.privileges.as_ref().is_none_or(|privileges| privileges.allows_somewhere_in("find", db))
    }

    /// Whether the client may see the options of all collections of the database.
    pub(crate) fn may_list(&self, db: &str) -> bool {
        self.privileges.as_ref().is_none_or(|privileges| privileges.allows_on_database("listCollections", db))
    }

    /// Fails with MongoDB's error unless the client may do this to the collection.
    pub(crate) fn need(&self, action: &str, ns: &Namespace) -> Result<()> {
        match self.may(action, ns) {
            true => Ok(()),
            false => Err(self.refusal(action, &ns.db, &self.named_or_hidden(ns))),
        }
    }

    /// The collection's name, if the client has named it or may read it. Others it learns of from no refusal.
    fn named_or_hidden(&self, ns: &Namespace) -> String {
        let is_ours = names::is_bookkeeping(ns) && !ns.collection.starts_with(names::ASIDE);
        match is_ours || self.named.contains(ns) || self.may("find", ns) {
            true => ns.to_string(),
            false => "a collection that a rule uses".to_owned(),
        }
    }

    pub(crate) fn need_all(&self, actions: &[&str], ns: &Namespace) -> Result<()> {
        actions.iter().try_for_each(|action| self.need(action, ns))
    }

    pub(crate) fn need_on_database(&self, action: &str, db: &str) -> Result<()> {
        match self.privileges.as_ref().is_none_or(|privileges| privileges.allows_on_database(action, db)) {
            true => Ok(()),
            false => Err(self.refusal(action, db, db)),
        }
    }

    /// Fails unless the client may do this to some collection of the database.
    pub(crate) fn need_somewhere_in(&self, action: &str, db: &str) -> Result<()> {
        match self.privileges.as_ref().is_none_or(|privileges| privileges.allows_somewhere_in(action, db)) {
            true => Ok(()),
            false => Err(self.refusal(action, db, db)),
        }
    }

    /// Fails unless MongoDB would let the client send the command.
    pub(crate) fn need_to_send(&self, op: &WriteOp) -> Result<()> {
        self.need_all(&actions(op), op.ns())
    }

    /// Fails unless the client may do the write itself. A collection in another form is written where it is stored.
    pub(crate) fn need_to_write(&self, op: &WriteOp, shaped: Option<&Stack>) -> Result<()> {
        self.need_to_send(op)?;
        let Some(shaped) = shaped else { return Ok(()) };
        let actions: &[&str] = match op {
            WriteOp::Insert(_) => &["update", "insert"],
            WriteOp::Update(_) | WriteOp::Delete(_) | WriteOp::FindAndModify(_) => &["find", "update"],
        };
        shaped.places.iter().try_for_each(|side| self.need_all(actions, &side.stored))
    }

    fn refusal(&self, action: &str, db: &str, on: &str) -> Error {
        Error::new(
            Code::Unauthorized,
            format!("not authorized on {db} to execute command {{ {} }}: it needs {action} on {on}", self.command),
        )
        .with_hint(format!("ask for the role {} on {db}, or another one with that action", role(action)))
    }
}

/// The smallest of MongoDB's own roles that has the action.
pub(crate) fn role(action: &str) -> &'static str {
    match action {
        "find" | "listCollections" | "listIndexes" | "collStats" => "read",
        "collMod" | "bypassDocumentValidation" | "dropDatabase" | "validate" => "dbAdmin",
        _ => "readWrite",
    }
}

/// The collections that a rule reads or writes.
pub(crate) fn namespaces(rule: &Rule) -> Vec<Namespace> {
    rule.namespaces().into_iter().cloned().collect()
}

/// What MongoDB asks of the sender of a write.
fn actions(op: &WriteOp) -> Vec<&'static str> {
    let updating = |upsert: bool| if upsert { vec!["update", "insert"] } else { vec!["update"] };
    let (mut actions, bypasses) = match op {
        WriteOp::Insert(op) => (vec!["insert"], op.bypass_validation),
        WriteOp::Update(op) => (updating(op.statements.iter().any(|statement| statement.upsert)), op.bypass_validation),
        WriteOp::Delete(_) => (vec!["remove"], false),
        WriteOp::FindAndModify(op) => {
            let mut actions = match &op.action {
                Modify::Remove => vec!["remove"],
                Modify::Update { upsert, .. } => updating(*upsert),
            };
            actions.push("find");
            (actions, op.bypass_validation)
        }
    };
    if bypasses {
        actions.push("bypassDocumentValidation");
    }
    actions
}

/// A write as a refusal names it.
pub(crate) fn named(op: &WriteOp) -> String {
    let command = match op {
        WriteOp::Insert(_) => "insert",
        WriteOp::Update(_) => "update",
        WriteOp::Delete(_) => "delete",
        WriteOp::FindAndModify(_) => "findAndModify",
    };
    format!("{command}: \"{}\"", op.ns().collection)
}

/// A read likewise.
pub(crate) fn named_read(op: &ReadOp) -> String {
    let command = match op {
        ReadOp::Find(_) => "find",
        ReadOp::Count(_) => "count",
        ReadOp::Distinct(_) => "distinct",
        ReadOp::Aggregate(_) => "aggregate",
    };
    format!("{command}: \"{}\"", op.ns().collection)
}
