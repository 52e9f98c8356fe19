//! Fields that are kept from a collection in another form (SEMANTICS R34): what is looked up again must be found by the key of what is
//! stored, as every other look-up needs an index (SEMANTICS R35).

use crate::declare::check::Draft;
use crate::declare::finding::Findings;
use crate::rule::{Lookup, Refers, Rule, Unserved};
use document::op::Namespace;
use std::collections::HashMap;

/// The rules that store a collection, by its logical name.
pub(crate) struct ShapedCollections<'r> {
    rules: HashMap<&'r Namespace, &'r Rule>,
}

impl<'r> ShapedCollections<'r> {
    pub(crate) fn of(rules: impl IntoIterator<Item = &'r Rule>) -> ShapedCollections<'r> {
        let shaped = rules.into_iter().filter(|rule| rule.shape().is_some());
        ShapedCollections { rules: shaped.map(|rule| (&rule.host, rule)).collect() }
    }

    /// The rule that stores the children of another one, and how that one looks them up.
    fn under(&self, rule: &Rule) -> Option<(&'r Rule, Lookup)> {
        let link = rule.link().filter(|link| link.refers == Refers::Source)?;
        Some((*self.rules.get(&link.source)?, rule.kept_field()?.lookup()))
    }

    /// Why a rule cannot be kept from what is stored there.
    pub(crate) fn refusal(&self, rule: &Rule) -> Option<Unserved> {
        let (shaped, lookup) = self.under(rule)?;
        let unserved = shaped.shape()?.unserved(&rule.link()?.foreign, &lookup)?;
        let (rule, source, shaped) = (&rule.name, &shaped.host.collection, &shaped.name);
        let reason = format!(
            "`{rule}` looks its value up among the documents of `{source}`, which `{shaped}` stores: {}",
            unserved.reason
        );
        Some(Unserved { reason, ..unserved })
    }

    /// What is to be known about a rule that goes together with it.
    fn note(&self, draft: &Draft, rule: &Rule, findings: &mut Findings) -> Option<()> {
        let (shaped, lookup) = self.under(rule)?;
        let (shape, link) = (shaped.shape()?, rule.link()?);
        let (noun, source) = (shape.noun(), &link.source.collection);
        let at = draft.key("by");
        match lookup {
            Lookup::Never if shape.unserved(&link.foreign, &Lookup::ByValue).is_some() => {
                let costs = format!("`{source}` is stored in {noun}, which are not found by this key");
                let hint = "where that matters, write `by` as the fields that tell series apart";
                match link.lag {
                    Some(_) => {
                        let message = format!("{costs}: each late change reads all of them");
                        findings.warning(draft.key("lag"), message, format!("leave out `lag`; {hint}"));
                    }
                    None => findings.note(at, format!("{costs}: evaluating a document anew reads all of them"), hint),
                }
            }
            Lookup::ByValue => findings.note(
                at,
                format!("`{source}` is stored in {noun}: looking this value up again reads all {noun} of its series"),
                "the first or last value in the order of time reads few of them",
            ),
            Lookup::Never | Lookup::InOrder(_) => {}
        }
        Some(())
    }
}

/// Tells what is wrong with fields of shaped collections, and what each costs.
pub(crate) fn check(drafts: &[Draft], findings: &mut Findings) {
    let shaped = ShapedCollections::of(drafts.iter().filter_map(|draft| draft.rule.as_ref()));
    for draft in drafts {
        let Some(rule) = &draft.rule else { continue };
        match shaped.refusal(rule) {
            Some(refused) => findings.error(draft.key(refused.key), refused.reason, refused.hint),
            None => drop(shaped.note(draft, rule, findings)),
        }
    }
}
