//! Which rules an audit or a repair is about: those of the declaration, or those that are applied; one of them if named.

use crate::declare::spelling::nearest;
use crate::declare::{Declaration, change};
use crate::execute::access::Access;
use crate::life::audit::AuditedRule;
use crate::life::verbs::Call;
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::Rule;
use document::backend::Session;
use document::{Code, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The rules that a verb compares by.
pub(super) struct Selection {
    pub(super) rules: Vec<AuditedRule>,
    /// Rules that are applied and that the declaration does not have: they are left out.
    pub(super) undeclared: Vec<Arc<str>>,
}

impl Call<'_> {
    /// Rules that the client may not read are left out, unless its own declaration has them.
    pub(super) async fn selected(&mut self) -> Result<Selection> {
        let declaration = match self.request.has("declaration") {
            true => Some(self.declaration()?),
            false => None,
        };
        let db = declaration.as_ref().map(|declaration| &*declaration.database).or(self.request.db.as_deref());
        if let (None, Some(db)) = (&declaration, db) {
            self.need_to_look_into(db)?;
        }
        let entries = self.life.applied(db).await?;
        let raw = self.life.raw.load(Ordering::Relaxed);
        let mut list: Vec<AuditedRule> = match &declaration {
            Some(declaration) => declared(declaration, &entries, raw),
            None => {
                let visible = entries.iter().filter(|entry| self.rights.may_see(&entry.rule));
                visible.map(|entry| as_applied(entry, raw)).collect()
            }
        };
        let mut undeclared = Vec::new();
        if declaration.is_some() {
            let is_left_out = |entry: &&CatalogRule| {
                entry.row.state.is_kept()
                    && self.rights.may_see(&entry.rule)
                    && !list.iter().any(|asked| asked.rule.name == entry.rule.name)
            };
            undeclared.extend(entries.iter().filter(is_left_out).map(|entry| entry.rule.name.clone()));
        }
        if let Some(name) = self.request.text("rule")? {
            undeclared.clear();
            let declared = declaration.as_ref().map(|_| some_names(&list));
            let near = nearest(&name, list.iter().map(|asked| &*asked.rule.name)).map(str::to_owned);
            list.retain(|asked| *asked.rule.name == *name);
            if list.is_empty() {
                let error = Error::new(Code::BadValue, format!("there is no rule {name}"));
                return Err(match near {
                    Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                    None => error.with_hint(match declared {
                        Some(names) => format!("the declaration has {names}"),
                        None => "`pleach status` shows the rules that are applied".to_owned(),
                    }),
                });
            }
        }
        Ok(Selection { rules: list, undeclared })
    }
}

/// The names of some rules: not more than fit into a line or two.
fn some_names(rules: &[AuditedRule]) -> String {
    const MOST: usize = 8;
    let names: Vec<&str> = rules.iter().take(MOST).map(|asked| &*asked.rule.name).collect();
    match rules.len() {
        0 => "no rules".to_owned(),
        all if all > MOST => format!("{} and {} more", names.join(", "), all - MOST),
        _ => names.join(", "),
    }
}

fn as_applied(entry: &CatalogRule, raw: bool) -> AuditedRule {
    AuditedRule {
        rule: entry.rule.clone(),
        state: Some(entry.row.state.clone()),
        differs: None,
        places: entry.places.clone(),
        raw,
    }
}

/// The declaration's own rules, each with what is applied under its name.
fn declared(declaration: &Declaration, entries: &[CatalogRule], raw: bool) -> Vec<AuditedRule> {
    let asked = |rule: &Rule| {
        let same = |entry: &&CatalogRule| entry.db == declaration.database && entry.rule.name == rule.name;
        let Some(entry) = entries.iter().find(same) else {
            return AuditedRule {
                rule: Arc::new(rule.clone()),
                state: None,
                differs: None,
                places: Vec::new(),
                raw: false,
            };
        };
        match change(&entry.rule, rule) {
            None => as_applied(entry, raw),
            differs => {
                AuditedRule { rule: Arc::new(rule.clone()), differs, places: Vec::new(), ..as_applied(entry, raw) }
            }
        }
    };
    declaration.rules.iter().map(asked).collect()
}

impl Life {
    /// The rules that are applied to a database, or to all; those that the catalog has while they are switched off.
    pub(crate) async fn applied(&self, db: Option<&str>) -> Result<Vec<CatalogRule>> {
        let mut entries = self.entries();
        if self.raw.load(Ordering::Relaxed) {
            let (mut session, context) = (Session::default(), self.context());
            let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
            let databases = match db {
                Some(db) => vec![db.to_owned()],
                None => catalog::databases(&mut at).await?,
            };
            entries.clear();
            for db in databases {
                for row in catalog::load(&mut at, &db).await? {
                    // A row that is no rule of this database is left out, as it is when rules are in force.
                    entries.extend(CatalogRule::of(&db, row).ok());
                }
            }
        }
        entries.retain(|entry| db.is_none_or(|db| *entry.db == *db));
        Ok(entries)
    }

    /// Whether other processes that keep the rules of a MongoDB do not know of this one, which perhaps may only read: it changes
    /// nothing there that concerns them.
    pub(super) fn is_unannounced(&self) -> bool {
        self.backend.facts().others_write && self.only_looks()
    }

    /// These rules were found right, or made so: if they are all of a database, no audit is due there any more.
    pub(super) async fn all_right(&self, at: &mut Access<'_>, rules: &[AuditedRule]) -> Result<()> {
        if self.is_unannounced() {
            return Ok(());
        }
        let is_among = |entry: &&CatalogRule| rules.iter().any(|asked| Arc::ptr_eq(&asked.rule, &entry.rule));
        let (entries, mut databases) = (self.entries(), BTreeSet::new());
        databases.extend(rules.iter().map(|asked| asked.rule.host.db.clone()));
        for db in databases {
            let of_it = || entries.iter().filter(|entry| entry.db == db);
            if of_it().count() > 0 && of_it().all(|entry| is_among(&entry)) && self.audit_due(at, &db).await? {
                self.audited(at, &db).await?;
            }
        }
        Ok(())
    }
}
