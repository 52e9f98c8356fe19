"""Extended reference and computed fields as a PyMongo user meets them: declared over the wire, kept true on every write path.

python3 patterns.py URI [seconds]: named cases first, then random operations compared with a model in this file.
"""

import random
import sys
import time
from decimal import Decimal

import pymongo
from bson import Decimal128, Int64
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

NAME = "pattern_check"

DECLARATION = {
    "database": NAME,
    "collections": {
        "orders": {
            "extended_reference": {
                "customer": {"from": "customers", "by": "customerId", "fields": ["name", "tier"]},
                "frozen": {
                    "from": "customers",
                    "by": "customerId",
                    "fields": {"at": "name"},
                    "when_changed": "keep",
                },
            }
        },
        "invoices": {
            "extended_reference": {
                "order": {"from": "orders", "by": "orderId", "fields": {"who": "customer.name"}, "when_deleted": "unset"}
            }
        },
        "notes": {
            "extended_reference": {
                "customer": {"from": "customers", "by": "customerId", "fields": ["name"], "when_deleted": "cascade"}
            }
        },
        "contracts": {
            "extended_reference": {
                "customer": {"from": "customers", "by": "customerId", "fields": ["name"], "when_deleted": "reject"}
            }
        },
        "products": {
            "computed": {
                "reviewCount": {"count": "reviews", "by": "productId"},
                "avgRating": {"avg": "rating", "from": "reviews", "by": "productId"},
                "paid": {"sum": "amount", "from": "sales", "by": "productId", "where": {"status": "paid"}},
                "margin": {"expr": {"$subtract": ["$price", "$cost"]}},
            }
        },
    },
}


def check(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r} instead of {wanted!r}")


def code(what, wanted, action):
    try:
        action()
    except OperationFailure as error:
        found = error.details.get("writeErrors", [error.details])[0].get("code") if error.details else error.code
        check(what, found, wanted)
        return error
    raise AssertionError(f"{what}: no error instead of code {wanted}")


def wait_until_on(db):
    for _ in range(300):
        status = db.command({"pleach": "status"})
        if all(rule["state"] == "on" for rule in status["rules"]) and status["outbox"]["pending"] == 0:
            return status
        time.sleep(0.1)
    raise AssertionError(f"rules are not on: {status}")


def audit_clean(db):
    wait_until_on(db)
    audit = db.command({"pleach": "audit"})
    check("audit", (audit["drifted"], list(audit["drift"])), (0, []))
    return audit


