//! What `audit` and `repair` take and print alike: counts, notes and documents, within 80 columns.

use crate::ask::{Question, grouped, list, number, shown_whole, text};
use crate::declaration::File;
use crate::options::{OptionalDeclarationFiles, OutputFormat, TargetOptions};
use crate::report::{Failure, Verdict};
use crate::table::{WIDTH, cut, folded, table};
use crate::target::Target;
use clap::Args;

/// Which values are compared, where, and how the result is printed.
#[derive(Debug, Args)]
pub(crate) struct Comparison {
    #[command(flatten)]
    pub(crate) declared: OptionalDeclarationFiles,

    /// Only this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,

    /// Only the rules of this database; a declaration names its own
    #[arg(long, value_name = "NAME", conflicts_with = "declare")]
    db: Option<String>,

    /// How many documents to name at most; the counts are always whole
    #[arg(long, value_name = "N", default_value_t = 100)]
    examples: u32,

    #[command(flatten)]
    pub(crate) output: OutputFormat,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Asks for an audit or a repair.
pub(crate) async fn ask(
    question: Question,
    comparison: &Comparison,
    file: Option<&File>,
    target: &mut Target,
) -> Result<bson::Document, Failure> {
    let mut question =
        question.on(comparison.db.as_deref()).declared(file).with("examples", i64::from(comparison.examples));
    if let Some(rule) = &comparison.rule {
        question = question.with("rule", &**rule);
    }
    let (db, question) = question.finish();
    target.ask(&db, question).await
}

/// 0: all was compared and is right. 1: it drifted, or not all could be compared yet. 2: it could not be compared.
pub(crate) fn verdict(answer: &bson::Document) -> Verdict {
    match text(answer, "outcome") {
        "right" => Verdict::Fine,
        "impossible" => Verdict::Failed,
        _ => Verdict::Findings,
    }
}

/// Said where no rule was compared.
pub(crate) fn without_rules(answer: &bson::Document, file: Option<&File>) -> String {
    if let Some(note) = list(answer, "notes").first() {
        return wrapped(&format!("nothing was checked: {}", text(note, "text")), 0);
    }
    match file {
        Some(file) => {
            format!("nothing was checked: the declaration has no rules for database `{}`\n", file.declaration.database)
        }
        None => "nothing was checked: no rules are applied there\n\
                 \nTo compare the documents with a declaration, add --declare FILE.\n"
            .to_owned(),
    }
}

/// The counts per rule; columns that matter less are left out where names are long.
pub(crate) fn figures(answer: &bson::Document) -> String {
    let rules = list(answer, "rules");
    let row = |rule: &&bson::Document| {
        let (checked, drifted) = (number(rule, "checked"), number(rule, "drifted"));
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = if checked == 0 { 0.0 } else { drifted as f64 * 100.0 / checked as f64 };
        [
            text(rule, "database").to_owned(),
            text(rule, "rule").to_owned(),
            grouped(checked),
            grouped(number(rule, "unchecked")),
            grouped(drifted),
            format!("{share:.1} %"),
            format!("{:.2}", rule.get_f64("seconds").unwrap_or_default()),
        ]
    };
    let rows: Vec<[String; 7]> = rules.iter().map(row).collect();
    let headings = ["database", "rule", ">checked", ">unchecked", ">drifted", ">share", ">seconds"];
    let has_unchecked = number(answer, "unchecked") > 0;
    let columns = |without: &[&str]| {
        let is_shown = |name: &str| !without.contains(&name) && (name != ">unchecked" || has_unchecked);
        let shown: Vec<&str> = headings.into_iter().filter(|name| is_shown(name)).collect();
        let cells = |row: &[String; 7]| {
            let cells = headings.iter().zip(row).filter(|(name, _)| is_shown(name));
            cells.map(|(_, cell)| cell.clone()).collect()
        };
        (shown, rows.iter().map(cells).collect::<Vec<Vec<String>>>())
    };
    let (mut shown, mut cells) = columns(&[]);
    if width(&shown, &cells) > WIDTH {
        (shown, cells) = columns(&[">share", ">seconds"]);
    }
    table(&shown, cells)
}

/// What is said about each rule besides its counts; once where several share it.
pub(crate) fn notes(answer: &bson::Document) -> String {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for rule in list(answer, "rules") {
        for note in list(rule, "notes") {
            let (said, name) = (text(note, "text"), labelled(answer, text(rule, "database"), text(rule, "rule")));
            match notes.iter_mut().find(|(other, _)| *other == said) {
                Some((_, rules)) => rules.push(name),
                None => notes.push((said, vec![name])),
            }
        }
    }
    let mut out = String::new();
    for (said, rules) in notes {
        out.push_str(&wrapped(&rules.join(", "), 0));
        out.push_str(&wrapped(said, 2));
    }
    if !out.is_empty() {
        out.insert(0, '\n');
    }
    out
}

/// A rule's name, with its database where the answer is about several.
pub(crate) fn labelled(answer: &bson::Document, database: &str, rule: &str) -> String {
    match list(answer, "rules").iter().any(|other| text(other, "database") != database) {
        true => format!("{rule} ({database})"),
        false => rule.to_owned(),
    }
}

/// Which applied rules were left out because the declaration does not have them.
pub(crate) fn undeclared(answer: &bson::Document) -> String {
    let names: Vec<&str> =
        answer.get_array("undeclared").into_iter().flatten().filter_map(|name| name.as_str()).collect();
    let said = match names.len() {
        0 => return String::new(),
        1 => "1 applied rule is not in the declaration and was not checked".to_owned(),
        more => format!("{more} applied rules are not in the declaration and were not checked"),
    };
    format!("\n{}", wrapped(&format!("{said}: {}", names.join(", ")), 0))
}

/// The documents that are named. A bucket has a row for each of its flaws, a document that breaks a rule for each reason.
pub(crate) fn documents(answer: &bson::Document) -> String {
    let (broken, drift): (Vec<_>, Vec<_>) =
        list(answer, "drift").into_iter().partition(|drift| !list(drift, "violations").is_empty());
    let mut out = if drift.is_empty() { String::new() } else { values(&drift) };
    if !broken.is_empty() {
        let separator = if out.is_empty() { "" } else { "\n" };
        out.push_str(&format!("{separator}{}", violations(&broken)));
    }
    out
}

/// What breaks rules about what documents must be like.
fn violations(broken: &[&bson::Document]) -> String {
    let mut rows = Vec::new();
    for drift in broken {
        for violation in list(drift, "violations") {
            rows.push(vec![
                text(drift, "database").to_owned(),
                text(drift, "rule").to_owned(),
                value(drift.get("_id")),
                drift.get("kind").map_or_else(|| "(none)".to_owned(), |kind| value(Some(kind))),
                text(violation, "field").to_owned(),
                text(violation, "problem").to_owned(),
            ]);
        }
    }
    fitted(&["database", "rule", "_id", "kind", "field", "problem"], rows)
}

/// Values that are not what they should be.
fn values(drift: &[&bson::Document]) -> String {
    let has_flaws = drift.iter().any(|drift| !list(drift, "flaws").is_empty());
    let row = |drift: &bson::Document, of: &bson::Document| {
        let mut row = vec![text(drift, "database").to_owned(), text(drift, "rule").to_owned(), value(drift.get("_id"))];
        if has_flaws {
            row.push(text(of, "field").to_owned());
        }
        let only = match text(drift, "only") {
            "type" => " (another type)",
            "state" => " (in _pleach)",
            _ => "",
        };
        let expected = match (of.get("expected"), of.get_bool("repairable")) {
            // What a bucket does not tell.
            (None, Ok(false)) => "(unknown)".to_owned(),
            (expected, _) => format!("{}{only}", value(expected)),
        };
        row.extend([value(of.get("stored")), expected]);
        row
    };
    let mut rows = Vec::new();
    for drift in drift {
        let flaws = list(drift, "flaws");
        match flaws.is_empty() {
            true => rows.push(row(drift, drift)),
            false => rows.extend(flaws.iter().map(|flaw| row(drift, flaw))),
        }
    }
    match has_flaws {
        true => fitted(&["database", "rule", "_id", "field", "stored", "expected"], rows),
        // The rule's name is that of the field.
        false => fitted(&["database", "rule", "_id", "stored", "expected"], rows),
    }
}

/// How many documents are not among those that are named.
pub(crate) fn more(answer: &bson::Document) -> String {
    let named = i64::try_from(list(answer, "drift").len()).unwrap_or(0);
    match (number(answer, "drifted") - named, named) {
        (..=0, _) => String::new(),
        (more, 0) => format!("{} not named (--examples N names N of them)\n", values_of(more)),
        (more, _) => format!("… and {} more (--examples N)\n", grouped(more)),
    }
}

/// `1 value`, `2 values`: a document has one for each of its rules.
pub(crate) fn values_of(number: i64) -> String {
    match number {
        1 => "1 value".to_owned(),
        number => format!("{} values", grouped(number)),
    }
}

/// A value as people read it; only a very long one is cut.
fn value(value: Option<&bson::Bson>) -> String {
    const LONGEST: usize = 400;
    value.map_or_else(|| "(missing)".to_owned(), |value| cut(&shown_whole(value), LONGEST))
}

/// How wide the widest cell of a column is.
fn column_width(heading: &str, rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
    cells.chain([heading.trim_start_matches('>').chars().count()]).max().unwrap_or(0)
}

/// How wide a table would be that is not folded: a space before and behind each cell.
fn width(headings: &[&str], rows: &[Vec<String>]) -> usize {
    headings.iter().enumerate().map(|(column, heading)| column_width(heading, rows, column) + 2).sum()
}

/// A table; where it would be too wide, a paragraph for each row, so that no value is cut.
fn fitted(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    if width(headings, &rows) <= WIDTH {
        return table(headings, rows);
    }
    let wide = headings.iter().map(|heading| heading.len() + 2).max().unwrap_or(0);
    let paragraph = |row: &Vec<String>| {
        let lines = headings.iter().zip(row).enumerate().map(|(at, (heading, cell))| {
            let indent = if at == 0 { "" } else { "  " };
            folded(&format!("{:wide$}  ", format!("{indent}{heading}")), &crate::plain::line(cell))
        });
        lines.collect::<String>()
    };
    rows.iter().map(paragraph).collect::<Vec<_>>().join("\n")
}

/// Text in lines of at most 80 columns, each indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    folded(&" ".repeat(indent), text)
}

