//! The rules within `crates/patterns`: which folder may name which, and where some words may stand. Each check is a function
//! over sources, so that a test can show what it refuses.

use super::{LAYERS, code, report, sources};
use std::collections::{BTreeMap, BTreeSet};

const PATTERNS: &str = "crates/patterns/src/";

/// The folders of `crates/patterns/src` from the bottom up: what each holds, and which others its files may name.
const FOLDERS: &[(&str, &str, &[&str])] = &[
    ("mql", "words for MQL", &[]),
    ("languages", "how languages write values and names", &[]),
    ("rule", "what a rule is, as data and traits", &["mql", "languages"]),
    ("fields", "the fields that rules keep", &["mql", "rule"]),
    ("shapes", "the forms in which collections are stored", &["mql", "languages", "rule"]),
    ("constraints", "what rules ask of documents", &["mql", "rule"]),
    ("declare", "from text to checked rules", &["mql", "rule", "fields", "shapes", "constraints"]),
    ("extend", "rules put into the text of a declaration", &["languages", "declare"]),
    ("propose", "steps between two versions of documents", &["mql", "languages", "rule", "declare"]),
    ("print", "code that a person would write by hand", &["mql", "languages", "rule", "fields", "shapes", "declare"]),
    ("active", "the rules in force", &["mql", "rule", "fields", "shapes", "declare"]),
    (
        "execute",
        "how a client's write, or read of a shape, is run",
        &["mql", "rule", "fields", "shapes", "declare", "active"],
    ),
    ("layer", "the backend around a backend", &["mql", "rule", "fields", "shapes", "declare", "active", "execute"]),
    (
        "life",
        "rules over time",
        &["mql", "languages", "rule", "fields", "shapes", "declare", "print", "active", "execute", "layer"],
    ),
    (
        "front",
        "what clients meet",
        &["mql", "rule", "fields", "shapes", "declare", "active", "execute", "layer", "life"],
    ),
];

/// The files, or folders with all their files, that name a folder which they may not. The list may only shrink.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Type names that several files of a crate declare for the whole of it, and in how many. The list may only shrink.
const SHARED_NAMES: &[(&str, &[(&str, usize)])] = &[
    ("advisor", &[("Compared", 3), ("Source", 2), ("Spread", 2)]),
    ("cli", &[("Comparison", 2), ("Outcome", 2)]),
    // How far a failure reaches, and what names stand for while an expression is evaluated.
    ("document", &[("Scope", 2)]),
];

/// The files, besides the bucket's own, that ask for a bucket instead of a shape: time series are buckets by definition, and `status`
/// says how well buckets are filled. The list may only shrink.
const ABOUT_BUCKETS: &[&str] = &[
    "life/relocate/health.rs",
    "life/timeseries/indexes.rs",
    "life/timeseries/mod.rs",
    "life/timeseries/modify.rs",
    "life/timeseries/options.rs",
];

/// Files as `(path below crates/patterns/src, text)`.
type Files = Vec<(String, String)>;

/// The files of `crates/patterns/src` that are not only for tests.
fn patterns() -> Files {
    let strip = |(name, text): (String, String)| Some((name.strip_prefix(PATTERNS)?.to_owned(), text));
    let files = without_tests(sources().into_iter().filter_map(strip).collect());
    assert!(files.len() > 150, "the walk found too little: {}", files.len());
    files
}

/// Leaves out what stands behind `#[cfg(test)] mod name;`.
fn without_tests(files: Files) -> Files {
    let mut only_tests = BTreeSet::new();
    for (name, text) in &files {
        let folder = ["mod.rs", "lib.rs", ".rs"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]") {
            if let Some(module) = pair[1].rsplit("mod ").next().and_then(|rest| rest.strip_suffix(';')) {
                only_tests
                    .insert(format!("{}/{module}", folder.trim_end_matches('/')).trim_start_matches('/').to_owned());
            }
        }
    }
    let is_test = |name: &str| {
        only_tests
            .iter()
            .any(|test| name.strip_prefix(&**test).is_some_and(|rest| rest == ".rs" || rest.starts_with('/')))
    };
    files.into_iter().filter(|(name, _)| !is_test(name)).collect()
}

