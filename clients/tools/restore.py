"""mongodump and mongorestore of a database with rules: into the same Pleach, a fresh one and a plain MongoDB.

python3 restore.py TOOLS PLEACH [UPSTREAM]: starts the servers itself; with UPSTREAM in front of that MongoDB.
"""
import contextlib
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time

import bson
import pymongo
from pymongo.errors import BulkWriteError, OperationFailure

tools, pleach = sys.argv[1:3]
upstream = sys.argv[3] if len(sys.argv) > 3 else None
NAME = "client_check_restore"

DECLARATION = {
    "database": NAME,
    "collections": {
        "products": {
            "computed": {
                "reviewCount": {"count": "reviews", "by": "productId"},
                "avgRating": {"avg": "rating", "from": "reviews", "by": "productId"},
                "sold": {"sum": "amount", "from": "sales", "by": "productId", "lag": "1s"},
            }
        },
        "orders": {
            "extended_reference": {
                "customer": {"from": "customers", "by": "customerId", "fields": ["name"]},
                "product": {"from": "products", "by": "sku", "match": "sku", "fields": ["price"], "when_changed": "keep"},
            }
        },
        "sensor_data": {
            "bucket": {
                "into": "sensor_hours",
                "time": "ts",
                "by": ["sensorId"],
                "every": "hour",
                "at_most": 7,
                "stats": {"temp": ["min", "max", "avg"]},
            }
        },
        "events": {
            "bucket": {
                "time": "date",
                "by": [{"field": "key", "as": "hex"}],
                "every": "quarter",
                "slot": "day",
                "sum": {"approved": "a"},
                "layout": "field_names",
                "bucket_id": "packed",
            }
        },
    },
}
RULES = 7


@contextlib.contextmanager
def serving(*options):
    """A server of its own."""
    command = [pleach, "serve", "--port", "0", *(["--upstream", upstream] if upstream else []), *options]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            uri = None
            for line in server.stdout:
                if found := re.search(r"mongodb://\S*", line):
                    uri = found.group()
                    break
            assert uri, "the server did not start"
            yield uri
        finally:
            server.terminate()
            server.wait(30)
            if os.environ.get("PLEACH_SHOW_LOG"):
                log.seek(0)
                print(log.read())


def connect(uri, **options):
    return pymongo.MongoClient(uri, serverSelectionTimeoutMS=5000, **options)


