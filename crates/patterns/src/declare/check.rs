//! The rules of a declaration together: one owner per field and per stored collection, no link over a kept field, no cycles.

use crate::declare::finding::{At, Findings};
use crate::declare::kinds::DeclaredField;
use crate::declare::outliers;
use crate::declare::shaped_sources::{self, ShapedCollections};
use crate::declare::{combinations, lifted_arrays};
use crate::rule::order::{order, overlap, reads};
use crate::rule::owners::Owners;
use crate::rule::{Link, Refers, Rule, WhenChanged};
use document::op::Namespace;
use document::{Code, Error, Result};
use std::collections::{BTreeSet, HashMap};

/// Rules are compared with each other: a bound on what a client can ask for. A hundred is a large declaration.
const MOST_RULES: usize = 1_000;

/// A declared rule and where it stands.
pub(crate) struct Draft {
    pub(crate) target: DeclaredField,
    pub(crate) kind: &'static str,
    /// `None` if its block has errors.
    pub(crate) rule: Option<Rule>,
    /// Its field's key.
    pub(crate) at: At,
    /// The keys of its block.
    pub(crate) keys: Vec<(String, At)>,
}

impl Draft {
    pub(crate) fn key(&self, name: &str) -> &At {
        self.keys.iter().find(|(key, _)| key == name).map_or(&self.at, |(_, at)| at)
    }
}

/// The rules in the order of their dependencies; `None` if they do not go together.
pub(crate) fn together(drafts: Vec<Draft>, findings: &mut Findings) -> Option<Vec<Rule>> {
    if let Some(draft) = drafts.get(MOST_RULES) {
        findings.error(
            &draft.at,
            format!("more than {MOST_RULES} rules in one declaration"),
            "a database with so many rules is better split",
        );
        return None;
    }
    let owners = Owners::new(drafts.iter().map(|draft| (&draft.target.host, &draft.target.field)));
    for (draft, others) in drafts.iter().zip(meeting(&drafts, &owners)) {
        for other in others.into_iter().filter_map(|other| drafts.get(other)) {
            match (&draft.rule, &other.rule) {
                (Some(rule), Some(first)) if combinations::concerns(rule, first) => {
                    if let Some(clash) = combinations::clash(rule, first) {
                        let elsewhere = match draft.at.file == other.at.file {
                            true => String::new(),
                            false => place(draft, other),
                        };
                        findings.error(draft.key(clash.key), clash.message + &elsewhere, clash.hint);
                    }
                }
                _ => one_owner(draft, other, findings),
            }
        }
    }
    shaped_sources::check(&drafts, findings);
    outliers::check(&drafts, findings);
    let before = findings.errors();
    lifted_arrays::check(&drafts, findings);
    for draft in &drafts {
        let Some(rule) = &draft.rule else { continue };
        no_kept_key(draft, rule, &drafts, &owners, findings);
        clients_decide(draft, rule, &drafts, &owners, findings);
        not_too_lively(draft, rule, &drafts, &owners, findings);
    }
    if findings.errors() > before {
        // A link over a kept field is a cycle or the beginning of one: told already, and better.
        return None;
    }
    let (mut places, mut rules): (Vec<At>, Vec<Rule>) =
        drafts.into_iter().filter_map(|draft| Some((draft.at, draft.rule?))).unzip();
    let mut cyclic = false;
    loop {
        match order(&rules) {
            Ok(_) if cyclic => return None,
            Ok(order) => {
                let mut rules: Vec<Option<Rule>> = rules.into_iter().map(Some).collect();
                return Some(order.into_iter().filter_map(|i| rules.get_mut(i).and_then(Option::take)).collect());
            }
            Err(mut cycle) => {
                tell_cycle(&cycle, &rules, &places, findings);
                // There may be another one among the rest.
                cyclic = true;
                cycle.sort_unstable_by(|a, b| b.cmp(a));
                for rule in cycle {
                    rules.remove(rule);
                    places.remove(rule);
                }
            }
        }
    }
}

