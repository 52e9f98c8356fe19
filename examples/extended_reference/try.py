"""Copies that stay true: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient

shop = MongoClient(sys.argv[1]).shop


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


show("the order has its customer", shop.orders.find_one(1)["customer"], {"name": "Ada", "tier": "gold"})

shop.customers.update_one({"_id": 7}, {"$set": {"tier": "platinum"}})
show("a changed customer is changed in the order", shop.orders.find_one(1)["customer"], {"name": "Ada", "tier": "platinum"})

shop.orders.update_one({"_id": 1}, {"$set": {"customerId": 8}})
show("another customer", shop.orders.find_one(1)["customer"], {"name": "Grace", "tier": "silver"})

shop.products.update_one({"_id": "tea"}, {"$set": {"price": 5}})
prices = [item["product"]["price"] for item in shop.orders.find_one(1)["items"]]
show("prices stay those of the day of the order", prices, [4.5, 7])

shop.orders.insert_one({"_id": 2, "customerId": 9, "items": []})
show("a customer that is not there yet", shop.orders.find_one(2).get("customer"), None)
shop.customers.insert_one({"_id": 9, "name": "Edsger", "tier": "gold"})
show("… and now is", shop.orders.find_one(2)["customer"], {"name": "Edsger", "tier": "gold"})

show("a post by handle", shop.posts.find_one(1)["author"], {"name": "Ada", "avatar": "ada.png"})
shop.users.delete_one({"handle": "ada"})
show("its posts go with the user", shop.posts.count_documents({}), 0)
