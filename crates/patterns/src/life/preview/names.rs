//! Collections and fields that a declaration names and the data does not have, with the nearest names that it does have.

use crate::declare::spelling;
use crate::execute::access::{Access, find};
use crate::execute::rights::{Rights, namespaces};
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::{RulePreview, sample};
use crate::life::relocate;
use crate::rule::Rule;
use crate::rule::names;
use crate::rule::order::reads;
use document::filter::Filter;
use document::op::{AdminOp, Find, Namespace};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Result, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the data: read once for all rules.
pub(super) struct ExistingNames<'r> {
    declared: &'r [Rule],
    collections: Option<BTreeSet<String>>,
    /// A collection that does not exist is a reason to refuse even if no name is near.
    needs_collections: bool,
    /// The paths that some documents of a collection have; `None` for one without documents.
    paths: BTreeMap<String, Option<BTreeSet<String>>>,
}

impl<'r> ExistingNames<'r> {
    pub(super) fn new(declared: &'r [Rule]) -> ExistingNames<'r> {
        ExistingNames { declared, collections: None, needs_collections: false, paths: BTreeMap::new() }
    }

    /// For rules that make no collection: all of them must be there.
    pub(super) fn with_all_collections(self) -> ExistingNames<'r> {
        ExistingNames { needs_collections: true, ..self }
    }

    /// The collections of the database that the client may read.
    async fn collections(&mut self, at: &mut Access<'_>, rights: &Rights, db: &str) -> Result<&BTreeSet<String>> {
        let names = match self.collections.take() {
            Some(names) => names,
            None => {
                let list = AdminOp::ListCollections { db: db.to_owned(), filter: Filter::all(), name_only: true };
                let rows = at.backend.admin(at.session, at.context, list).await?;
                let names = rows.iter().filter_map(|row| row.get("name")?.as_str().map(str::to_owned));
                let is_users = |name: &String| {
                    let ns = Namespace::new(db, name);
                    !names::is_bookkeeping(&ns) && !name.starts_with("system.") && rights.may("find", &ns)
                };
                names.filter(is_users).collect()
            }
        };
        Ok(self.collections.insert(names))
    }

    async fn paths(&mut self, at: &mut Access<'_>, ns: &Namespace) -> Result<Option<&BTreeSet<String>>> {
        if !self.paths.contains_key(&*ns.collection) {
            let documents = sample::documents(at, ns).await?;
            let paths = (!documents.is_empty()).then(|| sample::paths(&documents));
            self.paths.insert(ns.collection.to_string(), paths);
        }
        Ok(self.paths.get(&*ns.collection).and_then(Option::as_ref))
    }

    /// Whether a rule of the same declaration makes the field.
    fn is_made(&self, ns: &Namespace, path: &Path) -> bool {
        let overlaps = |rule: &Rule| path.is_prefix_of(&rule.field) || rule.field.is_prefix_of(path);
        self.declared.iter().any(|rule| rule.host == *ns && !crate::life::preview::is_shape(rule) && overlaps(rule))
    }
}

/// Notes what does not exist; what has a near name is a reason to refuse.
pub(super) async fn look(
    at: &mut Access<'_>,
    rights: &Rights,
    known: &mut ExistingNames<'_>,
    rule_preview: &mut RulePreview,
) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let into = rule.shape().and_then(|shape| shape.declared_place()).cloned();
    for ns in namespaces(&rule).iter().filter(|ns| Some(*ns) != into.as_ref()) {
        let is_needed = known.needs_collections;
        let there = known.collections(at, rights, &ns.db).await?;
        if there.contains(&*ns.collection) || relocate::stored::look_up(at, ns).await?.is_some() {
            continue;
        }
        let candidates =
            there.iter().map(String::as_str).filter(|name| into.as_ref().is_none_or(|into| **name != *into.collection));
        match near(&ns.collection, candidates) {
            Some(name) => rule_preview.refuse_name(format!("there is no collection `{}`", ns.collection), Some(name)),
            None if is_needed => rule_preview.refuse_name(format!("there is no collection `{}`", ns.collection), None),
            None if there.is_empty() => {}
            None => rule_preview.notes.push(format!("there is no collection `{}` yet", ns.collection)),
        }
    }
    for (ns, path) in paths(&rule) {
        if path.first() == "_id" || known.is_made(&ns, &path) {
            continue;
        }
        let Some(paths) = known.paths(at, &ns).await? else { continue };
        let dotted = path.dotted();
        if paths.contains(&dotted) || has(at, &ns, &dotted).await? {
            continue;
        }
        let what = no_field(&ns, &dotted);
        match near_path(&path, paths) {
            Some(name) => rule_preview.refuse_name(what, Some(&name)),
            None => rule_preview.notes.push(what),
        }
    }
    Ok(())
}