pub(super) fn is_folder(name: &str) -> bool {
    FOLDERS.iter().any(|(folder, ..)| *folder == name)
}

/// The folder that a file belongs to: `mql.rs` is one too.
fn folder_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name).trim_end_matches(".rs")
}

/// The words of a line.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// What a line names directly below the crate: `life` of `use crate::life::State`, `{` of `use crate::{…}`.
fn named_folders(line: &str) -> Vec<&str> {
    let after = line.split("crate::").skip(1).filter(|rest| !rest.is_empty());
    after.map(|rest| if rest.starts_with('{') { "{" } else { words(rest).next().unwrap_or(rest) }).collect()
}

/// Whether a line climbs to the crate by `super::super::…`, and so past the table.
fn climbs_out(name: &str, line: &str) -> bool {
    let depth = name.split('/').filter(|part| *part != "mod.rs" && *part != "lib.rs").count();
    depth > 0 && line.contains(&"super::".repeat(depth))
}

/// Where files name folders that they may not. Second, the exceptions that no file needs.
fn upward(files: &Files, exceptions: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut needed) = (Vec::new(), BTreeSet::new());
    for (name, text) in files.iter().filter(|(name, _)| name != "lib.rs") {
        let own = folder_of(name);
        let Some((_, holds, may)) = FOLDERS.iter().find(|(folder, ..)| *folder == own) else {
            wrong.push(format!("{name}: `{own}` is not in FOLDERS: say what it holds and which folders it may name"));
            continue;
        };
        for line in code(text) {
            if climbs_out(name, line) {
                wrong.push(format!("{name}: `{}` leaves its folder: write crate::", line.trim()));
            }
            for other in named_folders(line).into_iter().filter(|other| *other != own && !may.contains(other)) {
                let covers =
                    |file: &str| name == file || name.strip_prefix(file).is_some_and(|rest| rest.starts_with('/'));
                if !FOLDERS.iter().any(|(folder, ..)| *folder == other) {
                    wrong.push(format!("{name}: `crate::{other}` hides a folder: name the folder itself"));
                } else if let Some(known) = exceptions.iter().find(|(file, folder)| *folder == other && covers(file)) {
                    needed.insert(*known);
                } else {
                    wrong.push(format!(
                        "{name} names `{other}`: what both need belongs in `{own}` ({holds}) or below it, in one of {may:?}"
                    ));
                }
            }
        }
    }
    let idle = exceptions.iter().filter(|known| !needed.contains(known));
    (wrong, idle.map(|(file, folder)| format!("{file}, {folder}")).collect())
}

/// The files outside `declare/kinds` that match on what a rule keeps.
fn matching_on_kind(files: &Files) -> Vec<String> {
    let (_, rule) = files.iter().find(|(name, _)| name == "rule/mod.rs").expect("Kind is in rule/mod.rs");
    let (_, body) = rule.split_once("pub enum Kind {").expect("Kind is an enum");
    let body = body.split("\n}").next().unwrap_or_default();
    let variants = body.lines().map(str::trim).filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let variants: Vec<String> = variants.filter_map(|line| Some(format!("Kind::{}", words(line).next()?))).collect();
    assert!(variants.len() > 1, "the walk found too little: {variants:?}");
    // Other enums of that name have other variants.
    let matches = |text: &str| code(text).any(|line| variants.iter().any(|variant| line.contains(&**variant)));
    let others = files.iter().filter(|(name, _)| !name.starts_with("declare/kinds/"));
    others.filter(|(_, text)| matches(text)).map(|(name, _)| name.clone()).collect()
}

