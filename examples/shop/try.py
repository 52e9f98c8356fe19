"""Every pattern at once: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys
import time
from datetime import datetime, timedelta

from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError, WriteError

client = MongoClient(sys.argv[1])
shop = client.shop
noon = datetime(2026, 1, 15, 12)


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


# Extended reference, computed and subset on one document.
shop.likes.insert_many([{"postId": 1, "userId": user} for user in range(3)])
shop.comments.insert_many(
    [{"_id": n, "postId": 1, "author": "Bob", "text": f"comment {n}", "date": noon + timedelta(minutes=n)} for n in range(7)]
)
shop.users.update_one({"_id": 1}, {"$set": {"name": "Ada L"}})
post = shop.posts.find_one(1)
show("the author, renamed", post["author"], {"name": "Ada L", "avatar": "ada.png"})
show("likes", post["likeCount"], 3)
show("the last comments", [comment["text"] for comment in post["recentComments"]], [f"comment {n}" for n in (6, 5, 4, 3, 2)])
show("an order's customer", shop.orders.find_one(1)["customer"]["tier"], "gold")

# Computed, subset and polymorphic.
shop.reviews.insert_many([{"_id": n, "productId": 1, "userId": n, "rating": n, "text": "", "date": noon + timedelta(n)} for n in range(1, 6)])
shop.reviews.update_one({"_id": 1}, {"$set": {"rating": 5}})
shop.sales.insert_many(
    [{"_id": n, "productId": 1, "amount": 10 * n, "status": "paid" if n % 2 else "open", "date": noon + timedelta(20 * n)} for n in range(1, 5)]
)
shop.follows.insert_many([{"productId": 1, "userId": user} for user in range(4)])
book = shop.products.find_one(1)
kept = {name: book[name] for name in ("reviewCount", "avgRating", "totalRevenue", "margin")}
show("a book", kept, {"reviewCount": 5, "avgRating": 3.8, "totalRevenue": 40, "margin": 6})
show("its last reviews", [review["userId"] for review in book["recentReviews"]], [5, 4, 3, 2, 1])
until = time.monotonic() + 60
while shop.products.find_one(1).get("followers") != 4 and time.monotonic() < until:
    time.sleep(0.1)
show("followers, within some seconds", shop.products.find_one(1)["followers"], 4)
for wrong, error in [({"type": "book", "title": "Dune"}, WriteError), ({"type": "book", "title": "Dune", "isbn": "978-1"}, DuplicateKeyError)]:
    try:
        shop.products.insert_one(wrong)
        raise AssertionError(f"{wrong} was taken")
    except error as refused:
        print(f"refused: {refused.code}")
show("revenue by month", [(month["_id"].month, month["revenue"]) for month in shop.months.find().sort("_id", 1)], [(2, 30), (3, 30), (4, 40)])

# Buckets, and slots under field names.
shop.sensor_data.insert_many([{"sensorId": 1, "ts": noon + timedelta(minutes=m), "temp": 20 + m, "humid": 50} for m in range(60)])
show("readings of half an hour", shop.sensor_data.count_documents({"sensorId": 1, "ts": {"$gte": noon + timedelta(minutes=30)}}), 30)
show("stored as one bucket", [(bucket["count"], bucket["stats"]["maxTemp"]) for bucket in shop.sensor_hours.find()], [(60, 79)])
for hour in range(3):
    shop.events.insert_one({"key": "ab" * 32, "date": noon + timedelta(hours=hour), "approved": 1, "noFunds": 2})
show("events of a day, added up", [event["approved"] for event in shop.events.find({"key": "ab" * 32})], [3])
show("… under short names", shop.events_buckets.find_one()["items"], {"0115": {"a": 3, "n": 6}})

# Outlier and versions on one collection.
old = client["shop@1"].users
old.update_one({"_id": 2}, {"$push": {"followers": {"$each": list(range(700))}}, "$set": {"phone": "20-9999"}})
bob = shop.users.find_one(2)
show("followers of a celebrity", (bob["followerCount"], len(bob["followers"]), bob["hasOverflow"]), (700, 500, True))
show("all of them", shop["users.followers"].count_documents({"userId": 2}), 700)
show("found by one behind the first 500", shop.users.count_documents({"followers": 650, "phone.number": "20-9999"}), 1)
show("an old application changed the number, and kept the code", bob["phone"], {"number": "20-9999", "countryCode": "+44"})

audit = client.shop.command("pleach", "audit")
show("what is not as it should be", audit["drifted"], 0)
