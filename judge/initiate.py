"""Make a fresh mongod a one-node replica set and wait until it takes writes. Standard library only.

python3 initiate.py PORT [NAME]: with a name, the first user of a server with access control, who may do everything.
"""

import socket
import struct
import sys
import time


def bson(document):
    out = b""
    for key, value in document.items():
        name = key.encode() + b"\0"
        if isinstance(value, dict):
            out += b"\x03" + name + bson(value)
        elif isinstance(value, list):
            out += b"\x04" + name + bson({str(i): v for i, v in enumerate(value)})
        elif isinstance(value, int):
            out += b"\x10" + name + struct.pack("<i", value)
        else:
            text = value.encode() + b"\0"
            out += b"\x02" + name + struct.pack("<i", len(text)) + text
    return struct.pack("<i", len(out) + 5) + out + b"\0"


def command(connection, document):
    body = struct.pack("<iB", 0, 0) + bson(document | {"$db": "admin"})
    connection.sendall(struct.pack("<iiii", len(body) + 16, 1, 0, 2013) + body)
    reply = b""
    while len(reply) < 4 or len(reply) < struct.unpack_from("<i", reply)[0]:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("mongod closed the connection")
        reply += part
    return reply


def main():
    port = int(sys.argv[1])
    deadline = time.monotonic() + 60
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        members = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
        command(connection, {"replSetInitiate": {"_id": "rs", "members": members}})
        while b"\x08isWritablePrimary\0\x01" not in command(connection, {"hello": 1}):
            if time.monotonic() > deadline:
                sys.exit("error: no primary after 60 s")
            time.sleep(0.02)
        if len(sys.argv) > 2:
            reply = command(connection, {"createUser": sys.argv[2], "pwd": "judge", "roles": ["root"]})
            if b"\x01ok\0\x00\x00\x00\x00\x00\x00\xf0\x3f" not in reply:
                sys.exit("error: the first user could not be made")


main()
