//! What an outsider can touch: files on the disk, names and messages on a terminal, files that are read, connection strings.

use crate::mongod::Mongod;
use crate::serving::{Serving, pleach};
use bson::doc;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    text(&output.stderr)
}

/// Everything under a folder, the folder too, whose mode is not what it should be.
fn open_to_others(path: &Path) -> Vec<(PathBuf, String)> {
    let about = std::fs::symlink_metadata(path).unwrap();
    let (mode, wanted) = (about.permissions().mode() & 0o7777, if about.is_dir() { 0o700 } else { 0o600 });
    let mut found = Vec::new();
    if mode != wanted {
        found.push((path.to_owned(), format!("{mode:o}")));
    }
    if about.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| found.extend(open_to_others(&entry.unwrap().path())));
    }
    found
}

/// `pleach serve` under another umask.
fn serving(umask: &str, arguments: &[&str]) -> Serving {
    let mut command = Command::new("sh");
    command.args(["-c", "umask $0; exec \"$@\"", umask, env!("CARGO_BIN_EXE_pleach"), "serve", "--port", "0"]);
    Serving::of(command.args(["--log", "off"]).args(arguments))
}

fn fill(serving: &Serving) {
    let mut client = serving.client();
    client.must(&doc! { "insert": "c", "documents": [{ "a": 1 }], "$db": "it" }).unwrap();
    client
        .must(&doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": "it" })
        .unwrap();
    client.must(&doc! { "compact": "c", "$db": "it" }).unwrap();
}

#[test]
fn data_is_its_owners_alone_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("deep/data");
        let running = serving(umask, &["--data", data.to_str().unwrap()]);
        fill(&running);
        assert_eq!(open_to_others(&data), [], "umask {umask}");
        assert_eq!(running.stop(), Some(0));
        assert_eq!(open_to_others(&data), [], "umask {umask}, stopped");
    }
}

#[test]
fn a_store_that_was_open_to_others_is_tightened() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let argument = data.to_str().unwrap();
    let running = serving("022", &["--data", argument]);
    fill(&running);
    running.stop();
    assert!(Command::new("chmod").args(["-R", "a+rwX", argument]).status().unwrap().success());
    assert_ne!(open_to_others(&data), []);
    serving("022", &["--data", argument]).stop();
    assert_eq!(open_to_others(&data), []);
    // Somebody else's folder keeps its mode; what is in it of Pleach's does not.
    std::fs::write(data.join("letters"), "dear").unwrap();
    let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&data, 0o755);
    mode(&data.join("letters"), 0o644);
    mode(&data.join("store"), 0o755);
    serving("022", &["--data", argument]).stop();
    let open: Vec<PathBuf> = open_to_others(&data).into_iter().map(|(path, _)| path).collect();
    assert_eq!(open, [data.clone(), data.join("letters")]);
}

