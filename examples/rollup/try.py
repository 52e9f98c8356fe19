"""Documents that come and go with what they sum up: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys
import time
from datetime import datetime

from pymongo import MongoClient
from pymongo.errors import WriteError

shop = MongoClient(sys.argv[1]).shop
january, february = datetime(2026, 1, 1), datetime(2026, 2, 1)


def show(what, collection, _id, expected):
    found = shop[collection].find_one({"_id": _id}) or {}
    value = {field: found.get(field) for field in expected} if expected else found or None
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


show("revenue of January", "months", january, {"revenue": 25, "sales": 2})
show("nothing is paid in February", "months", february, None)

shop.sales.update_one({"_id": 3}, {"$set": {"status": "paid"}})
show("a sale is paid: its month appears", "months", february, {"revenue": 7, "sales": 1})

shop.sales.update_one({"_id": 1}, {"$set": {"date": datetime(2026, 2, 14)}})
show("a sale moves to another month", "months", february, {"revenue": 27, "sales": 2})
show("… and leaves its own", "months", january, {"revenue": 5, "sales": 1})

try:
    shop.months.delete_one({"_id": january})
    raise SystemExit("a month that has sales was deleted")
except WriteError as error:
    print(f"refused: {error.details['errmsg']}")
    assert error.code == 96

shop.sales.delete_one({"_id": 2})
show("the last sale of January is deleted", "months", january, None)

shop.sales.insert_one({"_id": 4, "date": "yesterday", "amount": 1, "status": "paid"})
status = {rule["rule"]: rule for rule in shop.command("pleach", "status")["rules"]}
print(f"sales without a month: {status['months.revenue']['unkeyed']}")
assert status["months.revenue"]["unkeyed"] == 1

for _ in range(100):
    if not list(shop["pleach.outbox"].find()):
        break
    time.sleep(0.1)
show("by region and month, a little later", "regions", {"region": "eu", "month": february}, {"revenue": 27})

show("posts about tea", "tags", "tea", {"postCount": 2})
shop.posts.update_one({"_id": 1}, {"$pull": {"tags": "cup"}})
show("a tag that no post has is gone", "tags", "cup", None)

show("replies to a comment", "comments", 1, {"replies": 2})
show("games of a player, by name", "players", 1, {"games": 2})
shop.scores.update_many({}, {"$set": {"player": "bob"}})
show("they were bob's", "players", 2, {"games": 2})
