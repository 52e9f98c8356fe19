"""Readings in buckets: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys
from datetime import datetime, timedelta

from pymongo import MongoClient
from pymongo.errors import OperationFailure

shop = MongoClient(sys.argv[1]).shop
TEN = datetime(2026, 1, 31, 10)


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


def bucket(sensor="roof", hour=TEN):
    return shop.sensor_hours.find_one({"sensorId": sensor, "hour": hour})


show("what clients see", shop.sensor_data.find_one({"sensorId": "roof", "ts": TEN + timedelta(minutes=1)}), {
    "_id": {"sensorId": "roof", "ts": TEN + timedelta(minutes=1)},
    "sensorId": "roof", "ts": TEN + timedelta(minutes=1), "temp": 21, "humid": 41,
})
show("what is stored", bucket(), {
    "_id": {"sensorId": "roof", "hour": TEN, "n": 0}, "sensorId": "roof", "hour": TEN, "count": 3,
    "readings": [{"m": 0, "temp": 20, "humid": 40}, {"m": 1, "temp": 21, "humid": 41}, {"m": 2, "temp": 22, "humid": 42}],
    "stats": {"minTemp": 20, "maxTemp": 22, "avgTemp": 21.0},
})

shop.sensor_data.insert_one({"sensorId": "roof", "ts": TEN + timedelta(minutes=3), "temp": 29})
show("another reading", bucket()["stats"], {"minTemp": 20, "maxTemp": 29, "avgTemp": 23.0})

shop.sensor_data.update_one({"sensorId": "roof", "temp": 29}, {"$set": {"temp": 25}})
show("a corrected one", bucket()["stats"], {"minTemp": 20, "maxTemp": 25, "avgTemp": 22.0})

shop.sensor_data.delete_one({"sensorId": "roof", "ts": TEN})
show("one less", (bucket()["count"], bucket()["stats"]["minTemp"]), (3, 21))

between = {"sensorId": "roof", "ts": {"$gte": TEN, "$lt": TEN + timedelta(minutes=3)}}
show("a range of time", [it["temp"] for it in shop.sensor_data.find(between, sort=[("ts", 1)])], [21, 22])
highest = shop.sensor_data.aggregate([{"$group": {"_id": "$sensorId", "max": {"$max": "$temp"}}}, {"$sort": {"_id": 1}}])
show("the highest of each sensor", list(highest), [{"_id": "cellar", "max": 12}, {"_id": "roof", "max": 25}])

eleven = TEN + timedelta(hours=1)
shop.sensor_data.insert_many(
    {"sensorId": "roof", "ts": eleven + timedelta(minutes=minute), "temp": minute} for minute in range(60)
)
show("an hour is one document", (shop.sensor_data.count_documents({}), shop.sensor_hours.count_documents({})), (64, 3))

for what, reading, expected in [
    ("the same minute again", {"sensorId": "roof", "ts": eleven, "temp": 0}, 11000),
    ("half a minute", {"sensorId": "roof", "ts": eleven + timedelta(seconds=30), "temp": 0}, 2),
    ("no date", {"sensorId": "roof", "temp": 0}, 2),
]:
    try:
        shop.sensor_data.insert_one(reading)
        raise SystemExit(f"{what} was taken")
    except OperationFailure as error:
        print(f"{what} is refused: {error.details['errmsg']}")
        assert error.code == expected, error.details
