//! What goes together with an outlier array (SEMANTICS R34): fields on its collection do; a rule that keeps one of its fields, is kept from
//! its items, or writes where they are, does not.

use crate::declare::check::Draft;
use crate::declare::combinations::Clash;
use crate::declare::finding::Findings;
use crate::rule::order::overlap;
use crate::rule::{Link, Outlier, Refers, Rule};
use document::value::Path;

/// Tells which rules do not go together with an outlier array.
pub(crate) fn check(drafts: &[Draft], findings: &mut Findings) {
    for (number, draft) in drafts.iter().enumerate() {
        let Some((rule, outlier)) = draft.rule.as_ref().and_then(|rule| Some((rule, rule.outlier()?))) else {
            continue;
        };
        for (place, other) in drafts.iter().enumerate() {
            let Some(other) = other.rule.as_ref().filter(|_| place != number) else { continue };
            // Of two outlier arrays the second is told.
            if other.outlier().is_some() && place > number {
                continue;
            }
            if let Some(clash) = clash(rule, outlier, other) {
                findings.error(draft.key(clash.key), clash.message, clash.hint);
            }
        }
    }
}

/// Why two rules do not go together, said about the first.
pub(crate) fn clash(rule: &Rule, outlier: &Outlier, other: &Rule) -> Option<Clash> {
    let told = |key, what: &str, hint: &str| {
        let message = format!("`{}` does not go together with `{}`: {what}", rule.name, other.name);
        Some(Clash { key, message, hint: hint.to_owned() })
    };
    let keeps = |name: &str| {
        let owned = other.owned();
        other.host == outlier.host && owned.iter().any(|path| overlap(path, &Path::new(name)))
    };
    let source = other.link().map(|link| &link.source);
    let overflows = other.outlier().map(|other| &other.overflow);
    let stored = other.shape().and_then(|shape| shape.declared_place());
    if keeps(&outlier.flag) {
        return told("flag", &format!("both keep `{}`", outlier.flag), "give the flag a name of its own");
    }
    if keeps(&outlier.count) {
        return told("count", &format!("both keep `{}`", outlier.count), "give the count a name of its own");
    }
    if [overflows, stored].contains(&Some(&outlier.overflow)) || other.host == outlier.overflow {
        return told("overflow", "both write to the overflow", "give the overflow a name of its own");
    }
    if source == Some(&outlier.overflow) {
        let hint = format!("read `{}` instead: it has the embedded items too", outlier.items().collection);
        return told("overflow", "the overflow has only some of the items", &hint);
    }
    let refers_to_items = |link: &&Link| link.source == outlier.items() && link.refers == Refers::Host;
    if other
        .link()
        .filter(refers_to_items)
        .is_some_and(|link| link.foreign.path().is_none_or(|key| key.path.first() != "_id"))
    {
        let hint = format!("refer by `_id`: `{{ {}: …, index: … }}`", outlier.owner);
        return told("", "no index says which one item has a value, so that a copy cannot refer by it", &hint);
    }
    if other.host == outlier.items() {
        return told("", "the items of an array are only read", "keep the field in another collection");
    }
    if other.host == outlier.host && other.link().is_some_and(|link| link.create) {
        return told(
            "",
            "it makes documents of the collection by itself",
            "leave out `create`, or choose another host",
        );
    }
    None
}
