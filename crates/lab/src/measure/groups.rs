//! How many groups a roll-up makes of the whole: a sample does not say it, so the data is asked.

use crate::line;
use crate::source::Source;
use bson::{Document, doc};
use document::Result;
use patterns::rule::{LinkKey, Rule};

pub async fn groups(source: &Source, rule: &Rule) -> Result<f64> {
    let Some(link) = rule.link() else { return Ok(0.0) };
    let by = match &link.foreign {
        LinkKey::Path(key) => bson::Bson::String(format!("${}", key.path.dotted())),
        LinkKey::Expression(expression) => {
            let mut doc = document::DocWriter::new();
            doc.append("by", &expression.source);
            Document::try_from(&doc.finish())?.remove("by").unwrap_or(bson::Bson::Null)
        }
    };
    let pipeline =
        vec![doc! { "$group": { "_id": by } }, doc! { "$match": { "_id": { "$ne": null } } }, doc! { "$count": "n" }];
    let command =
        doc! { "aggregate": &*link.source.collection, "pipeline": pipeline, "allowDiskUse": true, "cursor": {} };
    let mut rows = source.rows(command).await?;
    let found = rows.next().await?;
    found.map_or(Ok(0.0), |row| Ok(line::number(&Document::try_from(&row)?, "n")))
}
