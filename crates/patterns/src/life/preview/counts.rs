//! What becomes of the values of a field: how many hosts have one, how many are right, would be corrected, removed, filled.
//!
//! In front of a real MongoDB the definition of the field runs there and only the counts come back ([`crate::life::preview::inside`]). Else the
//! hosts are walked part by part, each with what its value comes from in one snapshot, so that memory stays bounded.

use crate::execute::access::Access;
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::fields::value_at;
use crate::life::Life;
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::sample::shown;
use crate::life::preview::{documents, grouped, inside, long};
use crate::life::transaction::{OwnTransaction, is_transient};
use crate::life::walk::{Pace, PartDone, PartOfWalk, PartWork, walk};
use crate::rule::{Fate, Refers, Rule, WhenChanged, key};
use document::backend::{Answer, Session};
use document::op::Find;
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{Doc, DocWriter, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// How many hosts are looked at together.
const PACE: Pace = Pace::even(4_000);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) hosts: u64,
    /// How many have a value now: those that are right, would be corrected or removed.
    pub(crate) right: u64,
    /// Stay although their source does not exist.
    pub(crate) sourceless: u64,
    pub(crate) corrected: u64,
    /// Of these, those that only get another type.
    pub(crate) retyped: u64,
    pub(crate) removed: u64,
    pub(crate) filled: u64,
}

impl Counts {
    pub(super) fn add(&mut self, fate: Fate, hosts: u64) {
        self.hosts += hosts;
        match fate {
            Fate::Absent => {}
            Fate::Right => self.right += hosts,
            Fate::Sourceless => self.sourceless += hosts,
            Fate::Filled => self.filled += hosts,
            Fate::Retyped => {
                self.corrected += hosts;
                self.retyped += hosts;
            }
            Fate::Corrected => self.corrected += hosts,
            Fate::Removed => self.removed += hosts,
        }
    }

    pub(crate) fn has(&self) -> u64 {
        self.right + self.sourceless + self.corrected + self.removed
    }

    pub(super) fn show(&self, doc: &mut DocWriter) {
        doc.append("hosts", &long(self.hosts)).append("has", &long(self.has())).append("right", &long(self.right));
        doc.append("sourceless", &long(self.sourceless));
        doc.append("corrected", &long(self.corrected)).append("removed", &long(self.removed));
        doc.append("filled", &long(self.filled));
    }

    /// Values that exist are neither removed nor, by more than half, changed without a word. Values that the rule itself has
    /// made by its old declaration can be made again: of them only those count whose source may be gone.
    pub(super) fn refusal(&self, rule: &Rule, was: Option<&Rule>) -> Option<Refusal> {
        let changed = self.corrected - self.retyped;
        let (removes, changes) = (self.removed > 0, changed * 2 > self.has());
        let refused = match was.map(|was| was.link()) {
            None => removes || changes,
            Some(Some(link)) if link.refers == Refers::Host => {
                removes || (changes && link.when_changed == WhenChanged::Keep)
            }
            Some(_) => false,
        };
        if !refused {
            return None;
        }
        let (name, field, of) = (&rule.name, &rule.field, documents(self.has()));
        let what = match (self.removed, changed) {
            (removed, 0) => format!("would disappear from {}", grouped(removed)),
            (0, changed) => format!("would change in {}", grouped(changed)),
            (removed, changed) => {
                format!("would disappear from {} and change in {}", grouped(removed), grouped(changed))
            }
        };
        let have = if self.has() == 1 { "has" } else { "have" };
        let reason = format!("rule {name}: `{field}` {what} of the {of} that {have} it");
        Some(Refusal { need: Need::Overwrite, reason })
    }
}

/// Counts the hosts of a rule that keeps a field; with it what is to be said of documents that cannot be evaluated.
pub(super) async fn look(life: &Life, at: &mut Access<'_>, rule: &Arc<Rule>) -> Result<(Counts, Option<String>)> {
    if !at.backend.facts().runs_our_code {
        match inside::counts(at, rule).await {
            Ok(Some(counts)) => return Ok((counts, None)),
            Ok(None) => {}
            // An old server, or a document that cannot be evaluated: the walk says which.
            Err(error) => tracing::debug!(%error, rule = &*rule.name, "the counts are taken document by document"),
        }
    }
    let mut counting = Counting::of(life, rule)?;
    walk(life, PACE, None, &mut counting).await?;
    Ok((counting.counts, counting.failures()))
}

/// The hosts of a rule, as far as they were counted.
struct Counting<'a> {
    life: &'a Life,
    evaluator: Evaluator,
    counts: Counts,
    /// What of a host is needed. `None` means all of it.
    paths: Option<Vec<Path>>,
    /// How many hosts cannot be evaluated; the first of them, and why.
    failing: u64,
    failure: Option<String>,
}

