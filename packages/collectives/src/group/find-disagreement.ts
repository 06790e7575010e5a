import type { Ask, Notice, RankAsk } from './ask-board.ts';

/**
 * The asks for which `own`, of the rank `rank`, can no longer become a group; null where it still can. It cannot once two
 * ranks each wait for the other in an ask that the other has not made, since two ranks make the groups that they share in one
 * order. `notices` are those of all ranks of `own`.
 */
export function findDisagreement(
  own: Ask,
  rank: number,
  notices: ReadonlyMap<number, Notice>,
): readonly RankAsk[] | null {
  const isOwn = (party: RankAsk) => party.rank === rank && party.serial === own.serial;
  const reported = disagreementsOf(notices).find((parties) => parties.some(isOwn));
  const odd = reported ?? seenDisagreement(own, notices);
  if (!odd) return null;
  const alike = own.ranks.flatMap((member) => askOf(member, own, notices, 0) ?? []);
  return [...new Map([...alike, ...odd].map((ask) => [`${ask.rank}:${ask.serial}`, ask])).values()];
}

/**
 * A disagreement by which another rank gave up the same ask before it saw `own`; null where there is none, or where that rank
 * has asked again since. It may yet ask again.
 */
export function missedDisagreement(
  own: Ask,
  rank: number,
  notices: ReadonlyMap<number, Notice>,
): readonly RankAsk[] | null {
  const { met } = notices.get(rank)!;
  const isMissed = (party: RankAsk) =>
    own.ranks.includes(party.rank) &&
    areSame(party, own) &&
    party.serial > (met[party.rank] ?? 0) &&
    party.serial === notices.get(party.rank)!.last?.serial;
  return disagreementsOf(notices).find((parties) => parties.some(isMissed)) ?? null;
}

function disagreementsOf(notices: ReadonlyMap<number, Notice>): (readonly RankAsk[])[] {
  return [...notices.values()].flatMap(({ disagreements }) => disagreements);
}

function seenDisagreement(own: Ask, notices: ReadonlyMap<number, Notice>): readonly RankAsk[] | null {
  const odd: RankAsk[] = [];
  for (const one of own.ranks) {
    for (const other of own.ranks) {
      if (other <= one) continue;
      const pair = [unmet(one, other, notices), unmet(other, one, notices)];
      if (!pair.every((ask) => ask !== null) || !pair.some((ask) => areSame(ask, own))) continue;
      odd.push(...pair);
    }
  }
  return odd.length > 0 ? odd : null;
}

/** The oldest ask of `one` for a group with `other` that this one does not make, though it may have been done with it. */
function unmet(one: number, other: number, notices: ReadonlyMap<number, Notice>): RankAsk | null {
  const { asks, met } = notices.get(other)!;
  const found = notices
    .get(one)!
    .asks.find(
      (ask) =>
        ask.ranks.includes(other) &&
        ask.serial > (met[one] ?? 0) &&
        !asks.some((counterpart) => areSame(counterpart, ask)),
    );
  return found ? { ...found, rank: one } : null;
}

/** The oldest ask of `member` for the group that `own` asks for, after the serial `met`. */
export function askOf(
  member: number,
  own: Ask,
  notices: ReadonlyMap<number, Notice>,
  met: number,
): RankAsk | null {
  const found = notices.get(member)!.asks.find((ask) => ask.serial > met && areSame(ask, own));
  return found ? { ...found, rank: member } : null;
}

function areSame({ ranks }: Ask, { ranks: others }: Ask): boolean {
  return ranks.length === others.length && ranks.every((rank, i) => rank === others[i]);
}
