// mongosh against a server: a first session as a person types it, each answer asserted.
const assert = require('node:assert');
const shop = db.getSiblingDB('client_check_mongosh');
shop.dropDatabase();

assert.equal(shop.products.insertOne({ _id: 1, name: 'tea', price: 4.5, tags: ['hot'] }).acknowledged, true);
shop.products.insertMany([{ _id: 2, name: 'cup', price: 7 }, { _id: 3, name: 'pot', price: 20 }]);
assert.deepEqual(shop.products.find({ price: { $gt: 5 } }, { name: 1 }).sort({ price: -1 }).toArray(), [{ _id: 3, name: 'pot' }, { _id: 2, name: 'cup' }]);
assert.equal(shop.products.updateOne({ _id: 1 }, { $push: { tags: 'green' }, $inc: { price: 1 } }).modifiedCount, 1);
assert.deepEqual(shop.products.findOne({ tags: 'green' }).tags, ['hot', 'green']);
assert.equal(shop.products.createIndex({ name: 1 }), 'name_1');
assert.equal(shop.products.getIndexes().length, 2);
assert.match(JSON.stringify(shop.products.find({ name: 'tea' }).explain().queryPlanner.winningPlan), /IXSCAN/);
assert.equal(shop.products.find({ name: 'tea' }).explain('executionStats').executionStats.totalDocsExamined, 1);
assert.deepEqual(shop.products.aggregate([{ $group: { _id: null, total: { $sum: '$price' } } }]).toArray(), [{ _id: null, total: 32.5 }]);
assert.equal(shop.products.countDocuments(), 3);
assert.deepEqual(shop.products.distinct('name'), ['cup', 'pot', 'tea']);
assert.deepEqual(shop.getCollectionNames(), ['products']);
assert.ok(db.adminCommand({ listDatabases: 1 }).databases.map((d) => d.name).includes('client_check_mongosh'));
assert.equal(shop.stats().ok, 1);
assert.equal(shop.products.validate().valid, true);
assert.equal(db.serverStatus().ok, 1);
// The shell awaits calls for us, but not inside callbacks, so no assert.throws here.
const codes = [];
try { shop.products.insertOne({ _id: 1 }); } catch (error) { codes.push(error.code); }
try { shop.runCommand({ nonsense: 1 }); } catch (error) { codes.push(error.code); }
assert.deepEqual(codes, [11000, 59]);

const session = db.getMongo().startSession();
session.startTransaction();
const inside = session.getDatabase('client_check_mongosh').products;
inside.deleteOne({ _id: 3 });
assert.equal(inside.countDocuments(), 2);
session.abortTransaction();
session.endSession();
assert.equal(shop.products.countDocuments(), 3);

const bulk = shop.products.bulkWrite([{ insertOne: { document: { _id: 4 } } }, { deleteMany: { filter: { _id: { $gte: 3 } } } }]);
assert.deepEqual([bulk.insertedCount, bulk.deletedCount], [1, 2]);
shop.dropDatabase();
print('mongosh: ok');
