// Mongoose against a server: models, validation, indexes, population, a transaction, versioned saves.
import assert from 'node:assert/strict';
import mongoose from 'mongoose';

await mongoose.connect(process.argv[2], { dbName: 'client_check_mongoose', serverSelectionTimeoutMS: 5000 });
await mongoose.connection.dropDatabase();

const User = mongoose.model('User', new mongoose.Schema({ name: { type: String, required: true }, email: { type: String, unique: true } }, { timestamps: true }));
const Post = mongoose.model('Post', new mongoose.Schema({ title: String, tags: [String], author: { type: mongoose.Schema.Types.ObjectId, ref: 'User' }, likes: { type: Number, default: 0 } }));
await Promise.all([User.init(), Post.init()]);

const ada = await User.create({ name: 'Ada', email: 'ada@example.org' });
await assert.rejects(User.create({ name: 'Eve', email: 'ada@example.org' }), { code: 11000 });
await Post.insertMany([{ title: 'one', author: ada._id, tags: ['x'] }, { title: 'two', author: ada._id, tags: ['x', 'y'] }]);

const post = await Post.findOne({ title: 'two' }).populate('author');
assert.equal(post.author.name, 'Ada');
post.tags.push('z');
post.likes += 1;
await post.save();
assert.deepEqual((await Post.findById(post._id).lean()).tags, ['x', 'y', 'z']);
assert.equal((await Post.findOneAndUpdate({ title: 'one' }, { $inc: { likes: 2 } }, { returnDocument: 'after' })).likes, 2);
assert.deepEqual(await Post.aggregate([{ $unwind: '$tags' }, { $sortByCount: '$tags' }, { $limit: 1 }]), [{ _id: 'x', count: 2 }]);
assert.equal(await Post.countDocuments({ author: ada._id }), 2);

await mongoose.connection.transaction(async (session) => {
  await User.create([{ name: 'Bob', email: 'bob@example.org' }], { session });
  await Post.updateMany({}, { $set: { seen: true } }, { session, strict: false });
});
assert.equal(await User.countDocuments(), 2);
await Post.deleteMany({});
assert.equal(await Post.estimatedDocumentCount(), 0);
console.log('mongoose: ok');
await mongoose.connection.dropDatabase();
await mongoose.disconnect();
