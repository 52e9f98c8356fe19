//! The rules of a declaration together: one owner per field, no link over a kept field, no cycles.

use super::finding::{At, Findings};
use super::order::{order, overlap, reads};
use crate::rule::{Fold, Link, Rule, Upkeep, WhenChanged};

/// A rule and where it stands.
pub(crate) struct Draft {
    pub(crate) rule: Rule,
    /// Its field's key.
    pub(crate) at: At,
    /// The keys of its block.
    pub(crate) keys: Vec<(String, At)>,
}

impl Draft {
    fn key(&self, name: &str) -> &At {
        self.keys.iter().find(|(key, _)| key == name).map_or(&self.at, |(_, at)| at)
    }
}

/// The rules in the order of their dependencies; nothing if they do not go together.
pub(crate) fn together(drafts: Vec<Draft>, findings: &mut Findings) -> Option<Vec<Rule>> {
    let before = findings.errors();
    for (index, draft) in drafts.iter().enumerate() {
        for other in drafts.iter().take(index) {
            one_owner(draft, other, findings);
        }
        for other in &drafts {
            no_kept_key(draft, other, findings);
        }
    }
    for draft in &drafts {
        for other in &drafts {
            not_too_lively(draft, other, findings);
        }
    }
    if findings.errors() > before {
        return None;
    }
    let (places, rules): (Vec<_>, Vec<_>) =
        drafts.into_iter().map(|draft| ((draft.at, draft.keys), draft.rule)).unzip();
    match order(&rules) {
        Ok(order) => {
            let mut rules: Vec<Option<Rule>> = rules.into_iter().map(Some).collect();
            Some(order.into_iter().filter_map(|i| rules.get_mut(i).and_then(Option::take)).collect())
        }
        Err(cycle) => {
            let names: Vec<&str> =
                cycle.iter().chain(cycle.first()).filter_map(|i| rules.get(*i)).map(|rule| &*rule.name).collect();
            if let Some((at, _)) = cycle.first().and_then(|first| places.get(*first)) {
                let message = match cycle.len() {
                    1 => format!("`{}` is made from itself", names.first().copied().unwrap_or_default()),
                    _ => format!("a cycle: {}", names.join(" is made from ")),
                };
                findings.error(at, message, "leave one of these fields out of `fields`, `expr`, `sum` or `where`");
            }
            None
        }
    }
}

fn one_owner(draft: &Draft, other: &Draft, findings: &mut Findings) {
    let (rule, first) = (&draft.rule, &other.rule);
    let line = other.at.spot.map(|spot| format!(" in line {}", spot.line)).unwrap_or_default();
    if rule.host == first.host && rule.field == first.field {
        findings.error(
            &draft.at,
            format!("two rules keep `{}`: `{}` here and `{}`{line}", rule.name, rule.kind, first.kind),
            "a field has one owner: rename it in one of them, or remove one",
        );
    } else if rule.host == first.host && overlap(&rule.field, &first.field) {
        findings.error(
            &draft.at,
            format!("`{}` overlaps `{}`{line}: one lies inside the other", rule.field, first.field),
            "a field has one owner: put them beside each other",
        );
    } else if rule.name == first.name {
        findings.error(
            &draft.at,
            format!(
                "two rules are called `{}`: of `{}` and of `{}`{line}",
                rule.name, rule.host.collection, first.host.collection
            ),
            "rename the field in one of them",
        );
    }
}

/// A link's key is the client's: no rule keeps it.
fn no_kept_key(draft: &Draft, owner: &Draft, findings: &mut Findings) {
    if draft.rule.name == owner.rule.name && draft.rule.host == owner.rule.host && own_key_reported(&draft.rule) {
        return;
    }
    for read in reads(&draft.rule) {
        if let (true, Some(path)) = (read.key && read.touches(&owner.rule), &read.path) {
            let key =
                if draft.rule.host == read.namespace && is_local(&draft.rule, path) || draft.rule.kind == "computed" {
                    "by"
                } else {
                    "match"
                };
            findings.error(
                draft.key(key),
                format!(
                    "`{key}: {path}` is kept by the rule `{}`: links go by fields that clients write",
                    owner.rule.name
                ),
                format!("link by another field than `{}`", owner.rule.field),
            );
        }
    }
}

/// Whether the block itself was already refused for linking by its own field.
fn own_key_reported(rule: &Rule) -> bool {
    matches!(&rule.upkeep, Upkeep::Link(link) if overlap(&link.local.path, &rule.field))
}

fn is_local(rule: &Rule, path: &document::value::Path) -> bool {
    matches!(&rule.upkeep, Upkeep::Link(link) if link.local.path == *path)
}

/// A copy of a value that changes with every child is rewritten with every child.
fn not_too_lively(draft: &Draft, owner: &Draft, findings: &mut Findings) {
    let Upkeep::Link(Link { fold: Fold::One { .. }, lag: None, when_changed: WhenChanged::Refresh, .. }) =
        &draft.rule.upkeep
    else {
        return;
    };
    let Upkeep::Link(Link { fold: Fold::Tally(_), lag: None, .. }) = &owner.rule.upkeep else { return };
    if reads(&draft.rule).iter().any(|read| !read.key && read.touches(&owner.rule)) {
        findings.warning(
            draft.key("fields"),
            format!(
                "`{}` copies `{}`, which changes with every child: each such write rewrites all copies",
                draft.rule.name, owner.rule.name
            ),
            "leave it out of `fields`, or let the copies be late with `lag: 5s`",
        );
    }
}