#[test]
fn the_temporary_folder_is_nobody_elses_and_its_name_cannot_be_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_pleach"), "serve", "--port", "0"]);
        Serving::of(command.args(["--log", "off"]).env("TMPDIR", folder.path()))
    };
    let (first, second) = (start(), start());
    let made: Vec<PathBuf> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(made.len(), 2, "{made:?}");
    for path in &made {
        assert_eq!(open_to_others(path), []);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("pleach-"), "{name}");
        assert!(name.bytes().any(|byte| byte.is_ascii_alphabetic() && !b"pleach".contains(&byte)), "{name}");
    }
    assert_eq!((first.stop(), second.stop()), (Some(0), Some(0)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn no_link_in_the_data_folder_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let letters = folder.path().join("letters");
    for (name, is_folder) in [("pleach.lock", false), ("synced", false), ("store", true), ("temporary-1", false)] {
        let data = folder.path().join(format!("data-{name}"));
        std::fs::create_dir(&data).unwrap();
        match is_folder {
            true => std::fs::create_dir_all(&letters).unwrap(),
            false => std::fs::write(&letters, "dear").unwrap(),
        }
        symlink(&letters, data.join(name)).unwrap();
        let said = refused(&pleach().args(["serve", "--port", "0", "--data"]).arg(&data).output().unwrap());
        assert!(said.contains(name) && said.contains("is a link"), "{name}: {said}");
        match is_folder {
            true => assert_eq!(std::fs::read_dir(&letters).unwrap().count(), 0),
            false => assert_eq!(std::fs::read_to_string(&letters).unwrap(), "dear"),
        }
        if is_folder { std::fs::remove_dir(&letters).unwrap() } else { std::fs::remove_file(&letters).unwrap() }
    }
    // Deep inside a store that was there before.
    let data = folder.path().join("data");
    let running = serving("022", &["--data", data.to_str().unwrap()]);
    fill(&running);
    running.stop();
    std::fs::write(&letters, "dear").unwrap();
    symlink(&letters, data.join("store/9.jnl")).unwrap();
    let said = refused(&pleach().args(["serve", "--port", "0", "--data"]).arg(&data).output().unwrap());
    assert!(said.contains("9.jnl") && said.contains("is a link"), "{said}");
    assert_eq!(std::fs::read_to_string(&letters).unwrap(), "dear");
}

/// What would end a line, move the cursor or turn the writing around.
const NASTY: &str = "a\nerror: forged\u{1b}[2J\u{9b}1m\u{202e}";

fn is_plain(output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = text(bytes);
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r']), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text}");
    }
}

#[test]
fn names_from_files_and_clients_do_not_drive_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let quoted = serde_json::to_string(NASTY).unwrap().replace('\u{9b}', "\\u009b").replace('\u{202e}', "\\u202e");
    let declaration =
        |by: &str| format!("database: it\ncollections:\n  {quoted}:\n    computed:\n      n: {{ count: r, {by} }}\n");
    let (sound, wrong) = (folder.path().join("sound.yaml"), folder.path().join("wrong.yaml"));
    std::fs::write(&sound, declaration("by: x")).unwrap();
    std::fs::write(&wrong, format!("{}  {quoted}: 1\n{quoted}: 1\n", declaration("bye: x"))).unwrap();
    let data = folder.path().join("data");
    let running = serving("022", &["--data", data.to_str().unwrap()]);
    let server = format!("mongodb://{}", running.address);
    let verb = |arguments: &[&str]| pleach().args(arguments).output().unwrap();
    let (sound, wrong) = (sound.to_str().unwrap(), wrong.to_str().unwrap());
    let applied = verb(&["apply", "--server", &server, "--declare", sound]);
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    for arguments in [
        &["check", "--declare", sound][..],
        &["check", "--declare", wrong],
        &["check", "--declare", wrong, "--json"],
        &["apply", "--server", &server, "--declare", wrong],
        &["plan", "--server", &server, "--declare", sound],
        &["status", "--server", &server],
        &["status", "--server", &server, "--json"],
        &["audit", "--server", &server],
        &["explain", "--server", &server, "--db", "it", "{ \"insert\": \"r\", \"documents\": [{ \"x\": 1 }] }"],
        &["drop", NASTY, "--server", &server],
        &["check", "--declare", NASTY],
    ] {
        let output = verb(arguments);
        is_plain(&output);
        if arguments.contains(&"--json") {
            let said = text(&output.stdout);
            let value: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert!(value.to_string().contains('\u{9b}'), "the name is whole: {value}");
        }
    }
    running.stop();
}

