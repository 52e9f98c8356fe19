//! The name and the rule of a copy that does not exist yet, beside its reference.

use super::{field_rule, map, word, words};
use crate::kept::references;
use crate::relation::Relation;
use crate::survey::Collection;

/// What ends the name of a reference, and what the copy's name ends with instead.
const ENDS: [(&str, &str); 8] =
    [("_ids", "s"), ("Ids", "s"), ("IDs", "s"), ("_id", ""), ("Id", ""), ("ID", ""), ("_ref", ""), ("Ref", "")];

/// `customer` for `customerId`, `items.product` for `items.productId`: a name that the documents do not have.
pub fn copy_name(host: &Collection, relation: &Relation) -> String {
    let (above, below) = match relation.arrays == 0 || relation.ends_in_array {
        true => ("", &*relation.path),
        false => host
            .sample
            .iter()
            .map(|doc| references::split(doc, &relation.path))
            .max_by_key(|(above, _)| above.len())
            .unwrap_or(("", &relation.path)),
    };
    let (inside, last) = below.rsplit_once('.').unwrap_or(("", below));
    // A reference called `_id` inside `customer` says nothing by itself.
    let named = if matches!(last, "_id" | "id") && !inside.is_empty() {
        inside.rsplit('.').next().unwrap_or(inside).to_owned()
    } else {
        let stem = ENDS.iter().find_map(|(end, instead)| {
            let stem = last.strip_suffix(end).filter(|stem| !stem.is_empty())?;
            Some(format!("{stem}{instead}"))
        });
        stem.unwrap_or_else(|| last.to_owned())
    };
    // In an array, copy and reference have the same parent; elsewhere the copy stands at the top.
    let place = match (above, inside) {
        ("", _) => String::new(),
        (above, "") => format!("{above}."),
        (above, inside) => format!("{above}.{inside}."),
    };
    let names = ["", "Copy", "Copy2", "Copy3"].iter().map(|end| format!("{place}{named}{end}"));
    let is_free = |name: &String| host.shape.path(name).is_none();
    names.into_iter().find(is_free).unwrap_or_else(|| format!("{place}pleachCopy"))
}

/// The rule of a copy; `lag` if its source changes often.
pub fn copy_rule(
    database: &str,
    host: &Collection,
    relation: &Relation,
    name: &str,
    fields: &[String],
    lag: Option<&str>,
) -> Option<String> {
    // `address.city` needs a name of its own in the copy.
    let last = |field: &String| field.rsplit('.').next().unwrap_or(field).to_owned();
    let mut names: Vec<String> = fields.iter().map(last).collect();
    names.sort();
    names.dedup();
    let own = |field: &String| if names.len() == fields.len() { last(field) } else { field.replace('.', "_") };
    let shown = match fields.iter().all(|field| own(field) == *field) {
        true => words(fields.iter().map(String::as_str)),
        false => {
            let parts: Vec<String> =
                fields.iter().map(|field| format!("{}: {}", word(&own(field)), word(field))).collect();
            format!("{{ {} }}", parts.join(", "))
        }
    };
    let mut body = vec![("from", word(&relation.to)), ("by", word(&relation.path))];
    if relation.key != "_id" {
        body.push(("match", word(&relation.key)));
    }
    body.push(("fields", shown));
    if relation.ends_in_array {
        body.push(("each", "true".to_owned()));
    }
    if let Some(lag) = lag {
        body.push(("lag", lag.to_owned()));
    }
    field_rule(database, host.name(), "extended_reference", name, &map(&body))
}
