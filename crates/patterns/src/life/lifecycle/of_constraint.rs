//! The life of a constraint: validators and indexes in the database, and nothing that runs with a write (SEMANTICS R36).

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Drift, Figures, Report};
use crate::life::catalog::Row;
use crate::life::install::{self, validators};
use crate::life::lifecycle::Lifecycle;
use crate::life::plan::{ApplyStep, Work};
use crate::life::reconcile::set_state;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::plan::PlanCommand;
use crate::life::repair::RepairMode;
use crate::life::transaction::OwnTransaction;
use crate::life::verbs::{RequiredPrivileges, Resource};
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, walk};
use crate::life::{CatalogRule, Life, retire};
use crate::rule::Rule;
use crate::rule::state::State;
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Code, Doc, Env, Error, Result, Value};

pub(super) struct OfConstraint;

impl Lifecycle for OfConstraint {
    fn plan<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        entry: Option<&'a CatalogRule>,
        rule: &'a Rule,
        _: Work,
    ) -> Answer<'a, Work> {
        Box::pin(async move {
            let command = validators::command(at, rule, entry.map(|entry| &*entry.rule)).await?;
            let step = |command| PlanCommand { kind: "validator", namespace: rule.host.clone(), command };
            Ok(Work::Constrain(command.map(step).into_iter().collect()))
        })
    }

    fn steps(&self, _: &Access<'_>, _: &Rule, work: &Work) -> Result<Option<Vec<PlanCommand>>> {
        Ok(match work {
            Work::Constrain(steps) => Some(steps.clone()),
            _ => None,
        })
    }

    fn begin<'a>(
        &'a self,
        _: &'a mut Access<'_>,
        _: Option<&'a CatalogRule>,
        _: &'a ApplyStep,
        _: &'a mut Row,
    ) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()> {
        Box::pin(async move {
            match &entry.row.state {
                State::Maintaining | State::Gathering { .. } | State::Seeding { .. } => {
                    settle(life, entry, true).await?;
                    set_state(life, entry, State::On).await?;
                    tracing::info!(rule = &*entry.rule.name, "on");
                    Ok(())
                }
                State::On | State::Restoring => Ok(()),
                State::Retiring => {
                    settle(life, entry, false).await?;
                    retire::end(life, entry).await
                }
            }
        })
    }

    fn audit<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move { look(life, asked, figures, &mut |figures, drift| report.note(figures, drift)).await })
    }

    /// What is wrong with a document, only its owner knows.
    fn repair<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        _: RepairMode,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let why = "the rule does not allow the document: change it by hand";
            look(life, asked, figures, &mut |_, drift| report.leave(drift, why)).await
        })
    }

    fn refuse_once(&self, rule: &Rule) -> Option<Error> {
        let message = format!("`{}` says what documents must be like: they cannot be made so", rule.name);
        Some(Error::new(Code::OperationFailed, message).with_hint("--rule RULE names a rule of a field"))
    }

    fn drop<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
        leaving: Leaving,
    ) -> Answer<'a, ()> {
        Box::pin(retire::begin(life, at, entry, leaving))
    }

    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need(rights, Resource::ConstrainedCollection, &rule.host)
    }

    /// It writes nothing.
    fn need_to_repair(&self, _: RequiredPrivileges, _: &Rights, _: &Rule) -> Result<()> {
        Ok(())
    }
}

/// Makes the database what the rules ask for.
async fn settle(life: &Life, entry: &CatalogRule, with_indexes: bool) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(entry) = life.current(entry) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    if with_indexes {
        install::ensure_indexes(&mut at, &entry.rule).await?;
    }
    life.settle_validators(&mut at, &entry.db).await?;
    if with_indexes {
        // Those that the rule as it was needed, and no rule needs now.
        life.tidy_indexes(&mut at, &entry.db).await?;
    }
    Ok(())
}

/// How many documents are looked at together.
const PACE: Pace = Pace { first: 1_000, most: 4_000, bytes: 16 << 20 };

/// Hands on every document that the rule refuses: it was there before, or came past its validator.
async fn look(
    life: &Life,
    asked: &AuditedRule,
    figures: &mut Figures,
    found: &mut (dyn FnMut(&mut Figures, Drift) + Send),
) -> Result<()> {
    let Some(constraint) = asked.rule.constraint() else { return Ok(()) };
    let kept = {
        let (mut session, context) = (Session::default(), life.context());
        let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
        validators::kept_fields(&mut at, &asked.rule.host).await?
    };
    let validator = Filter::parse(&constraint.validator(&kept), &mut Names::new())?;
    let mut looking = Looking { life, asked, kept, validator, figures, found };
    walk(life, PACE, None, &mut looking).await?;
    figures.note_if_empty(&asked.rule.host);
    Ok(())
}

struct Looking<'a> {
    life: &'a Life,
    asked: &'a AuditedRule,
    kept: Vec<Path>,
    validator: Filter,
    figures: &'a mut Figures,
    found: &'a mut (dyn FnMut(&mut Figures, Drift) + Send),
}

impl PartWork for Looking<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(async move {
            let (life, context) = (self.life, self.life.context());
            let mut began = OwnTransaction::begin(life, &context).await?;
            let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
            let (documents, next) = walk::read(&mut at, &self.asked.rule.host, part, None).await?;
            let mut refused = Vec::new();
            for document in &documents {
                if !self.validator.matches(document, &context.env)? {
                    refused.push(drift(self.asked, document, &self.kept, &context.env)?);
                }
            }
            self.figures.checked += documents.len() as u64;
            refused.into_iter().for_each(|drift| (self.found)(self.figures, drift));
            Ok(Some(PartDone::of(&documents, next)))
        })
    }
}

fn drift(asked: &AuditedRule, document: &Doc<'static>, kept: &[Path], env: &Env) -> Result<Drift> {
    let rule = &asked.rule;
    let violations = match rule.constraint() {
        Some(constraint) => constraint.violations(document, kept, env)?,
        None => Vec::new(),
    };
    let field = violations.first().map_or_else(|| rule.field.dotted(), |first| first.field.clone());
    Ok(Drift {
        rule: rule.clone(),
        collection: rule.host.collection.clone(),
        id: document.get("_id").unwrap_or(Value::Null),
        stored: crate::fields::value_at(document, &Path::new(&field)).into_owned(),
        field,
        expected: Value::Missing,
        flaws: Vec::new(),
        violations,
    })
}