def references(client, db):
    db.customers.insert_one({"_id": 1, "name": "Ada", "tier": "gold", "email": "a@x"})
    db.orders.insert_one({"_id": 1, "customerId": 1, "total": 5})
    check("filled", db.orders.find_one(1)["customer"], {"name": "Ada", "tier": "gold"})
    db.customers.update_one({"_id": 1}, {"$set": {"name": "Ada L."}})
    check("refreshed", db.orders.find_one(1)["customer"]["name"], "Ada L.")
    check("kept", db.orders.find_one(1)["frozen"], {"at": "Ada"})
    db.orders.insert_one({"_id": 2, "customerId": 7})
    check("dangling", "customer" in db.orders.find_one(2), False)
    db.customers.insert_one({"_id": 7, "name": "Bob"})
    check("appeared", db.orders.find_one(2)["customer"], {"name": "Bob"})
    db.orders.update_one({"_id": 2}, {"$set": {"customerId": 1}})
    check("re-pointed", db.orders.find_one(2)["customer"], {"name": "Ada L.", "tier": "gold"})
    db.orders.update_one({"_id": 2}, {"$unset": {"customerId": 1}})
    check("no reference", "customer" in db.orders.find_one(2), False)
    db.orders.replace_one({"_id": 2}, {"customerId": 7, "total": 9})
    check("replaced", db.orders.find_one(2)["customer"], {"name": "Bob"})
    found = db.orders.find_one_and_update({"_id": 2}, {"$set": {"customerId": 1}}, return_document=True)
    check("new: true shows the copy", found["customer"], {"name": "Ada L.", "tier": "gold"})
    db.orders.update_one({"_id": 3}, {"$set": {"customerId": 7}}, upsert=True)
    check("upserted", db.orders.find_one(3)["customer"], {"name": "Bob"})
    db.orders.insert_one({"_id": 4, "customerId": 1, "customer": {"name": "wrong"}})
    check("a copy that the client brought", db.orders.find_one(4)["customer"]["name"], "Ada L.")
    error = code("owned", 66, lambda: db.orders.update_one({"_id": 1}, {"$set": {"customer.name": "x"}}))
    assert "orders.customer" in str(error), error
    code("owned by a pipeline", 66, lambda: db.orders.update_one({"_id": 1}, [{"$set": {"customer": 1}}]))
    # A copy of a copy.
    db.invoices.insert_one({"_id": 1, "orderId": 1})
    check("copy of a copy", db.invoices.find_one(1)["order"], {"who": "Ada L."})
    db.customers.update_many({}, {"$set": {"name": "Carol"}})
    check("copy of a copy, refreshed", db.invoices.find_one(1)["order"], {"who": "Carol"})
    # Delete policies.
    db.contracts.insert_one({"_id": 1, "customerId": 7})
    db.notes.insert_many([{"_id": i, "customerId": 7} for i in range(3)])
    error = code("reject", 96, lambda: db.customers.delete_one({"_id": 7}))
    assert "1" in str(error), error
    db.contracts.delete_one({"_id": 1})
    check("cascade does not count", db.customers.delete_one({"_id": 7}).deleted_count, 1)
    check("cascade", db.notes.count_documents({}), 0)
    check("kept after a delete", db.orders.find_one(3)["customer"], {"name": "Carol"})
    db.orders.delete_one({"_id": 1})
    check("unset", "order" in db.invoices.find_one(1), False)
    # The client's own transaction.
    with client.start_session() as session:
        session.start_transaction()
        db.customers.update_one({"_id": 1}, {"$set": {"name": "Dora"}}, session=session)
        check("inside", db.orders.find_one(4, session=session)["customer"]["name"], "Dora")
        check("outside", db.orders.find_one(4)["customer"]["name"], "Carol")
        session.abort_transaction()
    check("aborted", db.orders.find_one(4)["customer"]["name"], "Carol")
    # More dependants than one transaction takes.
    db.customers.insert_one({"_id": 50, "name": "Many"})
    db.orders.insert_many([{"_id": 1000 + i, "customerId": 50} for i in range(2500)])
    db.customers.update_one({"_id": 50}, {"$set": {"name": "More"}})
    wait_until_on(db)
    check("fan-out", db.orders.count_documents({"customer.name": "More"}), 2500)
    audit_clean(db)