/// The files, besides the bucket's own, that ask for a bucket.
fn asking_for_buckets(files: &Files) -> Vec<String> {
    let is_own = |name: &str| name.starts_with("shapes/bucket/") || name.starts_with("declare/kinds/bucket/");
    let asks = |line: &str| line.contains(".bucket()") || line.contains("shapes::bucket::");
    let others = files.iter().filter(|(name, text)| !is_own(name) && code(text).any(asks));
    others.map(|(name, _)| name.clone()).collect()
}

/// Lines of some folders that are not allowed there.
fn lines_in(files: &Files, folders: &[&str], is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let inside = files.iter().filter(|(name, _)| folders.contains(&folder_of(name)));
    inside
        .flat_map(|(name, text)| {
            code(text).filter(|line| is_wrong(line)).map(move |line| format!("{name}: {}", line.trim()))
        })
        .collect()
}

fn names_a_backend(line: &str) -> bool {
    line.contains("dyn Backend")
}

/// Whether a line reaches into the module of one field.
fn names_a_field(line: &str) -> bool {
    patterns::fields::FIELDS.iter().any(|entry| line.contains(&format!("fields::{}::", entry.name)))
}

/// Code in quotes for a language that waits is no line that does.
fn is_async(line: &str) -> bool {
    ["async fn", "async move", "async {", "async |", ".await"].iter().any(|word| line.contains(word))
}

/// The type that a line declares for the whole crate.
fn crate_visible_type(line: &str) -> Option<&str> {
    let declared = ["pub ", "pub(crate) "].iter().find_map(|start| line.trim_start().strip_prefix(start))?;
    let rest = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|kind| declared.strip_prefix(kind))?;
    words(rest).next()
}

/// Type names that several files declare: those that are not listed, and those that are listed with another number.
fn shared_names(files: &Files, listed: &[(&str, usize)]) -> (Vec<String>, Vec<String>) {
    let mut declared: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in files {
        for declares in code(text).filter_map(crate_visible_type) {
            declared.entry(declares).or_default().push(name);
        }
    }
    let known = |name: &str| listed.iter().find(|(listed, _)| *listed == name).map_or(1, |(_, number)| *number);
    let more = declared.iter().filter(|(name, files)| files.len() > known(name));
    let fewer = listed.iter().filter(|(name, number)| declared.get(name).map_or(0, Vec::len) < *number);
    (
        more.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect(),
        fewer.map(|(name, number)| format!("{name}, {number}")).collect(),
    )
}

#[test]
fn folders_name_only_folders_below() {
    for (at, (folder, _, may)) in FOLDERS.iter().enumerate() {
        let is_below = |other: &str| FOLDERS.iter().take(at).any(|(below, ..)| *below == other);
        assert!(may.iter().all(|other| is_below(other)), "FOLDERS goes from the bottom up: {folder} names {may:?}");
    }
    let files = patterns();
    let gone = FOLDERS.iter().filter(|(folder, ..)| !files.iter().any(|(name, _)| folder_of(name) == *folder));
    let gone: Vec<_> = gone.map(|(folder, ..)| (*folder).to_owned()).collect();
    report("FOLDERS lists folders that exist", "take it off the list", &gone);
    let (wrong, idle) = upward(&files, EXCEPTIONS);
    report("a folder of crates/patterns names only those below it (FOLDERS)", "move the shared noun down", &wrong);
    report("EXCEPTIONS lists only what still points upward", "take it off the list", &idle);
}

#[test]
fn few_files_match_on_what_a_rule_keeps() {
    let found = matching_on_kind(&patterns());
    let too_many = if found.len() > 3 { found } else { Vec::new() };
    report("Kind is matched in three files at most, besides declare/kinds", "ask the field or the shape", &too_many);
}

