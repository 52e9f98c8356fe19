//! Is every host of an outlier array as its rule would have written it? Count, flag and limit are compared with the overflow, and
//! items without an owner are looked for. Only reads.

use crate::execute::access::Access;
use crate::life::Life;
use crate::life::audit::{AuditedRule, Drift, Figures, Report};
use crate::life::outlier::arrange::counts;
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, walk};
use crate::rule::Outlier;
use crate::shapes::outlier::stored::number;
use document::backend::Answer;
use document::filter::Filter;
use document::op::{Find, Namespace};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::order;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// How many documents are looked at together.
const PACE: Pace = Pace { first: 1_000, most: 4_000, bytes: 16 << 20 };

/// Reports what is wrong.
pub(crate) async fn audit(
    life: &Life,
    asked: &AuditedRule,
    outlier: &Arc<Outlier>,
    figures: &mut Figures,
    report: &mut Report,
) -> Result<()> {
    for drift in found(life, asked, outlier, figures).await? {
        report.note(figures, drift);
    }
    Ok(())
}

/// All that is wrong.
pub(super) async fn found(
    life: &Life,
    asked: &AuditedRule,
    outlier: &Arc<Outlier>,
    figures: &mut Figures,
) -> Result<Vec<Drift>> {
    let mut looking = Looking { life, asked, outlier, ns: &outlier.host, checked: 0, found: Vec::new() };
    walk(life, PACE, None, &mut looking).await?;
    figures.checked += looking.checked;
    let mut found = looking.found;
    let mut looking = Looking { life, asked, outlier, ns: &outlier.overflow, checked: 0, found: Vec::new() };
    walk(life, PACE, None, &mut looking).await?;
    found.append(&mut looking.found);
    figures.note_if_empty(&outlier.host);
    Ok(found)
}

struct Looking<'a> {
    life: &'a Life,
    asked: &'a AuditedRule,
    outlier: &'a Arc<Outlier>,
    ns: &'a Namespace,
    checked: u64,
    found: Vec<Drift>,
}

impl PartWork for Looking<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(async move {
            let (life, context) = (self.life, self.life.context());
            let mut began = OwnTransaction::begin(life, &context).await?;
            let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
            let (documents, next) = walk::read(&mut at, self.ns, part, None).await?;
            let mut found = match *self.ns == self.outlier.host {
                true => self.hosts(&mut at, &documents).await?,
                false => self.orphans(&mut at, &documents).await?,
            };
            self.checked += documents.len() as u64;
            self.found.append(&mut found);
            Ok(Some(PartDone::of(&documents, next)))
        })
    }
}

impl Looking<'_> {
    async fn hosts(&self, at: &mut Access<'_>, hosts: &[Doc<'static>]) -> Result<Vec<Drift>> {
        let owners = hosts.iter().filter_map(|host| host.get("_id")).collect();
        let counts = counts(at, self.outlier, owners).await?;
        let of = |host: &Doc<'static>| {
            let id = host.get("_id").unwrap_or(Value::Missing);
            counts.iter().find(|(owner, _)| order::equal(owner, &id)).map_or(0, |(_, count)| *count)
        };
        Ok(hosts.iter().filter_map(|host| self.flaw(host, of(host))).collect())
    }

    /// What is wrong with a host that has so many items in the overflow.
    fn flaw(&self, host: &Doc<'static>, overflow: u64) -> Option<Drift> {
        let outlier = self.outlier;
        let stored = outlier.read(host);
        let embedded = stored.items.as_ref().map_or(0, Vec::len) as u64;
        let overflow = if stored.items.is_some() { overflow } else { 0 };
        let flag = host.get(&outlier.flag).unwrap_or(Value::Missing);
        let is_flagged = flag == Value::Bool(true);
        let field = |name: &str, expected: Value<'static>| {
            let stored = host.get(name).unwrap_or(Value::Missing);
            Some(self.drift(&outlier.host, host, name, stored, expected))
        };
        let keep = stored.items.as_ref().map_or(0, |items| outlier.embedded(items)) as u64;
        if keep < embedded {
            let size = |size: u64| Value::string(format!("{size} embedded items"));
            return Some(self.drift(&outlier.host, host, &outlier.field, size(embedded), size(keep)));
        }
        let least = u64::try_from(outlier.keep).unwrap_or(u64::MAX).min(embedded + overflow);
        if outlier.keep_bytes.is_none() && embedded < least {
            let size = |size: u64| Value::string(format!("{size} embedded items"));
            return Some(self.drift(&outlier.host, host, &outlier.field, size(embedded), size(least)));
        }
        if is_flagged != (overflow > 0) || !(is_flagged || flag.is_missing()) {
            let expected = if overflow > 0 { Value::Bool(true) } else { Value::Missing };
            return field(&outlier.flag, expected);
        }
        match stored.count == Some(embedded + overflow) {
            true => None,
            false => field(&outlier.count, number(embedded + overflow)),
        }
    }

    /// Items whose host is not there.
    async fn orphans(&self, at: &mut Access<'_>, overflow: &[Doc<'static>]) -> Result<Vec<Drift>> {
        let outlier = self.outlier;
        let mut owners: Vec<Value<'static>> = overflow.iter().filter_map(|item| item.get(&outlier.owner)).collect();
        owners.sort_by(order::compare);
        owners.dedup_by(|one, other| order::equal(one, other));
        if owners.is_empty() {
            return Ok(Vec::new());
        }
        let filter = Filter::among("_id", owners);
        let only_id = crate::mql::document([("_id", Value::from(1))]);
        let projection = Projection::parse_find(&only_id, &filter, &mut Names::new())?;
        let find = Find { projection: Some(Arc::new(projection)), ..Find::matching(outlier.host.clone(), filter) };
        let hosts = at.find(find).await?;
        let mut there: Vec<Value<'static>> = hosts.iter().filter_map(|host| host.get("_id")).collect();
        there.sort_by(order::compare);
        let is_orphan = |item: &&Doc<'static>| {
            let owner = item.get(&outlier.owner).unwrap_or(Value::Missing);
            there.binary_search_by(|other| order::compare(other, &owner)).is_err()
        };
        let drift = |item: &Doc<'static>| {
            let owner = item.get(&outlier.owner).unwrap_or(Value::Missing);
            self.drift(&outlier.overflow, item, &outlier.owner, owner, Value::Missing)
        };
        Ok(overflow.iter().filter(is_orphan).map(drift).collect())
    }

    fn drift(
        &self,
        ns: &Namespace,
        document: &Doc<'static>,
        field: &str,
        stored: Value<'static>,
        expected: Value<'static>,
    ) -> Drift {
        Drift {
            rule: self.asked.rule.clone(),
            collection: ns.collection.clone(),
            id: document.get("_id").unwrap_or(Value::Null),
            field: field.to_owned(),
            stored,
            expected,
            flaws: Vec::new(),
            violations: Vec::new(),
        }
    }
}
