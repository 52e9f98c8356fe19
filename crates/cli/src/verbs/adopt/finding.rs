//! A finding of `advise`, as far as adopting needs it, and which of several is meant.

use crate::ask::shown_whole;
use crate::plain;
use crate::report::{Code, Failure};
use crate::table::{folded, table};
use serde_json::Value;

/// What `advise --json` says about one symptom.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) symptom: String,
    pub(crate) database: String,
    pub(crate) collection: String,
    pub(crate) field: String,
    pub(crate) severity: String,
    pub(crate) verdict: String,
    /// YAML; empty where there is nothing to declare.
    pub(crate) declaration: String,
    /// The `_id`s that show it.
    pub(crate) examples: Vec<bson::Bson>,
    /// As it came, for programs.
    pub(crate) whole: Value,
}

const FINDINGS_FILE: &str = "`pleach advise --json > advise.json` writes one";

/// How strong the severities are, weakest first.
const SEVERITIES: &[&str] = &["note", "warn", "act", "urgent"];

/// The findings of a report, in its order.
pub(crate) fn of_report(file: &str, report: &Value) -> Result<Vec<Finding>, Failure> {
    let wrong = |what: &str| {
        Failure::of(Code::Word("file"), format!("{file} is no report of `pleach advise`: {what}")).hint(FINDINGS_FILE)
    };
    let list = report.get("findings").and_then(Value::as_array).ok_or_else(|| wrong("it has no list `findings`"))?;
    let one = |(at, finding): (usize, &Value)| {
        let text = |name: &str| finding.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let needed = |name: &str| match text(name) {
            empty if empty.is_empty() => Err(wrong(&format!("finding {} has no `{name}`", at + 1))),
            some => Ok(some),
        };
        let examples = finding.get("evidence").and_then(|evidence| evidence.get("examples"));
        let examples = examples.and_then(Value::as_array).into_iter().flatten();
        Ok(Finding {
            symptom: needed("symptom")?,
            database: needed("database")?,
            collection: needed("collection")?,
            field: text("field"),
            severity: needed("severity")?,
            verdict: text("verdict"),
            declaration: text("declaration"),
            examples: examples.filter_map(|id| bson::Bson::try_from(id.clone()).ok()).map(id_of).collect(),
            whole: finding.clone(),
        })
    };
    list.iter().enumerate().map(one).collect()
}

/// An example is an `_id`, or a document that has one.
fn id_of(example: bson::Bson) -> bson::Bson {
    match &example {
        bson::Bson::Document(doc) if doc.contains_key("_id") => doc.get("_id").cloned().unwrap_or(example),
        _ => example,
    }
}

impl Finding {
    /// `orders.customerId`
    pub(crate) fn place(&self) -> String {
        match self.field.is_empty() {
            true => self.collection.clone(),
            false => format!("{}.{}", self.collection, self.field),
        }
    }

    /// Whether it asks for a change, and says which.
    pub(crate) fn asks(&self) -> bool {
        !self.declaration.is_empty() && SEVERITIES.iter().position(|known| *known == self.severity).unwrap_or(0) > 0
    }

    fn is_meant(&self, which: &str) -> bool {
        let place = self.place();
        [&self.symptom, &place].contains(&&which.to_owned())
            || format!("{}.{place}", self.database) == which
            || format!("{place}:{}", self.symptom) == which
    }

    /// A paragraph that says what was found.
    pub(crate) fn shown(&self) -> String {
        let head = format!("{} in {} of {} ({})", self.symptom, self.place(), self.database, self.severity);
        let mut out = folded("", &plain::line(&head));
        out.push_str(&folded("  ", &plain::line(&self.verdict)));
        if !self.examples.is_empty() {
            let ids: Vec<String> = self.examples.iter().take(3).map(shown_whole).collect();
            out.push_str(&folded("  for example ", &plain::line(&ids.join(", "))));
        }
        out
    }
}

