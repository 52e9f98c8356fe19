"""PyMongo against Pleach: two versions of one application at once, one of them under the name of an older version.

python3 versions.py URI
"""

import sys
import threading

import pymongo
from pymongo import DeleteOne, InsertOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

from patterns import audit_clean, check, wait_until_on

NAME = "client_check_versions"
DECLARATION = {
    "database": NAME,
    "collections": {
        "users": {
            "versions": {
                "field": "v",
                "migrate": {"background": False},
                "steps": [
                    {"nest": {"phone": {"into": "phone.number", "with": {"phone.code": "+1"}}}},
                    [
                        {"rename": {"mail": "email"}},
                        {"split": {"name": {"into": ["first", "last"], "on": " "}}},
                        {"convert": {"age": {"from": "string", "to": "int"}}},
                        {"wrap": ["nick"]},
                        {"default": {"active": True}},
                    ],
                ],
            },
            "computed": {"orderCount": {"count": "orders", "by": "userId"}},
        },
        "posts": {"extended_reference": {"author": {"from": "users", "by": "authorId", "fields": ["email", "last"]}}},
    },
}
FIRST = {"_id": 1, "name": "Ada Lovelace", "phone": "1", "mail": "a@x", "age": "36", "nick": "ada"}
SECOND = {"_id": 2, "v": 2, "name": "Bob Moore", "phone": {"number": "2", "code": "+44"}, "mail": "b@x", "age": "41", "nick": "bob"}
THIRD = {
    "_id": 3, "v": 3, "first": "Cyd", "last": "Noor", "phone": {"number": "3", "code": "+49"}, "email": "c@x", "age": 50,
    "nick": ["cyd", "c"], "active": False, "notes": {"only": "new"},
}


def ids(cursor):
    return [document["_id"] for document in cursor]


def reads(new, old, middle):
    check("newest shape", [user["phone"]["number"] for user in new.find().sort("_id", 1)], ["1", "2", "3"])
    check("first shape", [user["phone"] for user in old.find().sort("_id", 1)], ["1", "2", "3"])
    seen = middle.find_one(3, {"_id": 0, "notes": 0, "orderCount": 0})
    shape = {"phone": {"number": "3", "code": "+49"}, "name": "Cyd Noor", "mail": "c@x", "age": "50", "nick": "cyd", "active": False, "v": 2}
    check("second shape", seen, shape)
    for users, filters in [
        (new, [{"phone.number": "1"}, {"email": "a@x"}, {"first": "Ada"}, {"age": 36}, {"nick": "ada"}, {"age": {"$lt": 40}}, {"v": 3, "last": "Lovelace"}]),
        (old, [{"phone": "1"}, {"mail": "a@x"}, {"name": "Ada Lovelace"}, {"age": "36"}, {"nick": "ada"}, {"v": 1, "name": {"$regex": "^Ada"}}]),
    ]:
        for filter in filters:
            check(f"filter {filter}", ids(users.find(filter)), [1])
            check(f"count {filter}", users.count_documents(filter), 1)
    check("sort", ids(new.find().sort([("age", -1)])), [3, 2, 1])
    check("sort in old words", ids(old.find().sort([("mail", -1)]).batch_size(1)), [3, 2, 1])
    check("distinct", sorted(new.distinct("phone.code")), ["+1", "+44", "+49"])
    check("distinct of the old", sorted(old.distinct("nick")), ["ada", "bob", "cyd"])
    check("projection", new.find_one({"last": "Lovelace"}, {"_id": 0, "email": 1}), {"email": "a@x"})
    check("missing", ids(new.find({"mail": {"$exists": True}})), [])
    pipeline = [{"$match": {"age": {"$gte": 40}}}, {"$group": {"_id": "$phone.code", "ages": {"$sum": "$age"}}}, {"$sort": {"_id": 1}}]
    check("aggregate", list(new.aggregate(pipeline)), [{"_id": "+44", "ages": 41}, {"_id": "+49", "ages": 50}])
    pipeline = [{"$project": {"n": {"$concat": ["$name", ": ", "$phone"]}}}, {"$sort": {"n": -1}}, {"$limit": 1}]
    check("aggregate of the old", list(old.aggregate(pipeline)), [{"_id": 3, "n": "Cyd Noor: 3"}])
    joined = [{"$match": {"_id": 1}}, {"$lookup": {"from": "users", "localField": "authorId", "foreignField": "_id", "as": "users"}}]
    check("lookup", next(new.database.posts.aggregate(joined))["users"][0]["email"], "a@x")
    check("lookup of the old", next(old.database.posts.aggregate(joined))["users"][0]["mail"], "a@x")


