//! Two sides are read in one moment (SEMANTICS R24): a document that moves between two batches would be seen twice or never.

use document::op::{Context, ReadConcern, Sent};
use document::{DocWriter, Value};

/// The same context for a read in a snapshot; what else the client said about its read stays.
pub(super) fn context(context: &Context) -> Context {
    let mut concern = DocWriter::new();
    concern.append("level", &Value::from("snapshot"));
    for (name, value) in context.sent.read_concern.iter().flat_map(|sent| sent.iter()) {
        if name.as_str() != "level" {
            concern.append(name.as_str(), &value);
        }
    }
    Context {
        read_concern: ReadConcern::Snapshot,
        sent: Sent { read_concern: Some(concern.finish()), ..context.sent.clone() },
        ..context.clone()
    }
}
