import { setTimeout as sleep } from 'node:timers/promises';
import { CollectiveError, StoreError } from '../errors.ts';
import { rankNames } from '../ranks/rank-names.ts';
import type { Ask, AskBoard, Notice, RankAsk } from './ask-board.ts';
import { askOf, findDisagreement, missedDisagreement } from './find-disagreement.ts';

/** The longest it takes until what another rank has announced is seen. */
const longestPauseMs = 200;
/** How long ranks that disagree stay, so that members who come a little later see it too. */
const lingerMs = 1000;
/** How long ranks that disagreed have to ask again, before one that comes later gives up too. */
const retryMs = 2000;
/** In larger groups ranks that ask for the same are looked at every eighth time alone: all look at all. */
const smallGroup = 16;

/** What all members of a group have agreed on: their asks, and where keys of the group begin, which no other has. */
interface Agreement {
  readonly asks: readonly RankAsk[];
  readonly prefix: string;
}

/** What becomes of an ask: what all have agreed on, or the asks that do not fit each other. */
type Outcome =
  | { readonly agreed: Agreement; readonly disagreement: null }
  | { readonly agreed: null; readonly disagreement: readonly RankAsk[] };

/**
 * Waits until all of `ranks` ask for a group of just these, in this order, and gives what begins its keys in the store. Throws
 * a CollectiveError as soon as ranks are seen to ask for others, and for those that do not come in time.
 */
export async function agreeOnMembers(
  board: AskBoard,
  ranks: readonly number[],
  timeoutMs: number,
): Promise<string> {
  const ask = await board.open(ranks);
  const { agreed, disagreement } = await outcomeOf(board, ask, timeoutMs).catch(async (error: unknown) => {
    // What was wrong counts, also where the store is gone by now.
    await board.close(ask, [], null).catch(() => {});
    throw error;
  });
  if (agreed) {
    await board.close(ask, agreed.asks, null);
    return agreed.prefix;
  }
  await board.close(ask, disagreement, disagreement);
  throw disagreementError(board.rank, ask, disagreement);
}

async function outcomeOf(board: AskBoard, ask: Ask, timeoutMs: number): Promise<Outcome> {
  const startMs = performance.now();
  const deadline = startMs + timeoutMs;
  const retriedByMs = Math.min(deadline, startMs + retryMs);
  const notices = new Map<number, Notice>();
  let reached: Agreement | null = null;
  let leaveAtMs: number | null = null;
  for (let round = 0; ; round++) {
    for (const [rank, notice] of await board.read(ranksToRead(board.rank, ask, notices, round)))
      notices.set(rank, notice);
    const disagreement = findDisagreement(ask, board.rank, notices);
    const now = performance.now();
    if (disagreement) {
      leaveAtMs ??= Math.min(deadline, now + lingerMs);
      const isOfAll = ask.ranks.every((member) => disagreement.some(({ rank }) => rank === member));
      if (now >= leaveAtMs || isOfAll) return { agreed: null, disagreement };
    }
    const found = agreementOf(board, ask, notices);
    if (found && found.prefix !== reached?.prefix) {
      reached = found;
      await board.store.set(agreedKey(found, board.rank), '');
    }
    const pauseMs = Math.min(2 ** round, longestPauseMs);
    if (!reached) await sleep(pauseMs);
    else if (await haveAllAgreed(board, reached, pauseMs)) return { agreed: reached, disagreement: null };
    const missed = now >= retriedByMs ? missedDisagreement(ask, board.rank, notices) : null;
    if (missed) return { agreed: null, disagreement: [{ ...ask, rank: board.rank }, ...missed] };
    if (now >= deadline) throw lateError(board.rank, ask, notices, timeoutMs);
  }
}

function ranksToRead(
  rank: number,
  ask: Ask,
  notices: ReadonlyMap<number, Notice>,
  round: number,
): readonly number[] {
  if (round % 8 === 0 || ask.ranks.length <= smallGroup) return ask.ranks;
  const { met } = notices.get(rank)!;
  return ask.ranks.filter((member) => member === rank || !askOf(member, ask, notices, met[member] ?? 0));
}

/** What each member asks for now, as this one sees it; null until all do. */
function agreementOf(
  { prefix, rank }: AskBoard,
  ask: Ask,
  notices: ReadonlyMap<number, Notice>,
): Agreement | null {
  const { met } = notices.get(rank)!;
  const asks: RankAsk[] = [];
  for (const member of ask.ranks) {
    const found = member === rank ? { ...ask, rank } : askOf(member, ask, notices, met[member] ?? 0);
    if (!found) return null;
    asks.push(found);
  }
  const serials = asks.map(({ serial }) => serial).join('.');
  return { asks, prefix: `${prefix}/group/${ask.ranks.join(',')}/${serials}` };
}

function agreedKey({ prefix }: Agreement, rank: number): string {
  return `${prefix}/agreed/${rank}`;
}

/** Whether all members have seen the same asks, so that each goes on. */
async function haveAllAgreed({ store }: AskBoard, reached: Agreement, pauseMs: number): Promise<boolean> {
  try {
    await store.wait(
      reached.asks.map(({ rank }) => agreedKey(reached, rank)),
      { timeoutMs: pauseMs },
    );
    return true;
  } catch (error) {
    if (error instanceof StoreError && error.missingKeys.length > 0) return false;
    throw error;
  }
}

function disagreementError(rank: number, own: Ask, asks: readonly RankAsk[]): CollectiveError {
  const listOf = ({ ranks }: Ask) => ranks.join(', ');
  const askers = new Map([[listOf(own), new Set([rank])]]);
  for (const ask of asks) askers.set(listOf(ask), (askers.get(listOf(ask)) ?? new Set()).add(ask.rank));
  const sorted = (ranks: Iterable<number>) => [...ranks].toSorted((a, b) => a - b);
  const listed = [...askers]
    .map(([list, ranks]) => ({ list, ranks: sorted(ranks) }))
    .toSorted((a, b) => a.ranks[0]! - b.ranks[0]!)
    .map(({ list, ranks }) => `${rankNames(ranks)}: ${list}`);
  const peers = asks.filter((ask) => listOf(ask) !== listOf(own)).map((ask) => ask.rank);
  return new CollectiveError(
    `subGroup: the ranks ask for different groups (${listed.join('; ')}). All members of a group must call it with one list ` +
      'in one order, and ranks make the groups that they share one after the other alike; nothing was made, and this group ' +
      'goes on.',
    { op: 'subGroup', rank, peers: sorted(new Set(peers)) },
  );
}

function lateError(
  rank: number,
  ask: Ask,
  notices: ReadonlyMap<number, Notice>,
  timeoutMs: number,
): CollectiveError {
  const { met } = notices.get(rank)!;
  const others = ask.ranks.filter((member) => member !== rank);
  const absent = others.filter((member) => !askOf(member, ask, notices, met[member] ?? 0));
  const late = absent.length > 0 ? absent : others;
  const asked = late.flatMap((member) => {
    const { last } = notices.get(member)!;
    return last ? [`rank ${member} asked last for ${last.ranks.join(', ')}`] : [];
  });
  const listed = [`rank ${rank} asked for ${ask.ranks.join(', ')}`, ...asked].join('; ');
  return new CollectiveError(
    `subGroup: ${rankNames(late)} did not come within ${timeoutMs} ms (${listed}); does it call subGroup() too, with the same ` +
      'list of ranks in the same order?',
    { op: 'subGroup', rank, peers: late },
  );
}
