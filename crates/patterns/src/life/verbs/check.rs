//! `check`: what is wrong with a declaration. Looks at no data.

use crate::declare::{Checked, Finding};
use crate::life::verbs::privileges::RequiredPrivileges;
use crate::life::verbs::{Call, Verb};
use document::{ArrayWriter, Doc, DocWriter, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "check",
    help: "Says what is wrong with a declaration.",
    fields: &["declaration"],
    changes: false,
    privileges: RequiredPrivileges(&[]),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    Ok(findings(&call.request.checked()?))
}

/// `{ findings: [ { severity, rule, file, line, column, field, message, hint } ] }`.
pub fn findings(checked: &Checked) -> Doc<'static> {
    let mut list = ArrayWriter::new();
    for finding in &checked.findings {
        list.push(&Value::Document(show(finding)));
    }
    let mut answer = DocWriter::new();
    answer.append("findings", &Value::Array(list.finish()));
    answer.finish()
}

fn show(finding: &Finding) -> Doc<'static> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::string);
    let number = |number: Option<usize>| {
        number.map_or(Value::Null, |number| Value::Int32(i32::try_from(number).unwrap_or(i32::MAX)))
    };
    let mut doc = DocWriter::new();
    doc.append("severity", &Value::from(finding.severity.name()));
    doc.append("rule", &text(finding.rule.as_deref())).append("file", &text(finding.file.as_deref()));
    doc.append("line", &number(finding.spot.map(|spot| spot.line)));
    doc.append("column", &number(finding.spot.map(|spot| spot.column)));
    doc.append("field", &Value::from(&*finding.field)).append("message", &Value::from(&*finding.message));
    doc.append("hint", &text(finding.hint.as_deref()));
    doc.finish()
}
