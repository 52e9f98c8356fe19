"""Adopting Pleach on a MongoDB that has users and drifted data, as docs/guide/adopt.md says it, with typos on the way.

python3 walk.py ADMIN_URI PLEACH DECLARATION: fails on the first surprise. Nothing that is refused, and nothing that only looks,
may change a byte; backing out gives every document and index back as it was.
"""

import json
import os
import subprocess
import sys
import tempfile

import pymongo
from bson import ObjectId, encode
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

NAME = "shop"
ADMIN, PLEACH, DECLARATION = sys.argv[1:4]
HOST = ADMIN.split("@")[1].split("/")[0]
USERS = {
    "reader": [("read", NAME)],
    "writer": [("readWrite", NAME)],
    "owner": [("readWrite", NAME), ("dbAdmin", NAME)],
    # Whose connection string `serve` has.
    "operator": [("readWriteAnyDatabase", "admin"), ("dbAdminAnyDatabase", "admin")],
}
RULES = ["orders.customer", "products.reviewCount", "products.rating"]

client = pymongo.MongoClient(ADMIN, document_class=RawBSONDocument)
shop = client[NAME]
folder = tempfile.TemporaryDirectory(prefix="pleach-adopt-")


def uri(user, host=HOST):
    options = "authSource=admin&replicaSet=rs" if host == HOST else "authSource=admin"
    return f"mongodb://{user}:secret@{host}/?{options}"


def step(text):
    print(f"adopt: {text}", flush=True)


def fail(what, result=None):
    said = f"\n{result.args}\nexit {result.returncode}\n{(result.stdout + result.stderr)[:4000]}" if result else ""
    sys.exit(f"adopt: FAILED: {what}{said}")


def pleach(user, verb, *words, declare=DECLARATION, code=0, says=(), target=None):
    """Runs a verb as a user; its exit code and what it says are as expected. The connection string is not on the command line."""
    command = [PLEACH, verb, *words] + (["--declare", declare] if declare else [])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLEACH_")}
    environment["PLEACH_SERVER" if target else "PLEACH_UPSTREAM"] = target or uri(user)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if result.returncode != code:
        fail(f"{verb} as {user}: exit {result.returncode}, not {code}", result)
    for text in says:
        if text not in result.stdout + result.stderr:
            fail(f"{verb} as {user} does not say {text!r}", result)
    if "secret" in result.stdout + result.stderr:
        fail(f"{verb} as {user} shows a password", result)
    return result


def declared(old, new):
    """The declaration with a typo in it."""
    text = open(DECLARATION).read()
    assert old in text, old
    path = os.path.join(folder.name, "pleach.yaml")
    with open(path, "w") as file:
        file.write(text.replace(old, new))
    return path


def state():
    """Every document and index of the database, as bytes, and the collections of Pleach elsewhere."""
    found = {}
    for name in sorted(shop.list_collection_names()):
        documents = [document.raw for document in shop[name].find(sort=[("_id", 1)])]
        indexes = sorted(encode(index) for index in shop[name].list_indexes())
        found[name] = (documents, indexes, encode(shop[name].options()))
    elsewhere = client.admin.list_collection_names()
    found["elsewhere"] = sorted(name for name in elsewhere if name.startswith("pleach."))
    return found


def same(before, what):
    after = state()
    if before != after:
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                was, now = before.get(name), after.get(name)
                print(f"adopt: {name} differs: {short(was)} | {short(now)}", file=sys.stderr)
        fail(what)


def short(part):
    if not isinstance(part, tuple):
        return part
    documents = [str(RawBSONDocument(raw)) for raw in part[0][:3]]
    return f"{len(part[0])} documents {documents}, {[str(RawBSONDocument(raw)) for raw in part[1]]}"


