//! The data as it is, read only: one moment of it where the server can show one.

use crate::line::{self, Line, Rows};
use bson::{Document, doc};
use document::{Result, Value};
use std::sync::Mutex;

/// Where the data is. Nothing is ever written there.
pub struct Source {
    pub line: Line,
    pub db: String,
    moment: Mutex<Moment>,
}

/// Which state of the data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The first read of a snapshot says which.
    Unknown,
    At(u64),
    /// The server cannot show one moment to several reads.
    Moving,
}

impl Source {
    pub fn new(line: Line, db: &str) -> Source {
        Source { line, db: db.to_owned(), moment: Mutex::new(Moment::Unknown) }
    }

    /// Whether all that was read is of one moment.
    pub fn is_snapshot(&self) -> bool {
        matches!(self.moment(), Moment::At(_))
    }

    fn moment(&self) -> Moment {
        self.moment.lock().map_or(Moment::Moving, |moment| *moment)
    }

    fn set(&self, moment: Moment) {
        if let Ok(mut current) = self.moment.lock() {
            *current = moment;
        }
    }

    /// Begins a `find` or an `aggregate`, at the moment that the first one saw.
    pub async fn rows(&self, command: Document) -> Result<Rows> {
        let concern = match self.moment() {
            Moment::Unknown => Some(doc! { "level": "snapshot" }),
            Moment::At(time) => {
                let time = bson::Timestamp { time: (time >> 32) as u32, increment: (time & 0xFFFF_FFFF) as u32 };
                Some(doc! { "level": "snapshot", "atClusterTime": time })
            }
            Moment::Moving => None,
        };
        if let Some(concern) = concern {
            let mut asked = command.clone();
            asked.insert("readConcern", concern);
            if let Ok(rows) = Rows::open(&self.line, &self.db, asked).await {
                match (self.moment(), rows.at_cluster_time) {
                    (Moment::Unknown, Some(time)) => self.set(Moment::At(time)),
                    (Moment::Unknown, None) => self.set(Moment::Moving),
                    _ => {}
                }
                return Ok(rows);
            }
            // A standalone server, an embedded store, or a moment that the server no longer has.
            self.set(Moment::Moving);
        }
        Rows::open(&self.line, &self.db, command).await
    }

    /// The names of the collections that are there, views included.
    pub async fn collections(&self) -> Result<Vec<String>> {
        let listed = line::all(&self.line, &self.db, doc! { "listCollections": 1, "nameOnly": true }).await?;
        Ok(listed.iter().filter_map(|entry| entry.get_str("name").ok().map(str::to_owned)).collect())
    }

    /// The indexes of a collection; none of a view.
    pub async fn indexes(&self, collection: &str) -> Vec<Document> {
        line::all(&self.line, &self.db, doc! { "listIndexes": collection }).await.unwrap_or_default()
    }

    /// Documents whose field has one of these values; several reads where there are many.
    pub async fn with_values<'v>(
        &self,
        collection: &str,
        path: &str,
        values: impl Iterator<Item = &'v Value<'static>>,
        mut each: impl AsyncFnMut(document::Doc<'static>) -> Result<()>,
    ) -> Result<()> {
        /// A command has room for 16 MB.
        const MOST: usize = 4 << 20;
        let mut values = values.peekable();
        while values.peek().is_some() {
            let (mut list, mut bytes) = (document::ArrayWriter::new(), 0);
            while bytes < MOST
                && let Some(value) = values.next()
            {
                list.push(value);
                bytes = list.len();
            }
            let mut filter = document::DocWriter::new();
            filter.start_document(path);
            filter.append("$in", &Value::Array(list.finish()));
            filter.end();
            let filter = Document::try_from(&filter.finish())?;
            let mut rows = self.rows(doc! { "find": collection, "filter": filter, "batchSize": 2_000 }).await?;
            while let Some(doc) = rows.next().await? {
                each(doc).await?;
            }
        }
        Ok(())
    }
}
