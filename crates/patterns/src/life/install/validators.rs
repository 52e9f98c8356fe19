//! Validators of users' collections that rules add to (SEMANTICS R36): a collection has `{ $and: [ the user's own, the rules' … ] }`.
//!
//! The user's part is a row of the catalog, `{ _id: { validates: <collection> }, own, rules, fields, changing }`: a client that changes the
//! validator changes that part, and it is given back with the last rule. `changing` is there while the collection may have either
//! validator: what a stop leaves behind is known to be ours. What somebody has said past Pleach is the user's. `fields` are those that rules
//! keep, or have kept, in the documents: a validator that lists what is allowed allows them.

use crate::active::Rules;
use crate::execute::access::{Access, find};
use crate::life::install::validation::{OPTIONS, Validation};
use crate::life::install::{ensure_indexes, lens_of};
use crate::life::relocate::stored::look_up;
use crate::life::{CatalogRule, Life, catalog};
use crate::mql;
use crate::rule::names;
use crate::rule::owned::STATE;
use crate::rule::{Constraint, Lens, Rule, State};
use document::backend::Session;
use document::filter::{Filter, Node, Test};
use document::op::{AdminOp, CollectionOptions, Context, Namespace};
use document::value::Path;
use document::{Doc, DocWriter, Result, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The validator of a collection that rules add to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComposedValidator {
    pub(crate) ns: Namespace,
    own: Validation,
    rules: Vec<Doc<'static>>,
    fields: Vec<Path>,
    changing: bool,
}

impl ComposedValidator {
    fn id(&self) -> Value<'static> {
        mql::object([("validates", Value::from(&*self.ns.collection))])
    }

    /// From a row of the catalog; `None` if it is about something else.
    pub(crate) fn read(db: &str, row: &Doc<'_>) -> Option<ComposedValidator> {
        let (Some(Value::Document(id)), Some(Value::Document(own))) = (row.get("_id"), row.get("own")) else {
            return None;
        };
        let Some(Value::Array(rules)) = row.get("rules") else { return None };
        let rule = |rule: Value<'_>| match rule {
            Value::Document(rule) => Some(rule.into_owned()),
            _ => None,
        };
        Some(ComposedValidator {
            ns: Namespace::new(db, id.get("validates")?.as_str()?),
            own: Validation::of(&own),
            rules: rules.iter().filter_map(rule).collect(),
            fields: fields(row),
            changing: row.get("changing").is_some_and(|changing| changing.is_truthy()),
        })
    }

    pub(crate) async fn save(&self, at: &mut Access<'_>) -> Result<()> {
        let rules = self.rules.iter().map(|rule| Value::Document(rule.borrow()));
        let mut row = DocWriter::new();
        row.append("_id", &self.id()).append("own", &Value::Document(self.own.options()));
        row.append("rules", &Value::Array(rules.collect()));
        if !self.fields.is_empty() {
            row.append("fields", &mql::list(self.fields.iter().map(|path| Value::string(path.dotted()))));
        }
        if self.changing {
            row.append("changing", &Value::Bool(true));
        }
        at.put(&names::catalog(&self.ns.db), &row.finish()).await
    }

    async fn forget(&self, at: &mut Access<'_>) -> Result<()> {
        at.delete(&names::catalog(&self.ns.db), Filter::equality("_id", &self.id())).await.map(drop)
    }

    fn whole(&self) -> Validation {
        self.own.with_rules(&self.rules)
    }

    /// The user's part, if the collection has this validation.
    fn own_of(&self, current: Option<&Validation>) -> Validation {
        match current {
            // The user's validator has gone with the collection.
            None => Validation::none(),
            Some(current) if self.changing || *current == self.whole() => self.own.clone(),
            Some(current) => current.clone().without(&self.rules),
        }
    }
}

/// The fields that a row lists; rows from before closed schemas have none.
fn fields(row: &Doc<'_>) -> Vec<Path> {
    let Some(Value::Array(fields)) = row.get("fields") else { return Vec::new() };
    fields.iter().filter_map(|path| path.as_str().map(Path::new)).collect()
}

/// Those of a database.
pub(crate) async fn rows(at: &mut Access<'_>, db: &str) -> Result<Vec<ComposedValidator>> {
    let rows =
        at.find(find(&names::catalog(db), Filter::from_node(Node::field("_id.validates", Test::Exists)))).await?;
    Ok(rows.iter().filter_map(|row| ComposedValidator::read(db, row)).collect())
}

