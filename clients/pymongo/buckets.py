"""Buckets as a PyMongo user meets them: readings go in and come out, the stored documents are those of the pattern literature.

python3 buckets.py URI [seconds]: named cases first, then random operations on a bucket collection and on a plain one beside
it, which must answer alike.
"""

import datetime
import random
import sys
import threading
import time

import pymongo
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError, OperationFailure

from patterns import check, code, wait_until_on

NAME = "bucket_check"

DECLARATION = {
    "database": NAME,
    "collections": {
        "sensor_data": {
            "bucket": {
                "into": "sensor_hours",
                "time": "ts",
                "by": ["sensorId"],
                "every": "hour",
                "at_most": 60,
                "unit": {"minute": "m"},
                "reading_id": "time",
                "stats": {"temp": ["min", "max", "avg"]},
            }
        },
        "samples": {
            "bucket": {
                "time": "ts",
                "by": ["sensorId", "place"],
                "every": "day",
                "at_most": 7,
                "stats": {"temp": ["count", "sum", "min", "max", "avg", "last"]},
            }
        },
        "events": {
            "bucket": {
                "time": "date",
                "by": [{"field": "key", "as": "hex"}],
                "every": "quarter",
                "slot": "day",
                "sum": {"approved": "a", "noFunds": "n", "pending": "p", "rejected": "r"},
                "layout": "field_names",
                "bucket_id": "packed",
            }
        },
        "monthly": {
            "bucket": {
                "time": "date",
                "by": ["key"],
                "every": "month",
                "slot": "day",
                "sum": {"approved": "a", "rejected": "r"},
                "layout": "field_names",
            }
        },
        "days": {
            "bucket": {
                "time": "date",
                "by": ["key"],
                "every": "quarter",
                "slot": "day",
                "sum": {"approved": "a", "rejected": "r"},
                "layout": "array",
            }
        },
        "visits": {
            "bucket": {
                "time": "date",
                "by": ["page"],
                "every": "day",
                "slot": {"field": "country", "keys": "^[A-Z]{2}$", "at_most": 3},
                "sum": {"hits": "h"},
                "layout": "field_names",
            }
        },
    },
}


def at(hour, minute=0, second=0, ms=0, day=1, month=3, year=2024):
    return datetime.datetime(year, month, day, hour, minute, second, ms * 1000)


def day(year, month, number):
    return datetime.datetime(year, month, number)


def ready(db):
    wait_until_on(db)
    audit = db.command({"pleach": "audit"})
    check("audit", (audit["drifted"], list(audit["drift"])), (0, []))