#[test]
fn a_declaration_has_a_largest_size_and_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.yaml");
    std::fs::write(&large, format!("# {}\ndatabase: it\n", "x".repeat(2 << 20))).unwrap();
    let large = large.to_str().unwrap();
    for verb in ["check", "plan", "apply", "audit", "status", "repair"] {
        for (file, why) in
            [(large, "larger than 1 MB"), ("/dev/zero", "neither a file nor a pipe"), ("/tmp", "a folder")]
        {
            let said = refused(&pleach().args([verb, "--declare", file]).output().unwrap());
            assert!(said.contains(why) && said.contains("hint: "), "{verb} {file}: {said}");
        }
    }
    // What comes by a pipe is read, and has the same limit.
    let mut child =
        pleach().args(["check", "--declare", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"database: it\ncollections: {}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).contains("is valid"), "{output:?}");
    let endless = format!("{} check --declare <(yes 'a: 1')", env!("CARGO_BIN_EXE_pleach"));
    let said = refused(&Command::new("bash").args(["-c", &endless]).output().unwrap());
    assert!(said.contains("larger than 1 MB"), "{said}");
    // And over the wire, as text and as a document.
    let running = Serving::start(&[]);
    let mut client = running.client();
    let filler = "x".repeat(2 << 20);
    for declaration in [bson::Bson::from(format!("# {filler}\n")), doc! { "collections": { "c": filler } }.into()] {
        let reply = client.command(&doc! { "pleach": "apply", "declaration": declaration, "$db": "it" }).unwrap();
        let said = reply.document.get_str("errmsg").unwrap().to_owned();
        assert!(said.contains("at most 1 MB") && said.len() < 1_000, "{said}");
    }
    running.stop();
}

#[test]
fn a_password_is_shown_nowhere() {
    let dead = "mongodb://user:SECRET@127.0.0.1:9/?serverSelectionTimeoutMS=100";
    let folder = tempfile::tempdir().unwrap();
    for uri in [
        dead,
        "mongodb://u:SECRET/@x",
        "mongodb://u:SECRET",
        "mongodb+srv://u:SECRET@x",
        "mongodb://u:SEC:RET@x",
        "mongodb://u:%SECRET@x",
    ] {
        let file = folder.path().join("uri");
        std::fs::write(&file, format!("{uri}\n")).unwrap();
        let file = file.to_str().unwrap();
        for arguments in [
            &["status", "--upstream", uri][..],
            &["status", "--server", uri],
            &["status", "--upstream-file", file],
            &["status", "--server-file", file],
            &["audit", "--upstream", uri, "--json"],
            &["serve", "--port", "0", "--upstream", uri],
            &["serve", "--port", "0", "--upstream-file", file, "--log", "trace"],
            &["status", uri],
            &["drop", uri],
            &["explain", "--db", "x", uri],
            &["serve", "--bind", uri],
            &["status", &format!("--upsteam={uri}")],
        ] {
            let output = pleach().args(arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{arguments:?} {output:?}");
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(!said.contains("SEC") && !said.contains("RET"), "{arguments:?}: {said}");
        }
    }
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_connection_string_in_a_file_is_in_no_list_of_processes() {
    let uri = judge::real::uri().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mongodb.uri");
    std::fs::write(&file, format!("\n  {uri}  \n")).unwrap();
    let argument = file.to_str().unwrap();
    let running = Serving::start(&["--upstream-file", argument]);
    running.client().must(&doc! { "ping": 1, "$db": "admin" }).unwrap();
    let host = uri.trim_start_matches("mongodb://").split('/').next().unwrap();
    let list = Command::new("ps").args(["-eo", "args"]).output().map(|output| text(&output.stdout)).unwrap_or_default();
    assert!(!list.lines().any(|line| line.contains("upstream-file") && line.contains(host)), "{list}");
    running.stop();
    // With a password in it, whoever lets others read it is told.
    std::fs::write(&file, "mongodb://u:SECRET@127.0.0.1:9/?serverSelectionTimeoutMS=100").unwrap();
    let mode = |mode: u32| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    for (bits, warned) in [(0o644, true), (0o600, false)] {
        mode(bits);
        let said = refused(&pleach().args(["status", "--upstream-file", argument]).output().unwrap());
        assert_eq!(said.contains("chmod 600"), warned, "{said}");
    }
    std::fs::write(&file, "mongodb://a/\nmongodb://b/\n").unwrap();
    let said = refused(&pleach().args(["status", "--upstream-file", argument]).output().unwrap());
    assert!(said.contains("one connection string"), "{said}");
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn the_arguments_that_clients_may_see_have_no_password() {
    let uri = judge::real::uri().unwrap();
    let running = Serving::upstream(&format!("{uri}&tlsCertificateKeyFilePassword=SECRET"), &[]);
    let shown = running.client().must(&doc! { "getCmdLineOpts": 1, "$db": "admin" }).unwrap();
    assert!(!shown.to_string().contains("SECRET"), "{shown}");
    running.stop();
}

#[test]
fn a_dead_port_is_told_soon_and_with_the_way_out() {
    for verb in [&["serve", "--port", "0"][..], &["status"], &["audit"]] {
        let run = |option: &str| {
            let uri = format!("mongodb://127.0.0.1:9/{option}");
            refused(&pleach().args(verb).args(["--upstream", &uri]).output().unwrap())
        };
        let said = run("?serverSelectionTimeoutMS=50");
        assert!(!said.contains("waiting for") && said.contains("waited 0.05 s"), "{said}");
        assert!(said.contains("127.0.0.1:9 does not answer") && said.contains("hint: check host names"), "{said}");
    }
    let said = refused(&pleach().args(["status", "--upstream", "mongodb://127.0.0.1:9/"]).output().unwrap());
    assert!(said.starts_with("waiting for mongodb://127.0.0.1:9/ to answer, at most 5 s"), "{said}");
    assert!(said.contains("waited 5 s"), "{said}");
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_wrong_kind_of_target_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let running = Serving::start(&[]);
    let uri = format!("mongodb://{}", running.address);
    for verb in [&["status"][..], &["audit"], &["serve", "--port", "0"]] {
        let said = refused(&pleach().args(verb).args(["--upstream", &uri]).output().unwrap());
        assert!(said.contains("is a Pleach, not a MongoDB") && said.contains("--server"), "{verb:?}: {said}");
    }
    assert_eq!(pleach().args(["status", "--server", &uri]).output().unwrap().status.code(), Some(0));
    running.stop();
    for verb in ["status", "audit", "repair"] {
        let said = refused(&pleach().args([verb, "--data"]).arg(folder.path()).output().unwrap());
        assert!(said.contains("holds no store") && said.contains("pleach serve --data"), "{said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    std::fs::create_dir(folder.path().join("store")).unwrap();
    let said = refused(&pleach().args(["status", "--data"]).arg(folder.path()).output().unwrap());
    assert!(said.contains("holds no store"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path().join("store")).unwrap().count(), 0);
    let mongod = Mongod::start(&[]);
    let said =
        refused(&pleach().args(["status", "--server", &format!("mongodb://{}", mongod.address())]).output().unwrap());
    assert!(said.contains("is a MongoDB, not a Pleach") && said.contains("--upstream"), "{said}");
    let uri = judge::real::uri().unwrap();
    let said = refused(&pleach().args(["status", "--server", &uri]).output().unwrap());
    assert!(said.contains("is a MongoDB, not a Pleach") && said.contains("--upstream"), "{said}");
}

/// What `serve` prints when it is ready.
fn printed(arguments: &[&str]) -> String {
    let mut command = pleach();
    command.args(["serve", "--port", "0", "--log", "off"]).args(arguments).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap())).map(Result::unwrap);
    let mut text = String::new();
    for line in lines {
        text.push_str(&line);
        text.push('\n');
        if line.starts_with("Stop it") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    text
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn localhost_is_an_address_and_the_things_to_try_show_the_product() {
    let text = printed(&["--bind", "localhost"]);
    assert!(text.contains("\n    mongodb://127.0.0.1:"), "{text}");
    for word in ["pleach: \"apply\"", "count: \"reviews\"", "insertOne", "reviewCount"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let said = refused(&pleach().args(["serve", "--bind", "elsewhere.example"]).output().unwrap());
    assert!(said.contains("localhost"), "{said}");
    let uri = judge::real::uri().unwrap();
    let text = printed(&["--upstream", &uri]);
    for word in ["pleach status", "pleach plan", "pleach audit"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    for word in ["insert", "apply --", "update", "\"apply\""] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}
