//! `system.profile` of each database: what the profiler of a MongoDB or of a Pleach has kept.

use super::followed::Followed;
use super::operation::Operation;
use super::table::Table;
use super::{Traffic, latency};
use crate::reader::Reader;
use document::Value;
use document::filter::Filter;
use document::op::{Find, Namespace, ReadOp};

/// So much of it is read: the collection is a ring of one megabyte unless someone made it larger.
const ENTRIES: u64 = 200_000;
const BYTES: u64 = 256 << 20;

pub(super) async fn read(reader: &Reader<'_>, databases: &[String], traffic: &mut Traffic) {
    for database in databases {
        let (mut table, mut followed) = (Table::default(), Followed::default());
        let (mut entries, mut bytes, mut cut) = (0, 0, 0_u64);
        let find = Find::matching(Namespace::new(database, "system.profile"), Filter::all());
        let seen = reader
            .each(ReadOp::Find(find), &mut |entry| {
                entries += 1;
                bytes += entry.as_bytes().len() as u64;
                cut += u64::from(is_cut(&entry));
                if let Some(operation) = Operation::of_entry(&entry) {
                    table.add(&operation);
                    followed.see(&operation);
                }
                entries < ENTRIES && bytes < BYTES
            })
            .await;
        let name = format!("system.profile of {database}");
        match seen {
            Err(error) => {
                traffic.source(name, 0.0, Some(latency::refused(&error)));
            }
            Ok(_) if table.is_empty() => {}
            Ok(_) => {
                let mut note = "it sees what the profiler's level and threshold let through".to_owned();
                if cut > 0 {
                    note.push_str(&format!("; {cut} commands were too long to be kept whole"));
                }
                let source = traffic.source(name, table.seconds(), Some(note));
                traffic.shapes.extend(table.finish(source));
                traffic.second_reads.extend(followed.finish(source));
            }
        }
    }
}

fn is_cut(entry: &document::Doc<'_>) -> bool {
    matches!(entry.get("command"), Some(Value::Document(command)) if command.contains("$truncated"))
}
