"""Every fold on one collection, as PyMongo users write to it: 27 rules, three writers at once, then each stored value against MongoDB's
own accumulators.

python3 folds.py URI [seconds] [seed]: what writers do is random by the seed; the comparison is aggregations on the same server.
"""

import random
import sys
import threading
import time
from datetime import datetime, timedelta

import pymongo
from bson import Decimal128, Int64
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

NAME = "fold_check"
PRODUCTS = range(6)
WRITERS = 3
MONTH = {"$dateTrunc": {"date": "$at", "unit": "month"}}


def by_product(**more):
    return {"from": "sales", "by": "productId", **more}


DECLARATION = {
    "database": NAME,
    "collections": {
        "products": {
            "computed": {
                "count": {"count": "sales", "by": "productId"},
                "sum": by_product(sum="amount"),
                "avg": by_product(avg="amount"),
                "min": by_product(min="amount"),
                "max": by_product(max="amount"),
                "first": by_product(first="n", sort={"at": 1}),
                "last": by_product(last="n", sort={"at": 1}),
                "distinct": by_product(distinct="n", client_writes="ignore"),
                "paidCount": {"count": "sales", "by": "productId", "where": {"status": "paid"}},
                "paidSum": by_product(sum="amount", where={"status": "paid"}),
                "paidMax": by_product(max="amount", where={"status": "paid"}),
                "paidLast": by_product(last="amount", sort={"at": 1, "n": -1}, where={"status": "paid"}),
                "lateCount": {"count": "sales", "by": "productId", "lag": "200ms"},
                "lateMin": by_product(min="n", lag="200ms"),
                "tagsUsed": by_product(distinct="tags", each_value=True),
            },
            "subset": {
                "newest": by_product(sort={"at": -1}, keep=3, fields=["at", "n"]),
                "dearest": by_product(sort={"amount": -1}, keep=2, fields={"number": "n"}),
                "paidTop": by_product(sort={"amount": -1, "at": 1}, keep=2, fields={"id": "_id", "a": "amount", "at": "at"}, where={"status": "paid"}),
                "whole": by_product(sort={"n": 1}, keep=2),
                "late": by_product(sort={"at": 1}, keep=2, fields=["at"], lag="200ms"),
            },
        },
        "tags": {
            "computed": {
                "sales": {"count": "sales", "by": "tags", "each": True, "create": True},
                "most": {"max": "amount", "from": "sales", "by": "tags", "each": True, "create": True},
            },
            "subset": {"latest": {"from": "sales", "by": "tags", "each": True, "sort": {"at": -1}, "keep": 2, "fields": {"id": "_id", "at": "at"}}},
        },
        "months": {
            "computed": {
                "revenue": {"sum": "amount", "from": "sales", "by": MONTH, "create": True},
                "sales": {"count": "sales", "by": MONTH, "create": True},
                "smallest": {"min": "amount", "from": "sales", "by": MONTH, "create": True},
                "products": {"distinct": "productId", "from": "sales", "by": MONTH, "create": True},
            }
        },
    },
}
PAID = {"status": "paid"}


def check(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r} instead of {wanted!r}")


def top(n, by, output):
    return {"$topN": {"n": n, "sortBy": {**by, "_id": 1}, "output": output}}


def end(word, by, value):
    """`$first` or `$last` in the order, ties by `_id`."""
    return [{"$sort": {**by, "_id": 1}}], {word: value}


