"""Two applications at once, one of them two versions behind: run with the address of a server that declares pleach.yaml."""

import pathlib
import sys
import time

from pymongo import MongoClient

client = MongoClient(sys.argv[1])
new = client.shop.users  # the newest version
old = client["shop@1"].users  # version 1: the phone is a text, the name is one field


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


# Documents from before the rule, as they were stored then: what is inserted now is of the newest version at once.
client.shop.command("pleach", "drop", rule="users.versions")
new.replace_one({"_id": 1}, {"name": "Ada Lovelace", "phone": "555-0101"})
new.replace_one({"_id": 2}, {"schemaVersion": 2, "name": "Bob Moore", "phone": {"countryCode": "+44", "number": "20-7946"}})
declaration = (pathlib.Path(__file__).parent / "pleach.yaml").read_text()
client.shop.command("pleach", "apply", declaration=declaration)
while any(rule["state"] != "on" for rule in client.shop.command("pleach", "status")["rules"]):
    time.sleep(0.1)


def stored():
    """How many documents are stored in each version."""
    rules = client.shop.command("pleach", "status")["rules"]
    return dict(next(rule["health"]["versions"] for rule in rules if rule["rule"] == "users.versions"))


show("documents of three versions", stored(), {"1": 1, "2": 1, "3": 1})

phones = [user["phone"]["number"] for user in new.find().sort("_id", 1)]
show("the new application sees one shape", phones, ["555-0101", "20-7946", "30-1234"])
phones = [user["phone"] for user in old.find().sort("_id", 1)]
show("the old one too, its own", phones, ["555-0101", "20-7946", "30-1234"])
show("names, as it knows them", [user["name"] for user in old.find().sort("name", -1)], ["Cyd Noor", "Bob Moore", "Ada Lovelace"])

show("a filter on what changed finds all", new.count_documents({"phone.number": {"$in": phones}}), 3)
show("… in the old words too", old.find_one({"phone": "30-1234"})["_id"], 3)
show("sorted by a new field", [user["_id"] for user in new.find().sort("lastName", 1)], [1, 2, 3])
codes = new.aggregate([{"$group": {"_id": "$phone.countryCode", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}])
show("grouped by it", [code["_id"] for code in codes], ["+1", "+44", "+49"])

old.update_one({"_id": 3}, {"$set": {"phone": "30-9999", "name": "Cyd Noor-Berg"}})
show(
    "the old application changes what the new one wrote, and destroys nothing that it does not see",
    new.find_one(3, {"_id": 0}),
    {
        "firstName": "Cyd",
        "lastName": "Noor-Berg",
        "phone": {"countryCode": "+49", "number": "30-9999"},
        "tags": ["new"],
        "schemaVersion": 3,
        "orderCount": 1,
    },
)

old.insert_one({"_id": 4, "name": "Dan Ode", "phone": "555-0104"})
show("what it inserts is new at once", new.find_one(4)["phone"], {"countryCode": "+1", "number": "555-0104"})

new.update_one({"phone.number": "555-0101"}, {"$set": {"phone.countryCode": "+43"}})
show("an old document is changed in the new words", new.find_one(1)["phone"], {"countryCode": "+43", "number": "555-0101"})
show("… and the old application still reads it", old.find_one(1)["phone"], "555-0101")

client.shop.orders.insert_one({"_id": 3, "userId": 4})
show("fields that rules keep are there for both", [old.find_one(4)["orderCount"], new.find_one(4)["orderCount"]], [1, 1])

show("what was written is of the newest version, the rest is as it was", stored(), {"1": 0, "2": 1, "3": 3})