def fill():
    """A shop whose derived values were kept by hand, and not well."""
    client.drop_database(NAME)
    for name in list(client.admin.list_collection_names()):
        if name.startswith("pleach."):
            client.admin.drop_collection(name)
    for user, roles in USERS.items():
        try:
            client.admin.command("dropUser", user)
        except OperationFailure:
            pass
        client.admin.command("createUser", user, pwd="secret", roles=[{"role": role, "db": db} for role, db in roles])
    customers = [{"_id": ObjectId(), "name": f"Customer {n}", "tier": n % 3} for n in range(50)]
    shop.customers.insert_many(customers)
    orders, drifted = [], {rule: 0 for rule in RULES}
    for n in range(400):
        customer = customers[n % 50]
        order = {"_id": n, "customerId": customer["_id"], "total": n * 1.5, "customer": {"name": customer["name"], "tier": customer["tier"]}}
        if n % 20 == 3:
            order["customer"] = {"name": "an old name", "tier": customer["tier"]}
            drifted["orders.customer"] += 1
        elif n % 50 == 7:
            del order["customer"]
            drifted["orders.customer"] += 1
        elif n % 100 == 11:
            # The customer is gone: the copy stays as it is.
            order["customerId"] = ObjectId()
        elif n % 100 == 12:
            # A guest: by the declaration there is nothing to copy.
            order = {"_id": n, "total": n * 1.5, "customer": {"name": "Guest", "tier": 0}}
            drifted["orders.customer"] += 1
        orders.append(order)
    shop.orders.insert_many(orders)
    shop.orders.create_index("customerId", name="by_customer")
    reviews = [{"_id": n, "productId": n % 35, "stars": n % 5 + 1} for n in range(300)]
    shop.reviews.insert_many(reviews)
    products = []
    for n in range(40):
        stars = [review["stars"] for review in reviews if review["productId"] == n]
        product = {"_id": n, "name": f"Product {n}", "reviewCount": len(stars), "rating": sum(stars) / len(stars) if stars else None}
        if n % 8 == 2:
            product["reviewCount"] += 1
            drifted["products.reviewCount"] += 1
        if n % 10 == 4:
            product["rating"] = 1.25
            drifted["products.rating"] += 1
        products.append(product)
    shop.products.insert_many(products)
    return drifted


def audited(user, code, drifted, **more):
    report = json.loads(pleach(user, "audit", "--json", code=code, **more).stdout)
    found = {rule["rule"]: rule["drifted"] for rule in report["rules"]}
    if found != drifted:
        fail(f"audit as {user} finds {found}, not {drifted}")
    return report


def misspelt(first):
    step("typos: said by plan and apply, and nothing changes")
    for old, new, near in [
        ("by: customerId", "by: custmerId", "customerId"),
        ("from: customers", "from: custmers", "customers"),
        ("fields: [name, tier]", "fields: [nmae, tier]", "name"),
        ("count: reviews", "count: reviewz", "reviews"),
        ("  products:", "  prodcts:", "products"),
    ]:
        path = declared(old, new)
        pleach("reader", "plan", declare=path, code=1, says=[f"`{near}`"])
        pleach("owner", "apply", declare=path, code=2, says=[f"`{near}`", "--create-missing"])
        same(first, f"a refused apply with {new!r} changed something")
    path = declared("fields: [name, tier]", "feilds: [name, tier]")
    for verb in ["check", "plan", "apply"]:
        pleach("owner", verb, declare=path, code=2, says=["feilds", "`fields`"])
    same(first, "a declaration that is not valid changed something")


