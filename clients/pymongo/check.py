"""PyMongo against a server: what an application does, each step asserted."""
import sys
import threading

import bson
import pymongo
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

client = pymongo.MongoClient(sys.argv[1], serverSelectionTimeoutMS=5000)
client.admin.command("ping")
db = client["client_check_pymongo"]
client.drop_database(db.name)


def crud():
    users = db.users
    one = users.insert_one({"name": "Ada", "tags": ["a", "b"], "n": 1})
    assert isinstance(one.inserted_id, bson.ObjectId)
    many = users.insert_many([{"_id": i, "n": i, "even": i % 2 == 0} for i in range(500)])
    assert len(many.inserted_ids) == 500
    assert users.count_documents({}) == 501 and users.estimated_document_count() == 501
    assert users.find_one({"_id": one.inserted_id})["name"] == "Ada"
    assert [d["_id"] for d in users.find({"n": {"$gte": 495}}).sort("n", -1)] == [499, 498, 497, 496, 495]
    # Several batches through getMore.
    assert len(list(users.find({"_id": {"$type": "int"}}, batch_size=37))) == 500
    r = users.update_one({"_id": 1}, {"$inc": {"n": 5}, "$push": {"log": "x"}})
    assert (r.matched_count, r.modified_count) == (1, 1)
    r = users.update_many({"even": True}, {"$set": {"half": True}})
    assert (r.matched_count, r.modified_count) == (250, 250)
    r = users.update_one({"_id": "new"}, {"$setOnInsert": {"made": True}}, upsert=True)
    assert r.upserted_id == "new"
    r = users.replace_one({"_id": 2}, {"n": "replaced"})
    assert r.modified_count == 1 and users.find_one({"_id": 2}) == {"_id": 2, "n": "replaced"}
    assert users.find_one_and_update({"_id": 3}, {"$set": {"x": 1}}, return_document=True)["x"] == 1
    assert users.find_one_and_delete({"_id": 4})["_id"] == 4
    assert users.delete_many({"n": {"$lt": 100}}).deleted_count == 99
    assert users.distinct("even") == [False, True]


def types():
    from datetime import datetime, timezone
    from decimal import Decimal

    import uuid
    doc = {
        "_id": bson.ObjectId(), "int": 1, "long": bson.Int64(1 << 40), "double": -0.5, "decimal": bson.Decimal128(Decimal("1.50")),
        "text": "héllo\U0001f600", "bytes": b"\x00\xff", "when": datetime(2020, 2, 29, 12, tzinfo=timezone.utc), "null": None,
        "regex": bson.Regex("^a", "i"), "ts": bson.Timestamp(5, 6), "min": bson.MinKey(), "max": bson.MaxKey(), "code": bson.Code("f()"),
        "uuid": bson.Binary.from_uuid(uuid.UUID(int=7)), "deep": {"a": [{"b": [[1, 2], []]}]},
    }
    raw = db.get_collection("types", codec_options=bson.CodecOptions(tz_aware=True))
    raw.insert_one(doc)
    assert raw.find_one({"_id": doc["_id"]}) == doc


def aggregation():
    db.orders.insert_many([{"c": i % 3, "amount": i, "items": [{"p": i}, {"p": i + 1}]} for i in range(30)])
    db.customers.insert_many([{"_id": i, "name": f"c{i}"} for i in range(3)])
    rows = list(db.orders.aggregate([
        {"$match": {"amount": {"$gte": 10}}},
        {"$group": {"_id": "$c", "total": {"$sum": "$amount"}, "n": {"$sum": 1}, "avg": {"$avg": "$amount"}}},
        {"$lookup": {"from": "customers", "localField": "_id", "foreignField": "_id", "as": "customer"}},
        {"$set": {"customer": {"$first": "$customer.name"}}},
        {"$sort": {"_id": 1}},
    ]))
    assert rows == [
        {"_id": 0, "total": 12 + 15 + 18 + 21 + 24 + 27, "n": 6, "avg": 19.5, "customer": "c0"},
        {"_id": 1, "total": 10 + 13 + 16 + 19 + 22 + 25 + 28, "n": 7, "avg": 19.0, "customer": "c1"},
        {"_id": 2, "total": 11 + 14 + 17 + 20 + 23 + 26 + 29, "n": 7, "avg": 20.0, "customer": "c2"},
    ], rows
    assert list(db.orders.aggregate([{"$unwind": "$items"}, {"$count": "n"}])) == [{"n": 60}]
    db.orders.aggregate([{"$group": {"_id": "$c", "t": {"$sum": "$amount"}}}, {"$merge": "totals"}])
    assert db.totals.count_documents({}) == 3


