//! Collections that a rule cannot be kept on: their documents change without a write that Pleach sees.

use crate::execute::access::Access;
use crate::execute::rights::namespaces;
use crate::life::Life;
use crate::life::preview::RulePreview;
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::relocate::stored;
use crate::life::relocate::stored::CollectionInfo;
use crate::rule::Rule;
use document::Result;

/// Adds a refusal for each collection of a rule that keeps a field.
pub(super) async fn look(life: &Life, at: &mut Access<'_>, rule_preview: &mut RulePreview) -> Result<()> {
    for ns in namespaces(&rule_preview.rule) {
        // A view that a rule of ours has made: it changes by writes that are planned.
        let makes = |rule: &Rule| {
            let items = rule.outlier().map(|outlier| outlier.items());
            rule.shape().is_some() && rule.host == ns || items.as_ref() == Some(&ns)
        };
        if life.entries().iter().any(|entry| makes(&entry.rule)) {
            continue;
        }
        let Some((why, way_out)) = stored::look_up(at, &ns).await?.as_ref().and_then(unfit) else { continue };
        let reason = format!("rule {}: `{}` {why}", rule_preview.rule.name, ns.collection);
        rule_preview.refusals.push(Refusal { need: Need::OtherData(way_out), reason });
    }
    Ok(())
}

/// Why nothing can be kept there, and what to do instead. `None` if it is an ordinary collection.
fn unfit(found: &CollectionInfo) -> Option<(&'static str, String)> {
    let has = |name: &str| found.options.get(name).is_some_and(|option| option.is_truthy());
    let ordinary = || "copy the documents into an ordinary collection first".to_owned();
    match found {
        found if found.is_view() => {
            let way_out = match found.view_on() {
                Some(collection) => format!("name the collection that it shows: `{collection}`"),
                None => "name the collection that it shows".to_owned(),
            };
            Some(("is a view: what it shows changes without a write to it", way_out))
        }
        found if found.kind == "timeseries" => Some(("is a time-series collection of MongoDB's own", ordinary())),
        _ if has("capped") => Some(("is capped: MongoDB removes its oldest documents unseen", ordinary())),
        _ if found.options.contains("expireAfterSeconds") => Some((
            "expires without an index: MongoDB removes its documents unseen",
            "take `expireAfterSeconds` off with collMod and make an index with it: by that one Pleach deletes them itself".to_owned(),
        )),
        _ => None,
    }
}