def served(first):
    step("serve: a client with its own user writes through")
    environment = dict(os.environ, PLEACH_UPSTREAM=uri("operator"))
    command = [PLEACH, "serve", "--port", "0", "--log", "warn"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if line.strip().startswith("mongodb://"):
                host = line.strip().removeprefix("mongodb://").rstrip("/")
                break
        else:
            fail("serve did not start")
        through = pymongo.MongoClient(uri("writer", host))[NAME]
        before = through.products.find_one({"_id": 1})
        through.reviews.insert_one({"_id": 1000, "productId": 1, "stars": 5})
        after = through.products.find_one({"_id": 1})
        if after["reviewCount"] != before["reviewCount"] + 1:
            fail(f"a review is not counted: {before} {after}")
        customer = through.customers.find_one({"name": "Customer 1"})
        through.customers.update_one({"_id": customer["_id"]}, {"$set": {"name": "Renamed"}})
        names = through.orders.distinct("customer.name", {"customerId": customer["_id"]})
        if names != ["Renamed"]:
            fail(f"copies are not refreshed: {names}")
        try:
            pymongo.MongoClient(uri("reader", host))[NAME].reviews.insert_one({})
            fail("a reader can write through the proxy")
        except OperationFailure as error:
            if error.code != 13:
                fail(f"a reader is refused with {error.code}")
        audited("reader", 0, {rule: 0 for rule in RULES}, declare=None, target=uri("reader", host))
        # Undone, so that the first state can be compared at the end.
        through.customers.update_one({"_id": customer["_id"]}, {"$set": {"name": "Customer 1"}})
        through.reviews.delete_one({"_id": 1000})
    finally:
        server.terminate()
        server.wait(30)


def gone(first, what):
    """What is stored is what it was before Pleach came, and nothing of Pleach is left."""
    same(first, what)
    left = [name for name in state() if name.startswith("pleach.")] + state()["elsewhere"]
    if left:
        fail(f"{what}: {left} left behind")


def main():
    drifted = fill()
    first = state()

    step("audit: the drift is found by a user who may only read")
    audited("reader", 1, drifted)
    pleach("reader", "audit", "--examples", "0", code=1, says=["values drifted", "pleach apply"])
    same(first, "an audit changed something")

    misspelt(first)

    step("plan: what apply would do, with counts")
    pleach("reader", "plan", code=1, says=RULES)
    pleach("reader", "apply", code=2, says=["not authorized"])
    same(first, "a plan, or an apply without rights, changed something")

    step("apply: refused where values would vanish, unless asked for")
    pleach("owner", "apply", code=2, says=["--overwrite"])
    same(first, "a refused apply changed something")
    pleach("owner", "apply", "--overwrite")
    audited("reader", 0, {rule: 0 for rule in RULES})
    audited("reader", 0, {rule: 0 for rule in RULES}, declare=None)

    served(first)

    step("back out: every document and index as it was")
    for rule in RULES:
        pleach("owner", "drop", rule, "--restore")
    after = {name: part for name, part in state().items() if not name.startswith("pleach.")}
    documents = {name: part[0] for name, part in after.items() if name != "elsewhere"}
    if documents != {name: part[0] for name, part in first.items() if name != "elsewhere"}:
        same(first, "drop --restore does not give the documents back as they were")

    step("uninstall: nothing of Pleach is left")
    pleach("operator", "uninstall", "--yes", declare=None)
    gone(first, "uninstall after all rules were dropped")
    pleach("owner", "apply", "--overwrite")
    kept = {name: part[0] for name, part in state().items() if name in first and name != "elsewhere"}
    # What apply has replaced is kept until somebody says that it may go.
    pleach("operator", "uninstall", "--yes", "--forget", declare=None)
    left = state()
    if sorted(left) != sorted(first) or left["elsewhere"]:
        fail(f"uninstall leaves {sorted(left)}")
    if {name: part[1] for name, part in left.items() if name != "elsewhere"} != {name: part[1] for name, part in first.items() if name != "elsewhere"}:
        fail("uninstall leaves indexes")
    for name, documents in kept.items():
        plain = [{key: value for key, value in RawBSONDocument(raw).items() if key != "_pleach"} for raw in documents]
        now = [dict(RawBSONDocument(raw).items()) for raw in left[name][0]]
        if plain != now:
            fail(f"uninstall changed the documents of {name}")
    client.drop_database(NAME)
    step("done")


main()