# Each field of products: stages in front, its accumulator, and what it is without children.
OF_PRODUCTS = {
    "count": ([], {"$sum": 1}, 0),
    "sum": ([], {"$sum": "$amount"}, 0),
    "avg": ([], {"$avg": "$amount"}, None),
    "min": ([], {"$min": "$amount"}, None),
    "max": ([], {"$max": "$amount"}, None),
    "first": (*end("$first", {"at": 1}, "$n"), None),
    "last": (*end("$last", {"at": 1}, "$n"), None),
    "distinct": ([], {"$addToSet": "$n"}, 0),
    "paidCount": ([{"$match": PAID}], {"$sum": 1}, 0),
    "paidSum": ([{"$match": PAID}], {"$sum": "$amount"}, 0),
    "paidMax": ([{"$match": PAID}], {"$max": "$amount"}, None),
    "paidLast": ([{"$match": PAID}, {"$sort": {"at": 1, "n": -1, "_id": 1}}], {"$last": "$amount"}, None),
    "lateCount": ([], {"$sum": 1}, 0),
    "lateMin": ([], {"$min": "$n"}, None),
    "tagsUsed": ([{"$unwind": "$tags"}], {"$addToSet": "$tags"}, 0),
    "newest": ([], top(3, {"at": -1}, {"at": "$at", "n": "$n"}), []),
    "dearest": ([], top(2, {"amount": -1}, {"number": "$n"}), []),
    "paidTop": ([{"$match": PAID}], top(2, {"amount": -1, "at": 1}, {"id": "$_id", "a": "$amount", "at": "$at"}), []),
    "whole": ([], top(2, {"n": 1}, "$$ROOT"), []),
    "late": ([], top(2, {"at": 1}, {"at": "$at"}), []),
}
OF_TAGS = {
    "sales": ([{"$unwind": "$tags"}], {"$sum": 1}, 0),
    "most": ([{"$unwind": "$tags"}], {"$max": "$amount"}, None),
    "latest": ([{"$unwind": "$tags"}], top(2, {"at": -1}, {"id": "$_id", "at": "$at"}), []),
}
OF_MONTHS = {
    "revenue": ([], {"$sum": "$amount"}, 0),
    "sales": ([], {"$sum": 1}, 0),
    "smallest": ([], {"$min": "$amount"}, None),
    "products": ([], {"$addToSet": "$productId"}, 0),
}


def given(db, key, front, accumulator):
    """What the server's own accumulator gives for each key."""
    rows = db.sales.aggregate([*front, {"$group": {"_id": key, "v": accumulator}}])
    rows = {row["_id"]: row["v"] for row in rows if row["_id"] is not None}
    return {key: len(value) for key, value in rows.items()} if "$addToSet" in accumulator else rows


def as_number(value):
    return value.to_decimal() if isinstance(value, Decimal128) else value


def compare(db):
    """Returns how many values were compared."""
    compared = 0
    for collection, key, fields in (("products", "$productId", OF_PRODUCTS), ("tags", "$tags", OF_TAGS), ("months", MONTH, OF_MONTHS)):
        hosts = {host["_id"]: host for host in db[collection].find()}
        for name, (front, accumulator, empty) in fields.items():
            rows = given(db, key, front, accumulator)
            for host in hosts.values():
                wanted = rows.get(host["_id"], empty)
                check(f"{collection}.{name} of {host['_id']}", as_number(host[name]), as_number(wanted))
                compared += 1
            if collection != "products":
                check(f"documents of {collection}.{name}", set(rows) - set(hosts), set())
    return compared


def wait_until_still(db):
    for _ in range(600):
        status = db.command({"pleach": "status"})
        if all(rule["state"] == "on" for rule in status["rules"]) and status["outbox"]["pending"] == 0:
            return
        time.sleep(0.05)
    raise AssertionError(f"it does not come to rest: {status}")