def tallies(client, db):
    db.products.insert_one({"_id": 1, "price": 10, "cost": 4})
    product = db.products.find_one(1)
    check("of nothing", (product["reviewCount"], product["avgRating"], product["paid"], product["margin"]), (0, None, 0, 6))
    db.reviews.insert_many([{"productId": 1, "rating": 5}, {"productId": 1, "rating": 4}])
    check("avg", db.products.find_one(1)["avgRating"], 4.5)
    db.products.update_one({"_id": 1}, {"$inc": {"cost": 1}})
    check("expr", db.products.find_one(1)["margin"], 5)
    db.sales.insert_many([{"productId": 1, "amount": 0.1, "status": "paid"} for _ in range(10)])
    check("exact", db.products.find_one(1)["paid"], 1.0)
    db.sales.update_one({"productId": 1}, {"$set": {"status": "open"}})
    check("out of the filter", db.products.find_one(1)["paid"], 0.9)
    db.sales.insert_one({"productId": 1, "amount": Decimal128("0.1"), "status": "paid"})
    check("decimal", db.products.find_one(1)["paid"].to_decimal(), Decimal("1.0"))
    db.sales.insert_one({"_id": "nan", "productId": 1, "amount": float("nan"), "status": "paid"})
    db.sales.delete_one({"_id": "nan"})
    check("NaN leaves no trace", db.products.find_one(1)["paid"].to_decimal(), Decimal("1.0"))
    # Children before their parent, and re-parenting.
    db.reviews.insert_many([{"_id": f"early{i}", "productId": 2, "rating": i} for i in range(3)])
    db.products.insert_one({"_id": 2})
    check("parent after its children", db.products.find_one(2)["reviewCount"], 3)
    db.reviews.update_many({"productId": 2}, {"$set": {"productId": 1}})
    check("moved away", (db.products.find_one(2)["reviewCount"], db.products.find_one(1)["reviewCount"]), (0, 5))
    db.reviews.update_one({"_id": "early0"}, {"$unset": {"productId": 1}})
    check("orphaned", db.products.find_one(1)["reviewCount"], 4)
    db.reviews.update_one({"_id": "early1"}, {"$set": {"productId": None}})
    check("null links nothing", db.products.find_one(1)["reviewCount"], 3)
    check("equal numbers link", db.reviews.insert_one({"productId": 1.0, "rating": 1}).acknowledged, True)
    check("by value", db.products.find_one(1)["reviewCount"], 4)
    code("owned", 66, lambda: db.products.update_one({"_id": 1}, {"$inc": {"reviewCount": 1}}))
    try:
        db.products.bulk_write([UpdateOne({"_id": 1}, {"$set": {"a": 1}}), UpdateOne({"_id": 1}, {"$set": {"reviewCount": 9}})])
        raise AssertionError("an owned field was written")
    except BulkWriteError as error:
        check("bulk error", [(e["index"], e["code"]) for e in error.details["writeErrors"]], [(1, 66)])
    saved = db.products.find_one(1)
    saved["price"] = 20
    db.products.replace_one({"_id": 1}, saved)
    check("saved as read", db.products.find_one(1)["reviewCount"], 4)
    db.products.replace_one({"_id": 1}, {"price": 3, "cost": 1})
    product = db.products.find_one(1)
    check("replaced without them", (product["reviewCount"], product["margin"]), (4, 2))
    db.incoming.insert_many([{"_id": f"m{i}", "productId": 2, "rating": 3} for i in range(4)])
    db.incoming.aggregate([{"$merge": {"into": "reviews"}}])
    check("$merge", db.products.find_one(2)["reviewCount"], 4)
    result = db.reviews.bulk_write(
        [
            InsertOne({"_id": "b1", "productId": 2, "rating": 1}),
            UpdateOne({"_id": "b2"}, {"$set": {"productId": 2, "rating": 2}}, upsert=True),
            ReplaceOne({"_id": "b1"}, {"productId": 1, "rating": 1}),
            DeleteOne({"_id": "m0"}),
            UpdateMany({"_id": {"$in": ["m1", "m2"]}}, {"$inc": {"rating": 1}}),
            DeleteMany({"_id": "m3"}),
        ]
    ).bulk_api_result
    counts = {k: result[k] for k in ("nInserted", "nUpserted", "nMatched", "nModified", "nRemoved")}
    check("bulk", counts, {"nInserted": 1, "nUpserted": 1, "nMatched": 3, "nModified": 3, "nRemoved": 2})
    check("after the bulk", (db.products.find_one(2)["reviewCount"], db.products.find_one(2)["avgRating"]), (3, 10 / 3))
    try:
        db.reviews.insert_many([{"_id": "b1"}, {"_id": "b9", "productId": 2, "rating": 1}, {"_id": "b9"}], ordered=False)
    except BulkWriteError as error:
        check("unordered", ([e["index"] for e in error.details["writeErrors"]], error.details["nInserted"]), ([0, 2], 1))
    check("after an unordered insert", db.products.find_one(2)["reviewCount"], 4)
    db.reviews.find_one_and_delete({"_id": "b9"})
    check("findAndModify", db.products.find_one(2)["reviewCount"], 3)
    with client.start_session() as session:
        session.start_transaction()
        db.reviews.insert_one({"productId": 2, "rating": 5}, session=session)
        check("inside", db.products.find_one(2, session=session)["reviewCount"], 4)
        session.abort_transaction()
        check("aborted", db.products.find_one(2)["reviewCount"], 3)
        session.with_transaction(lambda s: db.reviews.delete_many({"productId": 2}, session=s))
    check("committed", (db.products.find_one(2)["reviewCount"], db.products.find_one(2)["avgRating"]), (0, None))
    plan = db.command({"explain": {"delete": "reviews", "deletes": [{"q": {"productId": 1}, "limit": 1}]}})
    assert "products.reviewCount" in plan["pleach"]["rules"], plan
    for refused in ({"drop": "reviews"}, {"aggregate": "sales", "pipeline": [{"$out": "reviews"}], "cursor": {}}):
        code(f"{refused}", 96, lambda: db.command(refused))
    audit_clean(db)


def drift(db):
    """Rules added to data that is there, wrong on purpose: seeding makes it right; dropping leaves ordinary fields."""
    db.command({"pleach": "drop", "rule": "products.reviewCount"})
    check("dropped, the field stays", "reviewCount" in db.products.find_one(1), True)
    db.products.update_many({}, {"$set": {"reviewCount": 99}})
    code("what exists is not overwritten by itself", 96, lambda: db.command({"pleach": "apply", "declaration": DECLARATION}))
    check("nothing changed", db.products.find_one(1)["reviewCount"], 99)
    db.command({"pleach": "apply", "declaration": DECLARATION, "overwrite": True})
    audit_clean(db)


