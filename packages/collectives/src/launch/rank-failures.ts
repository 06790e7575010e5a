import { rankNames } from '../ranks/rank-names.ts';
import type { RankFailure } from './rank-process.ts';

/** Of ranks that failed in this order, the one whose error is neither that it lost another nor that it was ended. */
export function rootFailure(failures: readonly RankFailure[]): RankFailure | null {
  const isOwn = ({ lastLines, signal }: RankFailure) =>
    signal !== 'SIGTERM' && !lastLines.some((line) => line.includes('CollectiveError'));
  return failures.find(isOwn) ?? failures[0] ?? null;
}

/** How ranks of `count` failed, in lines: what several of them have in common once, and what failed first last. */
export function* describeFailures(failures: readonly RankFailure[], count: number): Generator<string> {
  const root = rootFailure(failures);
  if (root === null) return;
  const groups = Map.groupBy(failures, textOf);
  for (const [text, group] of groups) {
    if (text !== textOf(root)) yield* `${namesOf(group)} failed: ${text}`.split('\n');
  }
  const first = groups.get(textOf(root))!;
  const order = first.length === count && count > 1 ? '' : ' first';
  yield* `${namesOf(first)} failed${order}: ${textOf(root)}`.split('\n');
  // They are above, among what others wrote.
  if (root.error === null) yield* root.lastLines.map((line) => `  ${line}`);
}

function textOf({ exitCode, signal, error }: RankFailure): string {
  const how = signal ? `killed by ${signal}` : `exit code ${exitCode}`;
  return [how, ...(error ?? []).map((line) => `  ${line}`)].join('\n');
}

function namesOf(failures: readonly RankFailure[]): string {
  return rankNames(failures.map(({ rank }) => rank).sort((a, b) => a - b));
}