def literature(client, db):
    """61 readings at 60 are 60 and 1, shaped as in the books."""
    for minute in range(60):
        db.sensor_data.insert_one({"sensorId": "A", "ts": at(10, minute), "temp": 20 + minute % 7, "humid": 40})
    stored = list(db.sensor_hours.find({"sensorId": "A"}))
    check("one bucket", len(stored), 1)
    bucket = stored[0]
    check("fields", sorted(bucket), ["_id", "count", "hour", "readings", "sensorId", "stats"])
    check("_id", bucket["_id"], {"sensorId": "A", "hour": at(10), "n": 0})
    check("hour, count", (bucket["hour"], bucket["count"]), (at(10), 60))
    check("reading", bucket["readings"][5], {"m": 5, "temp": 25, "humid": 40})
    temps = [20 + minute % 7 for minute in range(60)]
    check("stats", bucket["stats"], {"minTemp": 20, "maxTemp": 26, "avgTemp": sum(temps) / 60})
    check("logical", db.sensor_data.find_one({"ts": at(10, 5)}),
          {"_id": {"sensorId": "A", "ts": at(10, 5)}, "sensorId": "A", "ts": at(10, 5), "temp": 25, "humid": 40})
    error = code("the same time again", 11000, lambda: db.sensor_data.insert_one({"sensorId": "A", "ts": at(10, 5), "temp": 1}))
    assert isinstance(error, DuplicateKeyError), error
    code("not a whole minute", 2, lambda: db.sensor_data.insert_one({"sensorId": "A", "ts": at(10, 5, 3), "temp": 1}))
    code("no date", 2, lambda: db.sensor_data.insert_one({"sensorId": "A", "ts": "today", "temp": 1}))
    code("the offset's name", 2, lambda: db.sensor_data.insert_one({"sensorId": "A", "ts": at(11, 5), "m": 1}))
    check("unchanged by refusals", db.sensor_data.count_documents({}), 60)
    db.sensor_data.insert_one({"sensorId": "A", "ts": at(12), "temp": 5})
    found = list(db.sensor_hours.find({"sensorId": "A", "hour": {"$gte": at(11)}}).sort("hour", -1))
    check("the literature's query", [bucket["hour"] for bucket in found], [at(12)])
    # Nobody writes past it.
    code("the stored collection", 96, lambda: db.sensor_hours.update_one({}, {"$set": {"count": 1}}))
    check("count", (db.sensor_data.estimated_document_count(), db.sensor_data.count_documents({})), (61, 61))
    check("distinct", sorted(db.sensor_data.distinct("temp", {"sensorId": "A", "ts": {"$lt": at(11)}})), list(range(20, 27)))
    # Edits and deletes of single readings.
    check("updated", db.sensor_data.update_one({"sensorId": "A", "ts": at(10, 6)}, {"$set": {"temp": 99}}).modified_count, 1)
    check("stats follow", db.sensor_hours.find_one({"hour": at(10)})["stats"]["maxTemp"], 99)
    check("deleted", db.sensor_data.delete_one({"temp": 99}).deleted_count, 1)
    bucket = db.sensor_hours.find_one({"hour": at(10)})
    check("after the delete", (bucket["count"], bucket["stats"]["maxTemp"], len(bucket["readings"])), (59, 26, 59))
    check("all", db.sensor_data.delete_many({"sensorId": "A", "ts": {"$gte": at(12)}}).deleted_count, 1)
    check("an emptied bucket disappears", db.sensor_hours.count_documents({}), 1)
    # A bucket's place is its series and period: a moved reading moves.
    db.sensor_data.update_one({"ts": at(10, 7)}, {"$set": {"sensorId": "B"}})
    check("moved", db.sensor_hours.find_one({"sensorId": "B"})["readings"], [{"m": 7, "temp": 20, "humid": 40}])
    # $lookup out of it and into it.
    db.sensors.insert_many([{"_id": "A", "name": "north"}, {"_id": "B", "name": "south"}])
    joined = list(db.sensor_data.aggregate([
        {"$match": {"sensorId": "B"}},
        {"$lookup": {"from": "sensors", "localField": "sensorId", "foreignField": "_id", "as": "sensor"}},
        {"$project": {"_id": 0, "temp": 1, "name": {"$first": "$sensor.name"}}},
    ]))
    check("out of it", joined, [{"temp": 20, "name": "south"}])
    joined = list(db.sensors.aggregate([
        {"$lookup": {"from": "sensor_data", "localField": "_id", "foreignField": "sensorId", "as": "readings"}},
        {"$project": {"n": {"$size": "$readings"}}}, {"$sort": {"_id": 1}},
    ]))
    check("into it", joined, [{"_id": "A", "n": 58}, {"_id": "B", "n": 1}])
    found = db.sensor_data.find_one_and_update({"sensorId": "B"}, {"$inc": {"temp": 1}}, return_document=True)
    check("findAndModify", (found["temp"], found["ts"]), (21, at(10, 7)))
    check("removed", db.sensor_data.find_one_and_delete({"sensorId": "B"})["temp"], 21)
    code("indexes", 166, lambda: db.sensor_data.create_index("temp"))
    ready(db)


def transactions(client, db):
    before = db.samples.count_documents({})
    with client.start_session() as session:
        session.start_transaction()
        db.samples.insert_many([{"sensorId": 1, "ts": at(1, 0, 0, i), "temp": i} for i in range(20)], session=session)
        db.samples.update_many({"temp": {"$gte": 10}}, {"$inc": {"temp": 100}}, session=session)
        check("inside", db.samples.count_documents({"temp": {"$gte": 100}}, session=session), 10)
        check("outside", db.samples.count_documents({}), before)
        session.abort_transaction()
    check("aborted", (db.samples.count_documents({}), db.samples_buckets.count_documents({})), (before, 0))
    with client.start_session() as session:
        with session.start_transaction():
            db.samples.insert_many([{"sensorId": 1, "ts": at(1, 0, 0, i), "temp": i} for i in range(20)], session=session)
            db.samples.delete_one({"temp": 3}, session=session)
    check("committed", db.samples.count_documents({}), before + 19)
    check("buckets", sorted(bucket["count"] for bucket in db.samples_buckets.find()), [6, 6, 7])
    check("exact", db.samples.find_one({"temp": 7})["ts"], at(1, 0, 0, 7))
    db.samples.delete_many({})
    check("none left", db.samples_buckets.count_documents({}), 0)


