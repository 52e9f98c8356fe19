"""Like counts: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys
import threading
import time

from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError

shop = MongoClient(sys.argv[1]).shop


def show(what, collection, _id, expected):
    found = shop[collection].find_one({"_id": _id})
    value = {field: found[field] for field in expected}
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


def like(user, post, date):
    return {"_id": f"{user} {post}", "postId": post, "user": user, "date": date}


show("one like", "posts", 1, {"likeCount": 1, "firstLike": "ann"})
shop.likes.insert_one(like("bob", 1, 2))
show("another", "posts", 1, {"likeCount": 2, "firstLike": "ann"})
try:
    shop.likes.insert_one(like("bob", 1, 3))
except DuplicateKeyError:
    show("a second like of the same user is none", "posts", 1, {"likeCount": 2})

shop.likes.delete_one({"_id": "ann 1"})
show("ann does no longer", "posts", 1, {"likeCount": 1, "firstLike": "bob"})
shop.likes.insert_one(like("bob", 2, 4))
show("bob likes two posts", "users", "bob", {"liked": 2})

# Many at once on one post.
threads = [threading.Thread(target=shop.likes.insert_one, args=(like(f"user {n}", 1, 10 + n),)) for n in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
show("twenty more at once", "posts", 1, {"likeCount": 21})

shop.shares.insert_many([{"postId": 2} for _ in range(50)])
for _ in range(100):
    if shop.posts.find_one({"_id": 2})["shareCount"] == 50:
        break
    time.sleep(0.1)
show("shares, a moment later", "posts", 2, {"shareCount": 50})
