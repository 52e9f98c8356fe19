"""The celebrity: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient
from pymongo.errors import OperationFailure, WriteError

shop = MongoClient(sys.argv[1]).shop


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


def followers(user):
    rows = shop["users.followers"].find({"userId": user}).sort("index", 1)
    return [row["followerId"] for row in rows]


show("an ordinary user", shop.users.find_one("ada"), {"_id": "ada", "followers": ["bob", "cleo"], "followerCount": 2})
star = {"_id": "star", "followers": ["f0", "f1", "f2"], "hasOverflow": True, "followerCount": 6}
show("the celebrity holds the first of them", shop.users.find_one("star"), star)
show("… the others are documents", shop.follower_overflow.count_documents({"userId": "star"}), 3)

shop.users.update_one({"_id": "star"}, {"$push": {"followers": "f6"}})
show("all of them, as one collection", followers("star"), ["f0", "f1", "f2", "f3", "f4", "f5", "f6"])
page = shop["users.followers"].find({"userId": "star", "index": {"$gte": 4}}).sort("index", 1).limit(2)
show("a page of them", [(row["index"], row["followerId"]) for row in page], [(4, "f4"), (5, "f5")])

show("who is followed by f5", [user["_id"] for user in shop.users.find({"followers": "f5"})], ["star"])
show("who is not", sorted(user["_id"] for user in shop.users.find({"followers": {"$ne": "f5"}})), ["ada", "new"])
show("who has seven followers", shop.users.count_documents({"followers": {"$size": 7}}), 1)

again = shop.users.update_one({"_id": "star", "followers": {"$ne": "f5"}}, {"$push": {"followers": "f5"}})
show("nobody follows twice", again.matched_count, 0)
shop.users.update_one({"_id": "star"}, {"$addToSet": {"followers": "f4"}})
show("… nor by $addToSet", shop.users.find_one("star")["followerCount"], 7)

shop.users.update_one({"_id": "star"}, {"$pull": {"followers": "f1"}})
show("the next one moves up", shop.users.find_one("star")["followers"], ["f0", "f2", "f3"])
shop.users.update_one({"_id": "star"}, {"$pullAll": {"followers": ["f4", "f5", "f6"]}})
calm = {"_id": "star", "followers": ["f0", "f2", "f3"], "followerCount": 3}
show("without overflow the flag is gone", shop.users.find_one("star"), calm)

shop.users.update_one({"_id": "ada"}, {"$push": {"followers": {"$each": ["dan", "eve"]}}})
show("anybody can become famous", shop.users.find_one("ada")["hasOverflow"], True)
try:
    shop.users.update_one({"_id": "ada"}, {"$push": {"followers": {"$each": ["x"], "$position": 0}}})
    raise AssertionError("$position was not refused")
except (WriteError, OperationFailure) as error:
    show("what needs the whole array is refused", "$position" in str(error), True)

shop.users.delete_one({"_id": "ada"})
show("a user who goes takes them along", shop.follower_overflow.count_documents({"userId": "ada"}), 0)