def writers(client, db):
    """16 writers of one series: as few buckets as there can be, nothing lost, all figures right."""
    errors = []

    def write(writer):
        try:
            for number in range(30):
                reading = {"sensorId": "hot", "ts": at(5, 0, 0, number), "temp": writer * 100 + number, "w": writer}
                db.samples.insert_one(reading)
        except Exception as error:  # noqa: BLE001: told below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("writers", errors, [])
    counts = sorted(bucket["count"] for bucket in db.samples_buckets.find({"sensorId": "hot"}))
    check("buckets", counts, [480 % 7] + [7] * (480 // 7))
    check("readings", db.samples.count_documents({"sensorId": "hot"}), 480)
    check("each once", len(db.samples.distinct("temp", {"sensorId": "hot"})), 16 * 30)
    ready(db)
    db.samples.delete_many({})


def slots(client, db):
    key = "00" * 31 + "AB"
    db.events.insert_one({"key": key, "date": day(2022, 6, 5), "approved": 1})
    db.events.insert_one({"key": key.lower(), "date": datetime.datetime(2022, 6, 5, 13, 30), "approved": 2, "noFunds": 1})
    stored = list(db.events_buckets.find())
    packed = bytes.fromhex(key) + bytes.fromhex("202202")
    check("stored", stored, [{"_id": packed, "items": {"0605": {"a": 3, "n": 1}}}])
    lower = key.lower()
    check("logical", list(db.events.find()), [{"_id": {"key": lower, "date": day(2022, 6, 5)}, "key": lower,
                                               "date": day(2022, 6, 5), "approved": 3, "noFunds": 1}])
    for either in (key, lower):
        check("either case", db.events.count_documents({"key": either}), 1)
        check("either case in $in", db.events.count_documents({"key": {"$in": [either, "00"]}}), 1)
        check("either case in an update", db.events.update_one({"key": either}, {"$set": {"approved": 3}}).matched_count, 1)
    many = [UpdateOne({"key": key, "date": day(2020, 2, 29)}, {"$inc": {"pending": 1}}, upsert=True) for _ in range(5)]
    db.events.bulk_write(many, ordered=False)
    check("leap day", db.events.find_one({"date": day(2020, 2, 29)})["pending"], 5)
    for number in range(1, 13):
        db.events.insert_one({"key": key, "date": day(2021, number, 15), "approved": number})
    report = [{"$match": {"key": key, "date": {"$gte": day(2021, 2, 15), "$lt": day(2021, 11, 15)}}},
              {"$group": {"_id": None, "approved": {"$sum": "$approved"}, "noFunds": {"$sum": "$noFunds"}}}]
    check("report", list(db.events.aggregate(report)), [{"_id": None, "approved": sum(range(2, 11)), "noFunds": 0}])
    check("set", db.events.update_one({"key": key, "date": day(2021, 3, 15)}, {"$set": {"approved": 30}}).modified_count, 1)
    check("unset", db.events.update_one({"date": day(2021, 4, 15)}, {"$unset": {"approved": 1}, "$inc": {"rejected": 2}}).modified_count, 1)
    check("deleted", db.events.delete_one({"date": day(2021, 5, 15)}).deleted_count, 1)
    check("report", list(db.events.aggregate(report))[0]["approved"], sum(range(2, 11)) - 3 + 30 - 4 - 5)
    code("a text", 14, lambda: db.events.insert_one({"key": key, "date": day(2021, 1, 1), "approved": "1"}))
    code("another field", 2, lambda: db.events.insert_one({"key": key, "date": day(2021, 1, 1), "other": 1}))
    code("no hex", 2, lambda: db.events.insert_one({"key": "xyz", "date": day(2021, 1, 1), "approved": 1}))
    for name in ("monthly", "days"):
        db[name].insert_many([{"key": "k", "date": day(2024, month, number), "approved": 1}
                              for month in (1, 2, 3) for number in (1, 15, 29)])
        check(f"{name} slots", db[name].count_documents({}), 9)
        check(f"{name} sum", list(db[name].aggregate([{"$group": {"_id": "$key", "n": {"$sum": "$approved"}}}])),
              [{"_id": "k", "n": 9}])
    check("month keys", sorted(db.monthly_buckets.find_one({"month": day(2024, 2, 1)})["items"]), ["01", "15", "29"])
    check("array", db.days_buckets.find_one()["items"][1], {"date": day(2024, 1, 15), "a": 1})
    for country in ("DE", "FR", "DE"):
        db.visits.insert_one({"page": "/", "date": at(4), "country": country, "hits": 2})
    check("countries", db.visits_buckets.find_one()["items"], {"DE": {"h": 4}, "FR": {"h": 2}})
    code("grammar", 121, lambda: db.visits.insert_one({"page": "/", "date": at(4), "country": "de", "hits": 2}))
    db.visits.insert_one({"page": "/", "date": at(4), "country": "IT", "hits": 1})
    code("bound", 121, lambda: db.visits.insert_one({"page": "/", "date": at(4), "country": "ES", "hits": 1}))
    ready(db)


def examined(client, db):
    """One day out of a year of readings touches one day's buckets."""
    readings = [{"sensorId": "year", "place": "x", "ts": datetime.datetime(2023, 1, 1) + datetime.timedelta(hours=6 * i), "temp": i}
                for i in range(4 * 365)]
    db.samples.insert_many(readings)
    query = {"sensorId": "year", "place": "x", "ts": {"$gte": day(2023, 7, 1), "$lt": day(2023, 7, 2)}}
    check("one day", db.samples.count_documents(query), 4)
    explained = db.command("explain", {"find": "samples", "filter": query}, verbosity="executionStats")
    check("buckets examined", explained["pleach"]["buckets"]["examined"], 1)
    db.samples.delete_many({"sensorId": "year"})


def reading(rng, number):
    made = {"_id": number, "ts": datetime.datetime(2024, 3, rng.randint(1, 3), rng.randint(0, 23), 0, 0, rng.randint(0, 999) * 1000)}
    series = rng.random()
    if series > 0.1:
        made["sensorId"] = rng.choice([1, 2, "s", None])
    if rng.random() > 0.3:
        made["place"] = rng.choice(["x", "y", {"room": 1}])
    if rng.random() > 0.1:
        made["temp"] = rng.choice([rng.randint(-5, 5), rng.random(), None, "n/a"])
    if rng.random() > 0.5:
        made["tags"] = [rng.choice("abc") for _ in range(rng.randint(0, 3))]
    if rng.random() > 0.7:
        made["deep"] = {"a": {"b": rng.randint(0, 3)}}
    return made


def a_filter(rng, top):
    when = datetime.datetime(2024, 3, rng.randint(1, 3), rng.randint(0, 23))
    return rng.choice([
        {},
        {"_id": rng.randint(0, top)},
        {"sensorId": rng.choice([1, 2, "s", None])},
        {"sensorId": {"$in": [1, "s"]}, "ts": {"$gte": when}},
        {"sensorId": rng.choice([1, 2]), "place": "x", "ts": {"$gte": when, "$lt": when + datetime.timedelta(hours=9)}},
        {"ts": {"$lt": when}, "temp": {"$gt": 0}},
        {"$or": [{"place": "y"}, {"temp": {"$lt": 0}, "sensorId": 2}]},
        {"tags": "a"},
        {"tags": {"$size": 2}},
        {"deep.a.b": {"$gte": 1}},
        {"place.room": 1},
        {"temp": {"$type": "double"}},
        {"sensorId": {"$exists": False}},
        {"$expr": {"$gt": ["$temp", "$_id"]}},
        {"$nor": [{"sensorId": 1}, {"place": None}]},
    ])


def an_update(rng):
    return rng.choice([
        {"$inc": {"n": 1}},
        {"$set": {"temp": rng.randint(-9, 9)}},
        {"$set": {"deep.a.b": rng.randint(0, 5)}},
        {"$unset": {"temp": 1}},
        {"$push": {"log": rng.randint(0, 9)}},
        {"$set": {"sensorId": rng.choice([1, 2, "s"])}},
        {"$set": {"ts": datetime.datetime(2024, 3, rng.randint(1, 3), rng.randint(0, 23), 1)}},
        {"$rename": {"temp": "warm"}},
        [{"$set": {"double": {"$multiply": [{"$ifNull": ["$n", 1]}, 2]}}}],
    ])


def outcome(action):
    figures = ("matched_count", "modified_count", "deleted_count", "upserted_id", "inserted_ids")
    try:
        result = action()
    except OperationFailure as error:
        return "error", [entry["code"] for entry in (error.details or {}).get("writeErrors", [])] or error.code
    if result is None or isinstance(result, dict):
        return result
    return {name: getattr(result, name) for name in figures if hasattr(result, name)}


def step(rng, db, number):
    """What to do to both collections, and how many ids it uses up."""
    action = rng.randint(0, 9)
    if action <= 3:
        batch, ordered = [reading(rng, number + i) for i in range(rng.choice([1, 1, 5, 20]))], rng.random() < 0.5
        return "insert", lambda it: it.insert_many([dict(doc) for doc in batch], ordered=ordered), len(batch)
    where, change = a_filter(rng, number), an_update(rng)
    if action <= 5:
        return f"updateMany {where} {change}", lambda it: it.update_many(where, change), 0
    if action == 6:
        third = {"$and": [where, {"_id": {"$mod": [3, rng.randint(0, 2)]}}]}
        return f"deleteMany {third}", lambda it: it.delete_many(third), 0
    # Which one of many is not promised: both collections are told.
    chosen = db.plain.find_one(where)
    one = {"_id": chosen["_id"] if chosen else -1}
    if action == 7:
        return f"updateOne {one} {change}", lambda it: it.update_one(one, change), 0
    if action == 8:
        return f"replaceOne {one}", lambda it: it.replace_one(one, {"ts": at(3), "sensorId": 2, "fresh": True}), 0
    return (f"findAndModify {one} {change}",
            lambda it: it.find_one_and_update(one, change, return_document=True, projection={"log": 0}), 0)


READS = [
    lambda it, where: sorted(it.find(where), key=lambda doc: doc["_id"]),
    lambda it, where: list(it.find(where, {"temp": 1, "ts": 1}).sort([("ts", -1), ("_id", 1)]).skip(3).limit(10)),
    lambda it, where: list(it.find(where, {"tags": {"$slice": 1}}).sort("_id", 1).limit(5)),
    lambda it, where: it.count_documents(where),
    lambda it, where: sorted(map(repr, it.distinct("temp", where))),
    lambda it, where: list(it.aggregate([{"$match": where}, {"$group": {"_id": "$sensorId", "n": {"$sum": 1},
                                "most": {"$max": "$temp"}, "least": {"$min": "$temp"}}}, {"$sort": {"_id": 1, "n": 1}}])),
    lambda it, where: list(it.aggregate([{"$match": where}, {"$unwind": "$tags"}, {"$sortByCount": "$tags"}, {"$sort": {"count": 1, "_id": 1}}])),
    lambda it, where: list(it.aggregate([{"$sort": {"_id": 1}}, {"$match": where}, {"$limit": 7}, {"$project": {"deep": 1, "hour": {"$hour": "$ts"}}}])),
]


def alike(db, seconds, seed):
    rng = random.Random(seed)
    db.plain.drop()
    db.samples.delete_many({})
    number, trials = 0, 0
    end = time.time() + seconds
    while time.time() < end:
        name, action, used = step(rng, db, number)
        number += used
        seen, wanted = outcome(lambda: action(db.samples)), outcome(lambda: action(db.plain))
        check(f"seed {seed}, step {trials}: {name}", seen, wanted)
        where, read = a_filter(rng, number), rng.choice(READS)
        seen, wanted = read(db.samples, where), read(db.plain, where)
        check(f"seed {seed}, step {trials}: {where} after {name}", seen, wanted)
        trials += 1
        if trials % 60 == 0:
            db.plain.delete_many({"_id": {"$lt": number - 150}})
            db.samples.delete_many({"_id": {"$lt": number - 150}})
            ready(db)
    ready(db)
    return trials


def main():
    uri = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 8
    client = pymongo.MongoClient(uri)
    client.drop_database(NAME)
    db = client[NAME]
    db.command({"pleach": "apply", "declaration": DECLARATION})
    wait_until_on(db)
    for case in (literature, transactions, writers, slots, examined):
        case(client, db)
    seed = random.randrange(1 << 30)
    trials = alike(db, seconds, seed)
    client.drop_database(NAME)
    print(f"buckets: {trials} random operations alike on a bucket collection and a plain one (seed {seed})")


if __name__ == "__main__":
    main()
