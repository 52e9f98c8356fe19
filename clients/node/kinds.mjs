// Mongoose's discriminators on a collection whose kinds Pleach checks: what the schema in the program forgets, the database refuses.
import assert from 'node:assert/strict';
import mongoose from 'mongoose';

const name = 'client_check_kinds_mongoose';
await mongoose.connect(process.argv[2], { dbName: name, serverSelectionTimeoutMS: 5000 });
await mongoose.connection.dropDatabase();
const run = (command) => mongoose.connection.db.command(command);
const kinds = { Book: { required: ['title', 'isbn'] }, Shirt: { required: ['title', 'size'] } };
await run({ pleach: 'apply', declaration: { database: name, collections: { products: { polymorphic: { discriminator: 'type', kinds } } } } });

const options = { discriminatorKey: 'type', versionKey: false };
const Product = mongoose.model('Product', new mongoose.Schema({ title: String }, options), 'products');
const Book = Product.discriminator('Book', new mongoose.Schema({ isbn: String }));
const Shirt = Product.discriminator('Shirt', new mongoose.Schema({ size: String }));

const emma = await Book.create({ title: 'Emma', isbn: '1' });
await Shirt.create({ title: 'Plain', size: 'M' });
const refused = (error) => {
  assert.equal(error.code, 121, error.message);
  assert.match(JSON.stringify(error.errInfo ?? error.errorResponse?.errInfo), /"title":"Book".*"missingProperties":\["isbn"\]/);
  return true;
};
await assert.rejects(Book.create({ title: 'Dune' }), refused);
emma.isbn = undefined;
await assert.rejects(emma.save(), refused);
assert.deepEqual((await Product.find().sort('title')).map((product) => product.type), ['Book', 'Shirt']);
await mongoose.connection.dropDatabase();
await run({ pleach: 'drop', rule: 'products.polymorphic' });
await mongoose.connection.dropDatabase();
console.log('mongoose kinds: ok');
await mongoose.disconnect();
