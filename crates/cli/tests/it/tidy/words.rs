//! Where some words may stand: what only a backend, a bucket, a registry of commands or the errors know is said there and nowhere
//! else. Each check is a function over sources, so that a test can show what it refuses.

use super::{FACTS, code, comments, report, root, sources};
use document::backend::Class;
use std::collections::BTreeSet;
use std::fs;

type Files = Vec<(String, String)>;

/// Files, or folders with all their files, that know what is inside a bucket beside its own. The list may only shrink.
const BODY: &[&str] = &["crates/patterns/src/life/relocate/health.rs"];

/// Where commands have names. The first ones are made for it …
const COMMAND_NAMES: &[&str] = &[
    "crates/server/src/commands",
    "crates/patterns/src/life/explain",
    "crates/patterns/src/life/explain.rs",
    "crates/patterns/src/life/verbs/explain.rs",
];

/// … these the kinds of operations in a profile, which are called like commands …
const OPERATION_NAMES: &[&str] = &["crates/server/src/profiler/entry.rs"];

/// … these name MongoDB's privileges, which are called like commands …
const PRIVILEGE_NAMES: &[&str] = &[
    "crates/patterns/src/execute/rights",
    "crates/patterns/src/front/rights.rs",
    "crates/patterns/src/front/restore.rs",
    "crates/patterns/src/layer/named_collection.rs",
    "crates/patterns/src/life/audit/presence.rs",
    "crates/patterns/src/life/preview/names.rs",
    "crates/patterns/src/life/replaced",
    "crates/patterns/src/life/restore.rs",
    "crates/patterns/src/life/status.rs",
    "crates/patterns/src/life/verbs",
    "crates/server/src/entitled.rs",
];

/// … and these print or send a command, or name a key of the same spelling. Both lists may only shrink.
const COMMANDS_SENT: &[&str] = &[
    "crates/patterns/src/active/side_writes.rs",
    "crates/patterns/src/declare/kinds/computed.rs",
    "crates/patterns/src/declare/kinds/link_keys.rs",
    "crates/patterns/src/declare/kinds/versions/steps.rs",
    "crates/patterns/src/execute/deferred.rs",
    "crates/patterns/src/front/admin.rs",
    "crates/patterns/src/languages/javascript.rs",
    "crates/patterns/src/layer/refused.rs",
    "crates/patterns/src/life/expiry.rs",
    "crates/patterns/src/life/install",
    "crates/patterns/src/life/plan.rs",
    "crates/patterns/src/life/preview/validators.rs",
    "crates/patterns/src/life/relocate",
    "crates/patterns/src/print",
    "crates/patterns/src/propose/written.rs",
    "crates/patterns/src/shapes/bucket/print",
    "crates/server/src/params.rs",
];

