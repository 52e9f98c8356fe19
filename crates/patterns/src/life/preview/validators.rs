//! Validators that would refuse what a rule writes: found before they refuse every write of a client.

use crate::execute::access::Access;
use crate::execute::evaluate::Evaluator;
use crate::execute::rights::Rights;
use crate::life::plan::{ApplyPlan, ApplyStep, Work};
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::relax::{lost, relaxed};
use crate::life::preview::schema::{SchemaScope, Wanted, allowing};
use crate::life::preview::{RulePreview, sample};
use crate::life::{install, relocate, replaced};
use crate::mql::document;
use crate::print::in_shell;
use crate::rule::Rule;
use crate::rule::field::Samples;
use document::filter::{Details, Filter};
use document::op::Namespace;
use document::pipeline::expr::Names;
use document::update::Applied;
use document::{Code, Doc, Error, Result, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why a validator that a client is about to set cannot be: it would refuse what a rule in force writes. Returns `None` if it refuses
/// nothing of that. `options` are those that the collection would have.
pub(crate) async fn refused_validator(
    at: &mut Access<'_>,
    ns: &Namespace,
    options: &Doc<'static>,
    rules: &[&Arc<Rule>],
) -> Result<Option<Error>> {
    let Some(validator) = enforced_by(options) else { return Ok(None) };
    let found = conflicts(at, ns, &validator, rules, Hosts::Written).await?;
    let Some((name, _)) = found.first() else { return Ok(None) };
    let reasons: Vec<&str> = found.iter().map(|(_, refusal)| &*refusal.reason).collect();
    let message = format!("the validator of '{ns}' is not changed: {}", reasons.join(". "));
    let hint = match found.first().map(|(_, refusal)| &refusal.need) {
        Some(Need::Command(command)) => match command.get("validator") {
            Some(validator) => format!("say `validator: {}` instead, or ", in_shell(&validator)),
            None => String::new(),
        },
        _ => String::new(),
    };
    let hint = format!("{hint}remove the rule first with `pleach drop {name}`");
    Ok(Some(Error::new(Code::OperationFailed, message).with_hint(hint)))
}

/// Adds a refusal to each rule whose collection has a validator in its way.
pub(super) async fn look(
    at: &mut Access<'_>,
    rights: &Rights,
    changes: &ApplyPlan,
    rule_previews: &mut [RulePreview],
) -> Result<()> {
    let changes_data = |step: &&ApplyStep| match &step.work {
        Work::Seed | Work::Lift | Work::Rebuild => true,
        Work::Shape(change) => change.rewrites(),
        _ => false,
    };
    let steps: Vec<&ApplyStep> = changes.steps.iter().filter(changes_data).collect();
    let hosts: BTreeSet<String> = steps.iter().map(|step| step.rule.host.to_string()).collect();
    for host in hosts {
        let rules: Vec<&Arc<Rule>> =
            steps.iter().map(|step| &step.rule).filter(|rule| rule.host.to_string() == host).collect();
        let Some(ns) = rules.first().map(|rule| rule.host.clone()) else { continue };
        let Some(validator) = enforced(at, &ns).await? else { continue };
        let found = match rules.as_slice() {
            [rule] if super::is_shape(rule) => vec![of_shape(rule)],
            rules => conflicts(at, &ns, &validator, rules, Hosts::Before).await?,
        };
        // The command holds the validator, which MongoDB shows to those who may list or change the collection.
        let may_see = rights.may_list(&ns.db) || rights.may("collMod", &ns);
        for (rule, mut refusal) in found {
            if !may_see {
                refusal.need = Need::HiddenCommand;
            }
            let rule_preview = rule_previews
                .iter_mut()
                .find(|rule_preview| rule_preview.rule.name == rule && rule_preview.rule.host == ns);
            if let Some(rule_preview) = rule_preview {
                rule_preview.refusals.push(refusal);
            }
        }
    }
    Ok(())
}

/// The validator that refuses writes. `None` if there is none, or if it only warns.
pub(super) async fn enforced(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<Doc<'static>>> {
    // What rules ask for beside it allows what other rules keep.
    if let Some(own) = install::validators::own_options(at, ns).await? {
        return Ok(enforced_by(&own));
    }
    Ok(relocate::stored::look_up(at, ns).await?.and_then(|found| enforced_by(&found.options)))
}

/// The same of a collection with these options.
fn enforced_by(options: &Doc<'static>) -> Option<Doc<'static>> {
    let says = |name: &str, word: &str| options.get(name).is_some_and(|value| value.as_str() == Some(word));
    if says("validationAction", "warn") || says("validationLevel", "off") {
        return None;
    }
    match options.get("validator") {
        Some(Value::Document(validator)) if !validator.is_empty() => Some(validator.into_owned()),
        _ => None,
    }
}

/// The collection becomes a view, which no validator watches.
fn of_shape(rule: &Rule) -> (Arc<str>, Refusal) {
    let ns = &rule.host.collection;
    let command = [("collMod", Value::from(&**ns)), ("validator", Value::Document(Doc::empty()))];
    let reason = format!("rule {}: the validator of {ns} would no longer be enforced: {ns} becomes a view", rule.name);
    (rule.name.clone(), Refusal { need: Need::Command(document(command)), reason })
}

/// How the documents of the collection are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hosts {
    /// As they were before the rules.
    Before,
    /// As rules in force have written them.
    Written,
}

/// A host without what these rules have written to it: as a client sends it.
fn without(host: &Doc<'static>, rules: &[&Arc<Rule>]) -> Doc<'static> {
    let paths = rules.iter().flat_map(|rule| rule.owned());
    paths.fold(host.clone(), |host, path| replaced::without(&host, &path))
}

/// The rules that the validator would refuse, each with the change that allows all of them.
async fn conflicts(
    at: &mut Access<'_>,
    ns: &Namespace,
    validator: &Doc<'static>,
    rules: &[&Arc<Rule>],
    are: Hosts,
) -> Result<Vec<(Arc<str>, Refusal)>> {
    // What cannot be read is MongoDB's alone to judge.
    let Ok(filter) = Filter::parse(validator, &mut Names::new()) else { return Ok(Vec::new()) };
    let all = sample::documents(at, ns).await?;
    let passes = |doc: &Doc<'_>, at: &Access<'_>| filter.matches(doc, &at.context.env).unwrap_or(true);
    // What a client could not send is not refused because of a rule.
    let hosts: Vec<Doc<'static>> = match are {
        Hosts::Before => all.into_iter().filter(|host| passes(host, at)).collect(),
        Hosts::Written => all.into_iter().filter(|host| passes(&without(host, rules), at)).collect(),
    };
    let (mut repaired, mut refused) = (validator.clone(), Vec::new());
    for rule in rules {
        let wanted = wanted(at, rule, &hosts).await?;
        let written = match are {
            Hosts::Before => written(at, rule, &hosts).await?,
            Hosts::Written => {
                let others: Vec<&Arc<Rule>> = rules.iter().copied().filter(|other| other.name != rule.name).collect();
                let hosts: Vec<Doc<'static>> = hosts.iter().map(|host| without(host, &others)).collect();
                let unseeded = written(at, rule, &hosts).await?;
                hosts.into_iter().chain(unseeded).collect()
            }
        };
        let mut own = Repair { before: validator.clone(), after: validator.clone() };
        let mut all = Repair { before: repaired.clone(), after: repaired };
        for repair in [&mut own, &mut all] {
            for wanted in &wanted {
                repair.after = allowing(&repair.after, wanted, SchemaScope::Own);
            }
            repair.suit(at, &wanted, &written);
        }
        repaired = all.after;
        if own.before.as_bytes() != own.after.as_bytes() {
            refused.push((rule, lost(&own.before, &own.after)));
        }
    }
    let command = document([("collMod", Value::from(&*ns.collection)), ("validator", Value::Document(repaired))]);
    let refusal = |(rule, lost): &(&&Arc<Rule>, Vec<String>)| {
        let state = rule.state_path().map_or_else(String::new, |_| " and `_pleach`".to_owned());
        let mut reason = format!(
            "rule {}: the validator of {} would refuse what it writes (`{}`{state})",
            rule.name, ns.collection, rule.field
        );
        if !lost.is_empty() {
            let lost: Vec<String> = lost.iter().map(|lost| format!("`{lost}`")).collect();
            reason.push_str(&format!("; the command takes off what is in the way: {}", lost.join(", ")));
        }
        (rule.name.clone(), Refusal { need: Need::Command(command.clone()), reason })
    };
    Ok(refused.iter().map(refusal).collect())
}

/// The rules whose values a validator of other rules would refuse.
pub(super) async fn conflicting(
    at: &mut Access<'_>,
    ns: &Namespace,
    validator: &Doc<'static>,
    rules: &[Arc<Rule>],
) -> Result<Vec<Arc<str>>> {
    let rules: Vec<&Arc<Rule>> = rules.iter().collect();
    let found = conflicts(at, ns, validator, &rules, Hosts::Written).await?;
    Ok(found.into_iter().map(|(rule, _)| rule).collect())
}

/// A validator that is being changed.
struct Repair {
    before: Doc<'static>,
    after: Doc<'static>,
}

impl Repair {
    /// Changes it until all documents pass: subschemas too, and in the end keywords that refuse a document are left out.
    fn suit(&mut self, at: &Access<'_>, wanted: &[Wanted], documents: &[Doc<'static>]) {
        let refuses = |validator: &Doc<'_>| {
            let Ok(filter) = Filter::parse(validator, &mut Names::new()) else { return false };
            documents.iter().any(|doc| !filter.matches(doc, &at.context.env).unwrap_or(true))
        };
        if refuses(&self.after) {
            for wanted in wanted {
                self.after = allowing(&self.after, wanted, SchemaScope::Subschemas);
            }
        }
        if refuses(&self.after) {
            self.after = relaxed(&self.after, &refuses);
        }
    }
}

