//! The stored document of a host, and the documents of its overflow.

use crate::rule::outlier::{INDEX, Outlier};
use document::value::order;
use document::{Array, Code, Doc, DocWriter, Env, Error, Result, Value};

/// What a stored document says about its array.
#[derive(Clone, Debug)]
pub(crate) struct StoredArray {
    /// The embedded items; `None` if the field is no array.
    pub(crate) items: Option<Vec<Value<'static>>>,
    pub(crate) has_overflow: bool,
    /// As stored; `None` if it is no number.
    pub(crate) count: Option<u64>,
}

impl Outlier {
    pub(crate) fn read(&self, doc: &Doc<'_>) -> StoredArray {
        let items = match doc.get(&self.field) {
            Some(Value::Array(items)) => Some(items.into_owned().iter().collect()),
            _ => None,
        };
        let count = doc.get(&self.count).and_then(|count| count.as_i64_exact());
        let has_overflow = doc.get(&self.flag).is_some_and(|flag| flag.is_truthy());
        StoredArray { items, has_overflow, count: count.and_then(|count| u64::try_from(count).ok()) }
    }

    /// How many of the first items are embedded.
    pub(crate) fn embedded(&self, items: &[Value<'static>]) -> usize {
        let most = self.keep.min(items.len());
        let Some(limit) = self.keep_bytes else { return most };
        let mut bytes = 0;
        let fits = |item: &&Value<'static>| {
            bytes += size(item);
            bytes <= limit
        };
        items.iter().take(most).take_while(fits).count()
    }

    /// The document with this array, count and flag; each stands where it stood, or last.
    pub(crate) fn with(&self, doc: &Doc<'_>, items: Option<&[Value<'static>]>, overflow: u64) -> Doc<'static> {
        let embedded = items.map_or(0, <[_]>::len) as u64;
        let count = number(embedded + overflow);
        let array = items.map(|items| Value::Array(items.iter().map(Value::borrow).collect::<Array<'static>>()));
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 64);
        let (mut has_flag, mut has_count) = (overflow == 0, false);
        for (name, value) in doc.iter() {
            let name = name.as_str();
            if name == self.field {
                writer.append(name, array.as_ref().unwrap_or(&value));
            } else if name == self.flag {
                if overflow > 0 {
                    writer.append(name, &Value::Bool(true));
                }
                has_flag = true;
            } else if name == self.count {
                writer.append(name, &count);
                has_count = true;
            } else {
                writer.append(name, &value);
            }
        }
        if !has_flag {
            writer.append(&self.flag, &Value::Bool(true));
        }
        if !has_count {
            writer.append(&self.count, &count);
        }
        writer.finish()
    }

    /// A document whose whole array is known: what is stored of it, and the items that overflow, each with its index.
    pub(crate) fn divided(&self, doc: &Doc<'_>) -> Result<(Doc<'static>, Vec<(u64, Value<'static>)>)> {
        let Some(items) = self.read(doc).items else { return Ok((self.with(doc, None, 0), Vec::new())) };
        if self.unique {
            self.refuse_twice(&doc.get("_id").unwrap_or(Value::Missing), &items)?;
        }
        let (embedded, rest) = items.split_at(self.embedded(&items));
        let numbered = rest.iter().cloned().zip(embedded.len() as u64..).map(|(item, index)| (index, item));
        Ok((self.with(doc, Some(embedded), rest.len() as u64), numbered.collect()))
    }

    /// A document of the overflow.
    pub(crate) fn overflow_document(&self, owner: &Value<'_>, index: u64, item: &Value<'_>, env: &Env) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(64);
        writer.append("_id", &Value::ObjectId((env.new_id)()));
        writer.append(&self.owner, owner).append(&self.item, item).append(INDEX, &number(index));
        writer.finish()
    }

    /// Refuses items of which two are the same.
    pub(crate) fn refuse_twice(&self, owner: &Value<'_>, items: &[Value<'static>]) -> Result<()> {
        let mut sorted: Vec<&Value<'static>> = items.iter().collect();
        sorted.sort_by(|one, other| order::compare(one, other));
        let twice = sorted.windows(2).find_map(|pair| match pair {
            [one, other] if order::equal(one, other) => Some(*one),
            _ => None,
        });
        match twice {
            Some(item) => Err(self.twice(owner, item)),
            None => Ok(()),
        }
    }

    /// An item that is there already, where none may be there twice.
    pub(crate) fn twice(&self, owner: &Value<'_>, item: &Value<'_>) -> Error {
        let (mut value, mut pattern) = (DocWriter::new(), DocWriter::new());
        value.append(&self.item, item).append(&self.owner, owner);
        pattern.append(&self.item, &Value::Int32(1)).append(&self.owner, &Value::Int32(1));
        let value = value.finish();
        let message = format!(
            "E11000 duplicate key error collection: {} index: {}_1_{}_1 dup key: {}",
            self.items(),
            self.item,
            self.owner,
            document::value::show::document(&value)
        );
        let mut info = DocWriter::new();
        info.append("keyPattern", &Value::Document(pattern.finish()));
        info.append("keyValue", &Value::Document(value));
        Error::new(Code::DuplicateKey, message).with_info(info.finish())
    }
}

