"""How many posts have a tag: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient

shop = MongoClient(sys.argv[1]).shop


def show(what, tag, expected):
    found = shop.tags.find_one({"_id": tag})
    value = found and {field: found[field] for field in expected or found}
    if value and "latest" in value:
        value["latest"] = [post["title"] for post in value["latest"]]
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


show("posts about tea", "tea", {"postCount": 2, "authors": 2, "latest": ["Black tea", "Green tea"]})
shop.posts.insert_one({"_id": 3, "title": "White tea", "author": "ann", "date": 3, "tags": ["tea", "rare"]})
show("another one", "tea", {"postCount": 3, "authors": 2, "latest": ["White tea", "Black tea"]})
show("a new tag", "rare", {"postCount": 1, "authors": 1, "latest": ["White tea"]})
shop.posts.update_one({"_id": 1}, {"$pull": {"tags": "cup"}})
show("a tag that no post has is gone", "cup", None)
shop.posts.update_many({"tags": "rare"}, {"$set": {"tags.$[old]": "precious"}}, array_filters=[{"old": "rare"}])
show("renamed", "precious", {"postCount": 1, "latest": ["White tea"]})
show("… and no longer there", "rare", None)
shop.posts.delete_one({"_id": 3})
show("the newest post is deleted", "tea", {"postCount": 2, "authors": 2, "latest": ["Black tea", "Green tea"]})
