//! The report as one document, which prints as JSON.

use super::{Against, Finding, LookedAt, Report};
use crate::traffic::Source;
use crate::values::{count, list, measure};
use document::{Doc, DocWriter, Value};

impl Report {
    /// `{ looked_at, findings }`.
    pub fn to_document(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        doc.append("looked_at", &Value::Document(self.looked_at.to_document()));
        doc.append("findings", &list(self.findings.iter().map(|finding| Value::Document(finding.to_document()))));
        doc.finish()
    }
}

impl LookedAt {
    fn to_document(&self) -> Doc<'static> {
        let texts = |texts: &[String]| list(texts.iter().map(|text| Value::string(&**text)));
        let mut doc = DocWriter::new();
        doc.append("databases", &texts(&self.databases));
        doc.append("collections", &count(self.collections));
        doc.append("documents", &count(self.documents));
        doc.append("sampled", &count(self.sampled));
        doc.append("traffic", &list(self.traffic.iter().map(|source| Value::string(&*source.name))));
        doc.append("sources", &list(self.traffic.iter().map(|source| Value::Document(source.to_document()))));
        doc.append("seconds", &measure(self.seconds));
        if !self.unseen.is_empty() {
            doc.append("unseen", &texts(&self.unseen));
        }
        if self.interrupted {
            doc.append("interrupted", &Value::Bool(true));
        }
        doc.finish()
    }
}

impl Source {
    fn to_document(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        doc.append("name", &Value::from(&*self.name)).append("seconds", &measure(self.seconds));
        if let Some(note) = &self.note {
            doc.append("note", &Value::from(&**note));
        }
        doc.finish()
    }
}

impl Finding {
    pub fn to_document(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        for (name, text) in [
            ("symptom", self.symptom),
            ("pattern", self.pattern),
            ("database", &self.database),
            ("collection", &self.collection),
            ("field", &self.field),
            ("severity", self.severity.name()),
        ] {
            doc.append(name, &Value::from(text));
        }
        doc.append("confidence", &measure(self.confidence));
        doc.append("verdict", &Value::from(&*self.verdict));
        doc.append("evidence", &Value::Document(self.evidence.borrow()));
        doc.append("against", &list(self.against.iter().map(|reason| Value::Document(reason.to_document()))));
        doc.append("declaration", &self.declaration.as_deref().map_or(Value::Null, Value::from));
        doc.append("gain", &Value::Document(self.gain.borrow()));
        doc.finish()
    }
}

impl Against {
    fn to_document(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        doc.append("reason", &Value::from(&*self.reason));
        doc.append("figures", &Value::Document(self.figures.borrow()));
        doc.finish()
    }
}