#[test]
fn a_field_is_not_asked_which_it_is() {
    let above = ["active", "execute", "layer", "life", "front"];
    let wrong = lines_in(&patterns(), &above, names_a_field);
    report(
        "what is above the fields knows none of them by its kind",
        "give `Field` the method that is missing",
        &wrong,
    );
}

#[test]
fn a_shape_is_not_asked_whether_it_is_a_bucket() {
    let found = asking_for_buckets(&patterns());
    let new: Vec<String> = found.iter().filter(|name| !ABOUT_BUCKETS.contains(&&***name)).cloned().collect();
    report(
        "what holds for every shape asks for a shape",
        "give `Shape` or `LifeShape` the method that is missing",
        &new,
    );
    let gone = ABOUT_BUCKETS.iter().filter(|name| !found.iter().any(|file| file == *name));
    let gone: Vec<String> = gone.map(|name| (*name).to_owned()).collect();
    report("ABOUT_BUCKETS lists only files that ask for a bucket", "take it off the list", &gone);
}

#[test]
fn what_a_rule_is_sends_nothing() {
    let files = patterns();
    let sending = ["execute", "layer", "life", "front"];
    let pure: Vec<&str> = FOLDERS.iter().map(|(folder, ..)| *folder).filter(|it| !sending.contains(it)).collect();
    let backends = lines_in(&files, &pure, names_a_backend);
    report("only execute, layer, life and front know a backend", "let execute or life send it", &backends);
    // It asks for the versions of fences.
    let files: Files = files.into_iter().filter(|(name, _)| name != "active/copy_cache.rs").collect();
    // A shape asks by a `StoredAccess`, and waits for its answers.
    let pure: Vec<&str> = pure.into_iter().filter(|folder| *folder != "shapes").collect();
    let waits = lines_in(&files, &pure, is_async);
    report("what sends nothing does not wait", "return what is to be read or written as data", &waits);
}

#[test]
fn type_names_are_unique_within_their_crate() {
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for (krate, ..) in LAYERS {
        let own = format!("crates/{krate}/src/");
        let strip = |(name, text): (String, String)| Some((name.strip_prefix(&own)?.to_owned(), text));
        let files = without_tests(sources().into_iter().filter_map(strip).collect());
        let listed = SHARED_NAMES.iter().find(|(name, _)| name == krate).map_or(&[][..], |(_, names)| names);
        let (more, fewer) = shared_names(&files, listed);
        new.extend(more.into_iter().map(|name| format!("{krate}: {name}")));
        gone.extend(fewer.into_iter().map(|name| format!("{krate}: {name}")));
    }
    report("a type name that the whole crate sees means one thing", "give one of them a name of its own", &new);
    report(
        "SHARED_NAMES lists only names that are declared so often",
        "take it off the list, or lower the number",
        &gone,
    );
}

mod counter_examples {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_folder_that_names_one_above() {
        let tree = files(&[
            ("rule/mod.rs", "use crate::mql::call;\nuse crate::life::State;"),
            (
                "fields/copy/mod.rs",
                "fn f(g: &crate::execute::Attempt) {}\n// crate::layer\nmod tests {\nuse crate::layer::X;",
            ),
            ("shapes/bucket/add.rs", "use crate::fields::tally;"),
        ]);
        let (wrong, idle) = upward(&tree, &[]);
        assert_eq!((wrong.len(), idle.len()), (3, 0), "{wrong:?}");
        assert!(
            wrong[0].contains("rule/mod.rs names `life`") && wrong[0].contains("[\"mql\", \"languages\"]"),
            "{wrong:?}"
        );
        let exceptions =
            [("rule/mod.rs", "life"), ("fields/copy", "execute"), ("fields/cop", "execute"), ("shapes", "life")];
        let (wrong, idle) = upward(&tree, &exceptions);
        assert!(matches!(&wrong[..], [only] if only.starts_with("shapes/bucket/add.rs")), "{wrong:?}");
        assert_eq!(idle, ["fields/cop, execute", "shapes, life"]);
    }

