import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { keepTokenizer, keptTokenizer, tokenizerMetadata } from '../../src/tokenize/kept-tokenizer.ts';
import { openTokenizer } from '../../src/tokenize/open-tokenizer.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { byteLevel, patterns, sentencePiece } from './small-tokenizers.ts';

/** A training's folder, and what files of tokens say of two tokenizers, one of them by a name of its own. */
function prepared() {
  const folder = temporaryFolder();
  const [one, other] = [byteLevel(patterns.gpt2), sentencePiece()].map((json, i) => {
    const file = join(folder, `mine-${i}.json`);
    writeFileSync(file, JSON.stringify(json));
    return tokenizerMetadata({ tokenizer: openTokenizer(file), endOfText: null });
  });
  const training = join(folder, 'training');
  mkdirSync(training);
  const sizeOfKept = () => openTokenizer(keptTokenizer(training)).vocabularySize;
  return { training, one: one!, other: other!, sizeOfKept };
}

it('keeps a tokenizer of any name', () => {
  const { training, one, sizeOfKept } = prepared();
  expect(keepTokenizer(one, training, { begins: true })).toBe(null);
  expect(sizeOfKept()).toBe(601);
});

it('keeps it again where a run was killed before it had', () => {
  const { training, one, sizeOfKept } = prepared();
  mkdirSync(keptTokenizer(training));
  expect(keepTokenizer(one, training, { begins: false })).toBe(null);
  expect(sizeOfKept()).toBe(601);
});

it('keeps that of the data with which a training begins, in place of one that another has left', () => {
  const { training, one, other, sizeOfKept } = prepared();
  keepTokenizer(other, training, { begins: true });
  expect(sizeOfKept()).toBe(701);
  keepTokenizer(one, training, { begins: false });
  expect(sizeOfKept()).toBe(701);
  expect(keepTokenizer(one, training, { begins: true })).toBe(null);
  expect(sizeOfKept()).toBe(601);
  expect(keepTokenizer({}, training, { begins: false })).toBe(null);
  expect(sizeOfKept()).toBe(601);
  // One that tokens were made by where it is kept stays.
  const kept = keptTokenizer(training);
  const metadata = tokenizerMetadata({ tokenizer: openTokenizer(kept), endOfText: null });
  expect(keepTokenizer(metadata, training, { begins: true })).toBe(null);
  expect(sizeOfKept()).toBe(601);
});

it('is gone where a training by bytes begins', () => {
  const { training, one } = prepared();
  keepTokenizer(one, training, { begins: true });
  expect(keepTokenizer({}, training, { begins: true })).toBe(null);
  expect(existsSync(keptTokenizer(training))).toBe(false);
});