/// For each rule those before it that it may not go together with: they keep the same or an overlapping field, have the same
/// name, or are about the same collection, one of them about all of it.
fn meeting(drafts: &[Draft], owners: &Owners) -> Vec<BTreeSet<usize>> {
    let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
    // The rules about a collection, and among them those about all of it.
    let (mut all, mut whole): (Abouts<'_>, Abouts<'_>) = Default::default();
    let mut meeting = Vec::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        let target = &draft.target;
        let mut others: BTreeSet<usize> =
            owners.overlapping(&target.host, Some(&target.field)).into_iter().filter(|other| *other < number).collect();
        let same_name = named.entry(&*target.name).or_default();
        others.extend(&*same_name);
        same_name.push(number);
        if let Some(rule) = &draft.rule {
            let is_whole = combinations::concerns(rule, rule);
            for (_, namespace) in combinations::namespaces(rule) {
                let before = if is_whole { &all } else { &whole };
                others.extend(before.get(namespace).into_iter().flatten());
            }
            for (_, namespace) in combinations::namespaces(rule) {
                all.entry(namespace).or_default().push(number);
                if is_whole {
                    whole.entry(namespace).or_default().push(number);
                }
            }
        }
        meeting.push(others);
    }
    meeting
}

type Abouts<'a> = HashMap<&'a Namespace, Vec<usize>>;

fn tell_cycle(cycle: &[usize], rules: &[Rule], places: &[At], findings: &mut Findings) {
    let name = |i: &usize| rules.get(*i).map(|rule| format!("`{}`", rule.name));
    let names: Vec<String> = cycle.iter().chain(cycle.first()).filter_map(name).collect();
    let at = cycle.first().and_then(|first| places.get(*first)).cloned().unwrap_or_default();
    let message = match names.as_slice() {
        [itself, _] => format!("a cycle: {itself} is made from itself"),
        [first, rest @ ..] => format!("a cycle: {first} is made from {}", rest.join(", which is made from ")),
        [] => return,
    };
    findings.error(&at, message, "leave one of these fields out of `fields`, `expr`, `sum`, `avg` or `where`");
}

/// Whether rules that were declared apart go together: those in force and those that are to come.
pub fn compatible(rules: &[Rule]) -> Result<()> {
    let refuse = |message: String| Err(Error::new(Code::BadValue, message));
    if let Some(message) = lifted_arrays::refusal(rules) {
        return refuse(message);
    }
    let shaped = ShapedCollections::of(rules);
    for (index, rule) in rules.iter().enumerate() {
        if let Some(refused) = shaped.refusal(rule) {
            return Err(Error::new(Code::BadValue, refused.reason).with_hint(refused.hint));
        }
        if let Some(outlier) = rule.outlier() {
            let others = rules.iter().enumerate().filter(|(place, _)| *place != index);
            if let Some(clash) = others.into_iter().find_map(|(_, other)| outliers::clash(rule, outlier, other)) {
                return refuse(clash.message);
            }
        }
        for other in rules.iter().take(index) {
            if combinations::concerns(rule, other) {
                if let Some(clash) = combinations::clash(rule, other) {
                    return refuse(clash.message);
                }
            } else if other.host == rule.host && overlap(&rule.field, &other.field) {
                return refuse(format!("the rules {} and {} keep one field", rule.name, other.name));
            }
        }
        let keys: Vec<_> = reads(rule).into_iter().filter(|read| read.key).collect();
        for other in rules {
            if keys.iter().any(|read| read.touches(other)) {
                return refuse(format!("the rule {} links by a field that the rule {} keeps", rule.name, other.name));
            }
        }
    }
    match order(rules) {
        Ok(_) => Ok(()),
        Err(cycle) => {
            let names: Vec<&str> = cycle.iter().filter_map(|i| rules.get(*i)).map(|rule| &*rule.name).collect();
            refuse(format!("the rules {} are made from each other", names.join(", ")))
        }
    }
}

/// Where the other rule stands, seen from this one: its line, and its file if that is another.
fn place(draft: &Draft, other: &Draft) -> String {
    let line = other.at.spot.map(|spot| format!(" in line {}", spot.line)).unwrap_or_default();
    match &other.at.file {
        Some(file) if draft.at.file != other.at.file => format!("{line} of {file}"),
        _ => line,
    }
}