/// All findings, numbered from 1 as `--finding` takes them.
pub(crate) fn listed(findings: &[Finding]) -> String {
    let row = |(at, finding): (usize, &Finding)| {
        let declares = if finding.declaration.is_empty() { "nothing to declare" } else { "" };
        let place = format!("{}.{}", finding.database, finding.place());
        vec![(at + 1).to_string(), finding.severity.clone(), finding.symptom.clone(), place, declares.to_owned()]
    };
    table(&[">", "severity", "symptom", "where", ""], findings.iter().enumerate().map(row).collect())
}

/// The finding that a person names: its number, its symptom, or `collection.field`.
pub(crate) fn named<'f>(findings: &'f [Finding], which: &str) -> Result<&'f Finding, Failure> {
    let found: Vec<&Finding> = match which.parse::<usize>() {
        Ok(number) => number.checked_sub(1).and_then(|at| findings.get(at)).into_iter().collect(),
        Err(_) => findings.iter().filter(|finding| finding.is_meant(which)).collect(),
    };
    match found.as_slice() {
        [only] => Ok(only),
        [] => Err(Failure::new(format!("there is no finding {which} among {}", findings.len())).hint(
            "name one by its number, its symptom, or collection.field; `pleach adopt` without --finding lists them",
        )),
        several => {
            let names: Vec<String> =
                several.iter().map(|finding| format!("{}:{}", finding.place(), finding.symptom)).collect();
            Err(Failure::new(format!("{which} names {} findings", several.len()))
                .hint(format!("name one of {}, or its number", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        let finding = |symptom: &str, field: &str, severity: &str, declaration: &str| {
            json!({
                "symptom": symptom, "database": "shop", "collection": "orders", "field": field, "severity": severity,
                "evidence": { "examples": [{ "$oid": "65a1b2c3d4e5f60718293a4b" }, { "_id": 7, "stored": 1 }, 8] },
                "verdict": "it pays", "declaration": declaration,
            })
        };
        json!({ "findings": [
            finding("second_read", "customerId", "act", "x"),
            finding("copy_by_hand", "customer", "warn", "x"),
            finding("unbounded_array", "customerId", "note", "x"),
            finding("old_shapes", "", "urgent", ""),
        ] })
    }

    #[test]
    fn a_finding_is_named_in_each_way() {
        let findings = of_report("advise.json", &report()).unwrap();
        let at = |which: &str| named(&findings, which).map(|found| found.symptom.clone()).map_err(|it| it.message);
        assert_eq!(at("2").unwrap(), "copy_by_hand");
        assert_eq!(at("second_read").unwrap(), "second_read");
        assert_eq!(at("orders.customer").unwrap(), "copy_by_hand");
        assert_eq!(at("shop.orders.customer").unwrap(), "copy_by_hand");
        assert_eq!(at("orders.customerId").unwrap_err(), "orders.customerId names 2 findings");
        assert_eq!(at("orders.customerId:second_read").unwrap(), "second_read");
        for wrong in ["0", "5", "orders.gone", "-1"] {
            assert!(at(wrong).unwrap_err().starts_with("there is no finding"), "{wrong}");
        }
        assert_eq!(findings.iter().map(Finding::asks).collect::<Vec<_>>(), [true, true, false, false]);
        let ids = &findings.first().unwrap().examples;
        assert!(
            matches!(ids.as_slice(), [bson::Bson::ObjectId(_), bson::Bson::Int32(7), bson::Bson::Int32(8)]),
            "{ids:?}"
        );
    }

    #[test]
    fn what_is_no_report_is_said() {
        for (text, why) in [
            (json!([]), "it has no list `findings`"),
            (json!({ "findings": [{ "symptom": "x" }] }), "finding 1 has no `database`"),
        ] {
            let failure = of_report("a.json", &text).unwrap_err();
            assert!(failure.message.contains(why), "{}", failure.message);
        }
    }
}
