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
    reason: 'Nobody reads a storage of the graph before it is written.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'if (writer!.inputs.some(isOf) || !writer!.outputs.filter(isOf).every(fits)) return false;',
    replacement: 'writer!.inputs.every(isOf)',
    reason: 'Nobody reads a storage of the graph before it is written.',
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
    reason: 'Of two runs of one length the other one is merged when the graph is gone through again.',
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
      'return fillsIntermediate(graph, output) && fillsVectors(output) && uses.get(output.storage)![0] === call;',
    replacement: 'fillsIntermediate(graph, output) && fillsVectors(output)',
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
  {
    file: 'passes/fuse-prologues-epilogues.ts',
    source:
      'const isFit = from.size > 0 && (from.shape.at(-1) ?? Infinity) <= longestRow && to.size === from.size;',
    replacement: 'from.shape.at(-1)',
    reason: 'Undefined is not at most anything either.',
  },
  {
    file: 'passes/fuse-prologues-epilogues.ts',
    source:
      'const isFit = from.size > 0 && (from.shape.at(-1) ?? Infinity) <= longestRow && to.size === from.size;',
    replacement: 'from.size > 0 && (from.shape.at(-1) ?? Infinity) <= longestRow',
    reason: 'Kernels that take prologues or epilogues give as much as they read.',
  },
  {
    file: 'passes/fuse-prologues-epilogues.ts',
    source: 'const at = this.calls.findLastIndex(({ outputs }, i) => i < index && isAmong(shared, outputs));',
    replacement: 'i <= index',
    reason: 'Kernels that take prologues or epilogues do not write what they read.',
  },
  {
    file: 'passes/fuse-prologues-epilogues.ts',
    source: 'const at = this.calls.findIndex(({ inputs }, i) => i > index && isAmong(shared, inputs));',
    replacement: 'isAmong(shared, inputs)',
    reason: 'Nobody reads a result before it is made.',
  },
  {
    file: 'passes/fuse-prologues-epilogues.ts',
    source: 'const at = this.calls.findIndex(({ inputs }, i) => i > index && isAmong(shared, inputs));',
    replacement: 'i >= index',
    reason: 'Kernels that take prologues or epilogues do not read what they write.',
  },
  {
    file: 'passes/fuse-prologues-epilogues.ts',
    source:
      "const fusible = reader && this.#isMade(shared) ? fusibleCall(reader, shared, 'epilogue') : null;",
    replacement: 'reader',
    reason: 'What such a kernel gives is always made by the graph.',
  },
  {
    file: 'passes/fusible-call.ts',
    source: 'if (call.live !== null || !isFloat || !isPlain) return null;',
    replacement: 'call.live !== null',
    reason: 'Kernels that take prologues or epilogues take no integers.',
  },
  {
    file: 'passes/fusible-call.ts',
    source:
      'const isPlain = table.isContiguous && isAligned(table) && ids.isContiguous && isDense(rows, shared);',
    replacement: 'table.isContiguous && isAligned(table) && ids.isContiguous',
    reason: 'The rows are what is shared, and an embedding fills a storage with them.',
  },
  {
    file: 'passes/fuse-pointwise.ts',
    source: 'const isReadLater = (this.#lastReads.get(storage) ?? -1) > this.#lastIndex;',
    replacement: 'this.#lastReads.get(storage)',
    reason: 'Undefined is not more than anything either.',
  },
  {
    file: 'passes/joint-storage.ts',
    source: 'isIntermediate(graph, operand.storage) &&',
    replacement: 'isIntermediate(graph, operand.storage)',
    reason:
      'Products and their operands are dense as long as products write in no other layout (writesStrided).',
  },
  {
    file: 'passes/update-early.ts',
    source:
      'const waiting = calls.findIndex((call, at) => at > next && !hasEffects(call) && readers.includes(call));',
    replacement: 'at >= next',
    reason: 'The next one has effects itself.',
  },
  {
    file: 'passes/update-early.ts',
    source: 'for (let at = place + 1; at < last; at++) {',
    replacement: 'at <= last',
    reason: 'The last place is given either way.',
  },
  {
    file: 'passes/without-repeated-calls.ts',
    source: 'dependsOnOperands(call) &&',
    replacement: 'call.outputs.some(({ storage }) => this.#lessRead.has(storage))',
    reason: 'Nothing else makes the same as a random call: of those that read it the first one stays.',
  },
  {
    file: 'passes/without-repeated-calls.ts',
    source:
      "return this.#graph.storages[storage]!.source.kind === 'made' && this.#writers.get(storage) === 1;",
    replacement: 'this.#writers.get(storage) === 1',
    reason: 'Calls that write what is given make the same only where they write one storage, both of them.',
  },
  {
    file: 'passes/without-repeated-calls.ts',
    source: '({ storage }) => !this.#graph.kept.has(storage) && this.#lastUse(storage) < at,',
    replacement: 'this.#lastUse(storage) <= at',
    reason: 'A call does not read what makes the same as it does.',
  },
  {
    file: 'passes/without-repeated-calls.ts',
    source: 'const uses = [...this.#uses.get(to)!, ...this.#uses.get(storage)!.filter((use) => use !== at)];',
    replacement: 'use === at',
    reason: 'Calls before the dropped one are asked about, and see that a use comes after them either way.',
  },
  {
    file: 'passes/pair-calls.ts',
    source: 'if (doubledIn(call).length === 0 || live !== null || outputs.length !== 1) return false;',
    replacement: 'doubledIn(call).length === 0 || live !== null',
    reason: 'Ops whose kernels take two of them have one output.',
  },
  {
    file: 'passes/fold-copies.ts',
    source: 'if (strides.includes(null) || from.offset !== 0) return null;',
    replacement: 'strides.includes(null)',
    reason: 'Where each dimension is found the copy is of all elements, from the first on.',
  },
  {
    file: 'passes/accumulate-embeddings.ts',
    source:
      'if (!maker || reader !== sum || others.length > 0 || !isOp(maker.op, embeddingBackwardOp)) return null;',
    replacement: '!maker',
    reason: 'The sum is one of two users, and the other has made what it reads.',
  },
  {
    file: 'passes/accumulate-embeddings.ts',
    source:
      'if (!maker || reader !== sum || others.length > 0 || !isOp(maker.op, embeddingBackwardOp)) return null;',
    replacement: 'reader !== sum',
    reason: 'Somebody makes an intermediate.',
  },
  {
    file: 'passes/accumulate-products.ts',
    source: 'return place(a) > place(b) ? [[a, b], [b, a]] : [[b, a], [a, b]]; // prettier-ignore',
    replacement: 'place(a) >= place(b)',
    reason:
      'Addends of one place are of one storage, or nobody has made them: neither is a product that only one reads.',
  },
  {
    file: 'passes/fold-copies.ts',
    source: 'if (dimension < 0 || stride % from.strides[dimension]! !== 0) return null;',
    replacement: 'stride % from.strides[dimension]! !== 0',
    reason: 'Where there is no such dimension the remainder is NaN.',
  },
  {
    file: 'passes/fold-copies.ts',
    source: 'if (dimension < 0 || stride % from.strides[dimension]! !== 0) return null;',
    replacement: 'dimension < 0',
    reason: 'Of a dimension that begins within a step of the view, the one next to it fits into none.',
  },
  {
    file: 'compile/captured-state.ts',
    source: 'const gradients = new Set(this.#touched.flatMap(({ before }) => before ?? []));',
    replacement: 'before',
    reason: 'No handle is null: that it is among them leaves none out.',
  },
  {
    file: 'compile/captured-state.ts',
    source: 'if ((now !== value || now === 0) && !Object.is(now, value)) return false;',
    replacement: '!Object.is(now, value)',
    reason: 'What comes first is quicker, and true of all that Object.is tells apart.',
  },
  {
    file: 'compile/compile.ts',
    source:
      'const trace = new Trace(argumentCopies, { originals: tensors, namesMakers: this.#preparing > 0 });',
    replacement: 'this.#preparing >= 0',
    reason:
      'A stack is read for each call of the first run, which only takes longer: no message of that run names them.',
  },
  {
    file: 'compile/export-onnx.ts',
    source: "if (source.kind === 'argument' && source.index === i) builder.define(number, value);",
    replacement: 'source.index === i',
    reason: 'It is for the types. Only arguments have an index.',
  },
  {
    file: 'trace/argument-copies.ts',
    source: 'if (elements > x.size && !overlapsItself(x)) {',
    replacement: '!overlapsItself(x)',
    reason: 'Without gaps both ways make the same copy; the other one makes it at once.',
  },
  {
    file: 'trace/argument-copies.ts',
    source: 'if (elements > x.size && !overlapsItself(x)) {',
    replacement: 'elements >= x.size',
    reason: 'Without gaps both ways make the same copy; the other one makes it at once.',
  },
  {
    file: 'trace/external-memory.ts',
    source: "if (source.kind === 'argument' && write) this.#writtenArguments.set(source.index, write.place);",
    replacement: 'write',
    reason: 'It is for the types. Only arguments have an index, and no other is asked for.',
  },
  {
    file: 'trace/trace.ts',
    source: 'const place = this.#namesMakers || given.length > 0 || live !== null ? userPlace() : null;',
    replacement: 'given.length >= 0',
    reason: 'A stack is read for each call, which only takes longer: no message names the others.',
  },
  {
    file: 'cpu/hoist-updates.ts',
    source: "return hasEffects(call) || (cpu.kind === 'host' && cpu.checksValues === true);",
    replacement: 'cpu.checksValues === true',
    reason: 'It is for the types. Only what runs in JavaScript has it.',
  },
  {
    file: 'cpu/schedule.ts',
    source:
      'return (storage, step) => !isIntermediate(graph, storage) || (lastReads.get(storage) ?? -1) > step;',
    replacement: 'lastReads.get(storage)',
    reason: 'Undefined is not more than anything either.',
  },
  {
    file: 'cuda/arena-plan.ts',
    source: 'if (bestBytes <= bytes) break;',
    replacement: 'bestBytes < bytes',
    reason: 'Other ways are tried in vain, for no arena is shorter than what one call needs.',
  },
  {
    file: 'cuda/cuda-executable.ts',
    source: "source.kind === 'gradient' && replaced.has(source.leaf) && !graph.written.has(number);",
    replacement: 'replaced.has(source.leaf)',
    reason: 'It is for the types. Only gradients have a leaf.',
  },
  {
    file: 'cuda/external-places.ts',
    source: 'if (areSame) this.#sameAt = handles;',
    replacement: '!areSame',
    reason:
      'Places are looked at in each run, which only takes longer; where they differ, they are made anew.',
  },
  {
    file: 'cuda/first-fit.ts',
    source: 'const after = lying.findIndex((other) => other.offset > offset);',
    replacement: 'other.offset >= offset',
    reason: 'In which order parts of one offset are gone through does not matter: no gap is between them.',
  },
  {
    file: 'cuda/first-fit.ts',
    source: 'lying.splice(after < 0 ? lying.length : after, 0, { ...part, offset });',
    replacement: 'after <= 0',
    reason: 'The first part lies at 0, so that no other comes before it.',
  },
];
