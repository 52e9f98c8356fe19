"""mongodump and mongorestore: what is dumped comes back the same, indexes and options included."""
import os
import subprocess
import sys
import tempfile

import bson
import pymongo

uri, tools = sys.argv[1:3]
client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=5000)
name = "client_check_tools"
client.drop_database(name)
db = client[name]
db.create_collection("checked", validator={"n": {"$gte": 0}}, validationLevel="moderate")
db.checked.insert_many([{"_id": i, "n": i, "deep": {"a": [i, {"b": bson.Decimal128("1.5")}]}} for i in range(1000)])
db.checked.create_index([("n", -1), ("deep.a", 1)], name="both")
db.checked.create_index("n", unique=True, partialFilterExpression={"n": {"$gt": 10}}, name="part")
db.other.insert_one({"_id": "x", "when": bson.Timestamp(1, 2)})


def state():
    return {
        c["name"]: (c["options"], sorted((i["name"], str(i)) for i in db[c["name"]].list_indexes()), list(db[c["name"]].find().sort("_id")))
        for c in db.list_collections()
    }


before = state()
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([os.path.join(tools, "mongodump"), "--quiet", "--uri", uri, "--db", name, "--out", folder], check=True)
    client.drop_database(name)
    assert state() == {}
    subprocess.run([os.path.join(tools, "mongorestore"), "--quiet", "--uri", uri, folder], check=True)
assert state() == before
client.drop_database(name)
print("tools dump and restore: ok")
