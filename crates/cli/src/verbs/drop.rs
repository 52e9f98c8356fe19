//! `pleach drop`: removes a rule and, if asked, the field it kept; or gives every document back what it had.

use super::{Verb, parsed};
use crate::ask::{self, Question, amount, extended_json, list, text};
use crate::options::{OutputFormat, RuleDatabase, TargetOptions};
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;
use clap::{CommandFactory, Parser};

pub(super) const VERB: Verb = Verb { name: "drop", command: Drop::command, run: |arguments| run(&parsed(arguments)?) };

/// Remove a rule and, if asked, the field it kept; or give every document back what it had
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Drop {
    /// The rule, such as products.avgRating
    rule: String,

    /// Take its field away from every document; otherwise it stays as an ordinary one
    #[arg(long)]
    with_data: bool,

    /// Of a bucket rule: the buckets stay, and the view over them; otherwise they become plain documents again
    #[arg(long, conflicts_with = "with_data")]
    keep_buckets: bool,

    /// Give every document back what it had before the rule; what the rule filled is removed
    #[arg(long, conflicts_with_all = ["with_data", "keep_buckets"])]
    restore: bool,

    #[command(flatten)]
    database: RuleDatabase,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  pleach drop products.avgRating --data ~/shop
      the field stays, as an ordinary one
  pleach drop products.avgRating --data ~/shop --with-data
      the field is removed
  pleach drop products.avgRating --data ~/shop --restore
      every document gets back what it had
  pleach drop products.recentReviews --data ~/shop --restore
      documents that `lift` had made are items of their array again
  pleach drop sensor_data.bucket --data ~/shop
      every reading is a document of its own again
  pleach drop sensor_data.bucket --data ~/shop --keep-buckets
      only the rule is removed: a view over buckets stays";

fn run(drop: &Drop) -> Result<Verdict, Failure> {
    let db = drop.database.name()?;
    ask::run(&drop.target, Purpose::Change, async |target| {
        let question = Question::new("drop").on(db.as_deref()).with("rule", &*drop.rule);
        let question = question.flag("with_data", drop.with_data).flag("keep_buckets", drop.keep_buckets);
        let question = question.flag("restore", drop.restore);
        let (db, question) = question.finish();
        let answer = target.ask(&db, question).await?;
        let rule = text(&answer, "rule").to_owned();
        let kept = answer.get_document("kept").ok().and_then(amount);
        let indexes: Vec<String> = answer
            .get_array("left_indexes")
            .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        let older = older(&answer);
        let back = answer.get_document("back").ok().cloned();
        let left_hosts = answer.get_document("left").ok().map(without_items);
        match drop.output.json {
            true => report::json(&extended_json(answer)),
            false => {
                let stays = match answer.contains_key("versions") {
                    true => "documents stay as they are stored",
                    false => left(drop, &rule),
                };
                report::text(&format!("{rule} is no longer kept; {stays}\n"));
            }
        }
        if let Some(back) = &back {
            [same_ids(back), made_again(back), given_back(back), not_made(back)]
                .iter()
                .flatten()
                .for_each(|line| report::note(&format!("{line}.")));
        }
        older.iter().for_each(|line| report::note(line));
        left_hosts.iter().flatten().for_each(|line| report::note(line));
        if let Some(kept) = kept {
            report::note(&what_stays(drop, &rule, &kept));
        }
        if !indexes.is_empty() {
            report::note(&format!("Indexes stay that Pleach has not made: {}.", indexes.join(", ")));
        }
        report::note(
            "A declaration that still has the rule brings it back with the next `serve --declare` or `apply`.",
        );
        Ok(Verdict::Fine)
    })
}

/// What became of documents of several versions: those of older ones are read as they are.
fn older(answer: &bson::Document) -> Option<String> {
    let versions = crate::preview::by_version(answer.get_document("versions").ok()?);
    match ask::number(answer, "older") {
        0 => None,
        older => Some(format!(
            "{} documents are not of the newest version and are read as they are from now on: {versions}. To have all in the \
             newest, apply the rule again and drop it when `pleach status` shows none left.",
            ask::grouped(older)
        )),
    }
}

/// A line for all documents whose items do not fit into their array again, and one for each that is named.
fn without_items(left: &bson::Document) -> Vec<String> {
    let number = ask::number(left, "documents");
    let have = if number == 1 { "document has" } else { "documents have" };
    let title = format!("{number} {have} not got back the items that were lifted; they stay documents of their own:");
    let named = list(left, "examples").into_iter().map(|row| {
        let id = row.get("_id").map_or_else(String::new, |id| id.clone().into_relaxed_extjson().to_string());
        format!("  _id {id}: {}", text(row, "why"))
    });
    std::iter::once(title).chain(named).collect()
}

/// What is still kept of what the rule had replaced.
fn what_stays(drop: &Drop, rule: &str, kept: &str) -> String {
    match drop.restore {
        true => format!(
            "{kept} could not be given back, because clients have changed or deleted those documents since; \
             they stay in pleach.replaced until `pleach forget {rule}`."
        ),
        false => {
            format!("{kept} that the rule had replaced stay in pleach.replaced; `pleach forget {rule}` frees them.")
        }
    }
}

/// Readings that shared an `_id`, in what an answer says about a collection that is plain again.
pub(crate) fn same_ids(back: &bson::Document) -> Option<String> {
    match back.get_i64("duplicates").unwrap_or(0) {
        0 => None,
        1 => Some("1 reading had the `_id` of another: it has a new one, and the old one in `duplicateOf`".to_owned()),
        many => Some(format!(
            "{many} readings had the `_id` of another: each has a new one, and the old one in `duplicateOf`"
        )),
    }
}

/// The indexes that it has again.
pub(crate) fn made_again(back: &bson::Document) -> Option<String> {
    let names = names(back, "indexes");
    (!names.is_empty()).then(|| format!("indexes made again: {}", names.join(", ")))
}

/// The options that it has again.
pub(crate) fn given_back(back: &bson::Document) -> Option<String> {
    let names = names(back, "options");
    (!names.is_empty()).then(|| format!("options given back: {}", names.join(", ")))
}

fn names<'b>(back: &'b bson::Document, list: &str) -> Vec<&'b str> {
    let names = back.get_array(list).map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(bson::Bson::as_str).collect()
}

/// Those that it had, and that could not be made.
fn not_made(back: &bson::Document) -> Option<String> {
    let failed: Vec<String> =
        list(back, "failed").iter().map(|row| format!("{} ({})", text(row, "index"), text(row, "why"))).collect();
    (!failed.is_empty()).then(|| format!("indexes that could not be made again: {}", failed.join("; ")))
}

/// What is left of it.
fn left(drop: &Drop, rule: &str) -> &'static str {
    if rule.ends_with(".polymorphic") {
        return "documents are no longer checked, and a validator of your own is as it was";
    }
    let is_shape = rule.ends_with(".bucket");
    match (is_shape, drop.with_data, drop.keep_buckets) {
        (true, _, _) if drop.restore => "its documents are plain again, as they were before it",
        (false, _, _) if drop.restore => "every document has what it had before it",
        (true, true, _) => "its collection is gone",
        (true, false, true) => "its buckets stay, and a view over them that nobody can write to",
        (true, false, false) => "its readings are plain documents again",
        (false, true, _) => "its field is gone",
        (false, false, _) => "its field stays, as an ordinary one",
    }
}
