"""Three kinds of products in one collection: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError, WriteError

shop = MongoClient(sys.argv[1]).shop
products = shop.products


def show(what, value, expected):
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


def refused(what, write):
    """The code, and whether the details name what is wrong."""
    try:
        write()
    except WriteError as error:
        details = str(error.details.get("errInfo", {}))
        return error.code, what in details
    return None


show("a book without isbn", refused("isbn", lambda: products.insert_one({"type": "book", "title": "Dune", "price": 5})), (121, True))
show("no kind at all", refused("type", lambda: products.insert_one({"title": "Dune", "price": 5})), (121, True))
show("an unknown kind", refused("car", lambda: products.insert_one({"type": "car", "title": "Beetle", "price": 5})), (121, True))
show("a size that is none", refused("size", lambda: products.update_one({"_id": 3}, {"$set": {"size": "XXL"}})), (121, True))
show("a price below zero", refused("price", lambda: products.update_one({"_id": 1}, {"$set": {"price": -1}})), (121, True))

try:
    products.insert_one({"_id": 4, "type": "book", "title": "Emma again", "price": 5, "isbn": "978-1"})
    raise AssertionError("an isbn twice")
except DuplicateKeyError:
    print("an isbn twice: refused")
products.insert_one({"_id": 5, "type": "electronics", "title": "Lamp", "price": 15, "brand": "Acme", "isbn": "978-1"})
show("… but only among books", products.count_documents({"isbn": "978-1"}), 2)

products.update_one({"_id": 5}, {"$set": {"type": "book", "isbn": "978-2"}, "$unset": {"brand": 1}})
show("a change of kind, in one update", products.find_one(5)["type"], "book")

shop.reviews.insert_one({"_id": 2, "productId": 2})
show("other rules keep their fields", products.find_one(2)["reviewCount"], 1)

cheap = [product["title"] for product in products.find({"price": {"$lt": 20}}).sort("price", 1)]
show("all kinds together", cheap, ["Emma", "Lamp", "Shirt"])

products.insert_one({"_id": 6, "type": "clothing", "title": "Cap", "price": 40, "size": "M", "description": "goes with every lamp"})
found = products.find({"$text": {"$search": "lamps"}}).sort([("score", {"$meta": "textScore"})])
show("words in all kinds, titles first", [product["title"] for product in found], ["Lamp", "Cap"])


def plan(find):
    return shop.command("explain", {"find": "products", "filter": find}, verbosity="queryPlanner")


show("one kind is found by its own index", "isbn_1" in str(plan({"type": "book", "isbn": "978-2"})["queryPlanner"]["winningPlan"]), True)
show("all kinds by the shared one", "price_1" in str(plan({"price": 9})["queryPlanner"]["winningPlan"]), True)
notes = plan({"type": "book", "brand": "Acme"})["pleach"]["notes"]
show("a filter that finds nothing is pointed out", "electronics only" in notes[0], True)