def indexes():
    c = db.indexed
    assert c.create_index([("a", 1), ("b", -1)]) == "a_1_b_-1"
    c.create_index("email", unique=True, partialFilterExpression={"email": {"$exists": True}})
    c.insert_many([{"a": i % 10, "b": i, "email": f"{i}@x"} for i in range(100)])
    assert set(c.index_information()) == {"_id_", "a_1_b_-1", "email_1"}
    try:
        c.insert_one({"email": "5@x"})
        raise AssertionError("a duplicate was accepted")
    except DuplicateKeyError as error:
        assert error.code == 11000 and error.details["keyPattern"] == {"email": 1}
    plan = c.find({"a": 3}).sort("b", -1).explain()
    assert "IXSCAN" in str(plan["queryPlanner"]["winningPlan"]), plan
    c.drop_index("a_1_b_-1")
    assert "a_1_b_-1" not in c.index_information()


def transactions():
    c = db.accounts
    c.insert_many([{"_id": "a", "v": 10}, {"_id": "b", "v": 0}])
    with client.start_session() as session:
        def move(s):
            c.update_one({"_id": "a"}, {"$inc": {"v": -3}}, session=s)
            c.update_one({"_id": "b"}, {"$inc": {"v": 3}}, session=s)
            assert c.find_one({"_id": "b"}, session=s)["v"] == 3
            assert c.find_one({"_id": "b"})["v"] == 0
        session.with_transaction(move)
        assert c.find_one({"_id": "b"})["v"] == 3
        session.start_transaction()
        c.delete_many({}, session=session)
        session.abort_transaction()
    assert c.count_documents({}) == 2
    # Two transactions on one document: the second writer is told to try again.
    with client.start_session() as one, client.start_session() as two:
        one.start_transaction(); two.start_transaction()
        c.update_one({"_id": "a"}, {"$inc": {"v": 1}}, session=one)
        try:
            c.update_one({"_id": "a"}, {"$inc": {"v": 1}}, session=two)
            raise AssertionError("a write conflict was missed")
        except OperationFailure as error:
            assert error.code == 112 and error.has_error_label("TransientTransactionError")
        one.commit_transaction()


def bulk():
    c = db.bulk
    result = c.bulk_write([InsertOne({"_id": 1}), InsertOne({"_id": 2}), UpdateOne({"_id": 1}, {"$set": {"x": 1}}),
                           UpdateMany({}, {"$inc": {"n": 1}}), ReplaceOne({"_id": 3}, {"r": 1}, upsert=True), DeleteOne({"_id": 2})])
    assert (result.inserted_count, result.modified_count, result.upserted_count, result.deleted_count) == (2, 3, 1, 1)
    try:
        c.bulk_write([InsertOne({"_id": 1}), InsertOne({"_id": 9}), InsertOne({"_id": 9})], ordered=False)
        raise AssertionError("duplicates were accepted")
    except BulkWriteError as error:
        assert [e["index"] for e in error.details["writeErrors"]] == [0, 2] and error.details["nInserted"] == 1


def errors():
    for command, code in [({"nonsense": 1}, 59), ({"find": "x", "filter": {"$bad": 1}}, 2), ({"find": "x", "unknownField": 1}, 40415)]:
        try:
            db.command(command)
            raise AssertionError(command)
        except OperationFailure as error:
            assert error.code == code, (command, error.code)


def admin():
    assert db.name in client.list_database_names()
    assert "users" in db.list_collection_names()
    db.create_collection("checked", validator={"$jsonSchema": {"required": ["name"]}})
    try:
        db.checked.insert_one({})
        raise AssertionError("the validator was not used")
    except OperationFailure as error:
        assert error.code == 121
    db.create_collection("cheap", viewOn="orders", pipeline=[{"$match": {"amount": {"$lt": 5}}}])
    assert db.cheap.count_documents({}) == 5
    assert db.command("dbStats")["collections"] > 3
    assert db.command("validate", "users")["valid"] is True
    assert client.server_info()["version"].startswith("6.")


def threads():
    def work(k):
        for i in range(50):
            db.counters.update_one({"_id": "hot"}, {"$inc": {"n": 1}}, upsert=True)
    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert db.counters.find_one({"_id": "hot"})["n"] == 400


for step in (crud, types, aggregation, indexes, transactions, bulk, errors, admin, threads):
    step()
    print(f"pymongo {step.__name__}: ok")
client.drop_database(db.name)