/// The words of a command line for the same target and declaration.
pub(crate) fn command(verb: &str, comparison: &Comparison, with_declaration: bool) -> String {
    let mut words = vec![format!("pleach {verb}")];
    for file in comparison.declared.files.iter().filter(|_| with_declaration) {
        words.push(format!("--declare {}", quoted(&file.display().to_string())));
    }
    if let (true, Some(db)) = (verb == "repair", &comparison.db) {
        words.push(format!("--db {}", quoted(db)));
    }
    if let (true, Some(rule)) = (verb == "repair", &comparison.rule) {
        words.push(format!("--rule {}", quoted(rule)));
    }
    words.push(place(&comparison.target));
    format!("  {}\n", words.join(" ").trim_end())
}

/// The target as it was named; a password is not repeated.
fn place(target: &TargetOptions) -> String {
    for (name, file) in [("--server-file", &target.server_file), ("--upstream-file", &target.upstream_file)] {
        if let Some(file) = file {
            return format!("{name} {}", quoted(&file.display().to_string()));
        }
    }
    match (&target.server, &target.data, &target.upstream) {
        (Some(uri), _, _) => format!("--server {}", quoted(&without_password(uri))),
        (_, Some(folder), _) => format!("--data {}", quoted(&folder.display().to_string())),
        (_, _, Some(uri)) => format!("--upstream {}", quoted(&without_password(uri))),
        (None, None, None) => String::new(),
    }
}

