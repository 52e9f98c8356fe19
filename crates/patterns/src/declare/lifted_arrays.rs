//! Arrays that a rule lifts, beside the other rules of a declaration: one owner, no reader, and children that keep their `_id`.

use crate::declare::check::Draft;
use crate::declare::finding::Findings;
use crate::rule::order::{overlap, reads};
use crate::rule::{Rule, WhenDeleted};
use document::value::Path;

/// Why a rule that lifts an array does not go together with another.
struct Conflict {
    message: String,
    hint: String,
}

/// What is wrong between a rule that lifts an array and another one.
fn conflict(rule: &Rule, array: &Path, other: &Rule) -> Option<Conflict> {
    let conflict = |message: String, hint: &str| Some(Conflict { message, hint: hint.to_owned() });
    let (name, theirs) = (&rule.name, &other.name);
    if let (Some(shape), Some(link)) = (other.shape(), rule.link()) {
        let loses = other.host == link.source && shape.derives_id();
        return match loses {
            true => conflict(
                format!(
                    "`{name}` lifts `{array}` into `{}`, which `{theirs}` stores without the `_id` of its documents",
                    link.source.collection
                ),
                "write `reading_id: stored` there, or lift into another collection",
            ),
            false => None,
        };
    }
    if other.name == rule.name {
        return None;
    }
    let owns = |path: &Path| other.host == rule.host && overlap(array, path);
    if owns(&other.field) || other.lift.as_ref().is_some_and(owns) {
        return conflict(
            format!("`{name}` lifts `{array}`, and `{theirs}` keeps it or something in it"),
            "a field has one owner: leave out `lift` in one of them, or that rule",
        );
    }
    let is_read = |path: Option<&Path>| path.is_some_and(|path| overlap(array, path));
    if !rule.lifts_own_field()
        && reads(other).iter().any(|read| read.namespace == rule.host && is_read(read.path.as_ref()))
    {
        return conflict(
            format!("`{theirs}` reads `{array}`, whose items `{name}` moves into documents of their own"),
            "compute it from these documents instead",
        );
    }
    None
}

/// Tells what is wrong with the arrays that rules lift.
pub(crate) fn check(drafts: &[Draft], findings: &mut Findings) {
    let lifting = drafts.iter().filter_map(|draft| Some((draft, draft.rule.as_ref()?)));
    for (draft, rule) in lifting {
        let Some(array) = &rule.lift else { continue };
        for other in drafts.iter().filter_map(|other| other.rule.as_ref()) {
            if let Some(Conflict { message, hint }) = conflict(rule, array, other) {
                findings.error(draft.key("lift"), message, hint);
            }
            note_delete_policy(draft, rule, other, findings);
        }
    }
}

/// The same of rules that were declared apart: what is wrong with the first pair.
pub(crate) fn refusal(rules: &[Rule]) -> Option<String> {
    rules.iter().find_map(|rule| {
        let array = rule.lift.as_ref()?;
        rules.iter().find_map(|other| conflict(rule, array, other)).map(|conflict| conflict.message)
    })
}

/// Children that others refer to may not be taken away again.
fn note_delete_policy(draft: &Draft, rule: &Rule, other: &Rule, findings: &mut Findings) {
    let is_referred = |link: &crate::rule::Link| {
        rule.link().is_some_and(|children| children.source == link.source) && link.when_deleted == WhenDeleted::Reject
    };
    if other.link().is_some_and(is_referred) {
        findings.note(
            draft.key("lift"),
            format!("`{}` refuses deletes of children: `drop --restore` leaves the arrays of these", other.name),
            "drop that rule first",
        );
    }
}
