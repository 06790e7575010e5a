// The program of a thread that encodes chunks of texts. It lies at the top of src/ as its build does in dist/.
import { parentPort, workerData } from 'node:worker_threads';
import { ByteLevelEncoder } from './tokenize/byte-level-encoder.ts';
import type { EncodeThreadData } from './tokenize/encode-threads.ts';
import { openTokenizer } from './tokenize/open-tokenizer.ts';
import type { TextChunk } from './tokenize/tokenizers.ts';

const { plan, file } = workerData as EncodeThreadData;

function makeEncode(): (chunk: TextChunk<string>) => ArrayLike<number> {
  if (plan === null) return openTokenizer(file).tokensOf;
  const encoder = new ByteLevelEncoder(plan);
  return ({ content }) => encoder.encode(content);
}

const encode = makeEncode();
parentPort!.on('message', (chunk: TextChunk<string>) => {
  const tokens = Int32Array.from(encode(chunk));
  parentPort!.postMessage(tokens, [tokens.buffer]);
});
