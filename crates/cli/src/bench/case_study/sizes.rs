//! How much a subject takes: documents, data, index, disk.

use super::client::Client;
use super::subject::Subject;
use crate::report::Failure;
use bson::{Bson, Document, doc};
use std::path::Path;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) documents: u64,
    /// BSON bytes of all documents.
    pub(crate) data: u64,
    /// All indexes; none where documents are kept in the order of `_id`.
    pub(crate) index: u64,
    /// On disk, indexes included; of a store of our own all that is in its folder.
    pub(crate) disk: u64,
    /// What of that is the log of writes; `None` where the server does not say, and does not count it.
    pub(crate) log: Option<u64>,
}

impl Sizes {
    /// As the server tells it; a real MongoDB has written a checkpoint first.
    pub(crate) async fn ask(client: &mut Client, subject: Subject) -> Result<Sizes, Failure> {
        client.run("admin", doc! { "fsync": 1 }).await?;
        let stats = client.run(&subject.db(), doc! { "collStats": subject.stored() }).await?;
        let index = number(&stats, "totalIndexSize");
        let disk = number(&stats, "storageSize") + index;
        Ok(Sizes { documents: number(&stats, "count"), data: number(&stats, "size"), index, disk, log: None })
    }
}

fn number(stats: &Document, name: &str) -> u64 {
    let number = match stats.get(name) {
        Some(Bson::Int32(number)) => i64::from(*number),
        Some(Bson::Int64(number)) => *number,
        #[expect(clippy::cast_possible_truncation, reason = "sizes are whole")]
        Some(Bson::Double(number)) => *number as i64,
        _ => 0,
    };
    u64::try_from(number).unwrap_or_default()
}

/// The files of an embedded store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files {
    pub(crate) data: u64,
    /// The log of writes.
    pub(crate) log: u64,
}

impl Files {
    /// All files under a folder, as the disk holds them.
    pub(crate) fn of(folder: &Path) -> Result<Files, Failure> {
        let cannot = |error: std::io::Error| Failure::new(format!("cannot look into {}: {error}", folder.display()));
        let mut all = Files::default();
        for entry in std::fs::read_dir(folder).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let about = path.metadata().map_err(cannot)?;
            if about.is_dir() {
                let below = Files::of(&path)?;
                all.data += below.data;
                all.log += below.log;
            } else if path.extension().is_some_and(|extension| extension == "jnl") {
                all.log += allocated(&about);
            } else {
                all.data += allocated(&about);
            }
        }
        Ok(all)
    }
}

/// A file that was made long before it is filled takes only what is in it.
#[cfg(unix)]
fn allocated(about: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    about.blocks() * 512
}

#[cfg(not(unix))]
fn allocated(about: &std::fs::Metadata) -> u64 {
    about.len()
}
