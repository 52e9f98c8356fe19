//! `check`: what is wrong with a declaration. Of the data it says one thing, to a user with the right to read it: how many documents would count nowhere,
//! because `by` gives them no key. With `infer: <collection>`: a declaration of the kinds that the documents of the collection have.

use crate::declare::{Checked, Finding, Severity};
use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::Life;
use crate::life::infer::infer;
use crate::life::unkeyed;
use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::op::{Context, Namespace};
use document::{ArrayWriter, Doc, DocWriter, Error, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "check",
    help: "Says what is wrong with a declaration.",
    fields: &["declaration", "infer"],
    changes: false,
    privileges: PRIVILEGES,
    run: |call| Box::pin(run(call)),
};

/// Of the collection that kinds are inferred from. Documents without a key are counted in those collections that the client may read.
const PRIVILEGES: RequiredPrivileges = RequiredPrivileges(&[privilege(Resource::RuleCollections, &["find"])]);

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    if let Some(collection) = call.request.body.get("infer") {
        let Some(collection) = collection.as_str().filter(|name| !name.is_empty()) else {
            return Err(Error::type_mismatch("'infer' takes the name of a collection"));
        };
        let Some(db) = call.request.db.clone() else {
            return Err(Error::bad_value("kinds are inferred in one database")
                .with_hint("send the command to it, not to admin"));
        };
        let ns = Namespace::new(&db, collection);
        let rights = call.rights.clone().naming([ns.clone()]);
        PRIVILEGES.need(&rights, Resource::RuleCollections, &ns)?;
        let (mut session, context) = (Session::default(), call.context.clone());
        let mut at = Access { backend: &*call.life.backend, session: &mut session, context: &context };
        return infer(&mut at, &ns).await;
    }
    let mut checked = call.request.checked()?;
    checked.findings.extend(unkeyed_documents(call.life, call.context, &call.rights, &checked).await?);
    Ok(findings(&checked))
}

/// The documents that are there and would count nowhere (SEMANTICS R35).
async fn unkeyed_documents(life: &Life, context: &Context, rights: &Rights, checked: &Checked) -> Result<Vec<Finding>> {
    let mut notes = Vec::new();
    let mut session = Session::default();
    let mut at = Access { backend: &*life.backend, session: &mut session, context };
    for rule in checked.declaration.iter().flat_map(|declaration| &declaration.rules) {
        let Some(link) = rule.link() else { continue };
        if PRIVILEGES.need(rights, Resource::RuleCollections, &link.source).is_err() {
            continue;
        }
        let counted = unkeyed::count(&mut at, rule).await?;
        notes.extend(counted.and_then(|unkeyed| unkeyed.text(link)).map(|message| Finding {
            severity: Severity::Note,
            rule: Some(rule.name.clone()),
            file: None,
            spot: None,
            field: format!("collections.{}.{}.{}.by", rule.host.collection, rule.pattern, rule.field),
            message,
            hint: None,
        }));
    }
    Ok(notes)
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