class Writer:
    def __init__(self, uri, number, seed):
        self.client = pymongo.MongoClient(uri)
        self.db = self.client[NAME]
        self.session = self.client.start_session()
        self.pick = random.Random(f"{seed} {number}")
        # The session may come from the pool: numbers that the driver does not reach.
        self.number, self.ids, self.retries, self.done = number, 0, 1_000_000, 0
        self.failure = None

    def next_id(self):
        self.ids += 1
        return self.number * 1_000_000 + self.ids

    def sale(self, **more):
        pick = self.pick
        sale = {
            "productId": pick.choice([*PRODUCTS, *PRODUCTS, None, 99]),
            "amount": pick.choice([pick.randrange(-20, 100), pick.randrange(100) / 2, Int64(pick.randrange(50)), Decimal128("2.5")]),
            "n": pick.choice([pick.randrange(8), 3.0, "text", None, datetime(2026, 1, 1), {"a": pick.randrange(2)}, True]),
            "at": datetime(2026, 1, 1) + timedelta(days=pick.randrange(120), minutes=pick.randrange(5)),
            "status": pick.choice(["paid", "open"]),
            "tags": pick.sample(["a", "b", "c", "d"], pick.randrange(4)),
            **more,
        }
        for name in ("n", "tags"):
            if pick.random() < 0.1:
                del sale[name]
        return sale

    def one(self, session):
        pick, db, options = self.pick, self.db, {"session": session}
        product, other = pick.choice(PRODUCTS), pick.choice(PRODUCTS)
        mine = {"productId": product}
        field = pick.choice(["amount", "at", "n"])
        extreme = [(field, pick.choice([1, -1]))]
        change = {key: value for key, value in self.sale(productId=other).items() if pick.random() < 0.6} or {"n": 1}
        pipeline = [{"$set": {"amount": {"$cond": [{"$isNumber": "$amount"}, {"$add": ["$amount", 1]}, 0]}, "tags": ["d"]}}]

        def insert():
            db.sales.insert_many([self.sale(_id=self.next_id()) for _ in range(pick.randrange(1, 6))], **options)

        actions = [
            insert,
            insert,
            insert,
            lambda: db.sales.find_one_and_delete(mine, sort=extreme, **options),
            lambda: db.sales.find_one_and_update(mine, {"$set": change}, sort=extreme, return_document=True, **options),
            lambda: db.sales.find_one_and_replace(mine, self.sale(), sort=extreme, **options),
            lambda: db.sales.update_one(mine, {"$set": change}, **options),
            lambda: db.sales.update_one(mine, pipeline, **options),
            lambda: db.sales.update_one({"_id": self.next_id()}, {"$set": self.sale()}, upsert=True, **options),
            lambda: db.sales.update_many(mine, {"$set": {"productId": other}}, **options),
            lambda: db.sales.update_many(mine, {"$inc": {"amount": pick.choice([-3, 3])}}, **options),
            lambda: db.sales.update_many({"status": "open", **mine}, {"$set": {"status": "paid"}, "$unset": {"n": 1}}, **options),
            lambda: db.sales.replace_one(mine, self.sale(), **options),
            lambda: db.sales.delete_many({"amount": {"$gt": 80}, **mine}, **options),
            lambda: db.products.update_one({"_id": product}, {"$set": {"price": other}}, upsert=True, **options),
            lambda: db.products.delete_one({"_id": product}, **options),
            lambda: db.products.replace_one({"_id": product}, {"price": 1, "max": -1, "newest": []}, upsert=True, **options),
            lambda: db.products.update_one({"_id": product}, {"$set": {"distinct": -1, "price": 2}}, **options),
        ]
        if session is None:
            actions += [self.bulk, self.bulk, self.merge, self.refused, self.retried, self.in_transaction, self.in_transaction, self.in_transaction]
        pick.choice(actions)()

    def refused(self):
        """What a rule keeps is not written by clients."""
        product, kept = self.pick.choice(PRODUCTS), self.pick.choice(["max", "newest", "first", "tagsUsed"])
        try:
            self.db.products.update_one({"_id": product}, {"$set": {kept: 1}})
        except OperationFailure as error:
            check("refused", error.code, 66)
            return
        raise AssertionError(f"{kept} was written")

    def bulk(self):
        """About half of its statements fail."""
        pick, mine, first = self.pick, {"productId": self.pick.choice(PRODUCTS)}, self.next_id()
        ordered = pick.random() < 0.5
        requests = [
            InsertOne(self.sale(_id=first)),
            UpdateMany(mine, {"$inc": {"amount": 1}}),
            InsertOne(self.sale(_id=first)),
            UpdateOne({"_id": first}, {"$set": {"_id": 5}}),
            ReplaceOne({"_id": first}, self.sale()),
            UpdateOne({"_id": first}, {"$push": {"status": 1}}),
            UpdateOne({"_id": self.next_id()}, {"$set": self.sale()}, upsert=True),
            DeleteOne(mine),
            InsertOne(self.sale(productId=[1, 2])),
            DeleteMany({"amount": {"$lt": -10}, **mine}),
        ]
        pick.shuffle(requests)
        try:
            self.db.sales.bulk_write(requests, ordered=ordered)
        except BulkWriteError as error:
            codes = {failed["code"] for failed in error.details["writeErrors"]}
            # A duplicate, `_id` changed, no array; an array where `by` holds one key, by itself and beside an array in its index.
            if not codes <= {11000, 66, 2, 171}:
                raise
            return
        raise AssertionError("a bulk with statements that cannot be done was done")

    def merge(self):
        staged = self.db[f"staged{self.number}"]
        staged.delete_many({})
        ids = [self.next_id() for _ in range(3)]
        staged.insert_many([self.sale(_id=id) for id in ids])
        for matched in ("replace", "merge", "keepExisting"):
            staged.aggregate([{"$merge": {"into": "sales", "whenMatched": matched}}])
        staged.update_many({}, {"$inc": {"amount": 2}})
        staged.aggregate([{"$merge": {"into": "sales", "whenMatched": [{"$set": {"amount": "$$new.amount"}}]}}])

    def retried(self):
        """The same number twice, as a driver sends it after a lost answer."""
        self.retries += 1
        command = {"insert": "sales", "documents": [self.sale(_id=self.next_id())], "txnNumber": Int64(self.retries)}
        for _ in range(2):
            check("sent again", self.db.command(command, session=self.session)["n"], 1)

    def in_transaction(self):
        with self.client.start_session() as session:
            session.start_transaction()
            try:
                for _ in range(self.pick.randrange(1, 4)):
                    self.one(session)
                session.commit_transaction() if self.pick.random() < 0.6 else session.abort_transaction()
            except OperationFailure as error:
                if not error.has_error_label("TransientTransactionError"):
                    raise

    def run(self, until):
        try:
            while time.time() < until:
                self.one(None)
                self.done += 1
        except BaseException as error:
            self.failure = error


