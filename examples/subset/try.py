"""A window that stays right: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient

shop = MongoClient(sys.argv[1]).shop


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


def recent(product=7):
    return [item["date"] for item in shop.products.find_one(product)["recentReviews"]]


show("the newest reviews", shop.products.find_one(7)["recentReviews"], [{"rating": 4, "date": 3}, {"rating": 2, "date": 2}])
show("no reviews", recent(8), [])

shop.reviews.insert_one({"_id": 4, "productId": 7, "userId": 1, "rating": 3, "votes": 0, "date": 4})
show("a new one comes first", recent(), [4, 3])
shop.reviews.insert_one({"_id": 5, "productId": 7, "userId": 1, "rating": 3, "votes": 0, "date": 0})
show("an old one changes nothing", recent(), [4, 3])

shop.reviews.update_one({"_id": 3}, {"$set": {"rating": 5}})
show("an edited one is refreshed", shop.products.find_one(7)["recentReviews"][1], {"rating": 5, "date": 3})
shop.reviews.delete_one({"_id": 4})
show("a deleted one is replaced by the next", recent(), [3, 2])
shop.reviews.update_one({"_id": 3}, {"$set": {"productId": 8}})
show("one that moves is gone here", recent(), [2, 1])
show("… and there", recent(8), [3])

shop.users.update_one({"_id": 1}, {"$set": {"name": "Augusta"}})
show("a copy in a whole item is fresh", shop.products.find_one(7)["bestReviews"][0]["user"], {"name": "Augusta"})

plan = shop.command("explain", {"find": "reviews", "filter": {"productId": 7}, "sort": {"date": -1, "_id": 1}}, verbosity="queryPlanner")
stages = str(plan["queryPlanner"]["winningPlan"])
show("the whole list is read by the index, in its order", "IXSCAN" in stages and "SORT" not in stages, True)