impl PartWork for Counting<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl<'a> Counting<'a> {
    fn of(life: &'a Life, rule: &Arc<Rule>) -> Result<Counting<'a>> {
        let linked = rule.kept_field().filter(|field| field.link().is_some());
        let paths = linked.map(|field| field.reads().host.iter().cloned().chain(rule.owned()).collect());
        let (evaluator, counts) = (Evaluator::new(rule)?.through(&life.patterned.executor), Counts::default());
        Ok(Counting { life, evaluator, counts, paths, failing: 0, failure: None })
    }

    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, rule, context) = (self.life, self.evaluator.rule().clone(), self.life.context());
        let mut find = part.find(&rule.host, None);
        if life.backend.facts().may_lack_transactions {
            // No transaction: a server without a replica set can be looked at too.
            find.projection = self.projection(&find)?;
            let mut at = Access { backend: &*life.backend, session: &mut Session::default(), context: &context };
            return self.count(&mut at, find, part).await;
        }
        let mut began = OwnTransaction::begin_for(life, &context, &rule).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
        self.count(&mut at, find, part).await
    }

    async fn count(&mut self, at: &mut Access<'_>, find: Find, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (mut hosts, next) = part.cut(at.find(find).await?);
        let done = PartDone::of(&hosts, next);
        let filled = self.take_filled(&mut hosts);
        let differences = match self.evaluator.differences(at, &hosts).await {
            Ok(differences) => differences,
            Err(error) if is_transient(&error) => return Err(error),
            Err(_) => self.one_by_one(at, &mut hosts).await?,
        };
        let mut by_id = HashMap::with_capacity(differences.len());
        for difference in &differences {
            by_id.insert(key::bytes(&difference.id), difference.fate);
        }
        let field = &self.evaluator.rule().field;
        let id_of = |host: &Doc<'static>| host.get("_id").map_or_else(Vec::new, |id| key::bytes(&id));
        let unchanged: Vec<Doc<'static>> =
            hosts.iter().filter(|host| !by_id.contains_key(&id_of(host)) && has_value(host, field)).cloned().collect();
        let sourceless = self.evaluator.sourceless(at, &unchanged).await?;
        for host in &hosts {
            let id = id_of(host);
            let is_sourceless = sourceless.contains(&id);
            let unchanged = || match has_value(host, field) {
                true if is_sourceless => Fate::Sourceless,
                true => Fate::Right,
                false => Fate::Absent,
            };
            self.counts.add(by_id.get(&id).copied().unwrap_or_else(unchanged), 1);
        }
        self.counts.add(Fate::Filled, filled);
        Ok(Some(done))
    }

    /// Takes out the hosts that get their first value, where that is known without their sources. Returns how many.
    fn take_filled(&self, hosts: &mut Vec<Doc<'static>>) -> u64 {
        let field = self.evaluator.field();
        if !field.fills_every_host() {
            return 0;
        }
        let is_filled =
            |host: &Doc<'static>| !has_value(host, &field.target().path) && field.wanted(host, None).is_ok();
        let before = hosts.len();
        hosts.retain(|host| !is_filled(host));
        (before - hosts.len()) as u64
    }

    /// Sorts out the hosts that cannot be evaluated.
    async fn one_by_one(&mut self, at: &mut Access<'_>, hosts: &mut Vec<Doc<'static>>) -> Result<Vec<HostDifference>> {
        let (mut differences, mut sound) = (Vec::new(), Vec::with_capacity(hosts.len()));
        for host in hosts.drain(..) {
            match self.evaluator.differences(at, std::slice::from_ref(&host)).await {
                Ok(own) => {
                    differences.extend(own);
                    sound.push(host);
                }
                Err(error) if is_transient(&error) => return Err(error),
                Err(error) => {
                    self.failing += 1;
                    let id = host.get("_id").map_or_else(String::new, |id| shown(&id));
                    self.failure.get_or_insert_with(|| format!("_id {id}: {}", error.message()));
                }
            }
        }
        *hosts = sound;
        Ok(differences)
    }

    fn failures(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let number = documents(self.failing);
        Some(format!("{number} cannot be evaluated, and the rule does not get past them: {failure}"))
    }

    /// Only what the evaluation needs.
    fn projection(&self, find: &Find) -> Result<Option<Arc<Projection>>> {
        let Some(paths) = &self.paths else { return Ok(None) };
        let mut shown = DocWriter::new();
        shown.append("_id", &Value::Int32(1));
        for (index, path) in paths.iter().enumerate() {
            let is_inside = |(other, outer): (usize, &Path)| {
                other != index && outer.is_prefix_of(path) && (other < index || outer.parts.len() < path.parts.len())
            };
            if path.first() != "_id" && !paths.iter().enumerate().any(is_inside) {
                shown.append(&path.dotted(), &Value::Int32(1));
            }
        }
        let shown = shown.finish();
        Ok(Some(Arc::new(Projection::parse_find(&shown, &find.filter, &mut Names::new())?)))
    }
}

/// Whether the host has a value. In an array null stands for none.
fn has_value(host: &Doc<'_>, field: &Path) -> bool {
    match value_at(host, field) {
        Value::Array(items) => items.iter().any(|item| !item.is_nullish()),
        value => !value.is_missing(),
    }
}
