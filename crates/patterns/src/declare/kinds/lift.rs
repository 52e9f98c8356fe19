//! `lift`: an array of the host that exists, whose items become the children of a window.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::children::Children;
use crate::declare::kinds::{DeclaredField, KeyDef, ValueType};
use crate::rule::{ClientWrites, LinkKey};
use document::value::Path;

pub(super) const KEY: KeyDef = KeyDef {
    name: "lift",
    help: "An array of this document: `apply` moves its items into the collection of the children, one document each, and leaves the window.",
    shape: ValueType::Path,
};

/// The array that is lifted; `Some(None)` if there is none.
pub(super) fn read(
    block: &Block<'_>,
    target: &DeclaredField,
    from: Option<&str>,
    children: Option<&Children>,
    client_writes: Option<ClientWrites>,
    findings: &mut Findings,
) -> Option<Option<Path>> {
    let Some(item) = block.get("lift") else { return Some(None) };
    let before = findings.errors();
    let array = item.path("reviews", findings)?;
    check_array(&item, &array, target, children, findings);
    if from.is_some_and(|from| *from == *target.host.collection) {
        findings.error(
            &item.at,
            "the items would become documents of the collection that they are lifted from",
            "name another collection in `from`",
        );
    }
    if let Some(children) = children {
        check_key(block, children, findings);
    }
    if client_writes == Some(ClientWrites::Ignore) {
        findings.error(
            &block.key_at("client_writes"),
            "`client_writes: ignore` beside `lift`: items that clients write to the array would be lost without a word",
            "leave out `client_writes`: writes to the array are refused, and say where to write instead",
        );
    }
    (findings.errors() == before).then_some(Some(array))
}

fn check_array(
    item: &BlockItem<'_>,
    array: &Path,
    target: &DeclaredField,
    children: Option<&Children>,
    findings: &mut Findings,
) {
    let field = &target.field;
    let overlaps = |other: &Path| array.is_prefix_of(other) || other.is_prefix_of(array);
    let (message, hint) = if array.parts.iter().any(|part| part.index.is_some()) {
        (format!("`lift: {array}` names a position in an array"), "name the array itself".to_owned())
    } else if array.first() == "_id" {
        ("`_id` is never an array".to_owned(), "name the array".to_owned())
    } else if array != field && overlaps(field) {
        let hint = format!("keep the window beside the array, or in its place: `lift: {field}`");
        (format!("`lift: {array}` and the window `{field}` lie one inside the other"), hint)
    } else if children.is_some_and(|children| overlaps(&children.keys.local.path)) {
        let hint = "the items go, and the key stays: match by a field beside the array".to_owned();
        (format!("`match` lies in the array `{array}` that is lifted"), hint)
    } else {
        return;
    };
    findings.error(&item.at, message, hint);
}

/// Each item gets the key of its document, so that must be a field of the item's own.
fn check_key(block: &Block<'_>, children: &Children, findings: &mut Findings) {
    let Some(by) = block.get("by") else { return };
    match &children.keys.foreign {
        LinkKey::Expression(_) => findings.error(
            &by.at,
            "`by` is an expression, so `lift` cannot write the key of its document into an item",
            "write `by` as a field of the children",
        ),
        LinkKey::Path(key) if key.each => findings.error(
            &block.key_at("each"),
            "`each` beside `lift`: an item belongs to the one document that holds it",
            "leave out `each`",
        ),
        LinkKey::Path(key) if key.path.first() == "_id" => findings.error(
            &by.at,
            "`by: _id` beside `lift`: all items of a document would have one `_id`",
            "name a field of the children that holds this document's `_id`",
        ),
        LinkKey::Path(_) => {}
    }
}
