"""A product page in one read: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient

shop = MongoClient(sys.argv[1]).shop


def show(what, collection, _id, expected):
    found = shop[collection].find_one({"_id": _id})
    value = {field: found[field] for field in expected}
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


show("the page", "products", 7, {"reviewCount": 2, "avgRating": 3.5, "bestRating": 5})
shop.reviews.insert_many([{"_id": n, "productId": 7, "rating": 4, "text": "fine", "date": n} for n in (3, 4)])
newest = [{"rating": 4, "text": "fine", "date": 4}, {"rating": 4, "text": "fine", "date": 3}, {"rating": 2, "text": "leaks", "date": 2}]
show("two more reviews", "products", 7, {"reviewCount": 4, "avgRating": 3.75, "recentReviews": newest})
shop.reviews.delete_one({"_id": 1})
show("the best one is deleted", "products", 7, {"reviewCount": 3, "bestRating": 4})

written = shop.command({"pleach": "explain", "command": {"insert": "reviews", "documents": [{"productId": 7, "rating": 5, "date": 5}]}})
updates = [step["namespace"] for step in written["steps"] if step["kind"] == "derived"]
print(f"what a review means for its page: one update of {updates}")
assert updates == ["shop.products"]
