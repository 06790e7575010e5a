// Ends as an error that nothing catches ends a script: named by the first argument, on the rank named by the second or
// on all.

const [fault, victim = process.env.RANK] = process.argv.slice(2);

/** What Node.js writes in a form of its own. */
class WeightsError extends Error {
  override name = 'WeightsError';
  readonly layer = 3;
}

if (process.env.RANK !== victim) {
  await new Promise((resolve) => setTimeout(resolve, 60_000));
} else if (fault === 'throws') {
  console.error('about to fail');
  throw new WeightsError('no weights\nof a layer');
} else if (fault === 'rejects') {
  void Promise.reject(new RangeError('too late'));
  await new Promise((resolve) => setTimeout(resolve, 60_000));
} else if (fault === 'throws a text') {
  throw 'a text';
} else if (fault === 'misses a package') {
  await import('a-package-that-nobody-has' as string);
} else if (fault === 'says so') {
  console.error('no data');
  process.exitCode = 5;
} else if (fault === 'writes a place') {
  // As an error's first lines might be, but more follows.
  console.error('/data/shard-3:17');
  console.error('is read');
  console.error('/data/shard-4:17');
}
