//! Fields that are kept from a collection in another form (SEMANTICS R34): what is looked up again must be found by the key of what is
//! stored, as every other look-up needs an index (SEMANTICS R35).

use crate::declare::check::Draft;
use crate::declare::finding::Findings;
use crate::rule::shape::Shape;
use crate::rule::{Lookup, Refers, Rule, Unserved};
use crate::shapes::outlier::items;
use document::op::Namespace;
use std::collections::HashMap;
use std::sync::Arc;

/// The rules that store a collection, by its logical name.
pub(crate) struct ShapedCollections<'r> {
    rules: HashMap<Namespace, (&'r Rule, Arc<dyn Shape>)>,
}

impl<'r> ShapedCollections<'r> {
    pub(crate) fn of(rules: impl IntoIterator<Item = &'r Rule>) -> ShapedCollections<'r> {
        let shaped = |rule: &'r Rule| match (rule.shape(), rule.outlier()) {
            (Some(shape), _) => Some((rule.host.clone(), (rule, shape.clone()))),
            (None, Some(outlier)) => Some((outlier.items(), (rule, items::places(outlier, None).pop()?.shape))),
            (None, None) => None,
        };
        ShapedCollections { rules: rules.into_iter().filter_map(shaped).collect() }
    }

    /// The rule that stores the children of another one, and how that one looks them up.
    fn under(&self, rule: &Rule) -> Option<(&'r Rule, &Arc<dyn Shape>, Lookup)> {
        let link = rule.link().filter(|link| link.refers == Refers::Source)?;
        let (shaped, shape) = self.rules.get(&link.source)?;
        Some((*shaped, shape, rule.kept_field()?.lookup()))
    }

    /// Why a rule cannot be kept from what is stored there.
    pub(crate) fn refusal(&self, rule: &Rule) -> Option<Unserved> {
        let (shaped, shape, lookup) = self.under(rule)?;
        let unserved = shape.unserved(&rule.link()?.foreign, &lookup)?;
        let (source, shaped) = (&rule.link()?.source.collection, &shaped.name);
        let rule = &rule.name;
        let reason = format!(
            "`{rule}` looks its value up among the documents of `{source}`, which `{shaped}` stores: {}",
            unserved.reason
        );
        Some(Unserved { reason, ..unserved })
    }

    /// What is to be known about a rule that goes together with it.
    fn note(&self, draft: &Draft, rule: &Rule, findings: &mut Findings) -> Option<()> {
        let (shaped, shape, lookup) = self.under(rule)?;
        let link = rule.link().filter(|_| shaped.outlier().is_none())?;
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
