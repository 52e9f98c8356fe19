//! What applying a declaration would do to the data that exists: one file per question. Reads, and changes nothing.
//!
//! [`counts`] says what becomes of the values of a field, [`obstacles`] where it has no room, [`references`] which references
//! have no source, [`names`] which collections and fields do not exist, [`validators`] what a validator would refuse, [`constrained`] which documents break a rule, [`readings`]
//! what documents lose in buckets, [`indexes`] which indexes buckets do not use, [`lift`] what becomes of the items of an array,
//! [`asked`] what a collection asks of documents that come into it,
//! [`lifted_before`] what became of them, [`removal`] what goes with a rule, [`state`] which
//! values of `_pleach` would be replaced, [`unfit`] which collections no rule can be kept on, [`versions`] which documents are of which
//! version. `plan` shows the answers; `apply` refuses by them.

mod constrained;
mod counts;
mod indexes;
mod inside;
mod lift;
mod lifted_before;
mod losses;
mod names;
mod obstacles;
mod references;
mod refusal;
mod relax;
mod removal;
mod requirements;
mod sample;
mod schema;
mod state;
mod unfit;
mod validators;
mod versions;

pub(crate) use constrained::count_breaking;
pub(crate) use references::{AllReferencesDangle, all_references_dangle};
pub(crate) use refusal::Refusal;
pub(crate) use sample::shown;
pub(crate) use validators::refused_validator;

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::plan::{ApplyPlan, ApplyStep, Work};
use crate::life::versions::readers;
use crate::life::{Life, unkeyed};
use crate::rule::order::reads;
use crate::rule::{Lens, Losses, Rule};
use counts::Counts;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};
use lift::LiftCounts;
use references::References;
use refusal::Need;
use removal::Removal;
use std::sync::Arc;

/// What would become of the data of each rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preview {
    pub(crate) rules: Vec<RulePreview>,
}

/// What would become of the data of one rule.
#[derive(Clone, Debug)]
pub(crate) struct RulePreview {
    pub(crate) rule: Arc<Rule>,
    /// `seed`, `lift`, `rebuild`, `move`, `convert`, `constrain`, `upkeep`, `index`, `expiry`, `remove` or `none`.
    pub(crate) work: &'static str,
    pub(crate) counts: Option<Counts>,
    pub(crate) references: Option<References>,
    /// How many source documents have no key, of a rule that computes one or makes documents.
    pub(crate) unkeyed: Option<u64>,
    /// What documents would lose that come into buckets.
    pub(crate) losses: Option<Losses>,
    /// What becomes of the items of an array.
    pub(crate) lift: Option<LiftCounts>,
    pub(crate) removal: Option<Removal>,
    /// How many documents there are, and how many a constraint would refuse.
    pub(crate) breaking: Option<(u64, u64)>,
    /// What becomes of documents of several versions.
    pub(crate) versions: Option<versions::VersionsPreview>,
    /// What a person should know, a sentence each.
    pub(crate) notes: Vec<String>,
    pub(crate) refusals: Vec<Refusal>,
}

/// What is asked for beside the declaration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PreviewOptions {
    /// Rules that the declaration lacks are to be removed …
    pub(crate) remove: bool,
    /// … with their fields.
    pub(crate) with_data: bool,
}

