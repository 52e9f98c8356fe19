// mongosh against Pleach: a document that is not as its kind asks is refused, and the shell shows why.
const assert = require('node:assert');
const name = 'client_check_kinds_mongosh';
const shop = db.getSiblingDB(name);
shop.dropDatabase();
const kinds = { book: { required: ['title', 'isbn'] } };
shop.runCommand({ pleach: 'apply', declaration: { database: name, collections: { products: { polymorphic: { discriminator: 'type', kinds } } } } });
shop.products.insertOne({ type: 'book', title: 'Emma', isbn: '1' });
let seen;
try { shop.products.insertOne({ type: 'book', title: 'Dune' }); } catch (error) { seen = error; }
assert.equal(seen.code, 121);
assert.match(JSON.stringify(seen.errInfo), /"missingProperties":\["isbn"\]/);
assert.match(JSON.stringify(shop.products.find({ type: 'bok' }).explain().pleach.notes), /no kind is called bok/);
shop.runCommand({ pleach: 'drop', rule: 'products.polymorphic' });
shop.dropDatabase();
print('mongosh kinds: ok');
