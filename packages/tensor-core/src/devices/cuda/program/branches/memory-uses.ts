import type { Gap } from '../arena-plan.ts';

/** A piece of the arena, and the last call of each branch that used it. */
interface Use extends Gap {
  readonly lastByBranch: (number | undefined)[];
}

/** Which calls have used what of an arena, in the order of their capture. */
export class MemoryUses {
  readonly #storages = new Map<number, Use>();
  readonly #workspaces: Use[] = [];

  /** The last calls of each branch that used memory of `place` for something else than storage `own`. */
  behind(place: Gap, own?: number): number[] {
    const found: number[] = [];
    const look = (use: Use) => {
      const isApart =
        use.offset + use.byteLength <= place.offset || place.offset + place.byteLength <= use.offset;
      if (!isApart) for (const call of use.lastByBranch) if (call !== undefined) found.push(call);
    };
    for (const [number, use] of this.#storages) if (number !== own) look(use);
    this.#workspaces.forEach(look);
    return found;
  }

  noteStorage(number: number, place: Gap, call: number, branch: number): void {
    let use = this.#storages.get(number);
    if (!use) {
      const { offset, byteLength } = place;
      this.#storages.set(number, (use = { offset, byteLength, lastByBranch: [] }));
    }
    use.lastByBranch[branch] = call;
  }

  noteWorkspace({ offset, byteLength }: Gap, call: number, branch: number): void {
    const lastByBranch: (number | undefined)[] = [];
    lastByBranch[branch] = call;
    this.#workspaces.push({ offset, byteLength, lastByBranch });
  }
}