/// What the collection has now; `None` if it is not there.
async fn current_validation(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<Validation>> {
    Ok(look_up(at, ns).await?.map(|found| Validation::of(&found.options)))
}

/// The collection with what rules ask for, as it has to be made and written down.
async fn planned(
    at: &mut Access<'_>,
    ns: &Namespace,
    rules: Vec<Doc<'static>>,
    fields: Vec<Path>,
) -> Result<ComposedValidator> {
    let current = current_validation(at, ns).await?;
    let known = rows(at, &ns.db).await?.into_iter().find(|row| row.ns == *ns);
    let own = match known {
        Some(known) => known.own_of(current.as_ref()),
        None => current.unwrap_or(Validation::none()),
    };
    Ok(ComposedValidator { ns: ns.clone(), own, rules, fields, changing: true })
}

/// The fields that documents of a collection may have because rules keep them, or have kept them.
pub(crate) async fn kept_fields(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Path>> {
    let known = rows(at, &ns.db).await?.into_iter().find(|row| row.ns == *ns);
    let mut fields = known.map(|known| known.fields).unwrap_or_default();
    for row in catalog::load(at, &ns.db).await?.iter().filter(|row| row.state != State::Retiring) {
        // A row that is no rule of the database keeps nothing.
        let Ok(rule) = row.rule_in(&ns.db) else { continue };
        let owned = rule.owned().into_iter().filter(|_| rule.host == *ns);
        fields.extend(owned.filter(|path| path.first() != STATE));
        let number = rule.lens().map(|lens| Path::new(&lens.field));
        fields.extend(number.filter(|_| rule.host == *ns));
    }
    fields.sort_by_key(Path::dotted);
    fields.dedup();
    Ok(fields)
}

/// What stored documents must match. A rule is about documents of the newest version: where another version may have something else,
/// those that are stored in an older one are asked for nothing until they are brought up.
fn of_stored(constraint: &dyn Constraint, fields: &[Path], lens: Option<&Lens>) -> Doc<'static> {
    let newest = constraint.validator(fields);
    match lens.filter(|lens| constraint.is_about(&|path| lens.changes(path))) {
        Some(lens) => {
            let old = Value::Document(lens.old().source);
            mql::document([("$or", mql::list([old, Value::Document(newest)]))])
        }
        None => newest,
    }
}

/// What the user alone asks of a collection that rules add to; `None` if no rule does.
pub(crate) async fn own_options(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<Doc<'static>>> {
    let Some(known) = rows(at, &ns.db).await?.into_iter().find(|row| row.ns == *ns) else { return Ok(None) };
    let current = current_validation(at, ns).await?;
    Ok(Some(known.own_of(current.as_ref()).options()))
}

/// `{ collMod: …, validator, … }`: what a person would run for a rule that asks for this, beside what is there. `old` is the rule as it
/// was.
pub(crate) async fn command(at: &mut Access<'_>, rule: &Rule, old: Option<&Rule>) -> Result<Option<Doc<'static>>> {
    let Some(constraint) = rule.constraint() else { return Ok(None) };
    let ns = &rule.host;
    let known = rows(at, &ns.db).await?.into_iter().find(|row| row.ns == *ns);
    let mut rules = known.as_ref().map(|known| known.rules.clone()).unwrap_or_default();
    let (fields, lens) = (kept_fields(at, ns).await?, lens_of(at, ns).await?);
    if let (Some(old), Some(known)) = (old.and_then(|old| old.constraint()), &known) {
        let was = of_stored(&**old, &known.fields, lens.as_deref());
        rules.retain(|rule| *rule != was);
    }
    let asked = of_stored(&**constraint, &fields, lens.as_deref());
    if !rules.contains(&asked) {
        rules.push(asked);
    }
    let whole = planned(at, ns, rules, fields).await?.whole();
    let mut command = DocWriter::new();
    command.append("collMod", &Value::from(&*ns.collection));
    whole.options().iter().for_each(|(name, value)| {
        command.append(name.as_str(), &value);
    });
    Ok(Some(command.finish()))
}

/// Gives a collection what its rules ask for, or what it had without them.
async fn set(at: &mut Access<'_>, planned: ComposedValidator) -> Result<()> {
    let (whole, current) = (planned.whole(), current_validation(at, &planned.ns).await?);
    if current.as_ref() != Some(&whole) && !(current.is_none() && planned.rules.is_empty()) {
        planned.save(at).await?;
        let (ns, options) = (planned.ns.clone(), whole.options());
        let op = match current {
            Some(_) => AdminOp::CollMod { ns, change: options },
            None => AdminOp::Create { ns, options: creation(CollectionOptions::default(), &whole) },
        };
        at.backend.admin(at.session, at.context, op).await?;
    }
    match planned.rules.is_empty() {
        true => planned.forget(at).await,
        false => ComposedValidator { changing: false, ..planned }.save(at).await,
    }
}

/// The options of a new collection with this validation.
fn creation(options: CollectionOptions, whole: &Validation) -> CollectionOptions {
    let word = |word: &String| (!word.is_empty()).then(|| word.clone());
    let validator = Some(whole.validator.clone()).filter(|validator| !validator.is_empty());
    let (validation_level, validation_action) = (word(&whole.level), word(&whole.action));
    CollectionOptions { validator, validation_level, validation_action, ..options }
}

/// What a client says about validation in `create` or `collMod`; `None` if nothing.
fn requested_validation(op: &AdminOp) -> Option<(&Namespace, Doc<'static>)> {
    let (ns, all) = match op {
        AdminOp::CollMod { ns, change } => (ns, change.clone()),
        AdminOp::Create { ns, options } => {
            let word = |word: &Option<String>| word.clone().map_or(Value::Missing, Value::string);
            let validator =
                options.validator.as_ref().map_or(Value::Missing, |validator| Value::Document(validator.borrow()));
            let values = [validator, word(&options.validation_level), word(&options.validation_action)];
            return Some((ns, mql::document(OPTIONS.into_iter().zip(values))));
        }
        _ => return None,
    };
    OPTIONS.iter().any(|name| all.contains(name)).then_some((ns, all))
}

/// The same command with the whole validator.
fn with_whole(op: &AdminOp, whole: &Validation) -> AdminOp {
    match op {
        AdminOp::CollMod { ns, change } => {
            let mut all = DocWriter::new();
            for (name, value) in change.iter().filter(|(name, _)| !OPTIONS.contains(&name.as_str())) {
                all.append(name.as_str(), &value);
            }
            whole.options().iter().for_each(|(name, value)| {
                all.append(name.as_str(), &value);
            });
            AdminOp::CollMod { ns: ns.clone(), change: all.finish() }
        }
        AdminOp::Create { ns, options } => {
            AdminOp::Create { ns: ns.clone(), options: creation(options.clone(), whole) }
        }
        other => other.clone(),
    }
}

fn adds_to(rule: &Rule, ns: &Namespace) -> bool {
    rule.constraint().is_some() && rule.host == *ns
}

impl Life {
    /// Makes the validators of a database what its rules ask for; whoever calls it changes no rule meanwhile.
    pub(crate) async fn settle_validators(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        let mut wanted: BTreeMap<Namespace, Vec<Arc<Rule>>> = BTreeMap::new();
        let mut lenses: Vec<(Namespace, Arc<Lens>)> = Vec::new();
        for row in rows(at, db).await? {
            wanted.entry(row.ns).or_default();
        }
        for entry in self.entries().into_iter().filter(|entry| *entry.db == *db && entry.row.state.is_kept()) {
            if entry.rule.constraint().is_some() {
                wanted.entry(entry.rule.host.clone()).or_default().push(entry.rule);
            } else if let Some(lens) = entry.rule.lens() {
                lenses.push((entry.rule.host.clone(), lens.clone()));
            }
        }
        for (ns, rules) in wanted {
            let fields = kept_fields(at, &ns).await?;
            let lens = lenses.iter().find(|(versioned, _)| *versioned == ns).map(|(_, lens)| &**lens);
            let of_rule = |rule: &Arc<Rule>| Some(of_stored(&**rule.constraint()?, &fields, lens));
            let rules = rules.iter().filter_map(of_rule).collect();
            let planned = planned(at, &ns, rules, fields).await?;
            set(at, planned).await?;
        }
        Ok(())
    }

    /// A client has dropped a collection: one that rules constrain is made again before somebody writes to it.
    pub(crate) async fn constrain_again(&self, at: &mut Access<'_>, ns: &Namespace) -> Result<()> {
        let adds = |entry: &CatalogRule| entry.row.state.is_kept() && adds_to(&entry.rule, ns);
        let rules: Vec<CatalogRule> = self.entries().into_iter().filter(adds).collect();
        if rules.is_empty() || look_up(at, ns).await?.is_some() {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        self.settle_validators(at, &ns.db).await?;
        for entry in &rules {
            ensure_indexes(at, &entry.rule).await?;
        }
        Ok(())
    }

    /// Runs a client's `create` or `collMod` that speaks of the validator of a collection which rules add to: it is about the user's
    /// part. Returns `None` if it is about another collection, and runs nothing then.
    pub(crate) async fn change_own_validator(
        &self,
        session: &mut Session,
        context: &Context,
        op: &AdminOp,
    ) -> Result<Option<Vec<Doc<'static>>>> {
        let Some((ns, requested)) = requested_validation(op) else { return Ok(None) };
        let named_by = |rules: &Rules| Some(rules.of(ns)?.named_by.clone());
        if !named_by(&self.patterned.rules()).is_some_and(|rules| rules.iter().any(|kept| adds_to(&kept.rule, ns))) {
            return Ok(None);
        }
        let _changing = self.changing.lock().await;
        let (mut own_session, own_context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut own_session, context: &own_context };
        let Some(known) = rows(&mut at, &ns.db).await?.into_iter().find(|row| row.ns == *ns) else { return Ok(None) };
        let current = current_validation(&mut at, ns).await?;
        let own = known.own_of(current.as_ref());
        let before = ComposedValidator { own: own.clone(), ..known };
        let after = ComposedValidator { own: own.changed(&requested), changing: true, ..before.clone() };
        after.save(&mut at).await?;
        // On the client's own connection: its rights decide.
        let answer = self.backend.admin(session, context, with_whole(op, &after.whole())).await;
        let now = if answer.is_ok() { after } else { before };
        ComposedValidator { changing: false, ..now }.save(&mut at).await?;
        answer.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn validation(options: bson::Document) -> Validation {
        Validation::of(&Doc::from(options))
    }

    #[test]
    fn what_somebody_said_past_pleach_is_the_users() {
        let rule = Doc::from(doc! { "kind": "book" });
        let own = validation(doc! { "validator": { "a": 1 } });
        let ns = Namespace::new("shop", "things");
        let row = ComposedValidator { ns, own: own.clone(), rules: vec![rule], fields: Vec::new(), changing: false };
        assert_eq!(row.own_of(Some(&row.whole())), own);
        let others = validation(doc! { "validator": { "b": 2 } });
        assert_eq!(row.own_of(Some(&others)), others);
        let edited = validation(doc! { "validator": { "$and": [{ "a": 1 }, { "kind": "book" }, { "c": 3 }] } });
        let left = validation(doc! { "validator": { "$and": [{ "a": 1 }, { "c": 3 }] } });
        assert_eq!(row.own_of(Some(&edited)), left);
        assert_eq!(row.own_of(None), Validation::none(), "the collection was dropped");
        let stopped = ComposedValidator { changing: true, ..row };
        assert_eq!(stopped.own_of(Some(&others)), own, "it was about to be changed");
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let row = |row: &ComposedValidator| {
            let rules = row.rules.iter().map(|rule| Value::Document(rule.borrow()));
            mql::document([
                ("_id", row.id()),
                ("own", Value::Document(row.own.options())),
                ("rules", mql::list(rules)),
                ("fields", mql::list(row.fields.iter().map(|path| Value::string(path.dotted())))),
                ("changing", Value::Bool(row.changing)),
            ])
        };
        let composed = ComposedValidator {
            ns: Namespace::new("shop", "things"),
            own: validation(doc! { "validator": { "a": 1 }, "validationAction": "warn" }),
            rules: vec![Doc::from(doc! { "kind": "book" })],
            fields: vec![Path::new("stats.n")],
            changing: true,
        };
        assert_eq!(ComposedValidator::read("shop", &row(&composed)), Some(composed));
        assert_eq!(ComposedValidator::read("shop", &Doc::from(doc! { "_id": { "made": "x" }, "key": {} })), None);
    }
}
