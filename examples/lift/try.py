"""An array becomes documents and a window: run with the address of a server that declares pleach.yaml (examples/run does)."""

import pathlib
import sys

from pymongo import MongoClient
from pymongo.errors import WriteError

shop = MongoClient(sys.argv[1]).shop
declaration = pathlib.Path(__file__).with_name("pleach.yaml").read_text()


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


def dates(product=7):
    return [item["date"] for item in shop.products.find_one(product)["reviews"]]


# A shop from before the rules.
for rule in ["products.reviews", "products.reviewCount"]:
    shop.command("pleach", "drop", rule=rule, with_data=True)
shop.products.insert_one({"_id": 7, "reviews": [{"_id": n, "rating": n % 5, "date": n} for n in range(1, 101)], "title": "Tea"})
shop.products.insert_one({"_id": 8, "reviews": [{"rating": 5, "date": 1}], "title": "Cup"})

plan = shop.command("pleach", "plan", declaration=declaration)
lift = next(rule["lift"] for rule in plan["rules"] if "lift" in rule)
show("what would be moved", (lift["items"], lift["documents"]), (101, 2))

shop.command("pleach", "apply", declaration=declaration)
show("each item is a document", shop.productReviews.count_documents({"productId": 7}), 100)
show("… with its own _id and its product", shop.productReviews.find_one(1), {"_id": 1, "rating": 1, "date": 1, "productId": 7})
show("the array is the window on the newest", dates(), [100, 99])
show("other rules count them", shop.products.find_one(7)["reviewCount"], 100)

shop.productReviews.insert_one({"_id": 101, "productId": 7, "rating": 5, "date": 101})
show("a new review comes first", dates(), [101, 100])
try:
    shop.products.update_one({"_id": 7}, {"$push": {"reviews": {"rating": 1}}})
except WriteError as error:
    show("the array itself is not written to any more", error.code, 66)

shop.command("pleach", "drop", rule="products.reviewCount", with_data=True)
shop.command("pleach", "drop", rule="products.reviews", restore=True)
show("the way back: all items in their order, the new one behind them", dates() == list(range(1, 102)), True)
show("… one that had no _id has none again", shop.products.find_one(8), {"_id": 8, "reviews": [{"rating": 5, "date": 1}], "title": "Cup"})
show("and no documents are left", shop.productReviews.count_documents({}), 0)