/// Whether an entry of a list is a file or a folder of its.
fn covers(entry: &str, file: &str) -> bool {
    file.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The files that have a line of code that few may have and are not listed; and the entries that no file needs.
fn unlisted(files: &Files, lists: &[&[&str]], is_meant: impl Fn(&str) -> bool) -> (Vec<String>, Vec<String>) {
    let having = files.iter().filter(|(_, text)| code(text).any(&is_meant));
    let having: BTreeSet<&str> = having.map(|(name, _)| &**name).collect();
    let entries: Vec<&str> = lists.concat();
    let new = having.iter().filter(|file| !entries.iter().any(|entry| covers(entry, file)));
    let idle = entries.iter().filter(|entry| !having.iter().any(|file| covers(entry, file)));
    (new.map(|file| (*file).to_owned()).collect(), idle.map(|entry| (*entry).to_owned()).collect())
}

/// The methods of a trait that have a body of their own.
fn default_bodies(text: &str, name: &str) -> Vec<String> {
    let (_, rest) = text.split_once(&format!("pub trait {name}")).expect("the trait is there");
    let body = rest.split("\n}\n").next().unwrap_or_default();
    body.lines().skip(1).filter(|line| line.ends_with('{')).map(|line| line.trim().to_owned()).collect()
}

/// Lines that classify an error by something else than its scope.
fn classifies(file: &str, line: &str) -> bool {
    // Which server is to be asked next, and whether a commit may have been done, is no question of scope.
    let allowed = ["crates/document/src/error.rs", "crates/upstream/src/answer.rs", "crates/upstream/src/commit.rs"];
    let labels = file != allowed[0] && document::error::label::ALL.iter().any(|label| line.contains(label));
    labels || line.contains("labels().contains(") && !allowed.contains(&file)
}

/// A pattern of a `match` on a command's name, or a comparison with it.
fn decides_by(line: &str, name: &str) -> bool {
    line.split_once(name).is_some_and(|(before, after)| {
        let (before, after) = (before.trim_end(), after.trim_start());
        let is_pattern = after.starts_with("=>") || after.starts_with("| \"") || before.ends_with("\" |");
        is_pattern || before.ends_with("name ==") || before.ends_with("name !=")
    })
}

/// The quoted names of the commands that are told apart. `count` is a field of figures too.
fn decisive_names() -> Vec<String> {
    let decisive = server::COMMANDS.iter().filter(|command| !matches!(command.class, Class::Other | Class::Count));
    decisive.flat_map(|command| command.names).map(|name| format!("\"{name}\"")).collect()
}

/// Comments in which a pronoun stands for a caller, or `nothing` for `None`.
fn is_vague(comment: &str) -> bool {
    let pronouns = [" against who ", " by who ", " for who ", " from who ", " of who ", " to who "];
    let nothing = ["; nothing if ", ". Nothing if ", "/// Nothing if "];
    pronouns.iter().chain(&nothing).any(|words| comment.contains(words))
}

fn is_test(file: &str) -> bool {
    file.contains("tests") || file.contains("testing")
}

/// The sources of these crates, those of tests left out.
fn sources_of(crates: &[&str]) -> Files {
    let inside = |file: &str| crates.iter().any(|name| file.starts_with(&format!("crates/{name}/src/")));
    sources().into_iter().filter(|(file, _)| inside(file) && !is_test(file)).collect()
}

#[test]
fn every_backend_decides_about_every_method() {
    let text = fs::read_to_string(root().join("crates/document/src/backend/mod.rs")).unwrap();
    assert!(text.contains("fn remote"), "the trait is elsewhere");
    report(
        "trait Backend has no default body: whoever wraps a backend would forget the method",
        "implement it in each backend",
        &default_bodies(&text, "Backend"),
    );
}

#[test]
fn comments_name_callers_and_values() {
    let mut vague = Vec::new();
    for (file, text) in sources() {
        // One action of several may be left out.
        let lines = comments(&text).filter(|line| is_vague(line) && !line.contains("; nothing if nothing waits"));
        vague.extend(lines.map(|line| format!("{file}: {line}")));
    }
    report("a comment names the caller, and `None`", "no `who` for a caller, no `nothing if` for `None`", &vague);
}

#[test]
fn facts_are_asked_in_few_places() {
    let (new, idle) = unlisted(&sources(), &[FACTS], |line| line.contains(".facts()"));
    report("code depends on what a backend is only in the files of FACTS", "let the backend decide", &new);
    report("FACTS lists only files that ask", "take it off the list", &idle);
}

#[test]
fn what_is_inside_a_bucket_is_known_to_it_alone() {
    let own = ["crates/patterns/src/shapes/bucket", "crates/patterns/src/declare/kinds/bucket"];
    let (new, idle) = unlisted(&sources_of(&["patterns"]), &[&own, BODY], |line| line.contains("Body::"));
    report("Body is matched by the bucket and its declaration only", "give the bucket a method that answers", &new);
    report("BODY lists only files that look inside", "take it off the list", &idle);
}

#[test]
fn errors_are_classified_in_one_place() {
    let mut wrong = Vec::new();
    for (name, text) in sources().into_iter().filter(|(name, _)| !is_test(name)) {
        wrong.extend(code(&text).filter(|line| classifies(&name, line)).map(|line| format!("{name}: {}", line.trim())));
    }
    report("how far a failure reaches is said by Error::scope, and labels are constants", "ask the scope", &wrong);
}

#[test]
fn commands_are_told_apart_by_their_class() {
    let folders = ["server/src/", "patterns/src/layer/", "patterns/src/front/", "patterns/src/active/"]
        .map(|folder| format!("crates/{folder}"));
    let may = |name: &str| COMMAND_NAMES.iter().any(|entry| covers(entry, name));
    let names = decisive_names();
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        if may(&file) || !folders.iter().any(|folder| file.starts_with(&**folder)) {
            continue;
        }
        for line in code(&text).filter(|line| names.iter().any(|name| decides_by(line, name))) {
            wrong.push(format!("{file}: {}", line.trim()));
        }
    }
    report("only server/commands knows commands by name", "ask for the class", &wrong);
}