impl Preview {
    /// Looks at the data of all rules of the declaration, and of those that are to go.
    pub(crate) async fn look(
        life: &Life,
        at: &mut Access<'_>,
        rights: &Rights,
        changes: &ApplyPlan,
        declared: &[Rule],
        options: PreviewOptions,
    ) -> Result<Preview> {
        let mut names = names::ExistingNames::new(declared);
        let mut rules = Vec::new();
        for rule in declared {
            let of_rule =
                || changes.steps.iter().filter(|step| step.rule.name == rule.name && step.rule.host == rule.host);
            // What changes data stands behind the indexes that it needs.
            let Some(step) = of_rule().last() else {
                rules.push(RulePreview::new(Arc::new(rule.clone()), "none"));
                continue;
            };
            let mut rule_preview = RulePreview::new(step.rule.clone(), step.kind());
            rule_preview.notes.extend(of_rule().filter_map(ApplyStep::note));
            lifted_before::look(life, at, &mut rule_preview).await?;
            match &step.work {
                Work::Seed | Work::Lift | Work::Rebuild => {
                    match step.work {
                        Work::Lift => rule_preview.look_at_items(life, at, rights, declared, &mut names).await?,
                        _ => rule_preview.look_at_values(life, at, rights, &mut names).await?,
                    }
                    if life.kept(&step.rule).is_none() {
                        state::look(at, &mut rule_preview).await?;
                        unfit::look(life, at, &mut rule_preview).await?;
                    }
                    rule_preview.note_unsettled(changes);
                }
                Work::Shape(change) => {
                    names::look(at, rights, &mut names, &mut rule_preview).await?;
                    if change.rewrites() {
                        indexes::look(at, change, &mut rule_preview).await?;
                        losses::look(at, change, &mut rule_preview).await?;
                    }
                }
                Work::Convert { .. } => {
                    unfit::look(life, at, &mut rule_preview).await?;
                    versions::look(life, at.context, &mut rule_preview).await?;
                }
                Work::Constrain(_) => constrained::look(at, declared, &mut rule_preview).await?,
                Work::Index(_) | Work::Expiry(_) | Work::Keep | Work::Remove => {}
            }
            rules.push(rule_preview);
        }
        validators::look(at, rights, changes, &mut rules).await?;
        for rule in changes.removed() {
            let mut rule_preview = RulePreview::new(rule.clone(), "remove");
            match options.remove {
                true if rule.lens().is_some() => {
                    rule_preview.removal = Some(versions::removal(life, at.context, rule).await?);
                }
                true => rule_preview.removal = Some(Removal::look(at, rule, options.with_data).await?),
                false => rule_preview.refusals.push(Refusal::kept(rule)),
            }
            rules.push(rule_preview);
        }
        Ok(Preview { rules })
    }

    /// Looks at what making the values of rules right would do that nobody keeps afterwards. What a validator refuses then is said
    /// of each document, and a collection that does not exist is made by nobody: it needs a word even if no name is near.
    pub(crate) async fn of_once(
        life: &Life,
        at: &mut Access<'_>,
        rights: &Rights,
        rules: &[Arc<Rule>],
    ) -> Result<Preview> {
        let declared: Vec<Rule> = rules.iter().map(|rule| (**rule).clone()).collect();
        let mut names = names::ExistingNames::new(&declared).with_all_collections();
        let mut rule_previews = Vec::new();
        for rule in rules {
            let mut rule_preview = RulePreview::new(rule.clone(), "seed");
            rule_preview.look_at_values(life, at, rights, &mut names).await?;
            rule_previews.push(rule_preview);
        }
        Ok(Preview { rules: rule_previews })
    }

    /// The reasons to refuse, with the rule that each is about.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&RulePreview, &Refusal)> {
        self.rules
            .iter()
            .flat_map(|rule_preview| rule_preview.refusals.iter().map(move |refusal| (rule_preview, refusal)))
    }

    /// `{ rule, fields, documents }` of each rule that goes: which fields go with it, and from how many documents.
    pub(crate) fn removed(&self) -> impl Iterator<Item = Doc<'static>> {
        self.rules.iter().filter_map(|rule_preview| {
            let mut doc = DocWriter::new();
            doc.append("rule", &Value::from(&*rule_preview.rule.name));
            rule_preview.removal.as_ref()?.show(&mut doc);
            Some(doc.finish())
        })
    }

    /// `[ { rule, work, hosts, has, right, corrected, removed, filled, references, dangling, unkeyed, notes, refused } ]`.
    pub(crate) fn show(&self) -> Value<'static> {
        let mut list = ArrayWriter::new();
        self.rules.iter().for_each(|rule_preview| {
            list.push(&Value::Document(rule_preview.show()));
        });
        Value::Array(list.finish())
    }
}

