"""What `lab` predicts beside what `apply` then makes, for every pattern: bytes, and by how much its read is faster.

The same data is in two databases of one server. The rule is applied in one of them; both are read in turns."""

import argparse
import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import bson
from pymongo import MongoClient

from worlds import WORLDS, world

BYTES = ("documents", "bytes.data", "bytes.indexes", "bytes.disk")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pleach", required=True)
    parser.add_argument("--only", action="append", choices=sorted(WORLDS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the data")
    parser.add_argument("--sample", default="20%%")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--upstream", help="a MongoDB to hold the data, instead of the embedded store")
    parser.add_argument("--text", action="store_true", help="print lab's own tables too")
    return parser.parse_args()


class Wire:
    """One connection that takes as little time of its own as Python can."""

    def __init__(self, uri):
        host, port = uri.split("//")[1].split("/")[0].split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def message(database, command):
        body = b"\0\0\0\0\0" + bson.encode({**command, "$db": database})
        return struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body

    def ask(self, message):
        self.socket.sendall(message)
        head = self.receive(4)
        return self.receive(struct.unpack("<i", head)[0] - 4)

    def receive(self, length):
        parts = bytearray()
        while len(parts) < length:
            part = self.socket.recv(length - len(parts))
            if not part:
                raise SystemExit("the server closed the connection")
            parts += part
        return bytes(parts)


class Run:
    def __init__(self, asked, name, folder):
        self.asked, self.name, self.folder = asked, name, folder
        self.world, self.data = world(name, asked.scale, asked.seed)
        self.log = open(folder / "serve.log", "w+")
        place = ["--upstream", asked.upstream] if asked.upstream else ["--data", folder / "data"]
        self.server = subprocess.Popen([asked.pleach, "serve", "--port", "0", "--log", "warn", *place], stdout=self.log, cwd=folder)
        self.client = MongoClient(self.address())
        self.plain, self.ruled = f"plain_{name}", f"ruled_{name}"
        (folder / "candidate.yaml").write_text(f"database: {self.ruled}\ncollections:\n  {self.world.rules}\n")

    def address(self):
        for _ in range(300):
            self.log.seek(0)
            for line in self.log:
                if line.strip().startswith("mongodb://"):
                    self.uri = line.strip()
                    return self.uri
            if self.server.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.1)
        raise SystemExit("the server says no address")

    def pleach(self, *args):
        done = subprocess.run([self.asked.pleach, *map(str, args)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode > 1:
            raise SystemExit(f"pleach {args[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        if self.asked.text:
            print(done.stdout, done.stderr)
        return done.stdout

    def load(self):
        for name in (self.plain, self.ruled):
            self.client.drop_database(name)
            for collection, documents in self.data.items():
                for at in range(0, len(documents), 5_000):
                    self.client[name][collection].insert_many(documents[at : at + 5_000], ordered=False)
            for collection, keys in self.world.indexes.items():
                keys = [keys] if isinstance(keys, str) else keys
                self.client[name][collection].create_index([(key, 1) for key in keys])

    def lab(self):
        out = self.pleach("lab", *self.place(), "--declare", "now", "--declare", "candidate.yaml", "--sample", self.asked.sample.replace("%%", "%"),
                          "--seconds", self.asked.seconds, "--seed", self.asked.seed, "--json")
        return json.loads(out)

    def place(self):
        return ["--upstream", self.asked.upstream] if self.asked.upstream else ["--server", self.uri]

    def apply(self):
        self.pleach("apply", "--server", self.uri, "--declare", "candidate.yaml", "--overwrite", "--create-missing")
        self.pleach("audit", "--server", self.uri, "--declare", "candidate.yaml")
        if not self.asked.upstream:
            # What was overwritten goes: the prediction is of a store that has been compacted.
            for name in (self.plain, self.ruled):
                for collection in self.client[name].list_collection_names(filter={"type": "collection"}):
                    # A collection that is stored in another form has nothing under its own name.
                    self.client[name].command("compact", collection, check=False)
        return json.loads(self.pleach("lab", "--verify", *self.place(), "--declare", "candidate.yaml", "--json"))["verify"]

    def ratio(self):
        """How much faster the read is with the rule: both databases are asked in turns."""
        chance, documents, wire = Random(7), self.data[self.world.host], Wire(self.uri)
        times = {self.plain: [], self.ruled: []}
        until = time.monotonic() + self.asked.seconds
        while time.monotonic() < until:
            reads = self.world.read(documents[chance.randrange(len(documents))])
            for name, commands in zip(times, reads):
                messages = [Wire.message(name, command) for command in commands]
                begun = time.perf_counter()
                for message in messages:
                    wire.ask(message)
                times[name].append(time.perf_counter() - begun)
        plain, ruled = (sorted(all)[len(all) // 2] for all in times.values())
        return plain / ruled

    def end(self):
        for name in (self.plain, self.ruled):
            self.client.drop_database(name)
        self.client.close()
        self.server.terminate()
        self.server.wait()
        self.log.close()


def predicted_ratio(told):
    """Of the medians: what was first, against what was last."""
    now, then = told["candidates"][0], told["candidates"][-1]
    pairs = [(a["p50_ms"], b["p50_ms"]) for a, b in zip(now["reads"], then["reads"])]
    return pairs[0][0] / pairs[0][1] if pairs and pairs[0][1] else 0.0


asked = arguments()
failed = []
print(f"{'pattern':20} {'figure':18} {'predicted':>14} {'real':>14} {'off':>9}  stated error")
for name in asked.only or sorted(WORLDS):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(asked, name, Path(folder))
        try:
            run.load()
            told = run.lab()
            error = told["candidates"][-1]["full_size"]["error"]
            verify = run.apply()
            for row in verify:
                if row["figure"] in BYTES or row["figure"].startswith("document"):
                    print(f"{name:20} {row['figure']:18} {row['predicted']:14,.1f} {row['real']:14,.1f} {row['off']:+9.2%}  ±{error:.2%}")
                if row["figure"] in ("documents", "bytes.data") and abs(row["off"]) > max(0.02, error):
                    failed.append(f"{name}: {row['figure']} {row['off']:+.2%}")
            predicted, real = predicted_ratio(told), run.ratio()
            print(f"{name:20} {'speed, ratio':18} {predicted:14.2f} {real:14.2f} {predicted / real - 1:+9.2%}", flush=True)
        finally:
            run.end()
print("\n".join(["", "more than 2 % and more than the stated error:", *failed]) if failed else "\nall bytes within 2 % or the stated error")
sys.exit(1 if failed else 0)
