"""The code that `plan --as` prints for versions gives what Pleach gives: old documents of every version on a real MongoDB, read as the
newest and then migrated by each language's code, against the same documents read through Pleach.

    versions.py URI PLEACH STATE     STATE: where clients/run has installed the drivers
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time

from bson import json_util
from pymongo import MongoClient

HERE = pathlib.Path(__file__).parent
uri, pleach, state = sys.argv[1:4]
FILTER = {"first": {"$in": ["Ada", "Bob", "Cyd", "Eve"]}}


def documents():
    """Of every version, with holes; one is newer than any."""
    first = {"name": "Ada L", "phone": "1", "mail": "a@x", "street": "S 1", "city": "C", "age": "7", "nick": "a", "fax": 1, "kept": [1, {"a": 2}]}
    second = {**first, "schemaVersion": 2, "name": "Bob M N", "phone": {"number": "2", "code": "+44", "more": 1}, "age": "no number"}
    third = {"schemaVersion": 3, "first": "Cyd", "email": "c@x", "address": "T 2, D", "age": "9", "fax": 2}
    fourth = {"schemaVersion": 4, "first": "Dan", "nick": ["d", "e"], "active": False}
    fifth = {"schemaVersion": 5, "first": "Eve", "nick": [], "nicks": 0}
    rows = [first, {"name": "Ada", "phone": None}, {}, {"schemaVersion": 1, **first}, second, third, fourth, fifth, {"schemaVersion": 9, "first": "Eve", "phone": "9"}]
    return [{"_id": number, **row} for number, row in enumerate(rows)]


def sorted_fields(value):
    """The steps say nothing about the order of fields."""
    if isinstance(value, dict):
        return {name: sorted_fields(inner) for name, inner in sorted(value.items())}
    return [sorted_fields(item) for item in value] if isinstance(value, list) else value


def by_id(rows):
    return sorted((sorted_fields(row) for row in rows), key=lambda row: row["_id"])


def declared(database):
    folder = pathlib.Path(state) / "printed" / database
    folder.mkdir(parents=True, exist_ok=True)
    text = (HERE / "versions.yaml").read_text().replace("database: printed_versions", f"database: {database}")
    (folder / "pleach.yaml").write_text(text)
    return folder


def given(client):
    """What Pleach shows of the documents, all and filtered."""
    name = "printed_versions"
    folder = declared(name)
    client.drop_database(name)
    client[name].users.insert_many(documents())
    server = subprocess.Popen([pleach, "serve", "--port", "0", "--upstream", uri], stdout=subprocess.PIPE, text=True)
    try:
        address = next(found[0] for line in server.stdout if (found := re.search(r"mongodb://\S+", line)))
        with MongoClient(address) as through:
            through.admin.command("pleach", "apply", declaration=(folder / "pleach.yaml").read_text())
            while any(rule["state"] != "on" for rule in through[name].command("pleach", "status")["rules"]):
                time.sleep(0.1)
            users = through[name].users
            answers = by_id(users.find()), by_id(users.find(FILTER))
            through[name].command("pleach", "drop", rule="users.versions")
            return answers
    finally:
        server.terminate()
        server.wait()
        client.drop_database(name)


def python(code, folder):
    (folder / "code.py").write_text(code)
    spec = importlib.util.spec_from_file_location("printed_versions", folder / "code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.find_newest_users(), module.find_newest_users(FILTER)
    module.create_indexes()
    module.migrate_users()
    module.client.close()
    return found


TAIL = """
;(async () => {
  const found = [await findNewestUsers(), await findNewestUsers(%s)];
  await createIndexes();
  await migrateUsers();
  console.log("found:" + %s.stringify(found, { relaxed: false }));
})()%s;
"""


def answered(output):
    return json_util.loads(next(line for line in output.splitlines() if line.startswith("found:"))[len("found:") :])


def node(code, folder):
    program = pathlib.Path(state) / "node" / "versions_printed.cjs"
    stringify = 'require("mongodb").BSON.EJSON'
    # The code's own end closes the client.
    code = re.sub(r"(?m)^if \(require\.main.*\n", "", code)
    program.write_text(code + TAIL % (json_util.dumps(FILTER), stringify, ".finally(() => client.close())"))
    return answered(subprocess.run(["node", str(program)], check=True, capture_output=True, text=True, timeout=60).stdout)


def mongosh(code, folder):
    (folder / "code.js").write_text(code + TAIL % (json_util.dumps(FILTER), "EJSON", ""))
    shell = pathlib.Path(state) / "node" / "node_modules" / ".bin" / "mongosh"
    command = [str(shell), "--quiet", "--norc", uri, str(folder / "code.js")]
    return answered(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)


def main():
    os.environ["MONGODB_URI"] = uri
    with MongoClient(uri) as client:
        all_rows, some = given(client)
        assert len(all_rows) == len(documents()) and 0 < len(some) < len(all_rows), (all_rows, some)
        for language in (python, node, mongosh):
            name = f"printed_versions_{language.__name__}"
            client.drop_database(name)
            client[name].users.insert_many(documents())
            folder = declared(name)
            command = [pleach, "plan", "--declare", str(folder / "pleach.yaml"), "--as", language.__name__]
            found, filtered = language(subprocess.run(command, check=True, capture_output=True, text=True).stdout, folder)
            assert by_id(found) == all_rows, f"{language.__name__}: {by_id(found)}\ninstead of {all_rows}"
            assert by_id(filtered) == some, f"{language.__name__}: {by_id(filtered)}\ninstead of {some}"
            stored = by_id(client[name].users.find())
            assert stored == all_rows, f"{language.__name__} stores {stored}\ninstead of {all_rows}"
            print(f"printed versions: {language.__name__} gives what Pleach gives")
            client.drop_database(name)


main()
