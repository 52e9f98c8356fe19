//! How each operator under a field says that it failed or matched.

use super::Outcome;
use super::considered::Considered;
use crate::error::Result;
use crate::filter::Leaves;
use crate::raw::{Doc, DocWriter};
use crate::value::Value;

/// Of one operator: its words for failing and matching, and the types it looks at.
struct Wording {
    failed: &'static str,
    matched: &'static str,
    /// Sorted; empty if it takes any.
    types: &'static [&'static str],
    leaves: Leaves,
}

const COMPARISON: Wording =
    Wording { failed: "comparison failed", matched: "comparison succeeded", types: &[], leaves: Leaves::ElementsOnly };

fn wording(name: &str) -> Wording {
    match name {
        "$in" => Wording {
            failed: "no matching value found in array",
            matched: "matching value found in array",
            ..COMPARISON
        },
        // Negative operators fail when the comparison succeeds.
        "$ne" => Wording { failed: COMPARISON.matched, matched: COMPARISON.failed, ..COMPARISON },
        "$nin" => Wording {
            failed: "matching value found in array",
            matched: "no matching value found in array",
            ..COMPARISON
        },
        "$type" => Wording { failed: "type did not match", matched: "type did match", ..COMPARISON },
        "$regex" => Wording {
            failed: "regular expression did not match",
            matched: "regular expression did match",
            types: &["regex", "string", "symbol"],
            ..COMPARISON
        },
        "$mod" => Wording {
            failed: "$mod did not evaluate to expected remainder",
            matched: "$mod did evaluate to expected remainder",
            types: &["decimal", "double", "int", "long"],
            ..COMPARISON
        },
        "$bitsAllClear" | "$bitsAllSet" | "$bitsAnyClear" | "$bitsAnySet" => Wording {
            failed: "bitwise operator failed to match",
            matched: "bitwise operator matched successfully",
            types: &["binData", "decimal", "double", "int", "long"],
            ..COMPARISON
        },
        "$size" => Wording {
            failed: "array length was not equal to given size",
            matched: "array length was equal to given size",
            types: &["array"],
            leaves: Leaves::ArrayOnly,
        },
        "$all" => Wording {
            failed: "array did not contain all specified values",
            matched: "array did contain all specified values",
            types: &[],
            leaves: Leaves::ArrayOnly,
        },
        "$elemMatch" => Wording {
            failed: "array did not satisfy the child predicate",
            matched: "array did satisfy the child predicate",
            types: &["array"],
            leaves: Leaves::ArrayOnly,
        },
        _ => COMPARISON,
    }
}

pub(super) fn explain(
    doc: &Doc<'_>,
    path: &str,
    name: &str,
    argument: &Value<'_>,
    specified: Doc<'static>,
    outcome: Outcome,
) -> Result<Doc<'static>> {
    let mut writer = DocWriter::new();
    writer.append("operatorName", &Value::from(name));
    writer.append("specifiedAs", &Value::Document(specified));
    let mut reason = |reason: &str| {
        writer.append("reason", &Value::from(reason));
    };
    if name == "$exists" {
        let exists = argument.is_truthy() == (outcome == Outcome::Matched);
        reason(if exists { "path does exist" } else { "path does not exist" });
        return Ok(writer.finish());
    }
    if name == "$all" && matches!(argument, Value::Array(items) if items.is_empty()) {
        reason("expression always evaluates to false");
        return Ok(writer.finish());
    }
    let wording = wording(name);
    let considered = Considered::at(doc, path, wording.leaves)?;
    if !considered.found {
        reason("field was missing");
        return Ok(writer.finish());
    }
    if !wording.types.is_empty() && !considered.any_of_type(wording.types) {
        reason("type did not match");
        considered.write_types(&mut writer);
        match wording.types {
            [only] => writer.append("expectedType", &Value::from(*only)),
            types => {
                writer.append("expectedTypes", &Value::Array(types.iter().map(|name| Value::from(*name)).collect()))
            }
        };
        considered.write_values(&mut writer);
        return Ok(writer.finish());
    }
    reason(match outcome {
        Outcome::Failed => wording.failed,
        Outcome::Matched => wording.matched,
    });
    considered.write_values(&mut writer);
    if name == "$type" {
        considered.write_types(&mut writer);
    }
    Ok(writer.finish())
}
