/**
 * Wrong conditions that change nothing that can be seen, and why. `source` is the line that holds the condition, as it
 * stands in the file; `replacement` what the mutation puts in.
 */
export const equivalents = [
  {
    file: 'parallel/shard-states.ts',
    source:
      "const lists = telling.map(({ numbers, metadata }) => listOf(metadata[name] ?? '', numbers.length));",
    replacement: 'metadata[name]',
    reason: 'What is undefined is no JSON either: there is no list.',
  },
  {
    file: 'parallel/shard-states.ts',
    source: 'if (what !== undefined && number < count) return { what, number };',
    replacement: 'number < count',
    reason: 'Without a name there are no digits, and NaN is less than nothing; it is for the types.',
  },
];
