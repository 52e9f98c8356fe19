//! The wire command `{ pleach: <verb>, … }`, on the database or on `admin`: one file per verb. The command line sends the same
//! and prints the same answers.

mod apply;
mod audit;
mod check;
mod drop;
mod explain;
mod forget;
mod plan;
mod privileges;
mod repair;
mod request;
mod selection;
mod status;
mod uninstall;

pub use check::findings;
pub use privileges::{Privilege, RequiredPrivileges, Resource};

// The privileges of verbs whose work is done, and whose rights are checked, in other files of the crate.
pub(crate) use apply::PRIVILEGES as APPLY;
pub(crate) use drop::PRIVILEGES as DROP;
pub(crate) use explain::PRIVILEGES as EXPLAIN;
pub(crate) use forget::PRIVILEGES as FORGET;
pub(crate) use uninstall::PRIVILEGES as UNINSTALL;

use crate::declare::Declaration;
use crate::execute::rights::{Rights, namespaces};
use crate::life::Life;
use crate::rule::Rule;
use document::backend::{Answer, Session};
use document::op::Context;
use document::{Doc, Result};
use request::Request;
use std::sync::Arc;

/// One verb of the command.
pub struct Verb {
    pub name: &'static str,
    pub help: &'static str,
    /// The fields it takes besides its own name.
    pub fields: &'static [&'static str],
    /// Whether it changes data or rules: refused while the rules are switched off.
    pub changes: bool,
    /// What the client must be allowed to do itself.
    pub privileges: RequiredPrivileges,
    /// Looks at the client's rights first, then does it.
    run: for<'a> fn(&'a mut Call<'_>) -> Answer<'a, Doc<'static>>,
}

/// All verbs, sorted by name.
pub const VERBS: &[&Verb] = &[
    &apply::VERB,
    &audit::VERB,
    &check::VERB,
    &drop::VERB,
    &explain::VERB,
    &forget::VERB,
    &plan::VERB,
    &repair::VERB,
    &status::VERB,
    &uninstall::VERB,
];

/// One command, and what its verb works with.
pub(crate) struct Call<'a> {
    pub(crate) life: &'a Arc<Life>,
    pub(crate) request: Request<'a>,
    pub(crate) rights: Rights,
    /// The client's session: a verb that runs a client's statement does it on the client's own line.
    pub(crate) client: &'a mut Session,
    pub(crate) context: &'a Context,
}

impl Call<'_> {
    /// The declaration of the command, for a database that the client may look into. Refusals may name its collections.
    fn declaration(&mut self) -> Result<Declaration> {
        let declaration = self.request.declaration()?;
        self.rights = self.rights.clone().naming(declaration.rules.iter().flat_map(namespaces));
        self.need_to_look_into(&declaration.database)?;
        Ok(declaration)
    }

    /// The same, of a verb that reads all collections of its rules.
    fn declaration_to_read(&mut self) -> Result<Declaration> {
        let declaration = self.declaration()?;
        declaration.rules.iter().try_for_each(|rule| self.need_to_read(rule))?;
        Ok(declaration)
    }

    /// Fails unless the client may read every collection of the rule.
    fn need_to_read(&self, rule: &Rule) -> Result<()> {
        self.request.verb.privileges.need_for_rule(&self.rights, Resource::RuleCollections, rule)
    }

    /// Fails if the client may read nothing in a database that it named.
    fn need_to_look_into(&self, db: &str) -> Result<()> {
        self.request.verb.privileges.need_to_look_into(&self.rights, db)
    }
}

impl Life {
    /// Answers the command for the client of this session.
    pub async fn command(
        self: &Arc<Self>,
        client: &mut Session,
        context: &Context,
        db: &str,
        body: &Doc<'_>,
    ) -> Result<Doc<'static>> {
        let request = Request::read(db, body)?;
        let verb = request.verb;
        let rights = Rights::of(&*self.backend, client.relay.as_ref(), &format!("pleach: \"{}\"", verb.name)).await?;
        if verb.changes {
            self.refuse_raw()?;
        }
        self.catch_up().await?;
        self.after_restore(request.db.as_deref(), true).await;
        (verb.run)(&mut Call { life: self, request, rights, client, context }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_unique_and_documented() {
        assert!(VERBS.is_sorted_by(|first, second| first.name < second.name), "sorted, no name twice");
        assert!(VERBS.iter().all(|verb| verb.help.ends_with('.')));
    }
}
