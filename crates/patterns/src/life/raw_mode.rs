//! Runs without rules (`serve --raw`): what is written then may drift, so the catalog remembers that an audit is due.

use crate::execute::access::{Access, find};
use crate::life::{Life, catalog};
use crate::rule::names;
use document::backend::Session;
use document::filter::Filter;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::atomic::Ordering;

/// The row of the catalog that says so: `{ _id: { raw: true }, since }`.
fn mark() -> Value<'static> {
    let mut id = DocWriter::new();
    id.append("raw", &Value::Bool(true));
    Value::Document(id.finish())
}

impl Life {
    /// Leaves the rules of all catalogs switched off, and writes that down. Says how many there are.
    pub async fn switch_off(&self) -> Result<usize> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        self.raw.store(true, Ordering::Relaxed);
        let mut rules = 0;
        for db in catalog::databases(&mut at).await? {
            let kept = catalog::load(&mut at, &db).await?.len();
            if kept > 0 {
                let mut row = DocWriter::new();
                row.append("_id", &mark()).append("since", &Value::DateTime(context.env.now));
                at.put(&names::catalog(&db), &row.finish()).await?;
            }
            rules += kept;
        }
        Ok(rules)
    }

    /// Whether the rules are switched off for this run.
    pub(crate) fn is_raw(&self) -> bool {
        self.raw.load(Ordering::Relaxed)
    }

    /// An answer with `raw: true` while the rules are switched off.
    pub(crate) fn noting_raw(&self, answer: Doc<'static>) -> Doc<'static> {
        if !self.is_raw() {
            return answer;
        }
        let mut noted = DocWriter::new();
        answer.iter().for_each(|(name, value)| {
            noted.append(name.as_str(), &value);
        });
        noted.append("raw", &Value::Bool(true));
        noted.finish()
    }

    /// Refuses what would bring rules on or off in a run without rules.
    pub(crate) fn refuse_raw(&self) -> Result<()> {
        match self.is_raw() {
            false => Ok(()),
            true => Err(Error::new(Code::OperationFailed, "the rules are switched off for this run (--raw)")
                .with_hint("start the server without --raw")),
        }
    }

    /// The databases whose rules were switched off since their last clean audit.
    pub async fn audits_due(&self) -> Result<Vec<String>> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let mut due = Vec::new();
        for db in catalog::databases(&mut at).await? {
            if self.audit_due(&mut at, &db).await? {
                due.push(db);
            }
        }
        Ok(due)
    }

    pub(crate) async fn audit_due(&self, at: &mut Access<'_>, db: &str) -> Result<bool> {
        Ok(!at.find(find(&names::catalog(db), Filter::equality("_id", &mark()))).await?.is_empty())
    }

    /// Every rule of the database was found right, or made so.
    pub(crate) async fn audited(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        at.delete(&names::catalog(db), Filter::equality("_id", &mark())).await.map(drop)
    }
}