def main():
    uri, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 12
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    client = pymongo.MongoClient(uri)
    client.drop_database(NAME)
    db = client[NAME]
    rules = sum(len(fields) for patterns in DECLARATION["collections"].values() for fields in patterns.values())
    check("rules", rules, 27)
    db.command({"pleach": "apply", "declaration": DECLARATION})
    wait_until_still(db)
    db.products.insert_many([{"_id": id} for id in PRODUCTS])
    print(f"folds: {rules} rules, {WRITERS} writers, seed {seed}", flush=True)
    writers = [Writer(uri, number, seed) for number in range(1, WRITERS + 1)]
    rounds, compared = 3, 0
    for _ in range(rounds):
        until = time.time() + seconds / rounds
        threads = [threading.Thread(target=writer.run, args=(until,)) for writer in writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for writer in writers:
            if writer.failure:
                raise writer.failure
        wait_until_still(db)
        compared += compare(db)
        audit = db.command({"pleach": "audit"})
        check("audit", (audit["drifted"], list(audit["drift"])), (0, []))
    operations, sales = sum(writer.done for writer in writers), db.sales.count_documents({})
    print(f"folds: {operations} operations, {sales} sales, {compared} values compared")
    if operations < 20 * rounds or sales == 0:
        raise AssertionError("hardly anything was written")
    client.drop_database(NAME)
    print("folds: ok")


if __name__ == "__main__":
    main()