impl RulePreview {
    fn new(rule: Arc<Rule>, work: &'static str) -> RulePreview {
        RulePreview {
            rule,
            work,
            counts: None,
            references: None,
            unkeyed: None,
            losses: None,
            lift: None,
            removal: None,
            breaking: None,
            versions: None,
            notes: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// Names, counts, obstacles and references of a rule that keeps a field.
    async fn look_at_values(
        &mut self,
        life: &Life,
        at: &mut Access<'_>,
        rights: &Rights,
        names: &mut names::ExistingNames<'_>,
    ) -> Result<()> {
        names::look(at, rights, names, self).await?;
        let (counts, failures) = counts::look(life, at, &self.rule).await?;
        self.notes.extend(failures);
        let was = life.kept(&self.rule);
        self.refusals.extend(counts.refusal(&self.rule, was.as_deref()));
        self.refusals.extend(obstacles::look(at, &self.rule).await?);
        self.counts = Some(counts);
        self.look_at_keys(at).await?;
        references::look(at, self).await
    }

    /// The same of a rule that lifts an array: what its values become is known when the items are documents.
    async fn look_at_items(
        &mut self,
        life: &Life,
        at: &mut Access<'_>,
        rights: &Rights,
        declared: &[Rule],
        names: &mut names::ExistingNames<'_>,
    ) -> Result<()> {
        names::look(at, rights, names, self).await?;
        lift::look(life, at, declared, self).await?;
        self.refusals.extend(obstacles::look(at, &self.rule).await?);
        Ok(())
    }

    /// Source documents that will count nowhere.
    async fn look_at_keys(&mut self, at: &mut Access<'_>) -> Result<()> {
        if let (Some(unkeyed), Some(link)) = (unkeyed::count(at, &self.rule).await?, self.rule.link()) {
            self.notes.extend(unkeyed.text(link));
            self.unkeyed = Some(unkeyed.documents);
        }
        Ok(())
    }

    /// Counts are of the data as it is now; what another rule of the same `apply` makes first is not in them.
    fn note_unsettled(&mut self, changes: &ApplyPlan) {
        let reads = reads(&self.rule);
        let changed = changes.steps.iter().filter(|step| matches!(step.work, Work::Seed | Work::Lift | Work::Rebuild));
        let fields = changed
            .filter(|step| step.rule.name != self.rule.name && reads.iter().any(|read| read.touches(&step.rule)));
        let is_read = |step: &&ApplyStep| {
            let is_changed = |lens: &Arc<Lens>| readers::reads_changed(&self.rule, &step.rule.host, &[lens]);
            matches!(step.work, Work::Convert { rewrites: true, .. }) && step.rule.lens().is_some_and(is_changed)
        };
        let names: Vec<&str> =
            fields.chain(changes.steps.iter().filter(is_read)).map(|step| &*step.rule.name).collect();
        if !names.is_empty() {
            self.notes.push(format!("the counts are of the data as it is now: {} is made first", names.join(", ")));
        }
    }

    pub(crate) fn show(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        doc.append("rule", &Value::from(&*self.rule.name)).append("work", &Value::from(self.work));
        if let Some(counts) = &self.counts {
            counts.show(&mut doc);
        }
        if let Some(references) = &self.references {
            doc.append("references", &long(references.all)).append("dangling", &long(references.dangling));
        }
        if let Some(unkeyed) = self.unkeyed {
            doc.append("unkeyed", &long(unkeyed));
        }
        if let Some(losses) = &self.losses {
            losses::show(losses, &mut doc);
        }
        if let Some(lift) = &self.lift {
            doc.append("lift", &Value::Document(lift.show()));
        }
        if let Some(removal) = &self.removal {
            removal.show(&mut doc);
        }
        if let Some((all, breaking)) = self.breaking {
            doc.append("hosts", &long(all)).append("breaking", &long(breaking));
        }
        if let Some(versions) = &self.versions {
            versions.show(&mut doc);
        }
        if !self.notes.is_empty() {
            let notes = self.notes.iter().map(|note| Value::from(&**note));
            doc.append("notes", &Value::Array(notes.collect()));
        }
        if !self.refusals.is_empty() {
            let refusals = self.refusals.iter().map(|refusal| Value::Document(refusal.show()));
            doc.append("refused", &Value::Array(refusals.collect()));
        }
        doc.finish()
    }
}

impl Life {
    /// The rule of that name as it is kept now.
    fn kept(&self, rule: &Rule) -> Option<Arc<Rule>> {
        let same = |entry: &&crate::life::CatalogRule| entry.rule.host == rule.host && entry.rule.name == rule.name;
        self.entries().iter().filter(|entry| entry.row.state.is_kept()).find(same).map(|entry| entry.rule.clone())
    }
}

/// Whether the rule stores its collection in another form.
fn is_shape(rule: &Rule) -> bool {
    rule.shape().is_some()
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

/// 1 document, 2 documents.
fn documents(number: u64) -> String {
    match number {
        1 => "1 document".to_owned(),
        number => format!("{} documents", grouped(number)),
    }
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
