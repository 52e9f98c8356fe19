//! What all verbs about rules do: open the target, ask, print the answer as JSON or for people.

use crate::declaration::File;
use crate::options::TargetOptions;
use crate::report::Failure;
use crate::target::{Purpose, Target};
use document::{Doc, DocWriter, Value};

/// A command for the target, and the database it goes to.
pub(crate) struct Question {
    db: String,
    body: DocWriter,
}

impl Question {
    /// About all databases, unless one is named.
    pub(crate) fn new(verb: &str) -> Question {
        let mut body = DocWriter::new();
        body.append("pleach", &Value::from(verb));
        Question { db: "admin".to_owned(), body }
    }

    pub(crate) fn on(mut self, db: Option<&str>) -> Question {
        if let Some(db) = db {
            self.db = db.to_owned();
        }
        self
    }

    pub(crate) fn declared(mut self, file: Option<&File>) -> Question {
        if let Some(file) = file {
            match file.texts.as_slice() {
                [text] => self.body.append("declaration", &Value::from(&**text)),
                texts => {
                    let texts = texts.iter().map(|text| Value::from(&**text));
                    self.body.append("declaration", &Value::Array(texts.collect()))
                }
            };
            self.db = file.declaration.database.to_string();
        }
        self
    }

    pub(crate) fn with<'v>(mut self, name: &str, value: impl Into<Value<'v>>) -> Question {
        self.body.append(name, &value.into());
        self
    }

    pub(crate) fn flag(self, name: &str, flag: bool) -> Question {
        if flag { self.with(name, true) } else { self }
    }

    pub(crate) fn finish(self) -> (String, Doc<'static>) {
        (self.db, self.body.finish())
    }
}

/// Runs a verb on its target, in a runtime of its own.
pub(crate) fn run<T>(
    target: &TargetOptions,
    purpose: Purpose,
    verb: impl AsyncFnOnce(&mut Target) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(async {
        let mut target = Target::open(target, purpose).await?;
        let result = verb(&mut target).await;
        target.close().await;
        result
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    result
}

/// An answer as relaxed Extended JSON.
pub(crate) fn extended_json(answer: bson::Document) -> serde_json::Value {
    bson::Bson::Document(answer).into_relaxed_extjson()
}

/// The sub-documents of an array in an answer.
pub(crate) fn list<'a>(answer: &'a bson::Document, name: &str) -> Vec<&'a bson::Document> {
    answer
        .get_array(name)
        .map_or_else(|_| Vec::new(), |list| list.iter().filter_map(|item| item.as_document()).collect())
}

pub(crate) fn text<'a>(doc: &'a bson::Document, name: &str) -> &'a str {
    doc.get_str(name).unwrap_or_default()
}

pub(crate) fn number(doc: &bson::Document, name: &str) -> i64 {
    match doc.get(name) {
        Some(bson::Bson::Int32(number)) => i64::from(*number),
        Some(bson::Bson::Int64(number)) => *number,
        _ => 0,
    }
}

/// A value as people read it: relaxed Extended JSON on one line, cut when long.
pub(crate) fn shown(value: Option<&bson::Bson>) -> String {
    const LONGEST: usize = 60;
    let text = value.map_or_else(|| "null".to_owned(), shown_whole);
    crate::table::cut(&text, LONGEST + 1)
}

/// A value as relaxed Extended JSON on one line.
pub(crate) fn shown_whole(value: &bson::Bson) -> String {
    value.clone().into_relaxed_extjson().to_string()
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 { format!("-{out}") } else { out }
}

/// `{ documents, bytes }` in words; `None` if it is nothing.
pub(crate) fn amount(amount: &bson::Document) -> Option<String> {
    let (documents, bytes) = (number(amount, "documents"), number(amount, "bytes"));
    let noun = if documents == 1 { "document" } else { "documents" };
    (documents > 0).then(|| format!("{} {noun} ({} bytes)", grouped(documents), grouped(bytes)))
}
