"""The code that `plan --as` prints keeps what Pleach would keep: random writes through its functions on a real MongoDB, each language on a
database of its own, then `audit --upstream` finds nothing.

    run.py URI PLEACH STATE [LANGUAGE ...]     STATE: where clients/run has installed the drivers
"""

import importlib.util
import os
import pathlib
import random
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone

from bson import Decimal128, Int64, json_util
from pymongo import MongoClient

import arrays

HERE = pathlib.Path(__file__).parent
ACTS = 150
uri, pleach, state = sys.argv[1:4]


def rating(choice):
    """Of any type: what is no number counts in min and max, not in sum and avg."""
    n = choice.randrange(6)
    return choice.choice([n, n, n, Int64(n), n + 0.5, float(n), Decimal128("2.50"), "none", None])


def review(choice, number):
    at = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=choice.randrange(90), seconds=number)
    tags = choice.choice([["a"], ["a", "b"], ["b", "b"], [], "c", ["c", "a"]])
    return {"productId": choice.randrange(4), "rating": rating(choice), "weight": choice.randrange(7), "at": at, "tags": tags}


def acts(seed):
    """Every verb on every collection; some hosts come after their children, and some go and come again."""
    choice = random.Random(seed)
    reviews, receipts = [], []
    for number in range(ACTS):
        kind = choice.randrange(24)
        product, tag, customer = choice.randrange(5), choice.choice("abc"), choice.randrange(3)
        email = f"{customer}@example.org"
        if kind == 0:
            yield "delete", "products", [{"_id": product}]
            yield "insert", "products", [{"_id": product, "price": number}]
        elif kind == 1:
            yield "update", "products", [{"_id": product}, {"$set": {"price": number}}]
        elif kind == 2:
            yield "delete", "tags", [{"_id": tag}]
            yield "insert", "tags", [{"_id": tag}]
        elif kind == 3:
            yield "delete", "customers", [{"_id": customer}]
            yield "insert", "customers", [{"_id": customer, "email": email}]
        elif kind == 4:
            yield "update", "customers", [{"_id": customer}, {"$set": {"email": choice.choice([email, f"moved{email}"])}}]
        elif kind == 5:
            receipts.append(number)
            yield "insert", "receipts", [{"_id": number, "email": email, "amount": choice.randrange(50)}]
        elif kind == 6 and receipts:
            yield "update", "receipts", [{"_id": choice.choice(receipts)}, {"$set": {"email": email, "amount": number}}]
        elif kind == 7 and receipts:
            yield "delete", "receipts", [{"_id": choice.choice(receipts)}]
        elif kind == 8 and reviews:
            yield "delete", "reviews", [{"_id": choice.choice(reviews)}]
        elif kind == 9 and reviews:
            # Whatever is the best or the oldest of its product.
            yield "delete", "reviews", [{"productId": choice.randrange(4), "weight": {"$gte": 3}}]
        elif kind in (10, 11) and reviews:
            changed = review(choice, number)
            some = choice.sample(sorted(changed), 2)
            yield "update", "reviews", [{"_id": choice.choice(reviews)}, {"$set": {name: changed[name] for name in some}}]
        elif kind == 12 and reviews:
            yield "update", "reviews", [{"_id": choice.choice(reviews)}, {"$unset": {choice.choice(["at", "tags", "rating", "productId"]): ""}}]
        else:
            reviews.append(number)
            yield "insert", "reviews", [{"_id": number, **review(choice, number)}]
    # The roll-up documents of some months go with their last child, others stay.
    for number in reviews[::3]:
        yield "delete", "reviews", [{"_id": number}]
    yield from arrays.acts(seed, {})


def printed(language, folder):
    """The declaration with a database of its own, and the code for it."""
    declaration = (HERE / "pleach.yaml").read_text().replace("database: printed", f"database: printed_{language}")
    (folder / "pleach.yaml").write_text(declaration)
    command = [pleach, "plan", "--declare", str(folder / "pleach.yaml"), "--as", language]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def snake(verb, collection):
    return f"{verb}_{re.sub(r'([A-Z])', lambda found: '_' + found[1].lower(), collection)}"


def play_python(code, folder, seed):
    (folder / "code.py").write_text(code)
    spec = importlib.util.spec_from_file_location("printed_code", folder / "code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.create_indexes()
    for verb, collection, args in acts(seed):
        getattr(module, snake(verb, collection))(*args)
    module.client.close()


def lines(folder, seed):
    path = folder / "acts.jsonl"
    options = json_util.CANONICAL_JSON_OPTIONS
    rows = ({"verb": verb, "collection": collection, "args": args} for verb, collection, args in acts(seed))
    path.write_text("".join(json_util.dumps(row, json_options=options) + "\n" for row in rows))
    return path


def play_node(code, folder, seed):
    # Where the driver is installed.
    (folder / "code.cjs").write_text(code)
    program = pathlib.Path(state) / "node" / "play.cjs"
    program.write_text((HERE / "play.js").read_text())
    (program.parent / "printed.cjs").write_text(code)
    environment = {**os.environ, "PRINTED": str(program.parent / "printed.cjs"), "ACTS": str(lines(folder, seed))}
    subprocess.run(["node", str(program)], check=True, env=environment, timeout=60)


def play_mongosh(code, folder, seed):
    tail = f'\nplay((name) => eval(name), EJSON.parse, {json_util.dumps(str(lines(folder, seed)))});\n'
    (folder / "code.js").write_text(code + (HERE / "play.js").read_text() + tail)
    shell = pathlib.Path(state) / "node" / "node_modules" / ".bin" / "mongosh"
    subprocess.run([str(shell), "--quiet", "--norc", uri, str(folder / "code.js")], check=True, timeout=60, stdout=subprocess.DEVNULL)


def check(language, seed):
    folder = pathlib.Path(state) / "printed" / language
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["MONGODB_URI"] = uri
    with MongoClient(uri) as client:
        client.drop_database(f"printed_{language}")
        client[f"printed_{language}"].users.insert_many(arrays.THERE)
        globals()[f"play_{language}"](printed(language, folder), folder, seed)
        counts = {name: client[f"printed_{language}"][name].count_documents({}) for name in ("products", "reviews", "months", "shelves", "customers")}
        assert all(counts.values()), counts
        model = {}
        list(arrays.acts(seed, model))
        arrays.compare(client[f"printed_{language}"], model)
        audit = subprocess.run([pleach, "audit", "--upstream", uri, "--declare", str(folder / "pleach.yaml")], capture_output=True, text=True)
        assert audit.returncode == 0, audit.stdout + audit.stderr
        print(f"printed: {language} keeps what Pleach would keep: {counts}")
        client.drop_database(f"printed_{language}")


for each in sys.argv[4:] or ["python", "node", "mongosh"]:
    check(each, 1)
