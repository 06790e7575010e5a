import { createHash } from 'node:crypto';
import { CollectiveError } from '../errors.ts';
import { rankNames } from '../ranks/rank-names.ts';
import type { Members } from './describe-call.ts';

const digestWords = 8;

/** What each rank of a group has brought, in the order of ranks; blocks until all have. */
export type GatherWords = (words: Int32Array<ArrayBuffer>) => readonly (readonly number[])[];

/**
 * Throws a CollectiveError, on all ranks, unless all have compiled a program with the same calls of this group in the same order:
 * its message has the first that differs. Throws what `gather` throws.
 */
export function agreeOnProgram(
  members: Members,
  gather: GatherWords,
  program: string,
  calls: readonly string[],
): void {
  const { rank } = members;
  const text = calls.join('\n');
  const length = Buffer.byteLength(text);
  const facts = gather(Int32Array.of(...sha256(text), length));
  const own = facts[rank]!.slice(0, digestWords).join();
  if (facts.every((words) => words.slice(0, digestWords).join() === own)) return;
  const longest = Math.max(...facts.map((words) => words[digestWords]!));
  const padded = new Uint8Array(Math.ceil(longest / 4) * 4);
  padded.set(Buffer.from(text));
  const texts = gather(new Int32Array(padded.buffer)).map((words, member) =>
    Buffer.from(Int32Array.from(words).buffer).toString('utf8', 0, facts[member]![digestWords]!),
  );
  throw differenceError(members, program, texts);
}

function sha256(text: string): Int32Array<ArrayBuffer> {
  return new Int32Array(new Uint8Array(createHash('sha256').update(text).digest()).buffer);
}

function differenceError(
  { rank, ranks }: Members,
  program: string,
  texts: readonly string[],
): CollectiveError {
  const lists = texts.map((text) => (text === '' ? [] : text.split('\n')));
  const place = lists[0]!.findIndex((call, i) => lists.some((list) => list[i] !== call));
  const first = place < 0 ? lists[0]!.length : place;
  const callers = new Map<string, number[]>();
  lists.forEach((list, member) => {
    const call = list[first] ?? 'nothing more';
    callers.set(call, [...(callers.get(call) ?? []), ranks[member]!]);
  });
  const own = lists[rank]![first] ?? 'nothing more';
  const listed = [...callers].map(([call, ranks]) => `${rankNames(ranks)}: ${call}`).join('; ');
  return new CollectiveError(
    `compile: the ranks have compiled different programs of ${program === '' ? 'a function' : program}: they differ in call ` +
      `${first + 1} of this group (${listed}). All ranks must trace the same calls in the same order; nothing of it has run.`,
    {
      op: 'compile',
      rank: ranks[rank]!,
      peers: [...callers].filter(([call]) => call !== own).flatMap(([, ranks]) => ranks),
    },
  );
}
