import type { RankFailure } from '@roofline/collectives';
import { RankError } from '../errors.ts';

/** How a rank ended, why, and the error that ended it or else the last lines that it wrote. */
export function rankError({ rank, signal, exitCode, lastLines, error }: RankFailure): RankError {
  const how = signal ?? `exit code ${exitCode}`;
  const lines = error ?? lastLines;
  return new RankError([`Rank ${rank} ended with ${how}: ${reasonOfRank(lines)}`, ...lines].join('\n'));
}

/**
 * Of what a process wrote to stderr before it ended, the line that says why: the first that begins as an error does, else
 * the last. What a table or a line of progress has room for is the first line of a message.
 */
export function reasonOfRank(lines: readonly string[]): string {
  const texts = lines.map((line) => line.replace(/^\[rank \d+\] /, '').trim()).filter(Boolean);
  return (
    texts.find((text) => /^[\w.]*(Error|Exception)\b.*:/.test(text)) ?? texts.at(-1) ?? 'it said nothing'
  );
}