#[test]
fn commands_are_named_in_few_places() {
    // `pleach` is the name of much else.
    let names: Vec<String> = decisive_names().into_iter().filter(|name| name != "\"pleach\"").collect();
    let is_named = |line: &str| names.iter().any(|name| line.contains(name));
    // An entry of a registry has the name of its module.
    let made_for_it =
        |file: &str| COMMAND_NAMES.iter().any(|entry| covers(entry, file)) || file.ends_with("/registered.rs");
    let files = sources_of(&["patterns", "server"]).into_iter().filter(|(file, _)| !made_for_it(file)).collect();
    let (new, idle) = unlisted(&files, &[OPERATION_NAMES, PRIVILEGE_NAMES, COMMANDS_SENT], is_named);
    report("a command's name stands in the files made for it", "ask for the class, or let the backend send it", &new);
    report("the lists hold only files that name a command", "take it off the list", &idle);
}

#[test]
fn commands_are_sorted_unique_and_documented() {
    let commands: Vec<&str> = server::COMMANDS.iter().map(|command| command.names[0]).collect();
    assert!(commands.len() > 40 && commands.is_sorted(), "{commands:?}");
    let names: Vec<&str> = server::COMMANDS.iter().flat_map(|command| command.names).copied().collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len(), "a name of two commands: {names:?}");
    let bare = server::COMMANDS.iter().filter(|command| command.help.trim().is_empty());
    let bare: Vec<String> = bare.map(|command| command.names[0].to_owned()).collect();
    report("a command has its sentence of help", "say what it does", &bare);
}

mod counter_examples {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_file_that_is_not_listed_and_an_entry_that_is_idle() {
        let tree = files(&[
            ("a/x.rs", "match body {\n    Body::Slots(slots) => 1,"),
            ("a/b/y.rs", "if let Body::Readings(_) = body {"),
            ("c.rs", "// Body::Slots is meant\nmod tests {\n    Body::Slots;"),
        ]);
        let looks = |line: &str| line.contains("Body::");
        assert_eq!(unlisted(&tree, &[&["a/b"], &["c.rs"]], looks), (vec!["a/x.rs".into()], vec!["c.rs".into()]));
        assert_eq!(unlisted(&tree, &[&["a"]], looks), (vec![], vec![]));
        assert_eq!(unlisted(&tree, &[&["a/x", "a/b", "a/x.rs"]], looks), (vec![], vec!["a/x".into()]));
    }

    #[test]
    fn a_vague_comment() {
        assert!(is_vague("/// The row of a rule; nothing if it is not there."));
        assert!(is_vague("// The same for who changes rules already."));
        assert!(!is_vague("/// The row of a rule; `None` if there is none. Says who answers."));
    }

    #[test]
    fn a_method_with_a_body() {
        let text =
            "pub trait Backend: Send {\n    fn read(&self);\n    fn facts(&self) -> Facts {\n        Facts\n    }\n}\n";
        assert_eq!(default_bodies(text, "Backend"), ["fn facts(&self) -> Facts {"]);
        assert!(default_bodies("pub trait Backend {\n    fn read(&self);\n}\nfn f() {\n}\n", "Backend").is_empty());
    }

    #[test]
    fn a_second_classification() {
        let label = document::error::label::ALL[0];
        assert!(classifies("crates/patterns/src/execute/retry.rs", &format!("if text == \"{label}\" {{")));
        assert!(classifies("crates/server/src/reply.rs", "if error.labels().contains(&label) {"));
        assert!(!classifies("crates/upstream/src/commit.rs", "if error.labels().contains(&label) {"));
        assert!(!classifies("crates/document/src/error.rs", &format!("pub const A: &str = \"{label}\";")));
    }

    #[test]
    fn a_match_on_a_commands_name() {
        for line in [
            "\"insert\" => 1,",
            "\"insert\" | \"update\" => 1,",
            "\"update\" | \"insert\" => 1,",
            "if name == \"insert\" {",
        ] {
            assert!(decides_by(line, "\"insert\""), "{line}");
        }
        assert!(!decides_by("doc.append(\"insert\", &value);", "\"insert\""));
        assert!(decisive_names().contains(&"\"insert\"".to_owned()));
    }
}
