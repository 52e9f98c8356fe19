//! Which changes of a rule that has lifted an array are refused: what it has lifted would be lost, or lifted again.

use crate::execute::access::Access;
use crate::life::preview::RulePreview;
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::replaced::{Lifted, amount};
use crate::life::{CatalogRule, Life};
use crate::rule::Rule;
use document::Result;
use document::value::Path;

/// Compares the rule with what is kept of it.
pub(super) async fn look(life: &Life, at: &mut Access<'_>, rule_preview: &mut RulePreview) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let same = |entry: &CatalogRule| entry.rule.host == rule.host && entry.rule.name == rule.name;
    let entry = life.entries().into_iter().find(same);
    let lives = match rule.lifts_own_field() {
        true => amount::lives(at, &rule.host.db, &rule.name).await?,
        false => Vec::new(),
    };
    let before = lives.into_iter().filter_map(|of| of.lifted);
    let refused = match &entry {
        Some(entry) if entry.row.state.is_kept() => changed(entry, &rule),
        entry => left_behind(&rule, before.chain(entry.as_ref().and_then(|entry| entry.row.replaced.lifted.clone()))),
    };
    if let Some((why, hint)) = refused {
        let reason = format!("rule {}: {why}", rule.name);
        rule_preview.refusals.push(Refusal { need: Need::OtherData(hint), reason });
    }
    Ok(())
}

/// Why a kept rule cannot become another one, and what to do instead.
fn changed(entry: &CatalogRule, rule: &Rule) -> Option<(String, String)> {
    let drop_first =
        || format!("`pleach drop {} --restore` first, or without --restore to leave the items as documents", rule.name);
    let Some(lifted) = &entry.row.replaced.lifted else {
        let is_window = rule.lifts_own_field() && entry.rule.lift.is_none();
        return is_window.then(|| {
            let why = format!("`{}` is the window that the rule keeps, and holds no items to lift", rule.field);
            (why, "leave out `lift`".to_owned())
        });
    };
    let key = |rule: &Rule| rule.link().map(|link| (link.source.clone(), link.by(), link.local.path.dotted()));
    let array = rule.lift.as_ref().map(Path::dotted);
    if key(&entry.rule) != key(rule) || array.as_ref().is_some_and(|array| *array != lifted.array) {
        let into = entry.rule.link().map(|link| link.source.collection.to_string()).unwrap_or_default();
        let why = format!("the items of `{}` are lifted into `{into}` by `{}`", lifted.array, key(&entry.rule)?.1);
        return Some((why, drop_first()));
    }
    (entry.is_lifting() && array.is_none()).then(|| {
        let why = format!("the items of `{}` are being lifted", lifted.array);
        (why, "wait until `pleach status` shows the rule `on`".to_owned())
    })
}

/// Why an array cannot be lifted that an earlier life of the rule has left.
fn left_behind(rule: &Rule, mut before: impl Iterator<Item = Lifted>) -> Option<(String, String)> {
    let array = rule.lift.as_ref().filter(|_| rule.lifts_own_field())?.dotted();
    before.any(|lifted| lifted.array == array && lifted.to.is_some()).then(|| {
        let why = format!("`{array}` was lifted before, and holds the window that was left of it");
        let hint = format!("leave out `lift`, or `pleach drop {} --restore` first", rule.name);
        (why, hint)
    })
}
