//! Validators: whether a document may be written as it is.

use super::stored_document::Target;
use document::filter::failure_details;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// Refuses `after` if the collection's validator does. `before` is the document it replaces.
pub(crate) fn check(target: &Target<'_>, before: Option<&Doc<'_>>, after: &Doc<'_>) -> Result<()> {
    let Some(validation) = &target.collection.validation else { return Ok(()) };
    if target.bypass || validation.filter.matches(after, target.env)? {
        return Ok(());
    }
    // `moderate` leaves alone what did not fit before.
    if let Some(before) = before
        && validation.moderate
        && !validation.filter.matches(before, target.env)?
    {
        return Ok(());
    }
    if validation.warn {
        tracing::warn!(collection = %target.collection.ns, "a document does not fit the validator and is written all the same");
        return Ok(());
    }
    let mut info = DocWriter::new();
    info.append("failingDocumentId", &after.borrow().get("_id").unwrap_or(Value::Missing));
    info.append("details", &Value::Document(failure_details(&validation.filter, after, target.env)));
    Err(Error::new(Code::DocumentValidationFailure, "Document failed validation").with_info(info.finish()))
}
