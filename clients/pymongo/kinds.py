"""PyMongo against Pleach: documents of several kinds, and how the server's refusals (121) reach a client.

python3 kinds.py URI
"""

import sys

import pymongo
from pymongo.errors import BulkWriteError, WriteError

from patterns import check, wait_until_on

NAME = "client_check_kinds"
DECLARATION = {
    "database": NAME,
    "collections": {
        "products": {
            "polymorphic": {
                "discriminator": "type",
                "kinds": {
                    "book": {"required": ["title", "isbn"], "indexes": [{"key": {"isbn": 1}, "unique": True}]},
                    "clothing": {"required": ["title"], "schema": {"properties": {"size": {"enum": ["S", "M"]}}}},
                },
            }
        }
    },
}


def fields(details):
    """The titles and fields that the details name, wherever they stand."""
    found = set()
    if isinstance(details, dict):
        found.update(details.get("missingProperties", []))
        found.update(details[name] for name in ("title", "propertyName") if name in details)
        details = list(details.values())
    if isinstance(details, list):
        for inner in details:
            found |= fields(inner)
    return found


def refused(what, wanted, write):
    try:
        write()
    except WriteError as error:
        check(what, error.code, 121)
        check(what, fields(error.details["errInfo"]["details"]) >= wanted, True)
        return
    raise AssertionError(f"{what}: no error")


def main():
    client = pymongo.MongoClient(sys.argv[1])
    client.drop_database(NAME)
    db = client[NAME]
    db.command({"pleach": "apply", "declaration": DECLARATION})
    wait_until_on(db)
    products = db.products
    products.insert_one({"_id": 1, "type": "book", "title": "Emma", "isbn": "1"})
    refused("insert", {"book", "isbn"}, lambda: products.insert_one({"type": "book", "title": "Dune"}))
    refused("no kind", {"type"}, lambda: products.insert_one({"title": "Dune"}))
    refused("update", {"book", "title"}, lambda: products.update_one({"_id": 1}, {"$unset": {"title": 1}}))
    refused("replace", {"clothing", "size"}, lambda: products.replace_one({"_id": 1}, {"type": "clothing", "title": "a", "size": "XL"}))
    try:
        rows = [{"_id": 2, "type": "clothing", "title": "a"}, {"_id": 3, "type": "car"}, {"_id": 4, "type": "clothing", "title": "b"}]
        products.insert_many(rows, ordered=False)
        raise AssertionError("a bulk write with a bad document")
    except BulkWriteError as error:
        check("bulk", [(row["index"], row["code"]) for row in error.details["writeErrors"]], [(1, 121)])
        check("details of a bulk", "details" in error.details["writeErrors"][0]["errInfo"], True)
    check("the others are there", sorted(row["_id"] for row in products.find()), [1, 2, 4])
    with client.start_session() as session:
        def transaction(session):
            products.insert_one({"_id": 5, "type": "clothing", "title": "c"}, session=session)
            products.insert_one({"_id": 6, "type": "book"}, session=session)
        refused("transaction", {"book", "isbn", "title"}, lambda: session.with_transaction(transaction))
    check("nothing of it", products.count_documents({"_id": 5}), 0)
    db.command({"pleach": "drop", "rule": "products.polymorphic"})
    products.insert_one({"_id": 7})
    client.drop_database(NAME)
    print("kinds: ok")


if __name__ == "__main__":
    main()
