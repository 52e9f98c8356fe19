//! The report for people: one block per finding, strongest first, in 80 columns.

use super::{Finding, LookedAt, Report};
use crate::findings::IN_TRAFFIC;

const WIDTH: usize = 80;

impl Report {
    /// `target` is how the next command names the data: `--upstream mongodb://…`.
    pub fn to_text(&self, target: &str) -> String {
        let mut out = self.looked_at.to_text();
        for finding in &self.findings {
            out.push('\n');
            out.push_str(&finding.to_text(target));
        }
        if self.findings.is_empty() {
            out.push_str("\nNothing found.\n");
        }
        out
    }
}

impl LookedAt {
    fn to_text(&self) -> String {
        let (collections, documents, sampled) =
            (grouped(self.collections), grouped(self.documents), grouped(self.sampled));
        let mut out = folded(
            "",
            &format!(
                "Looked at {sampled} of {documents} documents in {collections} collections of {} in {:.1} s.",
                self.databases.join(", "),
                self.seconds
            ),
        );
        if self.traffic.is_empty() {
            out.push_str(&folded("", "No traffic was seen."));
        } else {
            out.push_str("Traffic:\n");
        }
        for source in &self.traffic {
            let covered = if source.seconds > 0.0 { format!(", {}", time(source.seconds)) } else { String::new() };
            let note = source.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
            out.push_str(&folded("  ", &format!("{}{covered}{note}", source.name)));
        }
        if !self.sees_commands {
            let only = IN_TRAFFIC.join(" and ");
            out.push_str(&folded("", &format!("All of it rests on the data alone; {only} show only in commands.")));
        }
        for unseen in &self.unseen {
            out.push_str(&folded("", &format!("Not seen: {unseen}")));
        }
        if self.interrupted {
            out.push_str(&folded("", "It was stopped before its end: this is what it had seen by then."));
        }
        out
    }
}

/// Seconds as people say them.
fn time(seconds: f64) -> String {
    match seconds {
        few if few < 120.0 => format!("{few:.0} s"),
        few if few < 7_200.0 => format!("{:.0} min", few / 60.0),
        few if few < 172_800.0 => format!("{:.0} h", few / 3_600.0),
        many => format!("{:.0} days", many / 86_400.0),
    }
}

impl Finding {
    fn to_text(&self, target: &str) -> String {
        let place = match self.field.is_empty() {
            true => format!("{}.{}", self.database, self.collection),
            false => format!("{}.{}: {}", self.database, self.collection, self.field),
        };
        let mut out = folded(
            "",
            &format!(
                "{} {} at {place} ({}, {:.0} % sure)",
                self.severity.name().to_uppercase(),
                self.symptom,
                self.pattern,
                self.confidence * 100.0
            ),
        );
        out.push_str(&folded("  ", &self.verdict));
        for shown in &self.shown {
            out.push_str(&folded("  - ", shown));
        }
        for reason in &self.against {
            let word = if reason.outweighs { "outweighs: " } else { "against: " };
            out.push_str(&folded(&format!("  {word}"), &reason.reason));
        }
        if let Some(declaration) = &self.declaration {
            out.push('\n');
            declaration.lines().for_each(|line| out.push_str(&format!("    {line}\n")));
            out.push_str(&format!("\n  next: pleach lab {target} --declare now --declare candidate.yaml\n"));
        }
        out
    }
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `head` and the text behind it, folded at spaces; further lines stand under the text's first word.
fn folded(head: &str, text: &str) -> String {
    let indent = head.chars().count();
    let mut out = head.to_owned();
    let mut column = indent;
    for (number, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > WIDTH {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if number > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        let text = folded("  against: ", &"some words ".repeat(20));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.lines().skip(1).all(|line| line.starts_with("           s") || line.starts_with("           w")),
            "{text}"
        );
        assert_eq!((grouped(0), grouped(999), grouped(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
    }
}