fn without_password(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:PASSWORD@{host}")
        }
        None => uri.to_owned(),
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@%+,=".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_repeated() {
        for (uri, shown) in [
            ("mongodb://127.0.0.1:27017", "mongodb://127.0.0.1:27017"),
            ("mongodb://ann:s3cret@db/shop", "mongodb://ann:PASSWORD@db/shop"),
            ("mongodb://ann:a@b/c@db", "mongodb://ann:PASSWORD@db"),
            ("mongodb://db/?replicaSet=rs", "mongodb://db/?replicaSet=rs"),
        ] {
            assert_eq!(without_password(uri), shown);
        }
        assert_eq!(quoted("mongodb://db/?a=1&b=2"), "'mongodb://db/?a=1&b=2'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_table_of_long_values_fits() {
        let row = |n: usize| {
            vec!["shop".to_owned(), "orders.customer".to_owned(), "x".repeat(n), "y".repeat(60), "(missing)".to_owned()]
        };
        let shown = fitted(&["database", "rule", "_id", "stored", "expected"], vec![row(24), row(3)]);
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        assert!(shown.contains(&"y".repeat(60)) && shown.contains(&"x".repeat(24)), "{shown}");
        assert!(shown.contains("  expected  (missing)\n\ndatabase    shop\n"), "{shown}");
        let shown =
            fitted(&["database", "rule", "_id", "stored", "expected"], vec![row(3).into_iter().take(3).collect()]);
        assert_eq!(shown.lines().count(), 2, "{shown}");
    }
}
