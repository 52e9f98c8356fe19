//! Strict YAML: exactly one document, every key once, no anchors, aliases, tags or merge keys, and plain values as YAML 1.2
//! reads them. What two YAML versions read differently is pointed out instead of guessed.

use crate::declare::extended_json;
use crate::declare::finding::{At, Findings};
use crate::declare::tree::{Entries, MapEntry, Node, NodeContent, Spot};
use document::Value;
use granit_parser::{Event, Parser, ScalarStyle, Span};

/// The tree of `text`; `None` if it is no YAML at all, which is a finding too.
pub(crate) fn read(text: &str, findings: &mut Findings) -> Option<Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        disallow_directives: true,
        // Together well below the depth that BSON allows.
        flow_nesting_limit: 60,
        block_nesting_limit: 60,
    };
    let mut reader = Reader { events: Parser::new_from_str_with_options(text, options), text, findings };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => return root,
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            _ if root.is_some() => {
                let at = At { spot: reader.spot(&span), ..At::default() };
                reader.findings.error(&at, "a second document", "one file holds one declaration: remove the `---`");
                return None;
            }
            event => root = Some(reader.node(event, span, &At::default())?),
        }
    }
}

struct Reader<'t, 'f> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    text: &'t str,
    findings: &'f mut Findings,
}

impl<'t> Reader<'t, '_> {
    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        match self.events.next()? {
            Ok(event) => Some(event),
            Err(error) => {
                let mark = error.marker();
                let start = mark.byte_offset().unwrap_or(self.text.len());
                let spot = Spot { line: mark.line(), column: mark.col() + 1, start, end: start };
                let at = At { spot: Some(spot), ..At::default() };
                self.findings.error(
                    &at,
                    format!("not YAML: {}", error.info()),
                    "indent with spaces, and quote text that holds `: ` or `#`",
                );
                None
            }
        }
    }

    fn spot(&self, span: &Span) -> Option<Spot> {
        let start = span.start.byte_offset()?;
        let end = span.end.byte_offset().unwrap_or(start).max(start);
        Some(Spot { line: span.start.line(), column: span.start.col() + 1, start, end })
    }

    fn node(&mut self, event: Event<'t>, span: Span, at: &At) -> Option<Node> {
        let spot = self.spot(&span);
        let at = At { spot: spot.or(at.spot), ..at.clone() };
        let (Event::Scalar(_, _, anchor, ref tag)
        | Event::SequenceStart(_, anchor, ref tag)
        | Event::MappingStart(_, anchor, ref tag)) = event
        else {
            self.findings.error(&at, "an alias", "write the value out: a declaration has no anchors and aliases");
            return Some(Node { content: NodeContent::Scalar(Value::Null), spot });
        };
        if anchor != 0 {
            self.findings.error(&at, "an anchor", "write the value out where it is used: a declaration has no anchors");
        }
        if tag.is_some() {
            self.findings.error(&at, "a tag", "leave it out; quote what must be text");
        }
        let (content, end) = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => (NodeContent::Scalar(self.plain(&text, &at)), None),
            Event::Scalar(text, ..) => (NodeContent::Scalar(Value::string(text)), None),
            Event::SequenceStart(..) => self.list(&at)?,
            _ => self.map(&at)?,
        };
        let spot = spot.map(|spot| Spot { end: end.map_or(spot.end, |end: usize| end.max(spot.end)), ..spot });
        Some(Node { content, spot })
    }

    /// The items, and where the list ends.
    fn list(&mut self, at: &At) -> Option<(NodeContent, Option<usize>)> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => return Some((NodeContent::List(items), span.end.byte_offset())),
                (event, span) => {
                    let inside = at.inside(&items.len().to_string(), None);
                    items.push(self.node(event, span, &inside)?);
                }
            }
        }
    }

    fn map(&mut self, at: &At) -> Option<(NodeContent, Option<usize>)> {
        let mut entries = Entries::default();
        let before = self.findings.list.len();
        let end = loop {
            let (event, span) = self.next()?;
            let spot = self.spot(&span);
            let key = match event {
                Event::MappingEnd => break span.end.byte_offset(),
                Event::Scalar(text, _, 0, None) if !text.is_empty() && !text.contains('\0') => text.into_owned(),
                other => {
                    let here = At { spot, ..at.clone() };
                    self.findings.error(&here, "a key that is not plain text", "keys are names: write `name: value`");
                    self.node(other, span, at)?;
                    String::new()
                }
            };
            let inside = at.inside(&key, spot);
            let (event, span) = self.next()?;
            let value = self.node(event, span, &inside)?;
            if key.is_empty() {
                continue;
            }
            if let Some(first) = entries.add(MapEntry { key, spot, value }) {
                let line = first.spot.map(|spot| format!(", first in line {}", spot.line)).unwrap_or_default();
                self.findings.error(&inside, format!("`{}` is there twice{line}", first.key), "keep one of them");
            }
        };
        Some((extended_json::typed(entries, at, self.findings, before), end))
    }

    /// A value without quotes, by YAML 1.2's core schema.
    fn plain(&mut self, text: &str, at: &At) -> Value<'static> {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
            "true" | "True" | "TRUE" => return Value::Bool(true),
            "false" | "False" | "FALSE" => return Value::Bool(false),
            ".nan" | ".NaN" | ".NAN" => return Value::Double(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" => return Value::Double(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Value::Double(f64::NEG_INFINITY),
            _ => {}
        }
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            if ["yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str()) {
                self.findings.warning(
                    at,
                    format!("`{text}` is text here, not true or false"),
                    format!("write `true` or `false`, or quote it: \"{text}\""),
                );
            }
            return Value::string(text);
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            if digits.len() > 1 && digits.starts_with('0') {
                self.findings.error(
                    at,
                    format!("`{text}` begins with a zero"),
                    format!("write the number without it, or quote it as text: \"{text}\""),
                );
                return Value::Null;
            }
            return match text.parse::<i64>() {
                Ok(number) => i32::try_from(number).map_or(Value::Int64(number), Value::Int32),
                Err(_) => {
                    self.findings.error(
                        at,
                        format!("`{text}` is larger than 64 bits hold"),
                        "quote it as text, or write { $numberDecimal: \"…\" }",
                    );
                    Value::Null
                }
            };
        }
        let number =
            digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
        if let (true, Ok(number)) = (number, text.parse::<f64>()) {
            return Value::Double(number);
        }
        if is_date(text) {
            self.findings.warning(
                at,
                format!("`{text}` is text here, not a date"),
                format!("write {{ $date: \"{text}\" }} for a date, or quote it"),
            );
        }
        Value::string(text)
    }
}

/// What YAML 1.1 would read as a date: `2026-01-31`, `2026-01-31T12:00:00Z`.
fn is_date(text: &str) -> bool {
    let day = text.get(..10).unwrap_or_default();
    let shape =
        day.bytes().enumerate().all(|(i, byte)| if i == 4 || i == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    day.len() == 10
        && shape
        && !text.as_bytes().get(10).is_some_and(|byte| byte.is_ascii_alphanumeric() && !matches!(byte, b'T' | b't'))
}