/// Says that no document of a collection has a path, and which one is near. `None` if one has it, or if there are no documents.
pub(super) async fn lacking(
    at: &mut Access<'_>,
    ns: &Namespace,
    path: &Path,
) -> Result<Option<(String, Option<String>)>> {
    let (documents, dotted) = (sample::documents(at, ns).await?, path.dotted());
    if documents.is_empty() || has(at, ns, &dotted).await? {
        return Ok(None);
    }
    Ok(Some((no_field(ns, &dotted), near_path(path, &sample::paths(&documents)))))
}

fn no_field(ns: &Namespace, path: &str) -> String {
    format!("no document of `{}` has the field `{path}`", ns.collection)
}

impl RulePreview {
    fn refuse_name(&mut self, what: String, near: Option<&str>) {
        let meant = near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
        let reason = format!("rule {}: {what}{meant}", self.rule.name);
        self.refusals.push(Refusal { need: Need::CreateMissing, reason });
    }
}

/// What a rule reads, each path once.
fn paths(rule: &Rule) -> Vec<(Namespace, Path)> {
    let mut all: Vec<(Namespace, Path)> = match rule.shape() {
        Some(shape) => shape.required().into_iter().map(|path| (rule.host.clone(), path)).collect(),
        None => reads(rule).into_iter().filter_map(|read| Some((read.namespace, read.path?))).collect(),
    };
    let mut seen = BTreeSet::new();
    all.retain(|(ns, path)| seen.insert((ns.to_string(), path.dotted())));
    all
}

/// Whether any document has the path.
async fn has(at: &mut Access<'_>, ns: &Namespace, path: &str) -> Result<bool> {
    let exists = crate::mql::document([(path, crate::mql::call("$exists", Value::Bool(true)))]);
    let filter = Filter::parse(&exists, &mut Names::new())?;
    Ok(!at.find(Find { limit: Some(1), ..find(ns, filter) }).await?.is_empty())
}

/// The nearest name that may have been meant. Very short names are all near each other.
fn near<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const SHORTEST: usize = 3;
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let own = plain(name);
    let candidates = names.filter(|candidate| {
        let other = plain(candidate);
        other == own || (other.chars().count() >= SHORTEST && own.chars().count() >= SHORTEST && **candidate != *"_id")
    });
    spelling::nearest(name, candidates)
}

/// The nearest path: the first part that does not exist is compared with its neighbours.
fn near_path(path: &Path, paths: &BTreeSet<String>) -> Option<String> {
    let mut prefix = String::new();
    for (at, part) in path.parts.iter().enumerate() {
        let own = format!("{prefix}{}", part.name);
        if !paths.contains(&own) {
            let neighbours =
                paths.iter().filter_map(|path| path.strip_prefix(&prefix)).filter(|rest| !rest.contains('.'));
            let name = near(&part.name, neighbours)?;
            let rest: String = path.parts.iter().skip(at + 1).map(|part| format!(".{}", part.name)).collect();
            return Some(format!("{prefix}{name}{rest}"));
        }
        prefix = format!("{own}.");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_that_may_have_been_meant() {
        let names = ["_id", "likes", "postId", "items", "items.productId", "a"];
        let paths: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        for (path, expected) in [
            ("likez", Some("likes")),
            ("postID", Some("postId")),
            ("post_id", Some("postId")),
            ("items.productid", Some("items.productId")),
            ("item.productId", Some("items.productId")),
            ("id", Some("_id")),
            ("uid", None),
            ("b", None),
            ("status", None),
        ] {
            assert_eq!(near_path(&Path::new(path), &paths).as_deref(), expected, "{path}");
        }
    }
}