def model(db):
    """What every rule should have, from the data that clients wrote."""
    reviews, sales = list(db.reviews.find()), list(db.sales.find())
    customers = {c["_id"]: c for c in db.customers.find()}
    for product in db.products.find():
        mine = [r for r in reviews if "productId" in r and r["productId"] == product["_id"]]
        check(f"count of {product['_id']}", product["reviewCount"], len(mine))
        ratings = [r["rating"] for r in mine if isinstance(r.get("rating"), (int, float))]
        check(f"avg of {product['_id']}", product["avgRating"], sum(ratings) / len(ratings) if ratings else None)
        paid = sum(s["amount"] for s in sales if s.get("productId") == product["_id"] and s.get("status") == "paid")
        check(f"sum of {product['_id']}", product["paid"], paid)
    for order in db.orders.find():
        customer = customers.get(order.get("customerId"))
        if customer:
            wanted = {k: customer[k] for k in ("name", "tier") if k in customer}
            check(f"copy of {order['_id']}", order.get("customer"), wanted)


def random_operations(client, db, seconds, seed):
    print(f"random operations, seed {seed}")
    pick = random.Random(seed)
    ids = range(12)
    until = time.time() + seconds
    count = 0

    def review():
        return {"productId": pick.choice([*ids, None, 99]), "rating": pick.choice([1, 2, 3, 4.0, 5, Int64(2), "x"])}

    def sale():
        return {"productId": pick.choice(ids), "amount": pick.randrange(-50, 50), "status": pick.choice(["paid", "open"])}

    def one(session):
        i, j, k = pick.choice(ids), pick.choice(ids), pick.randrange(60)
        options = {"session": session}
        actions = [
            lambda: db.products.update_one({"_id": i}, {"$set": {"price": k}}, upsert=True, **options),
            lambda: db.products.delete_one({"_id": i}, **options),
            lambda: db.products.replace_one({"_id": i}, {"price": k, "cost": 2}, **options),
            lambda: db.reviews.insert_many([review() for _ in range(pick.randrange(1, 6))], **options),
            lambda: db.reviews.update_many({"productId": i}, {"$set": {"productId": j}}, **options),
            lambda: db.reviews.update_one({"productId": i}, {"$set": review()}, **options),
            lambda: db.reviews.update_one({"productId": i}, [{"$set": {"rating": {"$size": {"$ifNull": ["$tags", [1]]}}}}], **options),
            lambda: db.reviews.replace_one({"productId": i}, review(), **options),
            lambda: db.reviews.find_one_and_update({"productId": i}, {"$set": {"rating": 5}}, **options),
            lambda: db.reviews.find_one_and_delete({"productId": i}, **options),
            lambda: db.reviews.delete_many({"productId": i, "rating": {"$lt": 3}}, **options),
            lambda: db.sales.insert_one(sale(), **options),
            lambda: db.sales.update_many({"productId": i}, {"$set": {"status": pick.choice(["paid", "open"])}}, **options),
            lambda: db.sales.delete_one({"productId": i}, **options),
            lambda: db.customers.update_one({"_id": i}, {"$set": {"name": f"n{k}"}}, upsert=True, **options),
            lambda: db.customers.delete_one({"_id": i}, **options),
            lambda: db.orders.insert_one({"customerId": i}, **options),
            lambda: db.orders.update_one({"customerId": i}, {"$set": {"customerId": j}}, **options),
            lambda: db.orders.update_many({"customerId": i}, {"$set": {"total": k}}, **options),
        ]
        pick.choice(actions)()

    while time.time() < until:
        count += 1
        if pick.random() < 0.3:
            with client.start_session() as session:
                session.start_transaction()
                try:
                    for _ in range(pick.randrange(1, 4)):
                        one(session)
                    session.commit_transaction() if pick.random() < 0.7 else session.abort_transaction()
                except OperationFailure as error:
                    if not error.has_error_label("TransientTransactionError"):
                        raise
        else:
            one(None)
    print(f"{count} operations")
    wait_until_on(db)
    model(db)
    audit_clean(db)


def main():
    uri, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 5
    client = pymongo.MongoClient(uri)
    client.drop_database(NAME)
    db = client[NAME]
    found = db.command({"pleach": "check", "declaration": DECLARATION})
    check("check", list(found["findings"]), [])
    db.command({"pleach": "apply", "declaration": DECLARATION})
    wait_until_on(db)
    references(client, db)
    tallies(client, db)
    drift(db)
    for name in ("customers", "orders", "reviews", "sales", "products", "invoices", "notes", "contracts"):
        db[name].delete_many({})
    random_operations(client, db, seconds, int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32))
    client.drop_database(NAME)
    print("patterns: ok")


if __name__ == "__main__":
    main()
