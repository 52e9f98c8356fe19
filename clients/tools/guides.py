"""The guides docs/guide/backup.md and uninstall.md, command by command, as a reader would type them.

python3 guides.py TOOLS PLEACH GUIDES [UPSTREAM]
"""
import datetime
import os
import re
import subprocess
import sys
import tempfile

import pymongo

tools, pleach, guides = (os.path.abspath(path) for path in sys.argv[1:4])
upstream = sys.argv[4] if len(sys.argv) > 4 else None
YAML = """database: shop
collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
  readings:
    bucket: { into: hours, time: ts, by: [sensor], every: hour, at_most: 10 }
"""


def commands(guide):
    """The indented lines that begin with a program."""
    text = open(os.path.join(guides, guide), encoding="utf-8").read()
    return re.findall(r"^    ((?:pleach|mongodump|mongorestore) .*)$", text, re.M)


def serve(folder, log):
    where = ["--upstream", upstream] if upstream else ["--data", os.path.join(folder, "data")]
    server = subprocess.Popen([pleach, "serve", "--port", "0", *where], stdout=subprocess.PIPE, stderr=log, text=True)
    uri = next(found.group() for line in server.stdout if (found := re.search(r"mongodb://\S*", line)))
    return server, uri


def clean(client):
    client.admin.command({"pleach": "uninstall", "databases": ["shop", "copy"], "forget": True})
    for name in ("shop", "copy"):
        client.drop_database(name)


with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "log"), "w+") as log:
    server, uri = serve(folder, log)
    os.symlink(pleach, os.path.join(folder, "pleach"))
    path = os.pathsep.join([folder, tools, os.environ["PATH"]])

    def run(command, codes=(0,)):
        line = command.replace("mongodb://127.0.0.1:27017", uri)
        line = line.replace("mongodb://db.example.com", f"'{upstream}'" if upstream else uri)
        done = subprocess.run(line, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode in codes, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    try:
        client = pymongo.MongoClient(uri)
        shop = client.shop
        clean(client)
        client.admin.command({"pleach": "apply", "declaration": YAML})
        shop.products.insert_one({"_id": 1})
        shop.reviews.insert_many([{"productId": 1} for _ in range(5)])
        shop.readings.insert_many([{"sensor": 1, "ts": datetime.datetime(2024, 1, 1, 0, minute)} for minute in range(30)])

        dumps_and_restores = commands("backup.md")
        assert len(dumps_and_restores) == 7, dumps_and_restores
        dump, archive, fresh, same, audit, renamed, plain = dumps_and_restores
        run(dump)
        run(archive)
        clean(client)
        run(fresh)
        shop.reviews.delete_many({})
        run(same)
        run(audit)
        assert shop.products.find_one()["reviewCount"] == 5 and shop.readings.count_documents({}) == 30
        run(renamed)
        client.copy.reviews.insert_one({"productId": 1})
        assert client.copy.products.find_one()["reviewCount"] == 6
        if upstream:
            clean(client)
            run(plain)
            # A Pleach is started in front of it.
            server.terminate()
            server.wait(30)
            server, uri = serve(folder, log)
            client = pymongo.MongoClient(uri)
            shop = client.shop
            run(audit)
            shop.reviews.insert_one({"productId": 1})
            assert shop.products.find_one()["reviewCount"] == 6

        asks, unasked = commands("uninstall.md")
        assert "--yes" in run(asks, codes=(2,)).stderr
        count = shop.products.find_one()["reviewCount"]
        run(unasked)
        assert {*shop.list_collection_names()} - {"system.views"} == {"products", "readings", "reviews"}
        assert shop.list_collection_names(filter={"name": {"$regex": "^pleach"}}) == []
        assert shop.products.find_one() == {"_id": 1, "reviewCount": count}
        assert shop.readings.count_documents({}) == 30 and len(list(shop.reviews.list_indexes())) == 1
        clean(client)
        if upstream:
            server.terminate()
            server.wait(30)
            behind = pymongo.MongoClient(upstream)
            left = behind.admin.list_collection_names(filter={"name": "pleach.processes"})
            others = [name for name in behind.list_database_names() if "pleach.catalog" in behind[name].list_collection_names()]
            assert left == [] or others, left
    finally:
        server.terminate()
        server.wait(30)
print("guides: ok")