def writes(new, old):
    # The older client changes what the newer one wrote, and keeps what it does not see.
    result = old.update_one({"phone": "3"}, {"$set": {"phone": "33", "nick": "z", "age": "51", "name": "Cyd Noor-Berg"}})
    check("matched", (result.matched_count, result.modified_count), (1, 1))
    kept = {**THIRD, "phone": {"number": "33", "code": "+49"}, "nick": ["z", "c"], "age": 51, "last": "Noor-Berg", "orderCount": 1}
    check("nothing is destroyed", new.find_one(3), kept)
    document = old.find_one(3)
    check("save of what was read", old.replace_one({"_id": 3}, {**document, "phone": "34"}).modified_count, 1)
    check("and of that nothing", new.find_one(3), {**kept, "phone": {"number": "34", "code": "+49"}})

    before = old.find_one_and_update({"mail": "b@x"}, {"$set": {"mail": "b@y"}, "$inc": {"logins": 1}})
    check("before", (before["mail"], before["phone"]), ("b@x", "2"))
    after = old.find_one_and_update({"mail": "b@y"}, {"$inc": {"logins": 1}}, return_document=ReturnDocument.AFTER)
    check("after", (after["mail"], after["logins"], after["v"]), ("b@y", 2, 1))
    after = new.find_one_and_update({"email": "b@y"}, {"$set": {"phone.code": "+43"}}, return_document=ReturnDocument.AFTER)
    check("the newer sees both", (after["email"], after["logins"], after["phone"]), ("b@y", 2, {"number": "2", "code": "+43"}))
    check("a pipeline", old.update_one({"_id": 2}, [{"$set": {"phone": {"$concat": ["$phone", "0"]}}}]).modified_count, 1)
    check("by a pipeline", new.find_one(2)["phone"], {"number": "20", "code": "+43"})

    check("upsert", old.update_one({"_id": 4}, {"$set": {"phone": "4", "name": "Dan Ode", "age": "20"}}, upsert=True).upserted_id, 4)
    fourth = {"_id": 4, "phone": {"number": "4", "code": "+1"}, "first": "Dan", "last": "Ode", "age": 20, "active": True, "v": 3, "orderCount": 0}
    check("upserted", new.find_one(4), fourth)
    check("upsert of the newer", new.update_one({"email": "e@x"}, {"$setOnInsert": {"_id": 5, "nick": ["e"]}}, upsert=True).upserted_id, 5)
    check("the older reads it", old.find_one(5, {"orderCount": 0, "active": 0}), {"_id": 5, "mail": "e@x", "nick": "e", "v": 1})

    result = old.bulk_write([
        InsertOne({"_id": 6, "name": "Eve Poe", "phone": "6"}),
        UpdateMany({"phone": {"$in": ["6", "4"]}}, {"$set": {"mail": "bulk@x"}}),
        UpdateOne({"_id": 7}, {"$set": {"phone": "7"}}, upsert=True),
        DeleteOne({"mail": "e@x"}),
    ])
    check("bulk", (result.inserted_count, result.modified_count, result.upserted_ids, result.deleted_count), (1, 2, {2: 7}, 1))
    check("what it wrote", ids(new.find({"email": "bulk@x", "phone.number": {"$in": ["4", "6"]}}).sort("_id", 1)), [4, 6])
    try:
        old.insert_many([{"_id": 8, "phone": "8"}, {"_id": 1, "phone": "again"}, {"_id": 9, "phone": "9"}], ordered=False)
        raise AssertionError("an _id twice")
    except BulkWriteError as error:
        check("one failed", [(row["index"], row["code"]) for row in error.details["writeErrors"]], [(1, 11000)])
    check("the others not", new.count_documents({"phone.number": {"$in": ["8", "9"]}}), 2)
    check("deleted by what changed", old.delete_many({"phone": {"$in": ["8", "9"]}}).deleted_count, 2)
    new.insert_one({"_id": 10, "v": 9, "phone": "of a version that nobody knows"})
    check("newer than known", new.find_one(10)["v"], 9)
    new.delete_one({"_id": 10})


def together(client, new, old):
    """Both change the same documents at once; a transaction of the older client is one."""
    def count(users, field, value):
        for _ in range(40):
            users.update_one({"_id": 1}, {"$inc": {field: 1}, "$set": value})

    tasks = [(new, "byNew", {"phone.code": "+41"}), (old, "byOld", {"phone": "111"}), (old, "alsoOld", {"mail": "both@x"})]
    threads = [threading.Thread(target=count, args=task) for task in tasks]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    user = new.find_one(1)
    seen = (user["byNew"], user["byOld"], user["alsoOld"], user["phone"], user["email"])
    check("nothing gets lost", seen, (40, 40, 40, {"number": "111", "code": "+41"}, "both@x"))
    check("a copy follows", new.database.posts.find_one(1)["author"], {"email": "both@x", "last": "Lovelace"})

    with client.start_session() as session:
        session.start_transaction()
        old.update_one({"_id": 1}, {"$set": {"phone": "0"}}, session=session)
        check("its own write", new.find_one(1, session=session)["phone"]["number"], "0")
        session.abort_transaction()
    check("given up", old.find_one(1)["phone"], "111")


def main():
    client = pymongo.MongoClient(sys.argv[1])
    client.drop_database(NAME)
    db = client[NAME]
    db.users.insert_many([FIRST, SECOND, THIRD])
    db.orders.insert_one({"userId": 3})
    db.posts.insert_one({"_id": 1, "authorId": 1})
    # First what is computed: to seed a field is to write documents, and these are stored in the newest version then.
    others = {"users": {"computed": DECLARATION["collections"]["users"]["computed"]}}
    db.command({"pleach": "apply", "declaration": {"database": NAME, "collections": others}})
    wait_until_on(db)
    db.command({"pleach": "apply", "declaration": DECLARATION})
    status = wait_until_on(db)
    health = next(rule["health"] for rule in status["rules"] if rule["rule"] == "users.versions")
    check("stored versions", health["versions"], {"1": 1, "2": 1, "3": 1})
    old, middle = client[f"{NAME}@1"].users, client[f"{NAME}@2"].users
    reads(db.users, old, middle)
    writes(db.users, old)
    together(client, db.users, old)
    try:
        client[f"{NAME}@4"].users.find_one()
        raise AssertionError("a version that is not declared")
    except OperationFailure as error:
        check("a version that is not declared", error.code, 73)
    check("no database of that name", [name for name in client.list_database_names() if "@" in name], [])
    audit_clean(db)
    for rule in ("users.versions", "users.orderCount", "posts.author"):
        db.command({"pleach": "drop", "rule": rule})
    client.drop_database(NAME)
    print("versions: ok")


if __name__ == "__main__":
    main()