def tool(name, uri, *options, codes=(0,)):
    done = subprocess.run([os.path.join(tools, name), "--uri", uri, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode in codes, f"{name} {options}: exit {done.returncode}\n{done.stderr}"
    assert "failed to restore" not in done.stderr or codes != (0,) or " 0 document(s) failed" in done.stderr, done.stderr
    return done.stderr


def fill(client):
    db = client[NAME]
    for name in ("products", "reviews", "sales", "customers", "orders"):
        db.create_collection(name)
    db.reviews.create_index("written", expireAfterSeconds=10_000_000, name="old")
    db.products.create_index("sku", unique=True, sparse=True, name="own_sku")
    client.admin.command({"pleach": "apply", "declaration": DECLARATION})
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0, tzinfo=None)
    db.products.insert_many([{"_id": i, "sku": f"s{i}", "price": i} for i in range(20)] + [{"_id": 100}, {"_id": 101}])
    db.reviews.insert_many([{"productId": i % 20, "rating": i % 7 + 0.1, "written": now} for i in range(200)])
    db.sales.insert_many([{"productId": i % 5, "amount": i} for i in range(50)])
    db.customers.insert_many([{"_id": i, "name": f"c{i}"} for i in range(10)])
    db.orders.insert_many([{"_id": i, "customerId": i % 10, "sku": f"s{i % 20}"} for i in range(60)])
    db.products.update_one({"_id": 1}, {"$set": {"price": 999}})
    db.customers.update_one({"_id": 3}, {"$set": {"name": "Ada"}})
    start = datetime.datetime(2024, 3, 1)
    db.sensor_data.insert_many(
        [{"_id": i, "sensorId": i % 3, "ts": start + datetime.timedelta(minutes=i), "temp": i / 10} for i in range(100)]
    )
    db.events.insert_many(
        [{"key": "00ABCDEF", "date": start + datetime.timedelta(days=i), "approved": i + 1} for i in range(30)]
    )
    wait_for_outbox(client)


def wait_for_outbox(client):
    for _ in range(200):
        if client[NAME].command({"pleach": "status"})["outbox"]["pending"] == 0:
            return
        time.sleep(0.05)
    raise AssertionError("the outbox does not get empty")


def state(client, name=NAME):
    """All that a client sees, but for the catalog."""
    db = client[name]
    found = {}
    for row in db.list_collections():
        if row["name"] in ("pleach.catalog", "system.views"):
            continue
        assert not row["name"].startswith("pleach."), row
        is_view = row["type"] == "view"
        indexes = [] if is_view else sorted(str(sorted(index.items())) for index in db[row["name"]].list_indexes())
        documents = sorted((bson.encode(document) for document in db[row["name"]].find()))
        # As a document: mongorestore gives the keys inside of options in any order.
        found[row["name"]] = (row["type"], row["options"].get("validator"), indexes, documents)
    return found


def same(client, before, name=NAME):
    # Answered when the rules are in force.
    client[name].command({"pleach": "status"})
    now = state(client, name)
    assert now.keys() == before.keys(), (now.keys(), before.keys())
    for collection, (kind, validator, indexes, documents) in before.items():
        assert now[collection][:3] == (kind, validator, indexes), (collection, now[collection][:3], (kind, validator, indexes))
        if now[collection][3] != documents:
            difference = [bson.decode(raw) for raw in set(now[collection][3]) ^ set(documents)]
            raise AssertionError((collection, difference[:4]))


def in_force(client, name=NAME):
    """The rules are on, everything is as it should be, and stays so."""
    db = client[name]
    rules = db.command({"pleach": "status"})["rules"]
    assert len(rules) == RULES and all(rule["state"] == "on" for rule in rules), rules
    audit = db.command({"pleach": "audit"})
    assert audit["drifted"] == 0 and audit["checked"] > 0, audit
    before = db.products.find_one({"_id": 7})["reviewCount"]
    db.reviews.insert_one({"_id": "new", "productId": 7, "rating": 1})
    assert db.products.find_one({"_id": 7})["reviewCount"] == before + 1
    db.reviews.delete_one({"_id": "new"})
    assert db.products.find_one({"_id": 7})["reviewCount"] == before
    readings = db.sensor_data.count_documents({})
    db.sensor_data.insert_one({"_id": "new", "sensorId": 1, "ts": datetime.datetime(2024, 3, 1), "temp": 5})
    assert db.sensor_data.count_documents({}) == readings + 1
    db.sensor_data.delete_one({"_id": "new"})
    assert db.orders.find_one({"_id": 1})["product"] == {"price": 1}, "a frozen copy is as it was"
    audit = db.command({"pleach": "audit"})
    assert audit["drifted"] == 0, audit


def empty(client):
    """Without rules and without documents, as a new Pleach would be."""
    for name in (NAME, NAME + "_2"):
        client.admin.command({"pleach": "uninstall", "databases": [name], "forget": True})
        client.drop_database(name)
        assert state(client, name) == {} and name not in client.list_database_names()


def damage(client):
    """What happens between a dump and its restore."""
    db = client[NAME]
    db.reviews.delete_many({"productId": {"$lt": 9}})
    db.reviews.insert_one({"productId": 12, "rating": 5})
    db.products.delete_one({"_id": 2})
    db.customers.update_many({}, {"$set": {"name": "nobody"}})
    db.sensor_data.delete_many({"sensorId": 1})
    db.sensor_data.insert_one({"sensorId": 2, "ts": datetime.datetime(2024, 3, 1, 9), "temp": 40})
    wait_for_outbox(client)


def dump_and_restore(folder):
    with serving() as uri:
        client = connect(uri)
        empty(client)
        fill(client)
        before = state(client)
        in_force(client)
        before_again = state(client)
        tree, archive = os.path.join(folder, "tree"), os.path.join(folder, "archive.gz")
        tool("mongodump", uri, "--db", NAME, "--out", tree)
        tool("mongodump", uri, "--db", NAME, f"--archive={archive}", "--gzip")
        assert sorted(os.listdir(os.path.join(tree, NAME)))[:2] and "pleach.fences.bson" not in os.listdir(os.path.join(tree, NAME))
        same(client, before_again)
        forms = {"folder": [tree], "archive": [f"--archive={archive}", "--gzip"]}
        for form, options in forms.items():
            # Everything is there already: what is there stays.
            tool("mongorestore", uri, *options, codes=(0, 1))
            same(client, before_again)
            in_force(client)
            damage(client)
            tool("mongorestore", uri, "--drop", *options)
            same(client, before_again)
            in_force(client)
            print(f"  into the same, {form}: ok")
        rename = ["--nsFrom", f"{NAME}.*", "--nsTo", f"{NAME}_2.*"]
        tool("mongorestore", uri, *rename, tree)
        same(client, before_again, NAME + "_2")
        in_force(client, NAME + "_2")
        print("  under another name: ok")
        empty(client)
        assert before.keys() == before_again.keys()
    return forms, before_again


def restore_fresh(forms, before):
    for form, options in forms.items():
        for drop in ([], ["--drop"]):
            with serving() as uri:
                client = connect(uri)
                assert state(client) == {}
                tool("mongorestore", uri, *drop, *options)
                same(client, before)
                in_force(client)
                empty(client)
            print(f"  into a fresh one, {form} {' '.join(drop)}: ok")


def restore_plain(forms, before, mongodb):
    """Into a MongoDB without Pleach; then one in front of it."""
    plain = connect(mongodb)
    for form, options in forms.items():
        plain.drop_database(NAME)
        tool("mongorestore", mongodb, *options)
        db = plain[NAME]
        # mongorestore gives the fields of a view's stages any order.
        readings = {reading["_id"]: reading for reading in db.sensor_data.find()}
        assert readings == {reading["_id"]: reading for reading in map(bson.decode, before["sensor_data"][3])}
        assert db.events.count_documents({}) == len(before["events"][3])
        assert sorted(bson.encode(product) for product in db.products.find()) == before["products"][3]
        if upstream:
            with serving() as uri:
                client = connect(uri)
                in_force(client)
                empty(client)
        plain.drop_database(NAME)
        print(f"  into a plain MongoDB, {form}: ok")


def restore_what_was_dumped_beneath(folder):
    """A dump of the MongoDB itself has all bookkeeping: none of it does harm."""
    tree = os.path.join(folder, "beneath")
    with serving() as uri:
        client = connect(uri)
        fill(client)
        before = state(client)
        tool("mongodump", upstream, "--db", NAME, "--out", tree)
        assert os.path.exists(os.path.join(tree, NAME, "pleach.fences.bson"))
        damage(client)
        tool("mongorestore", uri, "--drop", tree)
        same(client, before)
        in_force(client)
        empty(client)
        tool("mongorestore", uri, tree)
        same(client, before)
        in_force(client)
        empty(client)
        tool("mongorestore", upstream, tree)
    with serving() as uri:
        client = connect(uri)
        in_force(client)
        empty(client)
    print("  a dump made beneath: ok")


def time_series(folder):
    """Time-series collections of the embedded store: their buckets are another collection of the dump."""
    tree = os.path.join(folder, "series")
    with serving() as uri:
        client = connect(uri)
        db = client[NAME]
        for name in ("first", "second", "third"):
            db.create_collection(name, timeseries={"timeField": "ts", "metaField": "sensor"})
            db[name].insert_many(
                [{"ts": datetime.datetime(2024, 1, 1, i // 60, i % 60), "sensor": i % 2, "t": i} for i in range(200)]
            )
        before = state(client)
        tool("mongodump", uri, "--db", NAME, "--out", tree)
        db.first.delete_many({"sensor": 1})
        for drop in (["--drop"], []):
            tool("mongorestore", uri, *drop, tree)
            same(client, before)
            client.drop_database(NAME)
        tool("mongorestore", uri, "--drop", tree)
        same(client, before)
        db.second.insert_one({"ts": datetime.datetime(2024, 1, 1), "sensor": 5})
        assert db.second.count_documents({}) == 201
        client.drop_database(NAME)
    print("  time-series collections: ok")


def refusals():
    """Only what restores may write rules, and only rules."""
    with serving() as uri:
        client = connect(uri)
        fill(client)
        before = state(client)
        row = client[NAME]["pleach.catalog"].find_one({"_id": "products.reviewCount"})
        restoring = connect(uri, appname="mongorestore")
        for refused, told in [
            ({**row, "_id": "products.other"}, "declares the rule"),
            ({**row, "_id": "products.forged", "declaration": {"database": NAME, "collections": {"products": {"computed": {"forged": {"cuont": "reviews"}}}}}}, "cuont"),
            ({"_id": "products.forged"}, "does not understand"),
            ({**row, "declaration": {"database": NAME, "collections": {"products": {"computed": {"reviewCount": {"count": "sales", "by": "productId"}}}}}}, "declared differently"),
        ]:
            try:
                restoring[NAME]["pleach.catalog"].insert_many([refused])
                raise AssertionError(refused)
            except BulkWriteError as error:
                assert told in str(error.details), (told, error.details)
        for write in (
            lambda: client[NAME]["pleach.catalog"].insert_one(row),
            lambda: client[NAME].reviews.drop(),
            lambda: client[NAME].sensor_hours.insert_one(client[NAME].sensor_hours.find_one() | {"_id": {"n": 9}}),
            lambda: restoring[NAME].sensor_hours.insert_one({"_id": 1, "any": "thing"}),
            lambda: restoring[NAME]["pleach.catalog"].delete_many({}),
        ):
            try:
                write()
                raise AssertionError("not refused")
            except OperationFailure:
                pass
        restoring.close()
        same(client, before)
        in_force(client)
        empty(client)
    print("  what is no rule is refused: ok")


with tempfile.TemporaryDirectory() as folder:
    forms, before = dump_and_restore(folder)
    restore_fresh(forms, before)
    mongodb = upstream or os.environ.get("PLEACH_TEST_MONGODB_URI")
    if mongodb:
        restore_plain(forms, before, mongodb)
    if upstream:
        restore_what_was_dumped_beneath(folder)
    else:
        time_series(folder)
    refusals()
print("tools dump and restore with rules: ok")
