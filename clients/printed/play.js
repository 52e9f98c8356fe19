// Plays the acts of a file through the functions that `plan --as node` or `plan --as mongosh` printed.
const name = (verb, collection) => verb + collection[0].toUpperCase() + collection.slice(1);
const fs = require("fs");

async function play(functions, parse, path) {
  for (const line of fs.readFileSync(path, "utf8").split("\n").filter(Boolean)) {
    const { verb, collection, args } = parse(line);
    await functions(name(verb, collection))(...args);
  }
}

if (typeof module !== "undefined" && process.env.PRINTED && require.main === module) {
  const printed = require(process.env.PRINTED);
  const { EJSON } = require("mongodb").BSON;
  const ends = printed.createIndexes().then(() => play((name) => printed[name], (line) => EJSON.parse(line, { relaxed: false }), process.env.ACTS));
  ends.then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
}
