//! The life of a shape: its collection is brought into the declared form and back, see [`crate::life::relocate`].

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Figures, Note, Presence, Report};
use crate::life::catalog::Row;
use crate::life::lifecycle::Lifecycle;
use crate::life::plan::{ApplyStep, Work};
use crate::life::relocate::change::to_declared;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::moved::Moved;
use crate::life::relocate::plan::PlanCommand;
use crate::life::relocate::record::Relocation;
use crate::life::repair::RepairMode;
use crate::life::restore::in_database;
use crate::life::verbs::{APPLY, RequiredPrivileges, Resource};
use crate::life::{CatalogRule, Life, relocate, replaced};
use crate::rule::Rule;
use crate::rule::shape::Place;
use document::backend::Answer;
use document::{Code, Doc, Error, Result};

pub(super) struct OfShape;

/// The form that the rule declares.
fn declared(rule: &Rule) -> Result<Place> {
    let none = || Error::new(Code::InternalError, format!("rule {} stores its documents as they are", rule.name));
    rule.declared_place().ok_or_else(none)
}

impl Lifecycle for OfShape {
    fn plan<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        entry: Option<&'a CatalogRule>,
        rule: &'a Rule,
        _: Work,
    ) -> Answer<'a, Work> {
        Box::pin(async move { Ok(Work::Shape(Box::new(to_declared(at, entry, rule, &declared(rule)?.stored).await?))) })
    }

    fn steps(&self, at: &Access<'_>, rule: &Rule, work: &Work) -> Result<Option<Vec<PlanCommand>>> {
        let dialect = relocate::stored::dialect(at);
        Ok(match work {
            Work::Shape(change) => Some(relocate::plan::declared(rule, change, dialect)?),
            Work::Remove => Some(relocate::plan::removed(rule, &declared(rule)?, dialect)),
            _ => None,
        })
    }

    fn moves<'a>(&'a self, at: &'a mut Access<'_>, rule: &'a Rule, work: &'a Work) -> Answer<'a, Vec<Moved>> {
        Box::pin(async move {
            Ok(match work {
                Work::Shape(change) => relocate::moved::moved(at, rule, &change.switchover).await?,
                Work::Remove => vec![relocate::moved::given_back(at, &declared(rule)?).await?],
                _ => Vec::new(),
            })
        })
    }

    fn begin<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        known: Option<&'a CatalogRule>,
        step: &'a ApplyStep,
        row: &'a mut Row,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let Work::Shape(change) = &step.work else { return Ok(()) };
            if row.replaced.since.is_none() {
                row.replaced.since = Some(replaced::begin(at, &step.rule).await?);
            }
            let shape = known.and_then(|known| known.row.shape.clone()).unwrap_or_default();
            let switchover = Some(change.switchover.clone());
            row.shape = Some(Relocation { switchover, timeseries: None, indexes: Vec::new(), ..shape });
            Ok(())
        })
    }

    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()> {
        Box::pin(relocate::advance(life, entry))
    }

    fn audit<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            relocate::audit::audit(life, asked, figures, report).await?;
            figures.note_if_empty(&declared(&asked.rule)?.stored);
            Ok(())
        })
    }

    fn repair<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        _: RepairMode,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            relocate::repair::repair(life, asked, figures, report).await?;
            figures.note_if_empty(&declared(&asked.rule)?.stored);
            Ok(())
        })
    }

    fn refuse_once(&self, rule: &Rule) -> Option<Error> {
        let message = format!("`{}` stores documents in another form: that cannot be done once", rule.name);
        let hint = "`pleach apply` brings the documents into buckets; --rule RULE names a rule of a field";
        Some(Error::new(Code::OperationFailed, message).with_hint(hint))
    }

    fn lacks(&self, presence: &Presence, asked: &AuditedRule, rights: &Rights) -> Option<Note> {
        let (rule, into) = (&asked.rule, asked.rule.shape()?.declared_place()?);
        if let Some(first) = asked.places.first() {
            let is_there = asked.places.iter().any(|place| presence.has(&place.stored));
            return (!is_there).then(|| presence.no_collection(&first.stored, rights));
        }
        match (presence.has(into), presence.has(&rule.host)) {
            (true, _) => None,
            (false, true) => Some(Note::NotInBuckets { into: into.clone() }),
            (false, false) => Some(presence.no_collection(&rule.host, rights)),
        }
    }

    fn drop<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
        leaving: Leaving,
    ) -> Answer<'a, ()> {
        Box::pin(relocate::drop::begin(life, at, entry, leaving))
    }

    fn adopt(&self, rights: &Rights, rule: &Rule, row: &mut Row) -> Result<()> {
        row.shape = Some(match row.shape.take() {
            // Its documents are in two collections, and so they come.
            Some(shape) if shape.is_moving() => moving(rights, rule, shape)?,
            shape => shape.unwrap_or_default().begun_anew(),
        });
        Ok(())
    }

    fn restore<'a>(&'a self, at: &'a mut Access<'_>, entry: &'a CatalogRule, row: &'a mut Row) -> Answer<'a, ()> {
        Box::pin(async move {
            let shape = row.shape.take().unwrap_or_default();
            if shape.is_moving() {
                if shape.switchover.is_none() {
                    relocate::stored::ensure_view(at, &entry.rule.host, &entry.places).await?;
                }
                row.shape = Some(shape);
                return Ok(());
            }
            let change = to_declared(at, Some(entry), &entry.rule, &declared(&entry.rule)?.stored).await?;
            if change.rewrites() {
                let message = format!("{} is an ordinary collection with documents of its own", entry.rule.host);
                return Err(Error::new(Code::NamespaceExists, message)
                    .with_hint("`pleach apply` brings them into buckets, or drop the collection and restore again"));
            }
            row.shape = Some(Relocation { switchover: Some(change.switchover), ..shape.begun_anew() });
            Ok(())
        })
    }

    fn reset(&self, rule: &Rule, row: &mut Row) {
        relocate::reset::begin(rule, row);
    }

    fn status<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
    ) -> Answer<'a, Option<Doc<'static>>> {
        Box::pin(relocate::health::health(life, at, entry))
    }

    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need_for_rule(rights, Resource::MovedCollections, rule)
    }

    fn need_to_repair(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need(rights, Resource::Buckets, &declared(rule)?.stored)
    }
}

/// What the dump says about a move that was under way. Its collections must be the rule's, and the client's to move.
fn moving(rights: &Rights, rule: &Rule, shape: Relocation) -> Result<Relocation> {
    let shape = shape.redeclared(|declaration| in_database(declaration, &rule.host.db));
    relocate::own::check(rule, &shape)?;
    let collections = relocate::own::collections(rule, &shape);
    collections.iter().try_for_each(|ns| APPLY.need(rights, Resource::MovedCollections, ns))?;
    Ok(shape)
}
