"""Days as field names: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys
from datetime import datetime

from pymongo import MongoClient, UpdateOne
from pymongo.errors import OperationFailure

shop = MongoClient(sys.argv[1]).shop
FIFTH, SIXTH = datetime(2026, 2, 5), datetime(2026, 2, 6)
# Series and quarter as bytes: 00A1, 2026, 01.
BUCKET = bytes.fromhex("00A1" + "2026" + "01")


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


show("what clients see", shop.events.find_one({"key": "00A1", "date": FIFTH}), {
    "_id": {"key": "00a1", "date": FIFTH}, "key": "00a1", "date": FIFTH, "approved": 2, "noFunds": 1,
})
show("what is stored", shop.events_buckets.find_one({"_id": BUCKET}), {
    "_id": BUCKET, "items": {"0205": {"a": 2, "n": 1}, "0206": {"p": 1}},
})

shop.events.bulk_write([
    UpdateOne({"key": "00A1", "date": SIXTH}, {"$inc": {"approved": 1}}, upsert=True),
    UpdateOne({"key": "00A1", "date": datetime(2026, 4, 1)}, {"$inc": {"approved": 5}}, upsert=True),
], ordered=False)
show("added up", shop.events_buckets.find_one({"_id": BUCKET})["items"]["0206"], {"p": 1, "a": 1})
show("another quarter is another bucket", shop.events_buckets.count_documents({}), 3)

report = [
    {"$match": {"key": "00A1", "date": {"$gte": FIFTH, "$lt": datetime(2026, 4, 2)}}},
    {"$group": {"_id": None, "approved": {"$sum": "$approved"}, "noFunds": {"$sum": "$noFunds"}}},
]
show("a report", list(shop.events.aggregate(report)), [{"_id": None, "approved": 8, "noFunds": 1}])

shop.events.delete_one({"key": "00A1", "date": FIFTH})
show("a day less", list(shop.events_buckets.find_one({"_id": BUCKET})["items"]), ["0206"])

for what, event in [
    ("an unknown sum", {"key": "00A1", "date": SIXTH, "refunded": 1}),
    ("text instead of a number", {"key": "00A1", "date": SIXTH, "approved": "one"}),
    ("a key that is not hex", {"key": "user", "date": SIXTH, "approved": 1}),
]:
    try:
        shop.events.insert_one(event)
        raise SystemExit(f"{what} was taken")
    except OperationFailure as error:
        print(f"{what} is refused: {error.details['errmsg']}")
