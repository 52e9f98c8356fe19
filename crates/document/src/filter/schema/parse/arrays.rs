//! The keywords for arrays: `minItems`, `maxItems`, `uniqueItems`, `items`, `additionalItems`.

use super::{Of, Parse, mismatch, schema};
use crate::error::Result;
use crate::filter::schema::rule::{Additional, Check};
use crate::value::Value;

impl Parse<'_> {
    pub(super) fn arrays(&mut self) -> Result<()> {
        let concerned = self.concerns("array");
        if let Some(limit) = self.count("minItems")?.filter(|_| concerned) {
            self.add("minItems", Check::MinItems(limit));
        }
        if let Some(limit) = self.count("maxItems")?.filter(|_| concerned) {
            self.add("maxItems", Check::MaxItems(limit));
        }
        if self.flag("uniqueItems")? && concerned {
            self.add("uniqueItems", Check::UniqueItems);
        }
        let mut listed = None;
        match self.get("items") {
            None => {}
            Some(Value::Document(items)) => {
                let items = schema(&items, Of::Anything)?;
                if concerned {
                    self.add("items", Check::Items(items));
                }
            }
            Some(Value::Array(items)) => {
                let schemas = items.iter().map(|item| match item {
                    Value::Document(item) => schema(&item, Of::Anything),
                    other => mismatch(format!(
                        "$jsonSchema keyword 'items' requires that each element of the array is an object, but found a {}",
                        other.type_name()
                    )),
                });
                let schemas = schemas.collect::<Result<Vec<_>>>()?;
                listed = Some(schemas.len());
                if concerned {
                    self.add("items", Check::ItemsByPosition(schemas));
                }
            }
            Some(other) => {
                let kind = other.type_name();
                return mismatch(format!("$jsonSchema keyword 'items' must be an array or an object, not {kind}"));
            }
        }
        let allowed = match self.get("additionalItems") {
            None | Some(Value::Bool(true)) => return Ok(()),
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(Value::Document(items)) => Additional::Schema(schema(&items, Of::Anything)?),
            Some(other) => {
                return mismatch(format!(
                    "$jsonSchema keyword 'additionalItems' must be either an object or a boolean, but got a {}",
                    other.type_name()
                ));
            }
        };
        // Without a list of items nothing is additional. Unlike the others it speaks even if arrays are not allowed.
        if let Some(from) = listed {
            self.add("additionalItems", Check::AdditionalItems { from, allowed });
        }
        Ok(())
    }
}