/// The place of an item of the overflow.
pub(crate) fn index_of(overflow: &Doc<'_>) -> u64 {
    let index = overflow.get(INDEX).and_then(|index| index.as_i64_exact());
    index.and_then(|index| u64::try_from(index).ok()).unwrap_or_default()
}

/// A number as people write it.
pub(crate) fn number(number: u64) -> Value<'static> {
    match i32::try_from(number) {
        Ok(small) => Value::Int32(small),
        Err(_) => Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

/// About how many bytes an item has in its array.
fn size(item: &Value<'_>) -> usize {
    let mut writer = DocWriter::new();
    writer.append("", item);
    writer.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::outlier::samples::followers;
    use bson::doc;

    #[test]
    fn a_document_is_divided_at_the_limit() {
        let outlier = followers(2);
        for (document, stored, overflow) in [
            (doc! { "_id": 1 }, doc! { "_id": 1, "followerCount": 0 }, vec![]),
            (doc! { "_id": 1, "followers": "x" }, doc! { "_id": 1, "followers": "x", "followerCount": 0 }, vec![]),
            (
                doc! { "_id": 1, "followers": [1, 2], "a": 1 },
                doc! { "_id": 1, "followers": [1, 2], "a": 1, "followerCount": 2 },
                vec![],
            ),
            (
                doc! { "_id": 1, "followerCount": 9, "followers": [1, 2, 3, 4] },
                doc! { "_id": 1, "followerCount": 4, "followers": [1, 2], "hasOverflow": true },
                vec![(2, 3), (3, 4)],
            ),
            (
                doc! { "_id": 1, "followers": [1], "hasOverflow": true },
                doc! { "_id": 1, "followers": [1], "followerCount": 1 },
                vec![],
            ),
        ] {
            let (found, rest) = outlier.divided(&Doc::from(document.clone())).unwrap();
            assert_eq!(found, Doc::from(stored), "{document}");
            let expected: Vec<_> = overflow.into_iter().map(|(index, item)| (index, Value::Int32(item))).collect();
            assert_eq!(rest, expected, "{document}");
        }
    }

    #[test]
    fn nothing_may_stay_and_bytes_may_be_the_limit() {
        let document = Doc::from(doc! { "_id": 1, "followers": [1, 2] });
        let (stored, rest) = followers(0).divided(&document).unwrap();
        let expected = doc! { "_id": 1, "followers": [], "hasOverflow": true, "followerCount": 2 };
        assert_eq!((stored, rest.len()), (Doc::from(expected), 2));
        let by_bytes = Outlier { keep_bytes: Some(100), ..followers(10) };
        let long = Doc::from(doc! { "_id": 1, "followers": ["x".repeat(40), "y".repeat(40), "z".repeat(40)] });
        assert_eq!(by_bytes.divided(&long).unwrap().1.len(), 2);
    }

    #[test]
    fn an_item_may_be_there_once() {
        let unique = Outlier { unique: true, ..followers(2) };
        let error = unique.divided(&Doc::from(doc! { "_id": 7, "followers": [1, 2, 3, 1] })).unwrap_err();
        assert_eq!(error.code(), Code::DuplicateKey);
        assert!(error.message().ends_with("dup key: { followerId: 1, userId: 7 }"), "{}", error.message());
        unique.divided(&Doc::from(doc! { "_id": 7, "followers": [1, 2, 3] })).unwrap();
    }
}
