//! A shape as a document, for people and for `advise`.

use super::walk::{Command, Statement, Visit, walk};
use crate::raw::{Doc, DocWriter};
use crate::value::Value;

/// `{ ns, command, filter, sort, stages, … }`: what [`super::fingerprint`] makes a number of.
pub fn describe(db: &str, command: &Command<'_>, statement: &Statement<'_>) -> Doc<'static> {
    let mut writer = Description { writer: DocWriter::new(), open: Vec::new(), seen: Vec::new() };
    walk(db, command, statement, &mut writer);
    writer.writer.finish()
}

struct Description {
    writer: DocWriter,
    /// How many entries each open list has; nothing for a document.
    open: Vec<Option<usize>>,
    /// The entries of the innermost list.
    seen: Vec<String>,
}

impl Description {
    /// The place of the next entry, if a list is open.
    fn next(&mut self) -> Option<usize> {
        let count = self.open.last_mut()?.as_mut()?;
        *count += 1;
        Some(*count - 1)
    }
}

impl Visit for Description {
    fn list(&mut self, name: &str) {
        self.seen.clear();
        self.writer.start_array(name);
        self.open.push(Some(0));
    }

    fn document(&mut self, name: &str) {
        self.seen.clear();
        match self.next() {
            Some(index) => self.writer.start_document_at(index),
            None => self.writer.start_document(name),
        };
        self.open.push(None);
    }

    fn end(&mut self) {
        self.seen.clear();
        self.open.pop();
        self.writer.end();
    }

    fn words(&mut self, name: &str, words: &[&str]) {
        let text = match name {
            "ns" if self.open.is_empty() => words.join("."),
            _ => words.join(" "),
        };
        match self.open.last() {
            Some(Some(_)) if self.seen.contains(&text) => {}
            Some(Some(_)) => {
                if let Some(index) = self.next() {
                    self.writer.append_at(index, &Value::from(text.as_str()));
                }
            }
            _ => {
                self.writer.append(name, &Value::from(text.as_str()));
            }
        }
        self.seen.push(text);
    }
}