    #[test]
    fn a_way_around_the_table() {
        let tree = files(&[
            ("rule/mod.rs", "use crate::{life, mql};"),
            ("rule/key.rs", "use super::super::life::State;\nuse super::Link;"),
            ("fields/mod.rs", "use crate::plan::Plan;"),
            ("news/mod.rs", ""),
        ]);
        let (wrong, _) = upward(&tree, &[]);
        assert_eq!(wrong.len(), 4, "{wrong:?}");
    }

    #[test]
    fn files_for_tests_are_left_out() {
        let tree = files(&[
            ("fields/mod.rs", "#[cfg(test)]\npub(crate) mod testing;\nmod copy;"),
            ("fields/testing.rs", ""),
            ("fields/testing/more.rs", ""),
            ("fields/copy.rs", "#[cfg(test)]\nmod cases;"),
            ("fields/copy/cases.rs", ""),
        ]);
        let kept: Vec<String> = without_tests(tree).into_iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["fields/mod.rs", "fields/copy.rs"]);
    }

    #[test]
    fn a_match_on_the_kind_of_a_rule() {
        let tree = files(&[
            ("rule/mod.rs", "pub enum Kind {\n    /// A field.\n    Field(A),\n    Shape(B),\n}\n"),
            ("life/seed.rs", "if let Kind::Field(field) = &rule.kind {"),
            ("layer/sums.rs", "Kind::Count => 1,"),
            ("declare/kinds/computed.rs", "kind: Kind::Field(field),"),
        ]);
        assert_eq!(matching_on_kind(&tree), ["life/seed.rs"]);
    }

    #[test]
    fn a_file_that_asks_for_a_bucket() {
        let tree = files(&[
            ("life/audit.rs", "let Some(bucket) = rule.bucket() else {"),
            ("life/plan.rs", "use crate::shapes::bucket::Body;"),
            ("life/seed.rs", "// rule.bucket()\nlet bucket = 1;\nmod tests {\nrule.bucket();"),
            ("shapes/bucket/of.rs", "place.bucket()"),
            ("declare/kinds/bucket/mod.rs", "use crate::shapes::bucket::Bucket;"),
        ]);
        assert_eq!(asking_for_buckets(&tree), ["life/audit.rs", "life/plan.rs"]);
    }

    #[test]
    fn a_file_that_knows_a_field() {
        let tree = files(&[
            ("execute/run.rs", "use crate::fields::tally::translated;\nuse crate::fields::value_at;"),
            ("fields/fold.rs", "use crate::fields::tally::Tally;"),
        ]);
        assert_eq!(lines_in(&tree, &["execute"], names_a_field).len(), 1);
    }

    #[test]
    fn a_field_that_sends() {
        let text = "async fn f(backend: &dyn Backend) {\n    backend.read().await;\n}\nlet asynchronous = 1;";
        let tree = files(&[("fields/top.rs", text), ("execute/run.rs", text)]);
        assert_eq!(lines_in(&tree, &["fields"], names_a_backend).len(), 1);
        assert_eq!(lines_in(&tree, &["fields"], is_async).len(), 2);
    }

    #[test]
    fn one_name_for_two_types() {
        let tree = files(&[
            ("a.rs", "pub struct Place {\npub(crate) enum Part<'a> {\nstruct Own;\npub(super) struct Own;"),
            ("b.rs", "pub(crate) type Place = u8;\npub trait Part {}\nstruct Own;"),
            ("c.rs", "pub struct Part;"),
        ]);
        let (new, gone) = shared_names(&tree, &[("Part", 2), ("Once", 2)]);
        assert_eq!(new, ["Part: a.rs, b.rs, c.rs", "Place: a.rs, b.rs"]);
        assert_eq!(gone, ["Once, 2"]);
        assert!(shared_names(&tree, &[("Part", 3), ("Place", 2)]).0.is_empty());
    }
}