fn one_owner(draft: &Draft, other: &Draft, findings: &mut Findings) {
    let (this, first) = (&draft.target, &other.target);
    let line = place(draft, other);
    if this.host == first.host && this.field == first.field {
        findings.error(
            &draft.at,
            format!("two rules keep `{}`: `{}` here and `{}`{line}", this.name, draft.kind, other.kind),
            "a field has one owner: rename it in one of them, or remove one",
        );
    } else if this.host == first.host && overlap(&this.field, &first.field) {
        findings.error(
            &draft.at,
            format!("`{}` overlaps `{}`{line}: one lies inside the other", this.field, first.field),
            "a field has one owner: put them beside each other",
        );
    } else if this.name == first.name {
        findings.error(
            &draft.at,
            format!(
                "two rules are called `{}`: of `{}` and of `{}`{line}",
                this.name, this.host.collection, first.host.collection
            ),
            "rename the field in one of them",
        );
    }
}

/// A link's key is the client's: no rule keeps it.
fn no_kept_key(draft: &Draft, rule: &Rule, drafts: &[Draft], owners: &Owners, findings: &mut Findings) {
    let Some(link) = rule.link() else { return };
    let (host_key, source_key) = match link.refers {
        Refers::Host => ("by", "match"),
        Refers::Source => ("match", "by"),
    };
    let of_source = link.foreign.paths().iter().map(|path| (&link.source, path, source_key));
    for (namespace, path, key) in std::iter::once((&rule.host, &link.local.path, host_key)).chain(of_source) {
        for owner in owners.overlapping(namespace, Some(path)).into_iter().filter_map(|owner| drafts.get(owner)) {
            // A link by the rule's own field was told when its block was read.
            let told = key == "by" && owner.target.name == rule.name && link.refers == Refers::Host;
            if !told {
                findings.error(
                    draft.key(key),
                    format!(
                        "`{key}: {path}` is kept by the rule `{}`: links go by fields that clients write",
                        owner.target.name
                    ),
                    format!("link by another field than `{}`", owner.target.field),
                );
            }
        }
    }
}

/// What tells documents of a constrained collection apart is the clients', and so are the documents: none are made that lack it.
fn clients_decide(draft: &Draft, rule: &Rule, drafts: &[Draft], owners: &Owners, findings: &mut Findings) {
    let Some(constraint) = rule.constraint() else { return };
    for path in constraint.decisive() {
        for owner in owners.overlapping(&rule.host, Some(&path)).into_iter().filter_map(|owner| drafts.get(owner)) {
            findings.error(
                draft.key("discriminator"),
                format!(
                    "`discriminator: {path}` is kept by the rule `{}`: clients say what a document is",
                    owner.target.name
                ),
                format!("name another field than `{}`", owner.target.field),
            );
        }
        let makes = |draft: &&Draft| {
            let link = draft.rule.as_ref().filter(|other| other.host == rule.host).and_then(|other| other.link());
            link.is_some_and(|link| link.create)
        };
        for maker in drafts.iter().filter(makes) {
            findings.error(
                &maker.at,
                format!("`{}` makes documents without `{path}`, which `{}` refuses", maker.target.name, rule.name),
                "leave out `create`, or keep the roll-up in a collection of its own",
            );
        }
    }
}

/// A copy of a value that changes with every child is rewritten with every child.
fn not_too_lively(draft: &Draft, rule: &Rule, drafts: &[Draft], owners: &Owners, findings: &mut Findings) {
    let is_refreshed =
        |link: &Link| link.refers == Refers::Host && link.lag.is_none() && link.when_changed == WhenChanged::Refresh;
    if !rule.link().is_some_and(is_refreshed) {
        return;
    }
    let reads = reads(rule);
    let copied = reads.iter().filter(|read| !read.key);
    let kept: BTreeSet<usize> =
        copied.flat_map(|read| owners.overlapping(&read.namespace, read.path.as_ref())).collect();
    for lively in kept.into_iter().filter_map(|owner| drafts.get(owner)?.rule.as_ref()) {
        if !lively.link().is_some_and(|link| link.refers == Refers::Source && link.lag.is_none()) {
            continue;
        }
        findings.warning(
            draft.key("fields"),
            format!(
                "`{}` copies `{}`, which changes with every child: each such write rewrites all copies",
                rule.name, lively.name
            ),
            "leave it out of `fields`, or let the copies be late with `lag: 5s`",
        );
    }
}
