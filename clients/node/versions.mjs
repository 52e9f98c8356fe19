// Two versions of one application with Mongoose: models of the newest schema, and models of the older one under `name@1`.
import assert from 'node:assert/strict';
import mongoose from 'mongoose';

const name = 'client_check_versions_mongoose';
const options = { serverSelectionTimeoutMS: 5000 };
const newer = await mongoose.createConnection(process.argv[2], { ...options, dbName: name }).asPromise();
await newer.dropDatabase();
await newer.collection('users').insertOne({ _id: 1, name: 'Ada Lovelace', phone: '1' });
const steps = [[
  { nest: { phone: { into: 'phone.number', with: { 'phone.code': '+1' } } } },
  { split: { name: { into: ['first', 'last'], on: ' ' } } },
]];
const versions = { field: 'schemaVersion', steps, migrate: { background: false } };
const run = (command) => newer.db.command(command);
await run({ pleach: 'apply', declaration: { database: name, collections: { users: { versions } } } });
const older = await mongoose.createConnection(process.argv[2], { ...options, dbName: `${name}@1` }).asPromise();

const schemaOptions = { versionKey: false };
const New = newer.model('User', new mongoose.Schema({
  _id: Number, first: String, last: String, phone: { number: String, code: String }, tags: [String], schemaVersion: Number,
}, schemaOptions), 'users');
const Old = older.model('User', new mongoose.Schema({
  _id: Number, name: { type: String, index: true }, phone: String, schemaVersion: Number,
}, schemaOptions), 'users');
await Old.init();

const created = await New.create({ _id: 2, first: 'Bob', last: 'Moore', phone: { number: '2', code: '+44' }, tags: ['a'] });
assert.equal(created.phone.code, '+44');
await Old.create({ _id: 3, name: 'Cyd Noor', phone: '3' });

assert.deepEqual((await Old.find().sort('name')).map((user) => [user.name, user.phone]), [['Ada Lovelace', '1'], ['Bob Moore', '2'], ['Cyd Noor', '3']]);
assert.deepEqual((await New.find().sort({ 'phone.number': -1 })).map((user) => user.last), ['Noor', 'Moore', 'Lovelace']);
assert.equal((await New.findOne({ 'phone.number': '3' })).first, 'Cyd');
assert.equal((await Old.findOne({ phone: '2' })).name, 'Bob Moore');
assert.equal(await Old.countDocuments({ name: /^Bob/ }), 1);
assert.deepEqual((await Old.distinct('phone')).sort(), ['1', '2', '3']);

// An old document is loaded, changed and saved: what its schema does not know stays.
const bob = await Old.findById(2);
bob.phone = '22';
await bob.save();
const seen = (await New.findById(2)).toObject();
assert.deepEqual([seen.phone, seen.tags, seen.last], [{ number: '22', code: '+44' }, ['a'], 'Moore']);
const renamed = await Old.findOneAndUpdate({ phone: '22' }, { name: 'Bob Moore-Berg' }, { returnDocument: 'after' });
assert.equal(renamed.name, 'Bob Moore-Berg');
assert.equal((await New.findById(2)).last, 'Moore-Berg');
const moved = await New.findOneAndUpdate({ last: 'Lovelace' }, { $set: { 'phone.code': '+43' }, $push: { tags: 'b' } }, { returnDocument: 'after' });
assert.deepEqual(moved.toObject().phone, { number: '1', code: '+43' });
assert.equal((await Old.findById(1)).phone, '1');
await Old.bulkWrite([
  { updateOne: { filter: { phone: '3' }, update: { $set: { phone: '33' } } } },
  { insertOne: { document: { _id: 4, name: 'Dan Ode', phone: '4' } } },
]);
assert.deepEqual((await New.aggregate([{ $sort: { _id: 1 } }, { $group: { _id: '$phone.code', numbers: { $push: '$phone.number' } } }, { $sort: { _id: 1 } }])), [
  { _id: '+1', numbers: ['33', '4'] }, { _id: '+43', numbers: ['1'] }, { _id: '+44', numbers: ['22'] },
]);
assert.equal((await Old.deleteMany({ phone: { $in: ['33', '4'] } })).deletedCount, 2);
const session = await older.startSession();
await session.withTransaction(async () => { await Old.updateOne({ _id: 1 }, { phone: '11' }, { session }); });
await session.endSession();
assert.deepEqual((await New.findById(1)).toObject().phone, { number: '11', code: '+43' });

await run({ pleach: 'drop', rule: 'users.versions' });
await newer.dropDatabase();
console.log('mongoose versions: ok');
await Promise.all([newer.close(), older.close()]);