/// The hosts as the rule would write them.
pub(super) async fn written(
    at: &mut Access<'_>,
    rule: &Arc<Rule>,
    hosts: &[Doc<'static>],
) -> Result<Vec<Doc<'static>>> {
    let mut all = Vec::new();
    let Ok(differences) = Evaluator::new(rule)?.differences(at, hosts).await else { return Ok(all) };
    for difference in differences {
        let is_it = |host: &&Doc<'static>| host.get("_id").is_some_and(|id| id == difference.id);
        let Some(host) = hosts.iter().find(is_it) else { continue };
        if let Ok(Applied::Changed(after)) = difference.update.apply(host, &Details::default(), &at.context.env) {
            all.push(after);
        }
    }
    Ok(all)
}

/// What the rule writes, as far as can be said from the declaration and some documents.
async fn wanted(at: &mut Access<'_>, rule: &Arc<Rule>, hosts: &[Doc<'static>]) -> Result<Vec<Wanted>> {
    let path: Vec<String> = rule.field.parts.iter().map(|part| part.name.to_string()).collect();
    let Some(field) = rule.kept_field() else { return Ok(Vec::new()) };
    let sources = match field.link() {
        Some(link) => sample::documents(at, &link.source).await?,
        None => Vec::new(),
    };
    let Samples { mut values, any, optional } = field.samples(&sources, hosts, &at.context.env)?;
    values.retain(|value| !value.is_missing());
    if values.is_empty() {
        // Of a kind that nobody knows yet.
        values.push(Value::Missing);
    }
    let values = values.into_iter().map(|value| (value, false)).chain(any.into_iter().map(|value| (value, true)));
    let wanted = |(value, any): (Value<'static>, bool)| Wanted { path: path.clone(), value, any, optional };
    let mut all: Vec<Wanted> = values.map(wanted).collect();
    if rule.state_path().is_some() {
        let (path, value) = (vec!["_pleach".to_owned()], Value::Document(Doc::empty()));
        all.push(Wanted { path, value, any: true, optional: false });
    }
    Ok(all)
}
