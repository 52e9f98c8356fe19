//! Templates of conditions, updates, stages and expressions, read from text.

use bson::Bson;

use crate::json;

/// A list of templates; expressions are kept by the kind of their value.
pub(super) struct Templates {
    pub(super) conditions: Vec<Bson>,
    pub(super) updates: Vec<Bson>,
    pub(super) stages: Vec<Bson>,
    pub(super) last: Vec<Bson>,
    pub(super) projections: Vec<Bson>,
    expressions: Vec<(char, Bson)>,
}

impl Templates {
    pub(super) fn load() -> Self {
        let expressions = lines(include_str!("templates/expression.txt"))
            .filter_map(|line| Some((line.chars().next()?, json::parse_value(line.get(2..)?).ok()?)));
        Self {
            conditions: values(include_str!("templates/condition.txt")),
            updates: values(include_str!("templates/update.txt")),
            stages: values(include_str!("templates/stage.txt")),
            last: values(include_str!("templates/last.txt")),
            projections: values(include_str!("templates/projection.txt")),
            expressions: expressions.collect(),
        }
    }

    /// Expressions of a kind; all of them for `v`.
    pub(super) fn expressions(&self, kind: char) -> Vec<&Bson> {
        let fits = |of: char| kind == 'v' || of == kind || of == 'v';
        self.expressions.iter().filter(|(of, _)| fits(*of)).map(|(_, template)| template).collect()
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn values(text: &str) -> Vec<Bson> {
    lines(text).filter_map(|line| json::parse_value(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let templates = Templates::load();
        let count = |text: &'static str| lines(text).count();
        assert_eq!(templates.expressions.len(), count(include_str!("templates/expression.txt")));
        assert_eq!(templates.conditions.len(), count(include_str!("templates/condition.txt")));
        assert_eq!(templates.updates.len(), count(include_str!("templates/update.txt")));
        assert_eq!(templates.stages.len(), count(include_str!("templates/stage.txt")));
        assert_eq!(templates.last.len(), count(include_str!("templates/last.txt")));
        assert_eq!(templates.projections.len(), count(include_str!("templates/projection.txt")));
    }
}
