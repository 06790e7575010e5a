interface Equivalent {
  /** The end of the source's path. */
  readonly file: string;
  readonly source: string;
  readonly replacement: string;
  readonly reason: string;
}

/**
 * Wrong conditions that change nothing that can be seen, and why. `source` is the line that holds the condition, as it
 * stands in the file; `replacement` what the mutation puts in.
 */
export const equivalents: readonly Equivalent[] = [
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
  {
    file: 'passes/joint-storage.ts',
    source: 'return size > 0 && (size * byteSize(dtype)) % vectorBytes === 0;',
    replacement: 'size * byteSize(dtype) % vectorBytes === 0',
    reason: 'Products of nothing are none (isLowProduct).',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'return size > 0 && (size * byteSize(dtype)) % vectorBytes === 0;',
    replacement: 'size >= 0',
    reason: 'Products of nothing are none (isLowProduct).',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'if (writer!.inputs.some(isOf) || !writer!.outputs.filter(isOf).every(fits)) return false;',
    replacement: '!writer!.outputs.filter(isOf).every(fits)',
    reason: 'Nobody reads a storage of the program before it is written.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'if (writer!.inputs.some(isOf) || !writer!.outputs.filter(isOf).every(fits)) return false;',
    replacement: 'writer!.inputs.every(isOf)',
    reason: 'Nobody reads a storage of the program before it is written.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'if (writer!.inputs.some(isOf) || !writer!.outputs.filter(isOf).every(fits)) return false;',
    replacement: 'writer!.outputs.filter(isOf).some(fits)',
    reason: 'What writes a storage first writes it once.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'if (op.mutates || output.size !== matrix.size) return false;',
    replacement: 'op.mutates',
    reason:
      'What makes only a part of a matrix leaves another part to another writer, which mayLieInRows refuses.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'if (op.mutates || output.size !== matrix.size) return false;',
    replacement: 'output.size !== matrix.size',
    reason: 'What mutates has read the storage before, and is not its first user.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: "return cuda.kind === 'pointwise' || (cuda.kind === 'custom' && cuda.strided === true);",
    replacement: 'cuda.strided === true',
    reason: 'It is for the types. Only custom kernels have it.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source: 'if (sum.length > 1) mergeTerms(rewrite, sum);',
    replacement: 'sum.length >= 1',
    reason: 'mergeTerms leaves one alone.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source: 'if (gradients.length > 1) mergeGradients(rewrite, gradients);',
    replacement: 'gradients.length >= 1',
    reason: 'mergeGradients leaves one alone.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source: 'if (i + 1 - start > longest.length) longest = list.slice(start, i + 1);',
    replacement: 'i + 1 - start >= longest.length',
    reason: 'Of two runs of one length the other one is merged when the program is gone through again.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source: 'dy.strides[1]! >= dy.shape[0]!',
    replacement: 'dy.strides[1]! > dy.shape[0]!',
    reason: 'Where a gradient fills its rows none lies beside it.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source: 'return reader !== undefined && rewrite.placeOf(reader) < last;',
    replacement: 'rewrite.placeOf(reader) < last',
    reason: 'Without a reader it is undefined, which is less than nothing.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source: 'return reader !== undefined && rewrite.placeOf(reader) < last;',
    replacement: 'rewrite.placeOf(reader) <= last',
    reason: 'The last of them reads what all read, made before the first.',
  },
  {
    file: 'passes/merge-gradients.ts',
    source:
      'return fillsIntermediate(program, output) && fillsVectors(output) && uses.get(output.storage)![0] === call;',
    replacement: 'fillsIntermediate(program, output) && fillsVectors(output)',
    reason: 'A product writes a storage of its own, and first.',
  },
  {
    file: 'passes/merge-projections.ts',
    source: 'if (projections.length > 1) mergeAll(rewrite, projections);',
    replacement: 'projections.length >= 1',
    reason: 'mergeAll leaves one alone.',
  },
  {
    file: 'passes/merge-projections.ts',
    source: 'if (members.length < 2 || !first) return;',
    replacement: 'members.length < 2',
    reason: 'It is for the types.',
  },
  {
    file: 'passes/merge-projections.ts',
    source:
      'for (const maker of makers) if (rewrite.placeOf(maker) > first.at) rewrite.hoist(maker, first.call);',
    replacement: 'rewrite.placeOf(maker) >= first.at',
    reason: 'A cast is no product.',
  },
];
